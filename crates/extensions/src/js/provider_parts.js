// Providers in the form of the newer releases: made of parts (`createProvider`), with `getModels` and `auth`.
// Evaluated as a function of the built-in modules, which it completes; returns what brings such a provider into the
// older form, which Hardpan knows.
(function (platform, builtIn) {
  "use strict";
  const ai = builtIn("ai");
  const API = Symbol("api");
  const VARIABLES = Symbol("variables");
  const PROTOCOLS = {
    anthropicMessagesApi: "anthropic-messages", openAICompletionsApi: "openai-completions",
    openAIResponsesApi: "openai-responses", googleGenerativeAIApi: "google-generative-ai",
    azureOpenAIResponsesApi: "azure-openai-responses", bedrockConverseStreamApi: "bedrock-converse-stream",
    googleVertexApi: "google-vertex", mistralConversationsApi: "mistral-conversations",
    openAICodexResponsesApi: "openai-codex-responses", piMessagesApi: "pi-messages",
  };

  // The streams of a protocol: Hardpan sends such requests itself, with the keys that the person gave it.
  function streamsOf(protocol) {
    const sends = () => { throw new Error(`Hardpan sends requests of ${protocol} itself: give its streams to createProvider as they are`); };
    return { [API]: protocol, stream: sends, streamSimple: sends };
  }
  for (const [name, protocol] of Object.entries(PROTOCOLS)) ai[name] = () => streamsOf(protocol);

  ai.envApiKeyAuth = (name, variables) => ({
    name, [VARIABLES]: [...variables],
    async resolve({ ctx, credential }) {
      if (credential?.key) return { auth: { apiKey: credential.key }, source: "stored credential" };
      for (const variable of variables) {
        const apiKey = await ctx.env(variable);
        if (apiKey) return { auth: { apiKey }, source: variable };
      }
      return undefined;
    },
  });
  ai.lazyOAuth = ({ load, ...shown }) => {
    let loaded;
    const part = (name) => async (...given) => (await (loaded ??= load()))[name](...given);
    return { ...shown, login: part("login"), refresh: part("refresh"), toAuth: part("toAuth") };
  };
  ai.createProvider = (input) => {
    let fetched = [];
    const single = typeof input.api?.stream === "function" || input.api?.[API] ? input.api : undefined;
    const streamsFor = (model) => {
      const streams = single ?? input.api?.[model?.api];
      if (!streams) throw new Error(`Provider ${input.id} has no API implementation for "${model?.api}"`);
      return streams;
    };
    const { id, name = id, baseUrl, headers, auth, filterModels, fetchModels } = input;
    return {
      id, name, baseUrl, headers, auth, filterModels, [API]: streamsFor,
      getModels: () => [...(input.models ?? []).filter((model) => !fetched.some((other) => other.id === model.id)), ...fetched],
      refreshModels: fetchModels && (async (context) => {
        const models = await fetchModels(context);
        await context.publish({ persist: { models }, update: () => { fetched = [...models]; } });
      }),
      stream: (model, context, options) => streamsFor(model).stream(model, context, options),
      streamSimple: (model, context, options) => streamsFor(model).streamSimple(model, context, options),
    };
  };

  // ---- keys
  const asCredential = (key) => (key === undefined ? undefined : { type: "api_key", key });
  const keyOf = ({ apiKey, headers } = {}) => apiKey ?? headers?.Authorization?.replace(/^Bearer /, "");
  const fileExists = async (path) => builtIn("fs").existsSync(path.replace(/^~(?=\/|$)/, builtIn("os").homedir()));

  // What a provider of Hardpan's protocols needs with each request, found out once: a variable is named in the place of
  // its value, which only Hardpan reads.
  async function requestParts(provider) {
    const auth = provider.auth?.apiKey;
    const variables = auth?.[VARIABLES];
    if (variables) return { apiKey: variables[0] && `$${variables[0]}`, keyVariables: variables };
    if (typeof auth?.resolve !== "function") return {};
    const ctx = { env: async (name) => `$${name}`, fileExists };
    const found = await auth.resolve({ ctx, signal: new AbortController().signal });
    const { apiKey, headers, baseUrl } = found?.auth ?? {};
    const isPlain = (text) => !/.\$[A-Z_]/.test(String(text));
    if (![apiKey ?? "", ...Object.values(headers ?? {})].every(isPlain)) throw new Error(`auth.apiKey.resolve of the provider ${provider.id} changes the key that it reads, which is not supported with a protocol of Hardpan's`);
    // A server that needs no key is asked with none.
    return { apiKey: apiKey ?? (found && ""), headers: headers && { ...provider.headers, ...headers }, baseUrl };
  }

  // The same for a provider that answers by itself, before each answer.
  async function withAuth(provider, model, options) {
    const auth = provider.auth?.apiKey;
    if (typeof auth?.resolve !== "function") return { model, options };
    const ctx = { env: async (name) => builtIn("process").env[name], fileExists };
    const found = await auth.resolve({ ctx, credential: asCredential(options.apiKey), signal: options.signal });
    const { apiKey = options.apiKey, headers, baseUrl } = found?.auth ?? {};
    return { model: baseUrl ? { ...model, baseUrl } : model, options: { ...options, apiKey, headers: headers ? { ...options.headers, ...headers } : options.headers } };
  }

  // ---- transcripts: in the newer form, system messages say what the prompt and the tools are
  const isSystem = (message) => message.role === "system";
  const contentText = ({ content }) => (typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("\n"));
  function currentTools(messages) {
    const tools = new Map();
    for (const { toolsAdded = [], toolsRemoved = [] } of messages.filter(isSystem)) {
      for (const tool of toolsRemoved) tools.delete(tool.name ?? tool);
      for (const tool of toolsAdded) tools.set(tool.name, tool);
    }
    return [...tools.values()];
  }
  // One system message that says what all of them together do.
  function currentSystemMessage(messages) {
    const all = messages.filter(isSystem);
    if (all.length === 0) return undefined;
    const sections = Object.entries(Object.assign({}, ...all.map((message) => message.sections))).filter(([, text]) => text !== null);
    const toolsAdded = currentTools(messages);
    return {
      role: "system", content: all.map(contentText).filter(Boolean).join("\n\n"), timestamp: all[0].timestamp,
      ...(sections.length > 0 && { sections: Object.fromEntries(sections) }), ...(toolsAdded.length > 0 && { toolsAdded }),
    };
  }
  const renderedText = (message) => [contentText(message), ...Object.values(message.sections ?? {})].filter(Boolean).join("\n\n");
  const initialSystemMessage = (content, toolsAdded = []) => (content || toolsAdded.length > 0 ? { role: "system", content: content ?? "", ...(toolsAdded.length > 0 && { toolsAdded }), timestamp: Date.now() } : undefined);
  const withoutInitial = (messages) => (messages[0]?.role === "system" ? messages.slice(1) : messages);
  const collapsed = (context) => ({ ...context, messages: [currentSystemMessage(context.messages) ?? [], context.messages.filter((message) => !isSystem(message))].flat() });
  // The older fields stay beside: streams of extensions that were written for both read either.
  const transcript = (context) => ({ ...context, messages: [initialSystemMessage(context.systemPrompt, context.tools) ?? [], context.messages].flat() });
  Object.assign(ai, {
    createInitialSystemMessage: initialSystemMessage,
    normalizeContext: transcript,
    getInitialSystemMessage: (messages) => (messages[0]?.role === "system" ? messages[0] : undefined),
    withoutInitialSystemMessage: withoutInitial,
    getCurrentTools: currentTools,
    getCurrentSystemMessage: currentSystemMessage,
    getCurrentSystemPrompt: (messages) => renderedText(currentSystemMessage(messages) ?? { content: "" }),
    getSystemMessageText: contentText,
    collapseSystemMessages: collapsed,
    resolveTranscript: (context, takesSystemMessages) => (takesSystemMessages ? context : collapsed(context)),
  });

  function loginOf(oauth) {
    const prompt = (asks) => async ({ type, message, placeholder, options }) => {
      if (type === "select") return asks.onSelect({ message, options });
      return type === "manual_code" ? asks.onManualCodeInput() : asks.onPrompt({ message, placeholder });
    };
    const notify = (asks) => (event) => {
      if (event.type === "auth_url") asks.onAuth(event);
      else if (event.type === "device_code") asks.onDeviceCode(event);
      else asks.onProgress([event.message, ...(event.links ?? []).map((link) => link.url)].join("\n"));
    };
    const typed = (credentials) => ({ ...credentials, type: "oauth" });
    return {
      name: oauth.name,
      login: (asks) => oauth.login({ signal: asks.signal, prompt: prompt(asks), notify: notify(asks) }),
      refreshToken: (credentials) => oauth.refresh(typed(credentials), new AbortController().signal),
      getApiKey: async (credentials) => keyOf(await oauth.toAuth(typed(credentials))),
    };
  }

  // The older form of a provider, as far as it is known at once.
  function describe(provider) {
    const models = [...provider.getModels()];
    const protocolOf = (model) => { try { return provider[API]?.(model)?.[API]; } catch { return undefined; } };
    const protocol = protocolOf(models[0] ?? {});
    const isSent = protocol !== undefined && models.every((model) => protocolOf(model) !== undefined);
    const { oauth } = provider.auth ?? {};
    return {
      name: provider.name, baseUrl: provider.baseUrl, headers: provider.headers,
      api: isSent ? protocol : models[0]?.api,
      models: isSent ? models.map((model) => ({ ...model, api: protocolOf(model) })) : models,
      oauth: oauth && loginOf(oauth),
      // Hardpan reads the variable, if the person agrees, and hands its value over.
      ...(provider.auth?.apiKey?.[VARIABLES] && { apiKey: `$${provider.auth.apiKey[VARIABLES][0]}` }),
      streamSimple: isSent ? undefined : async (model, context, options) => {
        const given = await withAuth(provider, model, options);
        return provider.streamSimple(given.model, transcript(context), given.options);
      },
    };
  }

  // Registers a provider; the promise ends when its key and its models are known, too.
  function register(provider, tell) {
    const described = describe(provider);
    const { models, streamSimple } = described;
    if (models.length > 0) tell(described);
    const again = (parts) => tell({ ...describe(provider), ...parts });
    const whole = (async () => {
      const parts = streamSimple ? {} : await requestParts(provider);
      const given = Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined));
      if (Object.keys(given).length > 0 && models.length > 0) again(given);
      if (typeof provider.refreshModels !== "function") return;
      const publish = async ({ update }) => { update?.(); return true; };
      const refreshed = provider.refreshModels({ allowNetwork: true, publish, signal: new AbortController().signal }).then(() => again(given));
      // Models that are known already need not wait for newer ones.
      if (models.length === 0) await refreshed;
      else refreshed.catch((error) => console.warn(`the models of the provider ${provider.id} are those of before: ${error?.message ?? error}`));
    })();
    return whole;
  }
  return { register };
})
