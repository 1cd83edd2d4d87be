"""Labels of unlabelled x from a graph of nearest neighbours, and training with them."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.origin import Origin
from synthsieve.errors import ConfigError
from synthsieve.settings import load_settings
from synthsieve.training import graph_labels as module
from synthsieve.training.batches import BatchSource
from synthsieve.training.data import TrainingData
from synthsieve.training.graph_labels import graph_labels
from synthsieve.training.step import take_step


def blobs(per_class, *, rng):
    """Three far groups of points, a class each. (n, 2), (n,)."""
    centres = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])
    y = np.arange(3).repeat(per_class)
    return centres[y] + rng.normal(size=(len(y), 2)), y


@pytest.mark.parametrize("max_nodes", [10_000, 60])
def test_one_label_is_enough_for_each_group(max_nodes, monkeypatch):
    monkeypatch.setattr(module, "MAX_NODES", max_nodes)
    rng = np.random.default_rng(0)
    x, y = blobs(60, rng=rng)
    labeled = np.array([0, 60, 120])
    rest = np.setdiff1d(np.arange(len(y)), labeled)
    p = graph_labels(x[labeled], y[labeled], x[rest], num_classes=3, neighbors=8, rng=rng)
    assert p.dtype == np.float32
    assert np.array_equal(p.argmax(axis=1), y[rest])
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)


def test_classes_get_their_shares():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, 3))
    y = (x[:10, 0] > 0).astype(np.int64)
    shares = np.array([0.8, 0.2])
    p = graph_labels(x[:10], y, x[10:], num_classes=2, neighbors=10, class_shares=shares, rng=rng)
    assert p[:, 1].mean() == pytest.approx(0.2, abs=0.05)  # the 10 labelled rows count, too


def test_solution_of_a_chain(monkeypatch):
    """On a path with sources +1 and -1 at its ends, u falls by a straight line if no walk ends."""
    monkeypatch.setattr(module, "END", 1e-9)
    ends = np.array([0, 1])
    order = [0, *range(2, 10), 1]  # the labelled rows come first
    weights = np.zeros((10, 10))
    for left, right in pairwise(order):
        weights[left, right] = weights[right, left] = 1
    found = module._poisson(csr_array(weights), ends, 2)
    assert np.allclose(np.diff(found[order, 0], n=2), 0, atol=1e-4 * np.ptp(found))
    assert found[0, 0] > 0 > found[1, 0]


def test_rows_without_a_path_to_a_label_are_uncertain():
    rng = np.random.default_rng(2)
    x, y = blobs(30, rng=rng)
    known = np.flatnonzero(y < 2)
    labeled = known[[0, 1, 30, 31]]
    rest = np.setdiff1d(np.arange(len(y)), labeled)
    p = graph_labels(x[labeled], y[labeled], x[rest], num_classes=2, neighbors=5, rng=rng)
    assert np.ptp(p[y[rest] == 2], axis=0).max() < 1e-6
    assert p[y[rest] < 2].max(axis=1).min() > p[y[rest] == 2].max()


@pytest.fixture(scope="module")
def digits():
    return Origin.of("digits").load()


def training(dataset, *overrides):
    given = ["data.labels=50", "model.encoder_width=16", "model.latent_dim=4", *overrides]
    settings = load_settings("digits-minutes", given)
    data = TrainingData.prepare(dataset, settings)
    return data, settings


def test_batches_have_the_labels_of_their_rows(digits):
    data, settings = training(digits, "training.graph_weight=1")
    source = BatchSource(data, settings)
    batch = next(source)
    every = torch.from_numpy(data.encoding.encode(digits.train.x[data.split.unlabeled])).flatten(1)
    rows = torch.cdist(batch.unlabeled_x.flatten(1), every).argmin(dim=1)
    assert torch.equal(batch.graph_labels, torch.from_numpy(data.graph_labels(settings))[rows])
    assert data.graph_labels(settings) is data.graph_labels(settings)  # computed once


def test_off_at_weight_zero(digits):
    data, settings = training(digits, "training.graph_weight=0")
    assert data.graph_labels(settings) is None
    assert next(BatchSource(data, settings)).graph_labels is None


def test_weight_falls_to_zero(digits):
    """The update at the last step that counts differs from one without the graph, and the one after it does not."""
    data, settings = training(digits, "training.graph_weight=1", "training.graph_until=0.5", "training.steps=20")
    changed = []
    for step in (0, 9, 10):
        after = []
        for weight in (1.0, 0.0):
            state = data.init_state(settings)
            state.step = step
            batch = next(BatchSource(data, settings))
            state.settings = settings.changed("training", graph_weight=weight)
            take_step(state, batch)
            after.append(torch.cat([p.detach().flatten() for p in state.model.encoder.parameters()]))
        changed.append(not torch.equal(*after))
    assert changed == [True, True, False]


def test_sentences_are_refused():
    sentences = Examples(np.array([b"good film", b"bad film"] * 10), np.arange(20) % 2)
    dataset = Dataset("films", Kind.TEXT, ("a", "b"), sentences)
    settings = load_settings(overrides=["training.graph_weight=1"])
    with pytest.raises(ConfigError) as caught:
        TrainingData.prepare(dataset, settings).graph_labels(settings)
    assert caught.value.code == "graph-of-text"
