"""Words of the language that only the parser gives a meaning.

They exist so that programs import, complete and type-check as Python. Called outside a `@pl.function` they raise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, NoReturn, TypeVar

from ..ir.dtypes import DataType
from ..ir.enums import Level, Role, ScopeMode, SplitMode
from .optimizations import Optimization
from .typing import Scalar

T = TypeVar("T")


def _outside(name: str) -> NoReturn:
    raise RuntimeError(
        f"pl.{name}() has a meaning inside a function decorated with @pl.function (or @pl.jit) only; "
        "there it is parsed, not called"
    )


class RangeIterator(Generic[T]):
    """What `pl.range(...)` and its kind are to a type checker."""

    def __iter__(self) -> Iterator[T]:
        _outside("range")


class _Context:
    """What `pl.at(...)` and its kind are to a type checker."""

    def __enter__(self) -> Any:
        _outside("at")

    def __exit__(self, *error: object) -> None:
        return None


def range(*args: Any, init_values: Any = None, attrs: dict[str, Any] | None = None) -> RangeIterator[Any]:
    """`range(stop)`, `range(start, stop)`, `range(start, stop, step)`: a sequential loop.

    With `init_values=(a, b)` the loop carries values: `for i, (a, b) in pl.range(n, init_values=(x, y)):`.
    """
    _outside("range")


def parallel(*args: Any, init_values: Any = None, attrs: dict[str, Any] | None = None) -> RangeIterator[Any]:
    """As `range`, for iterations that do not depend on each other."""
    _outside("parallel")


def unroll(*args: Any, attrs: dict[str, Any] | None = None) -> RangeIterator[Any]:
    """As `range` with constant bounds; every iteration becomes code of its own."""
    _outside("unroll")


def pipeline(
    *args: Any, stage: int, init_values: Any = None, attrs: dict[str, Any] | None = None
) -> RangeIterator[Any]:
    """As `range`, with `stage` iterations in flight."""
    _outside("pipeline")


def while_(*, init_values: Any = None) -> RangeIterator[Any]:
    """`for (a, b) in pl.while_(init_values=(x, y)):` with `pl.cond(...)` first and a yield last."""
    _outside("while_")


def yield_(*values: Any) -> Any:
    """Hand values to the next iteration, or out of a branch."""
    _outside("yield_")


def cond(condition: Any) -> None:
    """The condition of a `pl.while_` loop, evaluated on its carried values."""
    _outside("cond")


def const(value: int | float, dtype: DataType) -> Scalar:
    """A constant of a given dtype; a bare literal is INDEX, FP32 or takes the type of the operand beside it."""
    from ..ir.expr import ConstFloat, ConstInt

    make = ConstFloat if isinstance(value, float) else ConstInt
    return Scalar(expr=make(value, dtype))  # type: ignore[arg-type]


def static_print(*args: Any) -> None:
    """Print while parsing."""
    _outside("static_print")


def static_assert(condition: Any, msg: str = "") -> None:
    """Check a constant condition while parsing."""
    _outside("static_assert")


def func_attr(attrs: dict[str, Any]) -> None:
    """Attributes of the function, at the head of its body."""
    _outside("func_attr")


def at(
    level: Level,
    role: Role | None = None,
    *,
    optimizations: list[Optimization] | None = None,
    deps: list[Any] | None = None,
    no_dep_args: list[Any] | None = None,
    dumps: list[Any] | None = None,
    allow_early_resolve: bool = False,
    name_hint: str = "",
    windowize: bool = False,
) -> _Context:
    """A region at a level of the machine; at CORE_GROUP it becomes a kernel."""
    _outside("at")


def cluster(*, name_hint: str = "") -> _Context:
    """A region whose inner scopes form one group."""
    _outside("cluster")


def spmd(
    core_num: Any,
    *,
    sync_start: bool = False,
    name_hint: str = "",
    optimizations: list[Optimization] | None = None,
    deps: list[Any] | None = None,
    allow_early_resolve: bool = False,
    predicate: Any = None,
) -> Any:
    """A launch of `core_num` blocks, as `with` scope or as `for i in pl.spmd(n):`."""
    _outside("spmd")


def split_aiv(n: int, *, mode: SplitMode) -> RangeIterator[Scalar]:
    """`for lane in pl.split_aiv(2, mode=...):` - a region that both vector lanes run."""
    _outside("split_aiv")


class scope(_Context):
    """`with pl.scope():` - a runtime scope; MANUAL scopes order tasks by `deps=` alone."""

    def __init__(self, mode: ScopeMode = ScopeMode.AUTO) -> None:
        self.mode = mode


class manual_scope(_Context):
    """`with pl.manual_scope():` - short for `pl.scope(mode=pl.ScopeMode.MANUAL)`."""


def submit(*args: Any, **kwargs: Any) -> Any:
    """`out, tid = pl.submit(self.kernel, ..., deps=[...])` - start a kernel as a task."""
    _outside("submit")


def spmd_submit(*args: Any, **kwargs: Any) -> Any:
    """`out, tid = pl.spmd_submit(self.kernel, ..., core_num=n)` - start a kernel on n blocks."""
    _outside("spmd_submit")


def no_dep(tensor: T) -> T:
    """Around an argument of a kernel call: this use makes no dependency."""
    _outside("no_dep")


def dump_tag(tensor: T) -> T:
    """Mark a tensor whose values later calls record."""
    _outside("dump_tag")
