"""THE op table: one record per operator, from which everything that knows operators starts.

The records themselves live in `pypto.ir.ops`, one module per category, and are loaded on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from .dtypes import DataType
from .enums import AtomicType, MemorySpace, PipeType
from .expr import Call, ConstInt, Expr, MakeTuple, Op
from .span import UNKNOWN, Span
from .types import (
    ArrayType,
    PtrType,
    ScalarType,
    TensorType,
    TileType,
    TupleType,
    Type,
    UnknownType,
)

REQUIRED: Any = object()
"""Default of a keyword that must be given."""

OMITTED: Any = None
"""Default of a keyword that is left out of the call when it is not given."""


@dataclass(frozen=True, slots=True)
class Param:
    """One operand, in IR order. `kind` is a key of `KINDS`, or several joined by `|`."""

    name: str
    kind: str
    optional: bool = False
    spaces: frozenset[MemorySpace] | None = None
    """Memory spaces a tile operand must be in when the operator runs; None means any."""
    variadic: bool = False
    """The last operand, of which any number may be given."""


@dataclass(frozen=True, slots=True)
class KwParam:
    """One keyword of the IR call."""

    name: str
    kind: str
    default: Any = REQUIRED


KINDS: Mapping[str, tuple[type[Type], ...]] = {
    "tensor": (TensorType,),
    "tile": (TileType,),
    "scalar": (ScalarType,),
    "number": (ScalarType,),
    "index": (ScalarType,),
    "int32": (ScalarType,),
    "typed": (ScalarType,),
    "tuple": (TupleType,),
    "array": (ArrayType,),
    "memory": (PtrType,),
    "handle": (Type,),
    "any": (Type,),
}
"""IR types that each operand kind stands for.

The scalar kinds differ in the type that a bare literal takes in the language: `scalar` and `number` the element type of
the tensor or tile beside it (`scalar` refuses INDEX variables), `index` INDEX, `int32` INT32, `typed` that of the
`dtype` keyword.
"""


@dataclass(frozen=True, slots=True)
class Inference:
    """What a type rule sees: the call's operands and keywords. Errors name the operator."""

    op: str
    args: tuple[Expr, ...]
    kwargs: Mapping[str, Any]
    span: Span = UNKNOWN

    def tensor(self, k: int) -> TensorType:
        """Type of operand `k`, a tensor."""
        found = self.args[k].type
        return found if isinstance(found, TensorType) else self.wrong_kind(k, "a tensor")

    def tile(self, k: int) -> TileType:
        """Type of operand `k`, a tile."""
        found = self.args[k].type
        return found if isinstance(found, TileType) else self.wrong_kind(k, "a tile")

    def shaped(self, k: int) -> TensorType | TileType:
        """Type of operand `k`, a tensor or a tile."""
        found = self.args[k].type
        return found if isinstance(found, (TensorType, TileType)) else self.wrong_kind(k, "a tensor or a tile")

    def scalar(self, k: int) -> DataType:
        """Element type of operand `k`, a scalar."""
        found = self.args[k].type
        return found.dtype if isinstance(found, ScalarType) else self.wrong_kind(k, "a scalar")

    def dims(self, k: int) -> tuple[Expr, ...]:
        """Elements of operand `k`, a tuple of integers."""
        found = self.args[k]
        return found.elements if isinstance(found, MakeTuple) else self.wrong_kind(k, "a list of integers")

    def extents(self, k: int) -> tuple[Expr, ...]:
        """Elements of operand `k`, the extents of a shape: none of them provably negative."""
        found = self.dims(k)
        for dim in found:
            if isinstance(dim, ConstInt) and dim.value < 0:
                self.fail(f"requires extents of at least 0, but got {[getattr(d, 'value', str(d)) for d in found]}")
        return found

    def has(self, k: int) -> bool:
        """True when operand `k` is given."""
        return k < len(self.args)

    def wrong_kind(self, k: int, want: str) -> Any:
        """Raise the error for an operand of another kind."""
        raise TypeError(f"The operator {self.op} requires {want} as operand {k + 1}, but got {self.args[k].type}")

    def fail(self, reason: str) -> Any:
        """Raise a ValueError: `The operator <name> <reason>`."""
        raise ValueError(f"The operator {self.op} {reason}")


Rule = Callable[[Inference], Type]


@dataclass(frozen=True, slots=True)
class OpSpec:
    """One operator.

    `space` is the memory space of the result; `space_from` the operand whose space it inherits (views); `space_kwarg`
    the keyword that states it. `inplace` is the operand whose storage the result is (store, matmul_acc, ...).
    `view_of` is the operand of which the result is a zero-copy view. `no_alias` lists the operands whose buffer the
    result must not share (-1: all). `scratch` lists operands that are clobbered and never carry a value.
    `row_major_only`: tile operands must be row-major when the operator runs. `core` is "cube" or "vector" when the
    operator fixes the core.
    """

    name: str
    category: str
    params: tuple[Param, ...]
    rule: Rule
    kwargs: tuple[KwParam, ...] = ()
    space: MemorySpace | None = None
    space_from: int | None = None
    space_kwarg: str | None = None
    inplace: int | None = None
    view_of: int | None = None
    no_alias: frozenset[int] = frozenset()
    scratch: frozenset[int] = frozenset()
    row_major_only: bool = False
    core: str | None = None
    doc: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        """`tensor`, `tile`, `system`, `array`, `prefetch`, `pld.tensor`, ..."""
        return self.name.rpartition(".")[0]

    @property
    def required(self) -> int:
        """How many operands must be given."""
        return sum(not p.optional for p in self.params)


_table: dict[str, OpSpec] = {}
_loaded = False


def register(spec: OpSpec) -> OpSpec:
    """Add a record.

    Raises:
        ValueError: the name is taken.
    """
    if spec.name in _table:
        raise ValueError(f"operator '{spec.name}' is registered twice")
    _table[spec.name] = spec
    return spec


def _load() -> dict[str, OpSpec]:
    global _loaded
    if not _loaded:
        _loaded = True
        from . import ops

        ops.register_all()
    return _table


def find_op(name: str) -> OpSpec | None:
    """The record of operator `name`, or None."""
    return _load().get(name)


def all_ops() -> Mapping[str, OpSpec]:
    """Every record by name."""
    return _load()


def is_op_registered(op_name: str) -> bool:
    """True when `op_name` is an operator of the table."""
    return find_op(op_name) is not None


def get_op(op_name: str) -> Op:
    """The operator called `op_name`.

    Raises:
        ValueError: no such operator.
    """
    if find_op(op_name) is None:
        raise ValueError(f"Operator '{op_name}' not found in registry")
    return Op(op_name)


def _check_operands(spec: OpSpec, args: Sequence[Expr]) -> bool:
    """Refuse a wrong number or kind of operands; False when the type of one is not known yet."""
    variadic = bool(spec.params) and spec.params[-1].variadic
    if not (spec.required <= len(args) and (variadic or len(args) <= len(spec.params))):
        want = str(spec.required) if spec.required == len(spec.params) else f"{spec.required} to {len(spec.params)}"
        names = ", ".join(p.name for p in spec.params)
        raise ValueError(f"The operator {spec.name} requires {want} operand(s) ({names}), but got {len(args)}")
    known = True
    params = spec.params if not variadic else (*spec.params, *(spec.params[-1],) * len(args))
    for param, arg in zip(params, args, strict=False):
        if not isinstance(arg, Expr):
            hint = "make constants with ir.ConstInt or ir.ConstFloat"
            raise TypeError(f"The operator {spec.name} takes expressions, got {arg!r} as '{param.name}': {hint}")
        if isinstance(arg.type, UnknownType):
            known = False
        elif not any(isinstance(arg.type, KINDS[kind]) for kind in param.kind.split("|")):
            want = param.kind.replace("|", " or ")
            raise TypeError(f"The operator {spec.name} requires a {want} as operand '{param.name}', but got {arg.type}")
    return known


_CODES: Mapping[str, type[IntEnum]] = {
    "atomic": AtomicType,
    "pipe": PipeType,
    "set_pipe": PipeType,
    "wait_pipe": PipeType,
}
"""Keywords that hold the number of an enum member."""


def _check_kwargs(spec: OpSpec, kwargs: Mapping[str, Any]) -> None:
    for kw in spec.kwargs:
        if kw.default is REQUIRED and kw.name not in kwargs:
            raise ValueError(f"The operator {spec.name} requires the keyword '{kw.name}'")
        code = _CODES.get(kw.name)
        value = kwargs.get(kw.name)
        if code is not None and value is not None and value not in set(code):
            names = ", ".join(f"{int(m)} ({m.name.rstrip('_')})" for m in code)
            raise ValueError(f"The operator {spec.name} takes {kw.name} {names}, but got {value!r}")


def infer_type(name: str, args: Sequence[Expr], kwargs: Mapping[str, Any] | None = None, span: Span = UNKNOWN) -> Type:
    """Result type of a call; UnknownType while the type of an operand is unknown.

    Raises:
        ValueError: unknown operator, wrong number of operands, or operands the rule refuses.
        TypeError: an operand of the wrong kind.
    """
    spec = find_op(name)
    if spec is None:
        raise ValueError(f"Operator '{name}' not found in registry")
    kwargs = kwargs or {}
    known = _check_operands(spec, args)
    _check_kwargs(spec, kwargs)
    return spec.rule(Inference(name, tuple(args), kwargs, span)) if known else UnknownType.get()


def create_op_call(
    op_name: str, args: Sequence[Expr], kwargs: Mapping[str, Any] | Span | None = None, span: Span = UNKNOWN
) -> Call:
    """`create_op_call(name, args[, kwargs], span)`: a call with its inferred result type.

    Raises:
        ValueError: unknown operator, or operands the rule refuses.
        TypeError: operands of the wrong kind.
    """
    if isinstance(kwargs, Span):
        span, kwargs = kwargs, None
    if not (kwargs is None or isinstance(kwargs, Mapping)):
        raise TypeError(f"create_op_call() takes kwargs and span after args, got {kwargs!r}")
    kwargs = kwargs or {}
    return Call(Op(op_name), args, kwargs, infer_type(op_name, args, kwargs, span), span)


def set_call_attrs(call: Call, attrs: Mapping[str, Any]) -> Call:
    """A copy of `call` with these attributes instead of its own."""
    return Call(call.op, call.args, call.kwargs, dict(attrs), call.type, call.span)
