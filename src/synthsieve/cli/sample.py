"""`synthsieve sample OUT --per-class N`: new labelled examples from a fitted run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from synthsieve.cli import options
from synthsieve.cli.options import finish


def sample(
    context: typer.Context,
    out: options.Run,
    per_class: Annotated[int, typer.Option("--per-class", "--n", min=1, help="Samples of each class.")] = 10,
    class_: Annotated[
        list[str] | None,
        typer.Option("--class", help="Draw this class alone; may be given several times; all classes if not given."),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            help="Where to write (default: OUT/samples.npz). With --cluster a folder.",
            parser=options.given_path,
            metavar="PATH",
        ),
    ] = None,
    temperature: Annotated[float | None, typer.Option(min=0, help="Below 1: surer and less varied.")] = None,
    num_steps: Annotated[int | None, typer.Option(min=0, help="Langevin steps.")] = None,
    noise: Annotated[bool, typer.Option("--noise", help="Add the observation noise: a draw of p(x given z).")] = False,
    seed: options.Seed = None,
    threads: options.Threads = None,
    cluster: options.Cluster = None,
    workers: options.Workers = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Draw labelled samples: an .npz (x, y, classes, latent), and beside it a picture, a table, sounds or sentences."""
    import math

    from synthsieve.distributed.on_ray import connected
    from synthsieve.distributed.sample import Drawing, sample_shards
    from synthsieve.drawing import class_indices, draw_samples
    from synthsieve.errors import ConfigError
    from synthsieve.export.samples import write_items
    from synthsieve.learning.run_folder import RunFolder
    from synthsieve.learning.shown import shown_items
    from synthsieve.lock import locked_beside
    from synthsieve.progress import for_stream
    from synthsieve.sampling.langevin import LangevinSettings

    options.use_threads(threads)
    run = RunFolder.find(out)
    classes = None if class_ is None else class_indices(class_, run.split.classes)
    defaults = run.settings.sampling
    if temperature is not None and not math.isfinite(temperature):
        raise ConfigError(f"--temperature expects a finite number, 0 or more, got {temperature}")
    chains = LangevinSettings(
        num_steps=defaults.num_steps if num_steps is None else num_steps,
        step_size=defaults.step_size,
        temperature=defaults.temperature if temperature is None else temperature,
    )
    path = to or out / ("samples.npz" if cluster is None else "samples")
    context.with_resource(locked_beside(path))
    if cluster is not None:
        drawing = Drawing(
            run=run.path.resolve(),
            out=path.resolve(),
            per_class=per_class,
            labels=range(len(run.split.classes)) if classes is None else classes,
            chains=chains,
            noise=noise,
            seed=run.settings.seed if seed is None else seed,
        )
        with connected(cluster, workers=workers) as engine:
            paths = sample_shards(drawing, engine=engine, progress=for_stream("sample", quiet=quiet))
        count = per_class * len(drawing.labels)
        told = {"samples": str(path), "count": count, "classes": list(run.split.classes), "shards": len(paths)}
        finish(told, [f"{count} samples, {per_class} of each class, in {len(paths)} shards: {path}"], as_json=as_json)
        return
    drawn = draw_samples(
        run.model(),
        run.encoding,
        per_class=per_class,
        classes=classes,
        chains=chains,
        noise=noise,
        seed=run.settings.seed if seed is None else seed,
        progress=for_stream("sample", quiet=quiet),
    )
    drawn.write(path, run.split.classes)
    report = {"samples": str(path), "count": len(drawn.y), "classes": list(run.split.classes)}
    kinds = len(drawn.y) // per_class
    of = f"each of {kinds} classes" if kinds > 1 else f"class {run.split.classes[drawn.y[0]]}"
    lines = [f"{len(drawn.y)} samples, {per_class} of {of}: {path}"]
    labels = [run.split.classes[y] for y in drawn.y]
    shown = write_items(path.with_suffix(""), shown_items(run, drawn.x), labels, label_name=run.origin.label or "label")
    report["shown"] = [str(one) for one in shown]
    lines += [f"to look at: {one}" for one in shown]
    finish(report, lines, as_json=as_json)
