"""How pipes, barriers and synchronisation are spelled."""

from __future__ import annotations

from .cursor import Cursor
from .forms_scalar import results
from .forms_tile import operands
from .known import MOST_EVENTS, QUEUES
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


def barrier(c: Cursor, op: Op) -> None:
    """`pto.barrier <PIPE_V>`"""
    results(c, op, 0, 0)
    op.attrs["pipe"] = _queue(c)


def flag(c: Cursor, op: Op) -> None:
    """`pto.set_flag <PIPE_MTE2>, <PIPE_V>, 3`: from which queue to which, and the number of the flag."""
    results(c, op, 0, 0)
    op.attrs["from"] = _queue(c)
    c.expect(",")
    op.attrs["to"] = _queue(c)
    c.expect(",")
    op.attrs["event"] = _event(c)


def sync_event(c: Cursor, op: Op) -> None:
    """`pto.sync.set <PIPE_V>, 3 [{ffts_mode = 2 : i32}]`; the number may be a value."""
    results(c, op, 0, 0)
    op.attrs["pipe"] = _queue(c)
    c.expect(",")
    if c.here.kind == "value":
        op.ins = [c.value()]
    else:
        op.attrs["event"] = _event(c)
    op.attrs |= c.attrs()


def set_ffts(c: Cursor, op: Op) -> None:
    """`pto.set_ffts %p : !pto.ptr<i64>`"""
    results(c, op, 0, 0)
    op.ins = [c.value()]
    c.expect(":")
    op.types = [c.type()]


def fence(c: Cursor, op: Op) -> None:
    """`pto.fence.barrier_all #pto.fence_scope<gm>`"""
    results(c, op, 0, 0)
    op.attrs["scope"] = c.attr()


def cache(c: Cursor, op: Op) -> None:
    """`pto.cmo.cacheinvalid all #pto.address_space<gm>` or `... %w single_cache_line : PTV`"""
    results(c, op, 0, 0)
    if c.accept("all"):
        op.attrs["space"] = c.attr()
        return
    op.ins = [c.value()]
    c.expect("single_cache_line")
    c.expect(":")
    op.types = [c.type()]


def _queue(c: Cursor) -> str:
    """`<PIPE_V>`"""
    c.expect("<")
    token = c.here
    name = c.kind("ident", "a queue (PIPE_...)")
    if name.removeprefix("PIPE_") not in QUEUES or name in QUEUES:
        c.fail(f"unknown queue {name!r}; known are {', '.join(f'PIPE_{q}' for q in QUEUES)}", token)
    c.expect(">")
    return name


def _event(c: Cursor) -> int:
    token = c.here
    number = c.integer()
    if not 0 <= number < MOST_EVENTS:
        c.fail(f"flag {number} is out of range; there are {MOST_EVENTS}, numbered from 0", token)
    return number
