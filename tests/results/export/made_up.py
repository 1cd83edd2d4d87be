"""Made-up blocks of every form, without a model."""

import datetime
import decimal

import numpy as np
import pyarrow as pa

from synthsieve.data.modalities.sound.format import Waveforms
from synthsieve.results.export.block import Block, PoolInfo
from synthsieve.results.export.directory import ExportPlan, write_export
from synthsieve.results.export.formats import Which, form_of, resolve_formats
from synthsieve.results.provenance import MEANINGS

CLASSES = ("cat", "dog/fox", "dog_fox")
KINDS = ("grey", "grey-alpha", "colour", "colour-alpha", "sounds", "sentences", "rows", "arrays")


def items(kind, n, seed=0):
    """n samples of a kind."""
    rng = np.random.default_rng(seed)
    channels = {"grey": 1, "grey-alpha": 2, "colour": 3, "colour-alpha": 4}
    if kind in channels:
        return rng.integers(0, 256, (n, channels[kind], 4, 8), dtype=np.uint8)
    if kind == "sounds":
        return Waveforms([rng.uniform(-1, 1, 20).astype(np.float32) for _ in range(n)], 8000)
    if kind == "sentences":
        return [f'so "{word}",\nthey say = é🙂' for word in rng.integers(0, 99, n)]
    if kind == "rows":
        return rows(n)
    return rng.normal(size=(n, 2, 3)).astype(np.float32)


def rows(n):
    """A table of many types, with missing cells and names that collide with ours."""
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
    """Their info, one whole block, and the same in blocks; every fourth sample is selected."""
    every, rng = items(kind, n, seed), np.random.default_rng(seed + 1)
    y = np.arange(n) % len(CLASSES)
    weight = np.where(np.arange(n) % 4 == 0, rng.uniform(1, 9, n), 0)
    x = every if isinstance(every, np.ndarray) else rng.normal(size=(n, 5)).astype(np.float32)
    words = pa.array(["selected", "not"])
    columns = {
        "weight": weight,
        "nearest_real_distance": rng.uniform(0, 1, n),
        "selected": weight > 0,
        "reason": pa.DictionaryArray.from_arrays(pa.array(np.where(weight > 0, 0, 1).astype(np.int8)), words),
        "seed": rng.integers(0, 2**63, n),
    }
    whole = Block(np.arange(n), x, every, y, weight > 0, columns, x.reshape(n, -1)[:, :2].astype(np.float32))
    info = PoolInfo(form_of(every), CLASSES, "label", total=n, selected=int((weight > 0).sum()))
    return info, whole, [cut(whole, slice(start, start + block)) for start in range(0, n, block)]


def cut(block, part):
    """A slice of a block."""
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
    "paired_comparison": {"words": "Not measured.", "rows": [], "notes": []},
    "command": "synthsieve export OUT",
}


def exported(to, kind, *formats, which=Which.DEFAULT, **more):
    """Write an export of made-up samples to `to`: their info, the whole block, the manifest."""
    info, whole, blocks = samples(kind, **more)
    plan = ExportPlan(info, resolve_formats(info.form, formats), which, MEANINGS)
    words = {"selection": "All are kept.", "chosen_by": "At random.", "quality": []}
    return info, whole, write_export(to, iter(blocks), plan, FACTS, words)
