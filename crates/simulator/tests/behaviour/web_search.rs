//! The servers' own search of the web.

use hardpan_models::Protocol;
use hardpan_prompt::{MessagePart, ProviderBlockKind};
use hardpan_providers::Answer;
use serde_json::{Value, json};

use crate::providers::{body, both_providers, headers, in_process_provider, path, scripted};

const SCRIPT: &str = "
default: {reasoning: I look it up., web_search: größte news, text: So the größte news is out.}
";
const PROTOCOLS: [Protocol; 3] = [Protocol::Anthropic, Protocol::OpenaiResponses, Protocol::Gemini];

/// A request that asks for searches besides its tool.
fn request(protocol: Protocol, more: Value) -> Value {
    let mut body = body(protocol, json!({}));
    let tools = body["tools"].as_array_mut().unwrap();
    tools.push(match protocol {
        Protocol::Anthropic => json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 3}),
        Protocol::OpenaiResponses => json!({"type": "web_search"}),
        Protocol::Gemini | Protocol::Openai => json!({"googleSearch": {}}),
    });
    if protocol == Protocol::Gemini {
        body["toolConfig"] = json!({"includeServerSideToolInvocations": true});
    }
    crate::providers::merge_fields(&mut body, more);
    body
}

async fn answers(protocol: Protocol) -> Vec<Answer> {
    let whole = match protocol {
        Protocol::Gemini => "/models/gemini-3.5-flash:generateContent",
        _ => path(protocol),
    };
    let mut answers = Vec::new();
    for (path, stream) in [(path(protocol), true), (whole, false)] {
        for provider in both_providers(|| scripted(SCRIPT)).await {
            let more = if protocol == Protocol::Gemini { json!({}) } else { json!({"stream": stream}) };
            let body = request(protocol, more).to_string().into_bytes();
            let got = provider.send_with(path, headers(protocol), body).await;
            assert_eq!(got.status, 200, "{protocol:?}: {}", String::from_utf8_lossy(&got.bytes));
            answers.push(got.answer(protocol));
        }
    }
    answers
}

/// The parts but for reasoning: where Gemini signs a text differs between streamed and whole answers.
fn said(answer: &Answer) -> Vec<MessagePart> {
    let is_said = |part: &MessagePart| !matches!(part, MessagePart::Reasoning { .. });
    answer.parts().into_iter().filter(is_said).collect()
}

#[tokio::test]
async fn a_search_is_the_same_streamed_or_whole_and_its_page_is_cited() {
    for protocol in PROTOCOLS {
        let answers = answers(protocol).await;
        for answer in &answers {
            assert_eq!(said(answer), said(&answers[0]), "{protocol:?}");
            assert_eq!(answer.text(), "So the größte news is out.", "{protocol:?}");
            assert_eq!(answer.billed_searches(), 1, "{protocol:?}");
            let titles: Vec<&str> = answer.sources.iter().map(|source| source.title.as_str()).collect();
            assert_eq!(titles, ["About größte news"], "{protocol:?}");
        }
        let parts = answers[0].parts();
        let kinds = parts.iter().filter_map(|part| match part {
            MessagePart::ProviderBlock(block) => Some(block.kind),
            _ => None,
        });
        let kinds: Vec<ProviderBlockKind> = kinds.collect();
        let expected = match protocol {
            Protocol::Anthropic => {
                let cited =
                    ProviderBlockKind::CitedText { bytes: "the größte news is out.".len(), after: 0 };
                vec![ProviderBlockKind::Call, ProviderBlockKind::Result, cited]
            }
            Protocol::Gemini => vec![ProviderBlockKind::Call, ProviderBlockKind::Result],
            _ => vec![ProviderBlockKind::Search],
        };
        assert_eq!(kinds, expected, "{protocol:?}");
        assert!(matches!(parts.last(), Some(MessagePart::Sources { .. })), "{protocol:?}");
    }
}

/// What the server says to a conversation with this answer in it.
async fn reply(protocol: Protocol, answer: &[Value]) -> (u16, String) {
    let more = match protocol {
        Protocol::Gemini => {
            let user = |text: &str| json!({"role": "user", "parts": [{"text": text}]});
            json!({"contents": [user("Hello!"), {"role": "model", "parts": answer}, user("And?")]})
        }
        Protocol::Anthropic | Protocol::Openai => {
            let user = |text: &str| json!({"role": "user", "content": text});
            json!({"messages": [user("Hello!"), {"role": "assistant", "content": answer}, user("And?")]})
        }
        Protocol::OpenaiResponses => {
            let user = |text: &str| json!({"role": "user", "content": text});
            let items = [user("Hello!")].into_iter().chain(answer.iter().cloned()).chain([user("And?")]);
            json!({"input": items.collect::<Vec<_>>()})
        }
    };
    let provider = in_process_provider(scripted(SCRIPT));
    let body = request(protocol, more).to_string().into_bytes();
    let got = provider.send_with(path(protocol), headers(protocol), body).await;
    (got.status, String::from_utf8_lossy(&got.bytes).into_owned())
}

/// The blocks of a search, as they came.
async fn blocks(protocol: Protocol) -> Vec<Value> {
    let parts = answers(protocol).await[0].parts();
    let blocks = parts.into_iter().filter_map(|part| match part {
        MessagePart::ProviderBlock(block) => Some(block.json.value()),
        _ => None,
    });
    blocks.collect()
}

#[tokio::test]
async fn blocks_are_taken_back_as_they_came_and_refused_when_changed_or_alone() {
    let mut cited = blocks(Protocol::Anthropic).await;
    assert_eq!(reply(Protocol::Anthropic, &cited).await.0, 200);
    cited[2]["citations"][0]["encrypted_index"] = json!("x");
    let (status, words) = reply(Protocol::Anthropic, &cited).await;
    assert!(status == 400 && words.contains("encrypted_index"), "{words}");
    let mut changed = blocks(Protocol::Anthropic).await;
    changed[1]["content"][0]["title"] = json!("Another");
    let (status, words) = reply(Protocol::Anthropic, &changed).await;
    assert!(status == 400 && words.contains("encrypted_content"), "{words}");
    let whole = blocks(Protocol::Anthropic).await;
    let (status, words) = reply(Protocol::Anthropic, &[whole[0].clone(), whole[2].clone()]).await;
    assert!(status == 400 && words.contains("without a corresponding"), "{words}");
    let (status, words) = reply(Protocol::Anthropic, &whole[1..]).await;
    assert!(status == 400 && words.contains("unexpected `tool_use_id`"), "{words}");

    let whole = blocks(Protocol::Gemini).await;
    assert_eq!(reply(Protocol::Gemini, &whole).await.0, 200);
    let (status, words) = reply(Protocol::Gemini, &whole[1..]).await;
    assert!(status == 400 && words.contains("tool response parts"), "{words}");
    let mut unsigned = whole.clone();
    unsigned[0].as_object_mut().unwrap().shift_remove("thoughtSignature");
    let (status, words) = reply(Protocol::Gemini, &unsigned).await;
    assert!(status == 400 && words.contains("thought signature"), "{words}");
    let flagless = request(Protocol::Gemini, json!({"toolConfig": {}})).to_string().into_bytes();
    let provider = in_process_provider(scripted(SCRIPT));
    let got = provider.send_with(path(Protocol::Gemini), headers(Protocol::Gemini), flagless).await;
    assert!(
        got.status == 400 && String::from_utf8_lossy(&got.bytes).contains("server_side_tool_invocations")
    );

    let mut search = blocks(Protocol::OpenaiResponses).await;
    search[0].as_object_mut().unwrap().shift_remove("id");
    assert_eq!(reply(Protocol::OpenaiResponses, &search).await.0, 200);
    search[0]["action"] = json!({"type": "dance"});
    let (status, words) = reply(Protocol::OpenaiResponses, &search).await;
    assert!(status == 400 && words.contains("dance"), "{words}");
}
