//! `hardpan rpc`: the agent for programs. [`RpcServer`] reads requests as JSON lines from standard
//! input and writes responses, questions and all events as JSON lines to standard output. Notices
//! for people are `note` events.

mod error; // RpcError: why a request failed
pub mod input; // reads lines from standard input
mod pending_inputs; // PendingInputs: inputs that are not finished, and their responses
pub mod queries; // collects the data of responses to get_state, get_context, …
mod questions; // PendingQuestions: questions to the client, and its answers
mod reply; // PendingResponse: exactly one response to each request
mod request; // the requests of the protocol
mod response; // the responses and questions of the protocol
mod schema; // the protocol as a JSON schema
mod server; // RpcServer: runs requests in order
mod writer; // JsonWriter: lines and events on standard output

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use hardpan_app::{ConversationApp, FaceHooks};

use crate::args::ConversationArgs;
use crate::chat::commands;
use crate::chat::signals::{Interrupt, Signals};
use crate::chat::{ExitError, SIGNALS_UNAVAILABLE};
use crate::output;
use pending_inputs::PendingInputs;
use questions::PendingQuestions;
use server::RpcServer;
use writer::JsonWriter;

/// Flags of `hardpan rpc`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  echo '{\"id\": 1, \"type\": \"get_state\"}' | hardpan rpc")]
pub struct RpcArgs {
    /// Print the JSON schema of the protocol and exit
    #[arg(long)]
    schema: bool,
    #[command(flatten)]
    pub conversation: ConversationArgs,
}

/// Serves one client until it closes standard input.
pub fn rpc(args: &RpcArgs) -> Result<()> {
    if args.schema {
        return output::print_json(&schema::schema());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // One runs the loop; the others keep it going while a handler or a slow reader blocks.
        .worker_threads(4)
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    let result = runtime.block_on(serve(&args.conversation));
    // Neither a hanging tool or handler nor the reading thread may keep the process alive.
    runtime.shutdown_background();
    result
}

/// How long an interrupted server waits for its client to read the last lines.
const LAST_LINES: Duration = Duration::from_secs(2);

/// Why the server stopped.
enum ServeEnd {
    /// Standard input ended, and every request is done.
    Done,
    /// The client no longer reads standard output.
    Gone,
    /// A signal arrived.
    Interrupted(Interrupt),
}

async fn serve(flags: &ConversationArgs) -> Result<()> {
    let (out, unstarted) = JsonWriter::new();
    let questions = Arc::new(PendingQuestions::new(&out));
    let face = FaceHooks { prompter: Some(questions.clone()), notices: Arc::new(out.clone()) };
    let app = Arc::new(ConversationApp::open(&flags.options()?, &face)?);
    let agent = app.agent.clone();
    let leaving = commands::register_commands(&app);
    let pending_inputs = PendingInputs::default();
    let writer = unstarted.start(&agent, &pending_inputs);
    let mut signals = Signals::listen().context(SIGNALS_UNAVAILABLE)?;
    app.load_extensions().await?;
    agent.start().await;
    app.watch_extensions();
    let mut lines = input::read_lines();
    let mut server = RpcServer::new(&app, &out, &questions, &pending_inputs);
    let end = tokio::select! {
        () = server.serve(&mut lines, &leaving) => ServeEnd::Done,
        () = out.wait_for_reader_gone() => ServeEnd::Gone,
        interrupt = signals.next() => ServeEnd::Interrupted(interrupt),
    };
    // Stops what still runs and stores what arrived, before the server's tasks are dropped.
    questions.close();
    agent.abort_shell_command();
    agent.stop();
    tokio::select! {
        biased;
        stored = app.close() => stored?,
        // Whoever sends another signal does not want to wait.
        interrupt = signals.next() => return Err(ExitError::interrupted(interrupt).into()),
    }
    drop(server);
    out.end();
    match end {
        // A client that neither reads nor goes away does not keep an interrupted process alive.
        ServeEnd::Interrupted(_) => drop(tokio::time::timeout(LAST_LINES, writer).await),
        ServeEnd::Done | ServeEnd::Gone => drop(writer.await),
    }
    match end {
        ServeEnd::Done | ServeEnd::Gone => Ok(()),
        ServeEnd::Interrupted(interrupt) => Err(ExitError::interrupted(interrupt).into()),
    }
}
