//! What leaves the conversation: `/export` writes it to a file, `/copy` puts an answer into the
//! clipboard.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use hardpan_app::ConversationApp;
use hardpan_prompt::{AgentMessage, MessageBody, MessagePart};
use hardpan_session::{ExportFormat, ExportScope};

use super::super::command_error::SlashCommandError;
use super::arguments::choice;
use super::{CommandCall, CommandResult, SlashCommand, pluralize};
use crate::clipboard::{self, CopyTargets};
use crate::output::safe;
use crate::sessions::render_export;

/// In the order of `/help`.
pub const COMMANDS: &[SlashCommand] = &[
    SlashCommand {
        name: "export",
        arguments: "[html|md|json] [FILE]",
        help: "write this conversation to a file: a page, Markdown, or lines of JSON",
        choices: |query| match query.before {
            [] => vec![
                choice("html", "a page that needs nothing else"),
                choice("md", "Markdown"),
                choice("json", "lines of JSON, as the session is stored"),
            ],
            _ => Vec::new(),
        },
        run: |call| Box::pin(export(call)),
    },
    SlashCommand {
        name: "copy",
        arguments: "[N]",
        help: "copy the last answer, or its Nth code block, to the clipboard",
        choices: |query| match query.is_first() {
            true => code_blocks(&last_answer(&query.app.agent.messages()).unwrap_or_default())
                .iter()
                .enumerate()
                .map(|(index, block)| {
                    choice((index + 1).to_string(), block.lines().next().unwrap_or_default())
                })
                .collect(),
            false => Vec::new(),
        },
        run: |call| Box::pin(copy(call)),
    },
];

/// The formats, each with the ending of its files.
const FORMATS: [(&str, ExportFormat, &str); 5] = [
    ("html", ExportFormat::Html, "html"),
    ("md", ExportFormat::Markdown, "md"),
    ("markdown", ExportFormat::Markdown, "md"),
    ("json", ExportFormat::Jsonl, "jsonl"),
    ("jsonl", ExportFormat::Jsonl, "jsonl"),
];

const USAGE: &str = "/export, /export html, md or json, and a FILE if you like";

/// How many exports of one conversation get a name of their own: none replaces another.
const MAX_NAMES: usize = 1000;

async fn export(CommandCall { arguments, app, agent, .. }: CommandCall<'_>) -> CommandResult {
    let (format, file) = parse_export(arguments)?;
    let (name, format, ending) = format;
    let text = render_export(&app.read_session()?, ExportScope::Branch(None), format)?;
    let path = match file {
        Some(file) => {
            let path = app.folder.join(file);
            write_new(&path, &text)?;
            path
        }
        None => write_unnamed(app, &agent.session().0, ending, &text)?,
    };
    Ok(format!("wrote {} ({name}, {})", safe(&path.display().to_string()), pluralize(text.len(), "byte")))
}

type Format = (&'static str, ExportFormat, &'static str);

/// The format and the file of `html talk.html`, `talk.html`, `md`, or nothing.
fn parse_export(arguments: &str) -> Result<(Format, Option<&str>), SlashCommandError> {
    let by_name = |name: &str| FORMATS.into_iter().find(|(known, ..)| *known == name);
    let (first, rest) =
        arguments.split_once(' ').map_or((arguments, ""), |(first, rest)| (first, rest.trim()));
    if first.is_empty() {
        return Ok((FORMATS[0], None));
    }
    match (by_name(first), rest) {
        (Some(format), "") => Ok((format, None)),
        (Some(format), file) => Ok((format, Some(file))),
        // A file alone says its format by its ending.
        (None, _) => {
            let ending = Path::new(arguments).extension().and_then(|ending| ending.to_str());
            let format = ending.and_then(by_name).ok_or(SlashCommandError::Usage(USAGE))?;
            Ok((format, Some(arguments)))
        }
    }
}

/// Writes a file that is not there yet.
fn write_new(path: &Path, text: &str) -> Result<(), SlashCommandError> {
    let write = || OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes());
    write().map_err(|source| SlashCommandError::Write { path: path.to_owned(), source })
}

/// Writes a file of a name of its own into the folder of the conversation.
fn write_unnamed(
    app: &ConversationApp,
    id: &str,
    ending: &str,
    text: &str,
) -> Result<PathBuf, SlashCommandError> {
    let name = |number: usize| match number {
        1 => app.folder.join(format!("hardpan-{id}.{ending}")),
        number => app.folder.join(format!("hardpan-{id}-{number}.{ending}")),
    };
    for number in 1..MAX_NAMES {
        match write_new(&name(number), text) {
            Err(SlashCommandError::Write { source, .. })
                if source.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(()) => return Ok(name(number)),
        }
    }
    Err(SlashCommandError::Usage(USAGE))
}

async fn copy(CommandCall { arguments, app, agent, .. }: CommandCall<'_>) -> CommandResult {
    let answer = last_answer(&agent.messages()).ok_or(SlashCommandError::NothingToCopy)?;
    let text = match arguments {
        "" => answer,
        number => {
            let number: usize =
                number.parse().map_err(|_| SlashCommandError::Usage("/copy, or /copy N for a code block"))?;
            let mut blocks = code_blocks(&answer);
            let count = blocks.len();
            if number == 0 || number > count {
                return Err(SlashCommandError::NoCodeBlock { number, count });
            }
            blocks.swap_remove(number - 1)
        }
    };
    let folder = app.settings.user_folders.state.clone();
    let report = tokio::task::spawn_blocking(move || {
        clipboard::copy(&text, &CopyTargets::from_environment(), folder.as_deref())
    });
    Ok(report.await.unwrap_or_else(|_| "copying failed unexpectedly".to_owned()))
}

/// The text of the last answer.
fn last_answer(messages: &[AgentMessage]) -> Option<String> {
    let text = |message: &AgentMessage| match &*message.body {
        MessageBody::Assistant { content, .. } => {
            let texts = content.iter().filter_map(|part| match part {
                MessagePart::Text { text } => Some(text.to_string()),
                _ => None,
            });
            Some(texts.collect::<Vec<_>>().join("\n")).filter(|text| !text.trim().is_empty())
        }
        _ => None,
    };
    messages.iter().rev().find_map(text)
}

/// The fenced code blocks of a text, without their fences. One that is not closed ends with the text.
fn code_blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in text.lines() {
        let trimmed = line.trim_start();
        let fence: String = trimmed.chars().take_while(|c| matches!(c, '`' | '~')).collect();
        let is_fence = fence.len() >= 3 && fence.chars().all(|c| fence.starts_with(c));
        match &mut open {
            None if is_fence => open = Some((fence, String::new())),
            Some((opened, block))
                if is_fence && fence.starts_with(&**opened) && trimmed.trim_end() == fence =>
            {
                blocks.push(std::mem::take(block));
                open = None;
            }
            Some((_, block)) => {
                block.push_str(line);
                block.push('\n');
            }
            None => {}
        }
    }
    blocks.extend(open.map(|(_, block)| block));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_of_an_export_is_named_or_known_by_its_file() {
        let parsed =
            |text: &'static str| parse_export(text).map(|((_, format, _), file)| (format, file)).ok();
        assert_eq!(parsed(""), Some((ExportFormat::Html, None)));
        assert_eq!(parsed("md"), Some((ExportFormat::Markdown, None)));
        assert_eq!(parsed("json out put.txt"), Some((ExportFormat::Jsonl, Some("out put.txt"))));
        assert_eq!(parsed("my talk.html"), Some((ExportFormat::Html, Some("my talk.html"))));
        assert_eq!(parsed("talk.pdf"), None);
    }

    #[test]
    fn code_blocks_are_what_stands_between_fences() {
        let text =
            "a\n```rust\nlet x;\n\n```\nb\n~~~~\n```\ninner\n```\n~~~~\n  ```sh\n  ls\n  ```\n```\nopen";
        assert_eq!(code_blocks(text), ["let x;\n\n", "```\ninner\n```\n", "  ls\n", "open\n"]);
        assert_eq!(code_blocks("no `code` block"), Vec::<String>::new());
    }
}
