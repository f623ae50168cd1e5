//! What may be done without asking: rules such as `edit(src/**)` or `bash(cargo test)`.
//!
//! A rule names a tool, and in parentheses what of it is meant: a path pattern for tools that take a `path`, the words a command
//! begins with for `bash`, a host for tools that take a `url`. A command that is more than one plain command (lists, pipes,
//! substitutions, redirections) is never covered by its first words, nor an address by its host that is not written plainly.
//! What is denied is looked for more widely: see [`Rule::denies`].

mod command; // whether a command line is one plain command, and its words

use std::fmt;
use std::str::FromStr;

use globset::{GlobBuilder, GlobMatcher};
use serde_json::Value;
use thiserror::Error;

/// One rule.
#[derive(Clone, Debug)]
pub struct Rule {
    tool: String,
    what: What,
    written: String,
}

#[derive(Clone, Debug)]
enum What {
    /// Every call of the tool.
    Anything,
    /// Calls whose `path` matches.
    Path(GlobMatcher),
    /// Commands that begin with these words.
    Words(Vec<String>),
    /// Addresses at this host, or below it.
    Host(String),
}

/// A rule that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "\"{rule}\" is no rule: {why}. Rules look like edit(src/**), bash(cargo test), fetch(docs.rs) or write"
)]
pub struct NoRule {
    /// What was written.
    pub rule: String,
    /// What is wrong with it.
    pub why: String,
}

impl FromStr for Rule {
    type Err = NoRule;

    fn from_str(written: &str) -> Result<Self, NoRule> {
        let written = written.trim();
        let wrong = |why: &str| NoRule { rule: written.to_owned(), why: why.to_owned() };
        // Rules are kept one per line: a name with a line end in it would be several.
        if written.contains(char::is_control) {
            return Err(wrong("it holds a control character"));
        }
        let (tool, inside) = match written.split_once('(') {
            None => (written, None),
            Some((tool, rest)) => (
                tool,
                Some(rest.strip_suffix(')').ok_or_else(|| wrong("a parenthesis is not closed"))?.trim()),
            ),
        };
        let named = tool.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if tool.is_empty() || !named {
            return Err(wrong("it does not begin with a tool's name"));
        }
        let what = match (tool, inside) {
            (_, None) => What::Anything,
            (_, Some("")) => return Err(wrong("there is nothing in the parentheses")),
            ("bash", Some(words)) => {
                let words =
                    command::words(words).ok_or_else(|| wrong("only one plain command can be allowed"))?;
                What::Words(words)
            }
            ("fetch", Some(host)) => What::Host(host.trim_matches('.').to_lowercase()),
            (_, Some(pattern)) => {
                let glob = GlobBuilder::new(pattern).literal_separator(true).build();
                What::Path(glob.map_err(|error| wrong(&error.to_string()))?.compile_matcher())
            }
        };
        Ok(Rule { tool: tool.to_owned(), what, written: written.to_owned() })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl Rule {
    /// Whether the rule covers a call. `key` turns a call's path into the path below the workspace, where it is in it.
    pub fn covers(&self, tool: &str, args: &Value, key: impl Fn(&str) -> Option<String>) -> bool {
        if self.tool != tool {
            return false;
        }
        match &self.what {
            What::Anything => true,
            What::Path(glob) => args["path"].as_str().and_then(key).is_some_and(|path| glob.is_match(path)),
            What::Words(words) => {
                let given = args["command"].as_str().and_then(command::words);
                given.is_some_and(|given| given.starts_with(words))
            }
            What::Host(host) => args["url"].as_str().and_then(host_of).is_some_and(|given| {
                given == *host || given.strip_suffix(host.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }),
        }
    }

    /// Whether the rule, as one that denies, is against a call: where it covers it, where one of the commands of a line begins
    /// with its words, and where the host of an address cannot be told. It keeps a model from a habit, not a program from a deed.
    pub fn denies(&self, tool: &str, args: &Value, key: impl Fn(&str) -> Option<String>) -> bool {
        let wider = || match &self.what {
            What::Words(words) => args["command"]
                .as_str()
                .is_some_and(|line| command::commands(line).any(|given| given.starts_with(words))),
            What::Host(_) => args["url"].as_str().is_some_and(|url| host_of(url).is_none()),
            What::Anything | What::Path(_) => false,
        };
        self.tool == tool && (self.covers(tool, args, key) || wider())
    }

    /// The tool that the rule is about.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The rule that allows calls like this one from now on: the narrowest that is still of use. None where a call is better
    /// asked about each time.
    pub fn like(tool: &str, args: &Value, key: impl Fn(&str) -> Option<String>) -> Option<Rule> {
        let written = if let Some(command) = args["command"].as_str() {
            let words = command::words(command)?;
            // `cargo test` of `cargo test -p x`: options are not part of what was meant. Where they come first (`rm -rf x`), or
            // another program does (`env A=b x`), the first words say little, and all of them are meant.
            let plain = words.iter().take_while(|word| !word.starts_with('-')).count().min(2);
            let program = words.first()?;
            if plain == 1 && command::runs_others(program) {
                return None;
            }
            let whole = plain == 1 || command::runs_another(program);
            format!("{tool}({})", words[..if whole { words.len() } else { plain }].join(" "))
        } else if let Some(path) = args["path"].as_str() {
            format!("{tool}({})", globset::escape(&key(path)?))
        } else if let Some(url) = args["url"].as_str() {
            format!("{tool}({})", host_of(url)?)
        } else {
            tool.to_owned()
        };
        // What was joined may mean something else when it is taken apart again.
        written.parse().ok().filter(|rule: &Rule| rule.covers(tool, args, key))
    }
}

/// The host of an address that is written plainly; none where who fetches it might read another one.
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
