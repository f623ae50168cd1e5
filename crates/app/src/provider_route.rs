//! [`ProviderRoute`]: how a request reaches its provider, over the network or in the built-in
//! simulator; and [`learn_token_factor`], which compares our token count with the bill.

use std::sync::{Arc, LazyLock};

use hardpan_context::{AssembledPrompt, RenderCache, Target};
use hardpan_prompt::{TokenFactor, TokenUsage};
use hardpan_providers::{Endpoint, HttpTransport, Transport, TransportError};
use hardpan_simulator::{BASE_URL, Clock, Engine, InProcessTransport, KeyPolicy, SignatureCheck};

use crate::notice::Notice;
use crate::settings::{Settings, SettingsError};

/// The transport and the address that a request goes to.
pub struct ProviderRoute {
    /// The network, or the simulator in this process.
    pub transport: Arc<dyn Transport>,
    /// Address, key and headers.
    pub endpoint: Endpoint,
    /// Whether the simulator answers.
    pub simulated: bool,
    /// Whether the reported usage is the provider's own count. False with a custom `base_url`:
    /// another server may count differently.
    pub reports_true_usage: bool,
}

/// Why a provider cannot be reached with the settings as they are.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RouteError {
    /// The address in the settings is none.
    #[error(
        "base_url of {provider}: \"{base_url}\" is not an address such as https://host/v1; correct it in config.toml"
    )]
    InvalidBaseUrl {
        /// The provider's id.
        provider: String,
        /// The address as configured.
        base_url: String,
    },
    /// The key cannot be read.
    #[error(transparent)]
    Key(#[from] SettingsError),
    /// The connection cannot be set up, because of the proxy in the settings, for example.
    #[error(transparent)]
    Transport(#[from] TransportError),
}

impl ProviderRoute {
    /// Chooses the network if there is a key or the provider needs none, else the simulator in
    /// this process.
    pub fn choose(target: &Target, settings: &Settings, session: Option<&str>) -> Result<Self, RouteError> {
        let (provider, wire) = (&target.provider, &target.profile);
        let config = settings.config.providers.get(provider).cloned().unwrap_or_default();
        let key = settings.key(provider, wire)?;
        if key.is_none() && !wire.key_env.is_empty() && config.base_url.is_none() {
            return Ok(ProviderRoute::simulated());
        }
        let reports_true_usage = config.base_url.as_ref().is_none_or(|url| *url == wire.base_url);
        let base_url = config.base_url.unwrap_or_else(|| wire.base_url.clone());
        if !base_url.starts_with("https://") && !base_url.starts_with("http://") {
            return Err(RouteError::InvalidBaseUrl { provider: provider.clone(), base_url });
        }
        let headers = config.headers.into_iter().collect();
        let session = session.map(str::to_owned);
        let endpoint = Endpoint { base_url, key, headers, extra_fields: config.extras, session };
        let transport = Arc::new(HttpTransport::new(config.proxy.as_deref())?);
        Ok(ProviderRoute { transport, endpoint, simulated: false, reports_true_usage })
    }

    /// What the user should know about this route to `target`: that the simulator answers.
    pub fn notice(&self, target: &Target) -> Option<Notice> {
        self.simulated.then(|| Notice::SimulatorAnswers {
            provider: target.provider.clone(),
            key_variable: target.profile.key_env.first().cloned(),
        })
    }

    /// The simulator in this process.
    pub fn simulated() -> Self {
        let endpoint = Endpoint { base_url: BASE_URL.to_owned(), ..Endpoint::default() };
        ProviderRoute { transport: SIMULATOR.clone(), endpoint, simulated: true, reports_true_usage: false }
    }
}

/// One simulator for the whole process, so that all of its requests share one prompt cache.
static SIMULATOR: LazyLock<Arc<InProcessTransport>> = LazyLock::new(|| {
    // A conversation that began with a real provider carries signatures that only it can check.
    let (keys, signatures) = (KeyPolicy::NotNeeded, SignatureCheck::Unchecked);
    let engine = Engine::new(hardpan_simulator::EngineSettings { keys, signatures, ..Default::default() });
    Arc::new(InProcessTransport::new(Arc::new(engine), Clock::system()))
});

/// The model's token factor, corrected by the usage of one request. None for a model whose
/// vocabulary is public, since its count is exact.
pub fn learn_token_factor(
    target: &Target,
    assembled: &AssembledPrompt,
    render_cache: &RenderCache,
    usage: &TokenUsage,
) -> Option<TokenFactor> {
    if target.model.vocabulary.is_some() {
        return None;
    }
    let mut factor = target.factor;
    let counted = render_cache.counter.measure(&assembled.prompt).total() as u64;
    factor.learn(counted, usage.prompt());
    Some(factor)
}
