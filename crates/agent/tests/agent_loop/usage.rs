use hardpan_agent::events::AgentEnd;
use hardpan_agent::{InputOutcome, RunEnd};
use hardpan_context::LayoutName;
use hardpan_test_support::TestAgent;
use serde_json::{Value, json};

const READ: &str = "
turns:
  - text: Let me look.
    tool_calls: [{name: read, arguments: {path: a.txt}}]
  - when: {has_tool_result: read}
    text: It has two lines.
default: {text: Fine.}
";

/// What the simulator billed for an answer: input, read, written, output.
fn billed(answer: &str) -> [u64; 4] {
    let mut usage = [0; 4];
    for line in answer.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let Ok(event) = serde_json::from_str::<Value>(line) else { break }; // it was cut off here
        let told =
            if event["type"] == "message_start" { &event["message"]["usage"] } else { &event["usage"] };
        let fields =
            ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"];
        for (sum, field) in usage.iter_mut().zip(fields) {
            *sum = told[field].as_u64().unwrap_or(*sum);
        }
    }
    usage
}

fn spent(value: &Value) -> [u64; 4] {
    ["input", "read", "written", "output"].map(|field| value[field].as_u64().expect("a count"))
}

fn sum(bills: &[[u64; 4]]) -> [u64; 4] {
    [0, 1, 2, 3].map(|column| bills.iter().map(|bill| bill[column]).sum())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_run_tells_what_the_provider_billed() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).script(READ).start().await;
        test_agent.write("open.md", &"A line.\n".repeat(400));
        for (text, requests) in [("How many lines?", 2), ("And?", 3), ("Well?", 4)] {
            assert_eq!(test_agent.prompt(text).await, InputOutcome::Ran(RunEnd::Done));
            let usage = json!(test_agent.events_of::<AgentEnd>().pop().unwrap().token_usage);
            let bills: Vec<[u64; 4]> =
                test_agent.sent_requests().iter().map(|sent| billed(&sent.answer)).collect();
            assert_eq!(bills.len(), requests);
            assert_eq!(spent(&usage["last_request"]), bills[requests - 1], "{layout}: {text}");
            assert_eq!(spent(&usage["session"]), sum(&bills), "{layout}: {text}");
            assert_eq!(usage["requests"], json!(requests));
            assert!(usage["session"]["dollars"].as_f64() > usage["last_request"]["dollars"].as_f64());
        }
        let bills: Vec<[u64; 4]> =
            test_agent.sent_requests().iter().map(|sent| billed(&sent.answer)).collect();
        if layout == LayoutName::Strata {
            assert!(sum(&bills)[1] > 0, "it reads from the cache");
        }
        // What is stored adds up to the same.
        test_agent.assert_stored_matches_memory().await;
        let session = test_agent.session();
        let stored: Vec<[u64; 4]> = session
            .requests()
            .map(|request| {
                let usage = &request.usage;
                [usage.input, usage.cache_read, usage.cache_write_5m + usage.cache_write_1h, usage.output]
            })
            .collect();
        assert_eq!(stored, bills, "{layout}");
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_run_tells_what_the_last_request_held() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).start().await;
        test_agent.write("open.md", "# Open\n");
        assert_eq!(test_agent.prompt("Hello").await, InputOutcome::Ran(RunEnd::Done));
        let ended = test_agent.events_of::<AgentEnd>();
        let breakdown = ended[0].token_usage.breakdown.clone().unwrap();
        assert_eq!((breakdown.layout, breakdown.model.as_str()), (layout, "claude-sonnet-5"));
        let total: usize = breakdown.blocks.iter().map(|block| block.tokens).sum();
        assert_eq!(breakdown.total_tokens, total, "{layout}: the regions are the whole");
        assert_eq!(breakdown.tier_info.is_some(), layout == LayoutName::Tiers, "{layout}: {breakdown:#?}");
        // As JSON it is what `get_context` and `hardpan context --json` give.
        assert_eq!(json!(ended[0])["token_usage"]["tiers"], json!(test_agent.agent.breakdown()));
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_stopped_is_billed_for_what_is_known_of_it() {
    let script = "
turns:
  - {text: one two three four five six seven eight nine ten}
default: {text: Fine.}
";
    for layout in LayoutName::ALL {
        let test_agent =
            TestAgent::builder().layout(layout).script(script).faults("stall=900,times=1").start().await;
        let running = test_agent.begin("Talk");
        test_agent.until_heard("two").await;
        test_agent.agent.abort();
        assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Aborted));
        let usage = json!(test_agent.events_of::<AgentEnd>().pop().unwrap().token_usage);
        let bill = billed(&test_agent.sent_requests()[0].answer);
        assert!(bill[0] + bill[2] > 0);
        assert_eq!(spent(&usage["session"]), bill, "{layout}: the beginning of the answer told the input");
        test_agent.assert_continues().await;
    }
}
