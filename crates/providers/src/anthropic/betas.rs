//! The names of Anthropic's beta headers: which fields need one, and which names exist.

/// Clearing of old tool results and thinking.
pub const CONTEXT_MANAGEMENT: &[&str] = &["context-management-2025-06-27"];
/// Compaction at a threshold.
pub const COMPACT_EDIT: &[&str] = &["compact-2026-01-12"];
/// Compaction on demand, and its signed blocks.
pub const COMPACTION: &[&str] = &["compact-2026-09-04"];
/// Compaction blocks of either sort.
pub const COMPACTION_BLOCK: &[&str] = &["compact-2026-09-04", "compact-2026-01-12"];
/// Adding and removing declared tools in a system message.
pub const TOOL_CHANGES: &[&str] = &["mid-conversation-tool-changes-2026-07-01", "inline-tools-2026-09-15"];
/// Defining tools in a system message.
pub const INLINE_TOOLS: &[&str] = &["inline-tools-2026-09-15"];
/// Other models where one refuses.
pub const FALLBACKS: &[&str] = &["server-side-fallback-2026-07-01", "server-side-fallback-2026-06-01"];
/// Fast mode, on the models that had it first.
pub const FAST_MODE: &[&str] = &["fast-mode-2026-02-01"];
/// What becomes of thinking that is bound to another conversation.
pub const BINDING: &[&str] = &["thinking-binding-controls-2026-08-01"];
/// Notes on the progress instead of a summary.
pub const DISPLAY_UPDATES: &[&str] = &["thinking-display-updates-2026-08-18"];
/// The effort in a system message. Claude Code sends the second name.
pub const MESSAGE_EFFORT: &[&str] =
    &["mid-conversation-output-config-2026-07-01", "per-turn-control-2026-07-01"];
/// System messages for one turn.
pub const CLEAR_AT: &[&str] = &["mid-conversation-system-clear-at-2026-08-21"];
/// Conversations that the server remembers.
pub const THREADS: &[&str] = &["message-threads-2026-08-12"];
/// A budget for a whole task.
pub const TASK_BUDGET: &[&str] = &["task-budgets-2026-03-13"];

/// All names that servers know: those of the official SDK, and those that clients still send.
pub const KNOWN: &[&str] = &[
    "admin-user-sign-out-2026-10-08",
    "advanced-tool-use-2025-11-20",
    "advisor-tool-2026-03-01",
    "agent-memory-2026-07-22",
    "analytics-usage-cost-2026-08-24",
    "cache-diagnosis-2026-04-07",
    "ce-plugins-2026-09-01",
    "ce-user-management-2026-07-13",
    "claude-code-20250219",
    "code-execution-2025-05-22",
    "compact-2026-01-12",
    "compact-2026-09-04",
    "computer-use-2024-10-22",
    "computer-use-2025-01-24",
    "computer-use-2025-11-24",
    "context-1m-2025-08-07",
    "context-management-2025-06-27",
    "dev-full-thinking-2025-05-14",
    "dreaming-2026-04-21",
    "effort-2025-11-24",
    "experimental-claude-tag-2026-10-21",
    "extended-cache-ttl-2025-04-11",
    "fallback-credit-2026-06-01",
    "fallback-credit-2026-07-01",
    "fast-mode-2026-02-01",
    "files-api-2025-04-14",
    "fine-grained-tool-streaming-2025-05-14",
    "inline-tools-2026-09-15",
    "interleaved-thinking-2025-05-14",
    "managed-agents-2026-04-01",
    "max-tokens-3-5-sonnet-2024-07-15",
    "mcp-client-2025-04-04",
    "mcp-client-2025-11-20",
    "mcp-client-2026-09-15",
    "mcp-tunnels-2026-06-22",
    "message-batches-2024-09-24",
    "message-threads-2026-08-12",
    "mid-conversation-output-config-2026-07-01",
    "mid-conversation-system-clear-at-2026-08-21",
    "mid-conversation-tool-changes-2026-07-01",
    "model-context-window-exceeded-2025-08-26",
    "oauth-2025-04-20",
    "output-128k-2025-02-19",
    "output-300k-2026-03-24",
    "pdfs-2024-09-25",
    "per-turn-control-2026-07-01",
    "prompt-caching-2024-07-31",
    "prompt-caching-scope-2026-01-05",
    "server-side-fallback-2026-06-01",
    "server-side-fallback-2026-07-01",
    "skills-2025-10-02",
    "spend-limit-reads-2026-09-26",
    "structured-outputs-2025-11-13",
    "task-budgets-2026-03-13",
    "telemetry-destinations-2026-08-11",
    "thinking-binding-controls-2026-08-01",
    "thinking-display-updates-2026-08-18",
    "thinking-token-count-2026-05-13",
    "token-counting-2024-11-01",
    "token-efficient-tools-2025-02-19",
    "tool-examples-2025-10-29",
    "tool-search-tool-2025-10-19",
    "user-profiles-2026-03-24",
    "user-profiles-2026-08-18",
    "user-profiles-2026-09-04",
    "web-fetch-2025-09-10",
    "webhooks-2026-10-07",
];
