//! Rounds of calls, reasoning, who begins and who ends.

use super::*;

const UNANSWERED: &str = "messages.1.content.0: tool_use ids were found without tool_result blocks immediately after: \
                          a. Results come first in the content of the next message.";
const NO_TOOL_MESSAGE: &str = "An assistant message with 'tool_calls' must be followed by tool messages responding to \
                               each 'tool_call_id'. Not answered at messages.1.content.0: a";

fn go() -> PromptMessage {
    user(vec![text("Go.")])
}

/// The places and rules that are broken, for requests that break several.
fn names(prompt: &Prompt, rules: &ValidationRules) -> Vec<String> {
    let name = |v: &Violation| format!("{v:?}").split([' ', '{']).next().unwrap_or_default().to_string();
    find_violations(prompt, rules).iter().map(name).collect()
}

#[test]
fn a_lost_result_is_reported() {
    let lost = answered_by(vec![text("Never mind.")]);
    refuses(&ValidationRules::anthropic(), &lost, UNANSWERED);
    refuses(&ValidationRules::openai(), &lost, NO_TOOL_MESSAGE);
    both_accept(&answered_by(vec![result("a"), text("Never mind.")]));
}

#[test]
fn every_one_of_parallel_calls_is_answered() {
    let with = |results| {
        prompt(vec![go(), assistant(vec![text("Two."), call("a"), call("b"), call("c")]), user(results)])
    };
    both_accept(&with(vec![result("c"), result("a"), result("b")]));
    let one = with(vec![result("b")]);
    let message = "messages.1.content.1: tool_use ids were found without tool_result blocks immediately after: a, c. \
                   Results come first in the content of the next message.";
    refuses(&ValidationRules::anthropic(), &one, message);
    assert_eq!(names(&one, &ValidationRules::openai()), ["NoToolMessage"]);
}

#[test]
fn a_call_at_the_very_end_is_not_answered() {
    let open = prompt(vec![go(), assistant(vec![call("a")])]);
    assert_eq!(names(&open, &ValidationRules::anthropic()), ["Unanswered", "Prefill"]);
    refuses(&ValidationRules::openai(), &open, NO_TOOL_MESSAGE);
}

#[test]
fn results_come_before_text_in_one_message() {
    let late = answered_by(vec![text("Here:"), result("a")]);
    refuses(&ValidationRules::anthropic(), &late, UNANSWERED);
    accepts(&ValidationRules::openai(), &late); // its codec sends the tool message first
    let split = prompt(vec![
        go(),
        assistant(vec![call("a"), call("b")]),
        user(vec![result("b"), text("and"), result("a")]),
    ]);
    refuses(&ValidationRules::anthropic(), &split, UNANSWERED);
    accepts(&ValidationRules::openai(), &split);
}

#[test]
fn neighbours_of_one_role_are_merged_before_the_check() {
    let two = |first: Block, second: Block| {
        prompt(vec![go(), assistant(vec![call("a")]), user(vec![first]), user(vec![second])])
    };
    both_accept(&two(result("a"), text("Go on.")));
    let late = two(text("Go on."), result("a"));
    refuses(&ValidationRules::anthropic(), &late, UNANSWERED);
    assert_eq!(names(&late, &ValidationRules::openai()), ["NoToolMessage", "StrayToolMessage"]);

    let calls = vec![go(), assistant(vec![call("a")]), assistant(vec![call("b")])];
    let merged = prompt([calls, vec![user(vec![result("a")]), user(vec![result("b")])]].concat());
    accepts(&ValidationRules::anthropic(), &merged);
    assert_eq!(names(&merged, &ValidationRules::openai()), ["NoToolMessage", "StrayToolMessage"]);
}

#[test]
fn a_result_needs_its_call_in_the_message_before() {
    let stray = prompt(vec![user(vec![result("a"), text("Go.")])]);
    let message = "messages.0.content.0: no tool_use block in the previous message has the tool_use_id of this tool_result: a";
    refuses(&ValidationRules::anthropic(), &stray, message);
    let message = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'. \
                   No call at messages.0.content.0: a";
    refuses(&ValidationRules::openai(), &stray, message);

    let round = || vec![go(), assistant(vec![call("a")]), user(vec![result("a")])];
    let too_late = [round(), vec![assistant(vec![text("Ok.")]), user(vec![result("a")])]].concat();
    assert_eq!(names(&prompt(too_late), &ValidationRules::anthropic()), ["Orphan"]);
    let other_id = answered_by(vec![result("a"), result("b")]);
    assert_eq!(names(&other_id, &ValidationRules::anthropic()), ["Orphan"]);
    assert_eq!(names(&other_id, &ValidationRules::openai()), ["StrayToolMessage"]);
    both_accept(&prompt(round()));
}

#[test]
fn a_call_id_is_used_once() {
    let rounds = |second: &str| {
        let round = |id: &str| vec![assistant(vec![call(id)]), user(vec![result(id)])];
        prompt([vec![go()], round("a"), round(second)].concat())
    };
    both_refuse(&rounds("a"), "messages.3.content.0: tool_use ids must be unique; \"a\" was used before");
    both_accept(&rounds("b"));
    let side_by_side = prompt(vec![go(), assistant(vec![call("a"), call("a")]), user(vec![result("a")])]);
    both_refuse(&side_by_side, "messages.1.content.1: tool_use ids must be unique; \"a\" was used before");
}

#[test]
fn a_call_is_answered_once() {
    let twice = answered_by(vec![result("a"), result("a")]);
    both_refuse(&twice, "messages.2.content.1: each tool_use has one result; \"a\" was answered before");
    let after_text = answered_by(vec![result("a"), text("and"), result("a")]);
    refuses(
        &ValidationRules::anthropic(),
        &after_text,
        "messages.2.content.2: each tool_use has one result; \"a\" was answered before",
    );
    both_accept(&answered_by(vec![result("a")]));
}

#[test]
fn the_user_begins_with_anthropic() {
    let begun = prompt(vec![assistant(vec![text("Hello!")]), go()]);
    refuses(
        &ValidationRules::anthropic(),
        &begun,
        "messages.0: the first message must use the \"user\" role",
    );
    accepts(&ValidationRules::openai(), &begun);
    both_accept(&prompt(vec![go(), assistant(vec![text("Hello!")]), go()]));
}

#[test]
fn the_answer_is_not_begun_where_prefill_is_refused() {
    let prefilled = prompt(vec![go(), assistant(vec![text("Well,")])]);
    let message =
        "messages.1: the conversation must end with a user message; this request cannot prefill the answer";
    refuses(&ValidationRules::anthropic(), &prefilled, message);
    accepts(&ValidationRules::openai(), &prefilled);
    let older = ValidationRules { prefill: Acceptance::Accepted, ..ValidationRules::anthropic() };
    accepts(&older, &prefilled);
    refuses(&older, &changed(prefilled, |p| p.thinking = Thinking::Budget(1024)), message);
}

#[test]
fn reasoning_goes_back_signed_or_redacted() {
    let with = |reasoning| prompt(vec![go(), assistant(vec![reasoning, text("Ok.")]), go()]);
    let message = "messages.1.content.0.signature: thinking needs the signature it came with; \
                   leave out the block where there is none";
    refuses(&ValidationRules::anthropic(), &with(thought(None, None)), message);
    refuses(&ValidationRules::anthropic(), &with(thought(Some(""), None)), message);
    accepts(&ValidationRules::openai(), &with(thought(None, None)));
    both_accept(&with(thought(Some("sig"), None)));
    both_accept(&with(thought(None, Some("sealed"))));
}

#[test]
fn reasoning_alone_is_no_message() {
    let alone = prompt(vec![go(), assistant(vec![thought(Some("sig"), None)]), go()]);
    let message = "messages.1.content.0: an assistant message cannot end with thinking; leave it out or say something after it";
    refuses(&ValidationRules::anthropic(), &alone, message);
    refuses(&ValidationRules::openai(), &alone, "messages.1: all messages must have non-empty content");
    let mut followed = alone;
    followed.messages[1].blocks.push(text("Ok."));
    both_accept(&followed);
}

#[test]
fn in_the_middle_of_a_round_the_reasoning_leads() {
    let round = |made: Vec<Block>| {
        let turns = vec![go(), assistant(made), user(vec![result("a"), text("12:00")])];
        changed(prompt(turns), |p| p.thinking = Thinking::Budget(1024))
    };
    let message = "messages.1.content.0: with thinking on, the assistant message whose calls are being answered must \
                   begin with its thinking block";
    refuses(&ValidationRules::anthropic(), &round(vec![call("a")]), message);
    refuses(
        &ValidationRules::anthropic(),
        &round(vec![text("Ok."), thought(Some("sig"), None), call("a")]),
        message,
    );
    accepts(&ValidationRules::openai(), &round(vec![call("a")]));
    both_accept(&round(vec![thought(Some("sig"), None), call("a")]));
    both_accept(&round(vec![thought(None, Some("sealed")), text("Ok."), call("a")]));
    both_accept(&changed(round(vec![call("a")]), |p| p.thinking = Thinking::Unspecified));
    let closed = [round(vec![call("a")]).messages, vec![assistant(vec![text("Ok.")]), go()]].concat();
    both_accept(&changed(prompt(closed), |p| p.thinking = Thinking::Budget(1024)));
}

fn system(blocks: Vec<Block>) -> PromptMessage {
    PromptMessage::new(Role::System, blocks)
}

fn effort_only() -> PromptMessage {
    PromptMessage { effort: Some(Effort::Low), ..system(Vec::new()) }
}

fn with_system_messages() -> ValidationRules {
    ValidationRules { system_messages: Acceptance::Accepted, ..ValidationRules::anthropic() }
}

#[test]
fn system_messages_follow_the_user_and_precede_the_model() {
    let said = || system(vec![text("Run the tests.")]);
    let answer = || assistant(vec![text("Yes.")]);
    let (calls, results) = (|| assistant(vec![call("a")]), || user(vec![result("a")]));
    let rules = with_system_messages();
    for accepted in [
        vec![go(), said()],
        vec![go(), said(), said(), answer(), go()],
        vec![go(), calls(), results(), said()],
        vec![effort_only(), go(), effort_only(), answer(), effort_only(), go(), effort_only()],
        vec![go(), effort_only(), said(), effort_only()],
        vec![go(), calls(), effort_only(), results()],
    ] {
        accepts(&rules, &prompt(accepted.clone()));
        let name = names(&prompt(accepted), &ValidationRules::anthropic());
        assert!(name.iter().all(|name| name == "SystemMessage") && !name.is_empty(), "{name:?}");
    }
    for (messages, broken) in [
        (vec![said(), go()], vec!["SystemMessageFirst"]),
        (vec![go(), answer(), said()], vec!["SystemMessageAfterAnswer", "Prefill"]),
        (vec![go(), said(), go()], vec!["SystemMessageBeforeUser"]),
        (vec![go(), calls(), said(), results()], vec!["SystemMessageAfterAnswer"]),
        (vec![go(), answer(), effort_only()], vec!["Prefill"]),
        (vec![go(), system(Vec::new())], vec!["EmptyMessage"]),
        (vec![go(), system(vec![call("a")])], vec!["Misplaced"]),
    ] {
        assert_eq!(names(&prompt(messages.clone()), &rules), broken, "{messages:?}");
    }
    accepts(&ValidationRules::openai(), &prompt(vec![said(), go(), said(), go()]));
}

#[test]
fn a_turn_scoped_message_is_text_without_marker_and_effort() {
    let scoped = |message: PromptMessage| prompt(vec![go(), PromptMessage { turn_scoped: true, ..message }]);
    let marked = Block { breakpoint: Some(CacheLifetime::FiveMinutes), ..text("Now.") };
    let rules = with_system_messages();
    accepts(&rules, &scoped(system(vec![text("Now.")])));
    let message = "messages.1.cache_control: not permitted on a system message with clear_at";
    refuses(&rules, &scoped(system(vec![marked])), message);
    let with_effort = PromptMessage { effort: Some(Effort::Low), ..system(vec![text("Now.")]) };
    let message = "messages.1.output_config: not permitted on a system message with clear_at";
    refuses(&rules, &scoped(with_effort), message);
}
