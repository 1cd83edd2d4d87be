"""The samples shown: by entropy, by outcome, beside the nearest real example."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from synthsieve.data.modalities.registry import fit_encoding
from synthsieve.data.origin import Origin
from synthsieve.results.report.samples import (
    DETAILS,
    Cells,
    ClassSamples,
    Picture,
    Role,
    Text,
    VectorBars,
    picks_of,
    real_views,
    sample_gallery,
    synthetic_views,
)
from synthsieve.selection.entropy import Reason
from tests.modalities import image, sound, table, text, vector
from tests.results.report.pictures import bytes_of, pixels_of


@pytest.fixture(scope="module")
def outcome(view):
    return view.as_trained()


def test_best_typical_and_worst_by_entropy(view, outcome):
    for label in range(len(view.classes)):
        rows = np.flatnonzero((view.pool.y == label) & (outcome.weight > 0))
        entropies = np.sort(view.pool.entropy[rows])
        picks = {pick.role: pick for pick in picks_of(view, outcome, label) if pick.role is not Role.REJECTED}
        assert len(picks) == min(3, len(rows))
        if not picks:
            continue
        assert picks[Role.BEST].entropy == entropies[0]
        if len(rows) > 1:
            assert picks[Role.WORST].entropy == entropies[-1]
        if len(rows) > 2:
            assert picks[Role.TYPICAL].entropy == entropies[(len(rows) - 1) // 2]
        assert all(
            pick.weight > 0 and pick.name == view.classes[label] and pick.outcome == "selected"
            for pick in picks.values()
        )
        shown = [pick.row for pick in picks_of(view, outcome, label)]
        assert len(shown) == len(set(shown))


def test_one_sample_of_every_rejection_reason(view, outcome):
    shown = [pick for label in range(len(view.classes)) for pick in picks_of(view, outcome, label)]
    rejected = [pick for pick in shown if pick.role is Role.REJECTED]
    for pick in rejected:
        assert outcome.weight[pick.row] == 0
        if outcome.reason[pick.row] == Reason.OTHER_LABEL:
            answer = view.classes[int(view.pool.logits_x[pick.row].argmax())]
            assert pick.outcome == f"the classifier predicts {answer}"
        else:
            assert pick.outcome.startswith("entropy above the ceiling of its class")
    missing = {(view.classes.index(pick.name), int(outcome.reason[pick.row])) for pick in rejected}
    wanted = {(int(y), int(r)) for y, r in zip(view.pool.y, outcome.reason, strict=True) if r != Reason.KEPT}
    assert missing == wanted


def test_nearest_real_example(view, outcome):
    for pick in picks_of(view, outcome, 3):
        distances = np.linalg.norm(
            view.real_latents.astype(np.float64) - view.pool.z_reencoded[pick.row].astype(np.float64), axis=1
        )
        assert pick.distance == pytest.approx(distances.min())
        assert pick.real_row == view.real_rows[distances.argmin()]


def test_pixels(view, outcome):
    picks = picks_of(view, outcome, 0)
    rows = np.array([pick.row for pick in picks])
    for row, shown in zip(rows, synthetic_views(view, rows, DETAILS[0]), strict=True):
        assert np.array_equal(pixels_of(shown.uri), view.decode(np.array([row]))[0, 0])
    real = np.array([pick.real_row for pick in picks])
    for row, shown in zip(real, real_views(view, real, DETAILS[0]), strict=True):
        assert np.array_equal(pixels_of(shown.uri), view.dataset.train.x[row, 0])


def looking_at(kind, **changes):
    """As much of a view as showing real examples needs."""
    dataset = kind.dataset()
    encoding = fit_encoding(dataset, np.arange(100))
    run = SimpleNamespace(origin=Origin("made up"), encoding=encoding)
    made = {"run": run, "dataset": dataset, "real_items": lambda rows: encoding.items(dataset.train.x[rows]), **changes}
    return SimpleNamespace(**made)


def test_rows_of_a_table_are_cells_without_ids_and_dashes_for_what_is_missing():
    shown = real_views(looking_at(table), np.arange(60), DETAILS[0])
    assert all(isinstance(one, Cells) for one in shown)
    assert shown[0].names == ("weight", "price", "gain", "colour", "paid", "day")
    colours = table.arrow_table()[0].column("colour").to_pylist()[:60]
    assert [dict(one.pairs)["colour"] for one in shown] == [colour or "–" for colour in colours]


def test_sentences_are_words_and_long_ones_are_cut():
    sentences, _ = text.sentences(3)
    assert real_views(looking_at(text), np.arange(3), DETAILS[0]) == [Text(sentence) for sentence in sentences]
    long = looking_at(text, real_items=lambda rows: ["a" * 10_000])
    (shown,) = real_views(long, np.arange(1), DETAILS[0])
    assert len(shown.text) == 400


def test_vectors():
    (shown,) = real_views(looking_at(vector), np.arange(1), DETAILS[0])
    assert shown.names == ("x1", "x2", "x3", "x4", "x5")
    wide = SimpleNamespace(
        dataset=lambda: SimpleNamespace(
            **{**vars(vector.dataset()), "train": SimpleNamespace(x=np.eye(120, 300, dtype=np.float32))}
        )
    )
    (shown,) = real_views(looking_at(wide), np.arange(1), DETAILS[0])
    assert isinstance(shown, VectorBars)
    assert (len(shown.heights), shown.length) == (256, 300)
    assert max(map(abs, shown.heights)) <= 1


def test_sounds():
    view = looking_at(sound)
    (full,) = real_views(view, np.arange(1), DETAILS[0])
    assert isinstance(full, Picture)
    assert bytes_of(full.sound)[:4] == b"RIFF"
    assert pixels_of(full.uri).shape == (8, 8, 3)
    (silent,) = real_views(view, np.arange(1), DETAILS[1])
    assert silent.sound is None


def test_large_pictures_and_float_images():
    big = looking_at(image, real_items=lambda rows: np.zeros((1, 3, 600, 300), dtype=np.uint8))
    (shown,) = real_views(big, np.arange(1), DETAILS[0])
    assert pixels_of(shown.uri).shape == (192, 96, 3)
    floats = looking_at(image, real_items=lambda rows: np.array([[[[-1.0, 1.0]]]], dtype=np.float32))
    (shown,) = real_views(floats, np.arange(1), DETAILS[0])
    assert pixels_of(shown.uri).tolist() == [[0, 255]]


def test_embeddings():
    rows = pa.table({"review": ["dull", "a joy"]})
    view = looking_at(vector, real_items=lambda places: rows.take(places))
    view.run.origin = Origin("made up", features="vectors.npy")
    view.decode = lambda places: np.zeros((len(places), 5), dtype=np.float32)
    (shown,) = synthetic_views(view, np.array([1]), DETAILS[0])
    assert shown == Text("an embedding of 5 numbers, close to the real row")
    (shown,) = real_views(view, np.array([1]), DETAILS[0])
    assert shown.pairs == [("review", "a joy")]
    bare = looking_at(vector, real_items=lambda places: rows.select([]).take(places))
    assert all(isinstance(one, Text) for one in real_views(bare, np.arange(2), DETAILS[0]))


def test_unknown_items_are_text():
    odd = looking_at(image, real_items=lambda rows: [{"a": 1}])
    assert real_views(odd, np.arange(1), DETAILS[0]) == [Text("{'a': 1}")]


def test_classes_that_do_not_fit(view, outcome):
    whole = sample_gallery(view, outcome, _size_of_100, space=10_000)
    assert (len(whole.open), whole.folded, whole.notes) == (10, (), ())
    part = sample_gallery(view, outcome, _size_of_100, space=350)
    assert len(part.open) == 3
    assert part.notes[-1].startswith("Only the first 3 of 10 classes")
    nothing = sample_gallery(view, outcome, _size_of_100, space=0)
    assert nothing.open == ()


def _size_of_100(samples: ClassSamples) -> str:
    return "x" * 100
