//! [`LiveOutcome`]: what a live run cost, what it left in its session, and what went wrong.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use hardpan_context::{LayoutName, LayoutStateLog};
use hardpan_prompt::TokenUsage;
use hardpan_session::Session;
use serde::Deserialize;
use serde_json::Value;

/// What the simulator billed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LiveBill {
    /// Requests that got an answer.
    pub requests: usize,
    /// The price of all prompts in tokens of plain input.
    pub units: f64,
    /// The tokens by how they were billed.
    pub usage: TokenUsage,
    /// Prompt tokens of the longest request.
    pub longest_prompt: u64,
    /// Prompt tokens of the last request.
    pub last_prompt: u64,
}

/// A run as it was billed and stored.
#[derive(Clone, Debug)]
pub struct LiveOutcome {
    /// The simulator's bill.
    pub bill: LiveBill,
    /// The session file.
    pub session: PathBuf,
    /// How often the layout rebuilt its prompt.
    pub folds: u64,
    /// Tokens of the last request that a fold would have dropped, by the layout's own account.
    pub garbage: usize,
    /// What `hardpan replay --json` says about the session.
    pub replay: Value,
    /// What did not go as planned. The figures mean nothing unless this is empty.
    pub problems: Vec<LiveProblem>,
}

/// Something that did not go as planned.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveProblem {
    /// The simulator refused a request.
    Refused {
        /// The status of the reply.
        status: u16,
        /// Its body.
        error: String,
    },
    /// A call ended otherwise than planned.
    Call {
        /// The call's id.
        id: String,
        /// The tool.
        tool: String,
        /// What it answered.
        answer: String,
    },
    /// A planned call did not run.
    CallNotRun {
        /// The call's id.
        id: String,
    },
    /// A run did not end by itself.
    RunEnd {
        /// The number of the run, from 0.
        run: usize,
        /// The reason in `agent_end`, or the last line that came.
        reason: String,
    },
    /// There were more or fewer requests than planned.
    RequestCount {
        /// Planned.
        planned: usize,
        /// Answered.
        answered: usize,
    },
    /// A file is not as the planned edits would have left it.
    File {
        /// Its path.
        path: String,
    },
    /// The session's own records and the simulator's bill differ.
    SessionUsage {
        /// What the session records.
        session: TokenUsage,
        /// What the simulator billed.
        billed: TokenUsage,
    },
}

impl fmt::Display for LiveProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LiveProblem::Refused { status, error } => write!(f, "refused with {status}: {error}"),
            LiveProblem::Call { id, tool, answer } => {
                write!(f, "{tool} ({id}) ended otherwise than planned: {answer}")
            }
            LiveProblem::CallNotRun { id } => write!(f, "the call {id} did not run"),
            LiveProblem::RunEnd { run, reason } => write!(f, "run {run} did not end by itself: {reason}"),
            LiveProblem::RequestCount { planned, answered } => {
                write!(f, "{answered} requests were answered, {planned} were planned")
            }
            LiveProblem::File { path } => write!(f, "{path} is not as the planned edits leave it"),
            LiveProblem::SessionUsage { session, billed } => {
                write!(f, "the session records {session:?}, the simulator billed {billed:?}")
            }
        }
    }
}

/// A line of the simulator's log, without the body.
#[derive(Deserialize)]
struct LogLine {
    status: u16,
    bill: Option<LoggedBill>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct LoggedBill {
    usage: TokenUsage,
    input_units: f64,
}

/// Adds up the simulator's log.
pub(super) fn read_bill(log: &Path) -> io::Result<(LiveBill, Vec<LiveProblem>)> {
    let (mut bill, mut problems) = (LiveBill::default(), Vec::new());
    for line in BufReader::new(File::open(log)?).lines() {
        let line: LogLine = serde_json::from_str(&line?)?;
        if line.status >= 400 {
            let error = line.error.unwrap_or_default().to_string();
            problems.push(LiveProblem::Refused { status: line.status, error });
        }
        let Some(LoggedBill { usage, input_units }) = line.bill else { continue };
        bill.requests += 1;
        bill.units += input_units;
        bill.usage += usage;
        bill.longest_prompt = bill.longest_prompt.max(usage.prompt());
        bill.last_prompt = usage.prompt();
    }
    Ok((bill, problems))
}

/// What the session says: its usage, its folds, and the garbage of its last request.
pub(super) struct SessionFacts {
    pub usage: TokenUsage,
    pub folds: u64,
    pub garbage: usize,
}

pub(super) fn read_session(path: &Path, layout: LayoutName) -> SessionFacts {
    let session = Session::open(path).expect("the session can be read");
    let branch = session.branch(None).expect("the session has a branch");
    let mut usage = TokenUsage::default();
    for request in &branch.requests {
        usage += request.usage;
    }
    let log = LayoutStateLog::from_records(branch.memories);
    let state = serde_json::to_value(log.current()).expect("layout state is JSON");
    SessionFacts {
        usage,
        folds: state["strata"]["folds"].as_u64().unwrap_or_default(),
        garbage: layout.layout().garbage_tokens(log.current()),
    }
}
