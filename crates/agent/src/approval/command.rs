//! Splits a command line into words if it is one plain command, and finds where commands may begin
//! in any other line.

/// A word of a plain command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word without its quotes.
    pub text: String,
    /// Whether the shell replaces a `~` in it with a home folder.
    pub has_home: bool,
}

/// The words of a command line if it is one plain command: no list, pipe, substitution,
/// redirection, group, comment, assignment before the command, or pattern whose meaning only the
/// shell knows. `None` otherwise.
pub fn plain_words(line: &str) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    // Not `trim`: other Unicode white space is part of a word to a shell.
    let mut chars = line.trim_matches([' ', '\t', '\n']).chars();
    let new = || Word { text: String::new(), has_home: false };
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let quoted = word.get_or_insert_with(new);
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c if c.is_control() => return None,
                        c => quoted.text.push(c),
                    }
                }
            }
            '"' => {
                let quoted = word.get_or_insert_with(new);
                loop {
                    match chars.next()? {
                        '"' => break,
                        '$' | '`' | '\\' | '!' => return None,
                        c if c.is_control() => return None,
                        c => quoted.text.push(c),
                    }
                }
            }
            c if is_special(c) => return None,
            c => {
                let word = word.get_or_insert_with(new);
                word.has_home |= c == '~' && may_begin_home(&word.text);
                word.text.push(c);
            }
        }
    }
    words.extend(word);
    // In `A=b command` the first word is not the command.
    let command = words.first()?;
    (!command.text.contains('=') && !command.has_home).then_some(words)
}

/// Words as a command line that [`plain_words`] splits into the same words. `None` if a word can
/// only be written in ways that are not plain.
pub fn quote_words(words: &[Word]) -> Option<String> {
    let quote = |word: &Word| {
        let text = &word.text;
        let is_bare = !text.is_empty()
            && text.chars().all(|c| !is_special(c) && !matches!(c, ' ' | '\t' | '\'' | '"'))
            && text.match_indices('~').any(|(at, _)| may_begin_home(&text[..at])) == word.has_home;
        if is_bare {
            Some(text.clone())
        } else if word.has_home {
            None
        } else if !text.contains('\'') {
            Some(format!("'{text}'"))
        } else if !text.contains(['"', '$', '`', '\\', '!']) {
            Some(format!("\"{text}\""))
        } else {
            None
        }
    };
    let words: Option<Vec<String>> = words.iter().map(quote).collect();
    words.map(|words| words.join(" "))
}

/// Whether the shell may take a `~` after this part of a word for a home folder. Some do so after
/// `=` and `:`.
fn may_begin_home(before: &str) -> bool {
    before.is_empty() || before.ends_with(['=', ':'])
}

/// Whether a character means something to a shell outside of quotes. Patterns count, too: they may
/// expand to an option.
fn is_special(c: char) -> bool {
    c.is_control() || ";&|<>()$`\\!#*?[]{}".contains(c)
}

/// Programs that run the program named after them.
const WRAPPERS: [&str; 22] = [
    "builtin", "busybox", "chroot", "command", "coproc", "doas", "env", "eval", "exec", "flock", "ionice",
    "nice", "nohup", "setsid", "ssh", "stdbuf", "sudo", "time", "timeout", "unshare", "watch", "xargs",
];

/// Programs whose arguments are programs: allowing their name alone allows everything.
const INTERPRETERS: [&str; 22] = [
    "awk", "bash", "bun", "dash", "deno", "doas", "env", "eval", "exec", "fish", "ksh", "lua", "node",
    "perl", "php", "python", "ruby", "sh", "ssh", "sudo", "xargs", "zsh",
];

/// Shell keywords that may precede a command.
const SHELL_KEYWORDS: [&str; 8] = ["!", "do", "elif", "else", "if", "then", "until", "while"];

/// A program's name without its folder.
fn program_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether a program runs code from its arguments, like `sh -c`. `python3.12` counts as `python`.
pub fn is_interpreter(program: &str) -> bool {
    let name = program_name(program).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.contains(&name)
}

/// Whether a program runs the program that is named after it, like `sudo`.
fn is_wrapper(program: &str) -> bool {
    WRAPPERS.contains(&program_name(program))
}

/// Whether any command of a line may begin with these words, roughly: quotes, keywords, assignments,
/// folders of programs and options before a subcommand are passed over, and what a wrapper or an
/// interpreter gets as arguments may be a command.
pub fn may_run(line: &str, words: &[&str]) -> bool {
    // A backslash at the end of a line continues it.
    let line = line.replace("\\\n", "");
    let parts = line.split(|c: char| ";&|()`{}\n\r".contains(c));
    // `{git,push}` becomes two words.
    let lists =
        line.split(['{', '}']).skip(1).filter(|part| part.contains(',')).map(|part| part.replace(',', " "));
    let lists: Vec<String> = lists.collect();
    parts.chain(lists.iter().map(String::as_str)).any(|part| {
        let bare = |word: &str| word.replace(['\'', '"', '\\', '$'], "");
        let given: Vec<String> = part.split_whitespace().map(bare).collect();
        let is_before = |word: &&String| word.contains('=') || SHELL_KEYWORDS.contains(&word.as_str());
        let start = given.iter().take_while(is_before).count();
        let given: Vec<&str> = given[start..].iter().map(String::as_str).collect();
        let runs_others = given.first().is_some_and(|first| is_wrapper(first) || is_interpreter(first));
        let starts = if runs_others { given.len() } else { 1 };
        (0..starts.min(given.len())).any(|start| begins_with(&given[start..], words))
    })
}

/// Whether a command begins with these words, but for options between its program and the rest.
fn begins_with(given: &[&str], words: &[&str]) -> bool {
    let (Some((program, given)), Some((first, words))) = (given.split_first(), words.split_first()) else {
        return words.is_empty();
    };
    (program == first || program_name(program) == *first) && continues_with(given, words)
}

fn continues_with(given: &[&str], words: &[&str]) -> bool {
    if given.starts_with(words) {
        return true;
    }
    match given {
        // An option, with or without a value of its own.
        [option, rest @ ..] if option.starts_with('-') => {
            continues_with(rest, words)
                || rest.split_first().is_some_and(|(_, rest)| continues_with(rest, words))
        }
        _ => false,
    }
}
