"""What the main job costs, as ratios taken in one run: `python -m pytest_pypto run tests/benchmarks/bench_main_job.py`.

Prints, for the nine cross-core programs and the decoder tail, the time of the oracle over the time of the hand-written
torch golden (the program as written, and after all passes), compile times cold and warm, and what the plugin adds to
1,000 empty tests. Absolute times mean nothing on a shared machine; every line is a ratio of medians of this run.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PLATFORMS = ("a2a3sim", "a5sim")


def example(name: str) -> ModuleType:
    """The example module called `name`."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def seconds(action: Callable[[], Any], repeat: int) -> float:
    """Median wall time of `action`, after one run that does not count."""
    action()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return median(times)


Case = tuple[str, Any, Callable[[dict[str, Any]], None], dict[str, Any]]


def cases() -> Iterator[Case]:
    """Name, program, golden and inputs of the ten programs."""
    import pypto.language as pl
    import torch

    cross, qwen = example("test_cross_core"), example("test_qwen3_decode")
    g = torch.Generator().manual_seed(0)
    shapes: dict[str, dict[str, tuple[int, int]]] = {
        "V2C": {"a": (32, 32), "b": (32, 32), "out": (32, 32)},
        "C2V": {"a": (32, 64), "b": (64, 512), "c": (32, 512)},
        "BIDIR": {"a": (32, 64), "b": (64, 512), "c": (32, 512)},
    }
    for direction, (build, golden) in cross.CASES.items():
        for split in pl.SplitMode:
            inputs = {name: torch.randn(shape, generator=g) for name, shape in shapes[direction].items()}
            yield f"{direction}-{split.name}", build(split), golden, inputs
    yield "decode tail", qwen.decode_tail(pl.SplitMode.UP_DOWN), qwen.reference, qwen.model_inputs()


def lowered(program: Any, platform: str) -> Any:
    """The program after the Default passes."""
    from pypto.backend import reset_for_testing, set_backend_type
    from pypto.ir.pass_manager import OptimizationStrategy, PassManager
    from pypto.runtime import RunConfig

    reset_for_testing()
    set_backend_type(RunConfig(platform=platform).arch)
    try:
        return PassManager.get_strategy(OptimizationStrategy.Default).run_passes(program)
    finally:
        reset_for_testing()


def runner(program: Any, entry: str) -> Callable[[dict[str, Any]], Any]:
    """The oracle's function for `program`."""
    from pypto.debug import torch_codegen

    space: dict[str, Any] = {}
    exec(compile(torch_codegen(program), "<oracle>", "exec"), space)
    return lambda t: space[entry](*t.values())


def oracle_ratios(repeat: int) -> None:
    """Oracle time over golden time."""
    print(f"{'oracle / torch golden':24}" + "".join(f"{w:>12}" for w in ("raw", *PLATFORMS)))
    for name, program, golden, inputs in cases():
        entry = "scope3" if name == "decode tail" else "main"

        def with_clones(call: Callable[[dict[str, Any]], Any], inputs: dict[str, Any] = inputs) -> Callable[[], Any]:
            return lambda: call({k: v.clone() for k, v in inputs.items()})

        base = seconds(with_clones(golden), repeat)
        programs = [program, *(lowered(program, p) for p in PLATFORMS)]
        ratios = [seconds(with_clones(runner(p, entry)), repeat) / base for p in programs]
        print(f"{name:24}" + "".join(f"{r:12.1f}" for r in ratios), flush=True)


def compile_ratios(repeat: int) -> None:
    """Compile time over the time to load the front-end program's text; warm = through the harness's cache."""
    import pypto.language as pl
    from pypto import ir

    print(f"{'compile / loading text':24}{'no dumps':>12}{'with dumps':>12}")
    for name, program, _golden, _inputs in cases():
        with tempfile.TemporaryDirectory() as tmp:
            text = ir.python_print(program)
            base = seconds(lambda text=text: pl.parse(text), repeat)

            def build(dump: bool, program: Any = program, tmp: str = tmp) -> Any:
                out = str(Path(tmp) / f"build{time.perf_counter_ns()}")
                return ir.compile(program, platform="a2a3sim", output_dir=out, dump_passes=dump, skip_ptoas=True)

            ratios = [seconds(lambda d=d: build(d), repeat) / base for d in (False, True)]
        print(f"{name:24}" + "".join(f"{r:12.1f}" for r in ratios), flush=True)


def plugin_ratio(repeat: int, tests: int = 1000) -> None:
    """Session time of empty tests with the plugin over without."""
    with tempfile.TemporaryDirectory() as tmp:
        file = Path(tmp) / "test_empty.py"
        file.write_text(
            f"import pytest\n\n@pytest.mark.parametrize('i', range({tests}))\ndef test_empty(i):\n    pass\n"
        )

        def session(*extra: str) -> Callable[[], Any]:
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *extra, str(file)]
            return lambda: subprocess.run(command, check=True, capture_output=True, cwd=tmp)

        without, with_ = seconds(session("-p", "no:pypto"), repeat), seconds(session(), repeat)
    print(f"{tests} empty tests, with / without the plugin: {with_ / without:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5, help="runs per figure; the median counts (default 5)")
    repeat = parser.parse_args().repeat
    oracle_ratios(repeat)
    compile_ratios(max(1, repeat // 2))
    plugin_ratio(max(1, repeat // 2))


if __name__ == "__main__":
    main()
