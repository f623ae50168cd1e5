//! What is kept of a watch in the session.
//!
//! A watch has a few dozen bytes for each block of the last prompt. Most of them are those of the run before, so a record holds
//! what is new: of each long list how much of its start stays, and what follows. In an append-only layout all records together
//! are about as long as the last watch.

use hardpan_economy::Watch;
use hardpan_session::{Entry, Record};
use serde_json::{Map, Value, json};

/// The name of the record.
const WATCH: &str = "hardpan.watch";

/// A record longer than this is not written: the first request after a resume is then not judged.
const MOST_BYTES: usize = 1 << 18;

/// The lists of a watch that grow with the conversation.
const LISTS: [&str; 3] = ["blocks", "pieces", "origins"];

/// A watch as the session has it.
#[derive(Debug, Default)]
pub struct Stored(Value);

impl Stored {
    /// The last one of a branch.
    pub fn read<'a>(branch: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut stored = Stored::default();
        for entry in branch {
            if let Record::Custom { custom_type, data } = &entry.record
                && &**custom_type == WATCH
            {
                stored.0 = applied(&stored.0, data).unwrap_or_default();
            }
        }
        stored
    }

    /// The watch; a new one where there is none, or none that could be read.
    pub fn watch(&self) -> Watch {
        serde_json::from_value(self.0.clone()).unwrap_or_default()
    }

    /// The record that leads to this watch.
    pub fn change(&mut self, watch: &Watch) -> Option<Record> {
        let next = serde_json::to_value(watch).unwrap_or_default();
        if next == self.0 {
            return None;
        }
        let mut data = shortened(&self.0, &next);
        self.0 = next;
        if data.to_string().len() > MOST_BYTES {
            (data, self.0) = (Value::Null, Value::Null);
        }
        Some(Record::Custom { custom_type: WATCH.into(), data })
    }
}

/// A watch without the starts of its lists that the one before has, too.
fn shortened(before: &Value, next: &Value) -> Value {
    let mut kept = Map::new();
    let mut watch = next.clone();
    for name in LISTS {
        let (Some(old), Some(Value::Array(new))) =
            (before["trace"][name].as_array(), watch["trace"].get_mut(name))
        else {
            continue;
        };
        let same = old.iter().zip(new.iter()).take_while(|(old, new)| old == new).count();
        new.drain(..same);
        kept.insert(name.into(), same.into());
    }
    json!({"kept": kept, "watch": watch})
}

/// The watch that a record leads to.
fn applied(before: &Value, data: &Value) -> Option<Value> {
    let mut watch = data.get("watch")?.clone();
    for (name, count) in data.get("kept")?.as_object()? {
        let start = before["trace"][name].as_array()?.get(..usize::try_from(count.as_u64()?).ok()?)?;
        watch["trace"].get_mut(name)?.as_array_mut()?.splice(..0, start.iter().cloned());
    }
    Some(watch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(blocks: &[u64]) -> Value {
        json!({"trace": {"model": "m", "blocks": blocks, "pieces": [blocks.len()], "origins": []}, "used": blocks.len()})
    }

    #[test]
    fn records_lead_from_watch_to_watch_and_hold_only_what_is_new() {
        let steps = [watch(&[1, 2]), watch(&[1, 2, 3]), watch(&[1, 9]), watch(&[])];
        let mut known = Value::Null;
        for step in &steps {
            let record = shortened(&known, step);
            assert_eq!(applied(&known, &record).as_ref(), Some(step));
            known = step.clone();
        }
        assert_eq!(shortened(&steps[0], &steps[1])["watch"]["trace"]["blocks"], json!([3]));
    }

    #[test]
    fn a_record_that_does_not_fit_the_one_before_is_no_watch() {
        let record = json!({"kept": {"blocks": 5}, "watch": watch(&[7])});
        assert_eq!(applied(&watch(&[1, 2]), &record), None);
        assert_eq!(applied(&watch(&[1, 2]), &Value::Null), None);
    }
}
