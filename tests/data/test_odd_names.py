"""Files and folders whose names are not UTF-8, as old archives hold them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from synthsieve.cli.app import main
from synthsieve.data.registry import load
from synthsieve.data.splits import Split, make_split
from synthsieve.selection.files import read_table
from tests.data import made_up

LATIN = os.fsdecode(b"caf\xe9")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    try:
        (tmp_path / LATIN).mkdir()
    except (OSError, UnicodeError):
        pytest.skip("file systems of this machine take UTF-8 names alone")
    return tmp_path


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_files(ending: str, folder: Path) -> None:
    path = folder / f"plain.{ending}"
    write = {"csv": made_up.write_csv, "parquet": made_up.write_parquet, "npz": made_up.write_npz}[ending]
    write(path)
    odd = path.rename(folder / f"{LATIN}.{ending}")
    dataset = load(str(odd), label="answer")
    split = make_split(dataset, labels=None, seed=0)
    split.write(folder / "split.json")
    Split.read(folder / "split.json").check_against(dataset)


def test_class_folders(folder: Path) -> None:
    root = made_up.write_folder(folder / "pets")
    (root / "cat").rename(root / LATIN)
    dataset = load(str(root))
    assert dataset.classes == (LATIN, "dog")
    make_split(dataset, labels=None, seed=0).write(folder / "split.json")
    Split.read(folder / "split.json").check_against(load(str(root)))


def test_a_parquet_file_for_select(folder: Path) -> None:
    rng = np.random.default_rng(0)
    logits = pa.FixedSizeListArray.from_arrays(rng.normal(size=60), 3)
    with (folder / f"{LATIN}.parquet").open("wb") as stream:
        parquet.write_table(pa.table({"logits": logits, "label": np.arange(20) % 3}), stream)
    assert len(read_table(folder / f"{LATIN}.parquet").labels) == 20


def test_a_folder_to_write_to_is_refused_before_any_work(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("fit", "run"):
        with pytest.raises(SystemExit) as end:
            main([verb, "digits", "-o", str(folder / f"{LATIN}-out")])
        assert end.value.code == 2
        assert "must be UTF-8" in capsys.readouterr().err
    assert os.listdir(folder) == [LATIN]
