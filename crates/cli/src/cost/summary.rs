//! The bills of many sessions, each request once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hardpan_agent::session_ledger;
use hardpan_economy::Ledger;
use hardpan_economy::ledger::Totals;
use hardpan_session::{Entry, Record, Session, SessionError, SessionSummary};

/// What was paid in some sessions.
#[derive(Default)]
pub struct CostSummary {
    /// All of it.
    pub ledger: Ledger,
    /// By session: its id and what it is about.
    pub sessions: Vec<(String, Totals)>,
    /// By the folder it began in.
    pub projects: BTreeMap<String, Totals>,
    /// Requests whose provider reported no usage.
    pub estimated: u64,
    /// What could not be read.
    pub unreadable: Vec<String>,
}

impl CostSummary {
    /// Adds sessions up. A fork has the requests of its branch, too: where the session that it came from is among them, they
    /// count for that one.
    pub fn from_sessions(summaries: &[SessionSummary]) -> Self {
        let ids: BTreeSet<&str> = summaries.iter().map(|summary| &*summary.id).collect();
        let mut sum = CostSummary::default();
        for summary in summaries {
            match read_bills(&summary.path) {
                Ok(session) => sum.add(summary, own_entries(&session, &ids)),
                Err(error) => sum.unreadable.push(error.to_string()),
            }
        }
        sum
    }

    fn add(&mut self, summary: &SessionSummary, entries: &[Entry]) {
        let ledger = session_ledger::ledger_from_entries(entries);
        if ledger.total.requests == 0 {
            return;
        }
        let about = summary.name.as_deref().or(summary.first_prompt.as_deref()).unwrap_or_default();
        self.sessions.push((format!("{}  {about}", summary.id), ledger.total));
        let project = self.projects.entry(summary.cwd.to_string()).or_default();
        let mut merged = Ledger { total: *project, ..Ledger::default() };
        merged.merge(&Ledger { total: ledger.total, ..Ledger::default() });
        *project = merged.total;
        self.ledger.merge(&ledger);
        let is_estimated = |entry: &&Entry| match &entry.record {
            Record::Request(request) => session_ledger::charge_of(request).estimated,
            _ => false,
        };
        self.estimated += entries.iter().filter(is_estimated).count() as u64;
    }
}

/// What a session has paid itself: of a fork, what came after the entry that it goes on from.
fn own_entries<'a>(session: &'a Session, known: &BTreeSet<&str>) -> &'a [Entry] {
    let all = &session.entries[..];
    let Some(from) = session.header.extra.get("forked_from") else { return all };
    if !from["session"].as_str().is_some_and(|id| known.contains(id)) {
        return all;
    }
    let entry = from["entry"].as_str().unwrap_or_default();
    let last = all.iter().position(|other| &*other.id == entry);
    &all[last.map_or(0, |last| last + 1)..]
}

/// Reads of a session what bills are made of: messages and memories are most of a file, and are not parsed. Of a fork all is
/// read: it goes on from one of them.
pub fn read_bills(path: &Path) -> Result<Session, SessionError> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| SessionError::Io { name: name.clone(), error })?;
    let skipped: [&[u8]; 3] = [br#"{"type":"message""#, br#"{"type":"memory""#, br#"{"type":"partial""#];
    let kept = |line: &&[u8]| !skipped.iter().any(|start| line.starts_with(start));
    let bytes: Vec<u8> =
        bytes.split_inclusive(|byte| *byte == b'\n').filter(kept).flatten().copied().collect();
    let session = Session::parse(&name, &bytes)?;
    if session.header.extra.contains_key("forked_from") { Session::open(path) } else { Ok(session) }
}
