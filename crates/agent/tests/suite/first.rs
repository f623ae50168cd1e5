use hardpan_agent::{Stop, Taken};
use hardpan_context::LayoutName;

use crate::trial::{Given, Trial};

const READ: &str = "
turns:
  - text: Let me look.
    tool_calls: [{name: read, arguments: {path: a.txt}}]
  - when: {has_tool_result: read}
    text: It has two lines.
default: {text: Go on.}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_is_answered_with_a_tool_in_every_layout() {
    for layout in LayoutName::ALL {
        let trial = Trial::new(Given { layout, script: READ, ..Given::default() }).await;
        std::fs::write(trial.folder.path().join("open.md"), "# Open\n").unwrap();
        assert_eq!(trial.prompt("How many lines has a.txt?").await, Taken::Ran(Stop::Done), "{layout}");
        assert_eq!(
            trial.said(),
            [
                "user: How many lines has a.txt?",
                "assistant: Let me look. [read]",
                "result: first line\nsecond line\n",
                "assistant: It has two lines.",
            ]
        );
        let order: Vec<String> = trial.order().into_iter().filter(|name| name != "message_update").collect();
        assert_eq!(
            order,
            [
                "message_start", "message_end", "agent_start",
                "turn_start", "message_start", "message_end", "tool_execution_start", "tool_execution_end",
                "message_start", "message_end", "turn_end",
                "turn_start", "message_start", "message_end", "turn_end",
                "agent_end",
            ]
        );
        trial.is_sound().await;
        let trial = trial.resume();
        assert_eq!(trial.prompt("And now?").await, Taken::Ran(Stop::Done));
        assert_eq!(trial.said().last().unwrap(), "assistant: Go on.");
        trial.is_sound().await;
    }
}
