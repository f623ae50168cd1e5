use hardpan_prompt::{Call, ItemKind, Json, Origin, PromptMessage, Region, ToolOutcome};

use super::*;

fn origin() -> Origin {
    Origin::rule(ItemKind::History, "test")
}

fn text(text: &str) -> Block {
    Block::text(Region::Log, text.into(), origin())
}

fn user(answer: &str) -> Prompt {
    Prompt { messages: vec![PromptMessage::new(Role::User, vec![text(answer)])], ..Prompt::default() }
}

/// A question, a call of `tool`, and its result.
fn round(tool: &str, result: &str) -> Prompt {
    let call = Call { id: "c".into(), name: tool.into(), arguments: Json::default(), origin: origin() };
    let parts = vec![ResultPart::Text(vec![Segment::new(result, origin())])];
    let result = ToolResult { call_id: "c".into(), parts, outcome: ToolOutcome::Done, origin: origin() };
    let block = |content| Block::new(Region::Log, content);
    let mut prompt = user("Look!");
    prompt.messages.push(PromptMessage::new(Role::Assistant, vec![block(Content::Call(call))]));
    prompt.messages.push(PromptMessage::new(Role::User, vec![block(Content::Result(result))]));
    prompt
}

fn answers_to(yaml: &str, prompts: &[Prompt]) -> Vec<String> {
    let script = Script::from_yaml("s.yaml", yaml).unwrap();
    let mut progress = ScriptProgress::default();
    let say =
        |answer: SimulatedAnswer| answer.parts.iter().map(|part| format!("{part:?}")).collect::<String>();
    prompts
        .iter()
        .map(|prompt| script.answer(prompt, &|_| true, &mut progress, false).map_or("-".into(), say))
        .map(|answer| answer.replace("Text(\"", "").replace("\")", ""))
        .collect()
}

#[test]
fn turns_come_in_order_and_then_the_default() {
    let yaml = "turns: [{text: one}, {text: two, repeat: 2}]\ndefault: {text: rest}";
    let prompts = vec![user("x"); 5];
    assert_eq!(answers_to(yaml, &prompts), ["one", "two", "two", "rest", "rest"]);
    assert_eq!(answers_to("turns: [{text: one}]", &prompts[..2]), ["one", "-"]);
}

#[test]
fn a_turn_may_wait_for_a_request_that_declares_a_tool() {
    let yaml = "turns: [{when: {has_tool: grep}, text: work}]\ndefault: {text: title}";
    let script = Script::from_yaml("s.yaml", yaml).unwrap();
    let mut progress = ScriptProgress::default();
    let mut say = |declared: &str| {
        let answer = script.answer(&user("x"), &|name| name == declared, &mut progress, false).unwrap();
        format!("{:?}", answer.parts[0])
    };
    assert_eq!(
        ["ls", "grep", "grep"].map(&mut say),
        [r#"Text("title")"#, r#"Text("work")"#, r#"Text("title")"#]
    );
}

#[test]
fn conditions_look_at_the_last_message() {
    let yaml = "
turns:
  - {when: {turn: 4}, text: fourth, repeat: always}
  - {when: {contains: fox}, text: contains, repeat: always}
  - {when: {equals: ' exact '}, text: equals, repeat: always}
  - {when: {has_tool_result: grep}, text: result, repeat: always}
default: {text: none}
";
    let prompts = [
        user("a fox here"),
        user("exact"),
        round("read", "x"),
        user("fox"),
        round("grep", "y"),
        round("read", "fox"),
    ];
    assert_eq!(answers_to(yaml, &prompts), ["contains", "equals", "none", "fourth", "result", "contains"]);
}

#[test]
fn a_spoiled_answer_is_given_again() {
    let script = Script::from_yaml("s.yaml", "turns: [{text: one}, {text: two}]").unwrap();
    let mut progress = ScriptProgress::default();
    let spoiled = script.answer(&user("x"), &|_| true, &mut progress, true);
    assert_eq!(script.answer(&user("x"), &|_| true, &mut progress, false), spoiled);
    assert_ne!(script.answer(&user("x"), &|_| true, &mut progress, false), spoiled);
}

#[test]
fn a_turn_says_all_it_can_say() {
    let yaml = "
turns:
  - reasoning: Hm.
    text: Look.
    tool_calls: [{name: read, arguments: {path: a, n: [1, 2.5, null]}, id: call_1}]
    stop: length
    delay: 2s
    pace: 20ms
";
    let script = Script::from_yaml("s.yaml", yaml).unwrap();
    let answer = script.answer(&user("x"), &|_| true, &mut ScriptProgress::default(), false).unwrap();
    let call = SimulatedPart::Call {
        id: Some("call_1".into()),
        name: "read".into(),
        arguments: r#"{"path":"a","n":[1,2.5,null]}"#.into(),
    };
    assert_eq!(
        answer.parts,
        [SimulatedPart::Reasoning("Hm.".into()), SimulatedPart::Text("Look.".into()), call]
    );
    assert_eq!(
        (answer.stop, answer.delay, answer.pace),
        (FinishReason::Length, Duration::from_secs(2), Duration::from_millis(20))
    );
}

#[test]
fn mistakes_name_their_line() {
    let wrong = |yaml: &str, line: &str| {
        let error = Script::from_yaml("s.yaml", yaml).unwrap_err().to_string();
        assert!(error.starts_with("s.yaml: ") && error.contains(line), "{error}");
    };
    wrong("turns:\n  - text: a\n  - txet: b\n", "line 3");
    wrong("turns:\n  - text: a\n  - stop: end\n", "line 3");
    wrong("turns:\n  - text: a\n    repeat: never\n", "line 3");
    wrong("turns:\n  - text: a\n    delay: soon\n", "line 3");
    wrong("turns:\n  - text: a\n    stop: never\n", "line 3");
    wrong("turns: [", "line");
    wrong("faults: []", "no turn");
    wrong("turns: [{text: a}]\nfaults:\n  - {times: 2}\n", "line 3");
}
