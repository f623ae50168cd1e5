//! [`analyze_command`]: what a shell command does to files, as far as its text tells. In doubt it
//! may have changed them. Whoever knows the files compares the output with them.

use super::working_folder::WorkingFolder;

/// Which files a command may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AffectedFiles {
    /// One file, or all files in a folder.
    Path(String),
    /// Every file that the command's text mentions.
    Mentioned,
    /// Any file.
    Everything,
}

/// The part of a file that a command prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownRange {
    /// Absolute path, by the folder that the command ran in.
    pub path: String,
    /// The first line, from 1. `None` for the beginning.
    pub from: Option<u64>,
    /// The most lines that it prints. `None` for all.
    pub lines: Option<u64>,
}

/// What a command does to files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandEffect {
    /// The files that it may have changed.
    pub changes: Vec<AffectedFiles>,
    /// The file whose lines are all that it prints. `None` if it prints anything else, too.
    pub shown: Option<ShownRange>,
}

/// What a command line does, run in a folder.
pub fn analyze_command(line: &str, folder: &WorkingFolder) -> CommandEffect {
    let mut effect = CommandEffect::default();
    let mut folder = folder.clone();
    // A here-document is input for a program, not commands.
    let (line, has_document) = match line.split_once("<<") {
        Some((line, _)) => (line, true),
        None => (line, false),
    };
    let commands = split_commands(line);
    let mut others = 0;
    for SimpleCommand { words, writes, .. } in &commands {
        effect.changes.extend(writes.iter().map(|path| AffectedFiles::Path(folder.resolve(path))));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if let ["cd", to] = words.as_slice() {
            folder = folder.change_folder(to);
            continue;
        }
        others += 1;
        effect.changes.extend(affected_files(&words, &folder));
        effect.shown = shown_range(&words, &folder);
    }
    if others != 1 || has_document || !effect.changes.is_empty() {
        effect.shown = None; // the output is not that of one file
    }
    if has_document {
        effect.changes.push(AffectedFiles::Mentioned);
    }
    effect
}

/// One command of a line: its words, and the files that its output is redirected to.
#[derive(Debug, Default)]
pub(super) struct SimpleCommand {
    pub words: Vec<String>,
    pub writes: Vec<String>,
    /// Whether its output is the input of the next command.
    pub piped: bool,
}

/// Splits a line into commands, respecting quotes. It is no shell, but good enough to see what is
/// changed.
pub(super) fn split_commands(line: &str) -> Vec<SimpleCommand> {
    let mut commands = vec![SimpleCommand::default()];
    let mut word: Option<String> = None;
    let mut is_target = false;
    let mut chars = line.chars().peekable();
    let end_word = |word: &mut Option<String>, is_target: &mut bool, commands: &mut Vec<SimpleCommand>| {
        if let (Some(word), Some(command)) = (word.take(), commands.last_mut()) {
            // `2>&1` and `/dev/null` are no files.
            let is_file = !word.starts_with('&') && word != "/dev/null";
            match std::mem::take(is_target) {
                true if is_file => command.writes.push(word),
                true => {}
                false => command.words.push(word),
            }
        }
    };
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                while let Some(inner) = chars.next().filter(|inner| *inner != c) {
                    match inner {
                        '\\' if c == '"' => word.extend(chars.next()),
                        inner => word.push(inner),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(chars.next()),
            '&' if is_target && word.is_none() => word.get_or_insert_default().push('&'),
            ';' | '|' | '&' | '\n' | '(' | ')' => {
                end_word(&mut word, &mut is_target, &mut commands);
                if let Some(command) = commands.last_mut().filter(|command| !command.words.is_empty()) {
                    command.piped = c == '|' && chars.peek() != Some(&'|');
                    commands.push(SimpleCommand::default());
                }
            }
            '>' => {
                if word.as_deref().is_some_and(|word| word.chars().all(|c| c.is_ascii_digit())) {
                    word = None; // the number of a stream
                }
                end_word(&mut word, &mut is_target, &mut commands);
                is_target = true;
            }
            c if c.is_whitespace() => end_word(&mut word, &mut is_target, &mut commands),
            c => word.get_or_insert_default().push(c),
        }
    }
    end_word(&mut word, &mut is_target, &mut commands);
    commands.retain(|command| !command.words.is_empty() || !command.writes.is_empty());
    commands
}

fn affected_files(words: &[&str], folder: &WorkingFolder) -> Vec<AffectedFiles> {
    let is_setting =
        |word: &&&str| word.contains('=') || matches!(**word, "sudo" | "env" | "time" | "command");
    let skip = words.iter().take_while(is_setting).count();
    let Some((program, arguments)) = words[skip..].split_first() else { return Vec::new() };
    let program = program.rsplit('/').next().unwrap_or(program);
    let has = |wanted: &[&str]| arguments.iter().any(|argument| wanted.contains(argument));
    let has_in_place = arguments.iter().any(|argument| {
        argument.starts_with("-i") || argument.starts_with("--in-place") || argument.starts_with("-pi")
    });
    // `sed -i ''` has an empty word, which is no path.
    let is_path = |word: &&&str| !word.is_empty() && !word.starts_with('-');
    let paths = || arguments.iter().filter(is_path).map(|path| AffectedFiles::Path(folder.resolve(path)));
    match program {
        "sed" | "perl" | "gsed" | "clang-format" if has_in_place => paths().collect(),
        "cp" | "install" | "rsync" => paths().next_back().into_iter().collect(),
        "mv" | "rm" | "tee" | "ln" | "truncate" => paths().collect(),
        "patch" | "xargs" | "find"
            if program == "patch" || has(&["sed", "-delete", "rm", "mv", "perl", "-exec"]) =>
        {
            vec![AffectedFiles::Everything]
        }
        "git" => affected_by_git(arguments, folder),
        "awk" | "gawk" if has(&["inplace"]) => paths().collect(),
        "python" | "python3" | "node" | "ruby" | "perl" | "php" | "bash" | "sh" | "zsh" | "deno" | "bun" => {
            vec![AffectedFiles::Mentioned]
        }
        "rustfmt" | "black" | "isort" | "gofmt" | "goimports" | "autopep8" | "yapf" => {
            vec![AffectedFiles::Everything]
        }
        "cargo" if has(&["fmt", "fix", "--fix"]) => vec![AffectedFiles::Everything],
        _ if has(&["--write", "--fix", "--apply", "format", "fmt", "prettier"]) => {
            vec![AffectedFiles::Everything]
        }
        _ => Vec::new(),
    }
}

fn affected_by_git(arguments: &[&str], folder: &WorkingFolder) -> Vec<AffectedFiles> {
    let verb = arguments.iter().find(|argument| !argument.starts_with('-'));
    let rewrites = [
        "checkout", "restore", "reset", "stash", "pull", "merge", "rebase", "revert", "switch", "apply", "am",
    ];
    let also = ["cherry-pick", "clean", "mv", "rm"];
    let is_new_branch = arguments.iter().any(|argument| matches!(*argument, "-b" | "-B" | "-c" | "-C"));
    match verb {
        Some(&("checkout" | "switch")) if is_new_branch => Vec::new(),
        Some(verb) if rewrites.contains(verb) || also.contains(verb) => {
            let named = arguments.iter().skip_while(|argument| **argument != "--").skip(1);
            let named: Vec<AffectedFiles> =
                named.map(|path| AffectedFiles::Path(folder.resolve(path))).collect();
            if named.is_empty() { vec![AffectedFiles::Everything] } else { named }
        }
        _ => Vec::new(),
    }
}

/// What a command prints that shows one file and nothing else.
fn shown_range(words: &[&str], folder: &WorkingFolder) -> Option<ShownRange> {
    let of = |path: &str, from, lines| Some(ShownRange { path: folder.resolve(path), from, lines });
    match *words {
        ["cat", path] if !path.starts_with('-') => of(path, None, None),
        ["sed", "-n", range, path] => {
            let (from, to) = range.strip_suffix('p')?.split_once(',')?;
            let (from, to): (u64, u64) = (from.parse().ok()?, to.parse().ok()?);
            of(path, Some(from), Some((to + 1).checked_sub(from)?))
        }
        ["head", "-n", count, path] => of(path, None, Some(count.parse().ok()?)),
        ["head", count, path] => of(path, None, Some(count.strip_prefix('-')?.parse().ok()?)),
        _ => None,
    }
}
