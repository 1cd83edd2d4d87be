"""One contract for all kinds of data: fit, predict, sample, augment, save, load, resume, same bytes, bad input."""

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
from tests.modalities import image, sound, table, text, vector

from synthsieve import LatentEBMClassifier
from synthsieve.augmentation import augment, draw_again
from synthsieve.config import Settings, load_settings
from synthsieve.data import sources
from synthsieve.data.checks import check_dataset
from synthsieve.data.dataset import Dataset, Examples
from synthsieve.data.encoding import from_json
from synthsieve.defaults import default_preset
from synthsieve.drawing import draw_samples
from synthsieve.errors import DataError, SynthsieveError
from synthsieve.evaluation.accuracy import probabilities
from synthsieve.export.samples import write_items
from synthsieve.learning import loop
from synthsieve.learning.run_folder import Origin, RunFolder
from synthsieve.modality import register_modality
from synthsieve.pool import SyntheticPool
from synthsieve.progress import Silent
from synthsieve.sampling.langevin import LangevinSettings

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own_modality.py"


def own() -> Any:
    """The module of the example, loaded once: a kind can be registered only once."""
    if "own_modality" not in sys.modules:
        spec = importlib.util.spec_from_file_location("own_modality", EXAMPLE)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["own_modality"] = module
        spec.loader.exec_module(module)
    return sys.modules["own_modality"]


def counts(n: int = 120) -> Dataset:
    """Zeros and ones of the example's digits."""
    whole = own().load_counts()
    rows = np.flatnonzero(whole.train.y < 2)[:n]
    examples = type(whole.train)(whole.train.x[rows], whole.train.y[rows])
    return Dataset("zeros and ones", "counts", ("0", "1"), examples)


@dataclass(frozen=True)
class Case:
    """A kind of data.

    Attributes:
        dataset: 120 examples of two classes that can be told apart.
        held: the same as a user holds them in memory.
        arguments: what the estimator must be told.
        spoiled: examples that must be refused, as a user holds them.
        files: endings of what `write_items` writes.
        steps: enough to tell the classes apart.
    """

    dataset: Callable[[], Dataset]
    held: Callable[[], Any]
    spoiled: Callable[[], Any]
    arguments: dict[str, Any]
    files: tuple[str, ...] = ()
    steps: int = 40


def tones() -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    return [sound.tone(sound.PITCHES[i % 2], generator) for i in range(120)]


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
    "own": Case(
        counts, lambda: counts().train.x, lambda: np.zeros((4, 3)), {"modality": "counts", "preset": "vector-minutes"}
    ),
}
# As small as the networks and chains can be and still have every part.
QUICK = {
    "sampling": {"training_steps": 2, "num_steps": 5},
    "learning": {"batch_labeled": 16, "batch_unlabeled": 16, "warmup": 1, "evaluate_every": 3, "checkpoint_every": 2},
    "augmentation": {"steps": 2, "pool_size": 60, "keep_fraction": 0.5, "require_asked_class": False},
    "pseudo_labels": {"batch": 8},
    "data": {"labels": 40, "balanced": True, "validation_fraction": 0.0, "test_fraction": 0.2},
}


def settings(dataset: Dataset, steps: int = 6) -> Settings:
    preset = default_preset("", dataset) or "vector-minutes"
    return load_settings(preset, [f"learning.steps={steps}"], QUICK)


def begun(case: Case, out: Path, steps: int = 6) -> tuple[RunFolder, Dataset]:
    dataset = case.dataset()
    return RunFolder.create(out, Origin("made up"), settings(dataset, steps).first_phase(), dataset), dataset


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture(scope="module")
def fitted(case: Case, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, Dataset]:
    run, dataset = begun(case, tmp_path_factory.mktemp("run") / "out", steps=case.steps)
    loop.fit(run, dataset)
    return run, dataset


@pytest.fixture(scope="module")
def estimator(case: Case) -> LatentEBMClassifier:
    y = np.where(np.arange(120) < 60, case.dataset().train.y, -1)
    quick = {section: QUICK[section] for section in ("sampling", "augmentation")}
    made = LatentEBMClassifier(max_iter=case.steps, random_state=0, settings=quick, **case.arguments)
    return made.fit(case.held(), y)


class Killed(Exception):
    pass


class DiesAt(Silent):
    """Progress that ends the run after a step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def update(self, done: int, total: int, message: str = "") -> None:
        if done == self.step:
            raise Killed


def test_the_data_pass_every_check_and_spoiled_data_do_not(case: Case) -> None:
    dataset = case.dataset()
    check_dataset(dataset)
    assert (len(dataset.train.x), dataset.num_classes) == (120, 2)
    x, y = dataset.train.x, dataset.train.y
    for spoiled in (Examples(x, y[1:]), Examples(x, y + 1), Examples(x, y.astype(np.int32)), Examples(x[:0], y[:0])):
        with pytest.raises(DataError, match="training examples"):
            check_dataset(replace(dataset, train=spoiled))


def test_what_is_learned_can_be_told_apart(fitted: tuple[RunFolder, Dataset]) -> None:
    run, dataset = fitted
    p = probabilities(run.model(), run.encoding, dataset.train.x)
    assert p.shape == (120, 2)
    assert np.allclose(p.sum(axis=1), 1)
    assert (p.argmax(axis=1) == dataset.train.y).mean() > 0.7


def test_the_encoding_survives_json_and_a_stored_example_survives_the_encoding(
    fitted: tuple[RunFolder, Dataset],
) -> None:
    run, dataset = fitted
    again = from_json(json.loads(json.dumps(run.encoding.to_json(), allow_nan=False)))
    x = dataset.train.x[:10]
    assert again.layout == run.encoding.layout
    assert np.array_equal(again.encode(x), run.encoding.encode(x))
    assert run.encoding.encode(x).shape == (10, *run.encoding.layout.shape)
    twice = run.encoding.encode(again.decode(run.encoding.encode(x)))
    assert twice == pytest.approx(run.encoding.encode(x), abs=1e-2)


def test_likelihoods_are_finite_and_feel_the_latent(fitted: tuple[RunFolder, Dataset]) -> None:
    run, dataset = fitted
    model = run.model()
    x = torch.from_numpy(run.encoding.encode(dataset.train.x[:10]))
    z = model.posterior(x).mean.clone().requires_grad_()
    value = model.generator.log_prob(x, z)
    assert value.shape == (10,)
    assert value.isfinite().all()
    (gradient,) = torch.autograd.grad(value.sum(), z)
    assert gradient.abs().sum() > 0


def test_samples_look_like_the_source_s_and_come_again(
    fitted: tuple[RunFolder, Dataset], case: Case, tmp_path: Path
) -> None:
    run, dataset = fitted
    first, second = (
        draw_samples(run.model(), run.encoding, per_class=4, chains=LangevinSettings(5, 0.08), seed=seed)
        for seed in (0, 0)
    )
    assert first.x.shape[1:] == dataset.shape
    assert first.x.dtype.kind == dataset.train.x.dtype.kind
    assert first.x.tobytes() == second.x.tobytes()
    other = draw_samples(run.model(), run.encoding, per_class=4, chains=LangevinSettings(5, 0.08), seed=1)
    assert first.z.tobytes() != other.z.tobytes()
    written = write_items(tmp_path / "samples", run.encoding.items(first.x), [dataset.classes[y] for y in first.y])
    assert tuple(path.suffix for path in written) == case.files
    assert all(path.exists() for path in written)


def test_a_pool_is_drawn_filtered_selected_stored_and_each_sample_comes_again(
    fitted: tuple[RunFolder, Dataset], tmp_path: Path
) -> None:
    run, dataset = fitted
    quick = settings(dataset)
    done = augment(run.model(), run.encoding, settings=quick.augmentation, sampling=quick.sampling, seed=0)
    pool = done.pool
    assert 0 < len(pool.selected) <= len(pool.survivors) <= len(pool) == 60
    pool.write(tmp_path / "pool.npz")
    assert SyntheticPool.read(tmp_path / "pool.npz").x.tobytes() == pool.x.tobytes()
    row = int(pool.selected[-1])
    assert draw_again(run.model(), run.encoding, pool, row).tobytes() == pool.x[-1].tobytes()


def test_a_run_killed_in_either_phase_and_resumed_equals_an_unbroken_one(case: Case, tmp_path: Path) -> None:
    whole = loaded_bytes(second_phase(case, tmp_path / "whole", die_at=()))
    assert loaded_bytes(second_phase(case, tmp_path / "broken", die_at=(3, 7))) == whole


def second_phase(case: Case, out: Path, die_at: tuple[int, ...]) -> RunFolder:
    dataset = case.dataset()
    run = RunFolder.create(out, Origin("made up"), settings(dataset), dataset)
    for step in die_at:
        with pytest.raises(Killed):
            loop.fit(run, dataset, progress=DiesAt(step))
        run = RunFolder.open(out)
    loop.fit(run, dataset)
    return run


def loaded_bytes(run: RunFolder) -> list[bytes]:
    return [run.last.read_bytes(), run.best.read_bytes(), (run.path / "history.jsonl").read_bytes()]


def test_an_opened_run_predicts_as_before(fitted: tuple[RunFolder, Dataset]) -> None:
    run, dataset = fitted
    again = RunFolder.open(run.path)
    ours, theirs = (probabilities(one.model(), one.encoding, dataset.train.x[:20]) for one in (run, again))
    assert np.array_equal(ours, theirs)


def test_the_estimator_learns_draws_and_is_the_same_from_its_file(
    estimator: LatentEBMClassifier, case: Case, tmp_path: Path
) -> None:
    held, y = case.held(), case.dataset().train.y
    assert estimator.score(held, y) > 0.7
    assert estimator.transform(held).shape == (120, estimator.settings_.model.latent_dim)
    assert np.isfinite(estimator.score_samples(held)).all()
    again = LatentEBMClassifier.load(estimator.save(tmp_path / "estimator.safetensors"))
    assert np.array_equal(again.predict_proba(held), estimator.predict_proba(held))
    (x, labels), (same, _) = estimator.sample(3), again.sample(3)
    assert type(x) is type(same)
    assert labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert estimator.predict_proba(as_input(x)).shape == (6, 2)


def as_input(x: Any) -> Any:
    """Samples as `predict` takes them: of sounds, the waveforms."""
    return x.sounds if hasattr(x, "sounds") else x


def test_the_estimator_s_pool_comes_with_its_proof(estimator: LatentEBMClassifier, case: Case) -> None:
    done = estimator.augment(X_test=case.held(), y_test=case.dataset().train.y)
    assert done.proof.num_items == (120,)
    assert len(done.y) == len(done.sample_weight) == len(done.pool.selected) > 0


def test_the_same_seed_gives_the_same_estimator(case: Case, estimator: LatentEBMClassifier) -> None:
    y = np.where(np.arange(120) < 60, case.dataset().train.y, -1)
    again = LatentEBMClassifier(**estimator.get_params()).fit(case.held(), y)
    assert np.array_equal(again.predict_proba(case.held()), estimator.predict_proba(case.held()))


def test_spoiled_examples_are_refused_in_one_sentence(estimator: LatentEBMClassifier, case: Case) -> None:
    with pytest.raises(ValueError) as caught:
        estimator.predict(case.spoiled())
    assert len(str(caught.value)) > 20


def test_a_damaged_encoding_is_refused(fitted: tuple[RunFolder, Dataset]) -> None:
    stored = fitted[0].encoding.to_json()
    for name in set(stored) - {"kind"}:
        damaged = {key: value for key, value in stored.items() if key != name}
        with pytest.raises(SynthsieveError):
            from_json(damaged)


def test_a_kind_can_be_registered_only_once_and_without_touching_the_package() -> None:
    module = own()
    assert "counted-digits" in sources.source_names()
    with pytest.raises(SynthsieveError, match="taken"):
        register_modality(
            "counts",
            fit_encoding=lambda dataset, rows: None,  # type: ignore[arg-type, return-value]
            read_encoding=lambda value: None,  # type: ignore[arg-type, return-value]
            make_encoder=module.make_encoder,
            make_generator=module.BinomialGenerator,
        )
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) < 80
