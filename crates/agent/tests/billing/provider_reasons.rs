//! The provider's own reason of a cache loss, asked for with every request and compared with ours.

use hardpan_agent::events::{BeforeAgentStart, BeforeAgentStartReply};
use hardpan_context::LayoutName;
use hardpan_economy::verdict::VerdictSource;
use hardpan_prompt::{CacheDiagnosis, ChangedPart};
use hardpan_test_support::{SentRequest, TestAgent, Toolset, numbered_lines};
use serde_json::Value;

/// An agent that has been told a long story by way of OpenAI's Responses API, over HTTP.
async fn told_a_story(layout: LayoutName) -> TestAgent {
    let test_agent =
        TestAgent::builder().layout(layout).model("openai/gpt-6-luna").tools(Toolset::Look).start().await;
    test_agent.say(&numbered_lines("A long story", 300)).await;
    test_agent.say("Go on.").await;
    assert_eq!(test_agent.losses(), [], "{layout}");
    test_agent
}

fn compared(body: &Value) -> Option<&str> {
    body["prompt_cache_options"]["comparison_response_id"].as_str()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_is_compared_with_the_answer_before_it() {
    let test_agent = told_a_story(LayoutName::Strata).await;
    let sent: Vec<Value> = test_agent.sent_requests().iter().map(SentRequest::json).collect();
    let [first, second] = &sent[..] else { panic!("{} requests", sent.len()) };
    assert_eq!(compared(first), None);
    assert!(compared(second).is_some_and(|id| id.starts_with("resp_")), "{second}");
    let verdict = test_agent.agent.last_verdict().unwrap();
    assert_eq!(verdict.provider_says, Some(CacheDiagnosis::NoDifference));
}

#[tokio::test(flavor = "multi_thread")]
async fn both_say_that_the_tools_changed() {
    for layout in [LayoutName::Strata, LayoutName::Inline] {
        let test_agent = told_a_story(layout).await;
        test_agent.change_tools();
        test_agent.agent.declare_tools_now().await.unwrap();
        test_agent.say("And now?").await;
        let loss = test_agent.the_loss().await;
        assert_eq!(loss.source, VerdictSource::Both, "{layout}: {loss:?}");
        let Some(CacheDiagnosis::Changed { part: ChangedPart::Tools, missed_tokens: Some(missed) }) =
            loss.provider_says
        else {
            panic!("{layout}: {loss:?}")
        };
        assert!(missed >= 1024, "{missed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_say_that_the_input_changed() {
    let test_agent = told_a_story(LayoutName::Strata).await;
    test_agent.agent.events().subscribe::<BeforeAgentStart, _>("poet", |event, _| async move {
        let system_prompt = Some(format!("{} In verse.", event.system_prompt));
        Ok(BeforeAgentStartReply { message: None, system_prompt })
    });
    test_agent.say("And now?").await;
    let loss = test_agent.the_loss().await;
    let part = loss.provider_says.and_then(|says| says.changed_part());
    assert_eq!((loss.source, part), (VerdictSource::Both, Some(ChangedPart::Input)), "{loss:?}");
}
