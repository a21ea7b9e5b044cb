"""Element types: rounding modes, saturation, and types that torch has no arithmetic for.

Unsigned 16-, 32- and 64-bit elements are held in int32, int64 and int64, small floats and 4-bit integers in float32.
`_held` brings a result back into the range (wrap) or onto the grid (round) of such a type.
"""

from __future__ import annotations

import math
from typing import Any

import torch

_LOW_HALF = torch.tensor(0xFFFF, dtype=torch.int32)
_HALF_WAY = torch.tensor(0x8000, dtype=torch.int32)
_SMALL_FLOATS = {
    "fp16": (10, -14, 65504.0),
    "bfloat16": (7, -126, 3.3895313892515355e38),
    "fp8e4m3fn": (3, -6, 448.0),
    "fp8e5m2": (2, -14, 57344.0),
    "fp4": (1, 0, 6.0),
}
"""Stored mantissa bits, lowest exponent of a normal number and highest finite value of a float type."""


def _round_to_int(x: torch.Tensor, mode: str) -> torch.Tensor:
    """`x` rounded to whole numbers: none, rint (ties to even), round (ties away), floor, ceil, trunc, odd."""
    if mode in ("none", "rint"):
        return torch.round(x)
    if mode == "floor":
        return torch.floor(x)
    if mode == "ceil":
        return torch.ceil(x)
    whole = torch.trunc(x)
    if mode == "trunc":
        return whole
    if mode == "round":
        return whole + torch.sign(x) * (torch.abs(x - whole) >= 0.5)
    if mode == "odd":
        low = torch.floor(x)
        return torch.where(low == x, x, torch.where(torch.remainder(low, 2) == 1, low, low + 1))
    raise ValueError(f"unknown rounding mode {mode!r}; use none, rint, round, floor, ceil, trunc or odd")


def _float_to_int(
    x: torch.Tensor, dtype: torch.dtype, mode: str, limits: tuple[int, int] | None = None
) -> torch.Tensor:
    """Whole numbers of type `dtype`: rounded by `mode`, saturated to `limits` (by default its own), NaN gives 0."""
    low, high = limits or (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    wide = torch.nan_to_num(_round_to_int(x.double(), mode), nan=0.0, posinf=math.inf, neginf=-math.inf)
    out = wide.clamp(float(low), float(high))
    if high < 2**53:
        return out.to(dtype)
    top = wide >= float(high)
    return torch.where(top, high, torch.where(top, 0.0, out).to(dtype))


def _round_float(x: torch.Tensor, name: str, mode: str) -> torch.Tensor:
    """`x` in float64 on the grid of the float type `name`, rounded by `mode`; out of range gives the type's limit."""
    wide = x.double()
    _, exponent = torch.frexp(wide)
    exponent = exponent - 1
    if name == "hf8":
        size = exponent.abs()
        bits: Any = torch.where(size < 4, 3, torch.where(size < 8, 2, torch.where(exponent > -16, 1, 0)))
        lowest, highest = -22, 32768.0
    else:
        bits, lowest, highest = _SMALL_FLOATS[name]
    step = torch.ldexp(torch.ones_like(wide), exponent.clamp(min=lowest) - bits)
    out = _round_to_int(wide / step, mode) * step
    out = torch.where(torch.isfinite(wide) & (wide != 0), out, wide)
    inward = {"trunc": torch.ones_like(wide, dtype=torch.bool), "floor": wide > 0, "ceil": wide < 0, "odd": wide != 0}
    over = (
        (torch.abs(out) > highest) & torch.isfinite(wide) & inward.get(mode, torch.zeros_like(wide, dtype=torch.bool))
    )
    return torch.where(over, torch.sign(wide) * highest, out)


def _rounded(x: torch.Tensor, dtype: torch.dtype, mode: str) -> torch.Tensor:
    """`x` as `dtype` (float16 or bfloat16), rounded by a mode other than to nearest."""
    return _round_float(x, "fp16" if dtype == torch.float16 else "bfloat16", mode).to(dtype)


def _ties_away(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """`x` in float32 with values half-way between two neighbours of `dtype` moved to the one farther from zero."""
    wide = x.float()
    if dtype == torch.bfloat16:
        bits = wide.view(torch.int32)
        tie = torch.bitwise_and(bits, _LOW_HALF).eq_(_HALF_WAY)
        return tie.add_(bits).view(torch.float32)
    near = wide.to(dtype).float()
    other = wide * 2 - near
    tie = (other.abs() > near.abs()) & (other.to(dtype).float() == other)
    return torch.where(tie, other, near)


def _held(x: Any, name: str) -> Any:
    """`x` as values of the type `name` in the torch type that holds it; its region stays."""
    if name == "uint16":
        out = x.to(torch.int32) & 0xFFFF
    elif name == "uint32":
        out = x.to(torch.int64) & 0xFFFFFFFF
    elif name in ("uint64", "index"):
        out = x.view(torch.int64) if x.dtype == torch.uint64 else x.to(torch.int64)
    elif name == "int4":
        out = (x.float() + 8).remainder(16) - 8
    elif name == "uint4":
        out = x.float().remainder(16)
    else:
        out = _small_float(x, name, "none")
    valid = getattr(x, "_pypto_valid_shape", None)
    if valid is not None and out is not x:
        out._pypto_valid_shape = valid
        out._pypto_full_shape = getattr(x, "_pypto_full_shape", tuple(x.shape))
    return out


def _small_float(x: torch.Tensor, name: str, mode: str) -> torch.Tensor:
    """`x` as float32 on the grid of the 8- or 4-bit float type `name`."""
    if name == "fp8e8m0":
        return _power_of_two(x)
    if name in ("fp8e4m3fn", "fp8e5m2") and mode in ("none", "rint"):
        native = torch.float8_e4m3fn if name == "fp8e4m3fn" else torch.float8_e5m2
        return x.to(native).float()
    out = _round_float(x, name, mode)
    if name in ("fp8e4m3fn", "fp8e5m2"):
        return _small_float(out.float(), name, "none")
    limit = _SMALL_FLOATS[name][2] if name in _SMALL_FLOATS else 32768.0
    return out.clamp(-limit, limit).float()


def _power_of_two(x: torch.Tensor) -> torch.Tensor:
    """`x` as float32 rounded to the powers of two of FP8E8M0 (2**-127 to 2**127); uint8 bytes are exponent codes."""
    if x.dtype == torch.uint8:
        return torch.exp2(x.double() - 127).float()
    wide = x.double()
    exponent = torch.floor(torch.log2(wide.abs()) + 0.5).clamp(-127, 127)
    return torch.where(torch.isnan(wide), wide, torch.exp2(exponent)).float()


def _scalar(value: Any, dtype: torch.dtype) -> Any:
    """A Python number as an element of `dtype` would hold it: rounded, truncated or wrapped."""
    if dtype == torch.bool:
        return bool(value)
    if dtype.is_floating_point:
        return torch.tensor(float(value), dtype=torch.float64).to(dtype).item()
    info = torch.iinfo(dtype)
    return (int(value) - info.min) % (1 << info.bits) + info.min


def _int_div(a: torch.Tensor, b: Any) -> Any:
    """Integer division that truncates towards zero; by zero it gives 0, and the least number by -1 wraps to itself."""
    divisor = b if isinstance(b, torch.Tensor) else torch.tensor(b, dtype=a.dtype)
    zero = divisor == 0
    turned = torch.zeros_like(zero) if divisor.dtype == torch.uint8 else divisor == -1
    # The processor traps on the least number divided by -1, so that torch must never see it.
    out = torch.div(a, torch.where(zero | turned, 1, divisor), rounding_mode="trunc")
    return torch.where(zero, 0, torch.where(turned, torch.neg(out), out))


def _int_rem(a: torch.Tensor, b: Any, floor: bool) -> Any:
    """Integer remainder with the sign of the divisor (`floor`) or of the dividend; 0 when the divisor is 0 or -1."""
    divisor = b if isinstance(b, torch.Tensor) else torch.tensor(b, dtype=a.dtype)
    whole = divisor == 0
    if divisor.dtype != torch.uint8:  # the processor traps on the least number and -1
        whole = whole | (divisor == -1)
    safe = torch.where(whole, 1, divisor)
    return torch.where(whole, 0, torch.remainder(a, safe) if floor else torch.fmod(a, safe))


def _unsigned(x: Any) -> Any:
    """64-bit words (or a number) shifted so that signed comparison orders them as unsigned numbers."""
    return x % 2**64 - 2**63 if isinstance(x, int) else x ^ -(2**63)


def _u64_divmod(a: torch.Tensor, b: Any, remainder: bool) -> torch.Tensor:
    """Quotient or remainder of 64-bit words taken as unsigned numbers; 0 when the divisor is 0."""
    divisor = b if isinstance(b, torch.Tensor) else torch.tensor(b, dtype=a.dtype)
    left, right = a.expand_as(a + divisor), divisor.expand_as(a + divisor)
    words = 1 << 64

    def one(x: int, y: int) -> int:
        x, y = x % words, y % words
        value = 0 if y == 0 else (x % y if remainder else x // y)
        return value - words if value >= words // 2 else value

    flat = [one(x, y) for x, y in zip(left.flatten().tolist(), right.flatten().tolist(), strict=False)]
    return torch.tensor(flat, dtype=a.dtype).reshape(left.shape)


def _u64_shr(a: torch.Tensor, count: Any) -> torch.Tensor:
    """64-bit words shifted right with zeros coming in; a count of 64 or more gives 0."""
    n = count if isinstance(count, torch.Tensor) else torch.tensor(count, dtype=a.dtype)
    keep = torch.where(n == 0, -1, (1 << (64 - n.clamp(1, 63))) - 1)
    return torch.where(n >= 64, 0, (a >> n.clamp(0, 63)) & keep)


def _u64_float(words: torch.Tensor) -> torch.Tensor:
    """64-bit words, taken as unsigned numbers, in float64."""
    return (words >> 1 & 0x7FFFFFFFFFFFFFFF).double() * 2 + (words & 1)


def _float_to_u64(x: torch.Tensor, mode: str) -> torch.Tensor:
    """Rounded numbers as unsigned 64-bit words held in int64, saturated; NaN gives 0."""
    wide = torch.nan_to_num(_round_to_int(x.double(), mode), nan=0.0).clamp(0.0, 2.0**64)
    high = wide >= 2.0**63
    words = torch.where(high, wide - 2.0**63, wide).clamp(max=2.0**63 - 1024).to(torch.int64)
    return torch.where(wide >= 2.0**64, -1, torch.where(high, words ^ -(2**63), words))


def _float_rem(a: torch.Tensor, b: Any, floor: bool) -> Any:
    """Float remainder with the sign of the divisor (`floor`) or of the dividend.

    It is exact for every pair of numbers, so that it is computed in float64: the vector code of narrower types gives
    NaN for large quotients.
    """
    wide = (b if isinstance(b, torch.Tensor) else torch.tensor(b, dtype=a.dtype)).double()
    return (torch.remainder(a.double(), wide) if floor else torch.fmod(a.double(), wide)).to(a.dtype)


def _cast_scalar(value: Any, name: str) -> Any:
    """A Python number converted to the scalar type `name`.

    Integers wrap, floats become integers by truncation (saturating, NaN gives 0) and narrower floats by rounding to
    nearest, ties to even; bool is truth.
    """
    if name == "bool":
        return bool(value)
    if name.startswith(("int", "uint", "index")):
        bits = 64 if name == "index" else int(name.lstrip("uint"))
        low, high = (0, (1 << bits) - 1) if name[0] == "u" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        if isinstance(value, float):
            if math.isnan(value):
                return 0
            return high if value >= high else low if value <= low else int(value)
        return (int(value) - low) % (1 << bits) + low
    wide = torch.tensor(float(value), dtype=torch.float64)
    native = {"fp32": torch.float32, "fp16": torch.float16, "bfloat16": torch.bfloat16}.get(name)
    return (_small_float(wide, name, "none") if native is None else wide.to(native)).item()
