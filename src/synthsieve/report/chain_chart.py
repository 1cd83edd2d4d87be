"""How the chains climbed that drew a pool."""

from __future__ import annotations

from synthsieve import drawing
from synthsieve.charts.chart import Axis, Band, Chart, Line, Tone, numbers
from synthsieve.errors import NothingToDraw
from synthsieve.evaluation.figures import spaced_ranks
from synthsieve.review.pool_view import PoolView
from synthsieve.sampling.langevin import LangevinSettings

CHAINS = 200


def chain_log_density(view: PoolView) -> Chart:
    """The log-density along the Langevin steps, over some chains of the pool run again: mean and middle 90 %."""
    if (why := why_no_chains(view)) is not None:
        raise NothingToDraw(why)
    origin = view.pool.origin
    chains = LangevinSettings(origin["num_steps"], origin["step_size"], origin["temperature"])
    rows = spaced_ranks(len(view.pool), CHAINS)
    measured = drawing.replay_diagnostics(view.model, view.pool.y[rows], view.pool.chain_seed[rows], chains=chains)
    steps = numbers(range(chains.num_steps + 1))
    mean, ends = measured.log_density.numpy(), measured.log_density_range.numpy()
    late = measured.late_climb if chains.num_steps else 0.0
    return Chart(
        title="How the chains climb",
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
            f"{len(rows)} chains of the pool, run again: step size {chains.step_size:g}, temperature "
            f"{chains.temperature:g}. Where the curve ends flat, they have settled."
        ),
    )


def why_no_chains(view: PoolView) -> str | None:
    """Why chains cannot be run again; None where they can."""
    if "latents_of" in view.pool.origin:
        return "this pool's latents came from an earlier model, so that its chains cannot be replayed"
    return None
