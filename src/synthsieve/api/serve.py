"""`synthsieve.serve`: browse the synthetic samples of a finished run in the browser."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from synthsieve.errors import ConfigError
from synthsieve.io.devices import AUTO
from synthsieve.results.run import open_run


@dataclass(frozen=True)
class RunningGallery:
    """A gallery that accepts requests."""

    variant: str  # whose samples it shows
    num_samples: int  # how many
    new_address: Callable[[], str]  # returns a URL that opens the gallery once, on this machine


def print_address(gallery: RunningGallery) -> None:
    """Print what is shown, and an address."""
    print(f"{gallery.variant}: {gallery.num_samples:,} samples at {gallery.new_address()}")


def serve(
    out: str | Path,
    *,
    variant: str | None = None,
    seed: int | None = None,
    port: int | None = None,
    open_browser: bool = True,
    device: str | torch.device = AUTO,
    on_ready: Callable[[RunningGallery], None] = print_address,
) -> None:
    """Serve the gallery on 127.0.0.1 until interrupted by Ctrl-C.

    Args:
        out: the directory that `synthsieve.run`, or `synthsieve fit --augment`, wrote.
        variant: whose samples; None takes the chosen variant, or CRAIG.
        seed: one of the seeds of the run; None takes the first.
        port: None takes 8765, or a free one.
        open_browser: open a browser where there is a display.
        device: as for `fit`.
        on_ready: called when the gallery accepts requests.
    """
    try:
        from synthsieve.results.gallery import server
        from synthsieve.results.gallery.security import Access
        from synthsieve.results.gallery.session import GallerySession
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "anyio", "h11"):
            raise
        message = "the gallery needs more packages: pip install 'synthsieve[gallery]'"
        raise ConfigError(message, code="missing-package") from None
    run = open_run(out, seed=seed, device=device)
    listener = server.listen(port)
    view = run.pool(variant)
    access = Access(listener.getsockname()[1])
    session = GallerySession(view, Path(out), run.table)
    session.warm_up()
    with tempfile.TemporaryDirectory(prefix="synthsieve-") as folder:  # mode 0700

        def ready() -> None:
            on_ready(RunningGallery(view.name, len(view), access.new_address))
            if open_browser:
                server.open_browser(access.new_address(), folder)

        server.run_server(server.guarded_app(session, access), listener, on_ready=ready)
