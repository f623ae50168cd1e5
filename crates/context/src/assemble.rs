//! From a snapshot to a prompt that fits its window and its model.

use hardpan_models::{Catalogue, Unknown, Vocabulary};
use hardpan_prompt::{Factor, Kind, LeftOut, Measured, Prompt, Role, Thinking, validate::MIN_THINKING};
use thiserror::Error;

use crate::forms::{without_images, without_tools};
use crate::layout::{Arrangement, Input, LayoutName, Target};
use crate::{Memo, Memory, Snapshot, Texts, stability};

/// A request that cannot be made.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum AssembleError {
    /// Even without anything that may be left out, it is too long.
    #[error(
        "the request needs {tokens} tokens and {model} takes {limit}: the system prompt, the tools and the prompt alone are too long. Shorten the prompt, use fewer tools, or choose a model with a larger window (`hardpan models`)."
    )]
    TooLong {
        /// Tokens of what cannot be left out.
        tokens: usize,
        /// The model.
        model: String,
        /// The most it takes.
        limit: usize,
    },
    /// Too little or too much thinking.
    #[error(
        "a thinking budget of {budget} tokens: it must be at least {MIN_THINKING} and less than the {max_tokens} tokens of the answer (--max-tokens)"
    )]
    Thinking {
        /// The budget.
        budget: u32,
        /// The most tokens of answer.
        max_tokens: u32,
    },
}

/// A request that is ready to be encoded.
#[derive(Clone, Debug)]
pub struct Assembled {
    /// The request.
    pub prompt: Prompt,
    /// The tokens of its blocks, scaled to the model's own tokenizer where a factor is known.
    pub measured: Measured,
    /// The memory to commit once the provider has begun to answer.
    pub memory: Memory,
    /// The layout it was arranged by.
    pub layout: LayoutName,
}

impl Target {
    /// The model of this name, at its provider or a given one.
    pub fn new(catalogue: &Catalogue, provider: Option<&str>, model: &str) -> Result<Self, Unknown> {
        let model = catalogue.model(provider, model)?;
        let provider = catalogue.provider(&model.provider)?;
        let (wire, max_tokens) = (provider.for_model(&model), model.default_max_tokens());
        let factor = Factor::new(model.token_factor);
        Ok(Target { provider: provider.id.clone(), wire, model, max_tokens, factor })
    }

    /// The vocabulary to count with: the model's own where it is public, else the stand-in.
    pub fn vocabulary(&self) -> hardpan_prompt::Vocabulary {
        match self.model.vocabulary {
            Some(Vocabulary::Cl100k) => hardpan_prompt::Vocabulary::Cl100k,
            Some(Vocabulary::O200k) | None => hardpan_prompt::Vocabulary::O200k,
        }
    }

    /// Whether an answer has room for this much thinking.
    pub fn check_thinking(&self, thinking: Thinking) -> Result<(), AssembleError> {
        match thinking {
            Thinking::Budget(budget) if !(MIN_THINKING..self.max_tokens).contains(&budget) => {
                Err(AssembleError::Thinking { budget, max_tokens: self.max_tokens })
            }
            Thinking::Off | Thinking::Budget(_) => Ok(()),
        }
    }
}

/// Arranges a snapshot by a layout, in the form that the model understands. What does not fit the window is left out, in
/// this order, and listed: symbol entries from the last, the tree, pages, panels, files from the last one named, then
/// the conversation from its oldest exchange. Instructions, tools and the prompt are never left out, nor is the exchange in
/// progress.
pub fn assemble(
    snapshot: &Snapshot,
    layout: LayoutName,
    target: &Target,
    texts: &Texts,
    memo: &Memo,
) -> Result<Assembled, AssembleError> {
    memo.next_request();
    target.check_thinking(snapshot.thinking)?;
    let limit = target.max_input_tokens() as usize;
    let assigned = stability::assigned(snapshot, layout);
    let snapshot = &*assigned;
    let whole = arrange(snapshot, layout, target, texts, memo);
    if whole.measured.total() <= limit {
        return Ok(whole);
    }
    // A fold drops what is no longer true; often that is enough.
    let mut smaller = Snapshot { fold: true, ..snapshot.clone() };
    let mut assembled = arrange(&smaller, layout, target, texts, memo);
    let mut left_out = Vec::new();
    while assembled.measured.total() > limit {
        let excess = assembled.measured.total() - limit;
        if !shrink(&mut smaller, excess, memo, &mut left_out) {
            let (tokens, model) = (assembled.measured.total(), target.model.id.clone());
            return Err(AssembleError::TooLong { tokens, model, limit });
        }
        assembled = arrange(&smaller, layout, target, texts, memo);
    }
    assembled.prompt.left_out.extend(left_out);
    Ok(assembled)
}

fn arrange(
    snapshot: &Snapshot,
    layout: LayoutName,
    target: &Target,
    texts: &Texts,
    memo: &Memo,
) -> Assembled {
    let input = Input { snapshot, target, texts, memo };
    let Arrangement { mut prompt, memory, mut measured } = layout.layout().arrange(&input);
    if !target.model.tools || prompt.tools.is_empty() {
        prompt = without_tools(&prompt, texts);
        measured = None;
    }
    if !target.model.vision {
        prompt = without_images(&prompt, texts);
        measured = None;
    }
    if !target.has_markers() {
        prompt.tools.iter_mut().for_each(|tool| tool.breakpoint = None);
        prompt.blocks_mut().for_each(|block| block.breakpoint = None);
    }
    if target.wire.markers == hardpan_models::Markers::PromptCacheBreakpoint {
        mark_input_only(&mut prompt);
    }
    let dropped = limit_images(&mut prompt, texts);
    let measured = measured.filter(|_| dropped == 0).unwrap_or_else(|| input.measure(&prompt));
    if layout == LayoutName::Strata {
        unmark_early(&mut prompt, &measured, target.wire.cache.min_tokens as usize);
    }
    Assembled { prompt, measured, memory, layout }
}

/// Takes away breakpoints under the provider's minimum: the final form may be smaller than what the layout measured.
fn unmark_early(prompt: &mut Prompt, measured: &Measured, minimum: usize) {
    let offset = prompt.tools.len();
    for (index, block) in prompt.blocks_mut().enumerate() {
        block.breakpoint = block.breakpoint.filter(|_| measured.through(index + offset) >= minimum);
    }
}

/// OpenAI's markers are for what is put in, not for what the model said: a breakpoint on its words moves back to the block
/// before them.
fn mark_input_only(prompt: &mut Prompt) {
    let mut wanted = None;
    for turn in prompt.turns.iter_mut().rev() {
        for block in turn.blocks.iter_mut().rev() {
            if turn.role == Role::Assistant {
                wanted = block.breakpoint.take().or(wanted);
            } else if wanted.is_some() && block.can_hold_breakpoint() {
                block.breakpoint = block.breakpoint.or(wanted);
                wanted = None;
            }
        }
    }
    if let (Some(lifetime), Some(block)) = (wanted, prompt.system.last_mut()) {
        block.breakpoint = block.breakpoint.or(Some(lifetime));
    }
}

/// The most images in one request (Anthropic, windows of 200k tokens).
const MAX_IMAGES: usize = 100;

/// Leaves out the oldest images where there are too many, and returns how many that were.
fn limit_images(prompt: &mut Prompt, texts: &Texts) -> usize {
    use hardpan_prompt::{Block, Content, Origin, ResultPart, Role, Segment, Turn};
    let images_in = |content: &Content| match content {
        Content::Image(..) => 1,
        Content::Result(result) => {
            result.parts.iter().filter(|part| matches!(part, ResultPart::Image(_))).count()
        }
        _ => 0,
    };
    let total: usize = prompt.blocks().map(|block| images_in(&block.content)).sum();
    let too_many = total.saturating_sub(MAX_IMAGES);
    let mut excess = too_many;
    if excess == 0 {
        return 0;
    }
    let reason = format!("one of the {excess} oldest images: a request takes at most {MAX_IMAGES}");
    let mut left_out = Vec::new();
    for turn in &mut prompt.turns {
        turn.blocks.retain_mut(|block| {
            if excess == 0 {
                return true;
            }
            let origin = block.origin().map_or_else(String::new, |origin| format!("image of {origin}"));
            if matches!(*block.content, Content::Result(_))
                && block.has_image()
                && let Content::Result(result) = block.content.edit()
            {
                result.parts.retain(|part| {
                    let drop = excess > 0 && matches!(part, ResultPart::Image(_));
                    excess -= usize::from(drop);
                    left_out.extend(drop.then(|| LeftOut::new(origin.clone(), reason.clone())));
                    !drop
                });
                if result.parts.is_empty() {
                    let nothing =
                        Segment::new(texts.phrases.history.no_output.clone(), result.origin.clone());
                    result.parts.push(ResultPart::Text(vec![nothing]));
                }
                return true;
            }
            let drop = matches!(*block.content, Content::Image(..));
            excess -= usize::from(drop);
            left_out.extend(drop.then(|| LeftOut::new(origin, reason.clone())));
            !drop
        });
    }
    prompt.turns.retain(|turn| !turn.blocks.is_empty());
    // A conversation that began with nothing but images begins with the user all the same.
    let first =
        prompt.turns.first().filter(|turn| turn.role == Role::Assistant).and_then(|turn| turn.blocks.first());
    if let Some(place) = first.map(|block| block.place) {
        let origin = Origin::rule(Kind::History, "opening");
        let opening = Block::text(place, texts.phrases.history.opening.clone(), origin);
        prompt.turns.insert(0, Turn::new(Role::User, vec![opening]));
    }
    prompt.left_out.append(&mut left_out);
    too_many
}

const NO_ROOM: &str = "no room: the window is full";

/// Takes out about `excess` tokens of what may be left out first. False when there is nothing left to take.
fn shrink(snapshot: &mut Snapshot, excess: usize, memo: &Memo, left_out: &mut Vec<LeftOut>) -> bool {
    for kind in [Kind::Symbols, Kind::Legend, Kind::Tree, Kind::Page, Kind::Panel, Kind::File] {
        let mut taken = 0;
        while taken < excess {
            let Some(last) = snapshot.items.iter().rposition(|item| item.kind == kind) else { break };
            let item = snapshot.items.remove(last);
            taken += memo.counter.count(&item.body).max(1);
            left_out.push(LeftOut::new(&*item.key, NO_ROOM));
        }
        if taken > 0 {
            return true;
        }
    }
    drop_oldest_exchange(snapshot, left_out)
}

/// Without a prompt beside it, the last exchange of the conversation is what the model is asked about: it is never left out.
fn drop_oldest_exchange(snapshot: &mut Snapshot, left_out: &mut Vec<LeftOut>) -> bool {
    let messages = &mut snapshot.messages;
    let begins = |index: &usize| messages[*index].is_user() && !messages[index - 1].is_user();
    let end = (1..messages.len()).find(begins);
    let end = end.or(Some(messages.len()).filter(|end| snapshot.prompt.is_some() && *end > 0));
    let dropped = end.map(|end| messages.drain(..end));
    let names = dropped.into_iter().flatten().map(|message| format!("message:{}", message.id));
    left_out.extend(names.map(|name| LeftOut::new(name, NO_ROOM)));
    end.is_some()
}
