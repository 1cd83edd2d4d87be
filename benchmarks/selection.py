"""Selection against apricot-select, submodlib-py, kmedoids and SemHash: same points, ratios in one run, a process each.

    python benchmarks/selection.py                 ten dimensions, five minutes of one core
    python benchmarks/selection.py --high          embeddings of 384 and 768 numbers, a quarter of an hour
    python benchmarks/selection.py --quick         the smallest sizes only
    python benchmarks/selection.py --only ours     without the peers
    python benchmarks/selection.py --rows FILE     keep measured rows in FILE, and continue an interrupted run from it

Every method runs on one thread. The peers live in an environment of their own (.venv-bench), which this script makes.
Times leave out imports and compilation; memory is the peak above what the process held after its imports, the points
themselves included.
"""

from __future__ import annotations

import argparse
import json
import math
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
SEMHASH = "SemHash representatives"  # among embeddings only
FOLDS, MISSED = 50, 0.1  # of the fold scheme
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
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


HIGH_GOALS = (
    ("`exact`, 20,000 x 384: L identical to apricot lazy's", "exact_l", lambda v: abs(v - 1.0) < 1e-6),
    ("`exact`, 20,000 x 384: 8x apricot's speed", "exact_vs_apricot", lambda v: v >= 8),
    ("`exact`, 20,000 x 384: at most 6x the product of all pairs", "exact_vs_product", lambda v: v <= 6),
    ("`exact`, 20,000 x 384: under 0.5 GB", "exact_gigabytes", lambda v: v < 0.5),
    ("`fast`, 20,000 x 384: L at most 1.02 x exact", "fast_l", lambda v: v <= 1.02),
    ("1,000,000 x 384 in one class: at most 15 x apricot's 20,000", "million_vs_apricot", lambda v: v <= 15),
    ("1,000,000 x 384 in one class: under 2 GB", "million_gigabytes", lambda v: v < 2),
    ("growth of `fast` from 100,000 to 1,000,000: at most 14", "growth", lambda v: v <= 14),
)


def embeddings(n: int, dims: int) -> np.ndarray:
    """Clustered unit vectors, float32 (n, dims): n / 50 normal centres, noise of half their size."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(n // 50, dims)).astype(np.float32)
    points = np.empty((n, dims), dtype=np.float32)
    for start in range(0, n, 10_000):
        part = points[start : start + 10_000]
        part[...] = centres[rng.integers(0, len(centres), len(part))] + 0.5 * rng.normal(size=part.shape)
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return points


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
    if points.shape[1] > 10:
        from synthsieve.selection.reference import nearest_rows

        return float(nearest_rows(points, points[picks])[1].sum())
    from scipy.spatial import cKDTree

    return float(cKDTree(points[picks].astype(np.float64)).query(points.astype(np.float64))[0].sum())


# --- inside a worker -------------------------------------------------------------------------------------------------


def status(name: str) -> int:
    """A figure of this process from the kernel, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(name)


def runner(method: str, dims: int):
    """A function (points, k, num_classes) -> (picks, L or None), with everything imported and compiled."""
    if method == "random":
        return lambda points, k, num_classes: (np.random.default_rng(0).permutation(len(points))[:k], None)
    if method in OURS:
        from synthsieve.selection.coreset import compile_kernels
        from synthsieve.selection.select import select

        compile_kernels("float32", method == "refine", dense=dims > 10)

        def ours(points, k, num_classes):
            if points.shape[1] > 10:
                chosen = select(embeddings=points, budget=k, method=method, n_jobs=1)
                return chosen.indices, chosen.gradient_bound
            labels = np.arange(len(points)) % num_classes
            way = "auto" if method == "refine" else method
            chosen = select(gradients=points, labels=labels, budget=k, method=way, refine=method == "refine", n_jobs=1)
            return chosen.indices, chosen.gradient_bound

        return ours
    if method == "product of all pairs":

        def product(points, k, num_classes):
            for start in range(0, len(points), 1_000):
                points[start : start + 1_000] @ points.T
            return np.arange(k), None

        return product
    if method == "folds":
        return folds
    if method == SEMHASH:
        from semhash import SemHash

        def representatives(points, k, num_classes):
            records = [str(row) for row in range(len(points))]
            index = SemHash.from_embeddings(points, records, model=None)
            found = index.self_find_representative(selection_size=k, candidate_limit=k)  # its default up to 10,000 rows
            return np.array([int(row) for row in found.selected]), None

        return representatives
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
        found = kmedoids.fasterpam(distances, k, random_state=0, n_cpu=1)
        return np.asarray(found.medoids), None

    return faster_pam


def folds(points, k, num_classes):
    """InstructLab's scheme as described: fifty random folds, in each a stochastic greedy on its similarities."""
    rng, picks = np.random.default_rng(0), []
    for fold in np.array_split(rng.permutation(len(points)), FOLDS):
        similarity = points[fold] @ points[fold].T
        count = round(k * len(fold) / len(points))
        tried, reach, left = (
            math.ceil(len(fold) / count * math.log(1 / MISSED)),
            np.full(len(fold), -1.0),
            set(range(len(fold))),
        )
        for _ in range(count):
            some = rng.choice(sorted(left), min(tried, len(left)), replace=False)
            best = int(some[np.maximum(similarity[some] - reach, 0.0).sum(axis=1).argmax()])
            reach = np.maximum(reach, similarity[best])
            left.remove(best)
            picks.append(int(fold[best]))
    return np.array(picks), None


def work(method: str, path: str, num_classes: int) -> None:
    """Run one method once and print its figures as JSON."""
    run = runner(method, np.load(path, mmap_mode="r").shape[1])
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    points = np.load(path)
    started, cpu_started = time.perf_counter(), time.process_time()
    picks, guaranteed = run(points, len(points) // 10, num_classes)
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
    peak = status("VmHWM") - before
    # Of peers in many dimensions the process that started this one measures L, with a product of our own.
    np.save(Path(path).with_suffix(".picks.npy"), picks)
    known = guaranteed is not None and (num_classes > 1 or points.shape[1] > 10)
    length = guaranteed if known else None if points.shape[1] > 10 else bound(points, picks)
    figures = {"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_bytes": peak, "L": length, "picks": len(picks)}
    print(json.dumps(figures))


# --- the run as a whole ----------------------------------------------------------------------------------------------


def bench_python() -> str:
    """The interpreter of the peers' environment, made on first use."""
    python = BENCH_VENV / "bin" / "python"
    if not python.exists():
        print("making .venv-bench for the peers (once)", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(BENCH_VENV)], check=True)
        (BENCH_VENV / ".gitignore").write_text("*\n")
        groups = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["dependency-groups"]
        wanted = [*groups["bench"], "scikit-learn", "scipy"]
        constraints = str(HERE.parent / "constraints.txt")
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "-c", constraints, *wanted], check=True)
    return str(python)


def measure(method: str, n: int, num_classes: int, dims: int, folder: Path) -> dict:
    path = folder / f"points-{n}-{dims}.npy"
    if not path.exists():
        np.save(path, gradients(n) if dims == 10 else embeddings(n, dims))
    python = bench_python() if method in (*PEERS, SEMHASH) else sys.executable
    command = [python, __file__, "--worker", method, "--points", str(path), "--classes", str(num_classes)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **ONE_THREAD})
    row = {"method": method, "n": n, "classes": num_classes, "dims": dims}
    if done.returncode:
        return {**row, "failed": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]}
    row |= json.loads(done.stdout.strip().splitlines()[-1])
    if row["L"] is None and method != "product of all pairs":
        row["L"] = bound(np.load(path), np.load(path.with_suffix(".picks.npy")))
    return row


def high_plan(quick: bool, only: str) -> list[tuple[str, int, int, int]]:
    dense = ("product of all pairs", *PEERS, SEMHASH, "folds", "exact", "fast", "random")
    large = ("folds", "fast", "random")  # the others need all pairs
    jobs = [(method, n, 1, 384) for n in (5_000, 20_000) for method in dense]
    jobs += [(method, n, 1, 768) for n in (5_000, 20_000) for method in dense if method not in PEERS[1:]]
    jobs += [(method, 100_000, 1, dims) for dims in (384, 768) for method in large]
    jobs = [job for job in jobs if job[1] <= 5_000] if quick else [*jobs, ("fast", 1_000_000, 1, 384)]
    return [job for job in jobs if only == "all" or (job[0] in (*PEERS, SEMHASH)) == (only == "peers")]


def high_ratios(rows: list[dict]) -> dict[str, float]:
    """The figures of the goals in many dimensions, of processor time, as far as this run has them."""
    seen = {(row["method"], row["n"]): row for row in rows if "failed" not in row and row["dims"] == 384}

    def ratio(figure: str, above: tuple, below: tuple) -> float | None:
        return seen[above][figure] / seen[below][figure] if above in seen and below in seen else None

    exact, million, apricot = ("exact", 20_000), ("fast", 1_000_000), ("apricot lazy", 20_000)
    found = {
        "exact_l": ratio("L", exact, apricot),
        "exact_vs_apricot": ratio("cpu_seconds", apricot, exact),
        "exact_vs_product": ratio("cpu_seconds", exact, ("product of all pairs", 20_000)),
        "exact_gigabytes": seen[exact]["peak_bytes"] / 1e9 if exact in seen else None,
        "fast_l": ratio("L", ("fast", 20_000), exact),
        "million_vs_apricot": ratio("cpu_seconds", million, apricot),
        "million_gigabytes": seen[million]["peak_bytes"] / 1e9 if million in seen else None,
        "growth": ratio("cpu_seconds", million, ("fast", 100_000)),
    }
    return {name: value for name, value in found.items() if value is not None}


def plan(quick: bool, only: str) -> list[tuple[str, int, int, int]]:
    small = [(method, n, 1, 10) for n in (2_000, 10_000, 20_000) for method in (*PEERS, *OURS, "random")]
    jobs = [job for job in small if job[0] != "kmedoids FasterPAM" or job[1] <= 10_000]
    large = [("fast", n, classes, 10) for n in (100_000, 1_000_000) for classes in (1, 10)]
    jobs = [job for job in jobs if job[1] <= 10_000] if quick else jobs + large
    return [job for job in jobs if only == "all" or (job[0] in PEERS) == (only == "peers")]


def ratios(rows: list[dict]) -> dict[str, float]:
    """The figures of the goals, of processor time, as far as this run has them."""
    seen = {(row["method"], row["n"], row["classes"]): row for row in rows if "failed" not in row}

    def ratio(figure: str, above: tuple, below: tuple) -> float | None:
        return seen[above][figure] / seen[below][figure] if above in seen and below in seen else None

    exact, fast, refine = ("exact", 20_000, 1), ("fast", 20_000, 1), ("refine", 10_000, 1)
    apricot, submodlib = ("apricot lazy", 20_000, 1), ("submodlib lazy", 20_000, 1)
    million = ("fast", 1_000_000, 1)
    ours = [row for row in rows if row["method"] in OURS and "failed" not in row]
    found = {
        "exact_l": ratio("L", exact, apricot),
        "exact_vs_apricot": ratio("cpu_seconds", apricot, exact),
        "exact_vs_submodlib": ratio("cpu_seconds", submodlib, exact),
        "fast_l": ratio("L", fast, exact),
        "fast_vs_apricot": ratio("cpu_seconds", apricot, fast),
        "fast_vs_submodlib": ratio("cpu_seconds", submodlib, fast),
        "refine_l": ratio("L", refine, ("apricot lazy", 10_000, 1)),
        "refine_vs_apricot": ratio("cpu_seconds", ("apricot lazy", 10_000, 1), refine),
        "memory": max((row["peak_bytes"] / (50e6 + 200 * row["n"]) for row in ours), default=None),
        "million_in_ten": ratio("cpu_seconds", ("fast", 1_000_000, 10), apricot),
        "million_in_one": ratio("cpu_seconds", million, apricot),
        "million_gigabytes": seen[million]["peak_bytes"] / 1e9 if million in seen else None,
        "growth": ratio("cpu_seconds", million, ("fast", 100_000, 1)),
    }
    return {name: value for name, value in found.items() if value is not None}


def table(rows: list[dict], figures: dict[str, float], goals: tuple = GOALS) -> str:
    lines = [
        "| method | N | d | classes | processor time, s | peak MB | L |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        start = f"| {row['method']} | {row['n']:,} | {row['dims']} | {row['classes']} |"
        if "failed" in row:
            lines.append(f"{start} failed: {row['failed']} | | |")
        else:
            length = "" if row["L"] is None else f"{row['L']:.2f}"
            lines.append(f"{start} {row['cpu_seconds']:.2f} | {row['peak_bytes'] / 1e6:,.0f} | {length} |")
    lines += ["", "| goal | reached | |", "|---|---|---|"] if figures else []
    for words, name, met in goals:
        if name in figures:
            lines.append(f"| {words} | {figures[name]:.4g} | {'yes' if met(figures[name]) else 'no'} |")
    return "\n".join(lines)


def write_results(rows: list[dict], name: str, figures: dict[str, float], goals: tuple) -> None:
    machine = {
        "cores": len(os.sched_getaffinity(0)),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "load_before": LOAD_BEFORE,
    }
    (HERE / f"{name}.json").write_text(
        json.dumps({"machine": machine, "rows": rows, "ratios": figures}, indent=2) + "\n"
    )
    readme = HERE / "README.md"
    start, stop = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    head, rest = readme.read_text().split(start)
    _, tail = rest.split(stop)
    note = f"One thread of {machine['cores']} cores, load {LOAD_BEFORE:.1f} before the run."
    readme.write_text(f"{head}{start}\n{note}\n\n{table(rows, figures, goals)}\n{stop}{tail}")
    print(table(rows, figures, goals))


LOAD_BEFORE = os.getloadavg()[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=("all", "ours", "peers"), default="all")
    parser.add_argument("--dry", action="store_true", help="print, but leave the files as they are")
    parser.add_argument("--high", action="store_true", help="embeddings of 384 and 768 numbers")
    parser.add_argument("--rows", type=Path, help="keep measured rows here, and skip those that are there already")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--points", help=argparse.SUPPRESS)
    parser.add_argument("--classes", type=int, default=1, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments.worker, arguments.points, arguments.classes)
        return
    high, kept = arguments.high, arguments.rows
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept and kept.exists() else []
    known = {(row["method"], row["n"], row["classes"], row["dims"]) for row in rows}
    with tempfile.TemporaryDirectory() as folder:
        for job in (high_plan if high else plan)(arguments.quick, arguments.only):
            if job in known:
                continue
            rows.append(measure(*job, Path(folder)))
            print(rows[-1], flush=True)
            if kept:
                with kept.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    figures, goals = (high_ratios(rows), HIGH_GOALS) if high else (ratios(rows), GOALS)
    if arguments.dry:
        print(table(rows, figures, goals))
    else:
        write_results(rows, "selection_high" if high else "selection", figures, goals)


if __name__ == "__main__":
    main()
