"""A small table.json: real data alone, two variants with samples, and other methods."""

from synthsieve.results.table import ResultsTable

CRAIG = "entropy + CRAIG, L=60"
ADDED = {"entropy, L=60": "entropy", CRAIG: "entropy + CRAIG"}
OTHERS = {"supervised only": 0.6, "majority class": 0.5, "label spreading": 0.7}
INTERVALS = {
    "helps": (0.01, 0.03),
    "hurts": (-0.03, -0.01),
    "cannot tell": (-0.02, 0.02),
    "nothing": (-0.004, 0.004),
}


def metrics(accuracy):
    return {
        **{"count": 100, "accuracy": accuracy, "balanced_accuracy": accuracy, "f1": accuracy},
        **{"auroc": 0.9, "average_precision": 0.9, "log_loss": 0.4, "calibration_error": 0.05},
        **{"majority_accuracy": 0.5, "recall": [0.8, 0.8], "confusion": [[40, 10], [10, 40]]},
    }


def table_json(chosen="real only", choice=True, seeds=(0,), cross=False, others=OTHERS, test_examples=400, **verdicts):
    """The contents of a table.json; `verdicts` are those of the variants `entropy` and `craig`."""
    verdict_of = {
        "pretrained": "cannot tell",
        "entropy, L=60": verdicts.get("entropy", "cannot tell"),
        CRAIG: verdicts.get("craig", "cannot tell"),
        **dict.fromkeys(others, "hurts"),
    }
    if cross:
        verdict_of["chosen on validation"] = verdicts.get("craig", "cannot tell")
    mean = {"real only": 0.8, **dict.fromkeys(verdict_of, 0.8), **dict.fromkeys(ADDED, 0.81), **others}
    comparisons = {
        name: {
            "differences": [sum(INTERVALS[verdict]) / 2],
            "interval_95": list(INTERVALS[verdict]),
            "differing_answers": 9,
        }
        for name, verdict in verdict_of.items()
    }
    candidate = {"accuracy": 0.81, "difference": 0.01, "standard_error": 0.02}
    arms = {"pretrained": ("pretrained", 0), "real only": ("real only", 0)}
    arms |= {name: (arm, 60) for name, arm in ADDED.items()}
    return {
        "source_name": "made up",
        "classes": ["ham", "spam"],
        "source": "made-up",
        "settings": {"augmentation": {"steps": 5000}},
        "seeds": list(seeds),
        "versions": {"synthsieve": "0.1.0"},
        "split_hashes": {"0": "ab"},
        "cross_fitting": {"folds": 5, "measures": True} if cross else None,
        "labeled": 50,
        "unlabeled": 100,
        "validation_examples": 143,
        "labels_for_choosing": 143,
        "oracle_accuracy": 0.913,
        "paired_comparison": {
            "baseline": "real only",
            "metric": "accuracy",
            "scores": {name: [value] for name, value in mean.items()},
            "comparisons": comparisons,
            "test_examples": [test_examples],
            "shared_test_examples": True,
            "resamples": 100,
            "note": "",
        },
        "choice": {
            "arm": chosen,
            "baseline": "real only",
            "baseline_accuracy": 0.8,
            "margin": 1.0,
            "candidates": dict.fromkeys(ADDED, candidate),
        }
        if choice
        else None,
        "validation": {"real only": [0.7, 0.9]},
        "metrics": {name: metrics(value) for name, value in mean.items()},
        "groups": {
            **dict.fromkeys(others, "baseline"),
            **{"pretrained": "real", "real only": "real"},
            **dict.fromkeys(ADDED, "synthetic"),
        },
        "arms": {name: {"arm": arm, "pool_size": size, "selections": [[]]} for name, (arm, size) in arms.items()},
        "baselines": {
            "majority class": [{"chosen": "", "unlabeled": 0}],
            "label spreading": [{"chosen": "k=5", "unlabeled": 100}],
            "logistic regression": [{"chosen": "C=1", "unlabeled": 0}],
        },
    }


def made_up_table(*args, **options):
    return ResultsTable.model_validate(table_json(*args, **options))
