// Providers that an extension brings: what it answers itself (`streamSimple`), and how people log in there (`oauth`).
// Evaluated as a function; returns what `pi` and the host call.
(function (platform) {
  "use strict";
  const known = new Map();

  // What is not known yet of providers: an extension is loaded once it is.
  let unfinished = [];
  function register(name, config) {
    if (typeof name !== "string" && typeof name?.getModels === "function") {
      const { id } = name;
      unfinished.push(platform.providerParts.register(name, (described) => registerConfig(String(id), described)));
      return;
    }
    registerConfig(name, config);
  }
  async function settled() {
    const waited = unfinished;
    unfinished = [];
    await Promise.all(waited);
  }
  function registerConfig(name, config) {
    const id = String(typeof name === "string" ? name : name?.id ?? name?.name ?? "");
    const given = (typeof name === "string" ? config : name) ?? {};
    const { streamSimple, stream, oauth, ...described } = given;
    const answer = streamSimple ?? stream;
    if (answer !== undefined && typeof answer !== "function") throw new TypeError(`streamSimple of the provider ${id} must be a function`);
    if (oauth !== undefined) {
      for (const part of ["login", "refreshToken", "getApiKey"]) {
        if (typeof oauth?.[part] !== "function") throw new TypeError(`oauth.${part} of the provider ${id} must be a function`);
      }
    }
    known.set(id, { ...given, answer });
    platform.now("registerProvider", { name: id, config: { ...described, answers: answer !== undefined, login: oauth && { name: String(oauth.name ?? id) } } });
  }
  function unregister(name) {
    known.delete(String(name));
    platform.now("unregisterProvider", { name: String(name) });
  }
  function find(name) {
    const config = known.get(name);
    if (!config) throw new Error(`the extension has no provider ${name} any more`);
    return config;
  }

  // A model as the extension described it: what it gave counts, and the rest is what Hardpan knows.
  function modelOf(config, name, described) {
    const own = config.models?.find((model) => model.id === described.id) ?? {};
    const api = own.api ?? config.api ?? described.api;
    return { ...described, ...own, provider: name, api, baseUrl: own.baseUrl ?? config.baseUrl ?? described.baseUrl };
  }

  // ---- answers
  // What of an event is news: `partial` would repeat the whole answer with each word.
  function newsOf(event) {
    const { type, contentIndex, delta, content, toolCall, reason, partial } = event;
    const part = partial?.content?.[contentIndex];
    switch (type) {
      case "start": return { type, usage: partial?.usage };
      case "text_start": case "thinking_start": return { type, contentIndex };
      case "toolcall_start": return { type, contentIndex, id: part?.id, name: part?.name };
      case "text_delta": case "thinking_delta": return { type, contentIndex, delta: String(delta ?? "") };
      case "text_end": return { type, contentIndex, content: content ?? part?.text };
      case "thinking_end": return { type, contentIndex, content: content ?? part?.thinking, signature: part?.thinkingSignature, redacted: part?.redacted };
      case "toolcall_end": return { type, contentIndex, toolCall: callOf(toolCall ?? part) };
      case "done": return { type, reason, message: messageOf(event.message ?? partial) };
      case "error": return { type, reason, message: messageOf(event.error ?? partial), error: textOf(event.error) };
    }
    return undefined;
  }
  const callOf = (call) => call && { id: call.id, name: call.name, arguments: call.arguments };
  const messageOf = (message) => message && { content: message.content, usage: message.usage, stopReason: message.stopReason, errorMessage: message.errorMessage, responseId: message.responseId };
  const textOf = (error) => (error instanceof Error ? error.message : typeof error === "string" ? error : undefined);

  // A character may be cut between two pieces of a text: its first half waits for the second.
  function wholeCharacters() {
    const halves = new Map();
    return (news) => {
      if (typeof news.delta !== "string") return news;
      const delta = (halves.get(news.contentIndex) ?? "") + news.delta;
      const cut = /[\ud800-\udbff]$/.test(delta) ? delta.length - 1 : delta.length;
      halves.set(news.contentIndex, delta.slice(cut));
      return { ...news, delta: delta.slice(0, cut) };
    };
  }
  async function answer(name, { request, model, context, options }, signal) {
    const config = find(name);
    if (!config.answer) throw new Error(`the provider ${name} has no streamSimple`);
    const tell = (event) => platform.now("provider.event", { request, event });
    const headers = { ...config.headers, ...modelOf(config, name, model).headers };
    const given = {
      ...options, signal, headers: Object.keys(headers).length > 0 ? headers : undefined,
      // Handlers of before_provider_request have seen the request before it came here.
      onPayload: async () => undefined,
      onResponse: async () => undefined,
    };
    const events = await config.answer(modelOf(config, name, model), context, given);
    if (typeof events?.[Symbol.asyncIterator] !== "function") throw new TypeError(`streamSimple of the provider ${name} must return an event stream`);
    const whole = wholeCharacters();
    for await (const event of events) {
      if (signal.aborted) return;
      const news = newsOf(event ?? {});
      if (news) tell(whole(news));
      if (event?.type === "done" || event?.type === "error") return;
    }
  }

  // ---- logins
  const needed = (config, name) => {
    if (!config.oauth) throw new Error(`the provider ${name} has no login`);
    return config.oauth;
  };
  const cancelled = () => new Error("Login cancelled");
  async function login(name, _payload, signal) {
    const oauth = needed(find(name), name);
    const show = (text) => { platform.now("ui.notify", { text, level: "info" }); };
    const ask = async (title, placeholder) => {
      const answer = await platform.question("ui.input", { title, placeholder }, { signal });
      if (answer === undefined) throw cancelled();
      return answer;
    };
    return oauth.login({
      signal,
      onAuth: ({ url, instructions }) => show([`Open this address to log in: ${url}`, instructions].filter(Boolean).join("\n")),
      onDeviceCode: ({ userCode, verificationUri }) => show(`Open ${verificationUri} and enter the code ${userCode}`),
      onPrompt: ({ message, placeholder }) => ask(String(message), placeholder),
      onProgress: (message) => show(String(message)),
      onManualCodeInput: () => ask("Paste the address that the browser was sent to, or the code"),
      onSelect: async ({ message, options }) => {
        const labels = options.map((option) => String(option.label ?? option.id));
        const chosen = await platform.question("ui.select", { title: String(message), choices: labels }, { signal });
        if (chosen === undefined) throw cancelled();
        return options[labels.indexOf(chosen)]?.id;
      },
    });
  }
  // The key that belongs to a login; models may change with it.
  async function keyOf(name, { credentials }) {
    const config = find(name);
    const key = await needed(config, name).getApiKey(credentials);
    return key === undefined || key === null ? undefined : String(key);
  }
  function modelsOf(name, { credentials }) {
    const config = find(name);
    if (!config.oauth?.modifyModels || !Array.isArray(config.models)) return undefined;
    const models = config.oauth.modifyModels(config.models.map((model) => modelOf(config, name, model)), credentials);
    if (!Array.isArray(models)) return undefined;
    config.models = models.filter((model) => model.provider === undefined || model.provider === name);
    return config.models;
  }
  const refresh = (name, { credentials }) => needed(find(name), name).refreshToken(credentials);

  const requests = { answer, login, refresh, key: keyOf, models: modelsOf };
  return { register, unregister, settled, has: (name) => known.has(name), run: async (name, { what, ...payload }, signal) => requests[what](name, payload, signal) };
})
