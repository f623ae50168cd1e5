//! For every rule a request that breaks it, and nothing else, beside its nearest neighbour that is
//! accepted.

use super::*;
use crate::{
    CacheLifetime, Call, Content, Effort, Image, ItemKind, Json, MediaType, Origin, PromptMessage, Reasoning,
    Region, ResultPart, Role, Segment, Text, Thinking, Tool, ToolBlock, ToolOutcome, ToolResult, WebSearch,
};
use serde_json::json;

mod conversation; // rounds of calls, reasoning, who begins and who ends

fn origin() -> Origin {
    Origin::rule(ItemKind::History, "test")
}

fn block(content: Content) -> Block {
    Block::new(Region::Log, content)
}

fn text(text: &str) -> Block {
    Block::text(Region::Log, Text::new(text), origin())
}

fn call_with(id: &str, name: &str, arguments: &serde_json::Value) -> Block {
    let arguments = Json::new(arguments);
    block(Content::Call(Call { id: id.into(), name: name.into(), arguments, origin: origin() }))
}

fn call(id: &str) -> Block {
    call_with(id, "read", &json!({"path": "a.rs"}))
}

fn result_with(id: &str, parts: Vec<ResultPart>) -> Block {
    let result = ToolResult { call_id: id.into(), parts, outcome: ToolOutcome::Done, origin: origin() };
    block(Content::Result(result))
}

fn result(id: &str) -> Block {
    result_with(id, vec![said("fn main() {}")])
}

fn said(text: &str) -> ResultPart {
    ResultPart::Text(vec![Segment::new(text, origin())])
}

fn thought(signature: Option<&str>, redacted: Option<&str>) -> Block {
    let (signature, redacted) = (signature.map(Into::into), redacted.map(Into::into));
    block(Content::Reasoning(Reasoning { text: "Hm.".into(), signature, redacted, origin: origin() }))
}

fn picture(side: u32, bytes: usize) -> Image {
    let data = "A".repeat(bytes).into();
    Image { media_type: MediaType::Png, data, width: Some(side), height: Some(side) }
}

fn image() -> Block {
    block(Content::Image(picture(100, 8), origin()))
}

fn user(blocks: Vec<Block>) -> PromptMessage {
    PromptMessage::new(Role::User, blocks)
}

fn assistant(blocks: Vec<Block>) -> PromptMessage {
    PromptMessage::new(Role::Assistant, blocks)
}

fn tool(name: &str) -> ToolBlock {
    let parameters = Json::new(&json!({"type": "object", "properties": {}}));
    let (snippet, guidelines) = (None, Vec::new());
    let tool = Tool { name: name.into(), description: "Reads.".into(), parameters, snippet, guidelines };
    ToolBlock { region: Region::Base, tool, breakpoint: None }
}

fn prompt(turns: Vec<PromptMessage>) -> Prompt {
    Prompt {
        max_tokens: 4096,
        tools: vec![tool("read")],
        system: vec![text("Be brief.")],
        messages: turns,
        ..Prompt::default()
    }
}

fn hello() -> Prompt {
    prompt(vec![user(vec![text("Hello!")])])
}

/// A prompt in the middle of a round: one call, answered by `blocks`.
fn answered_by(blocks: Vec<Block>) -> Prompt {
    prompt(vec![user(vec![text("Read it.")]), assistant(vec![call("a")]), user(blocks)])
}

fn changed(mut prompt: Prompt, change: impl FnOnce(&mut Prompt)) -> Prompt {
    change(&mut prompt);
    prompt
}

#[track_caller]
fn accepts(rules: &ValidationRules, prompt: &Prompt) {
    assert_eq!(find_violations(prompt, rules), []);
    assert_eq!(validate(prompt, rules), Ok(()));
}

#[track_caller]
fn refuses(rules: &ValidationRules, prompt: &Prompt, message: &str) {
    let found: Vec<String> = find_violations(prompt, rules).iter().map(ToString::to_string).collect();
    assert_eq!(found, [message]);
}

#[track_caller]
fn both_refuse(prompt: &Prompt, message: &str) {
    refuses(&ValidationRules::anthropic(), prompt, message);
    refuses(&ValidationRules::openai(), prompt, message);
}

#[track_caller]
fn both_accept(prompt: &Prompt) {
    accepts(&ValidationRules::anthropic(), prompt);
    accepts(&ValidationRules::openai(), prompt);
}

#[test]
fn an_answer_has_room_unless_the_cache_is_warmed() {
    let none = changed(hello(), |p| p.max_tokens = 0);
    both_refuse(&none, "max_tokens: must be at least 1");
    both_accept(&changed(hello(), |p| p.max_tokens = 1));
    accepts(&ValidationRules { warming: Acceptance::Accepted, ..ValidationRules::anthropic() }, &none);
}

#[test]
fn the_thinking_budget_has_a_floor_and_a_ceiling() {
    let thinking = |budget| changed(hello(), |p| p.thinking = Thinking::Budget(budget));
    let anthropic = ValidationRules::anthropic();
    refuses(&anthropic, &thinking(1023), "thinking.budget_tokens: 1023 is under the minimum of 1024");
    accepts(&anthropic, &thinking(1024));
    let over = "max_tokens: 4096 must be greater than thinking.budget_tokens, which is 4096";
    refuses(&anthropic, &thinking(4096), over);
    accepts(&anthropic, &thinking(4095));
    accepts(&ValidationRules::openai(), &thinking(1));
}

#[test]
fn a_declared_tool_has_a_plain_name_of_at_most_64() {
    let named = |name: &str| changed(hello(), |p| p.tools.push(tool(name)));
    both_accept(&named(&"x".repeat(64)));
    both_accept(&named("mcp__Fs-2"));
    for name in ["", "read file", "lesen_ü", "a.b", &"x".repeat(65)] {
        both_refuse(
            &named(name),
            &format!("tools.1.name: \"{name}\" should match '^[a-zA-Z0-9_-]{{1,64}}$'"),
        );
    }
}

#[test]
fn a_called_tool_has_a_plain_name_too() {
    let called = |name| {
        let call = call_with("a", name, &json!({}));
        prompt(vec![user(vec![text("Go.")]), assistant(vec![call]), user(vec![result("a")])])
    };
    both_accept(&called("gone_since"));
    both_refuse(&called("a.b"), "messages.1.content.0.name: \"a.b\" should match '^[a-zA-Z0-9_-]{1,64}$'");
}

#[test]
fn no_tool_is_declared_twice() {
    let twice = changed(hello(), |p| p.tools.push(tool("read")));
    both_refuse(&twice, "tools.1.name: \"read\" is declared twice; tool names must be unique");
    both_accept(&changed(hello(), |p| p.tools.push(tool("write"))));
}

#[test]
fn parameters_are_the_schema_of_an_object() {
    let with = |schema| changed(hello(), |p| p.tools[0].tool.parameters = Json::new(&schema));
    let message = "tools.0.input_schema: the parameters of \"read\" need \"type\": \"object\"";
    for schema in [json!({}), json!({"type": "string"}), json!(null)] {
        refuses(&ValidationRules::anthropic(), &with(schema.clone()), message);
        accepts(&ValidationRules::openai(), &with(schema));
    }
    both_accept(&with(json!({"type": "object"})));
    both_accept(&with(
        json!({"type": "object", "properties": {"a.b-c_1": {"properties": {"any name": {}}}}}),
    ));
    let odd = with(json!({"type": "object", "properties": {"filter[id]": {}}}));
    let message = "tools.0.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$', and \"filter[id]\" of \"read\" does not";
    refuses(&ValidationRules::anthropic(), &odd, message);
    accepts(&ValidationRules::openai(), &odd);
}

#[test]
fn there_is_a_message_and_it_says_something() {
    both_refuse(&prompt(vec![]), "messages: at least one message is required");
    both_refuse(&prompt(vec![user(vec![])]), "messages.0: all messages must have non-empty content");
    both_accept(&hello());
    both_accept(&changed(hello(), |p| p.system.clear()));
}

#[test]
fn no_text_is_empty_or_blank_for_anthropic() {
    let empty = "text content blocks must be non-empty";
    let blank = "text content blocks must contain non-whitespace text";
    for (content, message) in [("", empty), (" \n\t", blank)] {
        let in_message = prompt(vec![user(vec![text("Hello!"), text(content)])]);
        let in_system = changed(hello(), |p| p.system.push(text(content)));
        let in_result = answered_by(vec![result_with("a", vec![said(content)])]);
        refuses(&ValidationRules::anthropic(), &in_message, &format!("messages.0.content.1: {message}"));
        refuses(&ValidationRules::anthropic(), &in_system, &format!("system.1: {message}"));
        refuses(&ValidationRules::anthropic(), &in_result, &format!("messages.2.content.0: {message}"));
        accepts(&ValidationRules::openai(), &in_message);
    }
    let no_segments = prompt(vec![user(vec![block(Content::Text(vec![]))])]);
    refuses(&ValidationRules::anthropic(), &no_segments, &format!("messages.0.content.0: {empty}"));
    let one_of_two = vec![Segment::new("\n", origin()), Segment::new("a", origin())];
    both_accept(&prompt(vec![user(vec![block(Content::Text(one_of_two))])]));
    both_accept(&answered_by(vec![result_with("a", vec![])]));
}

#[test]
fn every_block_is_in_a_message_of_its_role() {
    let reply = |block| {
        prompt(vec![user(vec![text("Go.")]), assistant(vec![block, text("Ok.")]), user(vec![text("?")])])
    };
    let ask = |block| prompt(vec![user(vec![text("Go."), block])]);
    both_refuse(&reply(image()), "messages.1.content.0: image blocks can only be in user messages");
    both_accept(&ask(image()));
    both_refuse(&reply(result("a")), "messages.1.content.0: tool_result blocks can only be in user messages");
    both_refuse(&ask(call("a")), "messages.0.content.1: tool_use blocks can only be in assistant messages");
    let signed = || thought(Some("sig"), None);
    both_refuse(&ask(signed()), "messages.0.content.1: thinking blocks can only be in assistant messages");
    both_accept(&reply(signed()));
    let in_system = changed(hello(), |p| p.system.push(image()));
    both_refuse(&in_system, "system.1: image blocks can only be in user messages");
}

#[test]
fn a_call_id_is_plain_for_anthropic_and_not_empty_for_anyone() {
    let with = |id| prompt(vec![user(vec![text("Go.")]), assistant(vec![call(id)]), user(vec![result(id)])]);
    let found = |id, rules: &ValidationRules| {
        find_violations(&with(id), rules).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    both_accept(&with("toolu_01-b"));
    for id in ["a.b", "call|1", ""] {
        let places = ["messages.1.content.0", "messages.2.content.0"];
        let expected = places.map(|at| format!("{at}.id: \"{id}\" should match '^[a-zA-Z0-9_-]+$'"));
        assert_eq!(found(id, &ValidationRules::anthropic()), expected);
    }
    accepts(&ValidationRules::openai(), &with("functions.read:0"));
    let empty = "messages.1.content.0.id: expected an id of at least 1 character, but it is empty";
    assert_eq!(found("", &ValidationRules::openai())[0], empty);
}

#[test]
fn a_call_id_is_no_longer_than_the_server_takes() {
    let with = |id| prompt(vec![user(vec![text("Go.")]), assistant(vec![call(id)]), user(vec![result(id)])]);
    let long = "x".repeat(41);
    let first = validate(&with(&long), &ValidationRules::openai()).unwrap_err();
    let at = Location::Block { message: 1, block: 0 };
    assert_eq!(first, Violation::LongCallId { at, id: long.clone(), max: 40 });
    accepts(&ValidationRules::anthropic(), &with(&long));
    both_accept(&with(&long[1..]));
}

#[test]
fn arguments_are_an_object() {
    let with = |arguments| {
        let call = call_with("a", "read", &arguments);
        prompt(vec![user(vec![text("Go.")]), assistant(vec![call]), user(vec![result("a")])])
    };
    let message = "messages.1.content.0.input: the arguments of \"a\" should be an object";
    both_refuse(&with(json!(null)), message);
    both_refuse(&with(json!(["a.rs"])), message);
    both_accept(&with(json!({})));
}

#[test]
fn an_image_is_within_the_limits_wherever_it_stands() {
    let shown = |image| prompt(vec![user(vec![block(Content::Image(image, origin()))])]);
    let returned = |image| answered_by(vec![result_with("a", vec![ResultPart::Image(image)])]);
    let wide = "the image is 8001×8001 pixels; at most 8000×8000 are accepted: scale it down";
    both_refuse(&shown(picture(8001, 8)), &format!("messages.0.content.0: {wide}"));
    both_refuse(&returned(picture(8001, 8)), &format!("messages.2.content.0: {wide}"));
    both_accept(&shown(picture(8000, 8)));
    let limit = 10 * 1024 * 1024;
    assert!(validate(&shown(picture(1, limit + 1)), &ValidationRules::anthropic()).is_err());
    both_accept(&shown(picture(1, limit)));
}

#[test]
fn images_are_counted_through_the_whole_request() {
    let with = |count: usize| {
        let parts = vec![ResultPart::Image(picture(1, 4)), ResultPart::Image(picture(1, 4))];
        let mut blocks = vec![result_with("a", parts)];
        blocks.resize_with(count - 1, image);
        answered_by(blocks)
    };
    both_accept(&with(100));
    both_refuse(&with(101), "messages.2.content.99: at most 100 images may be in a request. Found 101.");
    accepts(&ValidationRules { max_images: 101, ..ValidationRules::anthropic() }, &with(101));
}

#[test]
fn tool_blocks_need_declared_tools() {
    let bare = changed(answered_by(vec![result("a")]), |p| p.tools.clear());
    let message =
        "messages.1.content.0: a request with tool_use or tool_result blocks must declare its tools";
    refuses(&ValidationRules::anthropic(), &bare, message);
    accepts(
        &ValidationRules { undeclared_tools: Acceptance::Accepted, ..ValidationRules::anthropic() },
        &bare,
    );
    accepts(&ValidationRules::openai(), &bare);
    both_accept(&changed(hello(), |p| p.tools.clear()));
    both_accept(&changed(bare, |p| p.web_search = Some(WebSearch { max_results: 3 })));
}

/// A breakpoint on the tool and on each of `count - 1` blocks, all with the lifetime that
/// `lifetime` gives.
fn marked(count: usize, lifetime: impl Fn(usize) -> CacheLifetime) -> Prompt {
    let blocks = (1..count).map(|n| Block { breakpoint: Some(lifetime(n)), ..text("Hello!") });
    changed(prompt(vec![user(blocks.collect())]), |p| p.tools[0].breakpoint = Some(lifetime(0)))
}

fn marking_openai() -> ValidationRules {
    ValidationRules { breakpoints: Acceptance::Accepted, ..ValidationRules::openai() }
}

#[test]
fn four_breakpoints_are_the_most_tools_included() {
    let message = "A maximum of 4 blocks with cache_control may be provided. Found 5.";
    for rules in [ValidationRules::anthropic(), marking_openai()] {
        accepts(&rules, &marked(4, |_| CacheLifetime::FiveMinutes));
        refuses(&rules, &marked(5, |_| CacheLifetime::FiveMinutes), message);
    }
}

#[test]
fn long_lived_breakpoints_come_first() {
    let long_until = |last| {
        marked(3, move |n| if n <= last { CacheLifetime::OneHour } else { CacheLifetime::FiveMinutes })
    };
    accepts(&ValidationRules::anthropic(), &long_until(0));
    accepts(&ValidationRules::anthropic(), &long_until(2));
    let late = marked(3, |n| if n == 1 { CacheLifetime::OneHour } else { CacheLifetime::FiveMinutes });
    let message = "messages.0.content.0.cache_control.ttl: 1h markers must come before 5m ones, \
                   counted through tools, system, messages";
    refuses(&ValidationRules::anthropic(), &late, message);
    accepts(&marking_openai(), &late);
}

#[test]
fn a_breakpoint_stands_on_something_that_can_be_cached() {
    let mark = |block: &mut Block| block.breakpoint = Some(CacheLifetime::FiveMinutes);
    let reply = vec![thought(Some("sig"), None), text("Ok.")];
    let turns = || prompt(vec![user(vec![text("Go.")]), assistant(reply.clone()), user(vec![text("?")])]);
    let on_reasoning = changed(turns(), |p| mark(&mut p.messages[1].blocks[0]));
    let message = "messages.1.content.0.cache_control: thinking blocks cannot be marked; mark the block before or after";
    refuses(&ValidationRules::anthropic(), &on_reasoning, message);
    accepts(&ValidationRules::anthropic(), &changed(turns(), |p| mark(&mut p.messages[1].blocks[1])));

    let on_empty =
        changed(prompt(vec![user(vec![text("Go."), text("")])]), |p| mark(&mut p.messages[0].blocks[1]));
    refuses(
        &marking_openai(),
        &on_empty,
        "messages.0.content.1.cache_control: empty text blocks cannot be marked",
    );
    let result = changed(answered_by(vec![result("a")]), |p| mark(&mut p.messages[2].blocks[0]));
    accepts(&ValidationRules::anthropic(), &result);
}

#[test]
fn no_breakpoint_goes_to_a_server_that_knows_none() {
    let one = changed(hello(), |p| p.tools[0].breakpoint = Some(CacheLifetime::FiveMinutes));
    let message = "tools.0: unknown field for this server: cache markers are not understood";
    refuses(&ValidationRules::openai(), &one, message);
    accepts(&marking_openai(), &one);
}

#[test]
fn the_first_violation_is_the_one_the_server_reads_first() {
    let broken = changed(prompt(vec![assistant(vec![text(""), call("a")])]), |p| p.tools.push(tool("a.b")));
    let found = find_violations(&broken, &ValidationRules::anthropic());
    let places: Vec<_> =
        found.iter().map(|v| v.to_string().split(": ").next().unwrap_or_default().to_string()).collect();
    let expected =
        ["tools.1.name", "messages.0.content.0", "messages.0", "messages.0.content.1", "messages.0"];
    assert_eq!(places, expected);
    assert_eq!(validate(&broken, &ValidationRules::anthropic()).as_ref(), Err(&found[0]));
}

#[test]
fn size_and_window_have_their_own_words() {
    assert_eq!(check_size(32 * 1024 * 1024), Ok(()));
    let large = check_size(32 * 1024 * 1024 + 1).unwrap_err();
    assert_eq!(large.to_string(), "the request is 33554433 bytes; at most 33554432 are accepted");
    assert_eq!(large.error_type(), "request_too_large");
    assert_eq!(check_window(200_000, 200_000), Ok(()));
    let long = check_window(200_001, 200_000).unwrap_err();
    assert_eq!(long.to_string(), "prompt is too long: 200001 tokens > 200000 maximum");
    assert_eq!(long.error_type(), "invalid_request_error");
}
