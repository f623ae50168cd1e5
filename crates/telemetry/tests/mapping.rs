//! The events of real runs, as spans and measurements. The provider is the simulator over HTTP.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

use std::sync::Arc;

use hardpan_agent::AgentEvent;
use hardpan_telemetry::{
    AgentTracer, AttributeValue, ContentCapture, MetricKind, MetricStore, Span, SpanContext, SpanId,
    SpanStatus, TraceId,
};
use hardpan_test_support::{TestAgent, input};

const SCRIPT: &str = "
turns:
  - {text: I look., tool_calls: [{id: call_1, name: read, arguments: {path: a.txt}}]}
default: {text: It has two lines.}
";

/// What a tracer makes of these events, at times 1, 2, 3 and so on; ids count from 1.
fn trace(
    events: &[AgentEvent],
    content: ContentCapture,
    parent: Option<SpanContext>,
) -> (Vec<Span>, MetricStore) {
    let mut id = 0;
    let ids = move || {
        id += 1;
        id
    };
    let filter = |text: &str| text.replace("hunter2", "[redacted]");
    let mut tracer = AgentTracer::new(content, parent, ids, Arc::new(filter));
    tracer.set_identity("s1".into(), "default".into());
    let (mut spans, mut metrics) = (Vec::new(), MetricStore::default());
    for (event, at) in events.iter().zip(1..) {
        let output = tracer.observe(event, at * 1_000_000_000);
        spans.extend(output.spans);
        for (kind, attributes, value) in output.measurements {
            metrics.record(kind, attributes, value);
        }
    }
    (spans, metrics)
}

/// A span in a line: what it is part of, and its attributes. Numbers of tokens are left to other tests.
fn line(span: &Span) -> String {
    let attributes = span.attributes.iter().filter(|one| !one.name.starts_with("gen_ai.usage."));
    let attributes = attributes.filter(|one| one.name != "gen_ai.response.id" && one.name != "hardpan.cost");
    let shown = attributes.map(|one| match &one.value {
        AttributeValue::Text(text) => format!("{}={text}", one.name),
        other => format!("{}={other:?}", one.name),
    });
    let shown: Vec<String> = shown.collect();
    let parent = span.parent.map_or("-".into(), |parent| parent.0.to_string());
    let failed = if span.status == SpanStatus::Unset { "" } else { " failed" };
    format!("{parent}>{} {}{failed}: {}", span.context.span.0, span.name, shown.join(" "))
}

fn lines(spans: &[Span]) -> Vec<String> {
    spans.iter().map(line).collect()
}

#[tokio::test]
async fn a_run_is_a_trace_of_requests_and_tool_calls() {
    let agent = TestAgent::builder().script(SCRIPT).file("a.txt", "one\ntwo\n").start().await;
    agent.say("How long is a.txt?").await;
    let (spans, metrics) = trace(&agent.events(), ContentCapture::Off, None);
    let chat = "gen_ai.operation.name=chat gen_ai.provider.name=anthropic gen_ai.request.model=claude-sonnet-5 gen_ai.conversation.id=s1 gen_ai.response.model=claude-sonnet-5 gen_ai.response.finish_reasons=Texts";
    assert_eq!(
        lines(&spans),
        [
            format!("3>4 chat claude-sonnet-5: {chat}([\"tool_call\"])"),
            "3>5 execute_tool read: gen_ai.operation.name=execute_tool gen_ai.tool.name=read gen_ai.tool.type=function gen_ai.tool.call.id=call_1 gen_ai.conversation.id=s1".into(),
            format!("3>6 chat claude-sonnet-5: {chat}([\"stop\"])"),
            "->3 invoke_agent default: gen_ai.operation.name=invoke_agent gen_ai.provider.name=anthropic gen_ai.request.model=claude-sonnet-5 gen_ai.agent.name=default gen_ai.conversation.id=s1 hardpan.run.end=done".into(),
        ]
    );
    assert!(spans.iter().all(|span| span.context.trace == TraceId(1 << 64 | 2)), "{spans:?}");
    let run = spans.last().unwrap();
    assert!(spans.iter().all(|span| run.start <= span.start && span.start < span.end && span.end <= run.end));
    // The run has used what its requests have.
    let number = |span: &Span, name: &str| match span.attributes.iter().find(|one| one.name == name) {
        Some(one) => match one.value {
            AttributeValue::Integer(number) => number,
            _ => panic!("{one:?}"),
        },
        None => panic!("{name} is missing: {span:?}"),
    };
    for (name, token_type) in [
        ("gen_ai.usage.input_tokens", "input"),
        ("gen_ai.usage.output_tokens", "output"),
        ("gen_ai.usage.cache_read.input_tokens", "cache_read"),
        ("gen_ai.usage.cache_creation.input_tokens", "cache_creation"),
    ] {
        let requests = number(&spans[0], name) + number(&spans[2], name);
        assert_eq!(requests, number(run, name), "{name}");
        let measured = metrics.sum_of(MetricKind::TokenUsage, "gen_ai.token.type", token_type);
        assert_eq!(requests as f64, measured, "{name}");
    }
    assert!(number(&spans[0], "gen_ai.usage.input_tokens") > 100);
    let durations = metrics.points().iter().filter(|point| point.kind == MetricKind::OperationDuration);
    assert_eq!(durations.map(|point| point.values.count).collect::<Vec<_>>(), [2, 1, 1]);
    let kinds: std::collections::BTreeSet<&str> =
        metrics.points().iter().map(|point| point.kind.name()).collect();
    assert_eq!(kinds.len(), 4, "{kinds:?}");
}

#[tokio::test]
async fn texts_are_sent_if_asked_for_alone_and_without_secrets() {
    let agent = TestAgent::builder().script(SCRIPT).file("a.txt", "hunter2\ntwo\n").start().await;
    agent.say("Is hunter2 in a.txt?").await;
    let (spans, _) = trace(&agent.events(), ContentCapture::Off, None);
    let all = format!("{spans:?}");
    for text in ["hunter2", "a.txt", "I look", "two lines", "redacted"] {
        assert!(!all.contains(text), "{text}: {all}");
    }
    let (spans, _) = trace(&agent.events(), ContentCapture::On, None);
    let text = |span: &Span, name: &str| {
        let found = span.attributes.iter().find(|one| one.name == name);
        found.map(|one| format!("{:?}", one.value).replace('\\', "")).unwrap_or_default()
    };
    assert!(!format!("{spans:?}").contains("hunter2"), "{spans:#?}");
    assert_eq!(
        text(&spans[0], "gen_ai.output.messages"),
        r#"Text("[{"role":"assistant","parts":[{"type":"text","content":"I look."},{"type":"tool_call","id":"call_1","name":"read","arguments":"{"path":"a.txt"}"}],"finish_reason":"tool_call"}]")"#
    );
    assert_eq!(text(&spans[1], "gen_ai.tool.call.arguments"), r#"Text("{"path":"a.txt"}")"#);
    assert!(text(&spans[1], "gen_ai.tool.call.result").contains("[redacted]"), "{spans:#?}");
    assert!(text(&spans[3], "gen_ai.input.messages").contains("Is [redacted] in a.txt?"), "{spans:#?}");
    assert!(text(&spans[3], "gen_ai.output.messages").contains("It has two lines."), "{spans:#?}");
}

#[tokio::test]
async fn a_run_of_a_sub_agent_is_part_of_the_call_that_started_it() {
    let agent = TestAgent::builder().script("default: {text: Done.}").start().await;
    agent.say("Go").await;
    let parent = SpanContext { trace: TraceId(77), span: SpanId(7) };
    let (spans, _) = trace(&agent.events(), ContentCapture::Off, Some(parent));
    let places: Vec<_> = spans.iter().map(|span| (span.parent.unwrap().0, span.context.trace.0)).collect();
    assert_eq!(places, [(1, 77), (7, 77)]);
}

#[tokio::test]
async fn a_request_that_fails_ends_with_its_run_and_its_message_stays_here() {
    let agent = TestAgent::builder().script("default: {text: Done.}").faults("status=400").start().await;
    agent.agent.prompt(input("Go")).await.unwrap();
    let (spans, metrics) = trace(&agent.events(), ContentCapture::Off, None);
    let failed: Vec<_> = spans.iter().map(|span| (span.name.as_str(), &span.status)).collect();
    let status = SpanStatus::Error(String::new());
    assert_eq!(failed, [("chat claude-sonnet-5", &status), ("invoke_agent default", &status)]);
    let errors = metrics.sum_of(MetricKind::OperationDuration, "error.type", "request_failed");
    assert!(errors > 0.0, "{metrics:?}");
    let (spans, _) = trace(&agent.events(), ContentCapture::On, None);
    let SpanStatus::Error(said) = &spans[0].status else { panic!("{spans:?}") };
    assert!(said.contains("400"), "{said}");
}
