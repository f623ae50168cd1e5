use hardpan_agent::{AgentError, Leave};
use hardpan_context::LayoutName;
use hardpan_session::Session;

use crate::stage::{Given, Stage, line};

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
async fn sailing(layout: LayoutName) -> Stage {
    let stage = Stage::new(Given { layout, script: SCRIPT.into(), ..Given::default() }).await;
    stage.write("a.txt", "a\n");
    for text in ["One.", "Look.", "Three."] {
        stage.say(text).await;
    }
    stage
}

/// The names of the messages that say this.
fn said(stage: &Stage, text: &str) -> String {
    let messages = stage.agent.messages();
    messages.iter().find(|message| line(message) == text).expect(text).id.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_a_branch_silently_takes_nothing_along() {
    for layout in LayoutName::ALL {
        let stage = sailing(layout).await;
        let (left, sent) = (stage.agent.messages(), stage.sent().len());
        let spent = stage.agent.token_usage().session;
        let back = left[1].id.to_string();
        stage.agent.go_to(&back, Leave::Silently).await.unwrap();
        assert_eq!(stage.agent.messages(), left[..2]);
        assert_eq!(stage.agent.token_usage().session, spent, "what was paid stays paid");
        assert_eq!(stage.sent().len(), sent);
        stage.say("Another way.").await;
        assert!(!stage.last_sent().body.contains("Three."), "{layout}");
        let session = stage.stored().await;
        let tip = session.branch(Some(&left.last().unwrap().id.0)).unwrap();
        assert_eq!(tip.messages, left, "the branch that was left is as it was");
        stage.goes_on().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_learned_on_a_branch_is_taken_along() {
    for layout in LayoutName::ALL {
        let stage = sailing(layout).await;
        let left = stage.agent.messages();
        let back = left[1].id.to_string();
        stage.agent.go_to(&back, Leave::WithSummary).await.unwrap();
        let asked = stage.last_sent().body;
        assert!(asked.contains("Three.") && asked.contains(&format!("since the message {back}")));
        let lines: Vec<String> = stage.agent.messages().iter().map(line).collect();
        assert_eq!(lines, ["user: One.", "assistant: Fine.", "branch: The rudder is broken."]);
        let told = stage.told("session_tree");
        assert_eq!(told.len(), 1);
        assert_eq!(told[0]["to"], back.as_str());
        stage.say("Another way.").await;
        let body = stage.last_sent().body;
        assert!(body.contains("The rudder is broken.") && !body.contains("Three."), "{layout}");
        let session = stage.stored().await;
        assert_eq!(session.branch(Some(&left.last().unwrap().id.0)).unwrap().messages, left);
        assert_eq!(
            stage.billed("branch_summary").await.len(),
            0,
            "it was paid for on the branch that was left"
        );
        let requests: Vec<String> = session.requests().map(|request| request.purpose.to_string()).collect();
        assert_eq!(requests.iter().filter(|purpose| *purpose == "branch_summary").count(), 1);
        stage.goes_on().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_point_between_a_call_and_its_result_can_be_gone_to() {
    for layout in LayoutName::ALL {
        let stage = sailing(layout).await;
        let call = said(&stage, "assistant: [ls]");
        stage.agent.go_to(&call, Leave::Silently).await.unwrap();
        stage.say("Another way.").await;
        assert_eq!(stage.last_sent().status, 200);
        stage.goes_on().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_is_not_there_changes_nothing_and_costs_nothing() {
    let stage = sailing(LayoutName::Strata).await;
    let (messages, sent) = (stage.agent.messages(), stage.sent().len());
    let usage = stage.agent.token_usage();
    for leave in [Leave::Silently, Leave::WithSummary] {
        assert!(matches!(stage.agent.go_to("e999", leave).await, Err(AgentError::Entry { .. })));
    }
    assert_eq!((stage.agent.messages(), stage.sent().len()), (messages, sent));
    assert_eq!(stage.agent.token_usage().session, usage.session);
    stage.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_summary_that_fails_or_is_stopped_leaves_everything_as_it_is() {
    let script = SCRIPT.replace("text: The rudder is broken.", "text: Too late.\n    delay: 10s");
    let stage = Stage::new(Given { script, ..Given::default() }).await;
    stage.say("One.").await;
    let (messages, sent) = (stage.agent.messages(), stage.sent().len());
    let (agent, first) = (stage.agent.clone(), messages[0].id.to_string());
    let leaving = tokio::spawn(async move { agent.go_to(&first, Leave::WithSummary).await });
    stage.until(|| stage.sent().len() > sent).await;
    stage.agent.abort();
    assert!(
        matches!(leaving.await.unwrap(), Err(AgentError::Entry { reason }) if reason.contains("stopped"))
    );
    assert_eq!(stage.agent.messages(), messages);
    assert_eq!(Session::open(&stage.agent.session().1).unwrap().branch(None).unwrap().messages, messages);
    stage.goes_on().await;
}
