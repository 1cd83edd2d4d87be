"""What `synthsieve select --cluster local` costs, from ten thousand rows to ten million: time, memory, bytes.

    python benchmarks/cluster.py --rows 10000 100000 1000000 --scratch FOLDER -o benchmarks/cluster.json

The rows are those of `benchmarks/selection.py` in ten classes: logits = 1.5 normal + linspace(-0.5, 0.5), plus 2 on the
label's column, a tenth kept. Memory is that of all processes together, Ray's own and its object store too, looked
at twice a second: the sum of their resident sets (`rss`, in which shared pages count for each process) and of their
proportional sets (`pss`, in which they count once).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from synthsieve.io.files import write_json
from synthsieve.io.versions import versions

COLUMNS, BATCH = 10, 250_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--part-rows", type=int, default=100_000)
    parser.add_argument("--alone-up-to", type=int, default=0, help="also select without a cluster up to so many rows")
    parser.add_argument("--scratch", type=Path, required=True, help="where the rows and the results go")
    parser.add_argument("-o", "--out", type=Path, required=True)
    requested = parser.parse_args()
    requested.scratch.mkdir(parents=True, exist_ok=True)
    found = json.loads(requested.out.read_text()) if requested.out.is_file() else {"runs": []}
    for rows in requested.rows:
        source = requested.scratch / f"rows-{rows}-{requested.classes}.parquet"
        if not source.is_file():
            write_rows(source, rows, requested.classes)
        run = measured(source, requested, "--cluster", "local", "--workers", str(requested.workers))
        run |= {
            "rows": rows,
            "classes": requested.classes,
            "workers": requested.workers,
            "part_rows": requested.part_rows,
        }
        run["input_bytes"] = source.stat().st_size
        if rows <= requested.alone_up_to:
            alone = measured(source, requested)
            run["alone"] = alone
            run["bound_over_alone"] = run["gradient_bound"] / alone["gradient_bound"]
        found["runs"].append(run)
        found["versions"] = {**versions(), "ray": _ray_version()}
        found["machine"] = {"cores": len(os.sched_getaffinity(0)), "load_before": run.pop("load_before")}
        write_json(requested.out, found)
        print(json.dumps(run, indent=2), flush=True)


def write_rows(path: Path, rows: int, classes: int) -> None:
    """The benchmark's rows, a batch at a time."""
    rng, writer, partial = np.random.default_rng(0), None, path.with_suffix(".partial")
    for start in range(0, rows, BATCH):
        size = min(BATCH, rows - start)
        logits = rng.normal(size=(size, COLUMNS)) * 1.5 + np.linspace(-0.5, 0.5, COLUMNS)
        label = rng.integers(0, classes, size)
        logits[np.arange(size), label] += 2.0
        values = pa.array(logits.astype(np.float32).ravel())
        table = pa.table({"label": label, "logits": pa.FixedSizeListArray.from_arrays(values, COLUMNS)})
        writer = writer or pq.ParquetWriter(partial, table.schema)
        writer.write_table(table, row_group_size=BATCH)
    assert writer is not None
    writer.close()
    partial.replace(path)


def measured(source: Path, requested: argparse.Namespace, *more: str) -> dict[str, Any]:
    """One selection in a process of its own: what it says, and what it took."""
    out = requested.scratch / "out"
    shutil.rmtree(out, ignore_errors=True)
    parts = ["--part-rows", str(requested.part_rows)] if more else []
    command = [sys.executable, "-m", "synthsieve", "select", str(source), "-o", str(out), "--json", "--quiet"]
    load = os.getloadavg()[0]
    started = time.monotonic()
    process = subprocess.Popen([*command, *parts, *more], stdout=subprocess.PIPE, text=True)
    watch = Watch(process.pid, out)
    messages, _ = process.communicate()
    seconds = time.monotonic() - started
    watch.stop()
    if process.returncode:
        raise SystemExit(f"the selection ended with {process.returncode}")
    figures = json.loads(messages)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    kept = ("selected", "gradient_bound", "gradient_error", "stage_seconds")
    return {
        "seconds": round(seconds, 1),
        "seconds_of_selection": figures["seconds"],
        **{key: figures[key] for key in kept if key in figures},
        **watch.peaks,
        "output_bytes": size,
        "load_before": round(load, 1),
    }


class Watch:
    """Looks at a process and all its descendants twice a second."""

    def __init__(self, root: int, out: Path) -> None:
        self.root, self.work = root, out / ".synthsieve-work"
        self.peaks = {"peak_rss_mb": 0, "peak_pss_mb": 0, "peak_work_mb": 0, "read_mb": 0, "written_mb": 0}
        self._io: dict[int, tuple[int, int]] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(0.5):
            rss = pss = 0
            for process in descendants(self.root):
                own_values = _resident(process)
                rss, pss = rss + own_values[0], pss + own_values[1]
                self._io[process] = _moved(process) or self._io.get(process, (0, 0))
            read, written = (sum(one[k] for one in self._io.values()) // 10**6 for k in range(2))
            now = {"peak_rss_mb": rss // 1000, "peak_pss_mb": pss // 1000, "peak_work_mb": _size(self.work) // 10**6}
            for name, value in {**now, "read_mb": read, "written_mb": written}.items():
                self.peaks[name] = max(self.peaks[name], value)


def descendants(root: int) -> list[int]:
    """A process, its children, theirs, and so on."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                parent = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(name))
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


def _resident(process: int) -> tuple[int, int]:
    """Kilobytes (of 1024): resident and proportional."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0, 0
    sizes = {line.split()[0]: int(line.split()[1]) * 1024 // 1000 for line in lines[1:] if len(line.split()) > 1}
    return sizes.get("Rss:", 0), sizes.get("Pss:", 0)


def _moved(process: int) -> tuple[int, int] | None:
    """Bytes read and written, from the disk or its cache."""
    try:
        lines = Path(f"/proc/{process}/io").read_text().splitlines()
    except OSError:
        return None
    numbers = {line.split(":")[0]: int(line.split(":")[1]) for line in lines}
    return numbers["rchar"], numbers["wchar"]


def _size(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(path, name)).st_size
            except OSError:
                continue
    return total


def _ray_version() -> str:
    from importlib.metadata import version

    return version("ray")


if __name__ == "__main__":
    main()
