//! [`CacheMonitorChange`]: how a monitor is stored, as the difference from the previous one.
//!
//! A monitor takes a few dozen bytes for each block of the last prompt, and most of them are the
//! same as before. So a change stores, for each long list, how much of its beginning stays, and
//! what follows. In an append-only layout all changes together are about as long as the last
//! monitor.

use serde::{Deserialize, Serialize};

use crate::verdict::monitor::CacheMonitor;
use crate::verdict::previous_request::PreviousRequest;
use crate::verdict::trace::SharedLengths;

/// The difference between a monitor and an earlier one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheMonitorChange {
    /// How much of the beginning of each list stays.
    #[serde(default)]
    kept: SharedLengths,
    /// The monitor without these beginnings.
    #[serde(rename = "watch")]
    monitor: CacheMonitor,
}

impl CacheMonitor {
    /// The change that leads from an earlier monitor to this one. `None`: nothing changed.
    ///
    /// Counts that differ only slightly keep their earlier value, since they are estimates and are
    /// rescaled with every bill that teaches us something.
    pub fn change_since(&self, before: &CacheMonitor) -> Option<CacheMonitorChange> {
        let Some(now) = &self.last else {
            let nothing = CacheMonitorChange { kept: SharedLengths::default(), monitor: CacheMonitor::new() };
            return before.last.is_some().then_some(nothing);
        };
        let kept = self.shared_lengths(before);
        let rest = now.without_first(&kept);
        let same = before.last.as_ref().is_some_and(|before| before.without_first(&kept) == rest);
        (!same).then_some(CacheMonitorChange { kept, monitor: CacheMonitor { last: Some(rest) } })
    }

    /// How many blocks of this monitor's last prompt are no longer at their position in that of a
    /// later monitor.
    pub fn count_moved_blocks(&self, later: &CacheMonitor) -> usize {
        let kept = later.shared_lengths(self);
        self.last.as_ref().map_or(0, |past| past.trace.len() - kept.blocks)
    }

    fn shared_lengths(&self, before: &CacheMonitor) -> SharedLengths {
        match (&self.last, &before.last) {
            (Some(now), Some(before)) => before.trace.shared_lengths(&now.trace),
            _ => SharedLengths::default(),
        }
    }

    /// Applies a change to this monitor. `None`: the change belongs to another monitor, or is
    /// damaged.
    pub fn apply_change(&self, change: &CacheMonitorChange) -> Option<CacheMonitor> {
        let mut monitor = change.monitor.clone();
        match (&mut monitor.last, &self.last) {
            (Some(past), Some(before)) => past.trace.prepend(&before.trace, &change.kept)?,
            (Some(_), None) if change.kept != SharedLengths::default() => return None,
            _ => {}
        }
        // A file may have been damaged: what does not fit together is no monitor.
        let is_sound = monitor.last.as_ref().is_none_or(PreviousRequest::is_sound);
        is_sound.then_some(monitor)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::test_session::{TestConversation, TestSession, item, long_text};
    use crate::verdict::CacheMonitor;

    #[test]
    fn changes_lead_from_monitor_to_monitor_and_hold_only_what_is_new() {
        let mut session = TestSession::anthropic();
        let mut conversation = TestConversation::new();
        let mut stored = CacheMonitor::new();
        let mut sizes = Vec::new();
        for number in 0..30 {
            conversation
                .user(&format!("u{number}"), &long_text("question", 30))
                .tool_round(&format!("t{number}"), 3);
            if number == 20 {
                conversation.base[0] = item("file:a.rs", &long_text("another", 10));
            }
            session.next(&mut conversation);
            let change = session.monitor.change_since(&stored).expect("it changed");
            let written = serde_json::to_string(&change).unwrap();
            stored = stored.apply_change(&serde_json::from_str(&written).unwrap()).expect("it belongs there");
            assert_eq!(stored, session.monitor, "request {number}");
            assert_eq!(session.monitor.change_since(&stored), None);
            sizes.push(written.len());
        }
        assert!(sizes[19] < sizes[0], "{sizes:?}");
        assert!(sizes[20] > 3 * sizes[19], "what changed early is written again: {sizes:?}");
    }

    #[test]
    fn counts_that_were_scaled_a_little_otherwise_are_not_written_again() {
        let mut session = TestSession::anthropic();
        let mut conversation = TestConversation::new();
        for number in 0..30 {
            conversation
                .user(&format!("u{number}"), &long_text("question", 300))
                .assistant(&format!("a{number}"), "Yes.");
        }
        conversation.user("last", "Well?");
        session.next(&mut conversation);
        let stored = session.monitor.clone();
        let whole = serde_json::to_string(&stored).unwrap().len();
        for (factor, is_little) in [(1.004, true), (1.3, false)] {
            let scaled = session.scaled(&mut conversation, factor);
            let change = scaled.change_since(&stored);
            let written = change.map_or(0, |change| serde_json::to_string(&change).unwrap().len());
            assert_eq!(written < whole / 4, is_little, "{factor}: {written} of {whole}");
        }
    }

    #[test]
    fn a_damaged_monitor_is_none() {
        let mut session = TestSession::anthropic();
        let mut conversation = TestConversation::new();
        session.next(conversation.user("m1", "Hello!").assistant("m2", "Hello!").user("m3", "Go on."));
        let whole =
            serde_json::to_value(session.monitor.change_since(&CacheMonitor::new()).expect("it changed"))
                .unwrap();
        let read = |change: &Value| {
            CacheMonitor::new().apply_change(&serde_json::from_value(change.clone()).unwrap())
        };
        assert_eq!(read(&whole), Some(session.monitor.clone()));
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
        let mut session = TestSession::anthropic();
        let mut conversation = TestConversation::new();
        session.next(conversation.user("m1", "Hello!"));
        let first = session.monitor.clone();
        session.next(conversation.assistant("m2", "Hello!").user("m3", "Go on."));
        let change = session.monitor.change_since(&first).expect("it changed");
        assert_eq!(first.apply_change(&change), Some(session.monitor.clone()));
        assert_eq!(CacheMonitor::new().apply_change(&change), None);
        let gone = CacheMonitor::new().change_since(&first).expect("it changed");
        assert_eq!(first.apply_change(&gone), Some(CacheMonitor::new()));
    }
}
