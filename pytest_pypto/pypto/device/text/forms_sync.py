"""How pipes, barriers and synchronisation are spelled."""

from __future__ import annotations

from .cursor import Cursor
from .forms_scalar import results
from .forms_tile import operands
from .nodes import Op


def buffer(c: Cursor, op: Op) -> None:
    """`%b = pto.reserve_buffer {name = "..", size = n, ...} -> i32`"""
    results(c, op, 1, 1)
    op.attrs = c.attrs()
    c.expect("->")
    op.out_types = [c.type()]
    needed = ("name", "size", "location") if op.name == "pto.reserve_buffer" else ("name", "peer_func")
    for key in needed:
        if key not in op.attrs:
            c.fail(f"{op.name} lacks {key}")


def init_pipe(c: Cursor, op: Op) -> None:
    """`pto.aic_initialize_pipe {dir_mask = 3, slot_size = n, ...} (gm_slot_buffer = %p : T, ...)`"""
    results(c, op, 0, 0)
    op.attrs = c.attrs()
    for key in ("dir_mask", "slot_size"):
        if not isinstance(op.attrs.get(key), int):
            c.fail(f"{op.name} lacks {key}")
    c.expect("(")
    while not c.at(")"):
        key = c.kind("ident", "the name of an operand")
        c.expect("=")
        op.groups[key] = [c.value()]
        c.expect(":")
        c.type()
        if not c.accept(","):
            break
    c.expect(")")


def push(c: Cursor, op: Op) -> None:
    """`pto.tpush_to_aiv(%t : TB) {split = 1}`"""
    results(c, op, 0, 0)
    op.ins, op.types = operands(c, op)
    op.attrs = c.attrs()
    if len(op.ins) != 1:
        c.fail(f"{op.name} sends one tile")
    _split(c, op)


def pop(c: Cursor, op: Op) -> None:
    """`%t = pto.tpop_from_aic[(%vr, %vc)] {split = 1} -> TB`"""
    results(c, op, 1, 1)
    if c.at("("):
        op.groups["valid"] = c.values("(", ")", 2)
    op.attrs = c.attrs()
    c.expect("->")
    op.out_types = [c.type()]
    _split(c, op)


def free(c: Cursor, op: Op) -> None:
    """`pto.tfree_from_aic {split = 1}`"""
    results(c, op, 0, 0)
    op.attrs = c.attrs()
    _split(c, op)


def _split(c: Cursor, op: Op) -> None:
    code = op.attrs.get("split")
    if not isinstance(code, int) or not 0 <= code <= 4:
        c.fail(f"{op.name} has split = {code!r}; known are 0 (none), 1 (rows), 2 (columns), 3 and 4 (odd extents)")


def syncall(c: Cursor, op: Op) -> None:
    """`pto.syncall([%w : PTV[, %n : i32]]) mode = #..<hard>, core_type = #..<mix>`"""
    results(c, op, 0, 0)
    c.expect("(")
    while not c.at(")"):
        if c.here.kind == "value":
            op.ins.append(c.value())
        else:
            c.take()
            if c.here.kind == "end":
                c.fail("syncall is not closed")
    c.expect(")")
    for key in ("mode", "core_type"):
        c.accept(",")
        c.expect(key)
        c.expect("=")
        op.attrs[key] = c.attr()


def nothing(c: Cursor, op: Op) -> None:
    """Barriers, fences, flags and cache commands: no effect on values; the operands are skipped."""
    line, depth = op.line, 0
    while c.here.line == line and c.here.kind != "end" and not c.at("loc") and (depth or not c.at("}")):
        depth += c.at("{") - c.at("}")
        c.take()
