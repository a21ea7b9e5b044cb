"""Which architecture is selected.

The selection is a context variable, so that threads compiling for different architectures do not disturb each other;
a thread that never selected one sees the selection made last in the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .kinds import BackendType

_local: ContextVar[BackendType | None] = ContextVar("pypto_backend", default=None)
_process: list[BackendType | None] = [None]


def _check(backend_type: BackendType) -> None:
    if not isinstance(backend_type, BackendType):
        names = ", ".join(f"BackendType.{b.name}" for b in BackendType)
        raise TypeError(f"set_backend_type() takes one of {names}, got {backend_type!r}")


def configured_type() -> BackendType | None:
    """The selected architecture, or None."""
    if _process[0] is None:
        return None
    local = _local.get()
    return _process[0] if local is None else local


def set_backend_type(backend_type: BackendType) -> None:
    """Select the architecture that passes and code generation work for.

    Raises:
        TypeError: not a `BackendType`.
    """
    _check(backend_type)
    _local.set(backend_type)
    _process[0] = backend_type


def get_backend_type() -> BackendType:
    """The selected architecture.

    Raises:
        RuntimeError: none is selected.
    """
    selected = configured_type()
    if selected is None:
        raise RuntimeError(
            "Backend type is not configured; call pypto.backend.set_backend_type(BackendType.Ascend910B) "
            "(or BackendType.Ascend950) first"
        )
    return selected


def is_backend_configured() -> bool:
    """True when an architecture is selected."""
    return configured_type() is not None


def reset_for_testing() -> None:
    """Forget the selection, in every thread."""
    _local.set(None)
    _process[0] = None


@contextmanager
def selected_backend(backend_type: BackendType) -> Iterator[None]:
    """Select an architecture for the duration of a `with` block, then go back to what was selected before.

    Raises:
        TypeError: not a `BackendType`.
    """
    _check(backend_type)
    local, process = _local.get(), _process[0]
    _local.set(backend_type)
    _process[0] = process if process is not None else backend_type
    try:
        yield
    finally:
        _local.set(local)
        if process is None:
            _process[0] = None
