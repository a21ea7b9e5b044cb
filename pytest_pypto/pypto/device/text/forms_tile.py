"""How views, tiles and the operations on them are spelled."""

from __future__ import annotations

from typing import Any

from .cursor import Cursor
from .forms_scalar import results
from .known import INS_OUTS
from .nodes import Op
from .types import PartT, TileT, ViewT


def tensor_view(c: Cursor, op: Op) -> None:
    """`%v = pto.make_tensor_view %arg0, shape = [..], strides = [..] {layout = ..} : VIEW`"""
    results(c, op, 1, 1)
    op.ins = [c.value()]
    for name in ("shape", "strides"):
        c.expect(",")
        c.expect(name)
        c.expect("=")
        op.groups[name] = c.values("[", "]")
    op.attrs = c.attrs()
    c.expect(":")
    token = c.here
    typ = c.type()
    if not isinstance(typ, ViewT):
        c.fail(f"make_tensor_view gives a tensor_view, not {typ}", token)
    if not typ.rank == len(op.groups["shape"]) == len(op.groups["strides"]):
        c.fail(f"the view has rank {typ.rank}, but {len(op.groups['shape'])} extents", token)
    layout = op.attrs.get("layout", "nd")
    if layout not in ("nd", "dn"):
        c.fail(f"tensor layout {layout!r} is not supported; known are nd, dn", token)
    op.out_types = [typ]


def partition(c: Cursor, op: Op) -> None:
    """`%p = pto.partition_view %v, offsets = [..], sizes = [..] : VIEW -> PTV`"""
    results(c, op, 1, 1)
    op.ins = [c.value()]
    for name in ("offsets", "sizes"):
        c.expect(",")
        c.expect(name)
        c.expect("=")
        op.groups[name] = c.values("[", "]")
    c.expect(":")
    token = c.here
    op.types = [c.type()]
    c.expect("->")
    op.out_types = [c.type()]
    view, part = op.types[0], op.out_types[0]
    if not isinstance(view, ViewT) or not isinstance(part, PartT):
        c.fail("partition_view turns a tensor_view into a partition_tensor_view", token)
    if not view.rank == len(part.shape) == len(op.groups["offsets"]) == len(op.groups["sizes"]):
        c.fail(f"offsets and sizes must have the rank of the view ({view.rank})", token)


def alloc(c: Cursor, op: Op) -> None:
    """`%t = pto.alloc_tile [addr = %a] valid_row = %r valid_col = %c : TB`"""
    results(c, op, 1, 1)
    for name in ("addr", "valid_row", "valid_col"):
        if name != "addr" or c.at("addr"):
            c.expect(name)
            c.expect("=")
            op.groups[name] = [c.value()]
    c.expect(":")
    op.out_types = [c.type()]


def multi_get(c: Cursor, op: Op) -> None:
    """`%t = pto.multi_tile_get %mb[%i] : MULTI -> TB`"""
    results(c, op, 1, 1)
    op.ins = [c.value()]
    op.groups["index"] = c.values("[", "]", 1)
    c.expect(":")
    op.types = [c.type()]
    c.expect("->")
    op.out_types = [c.type()]


def subview(c: Cursor, op: Op) -> None:
    """`%s = pto.subview %t[%r, %c] sizes [8, 16] [valid [%vr, %vc]] : TB -> TB'`"""
    results(c, op, 1, 1)
    op.ins = [c.value()]
    op.groups["offsets"] = c.values("[", "]", 2)
    c.expect("sizes")
    op.attrs["sizes"] = c.ints()
    if c.accept("valid"):
        op.groups["valid"] = c.values("[", "]", 2)
    c.expect(":")
    token = c.here
    op.types = [c.type()]
    c.expect("->")
    op.out_types = [c.type()]
    out = op.out_types[0]
    if not isinstance(out, TileT) or [out.rows, out.cols] != op.attrs["sizes"]:
        c.fail("subview gives a tile of the stated sizes", token)


def treshape(c: Cursor, op: Op) -> None:
    """`%q = pto.treshape %p : TB -> TB'`"""
    results(c, op, 1, 1)
    op.ins = [c.value()]
    c.expect(":")
    op.types = [c.type()]
    c.expect("->")
    op.out_types = [c.type()]


def set_valid(c: Cursor, op: Op) -> None:
    """`pto.set_validshape %t, %r, %c : TB`"""
    results(c, op, 0, 0)
    op.ins = [c.value()]
    for _ in range(2):
        c.expect(",")
        op.ins.append(c.value())
    c.expect(":")
    op.types = [c.type()]


def ins_outs(c: Cursor, op: Op) -> None:
    """`pto.X ins(%a, %b {attrs} : T, T) outs(%d : T) {attrs}`"""
    results(c, op, 0, 0)
    c.expect("ins")
    op.ins, op.types = operands(c, op)
    c.expect("outs")
    op.outs, op.out_types = operands(c, op)
    op.attrs |= c.attrs()
    counts = INS_OUTS[op.name.removeprefix("pto.")]
    for what, names, allowed in (("ins", op.ins, counts[0]), ("outs", op.outs, counts[1])):
        if len(names) not in allowed:
            wanted = " or ".join(map(str, allowed))
            c.fail(f"{op.name} takes {wanted} operand(s) in {what}(...), the text has {len(names)}")


def operands(c: Cursor, op: Op) -> tuple[list[str], list[Any]]:
    """`(%a, %b {attrs} : T, T)`: names and types; attributes go into the operation."""
    c.expect("(")
    names: list[str] = []
    while True:
        if c.at("{"):
            op.attrs |= c.attrs()
        else:
            names.append(c.value())
            if c.at("{"):
                op.attrs |= c.attrs()
        if not c.accept(","):
            break
    c.expect(":")
    token = c.here
    types = c.types()
    c.expect(")")
    if len(types) != len(names):
        c.fail(f"{len(names)} operand(s) but {len(types)} type(s)", token)
    return names, types


def getval(c: Cursor, op: Op) -> None:
    """`%v = pto.tgetval ins(%t, %flat : TB, index) outs : f32`"""
    results(c, op, 1, 1)
    c.expect("ins")
    op.ins, op.types = operands(c, op)
    c.expect("outs")
    c.expect(":")
    op.out_types = [c.type()]
    if len(op.ins) != 2:
        c.fail("tgetval takes a tile and a flat index")


def setval(c: Cursor, op: Op) -> None:
    """`pto.tsetval ins(%flat, %v : index, f32) outs(%t : TB)`"""
    results(c, op, 0, 0)
    c.expect("ins")
    op.ins, op.types = operands(c, op)
    c.expect("outs")
    op.outs, op.out_types = operands(c, op)
    if len(op.ins) != 2 or len(op.outs) != 1:
        c.fail("tsetval takes a flat index, a value and one tile")


def ttri(c: Cursor, op: Op) -> None:
    """`"pto.ttri"(%d, %t) {upperOrLower = 0 : i32} : (i32, TB) -> ()`"""
    results(c, op, 0, 0)
    names = c.values("(", ")")
    op.attrs = c.attrs()
    c.expect(":")
    c.expect("(")
    types = c.types()
    c.expect(")")
    c.expect("->")
    c.expect("(")
    c.expect(")")
    if len(names) != 2 or len(types) != 2:
        c.fail("pto.ttri takes the diagonal and a tile")
    op.ins, op.types, op.outs, op.out_types = names[:1], types[:1], names[1:], types[1:]
