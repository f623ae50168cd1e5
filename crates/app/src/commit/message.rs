//! [`CommitMessage`]: a message in the conventional form, extracted from a model's answer.

use std::fmt;

use super::staged::StagedFile;

/// The longest subject line. We ask for fifty characters, but git's tools show up to this many.
const MAX_SUBJECT_CHARS: usize = 72;

/// Columns at which the body is wrapped.
const BODY_WIDTH: usize = 72;

/// A subject line and a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitMessage {
    subject: String,
    body: String,
}

/// Why an answer is no commit message. The model reads the text, and tries again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageProblem {
    /// It has no text.
    #[error("it is empty")]
    Empty,
    /// Its first line has another form.
    #[error("its first line is not of the form `type(scope): what it does`, such as `fix: close the file`")]
    NotConventional,
    /// Its first line is too long.
    #[error("its first line has {length} characters; 50 are wanted, {MAX_SUBJECT_CHARS} are the most")]
    TooLong {
        /// Its length in characters.
        length: usize,
    },
}

impl fmt::Display for CommitMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.subject)?;
        if self.body.is_empty() { Ok(()) } else { writeln!(f, "\n{}", self.body) }
    }
}

impl CommitMessage {
    /// Extracts the message from a model's answer: removes fences, quotes and remarks, and wraps
    /// long lines. The error goes to the model, which tries again.
    pub fn from_answer(answer: &str) -> Result<Self, MessageProblem> {
        let lines = message_lines(answer);
        let start = lines.iter().take(3).position(|line| is_conventional(unquoted(line))).unwrap_or(0);
        let Some(subject) = lines.get(start).map(|line| unquoted(line)) else {
            return Err(MessageProblem::Empty);
        };
        if !is_conventional(subject) {
            return Err(MessageProblem::NotConventional);
        }
        let length = subject.chars().count();
        if length > MAX_SUBJECT_CHARS {
            return Err(MessageProblem::TooLong { length });
        }
        Ok(CommitMessage {
            subject: subject.trim_end_matches('.').to_owned(),
            body: wrap_body(&lines[start + 1..]),
        })
    }

    /// Takes what the user wrote as it is, without surrounding blank lines. None if it is empty.
    pub fn from_editor(text: &str) -> Option<Self> {
        let (subject, body) = text.trim().split_once('\n').unwrap_or((text.trim(), ""));
        let message = CommitMessage { subject: subject.trim_end().to_owned(), body: body.trim().to_owned() };
        (!message.subject.is_empty()).then_some(message)
    }
}

/// The lines of an answer, without control characters, code fences and surrounding blank lines.
fn message_lines(answer: &str) -> Vec<String> {
    let clean = |line: &str| line.chars().filter(|c| !c.is_control() || *c == '\t').collect::<String>();
    let lines: Vec<String> = answer.lines().map(|line| clean(line).trim_end().to_owned()).collect();
    let fences: Vec<usize> = (0..lines.len()).filter(|index| lines[*index].starts_with("```")).collect();
    // A fence around the message is removed with what is outside of it; a fence within the body is
    // removed, but its lines stay.
    let inner = match fences.as_slice() {
        [first, .., last] if lines[..*first].iter().all(|line| !is_conventional(unquoted(line))) => {
            &lines[first + 1..*last]
        }
        _ => &lines[..],
    };
    let kept = inner.iter().filter(|line| !line.starts_with("```")).cloned();
    let kept: Vec<String> = kept.skip_while(String::is_empty).collect();
    let end = kept.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    kept[..end].to_vec()
}

/// The line without quotes or backquotes that enclose all of it.
fn unquoted(line: &str) -> &str {
    let line = line.trim();
    let inner = ['"', '\'', '`'].into_iter().find_map(|quote| line.strip_prefix(quote)?.strip_suffix(quote));
    inner.unwrap_or(line).trim()
}

/// Whether a line has the form `type(scope)!: what it does`.
fn is_conventional(line: &str) -> bool {
    let Some((head, what)) = line.split_once(": ") else { return false };
    let head = head.strip_suffix('!').unwrap_or(head);
    let (kind, scope) = match head.split_once('(') {
        Some((kind, scope)) => (kind, scope.strip_suffix(')')),
        None => (head, Some("-")),
    };
    let is_word = !kind.is_empty() && kind.len() <= 12 && kind.chars().all(|c| c.is_ascii_lowercase());
    is_word
        && scope.is_some_and(|scope| !scope.is_empty() && !scope.contains(['(', ')']))
        && !what.trim().is_empty()
}

/// Wraps the body, and merges consecutive blank lines into one.
fn wrap_body(lines: &[String]) -> String {
    let mut wrapped: Vec<String> = Vec::new();
    for line in lines.iter().skip_while(|line| line.is_empty()) {
        if line.is_empty() && wrapped.last().is_some_and(String::is_empty) {
            continue;
        }
        wrap_line(line, &mut wrapped);
    }
    wrapped.join("\n").trim_end().to_owned()
}

/// Breaks a long line between words, aligned below the text of a list item. A single word may be
/// wider.
fn wrap_line(line: &str, out: &mut Vec<String>) {
    if line.chars().count() <= BODY_WIDTH {
        return out.push(line.to_owned());
    }
    let text = line.trim_start_matches([' ', '-', '*']);
    let indent = " ".repeat(line.chars().count() - text.chars().count());
    let mut current = line[..line.len() - text.len()].to_owned();
    let mut begun = false;
    for word in text.split_whitespace() {
        if begun && current.chars().count() + 1 + word.chars().count() > BODY_WIDTH {
            out.push(std::mem::replace(&mut current, indent.clone()));
        } else if begun {
            current.push(' ');
        }
        current.push_str(word);
        begun = true;
    }
    out.push(current);
}

impl CommitMessage {
    /// A plain message made from the file names only, for when no model is available.
    pub fn from_file_names(files: &[StagedFile]) -> CommitMessage {
        let all = |holds: &dyn Fn(&str) -> bool| files.iter().all(|file| holds(&file.path.to_lowercase()));
        let kind = if all(&|path| path.ends_with(".md") || path.starts_with("docs/")) {
            "docs"
        } else if all(&|path| path.contains("test")) {
            "test"
        } else {
            "chore"
        };
        let same = files.iter().all(|file| file.status == files[0].status);
        let verb = match files.first().map(|file| file.status).filter(|_| same) {
            Some('A' | 'C') => "add",
            Some('D') => "remove",
            Some('R') => "move",
            _ => "change",
        };
        let name = |file: &StagedFile| {
            file.path.rsplit('/').next().unwrap_or(&file.path).replace(char::is_control, "?")
        };
        let what = match files {
            [only] => name(only),
            [first, second] => format!("{} and {}", name(first), name(second)),
            many => format!("{} files", many.len()),
        };
        let what = if format!("{kind}: {verb} {what}").chars().count() > MAX_SUBJECT_CHARS {
            format!("{} files", files.len())
        } else {
            what
        };
        let listed = files
            .iter()
            .take(MAX_LISTED_FILES)
            .map(|file| format!("{} {}", file.status, file.path.replace(char::is_control, "?")));
        let mut list: Vec<String> = if files.len() > 1 { listed.collect() } else { Vec::new() };
        if files.len() > MAX_LISTED_FILES {
            list.push(format!("and {} more", files.len() - MAX_LISTED_FILES));
        }
        CommitMessage { subject: format!("{kind}: {verb} {what}"), body: list.join("\n") }
    }
}

/// How many files a plain message lists.
const MAX_LISTED_FILES: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(answer: &str) -> String {
        CommitMessage::from_answer(answer).unwrap().to_string()
    }

    #[test]
    fn what_a_model_puts_around_a_message_is_taken_off() {
        let plain = "fix(api): close the file\n";
        for answer in [
            "fix(api): close the file",
            "\n\nfix(api): close the file.\n\n",
            "```\nfix(api): close the file\n```",
            "Here is the message:\n\n```text\nfix(api): close the file\n```\nI hope it helps.",
            "Here is the message:\n\nfix(api): close the file",
            "\"fix(api): close the file\"",
            "`fix(api): close the file`",
            "fix(api): close\x1b the file\r\n",
        ] {
            assert_eq!(cleaned(answer), plain, "{answer:?}");
        }
    }

    #[test]
    fn a_body_is_parted_and_wrapped() {
        let long = "word ".repeat(30);
        let link = format!("https://example.org/{}", "x".repeat(80));
        let text = cleaned(&format!("feat!: do it\nWhy so.\n\n\n\n- {long}\n{link}\nRefs: 12\n"));
        let expected = format!(
            "feat!: do it\n\nWhy so.\n\n- {}\n  {}\n  {}\n{link}\nRefs: 12\n",
            ["word"; 14].join(" "),
            ["word"; 14].join(" "),
            ["word"; 2].join(" ")
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn what_is_no_message_is_told_so() {
        let problem = |answer: &str| CommitMessage::from_answer(answer).unwrap_err().to_string();
        assert_eq!(problem(" \n```\n```\n"), "it is empty");
        for answer in
            ["Close the file", "Fix: close it", "fix close it", "fix(): x", "fix: ", "I cannot: I am a model"]
        {
            assert!(problem(answer).contains("`type(scope): what it does`"), "{answer}");
        }
        let long = format!("fix: {}", "x".repeat(68));
        assert_eq!(problem(&long), "its first line has 73 characters; 50 are wanted, 72 are the most");
        assert!(CommitMessage::from_answer(&long[..72]).is_ok());
    }

    #[test]
    fn a_plain_message_tells_what_the_names_tell() {
        let file = |status, path: &str| StagedFile { status, path: path.into() };
        assert_eq!(CommitMessage::from_file_names(&[file('A', "docs/a.md")]).to_string(), "docs: add a.md\n");
        assert_eq!(
            CommitMessage::from_file_names(&[file('D', "tests/a.rs"), file('D', "src/b_test.go")])
                .to_string(),
            "test: remove a.rs and b_test.go\n\nD tests/a.rs\nD src/b_test.go\n"
        );
        let many: Vec<StagedFile> =
            (0..30).map(|n| file(if n == 0 { 'A' } else { 'M' }, &format!("src/{n}.rs"))).collect();
        let text = CommitMessage::from_file_names(&many).to_string();
        assert!(
            text.starts_with("chore: change 30 files\n\nA src/0.rs\n") && text.ends_with("and 10 more\n"),
            "{text}"
        );
    }
}
