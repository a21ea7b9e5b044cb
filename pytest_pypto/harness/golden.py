"""The expected values: a plain function on clones of the inputs, run before anything else.

A golden function gets a dict of clones by parameter name. It writes the expected outputs into them, or assigns new
tensors to their names, or returns: a dict of outputs, or the values that the program returns (parameters that the
program returns count: a program that ends in `return o1, o2` has a golden that returns two tensors).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_pypto.harness.errors import CaseError
from pytest_pypto.harness.inputs import clone

TOUCHED_NOTHING = (
    "golden {name} wrote no tensor and returned nothing, so there is nothing to compare with; "
    "write into the tensors it gets (t['out'][:] = ...) or return the expected value"
)


@dataclass(frozen=True)
class Golden:
    """Expected values.

    Attributes:
        expected: tensors (and scalars) by parameter name, only those that the function wrote.
        returned: what the program is expected to return, parameters included; None for nothing.
        name: of the function, for messages.
        cached: whether it was read from the cache.
    """

    expected: Mapping[str, Any]
    returned: Any = None
    name: str = "golden"
    cached: bool = field(default=False, compare=False)


Source = Callable[[dict[str, Any]], Any] | Mapping[str, Any]
"""What a golden is made of: a function, or a dict of expected tensors."""


def compute_golden(function: Source, inputs: Mapping[str, Any]) -> Golden:
    """Run a golden function on clones of the inputs.

    Args:
        function: takes a dict of clones by parameter name. Or the dict of expected tensors itself.
        inputs: any mapping from parameter names to tensors and numbers. Never changed.

    Raises:
        CaseError: it touched nothing, replaced a tensor by one of another shape or dtype, or invented a name.
        Exception: whatever the function raises.
    """
    __tracebackhide__ = True
    name = "dict" if isinstance(function, Mapping) else getattr(function, "__name__", repr(function))
    given = {key: clone(value) for key, value in inputs.items()}
    before = {key: getattr(value, "_version", None) for key, value in given.items()}
    table = dict(given)
    returned = function if isinstance(function, Mapping) else function(table)
    if any(returned is table[key] and _touched(table[key], given.get(key), before.get(key)) for key in table):
        returned = None  # the in-place operation that wrote it gives the output back
    if isinstance(returned, Mapping):
        table.update(returned)
        returned = None
    _same_names(name, table, given)
    expected = {
        key: _like(name, key, table[key], inputs[key]) for key in given if _touched(table[key], given[key], before[key])
    }
    if not expected and returned is None:
        raise CaseError(TOUCHED_NOTHING.format(name=f"{name!r}"))
    return Golden(expected, returned, name)


def _touched(value: Any, given: Any, version: int | None) -> bool:
    return value is not given or getattr(value, "_version", None) != version


def _same_names(name: str, table: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    new = [key for key in table if key not in given]
    lost = [key for key in given if key not in table]
    if new or lost:
        what = f"added {new[0]!r}" if new else f"removed {lost[0]!r}"
        raise CaseError(f"golden {name!r} {what}; the names are {', '.join(map(repr, given))}")


def _like(name: str, key: str, value: Any, original: Any) -> Any:
    for what in ("shape", "dtype"):
        have, want = getattr(value, what, None), getattr(original, what, None)
        if have != want:
            if what == "shape" and have is not None and want is not None:
                have, want = tuple(have), tuple(want)
            raise CaseError(
                f"golden {name!r} gives {key!r} {what} {have}, the program has {what} {want}; "
                f"write into the tensor (t[{key!r}][:] = ...) or convert it"
            )
    return clone(value)
