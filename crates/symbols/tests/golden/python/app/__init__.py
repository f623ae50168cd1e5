from .net.client import Client, fetch_all as fetch
from .models import *

__all__ = ["Client", "fetch"]
