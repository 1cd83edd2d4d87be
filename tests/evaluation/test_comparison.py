"""Paired comparison and choice: closed forms, refused input, and descriptions."""

import json
import math

import numpy as np
import pytest

from synthsieve.errors import DataError
from synthsieve.evaluation.answers import Answers
from synthsieve.evaluation.comparison import ComparisonResult, Verdict, choose, compare_paired, visible_difference
from synthsieve.settings import Metric
from tests.errors import raises


def answers(n, gained, lost, both=None):
    """Baseline and arm of n examples: the arm gains `gained` of them and loses `lost`."""
    both = n // 2 if both is None else both
    baseline, arm = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    baseline[: both + lost] = True
    arm[:both] = True
    arm[n - gained :] = True
    return baseline, arm


def compared(right, *, shared_items=False, baseline="plain", seed=0, **more):
    rng = np.random.default_rng(seed)
    return compare_paired(right, baseline=baseline, shared_items=shared_items, rng=rng, **more)


def random_arms(num_arms, num_seeds, n, seed=0):
    rng = np.random.default_rng(seed)
    names = ["plain", *(f"arm {i}" for i in range(1, num_arms))]
    return {name: [rng.random(n) < 0.7 for _ in range(num_seeds)] for name in names}


def test_figures_by_hand():
    plain = [np.array([True, True, False, False]), np.array([True, False, False, False, False])]
    other = [np.array([True, True, True, False]), np.array([True, True, True, False, False])]
    result = compared({"plain": plain, "other": other})
    assert result.arm("plain").scores == (0.5, 0.2)
    assert result.arm("other").mean == pytest.approx((0.75 + 0.6) / 2)
    comparison = result.comparison("other")
    assert comparison.differences == pytest.approx((0.25, 0.4))
    assert comparison.difference == pytest.approx(0.325)
    assert comparison.differing == 3
    assert result.num_items == (4, 5)


def test_one_seed_gives_the_normal_interval():
    n, gained, lost = 4000, 260, 180
    plain, other = answers(n, gained, lost)
    mean = (gained - lost) / n
    standard_error = math.sqrt(((gained + lost) / n - mean**2) / n)
    # Five standard errors of a 2.5 % quantile of 10,000 draws, and one step of 1 / n.
    tolerance = 5 * standard_error * math.sqrt(0.025 * 0.975 / 10_000) / 0.0584 + 1 / n
    for shared_items in (False, True):
        low, high = (
            compared({"plain": [plain], "other": [other]}, shared_items=shared_items).comparison("other").interval
        )
        assert low == pytest.approx(mean - 1.96 * standard_error, abs=tolerance)
        assert high == pytest.approx(mean + 1.96 * standard_error, abs=tolerance)


@pytest.mark.parametrize("shared_items", [False, True])
@pytest.mark.parametrize("num_seeds", [1, 4])
def test_interval_of_identical_arms(num_seeds, shared_items):
    """One answer for and one against, Poisson(1) times each: the 95 % interval of their difference is 3 answers."""
    runs = random_arms(1, num_seeds, 301)["plain"]
    comparison = compared({"plain": runs, "same": [r.copy() for r in runs]}, shared_items=shared_items).comparison(
        "same"
    )
    size = 301 if shared_items else 301 * num_seeds
    assert comparison.difference == 0.0
    assert comparison.interval == pytest.approx((-3 / size, 3 / size), abs=1e-9)
    assert comparison.verdict is Verdict.CANNOT_TELL
    assert comparison.differing == 0


@pytest.mark.parametrize(
    ("differing", "verdict"), [(3, Verdict.CANNOT_TELL), (4, Verdict.CANNOT_TELL), (8, Verdict.HELPS)]
)
def test_few_differing_answers_give_no_verdict(differing, verdict):
    plain, other = answers(1000, differing, 0)
    assert compared({"plain": [plain], "other": [other | plain]}).comparison("other").verdict is verdict


def made_answers(rng, y, hits):
    """Probabilities of two classes whose argmax is right where `hits`."""
    p = 0.5 + 0.4 * rng.random(len(y))
    right = np.where(hits, p, 1 - p)
    return Answers(
        np.arange(len(y)), y, np.stack([np.where(y == 0, right, 1 - right), np.where(y == 1, right, 1 - right)], 1)
    )


@pytest.mark.parametrize("metric", [metric for metric in Metric if metric is not Metric.AUTO])
@pytest.mark.parametrize("shared_items", [False, True])
def test_every_metric_detects_a_clear_difference(metric, shared_items):
    rng = np.random.default_rng(0)
    y = (np.arange(400) % 10 == 0).astype(np.int64)
    good, bad = rng.random(400) < 0.95, rng.random(400) < 0.7
    runs = {
        "plain": [made_answers(rng, y, bad) for _ in range(2)],
        "better": [made_answers(rng, y, good) for _ in range(2)],
    }
    runs["same"] = runs["plain"]
    result = compared(runs, shared_items=shared_items, metric=metric, resamples=300)
    assert result.metric is metric
    assert result.comparison("better").verdict is Verdict.HELPS
    assert result.comparison("better").difference == pytest.approx(result.arm("better").mean - result.arm("plain").mean)
    low, high = result.comparison("same").interval
    assert low < 0 < high
    assert chosen(runs, metric=metric).arm == "better"


def test_balanced_accuracy_weights_classes_equally():
    """10 of 100 examples are rare; an arm that finds half of them gains 25 points, and its interval is theirs."""
    y = np.repeat([0, 1], [90, 10])
    none = Answers(np.arange(100), y, np.tile([0.9, 0.1], (100, 1)))
    found = none.probabilities.copy()
    found[90:95] = [0.1, 0.9]
    half = Answers(np.arange(100), y, found)
    comparison = compared({"plain": [none], "half": [half]}, metric=Metric.BALANCED_ACCURACY).comparison("half")
    assert comparison.difference == pytest.approx(0.25)
    # 1/2 of the mean of ten answers, each right with chance one half: a standard error of 0.5 sqrt(0.25 / 10).
    low, high = comparison.interval
    assert high - low == pytest.approx(2 * 1.96 * 0.5 * math.sqrt(0.25 / 10), rel=0.3)
    assert comparison.differing == 5


def test_visible_difference():
    assert visible_difference(60) == pytest.approx(0.08, abs=0.001)
    assert visible_difference(26032) < 0.004


def test_repeated_seeds_narrow_only_the_nested_interval():
    """d the same for all S seeds: crossed has the spread of one seed, nested that of S times the examples."""
    plain, other = answers(2000, 160, 120)
    right = {"plain": [plain] * 9, "other": [other] * 9}

    def width(arms, shared_items):
        low, high = compared(arms, shared_items=shared_items).comparison("other").interval
        return high - low

    one = width({"plain": [plain], "other": [other]}, False)
    assert width(right, True) == pytest.approx(one, rel=0.06)
    assert width(right, False) == pytest.approx(one / 3, rel=0.06)


@pytest.mark.parametrize("shared_items", [False, True])
def test_resamples_equal_a_plain_bootstrap(shared_items):
    """The same interval as drawing seeds and examples one by one, within the chance of the draws."""
    right = random_arms(2, 4, 60, seed=3)
    d = np.array(right["arm 1"], dtype=float) - np.array(right["plain"])
    rng, draws = np.random.default_rng(1), []
    for _ in range(10_000):
        seeds = rng.integers(0, 4, 4)
        items = rng.integers(0, 60, (1 if shared_items else 4, 60))
        draws.append(d[seeds[:, None], items].mean())
    expected = np.quantile(draws, [0.025, 0.975])
    spread = np.std(draws)
    # A quantile of 10,000 draws has a standard error of 0.027 spreads; five of the difference of two, and a step.
    tolerance = 5 * 0.027 * math.sqrt(2) * spread + 1 / 240
    interval = compared(right, shared_items=shared_items).comparison("arm 1").interval
    assert interval == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("shared_items", [False, True])
def test_interval_does_not_depend_on_other_arms(shared_items):
    right = random_arms(4, 3, 200)
    alone = {name: right[name] for name in ("plain", "arm 2")}
    group = compared(right, shared_items=shared_items, resamples=500)
    apart = compared(alone, shared_items=shared_items, resamples=500)
    assert apart.comparison("arm 2") == group.comparison("arm 2")


def test_rng_determines_the_result():
    right = random_arms(2, 3, 100)
    assert compared(right, seed=1, resamples=300) == compared(right, seed=1, resamples=300)
    assert compared(right, seed=1, resamples=300) != compared(right, seed=2, resamples=300)


def test_verdicts():
    plain, better = answers(1000, 100, 20)
    assert compared({"plain": [plain], "other": [better]}).comparison("other").verdict is Verdict.HELPS
    assert compared({"plain": [better], "other": [plain]}).comparison("other").verdict is Verdict.HURTS
    assert Verdict.of(-0.1, 0.1) is Verdict.of(0.0, 0.1) is Verdict.of(-0.1, 0.0) is Verdict.CANNOT_TELL
    assert Verdict.HELPS.describe() == "helps: the whole interval lies above zero"
    assert {v.describe().split(":")[0] for v in Verdict} == {"helps", "hurts", "cannot tell"}


def test_notes_on_few_seeds_and_many_comparisons():
    plain, better = answers(1000, 100, 20)
    assert "choice of test examples only" in compared({"plain": [plain], "other": [better]}).note
    assert "3 seeds" in compared({"plain": [plain] * 3, "other": [better] * 3}).note
    assert compared({"plain": [plain] * 10, "other": [better] * 10}).note == ""
    assert "multiple comparisons" in compared(random_arms(3, 10, 50), resamples=200).note


def test_as_dict_is_plain_json():
    result = compared(random_arms(3, 2, 50), resamples=200)
    plain = json.loads(json.dumps(result.as_dict(), allow_nan=False))
    assert plain["baseline"] == "plain"
    assert list(plain["scores"]) == ["plain", "arm 1", "arm 2"]
    assert list(plain["comparisons"]) == ["arm 1", "arm 2"]
    assert plain["comparisons"]["arm 1"]["interval_95"] == list(result.comparison("arm 1").interval)
    assert plain["comparisons"]["arm 1"]["verdict"] in ("helps", "hurts", "cannot tell")


def test_table_is_aligned():
    plain, better = answers(1000, 100, 20, both=700)
    result = compared({"plain": [plain], "a longer name": [better]})
    head, first, second, note, end = result.table().split("\n")
    assert head == "variant        accuracy %  difference    95 % interval  verdict"
    assert first == "plain               72.00                               baseline"
    assert second.startswith("a longer name       80.00       +8.00  +")
    assert len({line.index(last) for line, last in ((head, "verdict"), (first, "baseline"), (second, "helps"))}) == 1
    assert note == result.note
    assert end == ""
    assert isinstance(result, ComparisonResult)
    assert result.comparison("a longer name").describe().startswith("a longer name, +8.00 points (95 % interval +")


GOOD = np.array([True, False, True])


@pytest.mark.parametrize("call", [compared, lambda right, **more: choose(right, baseline="plain", **more)])
@pytest.mark.parametrize(
    ("right", "more", "code"),
    [
        ({"other": [GOOD], "third": [GOOD]}, {}, "missing-arm"),
        ({"plain": [GOOD]}, {}, "missing-arm"),
        ({"plain": [], "other": []}, {}, "example-count"),
        ({"plain": [GOOD] * 2, "other": [GOOD]}, {}, "example-count"),
        ({"plain": [GOOD], "other": [GOOD[:2]]}, {}, "example-count"),
        ({"plain": [GOOD], "other": [GOOD.astype(float)]}, {}, "bad-answers"),
        ({"plain": [GOOD[:1]], "other": [GOOD[:1]]}, {}, "bad-answers"),
        ({"plain": [GOOD[None]], "other": [GOOD[None]]}, {}, "bad-answers"),
        ({"plain": [GOOD, GOOD[:2]], "other": [GOOD, GOOD[:2]]}, {"shared_items": True}, "example-count"),
        ({"plain": [GOOD], "other": [GOOD]}, {"metric": Metric.AUROC}, "needs-probabilities"),
    ],
)
def test_incomparable_answers_are_refused(call, right, more, code):
    with raises(DataError, code):
        call(right, **{"shared_items": False, **more})


def test_too_few_resamples_are_refused():
    with raises(DataError, "too-few-resamples"):
        compared({"plain": [GOOD], "other": [GOOD]}, resamples=10)


def chosen(validation, **more):
    return choose(validation, **{"baseline": "plain", "shared_items": False, **more})


def test_best_arm_beyond_the_margin_is_chosen():
    plain, good = answers(200, 9, 1)
    _, better = answers(200, 12, 0)
    choice = chosen({"plain": [plain], "good": [good], "better": [better | plain]})
    assert choice.arm == "better"
    assert not choice.keeps_baseline
    assert choice.describe() == ("kept better: +6.00 ± 1.68 points on validation against plain")
    assert json.loads(json.dumps(choice.as_dict()))["candidates"]["good"]["clears"] is True


def test_baseline_is_kept_without_a_better_arm():
    plain, worse = answers(200, 1, 4)
    choice = chosen({"plain": [plain], "same": [plain], "worse": [worse]})
    assert choice.arm == "plain"
    assert choice.keeps_baseline
    assert choice.describe() == (
        "kept plain: no variant is better on validation; the best, same, is at +0.00 ± 0.00 points on validation"
    )


def test_baseline_is_kept_within_the_standard_error():
    plain, other = answers(180, 6, 4)
    choice = chosen({"plain": [plain], "other": [other]})
    assert choice.keeps_baseline
    assert "the best variant, other, is at +1.11 ± 1.76 points" in choice.describe()
    assert choice.describe().endswith("too little to trust")
    assert chosen({"plain": [plain], "other": [other]}, margin=0).arm == "other"
    with raises(DataError, "bad-margin"):
        chosen({"plain": [plain], "other": [other]}, margin=-1)


@pytest.mark.parametrize("n", [7, 180, 359, 1000, 26032])
def test_one_more_right_answer_is_not_enough(n):
    plain, other = answers(n, 1, 0)
    choice = chosen({"plain": [plain], "other": [other]})
    (candidate,) = choice.candidates
    assert candidate.difference == pytest.approx(candidate.standard_error, rel=1e-12)
    assert choice.keeps_baseline
    _, two = answers(n, 2, 0)
    assert chosen({"plain": [plain], "other": [two]}).arm == "other"


def test_significant_arm_is_preferred_to_a_better_noisy_one():
    plain, wild = answers(200, 30, 26)
    steady = plain.copy()
    steady[-3:] = True
    assert wild.sum() - plain.sum() == 4
    assert steady.sum() - plain.sum() == 3
    assert chosen({"plain": [plain], "wild": [wild], "steady": [steady]}).arm == "steady"


def test_standard_error_shrinks_with_seeds_of_separate_examples():
    plain, other = answers(500, 30, 20)
    right = {"plain": [plain] * 4, "other": [other] * 4}
    one = chosen({"plain": [plain], "other": [other]}).candidates[0].standard_error
    assert chosen(right).candidates[0].standard_error == pytest.approx(one / 2)
    assert chosen(right, shared_items=True).candidates[0].standard_error == pytest.approx(one)


def test_first_of_equal_arms_is_chosen():
    plain, good = answers(200, 9, 1)
    assert chosen({"plain": [plain], "first": [good], "second": [good]}).arm == "first"
