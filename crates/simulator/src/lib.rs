//! A provider that is not there: it behaves like the servers, on loopback or within the process, and needs no key.
//!
//! It speaks Anthropic Messages and OpenAI Chat Completions, checks requests as strictly as the real servers, caches and
//! bills as they document it, and answers from a [`Script`] or with a built-in assistant that has no language model and
//! says so. [`Faults`] go wrong on order. Tokens are counted with our tokenizer; a header of every answer says so.
//!
//! - [`Engine`]: from a [`Request`] to a [`Reply`], without network or clock.
//! - [`serve`]: the engine as a server on 127.0.0.1.
//! - [`InProcess`]: the engine as a [`Transport`](hardpan_providers::Transport).
//!
//! ```
//! use hardpan_economy::cache::Moment;
//! use hardpan_models::Protocol;
//! use hardpan_providers::{Answer, events_of_body};
//! use hardpan_simulator::{Engine, Request, Script, Settings};
//!
//! let script = Script::from_yaml("greet.yaml", "turns: [{text: Good morning.}]")?;
//! let engine = Engine::new(Settings { script: Some(script), ..Settings::default() });
//! let headers = [("x-api-key".to_owned(), "any".to_owned()), ("anthropic-version".to_owned(), "2023-06-01".to_owned())];
//! let body = br#"{"model":"claude-sonnet-5","max_tokens":100,"messages":[{"role":"user","content":"Hello!"}]}"#;
//! let request = Request { method: "POST", path: "/v1/messages", headers: &headers, body };
//!
//! let mut reply = engine.answer(&request, Moment(0));
//! engine.begin(&mut reply, Moment(5)); // the head has been sent
//! let answer: Answer = events_of_body(Protocol::Anthropic, &reply.body.bytes()).into_iter().collect();
//! assert_eq!((reply.status, answer.text()), (200, "Good morning.".to_owned()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod assistant; // answers without a script: search, no language model
mod choice; // Choice: which tools may be called
mod clock; // Clock, SetClock: where the time comes from
mod engine; // Engine: from a request to its answer
mod faults; // Faults: what goes wrong, and when
mod in_process; // InProcess: the engine as a transport
mod play; // sending a body in its time
mod refusal; // Refusal: errors in the servers' own forms
mod reply; // Reply: what is to be sent
mod said; // Said: an answer before it has the form of a protocol
mod script; // Script: answers from a file
mod server; // serve: the engine on loopback
mod wire; // answers in the form of their protocol

pub use clock::{Clock, SetClock};
pub use engine::{Engine, Keys, Limits, Request, Settings, Signatures};
pub use faults::{Fault, FaultError, Faults};
pub use in_process::{BASE_URL, HOST, InProcess};
pub use play::Broken;
pub use reply::{Body, Chunk, Ending, Reply};
pub use script::{Script, ScriptError};
pub use server::{Config, Listen, ServeError, Server, serve};
