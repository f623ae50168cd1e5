import asyncio, os.path as path
import requests
from .. import models
from ..models import Order, read_order
from . import missing_module

try:
    import ujson as json
except ImportError:
    import json


class Client(models.Order, requests.Session):
    timeout: float

    @retry(times=3)
    @other
    def get(self, url: str, timeout: float | None = None) -> dict[str, list[int]]:
        return read_order(url)


async def fetch_all(*urls): await asyncio.gather(*(Client().get(u) for u in urls))
