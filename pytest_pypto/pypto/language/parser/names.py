"""Names: nested scopes of DSL variables, and the closure they fall back to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""Result of a closure lookup that found nothing (a closure value may be None)."""


@dataclass(slots=True)
class Frame:
    """One scope. Names mean variables; parameters of inline functions may mean any expression, or a Python number.

    `leaked` are names defined in an inner scope that stay visible after it.
    """

    isolated: bool = False
    names: dict[str, Any] = field(default_factory=dict)
    leaked: dict[str, Any] = field(default_factory=dict)


class Scopes:
    """The stack of scopes of one function."""

    __slots__ = ("frames",)

    def __init__(self) -> None:
        self.frames: list[Frame] = [Frame()]

    def find(self, name: str) -> Any:
        """What `name` means, innermost scope first, or None."""
        for frame in reversed(self.frames):
            found = frame.names.get(name)
            if found is None:
                found = frame.leaked.get(name)
            if found is not None:
                return found
        return None

    def found_in_this_frame(self, name: str) -> Any:
        """What the innermost scope itself defined as `name`, or None."""
        return self.frames[-1].names.get(name)

    def has_only_leaked(self, name: str) -> bool:
        """True when the variable that `name` means was defined in a scope that is closed."""
        for frame in reversed(self.frames):
            if name in frame.names:
                return False
            if name in frame.leaked:
                return True
        return False

    def define(self, name: str, value: Any) -> None:
        """Bind `name` in the innermost scope."""
        frame = self.frames[-1]
        frame.names[name] = value
        frame.leaked.pop(name, None)

    def push(self, isolated: bool = False) -> None:
        """Open a scope."""
        self.frames.append(Frame(isolated))

    def pop(self) -> Frame:
        """Close the innermost scope; its names stay visible unless it is isolated."""
        frame = self.frames.pop()
        if not frame.isolated:
            outer = self.frames[-1]
            for name, var in (*frame.leaked.items(), *frame.names.items()):
                if name not in outer.names:
                    outer.leaked[name] = var
        return frame

    def visible(self) -> Iterator[str]:
        """Every name in scope, for suggestions."""
        for frame in reversed(self.frames):
            yield from frame.names
            yield from frame.leaked


class Closure:
    """Values from outside the function: globals, and the locals of the frame that applied the decorator."""

    __slots__ = ("layers",)

    def __init__(self, *layers: Mapping[str, Any]) -> None:
        self.layers = layers

    def get(self, name: str) -> Any:
        """The value called `name`, or `MISSING`."""
        for layer in self.layers:
            if name in layer:
                return layer[name]
        return MISSING

    def under(self, layer: Mapping[str, Any]) -> Closure:
        """This closure, with `layer` looked up after everything else."""
        return Closure(*self.layers, layer)
