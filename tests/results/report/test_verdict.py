"""The answer follows the choice on validation and the result on test."""

import numpy as np
import pytest

from synthsieve.evaluation.metrics import measure
from synthsieve.experiments.arms import Group
from synthsieve.results.report.sections import verdict_heading
from synthsieve.results.report.verdict import answer_of, answer_of_fit
from synthsieve.results.report.wording import figure, signed
from synthsieve.results.table import ResultsTable
from tests.results.made_up_table import CRAIG, made_up_table, table_json


@pytest.mark.parametrize(
    ("made", "word", "sentence"),
    [
        (made_up_table(), "Cannot tell from 400 labels", "the model without synthetic data is kept"),
        (made_up_table(craig="nothing", entropy="nothing"), "No", "the model without synthetic data is kept"),
        (made_up_table(craig="hurts", entropy="hurts"), "No", "is kept"),
        (made_up_table(CRAIG, craig="helps"), "Yes", "adds +2.00 points on test (95 % interval +1.00 to +3.00)"),
        (made_up_table(CRAIG, craig="hurts"), "No", "on test it is at −2.00 points (−3.00 to −1.00)"),
        (made_up_table(CRAIG), "Cannot tell from 400 labels", "+0.00 points (−2.00 to +2.00)"),
        (made_up_table(choice=False), "Cannot tell", "no labels to choose on"),
        (
            made_up_table(cross=True, test_examples=60),
            "Cannot tell from 60 labels",
            "differences of about 8 points or more",
        ),
        (made_up_table(CRAIG, cross=True, craig="helps"), "Yes", "measured on labels that did not choose"),
    ],
)
def test_answer(made, word, sentence):
    answer = answer_of(made)
    assert answer.word == word
    assert sentence in answer.sentence


def test_gain_over_the_best_supervised_method():
    assert answer_of(made_up_table()).gain == (
        "Accuracy 60.0\xa0% with the 50 labels alone (the same network), 80.0\xa0% with unlabelled data: "
        "+20.00 points (95 % interval +1.00 to +3.00)."
    )
    with_logistic = made_up_table(others={"supervised only": 0.6, "logistic regression": 0.7})
    assert "70.0\xa0% with the 50 labels alone (logistic regression)" in answer_of(with_logistic).gain
    assert "interval" not in answer_of(made_up_table(CRAIG)).gain
    assert answer_of(made_up_table(others={})).gain == "Accuracy of the model: 80.0\xa0%."
    assert answer_of(made_up_table()).lines()[0] == answer_of(made_up_table()).gain
    assert "80.0\xa0% with our model" in answer_of(ResultsTable.model_validate(table_json() | {"unlabeled": 0})).gain


def test_warning_of_a_class_that_is_never_found():
    made = table_json()
    made["metrics"]["real only"] |= {"recall": [1.0, 0.0], "confusion": [[93, 0], [7, 0]]}
    (warning,) = answer_of(ResultsTable.model_validate(made)).warnings
    assert "never finds class 'spam' (0 of 7)" in warning
    made["metrics"]["real only"] |= {"accuracy": 0.93, "majority_accuracy": 0.93}
    answer = answer_of(ResultsTable.model_validate(made))
    assert "most frequent class, 93.0" in answer.warnings[1]
    assert any("never finds" in line for line in answer.lines())
    assert answer_of(made_up_table()).warnings == ()


def test_warning_of_a_better_simple_model():
    better = made_up_table(others={"label spreading": 0.86})
    (warning,) = answer_of(better).warnings
    assert "label spreading has 86.0" in warning
    assert '--method "label spreading"' in warning
    within = made_up_table(others={"label spreading": 0.8 + 0.004})  # a standard error is 0.02 / 3.92 = 0.005
    assert answer_of(within).warnings == ()


def test_label_use():
    assert "143 further labels chose" in " ".join(answer_of(made_up_table()).reasons)
    assert "held out in 5 parts in turn" in " ".join(answer_of(made_up_table(cross=True)).reasons)


def test_rows_of_the_table():
    table = made_up_table(CRAIG, craig="helps")
    assert table.names_in(Group.REAL) == ["pretrained", "real only"]
    assert table.verdict_word("label spreading") == "worse"
    assert table.verdict_word("real only") == "baseline"
    assert table.verdict_word(CRAIG) == "helps"
    assert table.validation_mean("real only") == pytest.approx(0.8)
    assert table.validation_mean(CRAIG) is None
    assert table.best_and_majority() == [CRAIG, "label spreading", "majority class"]


def test_heading_counts_variants_with_additions():
    none = verdict_heading(made_up_table())
    assert none == "On test, no variant with additions is clearly different from real data alone"
    both = verdict_heading(made_up_table(craig="helps", entropy="hurts"))
    assert both == "On test, 1 of 2 variants with additions helps, and 1 hurts"
    assert (
        verdict_heading(made_up_table(craig="helps", entropy="helps")) == "On test, 2 of 2 variants with additions help"
    )
    hurt = verdict_heading(made_up_table(craig="hurts"))
    assert hurt == "On test, no variant with additions helps, and 1 of 2 hurts"


def test_pseudo_labels_are_not_synthetic_samples():
    made = table_json(CRAIG, craig="helps")
    made["arms"][CRAIG]["arm"] = "pseudo-labels"
    answer = answer_of(ResultsTable.model_validate(made))
    assert answer.word == "No"
    assert "pseudo-labels of real examples are kept instead: +2.00 points on test" in answer.sentence


def test_help_that_may_only_undo_harm_is_not_called_help():
    made = table_json(CRAIG, craig="helps")
    made["against_best"] = made["paired_comparison"] | {"baseline": "pretrained"}
    compared = made["paired_comparison"]["comparisons"]
    made["against_best"]["comparisons"] = {CRAIG: compared[CRAIG]}
    assert answer_of(ResultsTable.model_validate(made)).word == "Yes"
    made["against_best"]["comparisons"] = {CRAIG: compared["entropy, L=60"]}  # zero lies in its interval
    answer = answer_of(ResultsTable.model_validate(made))
    assert answer.word.startswith("Cannot tell")
    assert "against pretrained, the best without samples" in answer.sentence


def test_next_steps():
    steps = " ".join(answer_of(made_up_table(CRAIG, craig="helps", seeds=range(5))).next_steps)
    assert "the model of entropy + CRAIG" in steps
    assert "synthsieve export" in steps
    assert "--seeds" not in steps
    made = table_json()
    made["paired_comparison"]["scores"]["real only"] = [0.97]
    made["arms"][CRAIG]["selections"] = [[{"purity": 0.4}]]
    steps = " ".join(answer_of(ResultsTable.model_validate(made)).next_steps)
    assert "repeat with --seeds 5" in steps
    assert "little left to gain" in steps
    assert "another class than the requested one" in steps


def test_single_fit():
    predicted = np.repeat([1, 0, 1], [10, 40, 50])
    answer = answer_of_fit(measure(np.repeat([0, 1], 50), np.eye(2)[predicted]), drew=False)
    assert answer.word == "Not compared"
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
def test_three_significant_digits(value, text):
    assert figure(value) == text


def test_hyphens_before_numbers_become_minus_signs():
    assert signed("-1.7 to -0.2 (-3), +1 with 1-NN, x-2") == "−1.7 to −0.2 (−3), +1 with 1-NN, x-2"
