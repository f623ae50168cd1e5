use hardpan_agent::events::{BeforeAgentStart, BeforeAgentStartReply};
use hardpan_agent::{CustomMessage, HandlerError, Stop, Taken};
use hardpan_context::LayoutName;
use hardpan_prompt::{Body, Part};
use serde_json::json;

use crate::props::Notes;
use crate::trial::{Clock, Given, Trial, system};

const READ: &str = "
turns:
  - text: Let me look.
    tool_calls: [{name: slow, arguments: {ms: 60}}]
  - when: {has_tool_result: slow}
    text: It has two lines.
default: {text: Fine.}
";

fn custom(text: &str, display: bool) -> CustomMessage {
    CustomMessage { custom_type: "note".into(), content: vec![Part::text(text)], display }
}

/// Registers a handler of the start of a run.
fn on_start(
    trial: &Trial,
    owner: &'static str,
    handler: impl Fn(BeforeAgentStart) -> Result<BeforeAgentStartReply, HandlerError> + Send + Sync + 'static,
) {
    trial.agent.events().on::<BeforeAgentStart, _>(owner, move |event, _agent| {
        let reply = handler(event);
        async move { reply }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn before_agent_start_is_raised_once_per_run_with_tools_and_follow_ups() {
    for layout in LayoutName::ALL {
        let trial = Trial::new(Given { layout, script: READ, ..Given::default() }).await;
        let notes = Notes::default();
        let seen = notes.clone();
        on_start(&trial, "a", move |event| {
            seen.add(event.prompt);
            Ok(BeforeAgentStartReply::default())
        });
        let running = trial.begin("How many lines?");
        trial.until("tool_execution_start", 1).await;
        trial.steer("Hurry").await;
        trial.follow_up("Thanks").await;
        assert_eq!(running.await.unwrap(), Taken::Ran(Stop::Done));
        assert_eq!(trial.sent().len(), 3);
        assert_eq!(notes.all(), ["How many lines?"]);
        assert_eq!(trial.prompt("Again").await, Taken::Ran(Stop::Done));
        assert_eq!(notes.all(), ["How many lines?", "Again"]);
        trial.goes_on().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_come_in_the_order_person_next_prompt_handlers() {
    for layout in LayoutName::ALL {
        let trial = Trial::new(Given { layout, ..Given::default() }).await;
        let message = |text, display| BeforeAgentStartReply {
            message: Some(custom(text, display)),
            system_prompt: None,
        };
        on_start(&trial, "a", move |_| Ok(message("from a", true)));
        on_start(&trial, "nothing", |_| Ok(BeforeAgentStartReply::default()));
        on_start(&trial, "b", move |_| Ok(message("from b", false)));
        trial.agent.with_next_prompt(custom("kept 1", true));
        trial.agent.with_next_prompt(custom("kept 2", false));
        assert_eq!(trial.prompt("Hello").await, Taken::Ran(Stop::Done));
        assert_eq!(
            trial.said(),
            [
                "user: Hello",
                "custom: kept 1",
                "custom: kept 2",
                "custom: from a",
                "custom: from b",
                "assistant: Fine."
            ]
        );
        let displayed: Vec<bool> = trial
            .agent
            .messages()
            .iter()
            .filter_map(|message| match &*message.body {
                Body::Custom { custom_type, display, .. } if &**custom_type == "note" => Some(*display),
                _ => None,
            })
            .collect();
        assert_eq!(displayed, [true, false, true, false]);
        let mut heard = trial.heard().remove(0);
        let ours = ["user: Hello", "user: kept 1", "user: kept 2", "user: from a", "user: from b"];
        heard.retain(|line| ours.contains(&line.as_str()));
        assert_eq!(heard, ours, "{layout}: what is not displayed is sent all the same");
        assert_eq!(
            trial.order(),
            [
                "message_start",
                "message_end",
                "message_start",
                "message_end",
                "message_start",
                "message_end",
                "message_start",
                "message_end",
                "message_start",
                "message_end",
                "agent_start",
                "turn_start",
                "before_provider_request",
                "message_start",
                "message_end",
                "turn_end",
                "agent_end",
            ]
        );
        trial.agent.events().off("a");
        trial.agent.events().off("b");
        assert_eq!(trial.prompt("Bye").await, Taken::Ran(Stop::Done));
        assert_eq!(
            trial.said()[6..],
            ["user: Bye", "assistant: Fine."],
            "what was kept goes with one prompt only"
        );
        trial.goes_on().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_system_prompt_is_changed_by_one_after_the_other_and_for_one_run_only() {
    for layout in LayoutName::ALL {
        let trial =
            Trial::new(Given { layout, script: READ, clock: Clock::Frozen, ..Given::default() }).await;
        assert_eq!(trial.prompt("Hello").await, Taken::Ran(Stop::Done));
        let [plain] = &trial.sent()[..1] else { panic!("one request") };
        let plain = system(plain);
        let notes = Notes::default();
        for owner in ["a", "b"] {
            let notes = notes.clone();
            on_start(&trial, owner, move |event| {
                notes.add(event.system_prompt.clone());
                let changed =
                    (event.prompt == "Change").then(|| format!("{}\n{owner} was here.", event.system_prompt));
                Ok(BeforeAgentStartReply { message: None, system_prompt: changed })
            });
        }
        assert_eq!(trial.prompt("Change").await, Taken::Ran(Stop::Done));
        assert_eq!(trial.prompt("Do not").await, Taken::Ran(Stop::Done));
        assert_eq!(trial.agent.messages().len(), 2 + 2 + 2 + 2, "{:?}", trial.said());
        let seen: Vec<String> = trial.sent().iter().map(|body| system(body)).collect();
        let changed = format!("{plain}\na was here.\nb was here.");
        assert_eq!(seen, [plain.clone(), plain.clone(), changed, plain.clone()], "{layout}");
        let base = plain.clone();
        assert_eq!(notes.all(), [base.clone(), format!("{base}\na was here."), base.clone(), base]);
        trial.goes_on().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_system_prompt_holds_for_every_turn_of_its_run() {
    for layout in LayoutName::ALL {
        let trial =
            Trial::new(Given { layout, script: READ, clock: Clock::Frozen, ..Given::default() }).await;
        on_start(&trial, "a", |_| {
            Ok(BeforeAgentStartReply { message: None, system_prompt: Some("Be brief.".into()) })
        });
        let running = trial.begin("How many lines?");
        trial.until("tool_execution_start", 1).await;
        trial.follow_up("Thanks").await;
        assert_eq!(running.await.unwrap(), Taken::Ran(Stop::Done));
        let systems: Vec<String> = trial.sent().iter().map(|body| system(body)).collect();
        assert_eq!(systems, ["Be brief."; 3], "{layout}");
        trial.goes_on().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_fails_at_the_start_is_reported_and_passed_over() {
    let trial = Trial::new(Given::default()).await;
    on_start(&trial, "broken", |_| Err("no idea".into()));
    on_start(&trial, "panicking", |event| panic!("about {}", event.prompt));
    on_start(&trial, "whole", |_| {
        Ok(BeforeAgentStartReply { message: Some(custom("here", true)), system_prompt: None })
    });
    assert_eq!(trial.prompt("Hello").await, Taken::Ran(Stop::Done));
    assert_eq!(trial.said(), ["user: Hello", "custom: here", "assistant: Fine."]);
    let fault = |owner: &str, what: &str| json!({"type": "handler_failed", "owner": owner, "event": "before_agent_start", "what": what});
    assert_eq!(
        trial.told("handler_failed"),
        [fault("broken", "no idea"), fault("panicking", "it broke (panicked)")]
    );
    trial.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_handler_sees_the_expanded_prompt() {
    let files: &[(&str, &str)] = &[("templates/fix.md", "Fix $1.")];
    let trial = Trial::new(Given { files, ..Given::default() }).await;
    let notes = Notes::default();
    let seen = notes.clone();
    on_start(&trial, "a", move |event| {
        seen.add(event.prompt);
        Ok(BeforeAgentStartReply::default())
    });
    assert_eq!(trial.prompt("/fix it").await, Taken::Ran(Stop::Done));
    assert_eq!(notes.all(), ["Fix it."]);
    trial.goes_on().await;
}
