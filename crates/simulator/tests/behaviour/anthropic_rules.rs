use std::collections::BTreeSet;

use hardpan_models::Catalogue;
use hardpan_simulator::{ANTHROPIC_RULES, AnthropicSettings, BetaPolicy, EngineSettings};
use serde_json::{Value, json};

use crate::anthropic_requests::{Anthropic, assistant, request, tool, user};
use crate::providers::{merge_fields, scripted};

/// All models that are sold can think: this one cannot.
const PLAIN: &str = r#"{"models": [{"provider": "anthropic", "id": "claude-plain"}]}"#;

fn settings() -> EngineSettings {
    let catalogue = Catalogue::builtin().with_user_file("models.json", PLAIN).unwrap();
    EngineSettings { catalogue, ..scripted("default: {text: Yes.}") }
}

/// A rule, a model that it holds for, the fields that break it, its words, and the nearest fields
/// that are accepted.
struct Case {
    rule: &'static str,
    model: &'static str,
    version: &'static str,
    betas: &'static str,
    broken: Value,
    words: String,
    accepted: Value,
}

fn case(rule: &'static str, model: &'static str, broken: Value, words: &str, accepted: Value) -> Case {
    Case { rule, model, version: "2023-06-01", betas: "", broken, words: words.to_owned(), accepted }
}

fn cases() -> Vec<Case> {
    let new = |case: Case| Case { version: "2026-10-21", ..case };
    let thinking = |kind: &str| json!({"thinking": {"type": kind}});
    let budget = |more: Value| {
        let mut fields = json!({"thinking": {"type": "enabled", "budget_tokens": 2000}});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields
    };
    let effort = |effort: &str| json!({"output_config": {"effort": effort}});
    let off =
        |kind: &str, effort: &str| json!({"thinking": {"type": kind}, "output_config": {"effort": effort}});
    let messages = |messages: Value| json!({"messages": messages});
    let text = json!({"type": "text", "text": "It is there."});
    let search =
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}});
    let failed = json!({
        "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
        "content": {"type": "web_search_tool_result_error", "error_code": "unavailable"},
    });
    let forced = |more: Value| {
        let mut fields = json!({"tool_choice": {"type": "any"}});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields
    };
    let document =
        json!([{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}]);
    let cited = json!([{"type": "text", "text": "x", "citations": [{"type": "char_location"}]}]);
    let low = json!({"role": "system", "content": [], "output_config": {"effort": "low"}});
    let block = json!({"type": "compaction", "content": "Summary", "signature": "s"});
    let compaction = |more: Value| {
        let mut fields = json!({"compaction": {"type": "summarize"}});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields
    };
    let extra = |path: &str| format!("{path}: Extra inputs are not permitted");
    let use_adaptive =
        "Use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior.";
    vec![
        case(
            "beta field",
            "claude-opus-5",
            messages(json!([user("a"), {"role": "system", "content": "x", "clear_at": "next_user_message"}])),
            &extra("messages.1.clear_at"),
            messages(json!([user("a"), {"role": "system", "content": "x"}])),
        ),
        case(
            "beta field",
            "claude-opus-5-5",
            json!({"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}}),
            &extra("thinking.adaptive.block_binding"),
            thinking("adaptive"),
        ),
        case(
            "beta field",
            "claude-sonnet-5",
            json!({"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}}),
            &extra("context_management"),
            json!({"context_management": null, "diagnostics": null}),
        ),
        new(case(
            "sampling",
            "claude-haiku-4-5",
            json!({"temperature": 1}),
            &extra("temperature"),
            json!({}),
        )),
        new(case(
            "document in answer",
            "claude-opus-4-8",
            messages(json!([user("a"), assistant(&document), user("b")])),
            "messages.1.content.0: document blocks are not permitted in assistant messages",
            messages(json!([{"role": "user", "content": document}])),
        )),
        new(case(
            "citations of user",
            "claude-opus-4-8",
            messages(json!([{"role": "user", "content": cited}])),
            "messages.0.content.0.text.citations: citations are not permitted in user messages",
            messages(json!([user("a"), assistant(&cited), user("b")])),
        )),
        case(
            "deprecated sampling",
            "claude-opus-4-7",
            json!({"temperature": 0.5}),
            "`temperature` is deprecated for this model",
            json!({"temperature": 1}),
        ),
        case(
            "deprecated sampling",
            "claude-sonnet-5",
            json!({"temperature": 1, "top_p": 1}),
            "`temperature` is deprecated for this model",
            json!({"top_p": 0.99}),
        ),
        case(
            "deprecated sampling",
            "claude-haiku-5-5",
            json!({"top_p": 1}),
            "`top_p` is deprecated for this model",
            json!({"top_p": 0.99}),
        ),
        case(
            "deprecated sampling",
            "claude-fable-5",
            json!({"top_k": 5}),
            "`top_k` is deprecated for this model",
            json!({}),
        ),
        case(
            "temperature with thinking",
            "claude-haiku-4-5",
            budget(json!({"temperature": 0.5})),
            "`temperature` may only be set to 1 when thinking is enabled.",
            json!({"temperature": 0.5}),
        ),
        case(
            "top_k with thinking",
            "claude-opus-4-6",
            json!({"thinking": {"type": "adaptive"}, "top_k": 5}),
            "`top_k` must be unset when thinking is enabled.",
            json!({"top_k": 5}),
        ),
        case(
            "top_p with thinking",
            "claude-sonnet-4-6",
            budget(json!({"top_p": 0.9})),
            "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.",
            budget(json!({"top_p": 0.95})),
        ),
        case(
            "no thinking",
            "claude-plain",
            budget(json!({"max_tokens": 4000})),
            "thinking is not supported on this model",
            json!({"max_tokens": 4000}),
        ),
        case(
            "thinking enabled",
            "claude-opus-4-8",
            budget(json!({})),
            &format!("\"thinking.type.enabled\" is not supported for this model. {use_adaptive}"),
            thinking("adaptive"),
        ),
        case(
            "thinking adaptive",
            "claude-opus-4-5",
            thinking("adaptive"),
            "adaptive thinking is not supported on this model",
            budget(json!({})),
        ),
        case(
            "thinking disabled",
            "claude-opus-5-5",
            thinking("disabled"),
            &format!("\"thinking.type.disabled\" is not supported for this model. {use_adaptive}"),
            json!({}),
        ),
        case(
            "thinking disabled, between tools",
            "claude-sonnet-5-5",
            thinking("disabled"),
            "To turn thinking off on this model, send \"thinking\": {\"type\": \"between_tools\"} instead of {\"type\": \"disabled\"}.",
            thinking("between_tools"),
        ),
        case(
            "thinking between tools",
            "claude-haiku-5-5",
            thinking("between_tools"),
            "\"thinking.type.between_tools\" is not supported for this model.",
            thinking("disabled"),
        ),
        case(
            "no effort",
            "claude-haiku-4-5",
            effort("low"),
            "This model does not support the effort parameter.",
            json!({}),
        ),
        case(
            "effort level",
            "claude-opus-4-6",
            effort("xhigh"),
            "This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium.",
            effort("max"),
        ),
        case(
            "effort without thinking",
            "claude-opus-5",
            off("disabled", "xhigh"),
            "output_config.effort 'xhigh' is not supported when thinking is disabled on this model.",
            off("disabled", "high"),
        ),
        case(
            "effort without thinking",
            "claude-sonnet-5-5",
            off("between_tools", "max"),
            "output_config.effort 'max' is not supported when thinking is disabled on this model.",
            off("adaptive", "max"),
        ),
        Case {
            betas: "mid-conversation-output-config-2026-07-01",
            ..case(
                "effort of a message",
                "claude-opus-4-8",
                messages(json!([low, user("a")])),
                "output_config.effort requires a model that supports per-turn effort; set it on the request instead.",
                messages(json!([user("a")])),
            )
        },
        case(
            "forced tool",
            "claude-fable-5-1",
            forced(json!({})),
            "tool_choice: type \"tool\" and \"any\" are not supported for this model.",
            json!({"tool_choice": {"type": "auto"}}),
        ),
        case(
            "forced tool with thinking",
            "claude-haiku-4-5",
            forced(budget(json!({}))),
            "Thinking may not be enabled when tool_choice forces tool use.",
            forced(json!({})),
        ),
        case(
            "prefill",
            "claude-opus-4-6",
            messages(json!([user("a"), assistant(&json!("b"))])),
            "This model does not support assistant message prefill. The conversation must end with a user message.",
            messages(json!([user("a"), assistant(&json!("b")), user("c")])),
        ),
        case(
            "speed",
            "claude-sonnet-5",
            json!({"speed": "fast"}),
            "speed: fast mode is not supported on this model",
            json!({"speed": "standard"}),
        ),
        case("speed header", "claude-opus-5", json!({"speed": "fast"}), &extra("speed"), json!({})),
        Case {
            betas: "compact-2026-09-04",
            ..case(
                "misplaced compaction",
                "claude-opus-5",
                messages(json!([user("a"), assistant(&json!([block])), user("b")])),
                "messages.1.content.0: a compaction block must be the first block of the conversation",
                messages(json!([assistant(&json!([block])), user("b")])),
            )
        },
        Case {
            betas: "compact-2026-09-04",
            ..case(
                "compaction with others",
                "claude-opus-5",
                compaction(json!({"stop_sequences": ["x"]})),
                "compaction: cannot be combined with stop_sequences",
                compaction(json!({})),
            )
        },
        Case {
            betas: "compact-2026-09-04",
            ..case(
                "compaction in a turn",
                "claude-haiku-4-5",
                compaction(messages(json!([user("a"), assistant(&json!("b"))]))),
                "compaction: the last turn is not complete",
                compaction(json!({})),
            )
        },
        case(
            "web search",
            "claude-opus-5",
            messages(json!([user("a"), assistant(&json!([search, text])), user("b")])),
            "messages.1: `web_search` tool use with id `srvtoolu_1` was found without a corresponding `web_search_tool_result` block",
            messages(json!([user("a"), assistant(&json!([search, failed, text])), user("b")])),
        ),
        Case {
            betas: "message-threads-2026-08-12,context-management-2025-06-27",
            ..case(
                "thread with others",
                "claude-opus-5",
                json!({"thread": {"type": "create"}, "context_management": {"edits": []}}),
                "thread: cannot be combined with context_management",
                json!({"thread": {"type": "create"}}),
            )
        },
    ]
}

#[test]
fn every_rule_is_refused_in_its_words_and_its_neighbour_is_accepted() {
    let mut seen = BTreeSet::new();
    for Case { rule, model, version, betas, broken, words, accepted } in cases() {
        let server = Anthropic { version, ..Anthropic::new(settings()) }.with_betas(betas);
        assert_eq!(server.refusal(&request(model, broken.clone())), words, "{rule}");
        server.answer(&request(model, accepted));
        // Counting tokens refuses the same.
        let mut counted = request(model, broken);
        counted
            .as_object_mut()
            .unwrap()
            .retain(|name, _| !["max_tokens", "stop_sequences"].contains(&name.as_str()));
        if rule != "compaction with others" {
            assert_eq!(server.send_to("/v1/messages/count_tokens", &counted).status, 400, "{rule}");
        }
        seen.insert(rule);
    }
    seen.insert("messages"); // would need a body of megabytes
    let all: BTreeSet<&str> = ANTHROPIC_RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(seen, all);
}

#[test]
fn every_rule_holds_for_a_model_of_the_catalogue() {
    let catalogue = Catalogue::builtin();
    for rule in ANTHROPIC_RULES {
        let mut models = catalogue.models().filter(|model| model.provider == "anthropic");
        assert!(models.any(|model| (rule.models)(model)), "{}", rule.name);
    }
}

#[test]
fn beta_names_are_known_or_old_and_others_are_refused_unless_all_are_taken() {
    let old =
        "claude-code-20250219,effort-2025-11-24, advanced-tool-use-2025-11-20,extended-cache-ttl-2025-04-11";
    Anthropic::new(settings()).with_betas(old).answer(&request("claude-opus-5", json!({})));
    let body = request("claude-opus-5", json!({}));
    let words = "Unexpected value(s) `unheard-of-2026-01-01` for the `anthropic-beta` header";
    let strict = Anthropic::new(settings()).with_betas("unheard-of-2026-01-01");
    assert_eq!(strict.refusal(&body), words);
    let anthropic = AnthropicSettings { betas: BetaPolicy::Any, ..AnthropicSettings::default() };
    let lenient = Anthropic::new(EngineSettings { anthropic, ..settings() });
    lenient.with_betas("unheard-of-2026-01-01").answer(&body);
    let unknown = Anthropic { version: "2024-01-01", ..Anthropic::new(settings()) };
    assert_eq!(unknown.refusal(&body), "anthropic-version: \"2024-01-01\" is not a valid version");
}

#[test]
fn system_messages_are_taken_where_the_model_takes_them() {
    let server = Anthropic::new(settings());
    let system = json!({"role": "system", "content": "Run the tests."});
    let body = |model: &str, messages: Value| request(model, json!({"messages": messages}));
    let after = json!([user("a"), system]);
    server.answer(&body("claude-opus-4-8", after.clone()));
    assert_eq!(
        server.refusal(&body("claude-sonnet-5", after)),
        "messages.1: role 'system' is not supported on this model"
    );
    let first = server.refusal(&body("claude-opus-5", json!([system, user("a")])));
    assert!(
        first.starts_with("messages.0: use the top-level 'system' parameter for the initial system prompt; ")
    );
    let search = json!([
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
    ]);
    server.answer(&body("claude-opus-5", json!([user("a"), assistant(&search), system])));
    // The server goes on where it paused.
    server.answer(&body("claude-opus-5", json!([user("a"), assistant(&search)])));
}

#[test]
fn text_for_one_turn_is_billed_until_the_next_user_message() {
    let betas = "mid-conversation-system-clear-at-2026-08-21";
    let server = Anthropic::new(settings()).with_betas(betas);
    let scoped = json!({"role": "system", "clear_at": "next_user_message", "content": "Ask for independent reads in one turn."});
    let tokens = |messages: Value| {
        server.answer(&request("claude-opus-5", json!({"messages": messages})))["usage"]["input_tokens"]
            .as_u64()
            .unwrap()
    };
    let said = assistant(&json!("b"));
    assert!(tokens(json!([user("a"), scoped])) > tokens(json!([user("a")])) + 5);
    assert_eq!(
        tokens(json!([user("a"), scoped, said, user("c")])),
        tokens(json!([user("a"), said, user("c")]))
    );
    let marked = json!({"role": "system", "clear_at": "next_user_message", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]});
    let words = server.refusal(&request("claude-opus-5", json!({"messages": [user("a"), marked]})));
    assert_eq!(words, "messages.1.cache_control: not permitted on a system message with clear_at");
}

#[test]
fn deferred_tools_cost_nothing_until_something_refers_to_them() {
    let server = Anthropic::new(settings());
    let mut rare = tool("rare");
    rare["defer_loading"] = json!(true);
    rare["description"] = json!("A tool that is described at length, since nobody knows it. ".repeat(20));
    let tokens = |tools: Value, messages: Value| {
        let body = request("claude-opus-5", json!({"tools": tools, "messages": messages}));
        server.answer(&body)["usage"]["input_tokens"].as_u64().unwrap()
    };
    let hello = json!([user("Hello!")]);
    let both = json!([tool("read"), rare]);
    assert_eq!(tokens(both.clone(), hello.clone()), tokens(json!([tool("read")]), hello.clone()));
    let found = json!([
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_bm25", "input": {"query": "rare"}},
        {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1", "content": {
            "type": "tool_search_tool_search_result",
            "tool_references": [{"type": "tool_reference", "tool_name": "rare"}]}},
        {"type": "tool_use", "id": "t1", "name": "rare", "input": {}, "caller": {"type": "direct"}},
    ]);
    let result =
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]});
    let searched = json!([user("Hello!"), assistant(&found), result]);
    assert!(tokens(both, searched) > tokens(json!([tool("read")]), hello) + 200);
    let all = server.refusal(&request("claude-opus-5", json!({"tools": [rare]})));
    assert!(all.starts_with("At least one tool must have defer_loading=false. "), "{all}");
    let unknown = json!([user("a"), assistant(&json!([{"type": "tool_use", "id": "t", "name": "read", "input": {}}])),
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "tool_reference", "tool_name": "none"}]}]}]);
    assert_eq!(
        server.refusal(&request("claude-opus-5", json!({"messages": unknown}))),
        "Tool reference 'none' not found in available tools"
    );
}

#[test]
fn tools_come_and_go_in_system_messages() {
    let definition =
        json!({"type": "tool_definition", "definition": {"name": "new", "input_schema": {"type": "object"}}});
    let added = json!({"role": "system", "content": [{"type": "tool_addition", "tool": definition}]});
    let removed = json!({"role": "system", "content": [{"type": "tool_removal", "tool": {"type": "tool_reference", "name": "read"}}]});
    let script = "turns: [{tool_calls: [{name: new, arguments: {}}]}]\ndefault: {text: Yes.}";
    let body = |messages: Value| request("claude-opus-5", json!({"messages": messages}));
    let server = Anthropic::new(scripted(script)).with_betas("inline-tools-2026-09-15");
    let answer = server.answer(&body(json!([user("a"), added])));
    assert_eq!(answer["stop_reason"], "tool_use");
    let server = Anthropic::new(settings()).with_betas("mid-conversation-tool-changes-2026-07-01");
    server.answer(&body(json!([user("a"), removed])));
    assert_eq!(
        server.refusal(&body(json!([user("a"), added]))),
        "messages.1.content.0.tool_addition: Extra inputs are not permitted"
    );
}

#[test]
fn a_tool_that_is_gone_cannot_be_called_and_one_that_never_was_cannot_go() {
    let change = |kind: &str, tool: Value| json!({"type": kind, "tool": tool});
    let reference = |name: &str| json!({"type": "tool_reference", "name": name});
    let removal = |name: &str| change("tool_removal", reference(name));
    let system = |content: Value| json!({"role": "system", "content": content});
    let body = |message: &Value, more: Value| {
        let mut body = request(
            "claude-opus-5",
            json!({"messages": [user("a"), message], "tools": [tool("read"), tool("edit")]}),
        );
        merge_fields(&mut body, more);
        body
    };
    let betas = "inline-tools-2026-09-15,mid-conversation-system-clear-at-2026-08-21";
    let server = Anthropic::new(settings()).with_betas(betas);
    let forced = json!({"tool_choice": {"type": "tool", "name": "read"}, "thinking": {"type": "disabled"}});
    let removed = system(json!([removal("read")]));
    assert_eq!(server.refusal(&body(&removed, forced.clone())), "Tool 'read' not found in provided tools");
    let back = system(json!([removal("read"), change("tool_addition", reference("read"))]));
    server.answer(&body(&back, forced));
    let definition = |definition: Value| json!({"type": "tool_definition", "definition": definition});
    for (content, words, code) in [
        (
            removal("none"),
            "Tool reference 'none' not found in available tools",
            json!("tool_reference_unresolved"),
        ),
        (
            change("tool_addition", reference("none")),
            "Tool reference 'none' not found in available tools",
            json!("tool_reference_unresolved"),
        ),
        (
            change("tool_addition", definition(json!({"type": "bash_20250124", "name": "read"}))),
            "Tool name 'read' is already used by a tool of another type",
            json!("tool_name_conflict"),
        ),
    ] {
        let (status, error) = server.send(&body(&system(json!([content])), json!({})));
        let error = &error["error"];
        assert_eq!((status, &error["message"], &error["details"]["error_code"]), (400, &json!(words), &code));
    }
    let script = "default: {tool_calls: [{name: read, arguments: {}}]}";
    let (status, _) = Anthropic::new(scripted(script)).with_betas(betas).send(&body(&removed, json!({})));
    assert_eq!(status, 500, "the script calls what the model cannot");
    let scoped = json!({"role": "system", "clear_at": "next_user_message", "content": [removal("read")]});
    assert_eq!(
        server.refusal(&body(&scoped, json!({}))),
        "messages.1.content: not permitted on a system message with clear_at"
    );
    let tokens =
        |message: &Value| server.answer(&body(message, json!({})))["usage"]["input_tokens"].as_u64().unwrap();
    let mut large = tool("large");
    large["description"] = json!("It does many things. ".repeat(20));
    let added = system(json!([change("tool_addition", definition(large))]));
    assert!(tokens(&added) > tokens(&removed) + 80, "a definition is billed where it stands");
}

#[test]
fn what_was_cleared_or_compacted_is_not_counted() {
    let long = "A result of many words that nobody needs any more. ".repeat(100);
    let betas = "context-management-2025-06-27,compact-2026-01-12";
    let server = Anthropic::new(settings()).with_betas(betas);
    let mut messages = vec![user("Go")];
    for round in 0..5 {
        let id = format!("t{round}");
        messages.push(assistant(&json!([{"type": "tool_use", "id": id, "name": "read", "input": {}}])));
        messages.push(
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": long}]}),
        );
    }
    let edit = json!({"type": "clear_tool_uses_20250919", "trigger": {"type": "input_tokens", "value": 1000}, "keep": {"type": "tool_uses", "value": 2}});
    let body =
        request("claude-opus-5", json!({"messages": messages, "context_management": {"edits": [edit]}}));
    let answer = server.answer(&body);
    let applied = &answer["context_management"]["applied_edits"][0];
    assert_eq!(applied["cleared_tool_uses"], 3);
    let whole = server.answer(&request("claude-opus-5", json!({"messages": messages})));
    let tokens = |answer: &Value| answer["usage"]["input_tokens"].as_u64().unwrap();
    assert_eq!(tokens(&whole) - tokens(&answer), applied["cleared_input_tokens"].as_u64().unwrap());

    let compact = json!({"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 1000}});
    let answer = server.answer(&request(
        "claude-opus-5",
        json!({"messages": messages, "context_management": {"edits": [compact]}}),
    ));
    let kinds: Vec<&Value> =
        answer["content"].as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, [&json!("compaction"), &json!("text")]);
    messages.push(assistant(&answer["content"]));
    messages.push(user("And?"));
    let after = server.answer(&request("claude-opus-5", json!({"messages": messages})));
    assert!(tokens(&after) < 100, "{}", after["usage"]);
}

#[test]
fn a_pdf_counts_by_its_size() {
    let server = Anthropic::new(settings());
    let tokens = |bytes: usize| {
        let source =
            json!({"type": "base64", "media_type": "application/pdf", "data": "QUFB".repeat(bytes / 3)});
        let messages = json!([{"role": "user", "content": [{"type": "document", "source": source}]}]);
        server.answer(&request("claude-opus-5", json!({"messages": messages})))["usage"]["input_tokens"]
            .as_u64()
            .unwrap()
    };
    let (small, large) = (tokens(4000), tokens(40_000));
    assert!((800..1200).contains(&(large - small)), "{small} {large}");
}

#[test]
fn a_script_that_calls_an_undeclared_tool_says_so() {
    let script = "turns: [{text: One.}, {tool_calls: [{name: fly, arguments: {}}]}]";
    let server = Anthropic::new(scripted(script));
    let body = request("claude-opus-5", json!({}));
    server.answer(&body);
    let (status, error) = server.send(&body);
    let words = "turn 2 of the script calls the tool `fly`, which the request does not declare; `undeclared: true` in the turn allows it";
    assert_eq!((status, &error["error"]["message"]), (500, &json!(words)));
    let server =
        Anthropic::new(scripted("turns: [{undeclared: true, tool_calls: [{name: fly, arguments: {}}]}]"));
    assert_eq!(server.answer(&body)["stop_reason"], "tool_use");
}

#[test]
fn automatic_caching_does_nothing_twice_and_does_not_contradict() {
    let server = Anthropic::new(settings());
    let marked =
        |ttl: &str| json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": ttl}});
    let body = |blocks: Vec<Value>| {
        let messages = json!([{"role": "user", "content": blocks}]);
        request("claude-opus-5", json!({"messages": messages, "cache_control": {"type": "ephemeral"}}))
    };
    server.answer(&body(vec![marked("5m"), marked("5m"), marked("5m"), marked("5m")]));
    let words = server.refusal(&body(vec![marked("1h")]));
    assert_eq!(words, "cache_control: the last block already has a marker with another ttl");
}

#[test]
fn large_windows_take_more_images() {
    const PIXEL: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let server = Anthropic::new(settings());
    let body = |model: &str, count: usize| {
        let source = json!({"type": "base64", "media_type": "image/png", "data": PIXEL});
        let content = vec![json!({"type": "image", "source": source}); count];
        request(model, json!({"messages": [{"role": "user", "content": content}]}))
    };
    server.answer(&body("claude-opus-5", 600));
    let words = server.refusal(&body("claude-opus-5", 601));
    assert!(words.ends_with("at most 600 images may be in a request. Found 601."), "{words}");
    server.refusal(&body("claude-haiku-4-5", 101));
}
