//! [`explain_denials`] tells from a command's output what the sandbox denied it.

use std::path::{Path, PathBuf};

use rustix::fs::Access;

use crate::{NetworkAccess, SandboxPolicy};

/// What the system's error messages say when it refuses something.
const REFUSALS: [&str; 4] =
    ["Permission denied", "Operation not permitted", "Read-only file system", "PermissionError"];

/// What programs print when there is no network. The first four are unambiguous; the others count
/// only on a line with one of [`REFUSALS`].
const NO_NETWORK: [&str; 14] = [
    "resolve host",
    "name resolution",
    "Name or service not known",
    "Network is unreachable",
    "/dev/tcp/",
    "/dev/udp/",
    "getaddrinfo",
    "connect",
    "socket",
    "dns error",
    "Failed to download",
    "failed to download",
    "lookup ",
    "network",
];

/// What programs print when the proxy refuses a host.
const REFUSED_HOST: [&str; 3] =
    ["the sandbox allows no connection to", "tunnel failed, response 403", "unnel connection failed: 403"];

/// The most sentences that are added to an answer.
const MAX_SENTENCES: usize = 5;

/// One sentence for each thing that the sandbox denied, as far as the output tells: a line must
/// complain about something that the policy forbids and that the user could do without the sandbox.
pub fn explain_denials(policy: &SandboxPolicy, folder: &Path, output: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    for line in output.lines() {
        let refused = REFUSALS.iter().any(|refusal| line.contains(refusal));
        let sentence = if refused && let Some(sentence) = explain_file_denial(policy, folder, line) {
            sentence
        } else if policy.network == NetworkAccess::Off && is_network_denial(line, refused) {
            "The sandbox denied the network: commands have none unless the user allows it.".to_owned()
        } else if let NetworkAccess::Hosts(hosts) = &policy.network
            && (is_network_denial(line, refused) || REFUSED_HOST.iter().any(|words| line.contains(words)))
        {
            let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
            format!(
                "The sandbox allows connections only through $HTTPS_PROXY, and only to {}.",
                hosts.join(", ")
            )
        } else {
            continue;
        };
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
        if sentences.len() == MAX_SENTENCES {
            break;
        }
    }
    sentences
}

fn is_network_denial(line: &str, refused: bool) -> bool {
    // See `NO_NETWORK`: only the first four are unambiguous.
    let known = if refused { &NO_NETWORK[..] } else { &NO_NETWORK[..4] };
    known.iter().any(|words| line.contains(words))
}

fn explain_file_denial(policy: &SandboxPolicy, folder: &Path, line: &str) -> Option<String> {
    // The path that is complained about comes last, after the program that complains.
    let named: Vec<&str> = candidate_paths(line).collect();
    for named in named.into_iter().rev() {
        let path = resolve_existing_prefix(&folder.join(named));
        let shown = path.display();
        let is_hidden = policy.hidden.iter().any(|hidden| path.starts_with(hidden));
        let is_writable = policy.writable.iter().any(|file| path.starts_with(file.path()));
        if is_hidden && !policy.readable.iter().any(|readable| path.starts_with(readable)) {
            return Some(format!("The sandbox denied reading {shown}: keys are kept there."));
        }
        if is_writable || !could_write(&path) {
            continue;
        }
        if path.starts_with("/proc") || path.starts_with("/sys") {
            return Some(format!("The sandbox denied access to {shown}."));
        }
        return Some(format!(
            "The sandbox denied writing to {shown}: commands may write only in the workspace and $TMPDIR."
        ));
    }
    None
}

/// Words of a line that could be paths: those with a slash, without surrounding quotes and
/// punctuation. An executable in first position is skipped, because it only says who complains, and
/// so are bash's `/dev/tcp` and `/dev/udp`, which are no files.
fn candidate_paths(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|char: char| char.is_whitespace() || "'\"`‘’“”()<>=".contains(char));
    let words = words.map(|word| word.trim_end_matches([':', ',', ';', '.'])).enumerate();
    let is_program =
        |word: &str| rustix::fs::access(word, Access::EXEC_OK).is_ok() && Path::new(word).is_file();
    let words = words.filter(move |(place, word)| *place > 0 || !is_program(word)).map(|(_, word)| word);
    let is_file = |word: &&str| !word.starts_with("/dev/tcp/") && !word.starts_with("/dev/udp/");
    words.filter(|word| word.contains('/') && word.len() > 1).filter(is_file)
}

/// Follows the links in the part of the path that exists; the rest is appended as it is.
fn resolve_existing_prefix(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(real), _, _) => real,
        (_, Some(parent), Some(name)) => resolve_existing_prefix(parent).join(name),
        _ => path.to_owned(),
    }
}

/// Whether the user may write there. If not, it was not the sandbox that denied it.
fn could_write(path: &Path) -> bool {
    let there = path.ancestors().find(|path| path.exists());
    there.is_some_and(|there| rustix::fs::access(there, Access::WRITE_OK).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileHandle;

    fn policy(root: &Path, network: NetworkAccess) -> SandboxPolicy {
        SandboxPolicy {
            writable: FileHandle::open(&root.join("work")).into_iter().collect(),
            hidden: vec![root.join("keys")],
            network,
            ..SandboxPolicy::default()
        }
    }

    #[test]
    fn what_the_policy_forbids_is_told_and_other_complaints_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("work")).unwrap();
        let policy = policy(&root, NetworkAccess::Off);
        let told = |line: String| explain_denials(&policy, &root.join("work"), &line);
        let outside = root.join("other/x");
        let writing = format!(
            "The sandbox denied writing to {}: commands may write only in the workspace and $TMPDIR.",
            outside.display()
        );
        for line in [
            format!("bash: line 1: {}: Permission denied", outside.display()),
            format!("touch: cannot touch '{}': Permission denied", outside.display()),
            format!("/bin/sh: line 1: {}: Permission denied", outside.display()),
            "cp: cannot create regular file '../other/x': Permission denied".to_owned(),
            format!("PermissionError: [Errno 13] Permission denied: '{}'", outside.display()),
        ] {
            assert_eq!(told(line), std::slice::from_ref(&writing));
        }
        let keys = root.join("keys/keys.toml");
        assert_eq!(
            told(format!("cat: {}: Permission denied", keys.display())),
            [format!("The sandbox denied reading {}: keys are kept there.", keys.display())]
        );
        assert!(told(format!("wrote {}", outside.display())).is_empty());
        assert!(told("bash: ./script.sh: Permission denied".to_owned()).is_empty());
        assert!(told("sudo: Operation not permitted".to_owned()).is_empty());
    }

    #[test]
    fn a_missing_network_is_told_once_and_only_where_it_is_off() {
        let lines = "/bin/sh: /dev/tcp/127.0.0.1/1: Operation not permitted\ncurl: (6) Could not resolve host: a.example\nsocket: Operation not permitted\n";
        let told = explain_denials(&policy(Path::new("/"), NetworkAccess::Off), Path::new("/"), lines);
        assert_eq!(told, ["The sandbox denied the network: commands have none unless the user allows it."]);
        let hosts = NetworkAccess::Hosts(vec!["crates.io".parse().unwrap(), "*.npmjs.org".parse().unwrap()]);
        assert_eq!(
            explain_denials(
                &policy(Path::new("/"), hosts),
                Path::new("/"),
                "curl: (56) CONNECT tunnel failed, response 403"
            ),
            ["The sandbox allows connections only through $HTTPS_PROXY, and only to crates.io, *.npmjs.org."]
        );
        assert!(
            explain_denials(&policy(Path::new("/"), NetworkAccess::On), Path::new("/"), lines).is_empty()
        );
        assert!(
            explain_denials(
                &policy(Path::new("/"), NetworkAccess::Off),
                Path::new("/"),
                "network: 3 tests pass"
            )
            .is_empty()
        );
    }
}
