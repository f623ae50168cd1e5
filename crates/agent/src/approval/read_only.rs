//! The commands that only read, whatever their arguments within these limits: [`read_only_command`].
//!
//! The table is the whole of it. A command that is not in it, an option that is not listed, and a
//! path that leads out of the workspace make a command that has to be asked about.

use super::command::Word;

/// A program, or a subcommand of one, and the arguments with which it only reads.
struct ReadOnlyCommand {
    /// The program and its subcommand.
    words: &'static [&'static str],
    /// Letters of the short options, which may stand together (`-la`).
    short: &'static str,
    /// Long options, and those with one dash that are whole words; with or without `=value`.
    long: &'static [&'static str],
    operands: Operands,
}

/// The arguments that are no options.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    /// There may be none: with one, the command writes (`git tag x`).
    None,
    /// At most one: the second would be written to (`uniq a b`).
    One,
    Any,
    /// The first one is a program of `sed` that prints lines by their numbers.
    SedLines,
}

const fn command(
    words: &'static [&'static str],
    short: &'static str,
    long: &'static [&'static str],
    operands: Operands,
) -> ReadOnlyCommand {
    ReadOnlyCommand { words, short, long, operands }
}

/// Options of git that say which commits to list and how to show changes. `--output`, `--ext-diff`
/// and `--textconv` write or run something, so they are missing.
const GIT_LOG: &[&str] = &[
    "--abbrev-commit",
    "--after",
    "--all",
    "--author",
    "--before",
    "--branches",
    "--cached",
    "--color",
    "--committer",
    "--cumulative",
    "--date",
    "--decorate",
    "--diff-filter",
    "--dirstat",
    "--first-parent",
    "--follow",
    "--format",
    "--graph",
    "--grep",
    "--histogram",
    "--ignore-all-space",
    "--ignore-blank-lines",
    "--ignore-space-change",
    "--max-count",
    "--merge-base",
    "--merges",
    "--minimal",
    "--name-only",
    "--name-status",
    "--no-color",
    "--no-decorate",
    "--no-ext-diff",
    "--no-merges",
    "--no-patch",
    "--no-renames",
    "--no-textconv",
    "--numstat",
    "--oneline",
    "--patch",
    "--patience",
    "--pretty",
    "--raw",
    "--remotes",
    "--reverse",
    "--shortstat",
    "--since",
    "--skip",
    "--staged",
    "--stat",
    "--summary",
    "--tags",
    "--topo-order",
    "--unified",
    "--until",
    "--word-diff",
];

/// Expressions of find that look at files. `-delete`, `-exec`, `-ok` and `-fprint` are missing, in
/// all their forms.
const FIND: &[&str] = &[
    "-a",
    "-and",
    "-empty",
    "-iname",
    "-ipath",
    "-iregex",
    "-maxdepth",
    "-mindepth",
    "-mmin",
    "-mtime",
    "-name",
    "-newer",
    "-not",
    "-o",
    "-or",
    "-path",
    "-perm",
    "-print",
    "-print0",
    "-prune",
    "-regex",
    "-size",
    "-type",
    "-user",
];

const GREP: &[&str] = &[
    "--after-context",
    "--before-context",
    "--color",
    "--context",
    "--count",
    "--exclude",
    "--exclude-dir",
    "--extended-regexp",
    "--files-with-matches",
    "--files-without-match",
    "--fixed-strings",
    "--ignore-case",
    "--include",
    "--invert-match",
    "--line-number",
    "--max-count",
    "--no-filename",
    "--only-matching",
    "--perl-regexp",
    "--quiet",
    "--recursive",
    "--regexp",
    "--with-filename",
    "--word-regexp",
];

/// `--pre`, `--search-zip`, `--follow` and `--hostname-bin` run programs or leave the folder.
const RIPGREP: &[&str] = &[
    "--after-context",
    "--before-context",
    "--case-sensitive",
    "--color",
    "--context",
    "--count",
    "--count-matches",
    "--files",
    "--files-with-matches",
    "--files-without-match",
    "--fixed-strings",
    "--glob",
    "--heading",
    "--hidden",
    "--iglob",
    "--ignore-case",
    "--invert-match",
    "--json",
    "--line-number",
    "--max-count",
    "--max-depth",
    "--multiline",
    "--no-filename",
    "--no-heading",
    "--no-ignore",
    "--no-line-number",
    "--only-matching",
    "--pcre2",
    "--regexp",
    "--smart-case",
    "--sort",
    "--stats",
    "--type",
    "--type-not",
    "--vimgrep",
    "--with-filename",
    "--word-regexp",
];

const READ_ONLY_COMMANDS: &[ReadOnlyCommand] = &[
    command(&["basename"], "as", &[], Operands::Any),
    command(&["cat"], "AbeEnstTuv", &["--number", "--show-all"], Operands::Any),
    command(&["cmp"], "blns", &[], Operands::Any),
    command(&["cut"], "bcdfs0123456789,", &["--delimiter", "--fields"], Operands::Any),
    command(&["diff"], "BNUbcipqruwy0123456789", &["--brief", "--color", "--unified"], Operands::Any),
    command(&["dirname"], "", &[], Operands::Any),
    command(
        &["du"],
        "abchkmsd0123456789",
        &["--human-readable", "--max-depth", "--summarize"],
        Operands::Any,
    ),
    command(&["echo"], "neE", &[], Operands::Any),
    command(&["file"], "bi", &["--brief", "--mime", "--mime-type"], Operands::Any),
    command(&["find"], "", FIND, Operands::Any),
    command(&["git", "blame"], "CLMlnsw0123456789", &["--date", "--porcelain"], Operands::Any),
    command(
        &["git", "branch"],
        "arv",
        &["--all", "--list", "--remotes", "--show-current", "--verbose"],
        Operands::None,
    ),
    command(
        &["git", "describe"],
        "",
        &["--abbrev", "--always", "--dirty", "--exact-match", "--long", "--tags"],
        Operands::Any,
    ),
    command(&["git", "diff"], "DMURbpuwz0123456789", GIT_LOG, Operands::Any),
    command(
        &["git", "grep"],
        "ABCEFGHPchilnoqvw0123456789",
        &["--cached", "--count", "--heading", "--ignore-case", "--line-number", "--name-only", "--untracked"],
        Operands::Any,
    ),
    command(&["git", "log"], "GLMSUinpsuz0123456789", GIT_LOG, Operands::Any),
    command(
        &["git", "ls-files"],
        "cdkmostuz",
        &["--cached", "--deleted", "--exclude-standard", "--modified", "--others", "--stage", "--unmerged"],
        Operands::Any,
    ),
    command(&["git", "ls-tree"], "dlrtz", &["--full-tree", "--long", "--name-only"], Operands::Any),
    command(&["git", "remote"], "v", &["--verbose"], Operands::None),
    command(
        &["git", "rev-parse"],
        "",
        &["--abbrev-ref", "--git-dir", "--is-inside-work-tree", "--short", "--show-toplevel", "--verify"],
        Operands::Any,
    ),
    command(&["git", "show"], "MUpsuz0123456789", GIT_LOG, Operands::Any),
    command(
        &["git", "status"],
        "bsuvz",
        &[
            "--branch",
            "--ignored",
            "--long",
            "--porcelain",
            "--short",
            "--show-stash",
            "--untracked-files",
            "--verbose",
        ],
        Operands::Any,
    ),
    command(&["git", "tag"], "", &["--list"], Operands::None),
    command(&["grep"], "ABCEFGHILPabcehilmnoqrsvwxz0123456789", GREP, Operands::Any),
    command(&["head"], "cnqvz0123456789", &["--bytes", "--lines"], Operands::Any),
    command(
        &["ls"],
        "1ABCFGHLRSTUXZacdfghiklmnopqrstux",
        &[
            "--all",
            "--almost-all",
            "--color",
            "--directory",
            "--full-time",
            "--group-directories-first",
            "--human-readable",
            "--recursive",
            "--reverse",
            "--sort",
            "--time",
        ],
        Operands::Any,
    ),
    command(&["md5sum"], "", &[], Operands::Any),
    command(&["nl"], "b", &[], Operands::Any),
    command(&["pwd"], "LP", &[], Operands::None),
    command(&["realpath"], "es", &["--relative-to"], Operands::Any),
    command(&["rg"], "ABCFHINPSUVceghilmnopqstuvwx.0123456789", RIPGREP, Operands::Any),
    command(&["sed"], "n", &[], Operands::SedLines),
    command(&["sha256sum"], "", &[], Operands::Any),
    command(
        &["sort"],
        "Mbdfghiknrstuz0123456789,.",
        &["--key", "--numeric-sort", "--reverse", "--unique"],
        Operands::Any,
    ),
    command(&["stat"], "Lc", &["--format"], Operands::Any),
    command(&["tail"], "cnqvz0123456789", &["--bytes", "--lines"], Operands::Any),
    command(&["tree"], "CDILPadfhps0123456789", &["--dirsfirst", "--gitignore", "--noreport"], Operands::Any),
    command(&["uniq"], "cdiu", &["--count"], Operands::One),
    command(&["wc"], "Lclmw", &["--bytes", "--chars", "--lines", "--words"], Operands::Any),
    command(&["which"], "a", &[], Operands::Any),
];

/// The program, or the program and its subcommand, if a command only reads: the words that stand for
/// all commands of this kind.
pub fn read_only_command(words: &[Word]) -> Option<&'static [&'static str]> {
    let matches = |command: &&ReadOnlyCommand| {
        words.len() >= command.words.len()
            && words.iter().zip(command.words).all(|(word, known)| word.text == **known)
            && command.only_reads(&words[command.words.len()..])
    };
    READ_ONLY_COMMANDS.iter().find(matches).map(|command| command.words)
}

impl ReadOnlyCommand {
    fn only_reads(&self, arguments: &[Word]) -> bool {
        let (mut operands, mut only_operands) = (0, false);
        arguments.iter().all(|word| {
            let text = word.text.as_str();
            if word.has_home || leads_out(text) {
                return false;
            }
            match text.strip_prefix('-') {
                Some("-") if !only_operands && !self.has_word_options() => {
                    only_operands = true;
                    true
                }
                // After `--` a dash begins a name, unless an option before it took the `--` for its value
                // (`rg -e -- --pre=x`).
                Some(option) if !option.is_empty() => !only_operands && self.allows_option(text, option),
                _ => {
                    operands += 1;
                    match self.operands {
                        Operands::None => false,
                        Operands::One => operands == 1,
                        Operands::Any => true,
                        Operands::SedLines => operands > 1 || prints_lines(text),
                    }
                }
            }
        })
    }

    /// Whether options are words with one dash, as find's, which has no `--` and no short ones.
    fn has_word_options(&self) -> bool {
        self.long.first().is_some_and(|first| !first.starts_with("--"))
    }

    fn allows_option(&self, text: &str, option: &str) -> bool {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        if self.long.contains(&name) {
            return !leads_out(value);
        }
        // Letters may be followed by a number (`-n5`), which the table lists as digits.
        !text.starts_with("--") && !self.short.is_empty() && option.chars().all(|c| self.short.contains(c))
    }
}

/// Whether an argument may name a place outside of the workspace.
fn leads_out(text: &str) -> bool {
    text.starts_with('/')
        || text.split(['/', ':']).any(|part| part == "..")
        || text.contains("=/")
        || text.contains(":/")
}

/// `12p`, `1,20p` or `5,$p`: a program of sed that does nothing but print.
fn prints_lines(program: &str) -> bool {
    let Some(range) = program.strip_suffix('p') else { return false };
    let (first, last) = range.split_once(',').unwrap_or((range, "1"));
    let number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    number(first) && (number(last) || last == "$")
}
