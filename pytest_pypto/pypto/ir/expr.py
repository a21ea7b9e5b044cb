"""IR expressions. Nodes are immutable; variables have identity, everything else is compared by `structural_equal`.

Python operators on expressions build nodes (also `==`), so compare nodes with `is`, `same_as` or `structural_equal`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from .dtypes import BOOL, INDEX, INT64, DataType
from .enums import ArgDirection
from .span import UNKNOWN, Span
from .types import MemRefType, PtrType, ScalarType, TupleType, Type, UnknownType, WindowBufferType

if TYPE_CHECKING:
    from .program import Function, Program
    from .stmt import Stmt

Node: TypeAlias = "Expr | Stmt | Function | Program"
Number: TypeAlias = "int | float | Expr"
_ids = count(1)


class IRNode:
    """Base of expressions, statements, functions and programs."""

    __slots__ = ()
    span: Span

    def same_as(self, other: object) -> bool:
        """Identity."""
        return self is other

    def as_python(self, prefix: str = "pl", concise: bool = False, format: bool = True) -> str:
        """The printed form; see `pypto.ir.python_print`."""
        from .printer import python_print

        return python_print(self, prefix, concise, format)

    def __str__(self) -> str:
        return self.as_python()


class Op:
    """An operator, by name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def has_attr(self, key: str) -> bool:
        """True when the operator table has the column `key` for this operator."""
        return key in self.get_attr_keys()

    def get_attr_keys(self) -> list[str]:
        """Names of the keyword arguments that the operator table lists."""
        from .op_table import find_op

        spec = find_op(self.name)
        return [] if spec is None else [k.name for k in spec.kwargs]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class GlobalVar(Op):
    """The name of a function of the program, used as the callee."""

    __slots__ = ()


class Expr(IRNode):
    """Base of all expressions; `type` is the IR type, `span` the source place."""

    __slots__ = ()
    type: Type

    def __bool__(self) -> bool:
        raise TypeError("an IR expression has no truth value in Python; compare nodes with `is` or ir.structural_equal")

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Any:
        from . import scalar_ops as ops

        return ops.eq(self, other) if isinstance(other, (int, float, Expr)) else NotImplemented

    def __ne__(self, other: object) -> Any:
        from . import scalar_ops as ops

        return ops.ne(self, other) if isinstance(other, (int, float, Expr)) else NotImplemented

    def _binary(self, name: str, other: object, swap: bool = False) -> Expr:
        from . import scalar_ops as ops

        if not isinstance(other, (int, float, Expr)):
            raise TypeError(f"cannot combine an IR expression with {other!r}; use an int, a float or an expression")
        left, right = (other, self) if swap else (self, other)
        made: Expr = getattr(ops, name)(left, right)
        return made

    def __add__(self, other: Number) -> Expr:
        return self._binary("add", other)

    def __radd__(self, other: Number) -> Expr:
        return self._binary("add", other, True)

    def __sub__(self, other: Number) -> Expr:
        return self._binary("sub", other)

    def __rsub__(self, other: Number) -> Expr:
        return self._binary("sub", other, True)

    def __mul__(self, other: Number) -> Expr:
        return self._binary("mul", other)

    def __rmul__(self, other: Number) -> Expr:
        return self._binary("mul", other, True)

    def __truediv__(self, other: Number) -> Expr:
        return self._binary("truediv", other)

    def __rtruediv__(self, other: Number) -> Expr:
        return self._binary("truediv", other, True)

    def __floordiv__(self, other: Number) -> Expr:
        return self._binary("floordiv", other)

    def __rfloordiv__(self, other: Number) -> Expr:
        return self._binary("floordiv", other, True)

    def __mod__(self, other: Number) -> Expr:
        return self._binary("mod", other)

    def __rmod__(self, other: Number) -> Expr:
        return self._binary("mod", other, True)

    def __pow__(self, other: Number) -> Expr:
        return self._binary("pow", other)

    def __lt__(self, other: Number) -> Expr:
        return self._binary("lt", other)

    def __le__(self, other: Number) -> Expr:
        return self._binary("le", other)

    def __gt__(self, other: Number) -> Expr:
        return self._binary("gt", other)

    def __ge__(self, other: Number) -> Expr:
        return self._binary("ge", other)

    def __and__(self, other: Number) -> Expr:
        return self._binary("bit_and", other)

    def __or__(self, other: Number) -> Expr:
        return self._binary("bit_or", other)

    def __xor__(self, other: Number) -> Expr:
        return self._binary("bit_xor", other)

    def __lshift__(self, other: Number) -> Expr:
        return self._binary("bit_shift_left", other)

    def __rshift__(self, other: Number) -> Expr:
        return self._binary("bit_shift_right", other)

    def __neg__(self) -> Expr:
        from . import scalar_ops as ops

        return ops.neg(self)

    def __invert__(self) -> Expr:
        from . import scalar_ops as ops

        return ops.bit_not(self)


@dataclass(frozen=True, slots=True, eq=False)
class Var(Expr):
    """A variable. Two variables are the same only if they are the same object; `unique_id` names it in the process."""

    name_hint: str
    type: Type
    span: Span = UNKNOWN
    unique_id: int = field(default_factory=lambda: next(_ids), init=False)


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False)
class MemRef(Var):
    """A piece of memory: `size_` bytes at `byte_offset_` of the allocation `base_`.

    A declared allocation (`pl.MemRef("name", slots=N)`) is pinned: its address is chosen later and `size_` is 0.
    Built by `memref(...)` in `pypto.ir.memref`, which knows the source spellings.
    """

    base_: Var = field(kw_only=True)
    byte_offset_: Expr = field(kw_only=True)
    size_: int = field(kw_only=True)
    is_pinned_: bool = field(kw_only=True, default=False)
    slot_count_: int = field(kw_only=True, default=1)
    slot_index_: Expr | None = field(kw_only=True, default=None)

    def __init__(
        self,
        base: Var | str,
        byte_offset: int | Expr = 0,
        size: int = 0,
        span: Span = UNKNOWN,
        is_pinned: bool = False,
        slots: int = 1,
        slot: Expr | None = None,
    ) -> None:
        put = object.__setattr__
        base = base if isinstance(base, Var) else Var(base, PtrType.get(), span)
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


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False)
class ConstInt(Expr):
    """An integer constant of type `dtype`."""

    value: int
    dtype: DataType
    span: Span = UNKNOWN
    type: Type = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", ScalarType(self.dtype))


@dataclass(frozen=True, slots=True, eq=False)
class ConstFloat(Expr):
    """A floating-point constant of type `dtype`."""

    value: float
    dtype: DataType
    span: Span = UNKNOWN
    type: Type = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", ScalarType(self.dtype))


@dataclass(frozen=True, slots=True, eq=False)
class ConstBool(Expr):
    """`True` or `False`."""

    value: bool
    span: Span = UNKNOWN
    dtype: DataType = field(default=BOOL, init=False)
    type: Type = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", ScalarType(BOOL))


@dataclass(frozen=True, slots=True, eq=False)
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
        put(self, "kwargs", dict((maps[0] if maps else kwargs) or {}))
        put(self, "attrs", dict((maps[1] if len(maps) > 1 else attrs) or {}))
        put(self, "type", UnknownType.get() if type is None else type)
        put(self, "span", span or UNKNOWN)

    @property
    def arg_directions(self) -> list[ArgDirection]:
        """Directions of the arguments, empty when not derived yet."""
        return list(self.attrs.get("arg_directions", []))


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False)
class MakeTuple(Expr):
    """A tuple of expressions; also the form of shape and offset operands."""

    elements: tuple[Expr, ...]
    span: Span = UNKNOWN
    type: Type = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "elements", tuple(self.elements))
        object.__setattr__(self, "type", TupleType(tuple(e.type for e in self.elements)))


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False)
class BinaryExpr(Expr):
    """Base of scalar operators with two operands."""

    symbol: ClassVar[str] = ""
    left: Expr
    right: Expr
    dtype: DataType
    span: Span = UNKNOWN
    type: Type = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", ScalarType(self.dtype))


@dataclass(frozen=True, slots=True, eq=False)
class UnaryExpr(Expr):
    """Base of scalar operators with one operand."""

    symbol: ClassVar[str] = ""
    operand: Expr
    dtype: DataType
    span: Span = UNKNOWN
    type: Type = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", ScalarType(self.dtype))


class Add(BinaryExpr):
    """a + b"""

    __slots__ = ()
    symbol = "+"


class Sub(BinaryExpr):
    """a - b"""

    __slots__ = ()
    symbol = "-"


class Mul(BinaryExpr):
    """a * b"""

    __slots__ = ()
    symbol = "*"


class FloorDiv(BinaryExpr):
    """a // b"""

    __slots__ = ()
    symbol = "//"


class FloorMod(BinaryExpr):
    """a % b"""

    __slots__ = ()
    symbol = "%"


class FloatDiv(BinaryExpr):
    """a / b"""

    __slots__ = ()
    symbol = "/"


class Min(BinaryExpr):
    """min(a, b)"""

    __slots__ = ()
    symbol = "min"


class Max(BinaryExpr):
    """max(a, b)"""

    __slots__ = ()
    symbol = "max"


class Pow(BinaryExpr):
    """a ** b"""

    __slots__ = ()
    symbol = "**"


class Eq(BinaryExpr):
    """a == b"""

    __slots__ = ()
    symbol = "=="


class Ne(BinaryExpr):
    """a != b"""

    __slots__ = ()
    symbol = "!="


class Lt(BinaryExpr):
    """a < b"""

    __slots__ = ()
    symbol = "<"


class Le(BinaryExpr):
    """a <= b"""

    __slots__ = ()
    symbol = "<="


class Gt(BinaryExpr):
    """a > b"""

    __slots__ = ()
    symbol = ">"


class Ge(BinaryExpr):
    """a >= b"""

    __slots__ = ()
    symbol = ">="


class And(BinaryExpr):
    """a and b"""

    __slots__ = ()
    symbol = "and"


class Or(BinaryExpr):
    """a or b"""

    __slots__ = ()
    symbol = "or"


class Xor(BinaryExpr):
    """exclusive or of two truth values; printed as `^`"""

    __slots__ = ()
    symbol = "^"


class BitAnd(BinaryExpr):
    """a & b"""

    __slots__ = ()
    symbol = "&"


class BitOr(BinaryExpr):
    """a | b"""

    __slots__ = ()
    symbol = "|"


class BitXor(BinaryExpr):
    """a ^ b"""

    __slots__ = ()
    symbol = "^"


class BitShiftLeft(BinaryExpr):
    """a << b"""

    __slots__ = ()
    symbol = "<<"


class BitShiftRight(BinaryExpr):
    """a >> b"""

    __slots__ = ()
    symbol = ">>"


class Abs(UnaryExpr):
    """abs(x)"""

    __slots__ = ()
    symbol = "abs"


class Neg(UnaryExpr):
    """-x"""

    __slots__ = ()
    symbol = "-"


class Not(UnaryExpr):
    """not x"""

    __slots__ = ()
    symbol = "not"


class BitNot(UnaryExpr):
    """~x"""

    __slots__ = ()
    symbol = "~"


class Cast(UnaryExpr):
    """x converted to `dtype`"""

    __slots__ = ()
    symbol = "cast"


BINARY_CLASSES: tuple[type[BinaryExpr], ...] = (
    *(Add, Sub, Mul, FloorDiv, FloorMod, FloatDiv, Min, Max, Pow, Eq, Ne, Lt, Le, Gt, Ge),
    *(And, Or, Xor, BitAnd, BitOr, BitXor, BitShiftLeft, BitShiftRight),
)
UNARY_CLASSES: tuple[type[UnaryExpr], ...] = (Abs, Neg, Not, BitNot, Cast)


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
