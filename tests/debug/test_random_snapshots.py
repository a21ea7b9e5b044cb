"""Values stay what they were when they were made, in random kernels full of writes, views, carries and branches.

Run more of them with `PYPTO_RANDOM_SNAPSHOTS=2000`.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

import pytest_pypto.pypto.language as pl
from pytest_pypto.pypto.debug import run_oracle

from .snapshots import Kernel

COUNT = int(os.environ.get("PYPTO_RANDOM_SNAPSHOTS", "40"))


@pytest.mark.parametrize("space", ["tensor", "tile"])
@pytest.mark.parametrize("seed", range(COUNT))
def test_old_values_stay(seed: int, space: str) -> None:
    kernel = Kernel(seed, space)
    text = kernel.text()
    g = np.random.default_rng(seed)
    a, b = (g.integers(-9, 9, (4, 4)).astype(np.float32) for _ in range(2))
    node = pl.parse(text)
    for k in (0, 1):
        out = torch.full((12, 4), -7.0)
        run_oracle(node, [torch.from_numpy(a.copy()), torch.from_numpy(b.copy()), k, out])
        np.testing.assert_array_equal(out.numpy(), kernel.run(a, b, k), text)
