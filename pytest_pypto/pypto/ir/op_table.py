"""THE op table: one record per operator, from which everything that knows operators starts.

The records themselves live in `pypto.ir.ops`, one module per category, and are loaded on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .enums import MemorySpace
from .expr import Call, Expr, Op
from .span import UNKNOWN, Span
from .types import Type

REQUIRED: Any = object()
"""Default of an operand or keyword that must be given."""


@dataclass(frozen=True, slots=True)
class Param:
    """One operand, in IR order. `kind` is tensor, tile, scalar, tuple, array, handle, memory or any."""

    name: str
    kind: str
    optional: bool = False
    spaces: frozenset[MemorySpace] | None = None
    """Memory spaces a tile operand may be in; None means any."""


@dataclass(frozen=True, slots=True)
class KwParam:
    """One keyword of the IR call."""

    name: str
    kind: str
    default: Any = REQUIRED


@dataclass(frozen=True, slots=True)
class Inference:
    """What a type rule sees: the call's operands and keywords."""

    op: str
    args: tuple[Expr, ...]
    kwargs: Mapping[str, Any]
    span: Span = UNKNOWN


Rule = Callable[[Inference], Type]


@dataclass(frozen=True, slots=True)
class OpSpec:
    """One operator.

    `space` is the memory space of the result ("Vec", "Acc", ...), or None: see `space_from`.
    `space_from` is the operand whose space the result inherits (views), or None.
    `inplace` is the operand whose storage the result is (store, matmul_acc, assemble, set_validshape, ...), or None.
    `view_of` is the operand of which the result is a zero-copy view, or None.
    `no_alias` lists the operands whose buffer the result must not share ("all" as -1).
    `scratch` lists operands that are clobbered and never carry a value.
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
    """"cube" or "vector" when the operator fixes the core, else None."""
    doc: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        """`tensor`, `tile`, `system`, `array`, ..."""
        return self.name.split(".", 1)[0]


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


def is_op_registered(name: str) -> bool:
    """True when `name` is an operator of the table."""
    return find_op(name) is not None


def get_op(name: str) -> Op:
    """The operator called `name`.

    Raises:
        ValueError: no such operator.
    """
    if find_op(name) is None:
        raise ValueError(f"Operator '{name}' not found in registry")
    return Op(name)


def infer_type(name: str, args: Sequence[Expr], kwargs: Mapping[str, Any] | None = None, span: Span = UNKNOWN) -> Type:
    """Result type of a call.

    Raises:
        ValueError: unknown operator, or operands the rule refuses.
        TypeError: operands of the wrong kind.
    """
    spec = find_op(name)
    if spec is None:
        raise ValueError(f"Operator '{name}' not found in registry")
    return spec.rule(Inference(name, tuple(args), kwargs or {}, span))


def create_op_call(op_name: str, args: Sequence[Expr], *rest: Any, span: Span = UNKNOWN) -> Call:
    """`create_op_call(name, args[, kwargs], span)`: a call with its inferred result type.

    Raises:
        ValueError: unknown operator, or operands the rule refuses.
        TypeError: operands of the wrong kind.
    """
    kwargs: Mapping[str, Any] = {}
    for item in rest:
        if isinstance(item, Span):
            span = item
        elif isinstance(item, Mapping):
            kwargs = item
        elif item is not None:
            raise TypeError(f"create_op_call() takes kwargs and span after args, got {item!r}")
    return Call(Op(op_name), args, kwargs, infer_type(op_name, args, kwargs, span), span)


def set_call_attrs(call: Call, attrs: Mapping[str, Any]) -> Call:
    """A copy of `call` with these attributes instead of its own."""
    return Call(call.op, call.args, call.kwargs, dict(attrs), call.type, call.span)
