"""The digits are the ones we say, and their split never moves."""

from __future__ import annotations

import hashlib
from pathlib import Path

import digits
import numpy as np
import pytest


def test_the_file_is_the_published_one() -> None:
    digest = hashlib.sha256(digits.DATA.read_bytes()).hexdigest()
    assert digest == "09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22"


def test_sizes_and_ranges() -> None:
    train, held_out = digits.load()
    assert (len(train), len(held_out)) == (1437, 360)
    for images in (train, held_out):
        assert images.pixels.shape == (len(images), digits.PIXELS)
        assert images.pixels.dtype == np.float32
        assert images.labels.dtype == np.int64
        assert (images.pixels.min(), images.pixels.max()) == (0.0, 1.0)
        assert set(images.labels.tolist()) == set(range(digits.CLASSES))


def test_the_split_is_a_partition_and_never_moves() -> None:
    train, held_out = digits.load()
    table = np.loadtxt(digits.DATA, delimiter=",", dtype=np.int64)
    both = np.concatenate([train.pixels, held_out.pixels]) * 16
    assert sorted(map(tuple, both.astype(np.int64))) == sorted(map(tuple, table[:, :64]))
    assert held_out.labels[:20].tolist() == [
        2,
        8,
        2,
        6,
        6,
        7,
        1,
        9,
        8,
        5,
        2,
        8,
        6,
        6,
        6,
        6,
        1,
        0,
        5,
        8,
    ]


def test_batches_hold_every_image_once() -> None:
    _, held_out = digits.load()
    batches = list(held_out.batches(50, np.random.default_rng(1)))
    assert [len(batch) for batch in batches] == [50] * 7 + [10]
    labels = np.concatenate([batch.labels for batch in batches])
    assert np.array_equal(np.bincount(labels), np.bincount(held_out.labels))
    assert not np.array_equal(labels, held_out.labels)


def test_another_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "digits.csv"
    path.write_text("1,2,3\n")
    with pytest.raises(ValueError, match="not the digits data set"):
        digits.load(path)
