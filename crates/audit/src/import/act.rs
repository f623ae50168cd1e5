//! What a call does to files, by the names that agents give their tools.

use std::sync::Arc;

use serde_json::Value;

use super::value::Fields;

/// What a call does to files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Shows a file, or some of its lines.
    Read {
        /// The file, as the model named it.
        path: Arc<str>,
        /// The first line, from 1; none for the beginning.
        from: Option<u64>,
        /// At most so many lines; none for all.
        lines: Option<u64>,
    },
    /// Writes a whole file.
    Write {
        /// The file.
        path: Arc<str>,
        /// What it then holds.
        content: Arc<str>,
    },
    /// Changes places of a file, one after the other.
    Edit {
        /// The file.
        path: Arc<str>,
        /// What is put in place of what.
        changes: Vec<Change>,
    },
    /// Applies a patch in Codex's form, to any number of files.
    Patch {
        /// From `*** Begin Patch` to `*** End Patch`.
        patch: Arc<str>,
    },
    /// Runs a command, which may do anything.
    Shell {
        /// The command line.
        command: Arc<str>,
        /// The folder it runs in, where that is not the session's.
        cwd: Option<Arc<str>>,
    },
    /// Nothing that is known of.
    Other,
}

/// A change of one place of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What was there.
    pub old: Arc<str>,
    /// What is there now.
    pub new: Arc<str>,
    /// Whether at all places where it was.
    pub everywhere: bool,
}

impl Act {
    /// What a tool of this name does with these arguments.
    pub fn of(tool: &str, arguments: &Value) -> Self {
        let path = || {
            let names = ["path", "file_path", "filePath", "filename", "notebook_path"];
            names.iter().find_map(|name| arguments.str(name)).map(Arc::from)
        };
        let known = match tool.to_ascii_lowercase().as_str() {
            "read" | "read_file" | "view" | "cat" => path().map(|path| Act::Read {
                path,
                from: position(arguments, "offset"),
                lines: position(arguments, "limit"),
            }),
            "write" | "write_file" | "create" | "create_file" => path()
                .zip(text(arguments, &["content", "contents", "text"]))
                .map(|(path, content)| Act::Write { path, content }),
            "edit" | "multiedit" | "multi_edit" | "str_replace" | "edit_file" => {
                path().map(|path| Act::Edit { path, changes: changes(arguments) })
            }
            "apply_patch" => text(arguments, &["input", "patch"]).map(|patch| Act::Patch { patch }),
            "bash" | "shell" | "exec" | "exec_command" | "local_shell" | "shell_command" | "run"
            | "terminal" => shell(arguments),
            _ => None,
        };
        known.unwrap_or(Act::Other)
    }
}

fn text(arguments: &Value, names: &[&str]) -> Option<Arc<str>> {
    names.iter().find_map(|name| arguments.str(name)).map(Arc::from)
}

fn position(arguments: &Value, name: &str) -> Option<u64> {
    Some(arguments.count(name)).filter(|count| *count > 0)
}

/// One change in the arguments themselves, or a list of them.
fn changes(arguments: &Value) -> Vec<Change> {
    let many = [arguments.list("edits"), arguments.list("changes")].concat();
    let all = if many.is_empty() { vec![arguments.clone()] } else { many };
    all.iter().filter_map(change).collect()
}

fn change(value: &Value) -> Option<Change> {
    let old = text(value, &["oldText", "old_string", "old_text", "old"])?;
    let new = text(value, &["newText", "new_string", "new_text", "new"])?;
    Some(Change { old, new, everywhere: value.is("replace_all") || value.is("replaceAll") })
}

/// A command line, or a program with its arguments. A shell that is only there to run a script is left out, and
/// `apply_patch` as a program is the patch it applies.
fn shell(arguments: &Value) -> Option<Act> {
    let cwd = text(arguments, &["workdir", "cwd", "working_directory"]);
    let command = arguments.get("command").or_else(|| arguments.get("cmd"))?;
    let words: Vec<&str> = match command {
        Value::String(line) => vec![line],
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    match words.as_slice() {
        ["apply_patch", patch] => Some(Act::Patch { patch: (*patch).into() }),
        [shell, flags, script] if shell.ends_with("sh") && flags.starts_with('-') => {
            Some(of_line(script, cwd))
        }
        [line] => Some(of_line(line, cwd)),
        words => Some(Act::Shell { command: words.join(" ").into(), cwd }),
    }
}

fn of_line(line: &str, cwd: Option<Arc<str>>) -> Act {
    let begins = line.trim_start().starts_with("apply_patch");
    match (line.find("*** Begin Patch"), line.find("*** End Patch")) {
        (Some(begin), Some(end)) if begins && begin < end => {
            Act::Patch { patch: line[begin..end + "*** End Patch".len()].into() }
        }
        _ => Act::Shell { command: line.into(), cwd },
    }
}
