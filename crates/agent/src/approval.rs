//! [`ApprovalRule`]: which tool calls may run without asking, such as `edit(src/**)` or `bash(cargo
//! test)`.
//!
//! A rule names a tool, and in parentheses which of its calls: a path pattern for tools that take a
//! `path`, the first words of a command for `bash`, a host for tools that take a `url`. A command
//! line that is more than one plain command (lists, pipes, substitutions, redirections) is never
//! covered by its first words, and a URL that is not written plainly is never covered by its host.
//! Rules that deny match more: see [`ApprovalRule::denies`].
//!
//! ```
//! # use hardpan_agent::approval::ApprovalRule;
//! # use serde_json::json;
//! let rule: ApprovalRule = "bash(cargo test)".parse()?;
//! let no_paths = |_: &str| None;
//! assert!(rule.covers("bash", &json!({"command": "cargo test -p x"}), no_paths));
//! assert!(!rule.covers("bash", &json!({"command": "cargo test; rm -rf x"}), no_paths));
//! # Ok::<(), hardpan_agent::approval::RuleParseError>(())
//! ```

mod command; // whether a command line is one plain command, and its words

use std::fmt;
use std::str::FromStr;

use globset::{GlobBuilder, GlobMatcher};
use serde_json::Value;
use thiserror::Error;

/// A rule that allows, or denies, calls of one tool.
#[derive(Clone, Debug)]
pub struct ApprovalRule {
    tool: String,
    scope: RuleScope,
    source: String,
}

#[derive(Clone, Debug)]
enum RuleScope {
    /// Every call of the tool.
    Anything,
    /// Calls whose `path` matches the pattern.
    Path(GlobMatcher),
    /// Plain commands that begin with these words.
    Words(Vec<String>),
    /// URLs of this host or one of its subdomains.
    Host(String),
}

/// Text that is not a valid rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "\"{rule}\" is not a rule: {problem}. Rules look like edit(src/**), bash(cargo test), fetch(docs.rs) or write"
)]
pub struct RuleParseError {
    /// The text as written.
    pub rule: String,
    /// What is wrong with it, as the end of a sentence.
    pub problem: String,
}

impl FromStr for ApprovalRule {
    type Err = RuleParseError;

    fn from_str(source: &str) -> Result<Self, RuleParseError> {
        let source = source.trim();
        let wrong = |problem: &str| RuleParseError { rule: source.to_owned(), problem: problem.to_owned() };
        // Rules are stored one per line, so a rule must not contain a line end.
        if source.contains(char::is_control) {
            return Err(wrong("it holds a control character"));
        }
        let (tool, inside) = match source.split_once('(') {
            None => (source, None),
            Some((tool, rest)) => (
                tool,
                Some(rest.strip_suffix(')').ok_or_else(|| wrong("a parenthesis is not closed"))?.trim()),
            ),
        };
        let named = tool.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if tool.is_empty() || !named {
            return Err(wrong("it does not begin with a tool's name"));
        }
        let scope = match (tool, inside) {
            (_, None) => RuleScope::Anything,
            (_, Some("")) => return Err(wrong("there is nothing in the parentheses")),
            ("bash", Some(words)) => {
                let words = command::plain_words(words)
                    .ok_or_else(|| wrong("only one plain command can be allowed"))?;
                RuleScope::Words(words)
            }
            ("fetch", Some(host)) => RuleScope::Host(host.trim_matches('.').to_lowercase()),
            (_, Some(pattern)) => {
                let glob = GlobBuilder::new(pattern).literal_separator(true).build();
                RuleScope::Path(glob.map_err(|error| wrong(&error.to_string()))?.compile_matcher())
            }
        };
        Ok(ApprovalRule { tool: tool.to_owned(), scope, source: source.to_owned() })
    }
}

impl fmt::Display for ApprovalRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl ApprovalRule {
    /// Whether the rule covers a call. `workspace_path` turns a call's path into the path below the
    /// workspace, where it is in it.
    pub fn covers(&self, tool: &str, args: &Value, workspace_path: impl Fn(&str) -> Option<String>) -> bool {
        if self.tool != tool {
            return false;
        }
        match &self.scope {
            RuleScope::Anything => true,
            RuleScope::Path(glob) => {
                args["path"].as_str().and_then(workspace_path).is_some_and(|path| glob.is_match(path))
            }
            RuleScope::Words(words) => {
                let given = args["command"].as_str().and_then(command::plain_words);
                given.is_some_and(|given| given.starts_with(words))
            }
            RuleScope::Host(host) => args["url"].as_str().and_then(host_of).is_some_and(|given| {
                given == *host || given.strip_suffix(host.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }),
        }
    }

    /// Whether the rule, used to deny, matches a call: if it covers the call, if any command of the
    /// line may begin with its words, or if the host of the URL cannot be determined. This keeps a
    /// model from a habit; it does not stop a determined program.
    pub fn denies(&self, tool: &str, args: &Value, workspace_path: impl Fn(&str) -> Option<String>) -> bool {
        let wider = || match &self.scope {
            RuleScope::Words(words) => args["command"]
                .as_str()
                .is_some_and(|line| command::possible_commands(line).any(|given| given.starts_with(words))),
            RuleScope::Host(_) => args["url"].as_str().is_some_and(|url| host_of(url).is_none()),
            RuleScope::Anything | RuleScope::Path(_) => false,
        };
        self.tool == tool && (self.covers(tool, args, workspace_path) || wider())
    }

    /// Name of the tool that the rule is about.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The narrowest useful rule that allows calls like this one; `None` if such calls are better
    /// asked about each time.
    pub fn for_call(
        tool: &str,
        args: &Value,
        workspace_path: impl Fn(&str) -> Option<String>,
    ) -> Option<ApprovalRule> {
        let source = if let Some(command) = args["command"].as_str() {
            let words = command::plain_words(command)?;
            // `cargo test -p x` becomes `cargo test`: options are not part of the rule. If an
            // option comes first (`rm -rf x`), or the program runs another one (`env A=b x`), the
            // first words say little and the whole command is meant.
            let plain = words.iter().take_while(|word| !word.starts_with('-')).count().min(2);
            let program = words.first()?;
            if plain == 1 && command::is_interpreter(program) {
                return None;
            }
            let whole = plain == 1 || command::is_wrapper(program);
            format!("{tool}({})", words[..if whole { words.len() } else { plain }].join(" "))
        } else if let Some(path) = args["path"].as_str() {
            format!("{tool}({})", globset::escape(&workspace_path(path)?))
        } else if let Some(url) = args["url"].as_str() {
            format!("{tool}({})", host_of(url)?)
        } else {
            tool.to_owned()
        };
        // The joined words may parse differently, so the rule must still cover the call.
        source.parse().ok().filter(|rule: &ApprovalRule| rule.covers(tool, args, workspace_path))
    }
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
