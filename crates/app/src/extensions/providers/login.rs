//! Logins at providers of extensions: `/login` and `/logout`, where what a login gave is kept, and how it is
//! renewed. The extension does the talking; Hardpan keeps the result, for its owner only.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hardpan_agent::{ArgumentChoice, Command, CommandError};
use hardpan_context::FoundSecret;
use hardpan_extensions::{CallKind, HostError};
use hardpan_files::{FileLock, RegularFile, write_private_file};
use hardpan_prompt::Hash;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::host::ExtensionHost;
use super::ExtensionProvider;
use crate::clock::now;
use crate::conversation_app::ConversationApp;

/// The largest file of a login, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// How long another process may take to renew a login.
const LOCK_TIME: Duration = Duration::from_secs(40);

/// How long before its end a login is renewed, in milliseconds.
const MARGIN_MS: f64 = 10_000.0;

/// Where the login at a provider is kept. It is that of one extension, in one folder: another one of its
/// name does not get it.
pub struct LoginStore {
    path: PathBuf,
    extension: String,
    folder: PathBuf,
    provider: String,
}

/// A login as it is kept.
#[derive(Serialize, Deserialize)]
struct StoredLogin {
    extension: String,
    folder: PathBuf,
    provider: String,
    /// What `login` of the extension returned.
    credentials: Value,
}

impl LoginStore {
    /// None without a config folder.
    pub fn new(host: &ExtensionHost, provider: &str) -> Option<Self> {
        let (extension, folder) = (host.name().to_owned(), host.root().to_owned());
        let owner = Hash::of(format!("{extension}\0{}", folder.display()).as_bytes()).to_string();
        let owner: String = owner.chars().filter(char::is_ascii_alphanumeric).take(12).collect();
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
        let name: String = provider.chars().map(plain).collect();
        let path = host.setting.logins.as_ref()?.join(format!("{name}-{owner}.json"));
        Some(LoginStore { path, extension, folder, provider: provider.to_owned() })
    }

    /// What the login gave; none if there is none.
    pub fn read(&self) -> Option<Value> {
        let bytes = RegularFile::open(&self.path).ok()?.read_all(MAX_BYTES).ok()?;
        let login: StoredLogin = serde_json::from_slice(&bytes).ok()?;
        let owner = (&*login.extension, &*login.folder, &*login.provider);
        (owner == (&*self.extension, &*self.folder, &*self.provider)).then_some(login.credentials)
    }

    async fn lock(&self) -> Result<FileLock, String> {
        let path = self.path.with_extension("lock");
        let lock = tokio::task::spawn_blocking(move || FileLock::acquire(&path, LOCK_TIME)).await;
        lock.map_err(|error| error.to_string())?.map_err(|error| self.failed(&error))
    }

    fn write(&self, _lock: &FileLock, credentials: &Value) -> Result<(), String> {
        let login = StoredLogin {
            extension: self.extension.clone(),
            folder: self.folder.clone(),
            provider: self.provider.clone(),
            credentials: credentials.clone(),
        };
        let json = serde_json::to_vec(&login).map_err(|error| error.to_string())?;
        write_private_file(&self.path, &json).map_err(|error| self.failed(&error))
    }

    /// Forgets the login; false if there was none.
    async fn remove(&self) -> Result<bool, String> {
        let _lock = self.lock().await?;
        match std::fs::remove_file(&self.path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn failed(&self, error: &std::io::Error) -> String {
        format!("the login in {} cannot be changed: {error}", self.path.display())
    }
}

/// Words in the names of fields that hold secrets.
const SECRET_FIELDS: [&str; 7] = ["access", "refresh", "token", "secret", "key", "password", "credential"];

/// The texts of a login that no request may contain: those of fields whose names, or the names of what they
/// are in, tell of a secret.
fn secrets_of(provider: &str, credentials: &Value) -> Vec<FoundSecret> {
    fn collect(value: &Value, is_secret: bool, found: &mut Vec<String>) {
        match value {
            Value::String(text) if is_secret => found.push(text.clone()),
            Value::Array(items) => items.iter().for_each(|item| collect(item, is_secret, found)),
            Value::Object(fields) => fields.iter().for_each(|(name, field)| {
                let name = name.to_lowercase();
                let is_named = SECRET_FIELDS.iter().any(|word| name.contains(word));
                collect(field, is_secret || is_named, found);
            }),
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(credentials, false, &mut found);
    let secret = |value| FoundSecret { kind: format!("login at {provider}").into(), value };
    found.into_iter().map(secret).collect()
}

fn is_ending(credentials: &Value) -> bool {
    let now = now().as_millisecond() as f64;
    credentials["expires"].as_f64().is_some_and(|expires| expires - MARGIN_MS <= now)
}

impl ExtensionProvider {
    async fn ask(&self, host: &ExtensionHost, what: &str, credentials: &Value) -> Result<Value, String> {
        let payload = json!({ "what": what, "credentials": credentials }).to_string();
        host.call(CallKind::Provider, self.id(), payload).await.map_err(|error| error.to_string())
    }

    /// The key of the login, which is renewed if it has ended; none if nobody is logged in.
    pub async fn login_key(self: &Arc<Self>, host: &Arc<ExtensionHost>) -> Result<Option<String>, String> {
        let Some(credentials) = self.logins.as_ref().and_then(LoginStore::read) else { return Ok(None) };
        let credentials = if is_ending(&credentials) {
            let (provider, host) = (self.clone(), host.clone());
            // In a task of its own: a request that is cancelled must not lose a refresh token that was
            // just replaced.
            let renewed = tokio::spawn(async move { provider.renew(&host).await });
            match renewed.await.map_err(|error| error.to_string())?? {
                Some(credentials) => credentials,
                None => return Ok(None),
            }
        } else {
            credentials
        };
        let key = self.ask(host, "key", &credentials).await?;
        Ok(key.as_str().map(str::to_owned))
    }

    async fn renew(&self, host: &Arc<ExtensionHost>) -> Result<Option<Value>, String> {
        let _one = self.refreshing.lock().await;
        let Some(store) = &self.logins else { return Ok(None) };
        let lock = store.lock().await?;
        // Another process may have renewed it, or the person logged in again.
        let Some(credentials) = store.read() else { return Ok(None) };
        if !is_ending(&credentials) {
            return Ok(Some(credentials));
        }
        let renewed = self.ask(host, "refresh", &credentials).await.map_err(|error| {
            let login = self.login_name().unwrap_or_default();
            format!("the login at {login} cannot be renewed: {error}; type /login {}", self.id())
        })?;
        let renewed = checked(renewed)?;
        store.write(&lock, &renewed)?;
        host.setting.secrets.add(secrets_of(self.id(), &renewed));
        Ok(Some(renewed))
    }

    /// Lets the extension describe its models for the login.
    async fn update_models(&self, host: &ExtensionHost, credentials: &Value) -> Result<(), String> {
        let models = self.ask(host, "models", credentials).await?;
        if models.is_array() {
            let setting = &host.setting;
            let replaced =
                setting.providers.replace_models(host.owner(), self.id(), &models, &setting.catalogue);
            replaced.map_err(|error| error.0)?;
        }
        Ok(())
    }
}

fn checked(credentials: Value) -> Result<Value, String> {
    if credentials.is_object() {
        Ok(credentials)
    } else {
        Err("the extension returned no credentials".into())
    }
}

/// Logs in at a provider of an extension; the extension asks what it needs to know.
pub async fn log_in(app: &ConversationApp, id: &str) -> Result<String, String> {
    let provider = find(app, id)?;
    let host = provider.host()?;
    let credentials = checked(provider.ask(&host, "login", &Value::Null).await?)?;
    host.setting.secrets.add(secrets_of(id, &credentials));
    let store = provider.logins.as_ref().ok_or("there is no config folder to keep a login in: set HOME")?;
    store.write(&store.lock().await?, &credentials)?;
    provider.update_models(&host, &credentials).await?;
    Ok(format!("logged in at {}; /model chooses one of its models", provider.login_name().unwrap_or(id)))
}

/// Forgets the login at a provider of an extension.
pub async fn log_out(app: &ConversationApp, id: &str) -> Result<String, String> {
    let provider = find(app, id)?;
    let was_there = match &provider.logins {
        Some(logins) => logins.remove().await?,
        None => false,
    };
    let name = provider.login_name().unwrap_or(id);
    Ok(if was_there { format!("logged out of {name}") } else { format!("nobody was logged in at {name}") })
}

fn find(app: &ConversationApp, id: &str) -> Result<Arc<ExtensionProvider>, String> {
    let mut all = app.extensions.providers.with_login();
    let found = match id {
        "" if all.len() == 1 => all.pop_first().map(|(_, only)| only),
        id => all.remove(id),
    };
    found.ok_or_else(|| {
        let names: Vec<String> = app.extensions.providers.with_login().into_keys().collect();
        format!("name one of: {}", names.join(", "))
    })
}

/// What a login that is there already changes, once the extension is loaded.
pub async fn take_up_logins(host: &Arc<ExtensionHost>) {
    let providers = &host.setting.providers;
    for id in providers.names_of(host.owner()) {
        let Some(provider) = providers.provider_of(host.owner(), &id) else { continue };
        let Some(credentials) = provider.logins.as_ref().and_then(LoginStore::read) else { continue };
        host.setting.secrets.add(secrets_of(&id, &credentials));
        if let Err(error) = provider.update_models(host, &credentials).await {
            host.tell(format!("the models of {id} are not those of the login: {error}"));
        }
    }
}

/// Registers `/login` and `/logout`, unless somebody has these names.
pub fn offer_commands(host: &ExtensionHost) -> Result<(), HostError> {
    let agent = host.agent()?;
    let setting = &host.setting;
    type Act =
        fn(Arc<ConversationApp>, String) -> futures_util::future::BoxFuture<'static, Result<String, String>>;
    let acts: [(&str, &str, Act); 2] = [
        ("login", "log in at a provider that an extension brings", |app, id| {
            Box::pin(async move { log_in(&app, &id).await })
        }),
        ("logout", "forget a login at a provider that an extension brings", |app, id| {
            Box::pin(async move { log_out(&app, &id).await })
        }),
    ];
    for (name, description, act) in acts {
        if agent.commands().contains_key(name) {
            continue;
        }
        let (app, providers) = (setting.app.clone(), setting.providers.clone());
        let command = Command::new(description, move |id, _| {
            let app = app.upgrade();
            async move {
                let app = app.ok_or(CommandError::Crashed)?;
                act(app, id.trim().to_owned()).await.map(Some).map_err(CommandError::failed)
            }
        });
        let command = command.completed_by(move |_| {
            let all = providers.with_login().into_iter().map(|(text, provider)| ArgumentChoice {
                text,
                detail: provider.login_name().unwrap_or_default().to_owned(),
            });
            std::future::ready(all.collect())
        });
        agent.add_command(name, command);
    }
    Ok(())
}

/// Takes the commands away once there is nothing to log in to.
pub fn withdraw_commands(host: &ExtensionHost) {
    if let Ok(agent) = host.agent()
        && host.setting.providers.with_login().is_empty()
    {
        // An extension may have a command of such a name.
        let commands = agent.commands();
        let is_ours = |name: &&str| commands.get(*name).is_some_and(|command| command.owner.is_none());
        ["login", "logout"].iter().filter(|name| is_ours(name)).for_each(|name| agent.remove_command(name));
    }
}
