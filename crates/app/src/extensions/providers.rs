//! The providers that extensions bring: their models become rows of the catalogue, and
//! [`ExtensionProvider`] knows how requests reach them.

mod access; // which key a request gets, and who has allowed it
mod answer; // what a script streams, as the answer of a server
mod login; // logins at such a provider
mod request; // a request, as a script reads it
mod row; // the entry of the catalogue
mod script_server; // ScriptServer: a transport whose server is a script
mod signed_transport; // SignedTransport: requests that are allowed first, and get a key

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hardpan_context::Target;
use hardpan_extensions::HostError;
use hardpan_models::Catalogue;
use serde_json::{Value, json};

pub use access::ExtensionProvider;
pub use login::{take_up_logins, withdraw_commands};

use super::host::ExtensionHost;
use super::{ExtensionOrigin, ExtensionSetting};

/// The providers that extensions registered, as rows of the catalogue.
#[derive(Default)]
pub struct ExtensionProviders {
    state: Mutex<ProviderState>,
}

#[derive(Default)]
struct ProviderState {
    by_id: BTreeMap<String, RegisteredProvider>,
    /// The catalogue with all of them; none if there are none.
    catalogue: Option<Arc<Catalogue>>,
    /// Ids of calls that are too long to be kept, by what is kept in their place.
    call_ids: BTreeMap<String, String>,
}

/// How many long ids of calls are known. The others stay as they are kept.
const MAX_CALL_IDS: usize = 20_000;

#[derive(Clone)]
struct RegisteredProvider {
    owner: Arc<str>,
    /// Its entry of `models.json`.
    row: Value,
    provider: Arc<ExtensionProvider>,
}

impl ProviderState {
    fn rebuild(&mut self, base: &Catalogue) -> Result<(), HostError> {
        let mut catalogue = base.clone();
        for registered in self.by_id.values() {
            let file = format!("extension {}", registered.owner);
            let merged = catalogue.with_user_file(&file, &registered.row.to_string());
            catalogue = merged.map_err(|error| HostError(error.to_string()))?;
        }
        self.catalogue = (!self.by_id.is_empty()).then(|| Arc::new(catalogue));
        Ok(())
    }
}

impl ExtensionProviders {
    fn state(&self) -> MutexGuard<'_, ProviderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The catalogue with the extensions' providers; none if they brought none.
    pub fn catalogue(&self) -> Option<Arc<Catalogue>> {
        self.state().catalogue.clone()
    }

    /// The model of this name, if its provider is an extension's.
    pub fn find(&self, provider: Option<&str>, model: &str) -> Option<Target> {
        let state = self.state();
        let named = provider.or_else(|| model.split_once('/').map(|(provider, _)| provider))?;
        if !state.by_id.contains_key(named) {
            return None;
        }
        Target::new(state.catalogue.as_deref()?, Some(named), model).ok()
    }

    /// The id under which a script's call is kept.
    fn keep_call_id(&self, id: &str) -> String {
        let kept = request::id_from_script(id);
        let mut state = self.state();
        if kept != id && state.call_ids.len() < MAX_CALL_IDS {
            state.call_ids.insert(kept.clone(), id.to_owned());
        }
        kept
    }

    /// The id that the script gave to a call.
    fn call_id(&self, kept: &str) -> String {
        self.state().call_ids.get(kept).cloned().unwrap_or_else(|| kept.to_owned())
    }

    /// The first model of a provider, if an extension brought it.
    pub fn first_model(&self, provider: &str) -> Option<String> {
        let state = self.state();
        state.by_id.get(provider)?.row["models"][0]["id"].as_str().map(str::to_owned)
    }

    /// The provider of this id, if an extension brought it.
    pub fn provider(&self, id: &str) -> Option<Arc<ExtensionProvider>> {
        self.state().by_id.get(id).map(|registered| registered.provider.clone())
    }

    fn owner(&self, id: &str) -> Option<Arc<str>> {
        self.state().by_id.get(id).map(|registered| registered.owner.clone())
    }

    /// The provider of this id, if this extension brought it.
    pub fn provider_of(&self, owner: &str, id: &str) -> Option<Arc<ExtensionProvider>> {
        let state = self.state();
        let registered = state.by_id.get(id).filter(|registered| &*registered.owner == owner)?;
        Some(registered.provider.clone())
    }

    /// Those that people can log in to, by their ids.
    pub fn with_login(&self) -> BTreeMap<String, Arc<ExtensionProvider>> {
        let state = self.state();
        let all = state.by_id.iter().filter(|(_, registered)| registered.provider.login_name().is_some());
        all.map(|(id, registered)| (id.clone(), registered.provider.clone())).collect()
    }

    fn add(&self, id: &str, registered: RegisteredProvider, base: &Catalogue) -> Result<(), HostError> {
        let mut state = self.state();
        let before = state.by_id.insert(id.to_owned(), registered);
        let built = state.rebuild(base);
        if built.is_err() {
            match before {
                Some(before) => state.by_id.insert(id.to_owned(), before),
                None => state.by_id.remove(id),
            };
            state.rebuild(base)?;
        }
        built
    }

    /// Takes away those of an extension; with a name, that one.
    pub fn remove(&self, owner: &str, name: Option<&str>, base: &Catalogue) -> Result<(), HostError> {
        let mut state = self.state();
        let before = state.by_id.len();
        state.by_id.retain(|id, by| &*by.owner != owner || name.is_some_and(|name| name != id));
        if state.by_id.len() == before {
            return Ok(());
        }
        state.rebuild(base)
    }

    /// The ids of those of an extension.
    pub fn names_of(&self, owner: &str) -> Vec<String> {
        let state = self.state();
        let own = state.by_id.iter().filter(|(_, by)| &*by.owner == owner);
        own.map(|(name, _)| name.clone()).collect()
    }

    /// Describes the models of a provider anew, as a login may.
    fn replace_models(
        &self,
        owner: &str,
        id: &str,
        models: &Value,
        base: &Catalogue,
    ) -> Result<(), HostError> {
        let registered = self.state().by_id.get(id).filter(|known| &*known.owner == owner).cloned();
        let Some(mut registered) = registered else { return Ok(()) };
        let described = registered.provider.described_with(models);
        registered.row = row::provider_row(id, &described).map_err(HostError)?;
        self.add(id, registered, base)
    }
}

/// `pi.registerProvider(name, config)`: an entry of `models.json` made of the published fields. A provider
/// that cannot be had is told of; the rest of the extension works without it.
pub fn register_provider(host: &Arc<ExtensionHost>, arguments: &Value) {
    if let Err(error) = add_provider(host, arguments) {
        host.tell(error.0);
    }
}

fn add_provider(host: &Arc<ExtensionHost>, arguments: &Value) -> Result<(), HostError> {
    let (name, config) = (arguments["name"].as_str().unwrap_or_default(), &arguments["config"]);
    let refused = |why: &str| HostError(format!("its provider {name} is left out: {why}"));
    let answers = config["answers"].as_bool() == Some(true);
    let setting: &ExtensionSetting = &host.setting;
    let is_known = setting.catalogue.provider(name).is_ok();
    if host.origin() == ExtensionOrigin::Project {
        if !answers {
            let why = "a project's extension cannot name addresses, because your keys would go there";
            return Err(refused(why));
        }
        if is_known {
            return Err(refused("a project's extension cannot take the place of a provider"));
        }
    }
    if let Some(owner) = setting.providers.owner(name).filter(|owner| owner != host.owner()) {
        return Err(refused(&format!("the extension {owner} brings one of this name")));
    }
    let row = row::provider_row(name, config).map_err(|why| refused(&why))?;
    let provider = ExtensionProvider::new(host, name, config).map_err(|why| refused(&why))?;
    let registered = RegisteredProvider { owner: host.owner().clone(), row, provider: Arc::new(provider) };
    setting.providers.add(name, registered, &setting.catalogue)?;
    if is_known && let Some(address) = config["baseUrl"].as_str().filter(|_| !answers) {
        host.tell(format!("requests to {name}, and your key for it, go to {address}"));
    }
    if setting.providers.provider_of(host.owner(), name).is_some_and(|it| it.login_name().is_some()) {
        login::offer_commands(host)?;
    }
    Ok(())
}

/// What a script asks about the providers that it brought itself.
pub fn login_state(host: &ExtensionHost, arguments: &Value) -> Value {
    let id = arguments["provider"].as_str().unwrap_or_default();
    let provider = host.setting.providers.provider_of(host.owner(), id);
    json!(provider.is_some_and(|provider| provider.is_logged_in()))
}

/// The key of a provider that the asking extension brought.
pub async fn key_for_script(host: &Arc<ExtensionHost>, arguments: &Value) -> Result<Value, HostError> {
    let id = arguments["provider"].as_str().unwrap_or_default();
    let Some(provider) = host.setting.providers.provider_of(host.owner(), id) else { return Ok(Value::Null) };
    Ok(json!(provider.key(host).await.map_err(HostError)?))
}
