//! The providers' keys: from the environment, else from `keys.toml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use hardpan_models::ProviderProfile;
use hardpan_providers::ApiKey;

use super::{Settings, SettingsError, read_optional};

impl Settings {
    /// The provider's key: from the environment, else from `keys.toml` in the config folder.
    pub fn key(&self, provider: &str, wire: &ProviderProfile) -> Result<Option<ApiKey>, SettingsError> {
        let from_environment =
            wire.key_env.iter().find_map(|name| std::env::var(name).ok().filter(|key| !key.is_empty()));
        if let Some(key) = from_environment {
            return Ok(Some(ApiKey::new(&key)));
        }
        let Some(path) = self.user_folders.config.as_ref().map(|folder| folder.join("keys.toml")) else {
            return Ok(None);
        };
        let Some(text) = read_optional(&path)? else { return Ok(None) };
        check_private(&path)?;
        // The parser's own message would quote the line, and with it a key.
        let keys: BTreeMap<String, String> =
            toml::from_str(&text).map_err(|_| SettingsError::InvalidKeys { path })?;
        Ok(keys.get(provider).map(|key| ApiKey::new(key)))
    }
}

/// Fails if others than the owner can read the file with the keys.
fn check_private(path: &Path) -> Result<(), SettingsError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(path)
            .map_err(|source| SettingsError::Unreadable { path: path.to_owned(), source })?
            .permissions()
            .mode();
        if mode & 0o077 != 0 {
            return Err(SettingsError::KeysNotPrivate { path: path.to_owned() });
        }
    }
    Ok(())
}
