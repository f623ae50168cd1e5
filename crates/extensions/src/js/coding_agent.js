// Parts of `pi-coding-agent` and `pi-ai` that use files and programs, and stubs of what is not there. Evaluated as a
// function of the built-in modules, which it completes.
(function (platform, builtIn) {
  "use strict";
  const codingAgent = builtIn("coding-agent");
  const ai = builtIn("ai");
  const tui = builtIn("tui");
  const path = builtIn("path");

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
