"""The tail of a Qwen3 decoder layer in decode: output projection, residual, RMS norm, gated MLP, residual."""

from __future__ import annotations

import pypto.language as pl
import pytest

BATCH, HIDDEN, INTERMEDIATE = 16, 512, 1024
BLOCK = 64
EPS = 1e-6


def decode_tail(split: pl.SplitMode):
    @pl.program
    class DecodeTail:
        @pl.function
        def scope3(
            self,
            attn_out: pl.Tensor[[BATCH, HIDDEN], pl.BF16],
            hidden_states: pl.Tensor[[BATCH, HIDDEN], pl.BF16],
            wo: pl.Tensor[[HIDDEN, HIDDEN], pl.BF16],
            post_rms_weight: pl.Tensor[[1, HIDDEN], pl.FP32],
            w_gate: pl.Tensor[[HIDDEN, INTERMEDIATE], pl.BF16],
            w_up: pl.Tensor[[HIDDEN, INTERMEDIATE], pl.BF16],
            w_down: pl.Tensor[[INTERMEDIATE, HIDDEN], pl.BF16],
            out: pl.Out[pl.Tensor[[BATCH, HIDDEN], pl.BF16]],
        ) -> pl.Tensor[[BATCH, HIDDEN], pl.BF16]:
            residual = pl.create_tensor([BATCH, HIDDEN], dtype=pl.FP32)
            for i in pl.range(HIDDEN // BLOCK):
                col = i * BLOCK
                with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(split)], name_hint="output_projection"):
                    projected = pl.matmul(attn_out, pl.slice(wo, [HIDDEN, BLOCK], [0, col]), out_dtype=pl.FP32)
                    hidden = pl.cast(pl.slice(hidden_states, [BATCH, BLOCK], [0, col]), pl.FP32)
                    residual = pl.assemble(residual, pl.add(projected, hidden), [0, col])

            normed = pl.create_tensor([BATCH, HIDDEN], dtype=pl.BF16)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="rms_norm"):
                mean = pl.mul(pl.row_sum(pl.mul(residual, residual)), 1.0 / HIDDEN)
                scale = pl.rsqrt(pl.add(mean, EPS))
                weighted = pl.col_expand_mul(pl.row_expand_mul(residual, scale), post_rms_weight)
                normed = pl.assemble(normed, pl.cast(weighted, pl.BF16), [0, 0])

            mlp = pl.create_tensor([BATCH, INTERMEDIATE], dtype=pl.BF16)
            for i in pl.range(INTERMEDIATE // BLOCK):
                col = i * BLOCK
                with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(split)], name_hint="gate_up"):
                    gate = pl.matmul(normed, pl.slice(w_gate, [HIDDEN, BLOCK], [0, col]), out_dtype=pl.FP32)
                    up = pl.matmul(normed, pl.slice(w_up, [HIDDEN, BLOCK], [0, col]), out_dtype=pl.FP32)
                    sigmoid = pl.recip(pl.add(pl.exp(pl.neg(gate)), 1.0))
                    mlp = pl.assemble(mlp, pl.cast(pl.mul(pl.mul(gate, sigmoid), up), pl.BF16), [0, col])

            for i in pl.range(HIDDEN // BLOCK):
                col = i * BLOCK
                with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(split)], name_hint="down_projection"):
                    down = pl.matmul(mlp, pl.slice(w_down, [INTERMEDIATE, BLOCK], [0, col]), out_dtype=pl.FP32)
                    kept = pl.slice(residual, [BATCH, BLOCK], [0, col])
                    out = pl.assemble(out, pl.cast(pl.add(down, kept), pl.BF16), [0, col])
            return out

    return DecodeTail


def reference(t):
    import torch

    o_proj = torch.matmul(t["attn_out"].float(), t["wo"].float())
    residual = o_proj + t["hidden_states"].float()
    inv_rms = torch.rsqrt(residual.pow(2).mean(dim=-1, keepdim=True) + EPS)
    normed = (residual * inv_rms * t["post_rms_weight"]).bfloat16()
    gate = torch.matmul(normed.float(), t["w_gate"].float())
    up = torch.matmul(normed.float(), t["w_up"].float())
    mlp = (gate * torch.sigmoid(gate) * up).bfloat16()
    down = torch.matmul(mlp.float(), t["w_down"].float())
    t["out"][:] = (down + residual).bfloat16()


def model_inputs():
    """Weights and activations scaled like those of a trained layer."""
    import torch

    g = torch.Generator().manual_seed(42)

    def normal(*shape, fan_in, dtype=torch.bfloat16):
        return (torch.randn(*shape, generator=g) / fan_in**0.5).to(dtype)

    return {
        "attn_out": normal(BATCH, HIDDEN, fan_in=HIDDEN),
        "hidden_states": normal(BATCH, HIDDEN, fan_in=HIDDEN),
        "wo": normal(HIDDEN, HIDDEN, fan_in=HIDDEN),
        "post_rms_weight": normal(1, HIDDEN, fan_in=HIDDEN, dtype=torch.float32),
        "w_gate": normal(HIDDEN, INTERMEDIATE, fan_in=INTERMEDIATE),
        "w_up": normal(HIDDEN, INTERMEDIATE, fan_in=INTERMEDIATE),
        "w_down": normal(INTERMEDIATE, HIDDEN, fan_in=INTERMEDIATE),
        "out": torch.zeros(BATCH, HIDDEN, dtype=torch.bfloat16),
    }


@pytest.mark.pypto_platform("a2a3sim", "a5sim")
@pytest.mark.pypto_split("UP_DOWN")
@pytest.mark.pypto_direction("C2V")
def test_decode_tail(pypto_split, pypto_compile, pypto_golden, pypto_check):
    compiled = pypto_compile(decode_tail(pypto_split))
    inputs = model_inputs()
    pypto_check(compiled, inputs, pypto_golden(reference, inputs), rtol=5e-2, atol=5e-2)


@pytest.mark.pypto_platform("a2a3sim", "a5sim")
def test_every_way_of_validation(pypto_config, tmp_path):
    """The three ways of the debugging guide: the program, the program after all passes, every pass dump."""
    import torch
    from pypto import ir
    from pypto.backend import reset_for_testing, set_backend_type
    from pypto.debug import torch_codegen, validate_pass_ir_codegen_results
    from pypto.ir.pass_manager import OptimizationStrategy, PassManager

    program = decode_tail(pl.SplitMode.UP_DOWN)
    inputs = model_inputs()
    expected = {name: tensor.clone() for name, tensor in inputs.items()}
    reference(expected)

    def run(code):
        space: dict = {}
        exec(code, space)
        got = {name: tensor.clone() for name, tensor in inputs.items()}
        space["scope3"](*got.values())
        torch.testing.assert_close(got["out"], expected["out"], rtol=5e-2, atol=5e-2)

    run(torch_codegen(program, check_shapes=True))

    reset_for_testing()
    set_backend_type(pypto_config.arch)
    transformed = PassManager.get_strategy(OptimizationStrategy.Default).run_passes(program)
    lowered = torch_codegen(transformed, check_shapes=True)
    reset_for_testing()
    assert "_cross_core_rt.push_to_" in lowered
    assert "_cross_core_rt.pop_from_" in lowered
    run(lowered)

    compiled = ir.compile(program, platform=pypto_config.platform, output_dir=str(tmp_path / "build"), skip_ptoas=True)
    validate_pass_ir_codegen_results(str(tmp_path / "build" / "passes_dump"), inputs, {"out": expected["out"]})
    compiled.validate_ir(inputs, {"out": expected["out"]})
