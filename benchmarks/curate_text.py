"""Generated sentences, selected and at random, as further training data of a text classifier.

    python benchmarks/curate_text.py --data-dir DATA        SST-2 in DATA/sst2 (train.tsv, dev.tsv)

The generator stands for a language model. It has seen 10,000 labelled phrases of SST-2: a Markov chain of each class
writes most of the rows, templates write the others, with few different words. A fifth of the rows belongs to the other
class. The user has 100 labelled sentences and may add 500 of 6,000 generated rows. The classifier is a logistic
regression on TF-IDF, tested on the 872 sentences of dev.tsv.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import synthsieve

REAL, POOL, BUDGET, SEEN = 100, 6_000, 500, 10_000
WRONG, TEMPLATES = 0.2, 0.3
PATTERNS = ("the film is {}", "a {} movie", "this is {} and {}", "i found it {}", "{} from start to finish")
ADJECTIVES = {
    "1": ("moving", "funny", "clever", "warm", "gripping", "charming"),
    "0": ("dull", "flat", "tedious", "silly", "lifeless", "bland"),
}


def read(path: Path) -> list[dict[str, str]]:
    """Rows of {"text", "label"}."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        text = next(name for name in rows.fieldnames or () if name != "label")
        return [{"text": row[text].strip(), "label": row["label"]} for row in rows]


class MarkovChain:
    """Writes sentences in which every three words in a row occur in the sentences given."""

    def __init__(self, texts: list[str]) -> None:
        self.next: dict[tuple[str, str], list[str]] = defaultdict(list)
        for text in texts:
            words = ["", "", *text.split(), ""]
            for first, second, third in zip(words, words[1:], words[2:], strict=False):
                self.next[first, second].append(third)

    def write(self, rng: np.random.Generator) -> str:
        words = ["", ""]
        while len(words) < 40:
            following = self.next[words[-2], words[-1]]
            if not (word := following[rng.integers(len(following))]):
                break
            words.append(word)
        return " ".join(words[2:])


def generate(seen: list[dict[str, str]], rng: np.random.Generator) -> list[dict[str, str]]:
    chains = {label: MarkovChain([row["text"] for row in seen if row["label"] == label]) for label in "01"}
    rows = []
    for _ in range(POOL):
        label = "01"[rng.integers(2)]
        meant = label if rng.random() >= WRONG else "10"[int(label)]
        if rng.random() < TEMPLATES:
            words = rng.choice(ADJECTIVES[meant], 2)
            text = str(rng.choice(PATTERNS)).format(*words)
        else:
            text = chains[meant].write(rng)
        rows.append({"text": text, "label": label})
    return rows


def accuracy(rows: list[dict[str, Any]], test: list[dict[str, str]]) -> float:
    weights = np.array([float(row.get("loss_weight", 1.0)) for row in rows])
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), LogisticRegression(C=10.0))
    model.fit([row["text"] for row in rows], [row["label"] for row in rows], logisticregression__sample_weight=weights)
    return float(model.score([row["text"] for row in test], [row["label"] for row in test]))


def without_weights(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"text": row["text"], "label": row["label"]} for row in rows]


def one_seed(train: list[dict[str, str]], test: list[dict[str, str]], seed: int) -> dict[str, float]:
    """The accuracy for each way to choose rows."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(train))
    real, seen = ([train[row] for row in part] for part in (order[:REAL], order[REAL : REAL + SEEN]))
    pool = generate(seen, rng)
    given: dict[str, Any] = {"text": "text", "labels": "label", "reference": real, "budget": BUDGET, "seed": seed}
    chosen = synthsieve.select(pool, **given).take(pool)
    covering = synthsieve.select(pool, **given, require_label=False).take(pool)
    at_random = [pool[row] for row in rng.permutation(POOL)[:BUDGET]]
    return {
        "real rows only": accuracy(real, test),
        "and random rows": accuracy(real + at_random, test),
        "and selected rows, without the label check": accuracy(real + without_weights(covering), test),
        "and selected rows": accuracy(real + without_weights(chosen), test),
        "and selected rows with their weights": accuracy(real + chosen, test),
        "and all generated rows": accuracy(real + pool, test),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    train, test = (read(given.data_dir / "sst2" / name) for name in ("train.tsv", "dev.tsv"))
    found = [one_seed(train, test, seed) for seed in range(given.seeds)]
    print(
        f"| training rows | accuracy, mean of {given.seeds} seeds | minus random rows, 95 % interval |\n|---|---|---|"
    )
    base = np.array([figures["and random rows"] for figures in found])
    for name in found[0]:
        values = np.array([figures[name] for figures in found])
        gap = values - base
        low, high = stats.t.interval(0.95, len(gap) - 1, gap.mean(), gap.std(ddof=1) / np.sqrt(len(gap)))
        between = "" if name == "and random rows" else f"{gap.mean():+.3f} ({low:+.3f} to {high:+.3f})"
        print(f"| {name} | {values.mean():.3f} | {between} |")


if __name__ == "__main__":
    main()
