"""What a handler sees of an operator call, and the map from operator names to handlers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...ir.dtypes import DataType
from ...ir.expr import ConstBool, ConstFloat, ConstInt, Expr, const_value
from ...ir.types import ArrayType, ScalarType, ShapedType, Type
from ..dtypes import torch_name


@dataclass(slots=True)
class Operand:
    """One operand: its text, its expression and type when known, and whether its region may be partial at run time."""

    text: str
    expr: Expr | None = None
    type: Type | None = None
    partial: bool = False
    items: tuple[str, ...] = ()
    """Texts of the elements of a tuple operand."""

    @property
    def dtype(self) -> DataType | None:
        """Element type of a tensor, tile, array or scalar operand."""
        return self.type.dtype if isinstance(self.type, (ShapedType, ScalarType)) else None

    @property
    def is_tensor(self) -> bool:
        """True for tensors and tiles."""
        return isinstance(self.type, ShapedType) and not isinstance(self.type, ArrayType)

    @property
    def constant(self) -> int | float | bool | None:
        """The value of a constant operand."""
        return self.expr.value if isinstance(self.expr, (ConstInt, ConstFloat, ConstBool)) else None

    @property
    def shape(self) -> tuple[int | None, ...] | None:
        """Extents of a tensor or tile (None where symbolic), or the values of a tuple operand of constants."""
        return tuple(const_value(d) for d in self.type.shape) if isinstance(self.type, ShapedType) else None


def _no_hoist(text: str) -> str:
    return text if text.isidentifier() else f"({text})"


@dataclass(slots=True)
class Site:
    """One operator call, as a handler sees it. Types are None when a handler is asked without a program."""

    name: str
    args: list[Operand]
    kwargs: Mapping[str, Any]
    type: Type | None = None
    hoist: Callable[[str], str] = _no_hoist
    """Gives an expression a name, by a statement in front."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the analyses found: `write_through`, `copy_target`, `mask`, `packed`."""

    def __len__(self) -> int:
        return len(self.args)

    def __getitem__(self, k: int) -> str:
        return self.args[k].text

    def named(self, k: int) -> str:
        """Operand `k` as a name that can be mentioned more than once."""
        operand = self.args[k]
        if not operand.text.isidentifier():
            operand.text = self.hoist(operand.text)
        return operand.text

    @property
    def is_tile(self) -> bool:
        """True for operators of the tile namespace."""
        return self.name.startswith("tile.")

    @property
    def out(self) -> DataType | None:
        """Element type of the result."""
        return self.type.dtype if isinstance(self.type, (ShapedType, ScalarType)) else None

    def partial(self, *which: int) -> bool:
        """True when one of the operands may have a partial region."""
        return any(self.args[k].partial for k in which if k < len(self.args))

    def given(self, k: int) -> bool:
        """True when the optional operand `k` is there (an empty tuple counts as absent)."""
        return k < len(self.args) and self.args[k].text not in ("()", "None")

    def typed(self, k: int, dtype: DataType | None) -> str:
        """Operand `k` as a tensor of element type `dtype`."""
        operand = self.args[k]
        if dtype is None or operand.dtype is None or operand.dtype is dtype:
            return operand.text
        if torch_name(operand.dtype) == torch_name(dtype):
            return operand.text
        return f"{wrapped(operand.text)}.to({torch_name(dtype)})"


Emit = Callable[[Site], str]


@dataclass(frozen=True, slots=True)
class OpHandler:
    """How one operator becomes an expression.

    `region` says what the result's valid region is: "first" (that of operand `main`), "common" (that of operands 0 and
    1 when they agree), "own" (the helper records it) or "full". `writes` is the operand that is written in place and
    returned, `view` the one whose storage the result shares, `window` whether only a part of it.
    """

    name: str
    emit: Emit
    region: str = "full"
    main: int = 0
    writes: int | None = None
    view: int | None = None
    window: bool = False
    comment: bool = False
    """The expression is a no-op, named in a comment when it is a statement of its own."""

    def __call__(self, args: Sequence[str], kwargs: Mapping[str, Any] | None = None) -> str:
        """The expression for operand texts, without types: all operands count as valid FP32 tensors."""
        return self.render(Site(self.name, [Operand(text) for text in args], kwargs or {}))

    def render(self, site: Site) -> str:
        """The expression, with the region of the result carried along where it may be partial."""
        if self.region == "first" and site.partial(self.main):
            source = site.named(self.main)
            return f"_copy_region_attrs({source}, {self.emit(site)})"
        if self.region == "common" and site.partial(0, 1) and len(site) > 1 and site.args[1].is_tensor:
            if site.partial(0) and site.partial(1):
                left, right = site.named(0), site.named(1)
                return f"_common_region({left}, {right}, {self.emit(site)})"
            return self.emit(site)
        if self.region == "common" and site.partial(0):
            return f"_copy_region_attrs({site.named(0)}, {self.emit(site)})"
        return self.emit(site)

    def result_partial(self, partials: Sequence[bool], tensors: Sequence[bool]) -> bool:
        """Whether the result may have a partial region, given that of the operands."""
        if self.region == "first":
            return self.main < len(partials) and partials[self.main]
        if self.region == "common":
            both = len(partials) > 1 and tensors[1]
            return bool(partials) and partials[0] and (partials[1] if both else True)
        if self.region == "own":
            return any(partials)
        return self.region == "always"


OP_MAP: dict[str, OpHandler] = {}


def register(*names: str, **facts: Any) -> Callable[[Emit], Emit]:
    """Make a function the handler of these operators."""

    def add(emit: Emit) -> Emit:
        for name in names:
            if name in OP_MAP:
                raise ValueError(f"operator '{name}' has two handlers")
            OP_MAP[name] = OpHandler(name, emit, **facts)
        return emit

    return add


def both(name: str) -> tuple[str, str]:
    """The tensor and the tile operator of one name."""
    return f"tensor.{name}", f"tile.{name}"


def wrapped(text: str) -> str:
    """`text` so that an attribute can be taken of it."""
    plain = text.isidentifier() or (text.endswith(")") and not text.startswith("(-") and _one_call(text))
    return text if plain else f"({text})"


def _one_call(text: str) -> bool:
    """True when `text` is a chain of names, calls and attributes, or in parentheses."""
    depth = 0
    for ch in text:
        if ch in "([{":
            depth += 1
        elif ch in ")]}":
            depth -= 1
        elif depth == 0 and not (ch.isalnum() or ch in "._"):
            return False
    return True


def number(value: float | int | bool) -> str:
    """A Python literal; infinities and NaN as calls of `float`."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f'float("{value}")'
    return repr(value)
