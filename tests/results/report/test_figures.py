"""The figures of a run: their numbers, every kind of data, and figures without anything to show."""

import json
import math
import shutil
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from synthsieve import open_run
from synthsieve.errors import ConfigError, NothingToDraw
from synthsieve.evaluation.comparison import compare_paired
from synthsieve.io.random_streams import numpy_stream
from synthsieve.results.charts.chart import Bars, Intervals, Line, Points, Rule, TextLabels
from synthsieve.results.charts.matplotlib_backend import draw
from synthsieve.results.charts.svg import render
from synthsieve.results.export.media import spaced_ranks
from synthsieve.results.pool_view import PoolView
from synthsieve.results.report.charts.comparison import variants
from synthsieve.results.report.charts.pool import (
    bound_against_budget,
    bounds_at,
    class_yield,
    entropy_edges,
    entropy_histogram,
    two_dimensions,
    weights,
)
from synthsieve.results.report.charts.training import CHAINS, chain_log_density
from synthsieve.results.report.figures import NAMES, OF_RUN, charts_of
from synthsieve.results.table import ResultsTable
from synthsieve.selection.entropy import Reason
from synthsieve.settings import AugmentationSettings, Coreset
from synthsieve.training.augment import select_coreset
from synthsieve.training.pool import Outcomes, SyntheticPool
from tests.errors import raises
from tests.finished import CRAIG, KINDS, finished_run
from tests.results.made_up_table import table_json

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
    """A pool with samples of every outcome, and their outcomes."""
    rng = np.random.default_rng(0)
    y = np.sort(rng.integers(0, classes, n))
    entropy = 10.0 ** rng.uniform(-15, 0.3, n)
    entropy[:zeros] = 0.0
    reason = np.where(entropy < 0.3, Reason.KEPT, Reason.HIGH_ENTROPY).astype(np.int8)
    reason[rng.random(n) < 0.1] = Reason.OTHER_LABEL
    reason[rng.random(n) < 0.05] = Reason.BY_HAND
    weight = np.where((reason == Reason.KEPT) & (np.arange(n) % 9 == 0), 9.0, 0.0)
    rank = np.where(weight > 0, 0, -1)
    z, logits = np.zeros((n, 2)), np.zeros((n, classes))
    seeds, oracle = np.arange(n), np.full(n, -1)
    pool = SyntheticPool(y, z, seeds, logits, logits, z, oracle, entropy, reason, weight, rank, np.zeros(0), {})
    options = AugmentationSettings(**({"entropy_ceiling": 0.3, "keep_fraction": None} | settings))
    return pool, Outcomes(reason, weight, rank, 0.3, options, {})


@pytest.mark.parametrize("zeros", [0, 40])
def test_histogram_counts_every_sample_once(zeros):
    pool, outcome = made_up(zeros=zeros)
    chart = entropy_histogram(pool, outcome)
    bars = of(chart, Bars)
    assert sum(sum(layer.value) for layer in bars) == len(pool)
    assert [sum(layer.value) for layer in bars] == [count for count in outcome.counts().values() if count]
    assert [rule.at for rule in of(chart, Rule)] == [0.3]
    assert 0.3 in np.round(bars[0].start, 12)  # no bar lies on both sides of the ceiling
    above = np.greater(bars[0].start, 0.29)
    assert np.array([layer.value for layer in bars[:2]])[:, above].sum() == 0
    assert chart.note.startswith(f"{(pool.entropy < bars[0].start[0]).sum()} samples below ")
    tops = np.sum([layer.value for layer in bars], axis=0)
    np.testing.assert_array_equal(np.add(bars[-1].base, bars[-1].value), tops)


def test_ceiling_of_a_kept_fraction():
    (rule,) = of(entropy_histogram(*made_up(entropy_ceiling=None, keep_fraction=0.3)), Rule)
    assert "the highest of the class ceilings" in rule.label
    assert "30 %" in rule.label
    pool, outcome = made_up()
    assert not of(entropy_histogram(pool, replace(outcome, entropy_ceiling=np.inf)), Rule)


@pytest.mark.parametrize("entropy", [[0.0, 0.0], [0.5], [1e-300, 2.0], [1e-6, 1e-6]])
@pytest.mark.parametrize("ceiling", [math.inf, 0.1, 1e-6])
def test_entropy_bins(entropy, ceiling):
    edges = entropy_edges(np.array(entropy), ceiling)
    assert (np.diff(edges) > 0).all()
    assert np.histogram(np.clip(entropy, edges[0], edges[-1]), edges)[0].sum() == len(entropy)
    if edges[0] < ceiling < edges[-1]:
        assert np.isclose(edges, ceiling, rtol=1e-9).any()


def test_class_yield(view):
    outcome = view.as_trained()
    chart = class_yield(view, outcome)
    drawn, kept, selected = of(chart, Bars)
    assert sum(drawn.value) == len(view)
    assert sum(kept.value) == outcome.kept.sum()
    assert sum(selected.value) == len(outcome.selected)
    assert chart.y.categories == view.classes


def test_class_yield_of_many_classes():
    pool, outcome = made_up(classes=100)
    split = SimpleNamespace(classes=("", *(f"class {i}" for i in range(1, 100))))
    view = PoolView("made up", SimpleNamespace(split=split), None, 0, {}, pool, None, None)
    chart = class_yield(view, outcome)
    assert len(chart.y.categories) == 30
    assert "30 of 100" in chart.note
    assert not any(chart.y.beside)  # without an oracle
    shares = np.divide(chart.layers[1].value, chart.layers[0].value)
    kept, drawn = (np.bincount(pool.y[rows], minlength=100) for rows in (outcome.kept, slice(None)))
    assert sorted(shares) == sorted(kept / drawn)[:30]


def test_weights(table_view):
    outcome = table_view.as_trained()
    chart = weights(outcome)
    (bars,), (rule,) = of(chart, Bars), of(chart, Rule)
    assert sum(bars.value) == len(outcome.selected)
    assert rule.at == outcome.weight[outcome.selected].mean()
    for weight in outcome.weight[outcome.selected]:
        assert any(a <= weight < b and n for a, b, n in zip(bars.start, bars.end, bars.value, strict=True))


@pytest.mark.parametrize("heaviest", [1, 9, 40, 700])
def test_heavy_weights(heaviest):
    _, outcome = made_up()
    weight = outcome.weight.copy()
    weight[outcome.selected] = np.geomspace(1, heaviest, len(outcome.selected)).round()
    weight[outcome.selected[0]] = 2.0
    (bars,) = of(weights(replace(outcome, weight=weight)), Bars)
    assert sum(bars.value) == len(outcome.selected)
    assert bars.start[0] <= 1
    assert bars.end[-1] >= max(heaviest, 2)


def test_gradient_bound(table_view):
    outcome = table_view.as_trained()
    chart = bound_against_budget(table_view, outcome)
    chance, picks = of(chart, Line)
    (rule,) = of(chart, Rule)
    assert rule.at == 100 * outcome.settings.coreset_fraction
    assert (np.diff(picks.y) <= 1e-9).all()
    assert (np.diff(chance.y) <= 1e-9).all()
    assert picks.y[picks.x.index(rule.at)] == pytest.approx(outcome.figures["gradient_bound"], rel=1e-6)
    assert chance.y[-1] >= picks.y[-1] - 1e-9
    # a smaller selection is the beginning of a larger one
    settings = outcome.settings.model_copy(update={"coreset_fraction": 0.25})
    kept = np.flatnonzero(outcome.kept)
    fewer = select_coreset(table_view.model, table_view.pool, kept, settings, seed=table_view.selection_seed)
    assert bounds_at(fewer, np.array([0.25]))[0] == pytest.approx(fewer.gradient_bound, rel=1e-6)


def test_gradient_bound_of_adacore(table_view):
    again = table_view.select(table_view.settings.model_copy(update={"coreset": Coreset.ADACORE}))
    chart = bound_against_budget(table_view, again)
    assert chart.y.label.endswith("in AdaCore's own unit")
    _, picks = of(chart, Line)
    at = picks.x.index(of(chart, Rule)[0].at)
    assert picks.y[at] == pytest.approx(again.figures["gradient_bound"], rel=1e-6)


def test_no_coreset(table_run):
    figures = table_run.figures.of(ENTROPY)
    assert {"weights", "bound_against_budget"}.isdisjoint(figures.names())
    for name in ("weights", "bound_against_budget"):
        with raises(NothingToDraw, "no-coreset"):
            figures.draw(name)
    assert set(figures.names()) == set(charts_of(table_run, table_run.pool(ENTROPY)))


def test_latent_map(view):
    outcome = view.as_trained()
    chart = charts_of(open_run(view.run.path.parents[1]), view)["latent_map"]
    rows = [row for layer in of(chart, Points) for row in layer.rows]
    assert sorted(rows) == outcome.selected.tolist()
    sized = {row: size for layer in of(chart, Points) for row, size in zip(layer.rows, layer.sizes, strict=False)}
    order = sorted(sized, key=lambda row: outcome.weight[row])
    assert [sized[row] for row in order] == sorted(sized.values())
    assert set(of(chart, TextLabels)[0].words) == {view.classes[label] for label in np.unique(view.pool.y)}
    assert "t-SNE" in chart.note
    assert len(render(chart)) < 400_000


@pytest.mark.parametrize("shape", [(5, 1), (40, 3), (4, 2)])
def test_tsne_is_deterministic_and_finite(shape):
    features = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    places = two_dimensions(features)
    assert places.shape == (shape[0], 2)
    assert np.isfinite(places).all()
    np.testing.assert_array_equal(places, two_dimensions(features))
    assert not two_dimensions(np.ones(shape)).any()


def test_chains_end_at_the_log_density_of_the_pool(table_view):
    chart, pool = chain_log_density(table_view), table_view.pool
    (line,) = of(chart, Line)
    assert line.x == tuple(map(float, range(pool.origin["num_steps"] + 1)))
    prior = table_view.model.fitted_prior
    assert prior is not None
    assert pool.origin["draw"] == "mixture+langevin"
    rows = spaced_ranks(len(pool), CHAINS)
    expected = prior.conditional_log_density(torch.from_numpy(pool.z[rows]), torch.from_numpy(pool.y[rows])).mean()
    assert line.y[-1] == pytest.approx(float(expected), rel=1e-3)


def made_up_table(names, right):
    arms = {name: [np.arange(400) < count] for name, count in zip(names, right, strict=True)}
    paired_comparison = compare_paired(
        arms, baseline=names[1], shared_items=True, rng=numpy_stream(0, "paired_comparison")
    )
    groups = dict(zip(names, ("baseline", "real", "synthetic", "synthetic", "synthetic"), strict=True))
    table = table_json(choice=False) | {"paired_comparison": paired_comparison.as_dict(), "groups": groups, "arms": {}}
    table["metrics"][names[1]] = table["metrics"]["real only"]
    return ResultsTable.model_validate(table)


def test_variants_under_their_headings():
    chart = variants(made_up_table(("supervised", "real", "worse", "same", "better"), (300, 320, 300, 320, 340)))
    assert chart.y.categories == (
        *("Other methods", "supervised", "Real data alone", "real", "With additions", "worse", "same", "better"),
    )
    assert chart.y.headings == {0, 2, 4}
    assert chart.y.beside[1] == "75.0\xa0%"
    helps, hurts, unsure = of(chart, Intervals)
    middles = [middle for layer in (helps, hurts, unsure) for middle in layer.middle]
    assert middles == pytest.approx([5.0, -5.0, -5.0, 0.0])
    assert [layer.y for layer in (helps, hurts, unsure)] == [(7.0,), (1.0, 5.0), (6.0,)]
    assert len({layer.shape for layer in (helps, hurts, unsure)}) == 3
    assert helps.low[0] < 5.0 < helps.high[0]


def test_far_baseline_is_written_as_text():
    chart = variants(made_up_table(("supervised", "real", "worse", "same", "better"), (100, 320, 319, 320, 321)))
    (words,) = of(chart, TextLabels)
    assert (words.words, words.y) == (("◀ -55.0",), (1.0,))
    assert chart.x.low > -10
    assert sum(len(layer.y) for layer in of(chart, Intervals)) == 3


@pytest.mark.parametrize("kind", ["table", *(pytest.param(k, marks=pytest.mark.slow) for k in [*KINDS, "digits"])])
def test_every_figure_of_every_kind_of_data(kind, tmp_path):
    run = open_run(finished_run(kind, tmp_path))
    charts = charts_of(run, run.pool(CRAIG.name))
    assert set(charts) >= set(NAMES) - {"weights", "bound_against_budget"}
    for name, chart in charts.items():
        ElementTree.fromstring(render(chart))
        assert draw(chart).axes, name


def test_losses_and_accuracy_come_from_the_history(table_run):
    charts = charts_of(table_run)
    assert set(charts) == set(OF_RUN)
    rows = [
        json.loads(line)
        for line in (table_run.pretrained.path / "history.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    first = next(layer for layer in of(charts["accuracy"], Line) if layer.name == "pretraining")
    assert first.y == tuple(100 * row["validation_accuracy"] for row in rows)
    labeled = of(charts["losses"], Line)[0]
    assert labeled.y[: len(rows)] == tuple(row["cross_entropy"] for row in rows)
    assert of(charts["losses"], Rule)[0].at == table_run.pretrained.settings.training.steps
    assert of(charts["elbo"], Line)[0].y[: len(rows)] == tuple(row["elbo"] for row in rows)
    lines = [layer.y for layer in of(charts["temperature"], Line)]
    assert lines[1] == tuple(row.mean_entropy_x for row in table_run.table.temperature)


def test_figures_of_a_single_fit(table_run, tmp_path):
    shutil.copytree(table_run.pooled[CRAIG.name], tmp_path / "fit")
    alone = open_run(tmp_path / "fit")
    assert {"variants", "temperature"}.isdisjoint(alone.figures.names())
    assert {"losses", "entropy_histogram", "latent_map"} <= set(alone.figures.names())
    with raises(NothingToDraw, "no-comparison"):
        alone.figures.variants()
    assert "a single fit" in alone._repr_html_()
    shutil.copytree(table_run.pretrained.path, tmp_path / "first")
    bare = open_run(tmp_path / "first")
    assert set(bare.figures.names()) == {"accuracy", "losses", "elbo"}
    with raises(NothingToDraw, "no-pool"):
        bare.figures.weights()
    assert "<svg" not in bare._repr_html_()


def test_unknown_names(table_run):
    with raises(ConfigError, "unknown-figure"):
        table_run.figures.draw("pie")
    with raises(ConfigError, "unknown-variant"):
        table_run.figures.of("no such arm")


def test_figures_are_methods(table_run):
    from matplotlib.figure import Figure

    assert isinstance(table_run.figures.entropy_histogram(), Figure)
    assert table_run.figures.svg("variants").startswith("<svg")
    assert set(NAMES) <= set(dir(table_run.figures))
    assert not hasattr(table_run.figures, "pie")


def test_run_in_a_notebook(table_run):
    changes = {
        "choice": None,
        "source_name": EVIL,
        "paired_comparison": replace(table_run.table.paired_comparison, note=EVIL),
    }
    text = replace(table_run, table=table_run.table.model_copy(update=changes))._repr_html_()
    assert "Cannot tell" in text
    assert EVIL not in text
    assert text.count("&lt;b&gt;&amp;") == 2
    assert "95 % interval" in text
    ElementTree.fromstring(text)
    assert text.count("<svg") == 1


def test_comparison_in_a_notebook(table_run):
    arms = {EVIL: [np.ones(10, dtype=bool)], "other": [np.zeros(10, dtype=bool)]}
    paired_comparison = compare_paired(arms, baseline=EVIL, shared_items=True, rng=numpy_stream(0, "paired_comparison"))
    text = paired_comparison._repr_html_()
    assert "<b>" not in text
    assert "-100.00" in text
