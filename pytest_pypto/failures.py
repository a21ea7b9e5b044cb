"""How an error of ours reaches pytest: shown as its plain text, and still caught by its own class."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar

import pytest

Error = TypeVar("Error", bound=BaseException)


def as_failure(error: Error, text: str | None = None) -> Error:
    """The same error as one that pytest shows without a traceback.

    The result is of the error's own class, too: `pytest.raises(CheckFailed)`, `assertRaises(AssertionError)` and
    `xfail(raises=...)` work as if it had not been changed.

    Args:
        error: what happened.
        text: what to show, the error's own words by default.
    """
    own: Any = type(error)
    kind = _failing(own)
    made = kind.__new__(kind, *error.args)
    made.__dict__.update(error.__dict__, msg=str(error) if text is None else text, pytrace=False)
    return made  # type: ignore[no-any-return]


@lru_cache(maxsize=64)
def _failing(kind: Any) -> Any:
    """A subclass of an error class that is a failure of pytest as well; pytest shows it under the plain name."""
    shown = {"__module__": "builtins", "__doc__": kind.__doc__, "__str__": lambda self: self.msg}
    return type(kind.__name__, (kind, pytest.fail.Exception), shown)
