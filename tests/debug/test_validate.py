"""Validation of pass dumps: arguments, printed lines, exceptions, reports."""

from __future__ import annotations

import inspect
import io
from pathlib import Path
from typing import Any

import pytest
import torch

from pytest_pypto.pypto.debug import validate_pass_ir_codegen_results
from pytest_pypto.pypto.debug.select import select_entry_function
from pytest_pypto.pypto.debug.validate import check_passes
from pytest_pypto.pypto.language.parser import parse
from pytest_pypto.pypto.language.parser.diagnostics import ParserError
from tests.kit import shown

GOOD = """import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(a__ssa_v0: pl.Tensor[[4, 4], pl.FP32], k__ssa_v0: pl.Scalar[pl.FP32], out__ssa_v0: pl.Out[pl.Tensor[[4, 4], pl.FP32]]) -> pl.Tensor[[4, 4], pl.FP32]:
        t__tile: pl.Tile[[4, 4], pl.FP32, pl.Mem.Vec] = pl.tile.load(a__ssa_v0, [0, 0], [4, 4], [4, 4], target_memory=pl.Mem.Vec)
        u__tile: pl.Tile[[4, 4], pl.FP32, pl.Mem.Vec] = pl.tile.exp(t__tile)
        v__tile: pl.Tile[[4, 4], pl.FP32, pl.Mem.Vec] = pl.tile.adds(u__tile, 1.0)
        o__tile: pl.Tensor[[4, 4], pl.FP32] = pl.tile.store(v__tile, [0, 0], out__ssa_v0)
        return out__ssa_v0
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a__ssa_v0: pl.Tensor[[4, 4], pl.FP32], k__ssa_v0: pl.Scalar[pl.FP32], out__ssa_v0: pl.Out[pl.Tensor[[4, 4], pl.FP32]]) -> pl.Tensor[[4, 4], pl.FP32]:
        r__ssa_v0: pl.Tensor[[4, 4], pl.FP32] = self.kernel(a__ssa_v0, k__ssa_v0, out__ssa_v0)
        return r__ssa_v0
"""  # fmt: skip  # noqa: E501
BAD = GOOD.replace("pl.tile.exp(t__tile)", "pl.tile.neg(t__tile)")


def dumps(tmp_path: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    return tmp_path


def case() -> tuple[dict[str, Any], dict[str, Any]]:
    a = torch.randn(4, 4)
    return {"a": a, "k": 2.0, "out": torch.zeros(4, 4)}, {"out": a.exp() + 1}


def test_signature() -> None:
    parameters = inspect.signature(validate_pass_ir_codegen_results).parameters
    assert list(parameters)[:3] == ["ir_dir", "tensors", "expected"]
    assert (parameters["rtol"].default, parameters["atol"].default) == (5e-2, 5e-2)
    assert parameters["rtol"].kind is inspect.Parameter.KEYWORD_ONLY


def test_good_dumps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tensors, expected = case()
    before = {k: v.clone() if torch.is_tensor(v) else v for k, v in tensors.items()}
    assert (
        validate_pass_ir_codegen_results(
            dumps(tmp_path, **{"00_frontend": GOOD, "19_after_X": GOOD}), tensors, expected
        )
        is None
    )
    line = "validate tensor: 'out', max_abs_diff: 0.000000e+00, pass: True"
    head = "=" * 20
    assert capsys.readouterr().out.splitlines() == [
        f"{head} 00_frontend {head}",
        line,
        f"{head} 19_after_X {head}",
        line,
    ]
    assert torch.equal(tensors["out"], before["out"])
    assert torch.equal(tensors["a"], before["a"])


def test_one_file_and_text_paths(tmp_path: Path) -> None:
    tensors, expected = case()
    folder = dumps(tmp_path, one=GOOD)
    validate_pass_ir_codegen_results(str(folder / "one.py"), tensors, expected, stream=io.StringIO())


def test_the_first_bad_pass_is_named_and_the_rest_still_run(tmp_path: Path) -> None:
    tensors, expected = case()
    folder = dumps(tmp_path, **{"01_a": GOOD, "02_b": BAD, "03_c": BAD.replace("1.0", "2.0"), "04_d": GOOD})
    out = io.StringIO()
    with pytest.raises(AssertionError) as caught:
        validate_pass_ir_codegen_results(folder, tensors, expected, stream=out)
    message = str(caught.value)
    assert message.startswith(f"{folder / '02_b.py'}: tensor mismatch for key 'out', max abs diff ")
    assert "exceeds tolerance (rtol=0.05, atol=0.05)" in message
    assert "first bad pass: 02_b (last good: 01_a)" in message
    assert "first differing variable: 'u__tile' in 'kernel', shape (4, 4)" in message
    assert [row.split() for row in message.splitlines()[-4:]] == [["01_a", "ok"], ["02_b", "differs:", "out"], ["03_c", "differs:", "out"], ["04_d", "ok"]]  # fmt: skip  # noqa: E501
    assert out.getvalue().count("pass: False") == 2


def test_the_caller_chooses_the_tolerance(tmp_path: Path) -> None:
    tensors, expected = case()
    folder = dumps(tmp_path, a=GOOD, b=GOOD.replace("1.0", "1.01"))
    validate_pass_ir_codegen_results(folder, tensors, expected, stream=io.StringIO())
    with pytest.raises(AssertionError, match="first bad pass: b"):
        validate_pass_ir_codegen_results(folder, tensors, expected, rtol=1e-4, atol=1e-4, stream=io.StringIO())


def test_returned_values(tmp_path: Path) -> None:
    tensors, expected = case()
    folder = dumps(tmp_path, a=GOOD)
    validate_pass_ir_codegen_results(folder, tensors, {"return": expected["out"]}, stream=io.StringIO())
    with pytest.raises(AssertionError, match="key 'return'"):
        validate_pass_ir_codegen_results(folder, tensors, {"return": expected["out"] + 1}, stream=io.StringIO())


def test_unchanged_scripts_are_not_run_again(tmp_path: Path) -> None:
    tensors, expected = case()
    renamed = GOOD.replace("class P", "class Q").replace("t__tile:", "t__tile: ")
    folder = dumps(tmp_path, a=GOOD, b=renamed, c=BAD, d=GOOD)
    report = check_passes(sorted(folder.iterdir()), tensors, expected, rtol=1e-3, atol=1e-3)
    assert [r.same_as for r in report.results] == [None, "a", None, "a"]
    assert [r.good for r in report.results] == [True, True, False, True]


@pytest.mark.parametrize(
    ("tensors", "expected", "options", "error", "message"),
    [
        ([], {}, {}, TypeError, r"tensors must be dict\[str, Tensor\], got list"),
        ({}, 3, {}, TypeError, r"expected must be dict\[str, Tensor\], got int"),
        ({1: torch.zeros(1)}, {}, {}, TypeError, "tensors key must be str, got int"),
        ({"a": "x"}, {}, {}, TypeError, r"tensors\['a'\] must be torch.Tensor, got str"),
        ({}, {"a": None}, {}, TypeError, r"expected\['a'\] must be torch.Tensor, got NoneType"),
        ({}, {}, {"rtol": -1}, ValueError, "rtol must be a non-negative float, got -1"),
        ({}, {}, {"rtol": True}, ValueError, "rtol must be a non-negative float, got True"),
        ({}, {}, {"atol": "x"}, ValueError, "atol must be a non-negative float, got 'x'"),
        ({}, {}, {"atol": float("nan")}, ValueError, "atol must be a non-negative float"),
    ],
)
def test_wrong_arguments(tensors: Any, expected: Any, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        validate_pass_ir_codegen_results("nowhere", tensors, expected, **options)


def test_wrong_paths(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="IR path does not exist"):
        validate_pass_ir_codegen_results(tmp_path / "gone", {}, {})
    with pytest.raises(ValueError, match=r"No \.py IR files found under"):
        validate_pass_ir_codegen_results(tmp_path, {}, {})
    (tmp_path / "x.txt").write_text("")
    with pytest.raises(ValueError, match=r"IR file must be a \.py file"):
        validate_pass_ir_codegen_results(tmp_path / "x.txt", {}, {})


def test_missing_values(tmp_path: Path) -> None:
    tensors, expected = case()
    folder = dumps(tmp_path, a=GOOD)
    del tensors["k"]
    with pytest.raises(
        KeyError, match=r"Cannot resolve tensor for parameter 'k__ssa_v0'\. Available keys: \['a', 'out'\]"
    ):
        validate_pass_ir_codegen_results(folder, tensors, expected, stream=io.StringIO())
    tensors, _ = case()
    with pytest.raises(ValueError, match=r"a\.py: expected key 'gone' not found in tensors after execution"):
        validate_pass_ir_codegen_results(folder, tensors, {"gone": torch.zeros(1)}, stream=io.StringIO())


@pytest.mark.parametrize(
    ("want", "message"),
    [
        (torch.zeros(4, 1), r"shape mismatch: got \(4, 4\), expected \(4, 1\)"),
        (torch.zeros(4, 4, dtype=torch.float64), r"dtype mismatch: got torch.float32, expected torch.float64"),
    ],
)
def test_shapes_and_types_must_be_equal(tmp_path: Path, want: torch.Tensor, message: str) -> None:
    tensors, _ = case()
    with pytest.raises(AssertionError, match=message):
        validate_pass_ir_codegen_results(dumps(tmp_path, a=GOOD), tensors, {"out": want}, stream=io.StringIO())


def test_nan_equals_nan_only_on_request(tmp_path: Path) -> None:
    tensors, expected = case()
    tensors["a"][0, 0] = float("nan")
    expected["out"] = tensors["a"].exp() + 1
    folder = dumps(tmp_path, a=GOOD)
    with pytest.raises(AssertionError, match="max abs diff nan"):
        validate_pass_ir_codegen_results(folder, tensors, expected, stream=io.StringIO())
    validate_pass_ir_codegen_results(folder, tensors, expected, equal_nan=True, stream=io.StringIO())


def test_equal_infinities_differ_by_nothing(tmp_path: Path) -> None:
    tensors, expected = case()
    tensors["a"][0, 0] = 1000.0
    expected["out"] = tensors["a"].exp() + 1
    out = io.StringIO()
    validate_pass_ir_codegen_results(dumps(tmp_path, a=GOOD), tensors, expected, stream=out)
    assert "max_abs_diff: 0.000000e+00, pass: True" in out.getvalue()


def test_errors_of_scripts_name_the_file(tmp_path: Path) -> None:
    tensors, expected = case()
    broken = GOOD.replace("pl.tile.store(v__tile, [0, 0]", "pl.tile.store(v__tile, [k__ssa_v0, 0]").replace("pl.Scalar[pl.FP32]", "pl.Scalar[pl.INDEX]")  # fmt: skip  # noqa: E501
    folder = dumps(tmp_path, a=GOOD.replace("pl.Scalar[pl.FP32]", "pl.Scalar[pl.INDEX]"), b=broken)
    tensors["k"] = 3
    with pytest.raises(RuntimeError, match=r"b\.py: IndexError: tile.store.*") as caught:
        validate_pass_ir_codegen_results(folder, tensors, expected, stream=io.StringIO())
    assert isinstance(caught.value.__cause__, IndexError)
    assert "first bad pass: b (last good: a)" in str(caught.value)
    tensors["a"] = torch.zeros(2, 2)
    with pytest.raises(AssertionError, match=r"a\.py: Valid shape|a\.py: .*mismatch"):
        validate_pass_ir_codegen_results(folder, tensors, expected, stream=io.StringIO())


def test_an_operator_without_a_handler_stops_one_dump_only(tmp_path: Path) -> None:
    tensors, expected = case()
    from pytest_pypto.pypto.debug.torch_codegen import _OP_MAP

    removed = _OP_MAP.pop("tile.neg")
    try:
        report = check_passes(
            sorted(dumps(tmp_path, a=GOOD, b=BAD, c=GOOD).iterdir()), tensors, expected, rtol=1, atol=1
        )
    finally:
        _OP_MAP["tile.neg"] = removed
    assert [r.good for r in report.results] == [True, False, True]
    assert "Unsupported op 'tile.neg'" in report.results[1].status()


def test_programs_without_an_entry(tmp_path: Path) -> None:
    no_host = "\n".join(
        [*GOOD.splitlines()[:10], *[x.replace("def kernel", "def other") for x in GOOD.splitlines()[4:10]]]
    )
    with pytest.raises(ValueError, match="Program 'P' has 2 functions but no Orchestration entry"):
        validate_pass_ir_codegen_results(dumps(tmp_path, a=no_host), {}, {})


def test_nothing_to_compare_is_a_warning(tmp_path: Path) -> None:
    tensors, expected = case()
    folder = dumps(tmp_path, a=GOOD)
    with pytest.warns(UserWarning, match="expected is empty: nothing is compared"):
        validate_pass_ir_codegen_results(folder, tensors, {}, stream=io.StringIO())
    validate_pass_ir_codegen_results(folder, tensors, expected, stream=io.StringIO())


def test_tensors_that_no_parameter_takes_are_refused(tmp_path: Path) -> None:
    tensors, expected = case()
    folder = dumps(tmp_path, a=GOOD)
    with pytest.raises(ValueError, match=r"tensors has 'bias', which the entry has no parameter for.*: a, k, out"):
        validate_pass_ir_codegen_results(folder, {**tensors, "bias": tensors["a"]}, expected, stream=io.StringIO())
    renamed = {f"{name}__ssa_v0": value for name, value in tensors.items()}
    validate_pass_ir_codegen_results(folder, renamed, {"out__ssa_v0": expected["out"]}, stream=io.StringIO())
    with pytest.raises(KeyError, match="Cannot resolve tensor for parameter 'a__ssa_v0'"):
        validate_pass_ir_codegen_results(folder, {"bias": tensors["a"]}, expected, stream=io.StringIO())


def test_a_parameter_of_one_dump_only_is_known(tmp_path: Path) -> None:
    """A pass may take a parameter away; its value still belongs to the dumps before."""
    tensors, expected = case()
    fewer = GOOD.replace(" k__ssa_v0: pl.Scalar[pl.FP32],", "").replace(" k__ssa_v0,", "")
    folder = dumps(tmp_path, a=GOOD, b=fewer)
    validate_pass_ir_codegen_results(folder, tensors, expected, stream=io.StringIO())


def test_narrow_and_bool_and_empty_tensors_compare() -> None:
    from pytest_pypto.pypto.debug.compare import compare

    for dtype in (torch.bool, torch.uint8, torch.int8, torch.float8_e4m3fn, torch.bfloat16, torch.uint16):
        t = torch.tensor([1, 0, 1]).to(dtype)
        assert compare("k", t, t.clone(), 0, 0, False).close
    assert compare("k", torch.zeros(0), torch.zeros(0), 0, 0, False) == compare(
        "k", torch.zeros(0), torch.zeros(0), 1, 1, True
    )
    far = compare("k", torch.tensor([0], dtype=torch.uint8), torch.tensor([255], dtype=torch.uint8), 0, 1, False)
    assert (far.close, far.max_abs_diff) == (False, 255.0)
    assert compare("k", 3, 3, 0, 0, False).close
    assert not compare("k", 3, 4, 0, 0, False).close
    assert not compare("k", None, torch.zeros(1), 0, 0, False).close


def test_the_entry_without_orchestration_is_the_function_nobody_calls() -> None:
    text = """# pypto.program: P
import pypto.language as pl

@pl.program
class P:
    @pl.function
    def inner(self, x: pl.Tensor[[4, 4], pl.FP32]) -> pl.Tensor[[4, 4], pl.FP32]:
        return x
    @pl.function
    def outer(self, x: pl.Tensor[[4, 4], pl.FP32]) -> pl.Tensor[[4, 4], pl.FP32]:
        y: pl.Tensor[[4, 4], pl.FP32] = self.inner(x)
        return y
"""
    assert select_entry_function(parse(text)).name == "outer"


@pytest.mark.parametrize(
    ("text", "error"),
    [(GOOD.replace("pl.tile.exp(", "pl.tile.exq("), ParserError), (GOOD.replace("(t__tile)", "(t__tile"), SyntaxError)],
)
def test_a_dump_that_does_not_load_stops_no_other(tmp_path: Path, text: str, error: type[Exception]) -> None:
    tensors, expected = case()
    out = io.StringIO()
    with pytest.raises(error) as caught:
        validate_pass_ir_codegen_results(dumps(tmp_path, a=GOOD, b=text, c=GOOD), tensors, expected, stream=out)
    assert out.getvalue().count("pass: True") == 2
    assert "b.py" in shown(caught.value)
    assert "first bad pass: b (last good: a)" in shown(caught.value)
    assert caught.value.__cause__ is None


def test_a_dump_that_has_no_script_stops_no_other(tmp_path: Path) -> None:
    tensors, expected = case()
    small = GOOD.replace("pl.FP32", "pl.HF4")
    out = io.StringIO()
    with pytest.raises(ValueError, match=r"b\.py: element type hf4 is not supported"):
        validate_pass_ir_codegen_results(dumps(tmp_path, a=GOOD, b=small, c=GOOD), tensors, expected, stream=out)
    assert out.getvalue().count("pass: True") == 2
