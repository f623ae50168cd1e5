use super::*;

fn read(cache: &CacheModel, rules: &CacheRules, request: &CacheRequest) -> u64 {
    cache.plan(rules, request).amounts.cache_read
}

#[test]
fn five_minutes_of_silence_lose_the_prefix() {
    let (mut cache, rules) = (CacheModel::new(), anthropic());
    send(&mut cache, &rules, &talk(0, 10, &[(10, SHORT)]));
    assert_eq!(read(&cache, &rules, &talk(299, 12, &[(12, SHORT)])), 10_000);
    let late = cache.plan(&rules, &talk(300, 12, &[(12, SHORT)]));
    assert_eq!(late.amounts, amounts(0, 12_000, 0, 0));
    assert_eq!(late.lookups[0].found, [(9, EntryState::Expired(seconds(300)))]);
    assert_eq!(late.lookups[0].back_to, Some(0));
}

#[test]
fn an_hour_is_an_hour() {
    let (mut cache, rules) = (CacheModel::new(), anthropic());
    send(&mut cache, &rules, &talk(0, 10, &[(6, LONG), (10, SHORT)]));
    assert_eq!(read(&cache, &rules, &talk(3599, 10, &[(10, SHORT)])), 6000);
    assert_eq!(read(&cache, &rules, &talk(3600, 10, &[(10, SHORT)])), 0);
}

#[test]
fn a_lifetime_counts_from_the_start_of_the_request() {
    let (mut cache, rules) = (CacheModel::new(), anthropic());
    // An answer that takes four minutes to begin leaves one of five.
    cache.commit(&rules, &talk(0, 10, &[(10, SHORT)]), seconds(240));
    assert_eq!(read(&cache, &rules, &talk(299, 10, &[(10, SHORT)])), 10_000);
    assert_eq!(read(&cache, &rules, &talk(301, 10, &[(10, SHORT)])), 0);
}

#[test]
fn a_read_refreshes_from_its_own_start() {
    let (mut cache, rules) = (CacheModel::new(), anthropic());
    send(&mut cache, &rules, &talk(0, 10, &[(10, SHORT)]));
    let second = cache.send(&rules, &talk(200, 10, &[(10, SHORT)]), seconds(260));
    assert_eq!(second.amounts, amounts(10_000, 0, 0, 0));
    let third = cache.plan(&rules, &talk(499, 10, &[(10, SHORT)]));
    let hit = third.hit.unwrap();
    assert_eq!((hit.age_ms, hit.idle_ms, hit.expires), (499_000, 299_000, Some(seconds(500))));
    assert_eq!(read(&cache, &rules, &talk(500, 10, &[(10, SHORT)])), 0);
}

#[test]
fn a_plan_refreshes_nothing() {
    let (mut cache, rules) = (CacheModel::new(), anthropic());
    send(&mut cache, &rules, &talk(0, 10, &[(10, SHORT)]));
    cache.plan(&rules, &talk(200, 10, &[(10, SHORT)]));
    assert_eq!(read(&cache, &rules, &talk(301, 10, &[(10, SHORT)])), 0);
}

#[test]
fn a_read_keeps_shorter_prefixes_warm_and_not_longer_ones() {
    let (mut cache, rules) = (CacheModel::new(), anthropic());
    send(&mut cache, &rules, &talk(0, 10, &[(3, SHORT), (6, SHORT), (10, SHORT)]));
    send(&mut cache, &rules, &talk(200, 6, &[(6, SHORT)]));
    assert_eq!(read(&cache, &rules, &talk(400, 3, &[(3, SHORT)])), 3000);
    assert_eq!(read(&cache, &rules, &talk(400, 6, &[(6, SHORT)])), 6000);
    assert_eq!(read(&cache, &rules, &talk(400, 10, &[(10, SHORT)])), 6000);
}

#[test]
fn an_entry_keeps_the_lifetime_it_was_written_with() {
    let (mut cache, rules) = (CacheModel::new(), anthropic());
    send(&mut cache, &rules, &talk(0, 10, &[(10, SHORT)]));
    let second = send(&mut cache, &rules, &talk(100, 10, &[(10, LONG)]));
    assert_eq!(second.amounts, amounts(10_000, 0, 0, 0));
    assert_eq!(read(&cache, &rules, &talk(400, 10, &[(10, LONG)])), 0);
    let third = send(&mut cache, &rules, &talk(400, 10, &[(10, LONG)]));
    assert_eq!(third.amounts, amounts(0, 0, 10_000, 0));
    assert_eq!(read(&cache, &rules, &talk(3999, 10, &[(10, SHORT)])), 10_000);
}

#[test]
fn an_entry_is_readable_once_the_answer_has_begun() {
    let (mut cache, rules) = (CacheModel::new(), anthropic());
    let (first, second) = (talk(0, 10, &[(10, SHORT)]), talk(2, 10, &[(10, SHORT)]));
    // Two at once: both miss, and both write.
    assert_eq!(cache.plan(&rules, &first).amounts, amounts(0, 10_000, 0, 0));
    assert_eq!(cache.plan(&rules, &second).amounts, amounts(0, 10_000, 0, 0));
    cache.commit(&rules, &first, seconds(3));
    let looks = cache.plan(&rules, &second).lookups;
    assert_eq!(looks[0].found, [(9, EntryState::NotYet(seconds(3)))]);
    cache.commit(&rules, &second, seconds(5));
    assert_eq!(cache.len(), 1);
    assert_eq!(read(&cache, &rules, &talk(3, 10, &[(10, SHORT)])), 10_000);
    // The later of the two counts for the lifetime.
    assert_eq!(read(&cache, &rules, &talk(301, 10, &[(10, SHORT)])), 10_000);
    assert_eq!(read(&cache, &rules, &talk(302, 10, &[(10, SHORT)])), 0);
}

#[test]
fn a_request_that_is_never_answered_writes_nothing() {
    let (cache, rules) = (CacheModel::new(), anthropic());
    cache.plan(&rules, &talk(0, 10, &[(10, SHORT)]));
    assert!(cache.is_empty());
}

#[test]
fn models_do_not_share_entries() {
    let (mut cache, rules) = (CacheModel::new(), anthropic());
    let request = talk(0, 10, &[(10, SHORT)]);
    send(&mut cache, &rules, &request);
    let other = CacheRequest { at: seconds(10), model: "n".into(), ..request };
    assert_eq!(send(&mut cache, &rules, &other).amounts, amounts(0, 10_000, 0, 0));
    assert_eq!(read(&cache, &rules, &talk(20, 10, &[(10, SHORT)])), 10_000);
    assert_eq!(read(&cache, &rules, &CacheRequest { at: seconds(20), ..other }), 10_000);
}

#[test]
fn what_expired_long_ago_is_forgotten() {
    let (mut cache, rules) = (CacheModel::new(), anthropic());
    let minutes = 20_000;
    for minute in 0..minutes {
        let mut request = talk(minute * 60, 2, &[(2, SHORT)]);
        request.blocks[0] = block(minute as usize, 1000);
        send(&mut cache, &rules, &request);
    }
    // A day's worth, and at most as much again that has not been swept yet.
    assert!(cache.len() < 2 * (24 * 60 + 10), "{} entries", cache.len());
}

#[test]
fn where_no_lifetime_is_stated_the_number_of_entries_is_bounded() {
    let (mut cache, rules) = (CacheModel::new(), rules("deepseek", "deepseek-chat"));
    let (count, requests) = (1000, 300);
    for round in 0..requests {
        let mut request = talk(0, count, &[]); // all at the same moment
        request.blocks[0] = block(round + 2 * count, 1000);
        send(&mut cache, &rules, &request);
    }
    assert!(count * requests > entries::MAX_ENTRIES);
    assert!(cache.len() <= entries::MAX_ENTRIES, "{} entries", cache.len());
}
