"""Loops that do not end."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import torch

from .lanes import _SOURCE_OF

_WHILE_LIMIT = 10_000_000
"""Rounds that a `while` loop may make; the simulated device stops at the same number."""


def _endless(function: str, *carried: Any) -> NoReturn:
    """Stop a `while` loop that has run too long; `carried` are the names and values of what it carries and asks."""
    frame = sys._getframe(1)
    place = f"script line {frame.f_lineno}"
    if _SOURCE_OF is not None:
        place = _SOURCE_OF(frame.f_code.co_filename, frame.f_lineno).rpartition(": _endless(")[0] or place
    values = ", ".join(f"{n} = {_shown(v)}" for n, v in zip(carried[::2], carried[1::2], strict=True))
    raise RuntimeError(
        f"the while loop in '{function}' ({place}) has made {_WHILE_LIMIT} rounds and does not end; "
        f"carried values: {values or 'none'}. Check its condition, or raise while_limit if it should run longer"
    )


def _shown(value: Any) -> str:
    """A carried value in a few words."""
    if not isinstance(value, torch.Tensor):
        return repr(value)
    if value.numel() == 1:
        return repr(value.item())
    first = ", ".join(repr(x) for x in value.flatten()[:3].tolist())
    return f"tensor{list(value.shape)} of {value.dtype} starting with {first}"
