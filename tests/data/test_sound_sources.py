"""Folders of sounds, spoken digits, and waveforms in memory."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from synthsieve.data.dataset import Kind
from synthsieve.data.sound_format import SoundFormat
from synthsieve.data.sources import load
from synthsieve.data.spectrograms import format_of_lengths, from_files, from_waveforms, resampled
from synthsieve.data.splits import make_split
from synthsieve.defaults import settings_for
from synthsieve.errors import DataError
from synthsieve.export.media import write_wav
from synthsieve.export.samples import write_items
from synthsieve.waveforms import Waveforms

sys.path.append(str(Path(__file__).parent))
import made_up_sounds as made_up


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SYNTHSIEVE_CACHE", str(tmp_path / "cache"))


def test_a_folder_a_class(tmp_path: Path) -> None:
    root = made_up.write_sound_folder(tmp_path / "tones")
    (root / "low" / "readme.txt").write_text("words", encoding="utf-8")
    dataset = load(str(root))
    assert (dataset.kind, dataset.classes, dataset.name) == (Kind.SOUND, ("high", "low"), "tones")
    assert isinstance(dataset.about, SoundFormat)
    assert dataset.shape == dataset.about.shape
    assert (np.bincount(dataset.train.y + 1) == 10).all()
    assert any("1 files that are not sounds" in note for note in dataset.notes)


def test_train_and_test(tmp_path: Path) -> None:
    made_up.write_sound_folder(tmp_path / "tones" / "train")
    made_up.write_sound_folder(tmp_path / "tones" / "test", unlabeled=False, n=3, rate=16000)
    dataset = load(str(tmp_path / "tones"))
    assert dataset.test is not None
    assert len(dataset.test) == 6
    assert dataset.test.x.shape[1:] == dataset.shape


def test_metadata_names_labels_and_speakers(tmp_path: Path) -> None:
    dataset = load(str(made_up.write_listed(tmp_path / "tones")))
    assert dataset.classes == ("high", "low")
    assert (dataset.train.y == -1).sum() == 2
    assert dataset.train.groups is not None
    assert np.unique(dataset.train.groups).tolist() == [0, 1, 2]
    split = make_split(dataset, labels=4, validation_fraction=0.5, test_fraction=0.34, seed=0)
    groups = [set(dataset.train.groups[part]) for part in (split.test, split.validation, split.labeled)]
    assert not groups[0] & groups[1] | groups[0] & groups[2] | groups[1] & groups[2]
    assert load(str(made_up.write_listed(tmp_path / "alone", column=None))).train.groups is None


def test_what_sample_writes_can_be_read_again(tmp_path: Path) -> None:
    sounds = [made_up.tone(hertz, seed=i) for i, hertz in enumerate([300, 1500] * 4)]
    write_items(tmp_path / "samples", Waveforms(sounds, 8000), ["low", "high"] * 4, entropy=[0.5] * 8)
    dataset = load(str(tmp_path / "samples"))
    assert (dataset.classes, len(dataset.train)) == (("high", "low"), 8)


@pytest.mark.parametrize(
    ("table", "match"),
    [
        ("file\n000.wav\n", "needs the columns file and label"),
        ("file,label\n", "has none"),
        ("", "has none"),
        ("file,label\n../secret.wav,low\n", "must lie inside"),
        ("file,label\n/etc/passwd,low\n", "must lie inside"),
        ("file,label\n999.wav,low\n", "no such .wav file"),
        ("file,label\n000.wav,low\n000.wav,high\n", "000.wav 2 times"),
        ("file,label\n000.wav,low\n../tones/000.wav,high\n", "000.wav 2 times"),
        ("file,label,label\n000.wav,low,high\n", "a name of its own"),
        (f"file,label\n000.wav,{'x' * 999}\n", "200 characters at most, but one has 999"),
        ("file,label,speaker\n000.wav,low,\n", "row 2 has none"),
        ("file,label\n000.wav,low,more\n", "needs 2 cells"),
        ("file,label\n000.wav,-1\n", "could mean unlabelled"),
        ('file,label\n"000.wav,low\n', "cannot be read as CSV"),
    ],
)
def test_a_bad_table_is_told_in_one_sentence(tmp_path: Path, table: str, match: str) -> None:
    root = made_up.write_listed(tmp_path / "tones", n=2, table=table)
    with pytest.raises(DataError, match=match) as caught:
        load(str(root))
    assert "\n" not in str(caught.value)


def test_other_bad_folders(tmp_path: Path) -> None:
    mixed = made_up.write_sound_folder(tmp_path / "mixed", n=2)
    Image.new("L", (8, 8)).save(mixed / "low" / "a.png")
    with pytest.raises(DataError, match=r"holds both, such as low.a\.png and"):
        load(str(mixed))
    empty = made_up.write_sound_folder(tmp_path / "empty", n=2)
    (empty / "nothing").mkdir()
    with pytest.raises(DataError, match="must hold sounds of one class"):
        load(str(empty))
    flat = tmp_path / "flat"
    write_wav(flat / "a.wav", made_up.tone(300), 8000)
    with pytest.raises(DataError, match=r"metadata\.csv"):
        load(str(flat))
    broken = made_up.write_sound_folder(tmp_path / "broken", n=2)
    (broken / "low" / "bad.wav").write_bytes(b"RIFF")
    with pytest.raises(DataError, match=r"bad\.wav is no \.wav file"):
        load(str(broken))


def test_one_speaker_of_six_is_test_and_one_validation(tmp_path: Path) -> None:
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


def test_spoken_digits_are_found_or_the_way_is_told(tmp_path: Path) -> None:
    made_up.write_spoken_digits(tmp_path / "data" / "fsdd" / "recordings", takes=1, speakers=2)
    dataset = load("spoken-digits", data_dir=tmp_path / "data")
    assert dataset.classes == tuple("0123456789")
    assert len(dataset.train) == 20
    with pytest.raises(DataError, match="unpack its folder `recordings` there"):
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
    with pytest.raises(DataError, match="number 1 came as"):
        from_waveforms([np.zeros(10), bad], 8000, SoundFormat())


def test_a_format_to_measure() -> None:
    form = format_of_lengths([1.0] * 9 + [30.0], [44100] * 10)
    assert form.rate == 16000
    assert form.seconds == pytest.approx(1.0, rel=0.1)
    assert format_of_lengths([60.0], [8000]).frames == 128
    assert format_of_lengths([0.01], [8000]).frames == 16
    assert format_of_lengths([1.0] * 3, [8000, 8000, 44100]).rate == 8000
    assert format_of_lengths([1.0], [200]).rate == 200
