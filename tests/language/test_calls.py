"""Calls of functions and operators, submissions, attributes."""

from __future__ import annotations

import pypto.language as pl
import pytest
from pypto import ir

from .marked import HEAD, function, host, kernel, printed_body

T = "pl.Tensor[[64, 64], pl.FP32]"


def test_call_of_a_function_of_the_program() -> None:
    assert printed_body(host("y = self.step(x, x)\nreturn y")) == [f"y: {T} = self.step(x, x)", "return y"]


def test_call_of_a_later_function_has_no_type_yet() -> None:
    source = (
        f"{HEAD}@pl.program\nclass P:\n    @pl.function\n    def a(self, x: {T}):\n"
        f"        y = self.z(x)\n        return y\n"
        f"    @pl.function\n    def z(self, x: {T}) -> {T}:\n        return x\n"
    )
    assert "        y: pl.UnknownType = self.z(x)" in ir.python_print(pl.parse(source)).splitlines()
    annotated = source.replace("y = self", f"y: {T} = self")
    assert f"        y: {T} = self.z(x)" in ir.python_print(pl.parse(annotated)).splitlines()


def test_symbolic_extents_of_the_callee_become_the_callers() -> None:
    source = (
        f"{HEAD}D = pl.dynamic('D')\n@pl.program\nclass P:\n    @pl.function\n"
        "    def k(self, x: pl.Tensor[[D, 64], pl.FP32], m: pl.Scalar[pl.INDEX]) -> tuple[pl.Tensor[[D, 64], pl.FP32], "
        "pl.Tensor[[D, 8], pl.FP32]]:\n        return x, pl.slice(x, [D, 8], [0, 0])\n"
        "    @pl.function\n    def main(self, x: pl.Tensor[[24, 64], pl.FP32]):\n"
        "        y, z = self.k(x, 3)\n        return z\n"
    )
    assert "        z: pl.Tensor[[24, 8], pl.FP32] = _tuple_tmp[1]" in ir.python_print(pl.parse(source)).splitlines()


def test_result_of_a_function_without_return_type_comes_from_its_return() -> None:
    source = (
        f"{HEAD}@pl.program\nclass P:\n    @pl.function\n    def k(self, x: {T}):\n"
        f"        return pl.slice(x, [8, 64], [0, 0])\n"
        f"    @pl.function\n    def main(self, x: {T}):\n        y = self.k(x)\n        return y\n"
    )
    assert "        y: pl.Tensor[[8, 64], pl.FP32] = self.k(x)" in ir.python_print(pl.parse(source)).splitlines()


def test_module_level_function_joins_the_program() -> None:
    source = (
        f"{HEAD}@pl.function(type=pl.FunctionType.InCore)\ndef outside(x: {T}, o: pl.Out[{T}]) -> {T}:\n"
        "    return pl.store(pl.load(x, [0, 0], [64, 64]), [0, 0], o)\n"
        f"@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.Orchestration)\n"
        f"    def main(self, x: {T}, o: pl.Out[{T}]):\n        o = outside(x, o)\n        return o\n"
    )
    program = pl.parse(source)
    assert isinstance(program, ir.Program)
    assert [f.name for f in program.functions.values()] == ["main", "outside"]


def test_marks_on_arguments() -> None:
    assert printed_body(host("y = self.step(pl.no_dep(x), x)"))[0].endswith(
        'self.step(x, x, attrs={"arg_direction_overrides": [0]})'
    )
    assert printed_body(host("pl.dump_tag(x)\ny = self.step(x, x)"))[0].endswith('attrs={"dump_vars": [x]})')


def test_attributes_are_kept_in_order_with_their_types() -> None:
    attrs = (
        "{'a': 1, 'q': [x], 'w': 'str', 'f': 0.1, 't': True, 'd': pl.FP16, 'm': pl.Mem.Vec, 'e': k + 1, "
        "'dirs': [pl.adir.input, pl.adir.no_dep], 'z': None}"
    )
    source = function(f"y = pl.tensor.exp(x, attrs={attrs})\npl.tensor.write(x, [0, 0], 1.0, attrs={{'b': 2}})")
    assert printed_body(source) == [
        f'y: {T} = pl.tensor.exp(x, attrs={{"a": 1, "q": [x], "w": "str", "f": 0.10000000000000001, "t": True, '
        '"d": pl.FP16, "m": pl.Mem.Vec, "e": k + 1, "dirs": [pl.adir.input, pl.adir.no_dep], "z": None})',
        'pl.tensor.write(x, [0, 0], 1.0, attrs={"b": 2})',
    ]
    func = pl.parse(source)
    assert ir.structural_equal(pl.parse(ir.python_print(func)), func)


SUBMIT = f"pl.Tuple[{T}, pl.Scalar[pl.TASK_ID]]"


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("pl.submit(self.step, x, x)", "pl.submit(self.step, x, x)"),
        ("pl.submit(self.step, x)", "pl.submit(self.step, x)"),
        ("pl.submit(self.step, x, x, deps=[t0, None, t0])", "pl.submit(self.step, x, x, deps=[t0, t0])"),
        (
            "pl.submit(self.step, x, x, allow_early_resolve=True, predicate=(k > 0), deps=(t0,))",
            "pl.submit(self.step, x, x, deps=[t0], allow_early_resolve=True, predicate=(k > 0))",
        ),
        ("pl.submit(self.step, x, x, dumps=[x])", "pl.submit(self.step, x, x, dumps=[x])"),
        (
            "pl.spmd_submit(self.step, x, x, core_num=4, sync_start=True)",
            "pl.spmd_submit(self.step, x, x, core_num=4, sync_start=True)",
        ),
    ],
)
def test_submit(written: str, printed: str) -> None:
    source = host(f"t0 = None\ny, t = {written}\nreturn y")
    assert printed_body(source)[1:4] == [
        f"_submit_tmp: {SUBMIT} = {printed}",
        f"y: {T} = _submit_tmp[0]",
        "t: pl.Scalar[pl.TASK_ID] = _submit_tmp[1]",
    ]
    program = pl.parse(source)
    assert ir.structural_equal(pl.parse(ir.python_print(program)), program)


def test_submit_as_one_value() -> None:
    assert printed_body(host("r = pl.submit(self.step, x, x)\ny = r[0]"))[1] == f"y: {T} = r[0]"


def test_dependencies_per_element_go_through_an_array() -> None:
    body = "ids = pl.array.create(4, pl.TASK_ID)\ny, t = pl.submit(self.step, x, x, deps=[ids[i] for i in range(2)])"
    lines = printed_body(host(body))
    assert lines[1] == "_submit_deps_buf: pl.Array[2, pl.TASK_ID] = pl.array.create(2, dtype=pl.TASK_ID)"
    assert lines[3].endswith("pl.array.update_element(_submit_deps_buf, 1, pl.array.get_element(ids, 1))")
    assert lines[4].endswith("pl.submit(self.step, x, x, deps=[_submit_deps_buf])")


def test_bare_literals_take_the_type_of_the_operand() -> None:
    params = "x: pl.Tensor[[64, 64], pl.FP16], i: pl.Tensor[[64, 64], pl.INT32]"
    body = (
        "t = pl.load(x, [0, 0], [64, 64])\na = pl.mul(t, 3)\nb = pl.add(t, 2.0)\n"
        "c = pl.mul(pl.load(i, [0, 0], [64, 64]), 3)"
    )
    assert [line.partition("= ")[2] for line in printed_body(kernel(body, params))[1:]] == [
        "pl.tile.muls(t, pl.const(3.0, pl.FP16))",
        "pl.tile.adds(t, 2.0)",
        "pl.tile.muls(pl.tile.load(i, [0, 0], [64, 64], [64, 64], target_memory=pl.Mem.Vec), pl.const(3, pl.INT32))",
    ]


def test_arguments_from_outside() -> None:
    head = "SPACE = pl.Mem.Mat\nDT = pl.BF16\nSHAPE = [32, 64]\nOFFS = (0, 0)\nMODE = 'rint'\n"
    body = (
        "t = pl.load(x, OFFS, SHAPE, target_memory=SPACE)\n"
        "c = pl.create_tensor(SHAPE, dtype=DT)\nr = pl.cast(x, DT, mode=MODE)"
    )
    assert [line.partition("= ")[2] for line in printed_body(kernel(body, head=head))] == [
        "pl.tile.load(x, [0, 0], [32, 64], [32, 64], target_memory=pl.Mem.Mat)",
        "pl.tensor.create([32, 64], dtype=pl.BF16, layout=pl.TensorLayout.ND)",
        "pl.tensor.cast(x, target_type=pl.BF16, mode='rint')",
    ]


def test_python_keywords_as_operator_names() -> None:
    params = "a: pl.Tensor[[64, 64], pl.INT16]"
    body = "t = pl.load(a, [0, 0], [64, 64])\nz = pl.and_(t, t)\ny = pl.not_(z)"
    lines = printed_body(kernel(body, params))
    assert lines[1].endswith("pl.tile.and_(t, t)")
    func = pl.parse(kernel(body, params))
    assert ir.structural_equal(pl.parse(ir.python_print(func)), func)
