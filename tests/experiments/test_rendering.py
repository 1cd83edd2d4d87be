"""The table as Markdown: the paper's shape, ours and theirs, every arm, and what the choices looked like."""

import numpy as np
import pytest

from synthsieve.config import load_settings
from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.evaluation.proof import prove
from synthsieve.evaluation.temperature import TemperatureRow
from synthsieve.experiments.arms import BASELINE, Arm, Cell, cells
from synthsieve.experiments.rendering import (
    NOTHING_TO_CHOOSE_ON,
    as_markdown,
    baselines,
    full,
    paper_shape,
    quality,
    selections,
    write_figures,
)
from synthsieve.learning import checkpoint
from synthsieve.learning.run_folder import Origin, RunFolder
from synthsieve.randomness import numpy_stream
from tests.experiments.conftest import TINY

BETTER, WORSE = Cell(Arm.CRAIG, 10_000), Cell(Arm.ALL, 2_000)


def first(count, of=400):
    return np.arange(of) < count


def made_up_proof():
    """Real data alone 80 %, CRAIG 90 %, everything 60 %, each at both seeds."""
    right = {BASELINE.name: 320, WORSE.name: 240, BETTER.name: 360}
    arms = {name: [first(count), first(count)] for name, count in right.items()}
    return prove(arms, baseline=BASELINE.name, shared_items=True, generator=numpy_stream(0, "proof"))


def rows_of(lines):
    """Cells of each line of a Markdown table, by its first one."""
    parts = [[part.strip() for part in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert len({len(row) for row in parts}) == 1
    return {row[0]: row[1:] for row in parts}


def test_ours_has_an_arm_a_row_and_an_l_a_column():
    rows = rows_of(paper_shape(made_up_proof(), (BASELINE, WORSE, BETTER), beside_paper=False))
    assert rows == {
        "test accuracy": ["L = 0", "L = 2,000", "L = 10,000"],
        "---": ["---"] * 3,
        "real only": ["80.0", "", ""],
        "all synthetic": ["", "60.0 (-20.0, hurts)", ""],
        "entropy + CRAIG": ["", "", "90.0 (+10.0, helps)"],
    }


def test_theirs_has_the_papers_numbers_and_differences():
    table = cells((10_000, 40_000, 100_000, 200_000))
    right = {cell.name: [first(320), first(319)] for cell in table}
    proof = prove(right, baseline=BASELINE.name, shared_items=True, generator=numpy_stream(0, "proof"))
    lines = paper_shape(proof, tuple(table), beside_paper=True)
    note = next(i for i, line in enumerate(lines) if "The paper's" in line)
    ours, theirs = rows_of(lines[:note]), rows_of(lines[note:])
    assert theirs == {
        "test accuracy": ["L = 0", "L = 10,000", "L = 40,000", "L = 100,000", "L = 200,000"],
        "---": ["---"] * 5,
        "real only": ["92.0", "", "", "", ""],
        "all synthetic": ["", "88.1 (-3.9)", "", "", ""],
        "entropy": ["", "93.5 (+1.5)", "93.8 (+1.8)", "", ""],
        "entropy + CRAIG": ["", "93.0 (+1.0)", "93.5 (+1.5)", "93.9 (+1.9)", "93.9 (+1.9)"],
        "entropy + CRAIG + PL": ["", "", "94.5 (+2.5)", "", ""],
    }
    assert ours["test accuracy"] == theirs["test accuracy"]
    for arm, row in theirs.items():  # wherever they have a number, so do we
        assert all(mine for mine, other in zip(ours[arm], row, strict=True) if other)


def test_full_has_every_seed_the_interval_and_the_verdict():
    proof = made_up_proof()
    lines = full(proof)
    rows = rows_of(lines)
    assert rows["real only"] == ["80.00, 80.00", "80.00", "", "", ""]
    each, mean, difference, interval, verdict = rows[BETTER.name]
    assert (each, mean, difference, verdict) == ("90.00, 90.00", "90.00", "+10.00", "helps")
    low, high = (float(end) for end in interval.split(" to "))
    assert 5 < low < 10 < high < 15
    assert rows[WORSE.name][-1] == "hurts"
    assert lines[-1] == proof.note


def test_another_way_to_learn_is_better_or_worse_where_an_arm_helps_or_hurts():
    twin = Cell(Arm.SUPERVISED, 0)
    right = {twin.name: 240, "boosting": 360, BASELINE.name: 320, WORSE.name: 240}
    arms = {name: [first(count)] for name, count in right.items()}
    proof = prove(arms, baseline=BASELINE.name, shared_items=True, generator=numpy_stream(0, "proof"))
    rows = rows_of(full(proof, [twin.name, "boosting"]))
    assert [rows[name][-1] for name in right] == ["worse", "better", "", "hurts"]
    shape = rows_of(paper_shape(proof, (twin, BASELINE, WORSE), beside_paper=False))
    assert shape[twin.name] == ["60.0 (-20.0, worse)", ""]
    assert "boosting" not in shape


def test_baselines_say_what_they_see_and_what_was_chosen():
    report = made_up_report(None)
    assert baselines(report) == []
    report["groups"] = {"supervised only": "baseline", "spreading": "baseline", "real only": "real"}
    chosen = [{"chosen": f"k={k}", "unlabeled": 10_000, "failed": None} for k in (5, 3, 5)]
    failed = [{"chosen": None, "unlabeled": 0, "failed": "C=1: too large"}]
    report["baselines"] = {"spreading": chosen, "logistic": failed}
    text = "\n".join(baselines(report))
    assert "on the 1,000 labels alone" in text
    assert "grids are decided on the validation rows that decide ours" in text
    assert "- spreading: sees the labels and 10,000 unlabelled rows; chosen: k=5; k=3." in text
    assert "- logistic: sees the labels alone; could not be fitted (C=1: too large)." in text
    report["validation_examples"] = 0
    assert "The first of each grid stands, for there are no validation rows." in "\n".join(baselines(report))


def made_up_report(choice):
    last = {"drawn": 2000, "survivors": 500, "selected": 50, "purity": 0.25, "largest_weight": 31.5}
    arms = {
        BASELINE.name: {"selections": [[], []]},
        BETTER.name: {"selections": [[{"drawn": 9}, last], [last | {"purity": 0.75, "gradient_error": 0.01234}]]},
        "pseudo-labels": {"selections": [[{"pseudo_labels": 7, "pseudo_label_purity": None}], []]},
    }
    return {
        "source_name": "made up",
        "labeled": 1000,
        "unlabeled": 64932,
        "validation_examples": 143,
        "judge_accuracy": 0.913,
        "seeds": [0, 1],
        "settings": {"augmentation": {"steps": 5000}},
        "choice": choice,
        "arms": arms,
        "groups": {},
        "baselines": {},
        "quality": {
            "of": BETTER.name,
            "manifold": {"precision": 0.71, "recall": 0.55, "density": 0.41, "coverage": 0.51},
            "frechet_distance": 2.914,
            "two_sample": {"accuracy": 0.8228},
            "train_on_synthetic": {"accuracy": 0.7278, "real_accuracy": 0.7382},
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
        },
    }


def test_the_pool_s_quality_stands_beside_real_examples_and_lacks_are_told():
    lines = quality(made_up_report(None)["quality"])
    rows = rows_of(lines)
    assert rows["precision"] == ["0.71", ""]
    assert rows["Fréchet distance"] == ["2.91", "1.61"]
    assert "A classifier tells them from real ones 82.3 % of the time." in lines
    assert "72.8 % of the test set" in "".join(lines)
    assert "No sign of copies: 0.0 % of the samples lie very near" in "".join(lines)
    assert lines[-1] == "same_law.manifold: too few"


def test_selections_are_means_of_the_last_choices_and_blank_where_nothing_was_measured():
    rows = rows_of(selections(made_up_report(None)))
    assert set(rows) == {"arm", "---", BETTER.name, "pseudo-labels"}
    of = dict(zip(rows["arm"], rows[BETTER.name], strict=True))
    assert of["drawn"] == "2,000"
    assert of["purity"] == "50.0 %"
    assert of["largest weight"] == "31.5"
    assert of["gradient error"] == "0.0123"
    assert of["pseudo labels"] == ""
    of = dict(zip(rows["arm"], rows["pseudo-labels"], strict=True))
    assert (of["pseudo labels"], of["pseudo label purity"]) == ("7", "")


def test_adacores_errors_are_not_to_be_compared_with_craigs():
    report = made_up_report(None)
    assert "preconditioned" not in "".join(selections(report))
    report["arms"][Cell(Arm.ADACORE, 10_000).name] = {"selections": [[{"gradient_error": 3.0}]]}
    assert "in a unit of their own" in selections(report)[-1]


def test_the_report_says_what_is_compared_and_what_is_kept():
    proof, table = made_up_proof(), (BASELINE, WORSE, BETTER)
    text = as_markdown(made_up_report({"words": "it is chosen"}), proof, table, beside_paper=False)
    assert text.startswith("# made up: does synthetic data help?\n")
    assert "1,000 labels, 64,932 unlabelled; 2 seeds, 143 labelled validation examples, 400 test examples." in text
    assert "5,000 more steps; of each, and of the first phase, the weights best on validation are judged" in text
    assert text.endswith("it is chosen.\n")
    text = as_markdown({**made_up_report(None), "validation_examples": 0}, proof, table, beside_paper=False)
    assert "of each, and of the first phase, the last weights are judged" in text
    assert text.endswith(f"{NOTHING_TO_CHOOSE_ON}.\n")


@pytest.mark.parametrize(("channels", "pictures"), [(1, 2), (3, 2), (4, 0)])
def test_samples_are_pictured_where_they_are_grey_or_coloured(tmp_path, channels, pictures):
    x = np.random.default_rng(0).integers(0, 255, (60, channels, 8, 8)).astype(np.uint8)
    dataset = Dataset("made up", Kind.IMAGE, ("a", "b"), Examples(x, np.arange(60) % 2))
    settings = load_settings(None, [*TINY, "data.labels=10", "data.validation=extra", "data.balanced=true"])
    run = RunFolder.create(tmp_path, Origin("made up"), settings, dataset)
    checkpoint.save_weights(run.best, run.new_learner(), {})
    curve = [TemperatureRow(1.0, 2, 0.1, 0.1, 0.5, 0.2, 0.2, 0.5, None)]
    written = write_figures(tmp_path / "figures", run, curve, temperature=1.0)
    assert len(written) == pictures + 1
    assert all(path.is_file() for path in written)


def test_a_baseline_that_one_seed_cannot_be_fitted_to_is_said_to_be_left_out():
    fitted = {"chosen": "C=1", "grid": {}, "unlabeled": 0, "failed": None}
    told = {"groups": {"odd": "baseline"}, "labeled": 4, "validation_examples": 0}
    lines = baselines({**told, "baselines": {"odd": [fitted, {**fitted, "chosen": None, "failed": "C=1: one class"}]}})
    assert "- odd: sees the labels alone; could not be fitted (C=1: one class)." in lines
