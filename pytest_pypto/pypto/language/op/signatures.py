"""Parameter lists of the functions of the language, and the functions that have each."""

from __future__ import annotations

Groups = tuple[tuple[str, str], ...]

UNIFIED: Groups = (
    ("input", "abs col_max col_min col_prod cos exp neg not_ sin sqrt"),
    (
        "lhs, rhs",
        "add and_ ands batch_matmul col_expand col_expand_add col_expand_div col_expand_expdif col_expand_max"
        " col_expand_min col_expand_mul col_expand_sub fmod fmods max maximum maximums min minimum minimums "
        "mul or_ ors part_add part_max part_min part_mul row_expand row_expand_div row_expand_expdif "
        "row_expand_max row_expand_min row_expand_mul row_expand_sub shl shls shr shrs sub",
    ),
    ("lhs, rhs, rhs2", "addc addsc subc subsc"),
    ("x, span=None", "aic_gather aiv_shard"),
    (
        "c2v_consumer_buf=0, v2c_consumer_buf=0, *, dir_mask, slot_size, slot_num=None, local_slot_num=None, "
        "id=None, span=None",
        "aic_initialize_pipe aiv_initialize_pipe",
    ),
    ("start, shape, dtype=INT32, descending=False", "arange"),
    ("target, source, offset, *, atomic=None_", "assemble"),
    ("input, target_type, mode='round'", "cast"),
    ("lhs, rhs, cmp_type=0", "cmp cmps"),
    ("input, tmp_tile=None", "col_argmax col_argmin col_sum row_argmax row_argmin row_max row_min row_prod row_sum"),
    ("src0, src1", "concat"),
    ("shape, dtype, transpose=False", "create_l1"),
    ("shape, dtype, layout=ND, manual_dep=False, init_value=None", "create_tensor"),
    ("shape, dtype, target_memory=Vec, transpose=None, *, flat_layout=None", "create_tile"),
    ("tensor, axis", "dim"),
    ("lhs, rhs, high_precision=False", "div"),
    ("tensor", "dump_tag no_dep"),
    ("src, target", "expand_clone"),
    ("target, scalar", "expands"),
    ("value, pad_value=zero", "fillpad"),
    ("value, shape, pad_value=zero", "fillpad_expand"),
    ("shape, dtype, value", "full"),
    (
        "input, dim=None, index=None, *, mask_pattern=None, output_dtype=None, kvalue=None, cmp_mode=None, "
        "out_cols=None, offset=0, count_dtype=None",
        "gather",
    ),
    ("dst, src, dst_offset, src_offset, shapes, transpose=False, *, valid_shape=None", "gather_row"),
    ("src, offset, *, output_dtype=None", "gatherb"),
    ("lhs, rhs, acc_phase='unspecified'", "gemv"),
    ("acc, lhs, rhs, acc_phase='unspecified'", "gemv_acc"),
    ("lhs, rhs, bias, acc_phase='unspecified'", "gemv_bias"),
    ("", "get_block_idx get_block_num get_subblock_idx"),
    ("*, name, peer_func, span=None", "import_peer_buffer"),
    ("tensor, offsets, shapes, valid_shape=None, target_memory=Vec, clamp=False", "load"),
    ("input, high_precision=False", "log recip rsqrt"),
    ("tile, slope", "lrelu"),
    ("lhs, rhs, out_dtype=None, a_trans=False, b_trans=False, c_matrix_nz=False", "matmul"),
    ("acc, lhs, rhs, a_trans=False, b_trans=False, init_cond=None", "matmul_acc"),
    ("lhs, rhs, bias", "matmul_bias"),
    ("lhs, lhs_scale, rhs, rhs_scale", "matmul_mx"),
    ("acc, lhs, lhs_scale, rhs, rhs_scale", "matmul_mx_acc"),
    ("lhs, lhs_scale, rhs, rhs_scale, bias", "matmul_mx_bias"),
    (
        "mem, idx, coalesce='row', *, gather_oob='undefined', target_memory=Vec, scratch=None, valid_shape=None",
        "mgather",
    ),
    ("tile, target_memory, blayout=None, slayout=None", "move"),
    ("src0, src1=None, src2=None, src3=None, tmp=None, *, exhausted=False, block_len=None", "mrgsort"),
    ("src, idx, output_tensor", "mscatter"),
    (
        "src, indices, block_table, block_size, size, max_indices, *, space=Mat, col_off=0, is_trans=False, "
        "is_b_matrix=False",
        "paged_gather",
    ),
    ("tile, slope, tmp", "prelu"),
    ("key0, key1, counter0, counter1, counter2, counter3, shape, dtype=UINT32, rounds=10", "random"),
    ("src, offset", "read"),
    ("data, dtype, *, shape=None", "reinterpret_view"),
    ("tile", "relu"),
    ("lhs, rhs, tmp", "rem rems"),
    ("*, name, size, base=-1, span=None", "reserve_buffer"),
    ("input, shape", "reshape"),
    ("lhs, rhs, tmp=None", "row_expand_add xor xors"),
    ("input, dim=None, index=None, src=None, *, mask_pattern=None, dst=None", "scatter"),
    ("input, *args, **kwargs", "scatter_update"),
    ("mask, lhs, rhs, tmp", "sel"),
    ("mask, src, tmp, scalar", "sels"),
    ("input, valid_rows, valid_cols", "set_validshape"),
    ("input, shape, offset, valid_shape=None, drop_dims=None, pad_value=None, clamp=False", "slice"),
    ("src, idx", "sort32"),
    ("tile, offsets, output_tensor, shapes=None, *, atomic=None_", "store"),
    ("tile, span=None, *, split=None, id=None", "tfree_to_aic tfree_to_aiv"),
    ("*, shape=None, dtype=None, split=0, lane_stride=None, id=None, span=None", "tpop_from_aic"),
    ("*, shape=None, dtype=None, split=0, id=None, span=None", "tpop_from_aiv"),
    ("tile, *, split, id=None, span=None", "tpush_to_aic"),
    ("tile, *, split, lane_stride=None, id=None, span=None", "tpush_to_aiv"),
    ("input, axis1, axis2", "transpose"),
    ("diagonal, shape, valid_shape=None, dtype=INT32, upper=False", "tri"),
    ("dst, offset, value", "write"),
)
"""`pl.<name>`"""

TENSOR: Groups = (
    (
        "input",
        "abs col_argmax col_argmin col_max col_min col_prod col_sum cos exp neg not_ row_argmax row_argmin "
        "row_max row_min row_prod row_sum sin sqrt",
    ),
    (
        "lhs, rhs",
        "add adds and_ ands divs fmod fmods maximum minimum mul muls or_ ors part_add part_max part_min "
        "part_mul shl shls shr shrs sub subs xor xors",
    ),
    ("memory_space, size", "alloc"),
    ("start, shape, dtype=INT32, descending=False", "arange ci"),
    ("target, source, offset, *, atomic=None_", "assemble"),
    ("input, target_type, mode='round'", "cast"),
    ("lhs, rhs, cmp_type=0", "cmp"),
    (
        "tensor, col_vec",
        "col_expand col_expand_add col_expand_div col_expand_expdif col_expand_max col_expand_min "
        "col_expand_mul col_expand_sub",
    ),
    ("src0, src1", "concat"),
    ("shape, dtype, layout=ND, manual_dep=False, init_value=None", "create create_tensor"),
    ("shape, dtype, transpose=False", "create_l1"),
    ("tensor, axis", "dim"),
    ("lhs, rhs, high_precision=False", "div"),
    ("tensor", "dump_tag no_dep"),
    ("src, target", "expand_clone"),
    ("target, scalar", "expands"),
    ("tensor, pad_value=zero", "fillpad"),
    ("tensor, shape, pad_value=zero", "fillpad_expand"),
    ("shape, dtype, value", "full"),
    (
        "input, dim=None, index=None, *, mask_pattern=None, output_dtype=None, kvalue=None, cmp_mode=None, "
        "out_cols=None, offset=0, count_dtype=None",
        "gather",
    ),
    ("acc, src, dst_offset, src_offset, shapes, transpose=False, *, valid_shape=None", "gather_row"),
    ("", "get_block_idx get_block_num get_subblock_idx"),
    ("input, high_precision=False", "log recip rsqrt"),
    ("lhs, rhs, out_dtype=None, a_trans=False, b_trans=False, c_matrix_nz=False", "matmul"),
    ("acc, lhs, rhs, a_trans=False, b_trans=False, init_cond=None", "matmul_acc"),
    ("src0, src1=None, src2=None, src3=None, *, exhausted=False, block_len=None", "mrgsort"),
    (
        "src, indices, block_table, block_size, size, max_indices, *, space=Mat, col_off=0, is_trans=False, "
        "is_b_matrix=False",
        "paged_gather",
    ),
    ("key0, key1, counter0, counter1, counter2, counter3, shape, dtype=UINT32, rounds=10", "random"),
    ("tensor, indices", "read"),
    ("data, dtype, *, shape=None", "reinterpret_view"),
    ("tensor, shape", "reshape"),
    ("target, row_vec", "row_expand"),
    (
        "tensor, row_vec",
        "row_expand_add row_expand_div row_expand_expdif row_expand_max row_expand_min row_expand_mul row_expand_sub",
    ),
    ("input, dim=None, index=None, src=None, *, mask_pattern=None, dst=None", "scatter"),
    ("input, *args, **kwargs", "scatter_update"),
    ("tensor, valid_rows, valid_cols", "set_validshape"),
    ("tensor, shape, offset, valid_shape=None, drop_dims=None, pad_value=None, clamp=False", "slice"),
    ("src, idx", "sort32"),
    ("tensor, axis1, axis2", "transpose"),
    ("tensor, shape=None, valid_shape=None, *, layout=None", "view"),
    ("tensor, indices, value", "write"),
)
"""`pl.tensor.<name>`"""

TILE: Groups = (
    ("tile", "abs col_max col_min col_prod cos exp neg not_ relu sin sqrt transpose_view"),
    (
        "lhs, rhs",
        "add adds and_ ands batch_matmul divs fmod fmods matmul max maximum maximums min minimum minimums mul"
        " muls or_ ors shl shls shr shrs sub subs",
    ),
    ("lhs, rhs, rhs2", "addc addsc subc subsc"),
    ("x, span=None", "aic_gather aiv_shard"),
    ("memory_space, size, *, pinned=False", "alloc"),
    ("start, shape, dtype=INT32, descending=False", "arange ci"),
    ("target, source, offset", "assemble"),
    ("acc, lhs, rhs", "batch_matmul_acc"),
    ("tile, target_type, mode='round'", "cast"),
    ("lhs, rhs, cmp_type=0", "cmp cmps"),
    ("tile, tmp_tile", "col_argmax col_argmin row_argmax row_argmin row_max row_min row_prod row_sum"),
    ("target, col_vec", "col_expand"),
    (
        "tile, col_vec",
        "col_expand_add col_expand_div col_expand_expdif col_expand_max col_expand_min col_expand_mul col_expand_sub",
    ),
    ("tile, tmp_tile=None", "col_sum"),
    ("src0, src1", "concat part_add part_max part_min part_mul"),
    ("shape, dtype, target_memory=Vec, transpose=None, *, flat_layout=None", "create create_tile"),
    ("lhs, rhs, high_precision=False", "div"),
    ("target, scalar", "expands"),
    ("src, index_row, index_col, shape, *, target_memory", "extract"),
    ("tile, pad_value=zero", "fillpad fillpad_inplace"),
    ("tile, shape, pad_value=zero", "fillpad_expand"),
    ("shape, dtype, value", "full"),
    ("src, indices, tmp", "gather"),
    ("src, kvalue, tmp, *, cmp_mode='eq', offset=0, out_cols, count_dtype=None", "gather_compare"),
    ("src, mask_pattern, *, output_dtype=None", "gather_mask"),
    ("dst, src, dst_offset, src_offset, shapes, transpose=False, *, valid_shape=None", "gather_row"),
    ("src, offset, *, output_dtype=None", "gatherb"),
    ("lhs, rhs, acc_phase='unspecified'", "gemv"),
    ("acc, lhs, rhs, acc_phase='unspecified'", "gemv_acc"),
    ("lhs, rhs, bias, acc_phase='unspecified'", "gemv_bias"),
    ("", "get_block_idx get_block_num get_subblock_idx"),
    ("tensor, offsets, shapes, valid_shape=None, target_memory=Vec, clamp=False", "load"),
    ("tile, high_precision=False", "log recip"),
    ("tile, slope", "lrelu"),
    ("acc, lhs, rhs, init_cond=None", "matmul_acc"),
    ("lhs, rhs, bias", "matmul_bias"),
    ("lhs, lhs_scale, rhs, rhs_scale", "matmul_mx"),
    ("acc, lhs, lhs_scale, rhs, rhs_scale", "matmul_mx_acc"),
    ("lhs, lhs_scale, rhs, rhs_scale, bias", "matmul_mx_bias"),
    (
        "mem, idx, coalesce='row', *, gather_oob='undefined', target_memory=Vec, scratch=None, valid_shape=None",
        "mgather",
    ),
    ("tile, target_memory, blayout=None, slayout=None", "move"),
    ("src0, src1=None, src2=None, src3=None, tmp=None, exhausted=False, *, block_len=None", "mrgsort"),
    ("src, idx, output_tensor", "mscatter"),
    ("tile, slope, tmp", "prelu"),
    (
        "key0, key1, counter0, counter1, counter2, counter3, shape, valid_shape=None, dtype=UINT32, rounds=10",
        "random",
    ),
    ("tile, indices", "read"),
    ("data, dtype, *, shape=None", "reinterpret_view"),
    ("lhs, rhs, tmp", "rem rems xor xors"),
    ("tile, shape", "reshape"),
    ("target, row_vec", "row_expand"),
    ("tile, row_vec, tmp=None", "row_expand_add"),
    ("tile, row_vec", "row_expand_div row_expand_expdif row_expand_max row_expand_min row_expand_mul row_expand_sub"),
    ("tile, tmp=None", "rsqrt"),
    ("dst, src, indexes", "scatter"),
    ("dst, src, mask_pattern", "scatter_mask"),
    ("input, *args, **kwargs", "scatter_update"),
    ("mask, lhs, rhs, tmp", "sel"),
    ("mask, src, tmp, scalar", "sels"),
    ("tile, valid_rows, valid_cols", "set_validshape"),
    ("tile, shape, offset, valid_shape=None, drop_dims=None, pad_value=None", "slice"),
    ("src, idx", "sort32"),
    ("tile, offsets, output_tensor, shapes=None, *, atomic=None_", "store"),
    ("*, shape=None, dtype=None, split=0, lane_stride=None, id=None, span=None", "tpop_from_aic"),
    ("*, shape=None, dtype=None, split=0, id=None, span=None", "tpop_from_aiv"),
    ("tile, *, split, id=None, span=None", "tpush_to_aic"),
    ("tile, *, split, lane_stride=None, id=None, span=None", "tpush_to_aiv"),
    ("tile, axis1, axis2, tmp_tile=None", "transpose"),
    ("diagonal, shape, valid_shape=None, dtype=INT32, upper=False", "tri"),
    ("tile, indices, value", "write"),
)
"""`pl.tile.<name>`"""

SYSTEM: Groups = (
    (
        "c2v_consumer_buf=0, v2c_consumer_buf=0, *, dir_mask, slot_size, slot_num=None, local_slot_num=None, "
        "id=None, span=None",
        "aic_initialize_pipe aiv_initialize_pipe",
    ),
    ("*, span=None", "available_aiv_count available_cluster_count bar_all bar_m bar_v fence task_invalid"),
    ("tensor=None, shapes=None, offsets=None, *, span=None", "cacheinvalid"),
    ("*, name, peer_func, span=None", "import_peer_buffer"),
    ("*, name, size, base=-1, span=None", "reserve_buffer"),
    ("workspace, *, span=None", "set_ffts"),
    ("*, set_pipe, wait_pipe, event_id, span=None", "sync_dst sync_src"),
    ("event_id, *, pipe, ffts_mode=None, core_type=None, span=None", "sync_set"),
    ("event_id, *, pipe, core_type=None, span=None", "sync_wait"),
    ("*, core_type='mix', mode='hard', gm_workspace=None, used_cores=None, span=None", "syncall"),
    ("*, deps", "task_dummy"),
    ("tile, span=None, *, split=None, id=None", "tfree_to_aic tfree_to_aiv"),
    ("*, shape=None, dtype=None, split=0, lane_stride=None, id=None, span=None", "tpop_from_aic"),
    ("*, shape=None, dtype=None, split=0, id=None, span=None", "tpop_from_aiv"),
    ("tile, *, split, id=None, span=None", "tpush_to_aic"),
    ("tile, *, split, lane_stride=None, id=None, span=None", "tpush_to_aiv"),
)
"""`pl.system.<name>`"""

ARRAY: Groups = (
    ("extent, dtype", "create"),
    ("array, index", "get_element"),
    ("array, index, value", "update_element"),
)
"""`pl.array.<name>`"""

PREFETCH: Groups = (
    ("src, ctx", "async_prefetch"),
    ("", "make_context"),
    ("ctx", "session"),
    ("event, session_handle", "wait"),
)
"""`pl.prefetch.<name>`"""

DISTRIBUTED: Groups = (
    ("size, *, dtype=None, name=''", "alloc_window_buffer"),
    ("buf, shape, *, dtype", "window"),
    ("", "world_size"),
    ("dist_tensor", "get_comm_ctx"),
    ("ctx", "nranks rank"),
    ("target, peer, offsets, shape, valid_shape=None", "remote_load"),
    ("src, target, peer, offsets, *, atomic=None_", "remote_store"),
)
"""`pld.<name>`, and the same names in `pld.tensor`, `pld.tile` and `pld.system`"""
