#!/usr/bin/env python3
"""Calls tools of a server over stdio, with the client of the protocol's Python SDK.

    serve_client.py CALLS PROGRAM [ARGUMENT ...]

CALLS is a JSON list of [tool, arguments]. Prints JSON: what the server is, its tools, and the answers.
"""

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main():
    calls, program, *arguments = json.loads(sys.argv[1]), *sys.argv[2:]
    server = StdioServerParameters(command=program, args=arguments, env=dict(os.environ))
    progress = []

    async def report(done, total, message):
        progress.append([done, total])

    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        begun = await session.initialize()
        tools = await session.list_tools()
        answers = []
        for name, values in calls:
            try:
                answer = await session.call_tool(name, values, progress_callback=report)
                answers.append(answer.model_dump(mode="json", by_alias=True, exclude_none=True))
            except Exception as error:
                answers.append({"error": str(error)})
    dump = lambda value: value.model_dump(mode="json", by_alias=True, exclude_none=True)
    print(json.dumps({"begun": dump(begun), "tools": dump(tools)["tools"], "answers": answers, "progress": progress}))


asyncio.run(main())
