//! [`MeasuredThread`]: what the engine measures of each request when nothing is dropped, and how
//! much a fold of everything would leave. Floor and clairvoyant schedule go by these figures.

use std::collections::{BTreeMap, BTreeSet};

use hardpan_context::KeepLevel;
use hardpan_economy::cache::{CacheBlock, Section};
use hardpan_prompt::Hash;

use super::engine::EngineRun;
use super::threads::ReplayThread;
use super::{ReplayError, ReplayPolicy};

/// The requests of a thread, measured.
pub(super) struct MeasuredThread(pub Vec<MeasuredRequest>);

/// One request without any fold.
#[derive(Debug, Default)]
pub(super) struct MeasuredRequest {
    /// All its tokens.
    pub total: usize,
    /// Its tokens if it folded everything now.
    pub folded: usize,
    /// The tokens before the conversation: system prompt and tools.
    pub fixed: usize,
    /// The tokens that it begins with and the previous request began with, too.
    pub common: usize,
    /// Whether the conversation lost something that the previous request had.
    pub is_cut: bool,
    /// Its blocks that no earlier request had.
    pub fresh: Vec<FreshBlock>,
}

/// A block in the first request that has it.
#[derive(Debug)]
pub(super) struct FreshBlock {
    pub tokens: usize,
    /// In how many later requests to the same model it is needed; only the first few are counted.
    pub later_requests: usize,
}

/// How many later requests with a block are counted: at any prices that are known, writing a token is
/// cheaper than sending it so often.
const MOST_REQUESTS: usize = 4;

impl MeasuredThread {
    /// Measures a thread. `keep` says what a fold may drop.
    pub fn new(thread: &ReplayThread, keep: KeepLevel) -> Result<Self, ReplayError> {
        let mut run = EngineRun::new(thread, ReplayPolicy::APPEND)?;
        let mut measured = Vec::with_capacity(thread.steps.len());
        let mut before: Vec<CacheBlock> = Vec::new();
        // For each block: the request that it was new in, and its position there.
        let mut births: BTreeMap<Hash, (usize, usize)> = BTreeMap::new();
        let mut messages = 0;
        for (index, step) in thread.steps.iter().enumerate() {
            let Some(sent) = run.send_next()? else { break };
            let folded = run.fold_now(&sent, keep)?;
            let blocks = run.cache_request(step, &sent.target, &sent.assembled).blocks;
            let needed = run.cache_request(step, &sent.target, &folded).blocks;
            let total = |blocks: &[CacheBlock]| blocks.iter().map(|block| block.tokens).sum::<usize>();
            let shared = before.iter().zip(&blocks).take_while(|(old, new)| old.hash == new.hash);
            let mut request = MeasuredRequest {
                total: total(&blocks),
                folded: total(&needed).min(total(&blocks)),
                fixed: blocks
                    .iter()
                    .filter(|block| block.section != Section::Messages)
                    .map(|block| block.tokens)
                    .sum(),
                common: shared.map(|(_, block)| block.tokens).sum(),
                is_cut: step.common < messages,
                fresh: Vec::new(),
            };
            let still_needed: BTreeSet<Hash> = needed.iter().map(|block| block.hash).collect();
            for hash in &still_needed {
                let Some((birth, position)) = births.get(hash) else { continue };
                if thread.steps[*birth].pricing.model == step.pricing.model {
                    let measured: &mut MeasuredRequest = &mut measured[*birth];
                    let later = &mut measured.fresh[*position].later_requests;
                    *later = MOST_REQUESTS.min(*later + 1);
                }
            }
            for block in &blocks {
                births.entry(block.hash).or_insert_with(|| {
                    request.fresh.push(FreshBlock { tokens: block.tokens, later_requests: 0 });
                    (index, request.fresh.len() - 1)
                });
            }
            measured.push(request);
            messages = step.common + step.added.len();
            before = blocks;
        }
        Ok(MeasuredThread(measured))
    }
}
