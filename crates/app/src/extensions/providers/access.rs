//! [`ExtensionProvider`]: how requests reach a provider that an extension brought. It is asked for its key
//! before each request; the person has allowed where the key comes from and where it goes.

use std::sync::{Arc, Weak};

use hardpan_agent::ApprovalRequest;
use hardpan_agent::approval::EXTENSION_KEYS;
use hardpan_context::Target;
use hardpan_models::ProviderProfile;
use hardpan_providers::{ApiKey, Endpoint, HttpTransport, Transport, mask_url, url_host};
use hardpan_tools::CallSubject;
use serde_json::{Value, json};

use super::super::host::ExtensionHost;
use super::super::permissions::HandedKey;
use super::login::LoginStore;
use super::row::key_variable;
use super::script_server::ScriptServer;
use super::signed_transport::SignedTransport;
use crate::approval::GrantTime;
use crate::provider_route::{ProviderRoute, RouteError};
use crate::settings::{KeySource, Settings};

/// A provider that an extension brought.
pub struct ExtensionProvider {
    id: String,
    host: Weak<ExtensionHost>,
    /// What the extension gave to `registerProvider`, without its functions.
    config: Value,
    key: KeyOrigin,
    headers: Vec<(String, HeaderValue)>,
    pub(super) logins: Option<LoginStore>,
    /// One refresh of a login at a time.
    pub(super) refreshing: tokio::sync::Mutex<()>,
}

/// Where the key comes from, besides a login.
enum KeyOrigin {
    /// The extension names none.
    Unnamed,
    /// A variable of the environment.
    Variable(String),
    /// It stands in the extension: servers on the own machine take anything.
    Given(String),
}

enum HeaderValue {
    Variable(String),
    Given(String),
}

impl ExtensionProvider {
    /// The provider that the extension described; a sentence about what is wrong with it.
    pub fn new(host: &Arc<ExtensionHost>, id: &str, config: &Value) -> Result<Self, String> {
        let key = match config["apiKey"].as_str() {
            None | Some("") => KeyOrigin::Unnamed,
            Some(command) if command.starts_with('!') => {
                return Err(
                    "apiKey is a command, and keys come from no commands here: name a variable".into()
                );
            }
            Some(key) => match key_variable(key) {
                Some(name) => KeyOrigin::Variable(name.to_owned()),
                None => KeyOrigin::Given(key.to_owned()),
            },
        };
        let header = |(name, value): (&String, &Value)| {
            let value = value.as_str().ok_or_else(|| format!("the header {name} must be a text"))?;
            // A word in capitals may be a value as well.
            let is_set = |name: &&str| value.starts_with('$') || std::env::var_os(name).is_some();
            let value = match key_variable(value).filter(is_set) {
                Some(name) => HeaderValue::Variable(name.to_owned()),
                None => HeaderValue::Given(value.to_owned()),
            };
            Ok::<_, String>((name.clone(), value))
        };
        let headers = config["headers"].as_object().into_iter().flatten().map(header);
        let headers = headers.collect::<Result<_, _>>()?;
        let logins = config["login"].is_object().then(|| LoginStore::new(host, id)).flatten();
        Ok(ExtensionProvider {
            id: id.to_owned(),
            host: Arc::downgrade(host),
            config: config.clone(),
            key,
            headers,
            logins,
            refreshing: tokio::sync::Mutex::default(),
        })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// The extension that brought it, if it still does.
    pub fn host(&self) -> Result<Arc<ExtensionHost>, String> {
        let brings =
            |host: &Arc<ExtensionHost>| host.setting.providers.provider_of(host.owner(), &self.id).is_some();
        let gone = || RouteError::ProviderGone { provider: self.id.clone() }.to_string();
        self.host.upgrade().filter(brings).ok_or_else(gone)
    }

    /// The protocol under the extension's own name for it.
    pub fn api(&self) -> Option<&str> {
        self.config["api"].as_str()
    }

    /// What it is called where people log in to it; none if they cannot.
    pub fn login_name(&self) -> Option<&str> {
        self.config["login"]["name"].as_str()
    }

    /// The description with other models.
    pub fn described_with(&self, models: &Value) -> Value {
        let mut config = self.config.clone();
        config["models"] = models.clone();
        config
    }

    /// Whether the extension answers by itself.
    fn answers(&self) -> bool {
        self.config["answers"].as_bool() == Some(true)
    }

    /// Whether the person has logged in.
    pub fn is_logged_in(&self) -> bool {
        self.logins.as_ref().is_some_and(|logins| logins.read().is_some())
    }

    /// Whether the simulator would answer, because there is no key.
    pub fn is_simulated(&self, target: &Target, settings: &Settings) -> bool {
        let needs_nothing =
            self.answers() || matches!(self.key, KeyOrigin::Given(_)) || self.login_name().is_some();
        !needs_nothing && ProviderRoute::is_simulated(target, settings)
    }

    /// How a request reaches it.
    pub fn route(
        self: &Arc<Self>,
        target: &Target,
        settings: &Settings,
        session: Option<&str>,
    ) -> Result<ProviderRoute, RouteError> {
        if self.answers() {
            let endpoint = Endpoint { base_url: target.profile.base_url.clone(), ..Endpoint::default() };
            let transport: Arc<dyn Transport> = {
                let session = session.map(str::to_owned);
                Arc::new(ScriptServer::new(self.clone(), target.clone(), session))
            };
            return Ok(ProviderRoute {
                transport,
                endpoint,
                simulated: false,
                unusual: None,
                reports_true_usage: false,
            });
        }
        if self.is_simulated(target, settings) {
            return Ok(ProviderRoute::simulated());
        }
        // Without variables of a key, no key is missed.
        let wire = ProviderProfile { key_env: Vec::new(), ..target.profile.clone() };
        let mut route = ProviderRoute::to_provider(&target.provider, &wire, settings, session)?;
        let given = match &self.key {
            KeyOrigin::Given(key) => Some(ApiKey::new(key)),
            KeyOrigin::Unnamed | KeyOrigin::Variable(_) => settings.key(&target.provider, &target.profile)?,
        };
        if let Some(key) = given.as_ref().filter(|_| self.has_auth_header()) {
            route.endpoint.headers.push(("authorization".into(), key.bearer()));
        }
        let headers = self.headers.iter().filter_map(|(name, value)| Some((name.clone(), value.read()?)));
        route.endpoint.headers.extend(headers);
        let has_key = given.is_some();
        route.endpoint.key = given;
        let proxy = settings.config.providers.get(&target.provider).and_then(|config| config.proxy.clone());
        let http = HttpTransport::new(proxy.as_deref())?;
        route.transport = Arc::new(SignedTransport::new(self.clone(), target.clone(), has_key, http));
        Ok(route)
    }

    /// Whether requests carry their key in the header `authorization`.
    pub(super) fn has_auth_header(&self) -> bool {
        self.config["authHeader"].as_bool() == Some(true)
    }

    /// The keys that a request carries, and that the person did not put into the extension. `target`: where
    /// the request goes, if Hardpan sends it.
    fn handed_keys(&self, target: Option<(&str, &ProviderProfile)>, settings: &Settings) -> Vec<HandedKey> {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let of_key = match (&self.key, target) {
            (KeyOrigin::Given(_), _) | (KeyOrigin::Unnamed, None) => None,
            (KeyOrigin::Variable(name), None) => is_set(name).then(|| HandedKey::Variable(name.clone())),
            // One that cannot be read is told of when the request is made.
            (_, Some((provider, profile))) => match settings.key_source(provider, profile).ok().flatten() {
                Some(KeySource::Environment(name)) => Some(HandedKey::Variable(name)),
                Some(KeySource::File) => Some(HandedKey::Stored(provider.to_owned())),
                None => None,
            },
        };
        let of_headers = self.headers.iter().filter_map(|(_, value)| match value {
            HeaderValue::Variable(name) if is_set(name) => Some(HandedKey::Variable(name.clone())),
            _ => None,
        });
        of_key.into_iter().chain(of_headers).collect()
    }

    /// Asks whether requests may go to the provider's address with the keys that they carry, unless that was
    /// answered. `target`: where the request goes, if Hardpan sends it.
    pub async fn allow(
        &self,
        host: &Arc<ExtensionHost>,
        target: Option<(&str, &ProviderProfile)>,
    ) -> Result<(), String> {
        let app = host.app().map_err(|error| error.0)?;
        let keys = self.handed_keys(target, &app.settings);
        let server = match target {
            Some((_, profile)) => {
                let server = url_host(&profile.base_url);
                Some(server.ok_or_else(|| format!("{} is no address", mask_url(&profile.base_url)))?)
            }
            None => None,
        };
        let is_away = server.as_ref().is_some_and(|server| !is_own_machine(server));
        if keys.is_empty() && !is_away {
            return Ok(());
        }
        let permissions = &host.permissions;
        let away = server.as_ref().filter(|_| is_away);
        if let Some(server) = away.filter(|server| !permissions.may_ask_for_host(server)) {
            return Err(format!("the extension's package.json does not declare {server} in \"network\""));
        }
        let named: Vec<String> = keys.iter().map(HandedKey::to_string).collect();
        let address = mask_url(target.map_or("", |(_, profile)| &*profile.base_url));
        let agent = Some(format!("extension {}", host.name()).into());
        let call_id = format!("extension:{}", host.name()).into();
        let question = match keys.is_empty() {
            true => ApprovalRequest {
                call_id,
                tool_name: "fetch".into(),
                args: json!({ "url": address }),
                subject: CallSubject::Url(address),
                claim: None,
                agent,
                handler_reason: None,
            },
            // No rule about addresses says that keys may go there.
            false => ApprovalRequest {
                call_id,
                tool_name: EXTENSION_KEYS.into(),
                args: json!({ "extension": host.name(), "provider": self.id, "keys": named, "address": address }),
                subject: CallSubject::ServerTool(host.name().to_owned()),
                claim: None,
                agent,
                handler_reason: None,
            },
        };
        let _pauses = host.pause_clocks();
        let _alone = host.setting.dialog.lock().await;
        let is_granted = away.is_none_or(|server| permissions.has_host(server))
            && permissions.has_keys(&keys, server.as_deref());
        let grant = host.setting.approver.approve_for_extension(&question, is_granted).await;
        let grant = grant.map_err(|reason| {
            let what = away.iter().map(|server| format!("{server} may not be reached"));
            let what = what.chain(named.iter().map(|key| format!("{key} may not be handed over")));
            let options = server.iter().map(|server| format!("--host {server}"));
            let options = options.chain(keys.iter().map(HandedKey::option));
            let (what, options): (Vec<String>, Vec<String>) = (what.collect(), options.collect());
            let name = host.name();
            format!(
                "{}: {reason}; `hardpan extensions allow {name} {}`",
                what.join(" and "),
                options.join(" ")
            )
        })?;
        match grant {
            GrantTime::Once => Ok(()),
            GrantTime::Conversation => {
                permissions.allow_provider_for_now(server.as_deref(), &keys);
                Ok(())
            }
            GrantTime::Always => {
                permissions.allow_provider(server.as_deref(), &keys).map_err(|error| error.to_string())
            }
        }
    }

    /// The key of a request that the extension itself sends: of the login, else of the variable that it
    /// named, if the person allows that.
    pub async fn key(self: &Arc<Self>, host: &Arc<ExtensionHost>) -> Result<Option<String>, String> {
        if let Some(key) = self.login_key(host).await? {
            return Ok(Some(key));
        }
        match &self.key {
            KeyOrigin::Unnamed => Ok(None),
            KeyOrigin::Given(key) => Ok(Some(key.clone())),
            KeyOrigin::Variable(name) => {
                let Some(value) = std::env::var(name).ok().filter(|value| !value.is_empty()) else {
                    return Ok(None);
                };
                self.allow(host, None).await?;
                Ok(Some(value))
            }
        }
    }
}

impl HeaderValue {
    /// None for a variable that is not set.
    fn read(&self) -> Option<String> {
        match self {
            HeaderValue::Given(value) => Some(value.clone()),
            HeaderValue::Variable(name) => std::env::var(name).ok(),
        }
    }
}

fn is_own_machine(host: &str) -> bool {
    let is_loopback = host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    is_loopback || host.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_machine_is_known_by_its_address() {
        assert!(is_own_machine("::1") && is_own_machine("127.0.0.1") && is_own_machine("LocalHost"));
        assert!(!is_own_machine("127.0.0.1.evil.test") && !is_own_machine("10.0.0.1"));
    }
}
