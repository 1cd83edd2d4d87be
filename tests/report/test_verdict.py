"""The answer in words follows what validation chose and what test then showed."""

import pytest

from synthsieve.evaluation.accuracy import Scores
from synthsieve.report.compared import arm_rows
from synthsieve.report.verdict import answer_of, answer_of_fit, on_test_in_one_line
from synthsieve.report.wording import figure

CRAIG = "entropy + CRAIG, L=60"
ADDED = {"entropy, L=60": "entropy", CRAIG: "entropy + CRAIG"}


def metrics(accuracy, recall=(0.8, 0.8)):
    return {
        "accuracy": accuracy,
        "majority_accuracy": 0.5,
        "recall": list(recall),
        "confusion": [[40, 10], [10, 40]],
    }


def table(chosen="real only", choice=True, seeds=(0,), cross=False, others=None, test_examples=400, **verdicts):
    """What table.json holds, as far as the answer needs it; `verdicts` of the two variants with additions."""
    intervals = {
        "helps": (0.01, 0.03),
        "hurts": (-0.03, -0.01),
        "cannot tell": (-0.02, 0.02),
        "nothing": (-0.004, 0.004),
    }
    added = dict(
        zip(ADDED, (verdicts.get("entropy", "cannot tell"), verdicts.get("craig", "cannot tell")), strict=True)
    )
    others = {"supervised only": 0.6, "majority class": 0.5, "label spreading": 0.7} if others is None else others
    verdict_of = {"first phase alone": "cannot tell", **added, **dict.fromkeys(others, "hurts")}
    if cross:
        verdict_of["chosen on validation"] = verdicts.get("craig", "cannot tell")
    comparisons = {
        name: {
            "difference": sum(intervals[verdict]) / 2,
            "interval_95": list(intervals[verdict]),
            "verdict": "cannot tell" if verdict == "nothing" else verdict,
        }
        for name, verdict in verdict_of.items()
    }
    mean = {"first phase alone": 0.8, "real only": 0.8, **dict.fromkeys(ADDED, 0.81), **others}
    arms = {"first phase alone": ("first phase alone", 0), "real only": ("real only", 0)}
    arms |= {name: (arm, 60) for name, arm in ADDED.items()}
    groups = {**dict.fromkeys(others, "baseline"), "first phase alone": "real", "real only": "real"}
    groups |= dict.fromkeys(ADDED, "synthetic")
    candidates = {name: {"accuracy": 0.81, "difference": 0.01} for name in ADDED}
    return {
        "seeds": list(seeds),
        "labeled": 50,
        "unlabeled": 100,
        "classes": ["ham", "spam"],
        "labels_for_choosing": 143,
        "cross_fitting": {"folds": 5, "measures": True} if cross else None,
        "proof": {
            "baseline": "real only",
            "metric": "accuracy",
            "mean": mean,
            "comparisons": comparisons,
            "test_examples": [test_examples],
        },
        "choice": {"arm": chosen, "words": f"kept {chosen}: so it is", "candidates": candidates} if choice else None,
        "validation": {"real only": [0.7, 0.9]},
        "metrics": {name: metrics(value) for name, value in mean.items()},
        "baselines": {
            "majority class": [{"unlabeled": 0}],
            "label spreading": [{"unlabeled": 100}],
            "logistic regression": [{"unlabeled": 0}],
        },
        "arms": {name: {"arm": arm, "pool_size": size, "selections": [[]]} for name, (arm, size) in arms.items()},
        "groups": groups,
    }


@pytest.mark.parametrize(
    ("made", "word", "sentence"),
    [
        (table(), "Cannot tell from 400 labels", "the model without synthetic data is kept"),
        (table(craig="nothing", entropy="nothing"), "No", "the model without synthetic data is kept"),
        (table(craig="hurts", entropy="hurts"), "No", "is kept"),
        (table(CRAIG, craig="helps"), "Yes", "adds +2.00 points on test (95 % interval +1.00 to +3.00)"),
        (table(CRAIG, craig="hurts"), "No", "on test it is at −2.00 points (−3.00 to −1.00)"),
        (table(CRAIG), "Cannot tell from 400 labels", "+0.00 points (−2.00 to +2.00)"),
        (table(choice=False), "Cannot tell", "no labels to choose on"),
        (table(cross=True, test_examples=60), "Cannot tell from 60 labels", "differences of about 8 points or more"),
        (table(CRAIG, cross=True, craig="helps"), "Yes", "measured on labels that did not choose"),
    ],
)
def test_the_answer_is_chosen_on_validation_and_shown_on_test(made, word, sentence):
    answer = answer_of(made)
    assert answer.word == word
    assert sentence in answer.sentence


def test_the_gain_is_over_the_best_of_the_labels_alone():
    assert answer_of(table()).gain == (
        "Accuracy 60.0\xa0% with the 50 labels alone (the same network), 80.0\xa0% with unlabelled data: "
        "+20.00 points (95 % interval +1.00 to +3.00)."
    )
    with_logistic = table(others={"supervised only": 0.6, "logistic regression": 0.7})
    assert "70.0\xa0% with the 50 labels alone (logistic regression)" in answer_of(with_logistic).gain
    assert "interval" not in answer_of(table(CRAIG)).gain
    assert answer_of(table(others={})).gain == "Accuracy of the model: 80.0\xa0%."
    assert answer_of(table()).lines()[0] == answer_of(table()).gain
    assert "80.0\xa0% with our model" in answer_of({**table(), "unlabeled": 0}).gain


def test_a_class_that_is_never_found_is_told_first():
    made = table()
    made["metrics"]["real only"] |= {"recall": [1.0, 0.0], "confusion": [[93, 0], [7, 0]]}
    (warning,) = answer_of(made).warnings
    assert "never finds class 'spam' (0 of 7)" in warning
    made["metrics"]["real only"] |= {"accuracy": 0.93, "majority_accuracy": 0.93}
    assert "most frequent class, 93.0" in answer_of(made).warnings[1]
    assert any("never finds" in line for line in answer_of(made).lines())
    assert answer_of(table()).warnings == ()


def test_a_simpler_model_that_is_better_is_offered():
    better = table(others={"label spreading": 0.86})
    (warning,) = answer_of(better).warnings
    assert "label spreading has 86.0" in warning
    assert '--method "label spreading"' in warning
    within = table(others={"label spreading": 0.8 + 0.004})  # a standard error is 0.02 / 3.92 = 0.005
    assert answer_of(within).warnings == ()


def test_the_labels_that_chose_are_counted():
    assert "143 further labels chose" in " ".join(answer_of(table()).reasons)
    assert "held out in 5 parts in turn" in " ".join(answer_of(table(cross=True)).reasons)


def test_rows_say_what_the_proof_says():
    rows = arm_rows(table(CRAIG, craig="helps"), CRAIG)
    assert list(rows) == ["Other ways to learn", "Real data alone", "Real data with additions"]
    (worse, *_), (_, baseline), (_, kept) = rows.values()
    assert worse.verdict == "worse"
    assert baseline.verdict == "baseline"
    assert baseline.difference is None
    assert baseline.validation == pytest.approx(0.8)
    assert (kept.kept, kept.verdict, kept.validation) == (True, "helps", None)


def test_the_heading_counts_the_arms_with_additions_alone():
    none = on_test_in_one_line(table())
    assert none == "On test, no variant with additions is clearly different from real data alone"
    both = on_test_in_one_line(table(craig="helps", entropy="hurts"))
    assert both == "On test, 1 of 2 variants with additions helps, and 1 hurts"
    assert on_test_in_one_line(table(craig="helps", entropy="helps")) == "On test, 2 of 2 variants with additions help"
    hurt = on_test_in_one_line(table(craig="hurts"))
    assert hurt == "On test, no variant with additions helps, and 1 of 2 hurts"


def test_pseudo_labels_are_no_synthetic_samples():
    made = table(CRAIG, craig="helps")
    made["arms"][CRAIG]["arm"] = "pseudo-labels"
    answer = answer_of(made)
    assert answer.word == "No"
    assert "pseudo-labels of real examples are kept instead: +2.00 points on test" in answer.sentence


def test_what_to_do_next_follows_from_what_was_seen():
    steps = " ".join(answer_of(table(CRAIG, craig="helps", seeds=range(5))).next_steps)
    assert "the model of entropy + CRAIG" in steps
    assert "synthsieve export" in steps
    assert "--seeds" not in steps
    made = table()
    made["proof"]["mean"]["real only"] = 0.97
    made["arms"][CRAIG]["selections"] = [[{"purity": 0.4}]]
    steps = " ".join(answer_of(made).next_steps)
    assert "repeat with --seeds 5" in steps
    assert "little left to gain" in steps
    assert "another class than the one asked for" in steps


def test_a_single_fit_compares_nothing():
    answer = answer_of_fit(Scores(0.9, 0.3, (0.9,), 100), drew=False)
    assert answer.word == "Not asked"
    assert answer.reasons[0].startswith("Test accuracy 90.0 % (95 % interval")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.00213, "0.00213"),
        (1234.0, "1,230"),
        (2.1e-7, "2.1e−7"),
        (-0.5, "−0.5"),
        (float("inf"), "no limit"),
        (None, ""),
        (1.0, "1"),
    ],
)
def test_figures_have_three_digits(value, text):
    assert figure(value) == text
