//! Servers of the Model Context Protocol: their settings, their processes and connections, their tools,
//! prompts and resources.
//!
//! - [`ServerConfig`] says how a server is started or reached.
//! - [`Connection`] is a server that answers: it lists tools and calls them.
//! - [`ServerTool`] is one of its tools, with a name and a schema that every provider takes; [`ServerPrompt`]
//!   and [`ServerResource`] are what else it can list.
//! - [`ClientHost`] answers what a server asks, and is told what it tells.
//! - [`serve_tools`] is the other side: it offers tools of ours to another agent.
//! - [`LoginAttempt`] logs in at a server with OAuth, and [`LoginFile`] keeps the [`Login`].
//!
//! A server that hangs, floods, answers nonsense or dies becomes a [`ServerError`], whose text says what
//! happened, and takes a bounded part of the memory until then.

mod arguments; // check_arguments: whether arguments fit a schema
mod calls; // requests to a server, with their limits, progress and cancellation
mod client_side; // ClientHost: who answers what a server asks
mod config; // ServerConfig: how a server is started or reached
mod connection; // Connection: a server that answers
mod error; // ServerError: why a server cannot be used
mod error_output; // ErrorOutput: what a program said before it ended
mod failures; // what errors of the protocol's crate mean for the person
mod forms; // ServerForm: what a server asks a person for
mod http_client; // BoundedHttpClient: messages over HTTP, whose answers are bounded
mod http_refusal; // HttpRefusal: what an address answers that says more than its status
mod loading; // ToolLoadingSetting: how the model gets to know tools
mod login; // Login: tokens by OAuth
mod message_text; // read_messages: messages also of servers that do not quite write JSON
mod odd_answers; // answers of which some items are of odd form
mod page_cursor; // PageCursor: where a list goes on that comes page by page
mod plain_text; // plain_text: texts of servers without what steers a terminal
mod program; // ProgramTransport: messages on a program's input and output
mod prompts; // ServerPrompt: a prompt that a server writes
mod resources; // ServerResource: something to read that a server has
mod results; // CallAnswer: what a call is answered with
mod sampling; // SamplingRequest: what a server asks a model for
mod schema; // normalise_schema: what every provider takes as the schema of arguments
mod tool_list; // ServerTool: names and schemas that every provider takes
mod tool_server; // serve_tools: offers tools to another agent

pub use arguments::{ArgumentProblem, check_arguments, without_nulls};
pub use client_side::{ClientHost, HostFuture};
pub use config::{
    InvalidServerName, ServerConfig, ServerConfigError, ServerConfigs, ServerName, ServerTransport,
};
pub use connection::Connection;
pub use error::{ServeError, ServerError};
pub use forms::{FieldError, FieldKind, FormAnswer, FormError, FormField, ServerForm, ServerVisit};
pub use loading::ToolLoadingSetting;
pub use login::{
    InvalidAnswer, Login, LoginAttempt, LoginError, LoginFile, LoginSettings, RedirectAnswer,
    RedirectListener, revoke,
};
pub use program::{ProgramConfinement, ProgramPlace};
pub use prompts::{PromptArgument, PromptText, ServerPrompt};
pub use resources::{ResourceContent, ServerResource, ServerResources};
pub use results::CallAnswer;
pub use sampling::{SamplingAnswer, SamplingError, SamplingRefusal, SamplingRequest};
pub use schema::rename_arguments;
pub use tool_list::ServerTool;
pub use tool_server::{OfferedTool, ProgressFunction, ToolFunction, ToolReply, serve_tools};
