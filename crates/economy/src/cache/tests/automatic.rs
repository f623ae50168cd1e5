use super::*;
use crate::Rates;

/// A request of blocks of the given sizes, named by their place.
fn sized(at: i64, sizes: &[usize]) -> CacheRequest {
    let blocks = sizes.iter().enumerate().map(|(name, tokens)| block(name, *tokens)).collect();
    CacheRequest {
        at: seconds(at),
        model: "m".into(),
        blocks,
        settings: CacheSettings::default(),
        explicit_only: false,
    }
}

/// What a bill comes to, in tokens of plain input.
fn price(provider: &str, id: &str, billing: &Billing) -> f64 {
    let catalogue = Catalogue::builtin();
    let model = catalogue.model(Some(provider), id).unwrap();
    let profile = catalogue.provider(provider).unwrap().profile_for_model(&model);
    Rates::for_model(&model, &profile, billing.total()).input_dollars(&billing.amounts) * 1e6
        / model.price.input
}

#[test]
fn openai_up_to_5_5_reads_in_steps_of_128_from_1024() {
    let (mut cache, rules) = (CacheModel::new(), rules("openai", "gpt-5.4"));
    let first = send(&mut cache, &rules, &sized(0, &[900, 120, 4, 200, 5000]));
    assert_eq!(first.amounts, amounts(0, 6144, 0, 80));
    assert_eq!(price("openai", "gpt-5.4", &first), 6224.0); // writing costs nothing on top
    let read = |sizes: &[usize]| cache.plan(&rules, &sized(10, sizes)).amounts.cache_read;
    assert_eq!(read(&[900, 120, 4, 200, 5000, 10]), 6144);
    assert_eq!(read(&[900, 120, 4, 200]), 1152);
    assert_eq!(read(&[900, 120, 4, 1]), 1024);
    let short = cache.plan(&rules, &CacheRequest { at: seconds(10), ..sized(0, &[900, 120, 3]) });
    assert_eq!(short.amounts, amounts(0, 0, 0, 1023));
    // All of it is known, but the last token is computed afresh: 1023 are left.
    assert_eq!(read(&[900, 120, 4]), 0);
}

#[test]
fn what_follows_the_first_change_is_lost() {
    let (mut cache, rules) = (CacheModel::new(), rules("openai", "gpt-5.4"));
    send(&mut cache, &rules, &talk(0, 10, &[]));
    let mut changed = talk(5, 10, &[]);
    changed.blocks[6] = block(99, 1000);
    let billing = cache.plan(&rules, &changed);
    assert_eq!(billing.amounts, amounts(5888, 4096, 0, 16));
    assert_eq!(billing.hit.unwrap().block, 5);
    changed.blocks[1] = block(98, 24);
    changed.blocks[0] = block(97, 900);
    assert_eq!(cache.plan(&rules, &changed).amounts.cache_read, 0);
    let mut short = talk(5, 10, &[]);
    short.blocks[1] = block(98, 1000);
    let billing = cache.plan(&rules, &short);
    assert_eq!(billing.lookups[0].outcome, LookupOutcome::BelowMinimum { tokens: 1000, minimum: 1024 });
    assert_eq!(billing.hit, None);
}

#[test]
fn a_text_handed_in_by_pieces_is_known_up_to_its_change() {
    let (mut cache, rules) = (CacheModel::new(), rules("vllm", "any"));
    let pieces: Vec<usize> = vec![20; 50];
    send(&mut cache, &rules, &sized(0, &pieces));
    let mut grown = sized(5, &pieces);
    grown.blocks[40] = block(99, 20);
    assert_eq!(cache.plan(&rules, &grown).amounts.cache_read, 800);
}

#[test]
fn automatic_entries_expire_are_refreshed_and_become_readable_like_others() {
    let (mut cache, rules) = (CacheModel::new(), rules("openai", "gpt-5.4"));
    cache.commit(&rules, &talk(0, 10, &[]), seconds(3));
    assert_eq!(cache.plan(&rules, &talk(2, 12, &[])).amounts.cache_read, 0);
    assert_eq!(send(&mut cache, &rules, &talk(200, 6, &[])).amounts.cache_read, 5888);
    assert_eq!(cache.plan(&rules, &talk(400, 12, &[])).amounts.cache_read, 5888);
    let late = cache.plan(&rules, &talk(500, 12, &[]));
    assert_eq!(late.amounts.cache_read, 0);
    assert_eq!(late.lookups[0].found[4], (5, EntryState::Expired(seconds(500))));
}

#[test]
fn a_prompt_of_exactly_the_minimum_reads_nothing_and_keeps_its_entry() {
    let (mut cache, mut rules) = (CacheModel::new(), rules("groq", "openai/gpt-oss-120b"));
    rules.cache.min_tokens = 128;
    send(&mut cache, &rules, &sized(0, &[100, 28]));
    // The last token is computed afresh, which leaves 127.
    assert_eq!(send(&mut cache, &rules, &sized(7000, &[100, 28])).amounts, amounts(0, 0, 0, 128));
    // Two hours after the first request, but not after the second.
    assert_eq!(cache.plan(&rules, &sized(7200, &[100, 28, 50])).amounts, amounts(128, 49, 0, 1));
    assert_eq!(cache.plan(&rules, &sized(14_200, &[100, 28, 50])).amounts.cache_read, 0);
}

#[test]
fn groq_reads_at_half_price_for_two_hours() {
    let (mut cache, rules) = (CacheModel::new(), rules("groq", "openai/gpt-oss-120b"));
    send(&mut cache, &rules, &talk(0, 10, &[]));
    let warm = cache.plan(&rules, &talk(7199, 10, &[]));
    assert_eq!(warm.amounts, amounts(9999, 0, 0, 1));
    assert!((price("groq", "openai/gpt-oss-120b", &warm) - 5000.5).abs() < 1e-6);
    assert_eq!(cache.plan(&rules, &talk(7200, 10, &[])).amounts.cache_read, 0);
}

#[test]
fn deepseek_writes_for_nothing_and_no_document_says_for_how_long() {
    let (mut cache, rules) = (CacheModel::new(), rules("deepseek", "deepseek-v3"));
    let cold = send(&mut cache, &rules, &talk(0, 10, &[]));
    assert_eq!(price("deepseek", "deepseek-v3", &cold), 10_000.0);
    let warm = cache.plan(&rules, &talk(5 * 3600, 12, &[]));
    assert_eq!((warm.amounts, warm.hit.unwrap().expires), (amounts(10_000, 1999, 0, 1), None));
}

#[test]
fn xai_caches_the_models_that_are_known_to_be_cached() {
    let mut cache = CacheModel::new();
    let rules_3 = rules("xai", "grok-3");
    send(&mut cache, &rules_3, &talk(0, 10, &[]));
    let warm = cache.plan(&rules_3, &talk(60, 11, &[]));
    assert_eq!(warm.amounts, amounts(10_000, 999, 0, 1));
    assert!((price("xai", "grok-3", &warm) - 3500.0).abs() < 1e-6);
    assert_eq!(cache.plan(&rules("xai", "grok-2"), &talk(60, 10, &[])), Billing::uncached(10_000));
}

#[test]
fn vllm_keeps_whole_blocks_of_16_tokens() {
    let (mut cache, rules) = (CacheModel::new(), rules("vllm", "any"));
    send(&mut cache, &rules, &sized(0, &[15, 20, 100]));
    let read = |sizes: &[usize]| cache.plan(&rules, &sized(1, sizes)).amounts.cache_read;
    assert_eq!(read(&[15]), 0);
    assert_eq!(read(&[15, 20]), 32);
    assert_eq!(read(&[15, 20, 100]), 128);
    assert_eq!(read(&[15, 20, 100, 1]), 128);
}

#[test]
fn llamacpp_knows_the_last_prompt_of_its_slot() {
    let (mut cache, rules) = (CacheModel::new(), rules("llamacpp", "any").with_slots(1));
    send(&mut cache, &rules, &sized(0, &[100, 50]));
    assert_eq!(send(&mut cache, &rules, &sized(9000, &[100, 50, 30])).amounts, amounts(150, 29, 0, 1));
    let mut other = sized(9010, &[100, 50]);
    other.blocks[1] = block(99, 70);
    assert_eq!(send(&mut cache, &rules, &other).amounts, amounts(100, 69, 0, 1));
    // The other prompt has taken the slot: only what both begin with is left.
    assert_eq!(cache.plan(&rules, &sized(9020, &[100, 50, 30])).amounts.cache_read, 100);
    // All of it is known, but the last token is computed afresh.
    assert_eq!(
        cache.plan(&rules, &CacheRequest { at: seconds(9020), ..other }).amounts,
        amounts(169, 0, 0, 1)
    );
}

#[test]
fn llamacpp_gives_a_prompt_the_slot_it_is_most_like() {
    let (mut cache, rules) = (CacheModel::new(), rules("llamacpp", "any").with_slots(2));
    let with_second = |at: i64, name: usize, size: usize| {
        let mut request = sized(at, &[10, 0]);
        request.blocks[1] = block(name, size);
        request
    };
    send(&mut cache, &rules, &with_second(0, 1, 500));
    send(&mut cache, &rules, &with_second(10, 2, 500)); // less than a tenth in common: the free slot
    assert_eq!(cache.plan(&rules, &with_second(20, 1, 500)).amounts.cache_read, 509);
    assert_eq!(cache.plan(&rules, &with_second(20, 2, 500)).amounts.cache_read, 509);
    // No slot is free: the one that was used first goes, and what little it has in common is read.
    assert_eq!(send(&mut cache, &rules, &with_second(30, 3, 500)).amounts.cache_read, 10);
    assert_eq!(cache.plan(&rules, &with_second(40, 2, 500)).amounts.cache_read, 509);
    assert_eq!(cache.plan(&rules, &with_second(40, 1, 500)).amounts.cache_read, 10);
}

#[test]
fn a_busy_slot_has_nothing_to_read() {
    let (mut cache, rules) = (CacheModel::new(), rules("llamacpp", "any").with_slots(1));
    cache.commit(&rules, &sized(0, &[100, 50]), seconds(8));
    assert_eq!(cache.plan(&rules, &sized(5, &[100, 50])).amounts, amounts(0, 149, 0, 1));
    assert_eq!(cache.plan(&rules, &sized(8, &[100, 50])).amounts, amounts(149, 0, 0, 1));
}
