// Sessions over `hardpan acp`, driven by the SDK of the Agent Client Protocol.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { after, before, test } from "node:test";
import * as acp from "@agentclientprotocol/sdk";

const BINARY = process.env.HARDPAN_BIN;
const CODE = "class Ring:\n    pass\n";
const RENAMED = "class Buffer:\n    pass\n";
// One pixel.
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const SCRIPT = `
turns:
  - when: {contains: rename it}
    text: I rename it.
    repeat: always
    tool_calls:
      - {name: edit, arguments: {path: ring.py, old_text: "class Ring", new_text: "class Buffer"}}
  - when: {contains: list the files}
    repeat: always
    tool_calls:
      - {name: bash, arguments: {command: "touch made.txt && echo from the command"}}
  - when: {contains: count slowly}
    text: "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"
    pace: 300ms
    repeat: always
  - when: {contains: call the server}
    repeat: always
    tool_calls:
      - {name: my-echo__echo, arguments: {text: hello}}
  - when: {contains: run it slowly}
    repeat: always
    tool_calls:
      - {name: bash, arguments: {command: "for i in 1 2 3; do echo line $i; sleep 0.4; done; exit 3"}}
  - when: {contains: wait for ever}
    repeat: always
    tool_calls:
      - {name: bash, arguments: {command: "echo begun; sleep 3141"}}
  - when: {contains: run two commands}
    repeat: always
    tool_calls:
      - {name: bash, arguments: {command: "echo first; exit 1"}}
      - {name: bash, arguments: {command: "echo second"}}
  - when: {contains: print ten megabytes}
    repeat: always
    tool_calls:
      - {name: bash, arguments: {command: "yes 0123456789abcdef | head -c 10000000; echo; echo the end"}}
  - when: {contains: think about it}
    reasoning: I think.
    text: I have thought.
    repeat: always
default: {text: Done.}
`;

let root, simulator, url;

before(async () => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "hardpan-acp-")));
  writeFileSync(join(root, "script.yaml"), SCRIPT);
  simulator = spawn(BINARY, ["simulator", "--script", join(root, "script.yaml")], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const line = await new Promise((found) => simulator.stdout.once("data", (data) => found(data.toString())));
  url = line.trim().replace("listening on ", "");
  mkdirSync(join(root, "config"));
  writeFileSync(
    join(root, "config", "config.toml"),
    `map_tokens = 0\nmax_tokens = 500\nprovider = "anthropic"\n[providers.anthropic]\nbase_url = "${url}/v1"\n`,
  );
});

after(() => {
  simulator.kill();
  rmSync(root, { recursive: true, force: true });
});

function workFolder(name) {
  const folder = join(root, name);
  mkdirSync(folder);
  writeFileSync(join(folder, "ring.py"), CODE);
  return folder;
}

// Starts `hardpan acp`, runs `work` with it, and expects it to end by itself once nobody writes to it.
// `terminals` answers the requests `terminal/*`, if the client has terminals.
async function withAgent(answer, work, environment = { ANTHROPIC_API_KEY: "any" }, { terminals, meta } = {}) {
  const child = spawn(BINARY, ["acp"], {
    cwd: root,
    stdio: ["pipe", "pipe", "inherit"],
    env: { PATH: process.env.PATH, HOME: root, HARDPAN_CONFIG_DIR: join(root, "config"), ...environment },
  });
  const ended = new Promise((end) => child.once("exit", (code) => end(code)));
  const updates = [];
  const questions = [];
  const app = acp
    .client({ name: "test" })
    .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
      questions.push(params);
      return { outcome: answer(params) };
    })
    .onNotification(acp.methods.client.session.update, ({ params }) => {
      updates.push(params);
    });
  const { create, waitForExit, release, kill, output } = acp.methods.client.terminal;
  for (const [method, reply] of terminals ? [[create, terminals.create], [waitForExit, terminals.waitForExit], [release, terminals.release]] : []) {
    app.onRequest(method, ({ params }) => reply(params));
  }
  for (const method of [kill, output]) {
    app.onRequest(method, () => assert.fail(`${method} is not needed`));
  }
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  try {
    await app.connectWith(stream, async (agent) => {
      const initialized = await agent.request(acp.methods.agent.initialize, {
        protocolVersion: acp.PROTOCOL_VERSION,
        clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: terminals !== undefined, _meta: meta },
      });
      assert.equal(initialized.protocolVersion, 1);
      assert.equal(initialized.agentInfo.name, "hardpan");
      await work({ agent, updates, questions, initialized });
    });
    child.stdin.destroy();
    assert.equal(await ended, 0);
  } finally {
    child.kill();
  }
}

const choose = (id) => (request) => {
  assert.ok(request.options.some((option) => option.optionId === id), `${id} is offered`);
  return { outcome: "selected", optionId: id };
};
const prompt = (agent, sessionId, text, more = []) =>
  agent.request(acp.methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }, ...more] });
const text = (updates, kind) =>
  updates.filter(({ update }) => update.sessionUpdate === kind).map(({ update }) => update.content.text).join("");
const calls = (updates) =>
  updates.map(({ update }) => update).filter((update) => update.sessionUpdate.startsWith("tool_call"));
async function until(holds) {
  for (let waited = 0; !holds(); waited += 20) {
    assert.ok(waited < 30000, "what was waited for did not come");
    await new Promise((next) => setTimeout(next, 20));
  }
}

test("an edit that is allowed changes the file, and its diff is the file before and after", async () => {
  const cwd = workFolder("allowed");
  await withAgent(choose("allow-once"), async ({ agent, updates, questions }) => {
    const { sessionId, modes, configOptions } = await agent.request(acp.methods.agent.session.new, { cwd, mcpServers: [] });
    assert.equal(modes.currentModeId, "ask");
    assert.deepEqual(configOptions.map((option) => option.id), ["mode", "model", "thinking"]);
    const { stopReason } = await prompt(agent, sessionId, "rename it");
    assert.equal(stopReason, "end_turn");
    assert.equal(readFileSync(join(cwd, "ring.py"), "utf8"), RENAMED);
    const diff = { type: "diff", path: join(cwd, "ring.py"), oldText: CODE, newText: RENAMED };
    assert.equal(questions.length, 1);
    assert.deepEqual(questions[0].toolCall.content, [diff]);
    assert.deepEqual(
      questions[0].options.map((option) => [option.optionId, option.kind]),
      [["allow-once", "allow_once"], ["allow-session", "allow_always"], ["allow-always", "allow_always"], ["reject", "reject_once"]],
    );
    const [first, ...later] = calls(updates);
    // A call without a status is pending.
    assert.deepEqual([first.sessionUpdate, first.kind, first.status ?? "pending"], ["tool_call", "edit", "pending"]);
    const last = later.at(-1);
    assert.deepEqual([last.toolCallId, last.status, last.content], [first.toolCallId, "completed", [diff]]);
    assert.deepEqual(last.locations, [{ path: join(cwd, "ring.py"), line: 1 }]);
    assert.match(text(updates, "agent_message_chunk"), /I rename it\.Done\./);
    assert.ok(updates.some(({ update }) => update.sessionUpdate === "usage_update" && update.used > 0));
  });
});

test("an edit that is refused changes nothing", async () => {
  const cwd = workFolder("refused");
  await withAgent(choose("reject"), async ({ agent, updates }) => {
    const { sessionId } = await agent.request(acp.methods.agent.session.new, { cwd, mcpServers: [] });
    await prompt(agent, sessionId, "rename it");
    assert.equal(readFileSync(join(cwd, "ring.py"), "utf8"), CODE);
    assert.equal(calls(updates).at(-1).status, "failed");
  });
});

test("a mode is chosen: edits run without a question, and a plan changes nothing", async () => {
  const cwd = workFolder("modes");
  await withAgent(choose("reject"), async ({ agent, questions }) => {
    const { sessionId } = await agent.request(acp.methods.agent.session.new, { cwd, mcpServers: [] });
    await agent.request(acp.methods.agent.session.setMode, { sessionId, modeId: "plan" });
    await prompt(agent, sessionId, "rename it");
    assert.equal(readFileSync(join(cwd, "ring.py"), "utf8"), CODE);
    const { configOptions } = await agent.request(acp.methods.agent.session.setConfigOption, {
      sessionId,
      configId: "mode",
      value: "edits",
    });
    assert.equal(configOptions[0].currentValue, "edits");
    await prompt(agent, sessionId, "rename it");
    assert.equal(readFileSync(join(cwd, "ring.py"), "utf8"), RENAMED);
    assert.deepEqual(questions, []);
    await assert.rejects(agent.request(acp.methods.agent.session.setMode, { sessionId, modeId: "all" }));
  });
});

test("a command shows its output, and another model answers after it was chosen", async () => {
  const cwd = workFolder("command");
  await withAgent(choose("allow-once"), async ({ agent, updates, questions }) => {
    const { sessionId, configOptions } = await agent.request(acp.methods.agent.session.new, { cwd, mcpServers: [] });
    await prompt(agent, sessionId, "list the files");
    assert.equal(questions[0].toolCall.kind, "execute");
    const last = calls(updates).at(-1);
    assert.equal(last.status, "completed");
    assert.match(last.content[0].content.text, /from the command/);
    const models = configOptions.find((option) => option.id === "model");
    const other = models.options.find((option) => option.value !== models.currentValue);
    const changed = await agent.request(acp.methods.agent.session.setConfigOption, { sessionId, configId: "model", value: other.value });
    assert.equal(changed.configOptions[1].currentValue, other.value);
    await assert.rejects(
      agent.request(acp.methods.agent.session.setConfigOption, { sessionId, configId: "model", value: "nobody/nothing" }),
    );
  });
});

test("a server that the editor passes on brings its tools", async () => {
  const cwd = workFolder("server");
  const started = join(root, "server-started");
  const server = { name: "my echo", command: "python3", args: [process.env.MCP_SERVER, "plain", started], env: [] };
  await withAgent(choose("allow-once"), async ({ agent, updates, questions, initialized }) => {
    assert.equal(initialized.agentCapabilities.mcpCapabilities.http, true);
    const { sessionId } = await agent.request(acp.methods.agent.session.new, { cwd, mcpServers: [server] });
    await until(() => existsSync(started));
    await prompt(agent, sessionId, "call the server");
    assert.equal(questions.length, 1);
    const last = calls(updates).at(-1);
    assert.equal(last.status, "completed", JSON.stringify(last));
    assert.match(last.content[0].content.text, /^echo hello of start 1/);
  });
});

test("two sessions answer at once, and a prompt is cancelled in the middle of its answer", async () => {
  const [one, two] = [workFolder("one"), workFolder("two")];
  await withAgent(choose("reject"), async ({ agent, updates }) => {
    const open = async (cwd) => (await agent.request(acp.methods.agent.session.new, { cwd, mcpServers: [] })).sessionId;
    const [slow, quick] = [await open(one), await open(two)];
    assert.notEqual(slow, quick);
    const counted = prompt(agent, slow, "count slowly");
    await until(() => text(updates, "agent_message_chunk").includes("one"));
    await assert.rejects(prompt(agent, slow, "hello"), /a prompt runs|Invalid request/i);
    assert.equal((await prompt(agent, quick, "think about it")).stopReason, "end_turn");
    assert.equal(text(updates, "agent_thought_chunk").includes("I think."), true);
    await agent.notify(acp.methods.agent.session.cancel, { sessionId: slow });
    assert.equal((await counted).stopReason, "cancelled");
    assert.equal(text(updates.filter((update) => update.sessionId === slow), "agent_message_chunk").includes("twenty"), false);
    // The session goes on.
    assert.equal((await prompt(agent, slow, "hello")).stopReason, "end_turn");
  });
});

test("another process lists, loads and resumes what was said, with images and files", async () => {
  const cwd = workFolder("stored");
  let sessionId;
  await withAgent(choose("reject"), async ({ agent, updates }) => {
    ({ sessionId } = await agent.request(acp.methods.agent.session.new, { cwd, mcpServers: [] }));
    await prompt(agent, sessionId, "look at this ", [
      { type: "image", mimeType: "image/png", data: PNG },
      { type: "resource_link", uri: `file://${cwd}/ring.py`, name: "ring.py" },
      { type: "resource", resource: { uri: `file://${cwd}/draft.txt`, text: "not saved yet" } },
    ]);
    await until(() => updates.some(({ update }) => update.sessionUpdate === "available_commands_update"));
    const { update } = updates.find(({ update }) => update.sessionUpdate === "available_commands_update");
    const names = update.availableCommands.map((command) => command.name);
    assert.ok(names.includes("cost") && names.includes("compact") && !names.includes("quit"));
    await prompt(agent, sessionId, "/cost");
    await assert.rejects(prompt(agent, sessionId, "hear", [{ type: "audio", mimeType: "audio/wav", data: "AAAA" }]));
  });
  await withAgent(choose("reject"), async ({ agent, updates }) => {
    const { sessions } = await agent.request(acp.methods.agent.session.list, { cwd });
    assert.deepEqual(sessions.map((session) => [session.sessionId, session.cwd]), [[sessionId, cwd]]);
    await agent.request(acp.methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
    const said = updates.filter(({ update }) => update.sessionUpdate === "user_message_chunk");
    assert.match(said[0].update.content.text, /^look at this @ring\.py[^]*not saved yet/);
    assert.ok(said.some(({ update }) => update.content.type === "image" && update.content.data === PNG));
    assert.match(text(updates, "agent_message_chunk"), /Done\./);
    assert.equal((await prompt(agent, sessionId, "hello again")).stopReason, "end_turn");
    await agent.request(acp.methods.agent.session.close, { sessionId });
    await assert.rejects(prompt(agent, sessionId, "gone"));
    await agent.request(acp.methods.agent.session.resume, { sessionId, cwd, mcpServers: [] });
    assert.equal((await prompt(agent, sessionId, "and again")).stopReason, "end_turn");
    await assert.rejects(agent.request(acp.methods.agent.session.load, { sessionId: "../../etc/passwd", cwd, mcpServers: [] }));
  });
});

test("without a key a session is refused, and the error says what to do", async () => {
  const cwd = workFolder("nokey");
  // The simulator on loopback needs no key: these settings do not name it.
  const config = join(root, "other-config");
  mkdirSync(config);
  await withAgent(choose("reject"), async ({ agent, initialized }) => {
    assert.deepEqual(initialized.authMethods.map((method) => method.id), ["api-key"]);
    const refused = (error) => error.code === -32000 && JSON.stringify(error.data).includes("hardpan key");
    await assert.rejects(agent.request(acp.methods.agent.session.new, { cwd, mcpServers: [] }), refused);
    await assert.rejects(agent.request(acp.methods.agent.authenticate, { methodId: "api-key" }), refused);
  }, { HARDPAN_CONFIG_DIR: config });
});

// Terminals as an editor has them: programs that it starts, with what they print and when.
class Terminals {
  constructor() {
    this.opened = [];
    this.create = ({ command, args, env, cwd }) => {
      const variables = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value]));
      const child = spawn(command, args, { cwd, env: { PATH: process.env.PATH, ...variables }, stdio: ["ignore", "pipe", "inherit"] });
      const terminal = { id: `terminal-${this.opened.length}`, args, child, text: "", released: false };
      child.stdout.on("data", (data) => (terminal.text += data.toString()));
      terminal.ended = new Promise((end) => child.once("close", (code, signal) => end({ exitCode: code, signal })));
      this.opened.push(terminal);
      return { terminalId: terminal.id };
    };
    this.waitForExit = ({ terminalId }) => this.find(terminalId).ended;
    this.release = ({ terminalId }) => {
      const terminal = this.find(terminalId);
      assert.equal(terminal.released, false);
      terminal.released = true;
      terminal.child.kill("SIGKILL");
      return {};
    };
    this.find = (id) => this.opened.find((terminal) => terminal.id === id);
  }
}
const environment = { ANTHROPIC_API_KEY: "any" };
const newSession = async (agent, cwd) => (await agent.request(acp.methods.agent.session.new, { cwd, mcpServers: [] })).sessionId;

test("a command is shown in a terminal of the client's while it runs, and the terminal ends as the command did", async () => {
  const cwd = workFolder("terminal");
  const terminals = new Terminals();
  await withAgent(choose("allow-once"), async ({ agent, updates, questions }) => {
    const sessionId = await newSession(agent, cwd);
    const prompted = prompt(agent, sessionId, "run it slowly");
    await until(() => terminals.opened[0]?.text.includes("line 2\r\n"));
    const [terminal] = terminals.opened;
    // It arrives while the command runs.
    assert.equal(terminal.text, "line 1\r\nline 2\r\n");
    assert.equal(calls(updates).at(-1).status, "in_progress");
    const shown = [{ type: "terminal", terminalId: terminal.id }];
    assert.deepEqual(calls(updates).at(-1).content, shown);
    assert.match(terminal.args.join(" "), /for i in 1 2 3/);
    assert.equal((await prompted).stopReason, "end_turn");
    assert.match(terminal.text, /^line 1\r\nline 2\r\nline 3\r\n.*exit code 3/);
    assert.deepEqual(await terminal.ended, { exitCode: 3, signal: null });
    assert.equal(questions.length, 1);
    const last = calls(updates).at(-1);
    assert.deepEqual([last.status, last.content], ["failed", shown]);
    await until(() => terminal.released);

    await prompt(agent, sessionId, "run two commands");
    assert.deepEqual(terminals.opened.slice(1).map((terminal) => terminal.text.split("\r\n")[0]), ["first", "second"]);
    await prompt(agent, sessionId, "print ten megabytes");
    assert.match(terminals.opened[3].text, /the end\r\n/);
    assert.ok(terminals.opened[3].text.length < 2 << 20);
    await until(() => terminals.opened.every((terminal) => terminal.released));
  }, environment, { terminals });
});

test("ending the program in the terminal stops the command, and the run goes on", async () => {
  const cwd = workFolder("ended");
  const terminals = new Terminals();
  await withAgent(choose("allow-once"), async ({ agent, updates }) => {
    const sessionId = await newSession(agent, cwd);
    const prompted = prompt(agent, sessionId, "wait for ever");
    await until(() => terminals.opened[0]?.text === "begun\r\n");
    terminals.opened[0].child.kill("SIGINT");
    assert.equal((await prompted).stopReason, "end_turn");
    const last = calls(updates).at(-1);
    assert.equal(last.status, "failed");
    assert.deepEqual(last.content[0], { type: "terminal", terminalId: terminals.opened[0].id });
    // The model is told the same.
    assert.match(last.content[1].content.text, /The user stopped this call/);
    assert.match(text(updates, "agent_message_chunk"), /Done\./);

    // Cancelling and closing end the terminals, too.
    const cancelled = prompt(agent, sessionId, "wait for ever");
    await until(() => terminals.opened[1]?.text === "begun\r\n");
    await agent.notify(acp.methods.agent.session.cancel, { sessionId });
    assert.equal((await cancelled).stopReason, "cancelled");
    await until(() => terminals.opened[1].released);
    assert.equal(terminals.opened[1].text, "begun\r\nThe user stopped this call before it ended.");
    const closed = prompt(agent, sessionId, "wait for ever");
    await until(() => terminals.opened[2]?.text === "begun\r\n");
    await agent.request(acp.methods.agent.session.close, { sessionId });
    assert.equal((await closed).stopReason, "cancelled");
    await until(() => terminals.opened[2].released);
  }, environment, { terminals });
});

test("a client that gives no terminal, or one that runs nothing, gets the output as text", async () => {
  const cwd = workFolder("no-terminal");
  const asText = async (terminals, prompts) => {
    await withAgent(choose("allow-once"), async ({ agent, updates }) => {
      const sessionId = await newSession(agent, cwd);
      for (let count = 0; count < prompts; count++) {
        assert.equal((await prompt(agent, sessionId, "list the files")).stopReason, "end_turn");
        const last = calls(updates).at(-1);
        assert.equal(last.status, "completed");
        assert.match(last.content[0].content.text, /from the command/);
      }
    }, environment, { terminals });
    return terminals;
  };
  const unused = { waitForExit: () => assert.fail("there is none"), release: () => assert.fail("there is none") };
  const refuse = () => { throw acp.RequestError.internalError(undefined, "no terminal today"); };
  await asText({ ...unused, create: refuse }, 1);
  // One that answers much later gets its terminal back, and is not asked again.
  let asked = 0;
  const released = [];
  const late = async () => {
    asked += 1;
    await new Promise((next) => setTimeout(next, 3500));
    return { terminalId: "late" };
  };
  await withAgent(choose("allow-once"), async ({ agent, updates }) => {
    const sessionId = await newSession(agent, cwd);
    for (const _ of [1, 2]) {
      await prompt(agent, sessionId, "list the files");
      assert.match(calls(updates).at(-1).content[0].content.text, /from the command/);
    }
    assert.equal(asked, 1);
    await until(() => released.length > 0);
    assert.deepEqual(released, ["late"]);
  }, environment, { terminals: { ...unused, create: late, release: ({ terminalId }) => { released.push(terminalId); return {}; } } });
  // One whose terminals run on another machine, where there is no such program.
  let created = 0;
  await asText({ ...unused, create: () => ({ terminalId: `${created++}` }), release: () => ({}) }, 2);
  assert.equal(created, 1);
});

test("a client that never tells of the end of a terminal is waited for once", async () => {
  const cwd = workFolder("no-end");
  const terminals = new Terminals();
  let asked = 0;
  terminals.waitForExit = () => {
    asked += 1;
    return new Promise(() => {});
  };
  await withAgent(choose("allow-once"), async ({ agent, updates }) => {
    const sessionId = await newSession(agent, cwd);
    for (const number of [0, 1]) {
      await prompt(agent, sessionId, "list the files");
      assert.deepEqual(calls(updates).at(-1).content, [{ type: "terminal", terminalId: `terminal-${number}` }]);
    }
    assert.equal(asked, 1);
    assert.ok(terminals.opened.every((terminal) => terminal.text === "from the command\r\n"));
  }, environment, { terminals });
});

test("a client that draws terminals itself is told what to draw", async () => {
  const cwd = workFolder("drawn");
  await withAgent(choose("allow-once"), async ({ agent, updates }) => {
    const sessionId = await newSession(agent, cwd);
    await prompt(agent, sessionId, "run it slowly");
    const [first, ...later] = calls(updates);
    const id = first.toolCallId;
    assert.deepEqual(first._meta.terminal_info, { terminal_id: id, cwd });
    assert.deepEqual(first.content, [{ type: "terminal", terminalId: id }]);
    const drawn = later.map((update) => update._meta?.terminal_output).filter(Boolean);
    assert.ok(drawn.length >= 3 && drawn.every((output) => output.terminal_id === id));
    assert.match(drawn.map((output) => output.data).join(""), /^line 1\r\nline 2\r\nline 3\r\n.*exit code 3/);
    const last = later.at(-1);
    assert.equal(last.status, "failed");
    assert.deepEqual(last.content, [{ type: "terminal", terminalId: id }]);
    assert.deepEqual(last._meta.terminal_exit, { terminal_id: id, exit_code: 3, signal: null });
  }, environment, { meta: { terminal_output: true } });
});
