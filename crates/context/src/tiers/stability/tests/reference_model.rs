//! The rules again, from the list of all responses, with no thought of speed; and random sessions
//! that compare the two.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use hardpan_prompt::{Hash, Tier};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::{REASONS, kind};
use crate::tiers::stability::{ShownEntry, StabilityTracker, SymbolMapFile, TierChange};

/// Active, L3, L2, L1, L0 are the levels 0 to 4: level `l` begins with N = 3 × l and ends with 3 ×
/// (l + 1), at most 12.
const TIERS: [Tier; 5] = [Tier::Active, Tier::L3, Tier::L2, Tier::L1, Tier::L0];

fn level_of(tier: Tier) -> usize {
    TIERS.iter().position(|other| *other == tier).unwrap()
}

struct Response {
    shown: Vec<ShownEntry>,
    target: usize,
}

impl Response {
    fn of(&self, key: &str) -> Option<&ShownEntry> {
        self.shown.iter().find(|shown| shown.key.to_string() == key)
    }

    fn open(&self, symbol: &str) -> bool {
        symbol.strip_prefix("symbol:").is_some_and(|path| self.of(&format!("file:{path}")).is_some())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ModelEntry {
    level: usize,
    n: usize,
    tokens: usize,
    hidden_by_open_file: bool,
}

type ModelState = BTreeMap<String, ModelEntry>;

/// The state after all these responses: the first one is applied to `start`, and so on.
fn replay(start: &StabilityTracker, responses: &[Response]) -> ModelState {
    let Some((last, earlier)) = responses.split_last() else {
        let model_entry = |entry: &crate::TrackedEntry| ModelEntry {
            level: level_of(entry.tier),
            n: entry.unchanged_responses as usize,
            tokens: entry.tokens,
            hidden_by_open_file: entry.hidden_by_open_file,
        };
        return start.entries().iter().map(|entry| (entry.key.to_string(), model_entry(entry))).collect();
    };
    let before = replay(start, earlier);
    let mut now = ModelState::new();
    let (mut broken, mut counted) = (BTreeSet::new(), BTreeSet::new());
    for shown in &last.shown {
        let key = shown.key.to_string();
        let Some(old) = before.get(&key) else {
            let level = level_of(shown.tier);
            now.insert(
                key.clone(),
                ModelEntry { level, n: 3 * level, tokens: shown.tokens, hidden_by_open_file: false },
            );
            counted.insert(key);
            continue;
        };
        let hash_before = earlier.iter().rev().find_map(|response| response.of(&key)).map(|shown| shown.hash);
        let mut model_entry = ModelEntry { tokens: shown.tokens, hidden_by_open_file: false, ..*old };
        if hash_before.is_some_and(|hash| hash != shown.hash) {
            broken.insert(old.level);
            (model_entry.level, model_entry.n) = (0, 0);
            counted.insert(key.clone());
        } else if old.hidden_by_open_file || hash_before.is_none() {
            counted.insert(key.clone());
        }
        now.insert(key, model_entry);
    }
    for (key, old) in before.iter().filter(|(key, _)| last.of(key).is_none()) {
        if !old.hidden_by_open_file {
            broken.insert(old.level);
        }
        if last.open(key) {
            now.insert(key.clone(), ModelEntry { hidden_by_open_file: true, ..*old });
        }
    }
    for (key, model_entry) in
        now.iter_mut().filter(|(_, model_entry)| model_entry.level == 0 && !model_entry.hidden_by_open_file)
    {
        if counted.insert(key.clone()) {
            model_entry.n = (model_entry.n + 1).min(3);
        }
    }
    let conversation: Vec<String> = last
        .shown
        .iter()
        .map(|shown| shown.key.to_string())
        .filter(|key| key.starts_with("history:"))
        .collect();
    for later in 1..conversation.len() {
        let lowest = conversation[..later].iter().map(|key| now[key].level).min().unwrap();
        let model_entry = now.get_mut(&conversation[later]).unwrap();
        if model_entry.level > lowest {
            broken.extend([model_entry.level, lowest]);
            (model_entry.level, model_entry.n) = (lowest, model_entry.n.min(3 * (lowest + 1)));
        }
    }
    let mut rules = Rules { now, broken, counted, conversation, target: last.target };
    loop {
        while rules.work() {}
        if !rules.demote_underfilled() {
            return rules.now;
        }
    }
}

struct Rules {
    now: ModelState,
    broken: BTreeSet<usize>,
    counted: BTreeSet<String>,
    conversation: Vec<String>,
    target: usize,
}

impl Rules {
    fn keys(&self, level: usize) -> Vec<String> {
        let here = self
            .now
            .iter()
            .filter(|(_, model_entry)| model_entry.level == level && !model_entry.hidden_by_open_file);
        here.map(|(key, _)| key.clone()).collect()
    }

    fn sum(&self, keys: &[String]) -> usize {
        keys.iter().map(|key| self.now[key].tokens).sum()
    }

    /// Where a thing stands among equals: files and symbols by key, then the conversation.
    fn rank(&self, key: &str) -> (usize, String) {
        match self.conversation.iter().position(|other| other == key) {
            Some(position) => (position + 1, String::new()),
            None => (0, key.to_owned()),
        }
    }

    fn not_needed(&self, level: usize) -> Vec<String> {
        let mut rest = self.keys(level);
        if level == 0 {
            return rest;
        }
        let mut held = 0;
        while held < self.target && !rest.is_empty() {
            let mut next = rest[0].clone();
            for key in &rest {
                let (n, least) = (self.now[key].n, self.now[&next].n);
                if n < least || (n == least && self.rank(key) > self.rank(&next)) {
                    next = key.clone();
                }
            }
            held += self.now[&next].tokens;
            rest.retain(|key| *key != next);
        }
        rest
    }

    fn work(&mut self) -> bool {
        let mut moved = false;
        for into in 1..=4 {
            let from = into - 1;
            for key in self.not_needed(from) {
                if from > 0 && self.counted.insert(key.clone()) {
                    let model_entry = self.now.get_mut(&key).unwrap();
                    model_entry.n = (model_entry.n + 1).min(3 * into);
                }
            }
            if !self.broken.contains(&into) && !self.keys(into).is_empty() {
                continue;
            }
            let mut up = self.not_needed(from);
            up.retain(|key| self.now[key].n >= 3 * into);
            let only_talk = up.iter().all(|key| key.starts_with("history:"));
            let talk_may = into > 1 || self.broken.contains(&1) || !only_talk;
            for (position, key) in self.conversation.iter().enumerate() {
                let older_stays = self.conversation[..position]
                    .iter()
                    .any(|older| self.now[older].level < into && !up.contains(older));
                if !talk_may || older_stays {
                    up.retain(|other| other != key);
                }
            }
            let enough = into == 4 || self.sum(&self.keys(into)) + self.sum(&up) >= self.target;
            if !up.is_empty() && enough {
                for key in up {
                    self.now.get_mut(&key).unwrap().level = into;
                }
                self.broken.extend([from, into]);
                moved = true;
            }
        }
        moved
    }

    fn demote_underfilled(&mut self) -> bool {
        for level in [3, 2, 1] {
            let keys = self.keys(level);
            if !keys.is_empty() && self.sum(&keys) < self.target {
                for key in keys {
                    let model_entry = self.now.get_mut(&key).unwrap();
                    (model_entry.level, model_entry.n) = (level - 1, model_entry.n.min(3 * level));
                }
                self.broken.extend([level, level - 1]);
                return true;
            }
        }
        false
    }
}

/// What happens before a request: sets of paths as bits.
#[derive(Clone, Debug)]
struct Step {
    opened_or_closed: u8,
    edited: u8,
    remapped: u8,
    deleted_or_made: u8,
    conversation: ConversationStep,
    target: usize,
}

#[derive(Clone, Copy, Debug)]
enum ConversationStep {
    Nothing,
    Continues,
    Begins,
    IsRewritten(usize),
    LosesItsOldest,
}

fn rare() -> impl Strategy<Value = u8> {
    (any::<u8>(), any::<u8>(), any::<u8>(), any::<u8>()).prop_map(|(a, b, c, d)| a & b & c & d)
}

fn step() -> impl Strategy<Value = Step> {
    let conversation = prop_oneof![
        2 => Just(ConversationStep::Nothing),
        4 => Just(ConversationStep::Continues),
        4 => Just(ConversationStep::Begins),
        1 => (0..6_usize).prop_map(ConversationStep::IsRewritten),
        1 => Just(ConversationStep::LosesItsOldest),
    ];
    let target = prop_oneof![20 => Just(100_usize), 1 => Just(0), 1 => Just(250)];
    (rare(), rare(), rare(), rare(), conversation, target).prop_map(
        |(opened_or_closed, edited, remapped, deleted_or_made, conversation, target)| Step {
            opened_or_closed,
            edited,
            remapped,
            deleted_or_made,
            conversation,
            target,
        },
    )
}

#[derive(Default)]
struct SimulatedProject {
    open: u8,
    missing: u8,
    files: [u32; 8],
    symbols: [u32; 8],
    /// The exchanges: a name and how often each changed.
    conversation: Vec<(usize, u32)>,
    began: usize,
}

impl SimulatedProject {
    fn step(&mut self, step: &Step) {
        self.open ^= step.opened_or_closed;
        self.missing ^= step.deleted_or_made;
        for path in 0..8 {
            self.files[path] += u32::from(step.edited >> path & 1);
            self.symbols[path] += u32::from(step.remapped >> path & 1);
        }
        match step.conversation {
            ConversationStep::Nothing => {}
            ConversationStep::Continues => {
                self.conversation.last_mut().into_iter().for_each(|conversation| conversation.1 += 1);
            }
            ConversationStep::Begins => {
                self.conversation.push((self.began, 0));
                self.began += 1;
            }
            ConversationStep::IsRewritten(at) => {
                self.conversation.get_mut(at).into_iter().for_each(|conversation| conversation.1 += 1);
            }
            ConversationStep::LosesItsOldest => {
                drop(self.conversation.drain(..self.conversation.len().min(1)));
            }
        }
    }

    fn shown(&self, tracker: &StabilityTracker) -> Vec<ShownEntry> {
        let shown = |key: String, version: u32, tokens: usize, usual: Tier| {
            let known = tracker.entries().iter().find(|entry| entry.key.to_string() == key);
            let hash = Hash::of(format!("{key} {version}").as_bytes());
            let tier = known.map_or(usual, |entry| entry.tier);
            ShownEntry { key: key.parse().unwrap(), hash, tokens: tokens + version as usize, tier }
        };
        let mut all = Vec::new();
        for path in (0..8).filter(|path| self.missing >> path & 1 == 0) {
            if self.open >> path & 1 == 1 {
                all.push(shown(format!("file:{path}"), self.files[path], 20 + 15 * path, Tier::Active));
            } else {
                all.push(shown(format!("symbol:{path}"), self.symbols[path], 10 + 11 * path, Tier::L3));
            }
        }
        let conversation = self.conversation.iter();
        // Names that do not sort like the conversation.
        let name = |number: usize| format!("history:{}-{number}", number * 7 % 10);
        all.extend(conversation.map(|(number, version)| shown(name(*number), *version, 25, Tier::Active)));
        all
    }
}

fn start() -> StabilityTracker {
    let files: Vec<SymbolMapFile> = (0..8)
        .map(|path| SymbolMapFile { path: path.to_string().into(), tokens: 10 + 11 * path, references: 0.0 })
        .collect();
    StabilityTracker::initial(&files, &[vec!["1", "2", "7"], vec!["3", "4"]], 100)
}

/// From and to, as the states before and after have it.
fn moves(
    before: &ModelState,
    after: &ModelState,
    responses: &[Response],
) -> BTreeMap<String, (Option<Tier>, Option<Tier>)> {
    let tier = |state: &ModelState, key: &String| {
        state
            .get(key)
            .filter(|model_entry| !model_entry.hidden_by_open_file)
            .map(|model_entry| TIERS[model_entry.level])
    };
    let (last, earlier) = responses.split_last().unwrap();
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let one = |key: &String| {
        let was = earlier.iter().rev().find_map(|response| response.of(key));
        // What came back changed has been in its tier once more, in the request just answered.
        let changed = last
            .of(key)
            .filter(|now| before.contains_key(key) && was.is_some_and(|was| was.hash != now.hash));
        (key.clone(), (changed.map(|shown| shown.tier).or(tier(before, key)), tier(after, key)))
    };
    keys.into_iter().map(one).filter(|(_, (from, to))| from != to).collect()
}

fn compare(steps: &[Step], met: &RefCell<BTreeSet<String>>) -> Result<(), TestCaseError> {
    let (mut world, mut tracker) = (SimulatedProject::default(), start());
    let mut responses = Vec::new();
    for step in steps {
        world.step(step);
        let shown = world.shown(&tracker);
        let (next, changes) = tracker.record_response(&shown, step.target);
        let before = replay(&start(), &responses);
        responses.push(Response { shown, target: step.target });
        let slow = replay(&start(), &responses);
        let fast: ModelState = next
            .entries()
            .iter()
            .map(|entry| {
                let (level, n) = (level_of(entry.tier), entry.unchanged_responses as usize);
                prop_assert!((3 * level..=(3 * level + 3).min(12)).contains(&n), "{entry:?}");
                Ok((
                    entry.key.to_string(),
                    ModelEntry {
                        level,
                        n,
                        tokens: entry.tokens,
                        hidden_by_open_file: entry.hidden_by_open_file,
                    },
                ))
            })
            .collect::<Result<_, TestCaseError>>()?;
        prop_assert_eq!(&fast, &slow);
        let logged: BTreeMap<String, _> =
            changes.iter().map(|TierChange { key, from, to, .. }| (key.to_string(), (*from, *to))).collect();
        prop_assert_eq!(logged, moves(&before, &slow, &responses));
        met.borrow_mut().extend(changes.iter().map(|change| kind(change.reason)));
        met.borrow_mut().extend(next.entries().iter().map(|entry| format!("{:?}", entry.tier)));
        tracker = next;
    }
    Ok(())
}

#[test]
fn the_state_is_that_of_a_slow_and_obvious_tracker() {
    let met = RefCell::default();
    let config = ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() };
    let steps = proptest::collection::vec(step(), 1..40);
    TestRunner::new(config).run(&steps, |steps| compare(&steps, &met)).unwrap();
    let expected: BTreeSet<String> =
        REASONS.into_iter().chain(["Active", "L3", "L2", "L1", "L0"]).map(str::to_owned).collect();
    assert_eq!(met.into_inner(), expected);
}
