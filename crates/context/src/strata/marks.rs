//! The four breakpoints of `strata`.

use std::collections::BTreeSet;

use hardpan_prompt::{Block, Content, Hash, Lifetime, Place, Prompt, ResultPart, Role, Segment, ToolBlock};

use crate::layout::Input;
use crate::memory::{Frontier, StrataMemory};

/// Marks the end of the system prompt, the end of BASE, the frontier of the last request and the new frontier, and
/// remembers the new one. None is placed where the prefix is under the provider's minimum: it would be ignored.
pub fn place(input: &Input<'_>, strata: &mut StrataMemory, prompt: &mut Prompt) {
    let fingerprints = fingerprints(prompt);
    let before_tail = |block: &Block| block.place != Place::Tail && block.can_hold_breakpoint();
    let offset = prompt.tools.len();
    let blocks: Vec<&Block> = prompt.blocks().collect();
    let last = |wanted: &dyn Fn(&Block) -> bool| blocks.iter().rposition(|block| wanted(block)).map(|at| at + offset);
    let system = (prompt.system.len() + offset).checked_sub(1);
    let base = last(&|block| block.place == Place::Base && block.can_hold_breakpoint());
    let frontier = last(&before_tail);
    let met = |frontier: &Frontier| fingerprints.get(frontier.blocks.wrapping_sub(1)) == Some(&frontier.hash);
    let previous = strata.frontier.filter(met).map(|frontier| frontier.blocks - 1);

    let minimum = input.target.wire.cache.min_tokens as usize;
    let measured = input.memo.counter.measure(prompt).scaled(&input.target.factor);
    let wanted = [system, base, previous, frontier].into_iter().flatten();
    let places: BTreeSet<usize> = wanted.filter(|block| measured.through(*block) >= minimum).collect();
    for (index, block) in prompt.blocks_mut().enumerate() {
        if places.contains(&(index + offset)) {
            block.breakpoint = Some(Lifetime::FiveMinutes);
        }
    }
    strata.frontier = frontier.map(|last| Frontier { blocks: last + 1, hash: fingerprints[last] });
}

/// For each block the hash over everything up to it, made of the hashes that the texts carry already.
fn fingerprints(prompt: &Prompt) -> Vec<Hash> {
    let mut prefix = Hash::of(b"");
    let mut all = Vec::new();
    let mut add = |hash: Hash| {
        prefix = Hash::chain([prefix, hash]);
        all.push(prefix);
    };
    for ToolBlock { tool, .. } in &prompt.tools {
        add(Hash::chain([text(&tool.name), text(&tool.description), tool.parameters.hash()]));
    }
    prompt.system.iter().for_each(|block| add(fingerprint(block)));
    for turn in &prompt.turns {
        let role = Hash::of(if turn.role == Role::User { b"user" } else { b"model" });
        turn.blocks.iter().for_each(|block| add(Hash::chain([role, fingerprint(block)])));
    }
    all
}

fn text(text: &str) -> Hash {
    Hash::of(text.as_bytes())
}

/// Like [`Block::hash`], but of the segments' hashes: nothing long is hashed again.
fn fingerprint(block: &Block) -> Hash {
    let segments = |segments: &[Segment]| Hash::chain(segments.iter().map(|segment| segment.text.hash()));
    match &block.content {
        Content::Text(parts) => segments(parts),
        Content::Result(result) => {
            let parts = result.parts.iter().map(|part| match part {
                ResultPart::Text(parts) => segments(parts),
                ResultPart::Image(image) => image.hash(),
            });
            Hash::chain([text(&result.call_id)].into_iter().chain(parts))
        }
        Content::Image(..) | Content::Reasoning(_) | Content::Call(_) => block.hash(),
    }
}
