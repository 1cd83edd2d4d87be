"""`synthsieve.sample`: draw labelled synthetic examples from a trained model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from synthsieve.errors import ConfigError
from synthsieve.io.devices import AUTO, device_of
from synthsieve.io.locks import locked_beside
from synthsieve.io.progress import Progress
from synthsieve.models.chains import DrawSettings, resolve
from synthsieve.models.generate import Samples, class_indices, draw_samples
from synthsieve.results.export.samples import write_items
from synthsieve.results.readable import shown_items
from synthsieve.settings import Draw
from synthsieve.training.reference_file import reference_for_drawing
from synthsieve.training.run_dir import RunDirectory


@dataclass(frozen=True)
class SampleResult:
    """Samples that were drawn and written."""

    path: Path  # the .npz with x, y, classes and latent; with a cluster, a folder of shards
    per_class: int  # samples of each class
    classes: tuple[str, ...]  # the class names of the model
    drawn_classes: tuple[str, ...]  # the class names that were drawn
    samples: Samples | None  # the arrays; None with a cluster, whose shards may not fit into memory
    readable: list[Path]  # readable files next to `path`: a picture, a table, sounds or sentences
    shards: list[Path] | None = None  # with a cluster, the files in `path`
    drawn_by: str = ""  # how latents were drawn, in words

    @property
    def count(self) -> int:
        return self.per_class * len(self.drawn_classes)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        files = {"shown": [str(one) for one in self.readable]} if self.shards is None else {"shards": len(self.shards)}
        return {
            "samples": str(self.path),
            "count": self.count,
            "classes": list(self.classes),
            "drawn_by": self.drawn_by,
            **files,
        }

    def lines(self) -> list[str]:
        """The summary that the command line prints."""
        of = f"each of {len(self.drawn_classes)} classes"
        if len(self.drawn_classes) == 1:
            of = f"class {self.drawn_classes[0]}"
        shards = "" if self.shards is None else f", in {len(self.shards)} shards"
        lines = [f"{self.count} samples, {self.per_class} of {of}{shards}: {self.path}", self.drawn_by]
        return [*lines, *(f"to look at: {one}" for one in self.readable)]


def sample(
    out: str | Path,
    *,
    per_class: int = 10,
    classes: Sequence[str] | None = None,
    to: str | Path | None = None,
    temperature: float | None = None,
    num_steps: int | None = None,
    draw: Draw | str | None = None,
    noise: bool = False,
    seed: int | None = None,
    cluster: str | None = None,
    workers: int | None = None,
    device: str | torch.device = AUTO,
    progress: Progress | None = None,
) -> SampleResult:
    """Draw samples of each class, decode them, and write them.

    Args:
        out: the folder that `run` or `fit` wrote.
        per_class: samples of each class.
        classes: names of the classes to draw; None draws all.
        to: the .npz to write; None writes OUT/samples.npz. With `cluster` a folder, OUT/samples if None.
        temperature: of the Langevin chains; below 1 samples are more typical and less varied. None: as in the settings.
        num_steps: Langevin steps; None: as in the settings.
        draw: how latents are drawn: "auto", "langevin", "mixture" or "mixture+langevin"; None: as in the settings.
        noise: add the observation noise, as p(x given z) has it.
        seed: random seed; None takes that of the run.
        cluster: draw on Ray: "local", or HOST:PORT of a running cluster.
        workers: with `cluster`, the number of workers; None takes all cores.
        device: as for `fit`; the workers of a cluster use the CPU.
        progress: shows how many samples are drawn.
    """
    out, torch_device = Path(out), device_of(device if cluster is None else "cpu")
    run = RunDirectory.find(out)
    names = run.split.classes
    indices = tuple(range(len(names))) if classes is None else class_indices(classes, names)
    if temperature is not None and not (math.isfinite(temperature) and temperature >= 0):
        raise ConfigError(f"temperature must be a finite number, 0 or more, got {temperature}", code="bad-temperature")
    if draw is not None and draw not in list(Draw):
        raise ConfigError(f"draw must be one of {', '.join(Draw)}, got {str(draw)!r}", code="unknown-draw")
    method = run.settings.sampling.draw if draw is None else Draw(draw)
    chains = DrawSettings.of(
        run.settings.sampling.model_copy(update={"draw": method}), temperature=temperature, num_steps=num_steps
    )
    path = Path(to) if to is not None else out / ("samples.npz" if cluster is None else "samples")
    model = run.load_model(device=torch_device)
    note = reference_for_drawing(run, model, method)
    chains = resolve(chains, model)
    by = note or f"drawn by {chains.draw.value}"
    seed = run.settings.seed if seed is None else seed
    options: dict[str, Any] = {"per_class": per_class, "chains": chains, "noise": noise, "seed": seed}
    drawn_classes = tuple(names[index] for index in indices)
    with locked_beside(path):
        if cluster is not None:
            from synthsieve.distributed.ray_engine import connected
            from synthsieve.distributed.sample import SampleJob, sample_shards

            job = SampleJob(run=run.path.resolve(), out=path.resolve(), labels=indices, **options)
            with connected(cluster, workers=workers) as engine:
                shards = sample_shards(job, engine=engine, progress=progress)
            return SampleResult(path, per_class, names, drawn_classes, None, [], shards, drawn_by=by)
        samples = draw_samples(model, run.encoding, classes=indices, progress=progress, **options)
        samples.write(path, names)
        labels = [names[y] for y in samples.y]
        readable = write_items(
            path.with_suffix(""), shown_items(run, samples.x), labels, label_name=run.origin.label or "label"
        )
    return SampleResult(path, per_class, names, drawn_classes, samples, readable, drawn_by=by)
