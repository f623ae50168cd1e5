"""A whole session over `hardpan rpc`: edits, approvals, a compaction, undo. Only the standard library is used."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = """
turns:
  - when: {contains: rename it}
    text: I rename it.
    tool_calls:
      - {name: read, arguments: {path: ring.py}}
  - when: {contains: class Ring}
    tool_calls:
      - {name: edit, arguments: {path: ring.py, old_text: "class Rong", new_text: "class Buffer"}}
  - when: {has_tool_result: edit}
    tool_calls:
      - {name: edit, arguments: {path: ring.py, old_text: "class Ring", new_text: "class Buffer"}}
  - when: {contains: throw it away}
    tool_calls:
      - {name: bash, arguments: {command: "rm ring.py"}}
  - when: {contains: about to leave the context}
    text: "## Goal\\nA buffer with a good name."
    repeat: always
default: {text: Done.}
"""

CODE = "class Ring:\n    def push(self, value):\n        pass\n"


class Client:
    """Speaks JSON lines with one process."""

    def __init__(self, folder, url):
        config = folder / "config"
        config.mkdir()
        (config / "config.toml").write_text(
            f'map_tokens = 0\nmax_tokens = 500\n'
            f'[providers.anthropic]\nbase_url = "{url}/v1"\n[providers.openai]\nbase_url = "{url}/v1"\n'
        )
        # The real window is 8,192: a provider may take less than its list says.
        believed = {"provider": "openai", "id": "gpt-4", "context": 32000}
        (config / "models.json").write_text(json.dumps({"models": [believed]}))
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "HARDPAN_CONFIG_DIR": str(config),
            "ANTHROPIC_API_KEY": "any",
            "OPENAI_API_KEY": "any",
        }
        self.work = folder / "work"
        self.work.mkdir()
        self.process = subprocess.Popen(
            [os.environ["HARDPAN_BIN"], "rpc"],
            cwd=self.work,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.requests = 0
        self.verdicts = []

    def send(self, **request):
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()

    def lines(self):
        for line in self.process.stdout:
            yield json.loads(line)

    def ask(self, kind, **fields):
        self.requests += 1
        self.send(type=kind, id=self.requests, **fields)
        for line in self.lines():
            if line["type"] == "response" and line["id"] == self.requests:
                return line
        raise EOFError("the process has ended")

    def prompt(self, message, verdict=None):
        """Says something; calls that want to change something get the verdict. Returns agent_end and the questions."""
        response = self.ask("prompt", message=message)
        assert response["success"], response
        questions = []
        for line in self.lines():
            if line["type"] == "approval_request":
                questions.append(line)
                self.send(type="approval_response", id=line["id"], **verdict)
            if line["type"] == "agent_end":
                return line, questions
        raise EOFError("the process has ended")

    def close(self):
        self.process.stdin.close()
        rest = list(self.lines())
        code = self.process.wait(timeout=60)
        self.process.stdout.close()
        return code, rest


def results(end):
    texts = []
    for message in end["messages"]:
        if message["role"] == "tool_result":
            texts.append("".join(part.get("text", "") for part in message["content"]))
    return texts


class Session(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        folder = pathlib.Path(self.folder.name)
        script = folder / "script.yaml"
        script.write_text(SCRIPT)
        simulator = subprocess.Popen(
            [os.environ["HARDPAN_BIN"], "simulator", "--script", str(script)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(simulator.stdout.close)
        self.addCleanup(simulator.wait)
        self.addCleanup(simulator.kill)
        url = simulator.stdout.readline().decode().strip().removeprefix("listening on ")
        self.client = Client(folder, url)
        self.file = self.client.work / "ring.py"
        self.file.write_text(CODE)

    def test_edits_approvals_compaction_and_undo(self):
        client = self.client
        end, questions = client.prompt("rename it", {"verdict": "yes"})
        self.assertEqual(end["stop"], {"reason": "done"})
        self.assertEqual([question["tool_name"] for question in questions], ["edit", "edit"])
        read, failed, edited = results(end)
        self.assertIn("class Ring", read)
        self.assertIn("class Ring", failed, "a failing edit names the nearest place")
        self.assertEqual(self.file.read_text(), CODE.replace("Ring", "Buffer"))

        end, questions = client.prompt("throw it away", {"verdict": "no", "reason": "it is needed"})
        self.assertEqual(questions[0]["args"], {"command": "rm ring.py"})
        self.assertIn("it is needed", results(end)[0])
        self.assertTrue(self.file.exists())

        for number in range(3):
            client.prompt(f"{number}: " + "some words that take their room " * 4000)
        before = client.ask("get_session_stats")["data"]
        compacted = client.ask("compact", instructions="keep the names")
        self.assertTrue(compacted["success"], compacted)
        self.assertIn("A buffer with a good name.", compacted["data"]["summary"])
        after = client.ask("get_session_stats")["data"]
        self.assertEqual(after["usage"]["requests"], before["usage"]["requests"] + 1)
        spent = {key: after["usage"]["session"][key] - before["usage"]["session"][key] for key in ("input", "read", "written")}
        self.assertGreater(spent["read"], 0.9 * sum(spent.values()), "the summary is made from the cached prefix")

        undone = client.ask("prompt", message="/undo")
        self.assertEqual(undone["data"]["taken"], "command")
        self.assertEqual(self.file.read_text(), CODE)

        code, rest = client.close()
        self.assertEqual(code, 0)
        self.assertEqual(rest[-1]["type"], "session_shutdown")

    def test_a_context_that_is_too_long_is_compacted_and_the_work_goes_on(self):
        client = self.client
        chosen = client.ask("set_model", provider="openai", model="gpt-4")
        self.assertTrue(chosen["success"], chosen)
        for number in range(12):
            end, _ = client.prompt(f"{number}: " + f"rope {number} and some words " * 220)
            self.assertEqual(end["stop"], {"reason": "done"}, number)
            messages = client.ask("get_messages")["data"]["messages"]
            if messages[0]["role"] == "compaction_summary":
                break
        self.assertEqual(messages[0]["role"], "compaction_summary", "the window was full at some time")
        self.assertIn("A buffer with a good name.", messages[0]["summary"])
        self.assertEqual(client.close()[0], 0)


if __name__ == "__main__":
    unittest.main()
