//! [`AssembledRequest`]: a request that is ready to be sent, and everything it was made from.

use std::path::Path;

use anyhow::{Context, Result};
use hardpan_context::{
    AssembledPrompt, Breakdown, PromptTexts, RenderCache, Snapshot, Target, without_images, without_tools,
};
use hardpan_prompt::{Prompt, validate::validate};
use hardpan_providers::{FailureKind, PromptFallbacks, ProviderError};

use crate::gather::{self, RequestInputs, collect_inputs};
use crate::options::RequestOptions;
use crate::settings::Settings;
use crate::text;

/// A request that is ready to be sent, with everything that it was assembled from.
pub struct AssembledRequest {
    /// The prompt, with the layout's next state.
    pub assembled: AssembledPrompt,
    /// What the prompt was assembled from.
    pub snapshot: Snapshot,
    /// The model that the request is for.
    pub target: Target,
    /// Rendered texts and token counts.
    pub render_cache: RenderCache,
}

impl AssembledRequest {
    /// The bytes of the request's body.
    pub fn body(&self) -> Vec<u8> {
        hardpan_providers::encode(&self.assembled.prompt, &self.target.profile)
    }

    /// Where each block stands in the body, such as `messages[0].content[1]`.
    pub fn addresses(&self) -> Vec<String> {
        hardpan_providers::block_addresses(&self.assembled.prompt, &self.target.profile)
    }

    /// What fills the context window, and what it costs.
    pub fn breakdown(&self) -> Breakdown {
        let mut breakdown = Breakdown::new(&self.assembled, &self.snapshot, &self.target, &self.render_cache);
        let addresses = self.addresses();
        for (marked, breakpoint) in breakdown.breakpoints.iter_mut().zip(self.assembled.prompt.breakpoints())
        {
            marked.block.clone_from(&addresses[breakpoint.block]);
        }
        breakdown
    }
}

/// Collects the inputs, assembles the prompt, and validates it.
pub fn assemble(options: &RequestOptions, settings: &Settings) -> Result<AssembledRequest> {
    let RequestInputs { snapshot, target, layout } = collect_inputs(options, settings)?;
    let render_cache = RenderCache::new(target.vocabulary());
    let assembled = hardpan_context::assemble(&snapshot, layout, &target, &settings.texts, &render_cache)?;
    let rules = hardpan_providers::validation_rules(&target.profile, target.model.prefill);
    validate(&assembled.prompt, &rules).context(
        "the provider would reject this request. This is a bug in hardpan: please report it with the output of `hardpan snapshot`",
    )?;
    Ok(AssembledRequest { assembled, snapshot, target, render_cache })
}

/// Loads the settings for a folder, and prints the notes about them on standard error.
pub fn load_settings(dir: Option<&Path>) -> Result<Settings> {
    let settings = Settings::load(&hardpan_workspace::find_project_root(&gather::working_folder(dir)?))?;
    for note in &settings.notes {
        eprintln!("hardpan: {}", text::safe(note));
    }
    Ok(settings)
}

/// Names similar models of the provider in the error for a model that is not available. Hardpan
/// never switches to another model by itself.
pub fn suggest_other_models(
    error: ProviderError,
    request: &AssembledRequest,
    settings: &Settings,
) -> anyhow::Error {
    let unavailable = error.failure == FailureKind::ModelUnavailable;
    let error = anyhow::Error::from(error);
    if !unavailable {
        return error;
    }
    let model = &request.target.model;
    let others = settings
        .catalogue
        .models()
        .filter(|other| other.provider == model.provider && other.deprecated.is_none());
    let nearest = hardpan_models::nearest(
        &model.id,
        others.map(|other| other.id.as_str()).filter(|id| *id != model.id),
    );
    if nearest.is_empty() {
        error
    } else {
        anyhow::anyhow!("{error}. Similar models of {}: {}", model.provider, nearest.join(", "))
    }
}

/// Rewrites a prompt for models without tools or images, with the texts in use.
pub struct TextFallbacks<'a> {
    /// The user's texts for such models.
    pub texts: &'a PromptTexts,
}

impl PromptFallbacks for TextFallbacks<'_> {
    fn without_tools(&self, prompt: &Prompt) -> Prompt {
        without_tools(prompt, self.texts)
    }
    fn without_images(&self, prompt: &Prompt) -> Prompt {
        without_images(prompt, self.texts)
    }
}
