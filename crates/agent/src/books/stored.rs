//! What is kept of a watch in the session.

use hardpan_economy::{Watch, WatchChange};
use hardpan_session::{Entry, Record};
use serde::Deserialize;
use serde_json::Value;

use super::Settle;

/// The name of the record.
const WATCH: &str = "hardpan.watch";

/// A record longer than this is not written: the first request after a resume is then not judged.
const MOST_BYTES: usize = 1 << 18;

/// A run after which more blocks than this are not where they were before it leaves its trace to the end of the session.
const MOST_BLOCKS: usize = 250;

/// A watch as the session has it.
#[derive(Debug, Default)]
pub struct Stored {
    watch: Watch,
    /// As the last run left it, stored or not.
    last: Watch,
}

impl Stored {
    /// The last one of a branch. One that could not be read, or does not follow the one before, is none.
    pub fn read<'a>(branch: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut watch = Watch::new();
        for entry in branch {
            if let Record::Custom { custom_type, data } = &entry.record
                && &**custom_type == WATCH
            {
                let change = WatchChange::deserialize(data).ok();
                watch = change.and_then(|change| watch.after(&change)).unwrap_or_default();
            }
        }
        Stored { last: watch.clone(), watch }
    }

    /// The watch; a new one where there is none.
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// The record that leads to this watch. Layouts that lay their prompts anew each time would write the whole of a long
    /// conversation with every run: theirs is written once, at the end, and until then none stands in its place.
    pub fn change(&mut self, watch: &Watch, end: Settle) -> Option<Record> {
        let last = std::mem::replace(&mut self.last, watch.clone());
        if end == Settle::Run && last.blocks_gone(watch) > MOST_BLOCKS {
            return self.forget();
        }
        let change = watch.since(&self.watch)?;
        let data = serde_json::to_value(&change).unwrap_or_default();
        if data.to_string().len() > MOST_BYTES {
            return self.forget();
        }
        self.watch = self.watch.after(&change).unwrap_or_default();
        Some(record(data))
    }

    fn forget(&mut self) -> Option<Record> {
        let known = std::mem::take(&mut self.watch);
        (known != Watch::new()).then(|| record(Value::Null))
    }
}

fn record(data: Value) -> Record {
    Record::Custom { custom_type: WATCH.into(), data }
}

#[cfg(test)]
mod tests {
    use hardpan_economy::Answered;
    use hardpan_economy::cache::{Moment, Salts};
    use hardpan_economy::ledger::{Purpose, Start, Tokens};
    use hardpan_models::Catalogue;
    use hardpan_prompt::{Block, Counter, Origin, Place, Prompt, Role, Text, Turn, Vocabulary};
    use serde_json::json;

    use super::*;

    /// A watch that has seen a prompt of these messages.
    fn watch(messages: impl Iterator<Item = String>) -> Watch {
        let say = |text: String| {
            let origin = Origin::message(&(&*text).into());
            Turn::new(Role::User, vec![Block::text(Place::Log, Text::new(text), origin)])
        };
        let prompt = Prompt { turns: messages.map(say).collect(), ..Prompt::default() };
        let catalogue = Catalogue::builtin();
        let model = catalogue.model(Some("anthropic"), "claude-sonnet-5").expect("a known model");
        let mut watch = Watch::new();
        watch.examine(&Answered {
            prompt: &prompt,
            measured: &Counter::new(Vocabulary::O200k).measure(&prompt),
            wire: &catalogue.provider("anthropic").expect("a known provider").for_model(&model),
            model: &model,
            settings: Salts::default(),
            used: Some(Tokens { input: 100, ..Tokens::default() }),
            sent: Moment(0),
            began: Moment(1),
            day: "2026-02-19",
            purpose: Purpose::Turn,
            start: Start::Continued,
        });
        watch
    }

    fn entries(records: impl IntoIterator<Item = Record>) -> Vec<Entry> {
        records.into_iter().map(|record| Entry::new("e", None, None, record)).collect()
    }

    #[test]
    fn what_only_grew_is_stored_with_its_run_however_much_that_is() {
        let said = |count: usize| (0..count).map(|number| format!("m{number}"));
        let mut stored = Stored::default();
        let first = stored.change(&watch(said(10)), Settle::Run);
        let second = stored.change(&watch(said(10 + 2 * MOST_BLOCKS)), Settle::Run);
        let written = entries(first.into_iter().chain(second));
        let read = Stored::read(&written).watch();
        assert!(read == watch(said(10 + 2 * MOST_BLOCKS)), "what was stored before is not written again");
    }

    #[test]
    fn a_trace_that_waits_for_the_end_leaves_no_older_one_in_its_place() {
        let said =
            |what: &'static str| watch((0..2 * MOST_BLOCKS).map(move |number| format!("{what}{number}")));
        let mut stored = Stored::default();
        let mut written: Vec<Record> = stored.change(&said("one"), Settle::Run).into_iter().collect();
        assert!(Stored::read(&entries(written.clone())).watch() == said("one"));
        // Laid anew with every run: none is written, and the one of before counts no more.
        for what in ["two", "three"] {
            written.extend(stored.change(&said(what), Settle::Run));
            assert!(Stored::read(&entries(written.clone())).watch() == Watch::new());
        }
        assert_eq!(written.len(), 2);
        // It has come to rest: from now on what is new is written again.
        let grown = watch((0..2 * MOST_BLOCKS + 5).map(|number| format!("three{number}")));
        written.extend(stored.change(&grown, Settle::Run));
        assert!(Stored::read(&entries(written.clone())).watch() == grown);
        written.extend(stored.change(&said("four"), Settle::Session));
        assert!(Stored::read(&entries(written)).watch() == said("four"));
    }

    #[test]
    fn what_cannot_be_read_is_no_watch() {
        let damaged = [Value::Null, json!({"kept": {"blocks": 5}}), json!("?"), json!({"watch": 7})];
        for data in damaged {
            let record = Record::Custom { custom_type: WATCH.into(), data };
            assert_eq!(Stored::read(&[Entry::new("e", None, None, record)]).watch(), Watch::new());
        }
    }

    #[test]
    fn nothing_is_stored_of_nothing() {
        assert!(Stored::default().change(&Watch::new(), Settle::Session).is_none());
    }
}
