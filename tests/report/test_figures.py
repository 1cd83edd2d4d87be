"""The figures of a run: their numbers are the pool's, every kind of data can be drawn, and what cannot says why."""

import json
import math
import shutil
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from synthsieve import open_run
from synthsieve.augmentation import select_among
from synthsieve.charts.backends import draw
from synthsieve.charts.chart import Bars, Intervals, Line, Points, Rule, Words
from synthsieve.charts.svg import render
from synthsieve.config import AugmentationSettings, Coreset
from synthsieve.entropy import Reason
from synthsieve.errors import ConfigError, NothingToDraw
from synthsieve.evaluation.proof import prove
from synthsieve.pool import SyntheticPool
from synthsieve.randomness import numpy_stream
from synthsieve.report.arms_chart import arms
from synthsieve.report.bound_chart import bound_against_budget, bounds_at
from synthsieve.report.chain_chart import chain_log_density
from synthsieve.report.figures import NAMES, OF_RUN, charts_of
from synthsieve.report.latent_map import two_dimensions
from synthsieve.report.pool_charts import class_yield, entropy_edges, entropy_histogram, weights
from synthsieve.review.fate import Fate, judged_again
from tests.finished import CRAIG, KINDS, finished_run

ENTROPY = "entropy, L=60"
EVIL = '<b>&"</b>'


def of(chart, kind):
    return [layer for layer in chart.layers if isinstance(layer, kind)]


@pytest.fixture(scope="module")
def table_run(tmp_path_factory):
    return open_run(finished_run("table", tmp_path_factory.mktemp("finished")))


@pytest.fixture(scope="module")
def table_view(table_run):
    return table_run.pool(CRAIG.name)


def made_up(n=500, classes=3, zeros=0, **settings):
    """A pool whose samples have all fates, and their fate."""
    generator = np.random.default_rng(0)
    y = np.sort(generator.integers(0, classes, n))
    entropy = 10.0 ** generator.uniform(-15, 0.3, n)
    entropy[:zeros] = 0.0
    reason = np.where(entropy < 0.3, Reason.KEPT, Reason.HIGH_ENTROPY).astype(np.int8)
    reason[generator.random(n) < 0.1] = Reason.OTHER_LABEL
    reason[generator.random(n) < 0.05] = Reason.BY_HAND
    weight = np.where((reason == Reason.KEPT) & (np.arange(n) % 9 == 0), 9.0, 0.0)
    rank = np.where(weight > 0, 0, -1)
    pool = SyntheticPool(y, np.zeros((n, 2)), np.arange(n), entropy, reason, weight, rank, np.zeros(0), {})
    asked = AugmentationSettings(**({"entropy_ceiling": 0.3, "keep_fraction": None} | settings))
    return pool, Fate(reason, weight, rank, 0.3, asked, {})


@pytest.mark.parametrize("zeros", [0, 40])
def test_the_histogram_counts_every_sample_once_under_its_fate(zeros):
    pool, fate = made_up(zeros=zeros)
    chart = entropy_histogram(pool, fate)
    bars = of(chart, Bars)
    assert sum(sum(layer.value) for layer in bars) == len(pool)
    assert [sum(layer.value) for layer in bars] == [count for count in fate.counts().values() if count]
    assert [rule.at for rule in of(chart, Rule)] == [0.3]
    assert 0.3 in np.round(bars[0].start, 12)  # no bar lies on both sides of the ceiling
    above = np.greater(bars[0].start, 0.29)
    assert np.array([layer.value for layer in bars[:2]])[:, above].sum() == 0
    assert chart.note.startswith(f"{(pool.entropy < bars[0].start[0]).sum()} samples below ")
    tops = np.sum([layer.value for layer in bars], axis=0)
    np.testing.assert_array_equal(np.add(bars[-1].base, bars[-1].value), tops)


def test_with_a_kept_fraction_the_line_is_said_to_be_the_highest():
    (rule,) = of(entropy_histogram(*made_up(entropy_ceiling=None, keep_fraction=0.3)), Rule)
    assert "the highest of the classes' ceilings" in rule.label
    assert "30 %" in rule.label
    pool, fate = made_up()
    assert not of(entropy_histogram(pool, replace(fate, entropy_ceiling=np.inf)), Rule)


@pytest.mark.parametrize("entropy", [[0.0, 0.0], [0.5], [1e-300, 2.0], [1e-6, 1e-6]])
@pytest.mark.parametrize("ceiling", [math.inf, 0.1, 1e-6])
def test_bins_hold_what_there_is(entropy, ceiling):
    edges = entropy_edges(np.array(entropy), ceiling)
    assert (np.diff(edges) > 0).all()
    assert np.histogram(np.clip(entropy, edges[0], edges[-1]), edges)[0].sum() == len(entropy)
    if edges[0] < ceiling < edges[-1]:
        assert np.isclose(edges, ceiling, rtol=1e-9).any()


def test_the_yield_is_the_pool_s(view):
    fate = view.as_trained()
    chart = class_yield(view, fate)
    drawn, kept, selected = of(chart, Bars)
    assert sum(drawn.value) == len(view)
    assert sum(kept.value) == fate.kept.sum()
    assert sum(selected.value) == len(fate.selected)
    assert chart.y.categories == view.classes


def test_of_many_classes_those_of_least_yield_are_shown():
    pool, fate = made_up(classes=100)
    scores = SimpleNamespace(judged=np.full(len(pool), -1))
    classes = ("", *(f"class {i}" for i in range(1, 100)))
    chart = class_yield(SimpleNamespace(pool=pool, scores=scores, classes=classes), fate)
    assert len(chart.y.categories) == 30
    assert "30 of 100" in chart.note
    assert not any(chart.y.beside)  # nobody judged
    shares = np.divide(chart.layers[1].value, chart.layers[0].value)
    kept, drawn = (np.bincount(pool.y[rows], minlength=100) for rows in (fate.kept, slice(None)))
    assert sorted(shares) == sorted(kept / drawn)[:30]


def test_weights_are_counted_once_each(table_view):
    fate = table_view.as_trained()
    chart = weights(fate)
    (bars,), (rule,) = of(chart, Bars), of(chart, Rule)
    assert sum(bars.value) == len(fate.selected)
    assert rule.at == fate.weight[fate.selected].mean()
    for weight in fate.weight[fate.selected]:
        assert any(a <= weight < b and n for a, b, n in zip(bars.start, bars.end, bars.value, strict=True))


@pytest.mark.parametrize("heaviest", [1, 9, 40, 700])
def test_heavy_weights_are_counted_too(heaviest):
    _, fate = made_up()
    weight = fate.weight.copy()
    weight[fate.selected] = np.geomspace(1, heaviest, len(fate.selected)).round()
    weight[fate.selected[0]] = 2.0
    (bars,) = of(weights(replace(fate, weight=weight)), Bars)
    assert sum(bars.value) == len(fate.selected)
    assert bars.start[0] <= 1
    assert bars.end[-1] >= max(heaviest, 2)


def test_the_bound_falls_to_what_the_choice_reached(table_view):
    fate = table_view.as_trained()
    chart = bound_against_budget(table_view, fate)
    chance, picks = of(chart, Line)
    (rule,) = of(chart, Rule)
    assert rule.at == 100 * fate.settings.coreset_fraction
    assert (np.diff(picks.y) <= 1e-9).all()
    assert (np.diff(chance.y) <= 1e-9).all()
    assert picks.y[picks.x.index(rule.at)] == pytest.approx(fate.figures["gradient_bound"], rel=1e-6)
    assert chance.y[-1] >= picks.y[-1] - 1e-9
    # a choice that was asked for less is a beginning of one that was asked for more
    settings = fate.settings.model_copy(update={"coreset_fraction": 0.25})
    judged = judged_again(table_view.model, table_view.pool, table_view.scores, settings)
    fewer = select_among(judged, np.flatnonzero(fate.kept), settings, seed=table_view.choice_seed)
    assert bounds_at(fewer, np.array([0.25]))[0] == pytest.approx(fewer.gradient_bound, rel=1e-6)


def test_adacore_s_bound_is_in_its_own_unit(table_view):
    again = table_view.sieved(table_view.settings.model_copy(update={"coreset": Coreset.ADACORE}))
    chart = bound_against_budget(table_view, again)
    assert chart.y.label.endswith("in AdaCore's unit")
    _, picks = of(chart, Line)
    at = picks.x.index(of(chart, Rule)[0].at)
    assert picks.y[at] == pytest.approx(again.figures["gradient_bound"], rel=1e-6)


def test_an_arm_that_keeps_everything_says_that_it_has_no_coreset(table_run):
    figures = table_run.figures.of(ENTROPY)
    assert {"weights", "bound_against_budget"}.isdisjoint(figures.names())
    for name in ("weights", "bound_against_budget"):
        with pytest.raises(NothingToDraw, match="there is no coreset to look at"):
            figures.draw(name)
    assert set(figures.names()) == set(charts_of(table_run, table_run.pool(ENTROPY)))


def test_the_map_shows_the_picks_by_weight_and_names_the_classes(view):
    fate = view.as_trained()
    chart = charts_of(open_run(view.run.path.parents[1]), view)["latent_map"]
    rows = [row for layer in of(chart, Points) for row in layer.rows]
    assert sorted(rows) == fate.selected.tolist()
    sized = {row: layer.size(i) for layer in of(chart, Points) for i, row in enumerate(layer.rows)}
    order = sorted(sized, key=lambda row: fate.weight[row])
    assert [sized[row] for row in order] == sorted(sized.values())
    assert set(of(chart, Words)[0].words) == {view.classes[label] for label in np.unique(view.pool.y)}
    assert "t-SNE" in chart.note
    assert len(render(chart)) < 400_000


@pytest.mark.parametrize("shape", [(5, 1), (40, 3), (4, 2)])
def test_places_of_a_map_come_again_and_are_finite(shape):
    features = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    places = two_dimensions(features)
    assert places.shape == (shape[0], 2)
    assert np.isfinite(places).all()
    np.testing.assert_array_equal(places, two_dimensions(features))
    assert not two_dimensions(np.ones(shape)).any()


def test_chains_end_where_the_pool_says(table_view):
    (line,) = of(chain_log_density(table_view), Line)
    assert line.x == tuple(map(float, range(table_view.pool.origin["num_steps"] + 1)))
    assert line.y[-1] == pytest.approx(table_view.scores.log_density.mean(), rel=1e-4)


def made_up_table(names, right):
    arms = {name: [np.arange(400) < count] for name, count in zip(names, right, strict=True)}
    proof = prove(arms, baseline=names[1], shared_items=True, generator=numpy_stream(0, "proof"))
    groups = dict(zip(names, ("baseline", "real", "synthetic", "synthetic", "synthetic"), strict=True))
    return {"proof": proof.as_dict(), "groups": groups, "arms": {}}


def test_arms_stand_under_their_headings_with_their_verdicts():
    chart = arms(made_up_table(("twin", "real", "worse", "same", "better"), (300, 320, 300, 320, 340)))
    assert chart.y.categories == (
        *("Other ways to learn", "twin", "Real data alone", "real", "With additions", "worse", "same", "better"),
    )
    assert chart.y.headings == {0, 2, 4}
    assert chart.y.beside[1] == "75.0 %"
    helps, hurts, unsure = of(chart, Intervals)
    middles = [middle for layer in (helps, hurts, unsure) for middle in layer.middle]
    assert middles == pytest.approx([5.0, -5.0, -5.0, 0.0])
    assert [layer.y for layer in (helps, hurts, unsure)] == [(7.0,), (1.0, 5.0), (6.0,)]
    assert len({layer.shape for layer in (helps, hurts, unsure)}) == 3
    assert helps.low[0] < 5.0 < helps.high[0]


def test_a_baseline_far_off_is_written_out():
    chart = arms(made_up_table(("twin", "real", "worse", "same", "better"), (100, 320, 319, 320, 321)))
    (words,) = of(chart, Words)
    assert (words.words, words.y) == (("◀ -55.0",), (1.0,))
    assert chart.x.low > -10
    assert sum(len(layer.y) for layer in of(chart, Intervals)) == 3


@pytest.mark.parametrize("kind", ["table", *(pytest.param(k, marks=pytest.mark.slow) for k in [*KINDS, "digits"])])
def test_every_figure_of_every_kind_of_data_can_be_drawn_by_all(kind, tmp_path):
    run = open_run(finished_run(kind, tmp_path))
    charts = charts_of(run, run.pool(CRAIG.name))
    assert set(charts) >= set(NAMES) - {"weights", "bound_against_budget"}
    for name, chart in charts.items():
        ElementTree.fromstring(render(chart))
        assert draw(chart).axes, name
        assert draw(chart, "plotly").data, name


def test_losses_and_accuracy_are_the_history_s(table_run):
    charts = charts_of(table_run)
    assert set(charts) == set(OF_RUN)
    rows = [
        json.loads(line)
        for line in (table_run.first_phase.path / "history.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    first = next(layer for layer in of(charts["accuracy"], Line) if layer.name == "first phase")
    assert first.y == tuple(100 * row["validation_accuracy"] for row in rows)
    learned = of(charts["losses"], Line)[0]
    assert learned.y[: len(rows)] == tuple(row["cross_entropy"] for row in rows)
    assert of(charts["losses"], Rule)[0].at == table_run.first_phase.settings.learning.steps
    assert of(charts["elbo"], Line)[0].y[: len(rows)] == tuple(row["elbo"] for row in rows)
    told = [layer.y for layer in of(charts["temperature"], Line)]
    assert told[1] == tuple(row["mean_entropy_x"] for row in table_run.table["temperature"])


def test_a_single_fit_has_the_figures_it_can_have(table_run, tmp_path):
    shutil.copytree(table_run.pooled[CRAIG.name], tmp_path / "fit")
    alone = open_run(tmp_path / "fit")
    assert {"arms", "temperature"}.isdisjoint(alone.figures.names())
    assert {"losses", "entropy_histogram", "latent_map"} <= set(alone.figures.names())
    with pytest.raises(NothingToDraw, match="a single fit compares no arms"):
        alone.figures.arms()
    assert "a single fit" in alone._repr_html_()
    shutil.copytree(table_run.first_phase.path, tmp_path / "first")
    bare = open_run(tmp_path / "first")
    assert set(bare.figures.names()) == {"accuracy", "losses", "elbo"}
    with pytest.raises(NothingToDraw, match="no synthetic pool to look at"):
        bare.figures.weights()
    assert "<svg" not in bare._repr_html_()


def test_names_that_are_not_there_are_refused(table_run):
    with pytest.raises(ConfigError, match=r"expected the name of a figure \(gain, arms, accuracy.*got 'pie'"):
        table_run.figures.draw("pie")
    with pytest.raises(ConfigError, match="expected an arm with a pool"):
        table_run.figures.of("no such arm")


def test_figures_are_methods_of_the_run(table_run):
    from matplotlib.figure import Figure

    assert isinstance(table_run.figures.entropy_histogram(), Figure)
    assert table_run.figures.arms(backend="plotly").data
    assert table_run.figures.svg("arms").startswith("<svg")
    assert all(callable(getattr(table_run.figures, name)) for name in NAMES)


def test_a_notebook_shows_the_answer_the_arms_and_the_entropies(table_run):
    proof = table_run.table["proof"] | {"note": EVIL}
    table = table_run.table | {"choice": None, "source_name": EVIL, "proof": proof}
    text = replace(table_run, table=table)._repr_html_()
    assert "Cannot tell" in text
    assert EVIL not in text
    assert text.count("&lt;b&gt;&amp;") == 2
    assert "95 % interval" in text
    ElementTree.fromstring(text)
    assert text.count("<svg") == 1


def test_a_proof_shows_itself_as_text(table_run):
    arms = {EVIL: [np.ones(10, dtype=bool)], "other": [np.zeros(10, dtype=bool)]}
    proof = prove(arms, baseline=EVIL, shared_items=True, generator=numpy_stream(0, "proof"))
    text = proof._repr_html_()
    assert "<b>" not in text
    assert "-100.00" in text
