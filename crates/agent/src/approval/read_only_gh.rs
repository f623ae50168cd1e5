//! The commands of `gh`, GitHub's command line, that only read: [`only_reads`].
//!
//! The table is the whole of it. Unlike in the table of other programs, each option says what its value
//! is: a value can name another server, and a filter can print the token that gh uses.

use super::command::Word;

/// A subcommand, and the arguments with which it only reads.
struct GitHubCommand {
    words: &'static [&'static str],
    options: &'static [&'static [GitHubOption]],
    operands: Operands,
}

struct GitHubOption {
    short: Option<&'static str>,
    long: &'static str,
    value: OptionValue,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OptionValue {
    /// It has none.
    None,
    Text,
    /// `OWNER/NAME`. A third part would name the server to ask.
    Repository,
    /// A filter of jq, which can read variables of the environment: one of them is the token.
    Filter,
}

/// The arguments that are no options.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    None,
    /// Numbers, branches, words. No addresses, which would name the server to ask.
    Any,
    Repository,
    /// A path of the API, which GET reads. Queries of GraphQL are sent with POST.
    Endpoint,
}

const fn flag(long: &'static str) -> GitHubOption {
    GitHubOption { short: None, long, value: OptionValue::None }
}

const fn text(short: Option<&'static str>, long: &'static str) -> GitHubOption {
    GitHubOption { short, long, value: OptionValue::Text }
}

/// What most subcommands take. `--web` opens a browser, so it is missing everywhere.
const COMMON: &[GitHubOption] = &[
    GitHubOption { short: Some("-R"), long: "--repo", value: OptionValue::Repository },
    text(None, "--json"),
    text(Some("-t"), "--template"),
    GitHubOption { short: Some("-q"), long: "--jq", value: OptionValue::Filter },
];

/// What lists take.
const LIST: &[GitHubOption] = &[
    text(Some("-A"), "--author"),
    text(Some("-B"), "--base"),
    text(Some("-H"), "--head"),
    text(Some("-L"), "--limit"),
    text(Some("-S"), "--search"),
    text(Some("-a"), "--assignee"),
    text(Some("-l"), "--label"),
    text(Some("-m"), "--milestone"),
    text(Some("-s"), "--state"),
    text(None, "--app"),
    text(None, "--mention"),
    text(None, "--order"),
    text(None, "--sort"),
    flag("--draft"),
];

const RUN_LIST: &[GitHubOption] = &[
    text(Some("-L"), "--limit"),
    text(Some("-b"), "--branch"),
    text(Some("-c"), "--commit"),
    text(Some("-e"), "--event"),
    text(Some("-s"), "--status"),
    text(Some("-u"), "--user"),
    text(Some("-w"), "--workflow"),
    flag("--all"),
];

const SEARCH: &[GitHubOption] = &[
    text(None, "--assignee"),
    text(None, "--author"),
    text(None, "--created"),
    text(None, "--extension"),
    text(None, "--filename"),
    text(None, "--label"),
    text(None, "--language"),
    text(None, "--match"),
    text(None, "--merged-at"),
    text(None, "--order"),
    text(None, "--owner"),
    text(None, "--sort"),
    text(None, "--state"),
    text(None, "--updated"),
    text(Some("-L"), "--limit"),
];

const SHOW: &[GitHubOption] = &[
    GitHubOption { short: Some("-c"), long: "--comments", value: OptionValue::None },
    flag("--name-only"),
    flag("--patch"),
    flag("--required"),
    text(Some("-b"), "--branch"),
];

/// `--log` is missing: gh writes logs to a file before it shows them.
const RUN_VIEW: &[GitHubOption] = &[
    GitHubOption { short: Some("-v"), long: "--verbose", value: OptionValue::None },
    text(Some("-a"), "--attempt"),
    text(Some("-j"), "--job"),
    flag("--exit-status"),
];

const LISTING: &[GitHubOption] = &[
    text(Some("-L"), "--limit"),
    text(None, "--order"),
    text(None, "--sort"),
    flag("--exclude-drafts"),
    flag("--exclude-pre-releases"),
    flag("--fork"),
    flag("--source"),
    GitHubOption { short: Some("-a"), long: "--all", value: OptionValue::None },
];

/// Methods, fields, headers, files and other servers are missing. Without them a call of the API is a
/// GET.
const API: &[GitHubOption] = &[
    GitHubOption { short: Some("-i"), long: "--include", value: OptionValue::None },
    GitHubOption { short: Some("-q"), long: "--jq", value: OptionValue::Filter },
    text(Some("-t"), "--template"),
    flag("--paginate"),
    flag("--slurp"),
];

const fn command(
    words: &'static [&'static str],
    options: &'static [&'static [GitHubOption]],
    operands: Operands,
) -> GitHubCommand {
    GitHubCommand { words, options, operands }
}

const COMMANDS: &[GitHubCommand] = &[
    command(&["api"], &[API], Operands::Endpoint),
    command(&["issue", "list"], &[COMMON, LIST], Operands::None),
    command(&["issue", "status"], &[COMMON], Operands::None),
    command(&["issue", "view"], &[COMMON, SHOW], Operands::Any),
    command(&["label", "list"], &[COMMON, LIST], Operands::None),
    command(&["pr", "checks"], &[COMMON, SHOW], Operands::Any),
    command(&["pr", "diff"], &[COMMON, SHOW], Operands::Any),
    command(&["pr", "list"], &[COMMON, LIST], Operands::None),
    command(&["pr", "status"], &[COMMON], Operands::None),
    command(&["pr", "view"], &[COMMON, SHOW], Operands::Any),
    command(&["release", "list"], &[COMMON, LISTING], Operands::None),
    command(&["release", "view"], &[COMMON], Operands::Any),
    command(&["repo", "list"], &[COMMON, LISTING], Operands::Any),
    command(&["repo", "view"], &[COMMON, SHOW], Operands::Repository),
    command(&["run", "list"], &[COMMON, RUN_LIST], Operands::None),
    command(&["run", "view"], &[COMMON, RUN_VIEW], Operands::Any),
    command(&["search", "code"], &[COMMON, SEARCH], Operands::Any),
    command(&["search", "commits"], &[COMMON, SEARCH], Operands::Any),
    command(&["search", "issues"], &[COMMON, SEARCH], Operands::Any),
    command(&["search", "prs"], &[COMMON, SEARCH], Operands::Any),
    command(&["search", "repos"], &[COMMON, SEARCH], Operands::Any),
    command(&["workflow", "list"], &[COMMON, LISTING], Operands::None),
];

/// Whether a command line of gh only reads, from GitHub itself. The first word is `gh`.
pub fn only_reads(words: &[Word]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let matches = |command: &&GitHubCommand| {
        arguments.len() >= command.words.len()
            && arguments.iter().zip(command.words).all(|(word, known)| word.text == **known)
    };
    let found = COMMANDS.iter().find(matches);
    program.text == "gh"
        && !words.iter().any(|word| word.has_home)
        && found.is_some_and(|command| command.allows(&arguments[command.words.len()..]))
}

impl GitHubCommand {
    fn allows(&self, arguments: &[Word]) -> bool {
        let mut operands = 0;
        let mut rest = arguments.iter().map(|word| word.text.as_str());
        while let Some(word) = rest.next() {
            if !word.starts_with('-') {
                operands += 1;
                if !self.operands.allow(word, operands) {
                    return false;
                }
                continue;
            }
            let (name, joined) = match word.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value)),
                _ => (word, None),
            };
            let options = self.options.iter().copied().flatten();
            let mut named = options.filter(|option| option.long == name || option.short == Some(name));
            let Some(option) = named.next() else { return false };
            let is_allowed = match option.value {
                OptionValue::None => joined.is_none(),
                // A dash would begin the next option if this one took no value after all.
                value => joined.or_else(|| rest.next()).is_some_and(|text| value.allows(text)),
            };
            if !is_allowed {
                return false;
            }
        }
        self.operands != Operands::Endpoint || operands == 1
    }
}

impl OptionValue {
    fn allows(self, text: &str) -> bool {
        let is_plain = !text.starts_with('-') && !names_server(text);
        match self {
            OptionValue::None => false,
            OptionValue::Text => is_plain,
            OptionValue::Repository => is_repository(text),
            OptionValue::Filter => !text.starts_with('-') && !text.to_ascii_lowercase().contains("env"),
        }
    }
}

impl Operands {
    /// Whether the operand, the first or a later one, is one that may stand here.
    fn allow(self, text: &str, number: usize) -> bool {
        match self {
            Operands::None => false,
            Operands::Any => !names_server(text),
            Operands::Repository => number == 1 && (is_name(text) || is_repository(text)),
            Operands::Endpoint => {
                let path = text.trim_start_matches('/');
                let is_graphql = path.split(['/', '?']).any(|part| part.eq_ignore_ascii_case("graphql"));
                let has_dots = path.split(['/', '?']).any(|part| part == "..");
                number == 1 && !names_server(text) && !is_graphql && !has_dots && !path.is_empty()
            }
        }
    }
}

fn names_server(text: &str) -> bool {
    text.contains("://") || text.starts_with("//") || text.contains('@') && text.contains(':')
}

fn is_repository(text: &str) -> bool {
    text.split_once('/').is_some_and(|(owner, name)| is_name(owner) && is_name(name))
}

fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !text.is_empty() && !text.starts_with(['-', '.']) && text.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use crate::approval::read_only_github_words;

    #[test]
    fn what_asks_github_is_allowed() {
        for line in [
            "gh pr list",
            "gh pr list --state all -L 5 --json number,title --jq '.[].title'",
            "gh pr view 12 --comments -R owner/name",
            "gh pr view feature/branch",
            "gh pr diff 12 --name-only",
            "gh pr checks",
            "gh issue list --label bug --search 'is:open sort:updated-desc'",
            "gh run list --branch main --limit 3",
            "gh run view 42 --job 7",
            "gh repo view owner/name",
            "gh release list",
            "gh search issues 'crash on start' --owner me",
            "gh api /repos/owner/name/pulls",
            "gh api 'repos/{owner}/{repo}/issues?state=open' --paginate",
        ] {
            assert!(read_only_github_words(line).is_some(), "{line}");
        }
    }

    #[test]
    fn what_changes_something_or_leads_elsewhere_is_not() {
        for line in [
            "gh",
            "gh pr",
            "gh pr create --title x",
            "gh pr merge 1",
            "gh pr checkout 1",
            "gh issue close 1",
            "gh repo clone owner/name",
            "gh repo delete owner/name",
            "gh auth token",
            "gh auth status --show-token",
            "gh alias set pr x",
            "gh extension install x/y",
            "gh secret list",
            // Other ways to call the API.
            "gh api graphql",
            "gh api /graphql",
            "gh api repos/o/n/../../graphql",
            "gh api repos/o/n -X DELETE",
            "gh api repos/o/n -XDELETE",
            "gh api repos/o/n --method=PATCH",
            "gh api repos/o/n/issues -f title=x",
            "gh api repos/o/n/issues -ftitle=x",
            "gh api repos/o/n/issues -F title=x",
            "gh api repos/o/n/issues --field title=x",
            "gh api repos/o/n/issues --raw-field title=x",
            "gh api repos/o/n/issues --input body.json",
            "gh api repos/o/n -H 'X-HTTP-Method-Override: DELETE'",
            "gh api --cache 1h repos/o/n",
            "gh api repos/o/n repos/o/m",
            "gh api",
            // Other servers, which would get what the request says.
            "gh api https://evil.test/x",
            "gh api //evil.test/x",
            "gh api --hostname evil.test x",
            "gh pr list -R evil.test/owner/name",
            "gh pr list --repo=https://evil.test/owner/name",
            "gh pr list --repo git@evil.test:owner/name",
            "gh repo view evil.test/owner/name",
            "gh pr view https://evil.test/o/n/pull/1",
            // The token of gh.
            "gh pr list --json title --jq env.GH_TOKEN",
            "gh api user -q '$ENV.GH_TOKEN'",
            "gh api user --jq=env",
            // Browsers, files, and what does not end.
            "gh pr view 1 --web",
            "gh pr view 1 -w",
            "gh pr checks --watch",
            "gh run view 1 --log",
            "gh run download 1",
            "gh run watch 1",
            // Options that pose as values, and the other way round.
            "gh pr list --search --web",
            "gh pr list -L -w",
            "gh pr list --draft=x",
            "gh pr list -- --web",
            "gh pr list --limit",
            "gh --version pr list",
            "gh pr list; gh pr merge 1",
            "gh pr list > x",
            "GH_HOST=evil.test gh pr list",
            "gh pr view ~/x",
        ] {
            assert!(read_only_github_words(line).is_none(), "{line}");
        }
    }
}
