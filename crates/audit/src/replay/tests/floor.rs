use super::*;

/// What happens before one request of a random session, and how the request is billed.
#[derive(Clone, Debug)]
struct AnyStep {
    turn: RecordedTurn,
    event: u8,
    billing: usize,
}

/// Ways in which a provider may bill a request, whatever went before: what was really paid is an
/// arrangement, too.
const BILLINGS: [fn(u64) -> TokenUsage; 6] = [
    written,
    |total| TokenUsage { cache_write_1h: total, ..TokenUsage::default() },
    |total| TokenUsage { input: total, ..TokenUsage::default() },
    |total| TokenUsage { cache_read: total, ..TokenUsage::default() },
    |total| TokenUsage { cache_read: total - total / 9, input: total / 9, ..TokenUsage::default() },
    |total| TokenUsage { cache_read: total / 2, cache_write_5m: total - total / 2, ..TokenUsage::default() },
];

/// A model with breakpoints, one that caches by itself, one that does both, and two that no
/// catalogue lists.
const MODELS: [&str; 5] = ["claude-sonnet-4-5", "gpt-5.5", "gpt-6.1-sol", "claude-thing-9", "no-such-model"];

fn any_step() -> impl Strategy<Value = AnyStep> {
    (any_turn(), 0_u8..12, 0..BILLINGS.len()).prop_map(|(turn, event, billing)| AnyStep {
        turn,
        event,
        billing,
    })
}

/// A session with prompts, reads, edits and writes, messages typed while tools run, branches,
/// compactions and changes of the model.
fn any_session(model: &'static str, steps: &[AnyStep]) -> SessionBuilder {
    let mut made = SessionBuilder::new();
    made.model = model;
    made.prompt("begin");
    let mut grown = 2500;
    for (number, AnyStep { turn, event, billing }) in steps.iter().enumerate() {
        made.billing = BILLINGS[*billing];
        let RecordedTurn { pause, action, file, lines } = turn;
        let path = format!("f{file}");
        let body = format!("file {file}: a line of text\n").repeat(20 + file * 9);
        match action {
            0 => {
                made.request(*pause, grown, 20, text("a word or two of an answer"));
                made.prompt(&"and then a question ".repeat(*lines));
                grown = 30 + lines * 5;
            }
            1 | 2 => {
                made.call(*pause, grown, 40, read(&path), &body);
                grown = 60 + body.len() / 3;
            }
            3 => {
                let change = crate::TextReplacement {
                    old: format!("file {file}: a").as_str().into(),
                    new: format!("edit {number}").as_str().into(),
                    everywhere: true,
                };
                let action = FileAction::Edit { path: path.into(), changes: vec![change] };
                made.call(*pause, grown, 40 + lines, action, "done");
                grown = 60 + lines * 2;
            }
            _ => {
                let content = format!("written {number}\n").repeat(*lines).as_str().into();
                made.call(
                    *pause,
                    grown,
                    30 + lines * 4,
                    FileAction::Write { path: path.into(), content },
                    "ok",
                );
                grown = 50 + lines * 4;
            }
        }
        match event {
            // A message typed while a tool ran.
            0 => made.prompt("wait"),
            // Back to an earlier entry.
            1 => made.last = made.last.map(|last| last - last.min(*lines % 7)),
            2 => {
                let content = EntryContent::Compaction { summary: "so far".into(), kept: None };
                let parent = made.last;
                made.last = Some(made.recording.add_entry(1, parent, None, content));
                (made.total, grown) = (0, 2600);
            }
            3 => made.model = "claude-opus-4-5",
            4 => made.model = model,
            _ => {}
        }
    }
    made.request(5, grown, 10, text("done"));
    made
}

#[test]
fn the_floor_is_what_it_is_by_hand() {
    let replay = read_twice().replay();
    // 2,000 tokens are written, for later requests have them, too.
    let first = 1.25 * 2000.0;
    // The file is read, 1,100 tokens with the call: paid in full.
    let second = 0.1 * 2000.0 + 1.25 * 100.0 + 1000.0;
    // It is read again, and a stub of about 40 stays of the first result.
    let third = 0.1 * (2000.0 + 100.0 + 40.0) + 1.25 * 1100.0;
    // 100 tokens come that no other request repeats.
    let fourth = 0.1 * (2000.0 + 100.0 + 40.0 + 1100.0) + 100.0;
    let floor = first + second + third + fourth;
    assert!((replay.floor() - floor).abs() < 0.03 * floor, "{} {floor}", replay.floor());
    assert!(replay.floor() < replay.clairvoyant());
}

#[test]
fn what_another_session_had_cached_is_read_by_the_floor_too() {
    let mut made = SessionBuilder::new();
    made.prompt("one");
    made.billing =
        |total| TokenUsage { cache_read: total - 100, cache_write_5m: 100, ..TokenUsage::default() };
    made.request(0, 20_000, 50, text("first"));
    let replay = made.replay();
    assert_eq!(replay.billed().cost, 0.1 * 19_900.0 + 125.0);
    assert!(replay.floor() <= replay.billed().cost);
}

#[test]
fn a_provider_that_bills_no_writes_writes_for_nothing_in_the_replay() {
    let mut made = SessionBuilder::new();
    made.model = "gpt-6.1-sol";
    made.prompt("one");
    made.billing = |total| TokenUsage { input: total, ..TokenUsage::default() };
    made.request(0, 20_000, 50, text("first"));
    made.prompt("two");
    made.billing = |total| TokenUsage { cache_read: 20_000, input: total - 20_000, ..TokenUsage::default() };
    made.request(10, 100, 50, text("second"));
    let replay = made.replay();
    let append = run(&replay, ReplayPolicy::APPEND).cost;
    assert!((append - replay.billed().cost).abs() < 1e-6, "{append} {:?}", replay.billed());
    assert!(replay.floor() <= append);
}

#[test]
fn a_model_that_no_catalogue_lists_has_ratios_and_no_dollars() {
    let mut made = read_twice();
    for request in &mut made.recording.requests {
        request.model = "claude-thing-9".into();
    }
    let replay = made.replay();
    assert_eq!(replay.unpriced(), ["claude-thing-9".into()]);
    assert_eq!(replay.billed().dollars, None);
    assert_eq!(replay.billed().cost, read_twice().replay().billed().cost);
    assert!(read_twice().replay().billed().dollars.is_some_and(|dollars| dollars > 0.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_arrangement_costs_less_than_the_floor(
        model in prop::sample::select(&MODELS[..]),
        mut steps in prop::collection::vec(any_step(), 1..40),
        is_always_written in any::<bool>(),
    ) {
        if is_always_written {
            steps.iter_mut().for_each(|step| step.billing = 0);
        }
        let replay = any_session(model, &steps).replay();
        let floor = replay.floor();
        let slack = 1.0 + 1e-9;
        prop_assert!(floor <= replay.billed().cost * slack, "billed {} {floor}", replay.billed().cost);
        prop_assert!(floor <= replay.clairvoyant() * slack, "clairvoyant {} {floor}", replay.clairvoyant());
        // Those that drop more than the floor assumes can go below it.
        let keeps_as_much = |policy: &ReplayPolicy| policy.keep() != Some(KeepLevel::Lean);
        for policy in ReplayPolicy::ALL.into_iter().filter(keeps_as_much) {
            let cost = run(&replay, policy).cost;
            // Other layouts have other words around the same content.
            let slack = if policy.keep().is_some() { slack } else { 1.05 };
            prop_assert!(floor <= cost * slack, "{} {cost} {floor}", policy.name());
        }
    }
}
