use std::future::ready;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use futures_util::stream;
use hardpan_agent::events::{BeforeAgentStart, BeforeAgentStartReply, BeforeProviderRequest, ContextEvent};
use hardpan_agent::{AgentError, CustomMessage, Input, InputSource, PreviewError};
use hardpan_context::LayoutName;
use hardpan_prompt::{AgentMessage, MessageBody, MessagePart};
use hardpan_providers::{HttpRequest, HttpResponse, Transport, TransportError, UnsupportedFeature};
use hardpan_test_support::TestAgent;
use serde_json::{Value, json};

const READ: &str = "
turns:
  - when: {contains: Look}
    repeat: always
    tool_calls: [{name: read, arguments: {path: a.txt}}]
default: {text: Fine.}
";

fn input(text: &str) -> Option<Input> {
    let (text, source) = (text.to_owned(), InputSource::Interactive);
    Some(Input { text, below: None, images: Vec::new(), source, id: None })
}

fn extension_message(text: &str) -> CustomMessage {
    let content = vec![MessagePart::text(text)];
    CustomMessage { custom_type: "test".into(), content, display: false, details: None }
}

/// Handlers of every event that can change a request.
fn subscribe_handlers(test_agent: &TestAgent) {
    let events = test_agent.agent.events();
    events.subscribe::<BeforeAgentStart, _>("test", |event, _| async move {
        let system_prompt = Some(format!("{}\nSpeak of {}.", event.system_prompt, event.prompt));
        let message = Some(extension_message("added before the run"));
        Ok(BeforeAgentStartReply { message, system_prompt })
    });
    events.subscribe::<ContextEvent, _>("test", |mut event, _| async move {
        let content = vec![MessagePart::text("put in by a handler")];
        event.messages.insert(0, AgentMessage::new("x1", MessageBody::User { content }));
        Ok(Some(event.messages))
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_is_what_is_sent_and_changes_nothing() {
    for layout in LayoutName::ALL {
        let mut test_agent = TestAgent::with_real_tools().layout(layout).script(READ).start().await;
        test_agent.write("a.txt", "one\n");
        for prompt in ["Look at it", "And now?", "Look again"] {
            subscribe_handlers(&test_agent);
            test_agent.agent.attach_to_next_prompt(extension_message("attached"));
            let before = (test_agent.agent.messages(), test_agent.agent.layout_state());
            let preview = test_agent.agent.preview_request(input(prompt), None).await.expect("a preview");
            assert_eq!((test_agent.agent.messages(), test_agent.agent.layout_state()), before, "{layout}");
            let count = test_agent.request_count();
            test_agent.say(prompt).await;
            let sent = &test_agent.sent_bodies()[count];
            assert_eq!(String::from_utf8_lossy(&preview.http.body), *sent, "{layout} {prompt}");
            test_agent.write("a.txt", &format!("changed after {prompt}\n"));
            test_agent = test_agent.restart().await;
        }
    }
}

/// A server without tools.
struct ToollessServer;

type Sending<'a> = Pin<Box<dyn Future<Output = Result<HttpResponse, TransportError>> + Send + 'a>>;

impl Transport for ToollessServer {
    fn send(&self, request: HttpRequest) -> Sending<'_> {
        let body: Value = serde_json::from_slice(&request.body).expect("JSON");
        let (status, answer) = match body.get("tools") {
            Some(_) => {
                let message = "this model does not support tools";
                (
                    400,
                    json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}}),
                )
            }
            None => {
                let content = json!([{"type": "text", "text": "Fine."}]);
                let usage = json!({"input_tokens": 40, "output_tokens": 2});
                (200, json!({"id": "msg_1", "content": content, "stop_reason": "end_turn", "usage": usage}))
            }
        };
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        let body = stream::iter([Ok(answer.to_string().into())]);
        Box::pin(ready(Ok(HttpResponse { status, headers, body: Box::pin(body) })))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_refused_is_missing_in_preview_event_and_breakdown() {
    let test_agent = TestAgent::with_real_tools().transport(Arc::new(ToollessServer)).start().await;
    let seen: Arc<Mutex<Vec<(usize, usize)>>> = Arc::default();
    let events = seen.clone();
    test_agent.agent.events().subscribe::<BeforeProviderRequest, _>("test", move |event, _| {
        events.lock().expect("a list").push((event.prompt.tools.len(), event.tokens));
        async { Ok(()) }
    });
    test_agent.say("Hello").await;
    let preview = test_agent.agent.preview_request(input("And now?"), None).await.expect("a preview");
    test_agent.say("And now?").await;
    let sent = test_agent.sent_bodies();
    assert_eq!(sent.len(), 3, "one is refused, the next ones are not");
    assert_eq!(String::from_utf8_lossy(&preview.http.body), sent[2]);
    assert_eq!(preview.refusals.features().collect::<Vec<_>>(), [UnsupportedFeature::Tools]);
    let total = preview.breakdown().total_tokens;
    let seen = seen.lock().expect("a list").clone();
    assert!(seen[0].0 > 0, "nobody knows before the first request");
    assert_eq!(seen[1], (0, total));
    assert_eq!(test_agent.agent.breakdown().expect("it was sent").total_tokens, total);
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_preview_while_the_agent_works() {
    let test_agent = TestAgent::builder().script(READ).start().await;
    let (run, gate) = test_agent.begin_and_hold("Hello").await;
    let error = test_agent.agent.preview_request(input("Next"), None).await.err();
    assert!(matches!(error, Some(PreviewError::Agent(AgentError::Busy))), "{error:?}");
    gate.release();
    run.await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_two_requests_can_be_seen_to_the_byte() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::with_real_tools().layout(layout).script(READ).start().await;
        test_agent.write("a.txt", "one\n");
        assert!(test_agent.agent.last_sent_request().is_none());
        test_agent.say("Look at it").await;
        test_agent.say("And now?").await;
        test_agent.write("a.txt", "changed since\n");
        let agent = &test_agent.agent;
        let seen = [agent.sent_request_before(), agent.last_sent_request()].map(|sent| {
            let sent = sent.expect("two requests").expect("it can be encoded");
            String::from_utf8_lossy(&sent.http.body).into_owned()
        });
        let bodies = test_agent.sent_bodies();
        assert_eq!(seen, bodies[bodies.len() - 2..], "{layout}");
    }
}
