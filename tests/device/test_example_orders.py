"""The examples give the same bytes in twenty random orders on both platforms."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_examples_in_twenty_random_orders(tmp_path: Path) -> None:
    """A session of its own, so that nothing of it stays behind here."""
    call = [
        sys.executable,
        "-m",
        "pytest",
        "examples",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "tests.device.order_plugin",
    ]
    call += ["--pypto-platform=a2a3sim,a5sim", f"--basetemp={tmp_path / 'inner'}"]
    inner = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "PYPTO_"))}
    done = subprocess.run(call, cwd=ROOT, env=inner, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    (count,) = re.findall(r"repeated runs: (\d+)", done.stdout)
    assert int(count) >= 20 * 40
