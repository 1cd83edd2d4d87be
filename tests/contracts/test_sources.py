"""One contract for all sources: whatever comes in, the same kind of thing comes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from synthsieve.data import registry
from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.modalities.registry import fit_encoding, from_json
from synthsieve.data.registry import Request, load, register_source
from synthsieve.data.splits import make_split
from synthsieve.errors import DataError
from tests.data import made_up, made_up_sounds
from tests.errors import raises


@dataclass(frozen=True)
class Case:
    """How to make the data, and what to expect of them."""

    make: Callable[[Path], str]
    classes: tuple[str, ...]
    shape: tuple[int, ...]
    kind: Kind = Kind.IMAGE
    has_test: bool = False
    has_groups: bool = False
    label: str | None = None


def _named(name: str, write: Callable[[Path], object]) -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        write(folder)
        return name

    return make


def _idx(folder: Path, gz: bool) -> str:
    made_up.write_idx(folder, "t10k", gz=gz)
    return str(made_up.write_idx(folder, "train", gz=gz))


def _svhn(folder: Path) -> str:
    made_up.write_mat(folder / "svhn" / "test_32x32.mat", 20, seed=1)
    return str(made_up.write_mat(folder / "svhn" / "train_32x32.mat"))


def _folder_with_test(folder: Path) -> str:
    made_up.write_folder(folder / "pets" / "train")
    made_up.write_folder(folder / "pets" / "test", unlabeled=False)
    return str(folder / "pets")


def _registered(request: Request) -> Dataset:
    x, y = made_up.images(40, (1, 8, 8)), made_up.labels().astype(np.int64)
    return Dataset("registered", Kind.IMAGE, ("a", "b", "c", "d"), Examples(x, y))


DTYPES = {Kind.IMAGE: np.uint8, Kind.VECTOR: np.float32, Kind.TABLE: np.float64, Kind.SOUND: np.float32}
DIGITS = tuple("0123456789")
CASES = {
    "digits": Case(lambda _: "digits", DIGITS, (1, 8, 8)),
    "svhn": Case(_named("svhn", _svhn), DIGITS, (3, 32, 32), has_test=True, has_groups=True),
    "mnist": Case(_named("mnist", lambda f: _idx(f / "mnist", True)), tuple("0123"), (1, 8, 12), has_test=True),
    "idx, plain": Case(lambda f: _idx(f, False), tuple("0123"), (1, 8, 12), has_test=True),
    "idx, gz": Case(lambda f: _idx(f, True), tuple("0123"), (1, 8, 12), has_test=True),
    "mat": Case(_svhn, DIGITS, (3, 32, 32), has_test=True, has_groups=True),
    "npz": Case(
        lambda f: str(made_up.write_npz(f / "a.npz", groups=np.arange(40) // 2)),
        tuple("0123"),
        (3, 8, 8),
        has_groups=True,
    ),
    "npz with test, text labels": Case(
        lambda f: str(
            made_up.write_npz(
                f / "a.npz",
                x=made_up.images(40, (5,)).astype(np.float64),
                y=np.array(["no", "yes", "no", "yes", ""] * 8),
                x_test=made_up.images(6, (5,)).astype(np.float64),
                y_test=np.array(["no", "yes"] * 3),
            )
        ),
        ("no", "yes"),
        (5,),
        Kind.VECTOR,
        has_test=True,
    ),
    "image folder": Case(lambda f: str(made_up.write_folder(f / "pets")), ("cat", "dog"), (3, 8, 8)),
    "image folder with test": Case(
        _folder_with_test,
        ("cat", "dog"),
        (3, 8, 8),
        has_test=True,
    ),
    "csv": Case(lambda f: str(made_up.write_csv(f / "a.csv")), ("no", "yes"), (2,), kind=Kind.TABLE, label="answer"),
    "parquet": Case(
        lambda f: str(made_up.write_parquet(f / "a.parquet")), ("0", "1", "2"), (2,), kind=Kind.TABLE, label="answer"
    ),
    "sound folder": Case(
        lambda f: str(made_up_sounds.write_sound_folder(f / "tones")), ("high", "low"), (1, 24, 20), Kind.SOUND
    ),
    "listed sounds": Case(
        lambda f: str(made_up_sounds.write_listed(f / "tones", speakers=12)),
        ("high", "low"),
        (1, 24, 20),
        Kind.SOUND,
        has_groups=True,
    ),
    "spoken-digits": Case(
        _named("spoken-digits", lambda f: made_up_sounds.write_spoken_digits(f / "recordings", takes=1, speakers=10)),
        DIGITS,
        (1, 24, 24),
        Kind.SOUND,
        has_groups=True,
    ),
    "registered": Case(lambda _: "registered", tuple("abcd"), (1, 8, 8)),
}


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty cache, no network (a closed port), and a registry that is restored."""
    monkeypatch.setenv("SYNTHSIEVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SYNTHSIEVE_MIRROR", "http://127.0.0.1:9")
    monkeypatch.setattr(registry, "_SOURCES", dict(registry._SOURCES))
    register_source("registered", _registered)


@pytest.fixture(params=CASES, ids=list(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def dataset(case: Case, tmp_path: Path) -> Dataset:
    return load(case.make(tmp_path), label=case.label, data_dir=tmp_path)


def test_kind_classes_and_shape(case: Case, dataset: Dataset, tmp_path: Path) -> None:
    assert (dataset.kind, dataset.classes, dataset.shape) == (case.kind, case.classes, case.shape)
    assert (dataset.test is not None) == case.has_test
    assert (dataset.train.groups is not None) == case.has_groups
    assert dataset.name
    assert "/" not in dataset.name


def test_arrays(dataset: Dataset) -> None:
    for part in (dataset.train, dataset.test):
        if part is None:
            continue
        assert len(part.x) == len(part.y) > 0
        assert part.x.flags.c_contiguous
        assert part.x.shape[1:] == dataset.shape
        assert part.x.dtype == DTYPES[dataset.kind]
        assert part.y.dtype == np.int64
        assert -1 <= part.y.min() <= part.y.max() < dataset.num_classes


def test_every_class_is_labelled(dataset: Dataset) -> None:
    assert set(dataset.train.y.tolist()) - {-1} == set(range(dataset.num_classes))


def test_reads_the_same_twice(case: Case, tmp_path: Path) -> None:
    source = case.make(tmp_path)
    first, second = (load(source, label=case.label, data_dir=tmp_path) for _ in range(2))
    np.testing.assert_array_equal(first.train.x, second.train.x)
    np.testing.assert_array_equal(first.train.y, second.train.y)


def test_can_be_split_and_encoded(dataset: Dataset) -> None:
    split = make_split(dataset, labels=dataset.num_classes, seed=0)
    rows = np.concatenate([split.labeled, split.unlabeled])
    encoding = fit_encoding(dataset, rows)
    encoded = encoding.encode(dataset.train.x)
    assert encoded.dtype == np.float32
    assert np.isfinite(encoded).all()
    decoded = from_json(encoding.to_json()).decode(encoded)
    np.testing.assert_allclose(decoded[rows], dataset.train.x[rows], rtol=1e-5, atol=1e-5)


def test_misspelt_name() -> None:
    with pytest.raises(DataError, match="Did you mean 'svhn'"):
        load("svnh")


def test_taken_name() -> None:
    with raises(DataError, "name-taken"):
        register_source("digits", _registered)


def test_registered_sources_are_checked() -> None:
    def broken(request: Request) -> Dataset:
        good = _registered(request)
        return Dataset("broken", Kind.IMAGE, good.classes, Examples(good.train.x, good.train.y + 1))

    register_source("broken", broken)
    with raises(DataError, "label-range"):
        load("broken")
