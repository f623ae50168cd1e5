use hardpan_agent::{AgentSettings, Stop};
use hardpan_context::LayoutName;
use hardpan_prompt::Body;

use crate::stage::{ASKED, Given, Stage, is_paired, line, long};

fn settings(compact_at: f64) -> AgentSettings {
    AgentSettings { compact_at, ..Given::default().settings }
}

/// A script that reads a file in each of so many rounds, and sums up where it is asked to.
fn reading(rounds: usize, summary: &str) -> String {
    let calls: Vec<String> = (0..rounds)
        .map(|n| format!("  - when: {{has_tool_result: read}}\n    text: Round {n}.\n    tool_calls: [{{name: read, arguments: {{path: r.txt}}}}]"))
        .collect();
    format!(
        "turns:
  - when: {{contains: {ASKED}}}
{summary}
    repeat: always
  - when: {{contains: Work.}}
    tool_calls: [{{name: read, arguments: {{path: r.txt}}}}]
{}
default: {{text: Done.}}",
        calls.join("\n")
    )
}

const SUMMARY: &str = "    text: What was done.";

#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_is_nearly_full_makes_room_in_the_middle_of_a_run() {
    for layout in LayoutName::ALL {
        for model in ["claude-sonnet-5", "gpt-4.1"] {
            let script = reading(12, SUMMARY);
            let given =
                Given { layout, model, window: 26_000, script, settings: settings(0.6), ..Given::default() };
            let stage = Stage::new(given).await;
            stage.write("r.txt", &long("rope", 2000));
            stage.say("Work.").await;
            let compactions = stage.told("session_compact");
            assert!(
                !compactions.is_empty() && compactions.len() < 7,
                "{layout} {model}: {}",
                compactions.len()
            );
            assert!(stage.sent().iter().all(|sent| sent.status == 200), "{layout} {model}");
            let messages = stage.agent.messages();
            assert!(line(&messages[0]).starts_with("summary: What was done."));
            assert_eq!(messages.last().map(line).as_deref(), Some("assistant: Done."));
            is_paired(&messages);
            // What the end of a run tells is the run's own, and there is no summary in it.
            let ended = stage.told("agent_end").pop().unwrap();
            let told = ended["messages"].as_array().unwrap();
            assert!(!told.is_empty() && !ended["messages"].to_string().contains("What was done."));
            stage.goes_on().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_tool_has_just_printed_counts_before_it_is_sent() {
    // Half of the window comes with one result: waiting for the next request would be too late.
    let given = Given { model: "gpt-4.1", window: 14_000, script: reading(0, SUMMARY), ..Given::default() };
    let stage = Stage::new(Given { settings: settings(0.8), ..given }).await;
    stage.write("r.txt", &long("rope", 4500));
    for about in ["anchor", "bowsprit"] {
        stage.say(&long(about, 1500)).await;
    }
    stage.say("Work.").await;
    assert_eq!(stage.told("session_compact").len(), 1);
    let sent = stage.last_sent().body;
    assert!(sent.contains("What was done.") && sent.contains("rope 1400"), "the result is there, whole");
    is_paired(&stage.agent.messages());
    stage.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_that_fails_is_not_tried_with_every_turn() {
    let script = reading(4, "    text: \"\\n\"");
    let stage =
        Stage::new(Given { window: 22_000, script, settings: settings(0.3), ..Given::default() }).await;
    stage.write("r.txt", &long("rope", 2000));
    stage.say("Work.").await;
    assert_eq!(stage.sent().iter().filter(|sent| sent.body.contains(ASKED)).count(), 2);
    let notes: Vec<String> = stage.told("note").iter().map(|note| note["text"].to_string()).collect();
    assert_eq!(notes, ["\"not compacted: the summary failed (it was empty); nothing has changed\""]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_was_just_compacted_is_not_nearly_full() {
    let given = Given { model: "gpt-4.1", window: 22_000, script: reading(0, SUMMARY), ..Given::default() };
    let stage = Stage::new(Given { settings: settings(0.4), ..given }).await;
    for about in ["anchor", "bowsprit"] {
        stage.say(&long(about, 2000)).await;
    }
    let told = stage.told("session_compact").len();
    stage.agent.compact(None).await.unwrap();
    stage.say(&long("compass", 1500)).await;
    assert_eq!(stage.told("session_compact").len(), told + 1, "the person's own, and no other");
}

/// gpt-4 takes 8,192 tokens; the agent believes in more.
fn believing(window: u32, script: String) -> Given {
    Given { model: "gpt-4", window, script, ..Given::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_too_long_is_compacted_and_sent_once_more() {
    for layout in LayoutName::ALL {
        let stage = Stage::new(Given { layout, ..believing(16_000, reading(0, SUMMARY)) }).await;
        stage.write("r.txt", &long("rope", 900));
        let mut stop = Stop::Done;
        for about in ["anchor", "bowsprit", "compass", "davit", "ensign", "flag"] {
            stop = stage.prompt(&long(about, 900)).await;
            if !stage.told("session_compact").is_empty() {
                break;
            }
        }
        assert_eq!(stop, Stop::Done, "{layout}");
        assert_eq!(stage.told("session_compact").len(), 1, "{layout}");
        let sent = stage.sent();
        let refused: Vec<usize> = (0..sent.len()).filter(|at| sent[*at].status == 400).collect();
        assert!(!refused.is_empty(), "the window was full");
        assert_eq!(sent.last().map(|sent| sent.status), Some(200));
        assert!(sent.last().is_some_and(|sent| sent.body.contains("What was done.")));
        let messages = stage.agent.messages();
        assert!(matches!(*messages[0].body, Body::CompactionSummary { .. }));
        assert_eq!(messages.last().map(line).as_deref(), Some("assistant: Done."));
        // The agent goes on where it was, and so does one that opens the session.
        stage.say("Work.").await;
        is_paired(&stage.agent.messages());
        stage.goes_on().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_many_tools_that_is_too_long_is_summed_up_in_a_shorter_form() {
    let stage = Stage::new(believing(16_000, reading(9, SUMMARY))).await;
    stage.write("r.txt", &long("rope", 700));
    stage.say("Work.").await;
    let sent = stage.sent();
    let asked: Vec<_> = sent.iter().filter(|sent| sent.body.contains(ASKED)).collect();
    assert!(asked.last().is_some_and(|asked| asked.status == 200 && asked.body.contains("Round 2.")));
    assert!(!stage.told("session_compact").is_empty());
    is_paired(&stage.agent.messages());
    stage.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_still_too_long_ends_the_run() {
    let stage = Stage::new(believing(60_000, reading(0, SUMMARY))).await;
    for about in ["anchor", "bowsprit"] {
        stage.say(&long(about, 900)).await;
    }
    let messages = stage.agent.messages().len();
    let Stop::TooLong { message } = stage.prompt(&long("chain", 9000)).await else { panic!("it fits") };
    assert!(message.contains("8192"), "{message}");
    // Refused, compacted or not, sent once more at most.
    let refused = stage.sent().iter().filter(|sent| sent.status == 400 && !sent.body.contains(ASKED)).count();
    assert!((1..=2).contains(&refused), "{refused}");
    assert!(stage.agent.messages().len() <= messages + 1, "what was asked is kept");
    assert!(stage.agent.messages().iter().any(|message| line(message).contains("chain 7")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_does_not_fit_is_never_left_out_of_its_own_request() {
    for layout in LayoutName::ALL {
        let script = "default: {text: Done.}".to_owned();
        let stage = Stage::new(Given { layout, window: 14_000, script, ..Given::default() }).await;
        stage.say("Hello.").await;
        let before = stage.sent().len();
        let stop = stage.prompt(&long("anchor", 20_000)).await;
        assert!(
            matches!(&stop, Stop::TooLong { message } if message.contains("too long")),
            "{layout}: {stop:?}"
        );
        let asked = stage.sent().into_iter().skip(before).filter(|sent| !sent.body.contains(ASKED));
        assert_eq!(asked.count(), 0, "{layout}: nothing was asked without the person's words");
        // It is in the conversation, and can be left by going back.
        assert!(line(stage.agent.messages().last().unwrap()).starts_with("user: anchor"), "{layout}");
    }
}
