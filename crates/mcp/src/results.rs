//! What a server answers to a call, as parts of a message.

use hardpan_prompt::{Image, MediaType, MessagePart};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// The most bytes of text in one answer, as for other tools.
const MAX_TEXT: usize = 50 * 1024;

/// The most images in one answer.
const MAX_IMAGES: usize = 8;

/// The answer to a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallAnswer {
    /// Text and images for the model.
    pub content: Vec<MessagePart>,
    /// Whether the server says that the call failed.
    pub is_error: bool,
}

/// Makes parts of an answer. What is too long is cut, with a note that says so.
pub(crate) fn make_answer(result: CallToolResult) -> CallAnswer {
    let mut text = String::new();
    let mut images = Vec::new();
    let mut notes = Vec::new();
    let is_empty = result.content.is_empty();
    for block in result.content {
        match block {
            ContentBlock::Text(block) => add_text(&mut text, &block.text),
            ContentBlock::Image(image) => match read_image(&image.mime_type, &image.data) {
                Some(part) if images.len() < MAX_IMAGES => images.push(part),
                _ => notes.push(format!("an image ({}) was left out", plain(&image.mime_type))),
            },
            ContentBlock::Audio(audio) => {
                notes.push(format!("a sound ({}) was left out", plain(&audio.mime_type)));
            }
            ContentBlock::Resource(resource) => match resource.resource {
                ResourceContents::TextResourceContents { uri, text: content, .. } => {
                    add_text(&mut text, &format!("[{uri}]\n{content}"));
                }
                ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                    let kind = mime_type.unwrap_or_default();
                    match read_image(&kind, &blob) {
                        Some(part) if images.len() < MAX_IMAGES => images.push(part),
                        _ => notes.push(format!("{} ({}) was left out", plain(&uri), plain(&kind))),
                    }
                }
                _ => notes.push("a resource of an unknown kind was left out".into()),
            },
            ContentBlock::ResourceLink(link) => add_text(&mut text, &format!("{}: {}", link.name, link.uri)),
            _ => notes.push("a part of an unknown kind was left out".into()),
        }
    }
    if let Some(structured) = result.structured_content.filter(|_| is_empty) {
        add_text(&mut text, &structured.to_string());
    }
    if text.len() > MAX_TEXT {
        notes.push(format!("{} bytes of text, cut after {MAX_TEXT}", text.len()));
        text.truncate(text.floor_char_boundary(MAX_TEXT));
    }
    if !notes.is_empty() {
        notes.truncate(20);
        add_text(&mut text, &format!("[{}]", notes.join("; ")));
    }
    if text.is_empty() && images.is_empty() {
        text.push_str("(no output)");
    }
    let texts = (!text.is_empty()).then(|| MessagePart::text(text));
    let content = texts.into_iter().chain(images.into_iter().map(MessagePart::Image)).collect();
    CallAnswer { content, is_error: result.is_error.unwrap_or(false) }
}

fn add_text(text: &mut String, added: &str) {
    // Nothing after the limit is kept, but its length is told.
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(added);
}

fn read_image(kind: &str, data: &str) -> Option<Image> {
    let media_type: MediaType = serde_json::from_value(kind.into()).ok()?;
    let image = Image { media_type, data: data.into(), width: None, height: None };
    (!data.is_empty() && image.check().is_ok() && image.check_data().is_ok()).then_some(image)
}

fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}
