"""Progress of a run, in words."""

from __future__ import annotations

import time


class Pace:
    """Counts the samples that are done, and says at what rate."""

    def __init__(self, total: int, done: int) -> None:
        self.total, self.done = total, done
        self._begun_with = done
        self._failed = 0
        self._started = time.monotonic()

    def add(self, samples: int, failed_samples: int) -> None:
        """Count samples that were done, and those among them that failed."""
        self.done += samples
        self._failed += failed_samples

    def said(self, beside_a_bar: bool = False) -> str:
        """One line. A bar beside it has the numbers of samples and the time to go."""
        elapsed = time.monotonic() - self._started
        rate = (self.done - self._begun_with) / elapsed if elapsed > 0 else 0.0
        parts = ["samples" if beside_a_bar else f"{self.done} of {self.total} samples"]
        if self._failed:
            parts.append(f"{self._failed} failed")
        if rate > 0:
            parts.append(f"{3600 * rate:.0f} samples/h")
            if self.done < self.total and not beside_a_bar:
                parts.append(f"{duration((self.total - self.done) / rate)} to go")
        return ", ".join(parts)


def duration(seconds: float) -> str:
    """A time in words: hours and minutes, or minutes and seconds.

    >>> duration(9.6), duration(125), duration(7300)
    ('10 s', '2 min 05 s', '2 h 01 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60:02} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60:02} min"
