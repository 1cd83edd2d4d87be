"""The tests under every condition that this machine can make: what `make test-matrix` runs.

    python -m tests.matrix                                     three runs, which cover every condition together
    python -m tests.matrix --list                              the three runs, and the names of the conditions
    python -m tests.matrix --only "ascii 3.13+sse" tests/results/export    these runs, some tests

A run is one or more conditions, joined by +. Each Python that the package supports and the machine has gets its own
virtual environment below `--folder`, which is kept for the next time. One line is printed for each run; the exit code
is 1 if one failed. Conditions that this machine cannot make are left out with a reason, which is no failure. Only the
standard library is used here: this runs before anything is installed.
"""

from __future__ import annotations

import argparse
import glob
import hashlib
import os
import platform
import pwd
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13")
EXTRAS = "text,sound,gallery,plots,hf,cluster"  # what the tests need
TELL = "import ensurepip, sys, venv; print(*sys.version_info[:2], sep='.'); print(sys.base_prefix)"
NOT_COPIED = {"build", "data", "demo", "dist", "runs", "site"}  # what commands leave in the root of the tree
# What would make one condition like another, or differ between machines.
NOT_INHERITED = re.compile(r"(LANG|LC_|TZ$|HOME$|TMPDIR|XDG_|PYTHON|PYTEST|VIRTUAL_ENV|MPL|SYNTHSIEVE|MAKE)")
# Their kernels sum in other orders, so that last digits differ.
AVX2 = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "NUMBA_CPU_NAME": "haswell",
}
SSE = {
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "NUMBA_CPU_NAME": "nehalem",
}
ASCII = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@dataclass(frozen=True)
class Condition:
    """Attributes:
    name: what is printed, and what `--only` takes; of several conditions together, their names joined by +.
    environment: variables that make it.
    arguments: more arguments of pytest.
    closed_home: the home folder cannot be written to.
    other_user: the tests run as `nobody`, in a copy of the tree.
    version: the Python it needs; any where empty.
    lacking: why this machine cannot make it; "" where it can.
    """

    name: str
    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    closed_home: bool = False
    other_user: bool = False
    version: str = ""
    lacking: Callable[[], str] = lambda: ""


def _x86() -> str:
    return "" if platform.machine().lower() in ("x86_64", "amd64") else "not an x86 processor"


def _zones() -> str:
    return "" if Path("/usr/share/zoneinfo/Asia/Tokyo").exists() else "no time zones are installed"


def _root() -> str:
    return "" if os.geteuid() == 0 else "only root can; every other condition runs as a normal user here"


CONDITIONS = (
    *(Condition(version, version=version) for version in VERSIONS),
    Condition("avx2", AVX2, lacking=_x86),
    Condition("sse", SSE, lacking=_x86),
    Condition("random-order", {"SYNTHSIEVE_TEST_ORDER": "1"}, ("-p", "tests.random_order")),
    Condition("ascii", ASCII),
    Condition("tokyo", {"TZ": "Asia/Tokyo"}, lacking=_zones),
    Condition("closed-home", closed_home=True),
    Condition("other-user", closed_home=True, other_user=True, lacking=_root),
)
KNOWN = {condition.name: condition for condition in CONDITIONS}
# The groups cover all conditions; those that exclude each other are in different groups. Each gets another Python.
GROUPS = (("avx2", "ascii", "tokyo"), ("sse", "random-order"), ("closed-home", "other-user"))


def combine(parts: Sequence[Condition]) -> Condition:
    """One condition that is all of `parts`."""
    variables = {key: value for part in parts for key, value in part.environment.items()}
    return Condition(
        "+".join(part.name for part in parts),
        variables,
        tuple(argument for part in parts for argument in part.arguments),
        closed_home=any(part.closed_home for part in parts),
        other_user=any(part.other_user for part in parts),
        version=next((part.version for part in parts if part.version), ""),
    )


def contradicting(parts: Sequence[Condition]) -> bool:
    """Whether two of them cannot hold at once: two Pythons, or two values of one variable."""
    whole, versions = combine(parts), {part.version for part in parts if part.version}
    return len(versions) > 1 or any(
        whole.environment[key] != value for part in parts for key, value in part.environment.items()
    )


def usual_runs(found: Mapping[str, Python]) -> list[str]:
    """A run for each of GROUPS; another user gets a Python that every user can run."""
    shared = [version for version in VERSIONS if version in found and found[version].shared]
    last = (shared or VERSIONS)[-1]
    versions = [*(version for version in VERSIONS if version != last), last]
    return ["+".join((version, *names)) for version, names in zip(versions, GROUPS, strict=True)]


@dataclass(frozen=True)
class Python:
    """An interpreter; `shared` if every user can run it."""

    version: str
    path: Path
    shared: bool


def pythons() -> dict[str, Python]:
    """The interpreters of this machine by version; of two alike the one that every user can run."""
    found: dict[str, Python] = {}
    for path in dict.fromkeys(path.resolve() for path in _candidates()):
        messages = subprocess.run([path, "-c", TELL], capture_output=True, encoding="utf-8", check=False)
        version, _, prefix = messages.stdout.strip().partition("\n")
        if messages.returncode or version not in VERSIONS:
            continue
        python = Python(version, path, is_open(path) and is_open(Path(prefix)))
        if version not in found or (python.shared and not found[version].shared):
            found[version] = python
    return found


def _candidates() -> Iterator[Path]:
    names = [f"python{version}" for version in VERSIONS]
    pyenv = os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")
    path = os.environ.get("PATH", "").split(os.pathsep)
    yield Path(sys.executable)
    for folder in (*path, "/usr/bin", "/usr/local/bin", *sorted(glob.glob(f"{pyenv}/versions/3.*/bin"))):
        if Path(folder).name != "shims":  # of pyenv: they stand for any version
            yield from (Path(folder, name) for name in names if os.access(Path(folder, name), os.X_OK))


def is_open(path: Path) -> bool:
    """Whether every user can read and run what lies there."""
    wanted = stat.S_IROTH | stat.S_IXOTH
    return path.stat().st_mode & wanted == wanted and all(up.stat().st_mode & stat.S_IXOTH for up in path.parents)


def installed(python: Python, folder: Path) -> Path:
    """The interpreter of an environment with the package and its tools; made once for these requirements.

    The package is that of this tree: where another tree made the environment, only the link to it is replaced.
    """
    venv = folder / f"venv-{python.version}"
    wanted = requirements_stamp()
    stamp, tree, inner = venv / ".installed", venv / ".tree", venv / "bin" / "python"
    pip = [inner, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if _text_in(stamp) != wanted or inner.resolve() != python.path:
        shutil.rmtree(venv, ignore_errors=True)
        print(f"installing for Python {python.version}", file=sys.stderr, flush=True)
        subprocess.run([python.path, "-m", "venv", venv], check=True)
        for what in (["pip>=25.1"], ["--group", "dev", "-e", f".[{EXTRAS}]"]):  # older pips know no groups
            subprocess.run([*pip, "-c", "constraints.txt", *what], check=True, cwd=ROOT)
        tree.write_text(str(ROOT), encoding="utf-8")
        stamp.write_text(wanted, encoding="utf-8")
    elif _text_in(tree) != str(ROOT):
        subprocess.run([*pip, "--no-deps", "-e", "."], check=True, cwd=ROOT)
        tree.write_text(str(ROOT), encoding="utf-8")
    return inner


def requirements_stamp() -> str:
    """What an environment depends on: the same in two trees of the same requirements."""
    stamp = hashlib.sha256()
    for name in ("pyproject.toml", "constraints.txt"):
        stamp.update((ROOT / name).read_bytes())
    return stamp.hexdigest()


def _text_in(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


@dataclass(frozen=True)
class Outcome:
    """What became of a condition: `counts` of tests by their result, and what is wrong, "" if nothing is."""

    counts: Mapping[str, int]
    wrong: str


def outcome(code: int, output: str, left: Sequence[str] = ()) -> Outcome:
    """Read pytest's exit code, its last lines, and the names of what it left in the temporary folder."""
    last = output.strip().rpartition("\n")[2]
    messages = re.findall(r"(\d+) (passed|failed|skipped|error)", last) if re.search(r" in [\d.]+s", last) else []
    counts = {name: int(count) for count, name in messages}
    wrong = "" if code == 0 else f"pytest ended with {code}"
    ours = [name for name in left if name.startswith("synthsieve")]
    if ours and not wrong:
        wrong = f"left in the temporary folder: {', '.join(sorted(ours))}"
    return Outcome(counts, wrong)


def run(condition: Condition, python: Path, log: Path, *, workers: int, tests: Sequence[str]) -> Outcome:
    """Run the tests once; what they print goes to `log`."""
    with tempfile.TemporaryDirectory(prefix="m-") as name:  # short: the sockets of Ray lie in it
        place, tree = Path(name), ROOT
        place.chmod(0o755)
        home, temporary = place / "home", place / "tmp"
        home.mkdir(mode=0o500 if condition.closed_home else 0o700)
        temporary.mkdir()
        user: dict[str, object] = {}
        if condition.other_user:
            nobody = pwd.getpwnam("nobody")
            tree = place / "tree"
            _copy(tree)
            for path in (temporary, tree, *tree.rglob("*")):
                os.chown(path, nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)
            home.chmod(0o555)
            user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        elif condition.closed_home and os.geteuid() == 0:
            home = Path("/dev/null")  # root may write into any folder, but that is none
        environment = {key: value for key, value in os.environ.items() if not NOT_INHERITED.match(key)}
        environment |= {"HOME": str(home), "TMPDIR": str(temporary), "LANG": "C.UTF-8", "PYTHONPATH": str(tree / "src")}
        environment |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", **condition.environment}
        command = [python, "-m", "pytest", "-q", "-n", str(workers), "-p", "no:cacheprovider", *condition.arguments]
        with log.open("wb") as stream:
            both = {"stdout": stream, "stderr": subprocess.STDOUT}
            ended = subprocess.run([*command, *tests], cwd=tree, env=environment, check=False, **both, **user)
        left = [path.name for path in temporary.iterdir()]
        return outcome(ended.returncode, log.read_text(encoding="utf-8", errors="replace"), left)


def _copy(to: Path) -> None:
    """The tree without what is hidden, and without what commands left in it."""
    to.mkdir()
    for path in sorted(ROOT.iterdir()):
        if path.is_file():
            shutil.copy(path, to / path.name)
        elif (path.name not in NOT_COPIED and not path.name.startswith(".")) or path.name == ".ci":
            shutil.copytree(path, to / path.name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))


def why_not(condition: Condition, python: Python | None, folder: Path) -> str:
    """Why a single condition cannot be made here, "" if it can."""
    if python is None:
        return f"no Python {condition.version or ' or '.join(VERSIONS)} with venv on this machine"
    if condition.other_user and not condition.lacking():
        if not python.shared:
            return f"other users cannot run {python.path}"
        if not is_open(folder) or not is_open(ROOT):
            return f"other users cannot read {folder if not is_open(folder) else ROOT}: choose another --folder or tree"
    return condition.lacking()


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description="Run the tests under many conditions.")
    parser.add_argument("--folder", type=Path, default=ROOT / ".matrix", help="where environments and logs are kept")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="testing processes")
    parser.add_argument("--only", default="", help="conditions, joined by + to a run, with spaces between runs")
    parser.add_argument("--list", action="store_true", help="print the usual runs and the names of all conditions")
    parser.add_argument("tests", nargs="*", help="files or folders of tests; all where none is named")
    requested = parser.parse_args(words)
    found = pythons()
    if requested.list:
        print(*usual_runs(found), *KNOWN, sep="\n")
        return 0
    runs = requested.only.split() or usual_runs(found)
    for name in runs:
        unknown = [part for part in name.split("+") if part not in KNOWN]
        if unknown:
            parser.error(f"no condition is called {unknown[0]}: choose among {', '.join(KNOWN)}")
        if contradicting([KNOWN[part] for part in name.split("+")]):
            parser.error(f"{name} cannot hold at once: run one after the other, with a space instead of the +")
    folder = requested.folder.resolve()
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    usual = next((python for python in found.values() if python.shared), next(iter(found.values()), None))
    width, failed = max(map(len, runs)), 0
    for name in runs:
        parts = [KNOWN[part] for part in name.split("+")]
        python = found.get(combine(parts).version, usual)
        reasons = {
            part.name: why_not(part, found.get(part.version) if part.version else python, folder) for part in parts
        }
        made = combine([part for part in parts if not reasons[part.name]])
        lacking = "; ".join(
            f"{part}: {reason}" if len(parts) > 1 else reason for part, reason in reasons.items() if reason
        )
        if not made.name or python is None:
            print(f"{name:<{width}} skipped: {lacking}", flush=True)
            continue
        log, started = folder / "logs" / f"{name}.log", time.monotonic()
        try:
            inner = installed(python, folder)
        except subprocess.CalledProcessError as error:
            print(f"{name:<{width}} failed: installing for Python {python.version} ended with {error.returncode}")
            failed += 1
            continue
        done = run(made, inner, log, workers=requested.workers, tests=requested.tests)
        counts = ", ".join(f"{done.counts.get(name, 0)} {name}" for name in ("passed", "failed", "skipped"))
        seconds, wrong = time.monotonic() - started, f"; {done.wrong}: see {log}" if done.wrong else ""
        lacking = f"; left out {lacking}" if lacking else ""
        print(f"{name:<{width}} {counts}, {seconds:.0f} s, Python {python.version}{wrong}{lacking}", flush=True)
        failed += bool(done.wrong)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
