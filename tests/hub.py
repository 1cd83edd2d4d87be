"""Hugging Face's `datasets`, offline and with a cache of its own: what reads our exports in tests."""

import os

from tests.scratch import new_folder

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
os.environ["HF_HOME"] = str(new_folder())

import datasets  # after the environment, which it reads once

datasets.disable_progress_bars()


def loaded(*words, **more):
    """`datasets.load_dataset(...)`, the split `train`, read again."""
    return datasets.load_dataset(*map(str, words), split="train", download_mode="force_redownload", **more)


def undecoded(read, column):
    """The same with the bytes of images or sounds as they are stored."""
    kind = datasets.Audio if column == "audio" else datasets.Image
    return read.cast_column(column, kind(decode=False))
