use super::*;

fn call(index: usize, json: &str) -> Vec<Event> {
    vec![
        Event::CallStart { index, id: format!("c{index}"), name: "read".into() },
        Event::CallDelta { index, json: json.into() },
        Event::CallEnd { index },
    ]
}

fn verdicts(events: impl IntoIterator<Item = Event>) -> Vec<Result<(), WhyNot>> {
    events.into_iter().collect::<Answer>().calls().into_iter().map(|call| call.runnable).collect()
}

#[test]
fn parts_keep_their_order_and_reasoning_its_signature() {
    let start = Event::Start { id: "m".into(), model: "x".into() };
    let pieces = [
        start,
        Event::Reasoning("hm".into()),
        Event::Reasoning("!".into()),
        Event::Signature("s1".into()),
        Event::Reasoning("more".into()),
        Event::RedactedReasoning("r".into()),
        Event::Signature("s2".into()),
        Event::Text("a".into()),
        Event::Text("b".into()),
    ];
    let end = [Event::Text("c".into()), Event::Usage(Usage::default()), Event::Stop(StopReason::ToolUse)];
    let answer: Answer = pieces.into_iter().chain(call(0, "{\"p\": 1}")).chain(end).collect();
    let reasoning = |text: &str, signature: Option<&str>, redacted: Option<&str>| Part::Reasoning {
        text: text.into(),
        signature: signature.map(Into::into),
        redacted: redacted.map(Into::into),
    };
    let tool_call = ToolCall {
        id: "c0".into(),
        name: "read".into(),
        arguments: Json::new(&serde_json::json!({"p": 1})),
        result: None,
    };
    let expected = [
        reasoning("hm!", Some("s1"), None),
        reasoning("more", None, None),
        reasoning("", None, Some("r")),
        reasoning("", Some("s2"), None),
        Part::text("ab"),
        Part::ToolCall(tool_call.clone()),
        Part::text("c"),
    ];
    assert_eq!(answer.parts(), expected);
    assert_eq!(answer.text(), "abc");
    assert_eq!((answer.id.as_str(), answer.model.as_str()), ("m", "x"));
    let runnable = AnswerCall { call: tool_call, raw: "{\"p\": 1}".into(), runnable: Ok(()) };
    assert_eq!(answer.calls(), [runnable]);
}

#[test]
fn a_call_is_run_only_after_a_clean_end() {
    let ended = |stop: StopReason| verdicts(call(0, "{}").into_iter().chain([Event::Stop(stop)]));
    for clean in [StopReason::End, StopReason::ToolUse, StopReason::StopSequence] {
        assert_eq!(ended(clean), [Ok(())]);
    }
    let early = [
        StopReason::Length,
        StopReason::Cut,
        StopReason::Refusal,
        StopReason::Pause,
        StopReason::Other("odd".into()),
    ];
    for early in early {
        assert_eq!(ended(early.clone()), [Err(WhyNot::Stopped(early))]);
    }
    assert_eq!(verdicts(call(0, "{}")), [Err(WhyNot::Unfinished)]);
    let error = StreamError::new("overloaded_error", "later");
    let failed = call(0, "{}").into_iter().chain([Event::Error(error.clone())]);
    assert_eq!(verdicts(failed), [Err(WhyNot::Failed(error))]);
}

#[test]
fn a_call_that_cannot_be_read_is_not_run_and_its_neighbour_is() {
    let stop = [Event::Stop(StopReason::ToolUse)];
    let events = ["{\"a\":", "{}{}", "[1]", "", " null ", "{\"a\":1}"].iter().enumerate();
    let verdicts = verdicts(events.flat_map(|(index, json)| call(index, json)).chain(stop));
    assert!(matches!(&verdicts[..2], [Err(WhyNot::Malformed(_)), Err(WhyNot::Malformed(_))]));
    assert_eq!(verdicts[2..], [Err(WhyNot::NotAnObject), Ok(()), Ok(()), Ok(())]);
}

#[test]
fn a_call_without_end_or_name_is_not_run() {
    let mut open = call(0, "{}");
    open.pop();
    let nameless =
        [Event::CallStart { index: 1, id: "x".into(), name: String::new() }, Event::CallEnd { index: 1 }];
    let events = open.into_iter().chain(nameless).chain([Event::Stop(StopReason::End)]);
    assert_eq!(verdicts(events), [Err(WhyNot::Incomplete), Err(WhyNot::Nameless)]);
}

#[test]
fn the_text_of_a_cut_answer_is_kept() {
    let events = [Event::Text("half a".into()), Event::Stop(StopReason::Cut)];
    assert_eq!(events.into_iter().collect::<Answer>().parts(), [Part::text("half a")]);
}
