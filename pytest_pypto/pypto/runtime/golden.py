"""`golden.py` beside an artifact: inputs, the expected outputs, and the comparison."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from .specs import ScalarSpec, TensorSpec

SHOWN = 20


def load_golden(work_dir: Path) -> ModuleType:
    """Import the `golden.py` of an artifact. This is the user's own code: it runs.

    Raises:
        FileNotFoundError: there is none.
    """
    path = work_dir / "golden.py"
    if not path.is_file():
        raise FileNotFoundError(f"{work_dir} has no golden.py; write one with write_golden(), or do not validate")
    name = f"_pypto_golden_{abs(hash(str(path)))}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        sys.modules.pop(name, None)
    return module


def output_names(golden: ModuleType, names: Sequence[str]) -> list[str]:
    """What is compared: `__outputs__`, else the names that start with `out`."""
    listed = getattr(golden, "__outputs__", None)
    return list(listed) if listed is not None else [n for n in names if n.startswith("out")]


def validate_golden(
    outputs: Mapping[str, torch.Tensor], golden: Mapping[str, torch.Tensor], rtol: float, atol: float
) -> None:
    """Compare tensors by name; NaN in the golden means "anything".

    Raises:
        AssertionError: the first output that differs, with up to 20 elements.
    """
    for name, want in golden.items():
        have = outputs[name]
        if have.shape != want.shape:
            raise AssertionError(
                f"Output '{name}' does not match golden.\nshape {list(have.shape)}, expected {list(want.shape)}"
            )
        close = torch.isclose(have.double(), want.double(), rtol=rtol, atol=atol) | want.double().isnan()
        wrong = (~close).flatten().nonzero().flatten()
        if wrong.numel():
            raise AssertionError(_difference(name, have, want, wrong, rtol, atol))


def _difference(
    name: str, have: torch.Tensor, want: torch.Tensor, wrong: torch.Tensor, rtol: float, atol: float
) -> str:
    shown = wrong[:SHOWN].tolist()
    rows = [f"  [{i}] actual={have.flatten()[i].item()!r}, expected={want.flatten()[i].item()!r}" for i in shown]
    head = [
        f"Output '{name}' does not match golden.",
        f"Mismatched elements: {wrong.numel()}/{want.numel()}",
        f"rtol={rtol}, atol={atol}",
        f"First {len(shown)} mismatches:",
    ]
    return "\n".join([*head, *rows])


_TEMPLATE = '''\
"""Inputs and expected outputs of this artifact."""

from pathlib import Path

import torch

__outputs__ = {outputs!r}
RTOL = {rtol!r}
ATOL = {atol!r}
_DATA_DIR = Path({data!r})


def generate_inputs(params):
    """(name, value) pairs: tensors, then scalars."""
    import ctypes

    tensors = [(name, torch.load(_DATA_DIR / "in" / f"{{name}}.pt")) for name in {tensors!r}]
    return tensors + [{scalars}]


{function}

def compute_golden(tensors, params):
    """Write the expected outputs into `tensors`."""
    {name}(tensors, params)
'''


def write_golden(
    tensor_specs: Sequence[TensorSpec],
    golden_fn: Callable[..., Any],
    output_path: str | Path,
    rtol: float = 1e-5,
    atol: float = 1e-5,
    scalar_specs: Sequence[ScalarSpec] | None = None,
    data_dir: str | Path | None = None,
) -> None:
    """Write `golden.py` with the source of `golden_fn`, and its input tensors below `data/in`.

    A complete `data_dir` is used as it is.

    Raises:
        OSError: the source of `golden_fn` cannot be read.
    """
    target = Path(output_path)
    folder = Path(data_dir) if data_dir is not None else target.parent / "data"
    (folder / "in").mkdir(parents=True, exist_ok=True)
    if not all((folder / "in" / f"{s.name}.pt").is_file() for s in tensor_specs):
        for spec in tensor_specs:
            torch.save(spec.create_tensor(), folder / "in" / f"{spec.name}.pt")
    scalars = ", ".join(f"({s.name!r}, ctypes.{type(s.to_ctypes()).__name__}({s.value!r}))" for s in scalar_specs or ())
    text = _TEMPLATE.format(
        outputs=[s.name for s in tensor_specs if s.is_output],
        rtol=rtol,
        atol=atol,
        data=str(folder),
        tensors=[s.name for s in tensor_specs],
        scalars=scalars,
        function=textwrap.dedent(inspect.getsource(golden_fn)),
        name=golden_fn.__name__,
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


def run_golden(work_dir: Path, call: Callable[..., Any], *, validate: bool = True) -> dict[str, torch.Tensor]:
    """Make the inputs of `golden.py`, call the program on them, store what came out, and compare.

    Returns:
        The outputs by name.

    Raises:
        FileNotFoundError: no `golden.py`. AssertionError: the results differ.
    """
    golden = load_golden(work_dir)
    pairs = list(golden.generate_inputs({}))
    tensors = {name: value for name, value in pairs if isinstance(value, torch.Tensor)}
    names = output_names(golden, list(tensors))
    expected = {name: tensor.clone() for name, tensor in tensors.items()}
    if validate:
        golden.compute_golden(expected, {})
    call(*(value for _, value in pairs))
    folder = work_dir / "data" / "actual"
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        torch.save(tensors[name], folder / f"{name}.pt")
    if validate:
        wanted = {name: expected[name] for name in names}
        validate_golden(tensors, wanted, getattr(golden, "RTOL", 1e-5), getattr(golden, "ATOL", 1e-5))
    return {name: tensors[name] for name in names}
