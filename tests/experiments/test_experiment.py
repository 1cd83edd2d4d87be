"""An experiment before it runs: its jobs, its oracle, and what is refused before anything is written."""

from dataclasses import replace

import numpy as np
import pytest

from synthsieve.data.dataset import UNLABELED, Dataset, Examples, Kind
from synthsieve.data.origin import Origin
from synthsieve.errors import ConfigError, SynthsieveError
from synthsieve.experiments.arms import Arm, entries_for, table_entries
from synthsieve.experiments.baselines.sklearn_models import CLASSICAL
from synthsieve.experiments.experiment import CrossFitting, Experiment, Unit, cross_fitting_of
from synthsieve.settings import Keep
from synthsieve.training.defaults import settings_for
from synthsieve.training.run_dir import RunDirectory
from tests.errors import raises
from tests.experiments.conftest import SMALL_SETTINGS


def experiment(out, *more, seeds=(0, 1)):
    settings = settings_for("digits", overrides=[*SMALL_SETTINGS, *more])
    table = table_entries(settings.comparison.pool_sizes, baselines=settings.comparison.baselines)
    return Experiment(out, Origin("digits"), settings, seeds, tuple(table))


def vectors(known):
    """200 vectors of two classes, of which `known` have their label."""
    y = np.arange(200) % 2
    x = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32) + y[:, None]
    return Dataset("made up", Kind.VECTOR, ("a", "b"), Examples(x, np.where(np.arange(200) < known, y, UNLABELED)))


def test_pretraining_and_oracle_come_before_every_arm(tmp_path):
    plan = experiment(tmp_path)
    jobs = plan.jobs(vectors(200))
    assert len({job.folder for job in jobs}) == len({job.name for job in jobs}) == 1 + 2 * len(plan.entries)
    for job in jobs:
        seed = job.settings.seed
        if job.branch_of is None:
            assert job.after == ()
            assert job.steps == job.settings.total_steps == job.settings.training.steps
        else:
            assert job.after == (plan.pretrained(Unit(seed)), plan.oracle)
            assert job.branch_of == plan.pretrained(Unit(seed))
            assert job.folder.parent == plan.pretrained(Unit(seed)).parent
            assert job.oracle == plan.oracle
            assert job.steps == 6


def test_baselines_wait_for_no_job_and_can_be_left_out(tmp_path):
    plan = experiment(tmp_path)
    supervised_baselines = [job for job in plan.jobs(vectors(200)) if job.name.startswith(Arm.SUPERVISED)]
    assert [job.folder for job in supervised_baselines] == [
        tmp_path / f"seed-{seed}" / "supervised-only" for seed in (0, 1)
    ]
    assert all(job.branch_of is None and job.oracle is None for job in supervised_baselines)
    classical = plan.classical_jobs(vectors(200))
    assert len({job.output_path for job in classical}) == len({job.name for job in classical}) == 2 * len(CLASSICAL)
    assert {job.after for job in (*supervised_baselines, *classical)} == {()}
    assert plan.describe_size == f"{len(plan.entries) - 1} variants, {1 + len(CLASSICAL)} baselines, 2 seeds"

    bare = experiment(tmp_path, "comparison.baselines=false", seeds=(0,))
    assert not [job for job in bare.jobs(vectors(200)) if job.name.startswith(Arm.SUPERVISED)]
    assert bare.classical_jobs(vectors(200)) == []
    assert bare.describe_size == f"{len(bare.entries)} variants, 1 seed"
    arms = [{job.folder: job.settings for job in each.jobs(vectors(200)) if job.branch_of} for each in (plan, bare)]
    assert arms[1].items() <= arms[0].items()  # so that baselines may be added to finished arms


def test_without_twice_the_labels_there_is_no_oracle(tmp_path):
    plan = experiment(tmp_path, "data.labels=20")
    assert plan.jobs(vectors(40))[0].name == "oracle"
    jobs = plan.jobs(vectors(39))
    assert all(job.oracle is None and plan.oracle not in (job.folder, *job.after) for job in jobs)
    everything = experiment(tmp_path, "data.labels=none")
    assert all(job.oracle is None for job in everything.jobs(vectors(200)))


def test_check_gives_the_split_and_writes_nothing(tmp_path, digits):
    out = tmp_path / "out"
    split = experiment(out).check(digits)
    assert (len(split.labeled), split.seed) == (50, 0)
    assert not out.exists()


@pytest.mark.parametrize(
    ("more", "known", "code"),
    [
        (["data.labels=500"], 200, "too-few-labels"),
        (["data.labels=1"], 200, "too-few-labels"),
        (["data.labels=4"], 9, "no-test-rows"),
        (["model.generator=dcgan"], 200, "image-shape"),
        (["augmentation.augment_from_step=6"], 200, "augment-in-pretraining"),
        (["augmentation.augment_from_step=18"], 200, "augment-in-pretraining"),
        (["data.validation_fraction=0", "augmentation.entropy_ceiling=auto"], 200, "no-validation-rows"),
        (["training.objective=supervised"], 200, "no-generator"),
    ],
)
def test_check_refuses_what_would_fail_later(tmp_path, more, known, code):
    out = tmp_path / "out"
    with raises(SynthsieveError, code):
        experiment(out, *more).check(vectors(known))
    assert not out.exists()


@pytest.mark.parametrize("setting", ["data.labels=500", "data.labels=1", "model.generator=dcgan"])
def test_check_refuses_what_cannot_be_split_or_built(tmp_path, setting):
    with pytest.raises(SynthsieveError):
        experiment(tmp_path / "out", setting).check(vectors(200))
    assert not (tmp_path / "out").exists()


def test_check_refuses_a_file_and_runs_of_other_settings_or_data(tmp_path, digits):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    with raises(ConfigError, "cannot-write"):
        experiment(tmp_path / "file").check(digits)
    plan = experiment(tmp_path / "out")
    arm = plan.jobs(digits)[-1]
    RunDirectory.create(arm.folder, plan.origin, arm.settings, digits)
    plan.check(digits)
    with raises(ConfigError, "changed-settings"):
        experiment(tmp_path / "out", "augmentation.temperature=0.7").check(digits)
    fewer = replace(digits, train=Examples(digits.train.x[1:], digits.train.y[1:]))
    with raises(SynthsieveError, "other-data"):
        plan.check(fewer)


def few_labels(out, dataset, *more, seeds=(0, 1)):
    settings = settings_for("made-up.csv", dataset, overrides=[*SMALL_SETTINGS, *more])
    return Experiment(
        out, Origin("made-up.csv"), settings, seeds, entries_for(settings), cross_fitting_of(dataset, settings)
    )


def test_few_labels_are_cross_fitted_and_every_label_trains_the_model_kept(tmp_path):
    plan = few_labels(tmp_path, vectors(60))
    assert plan.cross_fitting == CrossFitting(5, measures=True)
    assert plan.whole_units == [Unit(0)]
    assert plan.units == [Unit(0), *(Unit(seed, fold) for seed in (0, 1) for fold in range(5))]
    assert len(plan.check(vectors(60)).labeled) == 60
    assert plan.measured_rows(vectors(60)) == 60
    jobs = plan.jobs(vectors(60))
    assert len(jobs) == len({job.folder for job in jobs}) == 11 * len(plan.entries)
    assert {job.settings.training.keep for job in jobs} == {Keep.LAST}


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


def test_many_labels_or_given_fractions_are_split_once(tmp_path):
    many = Dataset("many", Kind.VECTOR, ("a", "b"), Examples(np.zeros((400, 2), np.float32), np.arange(400) % 2))
    assert few_labels(tmp_path, many).cross_fitting is None
    assert few_labels(tmp_path, vectors(60), "data.validation_fraction=0.2").cross_fitting is None
