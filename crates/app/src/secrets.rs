//! [`secret_settings`]: the secrets of this machine that no request should contain, and what the
//! settings say about them.

use std::path::Path;

use hardpan_agent::{SecretMode, SecretSettings};
use hardpan_context::{FoundSecret, SecretScanner};
use hardpan_files::FileGuard;
use hardpan_mcp::ServerName;
use hardpan_prompt::Prompt;
use hardpan_workspace::find_project_root;

use crate::mcp::login_file;
#[cfg(doc)]
use crate::notice::Notice;
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
const SECRET_WORDS: [&str; 13] = [
    "KEY",
    "APIKEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASS",
    "PWD",
    "DSN",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
    "PRIVATE",
];

/// Values that stand in such files as samples.
const SAMPLES: [&str; 8] =
    ["changeme", "change-me", "change_me", "example", "your", "placeholder", "xxxx", "localhost"];

/// What to look for in the requests that are made in this folder.
pub fn secret_settings(settings: &Settings, folder: &Path) -> SecretSettings {
    let mode = settings.config.secrets.unwrap_or_default();
    if mode == SecretMode::Send {
        return SecretSettings { mode, ..SecretSettings::default() };
    }
    let mut known: Vec<FoundSecret> = settings
        .keys_by_provider()
        .into_iter()
        .map(|(provider, value)| FoundSecret { kind: format!("key of {provider}").into(), value })
        .collect();
    let logins = settings.user_folders.logins();
    for (name, config) in &settings.config.mcp_servers {
        let file = login_file(name, config, logins.as_deref());
        let Some(login) = file.and_then(|file| file.read().ok().flatten()) else { continue };
        known.extend(login.secrets().into_iter().map(|value| login_secret(name, value)));
    }
    let root = find_project_root(folder);
    for name in ENV_FILES {
        let Some(text) = read_env_file(&root, name) else { continue };
        known.extend(env_secrets(&text).map(|(variable, value)| FoundSecret {
            kind: format!("{variable} of {name}").into(),
            value: value.to_owned(),
        }));
    }
    SecretSettings { mode, known: known.into_iter().collect() }
}

/// A token of the login at a server.
pub(crate) fn login_secret(server: &ServerName, value: &str) -> FoundSecret {
    FoundSecret { kind: format!("login at {server}").into(), value: value.to_owned() }
}

/// The secrets in a prompt that is no part of a conversation; none if the settings say that secrets
/// are sent. Nobody is asked about them: they are replaced, and [`Notice::SecretsReplaced`] says so.
pub fn find_secrets(settings: &Settings, folder: &Path, prompt: &Prompt) -> Vec<FoundSecret> {
    let SecretSettings { mode, known } = secret_settings(settings, folder);
    if mode == SecretMode::Send {
        return Vec::new();
    }
    SecretScanner::new(known).scan_prompt(prompt)
}

/// The text of a small regular file in the project. What is opened is judged: a pipe or a device that
/// takes its place holds nobody up, and a link leads nowhere else.
fn read_env_file(root: &Path, name: &str) -> Option<String> {
    let guard = FileGuard::for_folder(root);
    let file = guard.open(&guard.root()?.join(name)).ok()?;
    Some(String::from_utf8_lossy(&file.read_all(MAX_ENV_BYTES).ok()?).into_owned())
}

/// The variables of an `.env` file that are secret by their names.
fn env_secrets(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let line = line.trim_start();
        let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
        let name = name.trim();
        let value = value.trim().trim_matches(['"', '\'']);
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && name.len() <= 64;
        (is_name && is_secret_variable(name, value)).then_some((name, value))
    })
}

/// Whether the value of a variable is a secret, by its name or its form.
pub(crate) fn is_secret_variable(name: &str, value: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let is_sample = SAMPLES.iter().any(|sample| value.to_ascii_lowercase().contains(sample));
    let is_secret = upper.split('_').any(|word| SECRET_WORDS.contains(&word)) || has_password(value);
    // A number or a path is no password, and would be found all over the code.
    let is_plain = value.chars().all(|c| c.is_ascii_digit()) || value.starts_with(['/', '.', '$']);
    is_secret && !is_sample && !is_plain
}

/// Whether a value is an address with a password: `postgres://user:password@host/`.
fn has_password(value: &str) -> bool {
    let user = value.split_once("://").and_then(|(_, rest)| rest.split_once('@'));
    user.and_then(|(user, _)| user.split_once(':')).is_some_and(|(_, password)| !password.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_env_file_has_secrets_by_their_names_and_samples_are_none() {
        let text = "# x\nexport DB_PASSWORD='correct horse battery'\nPORT=8080\nAPI_TOKEN=\"t0ken-of-the-test\"\n\
                    SECRET=changeme-please\nKEY_FILE=/etc/keys\nNAME=hardpan\nMAX_TOKENS=120000\n\
                    MYSQL_PWD=tr0ub4dor-and-3\nDATABASE_URL=postgres://u:tr0ub4dor@db.corp/x\n\
                    SITE_URL=https://corp/a\nREPOSITORY=ssh://git@corp/x\n";
        let found: Vec<(&str, &str)> = env_secrets(text).collect();
        let expected = [
            ("DB_PASSWORD", "correct horse battery"),
            ("API_TOKEN", "t0ken-of-the-test"),
            ("MYSQL_PWD", "tr0ub4dor-and-3"),
            ("DATABASE_URL", "postgres://u:tr0ub4dor@db.corp/x"),
        ];
        assert_eq!(found, expected);
    }
}
