"""The Langevin chains: their log-density along the steps, and samples at several temperatures."""

from __future__ import annotations

from collections.abc import Sequence

from synthsieve.errors import NothingToDraw
from synthsieve.evaluation.temperature import TemperatureRow
from synthsieve.models import generate
from synthsieve.results.charts.chart import Axis, Band, Chart, Dash, Line, Tone, numbers
from synthsieve.results.figures import spaced_ranks
from synthsieve.results.pool_view import PoolView

CHAINS = 200


def temperature_chart(rows: Sequence[TemperatureRow]) -> Chart:
    """Entropies and shares against the temperature."""
    lines: dict[str, tuple[list[float], Tone, Dash]] = {
        "entropy at z, nats": ([row.mean_entropy_z for row in rows], Tone.BLUE, Dash.SOLID),
        "entropy at x, nats": ([row.mean_entropy_x for row in rows], Tone.ORANGE, Dash.DASHED),
        "share with the requested class at x": ([row.requested_share_x for row in rows], Tone.GREEN, Dash.DOTTED),
    }
    if all(row.purity is not None for row in rows):
        lines["purity by the oracle"] = ([float(row.purity or 0) for row in rows], Tone.PINK, Dash.DASH_DOT)
    x = numbers(row.temperature for row in rows)
    return Chart(
        title="The effect of the temperature on samples",
        description="Mean entropies, and the share of samples of the requested class, at each temperature.",
        x=Axis("temperature of the chains"),
        y=Axis("nats, or share", low=0.0),
        layers=tuple(Line(name, x, numbers(y), tone, dash) for name, (y, tone, dash) in lines.items()),
    )


def chain_log_density(view: PoolView) -> Chart:
    """The log-density along the Langevin steps of some chains of the pool, replayed: mean and 5 to 95 %."""
    if (reason := why_no_chains(view)) is not None:
        raise NothingToDraw(reason, code="no-chains")
    chains = view.pool.chains
    rows = spaced_ranks(len(view.pool), CHAINS)
    measured = generate.replay_diagnostics(view.model, view.pool.y[rows], view.pool.chain_seed[rows], chains=chains)
    steps = numbers(range(chains.num_steps + 1))
    mean, ends = measured.log_density.numpy(), measured.log_density_range.numpy()
    late = measured.late_climb if chains.num_steps else 0.0
    return Chart(
        title="Log-density of the chains",
        description=(
            f"Mean log-density of {len(rows)} chains along {chains.num_steps} Langevin steps: from {mean[0]:.3g} to "
            f"{mean[-1]:.3g}, of which {late:+.3g} in the last quarter."
        ),
        x=Axis("Langevin step"),
        y=Axis("log p(z given y), up to a constant of each class; nats"),
        layers=(
            Band("5 to 95 % of the chains", steps, numbers(ends[:, 0]), numbers(ends[:, 1]), Tone.BLUE),
            Line("mean", steps, numbers(mean), Tone.BLUE),
        ),
        note=(
            f"{len(rows)} chains of the pool, replayed: step size {chains.step_size:g}, temperature "
            f"{chains.temperature:g}. A flat end means that they have converged.{_match(view)}"
        ),
    )


def _match(view: PoolView) -> str:
    """The prior match of the pool in a sentence; empty where it was not measured."""
    match = view.figures.get("prior_match") or {}
    if match.get("mean") is None:
        return ""
    return (
        f" A classifier tells the drawn latents from encoded examples with an AUC of {match['mean']:.2f} on average, "
        f"{match['worst']:.2f} in the worst class; 0.5 is a perfect match."
    )


def why_no_chains(view: PoolView) -> str | None:
    """Why chains cannot be replayed; None where they can."""
    if "latents_of" in view.pool.origin:
        return "this pool's latents came from an earlier model, so its chains cannot be replayed"
    if not view.pool.origin["num_steps"]:
        return "the samples of this pool were drawn without Langevin steps"
    return None
