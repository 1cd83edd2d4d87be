"""One contract for all modalities: fit, predict, sample, augment, save, load, resume, reproducibility, bad input."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from synthsieve import LatentEBMClassifier
from synthsieve.data import registry
from synthsieve.data.checks import check_dataset
from synthsieve.data.dataset import Dataset, Examples
from synthsieve.data.modalities.registry import from_json
from synthsieve.data.origin import Origin
from synthsieve.errors import DataError, SynthsieveError
from synthsieve.evaluation.predict import probabilities
from synthsieve.io.progress import NullProgress
from synthsieve.models.generate import draw_samples
from synthsieve.models.registry import register_modality
from synthsieve.results.export.samples import write_items
from synthsieve.sampling.langevin import LangevinSettings
from synthsieve.settings import Settings, load_settings
from synthsieve.training import loop
from synthsieve.training.augment import augment, draw_again
from synthsieve.training.defaults import default_preset
from synthsieve.training.pool import SyntheticPool
from synthsieve.training.run_dir import RunDirectory
from tests.errors import raises
from tests.modalities import image, sound, table, text, vector

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own_modality.py"


def example() -> Any:
    """The module of the example, loaded once: a modality can be registered only once."""
    if "own_modality" not in sys.modules:
        spec = importlib.util.spec_from_file_location("own_modality", EXAMPLE)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["own_modality"] = module
        spec.loader.exec_module(module)
    return sys.modules["own_modality"]


def counts(n: int = 120) -> Dataset:
    """The digits 0 and 1 of the example."""
    train = example().load_counts().train
    rows = np.flatnonzero(train.y < 2)[:n]
    examples = Examples(train.x[rows], train.y[rows])
    return Dataset("zeros and ones", "counts", ("0", "1"), examples)


@dataclass(frozen=True)
class Case:
    """A modality.

    Attributes:
        dataset: 120 examples of two separable classes.
        in_memory: the same examples as a user's container.
        invalid: examples that must be refused, as a user's container.
        arguments: of the estimator.
        files: suffixes of the files that `write_items` writes.
        steps: training steps that suffice to separate the classes.
    """

    dataset: Callable[[], Dataset]
    in_memory: Callable[[], Any]
    invalid: Callable[[], Any]
    arguments: dict[str, Any]
    files: tuple[str, ...] = ()
    steps: int = 40


def tones() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [sound.tone(sound.PITCHES[i % 2], rng) for i in range(120)]


CASES = {
    "image": Case(image.dataset, lambda: image.dataset().train.x, lambda: np.zeros((4, 1, 12, 8)), {}, (".png",)),
    "vector": Case(vector.dataset, lambda: vector.dataset().train.x, lambda: np.zeros((4, 6)), {"modality": "vector"}),
    "table": Case(
        table.dataset,
        lambda: table.arrow_table()[0].to_pandas(),
        lambda: table.arrow_table()[0].to_pandas().drop(columns="weight"),
        {},
        (".csv", ".parquet"),
    ),
    "sound": Case(
        sound.dataset, tones, lambda: [np.zeros(0)], {"modality": "sound", "rate": sound.FORM.rate}, ("", ".csv")
    ),
    "text": Case(text.dataset, lambda: text.sentences()[0], lambda: [1, 2], {}, (".csv",), steps=150),
    "example": Case(
        counts, lambda: counts().train.x, lambda: np.zeros((4, 3)), {"modality": "counts", "preset": "vector-minutes"}
    ),
}
# As small as possible with every part of the method.
QUICK = {
    "sampling": {"training_steps": 2, "num_steps": 5},
    "training": {
        "batch_labeled": 16,
        "batch_unlabeled": 16,
        "warmup": 1,
        "evaluate_every": 3,
        "checkpoint_every": 2,
        "generator_ratio": 0.5,
    },
    "augmentation": {"steps": 2, "pool_size": 60, "keep_fraction": 0.5, "require_label": False},
    "pseudo_labels": {"batch": 8},
    "data": {"labels": 40, "balanced": True, "validation_fraction": 0.0, "test_fraction": 0.2},
}


def settings(dataset: Dataset, steps: int = 6) -> Settings:
    preset = default_preset("", dataset) or "vector-minutes"
    return load_settings(preset, [f"training.steps={steps}"], QUICK)


def create_run(case: Case, out: Path, steps: int = 6) -> tuple[RunDirectory, Dataset]:
    dataset = case.dataset()
    return RunDirectory.create(out, Origin("made up"), settings(dataset, steps).pretrained(), dataset), dataset


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture(scope="module")
def fitted(case: Case, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunDirectory, Dataset]:
    run, dataset = create_run(case, tmp_path_factory.mktemp("run") / "out", steps=case.steps)
    loop.fit(run, dataset)
    return run, dataset


@pytest.fixture(scope="module")
def estimator(case: Case) -> LatentEBMClassifier:
    y = np.where(np.arange(120) < 60, case.dataset().train.y, -1)
    quick = {section: QUICK[section] for section in ("sampling", "augmentation")}
    made = LatentEBMClassifier(max_iter=case.steps, random_state=0, settings=quick, **case.arguments)
    return made.fit(case.in_memory(), y)


class Interrupted(Exception):
    pass


class InterruptAt(NullProgress):
    """Progress that ends the run after a step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def update(self, done: int, total: int, message: str = "", beside: tuple[int, int] = (0, 0)) -> None:
        if done == self.step:
            raise Interrupted


def test_check_dataset(case: Case) -> None:
    dataset = case.dataset()
    check_dataset(dataset)
    assert (len(dataset.train.x), dataset.num_classes) == (120, 2)
    x, y = dataset.train.x, dataset.train.y
    for invalid in (Examples(x, y[1:]), Examples(x, y + 1), Examples(x, y.astype(np.int32)), Examples(x[:0], y[:0])):
        with pytest.raises(DataError, match="training examples"):
            check_dataset(replace(dataset, train=invalid))


def test_trained_classifier_separates_the_classes(fitted: tuple[RunDirectory, Dataset]) -> None:
    run, dataset = fitted
    p = probabilities(run.load_model(), run.encoding, dataset.train.x)
    assert p.shape == (120, 2)
    assert np.allclose(p.sum(axis=1), 1)
    assert (p.argmax(axis=1) == dataset.train.y).mean() > 0.7


def test_encoding_round_trip_and_json(
    fitted: tuple[RunDirectory, Dataset],
) -> None:
    run, dataset = fitted
    again = from_json(json.loads(json.dumps(run.encoding.to_json(), allow_nan=False)))
    x = dataset.train.x[:10]
    assert again.input_spec == run.encoding.input_spec
    assert np.array_equal(again.encode(x), run.encoding.encode(x))
    assert run.encoding.encode(x).shape == (10, *run.encoding.input_spec.shape)
    twice = run.encoding.encode(again.decode(run.encoding.encode(x)))
    assert twice == pytest.approx(run.encoding.encode(x), abs=1e-2)


def test_likelihood_is_finite_and_depends_on_z(fitted: tuple[RunDirectory, Dataset]) -> None:
    run, dataset = fitted
    model = run.load_model()
    x = torch.from_numpy(run.encoding.encode(dataset.train.x[:10]))
    z = model.posterior(x).mean.clone().requires_grad_()
    value = model.generator.log_prob(x, z)
    assert value.shape == (10,)
    assert value.isfinite().all()
    (gradient,) = torch.autograd.grad(value.sum(), z)
    assert gradient.abs().sum() > 0


def test_samples(fitted: tuple[RunDirectory, Dataset], case: Case, tmp_path: Path) -> None:
    run, dataset = fitted
    first, second = (
        draw_samples(run.load_model(), run.encoding, per_class=4, chains=LangevinSettings(5, 0.08), seed=seed)
        for seed in (0, 0)
    )
    assert first.x.shape[1:] == dataset.shape
    assert first.x.dtype.kind == dataset.train.x.dtype.kind
    assert first.x.tobytes() == second.x.tobytes()
    other = draw_samples(run.load_model(), run.encoding, per_class=4, chains=LangevinSettings(5, 0.08), seed=1)
    assert first.z.tobytes() != other.z.tobytes()
    written = write_items(tmp_path / "samples", run.encoding.items(first.x), [dataset.classes[y] for y in first.y])
    assert tuple(path.suffix for path in written) == case.files
    assert all(path.exists() for path in written)


def test_pool(fitted: tuple[RunDirectory, Dataset], tmp_path: Path) -> None:
    run, dataset = fitted
    quick = settings(dataset)
    pool, _ = augment(run.load_model(), run.encoding, settings=quick.augmentation, sampling=quick.sampling, seed=0)
    assert 0 < len(pool.selected) <= len(pool.survivors) <= len(pool) == 60
    pool.write(tmp_path / "pool.npz")
    assert SyntheticPool.read(tmp_path / "pool.npz").x.tobytes() == pool.x.tobytes()
    row = int(pool.selected[-1])
    assert draw_again(run.load_model(), run.encoding, pool, row).tobytes() == pool.x[-1].tobytes()


def test_resumed_runs_are_identical(case: Case, tmp_path: Path) -> None:
    uninterrupted = file_bytes(train_with_interruptions(case, tmp_path / "uninterrupted", interrupt_at=()))
    assert file_bytes(train_with_interruptions(case, tmp_path / "resumed", interrupt_at=(3, 7))) == uninterrupted


def train_with_interruptions(case: Case, out: Path, interrupt_at: tuple[int, ...]) -> RunDirectory:
    dataset = case.dataset()
    run = RunDirectory.create(out, Origin("made up"), settings(dataset), dataset)
    for step in interrupt_at:
        with pytest.raises(Interrupted):
            loop.fit(run, dataset, progress=InterruptAt(step))
        run = RunDirectory.open(out)
    loop.fit(run, dataset)
    return run


def file_bytes(run: RunDirectory) -> list[bytes]:
    return [run.last.read_bytes(), run.best.read_bytes(), (run.path / "history.jsonl").read_bytes()]


def test_opened_run_predicts_the_same(fitted: tuple[RunDirectory, Dataset]) -> None:
    run, dataset = fitted
    again = RunDirectory.open(run.path)
    first, second = (probabilities(r.load_model(), r.encoding, dataset.train.x[:20]) for r in (run, again))
    assert np.array_equal(first, second)


def test_estimator_fit_sample_save_load(estimator: LatentEBMClassifier, case: Case, tmp_path: Path) -> None:
    x_train, y = case.in_memory(), case.dataset().train.y
    assert estimator.score(x_train, y) > 0.7
    assert estimator.transform(x_train).shape == (120, estimator.settings_.model.latent_dim)
    assert np.isfinite(estimator.score_samples(x_train)).all()
    again = LatentEBMClassifier.load(estimator.save(tmp_path / "estimator.safetensors"))
    assert np.array_equal(again.predict_proba(x_train), estimator.predict_proba(x_train))
    (x, labels), (same, _) = estimator.sample(3), again.sample(3)
    assert type(x) is type(same)
    assert labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert estimator.predict_proba(as_input(x)).shape == (6, 2)


def as_input(x: Any) -> Any:
    """Samples as `predict` takes them: of sounds, the waveforms."""
    return x.sounds if hasattr(x, "sounds") else x


def test_estimator_augment(estimator: LatentEBMClassifier, case: Case) -> None:
    done = estimator.augment(X_test=case.in_memory(), y_test=case.dataset().train.y)
    assert done.paired_comparison.num_items == (120,)
    assert len(done.y) == len(done.sample_weight) == len(done.pool.selected) > 0


def test_estimator_is_reproducible(case: Case, estimator: LatentEBMClassifier) -> None:
    y = np.where(np.arange(120) < 60, case.dataset().train.y, -1)
    again = LatentEBMClassifier(**estimator.get_params()).fit(case.in_memory(), y)
    assert np.array_equal(again.predict_proba(case.in_memory()), estimator.predict_proba(case.in_memory()))


def test_invalid_examples(estimator: LatentEBMClassifier, case: Case) -> None:
    with pytest.raises(ValueError) as caught:
        estimator.predict(case.invalid())
    assert str(caught.value)


def test_damaged_encoding(fitted: tuple[RunDirectory, Dataset]) -> None:
    stored = fitted[0].encoding.to_json()
    for name in set(stored) - {"kind"}:
        damaged = {key: value for key, value in stored.items() if key != name}
        with raises(DataError, "damaged-encoding"):
            from_json(damaged)


def test_register_modality_twice() -> None:
    module = example()
    assert "counted-digits" in registry.source_names()
    with raises(SynthsieveError, "name-taken"):
        register_modality(
            "counts",
            fit_encoding=lambda dataset, rows: None,  # type: ignore[arg-type, return-value]
            read_encoding=lambda value: None,  # type: ignore[arg-type, return-value]
            make_encoder=module.make_encoder,
            make_generator=module.BinomialGenerator,
        )
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) < 80
