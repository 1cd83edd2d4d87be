"""Diagnostics of a run."""

from __future__ import annotations

import pytest
import torch

from synthsieve.io.random_streams import torch_stream
from synthsieve.sampling import langevin
from synthsieve.sampling.langevin import LangevinSettings
from tests.sampling.gaussian_mixture import GaussianMixture

NORMAL = GaussianMixture(torch.ones(1), torch.zeros(1, 10), torch.ones(1))


@pytest.mark.parametrize("differentiable", [False, True])
def test_one_record_for_the_start_and_each_step(differentiable: bool) -> None:
    start = 3 * torch.ones(4, 10)
    result = langevin.run(
        NORMAL,
        start,
        settings=LangevinSettings(num_steps=6),
        rng=torch_stream(0, "noise"),
        differentiable=differentiable,
        gradient_steps=2 if differentiable else None,
        diagnostics=True,
    )
    measured = result.diagnostics
    assert measured is not None
    assert measured.log_density.shape == (7,)
    assert measured.log_density_range.shape == (7, 2)
    assert (measured.log_density_range[:, 0] <= measured.log_density_range[:, 1]).all()
    ends = torch.quantile(NORMAL.value(result.z.detach()).double(), torch.tensor([0.05, 0.95], dtype=torch.float64))
    torch.testing.assert_close(measured.log_density_range[-1], ends)
    assert float(measured.log_density[0]) == pytest.approx(float(NORMAL.value(start).mean()))
    assert float(measured.log_density[-1]) == pytest.approx(float(NORMAL.value(result.z.detach()).mean()))
    assert measured.late_climb > 0
    assert not measured.log_density.requires_grad


def test_a_converged_chain_does_not_climb() -> None:
    """On N(0, I) a chain that starts with its own variance, 1 / (1 - s/2), has a constant mean log-density."""
    settings = LangevinSettings(num_steps=40, step_size=0.3)
    start = (1 - settings.step_size / 2) ** -0.5 * torch.randn(4000, 10, generator=torch_stream(0, "z"))
    measured = langevin.run(
        NORMAL, start, settings=settings, rng=torch_stream(0, "noise"), diagnostics=True
    ).diagnostics
    assert measured is not None
    assert abs(measured.late_climb) < 4.5 * (2 * 5 / 4000) ** 0.5 / (1 - settings.step_size / 2)


def test_no_steps_records_only_the_start() -> None:
    measured = langevin.run(
        NORMAL, torch.ones(2, 10), settings=LangevinSettings(0), rng=torch_stream(0, "noise"), diagnostics=True
    ).diagnostics
    assert measured is not None
    assert measured.log_density.shape == (1,)
    assert measured.late_climb == 0
