#!/usr/bin/env python3
"""What two sub-agents cost with a prefix of their own and with the conversation's: the table of
docs/agents.md, measured with the real binary against its own simulator.

    scripts/subagent-costs.py [HARDPAN]

Each cell is one run of `hardpan -p "Ask both"` in a folder of its own. The simulator's first answer
calls `task` twice; each sub-agent reads a file and answers. The figures are what `hardpan cost
SESSION --json` says about the sub-agents' requests.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

TALK = """
turns:
  - when: {contains: Ask both}
    tool_calls:
      - {name: task, arguments: {agent: helper, task: Find the first.}}
      - {name: task, arguments: {agent: helper, task: Find the second.}}
  - {when: {contains: Find the first}, tool_calls: [{name: read, arguments: {path: notes.txt}}]}
  - {when: {contains: Find the second}, tool_calls: [{name: read, arguments: {path: notes.txt}}]}
  - {when: {has_tool_result: read}, repeat: always, text: It is in notes.txt.}
  - {when: {has_tool_result: task}, repeat: always, text: Both are found.}
default: {text: Fine.}
"""
HELPER = "---\nname: helper\ndescription: Looks for things.\ntools: read, grep\n---\nYou look for one thing and say where it is.\n"
# A file that is about 38,000 tokens long.
LARGE_FILE = "".join(f"fn function_{n}() {{ call_{n % 97}({n * 7919 % 10007}); }}\n" for n in range(2000))


def run(hardpan, folder, url, prefix, large):
    home, work = folder / "home", folder / "work"
    (home / "config/agents").mkdir(parents=True)
    work.mkdir()
    (work / "AGENTS.md").write_text("".join(f"{n}. Rule {n} of this project: keep it simple.\n" for n in range(60)))
    (work / "notes.txt").write_text("The milk is here.\n")
    if large:
        (work / "large.rs").write_text(LARGE_FILE)
    (home / "config/agents/helper.md").write_text(HELPER)
    (home / "config/config.toml").write_text(
        f'model = "claude-sonnet-5-5"\nmap_tokens = 0\n[task]\nprefix = "{prefix}"\n'
        f'[providers.anthropic]\nbase_url = "{url}/v1"\n'
    )
    env = {
        **{name: os.environ[name] for name in ("PATH",) if name in os.environ},
        "HOME": str(home),
        "HARDPAN_CONFIG_DIR": str(home / "config"),
        "HARDPAN_DATA_DIR": str(home / "data"),
        "HARDPAN_CACHE_DIR": str(home / "cache"),
        "HARDPAN_STATE_DIR": str(home / "state"),
        "ANTHROPIC_API_KEY": "sk-measure",
    }

    def call(*args):
        done = subprocess.run([hardpan, *args], cwd=work, env=env, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{args}: {done.stderr}")
        return done.stdout

    prompt = "Ask both @large.rs" if large else "Ask both"
    lines = [json.loads(line) for line in call("-p", prompt, "--output", "json", "--hud").splitlines()]
    session = json.loads(call("sessions", "--json"))[0]["id"]
    tasks = json.loads(call("cost", session, "--json"))["tasks"]
    first = next(line for line in lines if line["type"] == "task_start")
    hud = next(line["hud"] for line in lines if line["type"] == "hud")
    return tasks["requests"], tasks["dollars"], first["prefix"], hud["tokens"]


def main():
    hardpan = str(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "target/debug/hardpan").resolve())
    with tempfile.TemporaryDirectory() as place:
        script = pathlib.Path(place) / "talk.yaml"
        script.write_text(TALK)
        print("| the conversation's prompt | `own` | `shared` | `auto` takes |\n|---|---|---|---|")
        for large in (False, True):
            cells = {}
            for prefix in ("own", "shared", "auto"):
                # A simulator of its own for each run: nothing is in its cache, and the script begins anew.
                server = subprocess.Popen(
                    [hardpan, "simulator", "--port", "0", "--script", str(script)],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
                try:
                    url = next(word for word in server.stdout.readline().split() if word.startswith("http"))
                    folder = pathlib.Path(place) / f"{prefix}-{large}"
                    folder.mkdir()
                    cells[prefix] = run(hardpan, folder, url.rstrip("/"), prefix, large)
                finally:
                    server.terminate()
                    server.wait()
            tokens = round(cells["own"][3], -2)
            what = f"{tokens:,} tokens" + (": a large file is open" if large else "")
            own, shared, auto = (cells[prefix] for prefix in ("own", "shared", "auto"))
            assert own[0] == shared[0] == auto[0] == 4, cells
            print(f"| {what} | ${own[1]:.4f} | ${shared[1]:.4f} | `{auto[2]}` |")


if __name__ == "__main__":
    main()
