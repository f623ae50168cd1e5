//! [`StoredMonitor`]: the cache monitor's trace, as the session file stores it.

use hardpan_economy::{CacheMonitor, CacheMonitorChange};
use hardpan_session::{Entry, Record};
use serde::Deserialize;
use serde_json::Value;

use super::FlushScope;

/// Type of the record.
const WATCH_RECORD: &str = "hardpan.watch";

/// A longer record is not written; the first request after a resume then gets no verdict.
const MAX_RECORD_BYTES: usize = 1 << 18;

/// If a run moves more blocks than this, its trace is written at the end of the session only.
const MAX_MOVED_BLOCKS: usize = 250;

/// The monitor's state that the session file leads to.
#[derive(Debug, Default)]
pub struct StoredMonitor {
    monitor: CacheMonitor,
    /// The monitor as the last run left it, stored or not.
    last: CacheMonitor,
}

impl StoredMonitor {
    /// Reads the last state of a branch. A record that cannot be read, or that does not continue
    /// the one before, resets it.
    pub fn from_entries<'a>(branch: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut monitor = CacheMonitor::new();
        for entry in branch {
            if let Record::Custom { custom_type, data } = &entry.record
                && &**custom_type == WATCH_RECORD
            {
                let change = CacheMonitorChange::deserialize(data).ok();
                monitor = change.and_then(|change| monitor.apply_change(&change)).unwrap_or_default();
            }
        }
        StoredMonitor { last: monitor.clone(), monitor }
    }

    /// The stored monitor; a new one if nothing is stored.
    pub fn monitor(&self) -> CacheMonitor {
        self.monitor.clone()
    }

    /// The record that leads from the stored state to this one. Layouts that rebuild their prompts
    /// every time would write the whole of a long conversation with every run, so theirs is written
    /// once, at the end of the session; until then the stored state is reset.
    pub fn change_record(&mut self, monitor: &CacheMonitor, end: FlushScope) -> Option<Record> {
        let last = std::mem::replace(&mut self.last, monitor.clone());
        if end == FlushScope::Run && last.count_moved_blocks(monitor) > MAX_MOVED_BLOCKS {
            return self.forget();
        }
        let change = monitor.change_since(&self.monitor)?;
        let data = serde_json::to_value(&change).unwrap_or_default();
        if data.to_string().len() > MAX_RECORD_BYTES {
            return self.forget();
        }
        self.monitor = self.monitor.apply_change(&change).unwrap_or_default();
        Some(record(data))
    }

    fn forget(&mut self) -> Option<Record> {
        let known = std::mem::take(&mut self.monitor);
        (known != CacheMonitor::new()).then(|| record(Value::Null))
    }
}

fn record(data: Value) -> Record {
    Record::Custom { custom_type: WATCH_RECORD.into(), data }
}

#[cfg(test)]
mod tests {
    use hardpan_economy::CompletedRequest;
    use hardpan_economy::cache::{CacheSettings, Moment};
    use hardpan_economy::ledger::{Continuity, RequestPurpose};
    use hardpan_models::Catalogue;
    use hardpan_prompt::{
        Block, Origin, Prompt, PromptMessage, Region, Role, Text, TokenCounter, TokenUsage, Vocabulary,
    };
    use serde_json::json;

    use super::*;

    /// A monitor that has examined a prompt of these messages.
    fn monitor(messages: impl Iterator<Item = String>) -> CacheMonitor {
        let say = |text: String| {
            let origin = Origin::message(&(&*text).into());
            PromptMessage::new(Role::User, vec![Block::text(Region::Log, Text::new(text), origin)])
        };
        let prompt = Prompt { messages: messages.map(say).collect(), ..Prompt::default() };
        let catalogue = Catalogue::builtin();
        let model = catalogue.model(Some("anthropic"), "claude-sonnet-5").expect("a known model");
        let mut monitor = CacheMonitor::new();
        monitor.examine(&CompletedRequest {
            prompt: &prompt,
            prompt_tokens: &TokenCounter::new(Vocabulary::O200k).measure(&prompt),
            profile: &catalogue.provider("anthropic").expect("a known provider").profile_for_model(&model),
            model: &model,
            settings: CacheSettings::default(),
            reported_usage: Some(TokenUsage { input: 100, ..TokenUsage::default() }),
            reports_cache: true,
            diagnosis: None,
            sent_at: Moment(0),
            answer_began_at: Moment(1),
            day: "2026-02-19",
            purpose: RequestPurpose::Turn,
            continuity: Continuity::Continued,
        });
        monitor
    }

    fn entries(records: impl IntoIterator<Item = Record>) -> Vec<Entry> {
        records.into_iter().map(|record| Entry::new("e", None, None, record)).collect()
    }

    #[test]
    fn what_only_grew_is_stored_with_its_run_however_much_that_is() {
        let messages = |count: usize| (0..count).map(|number| format!("m{number}"));
        let mut stored = StoredMonitor::default();
        let first = stored.change_record(&monitor(messages(10)), FlushScope::Run);
        let second = stored.change_record(&monitor(messages(10 + 2 * MAX_MOVED_BLOCKS)), FlushScope::Run);
        let written = entries(first.into_iter().chain(second));
        let read = StoredMonitor::from_entries(&written).monitor();
        assert!(
            read == monitor(messages(10 + 2 * MAX_MOVED_BLOCKS)),
            "what was stored before is not written again"
        );
    }

    #[test]
    fn a_trace_that_waits_for_the_end_leaves_no_older_one_in_its_place() {
        let messages = |what: &'static str| {
            monitor((0..2 * MAX_MOVED_BLOCKS).map(move |number| format!("{what}{number}")))
        };
        let mut stored = StoredMonitor::default();
        let mut written: Vec<Record> =
            stored.change_record(&messages("one"), FlushScope::Run).into_iter().collect();
        assert!(StoredMonitor::from_entries(&entries(written.clone())).monitor() == messages("one"));
        // Rebuilt with every run: nothing is written, and the stored state is reset.
        for what in ["two", "three"] {
            written.extend(stored.change_record(&messages(what), FlushScope::Run));
            assert!(StoredMonitor::from_entries(&entries(written.clone())).monitor() == CacheMonitor::new());
        }
        assert_eq!(written.len(), 2);
        // Once the prompts only grow, what is new is written again.
        let grown = monitor((0..2 * MAX_MOVED_BLOCKS + 5).map(|number| format!("three{number}")));
        written.extend(stored.change_record(&grown, FlushScope::Run));
        assert!(StoredMonitor::from_entries(&entries(written.clone())).monitor() == grown);
        written.extend(stored.change_record(&messages("four"), FlushScope::Session));
        assert!(StoredMonitor::from_entries(&entries(written)).monitor() == messages("four"));
    }

    #[test]
    fn what_cannot_be_read_is_no_watch() {
        let damaged = [Value::Null, json!({"kept": {"blocks": 5}}), json!("?"), json!({"watch": 7})];
        for data in damaged {
            let record = Record::Custom { custom_type: WATCH_RECORD.into(), data };
            assert_eq!(
                StoredMonitor::from_entries(&[Entry::new("e", None, None, record)]).monitor(),
                CacheMonitor::new()
            );
        }
    }

    #[test]
    fn nothing_is_stored_of_nothing() {
        assert!(StoredMonitor::default().change_record(&CacheMonitor::new(), FlushScope::Session).is_none());
    }
}
