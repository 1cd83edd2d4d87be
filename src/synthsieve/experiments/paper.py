"""The paper's own figures, to stand beside ours.

Pooladzandi, Khosravi, Nijkamp, Mirzasoleiman: "Generating High Fidelity Synthetic Data via Coreset selection and
Entropic Regularization", NeurIPS 2022 workshop, Table 1: SVHN, 1,000 labels, test accuracy in %, each +-0.1.
"""

from __future__ import annotations

from synthsieve.experiments.arms import Arm

PAPER_BASELINE = 92.0
PAPER_SVHN: dict[Arm, dict[int, float]] = {
    Arm.REAL_ONLY: {0: 92.0},
    Arm.ALL: {10_000: 88.1},
    Arm.ENTROPY: {10_000: 93.5, 40_000: 93.8},
    Arm.CRAIG: {10_000: 93.0, 40_000: 93.5, 100_000: 93.9, 200_000: 93.9},
    Arm.CRAIG_PSEUDO: {40_000: 94.5},
}
