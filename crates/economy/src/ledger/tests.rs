//! Bills that add up.

mod properties; // random prompts and reports

use super::*;
use crate::test_session::{TestConversation, TestSession, long_text};
use crate::verdict::{Blame, Cause, VerdictSource};

fn tokens(cache_read: u64, cache_write_5m: u64, cache_write_1h: u64, input: u64) -> TokenUsage {
    TokenUsage { input, cache_read, cache_write_5m, cache_write_1h, output: 100, reasoning: Some(60) }
}

fn row<'a>(charge: &'a Charge, key: &str) -> &'a ChargeRow {
    charge.rows.iter().find(|row| *row.account.key == *key).unwrap()
}

/// A charge for the same prompt, with a report of one's own; our own count is what `of` is given.
fn charge_for(
    session: &TestSession,
    conversation: &mut TestConversation,
    of: impl Fn(u64) -> Option<TokenUsage>,
) -> Charge {
    let prompt = conversation.prompt("claude-sonnet-5");
    let measured = hardpan_prompt::TokenCounter::new(hardpan_prompt::Vocabulary::O200k).measure(&prompt);
    Charge::from_request(&session.completed_request(&prompt, &measured, of(measured.total() as u64)))
}

fn conversation() -> TestConversation {
    let mut conversation = TestConversation::new();
    conversation.user("m1", &long_text("m1", 500));
    conversation
}

#[test]
fn what_is_read_fills_the_prompt_from_its_front() {
    let session = TestSession::anthropic();
    // Tools are some 330 tokens, the system prompt 2,005, a.rs 2,003, b.rs 3,003, the message 504.
    let charge =
        charge_for(&session, &mut conversation(), |total| Some(tokens(4000, 1500, 1000, total - 6500)));
    assert_eq!(charge.tokens.prompt(), charge.counted);
    let amounts = |key: &str| {
        let TokenUsage { cache_read: read, cache_write_5m: write, cache_write_1h: write_1h, input, .. } =
            row(&charge, key).tokens;
        [read, write_1h, write, input].map(|tokens| tokens > 0)
    };
    assert_eq!(amounts("tool:read"), [true, false, false, false]);
    assert_eq!(amounts("rule:agent"), [true, false, false, false]);
    assert_eq!(amounts("file:a.rs"), [true, true, false, false]);
    assert_eq!(amounts("file:b.rs"), [false, true, true, true]);
    assert_eq!(amounts("messages"), [false, false, false, true]);
    assert_eq!(row(&charge, "file:a.rs").account.kind, Some(ItemKind::File));
    assert_eq!(
        row(&charge, "answer").tokens,
        TokenUsage { output: 100, reasoning: Some(60), ..TokenUsage::default() }
    );
    // Sonnet 5: 0.2 for reading, 10 for output, per million.
    let read = row(&charge, "tool:read");
    assert!((read.dollars - read.tokens.cache_read as f64 * 0.2 / 1e6).abs() < 1e-12);
    assert!((row(&charge, "answer").dollars - 100.0 * 10.0 / 1e6).abs() < 1e-12);
}

#[test]
fn a_count_that_is_off_is_stretched_and_what_we_did_not_send_is_its_own_row() {
    let session = TestSession::anthropic();
    let has_rest = |charge: &Charge| charge.rows.iter().any(|row| row.account == Account::unaccounted());
    for (times, rest) in [(0.1, false), (0.9, false), (1.2, false), (1.5, true)] {
        let charge = charge_for(&session, &mut conversation(), |total| {
            Some(tokens(0, 0, 0, (total as f64 * times) as u64))
        });
        assert_eq!(has_rest(&charge), rest, "{times}");
        let sum: u64 = charge.rows.iter().map(|row| row.tokens.prompt()).sum();
        assert_eq!(sum, charge.tokens.prompt());
    }
    let charge = charge_for(&session, &mut conversation(), |total| Some(tokens(0, 0, 0, 2 * total)));
    let rest = row(&charge, "unaccounted").tokens.input as f64;
    assert!((rest / charge.counted as f64 - 0.75).abs() < 0.01);
}

#[test]
fn without_a_report_our_own_count_is_charged_and_said_to_be_one() {
    let charge = charge_for(&TestSession::anthropic(), &mut conversation(), |_| None);
    assert!(charge.estimated && charge.dollars > 0.0);
    assert_eq!(charge.tokens, TokenUsage { input: charge.counted, ..TokenUsage::default() });
}

#[test]
fn a_brief_charge_has_a_row_per_kind_and_still_adds_up() {
    let charge = charge_for(&TestSession::anthropic(), &mut conversation(), |total| {
        Some(tokens(4000, 0, 1000, total - 4000))
    });
    let brief = charge.summarized_by_kind();
    let sum = |charge: &Charge| {
        let mut sum = TokenUsage::default();
        charge.rows.iter().for_each(|row| sum += row.tokens);
        (sum, (charge.rows.iter().map(|row| row.dollars).sum::<f64>() * 1e9).round())
    };
    assert_eq!(sum(&charge), sum(&brief));
    let keys: Vec<_> = brief.rows.iter().map(|row| (row.account.kind, &*row.account.key)).collect();
    let kinds = [ItemKind::Tool, ItemKind::System, ItemKind::Panel, ItemKind::File, ItemKind::History];
    let mut expected: Vec<_> = kinds.iter().map(|kind| (Some(*kind), "all")).collect();
    expected.push((None, "answer"));
    assert_eq!(keys, expected);
    let written = serde_json::to_string(&brief).unwrap();
    assert_eq!(serde_json::from_str::<Charge>(&written).unwrap(), brief);
    assert!(written.len() < 1500, "{written}");
}

#[test]
fn panels_hit_and_miss_by_what_the_provider_reported() {
    let mut session = TestSession::anthropic();
    let (mut conversation, mut ledger) = (conversation(), Ledger::default());
    let mut send = |session: &mut TestSession, conversation: &mut TestConversation| {
        session.wait(60);
        let prompt = conversation.prompt("claude-sonnet-5");
        let (measured, used) = session.bill(&prompt);
        ledger.charge(&session.completed_request(&prompt, &measured, Some(used)));
        let counts = |key| (ledger.totals_for_key(key).hits, ledger.totals_for_key(key).misses);
        (counts("file:a.rs"), counts("file:b.rs"), counts("rule:clock"))
    };
    assert_eq!(send(&mut session, &mut conversation), ((0, 1), (0, 1), (0, 1)));
    conversation.assistant("m2", "Yes.").user("m3", "Go on.");
    assert_eq!(send(&mut session, &mut conversation), ((1, 1), (1, 1), (0, 2)));
    conversation.base[0] = crate::test_session::item("file:a.rs", &long_text("a, edited", 2000));
    assert_eq!(send(&mut session, &mut conversation), ((1, 2), (1, 2), (0, 3)));
    let b = ledger.totals_for_key("file:b.rs");
    assert_eq!((b.requests, b.tokens.output), (3, 0));
    assert!(b.tokens.cache_write_5m > 6000 && b.tokens.cache_read > 3000 && b.dollars > 0.0);
}

#[test]
fn a_switch_of_model_does_not_price_the_past_again() {
    let mut session = TestSession::anthropic();
    let mut ledger = Ledger::default();
    let first = charge_for(&session, &mut conversation(), |total| Some(tokens(0, total, 0, 0)));
    ledger.add(&first);
    session.switch("anthropic", "claude-opus-5");
    session.purpose = RequestPurpose::Compaction;
    let second = charge_for(&session, &mut conversation(), |total| Some(tokens(0, total, 0, 0)));
    ledger.add(&second);
    assert!(second.dollars > first.dollars);
    assert_eq!(ledger.by_model["anthropic/claude-sonnet-5"].dollars, first.dollars);
    assert_eq!(ledger.by_model["anthropic/claude-opus-5"].dollars, second.dollars);
    assert_eq!(ledger.by_purpose[&RequestPurpose::Compaction].dollars, second.dollars);
    assert_eq!((ledger.total.requests, ledger.by_day["2026-08-14"].requests), (2, 2));
    assert!((ledger.total.dollars - first.dollars - second.dollars).abs() < 1e-12);
}

#[test]
fn ledgers_are_merged_and_survive_their_written_form() {
    let session = TestSession::anthropic();
    let mut one = Ledger::default();
    one.add(&charge_for(&session, &mut conversation(), |total| Some(tokens(100, total - 100, 0, 0))));
    let verdict = Verdict {
        expected_read: 500,
        read: 0,
        lost_tokens: 500,
        lost_dollars: 0.25,
        cause: Cause::Evicted,
        blame: Blame::Provider,
        first_difference: None,
        source: VerdictSource::Both,
        provider_says: Some(hardpan_prompt::CacheDiagnosis::NoDifference),
        our_cause: None,
    };
    one.record_loss(&verdict);
    let written = serde_json::to_string(&one).unwrap();
    assert_eq!(serde_json::from_str::<Ledger>(&written).unwrap(), one);
    let mut both = one.clone();
    both.merge(&one);
    assert_eq!(both.total.tokens.total(), 2 * one.total.tokens.total());
    assert_eq!(both.losses["evicted"], Losses { times: 2, tokens: 1000, dollars: 0.5 });
    let kinds: u64 = both.by_kind().values().map(|totals| totals.tokens.total()).sum();
    assert_eq!(kinds, both.total.tokens.total());
}
