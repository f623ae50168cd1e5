#!/usr/bin/env python3
"""Runs hardpan against servers on loopback that send without end, and on files that have no end, and
prints how much memory and time each took. Fails if one takes more than 500 MB, or does not end.

    scripts/hostile-inputs.py [path to hardpan] [part of the name of a case …]
"""
import json, os, re, signal, socket, subprocess, sys, tempfile, threading, time, zlib

MOST_MB, MOST_SECONDS = 500, 90
PROVIDERS = {  # provider: (model, path of its requests)
    "anthropic": "claude-sonnet-5",
    "openai": "gpt-5.5",
    "deepseek": None,
    "gemini": None,
}
SSE = "text/event-stream"
JSON = "application/json"


def event(value):
    name = f"event: {value['type']}\n" if isinstance(value, dict) and "type" in value else ""
    return (name + "data: " + json.dumps(value) + "\n\n").encode()


def text_event(provider, text):
    return event({
        "anthropic": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        "openai": {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": text},
        "deepseek": {"choices": [{"index": 0, "delta": {"content": text}}]},
        "gemini": {"candidates": [{"content": {"parts": [{"text": text}]}}]},
    }[provider])


def call_event(provider, n, args):
    """The start of a call and a piece of its arguments."""
    return {
        "anthropic": event({"type": "content_block_start", "index": n, "content_block": {"type": "tool_use", "id": f"c{n}", "name": "read", "input": {}}})
        + event({"type": "content_block_delta", "index": n, "delta": {"type": "input_json_delta", "partial_json": args}}),
        "openai": event({"type": "response.output_item.added", "output_index": n, "item": {"type": "function_call", "id": f"f{n}", "call_id": f"c{n}", "name": "read", "arguments": ""}})
        + event({"type": "response.function_call_arguments.delta", "item_id": f"f{n}", "output_index": n, "delta": args}),
        "deepseek": event({"choices": [{"delta": {"tool_calls": [{"index": n, "id": f"c{n}", "function": {"name": "read", "arguments": args}}]}}]}),
        "gemini": event({"candidates": [{"content": {"parts": [{"functionCall": {"name": "read", "args": {"path": args}}}]}}]}),
    }[provider]


def usage_event(provider, n):
    extra = {f"field_{n}_{i}": i for i in range(20)}
    return event({
        "anthropic": {"type": "message_delta", "delta": {}, "usage": {"output_tokens": n, **extra}},
        "openai": {"type": "response.in_progress", "response": {"id": "r", "usage": {"output_tokens": n, **extra}}},
        "deepseek": {"choices": [], "usage": {"prompt_tokens": n, **extra}},
        "gemini": {"usageMetadata": {"promptTokenCount": n, **extra}},
    }[provider])


def forever(piece):
    while True:
        yield piece


def counted(make):
    n = 0
    while True:
        yield make(n)
        n += 1


def slow(piece, seconds=0.3):
    while True:
        yield piece
        time.sleep(seconds)


zeros = b"0," * 32768
big_list = b"[" + b"0," * (7 << 20) + b"0]"
CASES = {
    # name: (content type, what follows the head, status)
    "endless json string": (JSON, lambda p: [b'{"content":"'] + [b"x" * 65536] * 200000, 200),
    "endless json list": (JSON, lambda p: forever(zeros), 200),
    "endless text": (SSE, lambda p: forever(text_event(p, "x" * 2000)), 200),
    "endless words": (SSE, lambda p: forever(text_event(p, "word ") * 200), 200),
    "endless line": (SSE, lambda p: forever(b"data: " + b"x" * 65536), 200),
    "endless data lines": (SSE, lambda p: forever(b"data: xxxxxxx\n" * 4000), 200),
    "endless comments": (SSE, lambda p: forever(b": ping\n\n" * 8000), 200),
    "endless arguments": (SSE, lambda p: counted(lambda n: call_event(p, 0, "[0,") * 50), 200),
    "endless calls": (SSE, lambda p: counted(lambda n: call_event(p, n, "{}")), 200),
    "endless usage": (SSE, lambda p: counted(lambda n: usage_event(p, n)), 200),
    "endless empty text": (SSE, lambda p: forever(text_event(p, "") * 200), 200),
    "large event": (SSE, lambda p: forever(b"data: {\"usage\":" + big_list + b",\"type\":\"message_start\",\"message\":{\"usage\":" + big_list[:10] + b"0]}}\n\n"), 200),
    "large error event": (SSE, lambda p: [b"event: error\ndata: {\"error\":{\"message\":" + big_list + b"}}\n\n"], 200),
    "large json": (JSON, lambda p: [b'{"x":[' + b"0," * (4 * 1000 * 1000) + b"0]}"], 200),
    "endless error": (JSON, lambda p: forever(zeros), 400),
    "endless error text": ("text/html", lambda p: forever(b"\x1b[31m<p>" * 4000), 500),
    "gzip bomb": (JSON + "\r\ncontent-encoding: gzip", lambda p: bomb(b"00000000", 4000), 200),
    "endless headers": ("head", lambda p: counted(lambda n: f"x-{n}: {'y' * 1000}\r\n".encode()), 200),
    "endless continue": ("continue", lambda p: forever(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000), 200),
    "drip of comments": (SSE, lambda p: slow(b": ping\n\n"), 200),
    "drip of bytes": (SSE, lambda p: slow(b"x"), 200),
    "drip of words": (SSE, lambda p: slow(text_event(p, "x")), 200),
    "drip of json": (JSON, lambda p: slow(b" "), 200),
    "drip of an error": (JSON, lambda p: slow(b" "), 503),
}
LISTS = {
    "models: endless json": lambda n: forever(zeros),
    "models: endless pages": lambda n: [json.dumps({"data": [{"id": f"m{n}-{i}"} for i in range(60000)], "has_more": True, "last_id": str(n)}).encode()],
    "models: large list": lambda n: [b'{"data":[' + b"0," * (1500 * 1000) + b"0]}"],
    "models: drip": lambda n: slow(b" "),
}


REQUEST = ["request", "Hi", "--layout", "panels", "--json"]
SESSION = "data/hardpan/sessions/x/s.jsonl"
SESSION_HEAD = (b'{"type":"session","version":1,"id":"s","cwd":"/"}\n'
                b'{"type":"message","id":"m","parent":null,"message":{"role":"user","content":[{"type":"text","text":"Hi"}]}}\n')
FILES = {  # path below the home folder: (its first bytes, a value in its language, commands that read it)
    "work/.gitignore": (b"*.o\n", b"%s\n", [REQUEST, ["map"]]),
    "work/.ignore": (b"*.o\n", b"%s\n", [REQUEST]),
    "work/.git/info/exclude": (b"*.o\n", b"%s\n", [REQUEST]),
    "work/.env": (b"A_TOKEN=1\n", b"A_TOKEN=%s\n", [REQUEST]),
    "work/AGENTS.md": (b"Hi\n", b"%s\n", [REQUEST]),
    "work/.hardpan/config.toml": (b"", b"a = %s\n", [["trust", "--yes"], REQUEST]),
    "work/main.rs": (b"fn main() {}\n", b"const A: u8 = %s;\n", [REQUEST, ["map"]]),
    "work/named.md": (b"Hi\n", b"%s\n", [["request", "see @named.md", "named.md", "--json"]]),
    "work/snapshot.json": (b"{}", b'{"messages":%s}', [["request", "--snapshot", "snapshot.json", "--json"]]),
    "config/hardpan/config.toml": (b"", b"a = %s\n", [REQUEST]),
    "config/hardpan/keys.toml": (b"", b"a = %s\n", [REQUEST]),
    "config/hardpan/models.json": (b"{}", b'{"models":%s}', [["models"]]),
    "config/hardpan/trusted": (b"", b"%s\n", [REQUEST]),
    "config/hardpan/skills/a/SKILL.md": (b"---\nname: a\n---\n", b"---\nname: a\ndescription: %s\n---\n", [REQUEST]),
    SESSION: (SESSION_HEAD, SESSION_HEAD + b'{"type":"memory","id":"k","parent":"m","memory":%s}\n',
              [["sessions", "--all"], ["cost", "--all"], ["request", "Hi", "--json", "--session", "../" + SESSION],
               ["audit", "../" + SESSION]]),
}


def sparse(path, head, value):
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(4 << 30)


def long_line(path, head, value):
    with open(path, "wb") as file:
        file.write(head)
        for _ in range(300):
            file.write(b"a" * (1 << 20))


def filled(text):
    def write(path, head, value):
        with open(path, "wb") as file:
            file.write(value % text)
    return write


KINDS = {
    "4 GB of zeros": sparse,
    "a line of 300 MB": long_line,
    "15 million values": filled(b"[" + b"1," * (15 << 20) + b"1]"),
    "200,000 levels": filled(b"[{" * 100_000),
    "a link to /dev/zero": lambda path, head, value: os.symlink("/dev/zero", path),
    "a pipe": lambda path, head, value: os.mkfifo(path),
}


class Server:
    def __init__(self, answer):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.answer, self.count = answer, 0
        threading.Thread(target=self.accept, daemon=True).start()

    def url(self):
        return f"http://127.0.0.1:{self.socket.getsockname()[1]}"

    def accept(self):
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def serve(self, peer):
        try:
            head = b""
            while b"\r\n\r\n" not in head:
                more = peer.recv(65536)
                if not more:
                    return
                head += more
            length = re.search(rb"content-length: (\d+)", head, re.I)
            left = int(length.group(1)) - len(head.split(b"\r\n\r\n", 1)[1]) if length else 0
            while left > 0:
                left -= len(peer.recv(65536))
            self.count += 1
            for piece in self.answer(self.count, head):
                peer.sendall(piece)
        except OSError:
            pass
        finally:
            peer.close()


def response(content_type, body, status):
    if content_type == "continue":
        yield from body
    yield f"HTTP/1.1 {status} X\r\nconnection: close\r\n".encode()
    if content_type != "head":
        yield f"content-type: {content_type}\r\n\r\n".encode()
    yield from body


def peak_memory(pid):
    """In KB. Not ru_maxrss, which includes this script's own memory before the exec."""
    try:
        found = re.search(r"VmHWM:\s+(\d+)", open(f"/proc/{pid}/status").read())
    except OSError:
        return 0
    return int(found.group(1)) if found else 0


def bomb(piece, megabytes):
    """A gzip stream of so many megabytes, made in small steps."""
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    for _ in range(megabytes):
        yield packer.compress(piece * ((1 << 20) // len(piece)))
    yield packer.flush()


def run(hardpan, server, args, provider, settings=""):
    def prepare(home):
        with open(f"{home}/config/hardpan/config.toml", "w") as config:
            config.write(f"{settings}\n[providers.{provider}]\nbase_url = \"{server.url()}\"\n[patience]\ntries = 2\n"
                         "longest_wait_seconds = 0.1\nsilence_seconds = 4\nprogress_seconds = 6\nanswer_seconds = 8\n")
    return next(run_in(hardpan, prepare, [args]))


def run_on_file(hardpan, path, make):
    """Runs the commands that read this file, made of this kind."""
    head, value, commands = FILES[path]

    def prepare(home):
        os.makedirs(os.path.dirname(f"{home}/{path}"), exist_ok=True)
        make(f"{home}/{path}", head, value)
    return zip(commands, run_in(hardpan, prepare, commands))


def run_in(hardpan, prepare, commands):
    """Runs commands in a home folder of their own: memory in MB, seconds, exit code, last words."""
    with tempfile.TemporaryDirectory() as home:
        os.makedirs(f"{home}/config/hardpan")
        os.makedirs(f"{home}/work")
        prepare(home)
        for args in commands:
            yield run_one(hardpan, home, args)


def run_one(hardpan, home, args):
    env = {"HOME": home, "XDG_CONFIG_HOME": f"{home}/config", "XDG_DATA_HOME": f"{home}/data", "XDG_CACHE_HOME": f"{home}/cache",
           "PATH": os.environ["PATH"], "ANTHROPIC_API_KEY": "k" * 20, "OPENAI_API_KEY": "k" * 20, "DEEPSEEK_API_KEY": "k" * 20, "GEMINI_API_KEY": "k" * 20}
    began = time.monotonic()
    with open(f"{home}/out", "wb") as out:
        child = subprocess.Popen([hardpan, *args], env=env, cwd=f"{home}/work", stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        killer = threading.Timer(MOST_SECONDS, lambda: os.kill(child.pid, signal.SIGKILL))
        killer.start()
        peak = 0
        while child.poll() is None:
            peak = max(peak, peak_memory(child.pid))
            time.sleep(0.02)
        killer.cancel()
    seconds = time.monotonic() - began
    said = open(f"{home}/out", "rb").read()[-400:].decode("utf-8", "replace").strip().splitlines()
    return peak // 1024, seconds, child.returncode, (said or [""])[-1][:110]


def main():
    args = sys.argv[1:]
    hardpan = os.path.abspath(args[0]) if args else "hardpan"
    wanted = args[1:]
    failed, peaks = [], []

    def report(name, result):
        memory, seconds, code, said = result
        bad = memory > MOST_MB or code < 0
        failed.extend([name] * bad)
        peaks.append(memory)
        print(f"{'FAIL' if bad else 'ok':4} {memory:5} MB {seconds:6.1f} s  exit {code:3}  {name:52} {said}", flush=True)

    for name, (kind, body, status) in CASES.items():
        for provider, model in PROVIDERS.items():
            label = f"{name} ({provider})"
            if wanted and not any(word in label for word in wanted):
                continue
            server = Server(lambda n, head: response(kind, body(provider), status))
            model = ["--model", model] if model else []
            report(label, run(hardpan, server, ["-p", "Hello", "--provider", provider, *model], provider))
            server.socket.close()
    for name, pages in LISTS.items():
        if wanted and not any(word in name for word in wanted):
            continue
        server = Server(lambda n, head: response(JSON, pages(n), 200))
        report(name, run(hardpan, server, ["models", "--check", "anthropic"], "anthropic"))
        server.socket.close()
    for name, kind, page in [
        ("fetch: endless page", "text/html", lambda: forever(b"<div><b>x</b>" * 4000)),
        ("fetch: gzip bomb", "text/html\r\ncontent-encoding: gzip", lambda: bomb(b"<p>x</p>", 4000)),
        ("fetch: drip", "text/html", lambda: slow(b"x")),
    ]:
        if wanted and not any(word in name for word in wanted):
            continue

        def answer(n, head, kind=kind, page=page):
            if head.startswith(b"GET"):
                return response(kind, page(), 200)
            call = {"index": 0, "id": f"c{n}", "function": {"name": "fetch", "arguments": json.dumps({"url": server.url() + "/page"})}}
            first = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
            last = {"choices": [{"message": {"content": "done"}, "finish_reason": "stop"}]}
            return response(JSON, [json.dumps(first if n == 1 else last).encode()], 200)

        server = Server(answer)
        settings = 'allow = ["fetch"]\nprivate_hosts = ["127.0.0.1"]\n'
        report(name, run(hardpan, server, ["-p", "Hello", "--provider", "deepseek"], "deepseek", settings))
        server.socket.close()
    for path in FILES:
        for kind, make in KINDS.items():
            label = f"{path}: {kind}"
            if not wanted or any(word in label for word in wanted):
                for args, result in run_on_file(hardpan, path, make):
                    report(f"{label} ({args[0]})", result)
    print(f"at most {max(peaks, default=0)} MB; {len(failed)} failed" + "".join(f"\n  {name}" for name in failed))
    sys.exit(bool(failed))


main()
