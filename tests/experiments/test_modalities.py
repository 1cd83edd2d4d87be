"""The benchmark across kinds of data: it runs, resumes, and reports who is first."""

import importlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.experiments.conftest import SMALL_SETTINGS

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
CHOSEN = "synthsieve, chosen on validation"


@pytest.fixture
def modalities(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("modalities")


@pytest.fixture
def report(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("modalities_report")


def write_clusters(path):
    """150 rows of three far clusters in five dimensions."""
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3
    x = rng.normal(size=(150, 5)).astype(np.float32)
    x[np.arange(150), y] += 4
    np.savez(path, x=x, y=y)


def test_benchmark_runs_resumes_and_renders(tmp_path, in_process_pool, modalities, monkeypatch):
    monkeypatch.setattr(modalities.rivals, "RIVALS", modalities.rivals.RIVALS[::3])
    write_clusters(tmp_path / "clusters.npz")
    out, results = tmp_path / "out", tmp_path / "results" / "modalities"
    words = ["--data", str(tmp_path / "clusters.npz"), "--out", str(out), "--results", str(results), "--workers", "1"]
    words += [
        word
        for setting in [*SMALL_SETTINGS, "data.labels=12", "data.validation=extra", "data.balanced=true"]
        for word in ("--set", setting)
    ]
    modalities.main([*words, "--seeds", "1"])
    assert len(in_process_pool) == 5  # pretraining, three variants, supervised baseline
    assert not any("oracle" in name for name in in_process_pool)
    modalities.main([*words, "--seeds", "2"])
    assert len(in_process_pool) == 10  # the first seed was done

    found = json.loads(results.with_suffix(".json").read_text(encoding="utf-8"))["clusters"]
    assert found["seeds"] == [0, 1]
    assert found["sizes"] == {"labeled": 12, "unlabeled": 96, "validation": 12, "test": 30}
    assert set(found["chosen"].values()) <= set(found["ours"])
    assert set(found["against_supervised_baseline"]["comparisons"]) == {*found["ours"], *found["rivals"]}
    assert set(found["against_best_rival"]["comparisons"]) == set(found["ours"])
    assert found["against_best_rival"]["baseline"] in found["rivals"]
    assert found["supervised_baseline"]["training"]["objective"] == "supervised"
    assert found["supervised_baseline"]["training"]["evaluate_every"] < found["settings"]["training"]["evaluate_every"]
    assert min(found["against_supervised_baseline"]["mean"][name] for name in found["rivals"]) > 0.8
    assert len(set(found["split_hashes"].values())) == 2
    assert all(seconds > 0 for each in found["seconds"].values() for seconds in each)

    before = [results.with_suffix(suffix).read_bytes() for suffix in (".json", ".md")]
    modalities.main(["--out", str(out), "--results", str(results), "--render-only"])
    assert [results.with_suffix(suffix).read_bytes() for suffix in (".json", ".md")] == before
    assert str(tmp_path) not in before[1].decode() + before[0].decode()


def test_tie_on_validation_goes_to_the_simpler_variant(report):
    right = np.array([True, True, False])
    validation = {"simple": [right, right], "rich": [right[::-1], np.ones(3, dtype=bool)]}
    assert report.choices(validation, ["simple", "rich"]) == ["simple", "rich"]


def evidence(report, *, ours, rival, supervised_baseline=0.5):
    """Two seeds of 200 shared test rows, with these accuracies."""

    def right(accuracy):
        return [np.arange(200) < round(200 * accuracy)] * 2

    known = {
        "joint": right(ours),
        report.SUPERVISED_BASELINE: right(supervised_baseline),
        "knn": right(rival),
        "stump": right(0.4),
    }
    return report.Evidence(
        name="made-up",
        seeds=(0, 1),
        ours=("joint",),
        rivals=("knn", "stump"),
        validation=known,
        test=known,
        shared_items=True,
        seconds={name: [1.0, 2.0] for name in known},
        grids={},
        counts={"labeled": {"a": 5, "b": 5}, "unlabeled": {}, "validation": {"a": 1}, "test": {"a": 150, "b": 50}},
        metadata={"machine": {"cores": 2, "workers": 2}},
    )


def test_sentence_when_another_method_is_first(report):
    section = report.conclude(evidence(report, ours=0.7, rival=0.8))
    assert section["best_rival"] == "knn"
    assert section["commonest_class"] == 0.75
    words = report.standing(section)
    assert "Best on test: knn with 80.0 % (none of our variants)." in words
    assert "has 70.0 %. That is -10.0 points compared with knn" in words
    assert words.endswith("worse.")


def test_sentence_when_synthsieve_is_first(report):
    section = report.conclude(evidence(report, ours=0.9, rival=0.8))
    words = report.standing(section)
    assert f"Best on test: joint and {CHOSEN} with 90.0 % (the chosen variant is among them)." in words
    assert "has 90.0 %. That is +10.0 points compared with knn" in words
    assert words.endswith("better.")


def test_table_columns_beside_held_out_ones(report, tmp_path):
    column = {"name": "age", "measure": "Kolmogorov-Smirnov", "missing_real": 0.0, "missing_synthetic": 0.25}
    means = {"marginal_distance": 0.2, "association_distance": 0.3}
    floor = {"columns": [{**column, "distance": 0.01}], "marginal_distance": 0.01, "association_distance": 0.02}
    columns = {"rows": 5000, "temperature": 1.0, "seed": 0, **means, "columns": [{**column, "distance": 0.2}]}
    known = replace(evidence(report, ours=0.9, rival=0.8), columns={**columns, "floor": floor})
    text = report.write_report(tmp_path / "page", [known], [])
    assert "| age | Kolmogorov-Smirnov | 0.200 | 0.010 | 0.0 % | 25.0 % |" in text
    assert "difference from the real ones is 0.300, for held-out rows 0.020." in text


def test_page_has_a_row_for_every_variant(report, tmp_path):
    text = report.write_report(tmp_path / "page", [evidence(report, ours=0.9, rival=0.8)], ["knn: k in 1, 2."])
    for name in ("joint", CHOSEN, report.SUPERVISED_BASELINE, "knn", "stump"):
        assert f"\n| {name} | " in text
    assert "## made-up" in text
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == text
