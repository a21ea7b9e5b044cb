"""What PyPTO keeps per process, put back around each test: architecture, pass contexts, log level.

Nothing happens, and nothing is imported, as long as no test has imported PyPTO.
"""

from __future__ import annotations

import sys
from typing import Any


class GlobalState:
    """Remembers what a test may change, and undoes it."""

    def __init__(self) -> None:
        self._level: Any = None

    def before_test(self) -> None:
        """Start from a clean state."""
        pypto = sys.modules.get("pypto")
        if pypto is not None:
            _forget()
            self._level = pypto.get_log_level() if hasattr(pypto, "get_log_level") else None

    def after_test(self) -> None:
        """Undo what the test changed."""
        pypto = sys.modules.get("pypto")
        if pypto is None:
            return
        _forget()
        if self._level is not None and pypto.get_log_level() != self._level:
            pypto.set_log_level(self._level)


def _forget() -> None:
    backend = sys.modules.get("pypto.backend")
    if backend is not None and hasattr(backend, "reset_for_testing"):
        backend.reset_for_testing()
    passes = sys.modules.get("pypto.pypto_core.passes")
    context = getattr(passes, "PassContext", None)
    while context is not None and (left_open := context.current()) is not None:
        left_open.__exit__(None, None, None)
