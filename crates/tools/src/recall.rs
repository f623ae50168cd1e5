//! The tool `recall`: the exact content of an earlier message of which requests show only a line.

use std::sync::{Arc, LazyLock};

use futures_util::future::BoxFuture;
use hardpan_context::knowledge::{FileKnowledge, FileObservation, ObservationKind};
use hardpan_prompt::{Image, MessagePart};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::declarations::load_declaration;
use crate::limits::{MAX_ANSWER_BYTES, append_notices};
use crate::read::DEFAULT_LINES;
use crate::tool::{Effect, Tool, ToolInvocation, ToolOutcome, parse_arguments};

/// The limits of `read`, and room for the notices of an answer that reached them: then it comes back
/// as one page.
const MAX_PAGE_LINES: usize = DEFAULT_LINES + 10;
const MAX_PAGE_BYTES: usize = MAX_ANSWER_BYTES + 1024;

/// The conversation as `recall` reads it: every message of the branch, also those that requests no
/// longer show.
pub trait MessageArchive: Send + Sync {
    /// The content of the message `id`. The error is a sentence for the model.
    fn recall<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<ArchivedContent, ArchiveError>>;
}

/// What a message holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArchivedContent {
    /// The text, byte for byte.
    pub text: String,
    /// The images, in order.
    pub images: Vec<Image>,
}

/// Why an archive has no such message.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ArchiveError(#[from] Box<dyn std::error::Error + Send + Sync>);

impl ArchiveError {
    /// Wraps the error of a [`MessageArchive`].
    pub fn new(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        ArchiveError(Box::new(error))
    }
}

/// The tool `recall`.
pub struct Recall {
    archive: Arc<dyn MessageArchive>,
}

static DECLARATION: LazyLock<hardpan_prompt::Tool> =
    LazyLock::new(|| load_declaration("recall", include_str!("../texts/recall.toml")));

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    id: String,
    #[serde(default)]
    offset: usize,
}

impl Recall {
    /// The tool for one conversation.
    pub fn new(archive: Arc<dyn MessageArchive>) -> Self {
        Recall { archive }
    }
}

impl Tool for Recall {
    fn declaration(&self) -> &hardpan_prompt::Tool {
        &DECLARATION
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Reads
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let Arguments { id, offset } = match parse_arguments(&call) {
                Ok(arguments) => arguments,
                Err(outcome) => return outcome,
            };
            match self.archive.recall(&id).await {
                Ok(content) => page(&id, content, offset, call.knowledge),
                Err(error) => ToolOutcome::failed(format!("Nothing was recalled: {error}.")),
            }
        })
    }
}

/// The content from byte `offset` on, as far as an answer may be long, and how to go on.
fn page(id: &str, content: ArchivedContent, offset: usize, knowledge: &FileKnowledge) -> ToolOutcome {
    let ArchivedContent { text, images } = content;
    let bytes = text.len();
    if offset > 0 && offset >= bytes {
        return ToolOutcome::failed(format!("{id} has only {bytes} bytes: offset {offset} is past its end."));
    }
    let first = text.floor_char_boundary(offset);
    let last = first + page_length(&text[first..]);
    let mut notices = Vec::new();
    if first > 0 || last < bytes {
        notices.push(format!("bytes {first}-{last} of {bytes}"));
    }
    if last < bytes {
        notices.push(format!("go on with offset={last}"));
    }
    let mut outcome = ToolOutcome::text(append_notices(text[first..last].to_owned(), &notices))
        .with_details(json!({"id": id, "bytes": bytes, "shown": [first, last]}));
    // Images go with the first page: a later one continues the text.
    if first == 0 {
        outcome.content.extend(images.into_iter().map(MessagePart::Image));
    }
    if notices.is_empty() {
        outcome.file_observations = current_observations(id, knowledge);
    }
    outcome
}

/// How many bytes of a text fit into an answer: whole lines, unless the first is too long itself.
fn page_length(text: &str) -> usize {
    let mut length = 0;
    for line in text.split_inclusive('\n').take(MAX_PAGE_LINES) {
        if length + line.len() > MAX_PAGE_BYTES {
            break;
        }
        length += line.len();
    }
    if length == 0 { text.floor_char_boundary(MAX_PAGE_BYTES) } else { length }
}

/// What the recalled message shows of files that are still as it shows them. An older content is
/// none of this: the model must not take it for the file.
fn current_observations(id: &str, knowledge: &FileKnowledge) -> Vec<FileObservation> {
    let of_path = |path: &Arc<str>| {
        let current = knowledge.last_seen(path)?;
        let shown = knowledge.observations(path).iter().find(|recorded| {
            let FileObservation { kind, hash, .. } = &recorded.observation;
            &*recorded.message.0 == id && *kind == ObservationKind::Shown && *hash == Some(current.hash)
        })?;
        Some(FileObservation { text: current.text.clone(), ..shown.observation.clone() })
    };
    knowledge.paths().filter_map(of_path).collect()
}

#[cfg(test)]
mod tests;
