"""A constraint whose matcher could not be made says so, and nothing else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

import numpy as np
import pytest

from fim_server.decoding.loop.constraint import Constraint
from fim_server.errors import StoppedError


def test_a_mask_that_was_asked_for_does_not_hide_why_there_is_no_matcher() -> None:
    def stopped() -> NoReturn:
        raise StoppedError("stopped")

    with ThreadPoolExecutor(1) as worker:
        constraint = Constraint(stopped, np.zeros(1, np.uint32), worker)
        constraint.prefetch(1.0)
        with pytest.raises(StoppedError):
            constraint.mask()
        constraint.close()
