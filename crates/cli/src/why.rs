//! `hardpan why`: explains why a session paid again for tokens that were cached.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use hardpan_agent::session_ledger;
use hardpan_economy::Verdict;
use hardpan_session::{RequestRecord, SessionStore, SessionSummary};
use serde_json::{Value, json};

use crate::command_setup::{session_store, working_folder};
use crate::cost::{find_own_session, read_bills};
use crate::output::{self, safe, thousands};

/// Flags of `hardpan why`.
#[derive(Debug, clap::Args)]
pub struct WhyArgs {
    /// Session id (or its beginning), name (or a part of it), or file [default: the last session of
    /// this folder]
    #[arg(value_name = "SESSION")]
    session: Option<String>,
    /// Show every loss of the session, not only the last
    #[arg(long)]
    all: bool,
    /// Print the losses as JSON
    #[arg(long)]
    json: bool,
    /// Use the sessions of this folder [default: the current folder]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

/// A request that paid again for what was cached, and why.
pub struct Loss {
    request: RequestRecord,
    verdict: Verdict,
}

/// The losses of a session, in the order of its requests.
pub struct SessionLosses {
    /// Id of the session.
    pub session: String,
    /// How many requests it has.
    pub requests: usize,
    pub losses: Vec<Loss>,
}

/// The losses of a session: the one that the text names, or the last one of the folder.
pub fn find_losses(store: &SessionStore, folder: &Path, session: Option<&str>) -> Result<SessionLosses> {
    let summary: SessionSummary = match session {
        Some(text) => find_own_session(store, Some(folder), text, "why")?,
        None => store
            .latest(folder)
            .context("this folder has no session yet; name one (`hardpan sessions --all` lists all)")?,
    };
    let session = read_bills(&summary.path)?;
    let mut found = SessionLosses { session: summary.id.to_string(), requests: 0, losses: Vec::new() };
    for request in session.requests() {
        found.requests += 1;
        let verdict = session_ledger::verdict_of(request);
        found.losses.extend(verdict.map(|verdict| Loss { request: (**request).clone(), verdict }));
    }
    Ok(found)
}

/// Runs `hardpan why`.
pub fn why(args: &WhyArgs) -> Result<()> {
    let folder = working_folder(args.dir.as_deref())?;
    let SessionLosses { session, requests, losses } =
        find_losses(&session_store()?, &folder, args.session.as_deref())?;
    let first = if args.all { 0 } else { losses.len().saturating_sub(1) };
    let shown = &losses[first..];
    if args.json {
        let shown: Vec<Value> = shown.iter().map(Loss::to_json).collect();
        return output::print_json(&shown);
    }
    if shown.is_empty() {
        note!("no losses in the {requests} requests of {}: nothing was paid twice", safe(&session));
        return Ok(());
    }
    for loss in shown {
        output::print_wrapped(explain_loss(loss))?;
    }
    if first > 0 {
        note!("{first} earlier losses: --all shows them");
    }
    Ok(())
}

/// A loss in a few lines: when, with which model, and why.
pub fn explain_loss(loss: &Loss) -> String {
    let Loss { request, verdict } = loss;
    let time = request.started.strftime("%Y-%m-%d %H:%M:%S UTC");
    format!("{time}  {}/{}\n{}\n", request.provider, request.model, explain_verdict(verdict))
}

/// A verdict in a few lines: what happened, what was expected, and where the two prompts differ.
pub fn explain_verdict(verdict: &Verdict) -> String {
    let count = |tokens: u64| thousands(usize::try_from(tokens).unwrap_or(usize::MAX));
    let mut text = verdict.sentence();
    if verdict.is_loss() {
        let (expected, read) = (count(verdict.expected_read), count(verdict.read));
        text.push_str(&format!("\n  {expected} tokens were in the cache, {read} were read from it"));
    }
    if let Some(spot) = &verdict.first_difference {
        let origin =
            spot.origin.as_ref().map_or_else(String::new, |origin| format!(": {}", origin.describe()));
        text.push_str(&format!(
            "\n  the first difference is at {} (block {}){origin}",
            spot.address, spot.block
        ));
    }
    text
}

impl Loss {
    /// The loss for programs.
    pub fn to_json(&self) -> Value {
        let Loss { request, verdict } = self;
        json!({
            "time": request.started,
            "provider": request.provider,
            "model": request.model,
            "purpose": request.purpose,
            "message": request.message,
            "verdict": verdict,
            "sentence": verdict.sentence(),
        })
    }
}
