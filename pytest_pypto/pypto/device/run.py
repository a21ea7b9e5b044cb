"""`run_artifact`: arguments in, tasks out, results and findings back."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..ir.enums import ParamDirection
from ..ir.expr import ConstInt, Var, const_value
from ..ir.types import ScalarType, TensorType
from . import artifact as artifacts
from .artifact import Artifact
from .checks.ends import end_findings
from .checks.global_checks import GlobalChecks
from .findings import DeviceError, Finding, FindingKind, Site, StopRun
from .host.interp import Interpreter
from .host.program import HostProgram, read_host
from .host.scalars import converted
from .host.session import Session
from .host.values import HostTensor, storage
from .machine.bind import BindError
from .machine.dtypes import Array
from .machine.gm import GlobalBuffer
from .result import DeviceResult
from .run_context import RunContext
from .settings import DeviceSettings

_ROLES = {ParamDirection.In: "in", ParamDirection.Out: "out", ParamDirection.InOut: "inout"}
_PARAM_BASE = 1 << 36


@dataclass
class Argument:
    """One argument of the entry: the caller's array, the buffer that stands for it, and the value for the host.

    `array` has the caller's memory as a plain array; `direction` is that of the parameter.
    """

    given: Any
    array: Any
    direction: ParamDirection
    buffer: GlobalBuffer | None
    value: Any


def run_artifact(
    artifact_dir: Path, args: Sequence[Array | int | float | bool], settings: DeviceSettings | None = None
) -> DeviceResult:
    """Execute the artifact in `artifact_dir` on `args`, in the order of the entry's parameters.

    Arrays are changed in place. bfloat16 and 8-bit floats are `ml_dtypes` arrays.

    Raises:
        DeviceError: wrong arguments, a damaged artifact, an unsupported construct, or a fault that stops the run and
            whose sanitizer is off.
        TypeError: arguments that are no sequence, or settings of another type.
    """
    chosen = DeviceSettings() if settings is None else settings
    if not isinstance(chosen, DeviceSettings):
        raise TypeError(f"settings must be DeviceSettings, got {type(chosen).__name__}")
    if not isinstance(args, (list, tuple)):
        raise TypeError(f"args must be a list or tuple with one value per parameter, got {type(args).__name__}")
    artifact = artifacts.load(Path(artifact_dir), read_host)
    _check_platform(artifact, chosen)
    with artifact.lock, np.errstate(all="ignore"), _collector_paused():
        if chosen.order == "exhaustive":
            from .orders import run_exhaustively

            return run_exhaustively(artifact, args, chosen)
        return execute(artifact, args, chosen)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """No garbage collection during a run: it makes many small objects and no cycles that last, and one full collection
    takes longer than most runs in a process with a large library loaded."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _check_platform(artifact: Artifact, settings: DeviceSettings) -> None:
    wanted = settings.platform
    if wanted is not None and wanted.removesuffix("sim") != artifact.platform.arch:
        raise DeviceError(
            f"the artifact is for {artifact.platform.name}, the run asks for {wanted}; compile for that platform",
            file=str(artifact.path),
        )


def execute(artifact: Artifact, args: Sequence[Any], settings: DeviceSettings, explorer: Any = None) -> DeviceResult:
    """One run in one order."""
    program: HostProgram = artifact.host
    run = RunContext(settings, artifact.platform, program.file)
    run.explorer = explorer
    artifact.begin()
    arguments = bind(program, args, run)
    session = Session(run, artifact)
    run.global_checks = GlobalChecks(run, session)
    observers = _observers(run, session)
    try:
        return _executed(run, session, arguments, observers, program)
    except DeviceError as exc:
        exc.findings = exc.findings or tuple(run.findings)
        raise
    finally:
        _write_back(arguments)
        session.close()
        for a in arguments:
            if a.buffer is not None:
                a.buffer.close()


def _executed(
    run: RunContext, session: Session, arguments: list[Argument], observers: list[Any], program: HostProgram
) -> DeviceResult:
    interpreter = Interpreter(program, session)
    returned: Any = None
    completed = True
    try:
        returned = interpreter.call(program.entry, [a.value for a in arguments])
        session.settle()
        if run.explorer is not None:
            run.explorer.done(session)
    except StopRun:
        completed = False
    end_findings(run, session, arguments, completed)
    for observer in observers:
        observer.end(session)
    return DeviceResult(
        _returned(returned, arguments), tuple(run.findings), session.tally.counters(), completed, run.dropped
    )


def _observers(run: RunContext, session: Session) -> list[Any]:
    if not run.settings.dfx.any:
        return []
    from .measure.dfx import observers_for

    session.observers = observers_for(run)
    return session.observers


# ---- arguments


def bind(program: HostProgram, args: Sequence[Any], run: RunContext) -> list[Argument]:
    """Check the arguments against the entry's parameters and make buffers of the arrays.

    Raises:
        DeviceError: wrong number, shape, element type or kind; the message names parameter and both sides.
    """
    entry = program.entry
    if len(args) != len(entry.params):
        names = ", ".join(p.name_hint.split("__ssa")[0] for p in entry.params)
        raise DeviceError(
            f"{entry.name} takes {len(entry.params)} argument(s) ({names}), got {len(args)}",
            **program.place,
        )
    found: list[Argument] = []
    extents: dict[Var, int] = {}
    address = _PARAM_BASE
    for i, (param, direction, given) in enumerate(zip(entry.params, entry.param_directions, args, strict=True)):
        name = param.name_hint.split("__ssa")[0]
        if isinstance(param.type, TensorType):
            made = _tensor(program, i, name, param.type, given, direction, run, extents, address, found)
            address += -(-max(made.array.nbytes, 1) // 1024) * 1024
        else:
            made = _scalar(program, i, name, param.type, given)
        found.append(made)
    _report_overlaps(program, found, run)
    return found


def _tensor(
    program: HostProgram,
    i: int,
    name: str,
    typ: TensorType,
    given: Any,
    direction: ParamDirection,
    run: RunContext,
    extents: dict[Var, int],
    address: int,
    earlier: Sequence[Argument],
) -> Argument:
    array = _plain(program, i, name, typ, given, direction)
    _check_shape(program, i, name, typ, array.shape, extents)
    twin = next((a for a in earlier if a.buffer is not None and _same_memory(a.array, array)), None)
    role = _ROLES[direction]
    if twin is not None:
        assert twin.buffer is not None
        _both(twin, direction)
        buffer = GlobalBuffer(twin.buffer.flat, name, twin.buffer.role, array.shape, base=twin.buffer)
    else:
        own = array.flags.c_contiguous and (array.flags.writeable or direction is not ParamDirection.In)
        flat = (array if own else np.array(array, order="C")).reshape(-1)
        buffer = GlobalBuffer(flat, name, role, array.shape, track=run.log and role == "out", address=address)
        buffer.guard = run.log and role == "in"
    buffer.param = i
    return Argument(given, array, direction, buffer, HostTensor(buffer.whole(), typ.dtype))


def _plain(program: HostProgram, i: int, name: str, typ: TensorType, given: Any, direction: ParamDirection) -> Array:
    """The caller's memory as a plain array of the parameter's element type."""
    if not isinstance(given, np.ndarray) or isinstance(given, np.ma.MaskedArray):
        raise DeviceError(f"argument {i} ({name!r}) must be an array, got {type(given).__name__}", **program.place)
    try:
        kind = storage(typ.dtype)
    except BindError as exc:
        raise DeviceError(f"argument {i} ({name!r}): {exc}", **program.place) from None
    if given.dtype != kind:
        swapped = " of the other byte order" if given.dtype.newbyteorder() == kind else ""
        raise DeviceError(
            f"argument {i} ({name!r}) holds {given.dtype.name}{swapped}, the program takes {kind.name}", **program.place
        )
    if direction is not ParamDirection.In:
        if not given.flags.writeable:
            raise DeviceError(
                f"argument {i} ({name!r}) is read-only, but the program writes it; pass a copy", **program.place
            )
        if given.size and any(s == 0 and n > 1 for s, n in zip(given.strides, given.shape, strict=True)):
            raise DeviceError(
                f"argument {i} ({name!r}) repeats its elements in memory, but the program writes it; pass a copy",
                **program.place,
            )
    return np.asarray(given)


def _same_memory(a: Any, b: Array) -> bool:
    return bool(
        a.nbytes
        and (a.shape, a.dtype, a.strides) == (b.shape, b.dtype, b.strides)
        and a.__array_interface__["data"][0] == b.__array_interface__["data"][0]
    )


def _both(twin: Argument, direction: ParamDirection) -> None:
    """One tensor is passed twice: what either parameter may do, happens to both."""
    buffer = twin.buffer
    assert buffer is not None
    if twin.direction is not direction:
        buffer.role, buffer.guard, buffer.defined = "inout", False, None
        buffer.views.clear()


def _report_overlaps(program: HostProgram, arguments: Sequence[Argument], run: RunContext) -> None:
    """Different tensors over common bytes, of which one is written: the runtime tells them apart by their addresses."""
    if not run.wants(FindingKind.RACE):
        return
    tensors = [a for a in arguments if a.buffer is not None and a.array.nbytes]
    for i, a in enumerate(tensors):
        for b in tensors[i + 1 :]:
            if a.direction is b.direction is ParamDirection.In or a.buffer.base is b.buffer.base:  # type: ignore[union-attr]
                continue
            if np.shares_memory(a.array, b.array):
                names = " and ".join(repr(x.buffer.name) for x in (a, b) if x.buffer is not None)
                message = (
                    f"the arguments {names} overlap in memory and are not one tensor, so nothing orders what tasks do "
                    "to the common bytes; pass a copy of one of them"
                )
                site = Site("", "entry", program.file, program.place["line"] or 0, None, "host")
                run.report(Finding(FindingKind.RACE, "error", message, site))


def _check_shape(
    program: HostProgram, i: int, name: str, typ: TensorType, shape: tuple[int, ...], extents: dict[Var, int]
) -> None:
    wanted = [const_value(d) for d in typ.shape]
    text = (
        "["
        + ", ".join(str(d.value) if isinstance(d, ConstInt) else str(getattr(d, "name_hint", "?")) for d in typ.shape)
        + "]"
    )
    bad = len(shape) != len(wanted) or any(w is not None and w != n for w, n in zip(wanted, shape, strict=False))
    if not bad:
        for dim, n in zip(typ.shape, shape, strict=True):
            if isinstance(dim, Var) and extents.setdefault(dim, n) != n:
                bad, text = True, f"{text} with {dim.name_hint} = {extents[dim]}"
    if bad:
        raise DeviceError(f"argument {i} ({name!r}) has shape {list(shape)}, the program takes {text}", **program.place)


def _scalar(program: HostProgram, i: int, name: str, typ: Any, given: Any) -> Argument:
    if isinstance(given, (np.generic, np.ndarray)) and np.ndim(given) == 0:
        given = given.item()
    if not isinstance(given, (int, float)) or not isinstance(typ, ScalarType):
        raise DeviceError(f"argument {i} ({name!r}) must be a number, got {type(given).__name__}", **program.place)
    if isinstance(given, float) and typ.dtype.is_int():
        raise DeviceError(f"argument {i} ({name!r}) must be an integer, got {given!r}", **program.place)
    return Argument(given, None, ParamDirection.In, None, converted(given, typ.dtype))


def _write_back(arguments: Sequence[Argument]) -> None:
    """Arrays that are not contiguous were computed on in a copy."""
    for a in arguments:
        if a.buffer is not None and not a.array.flags.c_contiguous and a.array.flags.writeable:
            a.array[...] = a.buffer.flat.reshape(a.array.shape)


def _returned(value: Any, arguments: Sequence[Argument]) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(_one(v, arguments) for v in value)
    return _one(value, arguments)


def _one(value: Any, arguments: Sequence[Argument]) -> Any:
    if not isinstance(value, HostTensor):
        return None if value is None or not isinstance(value, (int, float, bool)) else value
    for a in arguments:
        if a.buffer is value.root and value.shape == a.buffer.shape and value.dense and value.arg.offset == 0:
            return a.given
    return value.array()
