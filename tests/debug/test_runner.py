"""Running in memory: arguments, caching, settings, and what importing costs."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from pytest_pypto.pypto.debug import run_oracle
from pytest_pypto.pypto.debug.runner import namespace_of, script_of
from pytest_pypto.pypto.ir import expr as e
from tests.kit import shown

from .build import Body, function, program, scalar, tensor
from .test_groups import both

ADD = """
@pl.function(type=pl.FunctionType.InCore)
def k(self, a: pl.Tensor[[2, 2], pl.FP32], n: pl.Scalar[pl.INDEX], o: pl.Out[pl.Tensor[[2, 2], pl.FP32]]) -> pl.Tensor[[2, 2], pl.FP32]:
    o = pl.store(pl.add(pl.load(a, [n, 0], [2, 2]), 1.0), [0, 0], o)
    return o
@pl.function(type=pl.FunctionType.Orchestration)
def main(self, a: pl.Tensor[[2, 2], pl.FP32], n: pl.Scalar[pl.INDEX], o: pl.Out[pl.Tensor[[2, 2], pl.FP32]]) -> pl.Tensor[[2, 2], pl.FP32]:
    r = self.k(a, n, o)
    return r
"""  # noqa: E501


def test_arguments_in_order_or_by_name() -> None:
    p = program(ADD)
    a, o = torch.ones(2, 2), torch.zeros(2, 2)
    assert run_oracle(p, [a, 0, o]) is o
    assert o.tolist() == [[2.0, 2.0]] * 2
    by_name = {"o": torch.zeros(2, 2), "n": 0, "a": a}
    assert run_oracle(p, by_name) is by_name["o"]
    assert run_oracle(p, [a, 0, torch.zeros(2, 2)], entry="k").tolist() == [[2.0, 2.0]] * 2


def test_wrong_arguments() -> None:
    p = program(ADD)
    with pytest.raises(TypeError, match=r"'main' takes 3 arguments \(a, n, o\), got 1"):
        run_oracle(p, [torch.zeros(2, 2)])
    with pytest.raises(KeyError, match="parameter 'n'"):
        run_oracle(p, {"a": torch.zeros(2, 2), "o": torch.zeros(2, 2)})
    with pytest.raises(ValueError, match=r"has no function 'gone' \(it has: k, main\)"):
        run_oracle(p, [], entry="gone")
    with pytest.raises(ValueError, match="unknown oracle setting 'slots'"):
        run_oracle(p, [torch.zeros(2, 2), 0, torch.zeros(2, 2)], slots=3)


def test_scripts_are_generated_once_per_program() -> None:
    p = program(ADD)
    assert script_of(p) is script_of(p)
    same = program(ADD)
    assert script_of(same) is not script_of(p)
    assert script_of(same).body == script_of(p).body


def test_errors_carry_the_kernel_line() -> None:
    p = program(ADD)
    with pytest.raises(IndexError, match="negative offset") as caught:
        run_oracle(p, [torch.zeros(2, 2), -1, torch.zeros(2, 2)])
    assert "<string>:" in shown(caught.value)
    assert "_tile_load" in shown(caught.value)


def test_traces() -> None:
    names: list[str] = []
    run_oracle(
        program(ADD),
        [torch.zeros(2, 2), 0, torch.zeros(2, 2)],
        trace=lambda f, name, value: names.append(f"{f}.{name}"),
    )
    assert names == ["k.o", "main.r"]


def test_runs_do_not_record_gradients() -> None:
    a = torch.ones(2, 2, requires_grad=True)
    o = torch.zeros(2, 2)
    run_oracle(program(ADD), [a, 0, o])
    assert not o.requires_grad
    assert torch.is_grad_enabled()


def test_global_state_of_torch_is_left_alone() -> None:
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    run_oracle(program(both(1)), [torch.ones(16, 16), torch.zeros(16, 16)])
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_num_threads() == threads


def test_a_namespace_compiles_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    script = script_of(program(both(1)))
    first = namespace_of(script)

    def again(*args: object, **options: object) -> None:
        raise AssertionError(f"compiled again: {args[1:]}")

    monkeypatch.setattr("builtins.compile", again)
    second = namespace_of(script)
    assert second is not first
    assert second.keys() == first.keys()


def test_functions_on_their_own() -> None:
    def body(b: Body, x: e.Var, n: e.Var) -> None:
        b.ret(b.op("t", "tile.load", x, (n, 0), (1, 2), (1, 2)))

    f = function("f", [("x", tensor((4, 2))), ("n", scalar())], body)
    assert run_oracle(f, [torch.arange(8.0).reshape(4, 2), 2]).tolist() == [[4.0, 5.0]]


ORDERS = {
    "package first": "import pytest_pypto.pypto.debug as d; import importlib; m = importlib.import_module('pytest_pypto.pypto.debug.torch_codegen')",  # noqa: E501
    "submodule first": "import importlib; m = importlib.import_module('pytest_pypto.pypto.debug.torch_codegen'); import pytest_pypto.pypto.debug as d",  # noqa: E501
    "from import": "from pytest_pypto.pypto.debug import torch_codegen as t; import sys; m = sys.modules['pytest_pypto.pypto.debug.torch_codegen']; import pytest_pypto.pypto.debug as d",  # noqa: E501
}  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
def test_the_function_and_the_submodule_share_a_name(order: str) -> None:
    source = (
        f"{ORDERS[order]}; import sys, types; assert isinstance(m, types.ModuleType); assert callable(d.torch_codegen); "  # noqa: E501
        "assert d.torch_codegen is m.torch_codegen; assert m.TorchCodegen; print('torch' in sys.modules, 'numpy' in sys.modules)"  # noqa: E501
    )
    out = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["False", "False"]


def test_the_public_name_leads_to_the_same_objects() -> None:
    source = (
        "import pytest_pypto.toolchain as t; t.activate('embedded') if hasattr(t, 'activate') else t.install(); "
        "from pypto.debug import torch_codegen, validate_pass_ir_codegen_results; import importlib; "
        "m = importlib.import_module('pypto.debug.torch_codegen'); import pypto.debug; "
        "import pytest_pypto.pypto.debug as own; "
        "print(callable(pypto.debug.torch_codegen), m.torch_codegen is torch_codegen is own.torch_codegen)"
    )
    out = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert out.stdout.split() == ["True", "True"], out.stderr


def test_writing_a_script_needs_no_torch() -> None:
    source = (
        "from tests.debug.test_runner import ADD; import sys; "
        "from pytest_pypto.pypto.language.parser import parse; from pytest_pypto.pypto.debug import torch_codegen; "
        "head = 'import pypto.language as pl\\n@pl.program\\nclass P:\\n'; "
        "p = parse(head + ''.join('    ' + x + '\\n' for x in ADD.strip().splitlines())); "
    )
    plain = source.replace("from tests.debug.test_runner import ADD", f"ADD = {ADD!r}")
    plain += "torch_codegen(p, check_shapes=True); print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", plain], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["False"]
