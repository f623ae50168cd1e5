use hardpan_agent::events::SessionTree;
use hardpan_agent::{AgentError, BranchExit, EntryError};
use hardpan_context::LayoutName;
use hardpan_session::Session;
use hardpan_test_support::{TestAgent, line};

const SCRIPT: &str = "
turns:
  - when: {contains: This line of the conversation is being left}
    text: The rudder is broken.
    repeat: always
  - when: {equals: Look.}
    tool_calls: [{name: ls, arguments: {path: .}}]
    repeat: always
default: {text: Fine.}
";

/// A conversation with something to go back to: `One.`, a look, `Three.`
async fn sailing(layout: LayoutName) -> TestAgent {
    let test_agent = TestAgent::with_real_tools().layout(layout).script(SCRIPT).start().await;
    test_agent.write("a.txt", "a\n");
    for text in ["One.", "Look.", "Three."] {
        test_agent.say(text).await;
    }
    test_agent
}

/// The names of the messages that say this.
fn said(test_agent: &TestAgent, text: &str) -> String {
    let messages = test_agent.agent.messages();
    messages.iter().find(|message| line(message) == text).expect(text).id.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_a_branch_silently_takes_nothing_along() {
    for layout in LayoutName::ALL {
        let test_agent = sailing(layout).await;
        let (left, sent) = (test_agent.agent.messages(), test_agent.request_count());
        let spent = test_agent.agent.token_usage().session;
        let back = left[1].id.to_string();
        test_agent.agent.go_to_entry(&back, BranchExit::WithoutSummary).await.unwrap();
        assert_eq!(test_agent.agent.messages(), left[..2]);
        assert_eq!(test_agent.agent.token_usage().session, spent, "what was paid stays paid");
        assert_eq!(test_agent.request_count(), sent);
        test_agent.say("Another way.").await;
        assert!(!test_agent.last_sent().body.contains("Three."), "{layout}");
        let session = test_agent.stored().await;
        let tip = session.branch(Some(&left.last().unwrap().id.0)).unwrap();
        assert_eq!(tip.messages, left, "the branch that was left is as it was");
        test_agent.assert_copy_sends_the_same().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_learned_on_a_branch_is_taken_along() {
    for layout in LayoutName::ALL {
        let test_agent = sailing(layout).await;
        let left = test_agent.agent.messages();
        let back = left[1].id.to_string();
        test_agent.agent.go_to_entry(&back, BranchExit::WithSummary).await.unwrap();
        let asked = test_agent.last_sent().body;
        assert!(asked.contains("Three.") && asked.contains(&format!("since the message {back}")));
        let lines: Vec<String> = test_agent.agent.messages().iter().map(line).collect();
        assert_eq!(lines, ["user: One.", "assistant: Fine.", "branch: The rudder is broken."]);
        let told = test_agent.events_of::<SessionTree>();
        assert_eq!(told.len(), 1);
        assert_eq!(&*told[0].to, back.as_str());
        test_agent.say("Another way.").await;
        let body = test_agent.last_sent().body;
        assert!(body.contains("The rudder is broken.") && !body.contains("Three."), "{layout}");
        let session = test_agent.stored().await;
        assert_eq!(session.branch(Some(&left.last().unwrap().id.0)).unwrap().messages, left);
        assert_eq!(
            test_agent.billed("branch_summary").await.len(),
            0,
            "it was paid for on the branch that was left"
        );
        let requests: Vec<String> = session.requests().map(|request| request.purpose.to_string()).collect();
        assert_eq!(requests.iter().filter(|purpose| *purpose == "branch_summary").count(), 1);
        test_agent.assert_copy_sends_the_same().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_point_between_a_call_and_its_result_can_be_gone_to() {
    for layout in LayoutName::ALL {
        let test_agent = sailing(layout).await;
        let call = said(&test_agent, "assistant: [ls]");
        test_agent.agent.go_to_entry(&call, BranchExit::WithoutSummary).await.unwrap();
        test_agent.say("Another way.").await;
        assert_eq!(test_agent.last_sent().status, 200);
        test_agent.assert_copy_sends_the_same().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_is_not_there_changes_nothing_and_costs_nothing() {
    let test_agent = sailing(LayoutName::Strata).await;
    let (messages, sent) = (test_agent.agent.messages(), test_agent.request_count());
    let usage = test_agent.agent.token_usage();
    for leave in [BranchExit::WithoutSummary, BranchExit::WithSummary] {
        assert!(matches!(test_agent.agent.go_to_entry("e999", leave).await, Err(AgentError::Entry(_))));
    }
    assert_eq!((test_agent.agent.messages(), test_agent.request_count()), (messages, sent));
    assert_eq!(test_agent.agent.token_usage().session, usage.session);
    test_agent.assert_copy_sends_the_same().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_summary_that_fails_or_is_stopped_leaves_everything_as_it_is() {
    let script = SCRIPT.replace("text: The rudder is broken.", "text: Too late.\n    delay: 10s");
    let test_agent = TestAgent::with_real_tools().script(script).start().await;
    test_agent.say("One.").await;
    let (messages, sent) = (test_agent.agent.messages(), test_agent.request_count());
    let (agent, first) = (test_agent.agent.clone(), messages[0].id.to_string());
    let leaving = tokio::spawn(async move { agent.go_to_entry(&first, BranchExit::WithSummary).await });
    test_agent.until(|| test_agent.request_count() > sent).await;
    test_agent.agent.abort();
    assert!(matches!(leaving.await.unwrap(), Err(AgentError::Entry(EntryError::Aborted))));
    assert_eq!(test_agent.agent.messages(), messages);
    assert_eq!(
        Session::open(&test_agent.agent.session().1).unwrap().branch(None).unwrap().messages,
        messages
    );
    test_agent.assert_copy_sends_the_same().await;
}
