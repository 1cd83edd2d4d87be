"""The answer in words follows what validation chose and what test then showed."""

import pytest

from synthsieve.evaluation.accuracy import Scores
from synthsieve.experiments.arms import Group
from synthsieve.report.compared import arm_rows
from synthsieve.report.verdict import answer_of, answer_of_fit, groups_of, on_test_in_one_line
from synthsieve.report.wording import figure

CRAIG = "entropy + CRAIG, L=60"
ADDED = {"entropy, L=60": "entropy", CRAIG: "entropy + CRAIG"}


def table(chosen="real only", groups=True, choice=True, seeds=(0,), **verdicts):
    """What table.json holds, as far as the answer needs it; `verdicts` of the two arms with additions."""
    intervals = {"helps": (0.01, 0.03), "hurts": (-0.03, -0.01), "cannot tell": (-0.01, 0.01)}
    given = dict(
        zip(ADDED, (verdicts.get("entropy", "cannot tell"), verdicts.get("craig", "cannot tell")), strict=True)
    )
    comparisons = {
        name: {"difference": sum(intervals[verdict]) / 2, "interval_95": list(intervals[verdict]), "verdict": verdict}
        for name, verdict in {"first phase alone": "cannot tell", **given}.items()
    }
    mean = {"first phase alone": 0.8, "real only": 0.8, **dict.fromkeys(ADDED, 0.81)}
    arms = {"first phase alone": ("first phase alone", 0), "real only": ("real only", 0)}
    arms |= {name: (arm, 60) for name, arm in ADDED.items()}
    stored = {"first phase alone": "real", "real only": "real", **dict.fromkeys(ADDED, "synthetic")}
    if groups:
        others = {"supervised only": 0.6, "label spreading": 0.7}
        mean |= others
        stored = {**dict.fromkeys(others, "baseline"), **stored}
        comparisons |= {name: {**comparisons[CRAIG], "verdict": "hurts"} for name in others}
    made = {
        "seeds": list(seeds),
        "labeled": 50,
        "proof": {"baseline": "real only", "mean": mean, "comparisons": comparisons},
        "choice": {"arm": chosen, "words": f"{chosen} is kept: so it is"} if choice else None,
        "validation": {"real only": [0.7, 0.9]},
        "arms": {name: {"arm": arm, "pool_size": size, "selections": [[]]} for name, (arm, size) in arms.items()},
    }
    return {**made, "groups": stored} if groups else made


@pytest.mark.parametrize(
    ("made", "word", "sentence"),
    [
        (table(), "No", "real data alone are kept"),
        (table(craig="helps"), "No", "real data alone are kept"),
        (table(CRAIG, craig="helps"), "Yes", "adds +2.00 points on test (95 % interval +1.00 to +3.00)"),
        (table(CRAIG, craig="hurts"), "No", "on test it is at −2.00 points (−3.00 to −1.00)"),
        (table(CRAIG), "Cannot tell", "zero lies in the interval"),
        (table(choice=False), "Cannot tell", "no validation rows"),
    ],
)
def test_the_answer_is_chosen_on_validation_and_shown_on_test(made, word, sentence):
    answer = answer_of(made)
    assert answer.word == word
    assert sentence in answer.sentence


def test_the_kept_model_stands_beside_labels_alone_and_the_best_classical_method():
    (told,) = [reason for reason in answer_of(table()).reasons if reason.startswith("The model kept")]
    assert told == (
        "The model kept (real only) is right on 80.0\xa0% of the test set; the same network on the 50 labels alone "
        "60.0\xa0% and the classical method that is best on test, label spreading, 70.0\xa0%."
    )
    (told,) = [reason for reason in answer_of(table(groups=False)).reasons if reason.startswith("The model kept")]
    assert told == "The model kept (real only) is right on 80.0\xa0% of the test set."


def test_tables_without_groups_have_arms_alone():
    groups = groups_of(table(groups=False))
    assert list(groups.values()) == [Group.REAL, Group.REAL, Group.SYNTHETIC, Group.SYNTHETIC]
    rows = arm_rows(table(groups=False), "real only")
    assert list(rows) == ["Real data alone", "Real data with additions"]


def test_rows_say_what_the_proof_says():
    rows = arm_rows(table(CRAIG, craig="helps"), CRAIG)
    assert list(rows) == ["Other ways to learn", "Real data alone", "Real data with additions"]
    (worse, _), (_, baseline), (_, kept) = rows.values()
    assert worse.verdict == "worse"
    assert baseline.verdict == "baseline"
    assert baseline.difference is None
    assert baseline.validation == pytest.approx(0.8)
    assert (kept.kept, kept.verdict, kept.validation) == (True, "helps", None)


def test_the_heading_counts_the_arms_with_additions_alone():
    assert on_test_in_one_line(table()) == "On test, no arm with additions can be told from real data alone"
    both = on_test_in_one_line(table(craig="helps", entropy="hurts"))
    assert both == "On test, 1 of 2 arms with additions helps, and 1 hurts"
    assert on_test_in_one_line(table(craig="helps", entropy="helps")) == "On test, 2 of 2 arms with additions help"
    hurt = on_test_in_one_line(table(craig="hurts"))
    assert hurt == "On test, no arm with additions helps, and 1 of 2 hurts"


def test_a_handful_of_answers_is_no_yes():
    made = table(CRAIG, craig="helps")
    made["proof"]["comparisons"][CRAIG]["differing_answers"] = 4
    answer = answer_of(made)
    assert answer.word == "Cannot tell"
    assert "only 4 answers differ" in answer.sentence


def test_pseudo_labels_are_no_synthetic_samples():
    made = table(CRAIG, craig="helps")
    made["arms"][CRAIG]["arm"] = "pseudo-labels"
    answer = answer_of(made)
    assert answer.word == "No"
    assert "Pseudo-labels of real examples are: +2.00 points on test" in answer.sentence


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
