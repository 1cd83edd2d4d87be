"""`synthsieve.sample`: draw labelled synthetic examples from a trained model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthsieve.errors import ConfigError
from synthsieve.io.locks import locked_beside
from synthsieve.io.progress import Progress
from synthsieve.models.generate import Samples, class_indices, draw_samples
from synthsieve.results.export.samples import write_items
from synthsieve.results.readable import shown_items
from synthsieve.sampling.langevin import LangevinSettings
from synthsieve.training.run_dir import RunDirectory


@dataclass(frozen=True)
class SampleResult:
    """Samples that were drawn and written."""

    path: Path  # the .npz with x, y, classes and latent; with a cluster, a folder of shards
    per_class: int  # samples of each class
    classes: tuple[str, ...]  # the class names of the model
    drawn_classes: tuple[str, ...]  # the class names that were drawn
    samples: Samples | None  # the arrays; None with a cluster, whose shards may not fit into memory
    readable: list[Path]  # files for people beside `path`: a picture, a table, sounds or sentences
    shards: list[Path] | None = None  # with a cluster, the files in `path`

    @property
    def count(self) -> int:
        return self.per_class * len(self.drawn_classes)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        files = {"shown": [str(one) for one in self.readable]} if self.shards is None else {"shards": len(self.shards)}
        return {"samples": str(self.path), "count": self.count, "classes": list(self.classes), **files}

    def lines(self) -> list[str]:
        """The summary that the command line prints."""
        of = f"each of {len(self.drawn_classes)} classes"
        if len(self.drawn_classes) == 1:
            of = f"class {self.drawn_classes[0]}"
        shards = "" if self.shards is None else f", in {len(self.shards)} shards"
        lines = [f"{self.count} samples, {self.per_class} of {of}{shards}: {self.path}"]
        return [*lines, *(f"to look at: {one}" for one in self.readable)]


def sample(
    out: str | Path,
    *,
    per_class: int = 10,
    classes: Sequence[str] | None = None,
    to: str | Path | None = None,
    temperature: float | None = None,
    num_steps: int | None = None,
    noise: bool = False,
    seed: int | None = None,
    cluster: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> SampleResult:
    """Draw samples of each class by Langevin dynamics, decode them, and write them.

    Args:
        out: the folder that `run` or `fit` wrote.
        per_class: samples of each class.
        classes: names of the classes to draw; None draws all.
        to: the .npz to write; None writes OUT/samples.npz. With `cluster` a folder, OUT/samples if None.
        temperature: of the Langevin chains; below 1 samples are more typical and less varied. None: as in the settings.
        num_steps: Langevin steps; None: as in the settings.
        noise: add the observation noise, as p(x given z) has it.
        seed: random seed; None takes that of the run.
        cluster: draw on Ray: "local", or HOST:PORT of a running cluster.
        workers: with `cluster`, the number of workers; None takes all cores.
        progress: shows how many samples are drawn.
    """
    out = Path(out)
    run = RunDirectory.find(out)
    names = run.split.classes
    indices = tuple(range(len(names))) if classes is None else class_indices(classes, names)
    if temperature is not None and not (math.isfinite(temperature) and temperature >= 0):
        raise ConfigError(f"temperature must be a finite number, 0 or more, got {temperature}", code="bad-temperature")
    defaults = run.settings.sampling
    chains = LangevinSettings(
        num_steps=defaults.num_steps if num_steps is None else num_steps,
        step_size=defaults.step_size,
        temperature=defaults.temperature if temperature is None else temperature,
    )
    path = Path(to) if to is not None else out / ("samples.npz" if cluster is None else "samples")
    seed = run.settings.seed if seed is None else seed
    options: dict[str, Any] = {"per_class": per_class, "chains": chains, "noise": noise, "seed": seed}
    drawn_classes = tuple(names[index] for index in indices)
    with locked_beside(path):
        if cluster is not None:
            from synthsieve.distributed.ray_engine import connected
            from synthsieve.distributed.sample import Drawing, sample_shards

            drawing = Drawing(run=run.path.resolve(), out=path.resolve(), labels=indices, **options)
            with connected(cluster, workers=workers) as engine:
                shards = sample_shards(drawing, engine=engine, progress=progress)
            return SampleResult(path, per_class, names, drawn_classes, None, [], shards)
        samples = draw_samples(run.load_model(), run.encoding, classes=indices, progress=progress, **options)
        samples.write(path, names)
        labels = [names[y] for y in samples.y]
        readable = write_items(
            path.with_suffix(""), shown_items(run, samples.x), labels, label_name=run.origin.label or "label"
        )
    return SampleResult(path, per_class, names, drawn_classes, samples, readable)
