//! The principal type in this crate is [`Client`]: it sends a [`Prompt`] to a provider and returns
//! the [`Answer`], streaming [`AnswerEvent`]s while it comes.
//!
//! Two codecs cover all providers: Anthropic Messages and OpenAI Chat Completions. The differences
//! between the servers that speak the latter are data ([`ProviderProfile`]), not code. [`encode`]
//! turns a prompt into a request body, a [`StreamDecoder`] turns the bytes of a response into
//! events, and an [`Answer`] collects the events.
//!
//! ```
//! use hardpan_models::Catalogue;
//! use hardpan_prompt::{Block, ItemKind, Origin, Prompt, PromptMessage, Region, Role, Text};
//!
//! let model = Catalogue::builtin().model(None, "claude-sonnet-5")?;
//! let profile = Catalogue::builtin().provider("anthropic")?.profile_for_model(&model);
//! let hello = Block::text(Region::Log, Text::new("Hello!"), Origin::rule(ItemKind::History, "example"));
//! let messages = vec![PromptMessage::new(Role::User, vec![hello])];
//! let prompt = Prompt { model: "claude-sonnet-5".into(), max_tokens: 100, messages, ..Prompt::default() };
//! assert_eq!(
//!     String::from_utf8(hardpan_providers::encode(&prompt, &profile)).unwrap(),
//!     r#"{"model":"claude-sonnet-5","max_tokens":100,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"Hello!"}]}]}"#,
//! );
//! # Ok::<(), hardpan_models::UnknownName>(())
//! ```

mod answer; // Answer: the collected events, and which calls may run
mod anthropic; // request bodies of Anthropic Messages
pub mod body; // request bodies split into blocks, to compare them
mod client; // Client: sends requests, with retries and downgrades
pub mod decode; // request bodies parsed back into prompts
mod encoder; // Encoder: reuses the messages of the previous request
mod event; // AnswerEvent: the pieces of a streamed answer
mod failure; // FailureKind, ProviderError: why a request failed
#[cfg(feature = "http")]
mod http; // HttpTransport: requests over the network
mod openai; // request bodies of OpenAI Chat Completions
mod serialize; // serializers that both codecs use
pub mod sse; // parser for server-sent events
mod stream; // StreamDecoder: from the bytes of an answer to its events
mod transport; // Transport: carries requests to a provider
mod usage; // ReportedUsage: token counts in one form for all providers

pub use answer::{Answer, AnswerCall, CallRejection};
pub use client::{
    AnswerStream, ApiKey, CapabilityCache, Client, ClientEvent, ClientNotice, ClientRequest, Endpoint,
    PromptFallbacks, RetryPolicy, UnsupportedFeature,
};
pub use encoder::Encoder;
pub use event::{AnswerEvent, StopReason, StreamError, StreamErrorKind};
pub use failure::{FailureKind, FailureSource, ProviderError};
#[cfg(feature = "http")]
pub use http::HttpTransport;
pub use stream::{StreamDecoder, ThinkTags, decode_answer_body, decode_answer_body_with_tags};
pub use transport::{ByteStream, HttpRequest, HttpResponse, Transport, TransportError};
pub use usage::ReportedUsage;

use hardpan_models::{MarkerFormat, Protocol, ProviderProfile};
use hardpan_prompt::Prompt;
use hardpan_prompt::validate::{Acceptance, ValidationRules};

/// Bytes allocated for a body at first; it grows as needed.
const INITIAL_CAPACITY: usize = 128;

/// Encodes the body of a request, byte for byte as it is sent.
///
/// An [`Encoder`] produces the same bytes faster: it reuses the messages of the previous request.
pub fn encode(prompt: &Prompt, profile: &ProviderProfile) -> Vec<u8> {
    match profile.protocol {
        Protocol::Anthropic => {
            let messages = anthropic::messages(prompt);
            serialize::to_bytes(&anthropic::Body { prompt, messages }, INITIAL_CAPACITY)
        }
        Protocol::Openai => {
            let messages = openai::Messages::from_prompt(prompt, profile);
            serialize::to_bytes(&openai::Body { prompt, profile, messages }, INITIAL_CAPACITY)
        }
    }
}

/// The address of each block (tools, system, messages) in the request body, such as
/// `messages[3].content[1]`, in this order.
pub fn block_addresses(prompt: &Prompt, profile: &ProviderProfile) -> Vec<String> {
    match profile.protocol {
        Protocol::Anthropic => (0..prompt.block_count()).map(|block| prompt.address(block)).collect(),
        Protocol::Openai => openai::block_addresses(prompt, profile),
    }
}

/// The path that requests are posted to, below the provider's base URL.
pub fn request_path(profile: &ProviderProfile) -> &'static str {
    match profile.protocol {
        Protocol::Anthropic => "/messages",
        Protocol::Openai => "/chat/completions",
    }
}

/// The rules by which the provider validates a request. `prefill`: the model accepts a prompt that
/// ends with the beginning of its answer.
pub fn validation_rules(profile: &ProviderProfile, prefill: bool) -> ValidationRules {
    let markers =
        if profile.markers == MarkerFormat::None { Acceptance::Rejected } else { Acceptance::Accepted };
    match profile.protocol {
        Protocol::Anthropic => {
            let prefill = if prefill { Acceptance::Accepted } else { Acceptance::Rejected };
            ValidationRules { prefill, breakpoints: markers, ..ValidationRules::anthropic() }
        }
        Protocol::Openai => ValidationRules { breakpoints: markers, ..ValidationRules::openai() },
    }
}
