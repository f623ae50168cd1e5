//! The fields of each record in a request of Anthropic Messages.

use crate::decode::record_fields;

record_fields! {
    /// Fields of every request that the decoder reads.
    READ("request") = [
        "model", "messages", "system", "tools", "tool_choice", "thinking", "cache_control",
        "output_config", "context_management", "compaction", "thread", "fallbacks", "speed",
    ];
    /// Further such fields of a request for an answer.
    READ_FOR_ANSWER("request") = ["max_tokens", "stream", "stop_sequences", "diagnostics"];
    /// Fields of every request that change neither prompt nor bill.
    OTHER("request") = ["mcp_servers", "output_format"];
    /// Further such fields of a request for an answer.
    OTHER_FOR_ANSWER("request") = [
        "metadata", "service_tier", "container", "inference_geo",
    ];
    /// Parameters that shape how the model chooses its words.
    SAMPLING("request") = ["temperature", "top_p", "top_k"];
    CACHE_CONTROL("cache_control") = ["type", "ttl"];
    ADAPTIVE_THINKING("thinking.adaptive") = ["type", "display", "block_binding"];
    BETWEEN_TOOLS_THINKING("thinking.between_tools") = ["type"];
    DISABLED_THINKING("thinking.disabled") = ["type"];
    ENABLED_THINKING("thinking.enabled") = ["type", "budget_tokens", "display", "block_binding"];
    BLOCK_BINDING("thinking.block_binding") = ["prefix_mismatch_behavior"];
    OUTPUT_CONFIG("output_config") = ["effort", "format", "task_budget"];
    DIAGNOSTICS("diagnostics") = ["previous_message_id"];
    CONTEXT_MANAGEMENT("context_management") = ["edits"];
    COMPACTION("compaction") = ["type", "instructions"];
    THREAD_CREATE("thread.create") = ["type"];
    THREAD_CONTINUE("thread.continue") = ["type", "previous_message_id"];
    FALLBACK("fallbacks") = ["model", "max_tokens", "output_config", "speed", "thinking"];
    TOOL("tools.custom") = [
        "type", "name", "description", "input_schema", "cache_control", "strict", "allowed_callers",
        "defer_loading", "eager_input_streaming", "input_examples",
    ];
    TOOL_CHOICE("tool_choice.auto") = ["type", "disable_parallel_tool_use"];
    TOOL_CHOICE_NONE("tool_choice.none") = ["type"];
    TOOL_CHOICE_TOOL("tool_choice.tool") = ["type", "name", "disable_parallel_tool_use"];
    MESSAGE("message") = ["role", "content"];
    SYSTEM_MESSAGE("message.system") = ["role", "content", "clear_at", "output_config"];
    MESSAGE_OUTPUT_CONFIG("message.system.output_config") = ["effort"];
    TOOL_CHANGE("block.tool_addition") = ["type", "tool", "cache_control"];
    TEXT("block.text") = ["type", "text", "cache_control", "citations"];
    IMAGE("block.image") = ["type", "source", "cache_control"];
    THINKING("block.thinking") = ["type", "thinking", "signature"];
    REDACTED_THINKING("block.redacted_thinking") = ["type", "data"];
    TOOL_USE("block.tool_use") = ["type", "cache_control", "id", "name", "input", "caller"];
    TOOL_RESULT("block.tool_result") = ["type", "tool_use_id", "content", "is_error", "cache_control"];
    IMAGE_URL("source.url") = ["type", "url"];
    IMAGE_DATA("source.base64") = ["type", "media_type", "data"];
}
