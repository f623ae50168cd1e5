"""Sessions over `hardpan acp`, driven by the Python SDK of the Agent Client Protocol, which validates every message."""
import asyncio
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import acp
from acp import schema

BINARY = os.environ["HARDPAN_BIN"]
PROMPT_SERVER = os.environ["PROMPT_SERVER"]
CODE = "class Ring:\n    pass\n"
RENAMED = "class Buffer:\n    pass\n"
# One pixel.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

SCRIPT = """
turns:
  - when: {contains: rename it}
    repeat: always
    tool_calls:
      - {name: edit, arguments: {path: ring.py, old_text: "class Ring", new_text: "class Buffer"}}
  - when: {contains: wait for it}
    repeat: always
    tool_calls: [{name: bash, arguments: {command: "echo begun; sleep 300"}}]
  - when: {contains: count slowly}
    text: "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    pace: 300ms
    repeat: always
  - when: {contains: plan it}
    repeat: always
    tool_calls: [{name: panel, arguments: {action: todo_add, text: "read\\nwrite"}}]
  - when: {contains: go on}
    repeat: always
    tool_calls: [{name: panel, arguments: {action: todo_update, target: "1", text: done}}]
default: {text: Done.}
"""

EXTENSION = """
export default (pi) => {
  pi.registerCommand("ask-text", { description: "Asks", handler: async (_, ctx) => {
    const name = await ctx.ui.input("Whose?", "for example Ada");
    const text = await ctx.ui.editor("What?", "begin");
    ctx.ui.notify(`answers: ${name} | ${text}`);
  } });
  pi.registerCommand("ask-choice", { description: "Asks", handler: async (_, ctx) => {
    const one = await ctx.ui.select("Which?", ["red", "green", "blue"]);
    const sure = await ctx.ui.confirm("Sure?", "Really " + one);
    ctx.ui.notify(`answers: ${one} | ${sure}`);
  } });
};
"""


# An editor that is killed: it starts Hardpan, sends it what it is told to, and passes on what comes.
DOOMED = """
import subprocess, sys, threading
agent = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(agent.pid, flush=True)
def pass_on():
    for line in agent.stdout:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
threading.Thread(target=pass_on, daemon=True).start()
for line in sys.stdin.buffer:
    agent.stdin.write(line)
    agent.stdin.flush()
"""


class Editor(acp.Client):
    """Records what it is told, and answers with `answer` (a function of the options) and `form`."""

    def __init__(self, answer=None, form=None):
        self.answer, self.form = answer, form
        self.updates, self.questions, self.forms = [], [], []

    def on_connect(self, connection):
        pass

    async def session_update(self, session_id, update, **_):
        self.updates.append((session_id, update))

    async def request_permission(self, session_id, tool_call, options, **_):
        self.questions.append((tool_call, options))
        chosen = self.answer(tool_call, options) if self.answer else None
        if chosen is None:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        if asyncio.iscoroutine(chosen):
            chosen = await chosen
        assert chosen in [option.option_id for option in options], chosen
        return schema.RequestPermissionResponse(outcome=schema.AllowedOutcome(outcome="selected", option_id=chosen))

    async def create_elicitation(self, message, mode, **_):
        self.forms.append((message, mode))
        return self.form(message)

    def of(self, kind, session=None):
        return [u for s, u in self.updates if u.session_update == kind and session in (None, s)]

    def text(self, kind, session=None):
        return "".join(u.content.text for u in self.of(kind, session) if u.content.type == "text")

    async def until(self, holds):
        for _ in range(1500):
            if holds():
                return
            await asyncio.sleep(0.02)
        raise AssertionError("what was waited for did not come")


def is_running(process):
    try:
        return open(f"/proc/{process}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def descendants(process):
    """The processes that a process has started, and that these have started."""
    found = []
    for task in pathlib.Path(f"/proc/{process}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *descendants(child)]
    return found


def choose(kind_of_answer):
    return lambda call, options: kind_of_answer


class Sessions(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="hardpan-acp-")).resolve()
        (cls.root / "script.yaml").write_text(SCRIPT)
        cls.simulator = subprocess.Popen(
            [BINARY, "simulator", "--script", str(cls.root / "script.yaml")],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        url = cls.simulator.stdout.readline().strip().removeprefix("listening on ")
        config = cls.root / "config"
        (config / "extensions").mkdir(parents=True)
        (config / "extensions" / "ask.ts").write_text(EXTENSION)
        (config / "config.toml").write_text(
            f'map_tokens = 0\nmax_tokens = 500\nprovider = "anthropic"\n[providers.anthropic]\nbase_url = "{url}/v1"\n'
        )

    @classmethod
    def tearDownClass(cls):
        cls.simulator.kill()
        cls.simulator.wait()
        cls.simulator.stdout.close()
        shutil.rmtree(cls.root)

    def folder(self):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.root))
        (folder / "ring.py").write_text(CODE)
        return folder

    def environment(self):
        env = {"PATH": os.environ["PATH"], "HOME": str(self.root), "ANTHROPIC_API_KEY": "any"}
        return {**env, "HARDPAN_CONFIG_DIR": str(self.root / "config")}

    def start(self, editor, *args):
        # A line of an edit is longer than asyncio's limit of 64 KB.
        return acp.spawn_agent_process(
            editor, BINARY, "acp", *args, env=self.environment(), cwd=self.root, use_unstable_protocol=True,
            transport_kwargs={"limit": 1 << 26},
        )

    async def initialize(self, agent, **abilities):
        told = await agent.initialize(
            protocol_version=acp.PROTOCOL_VERSION, client_capabilities=schema.ClientCapabilities(**abilities)
        )
        self.assertEqual((told.protocol_version, told.agent_info.name), (1, "hardpan"))

    async def say(self, agent, session, text, *more):
        blocks = [schema.TextContentBlock(type="text", text=text), *more]
        return (await agent.prompt(session_id=session, prompt=blocks)).stop_reason

    async def test_an_edit_is_allowed_refused_and_not_answered(self):
        for answer, expected in [("allow-once", RENAMED), ("allow-always", RENAMED), ("reject", CODE), (None, CODE)]:
            with self.subTest(answer=answer):
                editor, cwd = Editor(choose(answer)), self.folder()
                async with self.start(editor) as (agent, process):
                    await self.initialize(agent)
                    session = (await agent.new_session(cwd=str(cwd), mcp_servers=[])).session_id
                    self.assertEqual(await self.say(agent, session, "rename it"), "end_turn")
                self.assertEqual((cwd / "ring.py").read_text(), expected)
                self.assertEqual(len(editor.questions), 1)
                last = editor.of("tool_call_update")[-1]
                self.assertEqual(last.status, "completed" if expected == RENAMED else "failed")

    async def test_context_and_images_are_part_of_a_prompt_and_come_back_when_it_is_loaded(self):
        editor, cwd = Editor(), self.folder()
        async with self.start(editor) as (agent, process):
            await self.initialize(agent)
            session = (await agent.new_session(cwd=str(cwd), mcp_servers=[])).session_id
            draft = schema.TextResourceContents(uri=f"file://{cwd}/draft.txt", text="not saved yet")
            reason = await self.say(
                agent, session, "look at this ",
                schema.ImageContentBlock(type="image", mime_type="image/png", data=PNG),
                schema.ResourceContentBlock(type="resource_link", uri=f"file://{cwd}/ring.py", name="ring.py"),
                schema.EmbeddedResourceContentBlock(type="resource", resource=draft),
            )
            self.assertEqual(reason, "end_turn")
            with self.assertRaises(acp.RequestError):
                await self.say(agent, session, "hear", schema.AudioContentBlock(type="audio", mime_type="audio/wav", data="AAAA"))
            listed = (await agent.list_sessions(cwd=str(cwd))).sessions
            self.assertEqual([(s.session_id, s.cwd) for s in listed], [(session, str(cwd))])
        editor = Editor()
        async with self.start(editor) as (agent, process):
            await self.initialize(agent)
            await agent.load_session(cwd=str(cwd), session_id=session, mcp_servers=[])
            await editor.until(lambda: editor.of("agent_message_chunk"))
            said = editor.text("user_message_chunk")
            self.assertIn("look at this @ring.py", said)
            self.assertIn("not saved yet", said)
            images = [u.content.data for u in editor.of("user_message_chunk") if u.content.type == "image"]
            self.assertEqual(images, [PNG])
            self.assertEqual(await self.say(agent, session, "and now?"), "end_turn")
            await agent.close_session(session_id=session)
            await agent.resume_session(cwd=str(cwd), session_id=session, mcp_servers=[])
            self.assertEqual(await self.say(agent, session, "and again?"), "end_turn")

    async def test_a_stream_and_a_command_are_cancelled_while_another_session_answers(self):
        editor = Editor(choose("allow-once"))
        async with self.start(editor) as (agent, process):
            await self.initialize(agent)
            sessions = [(await agent.new_session(cwd=str(self.folder()), mcp_servers=[])).session_id for _ in range(3)]
            stream, command, other = sessions
            counting = asyncio.create_task(self.say(agent, stream, "count slowly"))
            waiting = asyncio.create_task(self.say(agent, command, "wait for it"))
            await editor.until(lambda: "two" in editor.text("agent_message_chunk", stream))
            output = lambda: [u for u in editor.of("tool_call_update", command) if "begun" in str(u.content)]
            await editor.until(output)
            self.assertEqual(await self.say(agent, other, "hello"), "end_turn")
            for session in (stream, command):
                await agent.cancel(session_id=session)
            self.assertEqual([await counting, await waiting], ["cancelled", "cancelled"])
            for session in sessions:
                self.assertEqual(await self.say(agent, session, "go"), "end_turn")

    async def test_a_permission_question_is_withdrawn_by_a_cancellation(self):
        unanswered = asyncio.Event()
        editor, cwd = Editor(lambda call, options: unanswered.wait()), self.folder()
        async with self.start(editor) as (agent, process):
            await self.initialize(agent)
            session = (await agent.new_session(cwd=str(cwd), mcp_servers=[])).session_id
            asking = asyncio.create_task(self.say(agent, session, "rename it"))
            await editor.until(lambda: editor.questions)
            await agent.cancel(session_id=session)
            self.assertEqual(await asking, "cancelled")
            self.assertEqual(await self.say(agent, session, "hello"), "end_turn")
        self.assertEqual((cwd / "ring.py").read_text(), CODE)

    async def test_modes_models_and_commands(self):
        editor = Editor(choose("reject"))
        async with self.start(editor) as (agent, process):
            await self.initialize(agent)
            opened = await agent.new_session(cwd=str(self.folder()), mcp_servers=[])
            session = opened.session_id
            self.assertEqual([mode.id for mode in opened.modes.available_modes], ["ask", "edits", "plan"])
            await agent.set_session_mode(session_id=session, mode_id="plan")
            await editor.until(lambda: editor.of("current_mode_update"))
            model = next(option for option in opened.config_options if option.id == "model")
            other = next(o.value for o in model.options if o.value != model.current_value)
            told = await agent.set_config_option(session_id=session, config_id="model", value=other)
            self.assertEqual(next(o.current_value for o in told.config_options if o.id == "model"), other)
            with self.assertRaises(acp.RequestError):
                await agent.set_config_option(session_id=session, config_id="model", value=True)
            await editor.until(lambda: editor.of("available_commands_update"))
            names = [command.name for command in editor.of("available_commands_update")[-1].available_commands]
            self.assertIn("ask-choice", names)
            self.assertEqual(await self.say(agent, session, "hello"), "end_turn")
            self.assertEqual(await self.say(agent, session, "/cost"), "end_turn")
            self.assertIn("$", editor.text("agent_message_chunk"))

    async def test_the_todo_list_is_the_plan(self):
        editor, cwd = Editor(choose("allow-once")), self.folder()
        async with self.start(editor, "--layout", "panels") as (agent, process):
            await self.initialize(agent)
            session = (await agent.new_session(cwd=str(cwd), mcp_servers=[])).session_id
            await self.say(agent, session, "plan it")
            await self.say(agent, session, "go on")
            entries = lambda plan: [(entry.content, entry.status) for entry in plan.entries]
            plans = [entries(plan) for plan in editor.of("plan")]
            self.assertEqual(plans, [
                [("read", "pending"), ("write", "pending")],
                [("read", "completed"), ("write", "pending")],
            ])
        editor = Editor()
        async with self.start(editor, "--layout", "panels") as (agent, process):
            await self.initialize(agent)
            await agent.load_session(cwd=str(cwd), session_id=session, mcp_servers=[])
            await editor.until(lambda: [entries(plan) for plan in editor.of("plan")] == plans[1:])

    async def test_extensions_ask_for_choices_and_for_text(self):
        editor = Editor(lambda call, options: options[1].option_id if len(options) == 3 else options[0].option_id)
        editor.form = lambda message: schema.AcceptElicitationResponse(action="accept", content={"text": "Grace\nHopper"})
        async with self.start(editor) as (agent, process):
            await self.initialize(agent, elicitation={"form": {}})
            session = (await agent.new_session(cwd=str(self.folder()), mcp_servers=[])).session_id
            await self.say(agent, session, "/ask-choice")
            self.assertIn("answers: green | true", editor.text("agent_thought_chunk"))
            await self.say(agent, session, "/ask-text")
            self.assertIn("answers: Grace\nHopper | Grace\nHopper", editor.text("agent_thought_chunk"))
            asked = [(message, mode.requested_schema.properties["text"]) for message, mode in editor.forms]
            self.assertEqual(
                [(message.split(" asks: ")[1], field.title, field.description, field.default) for message, field in asked],
                [("Whose?", "Whose?", "for example Ada", None), ("What?", "What?", None, "begin")],
            )
        for form, abilities in [(None, {}), (schema.DeclineElicitationResponse(action="decline"), {"elicitation": {"form": {}}})]:
            editor = Editor(form=lambda message: form)
            async with self.start(editor) as (agent, process):
                await self.initialize(agent, **abilities)
                session = (await agent.new_session(cwd=str(self.folder()), mcp_servers=[])).session_id
                await self.say(agent, session, "/ask-text")
                self.assertIn("answers: undefined | undefined", editor.text("agent_thought_chunk"))
                self.assertEqual(len(editor.forms), 2 if abilities else 0)

    async def test_an_editor_that_is_killed_leaves_a_stored_session_and_no_process(self):
        for text, sign in [("rename it", "session/request_permission"), ("count slowly", "two"), ("wait for it", 'begun\\n"')]:
            with self.subTest(text):
                cwd = self.folder()
                args = ["acp"] if text == "rename it" else ["acp", "--yes"]
                doomed = subprocess.Popen(
                    [sys.executable, "-c", DOOMED, BINARY, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    env=self.environment(), cwd=self.root,
                )
                agent = int(doomed.stdout.readline())

                def send(number, method, params):
                    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
                    doomed.stdin.write(json.dumps(message).encode() + b"\n")
                    doomed.stdin.flush()

                send(1, "session/new", {"cwd": str(cwd), "mcpServers": []})
                session = json.loads(doomed.stdout.readline())["result"]["sessionId"]
                send(2, "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})
                while sign not in (line := doomed.stdout.readline().decode()):
                    self.assertTrue(line)
                children = descendants(agent)
                self.assertEqual(bool(children), text == "wait for it")
                doomed.kill()
                doomed.wait()
                doomed.stdin.close()
                doomed.stdout.close()
                await Editor().until(lambda: not any(is_running(process) for process in [agent, *children]))
                stored = subprocess.run(
                    [BINARY, "sessions", "show", session], env=self.environment(), cwd=cwd, text=True, capture_output=True
                ).stdout
                self.assertIn(text, stored)
                if text == "count slowly":
                    self.assertIn("one two", stored)
                self.assertEqual((cwd / "ring.py").read_text(), CODE)

    async def test_prompts_of_a_server_become_commands(self):
        editor = Editor(choose("allow-once"))
        cwd = self.folder()
        server = schema.McpServerStdio(name="prompts", command=sys.executable, args=[PROMPT_SERVER, str(cwd)], env=[])
        async with self.start(editor) as (agent, process):
            await self.initialize(agent)
            await agent.new_session(cwd=str(cwd), mcp_servers=[server])
            offered = lambda: [c.name for u in editor.of("available_commands_update")[-1:] for c in u.available_commands]
            await editor.until(lambda: any(name.startswith("prompts:") for name in offered()))
            self.assertIn("cost", offered())


if __name__ == "__main__":
    unittest.main()
