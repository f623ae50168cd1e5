"""An MCP server on standard input and output that asks, tells of changes, waits and looks around.

The first argument is a folder for what it notes about itself."""
import json
import os
import subprocess
import sys

notes = sys.argv[1]
count = 0
asked = {}


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(number, text):
    send({"id": number, "result": {"content": [{"type": "text", "text": text}]}})


def note(name, text):
    with open(os.path.join(notes, name + ".part"), "w") as file:
        file.write(text)
    os.rename(os.path.join(notes, name + ".part"), os.path.join(notes, name))


def tool(name):
    return {"name": name, "description": "Tool " + name, "inputSchema": {"type": "object"}}


def call(number, name, arguments):
    global count
    if name == "touch":
        count += 1
        send({"method": "notifications/resources/updated", "params": {"uri": "note://one"}})
        answer(number, "touched %d" % count)
    elif name == "wait":
        note("waiting", str(number))
    elif name == "visit":
        params = {"mode": "url", "message": "Sign the paper.", "url": "https://sign.example/paper", "elicitationId": "e1"}
        asked["visit"] = number
        send({"id": "visit", "method": "elicitation/create", "params": params})
    elif name == "write":
        try:
            with open(arguments["path"], "w") as file:
                file.write("written")
            answer(number, "written")
        except OSError as error:
            answer(number, "refused: %s" % error)
    elif name == "variables":
        answer(number, ",".join(sorted(os.environ)))
    elif name == "child":
        script = "import time; time.sleep(1000)"
        shell = 'python3 -c "%s" & echo $!; wait' % script
        child = subprocess.Popen(["sh", "-c", shell], stdout=subprocess.PIPE, text=True)
        note("pids", "%d %d %s" % (os.getpid(), child.pid, child.stdout.readline()))
        answer(number, "started")


for line in sys.stdin:
    message = json.loads(line)
    method, number, params = message.get("method"), message.get("id"), message.get("params", {})
    if method == "initialize":
        capabilities = {"tools": {}, "prompts": {}, "resources": {} if "UNASKED" in os.environ else {"subscribe": True}}
        info = {"protocolVersion": params["protocolVersion"], "capabilities": capabilities}
        send({"id": number, "result": {**info, "serverInfo": {"name": "asking", "version": "1"}}})
        # Nothing of ours runs: nobody is asked.
        form = {"type": "object", "properties": {"a": {"type": "string"}}}
        send({"id": "early", "method": "elicitation/create", "params": {"message": "Early", "requestedSchema": form}})
    elif method == "tools/list":
        names = ["touch", "wait", "visit", "write", "variables", "child"]
        send({"id": number, "result": {"tools": [tool(name) for name in names]}})
    elif method == "tools/call":
        call(number, params["name"], params.get("arguments", {}))
    elif method == "prompts/list":
        arguments = [{"name": "topic", "required": True}]
        listed = [{"name": "talk", "description": "Talk about\nit \u001b[31m", "arguments": arguments}, {"name": "odd name"}]
        send({"id": number, "result": {"prompts": listed}})
    elif method == "prompts/get":
        text = {"type": "text", "text": "Talk about %s." % params.get("arguments", {}).get("topic")}
        said = {"type": "text", "text": "I will."}
        messages = [{"role": "user", "content": text}, {"role": "assistant", "content": said}]
        if params["name"] == "odd name":
            send({"id": number, "error": {"code": -32603, "message": "the writer is ill"}})
        else:
            send({"id": number, "result": {"messages": messages}})
    elif method == "resources/list":
        send({"id": number, "result": {"resources": [{"uri": "note://one", "name": "one"}]}})
    elif method == "resources/templates/list":
        send({"id": number, "result": {"resourceTemplates": []}})
    elif method == "resources/read":
        if params["uri"] == "note://one":
            text = "The count is %d.\n" % count
        elif params["uri"] == "note://long":
            text = "y" * 100000
        else:
            send({"id": number, "error": {"code": -32002, "message": "there is no such note"}})
            continue
        send({"id": number, "result": {"contents": [{"uri": params["uri"], "text": text}]}})
    elif method == "notifications/cancelled":
        note("cancelled", str(params["requestId"]))
    elif method is None and number == "early":
        note("early", json.dumps(message.get("result")))
    elif method is None and number == "visit":
        answer(asked["visit"], "visit: " + json.dumps(message.get("result"), sort_keys=True))
    elif method is not None and number is not None:
        send({"id": number, "result": {}})
