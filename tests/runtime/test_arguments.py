"""Arguments of a dispatch: what fits, and what the errors say."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest
import torch

from pytest_pypto.pypto.ir.dtypes import DataType
from pytest_pypto.pypto.ir.enums import ParamDirection
from pytest_pypto.pypto.ir.param_info import ParamInfo
from pytest_pypto.pypto.runtime import DeviceTensor
from pytest_pypto.pypto.runtime.arguments import bind

IN, OUT, INOUT = ParamDirection.In, ParamDirection.Out, ParamDirection.InOut
A = ParamInfo("a", IN, (2, 3), DataType.FP32)
S = ParamInfo("s", IN, None, DataType.FP32)
K = ParamInfo("k", IN, None, DataType.INT32)
B = ParamInfo("b", IN, None, DataType.BOOL)
O = ParamInfo("out", OUT, (2, 3), DataType.FP32)  # noqa: E741
DYN = ParamInfo("d", IN, (-1, 3), DataType.BF16)


def call(params: list[ParamInfo], *args: object, has_return: bool = True) -> list[object]:
    return bind("CompiledProgram", params, has_return, args).values


def test_in_place_takes_one_argument_per_parameter() -> None:
    a, out = torch.ones(2, 3), torch.zeros(2, 3)
    bound = bind("CompiledProgram", [A, O], True, [a, out])
    assert bound.made is None
    assert bound.values[0] is a
    assert bound.values[1] is out


def test_return_style_allocates_the_outputs() -> None:
    bound = bind("CompiledProgram", [A, O, K], True, [torch.ones(2, 3), 4])
    assert bound.made is not None
    assert bound.made[0] is bound.values[1]
    assert torch.equal(bound.made[0], torch.zeros(2, 3))
    assert bound.values[2] == 4


@pytest.mark.parametrize("has_return", [True, False])
def test_a_wrong_count_lists_both_forms_and_the_parameters(has_return: bool) -> None:
    other = " or 2 (return)" if has_return else ""
    text = f"CompiledProgram expects 3 (in-place){other} arguments, got 1. Parameters: ['a', 's', 'out']"
    with pytest.raises(TypeError, match=re.escape(text)) as caught:
        call([A, S, O], torch.ones(2, 3), has_return=has_return)
    assert "a: fp32[2, 3], s: fp32 scalar, out: Out fp32[2, 3]" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "Parameter 'a' is a tensor; got int. Pass a torch.Tensor (host) or DeviceTensor (a: fp32[2, 3])"),
        (torch.ones(6), "Parameter 'a' expects rank 2 (shape [2, 3]); got torch.Tensor of rank 1 (shape [6])"),
        (torch.ones(3, 2), "Parameter 'a' expects shape [2, 3]; got torch.Tensor of shape [3, 2]"),
        (torch.ones(2, 3).half(), "Parameter 'a' expects dtype torch.float32 (fp32); got torch.Tensor of dtype"),
        (DeviceTensor(64, (2, 4), torch.float32), "Parameter 'a' expects shape [2, 3]; got DeviceTensor of shape"),
        (DeviceTensor(64, (2, 3), torch.int8), "Parameter 'a' expects dtype torch.float32 (fp32); got DeviceTensor"),
    ],
)
def test_tensors_that_do_not_fit(value: object, text: str) -> None:
    with pytest.raises(TypeError, match=re.escape(text)):
        call([A], value)


def test_a_tensor_that_is_not_contiguous_names_its_position() -> None:
    with pytest.raises(ValueError, match=r"Tensor at position 1 \('out'\) is not contiguous"):
        call([A, O], torch.ones(2, 3), torch.ones(3, 2).t())


def test_a_dynamic_extent_takes_any_size() -> None:
    for rows in (1, 7):
        call([DYN], torch.ones(rows, 3, dtype=torch.bfloat16))


def test_checks_of_host_tensors_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_PYPTO_STRICT_ARGS", "0")
    call([A], torch.ones(5))


@pytest.mark.parametrize(
    ("param", "value", "expected"),
    [
        (S, 2, 2.0),
        (S, 0.5, 0.5),
        (S, ctypes.c_float(0.5), 0.5),
        (K, 7, 7),
        (K, ctypes.c_int32(7), 7),
        (B, 1, True),
        (B, np.bool_(False), False),
        (K, np.int64(7), 7),
        (K, np.array(7, np.uint8), 7),
        (S, np.float64(0.5), 0.5),
        (ParamInfo("i", IN, None, DataType.INDEX), -3, -3),
    ],
)
def test_scalars(param: ParamInfo, value: object, expected: object) -> None:
    assert call([param], value) == [expected]


@pytest.mark.parametrize(
    ("param", "value", "text"),
    [
        (S, torch.ones(1), "Parameter 's' is a scalar (fp32); got torch.Tensor"),
        (S, ctypes.c_double(1), "expects c_float for dtype fp32; got c_double"),
        (S, "x", "Parameter 's' is a scalar (fp32); got 'x'"),
        (K, 2**40, "Parameter 'k' is a scalar (int32); 1099511627776 is out of its range"),
        (K, np.int64(2**40), "is out of its range"),
        (K, np.float32(1), "got np.float32(1.0)" if np.__version__ >= "2" else "got 1.0"),
        (K, float("nan"), "Parameter 'k' is a scalar (int32); got nan"),
        (K, None, "Parameter 'k' is a scalar (int32); got None"),
        (S, 10**400, "too large"),
        (S, [1.0], "Parameter 's' is a scalar (fp32); got [1.0]"),
        (B, "yes", "Parameter 'b' is a scalar (bool); got 'yes': pass True or False"),
        (B, None, "pass True or False"),
        (B, 5, "5 is out of its range"),
        (ParamInfo("f", IN, None, DataType.FP8E5M2), 1, "Unsupported scalar dtype fp8e5m2"),
    ],
)
def test_scalars_that_do_not_fit(param: ParamInfo, value: object, text: str) -> None:
    with pytest.raises(TypeError, match=re.escape(text)):
        call([param], value)


@pytest.mark.parametrize(
    ("param", "text"),
    [
        (ParamInfo("out", OUT, (-1, 3), DataType.FP32), "contains dynamic dimensions [-1, 3]"),
        (ParamInfo("out", OUT, (2, 3), DataType.HF8), "Unsupported dtype hf8"),
        (ParamInfo("out", OUT, None, DataType.FP32), "has no shape"),
    ],
)
def test_outputs_that_cannot_be_allocated(param: ParamInfo, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        call([A, param], torch.ones(2, 3))


def test_inout_parameters_are_never_allocated() -> None:
    carried = ParamInfo("c", INOUT, (2, 3), DataType.FP32)
    with pytest.raises(TypeError, match="expects 2"):
        call([A, carried], torch.ones(2, 3))


def test_views_computed_on_reading_are_refused() -> None:
    """Their bytes are not their values: numpy cannot share them."""
    with pytest.raises(ValueError, match=r"'a'\) is a view whose values are computed .* pass t.resolve_neg"):
        call([A], torch._neg_view(torch.ones(2, 3)))
    call([A], torch._neg_view(torch.ones(2, 3)).resolve_neg())
