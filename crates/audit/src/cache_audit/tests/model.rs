use hardpan_economy::CacheModel;
use hardpan_economy::cache::{CacheBlock, CacheRequest, CacheRules, CacheSettings, Section};
use hardpan_prompt::{CacheLifetime, Hash};
use proptest::prelude::*;

use super::*;
use crate::cache_audit::frontiers::{CacheKey, Frontier, Frontiers, node};
use crate::{EntryContent, RecordedPart, Speaker};

/// A block of tokens per entry: large enough that nothing is under the minimum.
const BLOCK: u64 = 2000;

/// A request of a made-up session: how far back its leaf's parent lies, how long after the last one it is sent (no sum of
/// these is within seconds of the lifetime), and one of two settings.
fn sent() -> impl Strategy<Value = (usize, i64, usize)> {
    (0usize..4, prop_oneof![Just(1000), Just(90_000), Just(400_000)], 0usize..2)
}

/// A tree of entries in which each new one follows one of the last few.
fn recording(parents: &[usize]) -> Recording {
    let mut recording = Recording::new("s.jsonl", SourceAgent::Pi);
    for (at, back) in parents.iter().enumerate() {
        let parts = vec![RecordedPart::Text(at.to_string().into())];
        let parent = at.checked_sub(back + 1);
        let content = EntryContent::Message { speaker: Speaker::User, parts };
        recording.add_entry(at, parent, None, content);
    }
    recording
}

proptest! {
    /// On any tree, with branches, silences and changes of a setting, the frontiers find what the cache model finds that
    /// hashes every block.
    #[test]
    fn the_tree_of_frontiers_finds_what_the_cache_model_finds(requests in prop::collection::vec(sent(), 1..30)) {
        let catalogue = Catalogue::builtin();
        let model = catalogue.model(Some("anthropic"), "claude-sonnet-5").unwrap();
        let mut rules = CacheRules::for_model(&model, &catalogue.provider("anthropic").unwrap().profile_for_model(&model));
        rules.cache.look_back = None; // the frontiers know of no limit
        let parents: Vec<usize> = requests.iter().map(|(back, ..)| *back).collect();
        let recording = recording(&parents);
        let (mut cache, mut frontiers) = (CacheModel::new(), Frontiers::new(&recording));
        let mut now = 0;
        for (leaf, (_, wait, level)) in requests.iter().enumerate() {
            now += wait;
            let at = Moment(now);
            let way = recording.context(Some(leaf));
            let block = |at: &usize| CacheBlock::new(Section::Messages, Hash::of(at.to_string().as_bytes()), BLOCK as usize);
            let mut blocks: Vec<CacheBlock> = way.iter().map(block).collect();
            if let Some(last) = blocks.last_mut() {
                *last = last.with_marker(CacheLifetime::FiveMinutes);
            }
            let salts = CacheSettings { effort: Some(level.to_string().into()), ..CacheSettings::default() };
            let request = CacheRequest { at, model: "m".into(), blocks, settings: salts, explicit_only: false };
            let kept = CacheKey { model: 0, compactions: 0, images: false, thinking: Some(*level), level: None };
            let billed = cache.send(&rules, &request, at).amounts.cache_read;
            let found = frontiers.readable(node(Some(leaf)), &kept, at, 0).map_or(0, |found| found.tokens);
            prop_assert_eq!(found, billed);
            let tokens = way.len() as u64 * BLOCK;
            let frontier = Frontier::new(kept, tokens, tokens, at, at, Some(300_000));
            frontiers.add_frontier(node(Some(leaf)), frontier, 0);
        }
    }
}
