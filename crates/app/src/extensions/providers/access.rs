//! [`ExtensionProvider`]: how requests reach a provider that an extension brought. It is asked for its key
//! before each request; the person has allowed where the key comes from and where it goes.

use std::sync::{Arc, Weak};

use hardpan_agent::ApprovalRequest;
use hardpan_context::Target;
use hardpan_models::ProviderProfile;
use hardpan_providers::{ApiKey, Endpoint, HttpTransport, Transport};
use hardpan_tools::CallSubject;
use serde_json::{Value, json};

use super::super::host::ExtensionHost;
use super::gone;
use super::login::LoginStore;
use super::row::key_variable;
use super::script_server::ScriptServer;
use super::signed_transport::SignedTransport;
use crate::approval::GrantTime;
use crate::provider_route::{ProviderRoute, RouteError};
use crate::settings::Settings;

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

    /// The extension that brought it.
    pub fn host(&self) -> Result<Arc<ExtensionHost>, String> {
        gone(&self.host, &self.id)
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
        if self.config["authHeader"].as_bool() == Some(true)
            && let Some(key) = &given
        {
            route.endpoint.headers.push(("authorization".into(), key.bearer()));
        }
        let headers = self.headers.iter().filter_map(|(name, value)| Some((name.clone(), value.read()?)));
        route.endpoint.headers.extend(headers);
        let has_key = given.is_some();
        route.endpoint.key = given;
        let proxy = settings.config.providers.get(&target.provider).and_then(|config| config.proxy.clone());
        let http = HttpTransport::new(proxy.as_deref())?;
        route.transport = Arc::new(SignedTransport::new(self.clone(), target.profile.clone(), has_key, http));
        Ok(route)
    }

    /// The variables of the environment that a request hands over.
    fn variables<'a>(&'a self, profile: Option<&'a ProviderProfile>) -> Vec<&'a str> {
        let of_key = match (&self.key, profile) {
            (KeyOrigin::Variable(name), _) => vec![&**name],
            (KeyOrigin::Given(_), _) | (KeyOrigin::Unnamed, None) => Vec::new(),
            (KeyOrigin::Unnamed, Some(profile)) => profile.key_env.iter().map(String::as_str).collect(),
        };
        let of_headers = self.headers.iter().filter_map(|(_, value)| match value {
            HeaderValue::Variable(name) => Some(&**name),
            HeaderValue::Given(_) => None,
        });
        let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        of_key.into_iter().chain(of_headers).filter(is_set).collect()
    }

    /// Asks whether requests may go to the provider's address with what they carry, unless that was
    /// answered. `profile`: that of the model, if Hardpan sends the request.
    pub async fn allow(
        &self,
        host: &Arc<ExtensionHost>,
        profile: Option<&ProviderProfile>,
    ) -> Result<(), String> {
        let variables = self.variables(profile);
        let address = profile.map_or_else(
            || self.config["baseUrl"].as_str().unwrap_or_default(),
            |profile| &*profile.base_url,
        );
        let server = host_of(address);
        let reaches_out = profile.is_some() && !is_own_machine(server);
        if variables.is_empty() && !reaches_out {
            return Ok(());
        }
        let permissions = &host.permissions;
        if reaches_out && !permissions.may_ask_for_host(server) {
            return Err(format!("the extension's package.json does not declare {server} in \"network\""));
        }
        let keys: Vec<String> = variables.iter().map(|name| format!("${name}")).collect();
        let question = ApprovalRequest {
            call_id: format!("extension:{}", host.name()).into(),
            tool_name: "fetch".into(),
            args: json!({ "url": address, "key": keys.join(", ") }),
            subject: CallSubject::Url(address.to_owned()),
            claim: None,
            agent: Some(format!("extension {}", host.name()).into()),
        };
        let _pauses = host.pause_clocks();
        let _alone = host.setting.dialog.lock().await;
        let is_granted =
            (!reaches_out || permissions.has_host(server)) && permissions.has_variables(&variables);
        let remedy = || {
            let network = if reaches_out { format!(" --host {server}") } else { String::new() };
            let env: String = variables.iter().map(|name| format!(" --env {name}")).collect();
            format!("`hardpan extensions allow {}{network}{env}` allows it", host.name())
        };
        let grant = host.setting.approver.approve_for_extension(&question, is_granted).await;
        let what = if reaches_out { server.to_owned() } else { keys.join(" and ") };
        let action = if reaches_out { "reached" } else { "handed over" };
        match grant.map_err(|reason| format!("{what} may not be {action}: {reason}; {}", remedy()))? {
            GrantTime::Once => Ok(()),
            GrantTime::Conversation => {
                permissions.allow_provider_for_now(server, &variables);
                Ok(())
            }
            GrantTime::Always => {
                permissions.allow_provider(server, &variables).map_err(|error| error.to_string())
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

/// The host of an address, without its port.
fn host_of(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    match host.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
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
    fn the_host_of_an_address() {
        for (address, host) in [
            ("https://api.acme.test/v1", "api.acme.test"),
            ("http://user:word@api.acme.test:8080?x", "api.acme.test"),
            ("http://[::1]:80/v1", "::1"),
            ("localhost:1234", "localhost"),
        ] {
            assert_eq!(host_of(address), host);
        }
        assert!(is_own_machine("::1") && is_own_machine("127.0.0.1") && is_own_machine("LocalHost"));
        assert!(!is_own_machine("127.0.0.1.evil.test") && !is_own_machine("10.0.0.1"));
    }
}
