"""The publishers' data themselves, where they are at hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from synthsieve.data.registry import load
from synthsieve.data.splits import make_split

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(real_data: Path) -> Path:
    return real_data


@pytest.fixture(autouse=True)
def _no_download(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SYNTHSIEVE_CACHE", str(tmp_path))
    monkeypatch.setenv("SYNTHSIEVE_MIRROR", "http://127.0.0.1:9")


def test_svhn(folder: Path) -> None:
    dataset = load("svhn", data_dir=folder)
    assert dataset.test is not None
    assert dataset.train.x.shape == (73257, 3, 32, 32)
    assert dataset.test.x.shape == (26032, 3, 32, 32)
    published = [4948, 13861, 10585, 8497, 7458, 6882, 5727, 5595, 5045, 4659]
    assert np.bincount(dataset.train.y).tolist() == published
    split = make_split(dataset, labels=1000, seed=0)
    assert len(split.labeled) == 1000
    assert abs(len(split.validation) - 7325) <= 5
    if dataset.train.groups is not None:
        learning = np.concatenate([split.labeled, split.unlabeled])
        assert not np.intersect1d(dataset.train.groups[learning], dataset.train.groups[split.validation]).size


def test_mnist(folder: Path) -> None:
    dataset = load("mnist", data_dir=folder)
    assert dataset.test is not None
    assert dataset.train.x.shape == (60000, 1, 28, 28)
    assert dataset.test.x.shape == (10000, 1, 28, 28)
    assert np.bincount(dataset.test.y).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def test_adult(folder: Path) -> None:
    dataset = load("adult", data_dir=folder)
    assert dataset.test is not None
    assert (dataset.train.x.shape, dataset.test.x.shape) == ((32561, 14), (16281, 14))
    assert np.bincount(dataset.train.y).tolist() == [24720, 7841]
    assert np.bincount(dataset.test.y).tolist() == [12435, 3846]
    missing = np.isnan(dataset.train.x).sum(axis=0)
    assert {name: int(n) for name, n in zip(dataset.feature_names or (), missing, strict=True) if n} == {
        "workclass": 1836,
        "occupation": 1843,
        "native-country": 583,
    }


def test_spoken_digits(folder: Path) -> None:
    dataset = load("spoken-digits", data_dir=folder)
    assert dataset.test is None
    assert dataset.train.x.shape == (3000, 1, 24, 24)
    assert np.bincount(dataset.train.y).tolist() == [300] * 10
    assert dataset.train.groups is not None
    assert np.bincount(dataset.train.groups).tolist() == [500] * 6
    assert (dataset.train.x.max(axis=(1, 2, 3)) == 0).all()


def test_sst2(folder: Path) -> None:
    dataset = load("sst2", data_dir=folder)
    assert dataset.test is not None
    assert np.bincount(dataset.train.y).tolist() == [29780, 37569]
    assert np.bincount(dataset.test.y).tolist() == [428, 444]
    assert dataset.train.x[0] == b"hide new secretions from the parental units"
    assert dataset.notes == ()
