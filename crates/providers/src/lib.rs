//! The principal type in this crate is [`Client`]: it sends a [`Prompt`] to a provider and streams
//! the [`Answer`].
//!
//! Everything that belongs to one protocol is a [`Codec`]: the form of requests and answers, headers
//! and paths, rules and errors. [`codec`] lists them: Anthropic Messages, OpenAI Chat Completions and
//! OpenAI Responses, and Gemini's own. The differences between the servers that speak one protocol are data
//! ([`ProviderProfile`]), not code.
//!
//! ```
//! use hardpan_models::Catalogue;
//! use hardpan_prompt::{Block, ItemKind, Origin, Prompt, PromptMessage, Region, Role, Text};
//! use hardpan_providers::{Answer, codec, decode_answer_body, encode};
//!
//! let model = Catalogue::builtin().model(None, "claude-sonnet-5")?;
//! let profile = Catalogue::builtin().provider("anthropic")?.profile_for_model(&model);
//! let hello = Block::text(Region::Log, Text::new("Hello!"), Origin::rule(ItemKind::History, "example"));
//! let messages = vec![PromptMessage::new(Role::User, vec![hello])];
//! let prompt = Prompt { model: "claude-sonnet-5".into(), max_tokens: 100, messages, ..Prompt::default() };
//!
//! // A request: where it goes, and its body, byte for byte as it is sent.
//! let codec = codec(profile.protocol);
//! assert_eq!(codec.request_path(&prompt.model), "/messages");
//! assert_eq!(
//!     String::from_utf8(encode(&prompt, &profile)).unwrap(),
//!     r#"{"model":"claude-sonnet-5","max_tokens":100,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"Hello!"}]}]}"#,
//! );
//!
//! // An answer, here of a server that does not stream.
//! let body = br#"{"content":[{"type":"text","text":"Hi."}],"stop_reason":"end_turn"}"#;
//! let answer: Answer = decode_answer_body(profile.protocol, body).into_iter().collect();
//! assert_eq!(answer.text(), "Hi.");
//! # Ok::<(), hardpan_models::UnknownName>(())
//! ```
//!
//! [`Prompt`]: hardpan_prompt::Prompt
//! [`ProviderProfile`]: hardpan_models::ProviderProfile

mod answer; // Answer: the collected events, and which calls may run
mod anthropic; // the protocol Anthropic Messages
pub mod body; // request bodies split into blocks, to compare them
mod client; // Client: sends requests, with retries and downgrades
mod codec; // Codec: what belongs to one protocol alone, and the list of protocols
pub mod decode; // request bodies parsed back into prompts
mod encoder; // Encoder: reuses the messages of the previous request
mod event; // AnswerEvent: the pieces of a streamed answer
mod failure; // FailureKind, ProviderError: why a request failed
mod gemini; // the protocol of Gemini
#[cfg(feature = "http")]
mod http; // HttpTransport: requests over the network
mod limits; // AnswerBudget: how much a server may send
mod openai_chat; // the protocol OpenAI Chat Completions
mod openai_responses; // the protocol OpenAI Responses
mod serialize; // serializers that codecs share
pub mod sse; // parser for server-sent events
mod stream; // StreamDecoder: from the bytes of an answer to its events
mod transport; // Transport: carries requests to a provider
mod usage; // ReportedUsage: token counts in one form for all providers

pub use answer::{Answer, AnswerCall, CallRejection};
pub use client::{
    AnswerStream, ApiKey, CapabilityCache, Client, ClientEvent, ClientNotice, ClientRequest, Endpoint,
    KnownRefusals, ModelListError, PreparedRequest, PromptFallbacks, ResponseHead, RetryPolicy,
    UnsupportedFeature,
};
pub use codec::{
    BodyMessages, Codec, ModelListPage, RequestContext, RequestExtras, block_addresses, codec, encode,
    validation_rules,
};
pub use encoder::Encoder;
pub use event::{AnswerEvent, StopReason, StreamError, StreamErrorKind};
pub use failure::{EXTENSION_ERROR, FailureKind, FailureReport, FailureSource, ProviderError};
pub use gemini::SKIP_SIGNATURES;
#[cfg(feature = "http")]
pub use http::{HttpTransport, url_host};
pub use openai_chat::ThinkTags;
pub use stream::{
    AnswerParser, StreamDecoder, StreamEnd, StreamProgress, decode_answer_body, decode_answer_body_with_tags,
};
pub use transport::{ByteStream, HttpMethod, HttpRequest, HttpResponse, Transport, TransportError, mask_url};
pub use usage::ReportedUsage;
