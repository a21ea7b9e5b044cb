"""The host program of an artifact: which file holds it, which function is the entry, what the kernels look like."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...ir.enums import FunctionType, ParamDirection
from ...ir.expr import Call, GlobalVar, Submit, Var
from ...ir.program import Function, Program
from ...ir.stmt import ReturnStmt
from ...ir.types import ScalarType, TensorType
from ...ir.visitor import calls_in, uses_of, walk_stmts
from ..findings import DeviceError

if TYPE_CHECKING:
    from ..artifact import Artifact

KERNELS = frozenset({FunctionType.AIC, FunctionType.AIV, FunctionType.InCore})
PIPE_BUFFER = "__gm_pipe_buffer"


@dataclass(eq=False)
class HostProgram:
    """Functions by name, the entry, and the file they come from."""

    functions: dict[str, Function]
    entry: Function
    file: str
    shapes: dict[str, KernelShape] = field(default_factory=dict)

    @property
    def place(self) -> dict[str, Any]:
        """File and line of the entry, as `DeviceError` takes them."""
        span = self.entry.span
        return {"file": self.file, "line": span.begin_line if span is not None and span.is_valid() else None}

    def shape(self, name: str) -> KernelShape:
        """What is needed to launch kernel `name`."""
        found = self.shapes.get(name)
        if found is None:
            found = self.shapes[name] = KernelShape.of(self.functions[name])
        return found


@dataclass(frozen=True)
class KernelShape:
    """Positions of tensors and scalars among a kernel's parameters, its extents, and what its results are."""

    name: str
    tensors: tuple[int, ...]
    scalars: tuple[int, ...]
    symbols: tuple[Var, ...]
    results: tuple[int, ...]
    """Parameter position that each result is."""

    @staticmethod
    def of(func: Function) -> KernelShape:
        """Look at a kernel's declaration."""
        tensors = tuple(i for i, p in enumerate(func.params) if isinstance(p.type, TensorType))
        scalars = tuple(i for i, p in enumerate(func.params) if isinstance(p.type, ScalarType))
        return KernelShape(func.name, tensors, scalars, tuple(extent_symbols(func)), result_params(func))


def extent_symbols(func: Function) -> list[Var]:
    """Symbols in the tensor types of the parameters that are no parameters, in order of appearance."""
    given, found = set(func.params), []
    for param in func.params:
        if not isinstance(param.type, TensorType):
            continue
        view = param.type.tensor_view
        sizes = param.type.shape if view is None else (*param.type.shape, *view.stride, *view.valid_shape)
        for symbol in (v for size in sizes for v in uses_of(size)):
            if symbol not in given:
                given.add(symbol)
                found.append(symbol)
    return found


def result_params(func: Function) -> tuple[int, ...]:
    """Which parameter each result of a function is: from its return, else by the order of its Out parameters."""
    for stmt in walk_stmts(func.body):
        if isinstance(stmt, ReturnStmt) and stmt.value:
            places = {p: i for i, p in enumerate(func.params)}
            if all(isinstance(v, Var) and v in places for v in stmt.value):
                return tuple(places[v] for v in stmt.value if isinstance(v, Var))
    outs = [
        i
        for i, (p, d) in enumerate(func.pairs)
        if d is not ParamDirection.In and isinstance(p.type, TensorType) and p.name_hint != PIPE_BUFFER
    ]
    wanted = len(func.return_types)
    if wanted == 1 and len(outs) > 1:
        match = [i for i in outs if _like(func.params[i].type, func.return_types[0])]
        return tuple((match or outs)[:1])
    return tuple(outs[:wanted])


def _like(a: Any, b: Any) -> bool:
    return (
        isinstance(a, TensorType) and isinstance(b, TensorType) and a.dtype is b.dtype and str(a.shape) == str(b.shape)
    )


def read_host(artifact: Artifact) -> HostProgram:
    """The host program of `artifact`.

    It is `orchestration/<entry>.py`; an artifact of another compiler has none, then the last file of `passes_dump/`
    serves, of which only the functions that run on the host matter.

    Raises:
        DeviceError: neither is there, or the text cannot be read.
    """
    path = artifact.path
    own = sorted((path / "orchestration").glob("*.py"))
    if own:
        if len(own) > 1:
            names = ", ".join(f.name for f in own)
            raise DeviceError(f"several host programs ({names}); compile into an empty directory", file=str(path))
        return _program(_loaded(own[0], path), own[0].stem, own[0].relative_to(path).as_posix())
    dumps = sorted((path / "passes_dump").glob("*.py"))
    if not dumps:
        raise DeviceError(
            "no host program: neither orchestration/<entry>.py nor passes_dump/*.py is there; compile with "
            "dump_passes=True, or with this compiler",
            file=str(path),
        )
    wanted = sorted((path / "orchestration").glob("*.cpp"))
    stem = wanted[0].stem if len(wanted) == 1 else None
    return _program(_loaded(dumps[-1], path), stem, dumps[-1].relative_to(path).as_posix())


def _loaded(file: Path, base: Path) -> Program:
    from ...language.parser import loads, parse

    shown = file.relative_to(base).as_posix()
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise DeviceError(f"cannot read the host program: {exc}", file=shown) from None
    try:
        found = loads(str(file))
    except Exception as first:  # whatever the language refuses in a damaged text, and however it does so
        try:
            found = parse(host_only(text), filename=shown)
        except Exception:  # of the two readings the first one tells more
            message = str(first).strip().splitlines()
            raise DeviceError(
                f"the host program cannot be read: {type(first).__name__}: {message[0] if message else ''}",
                file=shown,
                line=_line_of(first),
            ) from first
    if not isinstance(found, Program):
        raise DeviceError(f"the host program is a {type(found).__name__}, expected a program", file=shown)
    return found


def _line_of(problem: BaseException) -> int | None:
    """The line that an error of the language names."""
    span = getattr(problem, "span", None)
    if isinstance(span, dict) and isinstance(span.get("line"), int):
        return int(span["line"]) or None
    line = getattr(problem, "lineno", None)
    if isinstance(line, int):
        return line
    return _line_of(problem.__cause__) if problem.__cause__ is not None else None


_FUNCTION = re.compile(r"(?m)^(?=    @pl\.function)")
_KERNEL = re.compile(r"FunctionType\.(AIC|AIV|InCore)\b")


def host_only(text: str) -> str:
    """Printed text with the bodies of kernels replaced by `...`; every line keeps its number."""
    head, *parts = _FUNCTION.split(text)
    kept = [head]
    for part in parts:
        first = part.split("\n", 1)[0]
        if not _KERNEL.search(first):
            kept.append(part)
            continue
        lines = part.split("\n")
        start = next((i for i, line in enumerate(lines) if line.rstrip().endswith(":") and i > 0), 1)
        attrs = [line for line in lines[start + 1 :] if line.strip().startswith("pl.func_attr(")]
        body = [*attrs, "        ..."]
        blank = [""] * max(len(lines) - start - 1 - len(body), 1)
        kept.append("\n".join([*lines[: start + 1], *body, *blank]))
    return "".join(kept)


def _program(program: Program, stem: str | None, file: str) -> HostProgram:
    functions = {f.name: f for f in program.functions.values()}
    return HostProgram(functions, entry_of(functions, stem, file), file)


def callees(func: Function) -> list[str]:
    """Functions that `func` calls or submits."""
    return [c.op.name for c in calls_in(func.body) if isinstance(c, (Call, Submit)) and isinstance(c.op, GlobalVar)]


def entry_of(functions: dict[str, Function], stem: str | None, file: str) -> Function:
    """The entry: the host function that no other calls; the one called like the file where there are several."""
    hosts = [f for f in functions.values() if f.func_type not in KERNELS]
    called = {n for f in hosts for n in callees(f)}
    roots = [f for f in hosts if f.name not in called and f.func_type is not FunctionType.Group]
    named = functions.get(stem or "")
    if named is not None and named.func_type not in KERNELS and (len(roots) != 1 or named in roots):
        return named
    if len(roots) > 1:
        best: Sequence[Function] = [f for f in roots if f.func_type is FunctionType.Orchestration]
        roots = list(best) if len(best) == 1 else roots
    if len(roots) != 1:
        names = ", ".join(f.name for f in roots) or "none"
        raise DeviceError(f"the host program has no single entry; functions that nobody calls: {names}", file=file)
    return roots[0]
