"""Visitors and mutators that users write."""

from __future__ import annotations

import pypto.language as pl
from pypto import DataType, ir

from .generate import SPAN

CODE = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[8, 8], pl.FP32], n: pl.Scalar[pl.INDEX]) -> pl.Tensor[[8, 8], pl.FP32]:
        for i, (c,) in pl.range(1, n, init_values=(a,)):
            if i > 2:
                y = pl.yield_(pl.exp(c))
            else:
                y = pl.yield_(pl.add(c, 1.0))
            d = pl.yield_(y)
        return d

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[8, 8], pl.FP32], n: pl.Scalar[pl.INDEX]):
        t0 = None
        with pl.spmd(n):
            b = self.k(a, n)
        c, t = pl.submit(self.k, b, n + 1, deps=[t0], predicate=(n > 3))
        with pl.at(level=pl.Level.CORE_GROUP, deps=[t]) as u:
            e = pl.slice(c, [4, 8], [n, 0], valid_shape=[n, 8])
        return e
"""


class Names(ir.IRVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.order: list[str] = []

    def visit_var(self, op: ir.Var) -> None:
        self.order.append(op.name_hint)
        super().visit_var(op)

    def visit_iter_arg(self, op: ir.IterArg) -> None:
        self.order.append(f"iter {op.name_hint}")
        super().visit_iter_arg(op)

    def visit_call(self, op: ir.Call) -> None:
        self.order.append(op.op.name)
        super().visit_call(op)

    def visit_if_stmt(self, op: ir.IfStmt) -> None:
        self.order.append("if")
        super().visit_if_stmt(op)

    def visit_binary_expr(self, op: ir.BinaryExpr) -> None:
        self.order.append(type(op).__name__)
        super().visit_binary_expr(op)


def test_order_of_visits() -> None:
    program = pl.parse(CODE)
    assert isinstance(program, ir.Program)
    names = Names()
    names.visit_function(program["k"])
    head = ["a", "n", "i", "n", "iter c", "a", "if", "Gt", "i"]
    assert names.order == [*head, "tensor.exp", "iter c", "a", "tensor.adds", "iter c", "a", "y", "y", "d", "d"]


def test_references_in_fields_of_scopes_are_visited() -> None:
    program = pl.parse(CODE)
    assert isinstance(program, ir.Program)
    names = Names()
    names.visit_function(program["main"])
    assert names.order.count("t") >= 2
    assert "u" in names.order


class Rename(ir.IRMutator):
    """Replaces one variable everywhere."""

    def __init__(self, old: ir.Var, new: ir.Expr) -> None:
        super().__init__()
        self.var_map[old] = new


def test_replacing_a_variable_reaches_types_scopes_and_attributes() -> None:
    program = pl.parse(CODE)
    assert isinstance(program, ir.Program)
    main = program["main"]
    new = ir.Var("m", ir.ScalarType(DataType.INDEX), SPAN)
    body = Rename(main.params[1], new).visit_stmt(main.body)
    text = str(body)
    for part in ("pl.spmd(m)", "self.k(a, m)" if "self." in text else "k(a, m)", "m + 1", "m > 3", "[m, 8]"):
        assert part in text


def test_unchanged_parts_are_shared() -> None:
    program = pl.parse(CODE)
    assert isinstance(program, ir.Program)

    class Exp(ir.IRMutator):
        def visit_call(self, op: ir.Call) -> ir.Expr:
            made = super().visit_call(op)
            if isinstance(made, ir.Call) and made.op.name == "tensor.exp":
                return ir.create_op_call("tensor.neg", list(made.args), made.span)
            return made

    changed = Exp().visit_program(program)
    assert changed is not program
    assert changed["main"] is program["main"]
    assert "pl.tensor.neg(c)" in str(changed["k"])


def test_one_method_per_operator() -> None:
    class Sums(ir.IRVisitor):
        count = 0

        def visit_add(self, op: ir.Add) -> None:
            self.count += 1
            super().visit_add(op)  # type: ignore[misc]

    a = ir.Var("a", ir.ScalarType(DataType.INDEX), SPAN)
    visitor = Sums()
    visitor.visit_expr((a + 1) * (a + (a + 2)))
    assert visitor.count == 3


def test_helpers() -> None:
    program = pl.parse(CODE)
    assert isinstance(program, ir.Program)
    body = program["k"].body
    loop, ret = ir.flatten_to_stmts(body)
    assert [v.name_hint for v in ir.collect_def_vars(body)] == ["i", "c", "d", "y"]
    assert ir.find_yield_stmt(loop.body).value[0].name_hint == "y"
    assert ir.find_yield_stmt(ret) is None
    value = loop.iter_args[0]
    swapped = ir.substitute_stmt(loop.body, [(value, program["k"].params[0])])
    assert "pl.tensor.exp(a)" in str(swapped)


def test_parents() -> None:
    program = pl.parse(CODE)
    assert isinstance(program, ir.Program)
    parents = ir.ParentStmtAnalysis()
    parents.build_map(program["k"])
    loop = ir.flatten_to_stmts(program["k"].body)[0]
    branch = ir.flatten_to_stmts(loop.body)[0]
    assert parents.get_parent(branch) is loop.body
    assert parents.get_parent(loop.body) is loop
    assert not parents.has_parent(program["k"].body)
    parents.clear()
    assert parents.get_parent(branch) is None
