"""An MCP server on standard input and output that misbehaves as its first argument says."""
import json
import os
import random
import sys
import time

mode = sys.argv[1]
starts = sys.argv[2] if len(sys.argv) > 2 else None


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tool(name, schema=None):
    return {"name": name, "description": "Tool " + name, "inputSchema": schema or {"type": "object"}}


def mangled(name, arguments):
    """An answer to the request ID that is not quite one."""
    text = arguments.get("text") if name == "echo" else json.dumps(json.dumps(arguments))[1:-1]
    answer = '{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "%s"}]%s}}'
    texts = {
        "not a number": answer % (text, ', "structuredContent": {"a": NaN}'),
        "deep": answer % (text, ', "structuredContent": {"a": %s%s}' % ("[" * 100000, "]" * 100000)),
        "half": answer % ("half a character: \\ud83d", ""),
        "error": '{"jsonrpc": "2.0", "id": ID, "error": "only words"}',
        "list": "[%s]" % answer % (text, ""),
        "shape": '{"jsonrpc": "2.0", "id": ID, "result": {"content": 7}}',
    }
    return texts.get(text, answer % (text, ""))


def count_starts():
    count = int(open(starts).read()) + 1 if os.path.exists(starts) else 1
    open(starts, "w").write(str(count))
    return count


start = count_starts() if starts else 1
if mode == "hang":
    time.sleep(1000)
if mode == "flood":
    sys.stdout.write("x" * (50 << 20))
    sys.stdout.flush()
    time.sleep(1000)
if mode == "errors":
    while True:
        sys.stderr.write("e" * 100000)
if mode == "nonsense":
    print("Hello! I am no server.\n[1, 2\n{}", flush=True)
    time.sleep(1000)
if mode == "dies":
    sys.stderr.write("no licence found\n")
    sys.exit(3)

for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        version = "1999-01-01" if mode == "version" else message["params"]["protocolVersion"]
        info = {"protocolVersion": version, "capabilities": {"tools": {"listChanged": True}}}
        send({"id": number, "result": {**info, "serverInfo": {"name": "hostile", "version": "1"}}})
    elif method == "tools/list":
        if mode == "many":
            tools = [tool("t%d" % index) for index in range(10000)]
        elif mode == "endless":
            send({"id": number, "result": {"tools": [tool("t%d" % number)], "nextCursor": "more%d" % number}})
            continue
        elif mode in ["", "circle"]:
            # Where the list ends for one server, another sends the client round.
            send({"id": number, "result": {"tools": [tool("echo"), tool("die")], "nextCursor": mode}})
            continue
        else:
            tree = {"$ref": "#/$defs/tree"}
            schema = {"type": "object", "properties": {"tree": tree}, "$defs": {"tree": {"properties": {"left": tree}}}}
            tools = [tool("bash"), tool("echo"), tool("tree", schema), tool("die")]
            if mode == "odd":
                tools = [tool("echo"), {"name": "bare", "description": 7}, {"name": "lost", "inputSchema": "none"}, "a word"]
            if mode == "mangled":
                filters = {"type": "object", "properties": {"filter[id]": {"type": "string"}}, "required": ["filter[id]"]}
                deep = {"type": "string"}
                for _ in range(300):
                    deep = {"type": "object", "properties": {"a": deep}}
                tools = [tool("echo"), tool("filter", filters), tool("deep", deep)]
            if mode == "restless":
                tools += [tool("new%d" % index) for index in range(start - 1)]
                random.shuffle(tools)
        send({"id": number, "result": {"tools": tools}})
    elif method == "tools/call":
        name = message["params"]["name"]
        if mode == "mangled":
            sys.stdout.write(mangled(name, message["params"]["arguments"]).replace("ID", str(number)) + "\n")
            sys.stdout.flush()
            continue
        how = message["params"]["arguments"].get("how")
        if how == "stuck":
            time.sleep(1000)
        if how == "silent":
            continue
        if name == "die":
            sys.stderr.write("out of luck\n")
            sys.exit(4)
        if name == "bare":
            result = {"content": [{"type": "smell", "of": "roses"}, {"type": "text", "text": "Roses."}], "isError": False}
        elif name == "bash":
            result = {"content": [{"type": "text", "text": "y" * 100000}]}
        else:
            text = "echo %s of start %d, with %s" % (message["params"]["arguments"].get("text"), start, ",".join(sorted(os.environ)))
            result = {"content": [{"type": "text", "text": text}]}
        send({"id": number, "result": result})
        if mode == "restless":
            # The next call finds that it has to be started again, and it lists other tools then.
            sys.exit(0)
    elif number is not None:
        send({"id": number, "error": {"code": -32601, "message": "no such method"}})
