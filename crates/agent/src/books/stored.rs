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

/// A run that brought more new blocks than this leaves them to the end of the session.
const MOST_BLOCKS: usize = 250;

/// A watch as the session has it.
#[derive(Debug, Default)]
pub struct Stored(Watch);

impl Stored {
    /// The last one of a branch. One that could not be read, or does not follow the one before, is none.
    pub fn read<'a>(branch: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut stored = Watch::new();
        for entry in branch {
            if let Record::Custom { custom_type, data } = &entry.record
                && &**custom_type == WATCH
            {
                let change = WatchChange::deserialize(data).ok();
                stored = change.and_then(|change| stored.after(&change)).unwrap_or_default();
            }
        }
        Stored(stored)
    }

    /// The watch; a new one where there is none.
    pub fn watch(&self) -> Watch {
        self.0.clone()
    }

    /// The record that leads to this watch. In layouts that lay their prompts anew each time, the whole of a long conversation
    /// is new; that is not written with every run, but once, at the end.
    pub fn change(&mut self, watch: &Watch, end: Settle) -> Option<Record> {
        if end == Settle::Run && watch.blocks_since(&self.0) > MOST_BLOCKS {
            return None;
        }
        let change = watch.since(&self.0)?;
        let mut data = serde_json::to_value(&change).unwrap_or_default();
        self.0 = self.0.after(&change).unwrap_or_default();
        if data.to_string().len() > MOST_BYTES {
            (data, self.0) = (Value::Null, Watch::new());
        }
        Some(Record::Custom { custom_type: WATCH.into(), data })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
