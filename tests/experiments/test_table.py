"""An experiment before it runs: its jobs, its judge, and what is refused before anything is written."""

from dataclasses import replace

import numpy as np
import pytest

from synthsieve.config import Keep
from synthsieve.data.dataset import UNLABELED, Dataset, Examples, Kind
from synthsieve.defaults import settings_for
from synthsieve.errors import SynthsieveError
from synthsieve.experiments.arms import Arm, cells, cells_for
from synthsieve.experiments.classical_methods import CLASSICAL
from synthsieve.experiments.table import CrossFitting, Experiment, Unit, cross_fitting_of
from synthsieve.learning.run_folder import Origin, RunFolder
from tests.experiments.conftest import TINY


def experiment(out, *more, seeds=(0, 1)):
    settings = settings_for("digits", overrides=[*TINY, *more])
    table = cells(settings.proof.pool_sizes, baselines=settings.proof.baselines)
    return Experiment(out, Origin("digits"), settings, seeds, tuple(table))


def vectors(known):
    """200 vectors of two classes, of which `known` have their label."""
    y = np.arange(200) % 2
    x = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32) + y[:, None]
    return Dataset("made up", Kind.VECTOR, ("a", "b"), Examples(x, np.where(np.arange(200) < known, y, UNLABELED)))


def test_first_phases_and_judge_come_before_every_arm(tmp_path):
    plan = experiment(tmp_path)
    jobs = plan.jobs(vectors(200))
    assert len({job.folder for job in jobs}) == len({job.name for job in jobs}) == 1 + 2 * len(plan.cells)
    for job in jobs:
        seed = job.settings.seed
        if job.branch_of is None:
            assert job.after == ()
            assert job.steps == job.settings.total_steps == job.settings.learning.steps
        else:
            assert job.after == (plan.first_phase(Unit(seed)), plan.judge)
            assert job.branch_of == plan.first_phase(Unit(seed))
            assert job.folder.parent == plan.first_phase(Unit(seed)).parent
            assert job.judge == plan.judge
            assert job.steps == 6


def test_baselines_wait_for_nobody_and_can_be_left_out(tmp_path):
    plan = experiment(tmp_path)
    twins = [job for job in plan.jobs(vectors(200)) if job.name.startswith(Arm.SUPERVISED)]
    assert [job.folder for job in twins] == [tmp_path / f"seed-{seed}" / "supervised-only" for seed in (0, 1)]
    assert all(job.branch_of is None and job.judge is None for job in twins)
    classical = plan.classical_jobs(vectors(200))
    assert len({job.place for job in classical}) == len({job.name for job in classical}) == 2 * len(CLASSICAL)
    assert {job.after for job in (*twins, *classical)} == {()}
    assert plan.size_in_words == f"{len(plan.cells) - 1} variants, {1 + len(CLASSICAL)} baselines, 2 seeds"

    bare = experiment(tmp_path, "proof.baselines=false", seeds=(0,))
    assert not [job for job in bare.jobs(vectors(200)) if job.name.startswith(Arm.SUPERVISED)]
    assert bare.classical_jobs(vectors(200)) == []
    assert bare.size_in_words == f"{len(bare.cells)} variants, 1 seed"
    arms = [{job.folder: job.settings for job in each.jobs(vectors(200)) if job.branch_of} for each in (plan, bare)]
    assert arms[1].items() <= arms[0].items()  # so that baselines may be added to finished arms


def test_without_twice_the_labels_there_is_no_judge(tmp_path):
    plan = experiment(tmp_path, "data.labels=20")
    assert plan.jobs(vectors(40))[0].name == "the judge"
    jobs = plan.jobs(vectors(39))
    assert all(job.judge is None and plan.judge not in (job.folder, *job.after) for job in jobs)
    everything = experiment(tmp_path, "data.labels=none")
    assert all(job.judge is None for job in everything.jobs(vectors(200)))


def test_check_gives_the_split_and_writes_nothing(tmp_path, digits):
    out = tmp_path / "out"
    split = experiment(out).check(digits)
    assert (len(split.labeled), split.seed) == (50, 0)
    assert not out.exists()


@pytest.mark.parametrize(
    ("more", "known", "sentence"),
    [
        (["data.labels=500"], 200, "asks for 250 of each class"),
        (["data.labels=1"], 200, "every class needs at least one label"),
        (["data.labels=4"], 9, "at least 2 labelled rows to measure on"),
        (["model.generator=dcgan"], 200, "generator"),
        (["augmentation.augment_from_step=6"], 200, "must lie in the second phase, 12 to 17"),
        (["augmentation.augment_from_step=18"], 200, "must lie in the second phase, 12 to 17"),
        (["data.validation_fraction=0", "augmentation.entropy_ceiling=auto"], 200, "needs validation rows"),
        (["learning.objective=supervised"], 200, "trains no generator to draw from"),
    ],
)
def test_check_refuses_what_would_fail_later(tmp_path, more, known, sentence):
    out = tmp_path / "out"
    with pytest.raises(SynthsieveError, match=sentence):
        experiment(out, *more).check(vectors(known))
    assert not out.exists()


def test_check_refuses_a_file_and_runs_of_other_settings_or_data(tmp_path, digits):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    with pytest.raises(SynthsieveError, match="is no folder"):
        experiment(tmp_path / "file").check(digits)
    plan = experiment(tmp_path / "out")
    arm = plan.jobs(digits)[-1]
    RunFolder.create(arm.folder, plan.origin, arm.settings, digits)
    plan.check(digits)
    with pytest.raises(SynthsieveError, match=r"was begun with augmentation.temperature=0.5, not 0.7"):
        experiment(tmp_path / "out", "augmentation.temperature=0.7").check(digits)
    fewer = replace(digits, train=Examples(digits.train.x[1:], digits.train.y[1:]))
    with pytest.raises(SynthsieveError, match="other rows or labels"):
        plan.check(fewer)


def few_labels(out, dataset, *more, seeds=(0, 1)):
    settings = settings_for("made-up.csv", dataset, overrides=[*TINY, *more])
    return Experiment(
        out, Origin("made-up.csv"), settings, seeds, cells_for(settings.proof), cross_fitting_of(dataset, settings)
    )


def test_few_labels_are_cross_fitted_and_every_label_trains_the_model_kept(tmp_path):
    plan = few_labels(tmp_path, vectors(60))
    assert plan.cross_fitting == CrossFitting(5, measures=True)
    assert plan.whole_units == [Unit(0)]
    assert plan.units == [Unit(0), *(Unit(seed, fold) for seed in (0, 1) for fold in range(5))]
    assert len(plan.check(vectors(60)).labeled) == 60
    assert plan.measured_rows(vectors(60)) == 60
    jobs = plan.jobs(vectors(60))
    assert len(jobs) == len({job.folder for job in jobs}) == 11 * len(plan.cells)
    assert {job.settings.learning.keep for job in jobs} == {Keep.LAST}


def test_with_a_test_set_outside_the_labels_cross_fitting_only_chooses(tmp_path):
    dataset = vectors(60)
    with_test = replace(dataset, test=vectors(200).train)
    plan = few_labels(tmp_path, with_test)
    assert plan.cross_fitting == CrossFitting(5, measures=False)
    assert plan.whole_units == [Unit(0), Unit(1)]
    assert plan.measured_rows(with_test) == 200
    both = replace(with_test, validation=vectors(100).train)
    assert few_labels(tmp_path, both).cross_fitting is None
    assert cross_fitting_of(vectors(60), settings_for("digits")) is None


def test_many_labels_and_fractions_asked_for_are_split_once(tmp_path):
    many = Dataset("many", Kind.VECTOR, ("a", "b"), Examples(np.zeros((400, 2), np.float32), np.arange(400) % 2))
    assert few_labels(tmp_path, many).cross_fitting is None
    assert few_labels(tmp_path, vectors(60), "data.validation_fraction=0.2").cross_fitting is None
