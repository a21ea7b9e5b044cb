"""Scalar expressions: literals, constants, folding, promotion."""

from __future__ import annotations

import pytest

from .marked import function, printed_body

HEAD = "N = 4\nF = 0.5\nFLAG = True\nclass M:\n    val = 2.0\n    size = 16\n"


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("5", "pl.Scalar[pl.INDEX] = 5"),
        ("-5", "pl.Scalar[pl.INDEX] = -5"),
        ("0.5", "pl.Scalar[pl.FP32] = 0.5"),
        ("-0.0", "pl.Scalar[pl.FP32] = -0.0"),
        ("1e-6", "pl.Scalar[pl.FP32] = 9.9999999999999995e-07"),
        ("1e20", "pl.Scalar[pl.FP32] = 1e+20"),
        ("True", "pl.Scalar[pl.BOOL] = True"),
        ("None", "pl.Scalar[pl.TASK_ID] = pl.system.task_invalid()"),
        ("float('-inf')", 'pl.Scalar[pl.FP32] = float("-inf")'),
        ("pl.const(7, pl.INT32)", "pl.Scalar[pl.INT32] = pl.const(7, pl.INT32)"),
        ("pl.const(-1.0, pl.FP16)", "pl.Scalar[pl.FP16] = pl.const(-1.0, pl.FP16)"),
        ("pl.const(True, pl.BOOL)", "pl.Scalar[pl.BOOL] = True"),
        ("2 + 3", "pl.Scalar[pl.INDEX] = 5"),
        ("N * 2 + 1", "pl.Scalar[pl.INDEX] = 9"),
        ("N * F", "pl.Scalar[pl.FP32] = 2.0"),
        ("N ** 2", "pl.Scalar[pl.INDEX] = 16"),
        ("7 // 2 - 1", "pl.Scalar[pl.INDEX] = 2"),
        ("M.val", "pl.Scalar[pl.FP32] = 2.0"),
        ("M.size * k", "pl.Scalar[pl.INDEX] = 16 * k"),
        ("FLAG", "pl.Scalar[pl.BOOL] = True"),
        ("k * (N + 1)", "pl.Scalar[pl.INDEX] = k * 5"),
        ("k / 2", "pl.Scalar[pl.INDEX] = k / 2"),
        ("k - (k - 1)", "pl.Scalar[pl.INDEX] = k - (k - 1)"),
        ("k - k - 1", "pl.Scalar[pl.INDEX] = k - k - 1"),
        ("-(k + 1)", "pl.Scalar[pl.INDEX] = -(k + 1)"),
        ("~k", "pl.Scalar[pl.INDEX] = ~k"),
        ("not k == 3", "pl.Scalar[pl.BOOL] = not k == 3"),
        ("(k < 2) == (k > 3)", "pl.Scalar[pl.BOOL] = (k < 2) == (k > 3)"),
        ("n + 1", "pl.Scalar[pl.INDEX] = pl.cast(n, pl.INDEX) + 1"),
        ("n + pl.const(1, pl.INT32)", "pl.Scalar[pl.INT32] = n + pl.const(1, pl.INT32)"),
        ("n + pl.const(1, pl.INT64)", "pl.Scalar[pl.INT64] = pl.cast(n, pl.INT64) + pl.const(1, pl.INT64)"),
        ("pl.const(1, pl.INT16) + n", "pl.Scalar[pl.INT32] = pl.cast(pl.const(1, pl.INT16), pl.INT32) + n"),
        ("k + pl.const(1, pl.INT64)", "pl.Scalar[pl.INDEX] = k + pl.const(1, pl.INT64)"),
        ("n << 2", "pl.Scalar[pl.INDEX] = pl.cast(n, pl.INDEX) << 2"),
        ("n > 3", "pl.Scalar[pl.BOOL] = pl.cast(n, pl.INDEX) > 3"),
        ("pl.min(k, 3)", "pl.Scalar[pl.INDEX] = pl.min(k, 3)"),
        ("pl.max(k, n)", "pl.Scalar[pl.INDEX] = pl.max(k, pl.cast(n, pl.INDEX))"),
        ("pl.cast(n, pl.FP32)", "pl.Scalar[pl.FP32] = pl.cast(n, pl.FP32)"),
        ("pl.add(k, 1)", "pl.Scalar[pl.INDEX] = k + 1"),
        ("pl.FP32.get_byte()", "pl.Scalar[pl.INDEX] = 4"),
        ("pl.Mem.Mat", "pl.Scalar[pl.INDEX] = 2"),
        ("[]", "pl.Tuple[()] = []"),
    ],
)
def test_expression(written: str, printed: str) -> None:
    assert printed_body(function(f"z = {written}", head=HEAD)) == [f"z: {printed}"]


@pytest.mark.parametrize(
    "value", [1.2566370614359172e-05, 0.1, 1e-45, 3.4028234663852886e38, 5e-324, 1.7976931348623157e308]
)
def test_floats_read_back_to_the_same_bits(value: float) -> None:
    import pypto.language as pl
    from pypto import ir

    func = pl.parse(function(f"z = {value!r}"))
    again = pl.parse(ir.python_print(func))
    assert isinstance(again, ir.Function)
    assert ir.flatten_to_stmts(again.body)[0].value.value.hex() == value.hex()


def test_a_variable_hides_a_constant() -> None:
    assert printed_body(function("N = k\nz = N + 1", head="N = 4\n"))[1] == "z: pl.Scalar[pl.INDEX] = N + 1"
