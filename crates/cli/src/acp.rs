//! `hardpan acp`: the agent for editors. [`AcpServer`] speaks the Agent Client Protocol, which is
//! JSON-RPC in lines, on standard input and output. A session of the protocol is a conversation with a
//! folder of its own; a process has as many as the editor opens.

mod command_outputs; // CommandOutputs: how the client shows what commands print
pub mod command_terminal; // CommandTerminal: a terminal of the client that shows a command
mod connection; // Connection: lines to the client, requests to it and their answers
mod content; // PromptContent: what a client's prompt says, as an input
mod editor_servers; // the MCP servers that an editor passes on
mod history; // an earlier conversation as updates
mod initialize; // what client and agent can do, and keys
mod options; // modes, models and thinking as the client's choices
mod prompter; // ClientPrompter: asks the person through the client
mod server; // AcpServer: requests by method
mod session; // AcpSession: one conversation
mod terminal_text; // TerminalText: what a terminal has to print next
mod tool_calls; // CallView: what a client shows of a tool call
mod updates; // UpdateMapper: from the agent's events to updates

use std::time::Duration;

use anyhow::{Context, Result};

use crate::args::ConversationArgs;
use crate::chat::signals::Signals;
use crate::chat::{ExitError, SIGNALS_UNAVAILABLE};
use crate::rpc::input;
use connection::Connection;
use server::AcpServer;

/// Flags of `hardpan acp`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example, in the settings of Zed:
  \"agent_servers\": { \"Hardpan\": { \"type\": \"custom\", \"command\": \"hardpan\", \"args\": [\"acp\"] } }")]
pub struct AcpArgs {
    #[command(flatten)]
    pub conversation: ConversationArgs,
}

/// How long the process waits at its end for conversations to be stored and for the client to read the
/// last lines.
const LAST_WORK: Duration = Duration::from_secs(2);

/// Serves one client until it goes away.
pub fn acp(args: &AcpArgs) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // One reads; the others keep it going while a handler blocks.
        .worker_threads(4)
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    let result = runtime.block_on(serve(&args.conversation));
    // Neither a hanging tool nor the reading thread may keep the process alive.
    runtime.shutdown_background();
    result
}

async fn serve(flags: &ConversationArgs) -> Result<()> {
    let options = flags.options()?;
    let (connection, written) = Connection::start();
    let mut signals = Signals::listen().context(SIGNALS_UNAVAILABLE)?;
    let mut lines = input::read_lines();
    let server = AcpServer::new(options, &connection);
    let interrupt = tokio::select! {
        () = server.serve(&mut lines) => None,
        () = connection.wait_for_client_gone() => None,
        interrupt = signals.next() => Some(interrupt),
    };
    // What arrived is stored, and what runs ends with it, whether or not anybody still reads.
    connection.close();
    let _ = tokio::time::timeout(LAST_WORK, server.shut_down()).await;
    drop(server);
    drop(connection);
    let _ = tokio::time::timeout(LAST_WORK, written).await;
    match interrupt {
        None => Ok(()),
        Some(interrupt) => Err(ExitError::interrupted(interrupt).into()),
    }
}
