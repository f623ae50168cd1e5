"""An MCP server on standard input and output with 21 tools.

    changing_mcp_server.py quiet|changing STARTS

A changing one ends after each call. When it is started again, all its tools say something else, and there is
one more. STARTS is a file that counts the starts.
"""
import json
import os
import sys

mode, starts = sys.argv[1:]


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tool(name, start):
    text = f"Edition {start} of a tool that takes a text and gives it back as it came."
    schema = {"type": "object", "properties": {"text": {"type": "string", "description": f"The text {start}."}}}
    return {"name": name, "description": text, "inputSchema": schema}


start = int(open(starts).read()) + 1 if os.path.exists(starts) else 1
open(starts, "w").write(str(start))
edition = start if mode == "changing" else 1

for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        info = {"protocolVersion": version, "capabilities": {"tools": {"listChanged": True}}}
        send({"id": number, "result": {**info, "serverInfo": {"name": "changing", "version": "1"}}})
    elif method == "tools/list":
        names = ["echo"] + [f"tool{index}" for index in range(20)] + [f"new{index}" for index in range(edition - 1)]
        send({"id": number, "result": {"tools": [tool(name, edition) for name in names]}})
    elif method == "tools/call":
        text = message["params"]["arguments"].get("text")
        send({"id": number, "result": {"content": [{"type": "text", "text": text}]}})
        if mode == "changing":
            break
    elif number is not None:
        send({"id": number, "error": {"code": -32601, "message": "no such method"}})
