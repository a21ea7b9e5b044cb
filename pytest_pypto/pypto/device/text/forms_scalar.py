"""How operations on scalars, pointers and local arrays are spelled."""

from __future__ import annotations

from typing import Any

from .cursor import Cursor
from .known import CMPF, CMPI
from .nodes import Op
from .types import PtrT, ScalarT


def results(c: Cursor, op: Op, least: int, most: int) -> None:
    """Refuse a wrong number of results."""
    if not least <= len(op.results) <= most:
        wanted = str(least) if least == most else f"{least} or {most}"
        c.fail(f"{op.name} gives {wanted} result(s), the text names {len(op.results)}")


def constant(c: Cursor, op: Op) -> None:
    """`%c = arith.constant 5 : index`"""
    results(c, op, 1, 1)
    token = c.take()
    if token.kind == "type" or token.text.startswith("dense"):
        c.fail(f"unexpected constant {token.text!r}", token)
    c.expect(":")
    typ = c.type()
    op.attrs["value"] = c.literal(typ, token)
    op.out_types = [typ]


def dense(c: Cursor, op: Op) -> None:
    """`%v = arith.constant dense<0> : vector<4xi16>`: a placeholder that no operation reads."""
    results(c, op, 1, 1)
    c.take()
    c.expect(":")
    op.out_types = [c.type()]
    op.attrs["value"] = None


def binary(c: Cursor, op: Op) -> None:
    """`%r = arith.addi %a, %b : index`"""
    results(c, op, 1, 1)
    op.ins = [c.value()]
    c.expect(",")
    op.ins.append(c.value())
    c.expect(":")
    typ = c.type()
    op.types, op.out_types = [typ, typ], [typ]


def negf(c: Cursor, op: Op) -> None:
    """`%r = arith.negf %a : f32`"""
    results(c, op, 1, 1)
    op.ins = [c.value()]
    c.expect(":")
    op.types = op.out_types = [c.type()]


def compare(c: Cursor, op: Op) -> None:
    """`%r = arith.cmpi eq, %a, %b : index`"""
    known = CMPI if op.name == "arith.cmpi" else CMPF
    token = c.here
    predicate = c.kind("ident", "a predicate")
    if predicate not in known:
        c.fail(f"unknown predicate {predicate!r} of {op.name}; known are {', '.join(known)}", token)
    c.expect(",")
    binary(c, op)
    op.attrs["predicate"] = predicate
    op.out_types = [ScalarT("i1")]


def select(c: Cursor, op: Op) -> None:
    """`%r = arith.select %c, %a, %b : index`"""
    results(c, op, 1, 1)
    op.ins = [c.value()]
    for _ in range(2):
        c.expect(",")
        op.ins.append(c.value())
    c.expect(":")
    typ = c.type()
    op.types, op.out_types = [ScalarT("i1"), typ, typ], [typ]


def cast(c: Cursor, op: Op) -> None:
    """`%r = arith.index_cast %a : i32 to index`"""
    results(c, op, 1, 1)
    op.ins = [c.value()]
    c.expect(":")
    op.types = [c.type()]
    c.expect("to")
    op.out_types = [c.type()]


def load_scalar(c: Cursor, op: Op) -> None:
    """`%v = pto.load_scalar %arg[%flat] : !pto.ptr<i32> -> i32`"""
    results(c, op, 1, 1)
    op.ins = [c.value()]
    op.groups["index"] = c.values("[", "]", 1)
    c.expect(":")
    op.types = [c.type()]
    c.expect("->")
    op.out_types = [c.type()]


def store_scalar(c: Cursor, op: Op) -> None:
    """`pto.store_scalar %v, %arg[%flat] : !pto.ptr<f32>, f32`"""
    results(c, op, 0, 0)
    op.ins = [c.value()]
    c.expect(",")
    op.ins.append(c.value())
    op.groups["index"] = c.values("[", "]", 1)
    c.expect(":")
    op.types = c.types()


def addptr(c: Cursor, op: Op) -> None:
    """`%q = pto.addptr %p, %off : <f32> -> <f32>` (the short type form stands for a pointer)"""
    results(c, op, 1, 1)
    op.ins = [c.value()]
    c.expect(",")
    op.ins.append(c.value())
    c.expect(":")
    op.types = [_pointer(c)]
    c.expect("->")
    op.out_types = [_pointer(c)]


def _pointer(c: Cursor) -> Any:
    if not c.accept("<"):
        return c.type()
    inner = c.type()
    c.expect(">")
    if not isinstance(inner, ScalarT):
        c.fail(f"a pointer needs an element type, found {inner}")
    return PtrT(inner.dtype)


def declare_array(c: Cursor, op: Op) -> None:
    """`%v = pto.declare_local_array -> !pto.local_array<4xi32>`"""
    results(c, op, 1, 1)
    c.expect("->")
    op.out_types = [c.type()]


def array_set(c: Cursor, op: Op) -> None:
    """`pto.local_array_set %v[%i], %x : ARRAY, i32`"""
    results(c, op, 0, 0)
    op.ins = [c.value()]
    op.groups["index"] = c.values("[", "]", 1)
    c.expect(",")
    op.ins.append(c.value())
    c.expect(":")
    op.types = c.types()


def array_get(c: Cursor, op: Op) -> None:
    """`%q = pto.local_array_get %v[%i] : ARRAY -> i32`"""
    load_scalar(c, op)
