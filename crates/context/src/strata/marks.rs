//! The four breakpoints of `strata`.

use std::collections::BTreeSet;

use hardpan_prompt::{
    Block, Chain, Content, Hash, Lifetime, Measured, Place, Prompt, ResultPart, Role, Segment, ToolBlock,
};

use crate::layout::Input;
use crate::memory::{Frontier, StrataMemory};

/// Marks the end of the system prompt, the end of BASE, the frontier of the last request and the new frontier, and
/// remembers the new one. None is placed where the prefix is under the provider's minimum: it would be ignored.
pub fn place(input: &Input<'_>, strata: &mut StrataMemory, prompt: &mut Prompt) -> Measured {
    let offset = prompt.tools.len();
    let blocks: Vec<&Block> = prompt.blocks().collect();
    let last = |wanted: &dyn Fn(&Block) -> bool| {
        blocks.iter().rposition(|block| wanted(block)).map(|at| at + offset)
    };
    let system = (prompt.system.len() + offset).checked_sub(1);
    let base = last(&|block| block.place == Place::Base && block.can_hold_breakpoint());
    let frontier = last(&|block| block.place != Place::Tail && block.can_hold_breakpoint());
    let before = strata.frontier.map(|frontier| frontier.blocks);
    let hashes = prefix_hashes(prompt, [before, frontier.map(|last| last + 1)]);
    let met = strata.frontier.filter(|frontier| hashes[0] == Some(frontier.hash));
    let previous = met.map(|frontier| frontier.blocks - 1);

    let minimum = input.target.wire.cache.min_tokens as usize;
    let measured = input.measure(prompt);
    let wanted = [system, base, previous, frontier].into_iter().flatten();
    let places: BTreeSet<usize> = wanted.filter(|block| measured.through(*block) >= minimum).collect();
    for (index, block) in prompt.blocks_mut().enumerate() {
        if places.contains(&(index + offset)) {
            block.breakpoint = Some(Lifetime::FiveMinutes);
        }
    }
    strata.frontier = frontier.zip(hashes[1]).map(|(last, hash)| Frontier { blocks: last + 1, hash });
    measured
}

/// The hash over the first so many blocks, for each of two lengths; none where there are not so many.
fn prefix_hashes(prompt: &Prompt, lengths: [Option<usize>; 2]) -> [Option<Hash>; 2] {
    let mut hashes = [None, None];
    let mut chain = Chain::default();
    let mut length = 0;
    let mut end_of_block = |chain: &Chain| {
        length += 1;
        for (hash, wanted) in hashes.iter_mut().zip(lengths) {
            if wanted == Some(length) {
                *hash = Some(chain.hash());
            }
        }
    };
    for ToolBlock { tool, .. } in &prompt.tools {
        chain.add_text(&tool.name);
        chain.add_text(&tool.description);
        chain.add(tool.parameters.hash());
        end_of_block(&chain);
    }
    let system = prompt.system.iter().map(|block| ("system", block));
    let turns = prompt.turns.iter().flat_map(|turn| {
        let role = if turn.role == Role::User { "user" } else { "assistant" };
        turn.blocks.iter().map(move |block| (role, block))
    });
    for (role, block) in system.chain(turns) {
        chain.add_text(role);
        add_block(&mut chain, block);
        end_of_block(&chain);
    }
    hashes
}

/// Like [`Block::hash`], but made of the segments' hashes: nothing long is hashed again.
fn add_block(chain: &mut Chain, block: &Block) {
    let add_segments = |chain: &mut Chain, segments: &[Segment]| {
        segments.iter().for_each(|segment| chain.add(segment.text.hash()));
    };
    match &block.content {
        Content::Text(segments) => add_segments(chain, segments),
        Content::Result(result) => {
            chain.add_text(&result.call_id);
            for part in &result.parts {
                match part {
                    ResultPart::Text(segments) => add_segments(chain, segments),
                    ResultPart::Image(image) => chain.add(image.hash()),
                }
            }
        }
        Content::Call(call) => {
            chain.add_text(&call.id);
            chain.add_text(&call.name);
            chain.add(call.arguments.hash());
        }
        Content::Image(..) | Content::Reasoning(_) => chain.add(block.hash()),
    }
}
