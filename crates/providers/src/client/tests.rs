use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;

use hardpan_models::Catalogue;
use hardpan_prompt::{Block, Image, Kind, MediaType, Origin, Place, Role, Text, Turn};

use super::*;
use crate::TransportError;

/// A transport that gives prepared answers and keeps what was asked.
#[derive(Default)]
struct Prepared {
    answers: Mutex<Vec<(u16, &'static str, &'static str)>>,
    asked: Mutex<Vec<HttpRequest>>,
}

impl Transport for Prepared {
    fn send(
        &self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, TransportError>> + Send + '_>> {
        self.asked.lock().unwrap().push(request);
        let (status, kind, body) = self.answers.lock().unwrap().remove(0);
        let headers = vec![("content-type".to_owned(), kind.to_owned())];
        let body = futures_util::stream::iter([Ok(Bytes::from_static(body.as_bytes()))]);
        Box::pin(async move { Ok(HttpResponse { status, headers, body: Box::pin(body) }) })
    }
}

struct Plain;

impl Forms for Plain {
    fn without_tools(&self, prompt: &Prompt) -> Prompt {
        Prompt { tools: Vec::new(), ..prompt.clone() }
    }
    fn without_images(&self, prompt: &Prompt) -> Prompt {
        let mut prompt = prompt.clone();
        prompt.turns[0].blocks.retain(|block| !matches!(*block.content, hardpan_prompt::Content::Image(..)));
        prompt
    }
}

const JSON: &str = "application/json";
const DONE: &str = r#"{"id":"1","model":"m","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#;

fn prompt() -> Prompt {
    let origin = || Origin::rule(Kind::History, "test");
    let image = Image { media_type: MediaType::Png, data: "aGk=".into(), width: Some(1), height: Some(1) };
    let blocks = vec![
        Block::text(Place::Log, Text::new("look"), origin()),
        Block::new(Place::Log, hardpan_prompt::Content::Image(image, origin())),
    ];
    Prompt {
        model: "gpt-5.5".into(),
        max_tokens: 10,
        turns: vec![Turn::new(Role::User, blocks)],
        ..Prompt::default()
    }
}

fn client(answers: &[(u16, &'static str, &'static str)]) -> (Client, Arc<Prepared>, Arc<Learned>) {
    let transport = Arc::new(Prepared { answers: Mutex::new(answers.to_vec()), asked: Mutex::default() });
    let learned = Arc::new(Learned::default());
    let mut extras = serde_json::Map::new();
    extras.insert("temperature".into(), 0.into());
    let endpoint = Endpoint {
        base_url: "http://127.0.0.1:1/v1/".into(),
        key: Some(Key::new(" sk-very-secret ")),
        headers: vec![("X-Team".into(), "blue".into())],
        extras,
        session: Some("s1".into()),
    };
    let patience = Patience { first_wait: Duration::ZERO, ..Patience::default() };
    (Client::new(transport.clone(), endpoint, patience, learned.clone()), transport, learned)
}

fn ask(client: &Client, now_ms: i64) -> (Result<Answer, ProviderError>, Vec<Event>) {
    let wire = Catalogue::builtin().provider("openai").unwrap().wire.clone();
    let prompt = prompt();
    let question = Question { prompt: &prompt, wire: &wire, provider: "openai", forms: &Plain, now_ms };
    let mut events = Vec::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let answer = runtime.block_on(client.ask(&question, &mut |event| events.push(event)));
    (answer, events)
}

#[test]
fn a_request_carries_key_headers_extras_and_session() {
    let (client, transport, _) = client(&[(200, JSON, DONE)]);
    assert_eq!(ask(&client, 0).0.unwrap().text(), "hi");
    let asked = transport.asked.lock().unwrap();
    assert_eq!(asked[0].url, "http://127.0.0.1:1/v1/chat/completions");
    let header = |name: &str| {
        asked[0].headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    };
    assert_eq!((header("authorization"), header("x-team")), (Some("Bearer sk-very-secret"), Some("blue")));
    let body: Value = serde_json::from_slice(&asked[0].body).unwrap();
    assert_eq!((&body["temperature"], &body["prompt_cache_key"]), (&0.into(), &"s1".into()));
    assert!(!format!("{client:?} {:?}", asked[0]).contains("secret"));
}

#[test]
fn images_that_are_refused_are_left_out_now_and_the_next_time() {
    let refused = (400, JSON, r#"{"error":{"message":"this model does not support image input"}}"#);
    let (client, transport, _) = client(&[refused, (200, JSON, DONE), (200, JSON, DONE), (200, JSON, DONE)]);
    let (answer, events) = ask(&client, 0);
    assert!(answer.is_ok());
    assert_eq!(
        events[0],
        Event::Footnote("gpt-5.5 does not take images: the request was sent again without them".into())
    );
    assert!(ask(&client, 1000).0.is_ok());
    assert!(ask(&client, 2 * 24 * 3600 * 1000).0.is_ok());
    let with_image: Vec<bool> = transport
        .asked
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
    let (answer, events) = ask(&client_a, 0);
    assert!(answer.is_ok());
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Footnote(_))).count(), 2);
    assert_eq!(transport.asked.lock().unwrap().len(), 3);

    let (client_b, transport, _) =
        client(&[(401, JSON, r#"{"error":{"message":"wrong key sk-very-secret"}}"#)]);
    let error = ask(&client_b, 0).0.unwrap_err();
    assert_eq!((error.failure.clone(), transport.asked.lock().unwrap().len()), (Failure::Auth, 1));
    assert!(!error.to_string().contains("secret"));
}

#[test]
fn an_answer_that_breaks_off_keeps_what_came() {
    let half = "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
    let (client, transport, _) = client(&[(200, "text/event-stream", half)]);
    let answer = ask(&client, 0).0.unwrap();
    assert_eq!((answer.text().as_str(), answer.stop.clone()), ("half", Some(StopReason::Cut)));
    assert_eq!(transport.asked.lock().unwrap().len(), 1, "nothing is said twice");
}

#[test]
fn what_was_learned_survives_its_written_form() {
    let learned = Learned::default();
    learned.learn("p", "m", Refusal::Tools, 5);
    assert_eq!(Learned::from_json(&learned.to_json()).to_json(), learned.to_json());
    assert_eq!(Learned::from_json("nonsense").to_json(), "{}");
}
