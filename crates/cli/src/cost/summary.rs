//! [`CostSummary`]: the bills of many sessions, each request counted once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hardpan_agent::session_ledger;
use hardpan_economy::Ledger;
use hardpan_economy::ledger::Totals;
use hardpan_files::{RegularFile, read_lines};
use hardpan_session::{Entry, Record, Session, SessionError, SessionSummary};

/// The costs of a set of sessions.
#[derive(Default)]
pub struct CostSummary {
    /// The bills of all sessions together.
    pub ledger: Ledger,
    /// Totals by session, labelled with its id and title.
    pub sessions: Vec<(String, Totals)>,
    /// Totals by the folder that the session began in.
    pub projects: BTreeMap<String, Totals>,
    /// How many requests had no reported usage and are estimates.
    pub estimated: u64,
    /// How many requests a simulator answered, and what they would have cost: they are left out.
    pub simulated: (u64, f64),
    /// One message for each session file that could not be read.
    pub unreadable: Vec<String>,
}

impl CostSummary {
    /// Adds up sessions. A fork contains copies of its origin's requests; if the origin is among
    /// the sessions, those count for the origin only.
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
        let would_cost = |entry: &Entry| match &entry.record {
            Record::Request(request) => request.would_cost,
            _ => None,
        };
        for dollars in entries.iter().filter_map(would_cost) {
            self.simulated.0 += 1;
            self.simulated.1 += dollars;
        }
        let ledger =
            session_ledger::ledger_from_entries(entries.iter().filter(|entry| would_cost(entry).is_none()));
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
            Record::Request(request) => {
                request.would_cost.is_none() && session_ledger::charge_of(request).estimated
            }
            _ => false,
        };
        self.estimated += entries.iter().filter(is_estimated).count() as u64;
    }
}

/// The entries that count for this session: of a fork, those after the entry that it forked from.
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

/// Reads a session without its messages, memories and partial answers, which are most of a file. A
/// fork is read in full, since it refers to one of them.
pub fn read_bills(path: &Path) -> Result<Session, SessionError> {
    let name = path.display().to_string();
    let read = RegularFile::open(path).and_then(|mut file| read_lines(&mut file));
    let lines = read.map_err(|reason| SessionError::Io { name: name.clone(), error: reason.into() })?;
    let skipped: [&[u8]; 3] = [br#"{"type":"message""#, br#"{"type":"memory""#, br#"{"type":"partial""#];
    let kept = |line: &&[u8]| !skipped.iter().any(|start| line.starts_with(start));
    let bytes = hardpan_session::lines(&lines.bytes).filter(kept).collect::<Vec<_>>().concat();
    let session = Session::parse(&name, &bytes)?;
    if session.header.extra.contains_key("forked_from") { Session::open(path) } else { Ok(session) }
}
