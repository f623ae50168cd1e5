// Parts of `pi-coding-agent` and `pi-ai` that use files and programs, and stubs of what is not there. Evaluated as a
// function of the built-in modules, which it completes.
(function (platform, builtIn) {
  "use strict";
  const codingAgent = builtIn("coding-agent");
  const ai = builtIn("ai");
  const tui = builtIn("tui");
  const fs = builtIn("fs").promises;
  const path = builtIn("path");
  const { Type } = builtIn("typebox");
  const text = (content, details) => ({ content: [{ type: "text", text: content }], details });

  // ---- tools, as an extension wraps them
  const placeOf = (folder, name) => path.resolve(folder, String(name).replace(/^@/, ""));
  const definitions = {
    Read: (folder, { operations = {} }) => ({
      name: "read", label: "read", description: "Read the contents of a file.",
      parameters: Type.Object({ path: Type.String(), offset: Type.Optional(Type.Number()), limit: Type.Optional(Type.Number()) }),
      async execute(_id, { path: name, offset, limit }) {
        const content = await (operations.readFile ?? fs.readFile)(placeOf(folder, name));
        const lines = content.toString("utf8").split("\n");
        const from = Math.max(0, (offset ?? 1) - 1);
        if (from >= lines.length) throw new Error(`Offset ${offset} is beyond end of file (${lines.length} lines total)`);
        const cut = codingAgent.truncateHead(lines.slice(from, limit === undefined ? undefined : from + limit).join("\n"));
        return text(cut.content, cut.truncated ? { truncation: cut } : undefined);
      },
    }),
    Write: (folder, { operations = {} }) => ({
      name: "write", label: "write", description: "Write content to a file.",
      parameters: Type.Object({ path: Type.String(), content: Type.String() }),
      async execute(_id, { path: name, content }) {
        const place = placeOf(folder, name);
        await (operations.mkdir ?? ((parent) => fs.mkdir(parent, { recursive: true })))(path.dirname(place));
        await (operations.writeFile ?? fs.writeFile)(place, content);
        return text(`Successfully wrote ${content.length} bytes to ${name}`);
      },
    }),
    Edit: (folder, { operations = {} }) => ({
      name: "edit", label: "edit", description: "Replace exact text in a file.",
      parameters: Type.Object({ path: Type.String(), edits: Type.Array(Type.Object({ oldText: Type.String(), newText: Type.String() })) }),
      // Earlier releases had one edit, without a list.
      prepareArguments: ({ oldText, newText, ...rest }) => (rest.edits === undefined && oldText !== undefined ? { ...rest, edits: [{ oldText, newText }] } : rest),
      async execute(_id, { path: name, edits, oldText, newText }) {
        const place = placeOf(folder, name);
        let content = (await (operations.readFile ?? fs.readFile)(place)).toString("utf8");
        for (const edit of edits ?? [{ oldText, newText }]) {
          const parts = content.split(edit.oldText);
          if (parts.length !== 2) throw new Error(`The text to replace is there ${parts.length - 1} times in ${name}: it must be there once`);
          content = parts.join(edit.newText);
        }
        await (operations.writeFile ?? fs.writeFile)(place, content);
        return text(`Successfully replaced text in ${name}.`);
      },
    }),
    Bash: (folder, { operations = {}, spawnHook, commandPrefix }) => ({
      name: "bash", label: "bash", description: "Execute a bash command.",
      parameters: Type.Object({ command: Type.String(), timeout: Type.Optional(Type.Number()) }),
      async execute(_id, { command, timeout }, signal) {
        const whole = commandPrefix ? `${commandPrefix}\n${command}` : command;
        const start = spawnHook ? spawnHook({ command: whole, cwd: folder, env: { ...process.env } }) : { command: whole, cwd: folder, env: undefined };
        let output = "";
        const run = operations.exec ?? localOperations.exec;
        const { exitCode } = await run(start.command, start.cwd, { onData: (part) => { output += part.toString("utf8"); }, signal, timeout, env: start.env });
        const cut = codingAgent.truncateTail(output);
        if (exitCode !== 0 && exitCode !== null) throw new Error(`${cut.content}\n\nCommand exited with code ${exitCode}`);
        return text(cut.content || "(no output)", cut.truncated ? { truncation: cut } : undefined);
      },
    }),
    Ls: (folder) => ({
      name: "ls", label: "ls", description: "List the contents of a folder.",
      parameters: Type.Object({ path: Type.Optional(Type.String()), limit: Type.Optional(Type.Number()) }),
      async execute(_id, { path: name = ".", limit = 500 }) {
        const entries = await fs.readdir(placeOf(folder, name), { withFileTypes: true });
        return text(entries.slice(0, limit).map((entry) => entry.name + (entry.isDirectory() ? "/" : "")).join("\n") || "(empty directory)");
      },
    }),
    Grep: (folder) => ({
      name: "grep", label: "grep", description: "Search the contents of files.",
      parameters: Type.Object({ pattern: Type.String(), path: Type.Optional(Type.String()), glob: Type.Optional(Type.String()), ignoreCase: Type.Optional(Type.Boolean()), literal: Type.Optional(Type.Boolean()), context: Type.Optional(Type.Number()), limit: Type.Optional(Type.Number()) }),
      async execute(_id, { pattern, path: name = ".", glob, ignoreCase, literal, context, limit = 100 }) {
        const flags = ["-rn", literal ? "-F" : "-E", ...(ignoreCase ? ["-i"] : []), ...(context ? [`-C${context}`] : []), ...(glob ? [`--include=${glob}`] : [])];
        const found = await platform.call("exec", { command: "grep", args: [...flags, "--", pattern, name], cwd: folder });
        return text(found.stdout.split("\n").slice(0, limit).join("\n") || "No matches found");
      },
    }),
    Find: (folder) => ({
      name: "find", label: "find", description: "Find files by a pattern.",
      parameters: Type.Object({ pattern: Type.String(), path: Type.Optional(Type.String()), limit: Type.Optional(Type.Number()) }),
      async execute(_id, { pattern, path: name = ".", limit = 1000 }) {
        const found = await platform.call("exec", { command: "find", args: [name, "-name", pattern.split("/").pop()], cwd: folder });
        return text(found.stdout.split("\n").slice(0, limit).join("\n") || "No files found matching pattern");
      },
    }),
  };
  const localOperations = {
    async exec(command, cwd, { onData, timeout, signal, env } = {}) {
      const usual = process.env;
      const changed = env ? Object.fromEntries(Object.entries(env).filter(([name, value]) => value !== undefined && usual[name] !== value)) : undefined;
      const running = platform.call("exec", { command: "bash", args: ["-c", command], cwd, env: changed, timeout: timeout ? timeout * 1000 : undefined });
      signal?.addEventListener("abort", () => platform.cancel(running), { once: true });
      const result = await running;
      for (const part of [result.stdout, result.stderr]) if (part) onData?.(Buffer.from(part));
      return { exitCode: result.killed ? null : result.code };
    },
  };
  for (const [name, make] of Object.entries(definitions)) {
    codingAgent[`create${name}Tool`] = (folder, options) => make(folder ?? process.cwd(), options ?? {});
    codingAgent[`create${name}ToolDefinition`] = codingAgent[`create${name}Tool`];
    codingAgent[`is${name}ToolResult`] ??= (event) => event?.toolName === name.toLowerCase();
  }
  codingAgent.createLocalBashOperations = () => localOperations;
  codingAgent.createCodingTools = (folder, options) => ["Read", "Bash", "Edit", "Write"].map((name) => definitions[name](folder, options ?? {}));
  codingAgent.createReadOnlyTools = (folder, options) => ["Read", "Grep", "Find", "Ls"].map((name) => definitions[name](folder, options ?? {}));

  // ---- messages and entries
  const { partsOf: _partsOf, textOf, ...sessions } = platform.helpers.sessions;
  Object.assign(codingAgent, sessions);
  // A skill as its command puts it into a prompt, with what the person wrote after it.
  codingAgent.parseSkillBlock = (prompt) => {
    const found = /^<skill name="([^"]*)" location="([^"]*)">\n?([\s\S]*?)\n?<\/skill>\s*([\s\S]*)$/.exec(String(prompt));
    return found && { name: found[1], location: found[2], content: found[3], userMessage: found[4].trim() || undefined };
  };
  codingAgent.getShellConfig = (shell) => ({ shell: shell ?? "/bin/bash", args: ["-c"] });
  codingAgent.readStoredCredential = () => undefined;
  // Null: the image cannot be made smaller here.
  codingAgent.resizeImage = async () => null;
  codingAgent.getShellEnv = () => ({ ...process.env });
  // Where the other system would be installed: nothing is there.
  codingAgent.getPackageDir = () => path.join(codingAgent.getAgentDir(), "package");
  for (const [name, file] of [["Readme", "README.md"], ["Docs", "docs"], ["Examples", "examples"], ["Changelog", "CHANGELOG.md"]]) codingAgent[`get${name}Path`] = () => path.join(codingAgent.getPackageDir(), file);
  codingAgent.truncateLine = (line, width = 500) => (line.length > width ? { text: `${line.slice(0, width)}... [truncated]`, wasTruncated: true } : { text: line, wasTruncated: false });
  codingAgent.highlightCode = (code) => String(code).split("\n");
const LANGUAGES = { ts: "typescript", tsx: "typescript", mts: "typescript", cts: "typescript", js: "javascript", jsx: "javascript", mjs: "javascript", cjs: "javascript", py: "python", rb: "ruby", rs: "rust", go: "go", java: "java", kt: "kotlin", swift: "swift", c: "c", h: "c", cpp: "cpp", cc: "cpp", hpp: "cpp", cs: "csharp", php: "php", sh: "bash", bash: "bash", zsh: "bash", fish: "fish", ps1: "powershell", sql: "sql", html: "html", htm: "html", css: "css", scss: "scss", sass: "sass", less: "less", json: "json", yaml: "yaml", yml: "yaml", toml: "toml", xml: "xml", md: "markdown", markdown: "markdown", dockerfile: "dockerfile", makefile: "makefile", lua: "lua", pl: "perl", r: "r", scala: "scala", clj: "clojure", ex: "elixir", exs: "elixir", erl: "erlang", hs: "haskell", ml: "ocaml", vim: "vim", graphql: "graphql", proto: "protobuf", tf: "hcl", hcl: "hcl" };
  codingAgent.getLanguageFromPath = (file) => LANGUAGES[String(file).split(".").pop()?.toLowerCase().split("/").pop()];
  codingAgent.getSelectListTheme = codingAgent.getSettingsListTheme = codingAgent.getMarkdownTheme;
  codingAgent.keyText = codingAgent.rawKeyHint = (key) => String(key);
  codingAgent.initTheme = () => {};
  codingAgent.formatSkillsForPrompt = (skills) => {
    const shown = skills.filter((skill) => !skill.disableModelInvocation);
    const plainText = (text) => String(text).replace(/[&<>"']/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;" })[sign]);
    const entry = ({ name, description, filePath }) => `  <skill>\n    <name>${plainText(name)}</name>\n    <description>${plainText(description)}</description>\n    <location>${plainText(filePath)}</location>\n  </skill>`;
    return shown.length ? `\n\nSkills hold instructions for certain tasks: read the file of one whose description fits. Relative paths in it start at its folder.\n\n<available_skills>\n${shown.map(entry).join("\n")}\n</available_skills>` : "";
  };
  codingAgent.truncateToVisualLines = (shown, most, width, paddingX = 0) => { const all = new tui.Text(shown, paddingX, 0).render(width); return { visualLines: all.slice(-most), skippedCount: Math.max(0, all.length - most) }; };
  codingAgent.createSyntheticSourceInfo = (file, { source, scope = "temporary", origin = "top-level", baseDir } = {}) => ({ path: file, source, scope, origin, baseDir });
  codingAgent.hasTrustRequiringProjectResources = () => false;
  codingAgent.detectSupportedImageMimeTypeFromFile = async (file) => {
    const begin = (await fs.readFile(file)).subarray(0, 12);
    const kinds = [["image/png", begin.subarray(0, 4).toString("hex") === "89504e47"], ["image/jpeg", begin.subarray(0, 3).toString("hex") === "ffd8ff"], ["image/gif", begin.subarray(0, 4).toString() === "GIF8"], ["image/webp", begin.subarray(8, 12).toString() === "WEBP"]];
    return kinds.find(([, isMeant]) => isMeant)?.[0] ?? null;
  };
  codingAgent.renderDiff = (diff) => String(diff);
  codingAgent.VERSION = "0.87.1";
  codingAgent.CURRENT_SESSION_VERSION = 3;
  codingAgent.createEventBus = () => { const listeners = new Map(); return { emit: (name, data) => (listeners.get(name) ?? []).forEach((listen) => listen(data)), on: (name, listen) => { listeners.set(name, [...(listeners.get(name) ?? []), listen]); return () => listeners.set(name, listeners.get(name).filter((other) => other !== listen)); } }; };

  // ---- models
  ai.getSupportedThinkingLevels = (model) => (model?.reasoning === false ? ["off"] : ["off", "minimal", "low", "medium", "high"]);
  ai.calculateCost = (model, usage) => {
    const price = (kind) => ((model?.cost?.[kind] ?? 0) / 1e6) * (usage[kind] ?? 0);
    const cost = { input: price("input"), output: price("output"), cacheRead: price("cacheRead"), cacheWrite: price("cacheWrite") };
    cost.total = cost.input + cost.output + cost.cacheRead + cost.cacheWrite;
    usage.cost = cost;
    return cost;
  };
  const LEVELS = ["off", "minimal", "low", "medium", "high", "xhigh"];
  // The level itself if the model has it, else the next one below, or its lowest.
  ai.clampThinkingLevel = (model, level) => { const offered = ai.getSupportedThinkingLevels(model); return offered.findLast((other) => LEVELS.indexOf(other) <= LEVELS.indexOf(level)) ?? offered[0]; };
  ai.contentText = (content) => textOf(content);
  // What an answer that broke off says: too much was asked, or the server was not well.
  const failureText = (message) => (message?.stopReason === "error" ? String(message.errorMessage ?? "") : "");
  ai.isContextOverflow = (message, window) => /context.{0,20}(length|window|limit)|too (long|many tokens)|exceeds.{0,40}(context|tokens)/i.test(failureText(message)) || (window !== undefined && message?.stopReason === "stop" && codingAgent.calculateContextTokens(message.usage) > window);
  ai.isRetryableAssistantError = (message) => /\b(408|409|429|5\d\d)\b|overloaded|rate.?limit|too many requests|timed? ?out|connection|network|unavailable/i.test(failureText(message));
  ai.modelsAreEqual = (one, other) => one?.provider === other?.provider && one?.id === other?.id;

  // ---- settings of the other system, to be read: those of the extension's data folder and of the project
  class SettingsManager {
    #global; #project;
    constructor(global, project) {
      this.#global = global;
      this.#project = project;
      return new Proxy(this, { get: (target, name) => {
        if (name in target || typeof name === "symbol") { const value = target[name]; return typeof value === "function" ? value.bind(target) : value; }
        const field = /^(?:get|is)([A-Z])(.*)$/.exec(name);
        if (field) return () => target.getSettings()[field[1].toLowerCase() + field[2]];
        return () => missing(`SettingsManager.${name}`);
      } });
    }
    static #read(file) { try { return JSON.parse(builtIn("fs").readFileSync(file, "utf8")); } catch { return {}; } }
    static create(folder = process.cwd(), agentFolder = codingAgent.getAgentDir()) {
      return new SettingsManager(SettingsManager.#read(path.join(agentFolder, "settings.json")), SettingsManager.#read(path.join(folder, ".pi", "settings.json")));
    }
    static inMemory(settings = {}) { return new SettingsManager(settings, {}); }
    getGlobalSettings() { return structuredClone(this.#global); }
    getProjectSettings() { return structuredClone(this.#project); }
    getSettings() { return structuredClone({ ...this.#global, ...this.#project }); }
    async reload() {}
  }
  codingAgent.SettingsManager = SettingsManager;

  // ---- what is not there says so when it is used
  const missing = (name) => { throw new Error(`${name} is not available in Hardpan's extensions`); };
  const absentClass = (name) => new Proxy(class { constructor() { missing(name); } }, {
    get: (target, key) => (key in target || typeof key === "symbol" ? target[key] : () => missing(`${name}.${key}`)),
  });
  const classes = "ModelRuntime DefaultPackageManager ProjectTrustStore AgentSession AgentSessionRuntime AuthStorage ModelRegistry ExtensionRunner InteractiveMode RpcClient DefaultResourceLoader SessionManager Theme";
  const functions = "compact getPowerShellConfig createAgentSession createAgentSessionFromServices createAgentSessionRuntime createAgentSessionServices discoverAndLoadExtensions generateSummary generateBranchSummary loadSkills loadSkillsFromDir loadProjectContextFiles createExtensionRuntime createPowerShellTool convertToPng prepareBranchEntries collectEntriesForBranchSummary findCutPoint findTurnStartIndex generateSummaryWithUsage resolveCliModel main runPrintMode runRpcMode wrapRegisteredTool wrapRegisteredTools copyToClipboard";
  for (const name of classes.split(" ")) codingAgent[name] = absentClass(name);
  for (const name of functions.split(" ")) codingAgent[name] ??= () => missing(name);
  // Keys stay with Hardpan.
  ai.getEnvApiKey = ai.findEnvKeys = () => undefined;
  for (const name of "registerApiProvider getApiProvider".split(" ")) ai[name] ??= () => missing(name);
  for (const name of "TUI TuiMainScreen TuiAltScreen ProcessTerminal".split(" ")) tui[name] = absentClass(name);

  // ---- the package below it, which has part of the same
  const core = builtIn("agent-core");
  const shared = "formatSize truncateHead truncateTail truncateLine DEFAULT_MAX_BYTES DEFAULT_MAX_LINES convertToLlm serializeConversation calculateContextTokens estimateTokens estimateContextTokens getLastAssistantUsage DEFAULT_COMPACTION_SETTINGS shouldCompact bashExecutionToText parseCommandArgs substituteArgs createReadTool createWriteTool createEditTool createBashTool loadSkills generateSummary compact COMPACTION_SUMMARY_PREFIX COMPACTION_SUMMARY_SUFFIX BRANCH_SUMMARY_PREFIX BRANCH_SUMMARY_SUFFIX";
  for (const name of shared.split(" ")) core[name] = codingAgent[name];
  Object.assign(core, { uuidv7: ai.uuidv7, utf8ByteLength: (value) => Buffer.byteLength(String(value)), sanitizeBinaryOutput: (value) => String(value).replace(/[\0-\x08\x0b\x0c\x0e-\x1f]/g, ""), toError: (error) => (error instanceof Error ? error : new Error(String(error))), ok: (value) => ({ ok: true, value }), err: (error) => ({ ok: false, error }) });
  for (const name of "Agent AgentHarness".split(" ")) core[name] = absentClass(name);
  for (const name of "agentLoop agentLoopContinue runAgentLoop streamProxy".split(" ")) core[name] = () => missing(name);
})
