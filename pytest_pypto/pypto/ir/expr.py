"""IR expressions. Nodes are immutable; variables have identity, everything else is compared by `structural_equal`.

Python operators on expressions build nodes (also `==`), so compare nodes with `is`, `same_as` or `structural_equal`.
The names of `expr_base` and `scalar_expr` are here too: this module is the one to import.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from .dtypes import BOOL, INDEX, INT64, DataType
from .enums import ArgDirection, MemorySpace
from .expr_base import Expr, GlobalVar, IRNode, Node, Number, Op
from .scalar_expr import (
    BINARY_CLASSES,
    UNARY_CLASSES,
    Abs,
    Add,
    And,
    BinaryExpr,
    BitAnd,
    BitNot,
    BitOr,
    BitShiftLeft,
    BitShiftRight,
    BitXor,
    Cast,
    Eq,
    FloatDiv,
    FloorDiv,
    FloorMod,
    Ge,
    Gt,
    Le,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    Neg,
    Not,
    Or,
    Pow,
    Sub,
    UnaryExpr,
    Xor,
)
from .span import UNKNOWN, Span
from .types import MemRefType, PtrType, ScalarType, TupleType, Type, UnknownType, WindowBufferType

__all__ = [
    "BINARY_CLASSES",
    "UNARY_CLASSES",
    "Abs",
    "Add",
    "And",
    "BinaryExpr",
    "BitAnd",
    "BitNot",
    "BitOr",
    "BitShiftLeft",
    "BitShiftRight",
    "BitXor",
    "Call",
    "Cast",
    "ConstBool",
    "ConstFloat",
    "ConstInt",
    "Eq",
    "Expr",
    "FloatDiv",
    "FloorDiv",
    "FloorMod",
    "Ge",
    "GlobalVar",
    "Gt",
    "IRNode",
    "IterArg",
    "Le",
    "Lt",
    "MakeTuple",
    "Max",
    "MemRef",
    "Min",
    "Mul",
    "Ne",
    "Neg",
    "Node",
    "Not",
    "Number",
    "Op",
    "Or",
    "Pow",
    "Sub",
    "Submit",
    "TupleGetItemExpr",
    "UnaryExpr",
    "Var",
    "WindowBuffer",
    "Xor",
    "const_value",
    "index",
    "make_tuple",
    "static_dims",
]

_ids = count(1)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Var(Expr):
    """A variable. Two variables are the same only if they are the same object; `unique_id` names it in the process."""

    name_hint: str
    type: Type
    span: Span = UNKNOWN
    unique_id: int = field(default_factory=lambda: next(_ids), init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.type, Type) or not isinstance(self.name_hint, str):
            raise TypeError(f"Var(name, type) takes a string and an ir type, got {self.name_hint!r} and {self.type!r}")


@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class IterArg(Var):
    """A value carried by a loop; `initValue` is what the first iteration sees."""

    initValue: Expr = field(kw_only=True)

    def __init__(self, name_hint: str, type: Type, initValue: Expr, span: Span = UNKNOWN) -> None:
        put = object.__setattr__
        put(self, "name_hint", name_hint)
        put(self, "type", type)
        put(self, "span", span)
        put(self, "unique_id", next(_ids))
        put(self, "initValue", initValue)
        Var.__post_init__(self)
        if not isinstance(initValue, Expr):
            raise TypeError(f"the initial value of IterArg {name_hint!r} must be an ir.Expr, got {initValue!r}")


@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class MemRef(Var):
    """A piece of memory: `size_` bytes at `byte_offset_` of the allocation `base_`.

    `MemRef(base, byte_offset, size)` is placed memory; `base` is a variable or a name. `MemRef("name", slots=N)` and
    `MemRef()` declare an allocation: it is pinned, its address is chosen later and `size_` is 0. The older forms
    `MemRef(address, size, id)` and `MemRef(space, address, size, id)` name the base after space and id.

    Raises:
        TypeError: other arguments.
    """

    base_: Var = field(kw_only=True)
    byte_offset_: Expr = field(kw_only=True)
    size_: int = field(kw_only=True)
    is_pinned_: bool = field(kw_only=True, default=False)
    slot_count_: int = field(kw_only=True, default=1)
    slot_index_: Expr | None = field(kw_only=True, default=None)

    def __init__(
        self,
        base: Var | str | MemorySpace | int = "",
        byte_offset: int | Expr | Span | None = None,
        size: int | Expr = 0,
        span: Span | int = UNKNOWN,
        is_pinned: bool | Span = False,
        slots: int = 1,
        slot: Expr | None = None,
    ) -> None:
        put = object.__setattr__
        if not isinstance(base, (Var, str)):
            base, byte_offset, size, span = _numbered(base, byte_offset, size, span, is_pinned)
            is_pinned = False
        elif byte_offset is None:
            byte_offset, is_pinned = 0, True
        elif isinstance(byte_offset, Span):
            byte_offset, size, span, slots, is_pinned = 0, 0, byte_offset, size or slots, True
        if not (isinstance(byte_offset, (int, Expr)) and type(size) is type(slots) is int and isinstance(span, Span)):
            raise TypeError(_MEMREF_FORMS.format((base, byte_offset, size, span)))
        base = base if isinstance(base, Var) else Var(str(base), PtrType.get(), span)
        put(self, "name_hint", base.name_hint)
        put(self, "type", MemRefType.get())
        put(self, "span", span)
        put(self, "unique_id", next(_ids))
        put(self, "base_", base)
        put(self, "byte_offset_", byte_offset if isinstance(byte_offset, Expr) else ConstInt(byte_offset, INT64, span))
        put(self, "size_", size)
        put(self, "is_pinned_", is_pinned)
        put(self, "slot_count_", slots)
        put(self, "slot_index_", slot)

    def __getitem__(self, slot: int | Expr) -> MemRef:
        """Slot `slot` of a multi-slot allocation.

        Raises:
            IndexError: a constant slot outside `0 .. slot_count_ - 1`.
        """
        place = slot if isinstance(slot, Expr) else index(slot)
        value = const_value(place)
        if value is not None and not 0 <= value < self.slot_count_:
            raise IndexError(f"slot {value} of buffer {self.name_hint!r} is outside 0..{self.slot_count_ - 1}")
        return MemRef(self.base_, self.byte_offset_, self.size_, self.span, self.is_pinned_, self.slot_count_, place)

    @staticmethod
    def same_allocation(a: MemRef, b: MemRef) -> bool:
        """True when both lie in one allocation."""
        return a.base_ is b.base_

    @staticmethod
    def may_alias(a: MemRef, b: MemRef) -> bool:
        """True unless the two provably share no byte."""
        if a.base_ is not b.base_:
            return False
        at, bt = const_value(a.byte_offset_), const_value(b.byte_offset_)
        return at is None or bt is None or (at < bt + b.size_ and bt < at + a.size_)


_MEMREF_FORMS = (
    'unsupported MemRef arguments {}: write MemRef(base, byte_offset, size) for placed memory, MemRef("name", slots=N) '
    "for a declared allocation"
)


def _numbered(*given: Any) -> tuple[Any, ...]:
    """Base, offset, size and span of `MemRef([space,] address, size, id[, span])`."""
    space, address, size, number, span = given if isinstance(given[0], MemorySpace) else (MemorySpace.DDR, *given[:4])
    if type(number) is not int:
        raise TypeError(_MEMREF_FORMS.format(given))
    return f"mem_{space.name.lower()}_{number}", address, size, span if isinstance(span, Span) else UNKNOWN


@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class WindowBuffer(Var):
    """A buffer that other ranks can reach."""

    base: Var = field(kw_only=True)
    size: Expr = field(kw_only=True)
    load_from_host: bool = field(kw_only=True, default=False)
    store_to_host: bool = field(kw_only=True, default=False)

    def __init__(
        self, base: Var, size: Expr, load_from_host: bool = False, store_to_host: bool = False, span: Span = UNKNOWN
    ) -> None:
        put = object.__setattr__
        put(self, "name_hint", base.name_hint)
        put(self, "type", WindowBufferType.get())
        put(self, "span", span)
        put(self, "unique_id", next(_ids))
        put(self, "base", base)
        put(self, "size", size)
        put(self, "load_from_host", load_from_host)
        put(self, "store_to_host", store_to_host)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ConstInt(Expr):
    """An integer constant of type `dtype`."""

    value: int
    dtype: DataType
    span: Span = UNKNOWN
    type: Type = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", ScalarType(self.dtype))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ConstFloat(Expr):
    """A floating-point constant of type `dtype`."""

    value: float
    dtype: DataType
    span: Span = UNKNOWN
    type: Type = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", ScalarType(self.dtype))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ConstBool(Expr):
    """`True` or `False`."""

    value: bool
    span: Span = UNKNOWN
    dtype: DataType = field(default=BOOL, init=False)
    type: Type = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", ScalarType(BOOL))


def _check_call(made: Call | Submit) -> None:
    """Refuse what is no operator or no operand where it is made, not where it is printed."""
    kind = type(made).__name__
    if not isinstance(made.op, Op):
        raise TypeError(f"{kind}() takes an ir.Op('tile.add') or ir.GlobalVar('kernel') first, got {made.op!r}")
    for arg in made.args:
        if not isinstance(arg, Expr):
            raise TypeError(f"operands of {kind} {made.op.name!r} must be ir.Expr, got {arg!r}")


@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class Call(Expr):
    """A call of an operator (`op` is an `Op`) or of a function of the program (`op` is a `GlobalVar`).

    `kwargs` and `attrs` keep their order and must not be changed. Constructor forms:
    `Call(op, args[, kwargs[, attrs]][, type], span)`.
    """

    op: Op
    args: tuple[Expr, ...]
    kwargs: dict[str, Any]
    attrs: dict[str, Any]
    type: Type
    span: Span

    def __init__(
        self,
        op: Op,
        args: Sequence[Expr],
        *rest: object,
        kwargs: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
        type: Type | None = None,
        span: Span | None = None,
    ) -> None:
        maps = [r for r in rest if isinstance(r, Mapping)]
        for item in rest:
            if isinstance(item, Type):
                type = item
            elif isinstance(item, Span):
                span = item
            elif item is not None and not isinstance(item, Mapping):
                raise TypeError(f"Call() takes kwargs, attrs, type and span after args, got {item!r}")
        put = object.__setattr__
        put(self, "op", op)
        put(self, "args", tuple(args))
        _check_call(self)
        put(self, "kwargs", dict((maps[0] if maps else kwargs) or {}))
        put(self, "attrs", dict((maps[1] if len(maps) > 1 else attrs) or {}))
        put(self, "type", UnknownType.get() if type is None else type)
        put(self, "span", span or UNKNOWN)

    @property
    def arg_directions(self) -> list[ArgDirection]:
        """Directions of the arguments, empty when not derived yet."""
        return list(self.attrs.get("arg_directions", []))


@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class Submit(Expr):
    """Submission of a kernel as a task; its type is a tuple of the results and the task id. Not a `Call`."""

    op: Op
    args: tuple[Expr, ...]
    deps: tuple[Expr, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
    type: Type = field(default_factory=UnknownType.get)
    span: Span = UNKNOWN
    core_num: Expr | None = None
    sync_start: bool = False
    allow_early_resolve: bool = False
    predicate: Expr | None = None

    def __init__(
        self,
        op: Op,
        args: Sequence[Expr],
        deps: Sequence[Expr],
        *rest: object,
        kwargs: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
        type: Type | None = None,
        span: Span | None = None,
        core_num: Expr | None = None,
        sync_start: bool = False,
        allow_early_resolve: bool = False,
        predicate: Expr | None = None,
    ) -> None:
        maps = [r for r in rest if isinstance(r, Mapping)]
        for item in rest:
            if isinstance(item, Type):
                type = item
            elif isinstance(item, Span):
                span = item
            elif item is not None and not isinstance(item, Mapping):
                raise TypeError(f"Submit() takes kwargs, attrs, type and span after deps, got {item!r}")
        put = object.__setattr__
        put(self, "op", op)
        put(self, "args", tuple(args))
        _check_call(self)
        put(self, "deps", tuple(deps))
        put(self, "kwargs", dict((maps[0] if maps else kwargs) or {}))
        put(self, "attrs", dict((maps[1] if len(maps) > 1 else attrs) or {}))
        put(self, "type", UnknownType.get() if type is None else type)
        put(self, "span", span or UNKNOWN)
        put(self, "core_num", core_num)
        put(self, "sync_start", sync_start)
        put(self, "allow_early_resolve", allow_early_resolve)
        put(self, "predicate", predicate)

    @property
    def arg_directions(self) -> list[ArgDirection]:
        """Directions of the arguments, empty when not derived yet."""
        return list(self.attrs.get("arg_directions", []))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MakeTuple(Expr):
    """A tuple of expressions; also the form of shape and offset operands."""

    elements: tuple[Expr, ...]
    span: Span = UNKNOWN
    type: Type = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "elements", tuple(self.elements))
        for e in self.elements:
            if not isinstance(e, Expr):
                raise TypeError(f"elements of a MakeTuple must be ir.Expr, got {e!r}; ir.make_tuple takes numbers too")
        object.__setattr__(self, "type", TupleType(tuple(e.type for e in self.elements)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TupleGetItemExpr(Expr):
    """Element `index` of a tuple.

    Raises:
        IndexError: the index lies outside a tuple of known length.
    """

    tuple: Expr
    index: int
    span: Span = UNKNOWN
    type: Type = field(init=False)

    def __post_init__(self) -> None:
        whole = self.tuple.type
        if not isinstance(whole, TupleType):
            object.__setattr__(self, "type", UnknownType.get())
            return
        if not 0 <= self.index < len(whole.types):
            raise IndexError(
                f"TupleGetItemExpr index {self.index} out of bounds for tuple with {len(whole.types)} elements"
            )
        object.__setattr__(self, "type", whole.types[self.index])


def index(value: int, span: Span = UNKNOWN) -> ConstInt:
    """`value` as an INDEX constant."""
    return ConstInt(value, INDEX, span)


def make_tuple(values: Iterable[int | Expr], span: Span = UNKNOWN) -> MakeTuple:
    """A shape or offset operand; ints become INDEX constants."""
    return MakeTuple(tuple(v if isinstance(v, Expr) else index(v, span) for v in values), span)


def const_value(expr: object) -> int | None:
    """The value of an integer constant, else None."""
    return expr.value if isinstance(expr, ConstInt) else None


def static_dims(dims: Iterable[Expr]) -> tuple[int, ...] | None:
    """The extents as Python ints when all are constants, else None."""
    values = [const_value(d) for d in dims]
    return None if None in values else tuple(v for v in values if v is not None)
