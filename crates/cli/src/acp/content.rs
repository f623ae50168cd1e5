//! [`PromptContent`]: what a client's prompt says, as the parts of an input.

use std::fmt::Write;
use std::path::PathBuf;

use agent_client_protocol_schema::v1::{ContentBlock, EmbeddedResourceResource, Error};
use hardpan_prompt::{Image, MediaType};
use hardpan_tools::Scope;
use serde_json::Value;

/// A prompt as the agent takes it.
#[derive(Debug, Default, PartialEq)]
pub struct PromptContent {
    /// What the person wrote, with links to files as mentions.
    pub text: String,
    /// Texts that the editor attached, such as buffers that are not saved.
    pub attached: Option<String>,
    pub images: Vec<Image>,
}

impl PromptContent {
    /// Reads the blocks of a prompt.
    pub fn read(blocks: Vec<ContentBlock>, scope: &Scope) -> Result<Self, Error> {
        let (mut content, mut attached) = (PromptContent::default(), String::new());
        for block in blocks {
            match block {
                ContentBlock::Text(text) => content.text.push_str(&text.text),
                ContentBlock::Image(image) => content.images.push(read_image(&image.mime_type, image.data)?),
                ContentBlock::ResourceLink(link) => {
                    let mention = mention(&link.uri, scope);
                    content
                        .text
                        .push_str(&mention.unwrap_or_else(|| format!("[{}]({})", link.name, link.uri)));
                }
                ContentBlock::Resource(embedded) => match embedded.resource {
                    EmbeddedResourceResource::TextResourceContents(resource) => {
                        let name = file_path(&resource.uri)
                            .map_or_else(|| resource.uri.clone(), |path| scope.display_name(&path));
                        let text = resource.text.trim_end_matches('\n');
                        // Writing to a string cannot fail.
                        let _ = write!(attached, "{name}:\n```\n{text}\n```\n\n");
                        content.text.push_str(&name);
                    }
                    EmbeddedResourceResource::BlobResourceContents(blob) => {
                        let mime_type = blob.mime_type.unwrap_or_default();
                        content.images.push(read_image(&mime_type, blob.blob)?);
                    }
                    _ => return Err(unsupported("this kind of resource")),
                },
                ContentBlock::Audio(_) => return Err(unsupported("audio")),
                _ => return Err(unsupported("this kind of content")),
            }
        }
        let attached = attached.trim_end();
        content.attached = (!attached.is_empty()).then(|| attached.to_owned());
        Ok(content)
    }
}

fn unsupported(what: &str) -> Error {
    Error::invalid_params().data(format!("{what} cannot be part of a prompt: send text, images or files"))
}

fn read_image(mime_type: &str, data: String) -> Result<Image, Error> {
    let media_type: MediaType = serde_json::from_value(Value::String(mime_type.to_owned()))
        .map_err(|_| unsupported(&format!("data of the type {mime_type:?}")))?;
    let image = Image { media_type, data: data.into(), width: None, height: None };
    let checked = image.check_data().and_then(|()| image.check());
    checked.map_err(|error| Error::invalid_params().data(error.to_string()))?;
    Ok(image)
}

/// A link to a file of the workspace as the mention that opens it; none for other links.
fn mention(uri: &str, scope: &Scope) -> Option<String> {
    let place = scope.resolve_for_read(file_path(uri)?.to_str()?).ok()?;
    let name = scope.display_name(&place);
    (!name.contains(char::is_whitespace)).then(|| format!("@{name}"))
}

/// The path of a `file:` address, its escapes decoded.
fn file_path(uri: &str) -> Option<PathBuf> {
    let path = uri.strip_prefix("file://")?.split(['?', '#']).next()?;
    let (mut bytes, mut rest) = (Vec::with_capacity(path.len()), path.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| std::str::from_utf8(after.get(..2)?).ok()).flatten();
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    let path = PathBuf::from(String::from_utf8(bytes).ok()?);
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_address_is_a_path_without_its_escapes() {
        assert_eq!(file_path("file:///a%20b/c%C3%A4.rs#L3"), Some("/a b/cä.rs".into()));
        assert_eq!(file_path("file:///100%"), Some("/100%".into()));
        assert_eq!([file_path("https://a/b"), file_path("file://host/b")], [None, None]);
    }

    #[test]
    fn files_of_the_workspace_are_mentioned_and_texts_attached() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::write(root.join("a.rs"), "fn a() {}").unwrap();
        let scope = Scope::new(&root, &root);
        let file = format!("file://{}/a.rs", root.display());
        let blocks = serde_json::json!([
            {"type": "text", "text": "Compare "},
            {"type": "resource_link", "uri": file, "name": "a.rs"},
            {"type": "text", "text": " with "},
            {"type": "resource_link", "uri": "file:///etc/passwd", "name": "passwd"},
            {"type": "text", "text": " and "},
            {"type": "resource", "resource": {"uri": file, "text": "fn b() {}\n"}},
        ]);
        let content = PromptContent::read(serde_json::from_value(blocks).unwrap(), &scope).unwrap();
        assert_eq!(content.text, "Compare @a.rs with [passwd](file:///etc/passwd) and a.rs");
        assert_eq!(content.attached.as_deref(), Some("a.rs:\n```\nfn b() {}\n```"));
    }
}
