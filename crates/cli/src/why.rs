//! `hardpan why`: explains why a session paid again for tokens that were cached.

use std::path::PathBuf;

use anyhow::{Context, Result};
use hardpan_agent::session_ledger;
use hardpan_economy::Verdict;
use hardpan_session::{RequestRecord, SessionStore, SessionSummary};
use serde_json::{Value, json};

use crate::command_setup::{data_folder, working_folder};
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

/// Runs `hardpan why`.
pub fn why(args: &WhyArgs) -> Result<()> {
    let data = data_folder()?;
    let store = SessionStore::new(data.join("sessions"));
    let folder = working_folder(args.dir.as_deref())?;
    let summary: SessionSummary = match &args.session {
        Some(text) => find_own_session(&store, Some(&folder), text, "why")?,
        None => store
            .latest(&folder)
            .context("this folder has no session yet; name one (`hardpan sessions --all` lists all)")?,
    };
    let session = read_bills(&summary.path)?;
    let mut requests = 0;
    let mut losses: Vec<(&RequestRecord, Verdict)> = Vec::new();
    for request in session.requests() {
        requests += 1;
        losses.extend(session_ledger::verdict_of(request).map(|verdict| (&**request, verdict)));
    }
    let first = if args.all { 0 } else { losses.len().saturating_sub(1) };
    let shown = &losses[first..];
    if args.json {
        let shown: Vec<Value> = shown.iter().map(|(request, verdict)| as_json(request, verdict)).collect();
        return output::print_json(&shown);
    }
    if shown.is_empty() {
        note!("no losses in the {requests} requests of {}: nothing was paid twice", safe(&summary.id));
        return Ok(());
    }
    for (request, verdict) in shown {
        let time = request.started.strftime("%Y-%m-%d %H:%M:%S UTC");
        let text = format!("{time}  {}/{}\n{}\n", request.provider, request.model, explain_verdict(verdict));
        output::print_wrapped(&text)?;
    }
    if first > 0 {
        note!("{first} earlier losses: --all shows them");
    }
    Ok(())
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

fn as_json(request: &RequestRecord, verdict: &Verdict) -> Value {
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
