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
        trial.write("open.md", "# Open\n");
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
        assert_eq!(
            trial.order(),
            [
                "message_start",
                "message_end",
                "agent_start",
                "turn_start",
                "before_provider_request",
                "message_start",
                "message_end",
                "tool_execution_start",
                "tool_execution_end",
                "message_start",
                "message_end",
                "turn_end",
                "turn_start",
                "before_provider_request",
                "message_start",
                "message_end",
                "turn_end",
                "agent_end",
            ]
        );
        let trial = trial.goes_on().await;
        assert_eq!(trial.said().last().unwrap(), "assistant: Go on.");
    }
}
