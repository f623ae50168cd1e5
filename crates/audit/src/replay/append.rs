//! The policy `append`: a marker on the system prompt and one that moves along, with a lifetime of
//! five minutes.

use hardpan_prompt::CacheLifetime;

use super::ReplayCost;
use super::billed_cache::BilledCache;
use super::prompt_log::PromptLog;
use super::threads::ReplayThread;

pub(super) fn run(thread: &ReplayThread) -> ReplayCost {
    let (mut log, mut billed_cache) = (PromptLog::new(thread), BilledCache::default());
    for step in &thread.steps {
        log.advance(step);
        let mut blocks: Vec<_> = log.elements.iter().map(|element| log.block(*element)).collect();
        let last = blocks.len() - 1;
        for marked in [0, last] {
            blocks[marked].marker = Some(CacheLifetime::FiveMinutes);
        }
        billed_cache.send(step, &BilledCache::build_request(step, blocks));
    }
    billed_cache.cost
}
