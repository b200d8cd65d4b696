"""The main figures of a report as numbers, for programs: shares between 0 and 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fim_server.evaluation.reporting.measured import Measured
from fim_server.evaluation.reporting.statistics import Estimate, mcnemar, mean, paired_difference, proportion
from fim_server.evaluation.reporting.tables.pairs import compared


def estimates(data: Measured) -> dict[str, Any]:
    """The main figures as numbers, for programs: shares between 0 and 1."""

    def plain(estimate: Estimate) -> dict[str, Any]:
        return {"value": estimate.value, "low": estimate.low, "high": estimate.high, "samples": estimate.count}

    found: dict[str, Any] = {}
    for name, mask in data.groups():
        modes: dict[str, Any] = {}
        for mode, columns in data.modes.items():
            kept = columns.present & mask
            modes[mode] = {
                "success": plain(proportion(columns.success[kept])),
                "exact_match": plain(mean(columns.exact[kept], data.clusters_of(kept))),
                "edit_similarity": plain(mean(columns.edit[kept], data.clusters_of(kept))),
            }
        pairs = []
        for first, second in compared(data):
            kept, missing = data.pairs((first, second), mask)
            one, two = data.modes[first], data.modes[second]
            test = mcnemar(one.success[kept], two.success[kept])
            gained = paired_difference(one.success[kept], two.success[kept], data.clusters_of(kept))
            pairs.append(
                {
                    "first": first,
                    "second": second,
                    "pairs": int(kept.sum()),
                    "left_out": missing,
                    "success": {**plain(gained), "method": gained.method},
                    "only_first": test.only_first,
                    "only_second": test.only_second,
                    "mcnemar_p": test.p,
                }
            )
        found[name] = {"modes": modes, "differences": pairs}
    return found


def finite(value: Any) -> Any:
    """Return the value with null for every NaN, which JSON lacks."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [finite(inner) for inner in value]
    return value
