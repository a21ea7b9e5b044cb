"""How each operation is spelled. One function per form; the tables at the end say which operation has which form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .cursor import Cursor
from .known import ARITH_BINARY, ARITH_CAST, CMPF, CMPI, INS_OUTS
from .nodes import Op
from .types import PartT, ScalarT, TileT, ViewT

Form = Callable[[Cursor, Op], None]


def results(c: Cursor, op: Op, least: int, most: int) -> None:
    """Refuse a wrong number of results."""
    if not least <= len(op.results) <= most:
        wanted = str(least) if least == most else f"{least} or {most}"
        c.fail(f"{op.name} gives {wanted} result(s), the text names {len(op.results)}")


def constant(c: Cursor, op: Op) -> None:
    """`%c = arith.constant 5 : index`"""
    results(c, op, 1, 1)
    token = c.take()
    if token.text.startswith("dense<"):
        c.fail(f"unexpected constant {token.text!r}", token)
    if token.kind == "type" or token.text == "dense":
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
    op.groups["index"] = c.values("[", "]")
    c.expect(":")
    op.types = [c.type()]
    c.expect("->")
    op.out_types = [c.type()]


def subview(c: Cursor, op: Op) -> None:
    """`%s = pto.subview %t[%r, %c] sizes [8, 16] [valid [%vr, %vc]] : TB -> TB'`"""
    results(c, op, 1, 1)
    op.ins = [c.value()]
    op.groups["offsets"] = c.values("[", "]")
    c.expect("sizes")
    op.attrs["sizes"] = c.ints()
    if c.accept("valid"):
        op.groups["valid"] = c.values("[", "]")
    c.expect(":")
    token = c.here
    op.types = [c.type()]
    c.expect("->")
    op.out_types = [c.type()]
    out = op.out_types[0]
    if not isinstance(out, TileT) or [out.rows, out.cols] != op.attrs["sizes"] or len(op.groups["offsets"]) != 2:
        c.fail("subview takes two offsets and gives a tile of the stated sizes", token)


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
    op.ins, op.types = _operands(c, op)
    c.expect("outs")
    op.outs, op.out_types = _operands(c, op)
    op.attrs |= c.attrs()
    counts = INS_OUTS[op.name.removeprefix("pto.")]
    for what, names, allowed in (("ins", op.ins, counts[0]), ("outs", op.outs, counts[1])):
        if len(names) not in allowed:
            wanted = " or ".join(map(str, allowed))
            c.fail(f"{op.name} takes {wanted} operand(s) in {what}(...), the text has {len(names)}")


def _operands(c: Cursor, op: Op) -> tuple[list[str], list[Any]]:
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
    op.ins, op.types = _operands(c, op)
    c.expect("outs")
    c.expect(":")
    op.out_types = [c.type()]
    if len(op.ins) != 2:
        c.fail("tgetval takes a tile and a flat index")


def setval(c: Cursor, op: Op) -> None:
    """`pto.tsetval ins(%flat, %v : index, f32) outs(%t : TB)`"""
    results(c, op, 0, 0)
    c.expect("ins")
    op.ins, op.types = _operands(c, op)
    c.expect("outs")
    op.outs, op.out_types = _operands(c, op)
    if len(op.ins) != 2 or len(op.outs) != 1:
        c.fail("tsetval takes a flat index, a value and one tile")


def load_scalar(c: Cursor, op: Op) -> None:
    """`%v = pto.load_scalar %arg[%flat] : !pto.ptr<i32> -> i32`"""
    results(c, op, 1, 1)
    op.ins = [c.value()]
    op.groups["index"] = c.values("[", "]")
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
    op.groups["index"] = c.values("[", "]")
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
    from .types import PtrT

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
    op.groups["index"] = c.values("[", "]")
    c.expect(",")
    op.ins.append(c.value())
    c.expect(":")
    op.types = c.types()


def array_get(c: Cursor, op: Op) -> None:
    """`%q = pto.local_array_get %v[%i] : ARRAY -> i32`"""
    load_scalar(c, op)


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
    op.ins, op.types = _operands(c, op)
    op.attrs = c.attrs()
    if len(op.ins) != 1:
        c.fail(f"{op.name} sends one tile")
    _split(c, op)


def pop(c: Cursor, op: Op) -> None:
    """`%t = pto.tpop_from_aic[(%vr, %vc)] {split = 1} -> TB`"""
    results(c, op, 1, 1)
    if c.at("("):
        op.groups["valid"] = c.values("(", ")")
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
    line = op.line
    while c.here.line == line and c.here.kind != "end" and not c.at("loc") and not c.at("}"):
        c.take()


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


def build_forms() -> dict[str, Form]:
    """The form of every operation but control flow."""
    forms: dict[str, Form] = {f"pto.{n}": ins_outs for n in INS_OUTS}
    forms |= {f"arith.{n}": binary for n in ARITH_BINARY} | {f"arith.{n}": cast for n in ARITH_CAST}
    forms |= {"arith.constant": constant, "arith.negf": negf, "arith.select": select}
    forms |= dict.fromkeys(("arith.cmpi", "arith.cmpf"), compare)
    forms["builtin.unrealized_conversion_cast"] = cast
    named: dict[Form, str] = {
        tensor_view: "make_tensor_view",
        partition: "partition_view",
        alloc: "alloc_tile alloc_multi_tile",
        multi_get: "multi_tile_get",
        subview: "subview",
        treshape: "treshape",
        set_valid: "set_validshape",
        getval: "tgetval",
        setval: "tsetval",
        load_scalar: "load_scalar",
        store_scalar: "store_scalar",
        addptr: "addptr",
        declare_array: "declare_local_array",
        array_set: "local_array_set",
        array_get: "local_array_get",
        buffer: "reserve_buffer import_reserved_buffer",
        init_pipe: "aic_initialize_pipe aiv_initialize_pipe",
        push: "tpush_to_aiv tpush_to_aic",
        pop: "tpop_from_aic tpop_from_aiv",
        free: "tfree_from_aic tfree_from_aiv",
        syncall: "syncall",
        nothing: "barrier fence.barrier_all cmo.cacheinvalid sync.set sync.wait set_flag wait_flag set_ffts",
        ttri: "ttri",
    }
    for form, names in named.items():
        forms |= {f"pto.{n}": form for n in names.split()}
    return forms
