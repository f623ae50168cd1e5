//! [`scrub_environment`]: the environment of commands, without secrets.

use std::ffi::OsString;

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

/// Returns the variables that a command may see: all but those whose names sound like secrets, and
/// the `named` ones (those with the providers' keys). Variables listed in `kept` stay in any case.
///
/// ```
/// let variables = [("PATH", "/bin"), ("MY_TOKEN", "1"), ("CACHE_KEY", "2"), ("LLM", "3")];
/// let variables = variables.map(|(name, value)| (name.into(), value.into()));
/// let left = hardpan_tools::scrub_environment(variables, &["LLM".into()], &["CACHE_KEY".into()]);
/// let names: Vec<_> = left.iter().map(|(name, _)| name.to_str()).collect();
/// assert_eq!(names, [Some("PATH"), Some("CACHE_KEY")]);
/// ```
pub fn scrub_environment(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    named: &[String],
    kept: &[String],
) -> Vec<(OsString, OsString)> {
    let is_kept = |name: &OsString| {
        let text = name.to_string_lossy();
        let listed = |list: &[String]| list.iter().any(|listed| listed.eq_ignore_ascii_case(&text));
        listed(kept) || !(listed(named) || is_secret(&text))
    };
    variables.into_iter().filter(|(name, _)| is_kept(name)).collect()
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
