"""How far a run has come, and how long it will still take."""

import sys
import time

WIDTH = 24
PAUSE = 15.0  # seconds between lines where there is no terminal
# A guess counts as much as this many seconds of measured work.
TRUST = 30.0


class Progress:
    """A bar that is redrawn on a terminal, or lines at intervals elsewhere.

    The time left is estimated from the tasks' costs, corrected by how long similar tasks took.
    """

    def __init__(self, tasks, jobs, stream=None):
        self._left = dict.fromkeys(map(id, tasks))
        self._tasks = {id(task): task for task in tasks}
        self._count = len(tasks)
        self._jobs = jobs
        self._taken = {}  # kind -> [seconds, cost] of finished tasks; None: of all
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty()
        self._last = -PAUSE

    def finish(self, task, seconds=None):
        """Note the end of a task; `seconds` is None if it failed."""
        self._left.pop(id(task))
        if seconds is not None:
            for kind in (None, _kind(task)):
                taken = self._taken.setdefault(kind, [0.0, 0.0])
                taken[0] += seconds
                taken[1] += task.cost
        self.show(task)

    def seconds_left(self) -> float:
        overall = self._ratio(None, 1.0)
        work = sum(
            self._tasks[i].cost * self._ratio(_kind(self._tasks[i]), overall) for i in self._left
        )
        return work / self._jobs

    def show(self, task):
        now = time.monotonic()
        if not self._terminal and now < self._last + PAUSE and self._left:
            return
        self._last = now
        done = self._count - len(self._left)
        bar = "#" * round(WIDTH * done / self._count)
        left = f"{duration(self.seconds_left())} left" if self._left else "done"
        line = f"[{bar:.<{WIDTH}}] {done}/{self._count}, {left}; {task}"
        if self._terminal:
            self._stream.write(f"\r\033[K{line[:118]}" + ("" if self._left else "\n"))
        else:
            self._stream.write(line + "\n")
        self._stream.flush()

    def say(self, text):
        """Print something above the bar."""
        self._stream.write(("\r\033[K" if self._terminal else "") + text + "\n")
        self._stream.flush()

    def _ratio(self, kind, expected):
        seconds, cost = self._taken.get(kind, (0.0, 0.0))
        return (seconds + expected * TRUST) / (cost + TRUST)


def _kind(task):
    return task.study, task.key.get("classifier")


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
