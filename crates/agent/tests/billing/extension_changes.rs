//! What extensions change in requests, and what that costs.

use hardpan_agent::events::{
    BeforeAgentStart, BeforeAgentStartReply, BeforeProviderRequest, ContextEvent, HandlerFailed,
    ProviderPayload,
};
use hardpan_context::LayoutName;
use hardpan_economy::Cause;
use hardpan_economy::verdict::Blame;
use hardpan_prompt::{AgentMessage, Block, Content, MessageBody, MessagePart, Prompt};
use hardpan_session::Record;
use hardpan_test_support::TestAgent;
use serde_json::{Value, json};

use crate::agents::steady;

/// The body of the last request, without the id of its conversation.
fn last_body(test_agent: &TestAgent) -> Value {
    let sent = test_agent.agent.last_sent_request().unwrap().unwrap();
    serde_json::from_slice(&sent.http.body).unwrap()
}

/// The prompts of all requests, and in how many of them a text stood, which is taken out.
fn prompts_without(test_agent: &TestAgent, text: &str) -> (Vec<Prompt>, usize) {
    let mut found = 0;
    let events = test_agent.events_of::<BeforeProviderRequest>();
    let prompts = events.iter().map(|event| {
        let mut prompt = (*event.prompt).clone();
        for message in &mut prompt.messages {
            if message.blocks.last().is_some_and(|block| says(block, text)) {
                let block = message.blocks.pop().unwrap();
                assert!(block.breakpoint.is_none());
                found += 1;
            }
        }
        assert!(!prompt.blocks().any(|block| says(block, text)));
        prompt
    });
    (prompts.collect(), found)
}

fn says(block: &Block, wanted: &str) -> bool {
    matches!(&*block.content, Content::Text(segments) if segments.iter().any(|segment| segment.text.contains(wanted)))
}

fn tokens_read(test_agent: &TestAgent) -> u64 {
    test_agent.agent.token_usage().last_request.unwrap().tokens.cache_read
}

#[tokio::test]
async fn a_text_for_one_request_costs_its_own_tokens_and_nothing_else() {
    for layout in LayoutName::ALL {
        let (control, test_agent) = (steady(layout).await, steady(layout).await);
        control.say("Look.").await;
        test_agent.agent.add_ephemeral("clock", "It is half past nine.");
        test_agent.say("Look.").await;
        for agent in [&control, &test_agent] {
            agent.say("Go on.").await;
        }
        // Of all requests, one had it, after everything else; the others are as if it had never been there.
        let text = "It is half past nine.";
        let (prompts, found) = prompts_without(&test_agent, text);
        assert_eq!((prompts, found), (prompts_without(&control, text).0, 1), "{layout}");
        assert_eq!(last_body(&test_agent), last_body(&control), "{layout}");
        assert_eq!(tokens_read(&test_agent), tokens_read(&control), "{layout}");
        assert_eq!(test_agent.losses(), control.losses(), "{layout}");
    }
}

/// Puts another number into the system prompt with every run.
fn count_runs(test_agent: &TestAgent) {
    let runs = std::sync::atomic::AtomicU32::new(0);
    test_agent.agent.events().subscribe::<BeforeAgentStart, _>("counter", move |event, _| {
        let run = runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let system_prompt = Some(format!("{} This is run {run}.", event.system_prompt));
        async move { Ok(BeforeAgentStartReply { message: None, system_prompt }) }
    });
}

#[tokio::test]
async fn an_extension_that_changes_the_system_prompt_with_every_run_is_named_with_its_dollars() {
    for layout in LayoutName::ALL {
        let test_agent = steady(layout).await;
        test_agent.agent.events().subscribe::<BeforeAgentStart, _>("steady", |event, _| async move {
            let system_prompt = Some(format!("{} Be kind.", event.system_prompt));
            Ok(BeforeAgentStartReply { message: None, system_prompt })
        });
        count_runs(&test_agent);
        for _ in 0..3 {
            test_agent.say("Go on.").await;
        }
        let losses = test_agent.losses();
        assert_eq!(losses.len(), 3, "{layout}: {losses:?}");
        // The first was due to both; since then only one has changed anything.
        for loss in &losses[1..] {
            let Cause::ChangedByExtension { extension, change } = &loss.cause else {
                panic!("{layout}: {loss:?}")
            };
            assert_eq!((&**extension, loss.blame), ("counter", Blame::Extension), "{layout}");
            assert!(matches!(**change, Cause::SystemChanged(_)), "{layout}: {change:?}");
            let sentence = loss.sentence();
            assert!(
                sentence.contains("the extension counter changed the request")
                    && sentence.contains("ctx.ephemeral"),
                "{sentence}"
            );
        }
        let ledger = test_agent.agent.ledger();
        let lost = &ledger.losses["extension counter"];
        assert_eq!(lost.times, 2, "{layout}");
        let dollars: f64 = losses[1..].iter().map(|loss| loss.lost_dollars).sum();
        assert!(lost.dollars > 0.0 && (lost.dollars - dollars).abs() < 1e-9, "{layout}");
    }
}

#[tokio::test]
async fn an_extension_that_rewrites_early_messages_is_named() {
    for layout in [LayoutName::Strata, LayoutName::Inline] {
        let test_agent = steady(layout).await;
        let turns = std::sync::atomic::AtomicU32::new(0);
        test_agent.agent.events().subscribe::<ContextEvent, _>("editor", move |event, _| {
            let turn = turns.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let mut messages = event.messages;
            let MessageBody::User { content } = &*messages[0].body else { panic!() };
            let seen = MessagePart::text(format!("Seen {turn} times."));
            let content = [seen].into_iter().chain(content.iter().cloned()).collect();
            messages[0].body = MessageBody::User { content }.into();
            async move { Ok(Some(messages)) }
        });
        test_agent.say("Go on.").await;
        test_agent.say("Go on.").await;
        let losses = test_agent.losses();
        assert!(!losses.is_empty(), "{layout}");
        for loss in losses {
            let Cause::ChangedByExtension { extension, .. } = &loss.cause else {
                panic!("{layout}: {loss:?}")
            };
            assert_eq!(&**extension, "editor");
        }
    }
}

#[tokio::test]
async fn what_an_extension_appends_to_the_conversation_of_a_request_breaks_no_cache() {
    for layout in LayoutName::ALL {
        let (control, test_agent) = (steady(layout).await, steady(layout).await);
        test_agent.agent.events().subscribe::<ContextEvent, _>("reminder", |event, _| async move {
            let mut messages = event.messages;
            let content = vec![MessagePart::text(format!("There are {} messages.", messages.len()))];
            messages.push(AgentMessage::new("reminder-1", MessageBody::User { content }));
            Ok(Some(messages))
        });
        for agent in [&control, &test_agent] {
            agent.say("Look.").await;
            agent.say("Go on.").await;
        }
        let (prompts, found) = prompts_without(&test_agent, "There are ");
        let (control_prompts, _) = prompts_without(&control, "There are ");
        assert_eq!(prompts, control_prompts, "{layout}");
        assert!(found >= 2, "{layout}: {found}");
        assert_eq!(test_agent.losses(), control.losses(), "{layout}");
    }
}

fn payload_handler(test_agent: &TestAgent, owner: &str, change: impl Fn(&mut Value) + Send + Sync + 'static) {
    test_agent.agent.events().subscribe::<ProviderPayload, _>(owner, move |event, _| {
        let mut payload = (*event.payload).clone();
        change(&mut payload);
        async move { Ok(Some(payload)) }
    });
}

#[tokio::test]
async fn a_payload_is_replaced_if_the_provider_would_take_it() {
    for (layout, field) in [(LayoutName::Strata, "max_tokens"), (LayoutName::Inline, "max_output_tokens")] {
        let test_agent = steady(layout).await;
        payload_handler(&test_agent, "frugal", move |payload| payload[field] = json!(4_321));
        payload_handler(&test_agent, "broken", |payload| payload["tools"] = json!("none"));
        payload_handler(&test_agent, "elsewhere", |payload| payload["model"] = json!("another"));
        test_agent.say("Go on.").await;
        let body = last_body(&test_agent);
        assert_eq!(body[field], json!(4_321), "{body}");
        let faults = test_agent.events_of::<HandlerFailed>();
        let owners: Vec<(&str, &str)> = faults.iter().map(|fault| (&*fault.0.owner, fault.0.event)).collect();
        assert_eq!(owners, [("broken", "provider_payload"), ("elsewhere", "provider_payload")], "{faults:?}");
        assert!(faults[0].0.message.contains("its payload is not sent"), "{faults:?}");
        assert_eq!(test_agent.losses(), [], "{layout}");
        test_agent.agent.shutdown().await.unwrap();
        let (session, _) = test_agent.agent.stored_session().await.unwrap();
        let request = session.entries.iter().rev().find_map(|entry| match &entry.record {
            Record::Request(request) => Some(request.clone()),
            _ => None,
        });
        assert_eq!(request.unwrap().extra["changed_by"], json!(["frugal"]));
    }
}
