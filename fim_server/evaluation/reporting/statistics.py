"""Rates, means, differences and fitted lines, with their uncertainty.

Samples from one file are more alike than samples from different files. Where a function takes ``clusters`` (one
integer a sample, equal within a file), it resamples whole files. This is the cluster bootstrap (Davison and Hinkley,
*Bootstrap Methods and their Application*, section 3.8; Field and Welsh 2007). Without ``clusters`` it resamples
samples. An estimate names its method. All draws are seeded, so figures are reproducible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Floats: TypeAlias = NDArray[np.float64]

CONFIDENCE = 0.95
RESAMPLES = 10_000
SEED = 0

FEW_KINDS = 64
"""Most distinct samples or clusters for which a resample is drawn as counts of each kind.

The distribution is the same, and the cost does not grow with the number of samples.
"""

DRAWS_AT_ONCE = 2_000_000
"""Indices drawn in one step otherwise: 8 MB of them."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and an interval that holds it with probability :data:`CONFIDENCE`; NaN where there is nothing."""

    value: float
    low: float
    high: float
    count: int
    """Samples it was made from."""
    method: str
    """Method of the interval: ``wilson``, ``bootstrap of samples``, ``bootstrap of files``, ``none``."""


@dataclass(frozen=True, slots=True)
class McNemar:
    """The exact test of two verdicts on the same samples (McNemar 1947, in its binomial form).

    ``p`` is the probability, were both modes equally good, that the samples on which they differ divide at least this
    unevenly; 1 if they differ on none.
    """

    only_first: int
    only_second: int
    p: float


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted line ``y = slope * x + intercept``, or a power law ``y = factor * x ** exponent``.

    For a line ``parameters`` are (slope, intercept), for a power law (factor, exponent). ``r_squared`` is 1 - (sum of
    squared residuals) / (sum of squared deviations), on the axes on which it was fitted: for a power law, logarithms.
    """

    kind: str
    parameters: tuple[float, float]
    r_squared: float
    count: int

    def at(self, x: ArrayLike) -> Floats:
        """The fitted values."""
        values = np.asarray(x, dtype=np.float64)
        first, second = self.parameters
        result: Floats = first * values + second if self.kind == "line" else first * np.power(values, second)
        return result


def wilson(successes: int, count: int, confidence: float = CONFIDENCE) -> Estimate:
    """A rate with its score interval (Wilson 1927), which stays within 0 and 1 and is not empty at either end.

    It takes the samples as independent.

    Raises:
        ValueError: ``successes`` is not between 0 and ``count``.
    """
    if not 0 <= successes <= count:
        raise ValueError(f"{successes} successes of {count}")
    if not count:
        return _nothing()
    interval = stats.binomtest(successes, count).proportion_ci(confidence, method="wilson")
    return Estimate(successes / count, float(interval.low), float(interval.high), count, "wilson")


def proportion(verdicts: ArrayLike) -> Estimate:
    """The rate of verdicts that are true, with its Wilson interval."""
    flat = np.asarray(verdicts, dtype=bool).ravel()
    return wilson(int(flat.sum()), flat.size)


def mean(
    values: ArrayLike,
    clusters: ArrayLike | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """A mean with its percentile bootstrap interval (Efron 1979), of samples or, with ``clusters``, of files.

    With clusters, each resample draws as many clusters as there are, and its mean is the sum of their values by the
    number of their samples.

    Raises:
        ValueError: ``clusters`` is not as long as ``values``.
    """
    flat = np.asarray(values, dtype=np.float64).ravel()
    if not flat.size:
        return _nothing()
    sums, sizes, method = _units(flat, clusters)
    drawn = _resampled(sums, sizes, resamples, np.random.default_rng(seed))
    tail = 100 * (1 - confidence) / 2
    low, high = np.percentile(drawn, [tail, 100 - tail])
    return Estimate(float(flat.mean()), float(low), float(high), flat.size, method)


def paired_difference(
    first: ArrayLike,
    second: ArrayLike,
    clusters: ArrayLike | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """The mean of ``first - second``, sample by sample, with its percentile bootstrap interval.

    Both are measured on the same samples in the same order, so a resample takes both of a sample or neither: what makes
    a sample hard for both modes cancels.

    Raises:
        ValueError: The lengths differ.
    """
    one, two = (np.asarray(values, dtype=np.float64).ravel() for values in (first, second))
    if one.size != two.size:
        raise ValueError(f"{one.size} values beside {two.size}: pairs have to be of the same samples")
    return mean(one - two, clusters, resamples=resamples, seed=seed, confidence=confidence)


def mcnemar(first: ArrayLike, second: ArrayLike) -> McNemar:
    """McNemar's exact test, two-sided, of two verdicts a sample.

    It takes the samples as independent: with several of one file it finds differences a little too easily, which the
    bootstrap of files does not.

    Raises:
        ValueError: The lengths differ.
    """
    one, two = (np.asarray(values, dtype=bool).ravel() for values in (first, second))
    if one.size != two.size:
        raise ValueError(f"{one.size} verdicts beside {two.size}: pairs have to be of the same samples")
    only_first, only_second = int((one & ~two).sum()), int((two & ~one).sum())
    discordant = only_first + only_second
    p = float(stats.binomtest(only_first, discordant, 0.5).pvalue) if discordant else 1.0
    return McNemar(only_first, only_second, p)


def line_fit(x: ArrayLike, y: ArrayLike) -> Fit | None:
    """The least-squares line through points; None for fewer than two different x. Pairs not finite are left out.

    Raises:
        ValueError: The lengths differ.
    """
    xs, ys = _finite(x, y)
    return _fitted(xs, ys, "line")


def power_fit(x: ArrayLike, y: ArrayLike) -> Fit | None:
    """The power law whose logarithm is the least-squares line through the logarithms of the points above 0.

    Raises:
        ValueError: The lengths differ.
    """
    xs, ys = _finite(x, y)
    positive = (xs > 0) & (ys > 0)
    fit = _fitted(np.log(xs[positive]), np.log(ys[positive]), "power law")
    if fit is None:
        return None
    exponent, intercept = fit.parameters
    return Fit(fit.kind, (math.exp(intercept), exponent), fit.r_squared, fit.count)


def percentiles(values: ArrayLike, shares: Sequence[float] = (0.5, 0.9, 0.95, 0.99)) -> list[float]:
    """Measured values, none interpolated: the least one that at least this share of all does not exceed.

    NaN where there are no values; values that are not finite are left out.
    """
    flat = np.asarray(values, dtype=np.float64).ravel()
    flat = flat[np.isfinite(flat)]
    if not flat.size:
        return [math.nan for _ in shares]
    return [float(value) for value in np.quantile(flat, shares, method="inverted_cdf")]


def pass_at_1(passed: ArrayLike, clusters: ArrayLike | None = None) -> Estimate:
    """Share of texts that pass their sample's test (Chen et al., arXiv 2107.03374, with one text a sample)."""
    return proportion(passed) if clusters is None else mean(np.asarray(passed, dtype=bool), clusters)


# --- parts --------------------------------------------------------------------------------------------------------


def _nothing() -> Estimate:
    return Estimate(math.nan, math.nan, math.nan, 0, "none")


def _units(values: Floats, clusters: ArrayLike | None) -> tuple[Floats, Floats, str]:
    """Return the units to draw: sum and number of samples of each, and the method's name."""
    if clusters is None:
        return values, np.ones_like(values), "bootstrap of samples"
    labels = np.asarray(clusters).ravel()
    if labels.size != values.size:
        raise ValueError(f"{labels.size} clusters for {values.size} values")
    _, numbers = np.unique(labels, return_inverse=True)
    sums = np.bincount(numbers, weights=values).astype(np.float64)
    return sums, np.bincount(numbers).astype(np.float64), "bootstrap of files"


def _resampled(sums: Floats, sizes: Floats, resamples: int, generator: np.random.Generator) -> Floats:
    """Means of resamples of the units: [resamples].

    Not ``scipy.stats.bootstrap``: it draws index by index, where for a few kinds of unit (verdicts are two) their
    counts are all that has to be drawn.
    """
    kinds, counts = np.unique(np.stack([sums, sizes], axis=1), axis=0, return_counts=True)
    if len(kinds) <= FEW_KINDS:
        drawn = generator.multinomial(sums.size, counts / sums.size, size=resamples).astype(np.float64)
        few: Floats = (drawn @ kinds[:, 0]) / (drawn @ kinds[:, 1])
        return few
    means = np.empty(resamples)
    alike = bool((sizes == sizes[0]).all())
    at_once = max(1, DRAWS_AT_ONCE // sums.size)
    for start in range(0, resamples, at_once):
        stop = min(start + at_once, resamples)
        chosen = generator.integers(0, sums.size, size=(stop - start, sums.size), dtype=np.int32)
        drawn_sizes = sums.size * sizes[0] if alike else sizes[chosen].sum(axis=1)
        means[start:stop] = sums[chosen].sum(axis=1) / drawn_sizes
    return means


def _finite(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    xs, ys = (np.asarray(values, dtype=np.float64).ravel() for values in (x, y))
    if xs.size != ys.size:
        raise ValueError(f"{xs.size} x beside {ys.size} y")
    kept = np.isfinite(xs) & np.isfinite(ys)
    return xs[kept], ys[kept]


def _fitted(xs: Floats, ys: Floats, kind: str) -> Fit | None:
    if xs.size < 2 or np.ptp(xs) == 0:
        return None
    found: Any = stats.linregress(xs, ys)
    # Of points that all lie on one height, the line explains everything there is to explain.
    r_squared = float(found.rvalue) ** 2 if np.ptp(ys) else 1.0
    return Fit(kind, (float(found.slope), float(found.intercept)), r_squared, int(xs.size))
