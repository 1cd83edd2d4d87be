"""table.md: the comparison in the paper's shape and in full, baselines, selections and quality."""

import numpy as np

from synthsieve.evaluation.comparison import compare_paired
from synthsieve.evaluation.fidelity import Manifold, SyntheticTraining, TwoSample
from synthsieve.experiments.arms import BASELINE, PRETRAINED, Arm, TableEntry, table_entries
from synthsieve.io.random_streams import numpy_stream
from synthsieve.results.markdown import (
    NOTHING_TO_CHOOSE_ON,
    all_variants,
    as_markdown,
    baselines,
    best_without_samples,
    paper_figures,
    paper_shape,
    quality,
    selections,
)
from synthsieve.results.table import ResultsTable
from tests.results.made_up_table import table_json

BETTER, WORSE = TableEntry(Arm.CRAIG, 10_000), TableEntry(Arm.ALL, 2_000)
SUPERVISED = TableEntry(Arm.SUPERVISED, 0)
CANDIDATE = {"accuracy": 0.9, "difference": 0.1, "standard_error": 0.02}
RIGHT = {BASELINE: 320, WORSE: 240, BETTER: 360}  # of 400, at both seeds
QUALITY = {
    "of": BETTER.name,
    "synthetic": 300,
    "manifold": Manifold(0.71, 0.55, 0.41, 0.51, 5, 300, 300),
    "frechet_distance": 2.914,
    "two_sample": TwoSample(0.8228, 0.8, 0.84, 0.0, 300),
    "train_on_synthetic": SyntheticTraining(0.7278, 0.7, 0.75, 300, 0.7382, 0.01, 0.0, 0.02),
    "memorisation": {
        "verdict": "no sign of copies",
        "near_share": 0.0,
        "expected_share": 0.01,
        "duplicates": 0,
        "held_out_duplicates": 0,
        "num_synthetic": 300,
        "num_held_out": 300,
    },
    "same_law": {"manifold": None, "frechet_distance": 1.61},
    "notes": ["same_law.manifold: too few"],
}


def made_up_table(right=RIGHT, **changes):
    """Variants with `right` of 400 examples at both seeds; real data alone are the baseline."""
    arms = {getattr(one, "name", one): [np.arange(400) < count] * 2 for one, count in right.items()}
    compared = compare_paired(arms, baseline=BASELINE.name, shared_items=True, rng=numpy_stream(0, "paired_comparison"))
    entries = [one for one in right if isinstance(one, TableEntry)]
    groups = {one.name: one.arm.group for one in entries} | {one: "baseline" for one in right if isinstance(one, str)}
    return ResultsTable.model_validate(
        table_json(choice=False, seeds=(0, 1))
        | {"paired_comparison": compared, "groups": groups, "baselines": {}, "quality": QUALITY}
        | {"arms": {one.name: {"arm": one.arm, "pool_size": one.pool_size} for one in entries}}
        | changes
    )


def rows_of(lines):
    """Cells of each line of a Markdown table, by its first one."""
    parts = [[part.strip() for part in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert len({len(row) for row in parts}) == 1
    return {row[0]: row[1:] for row in parts}


def entries_of(table):
    return [record.entry for record in table.arms.values()]


def test_paper_shape():
    table = made_up_table()
    assert rows_of(paper_shape(table, entries_of(table))) == {
        "test accuracy": ["L = 0", "L = 2,000", "L = 10,000"],
        "---": ["---"] * 3,
        "real only": ["80.0", "", ""],
        "all synthetic": ["", "60.0 (-20.0, hurts)", ""],
        "entropy + CRAIG": ["", "", "90.0 (+10.0, helps)"],
    }


def test_figures_of_the_paper():
    table = made_up_table(dict.fromkeys(table_entries((10_000, 40_000, 100_000, 200_000)), 320))
    ours, paper = rows_of(paper_shape(table, entries_of(table))), rows_of(paper_figures())
    assert paper == {
        "test accuracy": ["L = 0", "L = 10,000", "L = 40,000", "L = 100,000", "L = 200,000"],
        "---": ["---"] * 5,
        "real only": ["92.0", "", "", "", ""],
        "all synthetic": ["", "88.1 (-3.9)", "", "", ""],
        "entropy": ["", "93.5 (+1.5)", "93.8 (+1.8)", "", ""],
        "entropy + CRAIG": ["", "93.0 (+1.0)", "93.5 (+1.5)", "93.9 (+1.9)", "93.9 (+1.9)"],
        "entropy + CRAIG + PL": ["", "", "94.5 (+2.5)", "", ""],
    }
    assert ours["test accuracy"] == paper["test accuracy"]
    for arm, row in paper.items():  # wherever the paper has a number, so do we
        assert all(cell for cell, other in zip(ours[arm], row, strict=True) if other)


def test_all_variants():
    table = made_up_table()
    lines = all_variants(table)
    rows = rows_of(lines)
    assert rows["real only"] == ["80.00, 80.00", "80.00", "", "", ""]
    each, mean, difference, interval, verdict = rows[BETTER.name]
    assert (each, mean, difference, verdict) == ("90.00, 90.00", "90.00", "+10.00", "helps")
    low, high = (float(end) for end in interval.split(" to "))
    assert 5 < low < 10 < high < 15
    assert rows[WORSE.name][-1] == "hurts"
    assert lines[-1] == table.paired_comparison.note


def test_best_variant_without_samples_has_a_table_of_its_own():
    arms = {PRETRAINED.name: [np.arange(400) < 360] * 2, BETTER.name: [np.arange(400) < 361] * 2}
    compared = compare_paired(arms, baseline=PRETRAINED.name, shared_items=True, rng=numpy_stream(0, "best"))
    table = made_up_table(against_best=compared)
    rows = rows_of(best_without_samples(table))
    assert rows[PRETRAINED.name] == ["90.00, 90.00", "90.00", "", "", ""]
    assert rows[BETTER.name][2::2] == ["+0.25", "cannot tell"]
    assert "against the best one without" in as_markdown(table)
    assert "against the best one without" not in as_markdown(made_up_table())


def test_other_methods_are_better_or_worse():
    table = made_up_table({SUPERVISED: 240, "boosting": 360, BASELINE: 320, WORSE: 240})
    rows = rows_of(all_variants(table))
    assert [rows[name][-1] for name in (SUPERVISED.name, "boosting", BASELINE.name, WORSE.name)] == [
        *("worse", "better", "", "hurts")
    ]
    shape = rows_of(paper_shape(table, entries_of(table)))
    assert shape[SUPERVISED.name] == ["60.0 (-20.0, worse)", ""]
    assert "boosting" not in shape


def test_baselines():
    assert baselines(made_up_table()) == []
    chosen = [{"chosen": f"k={k}", "unlabeled": 10_000, "failed": None} for k in (5, 3, 5)]
    failed = [{"chosen": "C=1", "unlabeled": 0}, {"chosen": None, "unlabeled": 0, "failed": "C=1: too large"}]
    changes = {
        "groups": {"supervised only": "baseline", "spreading": "baseline", "real only": "real"},
        "baselines": {"spreading": chosen, "logistic": failed},
    }
    text = "\n".join(baselines(made_up_table(**changes)))
    assert "on the 50 labels alone" in text
    assert "chosen on the validation rows" in text
    assert "- spreading: uses the labels and 10,000 unlabelled rows; chosen: k=5; k=3." in text
    assert "- logistic: uses the labels alone; failed (C=1: too large)." in text
    assert "the first of each grid" in "\n".join(baselines(made_up_table(**changes, validation_examples=0)))


def test_quality_beside_real_examples():
    lines = quality(made_up_table().quality)
    rows = rows_of(lines)
    assert rows["precision"] == ["0.71", ""]
    assert rows["Fréchet distance"] == ["2.91", "1.61"]
    text = "".join(lines)
    assert "82.3 % of the time" in text
    assert "a test accuracy of 72.8 %, on the real labels alone 73.8 %" in text
    assert "No sign of copies: 0.0 % of the samples lie very near" in text
    assert lines[-1] == "same_law.manifold: too few"


def test_selections_are_means_over_seeds():
    last = {"drawn": 2000, "survivors": 500, "selected": 50, "purity": 0.25, "largest_weight": 31.5}
    arms = {
        BASELINE.name: {"arm": "real only", "pool_size": 0, "selections": [[], []]},
        BETTER.name: {
            "arm": BETTER.arm,
            "pool_size": 10_000,
            "selections": [[{"drawn": 9}, last], [last | {"purity": 0.75, "gradient_error": 0.01234}]],
        },
        "pseudo-labels": {
            "arm": "pseudo-labels",
            "pool_size": 0,
            "selections": [[{"pseudo_labels": 7, "pseudo_label_purity": None}], []],
        },
    }
    lines = selections(made_up_table(arms=arms))
    rows = rows_of(lines)
    assert set(rows) == {"variant", "---", BETTER.name, "pseudo-labels"}
    of = dict(zip(rows["variant"], rows[BETTER.name], strict=True))
    assert of["drawn"] == "2,000"
    assert of["purity"] == "50.0 %"
    assert of["largest weight"] == "31.5"
    assert of["gradient error"] == "0.0123"
    assert of["pseudo labels"] == ""
    of = dict(zip(rows["variant"], rows["pseudo-labels"], strict=True))
    assert (of["pseudo labels"], of["pseudo label purity"]) == ("7", "")
    assert "preconditioned" not in "".join(lines)
    adacore = {"arm": Arm.ADACORE, "pool_size": 10_000, "selections": [[{"gradient_error": 3.0}]]}
    assert "preconditioned" in selections(made_up_table(arms=arms | {"adacore": adacore}))[-1]


def test_whole_text():
    choice = table_json()["choice"] | {"arm": BETTER.name, "candidates": {BETTER.name: CANDIDATE}}
    table = made_up_table(choice=choice, metrics={BETTER.name: table_json()["metrics"]["real only"]})
    text = as_markdown(table)
    assert text.startswith("# made up: does synthetic data help?\n")
    assert "50 labels, 100 unlabelled; 2 seeds, 143 labelled validation examples, 400 test examples." in text
    assert "for 5,000 steps; of each, the weights with the best validation score are measured" in text
    assert text.endswith(f"{table.choice.describe()}.\n")
    assert "The paper's Table 1" not in text
    assert "The paper's Table 1" in as_markdown(table, beside_paper=True)
    text = as_markdown(made_up_table(validation_examples=0))
    assert "of each, the last weights are measured" in text
    assert text.endswith(f"{NOTHING_TO_CHOOSE_ON}.\n")
