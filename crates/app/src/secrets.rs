//! [`secret_settings`]: the secrets of this machine that no request should contain, and what the
//! settings say about them.

use std::path::Path;

use hardpan_agent::{SecretMode, SecretSettings};
use hardpan_context::{FoundSecret, Redactions, SecretScanner};
use hardpan_prompt::Prompt;
use hardpan_workspace::find_project_root;

use crate::settings::Settings;

/// Files in the root of a project that hold secrets by convention.
const ENV_FILES: [&str; 6] = [
    ".env",
    ".env.local",
    ".env.development",
    ".env.production",
    ".env.development.local",
    ".env.production.local",
];

/// The most bytes that are read of such a file.
const MAX_ENV_BYTES: u64 = 64 << 10;

/// Words in the name of a variable whose value is a secret.
const SECRET_WORDS: [&str; 10] = [
    "KEY",
    "APIKEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
    "PRIVATE",
];

/// Values that stand in such files as samples.
const SAMPLES: [&str; 8] =
    ["changeme", "change-me", "change_me", "example", "your", "placeholder", "xxxx", "localhost"];

/// What to look for in the requests of a conversation in this folder; without a folder, the keys of
/// this machine and everything that has the form of one.
pub fn secret_settings(settings: &Settings, folder: Option<&Path>) -> SecretSettings {
    let mode = settings.config.secrets.unwrap_or_default();
    if mode == SecretMode::Send {
        return SecretSettings { mode, known: Vec::new() };
    }
    let mut known: Vec<FoundSecret> = settings
        .keys_by_provider()
        .into_iter()
        .map(|(provider, value)| FoundSecret { kind: format!("key of {provider}").into(), value })
        .collect();
    let root = folder.map(find_project_root);
    for name in ENV_FILES {
        let Some(text) = root.as_ref().and_then(|root| read_small(&root.join(name))) else { continue };
        known.extend(env_secrets(&text).map(|(variable, value)| FoundSecret {
            kind: format!("{variable} of {name}").into(),
            value: value.to_owned(),
        }));
    }
    SecretSettings { mode, known }
}

/// Replaces the secrets in a prompt that is no part of a conversation, unless the settings say that
/// secrets are sent.
pub fn redact_prompt(settings: &Settings, prompt: &mut Prompt) {
    let SecretSettings { mode, known } = secret_settings(settings, None);
    if mode == SecretMode::Send {
        return;
    }
    let mut redactions = Redactions::default();
    SecretScanner::new(known).scan_prompt(prompt).iter().for_each(|secret| redactions.insert(secret));
    redactions.apply(prompt);
}

/// The text of a regular file, if it is small. A folder or a pipe of this name is none.
fn read_small(path: &Path) -> Option<String> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > MAX_ENV_BYTES {
        return None;
    }
    std::fs::read_to_string(path).ok()
}

/// The variables of an `.env` file that are secret by their names.
fn env_secrets(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let line = line.trim_start();
        let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
        let name = name.trim();
        let value = value.trim().trim_matches(['"', '\'']);
        let upper = name.to_ascii_uppercase();
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && name.len() <= 64;
        let is_sample = SAMPLES.iter().any(|sample| value.to_ascii_lowercase().contains(sample));
        let is_secret = upper.split('_').any(|word| SECRET_WORDS.contains(&word));
        // A number or a path is no password, and would be found all over the code.
        let is_plain = value.chars().all(|c| c.is_ascii_digit()) || value.starts_with(['/', '.', '$']);
        (is_name && is_secret && !is_sample && !is_plain).then_some((name, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_env_file_has_secrets_by_their_names_and_samples_are_none() {
        let text = "# x\nexport DB_PASSWORD='correct horse battery'\nPORT=8080\nAPI_TOKEN=\"t0ken-of-the-test\"\n\
                    SECRET=changeme-please\nKEY_FILE=/etc/keys\nNAME=hardpan\nMAX_TOKENS=120000\n";
        let found: Vec<(&str, &str)> = env_secrets(text).collect();
        assert_eq!(found, [("DB_PASSWORD", "correct horse battery"), ("API_TOKEN", "t0ken-of-the-test")]);
    }
}
