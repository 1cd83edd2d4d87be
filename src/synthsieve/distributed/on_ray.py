"""Ray as the engine: Ray Data for pieces over blocks of rows, tasks for pieces over parts of classes.

Through Ray go the numbers of pieces and short results alone; rows and arrays go from disk to disk. So the object store
can be small, nothing is spilled, and a lost node takes no data with it: its pieces are done again elsewhere. Blocks
are ours and not Ray's, which would cut them by the number of workers.

Ray sends functions to its workers by pickling them in memory. A cluster can therefore run anything as you on your
machine, and you on it: connect to your own. We neither write nor read a pickled file.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from synthsieve import errors
from synthsieve.distributed.engine import Work
from synthsieve.errors import ClusterError, SynthsieveError
from synthsieve.selection.workers import available_cores

LOCAL = "local"
_SECONDS_TO_CONNECT = 4.0
_SECONDS_TO_ANSWER = 12.0
_OBJECT_STORE = 100 * 2**20  # the least Ray takes is 75 MB
_ANY_ADDRESS = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # Ray's name for listening to other machines
_RETRIES = 8  # of a piece whose worker was lost


class RayEngine:
    """The workers of the cluster this process is connected to."""

    def blocks(self, work: Work, count: int) -> Iterator[dict[str, Any]]:
        from ray import data

        context = data.DataContext.get_current()
        context.enable_progress_bars = False
        context.execution_options.preserve_order = True
        logging.getLogger("ray.data").setLevel(logging.ERROR)

        def answer(batch: dict[str, Any]) -> dict[str, Any]:
            return {"answer": [_answer(work, int(number)) for number in batch["number"]]}

        numbers = data.from_items([{"number": number} for number in range(count)], override_num_blocks=count)
        with _lost_workers_told():
            for row in numbers.map_batches(answer, batch_size=None).iter_rows():
                yield _understood(row["answer"])

    def parts(self, work: Work, count: int) -> Iterator[dict[str, Any]]:
        import ray

        once = ray.put(work)
        run = ray.remote(max_retries=_RETRIES, num_cpus=1)(_answer)
        waiting = {run.remote(once, number): number for number in range(count)}
        answers: dict[int, str] = {}
        try:
            for number in range(count):
                while number not in answers:
                    done, _ = ray.wait(list(waiting), num_returns=1)
                    for one in done:
                        with _lost_workers_told():
                            answers[waiting.pop(one)] = ray.get(one)
                yield _understood(answers.pop(number))
        finally:
            for one in waiting:
                ray.cancel(one, force=True)


@contextmanager
def connected(address: str, *, workers: int | None = None) -> Iterator[RayEngine]:
    """The engine of a cluster, for as long as the block lasts: one begun here for LOCAL, or the one at `address`.

    A process that is connected already stays so.
    """
    ray = required()
    if ray.is_initialized():
        yield RayEngine()
        return
    folder = None
    try:
        if address == LOCAL:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            folder = tempfile.mkdtemp(prefix="ray-")  # short: Ray's sockets lie in it, and their names may not be long
            _begin(ray, workers or available_cores(), folder)
        else:
            _check_reachable(address)
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except ClusterError:
        raise
    except Exception as error:  # Ray raises the plainest of errors here
        ray.shutdown()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        why = (str(error).strip() or type(error).__name__).splitlines()[0]
        if address == LOCAL:
            raise ClusterError(
                f"Ray could not be started on this machine ({why}): try again when it is less busy"
            ) from None
        raise ClusterError(_unreachable(address, why)) from None
    try:
        yield RayEngine()
    finally:
        ray.shutdown()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _begin(ray: Any, workers: int, folder: str) -> None:
    """Start Ray here; a busy machine may need more than the half minute that Ray waits, so it gets three of them."""
    for attempt in range(3):
        try:
            with _heard_here_alone():
                ray.init(
                    address=LOCAL,  # else Ray would go where RAY_ADDRESS points
                    num_cpus=workers,
                    object_store_memory=_OBJECT_STORE,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    _temp_dir=folder,
                )
            return
        except Exception as error:
            if attempt == 2 or "timed out" not in str(error):
                raise
            ray.shutdown()


@contextmanager
def _heard_here_alone() -> Iterator[None]:
    """Let a Ray that starts meanwhile listen on 127.0.0.1, as it does on other systems: on Linux it would listen to the
    whole network, and older versions run what anybody sends."""
    from ray._private import ray_constants

    before, constant = os.environ.get(_ANY_ADDRESS), getattr(ray_constants, "ENABLE_RAY_CLUSTER", None)
    os.environ[_ANY_ADDRESS], ray_constants.ENABLE_RAY_CLUSTER = "0", False  # for its processes; for this one
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = constant
        if before is None:
            del os.environ[_ANY_ADDRESS]
        else:
            os.environ[_ANY_ADDRESS] = before


def required() -> Any:
    """The module ray, or a sentence on how to get it."""
    try:
        import ray
        import ray.data
    except ImportError:
        raise ClusterError("expected Ray for a cluster, got none: pip install 'synthsieve[cluster]'") from None
    return ray


def _check_reachable(address: str) -> None:
    """Knock before Ray does: it would knock for a long time."""
    if address == "auto":
        return
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not (colon and host and port.isdecimal() and 0 < int(port) < 65_536):
        raise ClusterError(f"expected --cluster as {LOCAL} or HOST:PORT, got {address!r}: Ray's own port is 6379")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS_TO_CONNECT).close()
    except OSError as error:
        raise ClusterError(_unreachable(address, error.strerror or str(error))) from None
    if not address.startswith("ray://"):
        _check_health(address)


def _check_health(address: str) -> None:
    """Let Ray's own command ask whether a cluster answers there; it can be ended, which Ray within us cannot."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    try:
        asked = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS_TO_ANSWER,
            check=False,
            encoding="utf-8",
        )
    except subprocess.TimeoutExpired:
        raise ClusterError(_unreachable(address, f"no answer in {_SECONDS_TO_ANSWER:.0f} s")) from None
    if "AuthenticationError" in asked.stderr:
        raise ClusterError(
            f"the Ray cluster at {address} wants an authentication token, got none or another: "
            "set RAY_AUTH_MODE and its token as the cluster's owner tells you"
        )
    if asked.returncode:
        raise ClusterError(_unreachable(address, "something else answers there"))


def _unreachable(address: str, why: str) -> str:
    return (
        f"expected a Ray cluster at {address}, got none ({why}): "
        f"check the address, or use --cluster {LOCAL} for this machine alone"
    )


def _answer(work: Work, number: int) -> str:
    """What a worker sends back: the result, or why there is none, as JSON. Other errors are Ray's to report."""
    try:
        return json.dumps({"result": work(number)})
    except SynthsieveError as error:
        return json.dumps({"refused": [type(error).__name__, str(error)]})
    except OSError as error:
        return json.dumps(
            {"failed": [error.errno, error.strerror or str(error), error.filename and str(error.filename)]}
        )


def _understood(answer: str) -> dict[str, Any]:
    told = json.loads(answer)
    if "refused" in told:
        name, sentence = told["refused"]
        raise getattr(errors, name, SynthsieveError)(sentence)
    if "failed" in told:
        raise OSError(*told["failed"])
    result: dict[str, Any] = told["result"]
    return result


@contextmanager
def _lost_workers_told() -> Iterator[None]:
    """What Ray raises once it gives up on a piece, as a sentence; errors within a piece stay as they are."""
    import ray

    try:
        yield
    except ray.exceptions.RayTaskError:
        raise
    except ray.exceptions.RayError as error:
        why = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ClusterError(
            f"the cluster lost the worker of the same piece again and again ({why}): "
            "give workers more memory, or smaller parts with --part-rows"
        ) from None
