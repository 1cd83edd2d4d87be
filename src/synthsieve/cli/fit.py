"""`synthsieve fit SOURCE -o OUT`: learn the generative classifier."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from synthsieve.cli import options
from synthsieve.cli.options import finish, say
from synthsieve.device import Device

if TYPE_CHECKING:
    from synthsieve.config import Settings
    from synthsieve.evaluation.accuracy import Scores
    from synthsieve.learning.loop import FitResult


def fit(
    context: typer.Context,
    source: options.Source,
    out: options.Out,
    labels: Annotated[int | None, typer.Option(min=1, help="Use only this many labels (default: all).")] = None,
    label: options.Label = None,
    text: options.Text = None,
    schema: options.Schema = None,
    features: options.Features = None,
    image_size: options.ImageSize = None,
    test: options.Test = None,
    validation: options.Validation = None,
    data_dir: options.DataDir = None,
    config: options.Config = None,
    set_: options.Set = None,
    seed: options.Seed = None,
    supervised: Annotated[bool, typer.Option("--supervised", help="Train the labels-only baseline.")] = False,
    augment: Annotated[
        bool, typer.Option("--augment", help="Also the steps after learning.steps, with synthetic data.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint in OUT.")] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard event files.")] = False,
    threads: options.Threads = None,
    device: options.DeviceName = Device.CPU,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Learn a generative classifier from few labels and many unlabelled examples."""
    if "WORLD_SIZE" in os.environ:  # of several processes: what torch advises on its reducer is not for users
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    from synthsieve.defaults import settings_for
    from synthsieve.device import device_of
    from synthsieve.evaluation.accuracy import score_part
    from synthsieve.learning import loop
    from synthsieve.learning.run_folder import Origin, RunFolder
    from synthsieve.learning.tensorboard import event_writer, require_tensorboard
    from synthsieve.lock import locked
    from synthsieve.progress import for_stream
    from synthsieve.together import is_restart, joined

    asked: dict[str, Any] = {}
    if seed is not None:
        asked["seed"] = seed
    if labels is not None:
        asked["data"] = {"labels": labels}
    if supervised:
        asked["learning"] = {"objective": "supervised"}
    settings_for(source, config=config, overrides=set_ or (), asked=asked)  # errors in them show before data are read
    if tensorboard:
        require_tensorboard()
    origin = Origin.of(
        source,
        label=label,
        text=text,
        schema=schema,
        features=features,
        image_size=image_size,
        data_dir=data_dir,
        test=test,
        validation=validation,
    )
    dataset = origin.load(for_stream("data", quiet=quiet))
    settings = settings_for(source, dataset, config=config, overrides=set_ or (), asked=asked)
    settings = _with_additions(settings) if augment else settings.first_phase()
    where = device_of(device)
    with joined() as together:
        if together.first:
            context.with_resource(locked(out))
        quiet, as_json = quiet or not together.first, as_json and together.first
        there = RunFolder.exists(out)
        together.wait()  # until all have looked
        if (resume or is_restart()) and there:
            run = RunFolder.open(out)
            run.check_asked(settings, dataset)
            options.use_threads(threads or run.threads)
            if together.first:
                run.sweep()
            if threads not in (None, run.threads):
                say(
                    f"begun with {run.threads} threads, going on with {threads}: sums may round otherwise",
                    as_json=as_json,
                )
        else:
            options.use_threads(threads)
            run = RunFolder.create(out, origin, settings, dataset, write=together.first)
        split = run.split
        if together.first:
            for note in (*dataset.notes, *split.notes):
                say(note, as_json=as_json)
            say(
                f"{dataset.name}: {len(split.labeled)} labelled, {len(split.unlabeled)} unlabelled, "
                f"{len(split.validation)} validation, {len(split.test)} test",
                as_json=as_json,
            )
        on_row = event_writer(out) if tensorboard and together.first else None
        result = loop.fit(
            run,
            dataset,
            progress=for_stream("fit", quiet=quiet),
            on_row=on_row,
            tell=lambda sentence: say(f"warning: {sentence}", as_json=as_json),
            together=together,
            device=where,
        )
        if together.first:
            scores = score_part(run.model(), run.encoding, dataset, split, "test")
            finish(*_summary(out, result, scores), as_json=as_json)


def _with_additions(settings: Settings) -> Settings:
    """Settings whose second phase is there and can have what it is to learn from."""
    from synthsieve.config import Objective
    from synthsieve.errors import ConfigError

    if not settings.augmentation.steps and settings.augmentation.augment_from_step is None:
        settings = settings.with_second_phase()
    if settings.augment_from_step >= settings.total_steps:
        raise ConfigError(
            f"augmentation.augment_from_step={settings.augment_from_step} must lie before the last step, "
            f"{settings.total_steps}: lower it, or raise augmentation.steps"
        )
    drawn_from = settings.augmentation.enabled or settings.implicit.enabled
    if settings.learning.objective is Objective.SUPERVISED and drawn_from:
        raise ConfigError(
            "learning.objective=supervised trains no generator to draw from: "
            "leave --augment out, or learn from pseudo-labels alone with --set augmentation.enabled=false"
        )
    return settings


def _summary(out: Path, result: FitResult, scores: Scores | None) -> tuple[dict[str, Any], list[str]]:
    """How the fit ended, as a JSON object and as lines."""
    report = {
        "out": str(out),
        "steps": result.steps,
        "best_step": result.best_step,
        "validation_accuracy": result.validation_accuracy,
        "test_accuracy": None if scores is None else scores.accuracy,
        "test_interval": None if scores is None else scores.interval(),
        "seconds": round(result.seconds, 1),
        "drifts": list(result.drifts),
    }
    lines = [f"{result.steps} steps in {result.seconds:.0f} s, best on validation at step {result.best_step}"]
    if result.validation_accuracy is not None:
        lines.append(f"validation accuracy {100 * result.validation_accuracy:.1f} %")
    if scores is not None:
        lines.append(scores.in_words("test"))
    lines.append(f"draw samples with: synthsieve sample {out} --per-class 10")
    return report, lines
