use hardpan_prompt::{Prompt, PromptTokens, TokenCounter, Vocabulary};
use proptest::prelude::*;

use super::*;
use crate::test_session::{catalogue_entry, item};

/// A conversation of any form, down to one without tools or items.
fn prompts() -> impl Strategy<Value = Prompt> {
    let sizes = proptest::collection::vec(0..400_usize, 0..6);
    (0..4_usize, sizes.clone(), sizes, 0..4_usize).prop_map(|(tools, items, messages, calls)| {
        let mut conversation = TestConversation::new();
        conversation.tools.truncate(tools);
        let named =
            |(index, size): (usize, &usize)| item(&format!("file:{}", index % 3), &long_text("x", *size));
        conversation.base = items.iter().enumerate().map(named).collect();
        conversation.user("m0", "Hello!");
        for (index, size) in messages.iter().enumerate() {
            conversation
                .assistant(&format!("a{index}"), &long_text("answer", *size))
                .user(&format!("m{index}"), "Go on.");
        }
        conversation.tool_round("t", calls + 1);
        conversation.prompt("claude-sonnet-5")
    })
}

fn reports() -> impl Strategy<Value = Option<TokenUsage>> {
    let amount = || prop_oneof![Just(0_u64), 0..3_000_u64, 0..300_000_u64];
    let tokens = (amount(), amount(), amount(), amount(), amount());
    let tokens = tokens.prop_map(|(input, cache_read, cache_write_5m, cache_write_1h, output)| TokenUsage {
        input,
        cache_read,
        cache_write_5m,
        cache_write_1h,
        output,
        reasoning: None,
    });
    prop_oneof![1 => Just(None), 15 => tokens.prop_map(Some)]
}

fn measure(prompt: &Prompt) -> PromptTokens {
    TokenCounter::new(Vocabulary::O200k).measure(prompt)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn rows_add_up_to_the_bill(
        requests in proptest::collection::vec((prompts(), reports(), 0..3_usize), 1..4),
    ) {
        let models = [("anthropic", "claude-sonnet-5"), ("openai", "gpt-5.5"), ("anthropic", "claude-opus-5")];
        let mut ledger = Ledger::default();
        let (mut billed, mut paid) = (TokenUsage::default(), 0.0);
        for (prompt, used, model) in &requests {
            let (provider, name) = models[*model];
            let session = TestSession::new(provider, name);
            let measured = measure(prompt);
            let charge = ledger.charge(&session.completed_request(prompt, &measured, *used));
            let (model, profile) = catalogue_entry(provider, name);
            let expected = used.unwrap_or(TokenUsage { input: measured.total() as u64, ..TokenUsage::default() });
            let dollars = Prices::for_model(&model, &profile, expected.prompt()).dollars(&expected);
            let mut sum = TokenUsage::default();
            charge.rows.iter().for_each(|row| sum += row.tokens);
            prop_assert_eq!(sum, expected);
            prop_assert_eq!(charge.tokens, expected);
            prop_assert!((charge.rows.iter().map(|row| row.dollars).sum::<f64>() - dollars).abs() < 1e-9);
            prop_assert!(charge.rows.iter().all(|row| row.tokens.total() > 0));
            billed += expected;
            paid += dollars;
        }
        let mut by_key = TokenUsage::default();
        ledger.by_key.values().for_each(|totals| by_key += totals.tokens);
        prop_assert_eq!(by_key, billed);
        prop_assert_eq!(ledger.total.tokens, billed);
        for sum in [
            ledger.by_key.values().map(|totals| totals.dollars).sum::<f64>(),
            ledger.by_model.values().map(|totals| totals.dollars).sum::<f64>(),
            ledger.by_kind().values().map(|totals| totals.dollars).sum::<f64>(),
            ledger.total.dollars,
        ] {
            prop_assert!((sum - paid).abs() < 1e-9);
        }
    }

    /// Read, then written for an hour, then written, then plain: the kinds of billing never go back
    /// along the prompt.
    #[test]
    fn the_split_follows_the_order_of_the_prompt(prompt in prompts(), used in reports()) {
        let session = TestSession::anthropic();
        let measured = measure(&prompt);
        let charge = Charge::from_request(&session.completed_request(&prompt, &measured, used));
        // Tools are all different and come first, after what was not sent.
        let mut stage = 0;
        for row in charge.rows.iter().take_while(|row| row.account.kind.is_none_or(|kind| kind == ItemKind::Tool)) {
            let TokenUsage { cache_read: read, cache_write_1h: write_1h, cache_write_5m: write, input, .. } = row.tokens;
            let stages = [read, write_1h, write, input];
            if let (Some(first), Some(last)) =
                (stages.iter().position(|n| *n > 0), stages.iter().rposition(|n| *n > 0))
            {
                prop_assert!(first >= stage);
                stage = last;
            }
        }
    }
}
