"""`synthsieve doctor`: versions, cores, memory, GPU, mixed precision, and which data sets are on this machine."""

from __future__ import annotations

from typing import Any

from synthsieve.cli import options


@options.verb
def doctor(console: options.Console, data_dir: options.DataDir = None) -> Any:
    """Show what this machine has: versions, cores, memory, GPU, mixed precision, and data sets without a download."""
    from synthsieve.api.doctor import doctor as doctor_

    return doctor_(data_dir)
