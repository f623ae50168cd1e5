"""Time, in one place, so that tests can stop it."""

import time


class Clock:
    """The time of this machine."""

    def now(self):
        return time.monotonic()
