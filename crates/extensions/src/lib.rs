//! Extensions: programs in TypeScript or JavaScript that take part in a conversation.
//!
//! The principal type is [`Script`]: one extension in an engine of its own, on a thread of its own.
//! The crate knows nothing of agents. A script asks its [`ScriptHost`] for everything, and is called
//! by name; what goes in and what comes out is JSON.
//!
//! - [`ScriptLimits`] bound memory, stack and time. Time is that of one *slice*: from the moment the
//!   engine is entered until it gives the thread back. Waiting for a person or a process is no slice.
//! - [`typescript::strip_types`] makes JavaScript of TypeScript, so that the engine can run it, with
//!   every line and column where it was.
//! - [`modules`] finds what a script imports: its own files below its folder, and modules that are
//!   built in. Anything else is an error that names the module.

mod engine; // Script: one extension in its engine
pub mod modules; // what a script may import
pub mod typescript;

pub use engine::{CallKind, HostError, LogLevel, Script, ScriptError, ScriptFault, ScriptHost, ScriptLimits};
pub use modules::{FileSources, ModuleSources};
