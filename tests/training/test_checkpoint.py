"""A checkpoint is taken up bit for bit, or refused with a sentence."""

import json
import struct
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from synthsieve.errors import CheckpointError
from synthsieve.evaluation.predict import part_of, probabilities
from synthsieve.io.tensors import read_tensors, signed
from synthsieve.models.calibration import Calibration
from synthsieve.training import checkpoint
from synthsieve.training.batches import BatchSource
from synthsieve.training.loop import fit
from synthsieve.training.step import take_step
from tests.errors import raises


@pytest.fixture
def written(quick_run, digits):
    run = quick_run("run", "training.steps=3", "training.checkpoint_every=3")
    fit(run, digits)
    return run


def test_every_number_comes_back(written):
    train_state, again = written.new_train_state(), written.new_train_state()
    checkpoint.load(written.last, train_state)
    checkpoint.load(written.last, again)
    fresh = written.new_train_state()
    assert train_state.step == 3
    assert any(
        not torch.equal(a, b) for a, b in zip(train_state.model.parameters(), fresh.model.parameters(), strict=True)
    )
    for name, optimiser in train_state.optimisers.items():
        states = optimiser.state_dict()["state"], again.optimisers[name].state_dict()["state"]
        assert len(states[0]) > 0
        assert all(torch.equal(states[0][i]["exp_avg"], states[1][i]["exp_avg"]) for i in states[0])


def test_the_best_weights_carry_the_temperature_that_validation_gave_them(written, digits):
    model, x = written.load_model(), digits.train.x[:50]
    _, y = part_of(digits, written.split, "validation")
    assert (model.calibration.rows, model.calibration.source) == (len(y), "validation")
    assert model.calibration.temperature != 1
    before = probabilities(model, written.encoding, x, calibrated=False)
    after = probabilities(model, written.encoding, x)
    assert np.abs(after - before).max() > 1e-4
    assert np.array_equal(after.argmax(axis=1), before.argmax(axis=1))


def test_weights_without_a_temperature_are_not_calibrated(written, digits):
    """As those that earlier versions wrote."""
    state = written.new_train_state()
    checkpoint.save_weights(written.best, state, {"best": {"step": 3}})
    assert written.load_model().calibration == Calibration()


NETWORKS = {
    "mlp": [],
    "strided, two towers": ["model.encoder=strided", "model.encoder_width=4", "model.generator=strided"],
    "wide resnet, batch norm": [
        "model.encoder=wide-resnet",
        "model.encoder_depth=10",
        "model.encoder_width=1",
        "model.norm=batch",
        "model.generator=dcgan",
        "model.label_latent_dim=0",
    ],
}


@pytest.mark.parametrize("overrides", NETWORKS.values(), ids=NETWORKS)
def test_going_on_from_disk_equals_going_on_in_memory(quick_run, digits, overrides):
    run = quick_run("run", "model.generator_width=4", "model.label_width=4", *overrides)
    train_state, source = run.new_train_state(), BatchSource(run.data(digits), run.settings)
    for _ in range(3):
        take_step(train_state, next(source))
    checkpoint.save(run.last, train_state, {"batches": source.state()})
    other, other_source = run.new_train_state(), BatchSource(run.data(digits), run.settings)
    other_source.restore(checkpoint.load(run.last, other)["batches"])
    for _ in range(3):
        take_step(train_state, next(source))
        take_step(other, next(other_source))
    assert train_state.metrics == other.metrics
    assert all(torch.equal(a, b) for a, b in zip(train_state.model.parameters(), other.model.parameters(), strict=True))
    averaged, other_averaged = train_state.averaged.state_dict(), other.averaged.state_dict()
    assert all(torch.equal(averaged[name], other_averaged[name]) for name in averaged)
    assert all(
        torch.equal(train_state.rngs[name].get_state(), other.rngs[name].get_state()) for name in train_state.rngs
    )


@pytest.mark.parametrize("keep", [0, 5, 200, 0.5, -1])
def test_a_truncated_file_is_refused(written, keep):
    data = written.last.read_bytes()
    written.last.write_bytes(data[: int(keep * len(data)) if isinstance(keep, float) else keep])
    with raises(CheckpointError, "damaged-file"):
        checkpoint.load(written.last, written.new_train_state())


def test_a_flipped_bit_is_found(written):
    data = bytearray(written.last.read_bytes())
    data[-100] ^= 1
    written.last.write_bytes(bytes(data))
    with raises(CheckpointError, "damaged-file"):
        checkpoint.load(written.last, written.new_train_state())


def test_a_bit_flipped_in_the_header_is_found(written):
    """It says where a run goes on, as much as the weights do."""
    data, train_state = written.last.read_bytes(), written.new_train_state()
    for output, instead in ((b'step\\": 3', b'step\\": 2'), (b'position\\": 10', b'position\\": 30')):
        assert output in data
        written.last.write_bytes(data.replace(output, instead, 1))
        with raises(CheckpointError, "damaged-file"):
            checkpoint.load(written.last, train_state)
    header = 8 + struct.unpack("<Q", data[:8])[0]
    checksum = data.rindex(b"header_sha256")
    places = {*np.random.default_rng(0).integers(8 * header, size=60), *range(8 * checksum, 8 * (checksum + 20), 5)}
    for place in places:
        changed = bytearray(data)
        changed[place // 8] ^= 1 << place % 8
        written.last.write_bytes(bytes(changed))
        with pytest.raises(CheckpointError):
            checkpoint.load(written.last, train_state)


def test_a_header_without_its_checksum_is_refused(written):
    header, tensors = read_tensors(written.last, checkpoint.FORMAT)
    del header["header_sha256"]
    for text, damaged in ((signed(json.dumps(header)), False), (json.dumps(header), True)):
        save_file(tensors, written.last, metadata={"synthsieve": text})
        assert checkpoint.is_valid(written.last) is not damaged


def test_foreign_files_are_refused(written):
    save_file({"a": torch.zeros(1)}, written.last)
    with raises(CheckpointError, "foreign-file"):
        checkpoint.load(written.last, written.new_train_state())
    np.savez(written.last.with_suffix(".npz"), a=np.zeros(1))
    with raises(CheckpointError, "damaged-file"):
        checkpoint.load(written.last.with_suffix(".npz"), written.new_train_state())
    header = json.dumps({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}).encode()
    written.last.write_bytes(struct.pack("<Q", len(header)) + header)
    with raises(CheckpointError, "damaged-file"):
        checkpoint.load(written.last, written.new_train_state())


def test_another_run_s_checkpoint_is_refused(written, quick_run):
    other = quick_run("other", "model.energy_width=17")
    with raises(CheckpointError, "other-run"):
        checkpoint.load(written.last, other.new_train_state())
    train_state = written.new_train_state()
    train_state.data_hash = "other rows"
    with raises(CheckpointError, "other-run"):
        checkpoint.load(written.last, train_state)
    with raises(CheckpointError, "other-run"):
        replace(written, split=quick_run("other-rows", "seed=1").split).load_model()
