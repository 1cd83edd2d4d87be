"""Folders of sounds, spoken digits, and waveforms in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from synthsieve.data.dataset import Kind
from synthsieve.data.modalities.sound.format import SoundFormat, Waveforms
from synthsieve.data.modalities.sound.reading import format_of_lengths, from_files, from_waveforms, resampled
from synthsieve.data.registry import load
from synthsieve.data.splits import make_split
from synthsieve.errors import DataError
from synthsieve.results.export.media import write_wav
from synthsieve.results.export.samples import write_items
from synthsieve.training.defaults import settings_for
from tests.data import made_up_sounds as made_up
from tests.errors import raises


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SYNTHSIEVE_CACHE", str(tmp_path / "cache"))


def test_class_folders(tmp_path: Path) -> None:
    root = made_up.write_sound_folder(tmp_path / "tones")
    (root / "low" / "readme.txt").write_text("words", encoding="utf-8")
    dataset = load(str(root))
    assert (dataset.kind, dataset.classes, dataset.name) == (Kind.SOUND, ("high", "low"), "tones")
    assert isinstance(dataset.metadata, SoundFormat)
    assert dataset.shape == dataset.metadata.shape
    assert (np.bincount(dataset.train.y + 1) == 10).all()
    assert any("1 files that are not sounds" in note for note in dataset.notes)


def test_train_and_test(tmp_path: Path) -> None:
    made_up.write_sound_folder(tmp_path / "tones" / "train")
    made_up.write_sound_folder(tmp_path / "tones" / "test", unlabeled=False, n=3, rate=16000)
    dataset = load(str(tmp_path / "tones"))
    assert dataset.test is not None
    assert len(dataset.test) == 6
    assert dataset.test.x.shape[1:] == dataset.shape


@pytest.mark.parametrize("suffix", [".flac", ".ogg", ".mp3"])
def test_other_audio_formats(suffix: str, tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    for name, hertz in (("low", 300), ("high", 1500)):
        (tmp_path / "tones" / name / "deeper").mkdir(parents=True)
        for i in range(2):
            soundfile.write(tmp_path / "tones" / name / "deeper" / f"{i}{suffix}", made_up.tone(hertz, seed=i), 8000)
    dataset = load(str(tmp_path / "tones"))
    assert (dataset.kind, dataset.classes, dataset.train.y.tolist()) == (Kind.SOUND, ("high", "low"), [0, 0, 1, 1])
    loudest = dataset.train.x[:, 0, :, dataset.shape[2] // 2].argmax(axis=1)
    assert loudest[:2].min() > loudest[2:].max()  # bands are in order of pitch


def test_metadata(tmp_path: Path) -> None:
    dataset = load(str(made_up.write_listed(tmp_path / "tones")))
    assert dataset.classes == ("high", "low")
    assert (dataset.train.y == -1).sum() == 2
    assert dataset.train.groups is not None
    assert np.unique(dataset.train.groups).tolist() == [0, 1, 2]
    split = make_split(dataset, labels=4, validation_fraction=0.5, test_fraction=0.34, seed=0)
    groups = [set(dataset.train.groups[part]) for part in (split.test, split.validation, split.labeled)]
    assert not groups[0] & groups[1] | groups[0] & groups[2] | groups[1] & groups[2]
    assert load(str(made_up.write_listed(tmp_path / "alone", column=None))).train.groups is None


def test_written_samples_can_be_read(tmp_path: Path) -> None:
    sounds = [made_up.tone(hertz, seed=i) for i, hertz in enumerate([300, 1500] * 4)]
    write_items(tmp_path / "samples", Waveforms(sounds, 8000), ["low", "high"] * 4, entropy=[0.5] * 8)
    dataset = load(str(tmp_path / "samples"))
    assert (dataset.classes, len(dataset.train)) == (("high", "low"), 8)


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ("file\n000.wav\n", "missing-column"),
        ("file,label\n", "no-rows"),
        ("", "no-rows"),
        ("file,label\n../secret.wav,low\n", "outside-folder"),
        ("file,label\n/etc/passwd,low\n", "outside-folder"),
        ("file,label\n999.wav,low\n", "missing-file"),
        ("file,label\n000.wav,low\n000.wav,high\n", "repeated-file"),
        ("file,label\n000.wav,low\n../tones/000.wav,high\n", "repeated-file"),
        ("file,label,label\n000.wav,low,high\n", "repeated-column"),
        (f"file,label\n000.wav,{'x' * 999}\n", "long-label"),
        ("file,label,speaker\n000.wav,low,\n", "no-group"),
        ("file,label\n000.wav,low,more\n", "damaged-file"),
        ("file,label\n000.wav,-1\n", "ambiguous-label"),
        ('file,label\n"000.wav,low\n', "damaged-file"),
    ],
)
def test_bad_metadata(tmp_path: Path, table: str, code: str) -> None:
    root = made_up.write_listed(tmp_path / "tones", n=2, table=table)
    with raises(DataError, code) as caught:
        load(str(root))
    assert "\n" not in str(caught.value)


def test_bad_folders(tmp_path: Path) -> None:
    mixed = made_up.write_sound_folder(tmp_path / "mixed", n=2)
    Image.new("L", (8, 8)).save(mixed / "low" / "a.png")
    with raises(DataError, "mixed-folder"):
        load(str(mixed))
    empty = made_up.write_sound_folder(tmp_path / "empty", n=2)
    (empty / "nothing").mkdir()
    with raises(DataError, "empty-class-folder"):
        load(str(empty))
    flat = tmp_path / "flat"
    write_wav(flat / "a.wav", made_up.tone(300), 8000)
    with raises(DataError, "no-class-folders"):
        load(str(flat))
    broken = made_up.write_sound_folder(tmp_path / "broken", n=2)
    (broken / "low" / "bad.wav").write_bytes(b"RIFF")
    with pytest.raises(DataError, match=r"bad\.wav"):
        load(str(broken))


def test_whole_speakers_are_held_out(tmp_path: Path) -> None:
    made_up.write_spoken_digits(tmp_path / "recordings")
    dataset = load("spoken-digits", data_dir=tmp_path)
    fractions = settings_for("spoken-digits").data.model_dump(include={"validation_fraction", "test_fraction"})
    groups = dataset.train.groups
    assert groups is not None
    for seed in range(20):
        split = make_split(dataset, labels=10, **fractions, seed=seed)
        learning = np.concatenate([split.labeled, split.unlabeled])
        sides = [set(groups[rows].tolist()) for rows in (split.test, split.validation, learning)]
        assert [len(side) for side in sides] == [1, 1, 4]
        assert set().union(*sides) == set(range(6))


def test_find_spoken_digits(tmp_path: Path) -> None:
    made_up.write_spoken_digits(tmp_path / "data" / "fsdd" / "recordings", takes=1, speakers=2)
    dataset = load("spoken-digits", data_dir=tmp_path / "data")
    assert dataset.classes == tuple("0123456789")
    assert len(dataset.train) == 20
    with raises(DataError, "missing-data"):
        load("spoken-digits", data_dir=tmp_path / "elsewhere")


def test_files_and_waveforms_give_the_same_spectrogram(tmp_path: Path) -> None:
    form, sound = SoundFormat(), made_up.tone(500)
    write_wav(tmp_path / "a.wav", sound, 8000)
    from_file, in_memory = from_files([tmp_path / "a.wav"], form), from_waveforms([sound], 8000, form)
    assert in_memory.shape == (1, *form.shape)
    np.testing.assert_allclose(from_file, in_memory, atol=0.5)


@pytest.mark.parametrize("rate", [4000, 11025, 44100])
def test_another_rate_is_the_same_sound(rate: int) -> None:
    """A tone keeps its pitch: the loudest band is the same."""
    form = SoundFormat()
    waves = [np.sin(2 * np.pi * 700 * np.arange(r // 2) / r) for r in (8000, rate)]
    assert len(resampled(waves[1], rate, 8000)) == pytest.approx(4000, abs=1)
    there, here = (
        from_waveforms([wave], r, form)[0, 0, :, 12].argmax() for wave, r in zip(waves, (8000, rate), strict=True)
    )
    assert there == here


@pytest.mark.parametrize("bad", [np.zeros((2, 100)), np.zeros(0), np.array(["a"]), np.array([np.nan])])
def test_a_bad_waveform_is_refused(bad: np.ndarray) -> None:
    with pytest.raises(DataError, match="number 1"):
        from_waveforms([np.zeros(10), bad], 8000, SoundFormat())


def test_format_of_lengths() -> None:
    form = format_of_lengths([1.0] * 9 + [30.0], [44100] * 10)
    assert form.rate == 16000
    assert form.seconds == pytest.approx(1.0, rel=0.1)
    assert format_of_lengths([60.0], [8000]).frames == 128
    assert format_of_lengths([0.01], [8000]).frames == 16
    assert format_of_lengths([1.0] * 3, [8000, 8000, 44100]).rate == 8000
    assert format_of_lengths([1.0], [200]).rate == 200
