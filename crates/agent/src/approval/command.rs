//! Whether a command line is one plain command, and its words; and where commands may begin in any other.

/// Programs that run the one named after them: what they were allowed for once says nothing about the next time.
const RUN_ANOTHER: [&str; 20] = [
    "builtin", "chroot", "command", "coproc", "doas", "env", "eval", "exec", "flock", "ionice", "nice",
    "nohup", "setsid", "ssh", "stdbuf", "sudo", "time", "timeout", "watch", "xargs",
];

/// Words that may stand before a command.
const BEFORE: [&str; 8] = ["!", "do", "elif", "else", "if", "then", "until", "while"];

/// The words of a command line that is one plain command: no list, pipe, substitution, redirection, group, comment,
/// assignment before the command, or pattern whose meaning only the shell knows. None otherwise.
pub fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    // Not `trim`: what else is white to Unicode is a part of the word to a shell.
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
    // `A=b command`: the first word is not the command.
    let command = words.first()?;
    (!command.contains('=') && !command.starts_with('~')).then_some(words)
}

/// Programs whose arguments are programs: to allow their name alone is to allow everything.
const RUNNERS: [&str; 22] = [
    "awk", "bash", "bun", "dash", "deno", "doas", "env", "eval", "exec", "fish", "ksh", "lua", "node",
    "perl", "php", "python", "ruby", "sh", "ssh", "sudo", "xargs", "zsh",
];

/// Whether a program runs whatever its arguments say, such as `sh -c`. `python3.12` is a `python`.
pub fn runs_others(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    RUNNERS.contains(&name)
}

/// What means something to a shell outside of quotes. Patterns only choose among arguments, but may choose an option.
fn is_special(c: char) -> bool {
    c.is_control() || ";&|<>()$`\\!#*?[]{}".contains(c)
}

/// Whether a program runs the one that is named after it.
pub fn runs_another(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    RUN_ANOTHER.contains(&name)
}

/// The words of everything in a line that may be a command, roughly: quotes are taken away, and so is what may stand before one.
pub fn commands(line: &str) -> impl Iterator<Item = Vec<String>> {
    line.split(|c: char| ";&|()`{}\n\r".contains(c)).map(|part| {
        let bare = |word: &str| word.replace(['\'', '"', '\\'], "");
        let is_before =
            |word: &String| word.contains('=') || BEFORE.contains(&word.as_str()) || runs_another(word);
        part.split_whitespace().map(bare).skip_while(is_before).collect()
    })
}
