//! Servers of the Model Context Protocol: their settings, their processes and connections, their tools.
//!
//! - [`ServerConfig`] says how a server is started or reached.
//! - [`Connection`] is a server that answers: it lists tools and calls them.
//! - [`ServerTool`] is one of its tools, with a name and a schema that every provider takes.
//!
//! A server that hangs, floods, answers nonsense or dies becomes a [`ServerError`], whose text says what
//! happened, and takes a bounded part of the memory until then.

mod config; // ServerConfig: how a server is started or reached
mod connection; // Connection: a server that answers
mod error; // ServerError: why a server cannot be used
mod program; // ProgramTransport: messages on a program's input and output
mod results; // CallAnswer: what a call is answered with
mod tool_list; // ServerTool: names and schemas that every provider takes

pub use config::{
    InvalidServerName, ServerConfig, ServerConfigError, ServerConfigs, ServerName, ServerTransport,
};
pub use connection::Connection;
pub use error::ServerError;
pub use program::{ProgramConfinement, ProgramPlace};
pub use results::CallAnswer;
pub use tool_list::ServerTool;
