//! [`output_of_command`]: which lines of files a command prints, as far as its text tells. Whoever
//! has the files compares the output with them: the text may promise too much.

use super::shell_command::{SimpleCommand, split_commands};
use super::working_folder::WorkingFolder;

/// A piece of a command's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputPiece {
    /// Lines of a file.
    Lines(ShownLines),
    /// A line that the command names itself, such as a separator.
    Text(String),
}

/// Lines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownLines {
    /// Absolute path.
    pub path: String,
    /// What is taken of the file, one selection after the other.
    pub selections: Vec<LineSelection>,
    /// Whether each line begins with its number, as `cat -n` and `nl -ba` print it.
    pub numbered: bool,
}

/// Some of the lines that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineSelection {
    /// Those from the line `first` to the line `last`, counted from 1.
    Span {
        /// The first line.
        first: u64,
        /// The last line; `u64::MAX` for the end.
        last: u64,
    },
    /// So many at the end.
    Last(u64),
}

impl ShownLines {
    /// The first and the last line, of a file that has so many. `None` if no line is left.
    pub fn span(&self, lines: u64) -> Option<(u64, u64)> {
        let mut span: (u64, u64) = (1, lines);
        for selection in &self.selections {
            span = match *selection {
                LineSelection::Span { first, last } => {
                    let nth = |line: u64| span.0.saturating_add(line.saturating_sub(1));
                    (nth(first), nth(last).min(span.1))
                }
                LineSelection::Last(count) => (span.0.max((span.1 + 1).saturating_sub(count)), span.1),
            };
        }
        (span.0 <= span.1).then_some(span)
    }

    /// A line of the file as the command prints it.
    pub fn printed_line(&self, number: u64, line: &str) -> String {
        if self.numbered { format!("{number:>6}\t{line}") } else { line.to_owned() }
    }
}

/// What a command line prints, run in `folder`, if it is nothing but lines of files and separators.
/// Git names files by their place in the repository at `root`.
pub fn output_of_command(
    line: &str,
    folder: &WorkingFolder,
    root: &WorkingFolder,
) -> Option<Vec<OutputPiece>> {
    // A here-document is input for a program, not commands.
    if line.contains("<<") {
        return None;
    }
    let mut folder = folder.clone();
    let mut output: Vec<OutputPiece> = Vec::new();
    let mut is_piped = false;
    for SimpleCommand { words, writes, piped } in &split_commands(line) {
        if !writes.is_empty() {
            return None;
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            filter if is_piped => {
                let selection = selection(filter)?;
                match output.last_mut()? {
                    OutputPiece::Lines(lines) => lines.selections.push(selection),
                    OutputPiece::Text(_) => return None,
                }
            }
            ["cd", to] if !piped => folder = folder.change_folder(to),
            ["echo", words @ ..] if !piped => output.push(OutputPiece::Text(words.join(" "))),
            words => {
                let shown = shown_lines(words, &folder, root)?;
                // What is filtered afterwards is all of them together.
                if *piped && shown.len() > 1 {
                    return None;
                }
                output.extend(shown.into_iter().map(OutputPiece::Lines));
            }
        }
        is_piped = *piped;
    }
    let has_lines = output.iter().any(|piece| matches!(piece, OutputPiece::Lines(_)));
    has_lines.then_some(output)
}

/// The lines that a command prints of the files that it names.
fn shown_lines(words: &[&str], folder: &WorkingFolder, root: &WorkingFolder) -> Option<Vec<ShownLines>> {
    let whole =
        |path: &str, numbered| ShownLines { path: folder.resolve(path), selections: Vec::new(), numbered };
    let is_path = |word: &&str| !word.starts_with(['-', '<']);
    match words {
        ["cat", "-n", path] | ["nl", "-ba", path] if is_path(path) => Some(vec![whole(path, true)]),
        ["cat", paths @ ..] if !paths.is_empty() && paths.iter().all(is_path) => {
            Some(paths.iter().map(|path| whole(path, false)).collect())
        }
        ["git", "show", name] | ["git", "--no-pager", "show", name] => {
            let (_, path) = name.split_once(':')?;
            let from = if path.starts_with("./") { folder } else { root };
            Some(vec![ShownLines { path: from.resolve(path), selections: Vec::new(), numbered: false }])
        }
        [filter @ .., path] if is_path(path) => {
            let selections = vec![selection(filter)?];
            Some(vec![ShownLines { selections, ..whole(path, false) }])
        }
        _ => None,
    }
}

/// The lines of its input that a filter prints.
fn selection(words: &[&str]) -> Option<LineSelection> {
    let from_start = |last| LineSelection::Span { first: 1, last };
    match words {
        ["sed", "-n", range] => parse_sed_range(range),
        ["head"] => Some(from_start(10)),
        ["head", count @ ..] => Some(from_start(parse_count(count)?.parse().ok()?)),
        ["tail"] => Some(LineSelection::Last(10)),
        ["tail", count @ ..] => match parse_count(count)? {
            count if count.starts_with('+') => {
                Some(LineSelection::Span { first: count[1..].parse().ok()?, last: u64::MAX })
            }
            count => Some(LineSelection::Last(count.parse().ok()?)),
        },
        _ => None,
    }
}

/// The number in `-n 20`, `-n20` or `-20`.
fn parse_count<'a>(words: &[&'a str]) -> Option<&'a str> {
    match words {
        ["-n", count] => Some(count),
        [count] => {
            let count = count.strip_prefix('-')?;
            Some(count.strip_prefix('n').unwrap_or(count))
        }
        _ => None,
    }
}

/// The lines of `10,20p`, `10,$p` or `10p`.
fn parse_sed_range(range: &str) -> Option<LineSelection> {
    let range = range.strip_suffix('p')?;
    let (first, last) = range.split_once(',').unwrap_or((range, range));
    let first = first.trim().parse().ok()?;
    let last = match last.trim() {
        "$" => u64::MAX,
        last => last.parse().ok()?,
    };
    // sed prints the first line even if the range ends before it.
    Some(LineSelection::Span { first, last: u64::max(first, last) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(line: &str) -> Option<Vec<OutputPiece>> {
        output_of_command(line, &WorkingFolder::new("/repo/sub"), &WorkingFolder::new("/repo"))
    }

    /// The path and the span of the one file that a command shows, of 100 lines.
    fn span(line: &str) -> Option<(String, Option<(u64, u64)>)> {
        match output(line)?.as_slice() {
            [OutputPiece::Lines(shown)] => Some((shown.path.clone(), shown.span(100))),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn commands_that_show_lines_of_a_file_say_which() {
        for (line, path, first, last) in [
            ("cat a.rs", "/repo/sub/a.rs", 1, 100),
            ("cat -n a.rs", "/repo/sub/a.rs", 1, 100),
            ("nl -ba '../a b.rs' 2>/dev/null", "/repo/a b.rs", 1, 100),
            ("cd .. && cat a.rs", "/repo/a.rs", 1, 100),
            ("sed -n '10,20p' a.rs", "/repo/sub/a.rs", 10, 20),
            ("sed -n 90,200p a.rs", "/repo/sub/a.rs", 90, 100),
            ("sed -n '90,$p' a.rs", "/repo/sub/a.rs", 90, 100),
            ("sed -n 7p a.rs", "/repo/sub/a.rs", 7, 7),
            ("head a.rs", "/repo/sub/a.rs", 1, 10),
            ("head -n 30 a.rs", "/repo/sub/a.rs", 1, 30),
            ("head -30 a.rs", "/repo/sub/a.rs", 1, 30),
            ("tail -n30 a.rs", "/repo/sub/a.rs", 71, 100),
            ("tail -n 300 a.rs", "/repo/sub/a.rs", 1, 100),
            ("tail -n +30 a.rs", "/repo/sub/a.rs", 30, 100),
            ("nl -ba a.rs | sed -n '40,60p'", "/repo/sub/a.rs", 40, 60),
            ("cat a.rs | head -50 | tail -n 5", "/repo/sub/a.rs", 46, 50),
            ("git show HEAD:src/a.rs", "/repo/src/a.rs", 1, 100),
            ("git show HEAD:./a.rs | head -3", "/repo/sub/a.rs", 1, 3),
        ] {
            assert_eq!(span(line), Some((path.to_owned(), Some((first, last)))), "{line}");
        }
        assert_eq!(span("sed -n '200,300p' a.rs"), Some(("/repo/sub/a.rs".into(), None)));
    }

    #[test]
    fn several_files_and_separators_come_one_after_the_other() {
        let file = |path: &str| {
            let path = path.into();
            OutputPiece::Lines(ShownLines { path, selections: Vec::new(), numbered: false })
        };
        let expected = [file("/repo/sub/a"), OutputPiece::Text("--- b".into()), file("/repo/sub/b")];
        assert_eq!(output("cat a; echo '--- b' && cat b").as_deref(), Some(&expected[..]));
        assert_eq!(output("cat a b"), Some(vec![file("/repo/sub/a"), file("/repo/sub/b")]));
    }

    #[test]
    fn other_output_is_not_that_of_files() {
        for line in [
            "ls",
            "cat",
            "cat a.rs > b.rs",
            "cat a.rs; ls",
            "cat a.rs | grep x",
            "cat a.rs b.rs | head -3",
            "cat -A a.rs",
            "cat < a.rs",
            "cat <<EOF\na\nEOF",
            "head -n -3 a.rs",
            "head -c 30 a.rs",
            "tail -f a.rs",
            "sed -n '/x/p' a.rs",
            "sed '10,20p' a.rs",
            "git show HEAD",
            "echo hello",
            "echo hello | cat",
        ] {
            assert_eq!(output(line), None, "{line}");
        }
    }

    #[test]
    fn numbers_stand_before_the_lines() {
        let shown = ShownLines { path: "/a".into(), selections: Vec::new(), numbered: true };
        assert_eq!(shown.printed_line(42, "x"), "    42\tx");
    }
}
