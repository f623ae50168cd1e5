from app.models import Order


def test_total(): ...
