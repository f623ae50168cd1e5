"""An MCP server over HTTP that forgets its session after the first call. It prints its address.

With the argument "restarted" it says so as the official TypeScript SDK does that was started again. Each further call changes the resource note://one; a session that subscribed to it is told."""
import json
import queue
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

state = {"session": None, "sessions": 0, "calls": 0, "count": 0}
streams, subscribed = {}, set()


def call():
    state["calls"] += 1
    session = state["session"]
    if state["calls"] == 1:
        state["session"] = None
    else:
        state["count"] += 1
        if session in subscribed:
            update = {"method": "notifications/resources/updated", "params": {"uri": "note://one"}}
            streams[session].put(update)
    return {"content": [{"type": "text", "text": "called"}]}


def answer(method, params):
    if method == "initialize":
        state["sessions"] += 1
        state["session"] = "session-%d" % state["sessions"]
        streams[state["session"]] = queue.Queue()
        info = {"protocolVersion": params["protocolVersion"], "serverInfo": {"name": "forgetful", "version": "1"}}
        return {**info, "capabilities": {"tools": {}, "resources": {"subscribe": True}}}
    if method == "tools/list":
        return {"tools": [{"name": "touch", "inputSchema": {"type": "object"}}]}
    if method == "tools/call":
        return call()
    if method == "resources/list":
        return {"resources": [{"uri": "note://one", "name": "one"}]}
    if method == "resources/read":
        return {"contents": [{"uri": "note://one", "text": "The count is %d." % state["count"]}]}
    if method == "resources/subscribe":
        subscribed.add(state["session"])
        return {}
    return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, message=None, headers=()):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode() if message else b""
        self.send_response(status)
        for name, value in [("content-type", "application/json"), ("content-length", str(len(body))), *headers]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        updates = streams.get(self.headers.get("mcp-session-id"))
        if updates is None:
            return self.reply(404)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.flush()
        while True:
            self.wfile.write(b"data: %s\n\n" % json.dumps({"jsonrpc": "2.0", **updates.get()}).encode())
            self.wfile.flush()

    def do_DELETE(self):
        self.reply(200)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method, number = message.get("method"), message.get("id")
        if method != "initialize" and self.headers.get("mcp-session-id") != state["session"]:
            if sys.argv[1:] == ["restarted"]:
                error = {"code": -32000, "message": "Bad Request: Server not initialized"}
                return self.reply(400, {"id": None, "error": error})
            return self.reply(404)
        if number is None:
            return self.reply(202)
        result = answer(method, message.get("params") or {})
        headers = [("mcp-session-id", state["session"])] if method == "initialize" else []
        if result is None:
            return self.reply(200, {"id": number, "error": {"code": -32601, "message": "no such method"}})
        return self.reply(200, {"id": number, "result": result}, headers)


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print("http://127.0.0.1:%d/mcp" % server.server_port, flush=True)
server.serve_forever()
