//! A simulated provider for tests, demos and offline use: it behaves like the real servers and
//! needs no key. The principal type is [`Engine`].
//!
//! It speaks Anthropic Messages, OpenAI Chat Completions, OpenAI Responses and Gemini's own protocol,
//! validates requests as strictly as the real servers, and caches and bills as they document. It answers from a [`Script`], or with a
//! built-in assistant that searches instead of using a language model, and says so. [`Faults`]
//! inject errors. Tokens are counted with our tokenizer, and a header of every response says so.
//!
//! - [`Engine`]: turns a [`Request`] into a [`Reply`], without network or clock.
//! - [`serve`]: the engine as an HTTP server on 127.0.0.1.
//! - [`InProcessTransport`]: the engine as a [`Transport`](hardpan_providers::Transport).
//!
//! ```
//! use hardpan_economy::cache::Moment;
//! use hardpan_models::Protocol;
//! use hardpan_providers::{Answer, decode_answer_body};
//! use hardpan_simulator::{Engine, EngineSettings, Request, Script};
//!
//! let script = Script::from_yaml("greet.yaml", "turns: [{text: Good morning.}]")?;
//! let engine = Engine::new(EngineSettings { script: Some(script), ..EngineSettings::default() });
//! let headers = [("x-api-key".to_owned(), "any".to_owned()), ("anthropic-version".to_owned(), "2023-06-01".to_owned())];
//! let body = br#"{"model":"claude-sonnet-5","max_tokens":100,"messages":[{"role":"user","content":"Hello!"}]}"#;
//! let request = Request { method: "POST", path: "/v1/messages", headers: &headers, body };
//!
//! let mut reply = engine.answer(&request, Moment(0));
//! engine.commit_cache(&mut reply, Moment(5)); // the headers have been sent
//! let answer: Answer = decode_answer_body(Protocol::Anthropic, &reply.body.bytes()).into_iter().collect();
//! assert_eq!((reply.status, answer.text()), (200, "Good morning.".to_owned()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer; // SimulatedAnswer: an answer, independent of the protocol
mod anthropic; // the server of Anthropic Messages
mod assistant; // answers without a script: searches, no language model
mod body_stream; // streams a body with its delays
mod clock; // Clock, ManualClock: the source of time
mod diagnostics_mode; // DiagnosticsMode: what servers say that compare requests
mod engine; // Engine: turns a request into a reply
mod error_reply; // ErrorReply: why a request is refused
mod faults; // Faults: errors to inject
mod found_page; // FoundPage: what the simulated search of the web finds
mod gemini; // the server of Gemini's own protocol
mod in_process; // InProcessTransport: the engine as a transport
mod openai_chat; // the server of OpenAI Chat Completions
mod openai_responses; // the server of OpenAI Responses
mod openai_tools; // what OpenAI's servers refuse in tools
mod reply; // Reply: a response with its delays
mod request_log; // RequestLog: requests and their bills as JSON lines
mod script; // Script: answers from a YAML file
mod server; // serve: the engine as an HTTP server
mod server_codec; // ServerCodec: what a server does differently in each protocol
mod stored; // ResponseStore: answers that later requests refer to
mod tool_choice; // ToolChoice: which tools the model may call
mod wire; // AnswerHead, StreamEvent: what all servers encode answers from

pub use anthropic::rules::{RULES as ANTHROPIC_RULES, Rule as AnthropicRule, RuleVersions};
pub use anthropic::{
    Account, AdaptiveThinking, AnthropicSettings, BetaPolicy, KnownFields, ThinkingCacheScope,
};
pub use body_stream::ConnectionCut;
pub use clock::{Clock, ManualClock};
pub use diagnostics_mode::DiagnosticsMode;
pub use engine::{Engine, EngineSettings, KeyPolicy, RateLimits, Request, SignatureCheck};
pub use faults::{Fault, FaultError, FaultRuleError, Faults};
pub use in_process::{BASE_URL, HOST, InProcessTransport};
pub use reply::{Body, BodyEnding, Chunk, Reply};
pub use request_log::{AnswerBill, RequestLog};
pub use script::{Script, ScriptError};
pub use server::{Listen, ServeError, Server, ServerConfig, serve};
