//! Splits a command line into words if it is one plain command, and finds where commands may begin
//! in any other line.

/// Programs that run the program named after them: allowing `sudo ls` once says nothing about other
/// uses of `sudo`.
const WRAPPERS: [&str; 20] = [
    "builtin", "chroot", "command", "coproc", "doas", "env", "eval", "exec", "flock", "ionice", "nice",
    "nohup", "setsid", "ssh", "stdbuf", "sudo", "time", "timeout", "watch", "xargs",
];

/// Shell keywords that may precede a command.
const SHELL_KEYWORDS: [&str; 8] = ["!", "do", "elif", "else", "if", "then", "until", "while"];

/// The words of a command line if it is one plain command: no list, pipe, substitution,
/// redirection, group, comment, assignment before the command, or pattern whose meaning only the
/// shell knows. `None` otherwise.
pub fn plain_words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    // Not `trim`: other Unicode white space is part of a word to a shell.
    let mut chars = line.trim_matches([' ', '\t', '\n']).chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let quoted = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c if c.is_control() => return None,
                        c => quoted.push(c),
                    }
                }
            }
            '"' => {
                let quoted = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '$' | '`' | '\\' | '!' => return None,
                        c if c.is_control() => return None,
                        c => quoted.push(c),
                    }
                }
            }
            c if is_special(c) => return None,
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    // In `A=b command` the first word is not the command.
    let command = words.first()?;
    (!command.contains('=') && !command.starts_with('~')).then_some(words)
}

/// Programs whose arguments are programs: allowing their name alone allows everything.
const INTERPRETERS: [&str; 22] = [
    "awk", "bash", "bun", "dash", "deno", "doas", "env", "eval", "exec", "fish", "ksh", "lua", "node",
    "perl", "php", "python", "ruby", "sh", "ssh", "sudo", "xargs", "zsh",
];

/// Whether a program runs code from its arguments, like `sh -c`. `python3.12` counts as `python`.
pub fn is_interpreter(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.contains(&name)
}

/// Whether a character means something to a shell outside of quotes. Patterns count, too: they may
/// expand to an option.
fn is_special(c: char) -> bool {
    c.is_control() || ";&|<>()$`\\!#*?[]{}".contains(c)
}

/// Whether a program runs the program that is named after it, like `sudo`.
pub fn is_wrapper(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    WRAPPERS.contains(&name)
}

/// The words of everything in a line that may be a command, roughly: quotes, keywords, assignments
/// and wrappers are removed.
pub fn possible_commands(line: &str) -> impl Iterator<Item = Vec<String>> {
    line.split(|c: char| ";&|()`{}\n\r".contains(c)).map(|part| {
        let bare = |word: &str| word.replace(['\'', '"', '\\'], "");
        let is_before =
            |word: &String| word.contains('=') || SHELL_KEYWORDS.contains(&word.as_str()) || is_wrapper(word);
        part.split_whitespace().map(bare).skip_while(is_before).collect()
    })
}
