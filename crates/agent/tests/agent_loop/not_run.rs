use hardpan_agent::events::{MessageEnd, ToolCallEvent, ToolCallReply};
use hardpan_agent::{InputOutcome, RunEnd};
use hardpan_prompt::{DeniedBy, MessageBody, NotRunReason};
use hardpan_test_support::TestAgent;
use hardpan_tools::ToolState;

/// Why each result says that its tool did not run, as emitted; what is stored says the same.
async fn reasons(test_agent: &TestAgent) -> Vec<Option<NotRunReason>> {
    let results =
        test_agent.events_of::<MessageEnd>().into_iter().filter_map(|end| match &*end.message.body {
            MessageBody::ToolResult { not_run, .. } => Some(not_run.clone()),
            _ => None,
        });
    let results: Vec<_> = results.collect();
    test_agent.assert_stored_matches_memory().await;
    results
}

/// The reasons after a run with one call for each of these.
async fn reasons_for(calls: &str) -> Vec<Option<NotRunReason>> {
    let script = format!("turns: [{{undeclared: true, tool_calls: [{calls}]}}]\ndefault: {{text: Fine.}}");
    let test_agent = TestAgent::builder().script(script).start().await;
    test_agent.agent.tools().switch("find", ToolState::Off).expect("there is such a tool");
    test_agent.agent.events().subscribe::<ToolCallEvent, _>("guard", |call, _| async move {
        let block = ToolCallReply::Block { reason: "not today".into() };
        Ok(if &*call.tool_name == "grep" { block } else { ToolCallReply::Allow })
    });
    assert_eq!(test_agent.prompt("Go").await, InputOutcome::Ran(RunEnd::Done));
    reasons(&test_agent).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_not_run_says_why() {
    let denied = NotRunReason::Denied { by: DeniedBy::Person, message: "not red".into() };
    for (call, reason) in [
        ("{name: slow, arguments: {ms: 1}}", None),
        ("{name: paint, arguments: {colour: plaid}}", None),
        ("{name: paint, arguments: {colour: red}}", Some(denied)),
        ("{name: grep, arguments: {}}", Some(NotRunReason::Blocked { message: "not today".into() })),
        ("{name: fly, arguments: {}}", Some(NotRunReason::UnknownTool)),
        ("{name: find, arguments: {}}", Some(NotRunReason::SwitchedOff)),
        ("{name: context, arguments: {}}", Some(NotRunReason::FilledByLayout)),
    ] {
        assert_eq!(reasons_for(call).await, [reason], "{call}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_calls_of_an_answer_that_was_cut_are_not_valid() {
    let script = "
turns:
  - tool_calls:
    - {name: paint, arguments: {colour: blue}}
    - {name: paint, arguments: {colour: a long and winding road that leads nowhere at all}}
default: {text: Fine.}
";
    let setup = TestAgent::builder().script(script).max_tokens(16);
    let test_agent = setup.start().await;
    assert_eq!(test_agent.prompt("Paint").await, InputOutcome::Ran(RunEnd::Done));
    let invalid = Some(NotRunReason::InvalidCall);
    assert_eq!(reasons(&test_agent).await, [invalid.clone(), invalid]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_keeps_failing_is_not_run_again() {
    let script = "
turns:
  - {tool_calls: [{name: paint, arguments: {colour: plaid}}], repeat: always}
default: {text: Fine.}
";
    let test_agent = TestAgent::builder().script(script).start().await;
    assert_eq!(test_agent.prompt("Paint").await, InputOutcome::Ran(RunEnd::Looping { tool: "paint".into() }));
    let again = Some(NotRunReason::RepeatedFailure);
    assert_eq!(reasons(&test_agent).await, [None, None, None, again.clone(), again]);
}

const TWO_CALLS: &str = "
turns:
  - tool_calls: [{name: slow, arguments: {ms: 100}}, {name: slow, arguments: {ms: 1}}]
default: {text: Fine.}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_skipped_for_steering_says_so() {
    let test_agent = TestAgent::builder().script(TWO_CALLS).start().await;
    let running = test_agent.begin("Work");
    test_agent.until_event("tool_execution_start", 1).await;
    test_agent.steer("Stop that").await;
    assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Done));
    assert_eq!(reasons(&test_agent).await, [None, Some(NotRunReason::Steered)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_stops_the_call_that_runs_and_keeps_the_next_from_starting() {
    let test_agent = TestAgent::builder().script(TWO_CALLS).start().await;
    let running = test_agent.begin("Work");
    test_agent.until_event("tool_execution_update", 1).await;
    test_agent.agent.abort();
    assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Aborted));
    assert_eq!(reasons(&test_agent).await, [Some(NotRunReason::Stopped), Some(NotRunReason::Aborted)]);
}
