/* HEADER */

declare module "@mariozechner/pi-coding-agent" {
/* TYPES */
  export interface ExecResult { stdout: string; stderr: string; code: number; killed: boolean }

  /** What goes with each event, and what a handler may return. */
  export interface Events {
/* EVENTS */
  }
  export type EventOf<Name extends keyof Events> = Events[Name]["event"] & { type: Name };
  export type ReplyOf<Name extends keyof Events> = Events[Name]["reply"] | void | undefined | null;
  export type Handler<Name extends keyof Events> = (event: EventOf<Name>, ctx: ExtensionContext) => ReplyOf<Name> | Promise<ReplyOf<Name>>;

  export interface DialogOptions { timeout?: number; signal?: AbortSignal }
  export interface ExtensionUI {
    notify(text: string, level?: "info" | "warning" | "error"): void;
    confirm(title: string, message?: string, options?: DialogOptions): Promise<boolean>;
    select(title: string, choices: string[], options?: DialogOptions): Promise<string | undefined>;
    input(title: string, placeholder?: string, options?: DialogOptions): Promise<string | undefined>;
    editor(title: string, prefill?: string): Promise<string | undefined>;
    setStatus(key: string, text?: string): void;
    setTitle(title: string): void;
    setWidget(key: string, lines?: string[] | ((...parts: any[]) => any), options?: { placement?: string }): void;
    setWorkingMessage(text?: string): void;
    getEditorText(): string;
    setEditorText(text: string): void;
    pasteToEditor(text: string): void;
    readonly theme: { fg(colour: string, text: string): string; bg(colour: string, text: string): string; bold(text: string): string; italic(text: string): string; [other: string]: any };
    /** Gives undefined: components are not drawn here. */
    custom<Result>(...parts: any[]): Promise<Result | undefined>;
    getAllThemes(): any[];
    getTheme(name: string): any;
    setTheme(theme: any): { success: boolean; error?: string };
    /** Calls nothing: keys are the face's. */
    onTerminalInput(handler: (...parts: any[]) => any): () => void;
    // These have no effect here.
    setFooter(...parts: any[]): void;
    setHeader(...parts: any[]): void;
    setEditorComponent(...parts: any[]): void;
    getEditorComponent(): any;
    addAutocompleteProvider(...parts: any[]): void;
    setWorkingIndicator(...parts: any[]): void;
    setWorkingVisible(...parts: any[]): void;
    setHiddenThinkingLabel(...parts: any[]): void;
    setToolsExpanded(...parts: any[]): void;
    getToolsExpanded(): boolean;
  }
  export interface SessionTreeNode { entry: SessionEntry; children: SessionTreeNode[]; label?: string }
  export interface SessionManager {
    /** From the first entry to the last one of the branch, or to this entry. */
    getBranch(from?: string): SessionEntry[];
    getEntries(): SessionEntry[];
    getTree(): SessionTreeNode[];
    getEntry(id: string): SessionEntry | undefined;
    getChildren(id: string): SessionEntry[];
    getLeafId(): string | null;
    getLeafEntry(): SessionEntry | undefined;
    getSessionId(): string;
    getSessionFile(): string | undefined;
    getSessionDir(): string | undefined;
    getSessionName(): string | undefined;
    getHeader(): { type: "session"; version: number; id: string; timestamp: string; cwd: string };
    getCwd(): string;
    isPersisted(): boolean;
    usesDefaultSessionDir(): boolean;
    /** The entries that the model sees: the last summary, what it kept, and what came after it. */
    buildContextEntries(): SessionEntry[];
    buildSessionContext(): { messages: Message[]; thinkingLevel: string; model: { provider: string; modelId: string } | null };
    buildSessionProjection(): { entries: { sourceEntry: SessionEntry; messages: Message[] }[]; messages: Message[]; thinkingLevel: string; model: { provider: string; modelId: string } | null };
    getLabel(id: string): string | undefined;
  }
  export interface ModelName { provider: string; id: string }
  /** Text and images; calls of tools and their results are told in words. */
  export interface ModelContext { systemPrompt?: string | string[]; messages: Message[] }
  export interface ModelOptions { signal?: AbortSignal; maxTokens?: number; reasoning?: string; [other: string]: any }
  export interface ModelAnswer {
    role: "assistant";
    content: { type: "text"; text: string }[];
    provider: string;
    model: string;
    stopReason: "stop" | "length" | "error" | "aborted";
    errorMessage?: string;
    usage: Usage & { cost: { input: number; output: number; cacheRead: number; cacheWrite: number; total: number } };
    timestamp: number;
    [other: string]: any;
  }
  export type ModelEvent =
    | { type: "start"; partial: ModelAnswer }
    | { type: "text_start"; contentIndex: number; partial: ModelAnswer }
    | { type: "text_delta"; contentIndex: number; delta: string; partial: ModelAnswer }
    | { type: "text_end"; contentIndex: number; content: string; partial: ModelAnswer }
    | { type: "done"; reason: "stop" | "length"; message: ModelAnswer }
    | { type: "error"; reason: "error" | "aborted"; error: ModelAnswer };
  export interface ModelStream extends AsyncIterable<ModelEvent> { result(): Promise<ModelAnswer> }
  export interface ModelRegistry {
    getAll(): Model[];
    /** Those whose provider needs no key, or has one. */
    getAvailable(): Model[];
    find(provider: string, id: string): Model | undefined;
    getProviders(): string[];
    hasConfiguredAuth(model: ModelName): boolean;
    isUsingOAuth(model?: any): boolean;
    getProviderDisplayName(provider: string): string;
    getProviderAuthStatus(provider: string): { configured: boolean };
    registerProvider(name: string, provider: Provider): void;
    registerProvider(provider: ProviderParts): void;
    unregisterProvider(name: string): void;
    refresh(): void;
    getError(): string | undefined;
    /** An answer of a model, for which the person is asked. What went wrong is in `stopReason` and `errorMessage`. */
    complete(model: ModelName, context: ModelContext, options?: ModelOptions): Promise<ModelAnswer>;
    completeSimple(model: ModelName, context: ModelContext, options?: ModelOptions): Promise<ModelAnswer>;
    stream(model: ModelName, context: ModelContext, options?: ModelOptions): ModelStream;
    streamSimple(model: ModelName, context: ModelContext, options?: ModelOptions): ModelStream;
    // Hardpan makes the requests with its own keys. What these give stands for a key where there is one, and opens nothing.
    getApiKey(model: ModelName): Promise<string | undefined>;
    getApiKeyForProvider(provider: string): Promise<string | undefined>;
    getProviderAuth(provider?: string): Promise<undefined>;
    getApiKeyAndHeaders(model: ModelName): Promise<{ ok: true; apiKey: string; headers: Record<string, string> } | { ok: false; error: string }>;
  }
  export interface ExtensionContext {
    readonly ui: ExtensionUI;
    readonly sessionManager: SessionManager;
    readonly modelRegistry: ModelRegistry;
    readonly cwd: string;
    readonly hasUI: boolean;
    readonly mode: string;
    readonly model: Model | undefined;
    readonly signal: AbortSignal | undefined;
    readonly thinkingLevel: string;
    /** Always empty: there is no list of models to go through. */
    readonly scopedModels: readonly any[];
    isIdle(): boolean;
    hasPendingMessages(): boolean;
    isProjectTrusted(): boolean;
    abort(): void;
    shutdown(): void;
    getContextUsage(): ContextUsage | undefined;
    getSystemPrompt(): string;
    /** A note at the end of the next request alone; nothing of it is stored. */
    ephemeral(text: string): void;
    compact(options?: { customInstructions?: string; onComplete?: (result: any) => void; onError?: (error: Error) => void }): void;
  }
  export interface ExtensionCommandContext extends ExtensionContext {
    waitForIdle(): Promise<void>;
    newSession(options?: any): Promise<any>;
    fork(entry: string, options?: any): Promise<any>;
    navigateTree(entry: string, options?: any): Promise<any>;
    switchSession(path: string, options?: any): Promise<any>;
    reload(): Promise<void>;
    getSystemPromptOptions(): any;
    sendMessage(message: NewMessage, options?: { triggerTurn?: boolean; deliverAs?: "steer" | "followUp" | "nextTurn" }): void;
    sendUserMessage(content: string | ContentPart[], options?: { deliverAs?: "steer" | "followUp"; expandPromptTemplates?: boolean }): void;
  }

  /** `terminate`: the model need not read it. If every result of an answer says so, the run ends. */
  export type EndingToolResult = ToolResult & { terminate?: boolean };
  export interface ToolDefinition<Parameters = any> {
    name: string;
    label: string;
    description: string;
    /** A JSON schema, or one of `Type` of typebox. */
    parameters: object;
    promptSnippet?: string;
    promptGuidelines?: string[];
    prepareArguments?(raw: any): any;
    execute(toolCallId: string, params: Parameters, signal: AbortSignal, onUpdate: (partial: ToolResult) => void, ctx: ExtensionContext): Promise<EndingToolResult> | EndingToolResult;
    renderCall?(...parts: any[]): any;
    renderResult?(...parts: any[]): any;
    [other: string]: any;
  }
  /** A model of a provider that the extension brings; prices are dollars for a million tokens. */
  export interface ProviderModel {
    id: string;
    name?: string;
    api?: string;
    baseUrl?: string;
    reasoning?: boolean;
    /** Levels that the model does not have are null. */
    thinkingLevelMap?: Record<string, string | null>;
    input?: ("text" | "image")[];
    cost?: { input: number; output: number; cacheRead: number; cacheWrite: number };
    contextWindow?: number;
    maxTokens?: number;
    headers?: Record<string, string>;
    compat?: any;
  }
  /** What a model is asked, for a provider that answers by itself. */
  export interface ProviderContext {
    systemPrompt?: string;
    messages: Message[];
    tools?: { name: string; description: string; parameters: any }[];
  }
  export interface ProviderRequest {
    apiKey?: string;
    maxTokens?: number;
    reasoning?: string;
    sessionId?: string;
    headers?: Record<string, string>;
    signal: AbortSignal;
    onPayload(payload: any): Promise<undefined>;
    onResponse(response: any): Promise<void>;
  }
  /** What a login gave. Hardpan keeps it, and has it renewed when it has ended. */
  export interface OAuthCredentials { access: string; refresh: string; expires: number; [other: string]: any }
  export interface OAuthLoginCallbacks {
    signal: AbortSignal;
    onAuth(page: { url: string; instructions?: string }): void;
    onDeviceCode(code: { userCode: string; verificationUri: string }): void;
    onPrompt(question: { message: string; placeholder?: string }): Promise<string>;
    onProgress(message: string): void;
    onManualCodeInput(): Promise<string>;
    onSelect(question: { message: string; options: { id: string; label?: string }[] }): Promise<string | undefined>;
  }
  export interface Provider {
    name?: string;
    baseUrl?: string;
    /** `anthropic-messages`, `openai-completions`, `openai-responses`, `google-generative-ai`; with `streamSimple` any word. */
    api?: string;
    /** A variable of the environment (`$ACME_KEY`), or the key itself. */
    apiKey?: string;
    headers?: Record<string, string>;
    authHeader?: boolean;
    models?: ProviderModel[];
    /** Answers in the place of a server: a stream of events, such as that of `createAssistantMessageEventStream`. */
    streamSimple?(model: any, context: any, options: any): AsyncIterable<any> | Promise<AsyncIterable<any>>;
    oauth?: {
      name: string;
      login(callbacks: OAuthLoginCallbacks): Promise<OAuthCredentials>;
      refreshToken(credentials: OAuthCredentials): Promise<OAuthCredentials>;
      getApiKey(credentials: OAuthCredentials): string;
      modifyModels?(models: any[], credentials: OAuthCredentials): any[];
    };
  }
  /** A provider as `createProvider` of `pi-ai` makes it. */
  export interface ProviderParts {
    id: string;
    name?: string;
    baseUrl?: string;
    headers?: Record<string, string>;
    auth: { apiKey?: any; oauth?: any };
    getModels(): readonly ProviderModel[];
    refreshModels?(context: any): Promise<void>;
    streamSimple(model: any, context: any, options?: any): AsyncIterable<any> | Promise<AsyncIterable<any>>;
  }
  export interface ExtensionAPI {
/* HANDLERS */
    registerTool<Parameters = any>(tool: ToolDefinition<Parameters>): void;
    registerCommand(name: string, command: { description?: string; handler(args: string, ctx: ExtensionCommandContext): void | Promise<void>; [other: string]: any }): void;
    registerFlag(name: string, options?: { type?: "boolean" | "string"; description?: string; default?: boolean | string }): void;
    getFlag(name: string): boolean | string | undefined;
    registerShortcut(key: string, options?: { description?: string; handler?(ctx: ExtensionContext): void | Promise<void> }): void;
    registerMessageRenderer(customType: string, renderer: (...parts: any[]) => any): void;
    registerEntryRenderer(customType: string, renderer: (...parts: any[]) => any): void;
    registerMarkdownTransformer(...parts: any[]): void;
    registerProvider(name: string, provider: Provider): void;
    registerProvider(provider: ProviderParts): void;
    unregisterProvider(name: string): void;
    sendMessage(message: NewMessage, options?: { triggerTurn?: boolean; deliverAs?: "steer" | "followUp" | "nextTurn" }): void;
    sendUserMessage(content: string | ContentPart[], options?: { deliverAs?: "steer" | "followUp"; expandPromptTemplates?: boolean }): void;
    appendEntry(customType: string, data?: any): void;
    exec(command: string, args?: string[], options?: { cwd?: string; timeout?: number; signal?: AbortSignal }): Promise<ExecResult>;
    getActiveTools(): string[];
    getAllTools(): ToolInfo[];
    setActiveTools(names: string[]): void;
    getCommands(): CommandInfo[];
    getThinkingLevel(): string;
    setThinkingLevel(level: string): void;
    setModel(model: { provider: string; id: string }): Promise<boolean>;
    getSessionName(): string | undefined;
    setSessionName(name: string): void;
    setLabel(entry: string, label?: string): void;
    readonly events: { emit(channel: string, data?: any): void; on(channel: string, handler: (data: any) => void): () => void };
  }

  export const DEFAULT_MAX_LINES: number;
  export const DEFAULT_MAX_BYTES: number;
  export const CONFIG_DIR_NAME: string;
  /** The folder in which this extension may keep its data. */
  export function getAgentDir(): string;
  export function defineTool<Tool extends ToolDefinition>(tool: Tool): Tool;
  export function isToolCallEventType(name: string, event: { toolName: string }): boolean;
  export interface Truncated { content: string; truncated: boolean; truncatedBy: "lines" | "bytes" | null; totalLines: number; totalBytes: number }
  export function truncateHead(text: string, options?: { maxLines?: number; maxBytes?: number }): Truncated;
  export function truncateTail(text: string, options?: { maxLines?: number; maxBytes?: number }): Truncated;
  export function formatSize(bytes: number): string;
  export function parseFrontmatter(text: string): { frontmatter: Record<string, any>; body: string };
  export function convertToLlm(messages: Message[]): Message[];
  export function serializeConversation(messages: Message[]): string;
  export function withFileMutationQueue<Result>(path: string, work: () => Promise<Result>): Promise<Result>;
}
declare module "@earendil-works/pi-coding-agent" { export * from "@mariozechner/pi-coding-agent"; }
declare module "@mariozechner/pi-ai" {
  import type { Model, ModelAnswer, ModelContext, ModelName, ModelOptions, ModelStream } from "@mariozechner/pi-coding-agent";
  export function StringEnum(values: readonly string[], options?: object): object;
  export function getModel(provider: string, id: string): Model | undefined;
  export function complete(model: ModelName, context: ModelContext, options?: ModelOptions): Promise<ModelAnswer>;
  export function completeSimple(model: ModelName, context: ModelContext, options?: ModelOptions): Promise<ModelAnswer>;
  export function stream(model: ModelName, context: ModelContext, options?: ModelOptions): ModelStream;
  export function streamSimple(model: ModelName, context: ModelContext, options?: ModelOptions): ModelStream;
  /** Events of an answer, for a provider that answers by itself; the event `done` or `error` ends it. */
  export class AssistantMessageEventStream implements AsyncIterable<any> {
    push(event: any): void;
    end(result?: any): void;
    result(): Promise<any>;
    [Symbol.asyncIterator](): AsyncIterator<any>;
  }
  export function createAssistantMessageEventStream(): AssistantMessageEventStream;
  export function calculateCost(model: any, usage: any): any;
  export type { OAuthCredentials, OAuthLoginCallbacks } from "@mariozechner/pi-coding-agent";
}
declare module "@earendil-works/pi-ai" { export * from "@mariozechner/pi-ai"; }
declare module "typebox" {
  export const Type: { [Kind in "Object" | "String" | "Number" | "Integer" | "Boolean" | "Null" | "Array" | "Tuple" | "Union" | "Intersect" | "Literal" | "Enum" | "Record" | "Any" | "Unknown" | "Never" | "Unsafe" | "Optional" | "Readonly" | "Partial" | "Pick" | "Omit" | "Composite" | "Date"]: (...parts: any[]) => any };
}
declare module "@sinclair/typebox" { export * from "typebox"; }
declare module "@mariozechner/pi-tui";
declare module "@earendil-works/pi-tui";
declare module "node:*";
declare var process: { env: Record<string, string | undefined>; cwd(): string; platform: string; [other: string]: any };
declare var Buffer: any;
