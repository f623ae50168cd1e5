//! [`FileAction`]: what a tool call does to files, found out from the names that agents give their
//! tools and arguments.

use std::sync::Arc;

use serde_json::Value;

use super::json_fields::JsonFields;

/// What a tool call does to files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileAction {
    /// Reads a file, or some of its lines.
    Read {
        /// Path as the model wrote it.
        path: Arc<str>,
        /// The first line, from 1. `None` for the beginning.
        from: Option<u64>,
        /// The most lines to show. `None` for all.
        lines: Option<u64>,
    },
    /// Writes a whole file.
    Write {
        /// Path as the model wrote it.
        path: Arc<str>,
        /// The new content of the file.
        content: Arc<str>,
    },
    /// Replaces texts in a file, one after the other.
    Edit {
        /// Path as the model wrote it.
        path: Arc<str>,
        /// The replacements, in order.
        changes: Vec<TextReplacement>,
    },
    /// Applies a patch in Codex's format to any number of files.
    Patch {
        /// The patch, from `*** Begin Patch` to `*** End Patch`.
        patch: Arc<str>,
    },
    /// Runs a shell command, which may do anything.
    Shell {
        /// The command line, without a wrapping `bash -c`.
        command: Arc<str>,
        /// The folder it runs in. `None` for that of the session.
        cwd: Option<Arc<str>>,
    },
    /// Nothing to files, as far as is known.
    Other,
}

/// One text of a file replaced by another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextReplacement {
    /// The text that was replaced.
    pub old: Arc<str>,
    /// The text that replaced it.
    pub new: Arc<str>,
    /// Whether every occurrence was replaced; otherwise there must be exactly one.
    pub everywhere: bool,
}

impl FileAction {
    /// What a call of the tool with this name and these arguments does.
    pub fn from_call(tool: &str, arguments: &Value) -> Self {
        let path = || {
            let names = ["path", "file_path", "filePath", "absolute_path", "filename", "notebook_path"];
            names.iter().find_map(|name| arguments.str(name)).map(Arc::from)
        };
        let known = match tool.to_ascii_lowercase().as_str() {
            "read" | "read_file" | "view" | "cat" => path().map(|path| FileAction::Read {
                path,
                from: positive_count(arguments, "offset"),
                lines: positive_count(arguments, "limit"),
            }),
            "write" | "write_file" | "create" | "create_file" => path()
                .zip(first_text(arguments, &["content", "contents", "text"]))
                .map(|(path, content)| FileAction::Write { path, content }),
            "edit" | "multiedit" | "multi_edit" | "str_replace" | "edit_file" => {
                path().map(|path| FileAction::Edit { path, changes: replacements(arguments) })
            }
            "apply_patch" => {
                first_text(arguments, &["input", "patch"]).map(|patch| FileAction::Patch { patch })
            }
            "bash" | "shell" | "exec" | "exec_command" | "local_shell" | "shell_command" | "run"
            | "run_shell_command" | "terminal" => from_shell_call(arguments),
            _ => None,
        };
        known.unwrap_or(FileAction::Other)
    }
}

fn first_text(arguments: &Value, names: &[&str]) -> Option<Arc<str>> {
    names.iter().find_map(|name| arguments.str(name)).map(Arc::from)
}

fn positive_count(arguments: &Value, name: &str) -> Option<u64> {
    Some(arguments.count(name)).filter(|count| *count > 0)
}

/// The replacement in the arguments themselves, or a list of them in `edits` or `changes`.
fn replacements(arguments: &Value) -> Vec<TextReplacement> {
    let many = [arguments.list("edits"), arguments.list("changes")].concat();
    let all = if many.is_empty() { vec![arguments.clone()] } else { many };
    all.iter().filter_map(replacement).collect()
}

fn replacement(value: &Value) -> Option<TextReplacement> {
    let old = first_text(value, &["oldText", "old_string", "old_text", "old"])?;
    let new = first_text(value, &["newText", "new_string", "new_text", "new"])?;
    Some(TextReplacement { old, new, everywhere: value.is("replace_all") || value.is("replaceAll") })
}

/// The action of a shell call, whose command is a line or a list of words. A wrapping `sh -c` is
/// removed, and running `apply_patch` counts as the patch that it applies.
fn from_shell_call(arguments: &Value) -> Option<FileAction> {
    let cwd = first_text(arguments, &["workdir", "cwd", "working_directory"]);
    let command = arguments.get("command").or_else(|| arguments.get("cmd"))?;
    let words: Vec<&str> = match command {
        Value::String(line) => vec![line],
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    match words.as_slice() {
        ["apply_patch", patch] => Some(FileAction::Patch { patch: (*patch).into() }),
        [shell, flags, script] if shell.ends_with("sh") && flags.starts_with('-') => {
            Some(from_command_line(script, cwd))
        }
        [line] => Some(from_command_line(line, cwd)),
        words => Some(FileAction::Shell { command: words.join(" ").into(), cwd }),
    }
}

fn from_command_line(line: &str, cwd: Option<Arc<str>>) -> FileAction {
    let begins = line.trim_start().starts_with("apply_patch");
    match (line.find("*** Begin Patch"), line.find("*** End Patch")) {
        (Some(begin), Some(end)) if begins && begin < end => {
            FileAction::Patch { patch: line[begin..end + "*** End Patch".len()].into() }
        }
        _ => FileAction::Shell { command: line.into(), cwd },
    }
}
