"""Handles of device memory."""

from __future__ import annotations

import pytest
import torch

from pytest_pypto.pypto.runtime import DeviceTensor, StackedDeviceTensor


def test_a_handle_is_a_value() -> None:
    one, two = DeviceTensor(4096, (2, 3), torch.float16), DeviceTensor(4096, [2, 3], torch.float16)
    assert one == two
    assert hash(one) == hash(two)
    assert one.nbytes == 12
    assert "0x1000" in repr(one)
    with pytest.raises(AttributeError):
        one.data_ptr = 1  # type: ignore[misc]


@pytest.mark.parametrize("pointer", [0, -1, True, "x", None, 1.0])
def test_a_pointer_is_a_positive_int(pointer: object) -> None:
    with pytest.raises(ValueError, match="data_ptr must be a positive int"):
        DeviceTensor(pointer, (2,), torch.int8)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shape", "error", "text"),
    [
        ((), ValueError, "shape must be non-empty"),
        ((2, "3"), TypeError, "shape must contain ints"),
        ((True,), TypeError, "shape must contain ints"),
        ((2, 0), ValueError, "only positive dimensions"),
    ],
)
def test_shapes(shape: tuple[int, ...], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        DeviceTensor(1, shape, torch.int8)


def test_the_dtype_is_one_of_torch() -> None:
    with pytest.raises(TypeError, match=r"must be a torch\.dtype"):
        DeviceTensor(1, (2,), "float32")  # type: ignore[arg-type]


class _Memory:
    def __init__(self, base: object) -> None:
        self.base = base

    def tensor(self) -> torch.Tensor:
        return torch.zeros(2)


def test_the_buffer_must_be_the_one_at_the_pointer() -> None:
    assert DeviceTensor(64, (2,), torch.float32, buffer=_Memory(64)).buffer is not None  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="differs from data_ptr"):
        DeviceTensor(64, (2,), torch.float32, buffer=_Memory(65))  # type: ignore[arg-type]
    for bad in (object(), _Memory("x"), _Memory(True)):
        with pytest.raises(TypeError, match="buffer must have"):
            DeviceTensor(64, (2,), torch.float32, buffer=bad)  # type: ignore[arg-type]


def stacked() -> StackedDeviceTensor:
    shards = [DeviceTensor(64 * (i + 1), (4, 5), torch.float32) for i in range(3)]
    return StackedDeviceTensor(shards, (3, 4, 5), (0, 1, 2))


def test_indexing_gives_whole_shards() -> None:
    x = stacked()
    assert x.shape == (3, 4, 5)
    assert x.dtype is torch.float32
    for key in (1, -2, (1,), (1, ...), (1, slice(0, 4)), (1, slice(None), slice(None))):
        assert x[key] is x.shards[1]


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (3, IndexError),
        ((), IndexError),
        (..., IndexError),
        ((0, ..., ...), IndexError),
        ((0, slice(None), slice(None), slice(None)), IndexError),
        ("0", TypeError),
        (True, TypeError),
        ((0, slice(0, 2)), ValueError),
        ((0, 1), ValueError),
    ],
)
def test_other_indices_are_refused(key: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        stacked()[key]


def test_shards_must_match_the_whole() -> None:
    good = list(stacked().shards)
    for shards, shape, ids, error in (
        (good[:2], (3, 4, 5), (0, 1, 2), ValueError),
        (good, (3, 4, 5), (0, 1, 1), ValueError),
        (good, (3, 5, 4), (0, 1, 2), ValueError),
        (good[:1], (1,), (0,), ValueError),
        ([1, 2, 3], (3, 4, 5), (0, 1, 2), TypeError),
    ):
        with pytest.raises(error):
            StackedDeviceTensor(shards, shape, ids)  # type: ignore[arg-type]
