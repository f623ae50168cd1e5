//! [`LastRequest`]: the last request as it was sent. [`TextFallbacks`] finds out in which form.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hardpan_context::{
    AssembledPrompt, Breakdown, PromptTexts, RenderCache, Snapshot, Target, assemble, without_images,
    without_newer_fields, without_tools,
};
use hardpan_prompt::{Prompt, PromptTokens};
use hardpan_providers::{Client, PromptFallbacks};

use crate::agent::{Agent, lock};
use crate::model_selection::ModelSelection;
use crate::spending::Spending;

/// The last request as it was sent: for breakdowns, pings and cost forecasts.
pub struct LastRequest {
    pub assembled: AssembledPrompt,
    pub snapshot: Snapshot,
    pub target: Target,
    pub render_cache: Arc<RenderCache>,
    pub spending: Option<Spending>,
    /// The prompt that was sent instead, if the model takes no tools or no images.
    pub fallback: Option<(Prompt, PromptTokens)>,
    /// What it was sent with.
    pub(crate) selection: ModelSelection,
    pub(crate) client: Arc<Client>,
    /// The provider's id of the answer before, if the request named it.
    pub(crate) previous_answer: Option<Arc<str>>,
    /// The body that a handler put in place of the prompt's own.
    pub(crate) payload: Option<Bytes>,
}

impl LastRequest {
    pub fn breakdown(&self) -> Breakdown {
        let with_fallback = self.fallback.clone().map(|(prompt, measured)| AssembledPrompt {
            prompt,
            measured,
            ..self.assembled.clone()
        });
        let assembled = with_fallback.as_ref().unwrap_or(&self.assembled);
        Breakdown::new(assembled, &self.snapshot, &self.target, &self.render_cache)
    }

    /// The prompt that was really sent, and its token counts.
    pub fn sent_prompt(&self) -> (&Prompt, &PromptTokens) {
        match &self.fallback {
            Some((prompt, measured)) => (prompt, measured),
            None => (&self.assembled.prompt, &self.assembled.measured),
        }
    }
}

/// Builds the fallback prompts for models without tools or images, and remembers the last one it
/// built: that one was sent.
pub(crate) struct TextFallbacks<'a> {
    texts: &'a PromptTexts,
    /// Plans the request again for a model that turns out to take no tools.
    replan: Option<Box<dyn Fn() -> Option<AssembledPrompt> + Send + Sync + 'a>>,
    replanned: Mutex<Option<AssembledPrompt>>,
    sent: Mutex<Option<Prompt>>,
}

impl<'a> TextFallbacks<'a> {
    pub fn new(texts: &'a PromptTexts) -> Self {
        TextFallbacks { texts, replan: None, replanned: Mutex::default(), sent: Mutex::default() }
    }

    /// The request as it was planned again, if the server turned out to take no tools.
    pub fn replanned(&self) -> Option<AssembledPrompt> {
        lock(&self.replanned).clone()
    }

    /// Takes the fallback that was sent, with its token counts; `None` if the prompt itself was.
    pub fn take_sent(&self, render_cache: &RenderCache, target: &Target) -> Option<(Prompt, PromptTokens)> {
        let prompt = lock(&self.sent).take()?;
        let measured = render_cache.counter.measure(&prompt).scaled(&target.factor);
        Some((prompt, measured))
    }
}

impl PromptFallbacks for TextFallbacks<'_> {
    fn without_tools(&self, prompt: &Prompt) -> Prompt {
        let replanned = self.replan.as_ref().and_then(|replan| replan());
        let form = match &replanned {
            Some(replanned) if replanned.prompt.has_images() && !prompt.has_images() => {
                without_images(&replanned.prompt, self.texts)
            }
            Some(replanned) => replanned.prompt.clone(),
            None => without_tools(prompt, self.texts),
        };
        *lock(&self.replanned) = replanned;
        *lock(&self.sent) = Some(form.clone());
        form
    }
    fn without_images(&self, prompt: &Prompt) -> Prompt {
        let form = without_images(prompt, self.texts);
        *lock(&self.sent) = Some(form.clone());
        form
    }
    fn without_newer_fields(&self, prompt: &Prompt) -> Prompt {
        let form = without_newer_fields(prompt);
        *lock(&self.sent) = Some(form.clone());
        form
    }
}

impl Agent {
    /// The fallbacks of a planned request. A server that turns out to take no tools gets the request
    /// that a model without tools would get: no tools in the system prompt, and edit blocks.
    pub(crate) fn text_fallbacks<'a>(
        &'a self,
        selection: &'a ModelSelection,
        snapshot: &'a Snapshot,
        render_cache: &'a RenderCache,
    ) -> TextFallbacks<'a> {
        let texts = &*self.inner.setup.texts;
        let replan = move || {
            let mut target = selection.target.clone();
            target.model.tools = false;
            let mut snapshot = snapshot.clone();
            snapshot.system.edit_blocks = self.uses_edit_blocks(snapshot.system.edit_blocks, false);
            assemble(&snapshot, selection.layout, &target, texts, render_cache).ok()
        };
        TextFallbacks { replan: Some(Box::new(replan)), ..TextFallbacks::new(texts) }
    }
}
