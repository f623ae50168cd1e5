use std::sync::Arc;
use std::time::Duration;

use hardpan_models::{Catalogue, Protocol};
use hardpan_prompt::{Block, ItemKind, Json, Origin, Prompt, PromptMessage, Region, Role, Tool, ToolBlock};
use hardpan_providers::{
    Answer, ApiKey, CapabilityCache, Client, ClientEvent, ClientNotice, ClientRequest, Endpoint, FailureKind,
    PromptFallbacks, ProviderError, RetryPolicy, StopReason,
};
use hardpan_simulator::EngineSettings;
use serde_json::json;

use crate::providers::{MESSAGE_PROTOCOLS, TestProvider, body, both_providers, scripted};

/// Text of some length, then a call.
const SCRIPT: &str = r#"
turns:
  - text: "I will look at the file that you named, and I will tell you what I find in it, line by line."
    tool_calls: [{name: read, arguments: {path: src/main.rs, reason: "because it was asked for, and for no other reason at all"}, id: c1}]
"#;

fn settings(faults: &str) -> EngineSettings {
    EngineSettings { faults: faults.parse().unwrap(), ..scripted(SCRIPT) }
}

struct UnchangedPrompt;

impl PromptFallbacks for UnchangedPrompt {
    fn without_newer_fields(&self, prompt: &Prompt) -> Prompt {
        Prompt { drop_stale_reasoning: false, ..prompt.clone() }
    }
    fn without_tools(&self, prompt: &Prompt) -> Prompt {
        prompt.clone()
    }
    fn without_images(&self, prompt: &Prompt) -> Prompt {
        prompt.clone()
    }
}

/// Sends a prompt with the real client and a short retry policy; returns its answer and notices.
async fn send_with_client(
    provider: &TestProvider,
    protocol: Protocol,
    fault: &str,
) -> (Result<Answer, ProviderError>, Vec<ClientNotice>) {
    let (provider_id, model) = match protocol {
        Protocol::Anthropic => ("anthropic", "claude-sonnet-5"),
        Protocol::Openai => ("openai", "gpt-4o"),
        Protocol::Gemini => ("gemini", "gemini-3.5-flash"),
        Protocol::OpenaiResponses => ("openai", "gpt-5.4"),
    };
    let catalogue = Catalogue::builtin();
    let profile = catalogue
        .provider(provider_id)
        .unwrap()
        .profile_for_model(&catalogue.model(Some(provider_id), model).unwrap());
    let origin = Origin::rule(ItemKind::History, "test");
    let parameters = Json::new(&json!({"type": "object", "properties": {}}));
    let tool = Tool {
        name: "read".into(),
        description: "".into(),
        parameters,
        snippet: None,
        guidelines: Vec::new(),
    };
    let prompt = Prompt {
        model: model.into(),
        max_tokens: 1000,
        tools: vec![ToolBlock { region: Region::Base, tool, breakpoint: None }],
        messages: vec![PromptMessage::new(
            Role::User,
            vec![Block::text(Region::Log, "Look!".into(), origin)],
        )],
        ..Prompt::default()
    };
    let endpoint = Endpoint {
        base_url: provider.base_url.clone(),
        key: Some(ApiKey::new("secret")),
        ..Endpoint::default()
    };
    // Short only where silence is what is waited for: a busy machine may be silent too.
    let silence = Duration::from_millis(if fault.contains("stall") { 700 } else { 15_000 });
    let retry =
        RetryPolicy { tries: 3, first_wait: Duration::from_millis(1), silence, ..RetryPolicy::default() };
    let client =
        Client::new(provider.transport.clone(), endpoint, retry, Arc::new(CapabilityCache::default()));
    let request = ClientRequest {
        prompt: &prompt,
        profile: &profile,
        provider: provider_id,
        fallbacks: &UnchangedPrompt,
        previous_answer: None,
        now_ms: 0,
    };
    let mut notices = Vec::new();
    let mut stream = client.send(request);
    let collect = async {
        while let Some(event) = stream.next_event().await {
            if let ClientEvent::Notice(notice) = event? {
                notices.push(notice);
            }
        }
        Ok(stream.into_answer())
    };
    let sent = tokio::time::timeout(Duration::from_secs(60), collect).await;
    (sent.expect("nothing may hang"), notices)
}

/// The answer arrived as if nothing had happened.
fn is_whole(answer: &Answer) {
    assert_eq!((&answer.stop, &answer.error), (&Some(StopReason::ToolUse), &None), "{answer:?}");
    assert!(
        answer.text().starts_with("I will look") && answer.text().ends_with("line by line."),
        "{answer:?}"
    );
    let calls = answer.calls();
    assert_eq!(calls.len(), 1);
    assert!(
        calls[0].runnable.is_ok() && calls[0].call.arguments.value()["path"] == "src/main.rs",
        "{calls:?}"
    );
}

/// A part arrived, and none of its calls may run.
fn is_partial(answer: &Answer) {
    assert!(answer.calls().iter().all(|call| call.runnable.is_err()), "{answer:?}");
    assert!(answer.error.is_some() || answer.stop == Some(StopReason::Cut), "{answer:?}");
}

#[tokio::test]
async fn passing_errors_are_got_over() {
    for fault in [
        "status=429,retry-after=0,times=2",
        "status=529,times=2; delay=5ms",
        "status=500,times=1",
        "status=503,times=1",
    ] {
        for protocol in Protocol::ALL {
            for provider in both_providers(|| settings(fault)).await {
                let (answer, notes) = send_with_client(&provider, protocol, fault).await;
                is_whole(&answer.unwrap_or_else(|error| panic!("{fault}: {error}")));
                assert!(!notes.is_empty(), "the user is told");
            }
        }
    }
}

#[tokio::test]
async fn lasting_errors_are_named() {
    let cases = [
        ("429", FailureKind::RateLimit),
        ("529", FailureKind::Overload),
        ("401", FailureKind::Auth),
        ("403", FailureKind::Auth),
        ("413", FailureKind::TooLarge),
        ("400", FailureKind::BadRequest),
    ];
    for (status, failure) in cases {
        for protocol in Protocol::ALL {
            for provider in both_providers(|| settings(&format!("status={status}"))).await {
                let error = send_with_client(&provider, protocol, status).await.0.unwrap_err();
                assert_eq!((error.failure, error.status), (failure.clone(), Some(status.parse().unwrap())));
                assert_eq!(error.request_id.is_some(), protocol != Protocol::Gemini); // it has none
            }
        }
    }
}

#[tokio::test]
async fn what_is_harmless_changes_nothing() {
    for fault in [
        "delay=30ms",
        "drip=7,interval=0",
        "duplicate",
        "no-end",
        "drip=200,interval=1ms; duplicate; no-end; delay=5ms",
    ] {
        for protocol in Protocol::ALL {
            for provider in both_providers(|| settings(fault)).await {
                let (answer, _) = send_with_client(&provider, protocol, fault).await;
                is_whole(&answer.unwrap_or_else(|error| panic!("{fault}: {error}")));
            }
        }
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_kept_and_its_calls_are_not_run() {
    // Within the text, within the call, and just before the end.
    for fault in [
        "cut=1300",
        "cut=1900",
        "stall=1300",
        "stall=1900",
        "garbage=1300",
        "garbage=1900",
        "error=1300",
        "error=1900",
    ] {
        for protocol in Protocol::ALL {
            // The Responses API begins its stream with the whole request, twice: 2600 bytes more.
            let (name, at) = fault.split_once('=').unwrap();
            let later = format!("{name}={}", at.parse::<usize>().unwrap() + 2600);
            let fault = if protocol == Protocol::OpenaiResponses { &later } else { fault };
            for provider in both_providers(|| settings(fault)).await {
                let (answer, _) = send_with_client(&provider, protocol, fault).await;
                let answer = answer.unwrap_or_else(|error| panic!("{fault}: {error}"));
                assert!(!answer.text().is_empty(), "{fault}");
                is_partial(&answer);
            }
        }
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_before_a_word_is_asked_for_again() {
    for fault in
        ["cut=0,times=2", "cut=40,times=1", "stall=10,times=1", "error=0,times=2", "garbage=10,times=1"]
    {
        for protocol in Protocol::ALL {
            for provider in both_providers(|| settings(fault)).await {
                let (answer, notes) = send_with_client(&provider, protocol, fault).await;
                is_whole(&answer.unwrap_or_else(|error| panic!("{fault}: {error}")));
                assert!(!notes.is_empty(), "{fault}");
            }
        }
    }
}

#[tokio::test]
async fn whole_bodies_suffer_the_same() {
    for protocol in MESSAGE_PROTOCOLS {
        let request = body(protocol, json!({}));
        for (fault, broken, understood) in [
            ("cut=50", true, false),
            ("garbage=50", false, false),
            ("error=0", false, false),
            ("stall=50,for=20ms", true, false),
            ("drip=9,interval=0", false, true),
            ("no-end; duplicate", false, true),
        ] {
            for provider in both_providers(|| settings(fault)).await {
                let got = provider.send(protocol, &request).await;
                assert_eq!((got.status, got.broken.is_some()), (200, broken), "{fault}");
                let answer = got.answer(protocol);
                assert_eq!(
                    answer.error.is_none()
                        && answer.calls().iter().all(|call| call.runnable.is_ok())
                        && !answer.calls().is_empty(),
                    understood,
                    "{fault}: {answer:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_cut_leaves_exactly_the_bytes_ordered() {
    for protocol in MESSAGE_PROTOCOLS {
        for provider in both_providers(|| settings("cut=777")).await {
            let got = provider.send(protocol, &body(protocol, json!({"stream": true}))).await;
            assert_eq!((got.bytes.len(), got.broken.is_some()), (777, true));
        }
    }
}

#[tokio::test]
async fn a_caller_that_goes_away_and_a_server_that_stops_leave_nothing_hanging() {
    let [mut remote, _local] = both_providers(|| settings("stall=300,for=5m")).await;
    let response =
        remote.open(Protocol::Anthropic, &body(Protocol::Anthropic, json!({"stream": true}))).await;
    drop(response);
    let waiting = remote.open(Protocol::Openai, &body(Protocol::Openai, json!({"stream": true}))).await;
    let server = remote.server.take().unwrap();
    tokio::time::timeout(Duration::from_secs(10), server.stop(Duration::from_millis(50)))
        .await
        .expect("it stops")
        .unwrap();
    assert!(crate::providers::collect(waiting).await.broken.is_some());
}
