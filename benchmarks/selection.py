"""Selection against apricot-select, submodlib-py and kmedoids: same points, one process a method, ratios in one run.

    python benchmarks/selection.py                 everything, a quarter of an hour on two cores
    python benchmarks/selection.py --quick         N = 2,000 and 10,000 only
    python benchmarks/selection.py --only ours     without the peers

The peers live in an environment of their own (.venv-bench), which this script makes. Wall time leaves out imports and
compilation; memory is the peak above what the process held after its imports, the points themselves included.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
BENCH_VENV = HERE.parent / ".venv-bench"
PEERS = ("apricot lazy", "submodlib lazy", "kmedoids FasterPAM")
OURS = ("exact", "fast", "refine")
GOALS = (
    ("`exact`, 20,000: L identical to apricot lazy's", "exact_l", lambda v: abs(v - 1.0) < 1e-6),
    ("`exact`, 20,000: 12x apricot's speed", "exact_vs_apricot", lambda v: v >= 12),
    ("`exact`, 20,000: 30x submodlib's speed", "exact_vs_submodlib", lambda v: v >= 30),
    ("`fast`, 20,000: L at most 1.002 x exact", "fast_l", lambda v: v <= 1.002),
    ("`fast`, 20,000: 30x apricot's speed", "fast_vs_apricot", lambda v: v >= 30),
    ("`fast`, 20,000: 75x submodlib's speed", "fast_vs_submodlib", lambda v: v >= 75),
    ("`refine`, 10,000: L at most 0.99 x apricot lazy's", "refine_l", lambda v: v <= 0.99),
    ("`refine`, 10,000: faster than apricot lazy", "refine_vs_apricot", lambda v: v >= 1),
    ("memory: at most 1 x (50 MB + 200 bytes a point), worst case", "memory", lambda v: v <= 1),
    ("1,000,000 in 10 classes: at most 3 x apricot's 20,000", "million_in_ten", lambda v: v <= 3),
    ("1,000,000 in one class: at most 8 x apricot's 20,000", "million_in_one", lambda v: v <= 8),
    ("1,000,000: under 1 GB", "million_gigabytes", lambda v: v < 1),
    ("growth of `fast` from 100,000 to 1,000,000: at most 14", "growth", lambda v: v <= 14),
)


def gradients(n: int) -> np.ndarray:
    """Gradients of class 0, float32 (n, 10): softmax - one_hot(0) of skewed normal logits."""
    logits = np.random.default_rng(0).normal(size=(n, 10)) * 1.5 + np.linspace(-0.5, 0.5, 10)
    logits[:, 0] += 2.0
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[:, 0] -= 1.0
    return p.astype(np.float32)


def bound(points: np.ndarray, picks: np.ndarray) -> float:
    """L: everybody's distance to the nearest pick."""
    from scipy.spatial import cKDTree

    return float(cKDTree(points[picks].astype(np.float64)).query(points.astype(np.float64))[0].sum())


# --- inside a worker -------------------------------------------------------------------------------------------------


def status(name: str) -> int:
    """A figure of this process from the kernel, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(name)


def runner(method: str):
    """A function (points, k, num_classes) -> (picks, L or None), with everything imported and compiled."""
    if method in ("exact", "fast", "refine", "random"):
        from synthsieve.selection.coreset import compile_kernels
        from synthsieve.selection.select import select

        compile_kernels("float32", method == "refine")

        def ours(points, k, num_classes):
            labels = np.arange(len(points)) % num_classes
            way = "auto" if method == "refine" else method
            chosen = select(gradients=points, labels=labels, budget=k, method=way, refine=method == "refine")
            return chosen.indices, chosen.gradient_bound

        return ours
    from sklearn.metrics import pairwise_distances

    if method == "apricot lazy":
        from apricot import FacilityLocationSelection

        def apricot(points, k, num_classes):
            distances = pairwise_distances(points.astype(np.float64))
            similarity = np.subtract(distances.max(), distances, out=distances)
            chosen = FacilityLocationSelection(k, metric="precomputed", optimizer="lazy").fit(similarity)
            return np.asarray(chosen.ranking), None

        apricot(gradients(200), 20, 1)
        return apricot
    if method == "submodlib lazy":
        from submodlib import FacilityLocationFunction

        def submodlib(points, k, num_classes):
            distances = pairwise_distances(points.astype(np.float64))
            function = FacilityLocationFunction(n=len(points), mode="dense", sijs=distances.max() - distances,
                                                separate_rep=False)  # fmt: skip
            picks = function.maximize(budget=k, optimizer="LazyGreedy", stopIfZeroGain=False, stopIfNegativeGain=False,
                                      verbose=False, show_progress=False)  # fmt: skip
            return np.array([pick for pick, _ in picks]), None

        return submodlib
    import kmedoids

    def faster_pam(points, k, num_classes):
        distances = pairwise_distances(points.astype(np.float64)).astype(np.float32)
        found = kmedoids.fasterpam(distances, k, random_state=0, n_cpu=2)
        return np.asarray(found.medoids), None

    return faster_pam


def work(method: str, path: str, num_classes: int) -> None:
    """Run one method once and print its figures as JSON."""
    run = runner(method)
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    points = np.load(path)
    started = time.perf_counter()
    picks, guaranteed = run(points, len(points) // 10, num_classes)
    seconds = time.perf_counter() - started
    peak = status("VmHWM") - before
    length = guaranteed if num_classes > 1 else bound(points, picks)
    print(json.dumps({"seconds": seconds, "peak_bytes": peak, "L": length, "picks": len(picks)}))


# --- the run as a whole ----------------------------------------------------------------------------------------------


def bench_python() -> str:
    """The interpreter of the peers' environment, made on first use."""
    python = BENCH_VENV / "bin" / "python"
    if not python.exists():
        print("making .venv-bench for the peers (once)", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(BENCH_VENV)], check=True)
        (BENCH_VENV / ".gitignore").write_text("*\n")
        extras = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        wanted = [*extras["bench"], "scikit-learn", "scipy"]
        constraints = str(HERE.parent / "constraints.txt")
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "-c", constraints, *wanted], check=True)
    return str(python)


def measure(method: str, n: int, num_classes: int, folder: Path) -> dict:
    path = folder / f"points-{n}.npy"
    if not path.exists():
        np.save(path, gradients(n))
    python = bench_python() if method in PEERS else sys.executable
    command = [python, __file__, "--worker", method, "--points", str(path), "--classes", str(num_classes)]
    done = subprocess.run(command, capture_output=True, text=True)
    row = {"method": method, "n": n, "classes": num_classes}
    if done.returncode:
        return {**row, "failed": (done.stderr.strip().splitlines() or ["no word"])[-1]}
    return {**row, **json.loads(done.stdout.strip().splitlines()[-1])}


def plan(quick: bool, only: str) -> list[tuple[str, int, int]]:
    small = [(method, n, 1) for n in (2_000, 10_000, 20_000) for method in (*PEERS, *OURS, "random")]
    jobs = [job for job in small if job[0] != "kmedoids FasterPAM" or job[1] <= 10_000]
    large = [("fast", 100_000, 1), ("fast", 100_000, 10), ("fast", 1_000_000, 1), ("fast", 1_000_000, 10)]
    jobs = [job for job in jobs if job[1] <= 10_000] if quick else jobs + large
    return [job for job in jobs if only == "all" or (job[0] in PEERS) == (only == "peers")]


def ratios(rows: list[dict]) -> dict[str, float]:
    """The figures of the goals, as far as this run has them."""
    seen = {(row["method"], row["n"], row["classes"]): row for row in rows if "failed" not in row}

    def ratio(figure: str, above: tuple, below: tuple) -> float | None:
        return seen[above][figure] / seen[below][figure] if above in seen and below in seen else None

    exact, fast, refine = ("exact", 20_000, 1), ("fast", 20_000, 1), ("refine", 10_000, 1)
    apricot, submodlib = ("apricot lazy", 20_000, 1), ("submodlib lazy", 20_000, 1)
    million = ("fast", 1_000_000, 1)
    ours = [row for row in rows if row["method"] in OURS and "failed" not in row]
    found = {
        "exact_l": ratio("L", exact, apricot),
        "exact_vs_apricot": ratio("seconds", apricot, exact),
        "exact_vs_submodlib": ratio("seconds", submodlib, exact),
        "fast_l": ratio("L", fast, exact),
        "fast_vs_apricot": ratio("seconds", apricot, fast),
        "fast_vs_submodlib": ratio("seconds", submodlib, fast),
        "refine_l": ratio("L", refine, ("apricot lazy", 10_000, 1)),
        "refine_vs_apricot": ratio("seconds", ("apricot lazy", 10_000, 1), refine),
        "memory": max((row["peak_bytes"] / (50e6 + 200 * row["n"]) for row in ours), default=None),
        "million_in_ten": ratio("seconds", ("fast", 1_000_000, 10), apricot),
        "million_in_one": ratio("seconds", million, apricot),
        "million_gigabytes": seen[million]["peak_bytes"] / 1e9 if million in seen else None,
        "growth": ratio("seconds", million, ("fast", 100_000, 1)),
    }
    return {name: value for name, value in found.items() if value is not None}


def table(rows: list[dict], figures: dict[str, float]) -> str:
    lines = ["| method | N | classes | seconds | peak MB | L |", "|---|---|---|---|---|---|"]
    for row in rows:
        if "failed" in row:
            lines.append(f"| {row['method']} | {row['n']:,} | {row['classes']} | failed: {row['failed']} | | |")
        else:
            lines.append(
                f"| {row['method']} | {row['n']:,} | {row['classes']} | {row['seconds']:.2f} | "
                f"{row['peak_bytes'] / 1e6:,.0f} | {row['L']:.2f} |"
            )
    lines += ["", "| goal | reached | |", "|---|---|---|"]
    for words, name, met in GOALS:
        if name in figures:
            lines.append(f"| {words} | {figures[name]:.4g} | {'yes' if met(figures[name]) else 'no'} |")
    return "\n".join(lines)


def write_results(rows: list[dict]) -> None:
    machine = {
        "cores": len(os.sched_getaffinity(0)),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "load_before": LOAD_BEFORE,
    }
    figures = ratios(rows)
    (HERE / "selection.json").write_text(
        json.dumps({"machine": machine, "rows": rows, "ratios": figures}, indent=2) + "\n"
    )
    readme = HERE / "README.md"
    start, stop = "<!-- selection: begin -->", "<!-- selection: end -->"
    head, rest = readme.read_text().split(start)
    _, tail = rest.split(stop)
    note = f"{machine['cores']} cores, load {LOAD_BEFORE:.1f} before the run."
    readme.write_text(f"{head}{start}\n{note}\n\n{table(rows, figures)}\n{stop}{tail}")
    print(table(rows, figures))


LOAD_BEFORE = os.getloadavg()[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=("all", "ours", "peers"), default="all")
    parser.add_argument("--dry", action="store_true", help="print, but leave the files as they are")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--points", help=argparse.SUPPRESS)
    parser.add_argument("--classes", type=int, default=1, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments.worker, arguments.points, arguments.classes)
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for job in plan(arguments.quick, arguments.only):
            rows.append(measure(*job, Path(folder)))
            print(rows[-1], flush=True)
    if arguments.dry:
        print(table(rows, ratios(rows)))
    else:
        write_results(rows)


if __name__ == "__main__":
    main()
