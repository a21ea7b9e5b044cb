"""Elements as the bits of their own width, for operators that read bytes under another type."""

from __future__ import annotations

from ...ir.dtypes import DataType
from ..dtypes import torch_name
from ..errors import UnsupportedOpError
from .table import Site, wrapped

_OWN = {
    DataType.UINT16: "torch.int16",
    DataType.UINT32: "torch.int32",
    DataType.FP8E4M3FN: "torch.float8_e4m3fn",
    DataType.FP8E5M2: "torch.float8_e5m2",
    DataType.FP8E8M0: "torch.float8_e8m0fnu",
}
"""Types that the script holds in a wider torch type, with the one of their own width."""
_NONE = frozenset({DataType.INT4, DataType.UINT4, DataType.FP4, DataType.HF4, DataType.HF8})
"""Types for whose bits torch has no form."""


def own_type(dtype: DataType) -> str:
    """The torch type whose bytes are those of `dtype`.

    Raises:
        UnsupportedOpError: there is none.
    """
    if dtype in _NONE:
        message = f"the bits of {dtype} are not supported by torch_codegen: convert the values with pl.cast instead"
        raise UnsupportedOpError(message)
    return "torch.uint8" if dtype is DataType.FP8E8M0 else _OWN.get(dtype) or torch_name(dtype)


def own_bits(site: Site, k: int) -> str:
    """Operand `k` in the torch type of its own width, with its region."""
    dtype = site.args[k].dtype
    if dtype is None:
        return site[k]
    own_type(dtype)
    if dtype not in _OWN:
        return site[k]
    if site.partial(k):
        name = site.named(k)
        return f"_copy_region_attrs({name}, {name}.to({_OWN[dtype]}))"
    return f"{wrapped(site[k])}.to({_OWN[dtype]})"


def from_bits(text: str, dtype: DataType) -> str:
    """`text`, whose torch type is `own_type(dtype)`, as the script holds elements of `dtype`."""
    return f'_held({text}, "{dtype}")' if dtype in _OWN else text
