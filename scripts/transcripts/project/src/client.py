"""The client of the service."""

from retry import send_with_retry


class Client:
    def __init__(self, connection):
        self.connection = connection

    async def send(self, request):
        return await self.connection.post(request)

    async def ask(self, text):
        return await send_with_retry(self, {"text": text})
