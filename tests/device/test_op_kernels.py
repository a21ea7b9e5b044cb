"""Every one-operator kernel of the kit runs on both platforms, with the numbers that numpy gives."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ..kit import KIT, needs_kit
from .texts import host, kinds, run, write

Array = np.ndarray[Any, Any]
ROOT = KIT / "op_kernels"
NUMPY = {"FP32": np.float32, "FP16": np.float16, "INT32": np.int32, "INT16": np.int16, "INT8": np.int8}
K = 3
"""Value of the index argument."""


def odd(x: Array) -> Array:
    low = np.floor(x)
    return np.where((low == x) | (low % 2 == 1), low, low + 1)


def away(x: Array) -> Array:
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


def rows(x: Array) -> Array:
    return x.sum(axis=1, keepdims=True, dtype=np.float64).astype(np.float32)


def cols(x: Array) -> Array:
    return x.sum(axis=0, keepdims=True, dtype=np.float64).astype(np.float32)


def put(x: Array, where: Any, value: Any) -> Array:
    out = x.copy()
    out[where] = value
    return out


def filled(a: Array, value: float) -> Array:
    out = np.full_like(a, value)
    out[:K, :20] = a[:K, :20]
    return out


WANTED: dict[str, Callable[[Array, Array, Any], Array]] = {
    "abs": lambda a, b, s: np.abs(a),
    "add": lambda a, b, s: a + b,
    "addc": lambda a, b, s: a + b + a,
    "addsc": lambda a, b, s: a + 2 + b,
    "and": lambda a, b, s: a & b,
    "ands": lambda a, b, s: a & 3,
    "assemble_dyn": lambda a, b, s: put(a, slice(K, K + 8), b[:8]),
    "cast_ceil": lambda a, b, s: np.ceil(a),
    "cast_h": lambda a, b, s: a.astype(np.float16),
    "cast_none": lambda a, b, s: np.rint(a),
    "cast_odd": lambda a, b, s: odd(a),
    "cast_round": lambda a, b, s: away(a),
    "cast_trunc": lambda a, b, s: np.trunc(a),
    "ci": lambda a, b, s: 4 + np.arange(32)[None, :],
    "cmp": lambda a, b, s: np.maximum(a, b),
    "cmps": lambda a, b, s: np.where(a != 0.5, a, 7),
    "col_argmax": lambda a, b, s: a.argmax(axis=0)[None, :],
    "col_expand": lambda a, b, s: np.broadcast_to(cols(b), a.shape),
    "col_expand_add": lambda a, b, s: a + cols(b),
    "col_expand_div": lambda a, b, s: a / cols(b),
    "col_expand_max": lambda a, b, s: np.maximum(a, cols(b)),
    "col_expand_min": lambda a, b, s: np.minimum(a, cols(b)),
    "col_expand_mul": lambda a, b, s: a * cols(b),
    "col_max": lambda a, b, s: a.max(axis=0, keepdims=True),
    "col_min": lambda a, b, s: a.min(axis=0, keepdims=True),
    "col_prod": lambda a, b, s: a.prod(axis=0, keepdims=True),
    "col_sum_tmp": lambda a, b, s: cols(a),
    "concat": lambda a, b, s: np.concatenate([a, b], axis=1),
    "div": lambda a, b, s: a / b,
    "exp": lambda a, b, s: np.exp(a),
    "exp_hp": lambda a, b, s: np.log(a),
    "fillpad": lambda a, b, s: filled(a, np.inf),
    "fillpad_inplace": lambda a, b, s: filled(a, 0),
    "fmod": lambda a, b, s: np.fmod(a, b),
    "fmods": lambda a, b, s: np.fmod(a, np.float32(3)),
    "gather": lambda a, b, s: a.reshape(-1)[away(b).astype(int)],
    "gather_mask": lambda a, b, s: a[:, ::2],
    "i8": lambda a, b, s: np.clip(away(a.astype(np.float16).astype(np.float32)), -128, 127),
    "log": lambda a, b, s: np.log(a),
    "lrelu": lambda a, b, s: np.where(a > 0, a, 3 * a),
    "maximum": lambda a, b, s: np.maximum(a, b),
    "minimum": lambda a, b, s: np.minimum(a, b),
    "minimums": lambda a, b, s: np.minimum(a, 3),
    "move_vec": lambda a, b, s: a,
    "mul": lambda a, b, s: a * b,
    "muls": lambda a, b, s: a * 3,
    "muls_dyn": lambda a, b, s: a * np.float32(s),
    "not": lambda a, b, s: ~a,
    "or": lambda a, b, s: a | b,
    "ors": lambda a, b, s: a | 3,
    "part_max": lambda a, b, s: np.maximum(a, b),
    "part_min": lambda a, b, s: np.minimum(a, b),
    "part_mul": lambda a, b, s: a * b,
    "recip": lambda a, b, s: 1 / a,
    "reinterpret": lambda a, b, s: a.view(np.int32),
    "relu": lambda a, b, s: np.maximum(a, 0),
    "rems": lambda a, b, s: a - np.floor(a / np.float32(3)) * np.float32(3),
    "reshape": lambda a, b, s: a.reshape(32, 16),
    "row_argmax": lambda a, b, s: a.argmax(axis=1)[:, None],
    "row_expand": lambda a, b, s: np.broadcast_to(rows(b), a.shape),
    "row_expand_add": lambda a, b, s: a + rows(b),
    "row_expand_div": lambda a, b, s: a / rows(b),
    "row_expand_max": lambda a, b, s: np.maximum(a, rows(b)),
    "row_expand_min": lambda a, b, s: np.minimum(a, rows(b)),
    "row_expand_mul": lambda a, b, s: a * rows(b),
    "row_max": lambda a, b, s: a.max(axis=1, keepdims=True),
    "row_min": lambda a, b, s: a.min(axis=1, keepdims=True),
    "row_prod": lambda a, b, s: a.prod(axis=1, keepdims=True),
    "rsqrt": lambda a, b, s: 1 / np.sqrt(a),
    "rw": lambda a, b, s: put(a, (0, 3), a[1, 2]),
    "setvalid": lambda a, b, s: put(np.full_like(a, -7), np.s_[:K, :16], a[:K, :16]),
    "shls": lambda a, b, s: a << 3,
    "shr": lambda a, b, s: np.where((b >= 0) & (b < 32), a >> np.clip(b, 0, 31), a >> 31),
    "shrs": lambda a, b, s: a >> 3,
    "slice_dyn": lambda a, b, s: a[K : K + 8, :16],
    "slice_exp": lambda a, b, s: np.exp(a[K : K + 8, :16]),
    "sqrt": lambda a, b, s: np.sqrt(a),
    "sub": lambda a, b, s: a - b,
    "subc": lambda a, b, s: a - b - a,
    "subs": lambda a, b, s: a - 3,
    "transpose": lambda a, b, s: a.T,
    "transpose16": lambda a, b, s: a.T,
    "trw": lambda a, b, s: put(a, (0, 3), b[1, K]),
    "xors": lambda a, b, s: a ^ 3,
}
POSITIVE = {"log", "exp_hp", "sqrt", "rsqrt", "recip", "div", "col_expand_div", "row_expand_div", "fmod"}


def parameters(name: str) -> list[tuple[str, str, tuple[int, ...] | None, bool]]:
    """(name, element type, shape or None, out) of the kernel in program.py."""
    head = (ROOT / name / "program.py").read_text().split("def kern(")[1].split("->")[0].strip()
    signature = ast.parse(f"def kern({head}: ...").body[0]
    assert isinstance(signature, ast.FunctionDef)
    found = []
    for arg in signature.args.args[1:]:
        text = ast.unparse(arg.annotation or ast.Constant(""))
        dtype = re.findall(r"pl\.([A-Z]+\d+|INDEX)", text)[0]
        shape = re.search(r"\[\[([\d, ]+)\]", text)
        found.append((arg.arg, dtype, tuple(map(int, shape[1].split(","))) if shape else None, "Out" in text))
    return found


def artifact(folder: Path, name: str, platform: str) -> Path:
    """An artifact with the kit's kernel and a host program that calls it once."""
    params, dirs, kernel = [], [], []
    for n, dtype, shape, out in parameters(name):
        text = f"pl.Scalar[pl.{dtype}]" if shape is None else f"pl.Tensor[{list(shape)}, pl.{dtype}]"
        params.append(f"{n}: pl.Out[{text}]" if out else f"{n}: {text}")
        dirs.append("scalar" if shape is None else "output_existing" if out else "input")
        kernel.append(n)
    result = re.sub(r".*pl\.Out\[(.*)\]$", r"\1", params[-1])
    declared = (
        "    @pl.function(type=pl.FunctionType.AIV, level=pl.Level.AIV, role=pl.Role.SubWorker)\n"
        f"    def kern({', '.join(params)}) -> {result}:\n        ...\n"
    )
    listed = ", ".join(f"pl.adir.{d}" for d in dirs)
    body = f'self.kern({", ".join(kernel)}, attrs={{"arg_directions": [{listed}]}})'
    text = (ROOT / name / f"{platform}.pto").read_text()
    return write(folder, host(", ".join(params), body, declared), kern=text)


def test_every_kernel_has_an_expectation() -> None:
    if not ROOT.is_dir():
        pytest.skip("the compatibility kit is not beside this checkout (../shared/compat)")
    assert {p.name for p in ROOT.iterdir() if p.is_dir()} - set(WANTED) == {"atomic"}


@needs_kit
@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@pytest.mark.parametrize("name", sorted(WANTED))
def test_numbers(name: str, platform: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    args: list[Any] = []
    named: dict[str, Any] = {}
    for n, dtype, shape, out in parameters(name):
        kind = NUMPY.get(dtype)
        if shape is None:
            value: Any = K if dtype == "INDEX" else 2 if dtype.startswith("INT") else 1.75
        elif out:
            value = np.full(shape, -7, kind)
        elif np.issubdtype(kind, np.integer):
            value = rng.integers(-50, 50, shape).astype(kind)
        else:
            value = (rng.uniform(0.5, 4, shape) if name in POSITIVE else 3 * rng.standard_normal(shape)).astype(kind)
            if name in ("cast_round", "cast_none", "cast_odd", "cast_ceil", "cast_trunc"):
                value = (np.round(value * 2) / 2).astype(kind)  # many ties
            if name == "gather" and n == "b":
                value = rng.integers(0, 512, shape).astype(kind)
            if name == "cmps":
                value = put(value, (slice(0, 4), 3), 0.5)
        named[n] = value.copy() if isinstance(value, np.ndarray) else value
        args.append(value)
    result = run(artifact(tmp_path, name, platform), *args)
    assert kinds(result, "error") == []
    with np.errstate(all="ignore"):
        wanted = WANTED[name](named["a"], named.get("b"), named["s"])
    res = args[-1]
    exact = not np.issubdtype(res.dtype, np.floating)
    np.testing.assert_allclose(
        res.astype(np.float64),
        np.asarray(wanted).astype(np.float64),
        rtol=0 if exact else 3e-6,
        atol=0 if exact else 1e-5,
    )


@needs_kit
@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
def test_atomic_add(platform: str, tmp_path: Path) -> None:
    a = np.arange(512, dtype=np.float32).reshape(16, 32)
    res = np.full((16, 32), 100, np.float32)
    folder = artifact(tmp_path, "atomic", platform)
    text = (folder / "kernels" / "kern.pto").read_text()
    run(folder, a, 1.0, K, res)
    np.testing.assert_array_equal(res, a + 100 if "atomic_add" in text else a)
