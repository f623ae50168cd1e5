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
    let mut parts = AnswerParts::default();
    let is_empty = result.content.is_empty();
    result.content.into_iter().for_each(|block| parts.add(block));
    if let Some(structured) = result.structured_content.filter(|_| is_empty) {
        parts.add_text(&structured.to_string());
    }
    CallAnswer { content: parts.finish(), is_error: result.is_error.unwrap_or(false) }
}

/// Text and images for the model, of what a server sends.
#[derive(Default)]
pub(crate) struct AnswerParts {
    text: String,
    images: Vec<Image>,
    notes: Vec<String>,
}

impl AnswerParts {
    /// Adds a part of an answer or of a prompt.
    pub fn add(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(block) => self.add_text(&block.text),
            ContentBlock::Image(image) => match read_image(&image.mime_type, &image.data) {
                Some(part) if self.images.len() < MAX_IMAGES => self.images.push(part),
                _ => self.notes.push(format!("an image ({}) was left out", plain(&image.mime_type))),
            },
            ContentBlock::Audio(audio) => {
                self.notes.push(format!("a sound ({}) was left out", plain(&audio.mime_type)));
            }
            ContentBlock::Resource(resource) => self.add_resource(resource.resource, ResourceLabel::Address),
            ContentBlock::ResourceLink(link) => self.add_text(&format!("{}: {}", link.name, link.uri)),
            _ => self.notes.push("a part of an unknown kind was left out".into()),
        }
    }

    /// Adds what a resource holds.
    pub fn add_resource(&mut self, contents: ResourceContents, label: ResourceLabel) {
        match contents {
            ResourceContents::TextResourceContents { uri, text, .. } => match label {
                ResourceLabel::Address => self.add_text(&format!("[{uri}]\n{text}")),
                ResourceLabel::None => self.add_text(&text),
            },
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let kind = mime_type.unwrap_or_default();
                match read_image(&kind, &blob) {
                    Some(part) if self.images.len() < MAX_IMAGES => self.images.push(part),
                    _ => self.notes.push(format!("{} ({}) was left out", plain(&uri), plain(&kind))),
                }
            }
            _ => self.notes.push("a resource of an unknown kind was left out".into()),
        }
    }

    pub fn add_text(&mut self, added: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(added);
    }

    /// The text, of at most [`MAX_TEXT`] bytes and with a note of what is missing, and the images.
    pub fn into_text_and_images(mut self) -> (String, Vec<Image>) {
        if self.text.len() > MAX_TEXT {
            self.notes.push(format!("{} bytes of text, cut after {MAX_TEXT}", self.text.len()));
            self.text.truncate(self.text.floor_char_boundary(MAX_TEXT));
        }
        if !self.notes.is_empty() {
            self.notes.truncate(20);
            self.add_text(&format!("[{}]", self.notes.join("; ")));
        }
        (self.text, self.images)
    }

    /// All of it as parts of a message.
    pub fn finish(self) -> Vec<MessagePart> {
        let (mut text, images) = self.into_text_and_images();
        if text.is_empty() && images.is_empty() {
            text.push_str("(no output)");
        }
        let texts = (!text.is_empty()).then(|| MessagePart::text(text));
        texts.into_iter().chain(images.into_iter().map(MessagePart::Image)).collect()
    }
}

/// What stands before the text of a resource.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResourceLabel {
    /// Its address.
    Address,
    /// Nothing: the address is told elsewhere.
    None,
}

/// An image that providers take.
pub(crate) fn read_image(kind: &str, data: &str) -> Option<Image> {
    let media_type: MediaType = serde_json::from_value(kind.into()).ok()?;
    let image = Image { media_type, data: data.into(), width: None, height: None };
    (!data.is_empty() && image.check().is_ok() && image.check_data().is_ok()).then_some(image)
}

fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}
