//! What the tests and benchmarks of several crates share. The principal type is [`TestAgent`]: an
//! agent in a folder of its own that talks to a simulated provider and records everything.
//!
//! ```
//! use hardpan_test_support::TestAgent;
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let script = "
//! turns:
//!   - {text: Let me look., tool_calls: [{name: read, arguments: {path: a.txt}}]}
//! default: {text: It has two lines.}
//! ";
//! let test_agent = TestAgent::builder().script(script).file("a.txt", "one\ntwo\n").start().await;
//! test_agent.say("How long is a.txt?").await;
//! assert_eq!(
//!     test_agent.transcript_lines(),
//!     [
//!         "user: How long is a.txt?",
//!         "assistant: Let me look. [read]",
//!         "result: one\ntwo\n",
//!         "assistant: It has two lines.",
//!     ]
//! );
//! # });
//! ```
//!
//! There are three starting points, all [`TestAgentBuilder`]s: [`TestAgent::builder`] for the loop
//! itself (real HTTP, fake tools), [`TestAgent::with_real_tools`] for everything that changes files,
//! and [`TestAgent::in_process`] for what costs money and time (the clock is the test's).
//!
//! This crate is a development dependency only.

mod approvals; // TestApprovals: who decides about calls
mod builder; // TestAgentBuilder: what a test agent is made of
mod canned_answer; // a server that gives one answer, to the byte
mod environment; // TestEnvironment: what all agents of a test share
mod event_log; // EventLog: what an agent emitted
mod git_server; // GitServer: repositories over HTTP
mod http_server; // TestServer: answers as the test says
mod instant_provider; // InstantProvider: answers at once, for benchmarks
pub mod live_work; // long scripted sessions of the real binary, with the simulator's bill
mod oauth_server; // OauthServer: an MCP server that asks for a login, and the authorization server
mod prerequisite; // what a test needs of the machine: in CI it must be there
mod random; // Random: numbers that depend on a seed
mod simulator; // the simulator as an engine, and as a server for other processes
mod test_agent; // TestAgent
mod texts; // texts of a wanted length
mod tmux; // Tmux: a real terminal that wraps its lines again
mod tools; // fake tools
mod traffic; // SentRequest: every request and its answer, to the byte
mod transcript; // messages and requests as comparable lines
mod wait; // NoteLog, AnswerGate: waiting for what happens in other tasks
mod workspace; // TestWorkspace: what the agent observes

pub use approvals::TestApprovals;
pub use builder::{TestAgentBuilder, TestClock, Toolset};
pub use event_log::{EventLog, handler_failed, queued_input, text_of};
pub use git_server::GitServer;
pub use http_server::{ReceivedRequest, TestResponse, TestServer};
pub use instant_provider::InstantProvider;
pub use oauth_server::{OauthFault, OauthServer};
pub use prerequisite::{is_ci, prerequisite};
pub use random::Random;
pub use simulator::{SimulatorServer, scripted_engine};
pub use test_agent::TestAgent;
pub use texts::{code, long_text, numbered_lines, pixel};
pub use tmux::Tmux;
pub use tools::{LookTool, PaintTool, SlowTool, SlowToolCounts};
pub use traffic::SentRequest;
pub use transcript::{assert_calls_paired, line, request_lines, system_prompt};
pub use wait::{AnswerGate, MAX_WAIT, NoteLog};
pub use workspace::{TestWorkspace, WorkspaceContents};

use hardpan_agent::{Input, InputSource};
use hardpan_session::Header;

/// A phrase that every request for a summary contains: scripts tell such requests by it.
pub const SUMMARY_REQUEST_TEXT: &str = "about to leave the context";

/// The header of a session with this id.
pub fn header(id: &str) -> Header {
    Header { id: id.into(), time: None, cwd: "/project".into(), extra: Default::default() }
}

/// An input as a person types it.
pub fn input(text: &str) -> Input {
    let source = InputSource::Interactive;
    Input { text: text.into(), below: None, images: Vec::new(), source, id: None }
}
