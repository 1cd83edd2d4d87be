"""Ray as the engine: the same bytes for any number of workers and after a lost one; errors."""

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from functools import partial

import pytest

from synthsieve.cli.app import main
from synthsieve.distributed import ray_engine
from synthsieve.errors import ClusterError, SelectionError
from tests.distributed.example_rows import contents, rows, select_folder, write_shards
from tests.errors import raises

pytest.importorskip("ray")


@pytest.fixture
def alone():
    """No cluster before, none after."""
    import ray

    ray.shutdown()
    yield
    ray.shutdown()


def run(*arguments):
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as ended:
        return ended.code or 0
    return 0


def closed_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.mark.parametrize("address", ["nowhere", "here:port", "127.0.0.1:99999"])
def test_invalid_address(address):
    with raises(ClusterError, "cluster-address"), ray_engine.connected(address):
        pass


def test_closed_port_is_reported_early_and_nothing_is_written(tmp_path, capsys, monkeypatch):
    source = write_shards(tmp_path / "in", *rows(300))
    monkeypatch.setattr("ray.init", lambda **_: pytest.fail("Ray knocks for a long time"))
    monkeypatch.setattr(ray_engine, "_check_health", lambda _: pytest.fail("nobody is there to ask"))
    assert run("select", source, "-o", tmp_path / "out", "--cluster", f"127.0.0.1:{closed_port()}") == 2
    err = capsys.readouterr().err
    assert "127.0.0.1" in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_ray_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with raises(ClusterError, "ray-missing"):
        ray_engine.required()


def test_ray_start_times_out(alone, monkeypatch):
    import ray

    monkeypatch.setattr(ray, "init", lambda **_: (_ for _ in ()).throw(Exception("timed out during startup.")))
    with raises(ClusterError, "ray-not-started"), ray_engine.connected("local"):
        pass


def test_local_ray_is_new_and_listens_on_loopback(alone, monkeypatch):
    import ray
    from ray import _raylet
    from ray._private import ray_constants, services

    given = {}
    before = ray_constants.ENABLE_RAY_CLUSTER

    def init(**arguments):
        umask = os.umask(0)
        os.umask(umask)
        given.update(arguments, node_address=services.get_node_ip_address(), environment=dict(os.environ), umask=umask)
        given["mode"] = _raylet.get_authentication_mode()

    monkeypatch.setenv("RAY_ADDRESS", "192.0.2.1:6379")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "the user's own")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "/somewhere")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setattr(ray, "init", init)
    with ray_engine.connected("local", workers=1):
        pass
    assert given["address"] == "local"
    assert given["node_address"] == "127.0.0.1"
    assert given["environment"]["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "0"
    assert given["environment"]["RAY_AUTH_MODE"] == "token"
    assert len(given["environment"]["RAY_AUTH_TOKEN"]) == 64
    assert "RAY_AUTH_TOKEN_PATH" not in given["environment"]
    assert given["mode"] == _raylet.AuthenticationMode.TOKEN  # Ray itself has noticed
    assert given["umask"] == 0o077
    assert os.environ["RAY_AUTH_TOKEN"] == "the user's own"
    assert os.environ["RAY_AUTH_TOKEN_PATH"] == "/somewhere"
    assert os.environ["RAY_AUTH_MODE"] == "disabled"
    assert before == ray_constants.ENABLE_RAY_CLUSTER
    assert "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER" not in os.environ


@pytest.mark.parametrize("option", [["--dry-run"], ["--curvature", "softmax"], ["--threads", "2"]])
def test_options_not_supported_on_a_cluster(tmp_path, capsys, option):
    source = write_shards(tmp_path / "in", *rows(300))
    assert run("select", source, "-o", tmp_path / "out", "--cluster", "local", *option) == 2
    assert option[0] in capsys.readouterr().err


def test_another_service_at_the_address(monkeypatch):
    monkeypatch.setattr(ray_engine, "_HEALTH_CHECK_SECONDS", 1.0)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        with raises(ClusterError, "cluster-unreachable"), ray_engine.connected(address):
            pass


@pytest.mark.slow
def test_local_ray_leaves_no_token_in_the_home_folder(tmp_path):
    """In a process of its own: HOME is read when Ray starts."""
    home, source = tmp_path / "home", write_shards(tmp_path / "in", *rows(300))
    home.mkdir()
    command = [sys.executable, "-m", "synthsieve", "select", source, "-o", tmp_path / "out", "--cluster", "local"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment["HOME"] = str(home)
    done = subprocess.run(
        [*map(str, command), "--workers", "1", "--quiet"],
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not list(home.rglob("auth_token"))
    assert not (home / ".ray").exists()
    umask = os.umask(0)
    os.umask(umask)
    written = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in written} == {0o666 & ~umask}  # not Ray's narrow one


@pytest.mark.slow
def test_local_ray_requires_its_token(alone):
    ask = (
        "import sys; from ray._raylet import GcsClient; print(len(GcsClient(address=sys.argv[1]).get_all_node_info()))"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    with ray_engine.connected("local", workers=1):
        import ray

        command = [sys.executable, "-c", ask, ray.get_runtime_context().gcs_address]
        ours = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": os.environ["RAY_AUTH_TOKEN"]}
        for given in (ours, {**ours, "RAY_AUTH_TOKEN": "0" * 64}, {"RAY_AUTH_MODE": "disabled"}):
            done = subprocess.run(
                command, env={**clean, **given}, capture_output=True, text=True, encoding="utf-8", check=False
            )
            assert (done.returncode == 0) == (given is ours), done.stderr
            assert given is ours or "AuthenticationError" in done.stderr


@pytest.mark.slow
def test_output_does_not_depend_on_the_number_of_workers(tmp_path, alone, capsys):
    source = write_shards(tmp_path / "in", *rows(40_000, decimals=6), files=4, group=2_500)
    select_folder(source, tmp_path / "here", keep_fraction=0.7, part_rows=4_000)
    for workers in (1, 2, 4):
        out = tmp_path / str(workers)
        given = ["--keep-fraction", "0.7", "--part-rows", "4000", "--workers", workers, "--quiet"]
        assert run("select", source, "-o", out, "--cluster", "local", *given) == 0
        assert contents(out) == contents(tmp_path / "here")
        assert sorted(path.name for path in out.iterdir()) == ["selected", "selection", "summary.json"]


def dies_once(folder, number):
    """Work whose third piece takes its worker with it, the first time."""
    mark = folder / "died"
    if number == 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"square": number * number, "from": os.getpid()}


def refuses(number):
    if number == 1:
        raise SelectionError("not this one", code="refused")
    if number == 2:
        raise OSError(28, "No space left on device", "/somewhere")
    return {}


@pytest.mark.slow
def test_lost_worker_and_errors_of_tasks(tmp_path, alone):
    import ray

    with ray_engine.connected("local", workers=2) as engine:
        assert [node["NodeManagerAddress"] for node in ray.nodes()] == ["127.0.0.1"]
        for name in ("blocks", "parts"):
            folder = tmp_path / name
            folder.mkdir()
            found = list(getattr(engine, name)(partial(dies_once, folder), 6))
            assert (folder / "died").exists()
            assert [result["square"] for result in found] == [0, 1, 4, 9, 16, 25]
            assert os.getpid() not in {result["from"] for result in found}
            with raises(SelectionError, "refused"):
                list(getattr(engine, name)(refuses, 2))
            with pytest.raises(OSError, match="No space left") as caught:
                list(getattr(engine, name)(partial(_second, refuses), 1))
            assert caught.value.filename == "/somewhere"


def _second(work, number):
    return work(number + 2)


@pytest.fixture
def two_nodes(alone):
    """A cluster of two nodes with a worker each, this process connected to the first; and the second."""
    import ray
    from ray.cluster_utils import Cluster

    small = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
    second = cluster.add_node(**small)
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        assert ray.cluster_resources()["CPU"] == 2
        yield cluster, second
    finally:
        ray.shutdown()
        cluster.shutdown()


def kill_when(ready, cluster, node):
    """Kill the node in the background as soon as `ready()`."""

    def wait():
        while not ready():
            time.sleep(0.02)
        cluster.remove_node(node, allow_graceful=False)

    killer = threading.Thread(target=wait, daemon=True)
    killer.start()
    return killer


def takes_a_while(folder, number):
    import ray

    (folder / f"{number} {ray.get_runtime_context().get_node_id()} {os.getpid()}").touch()
    time.sleep(1.0)
    return {"square": number * number}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["blocks", "parts"])
def test_tasks_of_a_killed_node_run_again(tmp_path, two_nodes, name):
    cluster, second = two_nodes

    def is_at_work():
        return any(path.name.split()[1] == second.node_id for path in tmp_path.iterdir())

    killer = kill_when(is_at_work, cluster, second)
    found = list(getattr(ray_engine.RayEngine(), name)(partial(takes_a_while, tmp_path), 12))
    assert [result["square"] for result in found] == [number * number for number in range(12)]
    killer.join(30)
    begun = [path.name.split()[0] for path in tmp_path.iterdir()]
    assert len(begun) > len(set(begun)) == 12


@pytest.mark.slow
def test_node_killed_during_a_selection(tmp_path, two_nodes):
    source = write_shards(tmp_path / "in", *rows(60_000, decimals=6), files=4, group=2_500)
    select_folder(source, tmp_path / "here", part_rows=2_500)
    parts = tmp_path / "out" / ".synthsieve-work" / "parts"
    killer = kill_when(lambda: any(parts.glob("*/gains.npy")), *two_nodes)
    select_folder(source, tmp_path / "out", part_rows=2_500, engine=ray_engine.RayEngine())
    killer.join(30)
    assert not killer.is_alive()
    assert contents(tmp_path / "out") == contents(tmp_path / "here")
