"""Random chains of operators: values and regions are those of a numpy reading that never sees padding.

Run more of them with `PYPTO_RANDOM_CHAINS=2000`.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from pytest_pypto.pypto.debug import run_oracle

from .arrays import close, to_numpy
from .build import region
from .chains import Chain

COUNT = int(os.environ.get("PYPTO_RANDOM_CHAINS", "40"))


@pytest.mark.parametrize("space", ["tensor", "tile"])
@pytest.mark.parametrize("seed", range(COUNT))
def test_chain(seed: int, space: str) -> None:
    chain = Chain(seed, space)
    f = chain.build()
    result = run_oracle(f, chain.args, check_shapes=True)
    want = chain.values[-1].part
    text = "\n".join(chain.lines)
    assert region(result) == want.shape, text
    have = to_numpy(result, chain.dtype)[tuple(slice(0, n) for n in want.shape)]
    np.testing.assert_equal(have.shape, want.shape)
    close(have, want, chain.dtype)
