//! [`assemble`]: from a snapshot to a prompt that fits the model's window and abilities.

mod ephemeral; // texts for one request, after everything that is cached
mod images; // not more images than a request takes
mod markers; // breakpoints as the provider takes them
mod window; // what is left out when the window is full

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use hardpan_models::MarkerFormat;
use hardpan_prompt::{MessageId, Prompt, PromptTokens, validate::MIN_THINKING_TOKENS};
use thiserror::Error;

use crate::bound_reasoning::find_stale_reasoning;
use crate::fallbacks::{without_images, without_tools};
use crate::layout::{Arrangement, LayoutInput, LayoutName};
use crate::message_builder::merge_model_messages;
use crate::{Fold, FoldReason, KeepLevel, LayoutState, PromptTexts, RenderCache, Snapshot, Target};

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
    /// The fold of this request, if it folds.
    pub fold: Option<Fold>,
    /// All messages whose reasoning must not be sent from this request on, since something before
    /// it has changed.
    pub stale_reasoning: Arc<BTreeSet<MessageId>>,
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
    let bases = |state: &LayoutState| layout.layout().base_count(state);
    // A fold since the snapshot was observed shows the repository as it was chosen for it.
    let observed = snapshot.at_fold.as_ref().map(|at_fold| at_fold.bases);
    let has_folded = observed.is_some() && bases(&snapshot.layout_state) > observed;
    let folded = has_folded.then(|| snapshot.described_for_fold()).flatten();
    let snapshot = folded.as_ref().unwrap_or(snapshot);
    let mut whole = arrange_and_adapt(snapshot, layout, target, texts, render_cache);
    let lays_base = |made: &AssembledPrompt| bases(&made.layout_state) > bases(&snapshot.layout_state);
    if lays_base(&whole)
        && let Some(described) = snapshot.described_for_fold()
    {
        let folding = arrange_and_adapt(&described, layout, target, texts, render_cache);
        if lays_base(&folding) {
            whole = folding;
        }
    }
    if whole.measured.total() <= limit {
        return Ok(whole);
    }
    // A fold drops outdated copies; often that is enough.
    let fold = snapshot.fold.or(Some(FoldReason::WindowFull));
    let described = snapshot.described_for_fold().unwrap_or_else(|| snapshot.clone());
    let mut smaller = Snapshot { fold, ..described };
    let mut assembled = arrange_and_adapt(&smaller, layout, target, texts, render_cache);
    let mut left_out = Vec::new();
    while assembled.measured.total() > limit {
        let excess = assembled.measured.total() - limit;
        if !window::drop_some_context(&mut smaller, excess, render_cache, &mut left_out) {
            let (tokens, model) = (assembled.measured.total(), target.model.id.clone());
            return Err(AssembleError::TooLong { tokens, model, limit });
        }
        assembled = arrange_and_adapt(&smaller, layout, target, texts, render_cache);
    }
    assembled.prompt.left_out.extend(left_out);
    Ok(assembled)
}

/// Arranges the prompt, and once more if reasoning in it turns out to be stale. Where reasoning is
/// left out decides the blocks and breakpoints of a layout, so it cannot be taken out afterwards.
fn arrange_and_adapt(
    snapshot: &Snapshot,
    layout: LayoutName,
    target: &Target,
    texts: &PromptTexts,
    render_cache: &RenderCache,
) -> AssembledPrompt {
    let arrange = |input: &LayoutInput<'_>| layout.layout().arrange(input);
    let once = |snapshot: &Snapshot| arrange_once(snapshot, layout, target, texts, render_cache, arrange);
    let assembled = once(snapshot);
    if !target.model.binding.is_bound() {
        return assembled;
    }
    let (snapshot, assembled) = match relearn_stale_reasoning(snapshot, &assembled, once) {
        Some(relearned) => {
            let assembled = once(&relearned);
            (Cow::Owned(relearned), assembled)
        }
        None => (Cow::Borrowed(snapshot), assembled),
    };
    let stale = find_stale_reasoning(&assembled.prompt, &snapshot.answer_prefixes);
    if stale.is_empty() {
        return assembled;
    }
    let without = snapshot.without_reasoning_of(&stale);
    let fold = assembled.fold;
    let arrange = |input: &LayoutInput<'_>| layout.layout().arrange_without_reasoning(input, fold);
    arrange_once(&without, layout, target, texts, render_cache, arrange)
}

/// A conversation that was opened anew does not know whose reasoning an earlier process had left out.
/// Sent again, it would change the prompt, and the cache would be taken for lost. The snapshot that
/// knows it, if that is so.
fn relearn_stale_reasoning(
    snapshot: &Snapshot,
    assembled: &AssembledPrompt,
    arrange: impl Fn(&Snapshot) -> AssembledPrompt,
) -> Option<Snapshot> {
    let seems_lost = assembled.fold.as_ref().is_some_and(|fold| fold.reason == FoldReason::CacheLost);
    if !seems_lost || snapshot.fold.is_some() {
        return None;
    }
    let unfolded = arrange(&Snapshot { keep: KeepLevel::All, ..snapshot.clone() });
    let stale = find_stale_reasoning(&unfolded.prompt, &snapshot.answer_prefixes);
    (!stale.is_empty()).then(|| snapshot.without_reasoning_of(&stale))
}

/// Lets the layout arrange the prompt, then adapts it to what the model and its provider take.
fn arrange_once(
    snapshot: &Snapshot,
    layout: LayoutName,
    target: &Target,
    texts: &PromptTexts,
    render_cache: &RenderCache,
    arrange: impl Fn(&LayoutInput<'_>) -> Arrangement,
) -> AssembledPrompt {
    let input = LayoutInput { snapshot, target, texts, render_cache };
    let Arrangement { mut prompt, layout_state, mut measured, fold } = arrange(&input);
    if ephemeral::append_texts(&mut prompt, &snapshot.ephemeral) {
        measured = None;
    }
    if !target.model.tools || prompt.tools.is_empty() {
        prompt = without_tools(&prompt, texts);
        measured = None;
    }
    if !target.model.vision {
        prompt = without_images(&prompt, texts);
        measured = None;
    }
    if snapshot.redactions.apply(&mut prompt) {
        measured = None;
    }
    let format = if snapshot.stands_alone { MarkerFormat::None } else { target.profile.markers };
    markers::adapt_breakpoints(&mut prompt, format);
    let dropped = images::limit_images(&mut prompt, texts);
    if target.profile.protocol.traits().alternating_roles {
        prompt.messages = merge_model_messages(prompt.messages);
    }
    let measured = measured.filter(|_| dropped == 0).unwrap_or_else(|| input.measure_prompt(&prompt));
    if layout.layout().drops_small_breakpoints() {
        let minimum = target.profile.cache.min_tokens as usize;
        markers::remove_small_breakpoints(&mut prompt, &measured, minimum);
    }
    let stale_reasoning = snapshot.stale_reasoning.clone();
    AssembledPrompt { prompt, measured, layout_state, layout, fold, stale_reasoning }
}
