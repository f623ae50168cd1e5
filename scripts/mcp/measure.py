#!/usr/bin/env python3
"""What 80 tools of an MCP server cost in a session of 100 requests, declared by every request and found by
searches: the table of docs/mcp.md, measured with the real binary, a real server and the simulator's bills.

    scripts/mcp/measure.py [HARDPAN [MODEL...]]

Each row is one run of `hardpan -p`. The model, a script of the simulator, reads 79 files and calls 20 times
one of 8 tools of `tests/mcp/many_tools_server.py`, each call in a request of its own. Where tools are found
by searches, it searches once for two tools, which is 4 requests more. The bills are the simulator's.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVER = ROOT / "tests/mcp/many_tools_server.py"
READS, CALLS = 79, 20
TOOLS = ["create_issue", "list_issues", "get_issue", "update_issue", "create_comment", "search_labels", "list_milestones", "get_release"]
ARGUMENTS = {
    "create": {"project": "web", "title": "A typo on the first page"},
    "list": {"project": "web", "state": "open"},
    "get": {"project": "web", "number": 7},
    "update": {"project": "web", "number": 7, "priority": "high"},
    "search": {"project": "web", "query": "first page"},
}


def turns(on_demand):
    """The calls of the model, one for each request; the request after the last is answered with a text."""
    calls, found = [], set()
    for number in range(READS + CALLS):
        if number % 4 != 3 or number // 4 >= CALLS:
            calls.append({"name": "read", "arguments": {"path": f"notes/{number}.md"}})
            continue
        at = (number // 4) % len(TOOLS)
        name = TOOLS[at]
        call = {"name": f"tracker__{name}", "arguments": ARGUMENTS[name.split("_")[0]]}
        if not on_demand:
            calls.append(call)
            continue
        if name not in found:
            pair = TOOLS[at : at + 2]
            found.update(pair)
            calls.append({"name": "tool_search", "arguments": {"query": ", ".join(f"tracker__{one}" for one in pair)}})
        calls.append({"name": "mcp_call", "arguments": {"tool": call["name"], "arguments": call["arguments"]}})
    return [{"tool_calls": [call]} for call in calls]


def run(hardpan, folder, model, setting):
    home, work = folder / "home", folder / "work"
    (home / "config").mkdir(parents=True)
    (work / "notes").mkdir(parents=True)
    for number in range(READS + CALLS):
        lines = (f"{line}. Note {number}: step {line * number % 97} waits for step {line * 31 % 89}.\n" for line in range(25))
        (work / f"notes/{number}.md").write_text("".join(lines))
    script, log = folder / "script.json", folder / "requests.jsonl"
    # JSON is YAML, too.
    script.write_text(json.dumps({"turns": turns(setting == "search"), "default": {"text": "That is all."}}))
    simulator = subprocess.Popen(
        [hardpan, "simulator", "--script", script, "--log-requests", log],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        url = re.search(r"http\S+", simulator.stdout.readline()).group().rstrip("/")
        (home / "config/config.toml").write_text(
            f'model = "{model}"\nmap_tokens = 0\nmcp_tools = "{setting}"\n'
            f'[providers.anthropic]\nbase_url = "{url}/v1"\n'
            f'[mcp_servers.tracker]\ncommand = "python3"\nargs = ["{SERVER}", "80"]\nstart_seconds = 60\n'
        )
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "ANTHROPIC_API_KEY": "sk-measure",
            **{f"HARDPAN_{name}_DIR": str(home / name.lower()) for name in ("CONFIG", "DATA", "CACHE", "STATE")},
        }

        def call(*args):
            done = subprocess.run([hardpan, *args], cwd=work, env=env, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                sys.exit(f"{args}: {done.stderr}")
            return done.stdout

        servers = json.loads(call("mcp", "--json"))
        # Results of tools that failed would be cheaper.
        events = [json.loads(line) for line in call("-p", "Go on.", "--yes", "--output", "json").splitlines()]
        failed = [event for event in events if event["type"] == "tool_execution_end" and event["is_error"]]
        if failed:
            sys.exit(f"{len(failed)} calls failed: {failed[0]}")
    finally:
        simulator.terminate()
        simulator.wait()
    requests = [json.loads(line) for line in log.read_text().splitlines()]
    requests = [request for request in requests if request.get("bill")]
    usage = [request["bill"]["usage"] for request in requests]
    prompt = sum(sum(count for kind, count in used.items() if kind not in ("output", "reasoning")) for used in usage)
    declared = len(requests[0]["body"]["tools"])
    return {
        "tokens": servers[0]["tokens"],
        "declared": declared,
        "requests": len(requests),
        "prompt": prompt,
        "first": sum(count for kind, count in usage[0].items() if kind not in ("output", "reasoning")),
        "dollars": sum(request["bill"]["dollars"] for request in requests),
    }


def main():
    hardpan = str(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "target/debug/hardpan").resolve())
    models = sys.argv[2:] or ["claude-sonnet-5", "claude-opus-5-5"]
    print("| model | tools | tools in a request | first request | requests | tokens of all prompts | dollars |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place:
        for model in models:
            for setting, words in (("all", "declared (`all`)"), ("search", "on demand (`search`)")):
                folder = pathlib.Path(place) / f"{model}-{setting}"
                folder.mkdir()
                row = run(hardpan, folder, model, setting)
                print(
                    f"| {model} | {words} | {row['declared']} | {row['first']:,} tokens | {row['requests']} "
                    f"| {row['prompt']:,} | ${row['dollars']:.3f} |",
                    flush=True,
                )
        print(f"\nThe 80 declarations have {row['tokens']:,} tokens.")


if __name__ == "__main__":
    main()
