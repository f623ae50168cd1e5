"""Retries of requests that failed."""

import asyncio
import random

from clock import Clock

MAX_ATTEMPTS = 5


class RetryPolicy:
    """How often to try again, and how long to wait."""

    def __init__(self, attempts=MAX_ATTEMPTS, base=0.5):
        self.attempts = attempts
        self.base = base

    def next_delay(self, attempt):
        """Exponential backoff with jitter, in seconds."""
        return self.base * 2**attempt * jitter()


def jitter():
    return 0.5 + random.random() / 2


async def send_with_retry(client, request, policy=None):
    policy = policy or RetryPolicy()
    clock = Clock()
    started = clock.now()
    for attempt in range(policy.attempts):
        answer = await client.send(request)
        if answer.ok:
            answer.seconds = clock.now() - started
            return answer
        await asyncio.sleep(policy.next_delay(attempt))
    raise TimeoutError(f"no answer after {policy.attempts} attempts")
