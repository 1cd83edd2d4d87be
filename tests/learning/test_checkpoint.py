"""A checkpoint is taken up bit for bit, or refused with a sentence."""

import json
import struct

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from synthsieve.errors import CheckpointError
from synthsieve.learning import checkpoint
from synthsieve.learning.loop import BatchSource, fit
from synthsieve.learning.step import take_step


@pytest.fixture
def written(quick_run, digits):
    run = quick_run("run", "learning.steps=3", "learning.checkpoint_every=3")
    fit(run, digits)
    return run


def test_every_number_comes_back(written):
    learner, again = written.new_learner(), written.new_learner()
    checkpoint.load(written.last, learner)
    checkpoint.load(written.last, again)
    fresh = written.new_learner()
    assert learner.step == 3
    assert any(not torch.equal(a, b) for a, b in zip(learner.model.parameters(), fresh.model.parameters(), strict=True))
    for name, optimiser in learner.optimisers.items():
        states = optimiser.state_dict()["state"], again.optimisers[name].state_dict()["state"]
        assert len(states[0]) > 0
        assert all(torch.equal(states[0][i]["exp_avg"], states[1][i]["exp_avg"]) for i in states[0])


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
    learner, source = run.new_learner(), BatchSource(run, digits)
    for _ in range(3):
        take_step(learner, next(source))
    checkpoint.save(run.last, learner, {"batches": source.state()})
    other, other_source = run.new_learner(), BatchSource(run, digits)
    other_source.restore(checkpoint.load(run.last, other)["batches"])
    for _ in range(3):
        take_step(learner, next(source))
        take_step(other, next(other_source))
    assert learner.terms == other.terms
    assert all(torch.equal(a, b) for a, b in zip(learner.model.parameters(), other.model.parameters(), strict=True))
    averaged, other_averaged = learner.averaged.state_dict(), other.averaged.state_dict()
    assert all(torch.equal(averaged[name], other_averaged[name]) for name in averaged)
    assert all(
        torch.equal(learner.generators[name].get_state(), other.generators[name].get_state())
        for name in learner.generators
    )


@pytest.mark.parametrize("keep", [0, 5, 200, 0.5, -1])
def test_a_truncated_file_is_refused(written, keep):
    data = written.last.read_bytes()
    written.last.write_bytes(data[: int(keep * len(data)) if isinstance(keep, float) else keep])
    with pytest.raises(CheckpointError, match="is not a whole checkpoint"):
        checkpoint.load(written.last, written.new_learner())


def test_a_flipped_bit_is_found(written):
    data = bytearray(written.last.read_bytes())
    data[-100] ^= 1
    written.last.write_bytes(bytes(data))
    with pytest.raises(CheckpointError, match="is damaged"):
        checkpoint.load(written.last, written.new_learner())


def test_a_bit_flipped_in_the_header_is_found(written):
    """It says where a run goes on, as much as the weights do."""
    data, learner = written.last.read_bytes(), written.new_learner()
    for said, instead in ((b'step\\": 3', b'step\\": 2'), (b'position\\": 10', b'position\\": 30')):
        assert said in data
        written.last.write_bytes(data.replace(said, instead, 1))
        with pytest.raises(CheckpointError, match="is damaged: its header does not match its checksum"):
            checkpoint.load(written.last, learner)
    header = 8 + struct.unpack("<Q", data[:8])[0]
    for place in np.random.default_rng(0).integers(8 * header, size=60):
        changed = bytearray(data)
        changed[place // 8] ^= 1 << place % 8
        written.last.write_bytes(bytes(changed))
        with pytest.raises(CheckpointError):
            checkpoint.load(written.last, learner)


def test_a_header_of_an_older_version_has_no_checksum_and_is_read_alike(written):
    learner, other = written.new_learner(), written.new_learner()
    notes = checkpoint.load(written.last, learner)
    header, tensors = checkpoint._read(written.last)
    del header["header_sha256"]
    save_file(tensors, written.last, metadata={"synthsieve": json.dumps(header)})
    assert checkpoint.load(written.last, other) == notes
    assert other.step == learner.step == 3
    assert all(torch.equal(a, b) for a, b in zip(learner.model.parameters(), other.model.parameters(), strict=True))


def test_foreign_files_are_refused(written):
    save_file({"a": torch.zeros(1)}, written.last)
    with pytest.raises(CheckpointError, match="no checkpoint of this program"):
        checkpoint.load(written.last, written.new_learner())
    np.savez(written.last.with_suffix(".npz"), a=np.zeros(1))
    with pytest.raises(CheckpointError, match="is not a whole checkpoint"):
        checkpoint.load(written.last.with_suffix(".npz"), written.new_learner())
    header = json.dumps({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}).encode()
    written.last.write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(CheckpointError, match="is not a whole checkpoint"):
        checkpoint.load(written.last, written.new_learner())


def test_another_run_s_checkpoint_is_refused(written, quick_run):
    other = quick_run("other", "model.energy_width=17")
    with pytest.raises(CheckpointError, match="written with another settings"):
        checkpoint.load(written.last, other.new_learner())
    learner = written.new_learner()
    learner.data = "other rows"
    with pytest.raises(CheckpointError, match="written with another data"):
        checkpoint.load_weights(written.best, learner)
