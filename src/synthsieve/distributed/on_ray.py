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
import secrets
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
    """The workers of the cluster this process is connected to; they write files under `umask` where it is given."""

    def __init__(self, umask: int | None = None) -> None:
        self._umask = umask

    def blocks(self, work: Work, count: int) -> Iterator[dict[str, Any]]:
        from ray import data

        context = data.DataContext.get_current()
        context.enable_progress_bars = False
        context.execution_options.preserve_order = True
        logging.getLogger("ray.data").setLevel(logging.ERROR)

        umask = self._umask

        def answer(batch: dict[str, Any]) -> dict[str, Any]:
            return {"answer": [_answer(work, int(number), umask) for number in batch["number"]]}

        numbers = data.from_items([{"number": number} for number in range(count)], override_num_blocks=count)
        with _lost_workers_told():
            for row in numbers.map_batches(answer, batch_size=None).iter_rows():
                yield _understood(row["answer"])

    def parts(self, work: Work, count: int) -> Iterator[dict[str, Any]]:
        import ray

        once = ray.put(work)
        run = ray.remote(max_retries=_RETRIES, num_cpus=1)(_answer)
        waiting = {run.remote(once, number, self._umask): number for number in range(count)}
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
    if address == LOCAL:
        with _begun_here(ray, workers or available_cores()) as umask:
            yield RayEngine(umask)
        return
    try:
        _check_reachable(address)
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except ClusterError:
        raise
    except Exception as error:  # Ray raises the plainest of errors here
        ray.shutdown()
        raise ClusterError(_unreachable(address, _first_line(error))) from None
    try:
        yield RayEngine()
    finally:
        ray.shutdown()


@contextmanager
def _begun_here(ray: Any, workers: int) -> Iterator[int]:
    """A Ray of our own for as long as the block lasts; yields the umask of this process, which Ray's do not have.

    Its temporary folder is removed afterwards, and nothing is written elsewhere.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    folder = tempfile.mkdtemp(prefix="ray-")  # short: Ray's sockets lie in it, and their names may not be long
    try:
        with _token_of_our_own():
            try:
                umask = os.umask(0o077)  # Ray's processes take it over
                try:
                    _begin(ray, workers, folder)
                except Exception as error:  # Ray raises the plainest of errors here
                    why = _first_line(error)
                    raise ClusterError(
                        f"Ray could not be started on this machine ({why}): try again when it is less busy"
                    ) from None
                finally:
                    os.umask(umask)
                yield umask
            finally:
                ray.shutdown()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _token_of_our_own() -> Iterator[None]:
    """Let a Ray that starts meanwhile ask for a random token that is in the environment of this run alone.

    Left to itself, Ray writes one to ~/.ray/auth_token, which other users may be able to read, and leaves it there.
    """
    ours = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    before = {name: os.environ.get(name) for name in (*ours, "RAY_AUTH_TOKEN_PATH")}
    os.environ.pop("RAY_AUTH_TOKEN_PATH", None)
    os.environ.update(ours)
    _read_token_again()
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        _read_token_again()


def _read_token_again() -> None:
    """Ray reads its settings and its token once; versions without tokens have nothing to read."""
    from ray import _raylet

    config, loader = getattr(_raylet, "Config", None), getattr(_raylet, "AuthenticationTokenLoader", None)
    if config is not None and loader is not None:
        config.initialize("")
        loader.instance().reset_cache()


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


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


def _answer(work: Work, number: int, umask: int | None) -> str:
    """What a worker sends back: the result, or why there is none, as JSON. Other errors are Ray's to report."""
    if umask is not None:
        os.umask(umask)
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
        raise ClusterError(
            f"the cluster lost the worker of the same piece again and again ({_first_line(error)}): "
            "give workers more memory, or smaller parts with --part-rows"
        ) from None
