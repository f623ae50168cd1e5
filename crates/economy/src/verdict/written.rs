//! The written form of a watch: what is new in it since the one before.
//!
//! A watch has a few dozen bytes for each block of the last prompt, and most of them are those of the run before. So what is
//! written is, of each long list, how much of its start stays, and what follows. In an append-only layout all of it together is
//! about as long as the last watch.

use serde::{Deserialize, Serialize};

use crate::verdict::past::Past;
use crate::verdict::trace::Lengths;
use crate::verdict::watch::Watch;

/// What leads from one watch to the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchChange {
    /// How much of the lists stays.
    #[serde(default)]
    kept: Lengths,
    /// The rest.
    watch: Watch,
}

impl Watch {
    /// What leads here from another watch; none where nothing changed.
    ///
    /// Where our count of a text was scaled a little otherwise, which happens with every request whose bill teaches us
    /// something, the count of before stays: it is an estimate.
    pub fn since(&self, before: &Watch) -> Option<WatchChange> {
        let Some(now) = &self.last else {
            let nothing = WatchChange { kept: Lengths::default(), watch: Watch::new() };
            return before.last.is_some().then_some(nothing);
        };
        let kept = self.common(before);
        let rest = now.without_first(&kept);
        let same = before.last.as_ref().is_some_and(|before| before.without_first(&kept) == rest);
        (!same).then_some(WatchChange { kept, watch: Watch { last: Some(rest) } })
    }

    /// How many blocks of the last prompt are not where they were in the last one of a later watch.
    pub fn blocks_gone(&self, later: &Watch) -> usize {
        let kept = later.common(self);
        self.last.as_ref().map_or(0, |past| past.trace.len() - kept.blocks)
    }

    fn common(&self, before: &Watch) -> Lengths {
        match (&self.last, &before.last) {
            (Some(now), Some(before)) => before.trace.common(&now.trace),
            _ => Lengths::default(),
        }
    }

    /// The watch that a change leads to; none if it does not belong to this one.
    pub fn after(&self, change: &WatchChange) -> Option<Watch> {
        let mut watch = change.watch.clone();
        match (&mut watch.last, &self.last) {
            (Some(past), Some(before)) => past.trace.put_before(&before.trace, &change.kept)?,
            (Some(_), None) if change.kept != Lengths::default() => return None,
            _ => {}
        }
        // A file may have been damaged: what does not fit together is no watch.
        let is_sound = watch.last.as_ref().is_none_or(Past::is_sound);
        is_sound.then_some(watch)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::trial::{Talk, Trial, item, long};
    use crate::verdict::Watch;

    #[test]
    fn changes_lead_from_watch_to_watch_and_hold_only_what_is_new() {
        let mut trial = Trial::anthropic();
        let mut talk = Talk::new();
        let mut stored = Watch::new();
        let mut sizes = Vec::new();
        for number in 0..30 {
            talk.user(&format!("u{number}"), &long("question", 30)).tool_round(&format!("t{number}"), 3);
            if number == 20 {
                talk.base[0] = item("file:a.rs", &long("another", 10));
            }
            trial.next(&mut talk);
            let change = trial.watch.since(&stored).expect("it changed");
            let written = serde_json::to_string(&change).unwrap();
            stored = stored.after(&serde_json::from_str(&written).unwrap()).expect("it belongs there");
            assert_eq!(stored, trial.watch, "request {number}");
            assert_eq!(trial.watch.since(&stored), None);
            sizes.push(written.len());
        }
        assert!(sizes[19] < sizes[0], "{sizes:?}");
        assert!(sizes[20] > 3 * sizes[19], "what changed early is written again: {sizes:?}");
    }

    #[test]
    fn counts_that_were_scaled_a_little_otherwise_are_not_written_again() {
        let mut trial = Trial::anthropic();
        let mut talk = Talk::new();
        for number in 0..30 {
            talk.user(&format!("u{number}"), &long("question", 300)).assistant(&format!("a{number}"), "Yes.");
        }
        talk.user("last", "Well?");
        trial.next(&mut talk);
        let stored = trial.watch.clone();
        let whole = serde_json::to_string(&stored).unwrap().len();
        for (factor, is_little) in [(1.004, true), (1.3, false)] {
            let scaled = trial.scaled(&mut talk, factor);
            let change = scaled.since(&stored);
            let written = change.map_or(0, |change| serde_json::to_string(&change).unwrap().len());
            assert_eq!(written < whole / 4, is_little, "{factor}: {written} of {whole}");
        }
    }

    #[test]
    fn a_damaged_watch_is_none() {
        let mut trial = Trial::anthropic();
        let mut talk = Talk::new();
        trial.next(talk.user("m1", "Hello!").assistant("m2", "Hello!").user("m3", "Go on."));
        let whole = serde_json::to_value(trial.watch.since(&Watch::new()).expect("it changed")).unwrap();
        let read = |change: &Value| Watch::new().after(&serde_json::from_value(change.clone()).unwrap());
        assert_eq!(read(&whole), Some(trial.watch.clone()));
        for (list, longer) in [("blocks", false), ("pieces", false), ("pieces", true), ("origins", false)] {
            let mut damaged = whole.clone();
            let items = damaged["watch"]["trace"][list].as_array_mut().unwrap();
            let last = items.pop().unwrap();
            items.extend(longer.then(|| [last.clone(), last.clone()]).into_iter().flatten());
            assert_eq!(read(&damaged), None, "{list}");
        }
        for (pointer, value) in
            [("/watch/trace/tools", 99), ("/watch/entries/0/0", 99), ("/watch/promise/block", 99)]
        {
            let mut damaged = whole.clone();
            *damaged.pointer_mut(pointer).unwrap() = value.into();
            assert_eq!(read(&damaged), None, "{pointer}");
        }
    }

    #[test]
    fn a_change_that_does_not_belong_there_leads_nowhere() {
        let mut trial = Trial::anthropic();
        let mut talk = Talk::new();
        trial.next(talk.user("m1", "Hello!"));
        let first = trial.watch.clone();
        trial.next(talk.assistant("m2", "Hello!").user("m3", "Go on."));
        let change = trial.watch.since(&first).expect("it changed");
        assert_eq!(first.after(&change), Some(trial.watch.clone()));
        assert_eq!(Watch::new().after(&change), None);
        let gone = Watch::new().since(&first).expect("it changed");
        assert_eq!(first.after(&gone), Some(Watch::new()));
    }
}
