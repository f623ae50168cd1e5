//! What goes with a prompt: files named with `@`, images, standard input.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// More than this on standard input is a mistake, not a prompt.
const MOST_INPUT: u64 = 10 << 20;

/// How long nothing may come on standard input before the person is told what is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// The prompt of the command line: `-` stands for standard input, and what is piped in beside a prompt goes with it.
pub fn prompt(given: &str) -> Result<String> {
    let piped = if std::io::stdin().is_terminal() { String::new() } else { read_input()? };
    let piped = piped.trim_end();
    let prompt = match (given, piped) {
        ("-", "") if std::io::stdin().is_terminal() => {
            bail!("-p needs a prompt: hardpan -p \"your question\", or pipe one in")
        }
        ("-", piped) => piped.to_owned(),
        (given, "") => given.to_owned(),
        (given, piped) => format!("{given}\n\n<stdin>\n{piped}\n</stdin>"),
    };
    if prompt.trim().is_empty() {
        bail!("there is nothing to send: the prompt is empty");
    }
    Ok(prompt)
}

fn read_input() -> Result<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = std::io::stdin().take(MOST_INPUT + 1).read_to_end(&mut bytes);
        let _ = sender.send(read.map(|_| bytes));
    });
    let read = receiver.recv_timeout(PATIENCE).or_else(|_| {
        eprintln!("hardpan: waiting for the end of standard input (`</dev/null` if there is none)");
        receiver.recv()
    });
    let bytes = read.context("standard input cannot be read")?.context("standard input cannot be read")?;
    if bytes.len() as u64 > MOST_INPUT {
        bail!("standard input is longer than {} MB: put it into a file and name it with @", MOST_INPUT >> 20);
    }
    String::from_utf8(bytes).context("standard input is not UTF-8 text; name the file with @ instead")
}

/// The files that a prompt names: `@src/a.rs`, `@"a name with spaces.md"`. Only what exists counts: an `@` means many
/// things.
pub fn mentioned(text: &str, folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        if c == '@' && (before.is_whitespace() || matches!(before, '(' | '[' | ',')) {
            let candidates = names(&text[at + 1..]);
            let path = candidates.into_iter().map(PathBuf::from).find(|path| folder.join(path).is_file());
            found.extend(path.filter(|path| !found.contains(path)));
        }
        before = c;
    }
    found
}

/// What may be a file's name at the start of a text, longest first: punctuation at its end may belong to the sentence.
fn names(text: &str) -> Vec<&str> {
    if let Some(quoted) = text.strip_prefix('"') {
        return quoted.split('"').next().into_iter().filter(|name| !name.is_empty()).collect();
    }
    let word = text.split(char::is_whitespace).next().unwrap_or_default();
    let trimmed = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '\'']);
    [word, trimmed].into_iter().filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_mentioned_by_its_name_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.rs", "b c.md", "d"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found = |text: &str| -> Vec<String> {
            mentioned(text, folder.path()).iter().map(|path| path.display().to_string()).collect()
        };
        assert_eq!(found("look at @a.rs, please"), ["a.rs"]);
        assert_eq!(found("@\"b c.md\" and (@d) and @d."), ["b c.md", "d"]);
        assert!(found("me@a.rs @missing.rs @ @\"\"").is_empty());
    }
}
