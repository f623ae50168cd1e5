//! `SessionLedger`: what each request of a session is charged for, and which cached tokens were
//! paid for again.
//!
//! A request's record in the session carries its `charge`, one row per kind, and its `verdict` if
//! something was lost. At the end of a run two more records follow: the costs by key
//! (`hardpan.items`), and the cache monitor's trace that the next request is compared with
//! (`hardpan.watch`), both as what is new since the last. So a session file alone tells what was
//! paid for what, and a resumed session can still explain why its first request found nothing in
//! the cache.

mod stored_monitor; // what is kept of a watch, as what is new in it

use std::collections::BTreeSet;

use hardpan_context::{Target, prefix_hash};
use hardpan_economy::cache::{CacheSettings, Moment};
use hardpan_economy::forecast::{CostForecast, PlannedAction, forecast_cost};
use hardpan_economy::ledger::{
    Account, Charge, ChargeRow, CompletedRequest, Continuity, Ledger, RequestPurpose, Totals,
};
use hardpan_economy::{CacheMonitor, Verdict};
use hardpan_prompt::{CacheDiagnosis, MessageId, Prompt, PromptTokens};
use hardpan_providers::ReportedUsage;
use hardpan_session::{Entry, Record, RequestRecord};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use crate::extension_changes::{ExtensionChange, culprit, read_system_changes, stored_system_changes};
use stored_monitor::StoredMonitor;

/// Type of the record that holds the costs of a run by key.
const ITEMS_RECORD: &str = "hardpan.items";

/// Part of a request's record: what extensions put into its system prompt.
const SYSTEM_CHANGES: &str = "system_changes";

/// The purpose of a sub-agent's requests, in the records of the conversation that started it.
pub(crate) const TASK_PURPOSE: &str = "task";

/// Number of keys that a run's record names, the most expensive first; the others stay in the sum
/// of their kind.
const MAX_KEYS: usize = 200;

/// Which cached prefix the prompt of a request can reuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheBase {
    /// The conversation's own prefix, which should be read from the cache.
    Conversation,
    /// None: it is a prompt of its own.
    Standalone,
}

/// What has ended, which decides how much is written now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlushScope {
    /// One run; more may follow.
    Run,
    /// The session, as far as this process is concerned.
    Session,
}

/// An answered request that is to be billed.
#[derive(Clone, Copy, Debug)]
pub struct RequestBill<'a> {
    /// What the request was for: `turn`, `compaction`, `branch_summary`, `ping`, `commit` or `task`.
    pub purpose: &'a str,
    /// Which cached prefix it could reuse.
    pub base: CacheBase,
    /// The provider and model that answered.
    pub target: &'a Target,
    /// Name of the layout that ordered the prompt.
    pub layout: &'static str,
    /// The prompt that was sent.
    pub prompt: &'a Prompt,
    /// Our own token count of the prompt.
    pub measured: &'a PromptTokens,
    /// The message that stores the answer; `None` for helper requests.
    pub message: Option<&'a MessageId>,
    /// The usage that the provider reported, if it did. Without it our own count is billed.
    pub usage: Option<&'a ReportedUsage>,
    /// How often the provider's own tool searched the web.
    pub searches: u64,
    /// The provider's id of the answer; empty if it gave none.
    pub answer_id: &'a str,
    /// The provider's own comparison with the request before.
    pub diagnosis: Option<CacheDiagnosis>,
    /// When the request was sent.
    pub sent: Timestamp,
    /// When the first part of the answer arrived.
    pub began: Timestamp,
    /// When the answer was complete.
    pub ended: Timestamp,
    /// The user's local date, such as `2026-08-14`.
    pub day: &'a str,
    /// Whether a simulator answered, so that nothing was paid.
    pub is_simulated: bool,
}

/// A request that a sub-agent was answered.
#[derive(Clone, Copy, Debug)]
pub struct TaskRequest<'a> {
    /// Name of the agent.
    pub agent: &'a str,
    /// Id of the session of the agent's own conversation.
    pub session: &'a str,
    /// The request as that session records it.
    pub request: &'a RequestRecord,
}

/// What was paid in a conversation, and the cache monitor that its next request is compared with.
#[derive(Debug, Default)]
pub(crate) struct SessionLedger {
    pub ledger: Ledger,
    /// The last turn: its bill and the verdict about it.
    pub last: Option<(Charge, Verdict)>,
    monitor: CacheMonitor,
    start: Continuity,
    /// What extensions changed in the request that is billed next, and in the turn before.
    changes: Vec<ExtensionChange>,
    changes_before: Vec<ExtensionChange>,
    /// What was paid since costs by key were last stored.
    unsaved: Ledger,
    stored: StoredMonitor,
}

impl SessionLedger {
    /// The books of a session: the bill from `bill`, the rest from the entries of the branch.
    pub fn from_entries<'a>(
        bill: impl IntoIterator<Item = &'a Entry>,
        branch: impl IntoIterator<Item = &'a Entry>,
    ) -> Self {
        let branch: Vec<&Entry> = branch.into_iter().collect();
        let changes_before = last_system_changes(&branch);
        let stored = StoredMonitor::from_entries(branch);
        let monitor = stored.monitor();
        let start = if monitor == CacheMonitor::new() { Continuity::Continued } else { Continuity::Resumed };
        SessionLedger {
            ledger: ledger_from_entries(bill),
            monitor,
            start,
            changes_before,
            stored,
            ..SessionLedger::default()
        }
    }

    /// Notes that this process has also sent the last request, so a loss is not due to a resume.
    pub fn mark_continued(&mut self) {
        self.start = Continuity::Continued;
    }

    /// Bills a request. Returns the record to store, and the verdict if cached tokens were paid for
    /// again.
    pub fn record_request(&mut self, bill: &RequestBill<'_>) -> (RequestRecord, Option<Verdict>) {
        let purpose = purpose(bill.purpose);
        let answered = CompletedRequest {
            prompt: bill.prompt,
            prompt_tokens: bill.measured,
            model: &bill.target.model,
            profile: &bill.target.profile,
            settings: CacheSettings::default(),
            reported_usage: bill.usage.map(|usage| usage.tokens),
            reports_cache: bill.usage.is_some_and(|usage| usage.reports_cache),
            diagnosis: bill.diagnosis,
            sent_at: moment(bill.sent),
            answer_began_at: moment(bill.began),
            day: bill.day,
            purpose,
            continuity: self.start,
        };
        let search_price = bill.target.profile.web_search_price.unwrap_or(0.0) / 1000.0;
        let searches = search_price * bill.searches as f64;
        let charge = Charge::from_request(&answered).with_fee(Account::web_search(), searches);
        self.ledger.add(&charge);
        // Costs by key are those that were paid.
        if !bill.is_simulated {
            self.unsaved.add(&charge);
        }
        let verdict = match bill.base {
            CacheBase::Conversation => self.monitor.examine(&answered),
            // To the monitor, a commit message is a prompt of its own.
            CacheBase::Standalone => {
                self.monitor.examine(&CompletedRequest { purpose: RequestPurpose::Commit, ..answered })
            }
        };
        let verdict = self.name_extension(verdict, purpose);
        self.ledger.record_loss(&verdict);
        let mut extra = Map::new();
        extra.extend(
            serde_json::to_value(charge.summarized_by_kind()).map(|charge| ("charge".to_owned(), charge)),
        );
        let loss = Some(verdict.clone()).filter(Verdict::is_loss);
        let stored_verdict = loss.as_ref().and_then(|verdict| serde_json::to_value(verdict).ok());
        extra.extend(stored_verdict.map(|verdict| ("verdict".to_owned(), verdict)));
        let changed_by: BTreeSet<&str> = self
            .changes_before
            .iter()
            .filter(|_| purpose == RequestPurpose::Turn)
            .map(|change| &*change.extension)
            .collect();
        if !changed_by.is_empty() {
            extra.insert("changed_by".to_owned(), json!(changed_by));
            let in_system = stored_system_changes(&self.changes_before);
            extra.extend(in_system.map(|changes| (SYSTEM_CHANGES.to_owned(), changes)));
        }
        let record = request_record(bill, &charge, extra);
        if purpose == RequestPurpose::Turn {
            self.start = Continuity::Continued;
            self.last = Some((charge, verdict));
        }
        (record, loss)
    }

    /// Takes down what extensions changed in the request that is billed next.
    pub fn note_changes(&mut self, changes: Vec<ExtensionChange>) {
        self.changes = changes;
    }

    /// The verdict, with the extension that the loss is due to.
    fn name_extension(&mut self, verdict: Verdict, purpose: RequestPurpose) -> Verdict {
        if purpose != RequestPurpose::Turn {
            return verdict;
        }
        let now = std::mem::take(&mut self.changes);
        let before = std::mem::replace(&mut self.changes_before, now);
        let found = Some(&verdict).filter(|verdict| verdict.is_loss());
        match found.and_then(|verdict| culprit(verdict, &before, &self.changes_before)) {
            Some(extension) => verdict.caused_by_extension(extension),
            None => verdict,
        }
    }

    /// Bills a request of a sub-agent, whose own session says what it was for. Returns the record to
    /// store.
    pub fn record_task_request(&mut self, task: &TaskRequest<'_>) -> RequestRecord {
        let billed = charge_of(task.request);
        let row =
            ChargeRow { account: Account::task(task.agent), tokens: billed.tokens, dollars: billed.dollars };
        let charge = Charge { purpose: RequestPurpose::Task, rows: vec![row], ..billed };
        self.ledger.add(&charge);
        let mut extra = Map::new();
        extra.extend(serde_json::to_value(&charge).map(|charge| ("charge".to_owned(), charge)));
        extra.insert("agent".to_owned(), task.agent.into());
        extra.insert("session".to_owned(), task.session.into());
        // What belongs to the answers of the other conversation stays there.
        let (message, answer, prefix) = (None, None, None);
        RequestRecord { purpose: TASK_PURPOSE.into(), message, answer, prefix, extra, ..task.request.clone() }
    }

    /// The records to store at the end of a run or session; none if nothing was sent.
    pub fn flush(&mut self, end: FlushScope) -> Vec<Record> {
        let mut records = Vec::new();
        if self.unsaved.total.requests > 0 {
            let data = charges_by_key(&std::mem::take(&mut self.unsaved));
            records.push(Record::Custom { custom_type: ITEMS_RECORD.into(), data });
        }
        records.extend(self.stored.change_record(&self.monitor, end));
        records
    }

    /// What an act would cost now; `None` before the first request. `last` is the target of the
    /// last request, `next` the target that is selected now.
    pub fn forecast_cost(
        &self,
        act: PlannedAction<'_>,
        last: &Target,
        next: &Target,
        now: Timestamp,
    ) -> Option<CostForecast> {
        if self.monitor == CacheMonitor::new() {
            return None;
        }
        // A model that was selected but not yet asked has nothing cached that could be lost.
        let same = last.provider == next.provider && last.model.id == next.model.id;
        let nothing = CacheMonitor::new();
        let (monitor, target) = match act {
            PlannedAction::SwitchModel { .. } => (&self.monitor, last),
            _ if same => (&self.monitor, last),
            _ => (&nothing, next),
        };
        Some(forecast_cost(monitor, act, &target.model, &target.profile, moment(now)))
    }

    /// When the cache entries expire, if that is known.
    pub fn expires(&self) -> Option<Timestamp> {
        self.monitor.expires_at().and_then(|moment| Timestamp::from_millisecond(moment.0).ok())
    }
}

/// What extensions put into the system prompt of the last turn.
fn last_system_changes(branch: &[&Entry]) -> Vec<ExtensionChange> {
    let mut turns = branch.iter().rev().filter_map(|entry| match &entry.record {
        Record::Request(request) if purpose(&request.purpose) == RequestPurpose::Turn => Some(request),
        _ => None,
    });
    turns.next().and_then(|turn| turn.extra.get(SYSTEM_CHANGES)).map(read_system_changes).unwrap_or_default()
}

/// Bills a request that belongs to no conversation.
pub fn bill_standalone(bill: &RequestBill<'_>) -> RequestRecord {
    SessionLedger::default().record_request(bill).0
}

/// Sums up the bills of a session: its requests, and the costs by key that its runs stored.
pub fn ledger_from_entries<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Ledger {
    let (mut ledger, mut named) = (Ledger::default(), Ledger::default());
    for entry in entries {
        match &entry.record {
            Record::Request(request) => {
                ledger.add(&charge_of(request));
                verdict_of(request).iter().for_each(|verdict| ledger.record_loss(verdict));
            }
            Record::Custom { custom_type, data } if &**custom_type == ITEMS_RECORD => {
                // If the record cannot be read, its tokens stay in the sums of their kinds.
                let items = serde_json::from_value::<Ledger>(json!({"by_key": data}));
                items.iter().for_each(|items| named.merge(items));
            }
            _ => {}
        }
    }
    for (account, totals) in &named.by_key {
        let rest = account.kind.map(Account::unnamed);
        if let Some(rest) = rest.and_then(|rest| ledger.by_key.get_mut(&rest)) {
            subtract(rest, totals);
        }
    }
    ledger.by_key.retain(|_, totals| totals.tokens.total() > 0);
    ledger.merge(&named);
    ledger
}

/// The bill in a request's record. A record without one counts as unaccounted for.
pub fn charge_of(request: &RequestRecord) -> Charge {
    let stored = request.extra.get("charge").cloned();
    stored.and_then(|charge| serde_json::from_value(charge).ok()).unwrap_or_else(|| {
        let tokens = request.usage;
        let rows = vec![ChargeRow { account: Account::unaccounted(), tokens, dollars: request.dollars }];
        Charge {
            at: request.started.as_millisecond(),
            day: day_of(request.started, &TimeZone::UTC).into(),
            provider: request.provider.clone(),
            model: request.model.clone(),
            purpose: purpose(&request.purpose),
            tokens,
            dollars: request.dollars,
            prices: Default::default(),
            counted: 0,
            estimated: false,
            rows,
        }
    })
}

/// The verdict in a request's record, if the request paid again for cached tokens.
pub fn verdict_of(request: &RequestRecord) -> Option<Verdict> {
    serde_json::from_value(request.extra.get("verdict")?.clone()).ok()
}

/// The date of a moment in a time zone, such as `2026-08-14`.
pub fn day_of(time: Timestamp, zone: &TimeZone) -> String {
    time.to_zoned(zone.clone()).date().to_string()
}

fn request_record(bill: &RequestBill<'_>, charge: &Charge, extra: Map<String, Value>) -> RequestRecord {
    let since = |time: Timestamp| u64::try_from(time.as_millisecond() - bill.sent.as_millisecond()).ok();
    RequestRecord {
        purpose: bill.purpose.into(),
        provider: bill.target.provider.as_str().into(),
        model: bill.target.model.id.as_str().into(),
        message: bill.message.map(|message| message.0.clone()),
        prefix: bill.target.model.binding.is_bound().then(|| prefix_hash(bill.prompt)),
        answer: Some(bill.answer_id).filter(|id| !id.is_empty()).map(Into::into),
        usage: charge.tokens,
        dollars: if bill.is_simulated { 0.0 } else { charge.dollars },
        would_cost: bill.is_simulated.then_some(charge.dollars),
        factor: Some(bill.target.factor.value()),
        started: bill.sent,
        first_token_ms: since(bill.began),
        ended_ms: since(bill.ended),
        layout: bill.layout.into(),
        extra,
    }
}

/// The costs by key as JSON, without the rows that every request's own record has.
fn charges_by_key(ledger: &Ledger) -> Value {
    let mut rows: Vec<(&Account, &Totals)> =
        ledger.by_key.iter().filter(|(account, _)| account.kind.is_some()).collect();
    rows.sort_by(|a, b| b.1.dollars.total_cmp(&a.1.dollars).then_with(|| a.0.cmp(b.0)));
    rows.truncate(MAX_KEYS);
    let by_key = rows.into_iter().map(|(account, totals)| (account.clone(), *totals)).collect();
    let kept = Ledger { by_key, ..Ledger::default() };
    let written = serde_json::to_value(kept).unwrap_or_default();
    written.get("by_key").cloned().unwrap_or_default()
}

fn subtract(from: &mut Totals, part: &Totals) {
    from.tokens = from.tokens.saturating_sub(&part.tokens);
    from.dollars = (from.dollars - part.dollars).max(0.0);
}

/// The ledger's purpose for a stored word. All summaries count as compactions, since they are built
/// on the conversation's prefix.
fn purpose(word: &str) -> RequestPurpose {
    match word {
        "turn" => RequestPurpose::Turn,
        "commit" => RequestPurpose::Commit,
        "ping" => RequestPurpose::Ping,
        TASK_PURPOSE => RequestPurpose::Task,
        _ => RequestPurpose::Compaction,
    }
}

pub(crate) fn moment(time: Timestamp) -> Moment {
    Moment(time.as_millisecond())
}

/// The row of a charge for a key.
pub(crate) fn row_for_key<'a>(charge: &'a Charge, key: &str) -> Option<&'a ChargeRow> {
    charge.rows.iter().find(|row| *row.account.key == *key)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hardpan_prompt::ItemKind;

    use super::*;

    fn request(tokens: u64, extra: &Value) -> Entry {
        let request: RequestRecord = serde_json::from_value(json!({
            "purpose": "turn", "provider": "anthropic", "model": "m", "dollars": 0.5, "layout": "strata",
            "started": "2026-03-01T23:30:00Z", "usage": {"input": tokens},
        }))
        .unwrap();
        let extra = extra.as_object().cloned().unwrap_or_default();
        let record = Record::Request(Arc::new(RequestRecord { extra, ..request }));
        Entry::new("e", None, None, record)
    }

    #[test]
    fn a_request_without_a_charge_is_unaccounted_for_and_still_counts() {
        let bill =
            ledger_from_entries(&[request(1000, &Value::Null), request(500, &json!({"charge": "damaged"}))]);
        assert_eq!((bill.total.requests, bill.total.tokens.input, bill.total.dollars), (2, 1500, 1.0));
        assert_eq!(bill.by_day.keys().map(|day| &**day).collect::<Vec<_>>(), ["2026-03-01"]);
        assert_eq!(bill.by_key[&Account::unaccounted()].tokens.input, 1500);
    }

    #[test]
    fn what_a_run_named_is_taken_out_of_the_sum_of_its_kind() {
        let row =
            |key: &str, tokens: u64| json!({"kind": "file", "key": key, "input": tokens, "dollars": 0.25});
        let charge = json!({
            "at": 0, "day": "2026-03-01", "provider": "anthropic", "model": "m", "purpose": "turn", "counted": 100,
            "tokens": {"input": 100}, "dollars": 0.25, "prices": {}, "rows": [row("all", 100)],
        });
        let totals = json!({"requests": 1, "input": 60, "dollars": 0.15});
        let items = json!([{"kind": "file", "key": "file:a.rs", "totals": totals}]);
        let named = Record::Custom { custom_type: ITEMS_RECORD.into(), data: items };
        let entries = [request(100, &json!({"charge": charge})), Entry::new("f", None, None, named)];
        let bill = ledger_from_entries(&entries);
        let account = |key: &str| Account { kind: Some(ItemKind::File), key: key.into() };
        assert_eq!(bill.by_key[&account("file:a.rs")].tokens.input, 60);
        assert_eq!(bill.by_key[&account("all")].tokens.input, 40);
        assert_eq!(bill.by_kind()[&Some(ItemKind::File)].tokens.input, 100);
        assert_eq!(bill.total.tokens.input, 100);
    }
}
