// The API of Hardpan's extensions: what `pi`, `ctx` and the modules offer. `hardpan extensions new` writes this file;
// it is there for your editor and for `tsc`, and is never loaded.

declare module "@mariozechner/pi-coding-agent" {
  /** An input arrived, before skills and templates are expanded. */
  export interface InputEvent {
    text: string;
    images?: ImagePart[];
    /** Where an input came from. */
    source: "interactive" | "rpc" | "extension";
  }
  export interface ImagePart {
    type: "image";
    /** The image in base64. */
    data: string;
    mimeType: string;
  }
  /** A run is about to begin. */
  export interface BeforeAgentStartEvent {
    prompt: string;
    images: ImagePart[];
    /** As earlier handlers left it. */
    systemPrompt: string;
    systemPromptOptions: SystemPromptOptions;
  }
  /** What the system prompt is made of. To change it, return `systemPrompt`. */
  export interface SystemPromptOptions {
    cwd: string;
    selectedTools: string[];
    toolSnippets: Record<string, string>;
    promptGuidelines: string[];
    skills: { name: string; description: string }[];
  }
  /** The conversation, before each request. What is returned is sent, and not stored. */
  export interface ContextEvent {
    messages: Message[];
  }
  /** A message of a conversation. */
  export type Message = UserMessage | AssistantMessage | ToolResultMessage | CustomMessage | BashExecutionMessage | CompactionSummaryMessage | BranchSummaryMessage;
  /** Written by the person. */
  export interface UserMessage {
    role: "user";
    /** A text, or a list of parts. */
    content: string | ContentPart[];
    /** Given by Hardpan. A message that keeps it takes the place of the one that had it. */
    id?: string;
    /** Milliseconds since 1970. */
    timestamp?: number;
  }
  /** A part of a message. */
  export type ContentPart = TextPart | ImagePart | ThinkingPart | ToolCallPart;
  export interface TextPart {
    type: "text";
    text: string;
  }
  export interface ThinkingPart {
    type: "thinking";
    thinking: string;
    thinkingSignature?: string;
  }
  export interface ToolCallPart {
    type: "toolCall";
    id: string;
    name: string;
    arguments: Record<string, any>;
  }
  /** An answer of the model. */
  export interface AssistantMessage {
    role: "assistant";
    content: ContentPart[];
    provider?: string;
    model?: string;
    /** `stop`, `toolUse`, `length`, or the provider's own word. */
    stopReason?: string;
    usage?: Usage;
    errorMessage?: string;
    /** Given by Hardpan. A message that keeps it takes the place of the one that had it. */
    id?: string;
    /** Milliseconds since 1970. */
    timestamp?: number;
  }
  /** What an answer used, in tokens and dollars. */
  export interface Usage {
    input: number;
    output: number;
    cacheRead: number;
    cacheWrite: number;
    totalTokens: number;
    cost: { total: number };
  }
  /** The result of a tool call. */
  export interface ToolResultMessage {
    role: "toolResult";
    toolCallId: string;
    /** Empty where it is not known. */
    toolName: string;
    content: ContentPart[];
    /** What the tool stored besides; never sent to the model. */
    details?: any;
    isError: boolean;
    /** Given by Hardpan. A message that keeps it takes the place of the one that had it. */
    id?: string;
    /** Milliseconds since 1970. */
    timestamp?: number;
  }
  /** A message that an extension added. */
  export interface CustomMessage {
    role: "custom";
    /** The extension's own word for this kind of message. */
    customType: string;
    /** A text, or a list of parts. */
    content: string | ContentPart[];
    /** Whether the person sees it; the model always does. */
    display: boolean;
    /** What the extension keeps with it; never sent to the model. */
    details?: any;
    /** Given by Hardpan. A message that keeps it takes the place of the one that had it. */
    id?: string;
    /** Milliseconds since 1970. */
    timestamp?: number;
  }
  /** A command that the person ran with `!` or `!!`. */
  export interface BashExecutionMessage {
    role: "bashExecution";
    command: string;
    output: string;
    exitCode?: number;
    excludeFromContext: boolean;
    /** Given by Hardpan. A message that keeps it takes the place of the one that had it. */
    id?: string;
    /** Milliseconds since 1970. */
    timestamp?: number;
  }
  /** What stands in the place of messages that were compacted. */
  export interface CompactionSummaryMessage {
    role: "compactionSummary";
    summary: string;
    /** Given by Hardpan. A message that keeps it takes the place of the one that had it. */
    id?: string;
    /** Milliseconds since 1970. */
    timestamp?: number;
  }
  /** What a branch that was left was about. */
  export interface BranchSummaryMessage {
    role: "branchSummary";
    summary: string;
    /** Given by Hardpan. A message that keeps it takes the place of the one that had it. */
    id?: string;
    /** Milliseconds since 1970. */
    timestamp?: number;
  }
  /** A tool is about to be called. A handler that fails blocks the call. */
  export interface ToolCallEvent {
    toolName: string;
    toolCallId: string;
    input: Record<string, any>;
  }
  /** A call has a result, before it is stored. */
  export interface ToolResultEvent {
    toolName: string;
    toolCallId: string;
    input: Record<string, any>;
    content: ContentPart[];
    details?: any;
    isError: boolean;
  }
  /** The body of a request, before it is sent. */
  export interface BeforeProviderRequestEvent {
    /** In the form of the provider's protocol. */
    payload: any;
    provider: string;
    model: string;
    /** Of the prompt, by Hardpan's own count. */
    tokens: number;
  }
  /** The session is about to be left for another one. */
  export interface SessionBeforeSwitchEvent {
    reason: "new" | "resume";
    /** The session that is resumed. */
    targetSessionFile?: string;
  }
  /** The conversation is about to be forked. */
  export interface SessionBeforeForkEvent {
    /** The entry that the fork continues from; null if there is none yet. */
    entryId: string | null;
    position: "at";
  }
  /** The conversation is about to continue from another entry. */
  export interface SessionBeforeTreeEvent {
    preparation: TreePreparation;
    signal: AbortSignal;
  }
  export interface TreePreparation {
    targetId: string;
    oldLeafId: string | null;
    commonAncestorId: string | null;
    entriesToSummarize: SessionEntry[];
    userWantsSummary: boolean;
    customInstructions?: string;
  }
  /** An entry of a session. */
  export type SessionEntry = { id: string; parentId: string | null; timestamp: string | null } & (MessageEntry | CustomMessageEntry | BranchSummaryEntry | CustomEntry | CompactionEntry | ModelChangeEntry | ThinkingLevelChangeEntry | SessionInfoEntry | LabelEntry);
  export interface MessageEntry {
    type: "message";
    message: Message;
  }
  /** A message that an extension added. */
  export interface CustomMessageEntry {
    type: "custom_message";
    role: "custom";
    customType: string;
    /** A text, or a list of parts. */
    content: string | ContentPart[];
    display: boolean;
    details?: any;
  }
  export interface BranchSummaryEntry {
    type: "branch_summary";
    role: "branchSummary";
    summary: string;
  }
  /** What an extension stored with `pi.appendEntry`. */
  export interface CustomEntry {
    type: "custom";
    customType: string;
    data: any;
  }
  export interface CompactionEntry {
    type: "compaction";
    summary: string;
    firstKeptEntryId: string | null;
    tokensBefore: number | null;
    /** What an extension stored with its summary, else the files that were read and changed. */
    details: any;
  }
  export interface ModelChangeEntry {
    type: "model_change";
    provider: string;
    modelId: string;
  }
  export interface ThinkingLevelChangeEntry {
    type: "thinking_level_change";
    thinkingLevel: string;
  }
  /** The session got a name. */
  export interface SessionInfoEntry {
    type: "session_info";
    name: string;
  }
  export interface LabelEntry {
    type: "label";
    targetId: string;
    label: string | null;
  }
  /** A conversation is about to be compacted. */
  export interface SessionBeforeCompactEvent {
    preparation: CompactionPreparation;
    branchEntries: SessionEntry[];
    customInstructions?: string;
    reason: "manual" | "threshold" | "overflow";
    willRetry: boolean;
    signal: AbortSignal;
  }
  export interface CompactionPreparation {
    firstKeptEntryId: string;
    messagesToSummarize: Message[];
    /** Always empty: no turn is split here. */
    turnPrefixMessages: Message[];
    isSplitTurn: boolean;
    tokensBefore: number;
    previousSummary?: string;
    fileOps: FileOperations;
    settings: { enabled: boolean };
  }
  /** Files that the messages are about. */
  export interface FileOperations {
    read: string[];
    /** Always empty: written files are among those that were edited. */
    written: string[];
    edited: string[];
  }
  /** A session begins: where are more skills and templates? */
  export interface ResourcesDiscoverEvent {
    cwd: string;
    reason: "startup" | "reload";
  }
  /** The person is about to run a command with `!` or `!!`. */
  export interface UserBashEvent {
    command: string;
    /** True for `!!`: the model never sees the output. */
    excludeFromContext: boolean;
    cwd: string;
  }
  /** A session begins. */
  export interface SessionStartEvent {
    reason: "startup" | "reload" | "new" | "resume" | "fork";
    previousSessionFile?: string;
  }
  /** A session ends, or the extension does. */
  export interface SessionShutdownEvent {
    reason: "quit" | "reload" | "new" | "resume" | "fork";
    targetSessionFile?: string;
  }
  /** Where sessions are kept is the person's choice: nothing is asked. */
  export interface SessionDirectoryEvent {
    cwd: string;
  }
  /** The agent is in another session. */
  export interface SessionSwitchEvent {
    reason: "new" | "resume";
    previousSessionFile: string;
  }
  /** The conversation was forked. */
  export interface SessionForkEvent {
    previousSessionFile: string;
  }
  /** The conversation continues from another entry. */
  export interface SessionTreeEvent {
    newLeafId: string;
    oldLeafId: string | null;
    /** The summary of the branch that was left. */
    summaryEntry: BranchSummary | null;
    /** Whether an extension wrote it. */
    fromExtension: boolean;
  }
  export interface BranchSummary {
    type: "branch_summary";
    id: string;
    summary: string;
  }
  /** A conversation was compacted. */
  export interface SessionCompactEvent {
    compactionEntry: Compaction;
    /** Whether an extension wrote the summary. */
    fromExtension: boolean;
    reason: "manual" | "threshold" | "overflow";
    /** Whether the request that was too long is made again. */
    willRetry: boolean;
  }
  export interface Compaction {
    type: "compaction";
    id: string | null;
    summary: string;
    firstKeptEntryId: string;
    tokensBefore: number;
  }
  /** A conversation was not compacted. */
  export interface SessionCompactFailedEvent {
    reason: "manual" | "threshold" | "overflow";
    errorMessage?: string;
    /** Whether an extension cancelled it, or the person aborted it. */
    aborted: boolean;
    /** Always false: the run goes on with what fits. */
    willRetry: boolean;
    /** Whether an extension wrote the summary. */
    fromExtension: boolean;
  }
  /** The session has another name. */
  export interface SessionInfoChangedEvent {
    name: string;
  }
  /** A run begins. */
  export interface AgentStartEvent {}
  /** A run is over. */
  export interface AgentEndEvent {
    /** Those that it added. */
    messages: Message[];
  }
  /** Nothing more happens by itself. */
  export interface AgentSettledEvent {}
  /** A turn begins: a request, its answer, and the results of its calls. */
  export interface TurnStartEvent {
    /** Within the run, from 0. */
    turnIndex: number;
    /** Milliseconds since 1970. */
    timestamp: number;
  }
  /** A turn is over. */
  export interface TurnEndEvent {
    turnIndex: number;
    message: Message;
    toolResults: ToolResultMessage[];
    /** The entries of the session that hold them. */
    messageEntryId: string;
    toolResultEntryIds: string[];
  }
  /** A message begins; an answer is still empty. */
  export interface MessageStartEvent {
    message: Message;
  }
  /** A part of an answer begins, grows or ends. */
  export interface MessageUpdateEvent {
    /** The answer so far. */
    message: Message;
    assistantMessageEvent: AssistantMessageEvent;
  }
  /** What happened to a part of an answer. */
  export type AssistantMessageEvent = { type: "text_start"; contentIndex: number } | { type: "text_delta"; contentIndex: number; delta: string } | { type: "text_end"; contentIndex: number; content: string } | { type: "thinking_start"; contentIndex: number } | { type: "thinking_delta"; contentIndex: number; delta: string } | { type: "thinking_end"; contentIndex: number; content: string } | { type: "toolcall_start"; contentIndex: number } | { type: "toolcall_delta"; contentIndex: number; delta: string } | { type: "toolcall_end"; contentIndex: number; toolCall: ToolCallPart };
  /** A message is complete and stored. */
  export interface MessageEndEvent {
    message: Message;
  }
  /** A tool starts to run. */
  export interface ToolExecutionStartEvent {
    toolCallId: string;
    toolName: string;
    args: Record<string, any>;
  }
  /** A running tool has output to show. */
  export interface ToolExecutionUpdateEvent {
    toolCallId: string;
    toolName: string;
    args: Record<string, any>;
    /** The whole output so far. */
    partialResult: ToolResult;
  }
  /** What a tool gives. */
  export interface ToolResult {
    content: ContentPart[];
    /** For people and programs; never sent to the model. */
    details?: any;
  }
  /** A tool has ended. */
  export interface ToolExecutionEndEvent {
    toolCallId: string;
    toolName: string;
    result: ToolResult;
    isError: boolean;
  }
  /** Another model answers from now on. */
  export interface ModelSelectEvent {
    model: Model;
    previousModel: Model;
    source: "set";
  }
  /** A model that requests can go to. */
  export interface Model {
    provider: string;
    id: string;
    name: string;
    /** The protocol that its provider speaks. */
    api: string;
    baseUrl: string;
    reasoning: boolean;
    input: ("text" | "image")[];
    cost: ModelCost;
    contextWindow: number;
    maxTokens: number;
  }
  /** Dollars for a million tokens. */
  export interface ModelCost {
    input: number;
    output: number;
    cacheRead: number;
    cacheWrite: number;
  }
  /** The model thinks more, or less, from now on. */
  export interface ThinkingLevelSelectEvent {
    level: string;
    previousLevel: string;
  }
  /** The provider accepted a request, and its answer begins. */
  export interface AfterProviderResponseEvent {
    status: number;
    /** By their names in lower case; without cookies. */
    headers: Record<string, string>;
  }
  /** An extension asks the person something. */
  export interface UiPromptStartEvent {
    kind: "confirm" | "select" | "input" | "editor";
    title: string;
  }
  /** A question of an extension is no longer asked. */
  export interface UiPromptEndEvent {
    answered: boolean;
  }
  /** A tool, as `pi.getAllTools()` lists it. */
  export interface ToolInfo {
    name: string;
    description: string;
    /** The JSON schema of its arguments. */
    parameters: Record<string, any>;
    promptGuidelines: string[];
    /** Whether the model may call it. */
    active: boolean;
    sourceInfo: SourceInfo;
  }
  /** Where a tool or a command comes from. */
  export interface SourceInfo {
    /** Its file; `<builtin:NAME>` for what Hardpan brings, `<extension:NAME>` and the like where no file is known. */
    path: string;
    /** `builtin`, `extension:NAME`, `mcp:NAME`, `skill` or `prompt`. */
    source: string;
    scope: "temporary";
    origin: "top-level";
  }
  /** A command, as `pi.getCommands()` lists it. */
  export interface CommandInfo {
    name: string;
    description: string;
    /** Where a command comes from. */
    source: "extension" | "skill" | "prompt";
    sourceInfo: SourceInfo;
    /** The file of a skill or a template. */
    path?: string;
  }
  /** What `ctx.getContextUsage()` gives. */
  export interface ContextUsage {
    /** Null until the first answer. */
    tokens: number | null;
    contextWindow: number;
    percent: number | null;
  }
  /** A message that an extension wants to add. */
  export interface NewMessage {
    /** The extension's own word for this kind of message. */
    customType: string;
    /** A text, or a list of parts. */
    content: string | ContentPart[];
    /** Whether the person sees it; the model always does. */
    display: boolean;
    /** What the extension keeps with it; never sent to the model. */
    details?: any;
  }
  export type InputEventResult = { action: "continue" } | { action: "transform"; text: string; images?: ImagePart[] } | { action: "handled" };
  export interface BeforeAgentStartEventResult {
    /** A message that goes before the prompt. */
    message?: NewMessage;
    systemPrompt?: string;
  }
  export interface ContextEventResult {
    messages: Message[];
  }
  export interface ToolCallEventResult {
    block?: boolean;
    /** What the model is told. */
    reason?: string;
    /** Whether the run ends with a blocked call. */
    terminate?: boolean;
  }
  /** What is left out stays as it is. */
  export interface ToolResultEventResult {
    content?: string | ContentPart[];
    details?: any;
    isError?: boolean;
  }
  export type BeforeProviderRequestEventResult = unknown;
  export interface CancelResult {
    cancel?: boolean;
    /** What the person is told. */
    reason?: string;
  }
  export interface SessionBeforeTreeResult {
    cancel?: boolean;
    /** What the person is told. */
    reason?: string;
    /** A summary of the branch that is left. */
    summary?: { summary: string; details?: any };
    customInstructions?: string;
    label?: string;
  }
  export interface SessionBeforeCompactResult {
    cancel?: boolean;
    /** What the person is told. */
    reason?: string;
    /** A summary of the messages that go. */
    compaction?: { summary: string; firstKeptEntryId?: string; tokensBefore?: number; details?: any };
  }
  /** Folders and files, relative to the extension's own folder. */
  export interface ResourcesDiscoverResult {
    skillPaths?: string[];
    promptPaths?: string[];
    /** Taken, and not used: themes are the person's choice. */
    themePaths?: string[];
  }
  export interface UserBashEventResult {
    /** The output, instead of running the command. */
    result?: BashResult;
    /** Runs the command in its own way; the engine calls it, and gives its result. */
    operations?: BashOperations;
  }
  export type BashResult = { output: string; exitCode?: number; [other: string]: any };
  export type BashOperations = { exec(command: string, cwd: string, options: { onData(data: string | Uint8Array): void; signal: AbortSignal }): Promise<{ exitCode: number | null }> };
  export interface ExecResult { stdout: string; stderr: string; code: number; killed: boolean }

  /** What goes with each event, and what a handler may return. */
  export interface Events {
    input: { event: InputEvent; reply: InputEventResult };
    before_agent_start: { event: BeforeAgentStartEvent; reply: BeforeAgentStartEventResult };
    context: { event: ContextEvent; reply: ContextEventResult };
    tool_call: { event: ToolCallEvent; reply: ToolCallEventResult };
    tool_result: { event: ToolResultEvent; reply: ToolResultEventResult };
    before_provider_request: { event: BeforeProviderRequestEvent; reply: BeforeProviderRequestEventResult };
    session_before_switch: { event: SessionBeforeSwitchEvent; reply: CancelResult };
    session_before_fork: { event: SessionBeforeForkEvent; reply: CancelResult };
    session_before_tree: { event: SessionBeforeTreeEvent; reply: SessionBeforeTreeResult };
    session_before_compact: { event: SessionBeforeCompactEvent; reply: SessionBeforeCompactResult };
    resources_discover: { event: ResourcesDiscoverEvent; reply: ResourcesDiscoverResult };
    user_bash: { event: UserBashEvent; reply: UserBashEventResult };
    session_start: { event: SessionStartEvent; reply: void };
    session_shutdown: { event: SessionShutdownEvent; reply: void };
    session_directory: { event: SessionDirectoryEvent; reply: void };
    session_switch: { event: SessionSwitchEvent; reply: void };
    session_fork: { event: SessionForkEvent; reply: void };
    session_tree: { event: SessionTreeEvent; reply: void };
    session_compact: { event: SessionCompactEvent; reply: void };
    session_compact_failed: { event: SessionCompactFailedEvent; reply: void };
    session_info_changed: { event: SessionInfoChangedEvent; reply: void };
    agent_start: { event: AgentStartEvent; reply: void };
    agent_end: { event: AgentEndEvent; reply: void };
    agent_settled: { event: AgentSettledEvent; reply: void };
    turn_start: { event: TurnStartEvent; reply: void };
    turn_end: { event: TurnEndEvent; reply: void };
    message_start: { event: MessageStartEvent; reply: void };
    message_update: { event: MessageUpdateEvent; reply: void };
    message_end: { event: MessageEndEvent; reply: void };
    tool_execution_start: { event: ToolExecutionStartEvent; reply: void };
    tool_execution_update: { event: ToolExecutionUpdateEvent; reply: void };
    tool_execution_end: { event: ToolExecutionEndEvent; reply: void };
    model_select: { event: ModelSelectEvent; reply: void };
    thinking_level_select: { event: ThinkingLevelSelectEvent; reply: void };
    after_provider_response: { event: AfterProviderResponseEvent; reply: void };
    ui_prompt_start: { event: UiPromptStartEvent; reply: void };
    ui_prompt_end: { event: UiPromptEndEvent; reply: void };
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
    on(event: "input", handler: Handler<"input">): () => void;
    on(event: "before_agent_start", handler: Handler<"before_agent_start">): () => void;
    on(event: "context", handler: Handler<"context">): () => void;
    on(event: "tool_call", handler: Handler<"tool_call">): () => void;
    on(event: "tool_result", handler: Handler<"tool_result">): () => void;
    on(event: "before_provider_request", handler: Handler<"before_provider_request">): () => void;
    on(event: "session_before_switch", handler: Handler<"session_before_switch">): () => void;
    on(event: "session_before_fork", handler: Handler<"session_before_fork">): () => void;
    on(event: "session_before_tree", handler: Handler<"session_before_tree">): () => void;
    on(event: "session_before_compact", handler: Handler<"session_before_compact">): () => void;
    on(event: "resources_discover", handler: Handler<"resources_discover">): () => void;
    on(event: "user_bash", handler: Handler<"user_bash">): () => void;
    on(event: "session_start", handler: Handler<"session_start">): () => void;
    on(event: "session_shutdown", handler: Handler<"session_shutdown">): () => void;
    on(event: "session_directory", handler: Handler<"session_directory">): () => void;
    on(event: "session_switch", handler: Handler<"session_switch">): () => void;
    on(event: "session_fork", handler: Handler<"session_fork">): () => void;
    on(event: "session_tree", handler: Handler<"session_tree">): () => void;
    on(event: "session_compact", handler: Handler<"session_compact">): () => void;
    on(event: "session_compact_failed", handler: Handler<"session_compact_failed">): () => void;
    on(event: "session_info_changed", handler: Handler<"session_info_changed">): () => void;
    on(event: "agent_start", handler: Handler<"agent_start">): () => void;
    on(event: "agent_end", handler: Handler<"agent_end">): () => void;
    on(event: "agent_settled", handler: Handler<"agent_settled">): () => void;
    on(event: "turn_start", handler: Handler<"turn_start">): () => void;
    on(event: "turn_end", handler: Handler<"turn_end">): () => void;
    on(event: "message_start", handler: Handler<"message_start">): () => void;
    on(event: "message_update", handler: Handler<"message_update">): () => void;
    on(event: "message_end", handler: Handler<"message_end">): () => void;
    on(event: "tool_execution_start", handler: Handler<"tool_execution_start">): () => void;
    on(event: "tool_execution_update", handler: Handler<"tool_execution_update">): () => void;
    on(event: "tool_execution_end", handler: Handler<"tool_execution_end">): () => void;
    on(event: "model_select", handler: Handler<"model_select">): () => void;
    on(event: "thinking_level_select", handler: Handler<"thinking_level_select">): () => void;
    on(event: "after_provider_response", handler: Handler<"after_provider_response">): () => void;
    on(event: "ui_prompt_start", handler: Handler<"ui_prompt_start">): () => void;
    on(event: "ui_prompt_end", handler: Handler<"ui_prompt_end">): () => void;
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
