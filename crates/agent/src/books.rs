//! The books of a conversation: what each request is charged to, and what was paid again.
//!
//! A request's record in the session carries its `charge`, one row per kind, and its `verdict` where something was lost. At the
//! end of a run two more records follow: the bill by key (`hardpan.items`), and what the next request is held against
//! (`hardpan.watch`), both as what is new since the last. A session file alone therefore tells what was paid for what, and
//! a resumed session can still say why its first request found nothing.

mod stored; // what is kept of a watch, as what is new in it

use hardpan_context::Target;
use hardpan_economy::cache::{Moment, Salts};
use hardpan_economy::foresight::{Act, Foresight, foresee};
use hardpan_economy::ledger::{Account, Answered, Charge, Ledger, Purpose, Row, Start, Tokens, Totals};
use hardpan_economy::{Verdict, Watch};
use hardpan_prompt::{Measured, MessageId, Prompt};
use hardpan_providers::Usage;
use hardpan_session::{Entry, Record, RequestRecord, RequestUsage};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use stored::Stored;

/// The name of the record that holds what a run cost by key.
const ITEMS: &str = "hardpan.items";

/// So many keys of a run are kept by name, those that cost most first; the others stay in the sum of their kind.
const MOST_KEYS: usize = 200;

/// What the prompt of a request goes on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// The conversation's own prefix: it should be read from the cache.
    Conversation,
    /// Nothing: it is a prompt of its own.
    Nothing,
}

/// What has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settle {
    /// A run.
    Run,
    /// The session, in this process.
    Session,
}

/// A request that was answered, to be entered.
#[derive(Clone, Copy, Debug)]
pub struct Billed<'a> {
    /// `turn`, `compaction`, …
    pub purpose: &'a str,
    /// What it goes on from.
    pub on: On,
    /// Whom it was for.
    pub target: &'a Target,
    /// How its prompt was ordered.
    pub layout: &'static str,
    /// What was sent.
    pub prompt: &'a Prompt,
    /// Its tokens by our count.
    pub measured: &'a Measured,
    /// The message that it brought.
    pub message: Option<&'a MessageId>,
    /// What the provider reported; none where it did not.
    pub usage: Option<&'a Usage>,
    /// When it was sent.
    pub sent: Timestamp,
    /// When the answer began.
    pub began: Timestamp,
    /// When it was over.
    pub ended: Timestamp,
    /// The person's day.
    pub day: &'a str,
}

/// What was paid in a conversation, and what its next request is held against.
#[derive(Debug, Default)]
pub(crate) struct Books {
    pub ledger: Ledger,
    /// The last request of the conversation: its bill and what is to be said about it.
    pub last: Option<(Charge, Verdict)>,
    watch: Watch,
    start: Start,
    /// What was paid since the last record of it.
    unsaved: Ledger,
    stored: Stored,
}

impl Books {
    /// The books of a session: the bill from `billed`, the rest from the entries of the branch.
    pub fn read<'a>(
        billed: impl IntoIterator<Item = &'a Entry>,
        branch: impl IntoIterator<Item = &'a Entry>,
    ) -> Self {
        let stored = Stored::read(branch);
        let watch = stored.watch();
        let start = if watch == Watch::new() { Start::Continued } else { Start::Resumed };
        Books { ledger: ledger(billed), watch, start, stored, ..Books::default() }
    }

    /// The process that sends the next request also sent the last one.
    pub fn go_on(&mut self) {
        self.start = Start::Continued;
    }

    /// Enters a request, and says what of it was paid again. What comes back is to be stored.
    pub fn enter(&mut self, billed: &Billed<'_>) -> (RequestRecord, Option<Verdict>) {
        let purpose = purpose(billed.purpose);
        let answered = Answered {
            prompt: billed.prompt,
            measured: billed.measured,
            model: &billed.target.model,
            wire: &billed.target.wire,
            settings: Salts::default(),
            used: billed.usage.map(tokens),
            sent: moment(billed.sent),
            began: moment(billed.began),
            day: billed.day,
            purpose,
            start: self.start,
        };
        let charge = self.ledger.charge(&answered);
        self.unsaved.add(&charge);
        let verdict = match billed.on {
            On::Conversation => self.watch.examine(&answered),
            // The watch's word for a prompt of its own.
            On::Nothing => self.watch.examine(&Answered { purpose: Purpose::Commit, ..answered }),
        };
        self.ledger.note(&verdict);
        let mut extra = Map::new();
        extra.extend(serde_json::to_value(charge.brief()).map(|charge| ("charge".to_owned(), charge)));
        let loss = Some(verdict.clone()).filter(Verdict::is_loss);
        let told = loss.as_ref().and_then(|verdict| serde_json::to_value(verdict).ok());
        extra.extend(told.map(|verdict| ("verdict".to_owned(), verdict)));
        let record = record(billed, &charge, extra);
        if purpose == Purpose::Turn {
            self.start = Start::Continued;
            self.last = Some((charge, verdict));
        }
        (record, loss)
    }

    /// What is to be stored at the end of a run, or of all of them; nothing where nothing was sent.
    pub fn settle(&mut self, end: Settle) -> Vec<Record> {
        let mut records = Vec::new();
        if self.unsaved.total.requests > 0 {
            let data = items(&std::mem::take(&mut self.unsaved));
            records.push(Record::Custom { custom_type: ITEMS.into(), data });
        }
        records.extend(self.stored.change(&self.watch, end));
        records
    }

    /// What an act would cost now; none before the first request. `last` is whom that was for, `next` whom the next is for.
    pub fn foresee(&self, act: Act<'_>, last: &Target, next: &Target, now: Timestamp) -> Option<Foresight> {
        if self.watch == Watch::new() {
            return None;
        }
        // Where another model was chosen and not yet asked, nothing that could be lost is cached with it.
        let same = last.provider == next.provider && last.model.id == next.model.id;
        let nothing = Watch::new();
        let (watch, target) = match act {
            Act::SwitchModel { .. } => (&self.watch, last),
            _ if same => (&self.watch, last),
            _ => (&nothing, next),
        };
        Some(foresee(watch, act, &target.model, &target.wire, moment(now)))
    }

    /// When what is cached expires, if it is known.
    pub fn expires(&self) -> Option<Timestamp> {
        self.watch.expires().and_then(|moment| Timestamp::from_millisecond(moment.0).ok())
    }
}

/// The bill of a request that is part of no conversation.
pub fn bill(billed: &Billed<'_>) -> RequestRecord {
    Books::default().enter(billed).0
}

/// What a session was billed, in full detail: its requests, and the keys that its runs named.
pub fn ledger<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Ledger {
    let (mut ledger, mut named) = (Ledger::default(), Ledger::default());
    for entry in entries {
        match &entry.record {
            Record::Request(request) => {
                ledger.add(&charge_of(request));
                verdict_of(request).iter().for_each(|verdict| ledger.note(verdict));
            }
            Record::Custom { custom_type, data } if &**custom_type == ITEMS => {
                // One that cannot be read leaves its tokens in the sums of their kinds.
                let items = serde_json::from_value::<Ledger>(json!({"by_key": data}));
                items.iter().for_each(|items| named.merge(items));
            }
            _ => {}
        }
    }
    for (account, totals) in &named.by_key {
        let rest = Account { kind: account.kind, key: "all".into() };
        if let Some(rest) = ledger.by_key.get_mut(&rest) {
            take_out(rest, totals);
        }
    }
    ledger.by_key.retain(|_, totals| totals.tokens.total() > 0);
    ledger.merge(&named);
    ledger
}

/// A request's bill as its record has it. Without one, all of it is unaccounted for.
pub fn charge_of(request: &RequestRecord) -> Charge {
    let stored = request.extra.get("charge").cloned();
    stored.and_then(|charge| serde_json::from_value(charge).ok()).unwrap_or_else(|| {
        let tokens = reported(&request.usage);
        let rows = vec![Row { account: Account::unaccounted(), tokens, dollars: request.dollars }];
        Charge {
            at: request.started.as_millisecond(),
            day: day(request.started, &TimeZone::UTC).into(),
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

/// What a request lost, if it did.
pub fn verdict_of(request: &RequestRecord) -> Option<Verdict> {
    serde_json::from_value(request.extra.get("verdict")?.clone()).ok()
}

/// The day of a moment, such as `2026-08-14`.
pub fn day(time: Timestamp, zone: &TimeZone) -> String {
    time.to_zoned(zone.clone()).date().to_string()
}

fn record(billed: &Billed<'_>, charge: &Charge, extra: Map<String, Value>) -> RequestRecord {
    let Tokens { input, read, write, write_1h, output } = charge.tokens;
    let since = |time: Timestamp| u64::try_from(time.as_millisecond() - billed.sent.as_millisecond()).ok();
    let reasoning = billed.usage.map(|usage| usage.reasoning_output).filter(|tokens| *tokens > 0);
    RequestRecord {
        purpose: billed.purpose.into(),
        provider: billed.target.provider.as_str().into(),
        model: billed.target.model.id.as_str().into(),
        message: billed.message.map(|message| message.0.clone()),
        usage: RequestUsage {
            input,
            cache_read: read,
            cache_write_5m: write,
            cache_write_1h: write_1h,
            output,
            reasoning,
        },
        dollars: charge.dollars,
        factor: Some(billed.target.factor.value()),
        started: billed.sent,
        first_token_ms: since(billed.began),
        ended_ms: since(billed.ended),
        layout: billed.layout.into(),
        extra,
    }
}

/// The rows of a ledger by key, without what every request's own record tells.
fn items(ledger: &Ledger) -> Value {
    let mut rows: Vec<(&Account, &Totals)> =
        ledger.by_key.iter().filter(|(account, _)| account.kind.is_some()).collect();
    rows.sort_by(|a, b| b.1.dollars.total_cmp(&a.1.dollars).then_with(|| a.0.cmp(b.0)));
    rows.truncate(MOST_KEYS);
    let by_key = rows.into_iter().map(|(account, totals)| (account.clone(), *totals)).collect();
    let kept = Ledger { by_key, ..Ledger::default() };
    let written = serde_json::to_value(kept).unwrap_or_default();
    written.get("by_key").cloned().unwrap_or_default()
}

fn take_out(from: &mut Totals, part: &Totals) {
    let Tokens { input, read, write, write_1h, output } = part.tokens;
    let tokens = &mut from.tokens;
    tokens.input = tokens.input.saturating_sub(input);
    tokens.read = tokens.read.saturating_sub(read);
    tokens.write = tokens.write.saturating_sub(write);
    tokens.write_1h = tokens.write_1h.saturating_sub(write_1h);
    tokens.output = tokens.output.saturating_sub(output);
    from.dollars = (from.dollars - part.dollars).max(0.0);
}

/// What a request was for, in the ledger's words. Summaries of any sort stand on the conversation's prefix.
fn purpose(word: &str) -> Purpose {
    match word {
        "turn" => Purpose::Turn,
        "commit" => Purpose::Commit,
        "ping" => Purpose::Ping,
        _ => Purpose::Compaction,
    }
}

fn tokens(usage: &Usage) -> Tokens {
    Tokens {
        input: usage.input,
        read: usage.cache_read,
        write: usage.cache_write_5m,
        write_1h: usage.cache_write_1h,
        output: usage.output,
    }
}

fn reported(usage: &RequestUsage) -> Tokens {
    Tokens {
        input: usage.input,
        read: usage.cache_read,
        write: usage.cache_write_5m,
        write_1h: usage.cache_write_1h,
        output: usage.output,
    }
}

fn moment(time: Timestamp) -> Moment {
    Moment(time.as_millisecond())
}

/// The key under which a panel's own figures stand in the ledger.
pub(crate) fn row_of<'a>(charge: &'a Charge, key: &str) -> Option<&'a Row> {
    charge.rows.iter().find(|row| *row.account.key == *key)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hardpan_prompt::Kind;

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
        let bill = ledger(&[request(1000, &Value::Null), request(500, &json!({"charge": "damaged"}))]);
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
        let named = Record::Custom { custom_type: ITEMS.into(), data: items };
        let entries = [request(100, &json!({"charge": charge})), Entry::new("f", None, None, named)];
        let bill = ledger(&entries);
        let account = |key: &str| Account { kind: Some(Kind::File), key: key.into() };
        assert_eq!(bill.by_key[&account("file:a.rs")].tokens.input, 60);
        assert_eq!(bill.by_key[&account("all")].tokens.input, 40);
        assert_eq!(bill.by_kind()[&Some(Kind::File)].tokens.input, 100);
        assert_eq!(bill.total.tokens.input, 100);
    }
}
