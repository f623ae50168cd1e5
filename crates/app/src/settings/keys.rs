//! The providers' keys: from the environment, else from `keys.toml`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use hardpan_files::{RegularFile, UnreadableReason};
use hardpan_models::ProviderProfile;
use hardpan_providers::ApiKey;

use super::{Settings, SettingsError};

/// The largest file of keys, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// Where a key comes from. `Display` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// This variable.
    Environment(String),
    /// `keys.toml`.
    File,
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeySource::Environment(name) => f.write_str(name),
            KeySource::File => f.write_str("keys.toml"),
        }
    }
}

impl Settings {
    /// The provider's key: from the environment, else from `keys.toml` in the config folder.
    pub fn key(&self, provider: &str, wire: &ProviderProfile) -> Result<Option<ApiKey>, SettingsError> {
        Ok(self.find_key(provider, wire)?.map(|(key, _)| key))
    }

    /// Where the provider's key comes from; none if there is no key.
    pub fn key_source(
        &self,
        provider: &str,
        wire: &ProviderProfile,
    ) -> Result<Option<KeySource>, SettingsError> {
        Ok(self.find_key(provider, wire)?.map(|(_, source)| source))
    }

    fn find_key(
        &self,
        provider: &str,
        wire: &ProviderProfile,
    ) -> Result<Option<(ApiKey, KeySource)>, SettingsError> {
        let value = |name: &String| std::env::var(name).ok().filter(|key| !key.is_empty());
        let from_environment = wire.key_env.iter().find_map(|name| Some((value(name)?, name)));
        if let Some((key, name)) = from_environment {
            return Ok(Some((ApiKey::new(&key), KeySource::Environment(name.clone()))));
        }
        let stored = self.stored_keys()?;
        Ok(stored.get(provider).map(|key| (ApiKey::new(key), KeySource::File)))
    }

    /// Every key that is known, of any provider, for keeping them from commands.
    pub(crate) fn all_keys(&self) -> Vec<String> {
        self.keys_by_provider().into_iter().map(|(_, key)| key).collect()
    }

    /// The keys of `keys.toml`, by provider.
    fn stored_keys(&self) -> Result<BTreeMap<String, String>, SettingsError> {
        let Some(path) = self.user_folders.config.as_ref().map(|folder| folder.join("keys.toml")) else {
            return Ok(BTreeMap::new());
        };
        let file = match RegularFile::open(&path) {
            Err(UnreadableReason::Missing) => return Ok(BTreeMap::new()),
            file => file.map_err(|reason| unreadable(&path, reason))?,
        };
        check_private(&file, &path)?;
        let text = file.read_all(MAX_BYTES).map_err(|reason| unreadable(&path, reason))?;
        let text = String::from_utf8(text).map_err(|_| SettingsError::InvalidKeys { path: path.clone() })?;
        // The parser's own message would quote the line, and with it a key.
        toml::from_str(&text).map_err(|_| SettingsError::InvalidKeys { path })
    }

    /// All keys of this machine with the providers that they are for: those that no request and no
    /// log may contain.
    pub(crate) fn keys_by_provider(&self) -> Vec<(String, String)> {
        let mut keys: Vec<(String, String)> = self.stored_keys().unwrap_or_default().into_iter().collect();
        for provider in self.catalogue.providers() {
            let names = provider.profile.key_env.iter();
            let set = names.filter_map(|name| std::env::var(name).ok());
            keys.extend(set.map(|key| (provider.id.clone(), key)));
        }
        let trimmed = keys.into_iter().map(|(provider, key)| (provider, key.trim().to_owned()));
        let mut keys: Vec<(String, String)> = trimmed.filter(|(_, key)| !key.is_empty()).collect();
        keys.sort();
        keys.dedup_by(|a, b| a.1 == b.1);
        keys
    }
}

fn unreadable(path: &Path, reason: UnreadableReason) -> SettingsError {
    SettingsError::Unreadable { path: path.to_owned(), source: reason.into() }
}

/// Fails if others than the owner can read the file with the keys.
fn check_private(file: &RegularFile, path: &Path) -> Result<(), SettingsError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = file.metadata.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(SettingsError::KeysNotPrivate { path: path.to_owned() });
        }
    }
    Ok(())
}
