#!/usr/bin/env python3
"""Measures the terminal face of the real binary, in a pseudo-terminal, against the simulator.

    scripts/terminal/measure.py [NAME …] [--hardpan BINARY] [--tree FOLDER] [--quick]

| name | what is measured | limit |
|---|---|---|
| first-frame | start to the first frame with an input line, with and without a stored index | 50 ms |
| echo | a key until it is drawn: idle, provider stalled, index running and the disk busy | 30 ms |
| answer | bytes written for a Markdown answer of 1.1 kB | 15 kB |
| stream | processor time while 5,000 lines arrive at 200 tokens a second | 15% of a core |
| paste | 1 MB of pasted text until it is drawn | 50 ms |
| idle | bytes written and processor time of 10 seconds in which nothing happens | 0, one tick of the clock |

`--tree` is the folder for the first frame and the index; without it, copies of this repository's sources make up
6,500 files. `--quick` streams 500 lines. The exit code is 1 if a limit is exceeded: run it on an idle machine.
"""

import argparse
import fcntl
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TREE_FILES = 6_500
TIME_LIMIT = 120
#: The simulator sends about this many tokens in a piece.
PIECE_TOKENS = 5
SEQUENCE = re.compile(rb"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[=>78])")
#: The input line, empty.
PROMPT = "›".encode()

ANSWER = """# Retries

Retries are decided in **one** place, `send_with_retry`:

| status | again | wait |
|---|---|---|
| 429 | yes | `Retry-After` |
| 500 to 599 | yes | doubles from 1 s |
| others | no | |

1. The request is sent.
2. If it fails, `RetryPolicy::next` says *whether* and *when*.
3. After ten attempts the error is returned as it is.

```rust
pub fn next(&mut self, error: &SendError) -> Option<Duration> {
    let wait = error.retry_after().unwrap_or_else(|| self.backoff());
    self.attempt += 1;
    (self.attempt < self.limit && error.is_transient()).then_some(wait)
}
```

The [policy](https://example.org/retry) is the same for all providers. Two things are worth knowing:

- A person who presses Esc ends the wait at once; nothing is sent after that.
- Jitter of up to a quarter keeps many clients from asking at the same moment. It is taken from the
  clock, so that a test can fix it.

Nothing else in the code waits: `grep -rn sleep src` finds this line alone. A request that is under way when the policy
changes keeps the one with which it began.
"""


class Face:
    """Hardpan in a pseudo-terminal."""

    def __init__(self, place, folder, arguments=(), columns=100, rows=32):
        self.printed = bytearray()
        self.began = time.perf_counter()
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.execve(place.binary, [place.binary, *arguments], place.environment)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        """Takes what is printed within this time, or at the latest what comes first."""
        ready, _, _ = select.select([self.terminal], [], [], max(seconds, 0))
        if not ready:
            return False
        try:
            read = os.read(self.terminal, 1 << 16)
        except OSError:
            read = b""
        if not read:
            sys.exit(f"hardpan has ended; the terminal shows:\n{self.text().decode(errors='replace')[-2000:]}")
        self.printed += read
        return True

    def text(self, start=0):
        return SEQUENCE.sub(b"", bytes(self.printed[start:]))

    def wait_for(self, wanted, start=0, limit=TIME_LIMIT):
        """Seconds until this text, or one of these texts, is there, counted from now."""
        began = time.perf_counter()
        wanted = (wanted,) if isinstance(wanted, bytes) else wanted
        while not any(text in self.text(start) for text in wanted):
            if time.perf_counter() - began > limit:
                shown = self.text(start).decode(errors="replace")[-2000:]
                sys.exit(f"{b' or '.join(wanted).decode()!r} does not appear; the terminal shows:\n{shown}")
            # What was searched is not searched again, except for an end that may be half of it.
            start = max(start, len(self.printed) - 4096)
            self.read(1)
        return time.perf_counter() - began

    def settle(self, quiet=1.0, limit=TIME_LIMIT):
        """Reads until nothing comes for a while."""
        ends = time.perf_counter() + limit
        while time.perf_counter() < ends and self.read(quiet):
            pass

    def type(self, text):
        os.write(self.terminal, text.encode())

    def processor_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        os.kill(self.process, signal.SIGTERM)
        ends = time.perf_counter() + 10
        while os.waitpid(self.process, os.WNOHANG) == (0, 0):
            if time.perf_counter() > ends:
                os.kill(self.process, signal.SIGKILL)
                os.waitpid(self.process, 0)
                break
            # A program that writes to a full terminal does not end.
            try:
                self.read(0.05)
            except SystemExit:
                time.sleep(0.05)
        os.close(self.terminal)


class Place:
    """Folders of Hardpan's own, and a simulator with a script."""

    def __init__(self, binary, folder, script=None, faults=None):
        self.binary, self.folder = binary, folder
        self.home = folder / "home"
        config = self.home / ".config" / "hardpan"
        config.mkdir(parents=True, exist_ok=True)
        # The 5,000 lines are about 70,000 tokens.
        (config / "config.toml").write_text("max_tokens = 128000\n")
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "xterm-256color",
        }
        command = [binary, "simulator", "--port", "0"]
        if script:
            path = folder / "script.yaml"
            path.write_text(script)
            command += ["--script", str(path)]
        if faults:
            command += ["--faults", faults]
        self.simulator = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self.environment)
        address = self.simulator.stdout.readline().split()[-1]
        self.environment |= {"ANTHROPIC_API_KEY": "any", "ANTHROPIC_BASE_URL": address}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.simulator.terminate()
        self.simulator.wait()


def turn(text, **fields):
    """A script that always answers with this text."""
    lines = "\n".join("      " + line for line in text.split("\n"))
    settings = "".join(f"    {name}: {value}\n" for name, value in fields.items())
    return f"turns:\n  - text: |\n{lines}\n{settings}    repeat: always\n"


def small_project(folder):
    project = folder / "project"
    project.mkdir()
    (project / "main.py").write_text("def main():\n    print('hello')\n")
    return project


def make_tree(folder, source):
    """A repository with the files of `source`, or with enough copies of this one's."""
    tree = folder / "tree"
    if source:
        shutil.copytree(source, tree, symlinks=True)
    else:
        count, copy = 0, 0
        while count < TREE_FILES:
            made = shutil.copytree(ROOT / "crates", tree / f"copy{copy}", symlinks=True)
            count += sum(1 for path in pathlib.Path(made).rglob("*") if path.is_file())
            copy += 1
    git = ["git", "-c", "user.name=measure", "-c", "user.email=measure@localhost"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "tree"]):
        subprocess.run(git + arguments, cwd=tree, check=True)
    return tree


def first_frame(options, folder):
    tree = make_tree(folder, options.tree)
    rows = []
    with Place(options.binary, folder) as place:
        for name, runs in (("no index stored", 5), ("index stored", 15)):
            times = []
            for _ in range(runs):
                if name == "no index stored":
                    shutil.rmtree(place.home)
                    place.home.mkdir()
                face = Face(place, tree)
                face.wait_for(PROMPT)
                times.append((time.perf_counter() - face.began) * 1000)
                if name == "index stored" or len(times) == runs:
                    face.settle(2)
                face.close()
            rows.append((f"first frame, {name}", statistics.median(times), 50, "ms", f"at most {max(times):.0f}"))
    return rows


def key_times(face, count=60):
    """How long each of some keys takes until it is drawn, in milliseconds."""
    times, draft = [], ""
    for at in range(count):
        letter = "abcdefghijklmnopqrstuvwxyz"[at % 26]
        draft += letter
        start, began = len(face.printed), time.perf_counter()
        face.type(letter)
        while draft[-6:].encode() not in face.text(start):
            if time.perf_counter() - began > 10:
                sys.exit(f"{draft!r} is not echoed; the terminal shows:\n{face.text(start).decode(errors='replace')}")
            face.read(1)
        times.append((time.perf_counter() - began) * 1000)
        pause = time.perf_counter() + 0.03
        while time.perf_counter() < pause:
            face.read(pause - time.perf_counter())
    return times


def echo_row(name, times):
    times = sorted(times)
    return (f"echo, {name}", times[int(len(times) * 0.95)], 30, "ms",
            f"95th percentile; median {statistics.median(times):.1f}, at most {times[-1]:.1f}")


def echo(options, folder):
    project, rows = small_project(folder), []
    with Place(options.binary, folder, turn(ANSWER), "stall=3000") as place:
        face = Face(place, project)
        face.wait_for(PROMPT)
        face.settle()
        rows.append(echo_row("idle", key_times(face)))
        face.type("\x15")
        face.type("hello\r")
        start = len(face.printed)
        face.wait_for(b"Retries", start)
        face.settle(0.3, 2)
        rows.append(echo_row("provider stalled", key_times(face)))
        face.close()
    tree = make_tree(folder, options.tree)
    with Place(options.binary, folder) as place:
        shutil.rmtree(place.home)
        place.home.mkdir()
        busy = "while :; do dd if=/dev/zero of=busy bs=1M count=64 oflag=dsync status=none; done"
        writer = subprocess.Popen(["sh", "-c", busy], cwd=folder, start_new_session=True)
        try:
            face = Face(place, tree)
            face.wait_for(PROMPT)
            rows.append(echo_row("index running, disk busy", key_times(face)))
            face.close()
        finally:
            os.killpg(writer.pid, signal.SIGTERM)
            writer.wait()
    return rows


def run_answer(face, limit):
    """Asks, waits for the end of the run, and gives the bytes, the seconds and the processor's share of it."""
    start, used, began = len(face.printed), face.processor_seconds(), time.perf_counter()
    face.type("go\r")
    face.wait_for((b"done ", b"failed "), start, limit)
    if b"failed " in face.text(max(start, len(face.printed) - 4096)):
        sys.exit(f"the answer failed:\n{face.text(start).decode(errors='replace')[-1000:]}")
    seconds = time.perf_counter() - began
    used = face.processor_seconds() - used
    face.settle(0.5, 2)
    return len(face.printed) - start, seconds, used


def answer(options, folder):
    with Place(options.binary, folder, turn(ANSWER, pace="15ms")) as place:
        face = Face(place, small_project(folder))
        face.wait_for(PROMPT)
        face.settle()
        written, seconds, used = run_answer(face, TIME_LIMIT)
        face.close()
    note = f"in {seconds:.1f} s, {100 * used / seconds:.0f}% of a core"
    return [(f"answer of {len(ANSWER.encode()):,} bytes", written / 1000, 15, "kB", note)]


def stream(options, folder):
    lines = 500 if options.quick else 5_000
    text = "\n".join(
        f"- item {at}: **bold** and `code` in a line with words" if at % 3 else f"line {at} of the text goes on\n"
        for at in range(lines))
    pace = f"{1000 * PIECE_TOKENS // 200}ms"
    with Place(options.binary, folder, turn(text, pace=pace)) as place:
        face = Face(place, small_project(folder))
        face.wait_for(PROMPT)
        face.settle()
        written, seconds, used = run_answer(face, 1200)
        face.close()
    tokens = len(text) / 4 / seconds
    note = f"{lines:,} lines in {seconds:.0f} s, about {tokens:.0f} tokens a second, {written / 1000:.0f} kB"
    return [("stream", 100 * used / seconds, 15, "% of a core", note)]


def paste(options, folder):
    with Place(options.binary, folder) as place:
        face = Face(place, small_project(folder))
        face.wait_for(PROMPT)
        face.settle()
        data = b"\x1b[200~" + b"".join(b"line %05d of the pasted text\n" % at for at in range(34_000)) + b"\x1b[201~"
        start, began, sent = len(face.printed), time.perf_counter(), 0
        os.set_blocking(face.terminal, False)
        while sent < len(data):
            select.select([], [face.terminal], [], 1)
            try:
                sent += os.write(face.terminal, data[sent:sent + 65536])
            except BlockingIOError:
                pass
        written = time.perf_counter()
        face.wait_for(b"[paste 1", start)
        done = time.perf_counter()
        face.close()
    note = f"after the last byte; {1000 * (done - began):.0f} ms in all, most of it the terminal's own"
    return [(f"paste of {len(data):,} bytes", 1000 * (done - written), 50, "ms", note)]


def idle(options, folder):
    with Place(options.binary, folder, turn("Good."), None) as place:
        face = Face(place, small_project(folder))
        face.wait_for(PROMPT)
        face.settle()
        run_answer(face, TIME_LIMIT)
        face.settle(2)
        start, used = len(face.printed), face.processor_seconds()
        ends = time.perf_counter() + 10
        while time.perf_counter() < ends:
            face.read(ends - time.perf_counter())
        written, used = len(face.printed) - start, face.processor_seconds() - used
        face.close()
    return [("idle for 10 s", written, 0, "bytes", ""), ("idle for 10 s", round(used * 1000), 10, "ms of processor time", "the clock counts in steps of 10")]


MEASUREMENTS = {
    "first-frame": first_frame, "echo": echo, "answer": answer, "stream": stream, "paste": paste, "idle": idle,
}


def main():
    parser = argparse.ArgumentParser(description="Measures the terminal face of the real binary.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"what to measure: {', '.join(MEASUREMENTS)} (all)")
    parser.add_argument("--hardpan", default="target/release/hardpan", help="the binary (target/release/hardpan)")
    parser.add_argument("--tree", help="a source tree for the first frame and the index")
    parser.add_argument("--quick", action="store_true", help="stream 500 lines instead of 5,000")
    options = parser.parse_args()
    options.binary = os.path.abspath(options.hardpan)
    if not os.access(options.binary, os.X_OK):
        sys.exit(f"{options.binary} is no program: build it with cargo build --release, or name another with --hardpan")
    unknown = [name for name in options.names if name not in MEASUREMENTS]
    if unknown:
        parser.error(f"nothing is measured as {unknown[0]}; choose from {', '.join(MEASUREMENTS)}")
    exceeded = False
    for name in options.names or MEASUREMENTS:
        with tempfile.TemporaryDirectory() as folder:
            for what, figure, limit, unit, note in MEASUREMENTS[name](options, pathlib.Path(folder)):
                exceeded |= figure > limit
                mark = "OVER" if figure > limit else "ok"
                print(f"{what:32} {figure:9.1f} {unit} (limit {limit}) {mark:4}  {note}", flush=True)
    sys.exit(1 if exceeded else 0)


if __name__ == "__main__":
    main()
