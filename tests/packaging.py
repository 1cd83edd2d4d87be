"""Try what users install: `make package` and `make test-oldest`.

python -m tests.packaging dist --folder F     the wheel in dist/, without extras, on each Python that is here
python -m tests.packaging --oldest --folder F TESTS...     tests with the lowest versions that pyproject.toml allows

Only the standard library is used here.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

from tests.matrix import ROOT, pythons, requirements_stamp

STEPS = ("--set", "training.steps=5", "--set", "augmentation.steps=2", "--set", "comparison.baselines=false")
RUN = ("run", "digits", "-o", "out", "--quick", "--workers", "1", *STEPS)
IN_SDIST = ("README.md", "CHANGELOG.md", "LICENSE", "SECURITY.md", "CONTRIBUTING.md", "Makefile", "mkdocs.yml")
IN_SDIST += (
    "constraints.txt",
    "docs/tutorial.md",
    "docs/hooks/reference.py",
    "examples/table.py",
    "tests/packaging.py",
)
IN_SDIST += ("tests/snapshots/help/run.txt", "benchmarks/README.md", "src/synthsieve/presets/table-minutes.toml")
TEST_TOOLS = ("pytest>=8", "hypothesis>=6.100", "pandas>=2.2", "mpmath>=1.3", "tokenizers>=0.20")


def lowest_versions() -> list[str]:
    """The dependencies of the package at their lower bounds: `numpy>=1.26` -> `numpy==1.26.*`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = [re.match(r"([\w.-]+)>=([\d.]+)", line) for line in project["dependencies"]]
    assert all(found), project["dependencies"]
    return [f"{one[1]}=={one[2]}.*" for one in found if one]


def missing_in_sdist(path: Path) -> list[str]:
    """Files that the sdist should have and has not."""
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    return [name for name in IN_SDIST if name not in names]


def environment(python: Path, folder: Path, *requirements: str) -> Path:
    """The interpreter of an environment with `requirements` only; kept until pyproject.toml or constraints change."""
    stamp, wanted = folder / ".installed", "\n".join((str(python), requirements_stamp(), *requirements))
    inner = folder / "bin" / "python"
    if not (inner.exists() and stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted):
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([python, "-m", "venv", folder], check=True)
        install(inner, *requirements)
        stamp.write_text(wanted, encoding="utf-8")
    return inner


def install(python: Path, *words: str) -> None:
    """Install with pip; without compiling, which takes longer than everything else."""
    pip = [python, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
    subprocess.run([*pip, *words], check=True)


def try_wheel(wheel: Path, folder: Path) -> int:
    """Install the wheel on each Python, train and predict a little with it; how many failed."""
    failed = 0
    for version, python in pythons().items():
        constraints = str(ROOT / "constraints.txt")
        inner = environment(python.path, folder / f"venv-{version}", "-c", constraints, str(wheel))
        install(inner, "--no-deps", "--force-reinstall", str(wheel))  # where the environment was kept
        work = folder / f"work-{version}"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        for words in (("doctor",), RUN, ("sample", "out", "--per-class", "1"), ("evaluate", "out")):
            command = [inner, "-I", "-m", "synthsieve", *words]
            done = subprocess.run(command, cwd=work, capture_output=True, text=True, encoding="utf-8")
            if done.returncode:
                print(f"Python {version}: synthsieve {' '.join(words)}: {done.stderr[-2000:]}")
                failed += 1
                break
        else:
            print(f"Python {version}: {wheel.name} works", flush=True)
    return failed


def try_oldest(folder: Path, tests: Sequence[str]) -> int:
    """Run tests with the lowest versions on the lowest Python; the exit code of pytest."""
    version, python = min(pythons().items())
    versions = lowest_versions()
    print(f"Python {version}: {' '.join(versions)}", flush=True)
    inner = environment(python.path, folder / f"venv-{version}", *versions, *TEST_TOOLS)
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [inner, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    return subprocess.run(command, cwd=ROOT, env=variables).returncode


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", help="the folder of the wheel, or tests with --oldest")
    parser.add_argument("--folder", type=Path, required=True, help="where environments are kept")
    parser.add_argument("--oldest", action="store_true", help="tests with the lowest versions")
    given = parser.parse_args(words)
    folder = given.folder.resolve()
    if given.oldest:
        return try_oldest(folder, given.paths)
    dist = Path(given.paths[0])
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    missing = missing_in_sdist(sdist)
    if missing:
        print(f"{sdist.name} has no {', '.join(missing)}")
        return 1
    return min(1, try_wheel(wheel.resolve(), folder))


if __name__ == "__main__":
    sys.exit(main())
