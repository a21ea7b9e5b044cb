"""Signatures of DSL functions in a short notation, and binding of arguments with Python's own messages."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..dtypes import DataType
from ..enums import AtomicType, MemorySpace, PadValue, TensorLayout

EMPTY: Any = inspect.Parameter.empty
_WORDS: Mapping[str, Any] = {
    "None": None,
    "True": True,
    "False": False,
    "INT32": DataType.INT32,
    "UINT32": DataType.UINT32,
    "Vec": MemorySpace.Vec,
    "Mat": MemorySpace.Mat,
    "zero": PadValue.zero,
    "ND": TensorLayout.ND,
    "None_": AtomicType.None_,
}
"""Defaults that are neither numbers nor quoted strings."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; `default` is EMPTY when it must be given."""

    name: str
    default: Any = EMPTY
    keyword_only: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """Parameters of one function, and the names of its `*args` and `**kwargs` if it has them."""

    name: str
    params: tuple[Parameter, ...]
    var_args: str = ""
    var_kwargs: str = ""

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Values by parameter name, in the order of the signature, defaults filled in.

        Raises:
            TypeError: with the text Python gives for the same call.
        """
        places = [p for p in self.params if not p.keyword_only]
        if len(args) > len(places):
            raise TypeError(self._too_many(places, len(args)))
        given = dict(zip((p.name for p in places), args, strict=False))
        known = {p.name for p in self.params}
        for name, value in kwargs.items():
            if name in given:
                raise TypeError(f"{self.name}() got multiple values for argument '{name}'")
            if name not in known:
                raise TypeError(f"{self.name}() got an unexpected keyword argument '{name}'")
            given[name] = value
        self._check_missing(given)
        return {p.name: given.get(p.name, p.default) for p in self.params}

    def _check_missing(self, given: Mapping[str, Any]) -> None:
        missing = [p for p in self.params if p.default is EMPTY and p.name not in given]
        for keyword_only, what in ((False, "positional"), (True, "keyword-only")):
            names = [f"'{p.name}'" for p in missing if p.keyword_only == keyword_only]
            if names:
                plural = "s" if len(names) > 1 else ""
                listed = _and(names)
                raise TypeError(f"{self.name}() missing {len(names)} required {what} argument{plural}: {listed}")

    def _too_many(self, places: Sequence[Parameter], count: int) -> str:
        least = sum(p.default is EMPTY for p in places)
        takes = str(len(places)) if least == len(places) else f"from {least} to {len(places)}"
        plural = "" if takes == "1" else "s"
        verb = "was" if count == 1 else "were"
        return f"{self.name}() takes {takes} positional argument{plural} but {count} {verb} given"

    def inspected(self) -> inspect.Signature:
        """The same as an `inspect.Signature`."""
        made = [_inspected(p) for p in self.params if not p.keyword_only]
        if self.var_args:
            made.append(inspect.Parameter(self.var_args, inspect.Parameter.VAR_POSITIONAL))
        made += [_inspected(p) for p in self.params if p.keyword_only]
        if self.var_kwargs:
            made.append(inspect.Parameter(self.var_kwargs, inspect.Parameter.VAR_KEYWORD))
        return inspect.Signature(made)


def _inspected(p: Parameter) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY if p.keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(p.name, kind, default=p.default)


def _and(names: Sequence[str]) -> str:
    if len(names) < 3:
        return " and ".join(names)
    return ", ".join(names[:-1]) + f", and {names[-1]}"


def parse(text: str) -> Signature:
    """`load(tensor, offsets, target_memory=Vec, *, clamp=False)` as a Signature."""
    name, _, inside = text.partition("(")
    params: list[Parameter] = []
    keyword_only, var_args, var_kwargs = False, "", ""
    for item in inside.rstrip(")").split(","):
        word, _, default = item.strip().partition("=")
        if word.startswith("**"):
            var_kwargs = word[2:]
        elif word.startswith("*"):
            keyword_only, var_args = True, word[1:]
        elif word:
            params.append(Parameter(word, _value(default) if default else EMPTY, keyword_only))
    return Signature(name, tuple(params), var_args, var_kwargs)


def _value(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    return text[1:-1] if text.startswith("'") else int(text)
