// What an extension is handed: `pi`, and a `ctx` for each call. Evaluated as a function; returns the
// entries that the host calls. Nothing of it is global.
(function (native, platform) {
  "use strict";
  // Nothing that a script changes in these reaches what decides about its calls.
  const { AbortController, Array, Boolean, Error, JSON, Object, Promise, Proxy, Reflect, Set, String, TextDecoder, TypeError } = globalThis;
  const noDecisions = [Array, Error, RegExp, Date, String, Number, Boolean, globalThis.Map, globalThis.Set];
  const { apply } = Reflect, { then } = Promise.prototype;
  const withOwnMethods = (Type) => {
    const Own = class extends Type {};
    for (const name of Reflect.ownKeys(Type.prototype)) if (name !== "constructor") Object.defineProperty(Own.prototype, name, Object.getOwnPropertyDescriptor(Type.prototype, name));
    return Own;
  };
  const [Map, WeakMap] = [globalThis.Map, globalThis.WeakMap].map(withOwnMethods);
  const { parse, stringify } = JSON;
  const json = (value) => stringify(value === undefined ? null : value) ?? "null";
  const now = (name, args) => parse(native.now(name, json(args))) ?? undefined;

  // ---- what the host does meanwhile
  let lastId = 0;
  const waiting = new Map();
  const ids = new WeakMap();
  const call = (name, args) => {
    const id = ++lastId;
    const promise = new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      try { native.start(id, name, json(args)); } catch (error) { waiting.delete(id); throw error; }
    });
    ids.set(promise, id);
    return promise;
  };
  platform.call = call;
  platform.now = now;
  // Ends what the host does; the promise stays as it is.
  platform.cancel = (promise) => { const id = ids.get(promise); if (waiting.delete(id)) native.cancel(id); };
  function settle(id, succeeded, value) {
    const promise = waiting.get(id);
    waiting.delete(id);
    if (!promise) return;
    if (succeeded) promise.resolve(value ?? undefined);
    else promise.reject(new Error(value));
  }
  // A question that a signal ends early, or the host after the time that the extension allows.
  function question(name, args, options) {
    const { timeout, signal } = options ?? {};
    if (signal?.aborted) return Promise.resolve(undefined);
    const asked = call(name, { ...args, timeout });
    if (!signal) return asked;
    return new Promise((resolve, reject) => {
      const end = () => { platform.cancel(asked); resolve(undefined); };
      signal.addEventListener("abort", end, { once: true });
      asked.then(resolve, reject).finally(() => signal.removeEventListener("abort", end));
    });
  }

  platform.question = question;

  // ---- ctx
  const once = new Set();
  const notShown = (what) => {
    if (!once.has(what)) { once.add(what); native.log("warn", `ctx.ui.${what} has no effect here`); }
  };
  const ui = {
    notify: (text, level = "info") => { now("ui.notify", { text: String(text), level }); },
    confirm: async (title, message, options) => (await question("ui.confirm", { title: String(title), message: message === undefined ? undefined : String(message) }, options)) === true,
    // There is nothing to choose.
    select: (title, choices, options) => (choices.length === 0 ? Promise.resolve(undefined) : question("ui.select", { title: String(title), choices: choices.map(String) }, options)),
    input: (title, placeholder, options) => question("ui.input", { title: String(title), placeholder }, options),
    editor: (title, prefill, options) => question("ui.editor", { title: String(title), prefill }, options),
    setStatus: (key, text) => { now("ui.status", { key: String(key), text: text == null ? undefined : String(text) }); },
    setTitle: (text) => { now("ui.title", { text: String(text) }); },
    setWidget: (key, lines, options) => {
      const show = (shown) => now("ui.widget", { key: String(key), lines: shown?.map(String), placement: options?.placement });
      platform.followWidget(String(key), lines, show);
      if (typeof lines !== "function") show(Array.isArray(lines) ? lines : undefined);
    },
    setWorkingMessage: (text) => { now("ui.working", { text: text === undefined ? undefined : String(text) }); },
    setEditorText: (text) => { now("ui.editorText", { text: String(text) }); },
    pasteToEditor: (text) => { now("ui.editorText", { text: String(text), insert: true }); },
    // Without a person there is nobody to ask, and nothing is drawn.
    custom: async (factory) => (now("hasUI") ? platform.runCustom(factory, ui) : undefined),
    getEditorText: () => now("ui.getEditorText") ?? "", getAllThemes: () => [], getTheme: () => undefined,
    setTheme: () => ({ success: false, error: "themes cannot be changed by extensions here" }),
    onTerminalInput: () => () => {}, getToolsExpanded: () => false,
    get theme() { return platform.helpers.plainTheme; },
  };
  for (const name of ["setFooter", "setHeader", "setEditorComponent", "getEditorComponent", "addAutocompleteProvider", "setWorkingIndicator", "setWorkingVisible", "setHiddenThinkingLabel", "setToolsExpanded"]) {
    ui[name] = () => notShown(name);
  }
  const branch = () => now("session.branch");
  const pathTo = (id) => {
    const byId = new Map(now("session.entries").map((entry) => [entry.id, entry]));
    const path = [];
    for (let entry = byId.get(id); entry; entry = byId.get(entry.parentId)) path.unshift(entry);
    return path;
  };
  const labelOf = (entries, id) => entries.findLast((entry) => entry.type === "label" && entry.targetId === id)?.label ?? undefined;
  const tree = () => {
    const entries = now("session.entries");
    const nodes = new Map(entries.map((entry) => [entry.id, { entry, children: [], label: labelOf(entries, entry.id) }]));
    const roots = [];
    for (const node of nodes.values()) (nodes.get(node.entry.parentId)?.children ?? roots).push(node);
    return roots;
  };
  const sessionManager = {
    getBranch: (from) => (from === undefined ? branch() : pathTo(from)), getEntries: () => now("session.entries"), getTree: () => tree(),
    getEntry: (id) => now("session.entries").find((entry) => entry.id === id),
    getChildren: (id) => now("session.entries").filter((entry) => entry.parentId === id),
    getLeafId: () => branch().at(-1)?.id ?? null, getLeafEntry: () => branch().at(-1),
    getSessionId: () => now("session.info").id, getSessionFile: () => now("session.info").file,
    getSessionDir: () => now("session.info").folder, getSessionName: () => now("session.info").name,
    getHeader: () => ({ type: "session", version: 3, id: now("session.info").id, timestamp: now("session.entries")[0]?.timestamp ?? new Date().toISOString(), cwd: now("cwd") }), getCwd: () => now("cwd"), isPersisted: () => true, usesDefaultSessionDir: () => true,
    buildContextEntries: () => platform.helpers.sessions.buildContextEntries(branch()), buildSessionProjection: () => platform.helpers.sessions.buildSessionProjection(branch()), buildSessionContext: () => platform.helpers.sessions.buildSessionContext(branch()), getLabel: (id) => labelOf(now("session.entries"), id),
  };
  // What `models.js` has.
  const MODEL_CALLS = ["complete", "completeSimple", "stream", "streamSimple", "hasConfiguredAuth", "getApiKey", "getApiKeyForProvider", "getApiKeyAndHeaders", "getProviderAuthStatus", "getProviderAuth"];
  const modelRegistry = {
    ...Object.fromEntries(MODEL_CALLS.map((name) => [name, (...given) => platform.models[name](...given)])),
    getAll: () => now("models"), getAvailable: () => now("models", { available: true }),
    find: (provider, id) => now("models.find", { provider, id }),
    isUsingOAuth: (model) => now("providers.login", { provider: model?.provider }) === true,
    getError: () => undefined, refresh() {}, getProviders: () => [...new Set(now("models").map((model) => model.provider))],
    getProviderDisplayName: (provider) => String(provider),
    registerProvider: (name, config) => pi.registerProvider(name, config), unregisterProvider: (name) => pi.unregisterProvider(name),
  };
  // Questions of a call end with it: nobody waits for their answers when a person has stopped it.
  function uiOf(call) {
    const withCall = (options) => ({ ...options, signal: options?.signal ? AbortSignal.any([call, options.signal]) : call });
    // What asks again and again ends with an error.
    const ask = async (question) => { if (call.aborted) throw new Error("the person has stopped what this question belongs to"); return question(); };
    return {
      ...ui,
      confirm: (title, message, options) => ask(() => ui.confirm(title, message, withCall(options))),
      select: (title, choices, options) => ask(() => ui.select(title, choices, withCall(options))),
      input: (title, placeholder, options) => ask(() => ui.input(title, placeholder, withCall(options))),
      editor: (title, prefill) => ask(() => ui.editor(title, prefill, withCall())),
    };
  }
  class Context {
    #signal;
    constructor(signal) { this.#signal = signal; this.ui = signal ? uiOf(signal) : ui; this.sessionManager = sessionManager; this.modelRegistry = modelRegistry; }
    get cwd() { return now("cwd"); }
    get hasUI() { return now("hasUI"); }
    get mode() { return now("mode"); }
    get model() { return now("model"); }
    get signal() { return this.#signal; }
    get thinkingLevel() { return now("thinkingLevel"); }
    get scopedModels() { return []; }
    isIdle() { return now("isIdle"); }
    hasPendingMessages() { return now("hasPendingMessages"); }
    isProjectTrusted() { return now("isProjectTrusted"); }
    abort() { now("abort"); }
    shutdown() { now("shutdown"); }
    getContextUsage() { return now("contextUsage"); }
    ephemeral(text) { now("ephemeral", { text: String(text) }); }
    getSystemPrompt() { return now("systemPrompt") ?? ""; }
    compact(options = {}) {
      call("compact", { customInstructions: options.customInstructions }).then((result) => options.onComplete?.(result), (error) => (options.onError ? options.onError(error) : platform.report(error)));
    }
  }
  // The parts of the system prompt, each of which may be changed.
  const withAllFields = (options) => ({ toolSnippets: {}, toolGuidelines: {}, promptGuidelines: [], appendSystemPrompt: "", sections: {}, contextFiles: [], skills: [], ...options });
  // What a handler added to them, as text behind the prompt.
  function promptAfter(prompt, before, options) {
    if (typeof options.forceSystemPrompt === "string") return options.forceSystemPrompt;
    const added = [];
    const linesOf = ({ promptGuidelines, toolGuidelines }) => [...promptGuidelines ?? [], ...Object.values(toolGuidelines ?? {}).flat()];
    const guidelines = linesOf(options).filter((line) => !linesOf(before).includes(line));
    if (guidelines.length) added.push(guidelines.map((line) => `- ${line}`).join("\n"));
    if (options.appendSystemPrompt && options.appendSystemPrompt !== before.appendSystemPrompt) added.push(options.appendSystemPrompt.trim());
    for (const [tag, text] of Object.entries(options.sections ?? {})) if (text !== before.sections[tag] && typeof text === "string") added.push(`<${tag}>\n${text}\n</${tag}>`);
    for (const file of options.contextFiles ?? []) if (!before.contextFiles.some((known) => known.path === file.path)) added.push(`<file path="${file.path}">\n${file.content}\n</file>`);
    return added.length ? [prompt, ...added].join("\n\n") : undefined;
  }
  // What puts something into a session that has just begun. Messages are those of an extension: the model reads them.
  const newSessionManager = () => ({
    ...sessionManager,
    appendMessage(message) { pi.sendMessage({ customType: String(message.customType ?? message.role ?? "message"), content: message.content, display: message.display ?? true, details: message.details }, { triggerTurn: false }); return ""; },
    appendCustomMessageEntry(customType, content, display, details) { pi.sendMessage({ customType, content, display, details }, { triggerTurn: false }); return ""; },
    appendCustomEntry(customType, data) { pi.appendEntry(customType, data); return sessionManager.getLeafId() ?? ""; },
    appendSessionInfo(name) { pi.setSessionName(name); return sessionManager.getLeafId() ?? ""; },
    appendLabelChange(entry, label) { pi.setLabel(entry, label); return sessionManager.getLeafId() ?? ""; },
    appendThinkingLevelChange(level) { pi.setThinkingLevel(level); return ""; },
  });
  class CommandContext extends Context {
    waitForIdle() { return call("waitForIdle"); }
    async newSession(options) {
      const change = await call("newSession");
      if (!change.cancelled) await options?.setup?.(newSessionManager());
      return this.#changed(change, options);
    }
    async fork(entry, options) { return this.#changed(await call("fork", { entry, position: options?.position }), options); }
    async navigateTree(entry, options = {}) {
      return this.#changed(await call("navigateTree", { entry, options: { summarize: options.summarize, label: options.label } }), {});
    }
    async switchSession(path, options) { return this.#changed(await call("switchSession", { path }), options); }
    reload() { return call("reload"); }
    getSystemPromptOptions() { return withAllFields({ cwd: now("cwd"), selectedTools: now("tools").filter((tool) => tool.active).map((tool) => tool.name) }); }
    sendMessage(message, options) { return pi.sendMessage(message, options); }
    sendUserMessage(content, options) { return pi.sendUserMessage(content, options); }
    // What was said goes back to the line; then the extension goes on in the other session.
    async #changed({ cancelled, editorText }, options) {
      if (editorText != null) ui.setEditorText(editorText);
      if (!cancelled) await options?.withSession?.(this);
      return { cancelled };
    }
  }

  // ---- pi
  const handlers = new Map();
  const commands = new Map();
  const tools = new Map();
  const channels = new Map();
  const flags = new Set();
  const shortcuts = new Map();
  let lastHandler = 0;
  let isLoaded = false;
  const afterLoading = (name) => {
    if (!isLoaded) throw new Error(`Extension runtime not initialized: pi.${name} cannot be called while the extension is loading`);
  };
  const mustBe = (kind, value, what) => { if (typeof value !== kind) throw new TypeError(`${what} must be a ${kind}`); };

  const pi = {
    on(event, handler) {
      mustBe("function", handler, `the handler of "${event}"`);
      const id = String(++lastHandler);
      handlers.set(id, { event: String(event), handler });
      now("on", { event: String(event), handler: id });
      return () => { if (handlers.delete(id)) now("off", { handler: id }); };
    },
    registerCommand(name, options) {
      mustBe("function", options?.handler, `the handler of /${name}`);
      commands.set(name, options);
      now("registerCommand", { name, description: options.description, hasCompletions: typeof options.getArgumentCompletions === "function" });
    },
    registerTool(tool) {
      mustBe("function", tool?.execute, `execute of the tool ${tool?.name}`);
      if (typeof tool.parameters !== "object" || tool.parameters === null) throw new TypeError(`parameters of the tool ${tool.name} must be an object`);
      const { name, label, description, parameters, promptSnippet, promptGuidelines } = tool;
      tools.set(name, tool);
      now("registerTool", { name, label, description, parameters, promptSnippet, promptGuidelines });
    },
    registerFlag(name, options = {}) {
      flags.add(name);
      now("registerFlag", { name, type: options.type, description: options.description, default: options.default });
    },
    getFlag(name) {
      if (!flags.has(name)) return undefined;
      return now("flag", { name });
    },
    registerShortcut(key, options) {
      mustBe("function", options?.handler, `the handler of ${key}`);
      shortcuts.set(String(key), options.handler);
      now("registerShortcut", { key: String(key), description: options.description });
    },
    registerMessageRenderer() {}, registerEntryRenderer() {}, registerMarkdownTransformer() {},
    registerProvider(name, config) { platform.providers.register(name, config); },
    unregisterProvider(name) { platform.providers.unregister(name); },
    sendMessage(message, options = {}) {
      afterLoading("sendMessage");
      now("sendMessage", { message, options: { triggerTurn: options.triggerTurn, deliverAs: options.deliverAs } });
    },
    sendUserMessage(content, options = {}) {
      afterLoading("sendUserMessage");
      now("sendUserMessage", { content, deliverAs: options.deliverAs, expands: options.expandPromptTemplates === true });
    },
    appendEntry(customType, data) { afterLoading("appendEntry"); now("appendEntry", { customType, data }); },
    exec(command, args = [], options = {}) {
      const own = platform.ownVariables();
      const running = call("exec", { command, args: args.map(String), cwd: options.cwd, timeout: options.timeout, env: Object.keys(own).length ? own : undefined });
      const done = running.then(({ signal, missing, ...result }) => result);
      if (!options.signal) return done;
      const ended = { stdout: "", stderr: "", code: 143, killed: true };
      const aborted = new Promise((resolve) => {
        const end = () => { platform.cancel(running); resolve(ended); };
        if (options.signal.aborted) end();
        else options.signal.addEventListener("abort", end, { once: true });
      });
      return Promise.race([done, aborted]);
    },
    getActiveTools() { afterLoading("getActiveTools"); return now("tools").filter((tool) => tool.active).map((tool) => tool.name); },
    getAllTools() { afterLoading("getAllTools"); return now("tools"); },
    setActiveTools(names) { afterLoading("setActiveTools"); now("setActiveTools", { names }); },
    getCommands() { afterLoading("getCommands"); return now("commands"); },
    getThinkingLevel() { afterLoading("getThinkingLevel"); return now("thinkingLevel"); },
    setThinkingLevel(level) { afterLoading("setThinkingLevel"); now("setThinkingLevel", { level }); },
    async setModel(model) { afterLoading("setModel"); return (await call("setModel", { provider: model.provider, id: model.id })) === true; },
    getSessionName() { afterLoading("getSessionName"); return now("session.info").name; },
    setSessionName(name) { afterLoading("setSessionName"); now("setSessionName", { name: String(name).replaceAll("\n", " ") }); },
    setLabel(entry, label) { afterLoading("setLabel"); now("setLabel", { entry, label }); },
    events: {
      // Listeners of this extension get the value itself, at once; those of others a copy, later.
      emit(channel, data) { callBus(channel, data); now("bus.emit", { channel, data }); },
      on(channel, handler) {
        const list = channels.get(channel) ?? [];
        list.push(handler);
        channels.set(channel, list);
        now("bus.on", { channel });
        return () => {
          const rest = (channels.get(channel) ?? []).filter((other) => other !== handler);
          channels.set(channel, rest);
          if (rest.length === 0) now("bus.off", { channel });
        };
      },
    },
  };

  // ---- calls by the host
  const running = new Map();
  async function loadModule(path) {
    const module = await native.importModule(path);
    const factory = module.default ?? globalThis.module?.exports;
    if (typeof factory !== "function") throw new TypeError("the module's default export is not a function");
    const known = new Set(handlers.keys());
    const wasLoaded = isLoaded;
    isLoaded = false;
    try {
      await factory(pi);
      await platform.providers.settled();
      isLoaded = true;
    } catch (error) {
      // Of several main files, those that were loaded go on.
      isLoaded = wasLoaded;
      for (const id of [...handlers.keys()]) if (!known.has(id)) { handlers.delete(id); now("off", { handler: id }); }
      throw error;
    }
  }
  // What a handler decided about a call, read as a script reads it: an inherited property, a getter or a proxy counts.
  // Values that say nothing are no decision; of others nobody knows what they mean, and a fault blocks the call.
  function decisionOf(result, changedInput) {
    if (result && typeof result !== "object") throw new TypeError(`a handler of "tool_call" must return an object or nothing, not a ${typeof result}`);
    if (result && noDecisions.some((Type) => result instanceof Type)) throw new TypeError('a handler of "tool_call" must return {block, reason} or nothing');
    const isBlocked = Boolean(result && result.block);
    const reason = isBlocked ? result.reason ?? undefined : undefined;
    return { __proto__: null, block: isBlocked, reason: reason === undefined ? undefined : String(reason), terminate: isBlocked && result.terminate === true, changedInput };
  }
  // A command of the user's that the extension runs by itself.
  async function runOperations(operations, event, signal) {
    const chunks = [];
    const onData = (data) => chunks.push(typeof data === "string" ? data : new TextDecoder().decode(data));
    const { exitCode } = (await operations.exec(event.command, event.cwd, { onData, signal })) ?? {};
    return { output: chunks.join(""), exitCode: exitCode ?? undefined };
  }
  async function callHandler(id, event, signal) {
    const known = handlers.get(id);
    if (!known && id > lastHandler) throw new Error(`there is no handler ${id}`);
    // One that was taken away.
    if (!known) return undefined;
    if (event && typeof event === "object" && event.hasSignal) { delete event.hasSignal; event.signal = signal; }
    if (event && typeof event === "object" && Array.isArray(event.lazyMessages)) return callWithMessages(known.handler, event, signal);
    const inputBefore = event?.inputCounts ? json(event.input) : undefined;
    if (inputBefore !== undefined) delete event.inputCounts;
    const payloadBefore = known.event === "before_provider_request" ? json(event.payload) : undefined;
    const optionsBefore = known.event === "before_agent_start" ? parse(json((event.systemPromptOptions = withAllFields(event.systemPromptOptions)))) : undefined;
    const result = await known.handler(event, new Context(signal));
    if (optionsBefore) {
      const options = event.systemPromptOptions;
      if (json(options.selectedTools) !== json(optionsBefore.selectedTools)) now("setActiveTools", { names: options.selectedTools });
      const changed = result?.systemPrompt === undefined || options.forceSystemPrompt !== undefined ? promptAfter(event.systemPrompt, optionsBefore, options) : undefined;
      return changed === undefined ? result : { ...result, systemPrompt: changed };
    }
    // Any value replaces the payload, and changes in place count as well.
    if (known.event === "before_provider_request") {
      const after = result === undefined ? event.payload : result;
      return json(after) === payloadBefore ? undefined : { payload: after };
    }
    // Changing the arguments in place is how a newer extension changes a call.
    const changedInput = inputBefore !== undefined && json(event.input) !== inputBefore ? event.input : undefined;
    if (known.event === "tool_call") return decisionOf(result, changedInput);
    if (known.event === "user_bash" && result?.operations) return { result: await runOperations(result.operations, event, signal) };
    return result;
  }
  // Messages of a conversation are many, and a handler looks at few: each is read when it is first touched, and
  // those that stay as they were go back as their numbers. What a handler changes in place counts as well.
  class LazyMessage { // also the handler of its proxy: one object for each message instead of many functions
    constructor(text, number) { this.text = text; this.number = number; this.isRead = false; this.target = {}; }
    read() {
      if (!this.isRead) { this.isRead = true; Object.assign(this.target, parse(this.text)); }
      return this.target;
    }
    // What goes back: the number of a message that is as it was.
    result() { return !this.isRead || stringify(this.target) === this.text ? this.number : this.target; }
    getPrototypeOf() { return Object.prototype; }
    get(_target, name) { return this.read()[name]; }
    set(_target, name, value) { return Reflect.set(this.read(), name, value); }
    has(_target, name) { return Reflect.has(this.read(), name); }
    deleteProperty(_target, name) { return Reflect.deleteProperty(this.read(), name); }
    ownKeys() { return Reflect.ownKeys(this.read()); }
    getOwnPropertyDescriptor(_target, name) { return Reflect.getOwnPropertyDescriptor(this.read(), name); }
    defineProperty(_target, name, descriptor) { return Reflect.defineProperty(this.read(), name, descriptor); }
  }
  async function callWithMessages(handler, event, signal) {
    const texts = event.lazyMessages;
    delete event.lazyMessages;
    const lazy = new Map();
    event.messages = texts.map((text, number) => {
      const state = new LazyMessage(text, number);
      const message = new Proxy(state.target, state);
      lazy.set(message, state);
      return message;
    });
    const result = await handler(event, new Context(signal));
    const given = result?.messages ?? event.messages;
    if (!Array.isArray(given)) throw new TypeError("messages must be an array");
    const messages = given.map((message) => { const state = lazy.get(message); return state ? state.result() : message; });
    const isUnchanged = messages.length === texts.length && messages.every((message, at) => message === at);
    return isUnchanged ? undefined : { messages };
  }
  async function callCommand(name, args, signal) {
    return commands.get(name)?.handler(args, new CommandContext(signal));
  }
  async function callTool(name, { callId, args }, signal) {
    const tool = tools.get(name);
    if (!tool) throw new Error(`there is no tool ${name}`);
    const prepared = tool.prepareArguments ? tool.prepareArguments(args) : args;
    const params = platform.helpers.validate(name, tool.parameters, prepared);
    let isDone = false;
    const update = (partial) => { if (!isDone) now("toolUpdate", { callId, content: partial?.content ?? [] }); };
    try {
      const result = (await tool.execute(callId, params, signal, update, new Context(signal))) ?? {};
      return { content: result.content ?? [], details: result.details, terminate: result.terminate === true || undefined };
    } finally {
      isDone = true;
    }
  }
  async function callShortcut(key, signal) { return shortcuts.get(key)?.(new CommandContext(signal)); }
  async function complete(name, typed) { return (await commands.get(name)?.getArgumentCompletions?.(typed)) ?? []; }
  function callBus(channel, data) {
    for (const handler of [...(channels.get(channel) ?? [])]) {
      try { Promise.resolve(handler(data)).catch(platform.report); } catch (error) { platform.report(error); }
    }
  }
  // Not async: what it answers with would be asked for a `then` that a script may have made.
  function run(kind, key, payload, signal) {
    switch (kind) {
      case "load": return loadModule(key);
      case "handler": return callHandler(key, payload, signal);
      case "command": return callCommand(key, payload, signal);
      case "tool": return callTool(key, payload, signal);
      case "complete": return complete(key, payload);
      case "shortcut": return callShortcut(key, signal);
      case "bus": return Promise.resolve(callBus(key, payload));
      case "provider": return platform.providers.run(key, payload, signal);
    }
  }
  function dispatch(id, kind, key, payload) {
    const controller = new AbortController();
    running.set(id, controller);
    const fail = (error) => {
      running.delete(id);
      let fault = '{"message":"an error whose text cannot be read, or does not fit into memory"}';
      // The engine has no memory for an error about its memory.
      try { fault = error === null ? '{"message":"null was thrown, as it is when there is no memory left"}' : json(platform.describe(error)); } catch { /* whoever called gets an answer in any case */ }
      native.finish(id, false, fault);
    };
    const succeed = (value) => {
      running.delete(id);
      let text;
      try { text = json(value); } catch (error) { fail(error); return; }
      native.finish(id, true, text);
    };
    apply(then, run(kind, key, payload, controller.signal), [succeed, fail]);
  }
  const abandon = (id) => { const controller = running.get(id); running.delete(id); controller?.abort(); };
  return { dispatch, abandon, settle, fire: platform.fire };
})
