//! The fields of each record in a request of the Responses API.

use crate::decode::record_fields;

record_fields! {
    /// All fields of a request. The last is none of OpenAI's: Codex sends it to every server.
    REQUEST("request") = [
        "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls",
        "max_tool_calls", "text", "reasoning", "include", "store", "previous_response_id",
        "conversation", "max_output_tokens", "temperature", "top_p", "top_logprobs", "truncation",
        "context_management", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention",
        "service_tier", "safety_identifier", "user", "metadata", "background", "stream",
        "stream_options", "prompt", "moderation", "image", "access_programs", "client_metadata",
    ];
    CACHE_OPTIONS("prompt_cache_options") = ["mode", "ttl", "prewarm", "comparison_response_id"];
    REASONING("reasoning") = ["effort", "summary", "generate_summary", "context", "mode"];
    TEXT("text") = ["format", "verbosity"];
    JSON_SCHEMA("text.format.json_schema") = ["type", "name", "schema", "strict", "description"];
    /// `text` and `json_object`.
    PLAIN_FORMAT("text.format.text") = ["type"];
    STREAM_OPTIONS("stream_options") = ["include_obfuscation", "reasoning_summary_delivery"];
    CONTEXT_MANAGEMENT("context_management") = ["type", "compact_threshold"];
    NAMESPACE("tools.namespace") = ["type", "name", "description", "tools"];
    FUNCTION("tools.function") = [
        "type", "name", "description", "parameters", "strict", "defer_loading", "async",
        "output_schema", "allowed_callers",
    ];
    CUSTOM("tools.custom") = [
        "type", "name", "description", "format", "defer_loading", "async", "allowed_callers",
    ];
    GRAMMAR("tools.custom.format") = ["type", "syntax", "definition"];
    /// Of all forms of a choice.
    TOOL_CHOICE("tool_choice") = ["type", "name", "mode", "tools", "server_label"];
}
