use super::*;

fn call(index: usize, json: &str) -> Vec<AnswerEvent> {
    vec![
        AnswerEvent::CallStart { index, id: format!("c{index}"), name: "read".into() },
        AnswerEvent::CallDelta { index, json: json.into() },
        AnswerEvent::CallEnd { index },
    ]
}

fn verdicts(events: impl IntoIterator<Item = AnswerEvent>) -> Vec<Result<(), CallRejection>> {
    events.into_iter().collect::<Answer>().calls().into_iter().map(|call| call.runnable).collect()
}

#[test]
fn parts_keep_their_order_and_reasoning_its_signature() {
    let start = AnswerEvent::Start { id: "m".into(), model: "x".into() };
    let pieces = [
        start,
        AnswerEvent::Reasoning("hm".into()),
        AnswerEvent::Reasoning("!".into()),
        AnswerEvent::Signature("s1".into()),
        AnswerEvent::Reasoning("more".into()),
        AnswerEvent::RedactedReasoning("r".into()),
        AnswerEvent::Signature("s2".into()),
        AnswerEvent::Text("a".into()),
        AnswerEvent::Text("b".into()),
    ];
    let end = [
        AnswerEvent::Text("c".into()),
        AnswerEvent::Usage(ReportedUsage::default()),
        AnswerEvent::Stop(StopReason::ToolUse),
    ];
    let answer: Answer = pieces.into_iter().chain(call(0, "{\"p\": 1}")).chain(end).collect();
    let reasoning = |text: &str, signature: Option<&str>, redacted: Option<&str>| MessagePart::Reasoning {
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
        MessagePart::text("ab"),
        MessagePart::ToolCall(tool_call.clone()),
        MessagePart::text("c"),
    ];
    assert_eq!(answer.parts(), expected);
    assert_eq!(answer.text(), "abc");
    assert_eq!((answer.id.as_str(), answer.model.as_str()), ("m", "x"));
    let runnable = AnswerCall { call: tool_call, raw: "{\"p\": 1}".into(), runnable: Ok(()) };
    assert_eq!(answer.calls(), [runnable]);
}

#[test]
fn a_call_is_run_only_after_a_clean_end() {
    let ended = |stop: StopReason| verdicts(call(0, "{}").into_iter().chain([AnswerEvent::Stop(stop)]));
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
        assert_eq!(ended(early.clone()), [Err(CallRejection::Stopped(early))]);
    }
    assert_eq!(verdicts(call(0, "{}")), [Err(CallRejection::Unfinished)]);
    let error = StreamError::from_provider("overloaded_error", "later");
    let failed = call(0, "{}").into_iter().chain([AnswerEvent::Error(error.clone())]);
    assert_eq!(verdicts(failed), [Err(CallRejection::Failed(error))]);
}

#[test]
fn a_call_that_cannot_be_read_is_not_run_and_its_neighbour_is() {
    let stop = [AnswerEvent::Stop(StopReason::ToolUse)];
    let events = ["{\"a\":", "{}{}", "[1]", "", " null ", "{\"a\":1}"].iter().enumerate();
    let verdicts = verdicts(events.flat_map(|(index, json)| call(index, json)).chain(stop));
    assert!(matches!(&verdicts[..2], [Err(CallRejection::Malformed(_)), Err(CallRejection::Malformed(_))]));
    assert_eq!(verdicts[2..], [Err(CallRejection::NotAnObject), Ok(()), Ok(()), Ok(())]);
}

#[test]
fn a_call_without_end_or_name_is_not_run() {
    let mut open = call(0, "{}");
    open.pop();
    let nameless = [
        AnswerEvent::CallStart { index: 1, id: "x".into(), name: String::new() },
        AnswerEvent::CallEnd { index: 1 },
    ];
    let events = open.into_iter().chain(nameless).chain([AnswerEvent::Stop(StopReason::End)]);
    assert_eq!(verdicts(events), [Err(CallRejection::Incomplete), Err(CallRejection::Nameless)]);
}

#[test]
fn the_text_of_a_cut_answer_is_kept() {
    let events = [AnswerEvent::Text("half a".into()), AnswerEvent::Stop(StopReason::Cut)];
    assert_eq!(events.into_iter().collect::<Answer>().parts(), [MessagePart::text("half a")]);
}
