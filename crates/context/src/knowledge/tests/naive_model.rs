use std::ops::Range;

use proptest::prelude::*;

use super::*;

/// A step of a conversation, as a session stores it.
#[derive(Clone, Debug)]
enum Step {
    Told(MessageId, FileObservation),
    /// A summary replaces all steps before this one.
    Compacted(usize),
}

/// Answers what [`FileKnowledge`] answers, by looking at all steps each time.
struct NaiveModel<'a>(&'a [Step]);

impl NaiveModel<'_> {
    /// What messages tell about a file that are still there after these steps.
    fn present(steps: &[Step], path: &str) -> Vec<(MessageId, FileObservation)> {
        let begin = steps.iter().rev().find_map(|step| match step {
            Step::Compacted(first) => Some(*first),
            Step::Told(..) => None,
        });
        let told = steps[begin.unwrap_or(0).min(steps.len())..].iter().filter_map(|step| match step {
            Step::Told(message, told) if &*told.path == path => Some((message.clone(), told.clone())),
            _ => None,
        });
        told.collect()
    }

    fn superseded(&self, path: &str) -> Vec<(String, Option<(String, SupersededHow)>)> {
        let present = NaiveModel::present(self.0, path);
        let lines = |told: &FileObservation| -> BTreeSet<u64> {
            told.shown.iter().flat_map(|(first, last)| first..=last).collect()
        };
        let fate = |at: usize| {
            let (message, told) = &present[at];
            let mut missing = lines(told);
            let known_later = present[at + 1..].iter().filter(|(_, later)| later.hash.is_some());
            for (by, later) in known_later.filter(|_| told.hash.is_some()) {
                missing = &missing - &lines(later);
                let all = later.lines.is_some_and(|count| lines(later).len() as u64 == count);
                if later.hash != told.hash {
                    return (message.0.to_string(), Some((by.0.to_string(), SupersededHow::Outdated)));
                }
                if missing.is_empty() && (all || !told.shown.is_empty()) {
                    return (message.0.to_string(), Some((by.0.to_string(), SupersededHow::ShownAgain)));
                }
            }
            (message.0.to_string(), None)
        };
        (0..present.len()).map(fate).collect()
    }

    fn is_covered(&self, path: &str) -> bool {
        NaiveModel::covered_after(&NaiveModel::present(self.0, path))
    }

    fn covered_after(present: &[(MessageId, FileObservation)]) -> bool {
        let (mut current, mut is_whole) = (None, false);
        let mut shown: BTreeSet<u64> = BTreeSet::new();
        for (_, told) in present {
            let Some((hash, count)) = told.hash.zip(told.lines) else { continue };
            if current.replace(hash) != Some(hash) {
                shown.clear();
            }
            shown.extend(told.shown.iter().flat_map(|(first, last)| first..=last));
            let tells_all = match told.kind {
                ObservationKind::Written | ObservationKind::Confirmed => true,
                ObservationKind::Edited | ObservationKind::Diffed => is_whole,
                ObservationKind::Shown => false,
            };
            if tells_all {
                shown.extend(1..=count);
            }
            is_whole = (1..=count).all(|line| shown.contains(&line));
        }
        is_whole
    }

    /// The last message after which the whole file was known.
    fn known(&self, path: &str) -> Option<(Option<String>, bool)> {
        let present = NaiveModel::present(self.0, path);
        let mut known: Option<(Hash, MessageId, bool)> = None;
        for (at, (message, told)) in present.iter().enumerate() {
            let Some(hash) = told.hash else { continue };
            let is_covered = NaiveModel::covered_after(&present[..=at]);
            let knows = match told.kind {
                ObservationKind::Shown => is_covered,
                ObservationKind::Written => true,
                ObservationKind::Edited => is_covered || known.is_some(),
                ObservationKind::Diffed | ObservationKind::Confirmed => false,
            };
            if knows {
                let changed = known.is_some_and(|(before, _, changed)| changed || before != hash);
                known = Some((hash, message.clone(), changed));
            }
        }
        known.map(|(_, message, changed)| (Some(message.0.to_string()), changed))
    }
}

/// A content, by its number: contents of different numbers differ.
fn content(number: usize) -> String {
    (0..number % 5).map(|line| format!("line {line} of {number}\n")).collect()
}

fn some_observation() -> impl Strategy<Value = FileObservation> {
    use ObservationKind::{Confirmed, Diffed, Edited, Shown, Written};
    let kind = prop::sample::select(vec![Shown, Shown, Shown, Written, Edited, Diffed, Confirmed]);
    let (path, numbers): (_, Range<usize>) = (prop::sample::select(vec!["a", "b/c"]), 1..12);
    (path, kind, numbers, prop::bool::weighted(0.1), 1..6_u64, 0..6_u64).prop_map(
        |(path, kind, number, is_unknown, first, length)| {
            let text = content(number);
            let all = LineRanges::all(count_lines(&text));
            let mut shown = LineRanges::span(first, first + length - 1);
            let mut outside = shown.clone();
            outside.remove(&all);
            shown.remove(&outside);
            match kind {
                Shown if is_unknown => {
                    FileObservation::of_unknown(path, LineRanges::span(first, first + length))
                }
                Written | Confirmed => FileObservation::of_text(path, kind, &text, all),
                kind => FileObservation::of_text(path, kind, &text, shown),
            }
        },
    )
}

fn some_steps() -> impl Strategy<Value = Vec<Step>> {
    let step =
        prop_oneof![8 => some_observation().prop_map(Ok), 1 => any::<prop::sample::Index>().prop_map(Err)];
    prop::collection::vec(step, 0..30).prop_map(|drafts| {
        let mut steps: Vec<Step> = Vec::new();
        for draft in drafts {
            let at = steps.len();
            steps.push(match draft {
                Ok(told) => Step::Told(format!("m{at}").as_str().into(), told),
                Err(first) => {
                    // A compaction never brings back what an earlier one replaced.
                    let from = steps.iter().rev().find_map(|step| match step {
                        Step::Compacted(first) => Some(*first),
                        Step::Told(..) => None,
                    });
                    let from = from.unwrap_or(0);
                    Step::Compacted(from + first.index(at - from + 1))
                }
            });
        }
        steps
    })
}

/// The value after these steps, as the agent makes it.
fn knowledge_after(steps: &[Step]) -> FileKnowledge {
    let mut knowledge = FileKnowledge::default();
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Told(message, told) => knowledge.record(message, told.clone()),
            Step::Compacted(first) => {
                let kept = steps[*first..at].iter().filter_map(|step| match step {
                    Step::Told(message, _) => Some(message),
                    Step::Compacted(_) => None,
                });
                knowledge.retain_messages(&kept.collect());
            }
        }
    }
    knowledge
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn knowledge_is_what_looking_at_the_whole_conversation_gives(steps in some_steps()) {
        let knowledge = knowledge_after(&steps);
        let model = NaiveModel(&steps);
        for path in ["a", "b/c"] {
            prop_assert_eq!(superseded(&knowledge, path), model.superseded(path), "{}", path);
            prop_assert_eq!(knowledge.is_covered(path), model.is_covered(path), "{}", path);
            prop_assert_eq!(known(&knowledge, path), model.known(path), "{}", path);
            let present = NaiveModel::present(&steps, path);
            let last = present.iter().rev().find_map(|(_, told)| told.hash);
            prop_assert_eq!(knowledge.last_seen(path).map(|seen| seen.hash), last);
        }
    }

    #[test]
    fn a_clone_stays_as_it_was(steps in some_steps(), more in some_observation()) {
        let knowledge = knowledge_after(&steps);
        let (mut changed, again) = (knowledge.clone(), knowledge_after(&steps));
        changed.record(&"more".into(), more);
        changed.record_item("a", &"other".into());
        changed.retain_messages(&BTreeSet::new());
        prop_assert_eq!(knowledge, again);
    }
}
