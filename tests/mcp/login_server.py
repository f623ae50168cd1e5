"""An MCP server over HTTP that asks for a login, with the authorization server that comes with FastMCP.

`/end` ends all access tokens: whoever keeps a login has to renew it.
"""
import sys

from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions
from starlette.responses import PlainTextResponse

port = int(sys.argv[1])
provider = InMemoryOAuthProvider(
    base_url=f"http://127.0.0.1:{port}",
    client_registration_options=ClientRegistrationOptions(
        enabled=True, valid_scopes=["tickets"], default_scopes=["tickets"]
    ),
    revocation_options=RevocationOptions(enabled=True),
    required_scopes=["tickets"],
)
server = FastMCP("tickets", auth=provider)


@server.tool
def count() -> str:
    """Count the tickets."""
    return "three tickets"


@server.custom_route("/end", methods=["GET"])
async def end(_request):
    provider.access_tokens.clear()
    return PlainTextResponse("ended")


server.run(transport="http", host="127.0.0.1", port=port, show_banner=False)
