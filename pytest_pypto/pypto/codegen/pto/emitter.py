"""State of one function while its `.pto` text is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ...backend.handler import Handler
from ...ir.expr import Expr, MemRef, Var, const_value
from ...ir.program import Function
from ...ir.span import UNKNOWN, Span
from ...ir.structural import structural_equal
from ...ir.types import TensorType, TileType
from ..errors import CodegenError
from ..options import CodegenOptions
from .names import ConstantTable, NamePool


@dataclass(frozen=True, slots=True, eq=False)
class Handle:
    """A tile value of the text: its name, its type, and the memory it stands for (None for pops)."""

    name: str
    type_text: str
    memory: MemRef | None = None
    is_subview: bool = False


@dataclass(frozen=True, slots=True)
class ScalarValue:
    """A scalar of the text: its name and its MLIR type."""

    name: str
    type_text: str


@dataclass(slots=True, eq=False)
class TensorArg:
    """A tensor parameter: its pointer argument, the name of its view, and whether the view is needed.

    `turned` names a second view of a matrix with rows and columns exchanged, when something reads it that way.
    """

    param: Var
    type: TensorType
    pointer: str
    view: str
    used: bool = False
    turned: str = ""


@dataclass(slots=True, eq=False)
class Emitter:
    """One function in the making: names, constants, and the lines of its parts.

    `head` holds allocations hoisted to the start, `body` the statements. `roots` maps each tensor variable to the
    parameter it stands for, `tiles` each tile variable to its handle, `scalars` each scalar variable to its value.
    """

    func: Function
    handler: Handler
    options: CodegenOptions
    names: NamePool = field(default_factory=NamePool)
    constants: ConstantTable = field(init=False)
    head: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    roots: dict[Var, TensorArg] = field(default_factory=dict)
    tiles: dict[Var, Handle] = field(default_factory=dict)
    scalars: dict[Var, ScalarValue] = field(default_factory=dict)
    arrays: dict[Var, tuple[str, str]] = field(default_factory=dict)
    slices: dict[Var, tuple[Handle, tuple[str, str], Handle]] = field(default_factory=dict)
    """Slices that still are views: the sliced tile, row and column, and the storage of the slice itself."""
    reserved: dict[Var, str] = field(default_factory=dict)
    nonnegative: set[Var] = field(default_factory=set)
    pieces: list[tuple[MemRef, Handle, int]] = field(default_factory=list)
    """Handles by the bytes they stand for, when the assembler plans memory."""
    rings: dict[Var, tuple[str, str]] = field(default_factory=dict)
    """Multi-slot buffers by base: name and type of the region, when the assembler plans memory."""
    spmd: dict[str, str] = field(default_factory=dict)
    pointers: dict[Var, str] = field(default_factory=dict)
    pipe_offsets: dict[tuple[int, int], int] = field(default_factory=dict)
    depth: int = 1
    span: Span = UNKNOWN

    def __post_init__(self) -> None:
        self.constants = ConstantTable(self.names)

    def line(self, text: str, span: Span | None = None) -> None:
        """Append an operation to the body, with its source place when wanted."""
        self.body.append("  " * self.depth + text + self.location(span))

    def plain(self, text: str) -> None:
        """Append a line that never carries a source place."""
        self.body.append("  " * self.depth + text)

    def location(self, span: Span | None = None) -> str:
        """` loc("file":line:col)` or nothing."""
        place = self.span if span is None or not span.is_valid() else span
        if not self.options.emit_source_loc or not place.is_valid():
            return ""
        name = place.filename.replace("\\", "\\\\").replace('"', '\\"')
        return f' loc("{name}":{place.begin_line}:{place.begin_column})'

    @contextmanager
    def nested(self) -> Iterator[None]:
        """One region deeper."""
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            self.pieces = [piece for piece in self.pieces if piece[2] <= self.depth]

    @contextmanager
    def at(self, span: Span) -> Iterator[None]:
        """Operations inside belong to this source place unless they name their own."""
        before = self.span
        if span.is_valid():
            self.span = span
        try:
            yield
        finally:
            self.span = before

    def fail(self, reason: str, span: Span | None = None) -> CodegenError:
        """An error that names the function and the place."""
        place = span if span is not None and span.is_valid() else self.span
        return CodegenError(f"kernel '{self.func.name}': {reason}", place)

    def index(self, value: int) -> str:
        """An index constant."""
        return self.constants.integer(value, "index")

    def result_name(self, var: Var) -> str:
        """The name set aside for the variable that the current statement defines."""
        name = self.reserved.pop(var, None)
        return name if name is not None else self.names.take(var.name_hint)

    def define_scalar(self, var: Var, name: str, type_text: str) -> None:
        """Remember where a scalar variable lives."""
        self.scalars[var] = ScalarValue(name, type_text)

    def array(self, expr: Expr) -> tuple[str, str]:
        """Name and type of an on-core array.

        Raises:
            CodegenError: the operand is no array made in this kernel.
        """
        found = self.arrays.get(expr) if isinstance(expr, Var) else None
        if found is None:
            raise self.fail("an array operand was not made in this kernel; create it with pl.array.create", expr.span)
        return found

    def tensor(self, expr: Expr) -> TensorArg:
        """The parameter that a tensor operand stands for; marks its view as needed.

        Raises:
            CodegenError: the operand is not a parameter or a value stored through one.
        """
        found = self.tensor_shape(expr)
        found.used = True
        return found

    def tensor_shape(self, expr: Expr) -> TensorArg:
        """The parameter that a tensor operand stands for, without needing its view.

        Raises:
            CodegenError: the operand is not a parameter or a value stored through one.
        """
        found = self.roots.get(expr) if isinstance(expr, Var) else None
        if found is None:
            what = f"'{expr.name_hint}'" if isinstance(expr, Var) else type(expr).__name__
            raise self.fail(
                f"tensor {what} does not stand for one parameter of the kernel; "
                "kernels reach global memory only through their parameters"
            )
        return found

    def tile(self, expr: Expr) -> Handle:
        """The handle of a tile operand.

        Raises:
            CodegenError: the operand has no storage here.
        """
        found = self.tiles.get(expr) if isinstance(expr, Var) else None
        if found is None:
            what = f"'{expr.name_hint}'" if isinstance(expr, Var) else type(expr).__name__
            raise self.fail(f"tile {what} is used before it has storage")
        return found


def tile_type(expr: Expr) -> TileType:
    """The tile type of an operand.

    Raises:
        CodegenError: it is not a tile.
    """
    if not isinstance(expr.type, TileType):
        raise CodegenError(f"expected a tile operand, got a value of type {expr.type}", expr.span)
    return expr.type


def same_memory(a: MemRef | None, b: MemRef | None) -> bool:
    """True when both name the same bytes."""
    if a is None or b is None or a.base_ is not b.base_:
        return False
    at, bt = const_value(a.byte_offset_), const_value(b.byte_offset_)
    if at is not None and bt is not None:
        return at == bt
    return structural_equal(a.byte_offset_, b.byte_offset_)


def retyped(handle: Handle, name: str, type_text: str) -> Handle:
    """The same memory under another name and type."""
    return replace(handle, name=name, type_text=type_text)
