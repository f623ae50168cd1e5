//! [`AssembledRequest`]: a request that is ready to be sent, and everything it was made from.

use std::sync::Arc;

use hardpan_context::{AssembleError, AssembledPrompt, Breakdown, RenderCache, Snapshot, Target};
use hardpan_models::ThinkingSetting;
use hardpan_prompt::validate::{Violation, validate};

use crate::gather::{GatherError, RequestInputs, collect_inputs};
use crate::notice::NoticeSink;
use crate::options::RequestOptions;
use crate::settings::Settings;
use crate::target::target_notices;

/// Why a request cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Its inputs cannot be gathered.
    #[error(transparent)]
    Gather(#[from] GatherError),
    /// It does not fit the model.
    #[error(transparent)]
    Assemble(#[from] AssembleError),
    /// It breaks a rule of the provider's.
    #[error(
        "the provider would reject this request. This is a bug in hardpan: please report it with the output of `hardpan snapshot`"
    )]
    Invalid(#[from] Violation),
}

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

/// Collects the inputs, assembles the prompt, and validates it. Sends notices about the model.
pub fn assemble(
    options: &RequestOptions,
    settings: &Arc<Settings>,
    notices: &Arc<dyn NoticeSink>,
) -> Result<AssembledRequest, RequestError> {
    let RequestInputs { snapshot, target, layout } = collect_inputs(options, settings, notices)?;
    // Nobody asked for what the file of a snapshot says about thinking.
    let is_asked = options.snapshot.is_none() || options.target.thinking.is_some();
    let thinking = if is_asked { snapshot.thinking } else { ThinkingSetting::default() };
    target_notices(settings, &target, thinking).into_iter().for_each(|notice| notices.notice(notice));
    let render_cache = RenderCache::new(target.vocabulary());
    let assembled = hardpan_context::assemble(&snapshot, layout, &target, &settings.texts, &render_cache)?;
    let rules = hardpan_providers::validation_rules(&target.profile, &target.model);
    validate(&assembled.prompt, &rules)?;
    Ok(AssembledRequest { assembled, snapshot, target, render_cache })
}
