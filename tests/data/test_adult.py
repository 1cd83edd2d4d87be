"""Adult in its publisher's form: names, the test file's remark and dots, `?` for missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from synthsieve.data.modalities.table.schema import ColumnType
from synthsieve.data.registry import load
from synthsieve.data.sources.adult import COLUMNS
from synthsieve.errors import DataError
from tests.errors import raises

JOBS = ("Private", "State-gov", "?")


def row(i: int) -> str:
    rich = ">50K" if i % 4 == 0 else "<=50K"
    cells = [20 + i % 50, JOBS[i % 3], 1000 + 7 * i, "Bachelors", 13, "Divorced", "Sales", "Wife", "White", "Male"]
    return ", ".join(map(str, [*cells, 0 if i % 3 else 2174, 0, 40, "Cuba" if i % 2 else "Peru", rich]))


def write_adult(folder: Path, n: int = 60) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adult.data").write_text("\n".join(row(i) for i in range(n)) + "\n\n", encoding="utf-8")
    tests = [row(i).replace("Cuba", "Atlantis") + "." for i in range(n // 2)]
    (folder / "adult.test").write_text("|1x3 Cross validator\n" + "\n".join(tests) + "\n\n", encoding="utf-8")
    return folder


def test_both_files_are_read(tmp_path: Path) -> None:
    write_adult(tmp_path / "adult")
    dataset = load("adult", data_dir=tmp_path)
    assert dataset.classes == ("<=50K", ">50K")
    assert dataset.feature_names == COLUMNS
    assert (dataset.train.x.shape, np.bincount(dataset.train.y).tolist()) == ((60, 14), [45, 15])
    assert dataset.test is not None
    assert (dataset.test.x.shape, np.bincount(dataset.test.y).tolist()) == ((30, 14), [22, 8])
    job, country = dataset.metadata.columns[1], dataset.metadata.columns[13]
    assert (job.type, job.categories) == (ColumnType.CATEGORY, ("Private", "State-gov"))
    assert np.isnan(dataset.train.x[2::3, 1]).all()
    assert country.categories == ("Cuba", "Peru")
    assert np.isnan(dataset.test.x[1::2, 13]).all()  # a country that training never saw


def test_a_file_of_another_form_is_refused(tmp_path: Path) -> None:
    write_adult(tmp_path / "adult")
    (tmp_path / "adult" / "adult.test").write_text("a,b\n1,2\n", encoding="utf-8")
    with raises(DataError, "damaged-file"):
        load("adult", data_dir=tmp_path)
