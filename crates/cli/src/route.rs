//! How a request gets to its provider, and what its bill teaches.

use std::sync::{Arc, LazyLock};

use anyhow::{Result, bail};
use hardpan_context::{Assembled, Memo, Target};
use hardpan_prompt::Factor;
use hardpan_providers::{Endpoint, Http, Transport, Usage};
use hardpan_simulator::{BASE_URL, Clock, Engine, InProcess, Keys, Signatures};

use crate::settings::Settings;

/// How a request gets to its provider.
pub struct Route {
    pub transport: Arc<dyn Transport>,
    pub endpoint: Endpoint,
    pub simulated: bool,
    /// Whether its bills tell how the provider counts: another server at an address that was set may count otherwise.
    pub teaches: bool,
    /// What the person should know about it.
    pub note: Option<String>,
}

impl Route {
    /// Over the network where there is a key or none is needed; else to the simulator within the process.
    pub fn choose(target: &Target, settings: &Settings, session: Option<&str>) -> Result<Self> {
        let (provider, wire) = (&target.provider, &target.wire);
        let config = settings.config.providers.get(provider).cloned().unwrap_or_default();
        let key = settings.key(provider, wire)?;
        if key.is_none() && !wire.key_env.is_empty() && config.base_url.is_none() {
            let key = wire.key_env.first().map_or("its key", |name| name.as_str());
            let note = format!(
                "no key for {provider}: the built-in simulator answers, without a language model. Set {key}, or add it to keys.toml."
            );
            return Ok(Route { note: Some(note), ..Route::simulated() });
        }
        let teaches = config.base_url.as_ref().is_none_or(|url| *url == wire.base_url);
        let base_url = config.base_url.unwrap_or_else(|| wire.base_url.clone());
        if !base_url.starts_with("https://") && !base_url.starts_with("http://") {
            bail!(
                "base_url of {provider}: \"{base_url}\" is no address such as https://host/v1; correct it in config.toml"
            );
        }
        let headers = config.headers.into_iter().collect();
        let session = session.map(str::to_owned);
        let endpoint = Endpoint { base_url, key, headers, extras: config.extras, session };
        let transport = Arc::new(Http::new(config.proxy.as_deref())?);
        Ok(Route { transport, endpoint, simulated: false, teaches, note: None })
    }

    fn simulated() -> Self {
        let endpoint = Endpoint { base_url: BASE_URL.to_owned(), ..Endpoint::default() };
        Route { transport: SIMULATOR.clone(), endpoint, simulated: true, teaches: false, note: None }
    }
}

/// One for the whole process: what it has cached, it has cached for every request of it.
static SIMULATOR: LazyLock<Arc<InProcess>> = LazyLock::new(|| {
    // A conversation begun with a real provider carries signatures that only that provider knows.
    let (keys, signatures) = (Keys::NotNeeded, Signatures::Unchecked);
    let engine = Engine::new(hardpan_simulator::Settings { keys, signatures, ..Default::default() });
    Arc::new(InProcess::new(Arc::new(engine), Clock::system()))
});

/// What the bill says about the model's tokens, where its vocabulary is not public.
pub fn learn_factor(target: &Target, assembled: &Assembled, memo: &Memo, usage: &Usage) -> Option<Factor> {
    if target.model.vocabulary.is_some() {
        return None;
    }
    let mut factor = target.factor;
    let counted = memo.counter.measure(&assembled.prompt).total() as u64;
    factor.learn(counted, usage.prompt());
    Some(factor)
}
