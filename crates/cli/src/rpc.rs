//! `hardpan rpc`: the agent for programs. Requests come as JSON lines on standard input; responses, questions and all events
//! go as JSON lines to standard output. Words go to standard error.

mod desk; // Desk: who does what with a request, and in which order
mod input; // lines from standard input, whatever comes
mod questions; // questions to the other end, and their answers
mod reply; // standard output, and the one response to each request
mod request; // what comes in
mod response; // what goes out
mod schema; // the protocol as a JSON schema
mod tell; // what a response tells

use std::sync::Arc;

use anyhow::{Context, Result};

use crate::args::{Chat, Whom};
use crate::chat::commands;
use crate::chat::open::Opened;
use crate::chat::signals::{Asked, Signals};
use crate::chat::{UNHEARD, Unfinished};
use crate::output;
use desk::Desk;
use questions::Questions;
use reply::Out;

/// How the conversation begins.
#[derive(Debug, clap::Args)]
pub struct Rpc {
    /// Print the JSON schema of the protocol
    #[arg(long)]
    schema: bool,
    /// Go on with the last conversation in this folder
    #[arg(short, long = "continue", conflicts_with_all = ["resume", "fork"])]
    last: bool,
    /// Go on with this conversation: an id, a name or a file
    #[arg(short, long, value_name = "SESSION", conflicts_with = "fork")]
    resume: Option<String>,
    /// Begin a conversation of its own with all that was said in this one
    #[arg(long, value_name = "SESSION")]
    fork: Option<String>,
    /// With --resume or --fork: go on from this entry instead of the last
    #[arg(long, value_name = "ENTRY")]
    at: Option<String>,
    /// Ask nothing: every tool may run. For containers and other places where nothing can be harmed
    #[arg(long)]
    yes: bool,
    /// Keep nothing of this conversation
    #[arg(long, conflicts_with_all = ["last", "resume", "fork"])]
    no_session: bool,
    #[command(flatten)]
    whom: Whom,
}

impl Rpc {
    fn chat(&self) -> Chat {
        Chat {
            last: self.last,
            resume: self.resume.clone(),
            fork: self.fork.clone(),
            at: self.at.clone(),
            yes: self.yes,
            no_session: self.no_session,
            whom: self.whom.clone(),
            ..Chat::default()
        }
    }
}

/// Serves one program until it closes its end.
pub fn rpc(args: &Rpc) -> Result<()> {
    if args.schema {
        return Ok(output::print(serde_json::to_string_pretty(&schema::schema())? + "\n")?);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // One for the loop; the others so that a handler, or a reader that takes its time, does not hold it up.
        .worker_threads(4)
        .enable_all()
        .build()
        .context("no runtime can be made")?;
    let result = runtime.block_on(serve(&args.chat()));
    // A tool or a handler that hangs on a thread of its own must not keep the process, nor does the thread that reads.
    runtime.shutdown_background();
    result
}

/// Why nothing more is done.
enum End {
    /// Nothing more can be asked for, and what was asked for is done.
    Done,
    /// Nobody reads what is written any more.
    Gone,
    /// Somebody wants an end.
    Told(Asked),
}

async fn serve(flags: &Chat) -> Result<()> {
    let out = Out::default();
    let questions = Arc::new(Questions::new(&out));
    let opened = Arc::new(Opened::new(flags, Some(questions.clone()))?);
    let agent = opened.agent.clone();
    let leaving = commands::register(&opened);
    desk::follow(&agent, &out);
    let mut signals = Signals::listen().context(UNHEARD)?;
    agent.start().await;
    let mut lines = input::lines();
    let mut desk = Desk::new(&opened, &out, &questions);
    let end = tokio::select! {
        () = desk.work(&mut lines, &leaving) => End::Done,
        () = out.gone() => End::Gone,
        asked = signals.next() => End::Told(asked),
    };
    // What still runs is stopped, and kept as far as it came, before the desk and its tasks go.
    questions.close();
    agent.abort_bash();
    agent.abort();
    opened.keep().await;
    agent.shutdown().await?;
    drop(desk);
    match end {
        End::Done | End::Gone => Ok(()),
        End::Told(asked) => Err(Unfinished::told(asked).into()),
    }
}
