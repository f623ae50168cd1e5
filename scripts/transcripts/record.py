#!/usr/bin/env python3
"""Records the transcripts in the documents from the real binary.

A transcript is a `console` block after a line `<!-- transcript: NAME -->`. This script makes a copy of
`project`, starts the simulator with the script `rename.yaml` in place of a model, runs what the block
shows, and puts what was printed into the document.

    scripts/transcripts/record.py            write the documents
    scripts/transcripts/record.py --check    exit 1 if a document shows something else

Times and session ids differ from run to run; `--check` ignores them.
"""

import argparse
import difflib
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"(<!-- transcript: ([\w-]+) -->\n```console\n)(.*?)(```\n)", re.S)
PROMPT = re.compile(r"(you|answer): $")
COLUMNS = 100
TIME_LIMIT = 60


class Workplace:
    """A copy of the project with a repository, folders for Hardpan's files, and a simulator."""

    def __init__(self, hardpan, folder):
        self.hardpan, self.folder = hardpan, folder
        self.project = folder / "ask"
        shutil.copytree(HERE / "project", self.project)
        binaries = folder / "bin"
        binaries.mkdir()
        (binaries / "hardpan").symlink_to(hardpan)
        self.environment = {
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "HOME": str(folder / "home"),
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            "COLUMNS": str(COLUMNS),
            "TZ": "UTC",
            "GIT_AUTHOR_DATE": "2026-11-16T08:00:00Z",
            "GIT_COMMITTER_DATE": "2026-11-16T08:00:00Z",
        }
        (folder / "home").mkdir()
        git = ["git", "-c", "user.name=Ask", "-c", "user.email=ask@localhost"]
        for arguments in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "feat: ask again"]):
            subprocess.run(git + arguments, cwd=self.project, env=self.environment, check=True)
        self.simulator = None

    def start_simulator(self):
        """Answers by the script from now on; the key leads to the simulator alone."""
        script = HERE / "rename.yaml"
        self.simulator = subprocess.Popen(
            [self.hardpan, "simulator", "--port", "0", "--script", script],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self.environment,
        )
        address = self.simulator.stdout.readline().split()[-1]
        self.environment |= {"ANTHROPIC_API_KEY": "any", "ANTHROPIC_BASE_URL": address}

    def stop(self):
        if self.simulator:
            self.simulator.terminate()
            self.simulator.wait()

    def shell(self, command):
        """The command as it is typed, and what it prints."""
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.project, env=self.environment, timeout=TIME_LIMIT,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        return f"$ {command}\n{done.stdout}"

    def chat(self, lines):
        """A conversation in plain lines: each line is typed when the prompt stands there."""
        process, terminal = pty.fork()
        if process == 0:
            os.chdir(self.project)
            os.execvpe("hardpan", ["hardpan", "--plain"], self.environment)
        printed = ""
        try:
            for line in [*lines, "\x04"]:
                printed += self.read_until_prompt(terminal)
                os.write(terminal, (line if line == "\x04" else line + "\n").encode())
            printed += self.read_until_prompt(terminal, at_end=True)
        finally:
            os.close(terminal)
            if os.waitpid(process, os.WNOHANG) == (0, 0):
                os.kill(process, signal.SIGTERM)
                os.waitpid(process, 0)
        return plain_text(printed)

    def read_until_prompt(self, terminal, at_end=False):
        """Everything up to a prompt after which nothing comes for a moment."""
        printed, ends = b"", time.monotonic() + TIME_LIMIT
        while time.monotonic() < ends:
            ready, _, _ = select.select([terminal], [], [], 0.5)
            if ready:
                try:
                    read = os.read(terminal, 65536)
                except OSError:
                    read = b""
                if not read:
                    return printed.decode()
                printed += read
            elif not at_end and PROMPT.search(plain_text(printed.decode())):
                return printed.decode()
        sys.exit(f"no prompt after {TIME_LIMIT} s; the terminal shows:\n{printed.decode()}")


def plain_text(printed):
    """The text that a terminal shows for these bytes."""
    without_sequences = re.sub(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\))", "", printed)
    return without_sequences.replace("\r\n", "\n").replace("\r", "")


def rename_chat(workplace, *more):
    workplace.start_simulator()
    printed = workplace.chat(["Rename now to time in @src/clock.py", "1", "2", *more])
    lines = printed.split("\n")
    # The simulator's address and the name of this session say nothing to a reader.
    return [line for line in lines if "go to http://" not in line and "--resume" not in line and line]


def between(lines, first, last):
    """The lines from the first that begins with `first` to the next that begins with `last`."""
    start = next(at for at, line in enumerate(lines) if line.startswith(first))
    end = next(at for at, line in enumerate(lines) if at > start and line.startswith(last))
    return "\n".join(lines[start:end + 1]) + "\n"


def conversation(workplace):
    return between(rename_chat(workplace), "you: Rename", "note: done")


def approval(workplace):
    return between(rename_chat(workplace), "you: Rename", "tool: edit")


def nobody_to_ask(workplace):
    workplace.start_simulator()
    printed = workplace.shell('hardpan -p "Rename now to time in src/clock.py" 2>&1 >/dev/null')
    return "\n".join(l for l in printed.split("\n") if l[:2] in ("$ ", "· ") and "bash" not in l) + "\n"


def tool_off(workplace):
    lines = rename_chat(workplace, "/tools off bash")
    return between(lines, "you: /tools", "  ")


def snapshot(workplace):
    document = (ROOT / "docs/snapshot.md").read_text()
    (workplace.project / "s.json").write_text(re.search(r"```json\n(.*?)```", document, re.S)[1])
    return workplace.shell("hardpan request --snapshot s.json")


def layout(workplace):
    printed = workplace.shell('hardpan request "Why is the retry slow?" src/retry.py')
    return re.sub(r"( 0  tools\[0\].*\n)(?: *\d+  tools\[.*\n)+", r"\1 …\n", printed)


def cost(workplace):
    rename_chat(workplace, "/model opus", "Where are retries decided?")
    return workplace.shell("hardpan cost --by kind") + workplace.shell("hardpan why")


def repository_map(workplace):
    return workplace.shell("hardpan map") + workplace.shell("hardpan symbols send_with_retry")


def commit(workplace):
    with (workplace.project / "src/client.py").open("a") as file:
        file.write("\n\nTIMEOUT = 30\n")
    subprocess.run(["git", "add", "-A"], cwd=workplace.project, env=workplace.environment, check=True)
    return workplace.shell("hardpan commit --print")


def sessions(workplace):
    workplace.start_simulator()
    workplace.chat(["Where are retries decided?", "And the jitter?"])
    return workplace.shell("hardpan sessions") + workplace.shell("hardpan sessions search jitter")


RECORDINGS = {
    "conversation": conversation, "approval": approval, "nobody-to-ask": nobody_to_ask,
    "tool-off": tool_off, "snapshot": snapshot, "layout": layout, "cost": cost, "map": repository_map,
    "commit": commit, "sessions": sessions,
}


def wrap(text):
    """Lines of a width that documents can show, broken at spaces; tables are cut."""
    lines = []
    for line in text.rstrip("\n").split("\n"):
        while len(line) > COLUMNS and "  " not in line.strip() and not line.startswith("$"):
            cut = line.rfind(" ", 0, COLUMNS)
            lines.append(line[:cut])
            line = line[cut + 1:]
        lines.append(line if len(line) <= COLUMNS or line.startswith("$") else line[:COLUMNS - 1] + "…")
    return "\n".join(lines) + "\n"


def without_chance(text):
    """The text without times and ids, which differ from run to run."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?|\b\d+:\d\d\b", "TIME", text)
    return re.sub(r"\b[0-9a-f]{12}\b", "ID", text)


def record(recording, hardpan):
    # Always the same path: requests name the folder, and a longer name is more tokens.
    folder = pathlib.Path(tempfile.gettempdir()) / f"hardpan-transcripts-{os.getuid()}"
    folder.mkdir(mode=0o700)
    try:
        workplace = Workplace(hardpan, folder)
        try:
            return wrap(recording(workplace))
        finally:
            workplace.stop()
    finally:
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description="Records the transcripts in the documents.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if one is not current")
    parser.add_argument("--hardpan", default=ROOT / "target/debug/hardpan", type=pathlib.Path,
                        help="the binary (target/debug/hardpan)")
    options = parser.parse_args()
    if not options.hardpan.exists():
        sys.exit(f"{options.hardpan} does not exist: run `cargo build -p hardpan-cli` first")
    recorded, stale, shown = {}, 0, set()

    def replace(match):
        nonlocal stale
        name = match[2]
        shown.add(name)
        if name not in RECORDINGS:
            sys.exit(f"nothing records the transcript {name}")
        if name not in recorded:
            recorded[name] = record(RECORDINGS[name], options.hardpan.resolve())
        old, new = without_chance(match[3]), without_chance(recorded[name])
        if old == new:
            return match[0]
        stale += 1
        if options.check:
            print(f"the transcript {name} is not current:")
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), "document", "now"))
        return match[1] + recorded[name] + match[4]

    for document in DOCUMENTS:
        text = document.read_text()
        new = BLOCK.sub(replace, text)
        if new != text and not options.check:
            document.write_text(new)
            print(f"wrote {document.relative_to(ROOT)}")
    if missing := sorted(RECORDINGS.keys() - shown):
        sys.exit(f"no document shows {', '.join(missing)}")
    print(f"{len(recorded)} transcripts, {stale} of them {'not current' if options.check else 'changed'}")
    sys.exit(options.check and stale > 0)


if __name__ == "__main__":
    main()
