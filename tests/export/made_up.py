"""Blocks of every form, without a model: samples that a test can write and know again."""

import datetime
import decimal

import numpy as np
import pyarrow as pa

from synthsieve.export.block import About, Block
from synthsieve.export.data_set import Plan, write_export
from synthsieve.export.formats import Form, Which, asked_formats, form_of
from synthsieve.review.provenance import MEANINGS
from synthsieve.waveforms import Waveforms

CLASSES = ("cat", "dog/fox", "dog_fox")
KINDS = ("grey", "grey-alpha", "colour", "colour-alpha", "sounds", "sentences", "rows", "arrays")


def items(kind, n, seed=0):
    """n samples of a kind."""
    generator = np.random.default_rng(seed)
    channels = {"grey": 1, "grey-alpha": 2, "colour": 3, "colour-alpha": 4}
    if kind in channels:
        return generator.integers(0, 256, (n, channels[kind], 4, 8), dtype=np.uint8)
    if kind == "sounds":
        return Waveforms([generator.uniform(-1, 1, 20).astype(np.float32) for _ in range(n)], 8000)
    if kind == "sentences":
        return [f'so "{word}",\nthey say = é🙂' for word in generator.integers(0, 99, n)]
    if kind == "rows":
        return rows(n)
    return generator.normal(size=(n, 2, 3)).astype(np.float32)


def rows(n):
    """A table of many types, with cells missing and names that ours meet."""
    some = [None, *range(1, n)]
    first = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    return pa.table(
        {
            "id": pa.array(range(100, 100 + n), pa.int32()),
            "weight": pa.array([0.5] * n, pa.float32()),
            "label": pa.array(["x"] * n).dictionary_encode(),
            "synthetic_label": pa.array([True, None] * n)[:n],
            "price": pa.array([decimal.Decimal("1.50")] * n, pa.decimal64(5, 2)),
            "when": pa.array([first] * n, pa.timestamp("us", "UTC")),
            "day": pa.array([None if i is None else datetime.date(2020, 1, i % 28 + 1) for i in some]),
            "gap": pa.array([None if i is None else datetime.timedelta(i) for i in some], pa.duration("ms")),
            "code": pa.array(["NA", "", "01067"] * n, pa.string_view())[:n],
            "size": pa.array(some, pa.uint16()),
        }
    )


def samples(kind, n=23, block=7, seed=0):
    """What all share, and blocks of n samples, every fourth of them selected."""
    every, generator = items(kind, n, seed), np.random.default_rng(seed + 1)
    y = np.arange(n) % len(CLASSES)
    weight = np.where(np.arange(n) % 4 == 0, generator.uniform(1, 9, n), 0)
    x = every if isinstance(every, np.ndarray) else generator.normal(size=(n, 5)).astype(np.float32)
    words = pa.array(["selected", "not"])
    columns = {
        "weight": weight,
        "nearest_real_distance": generator.uniform(0, 1, n),
        "selected": weight > 0,
        "reason": pa.DictionaryArray.from_arrays(pa.array(np.where(weight > 0, 0, 1).astype(np.int8)), words),
        "seed": generator.integers(0, 2**63, n),
    }
    whole = Block(np.arange(n), x, every, y, weight > 0, columns, x.reshape(n, -1)[:, :2].astype(np.float32))
    about = About(form_of(every), CLASSES, "label", total=n, selected=int((weight > 0).sum()))
    return about, whole, [cut(whole, slice(start, start + block)) for start in range(0, n, block)]


def cut(block, part):
    """Some of a block."""
    one = block.items
    one = Waveforms(one.sounds[part], one.rate) if isinstance(one, Waveforms) else one[part]
    columns = {name: values[part] for name, values in block.columns.items()}
    return Block(block.ids[part], block.x[part], one, block.y[part], block.selected[part], columns, block.latent[part])


FACTS = {
    "name": "pets",
    "classes": list(CLASSES),
    "source": {"chains": {"num_steps": 8, "temperature": 0.5}, "model_hash": "0" * 16},
    "run": {"origin": {"source": "pets"}},
    "versions": {"synthsieve": "0"},
    "split": {"labeled": 20, "unlabeled": 100},
    "counts": {
        "drawn": 23,
        "kept": 10,
        "selected": 6,
        "reasons": {"selected": 6},
        "classes": {"a | b\nc": {"drawn": 23, "kept": 10, "selected": 6}},
    },
    "purity": None,
    "proof": {"words": "Nobody knows.", "rows": [], "notes": []},
    "command": "synthsieve export OUT",
}


def exported(to, kind, *formats, which=Which.USUAL, **more):
    """An export of made-up samples in `to`: what they share, the whole block, the manifest."""
    about, whole, blocks = samples(kind, **more)
    plan = Plan(about, asked_formats(about.form, formats), which, MEANINGS)
    words = {"sieve": "All stay.", "chosen_by": "By chance.", "quality": []}
    return about, whole, write_export(to, iter(blocks), plan, FACTS, words)


__all__ = ["CLASSES", "FACTS", "KINDS", "Form", "cut", "exported", "items", "samples"]
