// Requests to models, as `pi-ai` has them. Hardpan makes them with its own keys: what a script gives as a key or an
// address is not used. Evaluated as a function of the built-in modules, which it completes.
(function (platform, builtIn) {
  "use strict";
  const ai = builtIn("ai");

  // Events that a script reads one by one, and what came of them.
  class EventStream {
    #isLast; #resultOf; #finish; #result;
    #events = [];
    #readers = [];
    #isOver = false;
    constructor(isLast, resultOf) {
      this.#isLast = isLast;
      this.#resultOf = resultOf;
      this.#result = new Promise((resolve) => { this.#finish = resolve; });
    }
    push(event) {
      if (this.#isOver) return;
      const reader = this.#readers.shift();
      if (reader) reader({ value: event });
      else this.#events.push(event);
      if (this.#isLast(event)) this.end(this.#resultOf(event));
    }
    end(result) {
      this.#isOver = true;
      if (result !== undefined) this.#finish(result);
      for (const reader of this.#readers.splice(0)) reader(undefined);
    }
    async *[Symbol.asyncIterator]() {
      for (;;) {
        if (this.#events.length > 0) { yield this.#events.shift(); continue; }
        if (this.#isOver) return;
        const next = await new Promise((resolve) => this.#readers.push(resolve));
        if (next === undefined) return;
        yield next.value;
      }
    }
    result() { return this.#result; }
  }
  class AssistantMessageEventStream extends EventStream {
    constructor() { super((event) => event.type === "done" || event.type === "error", (event) => (event.type === "done" ? event.message : event.error)); }
  }

  const thinkingOf = ({ reasoning, reasoningEffort, thinkingEnabled }) => reasoning ?? reasoningEffort ?? (thinkingEnabled === false ? "off" : undefined);
  const emptyUsage = () => ({ input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } });
  // Gives an answer in any case: what went wrong is in its `stopReason` and `errorMessage`.
  async function complete(model, context, options) {
    const { signal, maxTokens, ...rest } = options ?? {};
    const message = { role: "assistant", content: [], api: model?.api, provider: model?.provider, model: model?.id, usage: emptyUsage(), stopReason: "stop", timestamp: Date.now() };
    const aborted = () => ({ ...message, stopReason: "aborted", errorMessage: "Request was aborted" });
    if (signal?.aborted) return aborted();
    const system = [context?.systemPrompt ?? []].flat().map(String).join("\n\n");
    const asked = platform.call("model.complete", {
      provider: model?.provider, id: model?.id, system: system || undefined, messages: context?.messages ?? [], maxTokens, thinking: thinkingOf(rest),
    });
    let end;
    const ended = new Promise((resolve) => { end = () => { platform.cancel(asked); resolve(undefined); }; });
    signal?.addEventListener("abort", end, { once: true });
    try {
      const given = await Promise.race([asked, ended]);
      if (given === undefined) return aborted();
      const usage = { ...given.usage };
      usage.cost = { ...ai.calculateCost(model, usage), total: given.usage.cost.total };
      return { ...message, content: [{ type: "text", text: given.text }], usage, stopReason: given.isCut ? "length" : "stop" };
    } catch (error) {
      return { ...message, stopReason: "error", errorMessage: error?.message ?? String(error) };
    } finally {
      signal?.removeEventListener("abort", end);
    }
  }
  // The answer comes as a whole: one piece of text.
  function stream(model, context, options) {
    const events = new AssistantMessageEventStream();
    complete(model, context, options).then((message) => {
      events.push({ type: "start", partial: { ...message, content: [] } });
      if (message.stopReason === "error" || message.stopReason === "aborted") {
        events.push({ type: "error", reason: message.stopReason, error: message });
        return;
      }
      const text = message.content[0].text;
      events.push({ type: "text_start", contentIndex: 0, partial: { ...message, content: [{ type: "text", text: "" }] } });
      events.push({ type: "text_delta", contentIndex: 0, delta: text, partial: message });
      events.push({ type: "text_end", contentIndex: 0, content: text, partial: message });
      events.push({ type: "done", reason: message.stopReason, message });
    });
    return events;
  }

  const now = (name, args) => platform.now(name, args);
  Object.assign(ai, {
    complete, completeSimple: complete, stream, streamSimple: stream, EventStream, AssistantMessageEventStream,
    createAssistantMessageEventStream: () => new AssistantMessageEventStream(),
    getModel: (provider, id) => now("models.find", { provider, id }),
    getModels: (provider) => now("models").filter((model) => provider === undefined || model.provider === provider),
    getProviders: () => [...new Set(now("models").map((model) => model.provider))],
  });

  // What stands for a key. It says where the key is, and opens nothing.
  const PLACEHOLDER = "hardpan-keeps-this-key";
  const hasAccess = (model) => now("models.access", { provider: model?.provider, id: model?.id }) === true;
  // An extension knows the keys of the providers that it brought itself.
  const keyFor = async (provider, isAccessible) => (platform.providers.has(provider) ? platform.call("provider.key", { provider }) : isAccessible ? PLACEHOLDER : undefined);
  const hasProviderAccess = (provider) => now("models", { available: true }).some((model) => model.provider === provider);
  return {
    complete: (...parts) => complete(...parts), completeSimple: (...parts) => complete(...parts),
    stream: (...parts) => stream(...parts), streamSimple: (...parts) => stream(...parts),
    hasConfiguredAuth: hasAccess,
    getApiKey: async (model) => keyFor(model?.provider, hasAccess(model)),
    getApiKeyForProvider: async (provider) => keyFor(provider, hasProviderAccess(provider)),
    getApiKeyAndHeaders: async (model) => {
      const apiKey = await keyFor(model?.provider, hasAccess(model));
      return apiKey === undefined ? { ok: false, error: `No API key found for "${model?.provider}"` } : { ok: true, apiKey, headers: {} };
    },
    getProviderAuthStatus: (provider) => ({ configured: hasProviderAccess(provider) }),
    getProviderAuth: async () => undefined,
  };
})
