"""What test_device.py runs, in a process of its own, since a device stays: every kind of data, here and far away."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import synthsieve
from synthsieve import CoresetSelector, LatentEBMClassifier
from synthsieve.data.origin import Origin
from synthsieve.experiments.baselines.registry import METHODS
from synthsieve.experiments.baselines.trainer import answers_on
from synthsieve.settings import Coreset
from synthsieve.training.batches import BatchSource
from synthsieve.training.defaults import settings_for
from synthsieve.training.loop import fit
from synthsieve.training.reference_file import attach_or_fit
from synthsieve.training.run_dir import RunDirectory
from tests.contracts.test_modalities import CASES, as_input, settings
from tests.contracts.test_modalities import QUICK as QUICK_SECTIONS
from tests.experiments.test_benchmark_methods import blobs
from tests.training.conftest import QUICK
from tests.training.far_device import FAR
from tests.training.parallel_job import EVERYTHING

CPU = torch.device("cpu")
CLOSE = {"rtol": 1e-3, "atol": 1e-3}


def dataset_and_settings(kind):
    if kind == "digits":
        overrides = [*QUICK, *EVERYTHING, "augmentation.reselect_every=2"]
        return Origin("digits").load(), settings_for("digits", overrides=overrides)
    # Gradients of two classes lie on a line. There the best centre of an even number of samples is not unique: both
    # middle ones are equally good, and the last bit decides. So these train on all that pass the filter; the digits, of
    # ten classes, train on a coreset.
    dataset = CASES[kind].dataset()
    return dataset, settings(dataset).changed("augmentation", coreset=Coreset.EVERYTHING)


def train(folder, dataset, requested):
    """A run on each device, and the mixture that it draws from."""
    for place, device in (("here", CPU), ("far", FAR)):
        run = RunDirectory.create(folder / place, Origin(dataset.name), requested, dataset, device=device)
        fit(run, dataset, device=device)
        assert RunDirectory.open(run.path).device == str(device)
    model = run.load_model(device=FAR)
    attach_or_fit(run, model, dataset)
    assert model.reference.mixture.means.device == model.device == FAR


def use(run, kind):
    """What was trained far away draws, measures and predicts the same here and far away."""
    drawn = [synthsieve.sample(run, per_class=3, to=run / f"{d.type}.npz", device=d).samples for d in (CPU, FAR)]
    np.testing.assert_allclose(drawn[1].z, drawn[0].z, **CLOSE)
    if drawn[0].x.dtype.kind == "f":
        np.testing.assert_allclose(drawn[1].x, drawn[0].x, **CLOSE)
    measured = [synthsieve.evaluate(run, device=device).as_dict() for device in (CPU, FAR)]
    assert [each["device"] for each in measured] == ["cpu", "far:0"]
    np.testing.assert_allclose(measured[1]["log_loss"], measured[0]["log_loss"], **CLOSE)
    x = Origin("").load().train.x[:20] if kind == "digits" else CASES[kind].in_memory()
    rate = {"rate": CASES["sound"].arguments["rate"]} if kind == "sound" else {}  # waveforms do not tell theirs
    found = [synthsieve.load(run, device=device).set_params(**rate).predict_proba(x) for device in (CPU, FAR)]
    np.testing.assert_allclose(found[1], found[0], **CLOSE)


def estimate(folder, kind):
    """The estimator: fit, predict, transform, score, sample, augment, save and load."""
    case, found = CASES[kind], {}
    y = np.where(np.arange(120) < 60, case.dataset().train.y, -1)
    quick = {section: QUICK_SECTIONS[section] for section in ("sampling", "augmentation")}
    for device in (CPU, FAR):
        made = LatentEBMClassifier(max_iter=6, random_state=0, settings=quick, device=device, **case.arguments)
        made.fit(case.in_memory(), y)
        assert (made.device_, made.model_.device) == (str(device), device)
        found[device.type] = [
            *(each(case.in_memory()) for each in (made.predict_proba, made.transform, made.score_samples)),
            made.predict_proba(as_input(made.sample(3)[0])),
            made.augment(X_test=case.in_memory(), y_test=case.dataset().train.y).pool.logits_x,
        ]
    # Drawn cells and words may differ where a number rounds, and the phases of a drawn sound amplify rounding.
    for here, far in list(zip(*found.values(), strict=True))[: 3 if kind in ("table", "text", "sound") else None]:
        np.testing.assert_allclose(far, here, **CLOSE)
    again = LatentEBMClassifier.load(made.save(folder / "estimator"), device="cpu")
    np.testing.assert_allclose(again.predict_proba(case.in_memory()), found["far"][0], **CLOSE)


def results(run):
    """What is made of a finished run: its pool, decoded and selected from again, an export and a report."""
    views = [synthsieve.open_run(run, device=device).pool() for device in (CPU, FAR)]
    assert views[1].model.device == FAR
    rows = np.arange(len(views[0]))[:10]
    for computed in (lambda view: view.decode(rows), lambda view: view.real_latents, lambda view: view.chain(0)[1]):
        here, far = map(computed, views)
        if here.dtype.kind == "S":  # words may differ where a number rounds
            assert (far == here).mean() > 0.5
            continue
        np.testing.assert_allclose(
            far.astype(float), here.astype(float), rtol=1e-3, atol=1 if here.dtype.kind == "u" else 1e-3
        )
    for device in (CPU, FAR):
        synthsieve.export(run, run / f"export-{device.type}", coreset="herding", format="npz", device=device)
        synthsieve.report(run, to=run / f"{device.type}.html", device=device)


def benchmark(name):
    """A method of the benchmark learns the same here and far away, and continues from its tensors."""
    method, found, steps = METHODS[name], [], 22
    for device in (CPU, FAR):
        task = replace(blobs(), device=device)
        learned, batches = method(task, **method.grid[0]), BatchSource(task.data, task.settings, device=device)
        for step in range(steps):
            learned.done = step / steps
            learned.advance(next(batches))
        found.append(answers_on(learned, task, "test").probabilities)
        again = method(task, **method.grid[0])
        again.restore(learned.tensors(), learned.steps)
        np.testing.assert_array_equal(answers_on(again, task, "test").probabilities, found[-1])
        again.advance(next(batches))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-2, atol=1e-2, err_msg=name)


def select():
    """Tensors far away: the same picks, by products far away."""
    points = np.random.default_rng(0).normal(size=(400, 64)).astype(np.float32)
    y = np.arange(400) % 3
    here = synthsieve.select(embeddings=points, labels=y, require_label=False)
    far = synthsieve.select(embeddings=torch.from_numpy(points).to(FAR), labels=y, require_label=False)
    np.testing.assert_array_equal(far.indices, here.indices)
    chosen = CoresetSelector(embeddings=True, device=FAR).fit(points)
    np.testing.assert_array_equal(chosen.indices_, CoresetSelector(embeddings=True).fit(points).indices_)


def main(folder, *kinds):
    torch.set_num_threads(1)
    if kinds == ("select",):
        select()
        return
    if kinds == ("benchmark",):
        for name in METHODS:
            benchmark(name)
        return
    for kind in kinds:
        dataset, requested = dataset_and_settings(kind)
        Origin.load = lambda self, progress=None, dataset=dataset: dataset
        train(Path(folder) / kind, dataset, requested)
        use(Path(folder) / kind / "far", kind)
        results(Path(folder) / kind / "far")
        if kind != "digits":
            estimate(Path(folder) / kind, kind)


if __name__ == "__main__":
    main(*sys.argv[1:])
