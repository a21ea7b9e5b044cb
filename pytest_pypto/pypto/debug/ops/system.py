"""Pipes between cores, synchronisation, tasks, launches, arrays and prefetches."""

from __future__ import annotations

from typing import Any

from ..errors import UnsupportedOpError
from .table import OP_MAP, Emit, OpHandler, Site, register


def split_mode_to_int(mode: Any) -> int:
    """A split mode as its code: None is 0, an int itself, an enum member its value.

    Raises:
        ValueError: anything else.
    """
    if mode is None:
        return 0
    value = getattr(mode, "value", mode)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(f"Invalid split mode {mode!r}; use None, an int (0 NONE, 1 UP_DOWN, 2 LEFT_RIGHT) or a SplitMode")


def _split(site: Site) -> int:
    code = split_mode_to_int(site.kwargs.get("split"))
    if code not in (0, 1, 2, 3, 4):
        raise ValueError(f"Invalid split mode {code} of '{site.name}'; use 0, 1, 2, 3 or 4")
    return code


def _pipe_id(site: Site) -> str:
    pipe = site.kwargs.get("id")
    return f", id={int(pipe)}" if pipe else ""


@register("tile.tpush_to_aiv")
def _push_to_aiv(site: Site) -> str:
    stride = site.kwargs.get("lane_stride")
    tail = f", {int(stride)}" if stride else ""
    return _waiting(site, f"_cross_core_rt.push_to_aiv({site[0]}, {_split(site)}{tail}{_pipe_id(site)})")


@register("tile.tpush_to_aic")
def _push_to_aic(site: Site) -> str:
    return _waiting(site, f"_cross_core_rt.push_to_aic({site[0]}, {_split(site)}{_pipe_id(site)})")


@register("tile.tpop_from_aic", region="always")
def _pop_from_aic(site: Site) -> str:
    return _popped(site, f"_cross_core_rt.pop_from_aic({_split(site)}{_pipe_id(site)})")


@register("tile.tpop_from_aiv", region="always")
def _pop_from_aiv(site: Site) -> str:
    return _popped(site, f"_cross_core_rt.pop_from_aiv({_split(site)}{_pipe_id(site)})")


def _waiting(site: Site, text: str) -> str:
    """In a generated lane an operation that may wait is yielded to the scheduler."""
    return f"yield {text}" if site.facts.get("yields") else text


def _popped(site: Site, text: str) -> str:
    from .memory import declared_shape

    text = _waiting(site, text)
    want = declared_shape(site)
    if want is None or not (_split(site) in (3, 4) or site.kwargs.get("lane_stride")):
        return text
    return f"_fit(({text}), {want})" if text.startswith("yield") else f"_fit({text}, {want})"


_NO_OPS = (
    *(
        "sync_src",
        "sync_dst",
        "sync_set",
        "sync_wait",
        "set_ffts",
        "bar_v",
        "bar_m",
        "bar_all",
        "fence",
        "cacheinvalid",
    ),
)


def _nothing(value: str) -> Emit:
    return lambda site: value


for _name in _NO_OPS:
    register(f"system.{_name}", comment=True)(_nothing("None"))
for _name in ("reserve_buffer", "import_peer_buffer"):
    register(f"system.{_name}", comment=True)(_nothing("0"))


@register("system.aic_initialize_pipe", "system.aiv_initialize_pipe", comment=True)
def _initialize_pipe(site: Site) -> str:
    if "dir_mask" not in site.kwargs:
        return "None"
    slots = site.kwargs.get("slot_num")
    tail = f", slot_num={int(slots)}" if slots else ""
    return f"_cross_core_rt.initialize_pipe({int(site.kwargs['dir_mask'])}{tail}{_pipe_id(site)})"


@register("system.tfree_to_aic", "system.tfree_to_aiv", comment=True)
def _tfree(site: Site) -> str:
    return f"_cross_core_rt.{site.name.split('.')[1]}({_split(site)}{_pipe_id(site)})"


@register("system.syncall", comment=True)
def _syncall(site: Site) -> str:
    return _waiting(site, f'_Barrier("{site.kwargs.get("core_type", "mix")}")') if site.facts.get("yields") else "None"


for _space in ("tensor", "tile"):
    register(f"{_space}.get_subblock_idx")(_nothing("_get_subblock_idx()"))


def _block(text: str, outside: str) -> Emit:
    return lambda site: text if site.facts.get("launched") else outside


for _space in ("tensor", "tile"):
    register(f"{_space}.get_block_idx")(_block("_get_block_idx()", "0"))
    register(f"{_space}.get_block_num")(_block("_get_block_num()", "1"))

register("system.task_dummy")(_nothing("_new_task_id()"))
register("system.task_invalid")(_nothing("None"))
register("system.task_is_valid")(lambda site: f"({site[0]} is not None)")
register("system.available_cluster_count")(_nothing("_CLUSTER_COUNT"))
register("system.available_aiv_count")(_nothing("(2 * _CLUSTER_COUNT)"))
register("prefetch.make_context", "prefetch.session", "prefetch.async_prefetch", comment=True)(_nothing("None"))
register("prefetch.wait")(_nothing("True"))


@register("array.create")
def _array_create(site: Site) -> str:
    dtype = str(site.kwargs.get("dtype", ""))
    return f"[{'False' if dtype == 'bool' else 'None' if dtype == 'task_id' else '0'}] * {site[0]}"


@register("array.get_element")
def _array_get(site: Site) -> str:
    return f"_array_get({site[0]}, {site[1]})"


@register("array.update_element")
def _array_set(site: Site) -> str:
    return f"_array_set({site[0]}, {site[1]}, {site[2]})"


_REJECTED = ("pld.", "dist.", "builtin.")


def rejected(name: str) -> UnsupportedOpError:
    """The error for an operator without a handler."""
    if name.startswith(_REJECTED):
        return UnsupportedOpError(
            f"Unsupported op '{name}' in torch_codegen: it works across devices, and the script runs on one; "
            "take the per-rank function out of the program and check that"
        )
    return UnsupportedOpError(
        f"Unsupported op '{name}' in torch_codegen: no handler. Add one to "
        "pypto.debug.torch_codegen._OP_MAP (name -> function of operand texts and keywords), "
        "or call a function of the program instead"
    )


def handler_of(name: str) -> Any:
    """The handler of an operator; one that a user put into the map may be any callable.

    Raises:
        UnsupportedOpError: there is none.
    """
    found: OpHandler | None = OP_MAP.get(name)
    if found is None:
        raise rejected(name)
    return found
