//! [`ProviderRoute`]: how a request reaches its provider, over the network or in the built-in
//! simulator; and [`learn_token_factor`], which compares our token count with the bill.

use std::sync::{Arc, LazyLock};

use hardpan_context::{AssembledPrompt, RenderCache, Target};
use hardpan_models::ProviderProfile;
use hardpan_prompt::{TokenFactor, TokenUsage};
use hardpan_providers::{Endpoint, HttpTransport, Transport, TransportError, mask_url};
use hardpan_simulator::{BASE_URL, Clock, Engine, InProcessTransport, KeyPolicy, SignatureCheck};

use crate::notice::Notice;
use crate::settings::{BaseUrl, BaseUrlSource, Settings, SettingsError};

/// The transport and the address that a request goes to.
pub struct ProviderRoute {
    /// The network, or the simulator in this process.
    pub transport: Arc<dyn Transport>,
    /// Address, key and headers.
    pub endpoint: Endpoint,
    /// Whether the simulator answers.
    pub simulated: bool,
    /// The address, if it is not the provider's own.
    pub unusual: Option<BaseUrl>,
    /// Whether the reported usage is the provider's own count. False at another address:
    /// another server may count differently.
    pub reports_true_usage: bool,
}

/// Why a provider cannot be reached with the settings as they are.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RouteError {
    /// The address in the settings is none.
    #[error(
        "the address of {provider}, \"{base_url}\", does not begin with https:// or http://; correct it in {}",
        match given_by {
            BaseUrlSource::Environment(name) => name,
            BaseUrlSource::Settings | BaseUrlSource::Usual => "config.toml",
        }
    )]
    InvalidBaseUrl {
        /// The provider's id.
        provider: String,
        /// The address as given.
        base_url: String,
        /// Who gave it.
        given_by: BaseUrlSource,
    },
    /// An extension brought the provider, and does not any more.
    #[error(
        "the extension that brought {provider} does not bring it any more: choose another model with /model"
    )]
    ProviderGone {
        /// The provider's id.
        provider: String,
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
        ProviderRoute::to_provider(&target.provider, &target.profile, settings, session)
    }

    /// The same for a provider, whatever the model.
    pub fn to_provider(
        provider: &str,
        wire: &ProviderProfile,
        settings: &Settings,
        session: Option<&str>,
    ) -> Result<Self, RouteError> {
        let config = settings.config.providers.get(provider).cloned().unwrap_or_default();
        let key = settings.key(provider, wire)?;
        let address = settings.base_url(provider, wire);
        if key.is_none() && needs_key(wire, &address) {
            return Ok(ProviderRoute::simulated());
        }
        let BaseUrl { url: base_url, source } = address.clone();
        if !base_url.starts_with("https://") && !base_url.starts_with("http://") {
            return Err(RouteError::InvalidBaseUrl {
                provider: provider.to_owned(),
                base_url: mask_url(&base_url),
                given_by: source,
            });
        }
        let headers = config.headers.into_iter().collect();
        let session = session.map(str::to_owned);
        let endpoint = Endpoint { base_url, key, headers, extra_fields: config.extras, session };
        let transport = Arc::new(HttpTransport::new(config.proxy.as_deref())?);
        let reports_true_usage = address.is_usual();
        let unusual = Some(address).filter(|address| !address.is_usual());
        let unusual = unusual.map(|address| BaseUrl { url: mask_url(&address.url), ..address });
        Ok(ProviderRoute { transport, endpoint, simulated: false, unusual, reports_true_usage })
    }

    /// Whether the simulator answers requests to a model, because there is no key.
    pub fn is_simulated(target: &Target, settings: &Settings) -> bool {
        let has_key = settings.key(&target.provider, &target.profile).is_ok_and(|key| key.is_some());
        !has_key && needs_key(&target.profile, &settings.base_url(&target.provider, &target.profile))
    }

    /// What the user should know about this route to `target`: that the simulator answers, or that
    /// requests and key go to another address than usual.
    pub fn notice(&self, target: &Target) -> Option<Notice> {
        let provider = target.provider.clone();
        if self.simulated {
            let key_variable = target.profile.key_env.first().cloned();
            return Some(Notice::SimulatorAnswers { provider, key_variable });
        }
        let address = self.unusual.clone()?;
        Some(Notice::OtherAddress { provider, address, with_key: self.endpoint.key.is_some() })
    }

    /// The simulator in this process.
    pub fn simulated() -> Self {
        let endpoint = Endpoint { base_url: BASE_URL.to_owned(), ..Endpoint::default() };
        ProviderRoute {
            transport: SIMULATOR.clone(),
            endpoint,
            simulated: true,
            unusual: None,
            reports_true_usage: false,
        }
    }
}

/// Whether a provider at this address answers only those with a key.
fn needs_key(wire: &ProviderProfile, address: &BaseUrl) -> bool {
    !wire.key_env.is_empty() && address.is_usual()
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
