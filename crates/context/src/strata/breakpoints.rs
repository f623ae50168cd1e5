//! [`place_breakpoints`]: the four breakpoints of `strata`.

use std::collections::BTreeSet;

use hardpan_prompt::{
    Block, CacheLifetime, Content, Hash, Prompt, PromptTokens, Region, ResultPart, Segment, ToolBlock,
};

use super::state::{Frontier, StrataState};
use crate::layout::LayoutInput;

/// What [`place_breakpoints`] found out.
pub struct BreakpointPlacement {
    /// The prompt's token counts.
    pub measured: PromptTokens,
    /// The number of blocks up to the last request's frontier, if the prompt begins like that one.
    pub met: Option<usize>,
}

/// Marks the end of the system prompt, the end of BASE, the frontier of the last request or the place
/// of a fold, and the new frontier, which it stores in `strata`. It places none where the prefix is
/// under the provider's minimum, because the provider would ignore it.
pub fn place_breakpoints(
    input: &LayoutInput<'_>,
    strata: &mut StrataState,
    fold_site: Option<usize>,
    prompt: &mut Prompt,
) -> BreakpointPlacement {
    let offset = prompt.tools.len();
    let blocks: Vec<&Block> = prompt.blocks().collect();
    let last = |wanted: &dyn Fn(&Block) -> bool| {
        blocks.iter().rposition(|block| wanted(block)).map(|at| at + offset)
    };
    let system = (prompt.system.len() + offset).checked_sub(1);
    let base = last(&|block| block.region == Region::Base && block.can_hold_breakpoint());
    let frontier = last(&|block| block.region != Region::Tail && block.can_hold_breakpoint());
    let before = strata.frontier.map(|frontier| frontier.blocks);
    let hashes = prefix_hashes(prompt, [before, frontier.map(|last| last + 1)]);
    let met = strata.frontier.filter(|frontier| hashes[0] == Some(frontier.hash));
    let met = met.map(|frontier| frontier.blocks);
    let previous = met.or(fold_site).and_then(|blocks| blocks.checked_sub(1));

    let minimum = input.target.profile.cache.min_tokens as usize;
    let measured = input.measure_prompt(prompt);
    let wanted = [system, base, previous, frontier].into_iter().flatten();
    let places: BTreeSet<usize> = wanted.filter(|block| measured.tokens_through(*block) >= minimum).collect();
    for (index, block) in prompt.blocks_mut().enumerate() {
        if places.contains(&(index + offset)) {
            block.breakpoint = Some(CacheLifetime::FiveMinutes);
        }
    }
    strata.frontier = frontier.zip(hashes[1]).map(|(last, hash)| Frontier { blocks: last + 1, hash });
    BreakpointPlacement { measured, met }
}

/// The hash over the first `length` blocks, for two lengths; none where there are fewer blocks.
fn prefix_hashes(prompt: &Prompt, lengths: [Option<usize>; 2]) -> [Option<Hash>; 2] {
    let most = lengths.into_iter().flatten().max().unwrap_or(0);
    let mut bytes: Vec<u8> = Vec::with_capacity(most * 20);
    let mut ends: Vec<usize> = Vec::with_capacity(most + 1);
    ends.push(0);
    for ToolBlock { tool, .. } in prompt.tools.iter().take(most) {
        for text in [&*tool.name, &*tool.description] {
            bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes.extend_from_slice(tool.parameters.hash().bytes());
        ends.push(bytes.len());
    }
    let system = prompt.system.iter().map(|block| (b's', block));
    let messages = prompt.messages.iter().flat_map(|message| {
        let role = message.role.mark();
        message.blocks.iter().map(move |block| (role, block))
    });
    for (role, block) in system.chain(messages).take((most + 1).saturating_sub(ends.len())) {
        bytes.push(role);
        match &*block.content {
            // Made of the segments' hashes, so that no long text is hashed again.
            Content::Text(segments) if segments.len() > 1 => add_segments(&mut bytes, segments),
            Content::Result(result) => {
                bytes.extend_from_slice(&(result.call_id.len() as u64).to_le_bytes());
                bytes.extend_from_slice(result.call_id.as_bytes());
                for part in &result.parts {
                    match part {
                        ResultPart::Text(segments) => add_segments(&mut bytes, segments),
                        ResultPart::Image(image) => bytes.extend_from_slice(image.hash().bytes()),
                    }
                }
            }
            _ => bytes.extend_from_slice(block.hash().bytes()),
        }
        ends.push(bytes.len());
    }
    lengths.map(|length| ends.get(length?).map(|end| Hash::of(&bytes[..*end])))
}

fn add_segments(bytes: &mut Vec<u8>, segments: &[Segment]) {
    segments.iter().for_each(|segment| bytes.extend_from_slice(segment.text.hash().bytes()));
}
