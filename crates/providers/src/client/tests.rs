use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;

use futures_util::FutureExt;
use hardpan_models::Catalogue;
use hardpan_prompt::{Block, Image, ItemKind, MediaType, Origin, PromptMessage, Region, Role, Text};

use super::*;
use crate::{Answer, HttpResponse, StopReason, TransportError};

/// A transport that gives canned answers and records the requests.
#[derive(Default)]
struct CannedTransport {
    answers: Mutex<Vec<(u16, &'static str, &'static str)>>,
    sent: Mutex<Vec<HttpRequest>>,
}

impl Transport for CannedTransport {
    fn send(
        &self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, TransportError>> + Send + '_>> {
        self.sent.lock().unwrap().push(request);
        let (status, kind, body) = self.answers.lock().unwrap().remove(0);
        let headers = vec![("content-type".to_owned(), kind.to_owned())];
        let body = futures_util::stream::iter([Ok(Bytes::from_static(body.as_bytes()))]);
        Box::pin(async move { Ok(HttpResponse { status, headers, body: Box::pin(body) }) })
    }
}

struct StrippingFallbacks;

impl PromptFallbacks for StrippingFallbacks {
    fn without_newer_fields(&self, prompt: &Prompt) -> Prompt {
        Prompt { drop_stale_reasoning: false, ..prompt.clone() }
    }
    fn without_tools(&self, prompt: &Prompt) -> Prompt {
        Prompt { tools: Vec::new(), ..prompt.clone() }
    }
    fn without_images(&self, prompt: &Prompt) -> Prompt {
        let mut prompt = prompt.clone();
        prompt.messages[0]
            .blocks
            .retain(|block| !matches!(*block.content, hardpan_prompt::Content::Image(..)));
        prompt
    }
}

const JSON: &str = "application/json";
const DONE: &str = r#"{"id":"1","model":"m","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#;

fn prompt() -> Prompt {
    let origin = || Origin::rule(ItemKind::History, "test");
    let image = Image { media_type: MediaType::Png, data: "aGk=".into(), width: Some(1), height: Some(1) };
    let blocks = vec![
        Block::text(Region::Log, Text::new("look"), origin()),
        Block::new(Region::Log, hardpan_prompt::Content::Image(image, origin())),
    ];
    Prompt {
        model: "gpt-5.5".into(),
        max_tokens: 10,
        messages: vec![PromptMessage::new(Role::User, blocks)],
        ..Prompt::default()
    }
}

fn client(
    answers: &[(u16, &'static str, &'static str)],
) -> (Client, Arc<CannedTransport>, Arc<CapabilityCache>) {
    let transport =
        Arc::new(CannedTransport { answers: Mutex::new(answers.to_vec()), sent: Mutex::default() });
    let capabilities = Arc::new(CapabilityCache::default());
    let mut extra_fields = serde_json::Map::new();
    extra_fields.insert("temperature".into(), 0.into());
    let endpoint = Endpoint {
        base_url: "http://127.0.0.1:1/v1/".into(),
        key: Some(ApiKey::new(" sk-very-secret ")),
        headers: vec![("X-Team".into(), "blue".into())],
        extra_fields,
        session: Some("s1".into()),
    };
    let retry = RetryPolicy { first_wait: Duration::ZERO, ..RetryPolicy::default() };
    (Client::new(transport.clone(), endpoint, retry, capabilities.clone()), transport, capabilities)
}

fn send(client: &Client, now_ms: i64) -> (Result<Answer, ProviderError>, Vec<ClientNotice>) {
    let profile = Catalogue::builtin().provider("openai").unwrap().profile.clone();
    let prompt = prompt();
    let request = ClientRequest {
        prompt: &prompt,
        profile: &profile,
        provider: "openai",
        fallbacks: &StrippingFallbacks,
        previous_answer: None,
        now_ms,
    };
    let mut notices = Vec::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let answer = runtime.block_on(async {
        let mut stream = client.send(request);
        while let Some(event) = stream.next_event().await {
            if let ClientEvent::Notice(notice) = event? {
                notices.push(notice);
            }
        }
        Ok(stream.into_answer())
    });
    (answer, notices)
}

#[test]
fn a_request_carries_key_headers_extras_and_session() {
    let (client, transport, _) = client(&[(200, JSON, DONE)]);
    assert_eq!(send(&client, 0).0.unwrap().text(), "hi");
    let sent = transport.sent.lock().unwrap();
    assert_eq!(sent[0].url, "http://127.0.0.1:1/v1/chat/completions");
    let header =
        |name: &str| sent[0].headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    assert_eq!((header("authorization"), header("x-team")), (Some("Bearer sk-very-secret"), Some("blue")));
    let body: Value = serde_json::from_slice(&sent[0].body).unwrap();
    assert_eq!((&body["temperature"], &body["prompt_cache_key"]), (&0.into(), &"s1".into()));
    assert!(!format!("{client:?} {:?}", sent[0]).contains("secret"));
}

#[test]
fn images_that_are_refused_are_left_out_now_and_the_next_time() {
    let refused = (400, JSON, r#"{"error":{"message":"this model does not support image input"}}"#);
    let (client, transport, _) = client(&[refused, (200, JSON, DONE), (200, JSON, DONE), (200, JSON, DONE)]);
    let (answer, notices) = send(&client, 0);
    assert!(answer.is_ok());
    let downgrade = ClientNotice::Downgrade { model: "gpt-5.5".into(), feature: UnsupportedFeature::Images };
    assert_eq!(
        downgrade.to_string(),
        "gpt-5.5 does not take images: the request was sent again without them"
    );
    assert_eq!(notices, [downgrade]);
    assert!(send(&client, 1000).0.is_ok());
    assert!(send(&client, 2 * 24 * 3600 * 1000).0.is_ok());
    let with_image: Vec<bool> = transport
        .sent
        .lock()
        .unwrap()
        .iter()
        .map(|request| String::from_utf8_lossy(&request.body).contains("image_url"))
        .collect();
    assert_eq!(with_image, [true, false, false, true], "what was learned expires after a day");
}

#[test]
fn passing_failures_are_tried_again_and_lasting_ones_are_not() {
    let busy = (503, JSON, "{}");
    let (client_a, transport, _) = client(&[busy, (200, "text/event-stream", "garbage"), (200, JSON, DONE)]);
    let (answer, notices) = send(&client_a, 0);
    assert!(answer.is_ok());
    let [ClientNotice::Retry { attempt: 2, .. }, second @ ClientNotice::Retry { attempt: 3, .. }] =
        &notices[..]
    else {
        panic!("{notices:?}")
    };
    assert_eq!(
        second.to_string(),
        "the answer broke off: the answer ended before the model said anything; try again; what was received is kept. Trying again in 0.0 s (3 of 5)"
    );
    assert_eq!(transport.sent.lock().unwrap().len(), 3);

    let (client_b, transport, _) =
        client(&[(401, JSON, r#"{"error":{"message":"wrong key sk-very-secret"}}"#)]);
    let error = send(&client_b, 0).0.unwrap_err();
    assert_eq!((error.failure.clone(), transport.sent.lock().unwrap().len()), (FailureKind::Auth, 1));
    assert!(!error.to_string().contains("secret"));
}

#[test]
fn an_answer_that_breaks_off_keeps_what_came() {
    let half = "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
    let (client, transport, _) = client(&[(200, "text/event-stream", half)]);
    let answer = send(&client, 0).0.unwrap();
    assert_eq!((answer.text().as_str(), answer.stop.clone()), ("half", Some(StopReason::Cut)));
    assert_eq!(transport.sent.lock().unwrap().len(), 1, "an answer that has begun is not requested again");
}

#[test]
fn a_stopped_stream_keeps_what_had_come_and_a_dropped_wait_loses_nothing() {
    let stream = "data: {\"choices\":[{\"delta\":{\"content\":\"one\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\" two\"}}]}\n\n";
    let (client, ..) = client(&[(200, "text/event-stream", stream)]);
    let profile = Catalogue::builtin().provider("openai").unwrap().profile.clone();
    let prompt = prompt();
    let request = ClientRequest {
        prompt: &prompt,
        profile: &profile,
        provider: "openai",
        fallbacks: &StrippingFallbacks,
        previous_answer: None,
        now_ms: 0,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut stream = client.send(request);
        assert!(stream.next_event().now_or_never().is_none_or(|event| event.is_some()));
        while stream.answer().text().is_empty() {
            stream.next_event().await.expect("an event").unwrap();
        }
        assert_eq!(stream.answer().text(), "one");
        assert_eq!(stream.into_answer().text(), "one two");
    });
}

#[test]
fn what_was_learned_survives_its_written_form() {
    let capabilities = CapabilityCache::default();
    capabilities.record("p", "maker/m", UnsupportedFeature::Tools, 5);
    assert_eq!(capabilities.to_json(), r#"{"p/maker/m":{"tools":86400005}}"#);
    assert_eq!(CapabilityCache::from_json(&capabilities.to_json()).to_json(), capabilities.to_json());
    assert_eq!(CapabilityCache::from_json("nonsense").to_json(), "{}");
}
