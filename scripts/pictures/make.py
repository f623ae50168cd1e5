#!/usr/bin/env python3
"""Makes the pictures of the README from real runs: the binary in tmux, a scripted model behind the simulator.

    scripts/pictures/make.py [--hardpan BINARY] [--sessions FOLDER]

Writes docs/pictures/*.svg. The project is that of `scripts/transcripts`, the model's part is `talk.yaml`.
`--sessions` is a folder with recorded sessions of agents for the picture of `hardpan audit`; without it, the
picture shows the session of the other pictures.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from screen_svg import screen_svg

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PICTURES = ROOT / "docs" / "pictures"
COLUMNS, ROWS = 100, 34
TIME_LIMIT = 60


class Screen:
    """A terminal of tmux with a shell in the project's folder."""

    def __init__(self, folder, environment):
        self.tmux = ["tmux", "-L", f"hardpan-pictures-{os.getpid()}", "-f", "/dev/null"]
        self.environment = environment
        self.run("new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), "-c", str(folder), "sh")
        self.run("set", "status", "off")

    def run(self, *arguments):
        done = subprocess.run(self.tmux + list(arguments), env=self.environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"tmux {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def type(self, text):
        self.run("send-keys", "-l", text)

    def press(self, *keys):
        self.run("send-keys", *keys)

    def wait_for(self, pattern):
        """Waits until the screen shows this, and then until nothing moves."""
        ends, last = time.monotonic() + TIME_LIMIT, None
        while time.monotonic() < ends:
            shown = self.run("capture-pane", "-p")
            if re.search(pattern, shown) and shown == last:
                return
            last = shown
            time.sleep(0.4)
        sys.exit(f"{pattern!r} does not appear; the screen shows:\n{last}")

    def picture(self, name, title, first=None):
        """Writes what the screen shows, from the line on that contains `first`."""
        lines = self.run("capture-pane", "-e", "-p").rstrip("\n").split("\n")
        if lines[-1].strip() in ("#", "$"):
            lines.pop()
        if first:
            starts = [at for at, line in enumerate(lines) if first in line]
            lines = lines[starts[0] if starts else 0:]
        PICTURES.mkdir(exist_ok=True)
        path = PICTURES / f"{name}.svg"
        path.write_text(screen_svg("\n".join(lines), COLUMNS, title))
        print(path.relative_to(ROOT))

    def close(self):
        subprocess.run(self.tmux + ["kill-server"], env=self.environment, capture_output=True)


def make_project(folder, environment):
    project = folder / "ask"
    shutil.copytree(ROOT / "scripts" / "transcripts" / "project", project)
    git = ["git", "-c", "user.name=Ask", "-c", "user.email=ask@localhost"]
    for arguments in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "feat: ask again"]):
        subprocess.run(git + arguments, cwd=project, env=environment, check=True)
    return project


def take_pictures(screen, sessions):
    screen.type("clear; hardpan\n")
    screen.wait_for("›")
    screen.type("cap the wait between retries, and run the checks")
    screen.press("Enter")
    screen.wait_for(r"Change this file\?")
    screen.picture("approval", "Hardpan shows a change as a diff and asks before it makes it", "hardpan")
    screen.press("y")
    screen.wait_for(r"Run this\?")
    screen.press("y")
    screen.wait_for("done ")
    screen.picture("conversation", "A conversation with Hardpan: calls, a diff, a table, what the run cost")
    screen.press("F2")
    screen.wait_for("by kind")
    screen.picture("context", "The context view: every layer of the prompt with tokens, age, cache and price")
    screen.press("q")
    screen.wait_for("done ")
    screen.type("/model opus")
    screen.press("Enter")
    screen.wait_for("opus")
    screen.type("where are retries decided?")
    screen.press("Enter")
    screen.wait_for("(?s)done .*done ")
    screen.press("C-d")
    screen.wait_for(r"--resume")
    screen.type("clear; hardpan why\n")
    screen.wait_for(r"[$#]\s*$")
    screen.picture("why", "hardpan why: which tokens were paid again, what they cost, and whose doing it was")
    screen.type(f"clear; hardpan audit {sessions or '--discover'}\n")
    screen.wait_for(r"[$#]\s*$")
    screen.picture("audit", "hardpan audit: what recorded sessions of any agent cost, what was lost, and why")


def main():
    parser = argparse.ArgumentParser(description="Makes the pictures of the README.")
    parser.add_argument("--hardpan", default="target/release/hardpan", help="the binary (target/release/hardpan)")
    parser.add_argument("--sessions", help="a folder with recorded sessions for the picture of the audit")
    options = parser.parse_args()
    binary = os.path.abspath(options.hardpan)
    if not os.access(binary, os.X_OK):
        sys.exit(f"{binary} is no program: build it with cargo build --release, or name another with --hardpan")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "home").mkdir()
        (folder / "bin").mkdir()
        (folder / "bin" / "hardpan").symlink_to(binary)
        environment = {
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "HOME": str(folder / "home"), "LANG": "C.UTF-8",
            "TERM": "xterm-256color", "PS1": "$ ", "TZ": "UTC",
        }
        project = make_project(folder, environment)
        if options.sessions:
            shutil.copytree(options.sessions, project / "sessions")
        simulator = subprocess.Popen(
            [binary, "simulator", "--port", "0", "--script", str(HERE / "talk.yaml")],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
        screen = None
        try:
            address = simulator.stdout.readline().split()[-1]
            environment |= {"ANTHROPIC_API_KEY": "any", "ANTHROPIC_BASE_URL": address}
            screen = Screen(project, environment)
            take_pictures(screen, "sessions" if options.sessions else None)
        finally:
            if screen:
                screen.close()
            simulator.terminate()
            simulator.wait()


if __name__ == "__main__":
    main()
