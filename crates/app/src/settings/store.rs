//! What Hardpan itself writes into the user's settings: keys that were typed, and a choice that was
//! asked for. Everything else in the files stays as it is.

use std::io::Write;
use std::path::{Path, PathBuf};

use hardpan_files::create_private_folder;
use hardpan_mcp::{ServerConfig, ServerName};

use super::{SettingsError, UserFolders, server_table};

impl UserFolders {
    /// Stores a provider's key in `keys.toml`, which only the user can read. Returns the file.
    pub fn store_key(&self, provider: &str, key: &str) -> Result<PathBuf, SettingsError> {
        let path = self.config_file("keys.toml")?;
        let text = set_top_level(&read_or_empty(&path)?, provider, key);
        write_private(&path, &text)?;
        Ok(path)
    }

    /// Stores which provider to use in `config.toml`. Returns the file.
    pub fn store_provider(&self, provider: &str) -> Result<PathBuf, SettingsError> {
        let path = self.config_file("config.toml")?;
        let text = set_top_level(&read_or_empty(&path)?, "provider", provider);
        write_private(&path, &text)?;
        Ok(path)
    }

    /// Adds a server to `config.toml`. Returns the file.
    pub fn add_server(&self, name: &ServerName, config: &ServerConfig) -> Result<PathBuf, SettingsError> {
        let path = self.config_file("config.toml")?;
        let text = server_table::add_server(&read_or_empty(&path)?, name, config)?;
        write_private(&path, &text)?;
        Ok(path)
    }

    /// Takes a server out of `config.toml`. Returns the file.
    pub fn remove_server(&self, name: &ServerName) -> Result<PathBuf, SettingsError> {
        let path = self.config_file("config.toml")?;
        let text = server_table::remove_server(&read_or_empty(&path)?, name)?;
        write_private(&path, &text)?;
        Ok(path)
    }

    fn config_file(&self, name: &str) -> Result<PathBuf, SettingsError> {
        self.config.as_ref().map(|folder| folder.join(name)).ok_or(SettingsError::NoConfigFolder)
    }
}

/// Sets a string at the top level of a TOML text: replaces its line, else adds one at the beginning,
/// where no table has begun.
fn set_top_level(text: &str, name: &str, value: &str) -> String {
    let line = format!("{} = {}", toml_key(name), quoted(value));
    let is_table = |line: &&str| line.trim_start().starts_with('[');
    let is_same = |line: &str| {
        let key = line.split_once('=').map(|(key, _)| key.trim().trim_matches('"'));
        key == Some(name)
    };
    let top: Vec<&str> = text.lines().take_while(|line| !is_table(line)).collect();
    let mut lines: Vec<&str> = text.lines().collect();
    match top.iter().position(|line| is_same(line)) {
        Some(at) => lines[at] = &line,
        None => lines.insert(0, &line),
    }
    lines.join("\n") + "\n"
}

pub(super) fn toml_key(name: &str) -> String {
    let is_bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    if is_bare { name.to_owned() } else { quoted(name) }
}

/// A string as TOML has it: what JSON escapes, TOML escapes in the same way.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn read_or_empty(path: &Path) -> Result<String, SettingsError> {
    Ok(super::read_optional(path)?.unwrap_or_default())
}

/// Replaces a file as a whole, readable by its owner only. A link stays one: its target is replaced.
fn write_private(path: &Path, text: &str) -> Result<(), SettingsError> {
    let failed = |source| SettingsError::Unwritable { path: path.to_owned(), source };
    path.parent().map_or(Ok(()), create_private_folder).map_err(failed)?;
    let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut name = place.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let fresh = place.with_file_name(name);
    let write = || {
        let mut options = std::fs::OpenOptions::new();
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.write(true).create_new(true).open(&fresh)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&fresh, &place)
    };
    write().map_err(|error| {
        let _ = std::fs::remove_file(&fresh);
        failed(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_set_above_all_tables_and_the_rest_stays() {
        assert_eq!(set_top_level("", "provider", "openai"), "provider = \"openai\"\n");
        let text = "# mine\nlayout = \"tiers\"\n[limits]\nprovider = 3\n";
        assert_eq!(set_top_level(text, "provider", "xai"), format!("provider = \"xai\"\n{text}"));
        let again = set_top_level(&set_top_level(text, "provider", "xai"), "provider", "gemini");
        assert_eq!(again, format!("provider = \"gemini\"\n{text}"));
        assert_eq!(set_top_level("", "my provider", "a\"b"), "\"my provider\" = \"a\\\"b\"\n");
    }

    #[test]
    #[cfg(unix)]
    fn keys_are_stored_for_their_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let folders = UserFolders::below(folder.path());
        let path = folders.store_key("openai", "sk-one").unwrap();
        folders.store_key("xai", "x").unwrap();
        folders.store_key("openai", "sk-two").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "xai = \"x\"\nopenai = \"sk-two\"\n");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing else is left");
    }
}
