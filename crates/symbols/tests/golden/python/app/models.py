from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

T = TypeVar("T")
DEFAULT_LIMIT: int = 10
registry = dict()
logger = make_logger()
type Pair[A] = tuple[A, A]


class Colour(str, Enum):
    RED = "red"
    GREEN = "green"


@dataclass(frozen=True)
class Order(Generic[T], metaclass=Meta):
    """An order."""

    number: int
    lines: list[Line] = field(default_factory=list)
    _hidden = None

    class Line:
        """Nested."""

        def total(self) -> int:
            return self.price * 2

    def __init__(self, number, /, *lines, strict: bool = False, **rest: int) -> None:
        self.number = number
        self.extra = rest

    @property
    def total(self) -> float:
        return sum_lines(self.lines)

    @total.setter
    def total(self, value):
        pass

    @classmethod
    def empty(cls) -> Order: ...

    @staticmethod
    async def load(path, *, mode="r"):
        def helper_inside(x): ...
        return await read_order(path, key=lambda y: y)


def sum_lines(lines, start=0, callback=lambda value: value): ...


async def read_order(path: str, key=None) -> Order: ...


if True:
    def conditional(): ...
