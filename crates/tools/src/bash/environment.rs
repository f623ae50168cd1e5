//! [`command_environment`] and [`scrub_environment`]: the environment of commands, without secrets.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Endings of names of variables that hold secrets.
const SECRET_ENDINGS: [&str; 14] = [
    "KEY",
    "APIKEY",
    "KEYS",
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
    "KEY_ID",
    "PAT",
];

/// Variables that every command gets: what programs need to find their way. `*` stands for any
/// ending.
const PASSED: [&str; 30] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TERM",
    "TZ",
    "TMPDIR",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "JAVA_HOME",
    "NVM_*",
    "PNPM_HOME",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "SDKMAN_DIR",
    "XDG_CACHE_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// The variables that a command of the model gets: the usual ones, and those that `passed` names
/// (`NAME_*` for all that begin so). One whose value contains a key is passed only if it is named.
///
/// ```
/// let variables = [("PATH", "/bin"), ("LC_ALL", "C"), ("PROXY", "x"), ("LANG", "key-123456"), ("A_B", "2")];
/// let variables = variables.map(|(name, value)| (name.into(), value.into()));
/// let passed = hardpan_tools::command_environment(variables, &["key-123456".into()], &["A_*".into()]);
/// let names: Vec<_> = passed.iter().map(|(name, _)| name.to_str()).collect();
/// assert_eq!(names, [Some("PATH"), Some("LC_ALL"), Some("A_B")]);
/// ```
pub fn command_environment(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    keys: &[String],
    passed: &[String],
) -> Vec<(OsString, OsString)> {
    let is_passed = |(name, value): &(OsString, OsString)| {
        let Some(name) = name.to_str() else { return false };
        passed.iter().any(|pattern| matches_name(pattern, name))
            || (PASSED.iter().any(|pattern| matches_name(pattern, name)) && !contains_key(value, keys))
    };
    variables.into_iter().filter(is_passed).collect()
}

fn matches_name(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

fn contains_key(value: &OsStr, keys: &[String]) -> bool {
    let value = value.as_bytes();
    // A key of a few characters is none, and would be found anywhere.
    let keys = keys.iter().filter(|key| key.len() >= MIN_KEY_LENGTH);
    keys.into_iter().any(|key| memchr::memmem::find(value, key.as_bytes()).is_some())
}

/// The fewest characters of a key that is looked for in values.
const MIN_KEY_LENGTH: usize = 8;

/// The variables that the user's own commands get: all but those whose names sound like secrets,
/// those that hold a key, and the `named` ones (those with the providers' keys). Variables that
/// `passed` names stay in any case.
///
/// ```
/// let variables = [("PATH", "/bin"), ("MY_TOKEN", "1"), ("CACHE_KEY", "2"), ("LLM", "3")];
/// let variables = variables.map(|(name, value)| (name.into(), value.into()));
/// let left = hardpan_tools::scrub_environment(variables, &["LLM".into()], &[], &["CACHE_KEY".into()]);
/// let names: Vec<_> = left.iter().map(|(name, _)| name.to_str()).collect();
/// assert_eq!(names, [Some("PATH"), Some("CACHE_KEY")]);
/// ```
pub fn scrub_environment(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    named: &[String],
    keys: &[String],
    passed: &[String],
) -> Vec<(OsString, OsString)> {
    let is_kept = |(name, value): &(OsString, OsString)| {
        let name = name.to_string_lossy();
        let is_named = named.iter().any(|named| named.eq_ignore_ascii_case(&name));
        passed.iter().any(|pattern| matches_name(pattern, &name))
            || !(is_named || is_secret(&name) || contains_key(value, keys))
    };
    variables.into_iter().filter(is_kept).collect()
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let ends = |ending: &&str| match name.strip_suffix(ending) {
        Some("") => true,
        // `MONKEY` holds no key; `PGPASSWORD` does hold a password.
        Some(before) => before.ends_with('_') || ending.len() > 5,
        None => false,
    };
    SECRET_ENDINGS.iter().any(ends)
}

#[cfg(test)]
mod tests {
    use super::is_secret;

    #[test]
    fn names_of_secrets_are_recognised_and_others_are_not() {
        for name in [
            "OPENAI_API_KEY",
            "OPENAI_APIKEY",
            "GITHUB_TOKEN",
            "aws_secret_access_key",
            "PGPASSWORD",
            "DB_PASSWORD",
            "TOKEN",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["PATH", "MONKEY", "HOME", "KEYBOARD", "TOKENIZERS_PARALLELISM", "SSH_AUTH_SOCK", "XPAT"]
        {
            assert!(!is_secret(name), "{name}");
        }
    }
}
