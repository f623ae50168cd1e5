use std::path::Path;

use hardpan_agent::events::{
    MessageUpdate, ToolExecutionStart, ToolExecutionUpdate, UserBash, UserBashReply,
};
use hardpan_agent::{InputOutcome, RunEnd, ShellVisibility};
use hardpan_context::LayoutName;
use hardpan_prompt::MessageBody;
use hardpan_test_support::{TestAgent, TestAgentBuilder, assert_calls_paired, line};

const SCRIPT: &str = "
turns:
  - when: {equals: Wait.}
    text: Waiting.
    tool_calls:
      - {name: bash, arguments: {command: 'until [ -e go ]; do sleep 0.01; done; echo gone'}}
      - {name: ls, arguments: {path: .}}
default: {text: Fine.}
";

fn setup(layout: LayoutName) -> TestAgentBuilder {
    TestAgent::with_real_tools().layout(layout).script(SCRIPT)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_shown_to_the_model_unless_it_is_the_persons_own() {
    for layout in LayoutName::ALL {
        let test_agent = setup(layout).start().await;
        let ran = test_agent
            .agent
            .run_shell_command("echo open; exit 3".into(), ShellVisibility::Model)
            .await
            .unwrap();
        assert!(matches!(
            *ran.body,
            MessageBody::BashExecution { exit_code: Some(3), exclude_from_context: false, .. }
        ));
        test_agent.agent.run_shell_command("echo secret".into(), ShellVisibility::UserOnly).await.unwrap();
        test_agent.say("Well?").await;
        let body = test_agent.last_sent().body;
        assert!(body.contains("Ran `echo open; exit 3`") && body.contains("exited with code 3"), "{layout}");
        assert!(!body.contains("exit code 3"), "{layout}: the exit code is told once");
        assert!(!body.contains("secret"), "{layout}");
        assert!(line(&test_agent.agent.messages()[1]).contains("secret"), "it is stored all the same");
        test_agent.assert_copy_sends_the_same().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_prints_while_the_agent_works_waits_for_the_end_of_the_turn() {
    for layout in LayoutName::ALL {
        let test_agent = setup(layout).start().await;
        let running = test_agent.begin("Wait.");
        test_agent.until(|| !test_agent.events_of::<ToolExecutionStart>().is_empty()).await;
        let before = test_agent.agent.messages().len();
        test_agent.agent.run_shell_command("echo meanwhile".into(), ShellVisibility::Model).await.unwrap();
        assert_eq!(test_agent.agent.messages().len(), before, "not between a call and its result");
        test_agent.write("go", "");
        assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Done));
        let lines: Vec<String> = test_agent.agent.messages().iter().map(line).collect();
        let expected = [
            "user: Wait.",
            "assistant: Waiting. [bash] [ls]",
            "result: gone\n",
            "result: go",
            "ran echo meanwhile: meanwhile\n",
            "assistant: Fine.",
        ];
        assert_eq!(lines, expected, "{layout}");
        assert_calls_paired(&test_agent.agent.messages());
        assert!(test_agent.last_sent().body.contains("meanwhile"));
        test_agent.assert_copy_sends_the_same().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_prints_during_the_last_answer_is_stored_when_the_run_ends() {
    let script = "default: {text: one two three four five six seven, pace: 20ms}".to_owned();
    let test_agent = TestAgent::with_real_tools().script(script).start().await;
    let running = test_agent.begin("Talk.");
    test_agent.until(|| !test_agent.events_of::<MessageUpdate>().is_empty()).await;
    test_agent.agent.run_shell_command("echo late".into(), ShellVisibility::Model).await.unwrap();
    assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Done));
    let last = test_agent.agent.messages().last().map(line);
    assert_eq!(last.as_deref(), Some("ran echo late: late\n"));
    let session = test_agent.stored().await;
    assert_eq!(session.branch(None).unwrap().messages, test_agent.agent.messages());
    test_agent.assert_copy_sends_the_same().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_a_command_ends_every_process_of_it_and_keeps_what_it_printed() {
    let test_agent = setup(LayoutName::Strata).start().await;
    let commands = ["one", "two"].map(|name| {
        let command = format!("trap '' TERM; sleep 1000 & echo $! > {name}.pid; echo begun; wait");
        let agent = test_agent.agent.clone();
        tokio::spawn(async move { agent.run_shell_command(command, ShellVisibility::Model).await })
    });
    let begun = |name: &str| {
        std::fs::read_to_string(test_agent.file(&format!("{name}.pid")))
            .is_ok_and(|text| text.ends_with('\n'))
    };
    test_agent.until(|| begun("one") && begun("two")).await;
    test_agent.until(|| test_agent.events_of::<ToolExecutionUpdate>().len() >= 2).await;
    test_agent.agent.abort_shell_command();
    for command in commands {
        let message = command.await.unwrap().unwrap();
        let MessageBody::BashExecution { output, exit_code: None, .. } = &*message.body else {
            panic!("{message:?}")
        };
        assert_eq!(output.as_str(), "begun\n");
    }
    for name in ["one", "two"] {
        let pid = test_agent.read(&format!("{name}.pid"));
        test_agent.until(|| is_gone(pid.trim())).await;
    }
    test_agent.say("Well?").await;
    assert!(test_agent.last_sent().body.contains("The command was stopped."));
    // The next one is not stopped with them.
    let ran = test_agent.agent.run_shell_command("echo on".into(), ShellVisibility::Model).await.unwrap();
    assert_eq!(line(&ran), "ran echo on: on\n");
    test_agent.assert_copy_sends_the_same().await;
}

/// Whether a process has ended, reaped or not.
fn is_gone(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with('Z'))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_runs_the_command_in_its_own_way() {
    let test_agent = setup(LayoutName::Strata).start().await;
    test_agent.agent.events().subscribe::<UserBash, _>("ssh", |event, _| async move {
        let there =
            event.command.strip_prefix("there ").map(|command| format!("{command} on the other machine\n"));
        Ok(there.map(|output| UserBashReply { output, exit_code: Some(0) }))
    });
    let ran =
        test_agent.agent.run_shell_command("there touch a".into(), ShellVisibility::Model).await.unwrap();
    assert_eq!(line(&ran), "ran there touch a: touch a on the other machine\n");
    test_agent.agent.run_shell_command("touch b".into(), ShellVisibility::Model).await.unwrap();
    assert!(!test_agent.file("a").exists() && test_agent.file("b").exists());
    test_agent.say("Well?").await;
    assert!(test_agent.last_sent().body.contains("on the other machine"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_may_fail_as_often_as_files_change_in_between() {
    let mut turns = String::new();
    for n in 1..=5 {
        turns.push_str("  - tool_calls: [{name: bash, arguments: {command: exit 1}}]\n");
        turns.push_str(&format!(
            "  - tool_calls: [{{name: write, arguments: {{path: {n}.txt, content: noted}}}}]\n"
        ));
    }
    let script = format!("turns:\n{turns}default: {{text: Fine.}}");
    let test_agent = TestAgent::with_real_tools().script(script).start().await;
    assert_eq!(test_agent.prompt("Try.").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(test_agent.events_of::<ToolExecutionStart>().len(), 10);
}
