"""Progress bars."""

from __future__ import annotations

import sys
import time


class Progress:
    """A progress bar on standard error, with the time left."""

    def __init__(self, total: int, verbose: int, what: str = "trees"):
        self.total = total
        self.what = what
        self.done = 0
        self.active = bool(verbose) and total > 0
        self.start = time.monotonic()
        self.shown = 0.0
        self.terminal = self.active and sys.stderr.isatty()

    def advance(self, count: int, more: str = "") -> None:
        """Count work as done, and redraw a few times per second; `more` is shown at the end."""
        self.done += count
        now = time.monotonic()
        interval = 0.1 if self.terminal else 5.0
        if self.active and (self.done == self.total or now - self.shown > interval):
            self.shown = now
            elapsed = now - self.start
            left = elapsed / self.done * (self.total - self.done)
            filled = 30 * self.done // self.total
            bar = "#" * filled + "-" * (30 - filled)
            text = (
                f"{self.what} {self.done}/{self.total} [{bar}] {elapsed:.1f} s, {left:.1f} s left"
            )
            text += more
            sys.stderr.write(f"\r{text}  " if self.terminal else f"{text}\n")
            sys.stderr.flush()

    def close(self) -> None:
        """End the line."""
        if self.terminal and self.done:
            sys.stderr.write("\n")
            sys.stderr.flush()
