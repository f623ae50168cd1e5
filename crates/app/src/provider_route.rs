//! [`ProviderRoute`]: how a request reaches its provider, over the network or in the built-in
//! simulator; and [`learn_token_factor`], which compares our token count with the bill.

use std::sync::{Arc, LazyLock};

use anyhow::{Result, bail};
use hardpan_context::{AssembledPrompt, RenderCache, Target};
use hardpan_prompt::{TokenFactor, TokenUsage};
use hardpan_providers::{Endpoint, HttpTransport, Transport};
use hardpan_simulator::{BASE_URL, Clock, Engine, InProcessTransport, KeyPolicy, SignatureCheck};

use crate::settings::Settings;

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
    /// A message for the user, such as that the simulator answers.
    pub notice: Option<String>,
}

impl ProviderRoute {
    /// Chooses the network if there is a key or the provider needs none, else the simulator in
    /// this process.
    pub fn choose(target: &Target, settings: &Settings, session: Option<&str>) -> Result<Self> {
        let (provider, wire) = (&target.provider, &target.profile);
        let config = settings.config.providers.get(provider).cloned().unwrap_or_default();
        let key = settings.key(provider, wire)?;
        if key.is_none() && !wire.key_env.is_empty() && config.base_url.is_none() {
            let key = wire.key_env.first().map_or("its key", |name| name.as_str());
            let notice = format!(
                "no key for {provider}: the built-in simulator answers, not a language model. Set {key}, or add the key to keys.toml."
            );
            return Ok(ProviderRoute { notice: Some(notice), ..ProviderRoute::simulated() });
        }
        let reports_true_usage = config.base_url.as_ref().is_none_or(|url| *url == wire.base_url);
        let base_url = config.base_url.unwrap_or_else(|| wire.base_url.clone());
        if !base_url.starts_with("https://") && !base_url.starts_with("http://") {
            bail!(
                "base_url of {provider}: \"{base_url}\" is not an address such as https://host/v1; correct it in config.toml"
            );
        }
        let headers = config.headers.into_iter().collect();
        let session = session.map(str::to_owned);
        let endpoint = Endpoint { base_url, key, headers, extra_fields: config.extras, session };
        let transport = Arc::new(HttpTransport::new(config.proxy.as_deref())?);
        Ok(ProviderRoute { transport, endpoint, simulated: false, reports_true_usage, notice: None })
    }

    fn simulated() -> Self {
        let endpoint = Endpoint { base_url: BASE_URL.to_owned(), ..Endpoint::default() };
        ProviderRoute {
            transport: SIMULATOR.clone(),
            endpoint,
            simulated: true,
            reports_true_usage: false,
            notice: None,
        }
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
