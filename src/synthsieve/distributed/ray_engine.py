"""Ray as the engine: Ray Data for tasks over blocks of rows, Ray tasks for parts of classes.

Only task numbers and short results go through Ray; rows and arrays go from disk to disk. So the object store can be
small, and a lost node loses no data: its tasks are run again elsewhere.

Ray sends functions to its workers by pickling them in memory. A cluster can therefore run any code as you on your
machine, and you on it: connect to your own. No pickled file is written or read.
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
from synthsieve.selection.kernels.workers import available_cores

LOCAL = "local"
_CONNECT_SECONDS = 4.0
_HEALTH_CHECK_SECONDS = 12.0
_OBJECT_STORE_BYTES = 100 * 2**20  # Ray's minimum is 75 MB
_ALL_INTERFACES = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # Ray's variable for listening to other machines
_RETRIES = 8  # of a task whose worker was lost
_QUIET = {"log_to_driver": False, "logging_level": logging.ERROR}


class RayEngine:
    """The workers of the connected cluster; they write files with this `umask` if given."""

    def __init__(self, umask: int | None = None) -> None:
        self._umask = umask

    def blocks(self, work: Work, count: int) -> Iterator[dict[str, Any]]:
        from ray import data

        context = data.DataContext.get_current()
        context.enable_progress_bars = False
        context.execution_options.preserve_order = True
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        umask = self._umask

        def run(batch: dict[str, Any]) -> dict[str, Any]:
            return {"result": [_run_task(work, int(number), umask) for number in batch["number"]]}

        numbers = data.from_items([{"number": number} for number in range(count)], override_num_blocks=count)
        with _report_lost_workers():
            for row in numbers.map_batches(run, batch_size=None).iter_rows():
                yield _decode(row["result"])

    def parts(self, work: Work, count: int) -> Iterator[dict[str, Any]]:
        import ray

        shared = ray.put(work)
        run = ray.remote(max_retries=_RETRIES, num_cpus=1)(_run_task)
        waiting = {run.remote(shared, number, self._umask): number for number in range(count)}
        results: dict[int, str] = {}
        try:
            for number in range(count):
                while number not in results:
                    done, _ = ray.wait(list(waiting), num_returns=1)
                    for one in done:
                        with _report_lost_workers():
                            results[waiting.pop(one)] = ray.get(one)
                yield _decode(results.pop(number))
        finally:
            for one in waiting:
                ray.cancel(one, force=True)


@contextmanager
def connected(address: str, *, workers: int | None = None) -> Iterator[RayEngine]:
    """The engine of a cluster within the block: started here for LOCAL, or the one at `address`.

    An existing connection of this process is used and kept.
    """
    ray = required()
    if ray.is_initialized():
        yield RayEngine()
        return
    if address == LOCAL:
        with _local_ray(ray, workers or available_cores()) as umask:
            yield RayEngine(umask)
        return
    try:
        _check_reachable(address)
        ray.init(address=address, **_QUIET)
    except ClusterError:
        raise
    except Exception as error:  # Ray raises plain exceptions here
        ray.shutdown()
        raise _unreachable(address, _first_line(error)) from None
    try:
        yield RayEngine()
    finally:
        ray.shutdown()


@contextmanager
def _local_ray(ray: Any, workers: int) -> Iterator[int]:
    """A Ray on this machine within the block; yields the umask of this process, which Ray's processes do not have.

    Its temporary folder is removed afterwards, and nothing is written elsewhere.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    folder = tempfile.mkdtemp(prefix="ray-")  # a short path: Ray's sockets lie in it, and their names must be short
    try:
        with _new_token():
            try:
                umask = os.umask(0o077)  # inherited by Ray's processes
                try:
                    _start(ray, workers, folder)
                except Exception as error:  # Ray raises plain exceptions here
                    raise ClusterError(
                        f"Ray could not be started on this machine ({_first_line(error)}): try again when it is less "
                        "busy",
                        code="ray-not-started",
                    ) from None
                finally:
                    os.umask(umask)
                yield umask
            finally:
                ray.shutdown()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _environment(**changes: str | None) -> Iterator[None]:
    """Environment variables set, or removed if None, within the block."""
    before = {name: os.environ.get(name) for name in changes}

    def set_all(values: dict[str, str | None]) -> None:
        for name, value in values.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value

    set_all(changes)
    try:
        yield
    finally:
        set_all(before)


@contextmanager
def _new_token() -> Iterator[None]:
    """A Ray started within the block requires a random token that only this run's environment has.

    By default Ray writes one to ~/.ray/auth_token, which other users may be able to read, and leaves it there.
    """
    from ray import _raylet

    def reload() -> None:
        """Ray reads its settings and its token once; versions without tokens have nothing to reload."""
        config, loader = getattr(_raylet, "Config", None), getattr(_raylet, "AuthenticationTokenLoader", None)
        if config is not None and loader is not None:
            config.initialize("")
            loader.instance().reset_cache()

    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32), "RAY_AUTH_TOKEN_PATH": None}
    try:
        with _environment(**token):
            reload()
            yield
    finally:
        reload()


def _start(ray: Any, workers: int, folder: str) -> None:
    """Start Ray here, with three attempts: a busy machine may need longer than Ray's timeout of half a minute.

    It listens on 127.0.0.1 only; by default on Linux it would listen on all interfaces.
    """
    from ray._private import ray_constants

    before = getattr(ray_constants, "ENABLE_RAY_CLUSTER", None)
    ray_constants.ENABLE_RAY_CLUSTER = False  # for this process; the variable is for Ray's processes
    options = {"num_cpus": workers, "object_store_memory": _OBJECT_STORE_BYTES, "include_dashboard": False, **_QUIET}
    try:
        for attempt in range(3):
            try:
                with _environment(**{_ALL_INTERFACES: "0"}):
                    ray.init(address=LOCAL, _temp_dir=folder, **options)  # without an address it uses RAY_ADDRESS
                return
            except Exception as error:
                if attempt == 2 or "timed out" not in str(error):
                    raise
                ray.shutdown()
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


def required() -> Any:
    """The module ray; raises with the command to install it."""
    try:
        import ray
        import ray.data
    except ImportError:
        raise ClusterError(
            "expected Ray for a cluster, got none: pip install 'synthsieve[cluster]'", code="ray-missing"
        ) from None
    return ray


def _check_reachable(address: str) -> None:
    """Raise early if there is no cluster: Ray itself would try for a long time."""
    if address == "auto":
        return
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not (colon and host and port.isdecimal() and 0 < int(port) < 65_536):
        raise ClusterError(
            f"expected --cluster as {LOCAL} or HOST:PORT, got {address!r}: Ray's default port is 6379",
            code="cluster-address",
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()
    except OSError as error:
        raise _unreachable(address, error.strerror or str(error)) from None
    if not address.startswith("ray://"):
        _check_health(address)


def _check_health(address: str) -> None:
    """Run Ray's health check as a command, because that can be stopped."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    text: dict[str, Any] = {"text": True, "encoding": "utf-8", "errors": "replace"}
    try:
        done = subprocess.run(command, capture_output=True, timeout=_HEALTH_CHECK_SECONDS, check=False, **text)
    except subprocess.TimeoutExpired:
        raise _unreachable(address, f"no answer in {_HEALTH_CHECK_SECONDS:.0f} s") from None
    if "AuthenticationError" in done.stderr:
        raise ClusterError(
            f"the Ray cluster at {address} requires an authentication token, got none or another: "
            "set RAY_AUTH_MODE and RAY_AUTH_TOKEN to those of the cluster",
            code="cluster-token",
        )
    if done.returncode:
        raise _unreachable(address, "another service answers there")


def _unreachable(address: str, why: str) -> ClusterError:
    return ClusterError(
        f"expected a Ray cluster at {address}, got none ({why}): "
        f"check the address, or use --cluster {LOCAL} for this machine alone",
        code="cluster-unreachable",
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _run_task(work: Work, number: int, umask: int | None) -> str:
    """The result of a task, or the error of ours or of the disk that it raised, as JSON."""
    if umask is not None:
        os.umask(umask)
    try:
        return json.dumps({"result": work(number)})
    except SynthsieveError as error:
        return json.dumps({"error": [type(error).__name__, str(error), error.code]})
    except OSError as error:
        return json.dumps(
            {"os_error": [error.errno, error.strerror or str(error), error.filename and str(error.filename)]}
        )


def _decode(text: str) -> dict[str, Any]:
    """The result of `_run_task`, or its error raised."""
    message = json.loads(text)
    if "error" in message:
        name, sentence, code = message["error"]
        raise getattr(errors, name, SynthsieveError)(sentence, code=code)
    if "os_error" in message:
        raise OSError(*message["os_error"])
    result: dict[str, Any] = message["result"]
    return result


@contextmanager
def _report_lost_workers() -> Iterator[None]:
    """Ray's error when it gives up on a task, as one sentence; errors within a task are not changed."""
    import ray

    try:
        yield
    except ray.exceptions.RayTaskError:
        raise
    except ray.exceptions.RayError as error:
        raise ClusterError(
            f"the cluster lost the worker of the same task several times ({_first_line(error)}): "
            "give workers more memory, or use smaller parts with --part-rows",
            code="lost-worker",
        ) from None
