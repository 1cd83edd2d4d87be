"""MNIST: 70,000 handwritten digits of 28x28 pixels, 10,000 of them the test set."""

from __future__ import annotations

from synthsieve.data.dataset import Dataset
from synthsieve.data.download import MNIST, obtain
from synthsieve.data.formats.idx import read_sets
from synthsieve.data.registry import Request


def load_mnist(request: Request) -> Dataset:
    """MNIST, from `data_dir`, the cache or a mirror of its publisher."""
    files = obtain(MNIST, data_dir=request.data_dir, progress=request.progress)
    return read_sets("mnist", (files[0], files[1]), (files[2], files[3]))
