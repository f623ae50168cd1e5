use std::path::Path;

use hardpan_agent::events::{UserBash, UserBashReply};
use hardpan_agent::{Stop, Taken, Tell};
use hardpan_context::LayoutName;
use hardpan_prompt::Body;

use crate::stage::{Given, Stage, is_paired, line};

const SCRIPT: &str = "
turns:
  - when: {equals: Wait.}
    text: Waiting.
    tool_calls:
      - {name: bash, arguments: {command: 'until [ -e go ]; do sleep 0.01; done; echo gone'}}
      - {name: ls, arguments: {path: .}}
default: {text: Fine.}
";

fn given(layout: LayoutName) -> Given {
    Given { layout, script: SCRIPT.into(), ..Given::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_shown_to_the_model_unless_it_is_the_persons_own() {
    for layout in LayoutName::ALL {
        let stage = Stage::new(given(layout)).await;
        let ran = stage.agent.bash("echo open; exit 3".into(), Tell::Model).await.unwrap();
        assert!(matches!(
            *ran.body,
            Body::BashExecution { exit_code: Some(3), exclude_from_context: false, .. }
        ));
        stage.agent.bash("echo secret".into(), Tell::Nobody).await.unwrap();
        stage.say("Well?").await;
        let body = stage.last_sent().body;
        assert!(body.contains("Ran `echo open; exit 3`") && body.contains("exited with code 3"), "{layout}");
        assert!(!body.contains("secret"), "{layout}");
        assert!(line(&stage.agent.messages()[1]).contains("secret"), "it is stored all the same");
        stage.goes_on().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_prints_while_the_agent_works_waits_for_the_end_of_the_turn() {
    for layout in LayoutName::ALL {
        let stage = Stage::new(given(layout)).await;
        let running = stage.begin("Wait.");
        stage.until(|| !stage.told("tool_execution_start").is_empty()).await;
        let before = stage.agent.messages().len();
        stage.agent.bash("echo meanwhile".into(), Tell::Model).await.unwrap();
        assert_eq!(stage.agent.messages().len(), before, "not between a call and its result");
        stage.write("go", "");
        assert_eq!(running.await.unwrap(), Taken::Ran(Stop::Done));
        let lines: Vec<String> = stage.agent.messages().iter().map(line).collect();
        let expected = [
            "user: Wait.",
            "assistant: Waiting. [bash] [ls]",
            "result: gone\n",
            "result: go",
            "ran echo meanwhile: meanwhile\n",
            "assistant: Fine.",
        ];
        assert_eq!(lines, expected, "{layout}");
        is_paired(&stage.agent.messages());
        assert!(stage.last_sent().body.contains("meanwhile"));
        stage.goes_on().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_prints_during_the_last_answer_is_stored_when_the_run_ends() {
    let script = "default: {text: one two three four five six seven, pace: 20ms}".to_owned();
    let stage = Stage::new(Given { script, ..Given::default() }).await;
    let running = stage.begin("Talk.");
    stage.until(|| !stage.told("message_update").is_empty()).await;
    stage.agent.bash("echo late".into(), Tell::Model).await.unwrap();
    assert_eq!(running.await.unwrap(), Taken::Ran(Stop::Done));
    let last = stage.agent.messages().last().map(line);
    assert_eq!(last.as_deref(), Some("ran echo late: late\n"));
    let session = stage.stored().await;
    assert_eq!(session.branch(None).unwrap().messages, stage.agent.messages());
    stage.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_a_command_ends_every_process_of_it_and_keeps_what_it_printed() {
    let stage = Stage::new(given(LayoutName::Strata)).await;
    let commands = ["one", "two"].map(|name| {
        let command = format!("trap '' TERM; sleep 1000 & echo $! > {name}.pid; echo begun; wait");
        let agent = stage.agent.clone();
        tokio::spawn(async move { agent.bash(command, Tell::Model).await })
    });
    let begun = |name: &str| {
        std::fs::read_to_string(stage.file(&format!("{name}.pid"))).is_ok_and(|text| text.ends_with('\n'))
    };
    stage.until(|| begun("one") && begun("two")).await;
    stage.until(|| stage.told("tool_execution_update").len() >= 2).await;
    stage.agent.abort_bash();
    for command in commands {
        let message = command.await.unwrap().unwrap();
        let Body::BashExecution { output, exit_code: None, .. } = &*message.body else {
            panic!("{message:?}")
        };
        assert_eq!(output.as_str(), "begun\n");
    }
    for name in ["one", "two"] {
        let pid = stage.read(&format!("{name}.pid"));
        stage.until(|| is_gone(pid.trim())).await;
    }
    stage.say("Well?").await;
    assert!(stage.last_sent().body.contains("The command was stopped."));
    // The next one is not stopped with them.
    let ran = stage.agent.bash("echo on".into(), Tell::Model).await.unwrap();
    assert_eq!(line(&ran), "ran echo on: on\n");
    stage.goes_on().await;
}

/// Whether a process has ended, reaped or not.
fn is_gone(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with('Z'))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_runs_the_command_in_its_own_way() {
    let stage = Stage::new(given(LayoutName::Strata)).await;
    stage.agent.events().on::<UserBash, _>("ssh", |event, _| async move {
        let there =
            event.command.strip_prefix("there ").map(|command| format!("{command} on the other machine\n"));
        Ok(there.map(|output| UserBashReply { output, exit_code: Some(0) }))
    });
    let ran = stage.agent.bash("there touch a".into(), Tell::Model).await.unwrap();
    assert_eq!(line(&ran), "ran there touch a: touch a on the other machine\n");
    stage.agent.bash("touch b".into(), Tell::Model).await.unwrap();
    assert!(!stage.file("a").exists() && stage.file("b").exists());
    stage.say("Well?").await;
    assert!(stage.last_sent().body.contains("on the other machine"));
}
