"""Small folders of sounds: low and high tones."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from synthsieve.results.export.media import write_wav

RATE = 8000
PITCHES = {"low": 300, "high": 1500, "unlabeled": 700}


def tone(hertz: float, seconds: float = 0.3, rate: int = RATE, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds * rate)) / rate
    return 0.5 * np.sin(2 * np.pi * hertz * rng.uniform(0.9, 1.1) * time) + 0.01 * rng.normal(size=len(time))


def write_sound_folder(root: Path, *, unlabeled: bool = True, n: int = 10, rate: int = RATE) -> Path:
    """A folder a class, and `unlabeled`."""
    for name, hertz in PITCHES.items():
        if name == "unlabeled" and not unlabeled:
            continue
        for i in range(n):
            write_wav(root / name / f"{i:03d}.wav", tone(hertz, 0.2 + 0.02 * i, rate, seed=i), rate)
    return root


def write_listed(
    root: Path, *, n: int = 24, speakers: int = 3, column: str | None = "speaker", table: str | None = None
) -> Path:
    """Sounds side by side and a table of them; two labels are unknown."""
    rows = [f"file,label{f',{column}' if column else ''}"]
    for i in range(n):
        name = ("low", "high")[i % 2]
        write_wav(root / f"{i:03d}.wav", tone(PITCHES[name], seed=i), RATE)
        rows.append(f"{i:03d}.wav,{'' if i % 4 == 0 and i > 12 else name}{f',s{i // 2 % speakers}' if column else ''}")
    (root / "metadata.csv").write_text(table if table is not None else "\n".join(rows) + "\n", encoding="utf-8")
    return root


def write_spoken_digits(root: Path, *, takes: int = 2, speakers: int = 6) -> Path:
    """Files named like those of the Free Spoken Digit Dataset: `takes` of ten digits by each speaker."""
    for digit in range(10):
        for s in range(speakers):
            for take in range(takes):
                sound = tone(200 + 150 * digit, 0.25, seed=100 * s + take)
                write_wav(root / f"{digit}_speaker{'abcdefghij'[s]}_{take}.wav", sound, RATE)
    return root
