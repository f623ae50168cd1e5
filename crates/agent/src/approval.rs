//! [`ApprovalRule`]: which tool calls may run without asking, such as `edit(src/**)` or `bash(cargo
//! test)`.
//!
//! A rule names a tool, and in parentheses which of its calls. What the parentheses mean depends on
//! what the call acts on ([`CallSubject`]): a path pattern for files, the first words for command
//! lines, a host for web addresses. A command line that is more than one plain command (lists, pipes, substitutions, redirections) is never
//! covered by its first words, and a URL that is not written plainly is never covered by its host.
//! Rules that deny match more: see [`ApprovalRule::denies`].
//!
//! ```
//! # use hardpan_agent::approval::ApprovalRule;
//! # use hardpan_tools::CallSubject;
//! let rule: ApprovalRule = "bash(cargo test)".parse()?;
//! let no_paths = |_: &str| None;
//! assert!(rule.covers("bash", &CallSubject::Command("cargo test -p x".into()), no_paths));
//! assert!(!rule.covers("bash", &CallSubject::Command("cargo test; rm -rf x".into()), no_paths));
//! # Ok::<(), hardpan_agent::approval::RuleParseError>(())
//! ```

mod command; // whether a command line is one plain command, and its words

use std::fmt;
use std::str::FromStr;

use globset::{GlobBuilder, GlobMatcher};
use hardpan_tools::{CallSubject, SubjectKind};
use thiserror::Error;

/// A rule that allows, or denies, calls of one tool.
#[derive(Clone, Debug)]
pub struct ApprovalRule {
    tool: String,
    /// What is in the parentheses; `None` for every call of the tool.
    pattern: Option<RulePattern>,
    source: String,
}

/// What is in a rule's parentheses, as each kind of subject understands it. The rule may be older
/// than the tool it names, so that its kind is known only when a call comes.
#[derive(Clone, Debug)]
struct RulePattern {
    /// Plain commands begin with these words. `None` if the text is no plain command.
    words: Option<Vec<String>>,
    /// Paths match this. The error says why no path can.
    glob: Result<GlobMatcher, globset::Error>,
    /// URLs have this host or one of its subdomains.
    host: String,
}

/// Text that is not a valid rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "\"{rule}\" is not a rule: {problem}. Rules look like edit(src/**), bash(cargo test), fetch(docs.rs) or write"
)]
pub struct RuleParseError {
    /// The text as written.
    pub rule: String,
    /// What is wrong with it; its text ends a sentence.
    #[source]
    pub problem: RuleProblem,
}

/// What is wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RuleProblem {
    /// It has a line end or another control character. Rules are stored one per line.
    #[error("it holds a control character")]
    ControlCharacter,
    /// The text does not end with a parenthesis.
    #[error("a parenthesis is not closed")]
    OpenParenthesis,
    /// There is no name before the parenthesis, or one that no tool has.
    #[error("it does not begin with a tool's name")]
    NoTool,
    /// The parentheses are empty.
    #[error("there is nothing in the parentheses")]
    EmptyParentheses,
    /// The parentheses hold more than one command.
    #[error("only one plain command can be allowed")]
    NotOneCommand,
    /// The parentheses hold no pattern of paths.
    #[error(transparent)]
    Glob(#[from] globset::Error),
}

impl FromStr for ApprovalRule {
    type Err = RuleParseError;

    fn from_str(source: &str) -> Result<Self, RuleParseError> {
        let source = source.trim();
        let wrong = |problem| RuleParseError { rule: source.to_owned(), problem };
        if source.contains(char::is_control) {
            return Err(wrong(RuleProblem::ControlCharacter));
        }
        let (tool, inside) = match source.split_once('(') {
            None => (source, None),
            Some((tool, rest)) => {
                let inside = rest.strip_suffix(')').ok_or_else(|| wrong(RuleProblem::OpenParenthesis))?;
                (tool, Some(inside.trim()))
            }
        };
        let named = tool.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if tool.is_empty() || !named {
            return Err(wrong(RuleProblem::NoTool));
        }
        if inside == Some("") {
            return Err(wrong(RuleProblem::EmptyParentheses));
        }
        let pattern = inside.map(RulePattern::new);
        Ok(ApprovalRule { tool: tool.to_owned(), pattern, source: source.to_owned() })
    }
}

impl RulePattern {
    fn new(text: &str) -> Self {
        let glob = GlobBuilder::new(text).literal_separator(true).build();
        RulePattern {
            words: command::plain_words(text),
            glob: glob.map(|glob| glob.compile_matcher()),
            host: text.trim_matches('.').to_lowercase(),
        }
    }
}

impl fmt::Display for ApprovalRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl ApprovalRule {
    /// Checks that what is in the parentheses makes sense for calls that act on this kind of
    /// subject. A rule that does not covers none of them.
    pub fn check_subject(&self, kind: SubjectKind) -> Result<(), RuleParseError> {
        let wrong = |problem| RuleParseError { rule: self.source.clone(), problem };
        let Some(pattern) = &self.pattern else { return Ok(()) };
        match (kind, &pattern.glob) {
            (SubjectKind::Command, _) if pattern.words.is_none() => Err(wrong(RuleProblem::NotOneCommand)),
            (SubjectKind::File | SubjectKind::Other, Err(error)) => Err(wrong(error.clone().into())),
            _ => Ok(()),
        }
    }

    /// Whether the rule covers a call. `workspace_path` turns a call's path into the path below the
    /// workspace, where it is in it.
    pub fn covers(
        &self,
        tool: &str,
        subject: &CallSubject,
        workspace_path: impl Fn(&str) -> Option<String>,
    ) -> bool {
        let Some(pattern) = &self.pattern else { return self.tool == tool };
        self.tool == tool
            && match subject {
                CallSubject::File(path) => {
                    let path = workspace_path(path);
                    pattern.glob.as_ref().is_ok_and(|glob| path.is_some_and(|path| glob.is_match(path)))
                }
                CallSubject::Command(line) => pattern.words.as_ref().is_some_and(|words| {
                    command::plain_words(line).is_some_and(|given| given.starts_with(words))
                }),
                CallSubject::Url(url) => host_of(url).is_some_and(|given| {
                    let below = given.strip_suffix(&*pattern.host);
                    below.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
                }),
                CallSubject::Other => false,
            }
    }

    /// Whether the rule, used to deny, matches a call: if it covers the call, if any command of the
    /// line may begin with its words, or if the host of the URL cannot be determined. This keeps a
    /// model from a habit; it does not stop a determined program.
    pub fn denies(
        &self,
        tool: &str,
        subject: &CallSubject,
        workspace_path: impl Fn(&str) -> Option<String>,
    ) -> bool {
        let words = self.pattern.as_ref().and_then(|pattern| pattern.words.as_ref());
        let wider = || match subject {
            CallSubject::Command(line) => words
                .is_some_and(|words| command::possible_commands(line).any(|given| given.starts_with(words))),
            CallSubject::Url(url) => host_of(url).is_none(),
            CallSubject::File(_) | CallSubject::Other => false,
        };
        self.tool == tool && (self.covers(tool, subject, workspace_path) || wider())
    }

    /// Name of the tool that the rule is about.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The narrowest useful rule that allows calls like this one; `None` if such calls are better
    /// asked about each time.
    pub fn for_call(
        tool: &str,
        subject: &CallSubject,
        workspace_path: impl Fn(&str) -> Option<String>,
    ) -> Option<ApprovalRule> {
        let source = match subject {
            CallSubject::Command(line) => format!("{tool}({})", rule_words(line)?.join(" ")),
            CallSubject::File(path) => format!("{tool}({})", globset::escape(&workspace_path(path)?)),
            CallSubject::Url(url) => format!("{tool}({})", host_of(url)?),
            CallSubject::Other => tool.to_owned(),
        };
        // The joined words may parse differently, so the rule must still cover the call.
        source.parse().ok().filter(|rule: &ApprovalRule| rule.covers(tool, subject, workspace_path))
    }
}

/// The first words of a command that stand for commands like it; `None` if there are none.
fn rule_words(line: &str) -> Option<Vec<String>> {
    let mut words = command::plain_words(line)?;
    // `cargo test -p x` becomes `cargo test`: options are not part of the rule. If an option comes
    // first (`rm -rf x`), or the program runs another one (`env A=b x`), the first words say little
    // and the whole command is meant.
    let plain = words.iter().take_while(|word| !word.starts_with('-')).count().min(2);
    let program = words.first()?;
    if plain == 1 && command::is_interpreter(program) {
        return None;
    }
    if plain > 1 && !command::is_wrapper(program) {
        words.truncate(plain);
    }
    Some(words)
}

/// The host of a URL that is written plainly; `None` if an HTTP client might see another host.
fn host_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let (host, port) = match authority.rfind(':').filter(|at| !authority[*at..].contains(']')) {
        Some(at) => (&authority[..at], &authority[at + 1..]),
        None => (authority, ""),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let number = |host: &str| host.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, ':' | '.'));
    let is_plain = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => number(address),
        None => host.chars().all(plain),
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    (is_plain && port.chars().all(|c| c.is_ascii_digit()) && !host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests;
