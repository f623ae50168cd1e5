//! [`ApprovalRule`]: which tool calls may run without asking, such as `edit(src/**)` or `bash(cargo
//! test)`.
//!
//! A rule names a tool, and in parentheses which of its calls. What the parentheses mean depends on
//! what the call acts on ([`CallSubject`]): a path pattern for files, the first words for command
//! lines, a host for web addresses. `exactly:` before the words or the host covers nothing else, and
//! `read-only:` covers what the words do as long as they only read. A command line that is more than one plain command (lists, pipes, substitutions, redirections) is never
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
mod host; // the host of a URL
mod read_only; // the commands that only read
mod read_only_gh; // those of GitHub's command line

use std::fmt;
use std::str::FromStr;

use globset::GlobSet;
use hardpan_tools::{CallSubject, SubjectKind};
use hardpan_workspace::{GlobError, compile_glob};
use thiserror::Error;

use self::command::Word;
use self::host::host_of;

/// Before words or a host that nothing may be added to.
const EXACTLY: &str = "exactly:";

/// Before a command that may have any arguments with which it only reads.
const READ_ONLY: &str = "read-only:";

/// What rules about the tools of servers begin with: `mcp(server.tool)`, `mcp(server.*)`.
pub const SERVER_TOOLS: &str = "mcp";

/// What rules about servers that ask a model something begin with: `mcp-sampling(server)`. The subject of
/// such a request is the server's name.
pub const SERVER_SAMPLING: &str = "mcp-sampling";

/// What rules about extensions that ask a model something begin with: `extension-models(name)`. The subject
/// of such a request is the extension's name.
pub const EXTENSION_MODELS: &str = "extension-models";

/// The tool that stands in rules for keys that go to providers of extensions: `extension-keys(NAME)`.
pub const EXTENSION_KEYS: &str = "extension-keys";

/// Requests of servers and extensions, which rules name by who asks.
const ASKED_BY_NAME: [&str; 3] = [SERVER_SAMPLING, EXTENSION_MODELS, EXTENSION_KEYS];

/// Longer commands are not remembered: nobody would read them in a list.
const MAX_REMEMBERED_BYTES: usize = 500;

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
    extent: RuleExtent,
    /// The words of a plain command. `None` if the text is no plain command.
    words: Option<Vec<Word>>,
    /// Paths match this. The error says why no path can.
    glob: Result<GlobSet, GlobError>,
    /// The host of URLs.
    host: String,
    /// The text itself: a tool of a server, or `server.*`.
    text: String,
}

/// How much a rule covers beyond its own words or host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleExtent {
    /// Commands that begin with the words; the host and its subdomains.
    Prefix,
    /// Nothing else.
    Exactly,
    /// Commands that begin with the words and only read.
    ReadOnly,
}

/// What a rule covers, for a question about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleCoverage<'a> {
    /// Every call of the tool.
    EveryCall,
    /// This program or subcommand, with arguments with which it only reads.
    Reading {
        /// Its words, from our own table.
        command: String,
    },
    /// This command, file or host; the rule's text holds what the call says.
    Rule {
        /// The whole rule.
        text: &'a str,
    },
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
    Glob(#[from] GlobError),
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
        let glob = compile_glob(text);
        let (extent, text) = match (text.strip_prefix(EXACTLY), text.strip_prefix(READ_ONLY)) {
            (Some(rest), _) => (RuleExtent::Exactly, rest.trim_start()),
            (None, Some(rest)) => (RuleExtent::ReadOnly, rest.trim_start()),
            (None, None) => (RuleExtent::Prefix, text),
        };
        RulePattern {
            extent,
            words: command::plain_words(text),
            glob,
            host: text.trim_matches('.').to_lowercase(),
            text: text.to_owned(),
        }
    }

    fn covers_command(&self, line: &str) -> bool {
        let (Some(words), Some(given)) = (&self.words, command::plain_words(line)) else { return false };
        match self.extent {
            RuleExtent::Prefix => {
                given.len() >= words.len() && words.iter().zip(&given).all(|(a, b)| a.text == b.text)
            }
            RuleExtent::Exactly => given == *words,
            RuleExtent::ReadOnly => read_only::read_only_command(&given)
                .is_some_and(|kind| kind.iter().copied().eq(words.iter().map(|word| word.text.as_str()))),
        }
    }

    fn covers_server_tool(&self, given: &str) -> bool {
        let all = self.text.strip_suffix(".*").filter(|_| self.extent == RuleExtent::Prefix);
        let is_of_server = |server: &str| given.split_once('.').is_some_and(|(name, _)| name == server);
        self.text == given || all.is_some_and(is_of_server)
    }

    fn covers_host(&self, given: &str) -> bool {
        given.strip_suffix(&*self.host).is_some_and(|below| {
            below.is_empty() || (below.ends_with('.') && self.extent == RuleExtent::Prefix)
        })
    }
}

/// The words of a command line, if it is one plain command that only reads, such as `git log -5`.
pub fn read_only_words(line: &str) -> Option<Vec<String>> {
    let words = command::plain_words(line)?;
    read_only::read_only_command(&words)?;
    Some(words.into_iter().map(|word| word.text).collect())
}

/// The words of a command line of `gh`, if it is one plain command that only reads from GitHub, such as
/// `gh pr list`.
pub fn read_only_github_words(line: &str) -> Option<Vec<String>> {
    let words = command::plain_words(line)?;
    read_only_gh::only_reads(&words).then(|| words.into_iter().map(|word| word.text).collect())
}

/// The words of a command line, if it is one plain command that means the same without a shell.
pub fn plain_command_words(line: &str) -> Option<Vec<String>> {
    let words = command::plain_words(line)?;
    let has_home = words.iter().any(|word| word.has_home);
    (!has_home).then(|| words.into_iter().map(|word| word.text).collect())
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
        if let CallSubject::ServerTool(asker) = subject
            && ASKED_BY_NAME.contains(&tool)
        {
            let names_it = |pattern: &RulePattern| pattern.text == *asker;
            return self.tool == tool && self.pattern.as_ref().is_none_or(names_it);
        }
        if let (CallSubject::ServerTool(name), SERVER_TOOLS) = (subject, self.tool.as_str()) {
            return self.pattern.as_ref().is_none_or(|pattern| pattern.covers_server_tool(name));
        }
        let Some(pattern) = &self.pattern else { return self.tool == tool };
        self.tool == tool
            && match subject {
                CallSubject::File(path) => {
                    let path = workspace_path(path);
                    pattern.glob.as_ref().is_ok_and(|glob| path.is_some_and(|path| glob.is_match(path)))
                }
                CallSubject::Command(line) => pattern.covers_command(line),
                CallSubject::Url(url) => host_of(url).is_some_and(|given| pattern.covers_host(&given)),
                CallSubject::ServerTool(_) | CallSubject::Other => false,
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
            CallSubject::Command(line) => words.is_some_and(|words| {
                let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
                command::may_run(line, &words)
            }),
            CallSubject::Url(url) => host_of(url).is_none(),
            CallSubject::File(_) | CallSubject::ServerTool(_) | CallSubject::Other => false,
        };
        self.covers(tool, subject, workspace_path) || (self.tool == tool && wider())
    }

    /// The rule as it stands in the list of remembered ones: it covers no more than its own words or
    /// host, also if it was stored when rules said less.
    pub fn narrowed(mut self) -> Self {
        if let Some(pattern) = self.pattern.as_mut().filter(|pattern| pattern.extent == RuleExtent::Prefix) {
            pattern.extent = RuleExtent::Exactly;
        }
        self
    }

    /// What the rule covers, in words for a question: no text of the call, which might be made to
    /// look like the question's own.
    pub fn coverage(&self) -> RuleCoverage<'_> {
        match &self.pattern {
            None => RuleCoverage::EveryCall,
            Some(pattern) if pattern.extent == RuleExtent::ReadOnly => {
                let words = pattern.words.iter().flatten().map(|word| word.text.as_str());
                RuleCoverage::Reading { command: words.collect::<Vec<_>>().join(" ") }
            }
            Some(_) => RuleCoverage::Rule { text: &self.source },
        }
    }

    /// Name of the tool that the rule is about.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// What is remembered if the person allows a call for longer: this command and no other, unless
    /// it is of a kind that only reads; this file; this host. `None` if such calls are better asked
    /// about each time.
    pub fn for_call(
        tool: &str,
        subject: &CallSubject,
        workspace_path: impl Fn(&str) -> Option<String>,
    ) -> Option<ApprovalRule> {
        let source = match subject {
            CallSubject::Command(line) => format!("{tool}({})", remembered_command(line)?),
            CallSubject::File(path) => format!("{tool}({})", globset::escape(&workspace_path(path)?)),
            CallSubject::Url(url) => format!("{tool}({EXACTLY} {})", host_of(url)?),
            // A star would mean other tools, too.
            CallSubject::ServerTool(name) if name.contains('*') => return None,
            CallSubject::ServerTool(asker) if ASKED_BY_NAME.contains(&tool) => {
                format!("{tool}({asker})")
            }
            CallSubject::ServerTool(name) => format!("{SERVER_TOOLS}({name})"),
            CallSubject::Other => tool.to_owned(),
        };
        // The joined words may parse differently, so the rule must still cover the call.
        source.parse().ok().filter(|rule: &ApprovalRule| rule.covers(tool, subject, workspace_path))
    }
}

/// What is remembered of a command that the person allowed; `None` if it is better asked about each
/// time.
fn remembered_command(line: &str) -> Option<String> {
    let words = command::plain_words(line)?;
    if let Some(kind) = read_only::read_only_command(&words) {
        return Some(format!("{READ_ONLY} {}", kind.join(" ")));
    }
    // `sh -c …`: what runs is no program that the person knows, but a text of the model's.
    let program = words.first()?;
    let is_inline = words.get(1).is_none_or(|first| first.text.starts_with('-'));
    if is_inline && command::is_interpreter(&program.text) {
        return None;
    }
    let exact = format!("{EXACTLY} {}", command::quote_words(&words)?);
    (exact.len() <= MAX_REMEMBERED_BYTES).then_some(exact)
}

#[cfg(test)]
mod tests;
