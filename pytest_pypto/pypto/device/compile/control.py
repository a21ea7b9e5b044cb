"""Statements, control flow and scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..findings import DeviceError
from ..machine.ops import TILE_OPS
from ..text.nodes import Op
from ..text.types import ArrayT, PtoType, ScalarT
from . import flags, globalops, handles, pipeops, scalars, tileops
from .values import ArrayValue, Scalar

if TYPE_CHECKING:
    from .builder import Builder

_LOW = -(1 << 63)

Handler = Callable[["Builder", Op], None]


def block(k: Builder, ops: list[Op]) -> None:
    """Emit the statements of one region; a region is one counted block, split by control flow inside it."""
    outer = k.block
    k.block = k.emit.open_block()
    for op in ops:
        statement(k, op)
    k.block = outer


def statement(k: Builder, op: Op) -> None:
    """Emit one operation."""
    handler = HANDLERS.get(op.name)
    if handler is not None:
        handler(k, op)
    elif op.name.startswith("arith."):
        _arith(k, op)
    elif op.name.removeprefix("pto.") in TILE_OPS:
        tileops.tile_op(k, op)
    else:
        k.fail(op, "the machine has no such operation")


def _constant(k: Builder, op: Op) -> None:
    value, typ = op.attrs["value"], op.out_types[0]
    if isinstance(value, float):
        name = k.emit.bind("c", value)  # keeps infinities and NaN, which have no literal
        k.define(op, op.results[0], Scalar(name, typ, value))
    else:
        k.define(op, op.results[0], Scalar(repr(value), typ, value))


def _arith(k: Builder, op: Op) -> None:
    args = [k.typed(op, n, t) for n, t in zip(op.ins, op.types, strict=True)]
    problem = scalars.misfit(op)
    if problem is not None:
        k.fail(op, problem)
    codes = [a.code for a in args]
    clamped = None
    if op.name == "arith.select":
        code = f"{codes[1]} if {codes[0]} else {codes[2]}"
    elif op.name == "arith.negf":
        code = f"-{codes[0]}"
    elif op.name in ("arith.cmpi", "arith.cmpf"):
        code = scalars.compare(op, *codes)
    elif len(args) == 1:
        code = scalars.cast(op, k.emit.bind, codes[0])
    else:
        code = scalars.binary(op, k.emit.bind, *codes)
        if op.name == "arith.maxsi" and args[1].value == 0 and not args[0].constant:
            clamped = codes[0]
    value = _folded(op, args)
    if value is not None:
        k.define(op, op.results[0], Scalar(repr(value), op.out_types[0], value))
    else:
        k.assign(op, code, op.out_types[0], clamped=clamped)


def _folded(op: Op, args: list[Scalar]) -> int | None:
    """The value of index arithmetic on constants, so that fixed offsets stay fixed."""
    known: dict[str, Callable[[int, int], int]] = {
        "arith.addi": lambda a, b: a + b,
        "arith.subi": lambda a, b: a - b,
        "arith.muli": lambda a, b: scalars.bounded(a * b),
        "arith.maxsi": max,
        "arith.minsi": min,
        "arith.divsi": scalars.quotient,
        "arith.remsi": scalars.remainder,
    }
    fn = known.get(op.name)
    if fn is None or op.types[0] != ScalarT("index") or not all(a.constant for a in args):
        return None
    return fn(args[0].value, args[1].value)


def _unrealized(k: Builder, op: Op) -> None:
    arg = k.typed(op, op.ins[0], op.types[0])
    if not all(scalars.is_whole_type(t) for t in (op.types[0], op.out_types[0])):
        k.fail(op, f"casts between whole numbers only, not from {op.types[0]} to {op.out_types[0]}")
    bits = scalars.width(op.out_types[0]) or 64
    unsigned = str(op.out_types[0]).startswith("u")
    if arg.constant:
        value = scalars.wrapped(int(arg.value), bits, unsigned)
        k.define(op, op.results[0], Scalar(repr(value), op.out_types[0], value))
    else:
        k.assign(op, f"{k.emit.bind('f', scalars.wrapped)}({arg.code}, {bits}, {unsigned})", op.out_types[0])


class Rounds:
    """The range of a loop; a loop that does not end within the limit of rounds is refused."""

    def __init__(self, k: Builder, op: Op) -> None:
        self.site, self.place = k.site(op).id, (k.file, op.line)

    def __call__(self, ag: Any, low: int, high: int, step: int) -> range:
        if step <= 0:
            file, line = self.place
            raise DeviceError(f"scf.for: the step of a loop must be positive, got {step}", file=file, line=line)
        ag.rounds += max(-(-(high - low) // step), 0)
        if ag.rounds > ag.while_limit:
            ag.endless(self.site)
        return range(low, high, step)


def _for(k: Builder, op: Op) -> None:
    low, high, step = (k.whole(op, n) for n in op.ins)
    if not low.type == high.type == step.type:
        k.fail(op, f"the bounds and the step have different types: {low.type}, {high.type}, {step.type}")
    carried = _initial(k, op)
    var = k.emit.name("i")
    k.emit.line(f"for {var} in {k.emit.bind('r', Rounds(k, op))}(ag, {low.code}, {high.code}, {step.code}):")
    with k.emit.indented():
        _scoped(k, op, 0, [(op.groups["var"][0], var, low.type), *_args(op, carried)], carried)
    _results(k, op, carried)


def _initial(k: Builder, op: Op) -> list[str]:
    """Emit the first values of what a loop carries; gives the variables."""
    carried = [k.emit.name() for _ in op.results]
    for var, name, typ in zip(carried, op.groups["init"], op.out_types, strict=True):
        k.emit.line(f"{var} = {k.typed(op, name, typ).code}")
    return carried


def _args(op: Op, carried: list[str]) -> list[tuple[str, str, Any]]:
    return [(n, v, t) for n, v, t in zip(op.groups["args"], carried, op.out_types, strict=True)]


def _scoped(k: Builder, op: Op, region: int, names: list[tuple[str, str, Any]], targets: list[str]) -> None:
    """Emit a body in which `names` are bound; its yield assigns `targets`."""
    saved = dict(k.env)
    for name, var, typ in names:
        k.define(op, name, Scalar(var, typ))
    body = op.regions[region].ops
    last = body[-1] if body and body[-1].name == "scf.yield" else None
    if targets and last is None:
        k.fail(op, "a body that carries values must end with scf.yield")
    block(k, body[:-1] if last is not None else body)
    if last is not None:
        _assign_yield(k, last, targets, op.out_types)
    k.env = saved


def _assign_yield(k: Builder, op: Op, targets: list[str], types: list[PtoType]) -> None:
    if len(op.ins) != len(targets):
        k.fail(op, f"hands on {len(op.ins)} value(s), the surrounding statement takes {len(targets)}")
    if targets:
        values = ", ".join(k.typed(op, n, t).code for n, t in zip(op.ins, types, strict=True))
        k.emit.line(f"{', '.join(targets)} = {values}")
        for var in (v for v, t in zip(targets, types, strict=True) if t == ScalarT("index")):
            k.emit.line(f"if not {_LOW} <= {var} < {-_LOW}: {var} = {k.emit.bind('f', scalars.bounded)}({var})")


def _results(k: Builder, op: Op, carried: list[str]) -> None:
    for name, var, typ in zip(op.results, carried, op.out_types, strict=True):
        result = k.emit.name()
        k.emit.line(f"{result} = {var}")
        k.define(op, name, Scalar(result, typ))


def _if(k: Builder, op: Op) -> None:
    condition = k.typed(op, op.ins[0], ScalarT("i1"))
    targets = [k.emit.name() for _ in op.results]
    k.emit.line(f"if {condition.code}:")
    with k.emit.indented():
        _scoped(k, op, 0, [], targets)
    if len(op.regions) > 1:
        k.emit.line("else:")
        with k.emit.indented():
            _scoped(k, op, 1, [], targets)
    for name, var, typ in zip(op.results, targets, op.out_types, strict=True):
        k.define(op, name, Scalar(var, typ))


def _while(k: Builder, op: Op) -> None:
    carried = _initial(k, op)
    results = [k.emit.name() for _ in op.results]
    info = k.site(op)
    k.emit.line("while True:")
    with k.emit.indented():
        k.emit.line("ag.rounds += 1")
        k.emit.line(f"if ag.rounds > ag.while_limit: ag.endless({info.id})")
        saved = dict(k.env)
        for name, var, typ in _args(op, carried):
            k.define(op, name, Scalar(var, typ))
        before = op.regions[0].ops
        if not before or before[-1].name != "scf.condition":
            k.fail(op, "the first region must end with scf.condition")
        block(k, before[:-1])
        last = before[-1]
        if len(last.ins) != len(results):
            k.fail(last, f"hands on {len(last.ins)} value(s), the loop carries {len(results)}")
        values = [k.typed(last, n, t).code for n, t in zip(last.ins, op.out_types, strict=True)]
        if results:
            k.emit.line(f"{', '.join(results)} = {', '.join(values)}")
        k.emit.line(f"if not {k.typed(last, last.groups['condition'][0], ScalarT('i1')).code}: break")
        k.env = saved
        names = [(n, v, t) for (n, t), v in zip(op.regions[1].args, results, strict=True)]
        _scoped(k, op, 1, names, carried)
    for name, var, typ in zip(op.results, results, op.out_types, strict=True):
        k.define(op, name, Scalar(var, typ))


def _stray(k: Builder, op: Op) -> None:
    k.fail(op, "must be the last statement of its region")


def _nothing(k: Builder, op: Op) -> None:
    k.site(op, "" if op.name == "return" else "scalar")


def _array(k: Builder, op: Op) -> None:
    typ = op.out_types[0]
    if not isinstance(typ, ArrayT):
        k.fail(op, f"gives a local array, not {typ}")
    var = k.emit.name("arr")
    k.emit.line(f"{var} = [0] * {typ.count}")
    k.define(op, op.results[0], ArrayValue(var, typ))


def _array_of(k: Builder, op: Op, name: str) -> ArrayValue:
    found = k.lookup(op, name)
    if not isinstance(found, ArrayValue):
        k.fail(op, f"%{name} is no local array")
    if found.type != op.types[0]:
        k.fail(op, f"%{name} is used as {op.types[0]}, but has type {found.type}")
    return found


def _element(array: ArrayValue) -> ScalarT:
    assert isinstance(array.type, ArrayT)
    return ScalarT(array.type.dtype)


def _array_index(k: Builder, op: Op, array: ArrayValue) -> str:
    from ..findings import FindingKind

    index = k.whole(op, op.groups["index"][0]).code
    assert isinstance(array.type, ArrayT)
    k.emit.line(f"if not 0 <= {index} < {array.type.count}:")
    with k.emit.indented():
        tell, count = handles.teller(k, op), array.type.count

        def report(ag: Any, i: int) -> None:
            tell(ag, FindingKind.OUT_OF_BOUNDS, f"index {i} leaves an array of {count} elements")

        k.emit.line(f"{k.emit.bind('r', report)}(ag, {index})")
    return f"min(max({index}, 0), {array.type.count - 1})"


def _array_set(k: Builder, op: Op) -> None:
    array = _array_of(k, op, op.ins[0])
    value = k.typed(op, op.ins[1], _element(array)).code
    k.emit.line(f"{array.code}[{_array_index(k, op, array)}] = {value}")


def _array_get(k: Builder, op: Op) -> None:
    array = _array_of(k, op, op.ins[0])
    if op.out_types[0] != _element(array):
        k.fail(op, f"gives {_element(array)}, not {op.out_types[0]}")
    k.assign(op, f"{array.code}[{_array_index(k, op, array)}]", op.out_types[0])


HANDLERS: dict[str, Handler] = {
    "arith.constant": _constant,
    "builtin.unrealized_conversion_cast": _unrealized,
    "scf.for": _for,
    "scf.if": _if,
    "scf.while": _while,
    "scf.yield": _stray,
    "scf.condition": _stray,
    "return": _nothing,
    "pto.declare_local_array": _array,
    "pto.local_array_set": _array_set,
    "pto.local_array_get": _array_get,
    "pto.tget_scale_addr": tileops.scale_address,
    **flags.HANDLERS,
    **handles.HANDLERS,
    **globalops.HANDLERS,
    **pipeops.HANDLERS,
    "pto.tgetval": tileops.get_value,
    "pto.tsetval": tileops.set_value,
}
