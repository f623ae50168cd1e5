//! [`Target`]: the model that a request is for, and how its provider is spoken to.

use hardpan_models::{
    Catalogue, MarkerFormat, Model, ProviderProfile, ThinkingRequest, ThinkingSetting, UnknownName,
    Vocabulary,
};
use hardpan_prompt::{TokenFactor, validate::MIN_THINKING_TOKENS};

use crate::{AssembleError, FoldReason};

/// The model a request is for, and how its provider is spoken to.
#[derive(Clone, Debug)]
pub struct Target {
    /// The provider's id in the catalogue: `anthropic`.
    pub provider: String,
    /// How the provider is spoken to, for this model.
    pub profile: ProviderProfile,
    /// The model's entry in the catalogue: window, prices, what it can do.
    pub model: Model,
    /// The limit for the answer, in tokens; thinking counts towards it.
    pub max_tokens: u32,
    /// What our token counts are multiplied by to estimate the model's own.
    pub factor: TokenFactor,
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

    /// Whether a system message can add and remove tools in the middle of a conversation.
    pub fn takes_tool_changes(&self) -> bool {
        self.model.system_messages && self.model.tools
    }

    /// Whether the provider can search the web for the model.
    pub fn has_web_search(&self) -> bool {
        self.profile.web_search_plugin.is_some() || self.has_search_tool()
    }

    /// Whether the provider has a search tool of its own, whose blocks go back to it.
    pub fn has_search_tool(&self) -> bool {
        self.profile.web_search_price.is_some() && self.profile.protocol.traits().search_tool
    }

    /// What is lost of the cache of a request that was answered so many seconds ago by this model:
    /// everything if another model answers now or all entries have expired, else what was cached for a
    /// lifetime that is over. `None`: nothing.
    pub fn lost_cache(&self, provider: &str, model: &str, seconds: i64) -> Option<FoldReason> {
        let (short, long) = (self.profile.cache.lifetime, self.profile.long_lifetime());
        let is_over = |lifetime: Option<u32>| lifetime.is_some_and(|lifetime| seconds >= i64::from(lifetime));
        let is_same = provider == self.provider && model == self.model.id;
        match is_same {
            true if !is_over(short) => None,
            true if long.is_some() && !is_over(long) => Some(FoldReason::ShortCacheLost),
            true | false => Some(FoldReason::CacheLost),
        }
    }

    /// The vocabulary to count tokens with: the model's own where it is public, else o200k.
    pub fn vocabulary(&self) -> hardpan_prompt::Vocabulary {
        match self.model.vocabulary {
            Some(Vocabulary::Cl100k) => hardpan_prompt::Vocabulary::Cl100k,
            Some(Vocabulary::O200k) | None => hardpan_prompt::Vocabulary::O200k,
        }
    }

    /// What a request to this model says for a thinking setting.
    pub fn thinking_request(&self, setting: ThinkingSetting) -> ThinkingRequest {
        self.model.thinking.request(setting, self.max_tokens)
    }

    /// Checks that the answer has room for this much thinking.
    pub fn check_thinking(&self, setting: ThinkingSetting) -> Result<(), AssembleError> {
        match self.thinking_request(setting).thinking.budget() {
            Some(budget) if !(MIN_THINKING_TOKENS..self.max_tokens).contains(&budget) => {
                Err(AssembleError::Thinking { budget, max_tokens: self.max_tokens })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whether the provider understands cache breakpoints; if not, none are sent.
    pub fn has_markers(&self) -> bool {
        self.profile.markers != MarkerFormat::None
    }

    /// How many input tokens the window leaves once the answer has its room.
    pub fn max_input_tokens(&self) -> u32 {
        self.model.max_input_tokens(self.max_tokens)
    }
}
