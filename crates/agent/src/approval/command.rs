//! Whether a command line is one plain command, and its words.

/// The words of a command line that is one plain command: no list, pipe, substitution, redirection, group, comment,
/// assignment before the command, or pattern whose meaning only the shell knows. None otherwise.
pub fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.trim().chars();
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
    "awk", "bash", "bun", "dash", "deno", "doas", "env", "eval", "exec", "fish", "ksh", "lua", "node", "perl", "php",
    "python", "ruby", "sh", "ssh", "sudo", "xargs", "zsh",
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
