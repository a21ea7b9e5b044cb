"""Parameter lists of the builder functions of `pypto.ir.op`, and the functions that have each."""

from __future__ import annotations

Groups = tuple[tuple[str, str], ...]

TENSOR: Groups = (
    (
        "input, span=None",
        "abs col_argmax col_argmin col_max col_min col_prod col_sum cos exp neg not_ row_argmax row_argmin "
        "row_max row_min row_prod row_sum sin sqrt",
    ),
    (
        "lhs, rhs, span=None",
        "add adds and_ ands divs fmod fmods maximum minimum mul muls or_ ors part_add part_max part_min "
        "part_mul shl shls shr shrs sub subs xor xors",
    ),
    ("start, shape, dtype=INT32, descending=False, span=None", "arange ci"),
    ("target, source, offset, span=None, *, atomic=0", "assemble"),
    ("input, target_type, mode='round', span=None", "cast"),
    ("lhs, rhs, cmp_type=0, span=None", "cmp"),
    (
        "tensor, col_vec, span=None",
        "col_expand col_expand_add col_expand_div col_expand_expdif col_expand_max col_expand_min "
        "col_expand_mul col_expand_sub",
    ),
    ("src0, src1, span=None", "concat"),
    ("shape, dtype, layout=ND, manual_dep=False, init_value=None, span=None", "create create_tensor"),
    ("shape, dtype, transpose=False, span=None", "create_l1"),
    ("tensor, axis, span=None", "dim"),
    ("lhs, rhs, span=None, *, high_precision=False", "div"),
    ("src, target, span=None", "expand_clone"),
    ("target, scalar, span=None", "expands"),
    ("tensor, pad_value=zero, span=None", "fillpad"),
    ("tensor, shape, pad_value=zero, span=None", "fillpad_expand"),
    ("shape, dtype, value, span=None", "full"),
    (
        "input, dim=None, index=None, *, mask_pattern=None, output_dtype=None, kvalue=None, cmp_mode=None, "
        "out_cols=None, offset=0, count_dtype=None, span=None",
        "gather",
    ),
    ("input, kvalue, *, cmp_mode, offset=0, out_cols, count_dtype=None, span=None", "gather_compare"),
    ("input, mask_pattern, output_dtype=None, span=None", "gather_mask"),
    ("acc, src, dst_offset, src_offset, shapes, transpose=False, span=None, *, valid_shape=None", "gather_row"),
    ("span=None", "get_block_idx get_block_num get_subblock_idx"),
    ("input, span=None, *, high_precision=False", "log recip"),
    ("lhs, rhs, out_dtype=None, a_trans=False, b_trans=False, c_matrix_nz=False, span=None", "matmul"),
    ("acc, lhs, rhs, a_trans=False, b_trans=False, span=None, *, init_cond=None", "matmul_acc"),
    ("src0, src1=None, src2=None, src3=None, *, exhausted=False, block_len=None, span=None", "mrgsort"),
    ("src0, block_len, span=None", "mrgsort_format1"),
    ("*args, exhausted=False, span=None", "mrgsort_format2"),
    (
        "src, indices, block_table, block_size, size, max_indices, *, space=Mat, col_off=0, is_trans=False, "
        "is_b_matrix=False, span=None",
        "paged_gather",
    ),
    ("key0, key1, counter0, counter1, counter2, counter3, shape, dtype=UINT32, rounds=10, span=None", "random"),
    ("tensor, indices, span=None", "read"),
    ("data, dtype, *, shape=None, span=None", "reinterpret_view"),
    ("tensor, shape, valid_shape=None, span=None", "reshape"),
    ("target, row_vec, span=None", "row_expand"),
    (
        "tensor, row_vec, span=None",
        "row_expand_add row_expand_div row_expand_expdif row_expand_max row_expand_min row_expand_mul row_expand_sub",
    ),
    ("input, high_precision=False, span=None", "rsqrt"),
    ("input, dim=None, index=None, src=None, *, mask_pattern=None, dst=None, span=None", "scatter"),
    ("input, dst, mask_pattern, span=None", "scatter_mask"),
    ("input, *args, dim=None, index=None, src=None, span=None", "scatter_update"),
    ("tensor, valid_rows, valid_cols, span=None", "set_validshape"),
    ("tensor, shape, offset, valid_shape=None, drop_dims=None, pad_value=None, clamp=False, span=None", "slice"),
    ("src, idx, span=None", "sort32"),
    ("tensor, axis1, axis2, valid_shape=None, span=None", "transpose"),
    ("tensor, shape=None, valid_shape=None, *, layout=None, span=None", "view"),
    ("tensor, indices, value, span=None", "write"),
)
"""`pypto.ir.op.tensor.<name>`"""

TILE: Groups = (
    ("tile, span=None", "abs col_max col_min col_prod cos exp neg not_ relu sin sqrt transpose_view"),
    (
        "lhs, rhs, span=None",
        "add adds and_ ands batch_matmul divs fmod fmods matmul maximum maximums minimum minimums mul muls "
        "or_ ors shl shls shr shrs sub subs",
    ),
    ("lhs, rhs, rhs2, span=None", "addc addsc subc subsc"),
    ("tile, *, split, span=None", "aic_gather"),
    ("tile, *, split, lane_stride=None, span=None", "aiv_shard"),
    ("memory_space, size, *, pinned=False, span=None", "alloc"),
    ("start, shape, dtype=INT32, descending=False, span=None", "arange ci"),
    ("target, source, offset, span=None", "assemble"),
    ("acc, lhs, rhs, span=None", "batch_matmul_acc"),
    ("tile, target_type, mode='round', span=None", "cast"),
    ("lhs, rhs, cmp_type=0, span=None", "cmp cmps"),
    ("tile, tmp_tile, span=None", "col_argmax col_argmin row_argmax row_argmin row_max row_min row_prod row_sum"),
    ("target, col_vec, span=None", "col_expand"),
    (
        "tile, col_vec, span=None",
        "col_expand_add col_expand_div col_expand_expdif col_expand_max col_expand_min col_expand_mul col_expand_sub",
    ),
    ("tile, tmp_tile=None, span=None", "col_sum"),
    ("src0, src1, span=None", "concat part_add part_max part_min part_mul"),
    ("shape, dtype, target_memory=Vec, transpose=None, span=None, *, flat_layout=None", "create create_tile"),
    ("lhs, rhs, span=None, *, high_precision=False", "div"),
    ("target, scalar, span=None", "expands"),
    ("src, index_row, index_col, shape, *, target_memory, span=None", "extract"),
    ("tile, pad_value=zero, span=None", "fillpad fillpad_inplace"),
    ("tile, shape, pad_value=zero, span=None", "fillpad_expand"),
    ("shape, dtype, value, span=None", "full"),
    ("src, indices, tmp, span=None", "gather"),
    ("src, kvalue, tmp, *, cmp_mode, offset=0, out_cols, count_dtype=None, span=None", "gather_compare"),
    ("src, mask_pattern, *, output_dtype=None, span=None", "gather_mask"),
    ("dst, src, dst_offset, src_offset, shapes, transpose=False, span=None, *, valid_shape=None", "gather_row"),
    ("src, offset, span=None, *, output_dtype=None", "gatherb"),
    ("lhs, rhs, span=None, *, acc_phase='unspecified'", "gemv"),
    ("acc, lhs, rhs, span=None, *, acc_phase='unspecified'", "gemv_acc"),
    ("lhs, rhs, bias, span=None, *, acc_phase='unspecified'", "gemv_bias"),
    ("span=None", "get_block_idx get_block_num get_subblock_idx"),
    ("tensor, offsets, shapes, valid_shape=None, target_memory=Vec, clamp=False, span=None", "load"),
    ("tile, span=None, *, high_precision=False", "log recip"),
    ("tile, slope, span=None", "lrelu"),
    ("acc, lhs, rhs, span=None, *, init_cond=None", "matmul_acc"),
    ("lhs, rhs, bias, span=None", "matmul_bias"),
    ("lhs, lhs_scale, rhs, rhs_scale, span=None", "matmul_mx"),
    ("acc, lhs, lhs_scale, rhs, rhs_scale, span=None", "matmul_mx_acc"),
    ("lhs, lhs_scale, rhs, rhs_scale, bias, span=None", "matmul_mx_bias"),
    (
        "mem, idx, coalesce='row', span=None, *, gather_oob='undefined', target_memory=Vec, scratch=None, "
        "valid_shape=None",
        "mgather",
    ),
    ("tile, target_memory, blayout=None, slayout=None, span=None", "move"),
    ("src0, src1=None, src2=None, src3=None, tmp=None, exhausted=False, *, block_len=None, span=None", "mrgsort"),
    ("src0, block_len, span=None", "mrgsort_format1"),
    ("*args, exhausted=False, span=None", "mrgsort_format2"),
    ("src, idx, output_tensor, span=None", "mscatter"),
    ("tile, slope, tmp, span=None", "prelu"),
    (
        "key0, key1, counter0, counter1, counter2, counter3, shape, valid_shape=None, dtype=UINT32, "
        "rounds=10, span=None",
        "random",
    ),
    ("tile, indices, span=None", "read"),
    ("data, dtype, *, shape=None, span=None", "reinterpret_view"),
    ("lhs, rhs, tmp, span=None", "rem rems xor xors"),
    ("tile, shape, span=None", "reshape"),
    ("target, row_vec, span=None", "row_expand"),
    ("tile, row_vec, span=None, *, tmp=None", "row_expand_add"),
    (
        "tile, row_vec, span=None",
        "row_expand_div row_expand_expdif row_expand_max row_expand_min row_expand_mul row_expand_sub",
    ),
    ("tile, tmp=None, span=None", "rsqrt"),
    ("dst, src, indexes, span=None", "scatter"),
    ("dst, src, mask_pattern, span=None", "scatter_mask"),
    ("input, *args, dim=None, index=None, src=None, span=None", "scatter_update"),
    ("mask, lhs, rhs, tmp, span=None", "sel"),
    ("mask, src, tmp, scalar, span=None", "sels"),
    ("tile, valid_rows, valid_cols, span=None", "set_validshape"),
    ("tile, shape, offset, valid_shape=None, drop_dims=None, pad_value=None, span=None", "slice"),
    ("src, idx, span=None", "sort32"),
    ("tile, offsets, output_tensor, shapes=None, span=None, *, atomic=0", "store"),
    ("dst_scale, src, span=None", "tget_scale_addr"),
    ("*, result_type=None, shape=None, dtype=None, split=0, lane_stride=None, id=None, span=None", "tpop_from_aic"),
    ("*, result_type=None, shape=None, dtype=None, split=0, id=None, span=None", "tpop_from_aiv"),
    ("tile, *, split, id=None, span=None", "tpush_to_aic"),
    ("tile, *, split, lane_stride=None, id=None, span=None", "tpush_to_aiv"),
    ("tile, axis1, axis2, tmp=None, span=None", "transpose"),
    ("diagonal, shape, valid_shape=None, dtype=INT32, upper=False, span=None", "tri"),
    ("tile, indices, value, span=None", "write"),
)
"""`pypto.ir.op.tile.<name>`"""

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
    ("*, core_type='mix', span=None", "syncall"),
    ("core_type, gm_workspace, used_cores=None, *, span=None", "syncall_soft"),
    ("tile, span=None, *, split=None, id=None", "tfree_to_aic tfree_to_aiv"),
    ("*, result_type=None, shape=None, dtype=None, split=0, lane_stride=None, id=None, span=None", "tpop_from_aic"),
    ("*, result_type=None, shape=None, dtype=None, split=0, id=None, span=None", "tpop_from_aiv"),
    ("tile, *, split, id=None, span=None", "tpush_to_aic"),
    ("tile, *, split, lane_stride=None, id=None, span=None", "tpush_to_aiv"),
)
"""`pypto.ir.op.system.<name>`"""

ARRAY: Groups = (
    ("extent, dtype, span=None", "create"),
    ("array, index, span=None", "get_element"),
    ("array, index, value, span=None", "update_element"),
)
"""`pypto.ir.op.array.<name>`"""
