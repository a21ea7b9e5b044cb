"""Reading what the memory check needs from the IR: statements, bodies, variables, addresses.

Nodes are recognised by the names of their classes and fields, as the public API gives them.
"""

from __future__ import annotations

from typing import Any


def key(node: Any) -> int:
    """Identity of a variable, stable across wrappers of one node."""
    return int(getattr(node, "unique_id", id(node)))


def plain(var: Any) -> str:
    """Name of a variable."""
    return str(getattr(var, "name_hint", "a value"))


def where(stmt: Any) -> str:
    """`file:line` of a statement, or its variable."""
    span = getattr(stmt, "span", None)
    if span is not None and span.begin_line > 0:
        return f"{span.filename}:{span.begin_line}"
    return f"the definition of {plain(getattr(stmt, 'var', None))}"


Placement = tuple[str, int, int, str, bool]


def placement(var: Any) -> Placement | None:
    """(space, first byte, size, allocation, has several slots) of a tile variable with a constant address, or None."""
    kind = getattr(var, "type", None)
    memref, space = getattr(kind, "memref", None), getattr(kind, "memory_space", None)
    if memref is None or space is None or space.name in ("DDR", "ScalarLocal"):
        return None
    start = getattr(memref.byte_offset_, "value", None)
    if not isinstance(start, int):
        return None
    slots = int(getattr(memref, "slot_count_", 1) or 1)
    return space.name, start, memref.size_ * slots, memref.base_.name_hint, slots > 1


def call_of(expr: Any) -> tuple[str | None, list[Any]]:
    """Operator name and arguments of a call; (None, []) for anything else."""
    op = getattr(expr, "op", None)
    return (str(op.name), list(expr.args)) if op is not None and hasattr(expr, "args") else (None, [])


def widens(source: Any, result: Any) -> bool:
    """Whether elements of the result are wider than those of the source."""
    types: list[Any] = [getattr(getattr(v, "type", None), "dtype", None) for v in (source, result)]
    return all(t is not None for t in types) and bool(types[1].get_bit() > types[0].get_bit())


def alloc_size(call: Any) -> int:
    """Bytes that a `tile.alloc` call asks for."""
    numbers = [getattr(a, "value", None) for a in call.args] + [dict(call.kwargs).get("size")]
    return max((n for n in numbers if isinstance(n, int) and not isinstance(n, bool)), default=0)


def statements(body: Any) -> list[Any]:
    """Statements of a body as a flat list."""
    if body is None:
        return []
    if type(body).__name__ == "SeqStmts":
        return [inner for stmt in body.stmts for inner in statements(stmt)]
    return [body]


def bodies(stmt: Any) -> list[Any]:
    """Bodies of a statement, in program order."""
    return [b for b in (getattr(stmt, n, None) for n in ("then_body", "else_body", "body")) if hasattr(b, "span")]


def yields(body: Any) -> list[Any]:
    """Values of the yield that ends a body."""
    stmts = statements(body)
    if not stmts:
        return []
    last = stmts[-1]
    if type(last).__name__ == "YieldStmt":
        return list(last.value)
    return yields(last.body) if hasattr(last, "scope_kind") else []


def expressions(stmt: Any) -> list[Any]:
    """Expressions a statement evaluates itself."""
    kind = type(stmt).__name__
    if kind == "EvalStmt":
        return [stmt.expr]
    if kind in ("ReturnStmt", "YieldStmt"):
        return list(stmt.value)
    found = [getattr(stmt, n) for n in ("start", "stop", "step", "condition", "core_num") if hasattr(stmt, n)]
    return found + [arg.initValue for arg in getattr(stmt, "iter_args", ())]


def variables(expr: Any) -> list[Any]:
    """Variables an expression reads."""
    from pypto import ir

    found: list[Any] = []

    class Reads(ir.IRVisitor):  # type: ignore[misc]
        def visit_var(self, op: Any) -> None:
            found.append(op)

        def visit_iter_arg(self, op: Any) -> None:
            found.append(op)

    Reads().visit_expr(expr)
    return found
