//! [`assemble`]: from a snapshot to a prompt that fits the model's window and abilities.

use hardpan_models::{Catalogue, UnknownName, Vocabulary};
use hardpan_prompt::{
    ItemKind, Omission, OmissionReason, Prompt, PromptTokens, Role, Thinking, TokenFactor,
    validate::MIN_THINKING_TOKENS,
};
use thiserror::Error;

use crate::fallbacks::{without_images, without_tools};
use crate::layout::{Arrangement, LayoutInput, LayoutName, Target};
use crate::{LayoutState, PromptTexts, RenderCache, Snapshot, stability};

/// Why no request can be built from a snapshot.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum AssembleError {
    /// The prompt is too long even without everything that may be left out.
    #[error(
        "the request needs {tokens} tokens and {model} takes {limit}: the system prompt, the tools and the prompt alone are too long. Shorten the prompt, use fewer tools, or choose a model with a larger window (`hardpan models`)."
    )]
    TooLong {
        /// Tokens of what cannot be left out.
        tokens: usize,
        /// The id of the model.
        model: String,
        /// How many input tokens the model takes.
        limit: usize,
    },
    /// The thinking budget is under the provider's minimum, or leaves no room for the answer.
    #[error(
        "a thinking budget of {budget} tokens: it must be at least {MIN_THINKING_TOKENS} and less than the {max_tokens} tokens of the answer (--max-tokens)"
    )]
    Thinking {
        /// The budget asked for, in tokens.
        budget: u32,
        /// The limit for thinking and answer together, in tokens.
        max_tokens: u32,
    },
}

/// A prompt that is ready to be encoded, with its token counts.
#[derive(Clone, Debug)]
pub struct AssembledPrompt {
    /// The prompt in its final form for the target.
    pub prompt: Prompt,
    /// The tokens of its blocks, scaled to the model's tokenizer where a factor is known.
    pub measured: PromptTokens,
    /// The state to commit once the provider has begun to answer.
    pub layout_state: LayoutState,
    /// The layout that ordered it.
    pub layout: LayoutName,
}

impl Target {
    /// Looks up a model by name, at the given provider or at the one that the name implies.
    pub fn new(catalogue: &Catalogue, provider: Option<&str>, model: &str) -> Result<Self, UnknownName> {
        let model = catalogue.model(provider, model)?;
        let provider = catalogue.provider(&model.provider)?;
        let (profile, max_tokens) = (provider.profile_for_model(&model), model.default_max_tokens());
        let factor = TokenFactor::new(model.token_factor);
        Ok(Target { provider: provider.id.clone(), profile, model, max_tokens, factor })
    }

    /// The vocabulary to count tokens with: the model's own where it is public, else o200k.
    pub fn vocabulary(&self) -> hardpan_prompt::Vocabulary {
        match self.model.vocabulary {
            Some(Vocabulary::Cl100k) => hardpan_prompt::Vocabulary::Cl100k,
            Some(Vocabulary::O200k) | None => hardpan_prompt::Vocabulary::O200k,
        }
    }

    /// Checks that the answer has room for this much thinking.
    pub fn check_thinking(&self, thinking: Thinking) -> Result<(), AssembleError> {
        match thinking {
            Thinking::Budget(budget) if !(MIN_THINKING_TOKENS..self.max_tokens).contains(&budget) => {
                Err(AssembleError::Thinking { budget, max_tokens: self.max_tokens })
            }
            Thinking::Off | Thinking::Budget(_) => Ok(()),
        }
    }
}

/// Builds the prompt of the next request.
///
/// What does not fit the window is left out and listed in
/// [`Prompt::left_out`](hardpan_prompt::Prompt), in this order: symbol entries from the last, the
/// tree, pages, panels, files from the last one named, then the conversation from its oldest
/// exchange. Instructions, tools, the prompt and the exchange in progress are never left out.
pub fn assemble(
    snapshot: &Snapshot,
    layout: LayoutName,
    target: &Target,
    texts: &PromptTexts,
    render_cache: &RenderCache,
) -> Result<AssembledPrompt, AssembleError> {
    render_cache.begin_request();
    target.check_thinking(snapshot.thinking)?;
    let limit = target.max_input_tokens() as usize;
    let assigned = stability::with_tracked_tiers(snapshot, layout);
    let snapshot = &*assigned;
    let whole = arrange_and_adapt(snapshot, layout, target, texts, render_cache);
    if whole.measured.total() <= limit {
        return Ok(whole);
    }
    // A fold drops outdated copies; often that is enough.
    let mut smaller = Snapshot { fold: true, ..snapshot.clone() };
    let mut assembled = arrange_and_adapt(&smaller, layout, target, texts, render_cache);
    let mut left_out = Vec::new();
    while assembled.measured.total() > limit {
        let excess = assembled.measured.total() - limit;
        if !drop_some_context(&mut smaller, excess, render_cache, &mut left_out) {
            let (tokens, model) = (assembled.measured.total(), target.model.id.clone());
            return Err(AssembleError::TooLong { tokens, model, limit });
        }
        assembled = arrange_and_adapt(&smaller, layout, target, texts, render_cache);
    }
    assembled.prompt.left_out.extend(left_out);
    Ok(assembled)
}

fn arrange_and_adapt(
    snapshot: &Snapshot,
    layout: LayoutName,
    target: &Target,
    texts: &PromptTexts,
    render_cache: &RenderCache,
) -> AssembledPrompt {
    let input = LayoutInput { snapshot, target, texts, render_cache };
    let Arrangement { mut prompt, layout_state, mut measured } = layout.layout().arrange(&input);
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
    if target.profile.markers == hardpan_models::MarkerFormat::PromptCacheBreakpoint {
        move_breakpoints_to_input(&mut prompt);
    }
    let dropped = limit_images(&mut prompt, texts);
    let measured = measured.filter(|_| dropped == 0).unwrap_or_else(|| input.measure_prompt(&prompt));
    if layout == LayoutName::Strata {
        remove_small_breakpoints(&mut prompt, &measured, target.profile.cache.min_tokens as usize);
    }
    AssembledPrompt { prompt, measured, layout_state, layout }
}

/// Removes breakpoints under the provider's minimum: the final form may be smaller than the prompt
/// that the layout measured.
fn remove_small_breakpoints(prompt: &mut Prompt, measured: &PromptTokens, minimum: usize) {
    let offset = prompt.tools.len();
    for (index, block) in prompt.blocks_mut().enumerate() {
        block.breakpoint = block.breakpoint.filter(|_| measured.tokens_through(index + offset) >= minimum);
    }
}

/// OpenAI takes markers on input only: a breakpoint on a message of the model moves back to the
/// last block before it that can hold one.
fn move_breakpoints_to_input(prompt: &mut Prompt) {
    let mut wanted = None;
    for message in prompt.messages.iter_mut().rev() {
        for block in message.blocks.iter_mut().rev() {
            if message.role == Role::Assistant {
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

/// Leaves out the oldest images where there are too many. Returns how many were left out.
fn limit_images(prompt: &mut Prompt, texts: &PromptTexts) -> usize {
    use hardpan_prompt::{Block, Content, Origin, PromptMessage, ResultPart, Role, Segment};
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
    let reason = OmissionReason::TooManyImages { excess, limit: MAX_IMAGES };
    let mut left_out = Vec::new();
    for message in &mut prompt.messages {
        message.blocks.retain_mut(|block| {
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
                    left_out.extend(drop.then(|| Omission::of_attachment(origin.clone(), reason.clone())));
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
            left_out.extend(drop.then(|| Omission::of_attachment(origin, reason.clone())));
            !drop
        });
    }
    prompt.messages.retain(|message| !message.blocks.is_empty());
    // A conversation that began with nothing but images begins with the user all the same.
    let first = prompt
        .messages
        .first()
        .filter(|message| message.role == Role::Assistant)
        .and_then(|message| message.blocks.first());
    if let Some(region) = first.map(|block| block.region) {
        let origin = Origin::rule(ItemKind::History, "opening");
        let opening = Block::text(region, texts.phrases.history.opening.clone(), origin);
        prompt.messages.insert(0, PromptMessage::new(Role::User, vec![opening]));
    }
    prompt.left_out.append(&mut left_out);
    too_many
}

/// Removes about `excess` tokens of the context that may be left out first. Returns false when
/// nothing is left to remove.
fn drop_some_context(
    snapshot: &mut Snapshot,
    excess: usize,
    render_cache: &RenderCache,
    left_out: &mut Vec<Omission>,
) -> bool {
    for kind in
        [ItemKind::Symbols, ItemKind::Legend, ItemKind::Tree, ItemKind::Page, ItemKind::Panel, ItemKind::File]
    {
        let mut taken = 0;
        while taken < excess {
            let Some(last) = snapshot.items.iter().rposition(|item| item.kind == kind) else { break };
            let item = snapshot.items.remove(last);
            taken += render_cache.counter.count(&item.body).max(1);
            left_out.push(Omission::of_item(item.key, OmissionReason::NoRoom));
        }
        if taken > 0 {
            return true;
        }
    }
    drop_oldest_exchange(snapshot, left_out)
}

/// Removes the oldest exchange. Without a new prompt, the last exchange is what the model is asked
/// about, so it stays. Returns false when nothing can be removed.
fn drop_oldest_exchange(snapshot: &mut Snapshot, left_out: &mut Vec<Omission>) -> bool {
    let messages = &mut snapshot.messages;
    let begins = |index: &usize| messages[*index].is_user() && !messages[index - 1].is_user();
    let end = (1..messages.len()).find(begins);
    let end = end.or(Some(messages.len()).filter(|end| snapshot.prompt.is_some() && *end > 0));
    let dropped = end.map(|end| messages.drain(..end));
    let dropped = dropped.into_iter().flatten();
    left_out.extend(dropped.map(|message| Omission::of_message(&message.id, OmissionReason::NoRoom)));
    end.is_some()
}
