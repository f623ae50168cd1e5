use hardpan_agent::{Stop, Taken};
use hardpan_context::LayoutName;
use serde_json::json;

use crate::props::Notes;
use crate::trial::{Given, Trial};

const TEXT: &str = "
turns:
  - {text: one two three four five six seven eight nine ten eleven twelve}
default: {text: Fine.}
";

fn error(trial: &Trial, taken: Taken) -> String {
    let Taken::Ran(Stop::Error { message }) = taken else { panic!("{taken:?}") };
    assert_eq!(
        trial.told("agent_end").last().expect("an end")["stop"],
        json!({"reason": "error", "message": message})
    );
    message
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_too_busy_is_asked_again_with_a_note() {
    for layout in LayoutName::ALL {
        let trial = Trial::new(Given { layout, faults: "status=529,times=2", ..Given::default() }).await;
        assert_eq!(trial.prompt("Hello").await, Taken::Ran(Stop::Done));
        assert_eq!(trial.said(), ["user: Hello", "assistant: Fine."]);
        let notes: Vec<String> =
            trial.told("note").iter().map(|note| note["text"].as_str().unwrap().to_owned()).collect();
        assert_eq!(notes.len(), 2);
        assert!(notes[0].contains("529") && notes[0].contains("(2 of 5)"), "{notes:?}");
        assert!(notes[1].contains("(3 of 5)"), "{notes:?}");
        let sent = trial.sent();
        assert_eq!(sent.len(), 3);
        assert!(sent.iter().all(|body| *body == sent[0]), "what is sent again is the same");
        trial.goes_on().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_that_does_not_pass_ends_the_run_and_keeps_the_prompt() {
    for layout in LayoutName::ALL {
        let trial = Trial::new(Given { layout, faults: "status=401,times=1", ..Given::default() }).await;
        let taken = trial.prompt("Hello").await;
        let message = error(&trial, taken);
        assert!(
            message.contains("401") && message.contains("`hardpan providers` names its variable"),
            "{message}"
        );
        assert_eq!(trial.sent().len(), 1);
        assert_eq!(trial.said(), ["user: Hello"]);
        assert_eq!(
            trial.order(),
            [
                "message_start",
                "message_end",
                "agent_start",
                "turn_start",
                "before_provider_request",
                "agent_end"
            ],
            "nothing was said, so there is no message and no end of the turn"
        );
        assert_eq!(trial.prompt("Hello?").await, Taken::Ran(Stop::Done));
        assert_eq!(trial.said()[1..], ["user: Hello?", "assistant: Fine."]);
        trial.goes_on().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_cut_is_kept_and_gone_on_from() {
    for layout in LayoutName::ALL {
        for fault in ["cut=900,times=1", "stall=900,for=10ms,times=1"] {
            let trial = Trial::new(Given { layout, faults: fault, script: TEXT, ..Given::default() }).await;
            let taken = trial.prompt("Talk").await;
            let message = error(&trial, taken);
            assert!(message.contains("broke off"), "{message}");
            let updates = trial.told("message_update");
            let heard: String =
                updates.iter().map(|event| event["delta"]["text"].as_str().unwrap()).collect();
            assert!(heard.starts_with("one two") && !heard.contains("twelve"), "{heard}");
            assert_eq!(
                trial.said(),
                ["user: Talk".to_owned(), format!("assistant: {heard} (cut)")],
                "{fault}"
            );
            assert_eq!(trial.told("turn_end").len(), 1);
            assert_eq!(trial.prompt("Go on").await, Taken::Ran(Stop::Done));
            assert!(trial.heard().last().unwrap().contains(&format!("assistant: {heard}")), "{layout}");
            trial.goes_on().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_in_the_middle_of_an_answer_keeps_what_came() {
    for layout in LayoutName::ALL {
        let trial =
            Trial::new(Given { layout, faults: "error=900,times=1", script: TEXT, ..Given::default() }).await;
        let taken = trial.prompt("Talk").await;
        let message = error(&trial, taken);
        assert!(message.contains("overloaded"), "{message}");
        let said = trial.said();
        assert!(said[1].starts_with("assistant: one two") && said[1].ends_with(" (error)"), "{said:?}");
        trial.goes_on().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_in_the_middle_of_a_call_leaves_a_valid_conversation() {
    let script = "
turns:
  - text: Two things.
    tool_calls: [{id: c1, name: paint, arguments: {colour: blue}}, {id: c2, name: paint, arguments: {colour: a very long name of a colour}}]
default: {text: Fine.}
";
    for layout in LayoutName::ALL {
        // Wherever it is cut: before, within and after each of the calls.
        for at in (700..2700).step_by(250) {
            let faults = Box::leak(format!("cut={at},times=1").into_boxed_str());
            let trial = Trial::new(Given { layout, faults, script, ..Given::default() }).await;
            let taken = trial.prompt("Paint").await;
            if matches!(taken, Taken::Ran(Stop::Done)) {
                assert!(
                    trial.said().last().unwrap() == "assistant: Fine.",
                    "{at}: it came whole, or was sent again"
                );
            } else {
                error(&trial, taken);
                assert!(trial.told("tool_execution_start").is_empty());
            }
            assert_eq!(trial.prompt("Go on").await, Taken::Ran(Stop::Done), "{layout} cut at {at}");
            trial.is_sound().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_answer_is_an_answer() {
    let trial = Trial::new(Given::default()).await;
    let usage = json!({"input_tokens": 5, "output_tokens": 1});
    let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "x", "content": [], "usage": usage});
    let events = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ];
    trial.answer_once(&events, &Notes::default());
    // The model had nothing to say. What follows must still be accepted.
    assert_eq!(trial.prompt("Hello").await, Taken::Ran(Stop::Done));
    assert_eq!(trial.said(), ["user: Hello", "assistant: "]);
    trial.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_too_long_or_refused_says_so() {
    for (stop, reason) in [("length", Stop::Length), ("refusal", Stop::Refused)] {
        let script = format!("turns: [{{text: Well, stop: {stop}}}]\ndefault: {{text: Fine.}}");
        let script = Box::leak(script.into_boxed_str());
        for layout in LayoutName::ALL {
            let trial = Trial::new(Given { layout, script, ..Given::default() }).await;
            assert_eq!(trial.prompt("Hello").await, Taken::Ran(reason.clone()));
            assert_eq!(trial.said(), ["user: Hello".to_owned(), format!("assistant: Well ({stop})")]);
            trial.goes_on().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_stays_after_an_error() {
    for layout in LayoutName::ALL {
        let script = "
turns:
  - {text: one two three four five six seven eight}
default: {text: Fine.}
";
        let trial =
            Trial::new(Given { layout, script, faults: "cut=1100,times=1", ..Given::default() }).await;
        let (running, held) = trial.begin_and_hold("Talk").await;
        trial.steer("steered").await;
        trial.follow_up("followed").await;
        held.let_go();
        error(&trial, running.await.unwrap());
        let waiting = trial.agent.waiting();
        assert_eq!((waiting.steering.len(), waiting.follow_up.len()), (1, 1));
        assert_eq!(trial.prompt("Go on").await, Taken::Ran(Stop::Done));
        let mut said = trial.said();
        said.retain(|line| line.starts_with("user"));
        assert_eq!(said, ["user: Talk", "user: Go on", "user: steered", "user: followed"]);
        assert!(trial.agent.waiting().is_empty());
        trial.goes_on().await;
    }
}
