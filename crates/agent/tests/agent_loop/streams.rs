use std::time::Duration;

use hardpan_agent::events::stream::STREAM_CAPACITY;
use hardpan_agent::events::{MessageDelta, MessageUpdate};
use hardpan_agent::{AgentEvent, EventStream, InputOutcome, RunEnd};
use hardpan_test_support::{TestAgent, input};

/// An agent whose answer comes in many more pieces than a stream holds, and the answer.
async fn talkative() -> (TestAgent, String) {
    let answer: Vec<String> = (0..3 * STREAM_CAPACITY).map(|n| format!("word{n}")).collect();
    let answer = answer.join(" ");
    let script = format!("turns: [{{text: {answer}}}]\ndefault: {{text: Fine.}}");
    (TestAgent::builder().script(script).start().await, answer)
}

/// The text that a run streamed, up to its end.
async fn read_answer(stream: &mut EventStream) -> String {
    let mut answer = String::new();
    loop {
        match stream.recv().await.expect("the agent is there") {
            AgentEvent::MessageUpdate(MessageUpdate { delta: MessageDelta::Text { text }, .. }) => {
                answer += &text;
            }
            AgentEvent::AgentEnd(_) => return answer,
            _ => {}
        }
    }
}

/// Waits until the stream is full and nothing more comes.
async fn until_stuck(stream: &EventStream) {
    let mut before = 0;
    while stream.len() < STREAM_CAPACITY || stream.len() != before {
        before = stream.len();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_waits_for_a_reader_that_does_not_read_and_loses_nothing() {
    let (test_agent, answer) = talkative().await;
    let mut stream = test_agent.agent.events().stream();
    let running = test_agent.begin("Talk");
    until_stuck(&stream).await;
    assert!(stream.len() < STREAM_CAPACITY + 8, "{} events", stream.len());
    assert!(test_agent.agent.is_busy() && !running.is_finished());
    assert_eq!(read_answer(&mut stream).await, answer);
    assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Done));
    // Both streams of this agent got the same.
    let mut seen = test_agent.events().into_iter();
    assert!(matches!(seen.next_back(), Some(AgentEvent::AgentEnd(_))));
    drop(stream);
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_does_not_wait_for_a_reader() {
    let (test_agent, answer) = talkative().await;
    let mut stream = test_agent.agent.events().stream();
    let running = test_agent.begin("Talk");
    until_stuck(&stream).await;
    test_agent.agent.abort();
    assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Aborted));
    // What a face does by itself does not wait either.
    test_agent.agent.clear_queue().await;
    test_agent.agent.shutdown().await.unwrap();
    let read = read_answer(&mut stream).await;
    assert!(!read.is_empty() && answer.starts_with(&read) && read.len() < answer.len(), "{read}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_dropped_disturbs_nobody() {
    let (test_agent, answer) = talkative().await;
    let stream = test_agent.agent.events().stream();
    let running = test_agent.begin("Talk");
    until_stuck(&stream).await;
    drop(stream);
    assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Done));
    assert_eq!(test_agent.transcript_lines(), ["user: Talk".to_owned(), format!("assistant: {answer}")]);
    drop(test_agent.agent.events().stream());
    test_agent.assert_continues().await;
}

#[tokio::test]
async fn one_task_may_prompt_and_read() {
    let (test_agent, answer) = talkative().await;
    let mut stream = test_agent.agent.events().stream();
    let (outcome, read) = tokio::join!(test_agent.agent.prompt(input("Talk")), read_answer(&mut stream));
    assert_eq!((outcome.unwrap(), read), (InputOutcome::Ran(RunEnd::Done), answer));
}

#[tokio::test]
async fn an_unbounded_stream_may_be_read_when_the_run_is_over() {
    let (test_agent, answer) = talkative().await;
    let mut stream = test_agent.agent.events().unbounded_stream();
    assert_eq!(test_agent.prompt("Talk").await, InputOutcome::Ran(RunEnd::Done));
    let events: Vec<AgentEvent> = std::iter::from_fn(|| stream.try_recv()).collect();
    assert_eq!(events, test_agent.events());
    let pieces = events.iter().filter_map(|event| match event.payload::<MessageUpdate>()? {
        MessageUpdate { delta: MessageDelta::Text { text }, .. } => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(pieces.collect::<String>(), answer);
    assert!(matches!(events.last(), Some(AgentEvent::AgentEnd(_))));
}

#[tokio::test]
async fn a_stream_ends_with_its_agent() {
    let test_agent = TestAgent::builder().start().await;
    let mut stream = test_agent.agent.events().stream();
    test_agent.agent.start().await;
    drop(test_agent);
    assert_eq!(stream.recv().await.map(|event| event.name()), Some("session_start"));
    assert_eq!(stream.recv().await, None);
}
