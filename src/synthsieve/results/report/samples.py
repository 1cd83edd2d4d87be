"""Section 2: samples of each class next to real ones: the best, a typical and the worst kept one, and rejected ones.

The template writes and escapes the HTML.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np

from synthsieve.data.dataset import UNLABELED
from synthsieve.data.modalities.sound.format import Waveforms
from synthsieve.data.modalities.table.schema import ColumnType, TableSchema
from synthsieve.evaluation.predict import NO_ORACLE
from synthsieve.results.export.media import png_bytes, resized, wav_bytes
from synthsieve.results.pool_view import PoolView
from synthsieve.results.readable import cut, has_pixels, pixels_of, text_cells
from synthsieve.results.report.wording import figure
from synthsieve.selection.entropy import REJECTED, Reason
from synthsieve.training.pool import Outcomes

MAX_CLASSES = 100
OPEN_CLASSES = 20  # further ones are folded
MIN_CLASSES = 10  # with fewer than these, samples are shown in less detail instead
MAX_TEXT_LENGTH = 400  # characters
MAX_CELL_LENGTH = 60
MAX_CELLS = 24  # columns of a table
MAX_NUMBERS = 12  # longer vectors are shown as bars
MAX_BARS = 256
PICTURE_SIDE = 88  # CSS pixels
SPECTROGRAM_SIZE = (150, 88)  # as wide as a player
NEAR = 0.25  # numbers closer than this share of the larger one count as equal


class Role(StrEnum):
    """Why a sample is shown: lowest, median and highest entropy of the selected; median of the rejected."""

    BEST = "best"
    TYPICAL = "typical"
    WORST = "worst kept"
    REJECTED = "rejected"


@dataclass(frozen=True)
class Detail:
    """How much of each example goes into the page; the first that fits is used."""

    side: int  # maximum pixels of a picture's longer side
    seconds: float  # maximum length of a sound; 0 leaves sounds out
    real_sounds: bool  # also of real examples
    note: str = ""  # what is left out


DETAILS = (
    Detail(192, 5.0, True),
    Detail(128, 2.0, False, "To keep this page small, sounds end after two seconds and real examples have no sound."),
    Detail(64, 0.0, False, "To keep this page small, pictures are smaller and there are no sounds."),
)


@dataclass(frozen=True)
class Picture:
    """An image, or a sound with its spectrogram: `uri` and `sound` are data URIs; width and height in CSS pixels."""

    form: ClassVar[str] = "picture"
    uri: str
    width: int
    height: int
    pixelated: bool
    sound: str | None = None
    is_of_sound: bool = False


@dataclass(frozen=True)
class Sound:
    """A sound without a picture; None if it does not fit."""

    form: ClassVar[str] = "sound"
    sound: str | None


@dataclass(frozen=True)
class Text:
    """A sentence, or an example as plain text."""

    form: ClassVar[str] = "words"
    text: str


@dataclass(frozen=True)
class Cells:
    """The first cells of a row of a table, and the number of its columns."""

    form: ClassVar[str] = "cells"
    names: tuple[str, ...]
    cells: tuple[str, ...]
    columns: int

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return list(zip(self.names, self.cells, strict=True))


@dataclass(frozen=True)
class VectorBars:
    """A long vector as bars about zero, each in [-1, 1]."""

    form: ClassVar[str] = "bars"
    heights: tuple[float, ...]
    length: int


SampleView = Picture | Sound | Text | Cells | VectorBars


@dataclass(frozen=True)
class Pick:
    """One sample that is shown."""

    role: Role
    row: int  # in the pool
    name: str  # the requested class
    entropy: float  # in nats
    weight: float  # how many samples it stands for, 0 if it is not selected
    outcome: str  # `selected`, or why it was rejected
    oracle_class: str | None  # what the independent classifier predicts; None without one
    real_row: int  # the nearest training example, a row of `dataset.train`
    real_class: str | None  # None if it is unlabelled
    distance: float  # to it, in the encoder's space

    @property
    def alt(self) -> str:
        """`synthetic 3, entropy 0.002, best`."""
        return f"synthetic {cut(self.name)}, entropy {figure(self.entropy)}, {self.role}"

    @property
    def real_alt(self) -> str:
        """`nearest real example, of class 3, distance 1.31`."""
        label = "class unknown" if self.real_class is None else f"of class {cut(self.real_class)}"
        return f"nearest real example, {label}, distance {figure(self.distance)}"

    @property
    def remarks(self) -> list[str]:
        """Why it was rejected, and whether the oracle or the neighbour is of another class."""
        remarks = [self.outcome] if self.role is Role.REJECTED else []
        if self.oracle_class not in (None, self.name):
            remarks.append(f"the oracle predicts {cut(str(self.oracle_class), 24)}")
        if self.real_class not in (None, self.name):
            remarks.append(f"its neighbour is of class {cut(str(self.real_class), 24)}")
        return remarks


@dataclass(frozen=True)
class Pair:
    """A sample next to the nearest real example."""

    pick: Pick
    synthetic: SampleView
    real: SampleView

    @property
    def differs(self) -> tuple[bool, ...]:
        """Which cells differ (other text, or numbers more than a quarter apart); empty unless both are rows."""
        a, b = self.synthetic, self.real
        if not isinstance(a, Cells) or not isinstance(b, Cells) or a.names != b.names:
            return ()
        return tuple(map(_differ, a.cells, b.cells))


@dataclass(frozen=True)
class ClassSamples:
    """The samples of a class; `note` says what is missing."""

    name: str
    pairs: tuple[Pair, ...]
    note: str

    @property
    def layout(self) -> str:
        """How they are laid out: `rows` of a table, spectrograms with players (`heard`), or the form of one sample."""
        if not self.pairs:
            return "none"
        if all(pair.differs for pair in self.pairs):
            return "rows"
        first = self.pairs[0].synthetic
        return "heard" if isinstance(first, Picture) and first.is_of_sound else first.form


@dataclass(frozen=True)
class SampleGallery:
    """Classes as HTML, open and folded, and a sentence for everything left out."""

    open: tuple[str, ...] = ()
    folded: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def sample_gallery(
    view: PoolView, outcome: Outcomes, render: Callable[[ClassSamples], str], space: int
) -> SampleGallery:
    """As many classes as fit into `space` bytes, at the highest detail at which enough of them fit."""
    labels = range(min(len(view.classes), MAX_CLASSES))
    picks = [picks_of(view, outcome, label) for label in labels]
    for detail in DETAILS:
        blocks = [render(one) for one in _class_samples(view, picks, detail)]
        fitting = int((np.cumsum([len(block.encode()) for block in blocks]) <= space).sum())
        if fitting >= min(len(labels), MIN_CLASSES):
            break
    notes = [detail.note] if detail.note else []
    if fitting < len(view.classes):
        notes.append(
            f"Only the first {fitting} of {len(view.classes):,} classes are shown, to keep this page small; "
            "synthsieve serve shows all."
        )
    shown = tuple(blocks[:fitting])
    return SampleGallery(shown[:OPEN_CLASSES], shown[OPEN_CLASSES:], tuple(notes))


def picks_of(view: PoolView, outcome: Outcomes, label: int) -> list[Pick]:
    """The samples shown of one class; fewer where it has fewer samples, none twice."""
    entropy, of_class = view.pool.entropy, view.pool.y == label

    def by_entropy(mask: np.ndarray) -> np.ndarray:
        rows = np.flatnonzero(of_class & mask)
        return rows[np.argsort(entropy[rows], kind="stable")]

    selected = by_entropy(outcome.weight > 0)
    roles: dict[int, Role] = {}
    if len(selected):
        for role, place in {Role.BEST: 0, Role.WORST: -1, Role.TYPICAL: (len(selected) - 1) // 2}.items():
            roles.setdefault(int(selected[place]), role)
    picks = [_pick(view, outcome, row, role) for role in Role for row, its in roles.items() if its is role]
    for reason in REJECTED:
        rejected = by_entropy(outcome.reason == reason)
        if len(rejected):
            picks.append(_pick(view, outcome, int(rejected[(len(rejected) - 1) // 2]), Role.REJECTED))
    return picks


def _pick(view: PoolView, outcome: Outcomes, row: int, role: Role) -> Pick:
    nearest = view.nearest_real(row, 1)
    real_row, oracle = int(nearest.indices[0]), int(view.pool.oracle_class[row])
    real = int(view.dataset.train.y[real_row])
    return Pick(
        role=role,
        row=row,
        name=view.classes[view.pool.y[row]],
        entropy=float(view.pool.entropy[row]),
        weight=float(outcome.weight[row]),
        outcome=_describe(view, outcome, row),
        oracle_class=None if oracle == NO_ORACLE else view.classes[oracle],
        real_row=real_row,
        real_class=None if real == UNLABELED else view.classes[real],
        distance=float(nearest.distances[0]),
    )


def _describe(view: PoolView, outcome: Outcomes, row: int) -> str:
    settings, reason = outcome.settings, outcome.reason[row]
    if reason == Reason.HIGH_ENTROPY and settings.entropy_ceiling is None and settings.keep_fraction:
        kept = view.pool.entropy[outcome.kept & (view.pool.y == view.pool.y[row])]
        return "entropy above the ceiling of its class" + (f", {figure(kept.max())}" if len(kept) else "")
    if reason != Reason.OTHER_LABEL:
        return outcome.describe(row)
    return f"the classifier predicts {view.classes[int(view.pool.predicted_at(settings.entropy_at)[row])]}"


def _class_samples(view: PoolView, picks: list[list[Pick]], detail: Detail) -> list[ClassSamples]:
    """The views of all picks, decoded in one batch."""
    flat = [pick for each in picks for pick in each]
    rows, real_rows = (np.array([getattr(p, name) for p in flat], dtype=np.int64) for name in ("row", "real_row"))
    views = zip(synthetic_views(view, rows, detail), real_views(view, real_rows, detail), strict=True) if flat else ()
    pairs = iter([Pair(pick, *two) for pick, two in zip(flat, views, strict=True)])
    samples = []
    for name, each in zip(view.classes, picks, strict=False):
        rejected, note = [pick.role is Role.REJECTED for pick in each], ""
        if not each:
            note = "No sample was drawn for this class."
        elif all(rejected):
            note = "No sample of this class was selected."
        elif not any(rejected):
            note = "No sample of this class was rejected."
        samples.append(ClassSamples(name, tuple(next(pairs) for _ in each), note))
    return samples


def synthetic_views(view: PoolView, rows: np.ndarray, detail: Detail) -> list[SampleView]:
    """Samples of a pool, in the order of `rows`."""
    x = view.decode(rows)
    if view.run.origin.features is not None:
        return [Text(f"an embedding of {x.shape[1]:,} numbers, close to the real row")] * len(rows)
    return _views(view, x, view.items(rows), detail, audible=True)


def real_views(view: PoolView, rows: np.ndarray, detail: Detail) -> list[SampleView]:
    """Rows of `dataset.train`, in the order of `rows`."""
    return _views(view, view.dataset.train.x[rows], view.real_items(rows), detail, audible=detail.real_sounds)


def _views(view: PoolView, x: np.ndarray, items: Any, detail: Detail, *, audible: bool) -> list[SampleView]:
    """By the type of the items, as in `export.samples.write_items`."""
    import pyarrow as pa

    if isinstance(items, pa.Table):
        # Without ids, since those of synthetic rows are made up.
        schema = getattr(view.run.encoding, "schema", None)
        columns = schema.columns if isinstance(schema, TableSchema) else ()
        items = items.drop_columns([column.name for column in columns if column.type is ColumnType.ID])
        if not items.num_columns:
            return [Text("a row without columns other than its id")] * items.num_rows
        names, rows = text_cells(items, max_columns=MAX_CELLS, max_length=MAX_CELL_LENGTH, digits=6)
        return [Cells(names, row, items.num_columns) for row in rows]
    if isinstance(items, Waveforms):
        spectrograms = pixels_of(view.dataset, x) if has_pixels(view.dataset) else None
        return _sounds(items, spectrograms, detail, audible=audible)
    if isinstance(items, np.ndarray) and items.ndim == 4 and items.shape[1] in (1, 3):
        return [_picture(image, detail) for image in pixels_of(view.dataset, items)]
    if isinstance(items, np.ndarray) and items.ndim == 2 and items.dtype.kind in "fiu":
        width = items.shape[1]
        if width <= MAX_NUMBERS:
            names, rows = text_cells(
                items, view.dataset.feature_names, max_columns=MAX_NUMBERS, max_length=MAX_CELL_LENGTH, digits=4
            )
            return [Cells(names, row, width) for row in rows]
        encode: Callable[[np.ndarray], np.ndarray] = view.run.encoding.encode
        heights = np.clip(encode(items)[:, :MAX_BARS] / 3, -1, 1)  # three standard deviations fill the height
        return [VectorBars(tuple(round(float(value), 3) for value in row), width) for row in heights]
    return [Text(cut(str(item), MAX_TEXT_LENGTH)) for item in items]


def _picture(image: np.ndarray, detail: Detail) -> Picture:
    """One image, uint8 (1 or 3, height, width)."""
    height, width = image.shape[1:]
    scale = PICTURE_SIDE / max(height, width)
    return Picture(_png(image, detail), max(8, round(width * scale)), max(8, round(height * scale)), scale > 1)


def _png(image: np.ndarray, detail: Detail) -> str:
    height, width = image.shape[1:]
    longer = max(height, width)
    if longer > detail.side:
        image = resized(image, max(1, height * detail.side // longer), max(1, width * detail.side // longer))
    return _data_uri("image/png", png_bytes(image))


def _sounds(items: Waveforms, spectrograms: np.ndarray | None, detail: Detail, *, audible: bool) -> list[SampleView]:
    """A player each, under its spectrogram if there is one: uint8 (n, 3, mels, frames)."""
    samples = int(detail.seconds * items.rate) if audible else 0
    uris = [
        _data_uri("audio/wav", wav_bytes(np.asarray(sound)[:samples], items.rate)) if samples else None
        for sound in items.sounds
    ]
    if spectrograms is None:
        return [Sound(uri) for uri in uris]
    return [
        Picture(_png(image, detail), *SPECTROGRAM_SIZE, True, uri, is_of_sound=True)
        for image, uri in zip(spectrograms, uris, strict=True)
    ]


def _data_uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _differ(a: str, b: str) -> bool:
    try:
        first, second = float(a.replace(",", "")), float(b.replace(",", ""))
    except ValueError:
        return a != b
    return a != b and not abs(first - second) <= NEAR * max(abs(first), abs(second))
