"""Which operation is spelled in which form."""

from __future__ import annotations

from collections.abc import Callable

from . import forms_scalar as scalar
from . import forms_sync as sync
from . import forms_tile as tile
from .cursor import Cursor
from .known import ARITH_BINARY, ARITH_CAST, INS_OUTS
from .nodes import Op

Form = Callable[[Cursor, Op], None]


def build_forms() -> dict[str, Form]:
    """The form of every operation but control flow."""
    forms: dict[str, Form] = {f"pto.{n}": tile.ins_outs for n in INS_OUTS}
    forms |= {f"arith.{n}": scalar.binary for n in ARITH_BINARY} | {f"arith.{n}": scalar.cast for n in ARITH_CAST}
    forms |= {"arith.constant": scalar.constant, "arith.negf": scalar.negf, "arith.select": scalar.select}
    forms |= dict.fromkeys(("arith.cmpi", "arith.cmpf"), scalar.compare)
    forms["builtin.unrealized_conversion_cast"] = scalar.cast
    named: dict[Form, str] = {
        tile.tensor_view: "make_tensor_view",
        tile.partition: "partition_view",
        tile.alloc: "alloc_tile alloc_multi_tile",
        tile.multi_get: "multi_tile_get",
        tile.subview: "subview",
        tile.treshape: "treshape",
        tile.set_valid: "set_validshape",
        tile.getval: "tgetval",
        tile.setval: "tsetval",
        scalar.load_scalar: "load_scalar",
        scalar.store_scalar: "store_scalar",
        scalar.addptr: "addptr",
        scalar.declare_array: "declare_local_array",
        scalar.array_set: "local_array_set",
        scalar.array_get: "local_array_get",
        sync.buffer: "reserve_buffer import_reserved_buffer",
        sync.init_pipe: "aic_initialize_pipe aiv_initialize_pipe",
        sync.push: "tpush_to_aiv tpush_to_aic",
        sync.pop: "tpop_from_aic tpop_from_aiv",
        sync.free: "tfree_from_aic tfree_from_aiv",
        sync.syncall: "syncall",
        sync.barrier: "barrier",
        sync.fence: "fence.barrier_all",
        sync.cache: "cmo.cacheinvalid",
        sync.sync_event: "sync.set sync.wait",
        sync.flag: "set_flag wait_flag",
        sync.set_ffts: "set_ffts",
        tile.ttri: "ttri",
    }
    for form, names in named.items():
        forms |= {f"pto.{n}": form for n in names.split()}
    return forms
