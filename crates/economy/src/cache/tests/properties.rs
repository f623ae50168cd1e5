//! Random requests, held against a model that compares whole prefixes and looks at every entry
//! every time.

use hardpan_models::{CacheKind, CachePolicy};
use proptest::prelude::*;

use super::*;

/// A prefix with all it depends on: nothing is hashed.
#[derive(Clone, Debug, PartialEq)]
struct Prefix {
    model: String,
    blocks: Vec<(Section, Hash)>,
    tools: Option<Vec<Hash>>,
    system: Option<(bool, bool)>,
    messages: Option<CacheSettings>,
}

#[derive(Clone, Debug)]
struct Entry {
    prefix: Prefix,
    used: i64,
    available: i64,
    lifetime: Option<i64>,
}

#[derive(Default)]
struct Naive {
    entries: Vec<Entry>,
}

fn prefix(rules: &CacheRules, request: &CacheRequest, last: usize) -> Prefix {
    let blocks = &request.blocks[..=last];
    let settings_matter = rules.invalidation == Invalidation::BySection;
    let has = |section| settings_matter && blocks.iter().any(|block| block.section >= section);
    let settings = &request.settings;
    let tools = request.blocks.iter().filter(|block| block.section == Section::Tools);
    Prefix {
        model: request.model.to_string(),
        blocks: blocks.iter().map(|block| (block.section, block.hash)).collect(),
        tools: settings_matter.then(|| tools.map(|tool| tool.hash).collect()),
        system: has(Section::System).then_some((settings.web_search, settings.citations)),
        messages: has(Section::Messages).then(|| settings.clone()),
    }
}

impl Naive {
    fn readable(&self, rules: &CacheRules, request: &CacheRequest, last: usize) -> bool {
        let (wanted, at) = (prefix(rules, request, last), request.at.0);
        let is_alive = |entry: &Entry| entry.lifetime.is_none_or(|lifetime| at < entry.used + lifetime);
        self.entries.iter().any(|entry| entry.prefix == wanted && entry.available <= at && is_alive(entry))
    }

    /// The last block of the entry that is read.
    fn read(&self, rules: &CacheRules, request: &CacheRequest) -> Option<usize> {
        let through = |last: usize| request.blocks[..=last].iter().map(|block| block.tokens).sum::<usize>();
        let starts: Vec<usize> = match rules.cache.kind {
            CacheKind::Automatic => request.blocks.len().checked_sub(1).into_iter().collect(),
            _ => (0..request.blocks.len()).filter(|&index| request.blocks[index].marker.is_some()).collect(),
        };
        for start in starts.into_iter().rev() {
            let steps = rules.cache.look_back.map_or(start + 1, |steps| (steps as usize).min(start + 1));
            let mut checked = (0..steps).map(|step| start - step);
            if let Some(last) = checked.find(|&last| self.readable(rules, request, last)) {
                return Some(last).filter(|&last| through(last) >= rules.minimum());
            }
        }
        None
    }

    fn bill(&self, rules: &CacheRules, request: &CacheRequest) -> TokenUsage {
        let through = |last: usize| request.blocks[..=last].iter().map(|block| block.tokens).sum::<usize>();
        let total = request.blocks.iter().map(|block| block.tokens).sum::<usize>();
        let read = self.read(rules, request).map_or(0, through);
        if rules.cache.kind == CacheKind::Automatic {
            let step = rules.cache.step as usize;
            let kept = |tokens: usize| {
                let multiples =
                    (0..=total).filter(|kept| kept % step == 0 && *kept <= tokens && *kept < total);
                multiples.max().filter(|kept| *kept >= rules.minimum()).unwrap_or(0)
            };
            return amounts(kept(read), kept(total) - kept(read), 0, total - kept(total));
        }
        let (mut hour, mut end) = (read, read);
        for (index, lifetime) in self.ends(rules, request) {
            end = end.max(through(index));
            if lifetime == LONG {
                hour = hour.max(through(index));
            }
        }
        amounts(read, end - hour, hour - read, total - end)
    }

    fn ends(&self, rules: &CacheRules, request: &CacheRequest) -> Vec<(usize, CacheLifetime)> {
        let through = |last: usize| request.blocks[..=last].iter().map(|block| block.tokens).sum::<usize>();
        let all = request.blocks.iter().enumerate();
        match rules.cache.kind {
            CacheKind::Automatic => all.map(|(index, _)| (index, SHORT)).collect(),
            _ => all
                .filter_map(|(index, block)| Some((index, block.marker?)))
                .filter(|(index, _)| through(*index) >= rules.minimum())
                .collect(),
        }
    }

    fn commit(&mut self, rules: &CacheRules, request: &CacheRequest, answered: i64) {
        let (at, read) = (request.at.0, self.read(rules, request));
        let lifetime = |asked: CacheLifetime| {
            if asked == LONG { rules.cache.long_lifetime } else { rules.cache.lifetime }
        };
        let known: Vec<usize> =
            (0..request.blocks.len()).filter(|&last| self.readable(rules, request, last)).collect();
        for &last in known.iter().filter(|last| read.is_some_and(|read| **last <= read)) {
            let prefix = prefix(rules, request, last);
            let found = self.entries.iter_mut().filter(|entry| entry.prefix == prefix);
            found.for_each(|entry| entry.used = entry.used.max(at));
        }
        for (last, asked) in self.ends(rules, request) {
            if known.contains(&last) {
                continue;
            }
            let prefix = prefix(rules, request, last);
            let lifetime = lifetime(asked).map(|seconds| i64::from(seconds) * 1000);
            let mut new = Entry { prefix, used: at, available: answered, lifetime };
            // Another request may be writing the same at the same time.
            if let Some(old) = self.entries.iter().find(|old| old.prefix == new.prefix && at < old.available)
            {
                new.used = new.used.max(old.used);
                new.available = new.available.min(old.available);
                new.lifetime = new.lifetime.max(old.lifetime);
            }
            self.entries.retain(|old| old.prefix != new.prefix);
            self.entries.push(new);
        }
    }
}

#[derive(Clone, Debug)]
struct Step {
    request: CacheRequest,
    /// Milliseconds from the request to its answer.
    answered: i64,
}

/// Requests of few different blocks, so that prefixes meet; long waits and short ones, answers that
/// overlap.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let block = (0..40_usize, prop::option::weighted(0.25, prop_oneof![Just(SHORT), Just(LONG)]));
    // Mostly the same beginning: a name is the block's place unless it is a rare other one.
    let blocks = prop::collection::vec(block, 0..14);
    let settings = (0..20_usize).prop_map(|which| CacheSettings {
        web_search: which == 1,
        images: which == 2,
        effort: (which == 3).then(|| "high".into()),
        ..CacheSettings::default()
    });
    let wait = prop_oneof![4 => 0..30_000_i64, 2 => 100_000..320_000_i64, 1 => 3_000_000..4_000_000_i64];
    let answered = prop_oneof![0..5000_i64, 0..120_000_i64];
    let step = (blocks, settings, wait, answered, prop::bool::weighted(0.1));
    prop::collection::vec(step, 1..25).prop_map(|steps| {
        let mut now = 0;
        let make = |(blocks, settings, wait, answered, is_other): (Vec<_>, CacheSettings, i64, i64, bool)| {
            now += wait;
            let cached = |(place, (name, marker)): (usize, &(usize, Option<CacheLifetime>))| {
                let section = match place {
                    0..2 => Section::Tools,
                    2..4 => Section::System,
                    _ => Section::Messages,
                };
                let name = if *name == 0 { 100 + place } else { place };
                CacheBlock { section, marker: *marker, ..super::block(name, 37 * (name % 7)) }
            };
            let blocks = blocks.iter().enumerate().map(cached).collect();
            let model = if is_other { "n" } else { "m" }.into();
            Step {
                request: CacheRequest { at: Moment(now), model, blocks, settings, explicit_only: false },
                answered,
            }
        };
        steps.into_iter().map(make).collect()
    })
}

/// Small numbers, so that every limit is met often.
fn small_rules() -> impl Strategy<Value = CacheRules> {
    let kinds = prop_oneof![
        Just(CacheRules {
            cache: CachePolicy { look_back: Some(3), max_markers: 20, ..anthropic().cache },
            ..anthropic()
        }),
        Just(CacheRules {
            cache: CachePolicy {
                max_markers: 20,
                long_lifetime: Some(1800),
                ..rules("openai", "gpt-5.6").cache
            },
            implicit: ImplicitMarker::None,
            invalidation: Invalidation::None,
            ..rules("openai", "gpt-5.6")
        }),
        Just(rules("openai", "gpt-5.4")),
        Just(rules("vllm", "any")),
        Just(rules("groq", "openai/gpt-oss-120b")),
    ];
    // Every block is a multiple of 37: some minimums meet a prefix exactly.
    let minimums = prop_oneof![3 => 0..300_u32, 1 => (0..9_u32).prop_map(|blocks| 37 * blocks)];
    (kinds, minimums).prop_map(|(mut rules, min_tokens)| {
        rules.cache.min_tokens = min_tokens;
        rules
    })
}

/// Who commits when.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// As a server does: when the answer begins.
    OfAnswers,
    /// As a replay may: at once, with the time of an answer that is still to come.
    OfRequests,
}

/// Plans every request and commits it, in time or at once.
fn run(steps: &[Step], order: Order, mut plan: impl FnMut(usize, &Step), mut commit: impl FnMut(&Step)) {
    let mut waiting: Vec<&Step> = Vec::new();
    let begins = |step: &Step| step.request.at.0 + step.answered;
    for (index, step) in steps.iter().enumerate() {
        waiting.sort_by_key(|step| begins(step));
        let due = match order {
            Order::OfAnswers => waiting.partition_point(|waiting| begins(waiting) <= step.request.at.0),
            Order::OfRequests => waiting.len(),
        };
        waiting.drain(..due).for_each(&mut commit);
        plan(index, step);
        waiting.push(step);
    }
}

/// `PROPTEST_CASES=300000` is the long mode.
fn config() -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig { cases: config.cases.max(512), ..config }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_slow_model_agrees(
        rules in small_rules(),
        order in prop_oneof![Just(Order::OfAnswers), Just(Order::OfRequests)],
        steps in steps(),
    ) {
        let (cache, naive) = (std::cell::RefCell::new(CacheModel::new()), std::cell::RefCell::new(Naive::default()));
        let mut bills = Vec::new();
        run(
            &steps,
            order,
            |index, Step { request, .. }| {
                let bill = cache.borrow().plan(&rules, request);
                bills.push((index, bill, naive.borrow().bill(&rules, request)));
            },
            |Step { request, answered }| {
                cache.borrow_mut().commit(&rules, request, request.at.plus(*answered));
                naive.borrow_mut().commit(&rules, request, request.at.0 + answered);
            },
        );
        for (index, bill, slow) in bills {
            prop_assert_eq!(bill.amounts, slow, "request {} of {:#?}", index, &steps);
        }
    }

    #[test]
    fn amounts_add_up(rules in small_rules(), slots in prop::option::of(1..3_usize), steps in steps()) {
        let rules = CacheRules { slots, ..rules };
        let mut cache = CacheModel::new();
        for Step { request, answered } in &steps {
            let billing = cache.send(&rules, request, request.at.plus(*answered));
            prop_assert_eq!(billing.total(), request.blocks.iter().map(|block| block.tokens as u64).sum::<u64>());
            prop_assert_eq!(billing.hit.map_or(0, |hit| hit.tokens as u64), billing.amounts.cache_read);
            prop_assert!(billing.hit.is_none_or(|hit| hit.age_ms >= hit.idle_ms && hit.idle_ms >= 0));
        }
    }

    #[test]
    fn a_repeated_request_reads_all_it_wrote(rules in small_rules(), steps in steps()) {
        let mut cache = CacheModel::new();
        for Step { request, answered } in &steps {
            let first = cache.send(&rules, request, request.at.plus(*answered));
            let again = CacheRequest { at: request.at.plus(*answered), ..request.clone() };
            let second = cache.plan(&rules, &again);
            prop_assert_eq!(second.amounts.cache_read, first.total() - first.amounts.input);
            prop_assert_eq!(second.amounts.input, first.amounts.input);
        }
    }
}
