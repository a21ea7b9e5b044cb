"""`IRBuilder`: programs built by hand, statement after statement, with context managers for everything that nests."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from . import expr as e
from . import stmt as s
from . import types as t
from .builder_frames import (
    ForLoopBuilder,
    FunctionBuilder,
    IfStmtBuilder,
    ProgramBuilder,
    ScopeBuilder,
    WhileLoopBuilder,
)
from .dtypes import DataType
from .enums import (
    CompactMode,
    ForKind,
    FunctionType,
    InlineLanguage,
    Level,
    MemorySpace,
    PadValue,
    Role,
    ScopeKind,
    SplitMode,
    TensorLayout,
    TileLayout,
)
from .scalar_ops import as_scalar
from .span import Span

Value = e.Expr | int | float | bool


def caller_span() -> Span:
    """The line outside this package that called the builder."""
    frame = sys._getframe(1)
    package = __name__.rpartition(".")[0]
    while frame.f_back is not None and (
        frame.f_globals.get("__name__", "").startswith(package) or frame.f_code.co_filename.endswith("contextlib.py")
    ):
        frame = frame.f_back
    return Span(frame.f_code.co_filename, frame.f_lineno, 1)


class IRBuilder:
    """Builds functions and programs. Numbers are accepted wherever an expression is: ints as INDEX, floats as FP32.

    ```python
    ib = IRBuilder()
    with ib.function("double") as f:
        x = f.param("x", ir.TensorType([64], DataType.FP32))
        y = ib.let("y", ir.create_op_call("tensor.add", [x, x], ir.Span.unknown()))
        ib.return_stmt(y)
    func = f.get_result()
    ```
    """

    def __init__(self) -> None:
        self._blocks: list[list[s.Stmt]] = []
        self._open: list[Any] = []
        self._comments: list[str] = []

    # blocks --------------------------------------------------------------------------------------------------------

    @contextmanager
    def _block(self, frame: Any) -> Iterator[list[s.Stmt]]:
        block: list[s.Stmt] = []
        self._blocks.append(block)
        self._open.append(frame)
        try:
            yield block
        finally:
            self._blocks.pop()
            self._open.pop()

    @contextmanager
    def program(self, name: str, span: Span | None = None) -> Iterator[ProgramBuilder]:
        """A program; `p.add_function(f)` puts functions into it."""
        made = ProgramBuilder(name, span or caller_span())
        yield made
        made.finish()

    @contextmanager
    def function(
        self,
        name: str,
        span: Span | None = None,
        type: FunctionType = FunctionType.Opaque,
        level: Level | None = None,
        role: Role | None = None,
        attrs: Mapping[str, Any] | None = None,
        requires_runtime_binding: bool = False,
    ) -> Iterator[FunctionBuilder]:
        """A function; `f.param`, `f.return_type`, and `f.get_result()` after the block."""
        made = FunctionBuilder(
            name, span or caller_span(), type, level, role, dict(attrs or {}), requires_runtime_binding
        )
        with self._block(made) as block:
            yield made
        made.finish(block)

    @contextmanager
    def for_loop(
        self,
        loop_var: e.Var,
        start: int | e.Expr,
        stop: int | e.Expr,
        step: int | e.Expr,
        span: Span | None = None,
        kind: ForKind = ForKind.Sequential,
        attrs: Mapping[str, Any] | None = None,
    ) -> Iterator[ForLoopBuilder]:
        """A counted loop; `loop.iter_arg(name, init)` and `loop.return_var(name)` come in pairs.

        Raises:
            ValueError: the loop carries values and has another number of results.
        """
        place = span or caller_span()
        bounds = tuple(as_scalar(b, place) for b in (start, stop, step))
        made = ForLoopBuilder(place, loop_var, bounds, kind, dict(attrs or {}))
        with self._block(made) as block:
            yield made
        self.emit(made.finish(block))

    @contextmanager
    def while_loop(self, condition: Value, span: Span | None = None) -> Iterator[WhileLoopBuilder]:
        """A loop that runs while a condition on its carried values holds.

        Raises:
            ValueError: the loop carries values and has another number of results.
        """
        place = span or caller_span()
        made = WhileLoopBuilder(place, as_scalar(condition, place))
        with self._block(made) as block:
            yield made
        self.emit(made.finish(block))

    @contextmanager
    def if_stmt(self, condition: Value, span: Span | None = None) -> Iterator[IfStmtBuilder]:
        """A branch; what follows `branch.else_()` belongs to the other side."""
        place = span or caller_span()
        made = IfStmtBuilder(place, as_scalar(condition, place), self._blocks)
        with self._block(made) as block:
            made.start(block)
            yield made
        self.emit(made.finish())

    @contextmanager
    def scope(
        self,
        scope_kind: ScopeKind,
        span: Span | None = None,
        level: Level | None = None,
        role: Role | None = None,
        split: SplitMode | None = None,
        name_hint: str = "",
        core_num: int | e.Expr | None = None,
        sync_start: bool | None = None,
        manual: bool | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> Iterator[ScopeBuilder]:
        """A scope of any kind.

        Raises:
            ValueError: a field that the kind needs is missing, or one it does not have is given.
        """
        fields = {"level": level, "role": role, "split": split, "core_num": core_num, "sync_start": sync_start}
        fields["manual"] = manual
        made = ScopeBuilder(span or caller_span(), scope_kind, name_hint, fields, dict(attrs or {}))
        with self._block(made) as block:
            yield made
        self.emit(made.finish(block))

    # statements ----------------------------------------------------------------------------------------------------

    def emit(self, stmt: s.Stmt) -> None:
        """Append a statement to the open block.

        Raises:
            RuntimeError: no function, loop, branch or scope is open.
        """
        if not self._blocks:
            raise RuntimeError("no block is open: emit statements inside `with ib.function(...)`")
        if self._comments:
            from .visitor import attach_leading_comments

            stmt = attach_leading_comments(stmt, self.pop_pending_leading_comments())
        self._blocks[-1].append(stmt)

    def var(self, name: str, type: t.Type, span: Span | None = None) -> e.Var:
        """A fresh variable; nothing is emitted."""
        return e.Var(name, type, span or caller_span())

    def assign(self, var: e.Var, value: Value, span: Span | None = None) -> s.AssignStmt:
        """Emit `var = value`."""
        place = span or caller_span()
        made = s.AssignStmt(var, as_scalar(value, place), place)
        self.emit(made)
        return made

    def let(self, name: str, value: Value, type: t.Type | None = None, span: Span | None = None) -> e.Var:
        """Emit `name = value` with a fresh variable, and give that variable."""
        place = span or caller_span()
        expr = as_scalar(value, place)
        var = e.Var(name, expr.type if type is None else type, place)
        self.emit(s.AssignStmt(var, expr, place))
        return var

    def return_stmt(self, values: Value | Sequence[Value] | None = None, span: Span | None = None) -> s.ReturnStmt:
        """Emit a return of nothing, one value or several."""
        place = span or caller_span()
        listed = () if values is None else values if isinstance(values, Sequence) else (values,)
        made = s.ReturnStmt(tuple(as_scalar(v, place) for v in listed), place)
        self.emit(made)
        return made

    def eval_stmt(self, expr: e.Expr, span: Span | None = None) -> s.EvalStmt:
        """Emit an expression for its effect."""
        made = s.EvalStmt(expr, span or caller_span())
        self.emit(made)
        return made

    def break_stmt(self, span: Span | None = None) -> s.BreakStmt:
        """Emit `break`."""
        made = s.BreakStmt(span or caller_span())
        self.emit(made)
        return made

    def continue_stmt(self, span: Span | None = None) -> s.ContinueStmt:
        """Emit `continue`."""
        made = s.ContinueStmt(span or caller_span())
        self.emit(made)
        return made

    def inline_stmt(
        self, body: str, language: InlineLanguage = InlineLanguage.Python, span: Span | None = None
    ) -> s.InlineStmt:
        """Emit text of another language."""
        made = s.InlineStmt(body, language, span or caller_span())
        self.emit(made)
        return made

    def make_tuple(self, elements: Sequence[Value], span: Span | None = None) -> e.MakeTuple:
        """A tuple of expressions."""
        place = span or caller_span()
        return e.MakeTuple(tuple(as_scalar(x, place) for x in elements), place)

    def push_pending_leading_comments(self, comments: Sequence[str]) -> None:
        """Comment lines for the next statement."""
        self._comments.extend(comments)

    def pop_pending_leading_comments(self) -> list[str]:
        """Take back the comment lines that no statement has got yet."""
        taken, self._comments = self._comments, []
        return taken

    def add_function_attrs(self, attrs: Mapping[str, Any]) -> None:
        """Add attributes to the open function.

        Raises:
            RuntimeError: no function is open.
        """
        for frame in reversed(self._open):
            if isinstance(frame, FunctionBuilder):
                frame.attrs.update(attrs)
                return
        raise RuntimeError("no function is open: call add_function_attrs inside `with ib.function(...)`")

    def in_function(self) -> bool:
        """True inside a function."""
        return any(isinstance(f, FunctionBuilder) for f in self._open)

    def in_loop(self) -> bool:
        """True inside a loop."""
        return any(isinstance(f, (ForLoopBuilder, WhileLoopBuilder)) for f in self._open)

    def in_if(self) -> bool:
        """True inside a branch."""
        return any(isinstance(f, IfStmtBuilder) for f in self._open)

    # types ---------------------------------------------------------------------------------------------------------

    def memref(
        self,
        memory_space_or_addr: MemorySpace | int | e.Expr,
        addr_or_size: int | e.Expr,
        size_or_id: int,
        id: int | None = None,
        span: Span | None = None,
    ) -> e.MemRef:
        """Placed memory: `memref(space, address, size, id)`, or `memref(address, size, id)` in DDR."""
        if isinstance(memory_space_or_addr, MemorySpace):
            space, address, size, number = memory_space_or_addr, addr_or_size, size_or_id, id
        else:
            space, address, number = MemorySpace.DDR, memory_space_or_addr, size_or_id
            size = addr_or_size  # type: ignore[assignment]
        if number is None or not isinstance(size, int):
            raise TypeError("memref takes (space, address, size, id) or (address, size, id)")
        return e.MemRef(f"mem_{space.name.lower()}_{number}", address, size, span or caller_span())

    def tile_view(
        self,
        valid_shape: Sequence[int | e.Expr],
        stride: Sequence[int | e.Expr],
        start_offset: int | e.Expr | None,
        blayout: TileLayout = TileLayout.row_major,
        slayout: TileLayout = TileLayout.none_box,
        fractal: int = 512,
        pad: PadValue = PadValue.null,
        span: Span | None = None,
        compact: CompactMode = CompactMode.null,
    ) -> t.TileView:
        """A tile view."""
        offset = e.index(start_offset) if isinstance(start_offset, int) else start_offset
        return t.TileView(t.as_dims(valid_shape), t.as_dims(stride), offset, blayout, slayout, fractal, pad, compact)

    def tensor_view(
        self, stride: Sequence[int | e.Expr], layout: TensorLayout, span: Span | None = None
    ) -> t.TensorView:
        """A tensor view."""
        return t.TensorView(t.as_dims(stride), layout)

    def tensor_type(
        self,
        shape: Sequence[int | e.Expr],
        dtype: DataType,
        memref: e.MemRef | None = None,
        tensor_view: t.TensorView | None = None,
        span: Span | None = None,
    ) -> t.TensorType:
        """A tensor type."""
        return t.TensorType(t.as_dims(shape), dtype, memref, tensor_view)

    def tile_type(
        self,
        shape: Sequence[int | e.Expr],
        dtype: DataType,
        memref: e.MemRef | None = None,
        tile_view: t.TileView | None = None,
        memory_space: MemorySpace | None = None,
        span: Span | None = None,
    ) -> t.TileType:
        """A tile type."""
        return t.TileType(shape, dtype, memref, tile_view, memory_space)
