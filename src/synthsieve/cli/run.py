"""`synthsieve run SOURCE -o OUT`: split, fit, augment, prove, export."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from synthsieve.cli import options
from synthsieve.cli.options import finish, say


def run(
    context: typer.Context,
    source: options.Source,
    out: options.Out,
    labels: Annotated[
        int | None, typer.Option(min=1, help="Labelled examples; as many of each class unless data.balanced is false.")
    ] = None,
    label: options.Label = None,
    text: options.Text = None,
    schema: options.Schema = None,
    features: options.Features = None,
    data_dir: options.DataDir = None,
    config: options.Config = None,
    set_: options.Set = None,
    seed: options.Seed = None,
    seeds: Annotated[int, typer.Option(min=1, help="Repeat with this many seeds, for an honest interval.")] = 1,
    workers: options.Workers = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Everything: learn, draw, filter, select, learn on, prove on held-out labels, and keep what helped.

    The same command goes on where an earlier one stopped. OUT/model is the arm that validation prefers, or the model of
    real data alone where none is better; OUT/synthetic.npz are the samples it learned from.
    """
    from synthsieve.config import load_settings
    from synthsieve.defaults import default_preset
    from synthsieve.experiments.arms import BASELINE, cells
    from synthsieve.experiments.jobs import default_workers
    from synthsieve.experiments.outcome import carry_out, keep_model, keep_synthetic
    from synthsieve.experiments.rendering import NOTHING_TO_CHOOSE_ON, others_in
    from synthsieve.experiments.table import Experiment
    from synthsieve.learning.run_folder import Origin
    from synthsieve.lock import locked
    from synthsieve.progress import for_stream
    from synthsieve.report.page import write_report
    from synthsieve.review.run import open_run

    asked: dict[str, Any] = {} if labels is None else {"data": {"labels": labels}}
    if seed is not None:
        asked["seed"] = seed
    load_settings(config or default_preset(source), set_ or (), asked)  # errors in them come before data are read
    context.with_resource(locked(out))
    origin = Origin.of(source, label=label, text=text, schema=schema, features=features, data_dir=data_dir)
    dataset = origin.load(for_stream("data", quiet=quiet))
    settings = load_settings(config or default_preset(source, dataset), set_ or (), asked)
    if not settings.augmentation.steps:
        settings = settings.with_second_phase()
    experiment = Experiment(
        out,
        origin,
        settings,
        tuple(range(settings.seed, settings.seed + seeds)),
        tuple(cells(settings.proof.pool_sizes, baselines=settings.proof.baselines)),
    )
    split = experiment.check(dataset)
    for note in (*dataset.notes, *split.notes):
        say(note, as_json=as_json)
    say(
        f"{dataset.name}: {len(split.labeled)} labelled, {len(split.unlabeled)} unlabelled, "
        f"{len(split.validation)} validation, {len(split.test)} test; {experiment.size_in_words}",
        as_json=as_json,
    )
    outcome = carry_out(
        experiment,
        dataset,
        workers=workers or default_workers(),
        progress=for_stream("run", quiet=quiet),
        looking=for_stream("look", quiet=quiet),
    )
    name = BASELINE.name if outcome.choice is None else outcome.choice.arm
    chosen = next(cell for cell in experiment.cells if cell.name == name)
    model, synthetic = keep_model(experiment, chosen), keep_synthetic(experiment, chosen)
    page = write_report(
        open_run(out), progress=for_stream("look", quiet=quiet), drawing=for_stream("report", quiet=quiet)
    )
    words = NOTHING_TO_CHOOSE_ON if outcome.choice is None else outcome.choice.in_words()
    for sentence in experiment.drifts():
        say(f"warning: {sentence}", as_json=as_json)
    lines = ["", outcome.proof.table(others_in(outcome.report)), words, f"its model: {model}"]
    lines += [f"the samples it learned from, with weights: {path}" for path in synthetic]
    lines += [f"table: {out / 'table.md'}", "pictures:", *(f"  {path}" for path in outcome.figures)]
    lines += [f"report: {page.path}", f"Browse samples in your browser: synthsieve serve {out}"]
    lines.append(f"Save the synthetic data: synthsieve export {out}")
    report = {
        "out": str(out),
        "chosen": name,
        "words": words,
        "model": str(model),
        "synthetic": [str(path) for path in synthetic],
        "proof": outcome.proof.as_dict(),
        "groups": outcome.report["groups"],
        "choice": None if outcome.choice is None else outcome.choice.as_dict(),
        "table": str(out / "table.json"),
        "figures": [str(path) for path in outcome.figures],
        "report": str(page.path),
        "drifts": experiment.drifts(),
    }
    finish(report, lines, as_json=as_json)
