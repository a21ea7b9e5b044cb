"""Signatures and the data made from them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from pytest_pypto.harness.errors import CaseError  # noqa: E402
from pytest_pypto.harness.inputs import SENTINEL, checked_inputs, initial, make_inputs  # noqa: E402
from pytest_pypto.harness.signature import Param, Signature, signature_of  # noqa: E402
from tests.harness import programs  # noqa: E402
from tests.kit import torch_type  # noqa: E402


def test_signature_from_a_program() -> None:
    found = signature_of(programs.vector_add())
    assert [p.describe() for p in found.params] == [
        "In a: fp32[32, 64]",
        "In b: fp32[32, 64]",
        "Out out: fp32[32, 64]",
    ]
    assert (found.returns, found.entry) == (1, "main")


@pytest.mark.parametrize("extent", ["x", 1.5, -1, None, True])
def test_an_extent_is_a_whole_number(extent: object) -> None:
    with pytest.raises(CaseError, match=re.escape(f"dims={{'M': {extent!r}}} is no extent: give a whole number >= 0")):
        make_inputs(programs.OpenRows, dims={"M": extent})


def test_open_extents_have_names() -> None:
    found = signature_of(programs.OpenRows)
    assert [p.describe() for p in found.params] == ["In x: fp32['M', 32]", "In factor: fp32", "Out out: fp32['M', 32]"]


class Artifact:
    """A handle that only knows its directory, as `from_dir` makes it."""

    program = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __fspath__(self) -> str:
        return str(self.folder)


def meta(folder: Path, **changes: object) -> Artifact:
    data = {
        "schema": 1,
        "params": [
            {"name": "x__ssa_v0", "direction": "In", "shape": [-1, 4], "dtype": "bfloat16"},
            {"name": "n", "direction": "In", "shape": None, "dtype": "index"},
            {"name": "o", "direction": "InOut", "shape": [4], "dtype": "int8"},
        ],
        "num_return_types": 0,
    }
    (folder / "compiled_meta.json").write_text(json.dumps(data | changes))
    return Artifact(folder)


def test_signature_from_an_artifact(tmp_path: Path) -> None:
    found = signature_of(meta(tmp_path))
    assert found.names == ("x", "n", "o")
    assert [p.torch_dtype for p in found.params] == [torch.bfloat16, torch.int64, torch.int8]
    assert [p.name for p in found.outputs] == ["o"]


def test_an_artifact_without_a_record(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=r"neither compiled_meta.json nor a program; compile it again"):
        signature_of(Artifact(tmp_path))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"params": 3}', '{"params": [{"name": "x"}]}'])
def test_a_damaged_record(tmp_path: Path, text: str) -> None:
    (tmp_path / "compiled_meta.json").write_text(text)
    with pytest.raises(CaseError, match=r"compiled_meta.json cannot be understood"):
        signature_of(Artifact(tmp_path))


def test_data_depend_on_seed_and_name_only() -> None:
    program = programs.vector_add()
    one, same, other = (make_inputs(program, seed=s) for s in (3, 3, 4))
    assert torch.equal(one["a"], same["a"])
    assert not torch.equal(one["a"], other["a"])
    assert not torch.equal(one["a"], one["b"])


def test_the_global_generator_is_not_touched() -> None:
    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    make_inputs(programs.vector_add(), seed=1)
    assert torch.equal(before, torch.random.get_rng_state())


def test_every_row_and_column_differs_and_both_signs_occur() -> None:
    a = make_inputs(programs.vector_add(), seed=0)["a"]
    assert len(torch.unique(a, dim=0)) == a.shape[0]
    assert torch.unique(a, dim=1).shape[1] == a.shape[1]
    assert bool((a < 0).any())
    assert bool((a > 0).any())


def test_outputs_start_with_the_sentinel_and_in_out_with_data() -> None:
    assert bool((make_inputs(programs.vector_add())["out"] == SENTINEL).all())
    assert make_inputs(programs.mixed())["c"].std() > 0.5


ALL = [
    *("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"),
    *("float4_e2m1fn_x2", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
]


@pytest.mark.parametrize("output_only", [False, True])
@pytest.mark.parametrize("shape", [(), (0, 3), (5, 7)], ids=str)
@pytest.mark.parametrize("name", ALL)
def test_every_dtype(name: str, shape: tuple[int, ...], output_only: bool) -> None:
    dtype = torch_type(name)
    found = initial(shape, dtype, torch.Generator().manual_seed(0), output_only=output_only)
    assert (found.dtype, tuple(found.shape)) == (dtype, shape)
    if dtype.is_floating_point and name != "float4_e2m1fn_x2":
        assert bool(torch.isfinite(found.double()).all())


def test_open_extents_and_scalars() -> None:
    inputs = make_inputs(programs.OpenRows, dims={"M": 8}, factor=3.0)
    assert tuple(inputs["x"].shape) == tuple(inputs["out"].shape) == (8, 32)
    assert inputs["factor"] == 3.0
    assert tuple(make_inputs(programs.OpenRows, dims={"x.0": 8, "out.0": 8})["x"].shape) == (8, 32)


def test_own_values() -> None:
    ones = torch.ones(32, 64)
    inputs = make_inputs(programs.vector_add(), a=ones, b=lambda shape, dtype, g: torch.full(shape, 2, dtype=dtype))
    assert inputs["a"] is ones
    assert bool((inputs["b"] == 2).all())


def test_clones_are_the_callers_to_change() -> None:
    inputs = make_inputs(programs.vector_add())
    copy = inputs.clones()
    copy["a"].zero_()
    assert not bool((inputs["a"] == 0).all())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"A": torch.ones(32, 64)}, "no parameter is called 'A'; the parameters are 'a', 'b', 'out'"),
        ({"a": torch.ones(64, 32)}, r"input 'a' has shape \(64, 32\), the program takes In a: fp32\[32, 64\]"),
        ({"a": torch.ones(1, 64)}, r"input 'a' has shape \(1, 64\)"),
        ({"a": torch.ones(64)}, r"input 'a' has shape \(64,\)"),
        ({"a": torch.ones(32, 64).half()}, r"input 'a' has dtype torch.float16.*convert it with .to\(torch.float32\)"),
        ({"a": 3}, "parameter 'a' is a tensor; got int: pass a torch.Tensor"),
        ({"dims": {"M": 3}}, "no open extent is called 'M'; accepted: none: every extent is fixed"),
    ],
)
def test_wrong_values(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(CaseError, match=message):
        make_inputs(programs.vector_add(), **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"extent 0 of In x: .* known only at run time; give it with dims=\{'M': N\}, or pass the tensor as x="),
        ({"dims": {"N": 3}}, "no open extent is called 'N'; accepted: 'M', 'out.0', 'x.0'"),
        ({"dims": {"M": 3}, "factor": torch.ones(1)}, r"parameter 'factor' is a scalar \(fp32\); got Tensor"),
        ({"dims": {"M": 3}, "factor": "2"}, r"parameter 'factor' is a scalar \(fp32\); got str"),
        ({"dims": {"x.0": 8, "out.0": 9}}, "extent 'M' is 9 in input 'out' but 8 in input 'x'; make them equal"),
    ],
)
def test_wrong_extents_and_scalars(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(CaseError, match=message):
        make_inputs(programs.OpenRows, **arguments)


def test_missing_values() -> None:
    with pytest.raises(CaseError, match="inputs lack 'b', 'out'; the parameters are 'a', 'b', 'out'"):
        checked_inputs({"a": torch.ones(32, 64)}, signature_of(programs.vector_add()))


def test_a_dtype_that_torch_lacks() -> None:
    signature = Signature((Param("x", "In", (4,), "hf8"),))
    with pytest.raises(CaseError, match="parameter 'x': torch has no counterpart of dtype hf8"):
        checked_inputs({"x": torch.ones(4)}, signature)


def test_open_extents_follow_from_given_tensors() -> None:
    inputs = make_inputs(programs.OpenRows, x=torch.ones(5, 32))
    assert tuple(inputs["out"].shape) == (5, 32)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dims": {"M": 7}}, r"extent 'M' is 5 in input 'x' but 7 by dims=\{'M': 7\}; make them equal"),
        ({"out": torch.ones(9, 32)}, "extent 'M' is 9 in input 'out' but 5 in input 'x'; make them equal"),
    ],
)
def test_open_extents_that_disagree(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(CaseError, match=message):
        make_inputs(programs.OpenRows, x=torch.ones(5, 32), **arguments)


@pytest.mark.parametrize("given", [torch.arange(2048.0).reshape(64, 32).T, torch.arange(32.0)[:, None].expand(32, 64)])
def test_strided_tensors_become_dense_copies(given: torch.Tensor) -> None:
    inputs = make_inputs(programs.vector_add(), a=given)
    assert inputs["a"].is_contiguous()
    assert inputs.clones()["a"].is_contiguous()
    assert torch.equal(inputs["a"], given)
