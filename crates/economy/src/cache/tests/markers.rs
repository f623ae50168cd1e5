use super::*;

#[test]
fn the_documented_walk_back_hits_within_twenty_blocks_only() {
    let (mut cache, rules) = (CacheModel::new(), anthropic());
    assert_eq!(send(&mut cache, &rules, &talk(0, 10, &[(10, SHORT)])).amounts, amounts(0, 10_000, 0, 0));
    let second = send(&mut cache, &rules, &talk(10, 15, &[(15, SHORT)]));
    assert_eq!(second.amounts, amounts(10_000, 5000, 0, 0));
    assert_eq!(second.hit.unwrap().block, 9);

    let third = cache.plan(&rules, &talk(20, 35, &[(35, SHORT)]));
    assert_eq!(third.amounts, amounts(0, 35_000, 0, 0));
    let out_of_reach = LookupOutcome::Missed { beyond: Some(14) };
    let look = CacheLookup { marker: 34, back_to: Some(15), outcome: out_of_reach, found: Vec::new() };
    assert_eq!(third.lookups, std::slice::from_ref(&look));

    let with_second_marker = cache.plan(&rules, &talk(20, 35, &[(15, SHORT), (35, SHORT)]));
    assert_eq!(with_second_marker.amounts, amounts(15_000, 20_000, 0, 0));
    let hit = CacheLookup {
        marker: 14,
        back_to: Some(14),
        outcome: LookupOutcome::Hit { block: 14 },
        found: vec![(14, EntryState::Readable)],
    };
    assert_eq!(with_second_marker.lookups, [look, hit]);
}

#[test]
fn the_marked_block_is_the_first_of_the_twenty() {
    let (mut cache, rules) = (CacheModel::new(), anthropic());
    send(&mut cache, &rules, &talk(0, 10, &[(10, SHORT)]));
    assert_eq!(cache.plan(&rules, &talk(1, 29, &[(29, SHORT)])).amounts.cache_read, 10_000);
    assert_eq!(cache.plan(&rules, &talk(1, 30, &[(30, SHORT)])).amounts.cache_read, 0);
}

#[test]
fn more_than_twenty_new_blocks_lose_everything_but_earlier_markers() {
    let (mut cache, rules) = (CacheModel::new(), anthropic());
    send(&mut cache, &rules, &talk(0, 5, &[(2, SHORT), (5, SHORT)]));
    assert_eq!(cache.plan(&rules, &talk(1, 26, &[(26, SHORT)])).amounts, amounts(0, 26_000, 0, 0));
    let kept = cache.plan(&rules, &talk(1, 26, &[(2, SHORT), (26, SHORT)]));
    assert_eq!(kept.amounts, amounts(2000, 24_000, 0, 0));
}

#[test]
fn nothing_is_written_between_markers() {
    let (mut cache, rules) = (CacheModel::new(), anthropic());
    send(&mut cache, &rules, &talk(0, 10, &[(4, SHORT), (10, SHORT)]));
    assert_eq!(cache.len(), 2);
    let mut other = talk(1, 10, &[(10, SHORT)]);
    other.blocks[8] = block(99, 1000);
    let billing = cache.plan(&rules, &other);
    assert_eq!(billing.amounts, amounts(4000, 6000, 0, 0));
}

#[test]
fn a_request_without_markers_reads_and_writes_nothing() {
    let (mut cache, rules) = (CacheModel::new(), anthropic());
    send(&mut cache, &rules, &talk(0, 10, &[(10, SHORT)]));
    let billing = send(&mut cache, &rules, &talk(1, 10, &[]));
    assert_eq!(billing, Billing::uncached(10_000));
    assert_eq!(cache.len(), 1);
    assert_eq!(cache.plan(&rules, &talk(1, 0, &[])), Billing::uncached(0));
}

#[test]
fn mixed_lifetimes_are_billed_by_the_highest_hit_the_highest_hour_and_the_last_marker() {
    let (mut cache, rules) = (CacheModel::new(), anthropic());
    let first = talk(0, 10, &[(3, LONG), (5, LONG), (8, SHORT)]);
    assert_eq!(send(&mut cache, &rules, &first).amounts, amounts(0, 3000, 5000, 2000));
    // The hit lies before the hour marker: from it to the marker for an hour, then for five
    // minutes.
    let second = talk(1, 14, &[(5, LONG), (10, LONG), (12, SHORT)]);
    assert_eq!(cache.plan(&rules, &second).amounts, amounts(8000, 2000, 2000, 2000));
    // The hit lies after it: nothing is written for an hour.
    let third = talk(1, 14, &[(5, LONG), (12, SHORT)]);
    assert_eq!(cache.plan(&rules, &third).amounts, amounts(8000, 4000, 0, 2000));
    // The other way round is refused by the provider; here the hour counts for all that comes
    // before it.
    let disorder = talk(1, 14, &[(10, SHORT), (12, LONG)]);
    assert_eq!(CacheModel::new().plan(&rules, &disorder).amounts, amounts(0, 0, 12_000, 2000));
}

#[test]
fn an_entry_is_made_at_every_marker_also_before_the_hit() {
    let (mut cache, rules) = (CacheModel::new(), anthropic());
    send(&mut cache, &rules, &talk(0, 10, &[(10, SHORT)]));
    let second = send(&mut cache, &rules, &talk(5, 12, &[(4, LONG), (12, SHORT)]));
    assert_eq!(second.amounts, amounts(10_000, 2000, 0, 0));
    assert_eq!(cache.plan(&rules, &talk(10, 6, &[(6, SHORT)])).amounts, amounts(4000, 2000, 0, 0));
}

#[test]
fn a_marker_on_a_block_that_cannot_hold_one_does_nothing() {
    let (mut cache, rules) = (CacheModel::new(), anthropic());
    let mut request = talk(0, 5, &[(3, SHORT), (5, SHORT)]);
    request.blocks[4].markable = false;
    let billing = send(&mut cache, &rules, &request);
    assert_eq!(billing.amounts, amounts(0, 3000, 0, 2000));
    assert_eq!((billing.lookups[0].marker, billing.lookups[0].outcome), (4, LookupOutcome::Unmarkable));
    request.blocks.iter_mut().for_each(|block| block.marker = None);
    request.mark_last(SHORT);
    assert_eq!(request.blocks[3].marker, Some(SHORT));
    assert_eq!(
        cache.plan(&rules, &CacheRequest { at: seconds(2), ..request }).amounts,
        amounts(3000, 1000, 0, 1000)
    );
}

#[test]
fn tools_and_runs_of_tool_blocks_can_be_counted_as_one_position() {
    let mut request = talk(0, 40, &[(5, SHORT), (40, SHORT)]);
    request.blocks[..10].iter_mut().for_each(|block| block.section = Section::Tools);
    request.blocks[10..25].iter_mut().for_each(|block| block.kind = BlockKind::Call);
    request.blocks[25..39].iter_mut().for_each(|block| block.kind = BlockKind::Result);
    let read = |rules: CacheRules| {
        let mut cache = CacheModel::new();
        send(&mut cache, &rules, &CacheRequest { blocks: request.blocks[..10].to_vec(), ..request.clone() });
        let mut next = CacheRequest { at: seconds(5), ..request.clone() };
        next.blocks[4].marker = None;
        cache.plan(&rules, &next).amounts.cache_read
    };
    assert_eq!(read(anthropic()), 5000);
    let literal = CacheRules { tool_runs: PositionCounting::Each, ..anthropic() };
    assert_eq!(read(literal), 0);
    assert_eq!(read(CacheRules { tools: PositionCounting::Together, ..literal }), 0);
    let few = |look_back, tools| CacheRules {
        cache: hardpan_models::CachePolicy { look_back: Some(look_back), ..literal.cache },
        tools,
        tool_runs: PositionCounting::Together,
        ..literal
    };
    // The last block, the results, the calls, the tools.
    assert_eq!(read(few(4, PositionCounting::Together)), 5000);
    assert_eq!(read(few(3, PositionCounting::Together)), 0);
    assert_eq!(read(few(8, PositionCounting::Each)), 0);
    assert_eq!(read(few(9, PositionCounting::Each)), 5000);
}

#[test]
fn a_cold_and_a_warm_bill_are_those_of_the_quote() {
    let catalogue = Catalogue::builtin();
    let markers = [(2, LONG), (7, SHORT)];
    for (provider, id) in [
        ("anthropic", "claude-sonnet-5"),
        ("anthropic", "claude-haiku-4-5"),
        ("openai", "gpt-5.5"),
        ("groq", "openai/gpt-oss-120b"),
        ("deepseek", "deepseek-chat"),
        ("xai", "grok-3"),
        ("xai", "grok-2"),
        ("mistral", "mistral-large-latest"),
    ] {
        let model = catalogue.model(Some(provider), id).unwrap();
        let profile = catalogue.provider(provider).unwrap().profile_for_model(&model);
        let request = talk(0, 9, &markers);
        let breakpoints =
            markers.map(|(number, lifetime)| hardpan_prompt::Breakpoint { block: number - 1, lifetime });
        let quote = crate::quote(&model, &profile, 9000, &breakpoints, |block| (block + 1) * 1000);
        let (mut cache, rules) = (CacheModel::new(), CacheRules::for_model(&model, &profile));
        assert_eq!(send(&mut cache, &rules, &request).amounts, quote.cold_amounts, "{provider}/{id}");
        let warm = cache.plan(&rules, &CacheRequest { at: seconds(2), ..request });
        assert_eq!(warm.amounts, quote.warm_amounts, "{provider}/{id}");
    }
}

#[test]
fn openai_from_5_6_on_writes_at_markers_and_at_the_newest_message() {
    let (mut cache, rules) = (CacheModel::new(), rules("openai", "gpt-5.6"));
    let first = send(&mut cache, &rules, &talk(0, 10, &[(2, SHORT)]));
    assert_eq!(first.amounts, amounts(0, 10_000, 0, 0));
    // The end of the first request is one of the 20 ends before the newest.
    let second = send(&mut cache, &rules, &talk(1790, 30, &[(2, SHORT)]));
    assert_eq!(second.amounts, amounts(10_000, 20_000, 0, 0));
    assert_eq!(second.hit.unwrap().expires, Some(seconds(1800)));
    // One further on it is not, and the marker is what is left.
    assert_eq!(cache.plan(&rules, &talk(1790, 51, &[(2, SHORT)])).amounts, amounts(2000, 49_000, 0, 0));
    // Only whole prefixes count: when the newest message is another, the marker before it is what
    // is left.
    let mut third = talk(1800, 10, &[(2, SHORT)]);
    third.blocks[9] = block(99, 500);
    assert_eq!(cache.plan(&rules, &third).amounts, amounts(2000, 7500, 0, 0));
    third.explicit_only = true;
    assert_eq!(cache.plan(&rules, &third).amounts, amounts(2000, 0, 0, 7500));
    let unmarked = CacheRequest { explicit_only: true, ..talk(1800, 60, &[]) };
    assert_eq!(cache.plan(&rules, &unmarked).amounts, amounts(0, 0, 0, 60_000));
}

#[test]
fn openai_from_5_6_on_has_a_longer_lifetime_at_the_same_price() {
    let (mut cache, rules) = (CacheModel::new(), rules("openai", "gpt-5.6"));
    let marked = |at| CacheRequest { explicit_only: true, ..talk(at, 5, &[(5, LONG)]) };
    assert_eq!(send(&mut cache, &rules, &marked(0)).amounts, amounts(0, 0, 5000, 0));
    assert_eq!(cache.plan(&rules, &marked(43_000)).amounts, amounts(5000, 0, 0, 0));
    assert_eq!(cache.plan(&rules, &marked(43_200)).amounts.cache_read, 0);
}

#[test]
fn openai_from_5_6_on_ends_at_the_users_messages_and_runs_of_results() {
    let (mut cache, rules) = (CacheModel::new(), rules("openai", "gpt-5.6"));
    // The system prompt, a user message of two blocks, a call, two results.
    let mut request = talk(0, 6, &[]);
    request.blocks[0].section = Section::System;
    for (index, is_end) in [true, false, true, false, false, true].into_iter().enumerate() {
        request.blocks[index].is_end = is_end;
    }
    send(&mut cache, &rules, &request);
    assert_eq!(cache.len(), 1, "the system prompt is under the minimum");
    request.blocks[0].tokens = 1024;
    send(&mut cache, &rules, &request);
    assert_eq!(cache.len(), 2);
    // Another conversation with the same system prompt.
    let mut other = request.clone();
    (other.at, other.blocks[1]) = (seconds(5), block(99, 1000));
    assert_eq!(cache.plan(&rules, &other).amounts.cache_read, 1024);
    let careful = ImplicitMarker::MessageEnds(hardpan_models::ImplicitEnds { earlier: 20, system: false });
    assert_eq!(cache.plan(&CacheRules { implicit: careful, ..rules }, &other).amounts.cache_read, 0);
}

#[test]
fn openai_from_5_6_on_reads_the_first_two_markers_and_the_latest_fifty() {
    let (mut cache, rules) = (CacheModel::new(), rules("openai", "gpt-5.6"));
    let explicit = |count, markers: &[(usize, CacheLifetime)]| CacheRequest {
        explicit_only: true,
        ..talk(0, count, markers)
    };
    send(&mut cache, &rules, &explicit(10, &[(4, SHORT), (5, SHORT), (6, SHORT), (7, SHORT)]));
    let all: Vec<(usize, CacheLifetime)> = (4..=60).map(|number| (number, SHORT)).collect();
    let later = CacheRequest { at: seconds(5), ..explicit(60, &all) };
    assert_eq!(cache.plan(&rules, &later).amounts.cache_read, 5000, "4 and 5 are the first, 11 the next");
}

#[test]
fn openai_from_5_6_on_writes_the_last_four_markers_and_reads_them_all() {
    let mut rules = CacheRules { implicit: ImplicitMarker::None, ..rules("openai", "gpt-5.6") };
    rules.cache.look_back = None;
    let mut cache = CacheModel::new();
    let markers = [(2, SHORT), (4, SHORT), (6, SHORT), (8, SHORT), (10, SHORT)];
    send(&mut cache, &rules, &talk(0, 10, &markers));
    assert_eq!(cache.len(), 4);
    let read = |numbers: &[usize], rules: &CacheRules| {
        let markers: Vec<_> = numbers.iter().map(|number| (*number, SHORT)).collect();
        cache.plan(rules, &talk(5, 20, &markers)).amounts.cache_read
    };
    assert_eq!(read(&[3], &rules), 0);
    assert_eq!(read(&[5], &rules), 4000);
    assert_eq!(read(&[4, 16, 17, 18, 19, 20], &rules), 10_000);
    // Where a read may end at marked blocks only.
    let strict =
        CacheRules { cache: hardpan_models::CachePolicy { look_back: Some(1), ..rules.cache }, ..rules };
    assert_eq!(read(&[4, 16, 17, 18, 19, 20], &strict), 4000);
    assert_eq!(read(&[20], &strict), 0);
}
