//! How a prompt is sent: from a [`Prompt`] to the bytes of a request.
//!
//! Two codecs cover all providers: Anthropic Messages and OpenAI Chat Completions. What differs between the servers that
//! speak the latter is data ([`Wire`]), not code. A [`Decoder`] reads the answer's bytes as [`Event`]s, and an [`Answer`]
//! puts them together.
//!
//! ```
//! use hardpan_models::Catalogue;
//! use hardpan_prompt::{Block, Kind, Origin, Place, Prompt, Role, Text, Turn};
//!
//! let model = Catalogue::builtin().model(None, "claude-sonnet-5")?;
//! let wire = Catalogue::builtin().provider("anthropic")?.for_model(&model);
//! let hello = Block::text(Place::Log, Text::new("Hello!"), Origin::rule(Kind::History, "example"));
//! let turns = vec![Turn::new(Role::User, vec![hello])];
//! let prompt = Prompt { model: "claude-sonnet-5".into(), max_tokens: 100, turns, ..Prompt::default() };
//! assert_eq!(
//!     String::from_utf8(hardpan_providers::encode(&prompt, &wire)).unwrap(),
//!     r#"{"model":"claude-sonnet-5","max_tokens":100,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"Hello!"}]}]}"#,
//! );
//! # Ok::<(), hardpan_models::Unknown>(())
//! ```

mod answer; // Answer: events put together, calls with a verdict
mod anthropic; // Anthropic Messages
pub mod body; // bodies as blocks, to compare them
mod client; // Client: sending, retries, downgrades
pub mod decode; // the bodies of requests, read back
mod encoder; // Encoder: bodies that are mostly the one before
mod event; // Event: what an answer says, piece by piece
mod failure; // Failure: what can go wrong, in one classification
#[cfg(feature = "http")]
mod http; // Http: requests over the network
mod openai; // OpenAI Chat Completions and those that speak it
mod pieces; // what both codecs write
pub mod sse; // server-sent events from bytes
mod stream; // Decoder: from the bytes of an answer to its events
mod transport; // Transport: how bytes get to a provider and back
mod usage; // Usage: tokens in one form for all providers

pub use answer::{Answer, AnswerCall, WhyNot};
pub use client::{Client, Endpoint, Forms, Key, Learned, Patience, Question, Refusal};
pub use encoder::Encoder;
pub use event::{Event, StopReason, StreamError};
pub use failure::{Failure, ProviderError};
#[cfg(feature = "http")]
pub use http::Http;
pub use stream::{Decoder, ThinkTags, events_of_body, events_of_body_with_tags};
pub use transport::{ByteStream, HttpRequest, HttpResponse, Transport, TransportError};
pub use usage::Usage;

use hardpan_models::{Markers, Protocol, Wire};
use hardpan_prompt::Prompt;
use hardpan_prompt::validate::{Rules, Stance};

/// What a body has room for to begin with.
const ROOM: usize = 128;

/// The body of the request, to the byte. An [`Encoder`] makes the same, and does not begin from nothing each time.
pub fn encode(prompt: &Prompt, wire: &Wire) -> Vec<u8> {
    match wire.protocol {
        Protocol::Anthropic => {
            let messages = anthropic::messages(prompt);
            pieces::to_bytes(&anthropic::Body { prompt, messages }, ROOM)
        }
        Protocol::Openai => {
            let messages = openai::Messages::of(prompt, wire);
            pieces::to_bytes(&openai::Body { prompt, wire, messages }, ROOM)
        }
    }
}

/// Where each block of a prompt (tools, system, messages) is in its body: `messages[3].content[1]`.
pub fn addresses(prompt: &Prompt, wire: &Wire) -> Vec<String> {
    match wire.protocol {
        Protocol::Anthropic => (0..prompt.block_count()).map(|block| prompt.address(block)).collect(),
        Protocol::Openai => openai::addresses(prompt, wire),
    }
}

/// The path of the request below the provider's base URL.
pub fn path(wire: &Wire) -> &'static str {
    match wire.protocol {
        Protocol::Anthropic => "/messages",
        Protocol::Openai => "/chat/completions",
    }
}

/// The rules that a provider checks a request by.
pub fn rules(wire: &Wire, prefill: bool) -> Rules {
    let markers = if wire.markers == Markers::None { Stance::Refuses } else { Stance::Accepts };
    match wire.protocol {
        Protocol::Anthropic => {
            let prefill = if prefill { Stance::Accepts } else { Stance::Refuses };
            Rules { prefill, breakpoints: markers, ..Rules::anthropic() }
        }
        Protocol::Openai => Rules { breakpoints: markers, ..Rules::openai() },
    }
}
