"""Files cut off or with a flipped bit: a sentence that names the file, or an answer; never a trace, never a loss."""

import shutil
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from synthsieve.results.pool_view import Rejections
from synthsieve.training.extra_data import latest
from tests.data import made_up, made_up_sounds
from tests.robustness.faults.commands import AUGMENT, EXPORT, QUICK, RUN, pool_file, settings
from tests.robustness.faults.damage import CUTS, FLIPS, damage
from tests.robustness.faults.forked import ended
from tests.robustness.faults.whole import contents, same

pytestmark = pytest.mark.faults


@dataclass(frozen=True)
class Kept:
    """A file that a run keeps: what it is, who made it, who reads it."""

    file: str
    made_by: object
    words: object


def evaluate(out):
    return ["evaluate", out, "--threads", 1]


def look(out):
    return ["export", out, "--threads", 1, "--quiet"]


def draw_again(out):
    """The samples that were not selected are drawn again, by the weights of that time."""
    return ["export", out, "--all", "--threads", 1, "--quiet"]


def report(out):
    return ["report", out, "--threads", 1, "--quiet"]


KEPT = [
    Kept("run.json", AUGMENT, evaluate),
    Kept("split.json", AUGMENT, evaluate),
    Kept("best.safetensors", AUGMENT, evaluate),
    Kept("last.safetensors", AUGMENT, AUGMENT.words),
    Kept("history.jsonl", AUGMENT, AUGMENT.words),
    Kept("extra-data-*.npz", AUGMENT, AUGMENT.words),
    Kept("selections.jsonl", AUGMENT, look),
    Kept("drawn-by-*", AUGMENT, draw_again),
    Kept("pool-*[0-9].npz", AUGMENT, look),
    Kept("rejections.json", AUGMENT, look),
    Kept("export/manifest.json", EXPORT, look),
    Kept("table.json", RUN, look),
    Kept("table.json", RUN, report),
    Kept("seed-0/real-only/answers.npz", RUN, RUN.words),
    Kept("seed-0/pretrained/history.jsonl", RUN, report),
]


@pytest.mark.parametrize("kept", KEPT, ids=[f"{kept.file}, {kept.words.__name__}" for kept in KEPT])
def test_what_a_run_keeps(kept, place, tally):
    for name, kind in {**CUTS, **FLIPS}.items():
        out = place / name.replace(" ", "-")
        shutil.copytree(kept.made_by.undisturbed.folder, out)
        if kept.file == "rejections.json":
            pool = latest(out).pool
            Rejections.read(out).update(pool, range(20), reject=True)
        *_, path = sorted(out.glob(kept.file))
        if kept.file == "drawn-by-*":  # their names are hashes, so the last one by name may be that of an older pool
            path = out / f"drawn-by-{latest(out).pool.origin['model_hash']}.safetensors"
        damage(path, kind)
        before = contents_of(out)
        fault = "a file of a run cut off" if name in CUTS else "a bit flipped in a file of a run"
        done = ended(kept.words(out))
        tally.tried(fault, lost="the damaged file")
        assert done.code == 0 or done.failed_in_one_sentence(), (name, done)
        mended = "resuming from the checkpoint before it" in done.output + done.out
        if done.code:
            assert same(contents_of(out), before)
        elif mended:
            assert same(contents(out), contents(kept.made_by.undisturbed.folder))
        elif name in CUTS:
            assert path.name in ("history.jsonl", "selections.jsonl"), (name, done.out)
        assert mended or path.name != "last.safetensors" or name not in CUTS
        tally.survived(fault)
        if mended:
            tally.mended(fault)
        elif done.code == 0:
            tally.unnoticed(fault)


def contents_of(out):
    return {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}


def _parquet(folder):
    logits = np.random.default_rng(0).normal(size=(200, 3))
    table = {"label": logits.argmax(axis=1), **{f"logit_{k}": logits[:, k] for k in range(3)}}
    parquet.write_table(pa.table(table), folder / "pool.parquet")
    return folder / "pool.parquet"


def _mat(folder):
    made_up.write_mat(folder / "svhn" / "test_32x32.mat", 20, seed=1)
    return made_up.write_mat(folder / "svhn" / "train_32x32.mat")


SOURCES = {
    "idx": (lambda folder: made_up.write_idx(folder, gz=False), "*images*", ()),
    "idx.gz": (made_up.write_idx, "*images*", ()),
    "mat": (_mat, "train*.mat", ()),
    "npz": (lambda folder: made_up.write_npz(folder / "a.npz"), "*.npz", ()),
    "csv": (lambda folder: made_up.write_csv(folder / "a.csv"), "*.csv", ("--label", "answer")),
    "parquet": (lambda folder: made_up.write_parquet(folder / "a.parquet"), "*.parquet", ("--label", "answer")),
    "png": (lambda folder: made_up.write_folder(folder / "pets"), "003.png", ()),
    "wav": (lambda folder: made_up_sounds.write_sound_folder(folder / "tones"), "003.wav", ()),
}


@pytest.mark.parametrize("source", SOURCES)
def test_what_a_user_brings(source, place, tally):
    make, pattern, more = SOURCES[source]
    for name, kind in {**CUTS, **FLIPS}.items():
        folder = place / name.replace(" ", "-")
        folder.mkdir()
        given = make(folder)
        damage(sorted(folder.rglob(pattern))[0], kind)
        out = folder / "out"
        small = settings(*QUICK, "training.steps=1", "data.labels=8", "sampling.training_steps=1")
        words = ["fit", given, "-o", out, "--threads", 1, "--quiet", *more, *small]
        fault = "a source cut off" if name in CUTS else "a bit flipped in a source"
        tally.tried(fault)
        done = ended(words)
        assert done.code == 0 or done.failed_in_one_sentence(), (name, done)
        assert done.code == 0 or not out.exists()
        assert done.code == 2 or name not in CUTS or source == "csv", (name, done)
        tally.survived(fault)
        if done.code == 0:
            tally.unnoticed(fault)


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_input_of_select(kind, place, tally):
    for name, harm in {**CUTS, **FLIPS}.items():
        folder = place / name.replace(" ", "-")
        folder.mkdir()
        given = _parquet(folder) if kind == "parquet" else shutil.copy(pool_file(), folder / "pool.npz")
        damage(given, harm)
        fault = "a source cut off" if name in CUTS else "a bit flipped in a source"
        tally.tried(fault)
        done = ended(["select", given, "-o", folder / "out", "--jobs", 1, "--quiet"])
        assert done.code == 0 or done.failed_in_one_sentence(), (name, done)
        assert done.code == 0 or not (folder / "out").exists()
        assert done.code == 2 or name not in CUTS, (name, done)
        tally.survived(fault)
        if done.code == 0:
            tally.unnoticed(fault)
