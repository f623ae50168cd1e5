use hardpan_agent::{InputOutcome, RunEnd};
use hardpan_context::LayoutName;
use hardpan_test_support::TestAgent;

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
        let test_agent = TestAgent::builder().layout(layout).script(READ).start().await;
        test_agent.write("open.md", "# Open\n");
        assert_eq!(
            test_agent.prompt("How many lines has a.txt?").await,
            InputOutcome::Ran(RunEnd::Done),
            "{layout}"
        );
        assert_eq!(
            test_agent.transcript_lines(),
            [
                "user: How many lines has a.txt?",
                "assistant: Let me look. [read]",
                "result: first line\nsecond line\n",
                "assistant: It has two lines.",
            ]
        );
        assert_eq!(
            test_agent.order(),
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
        let test_agent = test_agent.assert_continues().await;
        assert_eq!(test_agent.transcript_lines().last().unwrap(), "assistant: Go on.");
    }
}
