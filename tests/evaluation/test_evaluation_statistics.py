"""Intervals, tests and fits against textbook figures, scipy's own, and plain twins."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("scipy", reason="the extra `eval` is not installed")

from scipy import stats

from fim_server.evaluation.reporting.statistics import (
    FEW_KINDS,
    line_fit,
    mcnemar,
    mean,
    paired_difference,
    pass_at_1,
    percentiles,
    power_fit,
    wilson,
)


@pytest.mark.parametrize(
    ("successes", "count", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_is_newcombes(successes: int, count: int, low: float, high: float) -> None:
    """Newcombe, Two-sided confidence intervals for the single proportion (1998), table I, method 3."""
    found = wilson(successes, count)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)
    assert found.value == successes / count


def test_wilson_is_its_formula() -> None:
    """Wilson 1927: the rates that a test at the normal quantile z would not refuse."""
    z = 1.959963984540054
    for count in (1, 2, 7, 100, 12_345):
        for successes in {0, 1, count // 3, count - 1, count}:
            rate = successes / count
            middle = (rate + z * z / (2 * count)) / (1 + z * z / count)
            half = z / (1 + z * z / count) * math.sqrt(rate * (1 - rate) / count + z * z / (4 * count * count))
            found = wilson(successes, count)
            assert (found.low, found.high) == pytest.approx((middle - half, middle + half), abs=1e-14)


def test_wilson_of_nothing_and_of_nonsense() -> None:
    found = wilson(0, 0)
    assert math.isnan(found.value)
    assert math.isnan(found.low)
    assert found.count == 0
    assert wilson(5, 5).high == 1.0
    assert wilson(5, 5).low < 1.0  # all of five is no proof of all
    for successes in (-1, 6):
        with pytest.raises(ValueError, match="successes of 5"):
            wilson(successes, 5)


def exact_mcnemar(only_first: int, only_second: int) -> Fraction:
    """Twice the smaller tail of a fair coin, at most 1."""
    thrown, fewer = only_first + only_second, min(only_first, only_second)
    tail = sum(math.comb(thrown, heads) for heads in range(fewer + 1))
    return min(Fraction(2 * tail, 2**thrown), Fraction(1))


def test_mcnemar_by_hand() -> None:
    first = [True] * 8 + [False] * 1 + [True] * 20 + [False] * 5
    second = [False] * 8 + [True] * 1 + [True] * 20 + [False] * 5
    found = mcnemar(first, second)
    assert (found.only_first, found.only_second) == (8, 1)
    assert found.p == pytest.approx(0.0390625)  # 2 * (C(9,0) + C(9,1)) / 2**9


def test_mcnemar_is_its_plain_twin() -> None:
    for only_first in range(12):
        for only_second in range(12):
            first = [True] * only_first + [False] * only_second + [True, False]
            second = [False] * only_first + [True] * only_second + [True, False]
            found = mcnemar(first, second)
            assert found.p == pytest.approx(float(exact_mcnemar(only_first, only_second)))
    assert mcnemar([], []).p == 1.0
    with pytest.raises(ValueError, match="same samples"):
        mcnemar([True], [True, False])


def plain_bootstrap(values: list[float], files: list[int], resamples: int, seed: int) -> tuple[float, float]:
    """Whole files drawn one by one, in plain Python."""
    random_ = random.Random(seed)
    by_file: dict[int, list[float]] = {}
    for value, file in zip(values, files, strict=True):
        by_file.setdefault(file, []).append(value)
    pool = list(by_file.values())
    means = []
    for _ in range(resamples):
        drawn = [value for _ in pool for value in random_.choice(pool)]
        means.append(sum(drawn) / len(drawn))
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


@pytest.mark.parametrize("kinds", ["few", "many"])
@pytest.mark.parametrize("clustered", [False, True])
def test_bootstrap_is_its_plain_twin(kinds: str, clustered: bool) -> None:
    random_ = random.Random(5)
    count = 120
    files = [random_.randrange(30) for _ in range(count)] if clustered else list(range(count))
    level = {file: random_.choice((0.2, 0.9)) for file in set(files)}
    draws = [random_.random() for _ in range(count)]
    values = [
        float(draw < level[file]) if kinds == "few" else draw + level[file]
        for draw, file in zip(draws, files, strict=True)
    ]
    found = mean(values, files if clustered else None)
    low, high = plain_bootstrap(values, files, 4_000, 1)
    assert found.method == ("bootstrap of files" if clustered else "bootstrap of samples")
    assert found.value == pytest.approx(sum(values) / count)
    error = (high - low) * 0.06  # of an end from 4,000 resamples, some three times over
    assert (found.low, found.high) == pytest.approx((low, high), abs=error)


def test_bootstrap_is_scipys() -> None:
    values = np.random.default_rng(3).gamma(2.0, size=90)
    expected = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=9_999, rng=np.random.default_rng(1))
    found = mean(values)
    width = expected.confidence_interval.high - expected.confidence_interval.low
    assert found.low == pytest.approx(expected.confidence_interval.low, abs=0.04 * width)
    assert found.high == pytest.approx(expected.confidence_interval.high, abs=0.04 * width)


def test_both_ways_to_draw_agree() -> None:
    """Counts of kinds and single indices: the same distribution. Values a hair apart force the second way."""
    random_ = np.random.default_rng(8)
    values = (random_.random(400) < 0.3).astype(float)
    apart = values + np.arange(400) * 1e-9
    assert len(np.unique(values)) <= FEW_KINDS < len(np.unique(apart))
    one, two = mean(values), mean(apart)
    assert (one.low, one.high) == pytest.approx((two.low, two.high), abs=0.006)


def test_files_of_equal_samples_count_as_one() -> None:
    """Ten copies of each value tell no more than one: the interval of files is that of the values alone."""
    values = np.random.default_rng(2).random(100)
    copied, files = np.repeat(values, 10), np.repeat(np.arange(100), 10)
    alone, by_file, by_sample = mean(values), mean(copied, files), mean(copied)
    assert by_file.high - by_file.low == pytest.approx(alone.high - alone.low, rel=0.05)
    assert by_sample.high - by_sample.low == pytest.approx((alone.high - alone.low) / math.sqrt(10), rel=0.1)


def test_paired_difference() -> None:
    first, second = [1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0]
    found = paired_difference(first, second)
    assert found.value == 0.5
    assert found.low < 0.5 < found.high
    assert paired_difference(first, second) == found  # seeded
    assert paired_difference(first, second, seed=1).value == 0.5
    same = paired_difference(first, first)
    assert (same.value, same.low, same.high) == (0.0, 0.0, 0.0)
    assert paired_difference([1.0] * 50, [0.0] * 50).low > 0
    with pytest.raises(ValueError, match="same samples"):
        paired_difference([1.0], [])
    with pytest.raises(ValueError, match="clusters"):
        mean([1.0, 2.0], [1])
    assert paired_difference([], []).count == 0


def test_pairing_is_kept() -> None:
    """Two modes that agree on all but one sample differ by little, however much the samples vary."""
    hard = np.random.default_rng(4).random(1_000) < 0.5
    better = hard.copy()
    better[np.flatnonzero(~hard)[0]] = True
    found = paired_difference(better, hard)
    assert found.value == pytest.approx(0.001)
    assert found.high < 0.006  # unpaired, it would be some 0.044


def test_line_of_anscombe() -> None:
    """Anscombe, Graphs in Statistical Analysis (1973), the first set."""
    x = [10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5]
    y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68]
    fit = line_fit(x, y)
    assert fit is not None
    assert fit.parameters == pytest.approx((0.5001, 3.0001), abs=1e-4)
    assert fit.r_squared == pytest.approx(0.6665, abs=1e-4)
    assert fit.count == 11
    assert fit.parameters == pytest.approx(tuple(np.polyfit(x, y, 1)))


def test_power_law() -> None:
    x = np.array([1.0, 2.0, 5.0, 40.0])
    fit = power_fit(x, 3 * x**1.5)
    assert fit is not None
    assert fit.parameters == pytest.approx((3.0, 1.5))
    assert fit.r_squared == pytest.approx(1.0)
    assert fit.at([4.0]) == pytest.approx([24.0])
    noisy = np.array([1.0, 2.5, 5.0, 90.0])
    found = power_fit(x, noisy)
    slope, intercept = np.polyfit(np.log(x), np.log(noisy), 1)
    assert found is not None
    assert found.parameters == pytest.approx((math.exp(intercept), slope))


def test_fits_leave_out_what_is_none() -> None:
    fit = line_fit([0, 1, 2, math.nan, 7], [1, 3, 5, 2, math.inf])
    assert fit is not None
    assert fit.parameters == pytest.approx((2.0, 1.0))
    assert fit.count == 3
    positive = power_fit([0, 1, 2, 4], [5, 1, 2, 4])
    assert positive is not None
    assert positive.count == 3
    assert line_fit([], []) is None
    assert line_fit([3, 3], [1, 2]) is None
    assert power_fit([0, -1], [1, 2]) is None
    flat = line_fit([1, 2, 3], [4, 4, 4])
    assert flat is not None
    assert flat.r_squared == 1.0
    with pytest.raises(ValueError, match="beside"):
        line_fit([1], [1, 2])


def test_percentiles_are_measured_values() -> None:
    values = [35, 20, 15, 50, 40, math.nan]
    assert percentiles(values, (0.05, 0.3, 0.4, 0.5, 1.0)) == [15, 20, 20, 35, 50]
    assert all(math.isnan(value) for value in percentiles([]))


def test_percentiles_are_their_plain_twins() -> None:
    random_ = random.Random(5)
    for _ in range(500):
        values = [random_.choice((random_.random(), 0.5)) for _ in range(random_.randrange(1, 60))]
        for share in (0.01, 0.05, 0.5, 0.9, 0.95, 0.99, 1.0):
            assert percentiles(values, (share,)) == [sorted(values)[max(math.ceil(share * len(values)), 1) - 1]]


def test_pass_at_1() -> None:
    assert pass_at_1([True, False, True, True]) == wilson(3, 4)
    assert pass_at_1([True, False], [0, 1]).method == "bootstrap of files"
