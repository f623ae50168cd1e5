//! What a user puts into the context and takes out of it by name: files, images, documents, pages,
//! panels and frozen histories. Faces make commands and requests of these.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use hardpan_agent::{AgentError, MessageRange};
use hardpan_panels::{ActionError as PanelError, OpenFiles};
use hardpan_prompt::{AgentMessage, MessageState};

use crate::conversation_app::ConversationApp;
use crate::mentions::{MentionError, MentionedFile, PromptSource, resolve_mention};
use crate::settings::expand_home;

/// What stands before the id of a document.
pub const DOCUMENT_PREFIX: &str = "doc:";

/// The longest id of a document, in bytes.
const MAX_DOCUMENT_ID: usize = 200;

/// What was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenedItem {
    /// A text file: a part of every request from now on.
    File,
    /// An image: a part of every request from now on.
    ContextImage,
    /// An image that goes with the next prompt. What the layout sends stays where it was sent.
    PromptImage,
    /// A document that the server has. The problem says why requests do not name it.
    Document {
        /// Why requests do not name it; none if they do.
        problem: Option<DocumentProblem>,
    },
}

/// Why requests do not name a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentProblem {
    /// The provider knows no documents.
    #[error("this provider takes no documents")]
    Provider,
    /// The layout attaches none.
    #[error("only the layout inline attaches documents")]
    Layout,
}

/// A name that no document can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no id of a document: an id has no spaces and at most {MAX_DOCUMENT_ID} bytes")]
pub struct DocumentIdError(String);

/// The id of a document, from a name with or without `doc:`.
pub fn document_id(name: &str) -> Result<&str, DocumentIdError> {
    let id = name.strip_prefix(DOCUMENT_PREFIX).unwrap_or(name);
    let is_id = !id.is_empty() && id.len() <= MAX_DOCUMENT_ID;
    if !is_id || id.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(DocumentIdError(name.to_owned()));
    }
    Ok(id)
}

/// Why something was not opened or closed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContextItemError {
    /// It cannot go to the model.
    #[error("{name}: {error}")]
    NotOpened {
        /// As it was named.
        name: String,
        /// Why not.
        #[source]
        error: MentionError,
    },
    /// It is no id of a document.
    #[error(transparent)]
    DocumentId(#[from] DocumentIdError),
    /// It is not open.
    #[error("{0} is not open")]
    NotOpen(String),
    /// It is a panel that cannot be closed.
    #[error(transparent)]
    Panel(#[from] PanelError),
    /// The session cannot be written.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// It is neither a file nor a message.
    #[error("{0} is neither a file nor a message: only those can be pinned or left out")]
    NotAnItem(String),
}

/// Something in the context that a user can leave out or bring back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextKey<'a> {
    /// A file, by its path from the root.
    File(&'a str),
    /// A message, by its id.
    Message(&'a str),
}

impl<'a> ContextKey<'a> {
    /// Reads `file:PATH`, `message:ID`, or a path.
    pub fn parse(key: &'a str) -> Result<Self, ContextItemError> {
        match key.split_once(':') {
            Some(("file", path)) => Ok(ContextKey::File(path)),
            Some(("message", id)) => Ok(ContextKey::Message(id)),
            None if !key.is_empty() => Ok(ContextKey::File(key)),
            _ => Err(ContextItemError::NotAnItem(key.to_owned())),
        }
    }
}

impl ConversationApp {
    /// Puts a file, an image or a document (`doc:ID`) into the context.
    pub fn open_item(&self, name: &str) -> Result<OpenedItem, ContextItemError> {
        if name.starts_with(DOCUMENT_PREFIX) {
            self.context.open_document(document_id(name)?);
            return Ok(OpenedItem::Document { problem: self.document_problem() });
        }
        let found = resolve_mention(name, &self.scope, PromptSource::Typed);
        match found.map_err(|error| ContextItemError::NotOpened { name: name.to_owned(), error })? {
            MentionedFile::Text { path, .. } => {
                self.context.open(path);
                Ok(OpenedItem::File)
            }
            MentionedFile::Image { path, .. } if self.context.shows_images() => {
                self.context.open(path);
                Ok(OpenedItem::ContextImage)
            }
            MentionedFile::Image { image, .. } => {
                self.images.lock().unwrap_or_else(PoisonError::into_inner).push(*image);
                Ok(OpenedItem::PromptImage)
            }
        }
    }

    fn document_problem(&self) -> Option<DocumentProblem> {
        if !self.agent.target().profile.document_context {
            return Some(DocumentProblem::Provider);
        }
        (!self.context.shows_images()).then_some(DocumentProblem::Layout)
    }

    /// What is open by name: files and images, documents, pages.
    pub fn open_items(&self) -> Vec<String> {
        let pinned = self.context.pinned_context();
        let files = pinned.files.iter().map(|path| path.display().to_string());
        let documents = pinned.documents.iter().map(|id| format!("{DOCUMENT_PREFIX}{id}"));
        files.chain(documents).chain(self.agent.pages()).collect()
    }

    /// Takes a file, a document, a page, a panel or a frozen history out of the context. Returns the name
    /// by which it was known.
    pub async fn close_item(&self, name: &str) -> Result<String, ContextItemError> {
        let closed = |is_closed: bool| {
            if is_closed { Ok(name.to_owned()) } else { Err(ContextItemError::NotOpen(name.to_owned())) }
        };
        if name.contains("://") || self.agent.pages().iter().any(|page| page == name) {
            return closed(self.agent.close_page(name).await?);
        }
        if let Some(id) = name.strip_prefix(DOCUMENT_PREFIX) {
            return closed(self.context.close_document(id));
        }
        if self.agent.close_history(name).await? {
            return Ok(name.to_owned());
        }
        let registry = &self.panels.registry;
        let key = registry.key_of(name);
        let path = key.as_deref().and_then(|key| key.strip_prefix("file:")).unwrap_or(name);
        if self.context.close(&expand_home(path)) || OpenFiles::close(&*self.context, path, &self.scope) {
            return Ok(name.to_owned());
        }
        match registry.close(name) {
            Ok(id) => Ok(id.to_string()),
            Err(PanelError::NotFound { .. }) => closed(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Keeps a file in every request, whatever the model does with it.
    pub fn pin_item(&self, key: &str) -> Result<(), ContextItemError> {
        match ContextKey::parse(key)? {
            ContextKey::File(path) => {
                self.context.include(path);
                let place = self.scope.root.join(path);
                self.open_item(&place.to_string_lossy()).map(drop)
            }
            ContextKey::Message(_) => Err(ContextItemError::NotAnItem(key.to_owned())),
        }
    }

    /// Lets a pinned file go: it is shown only as long as the model needs it.
    pub fn unpin_item(&self, key: &str) -> Result<(), ContextItemError> {
        let ContextKey::File(path) = ContextKey::parse(key)? else {
            return Err(ContextItemError::NotAnItem(key.to_owned()));
        };
        let is_closed = self.context.close(&self.scope.root.join(path))
            | self.context.close(Path::new(path))
            | OpenFiles::close(&*self.context, path, &self.scope);
        if is_closed { Ok(()) } else { Err(ContextItemError::NotOpen(key.to_owned())) }
    }

    /// Whether a file is pinned, by its path from the root.
    pub fn is_pinned(&self, path: &str) -> bool {
        let place = self.scope.root.join(path);
        self.context.pinned_context().files.iter().any(|file| *file == place || file == Path::new(path))
    }

    /// Leaves a file or a message out of requests. A file's body goes with the next fold, a message at
    /// once.
    pub async fn exclude_item(&self, key: &str) -> Result<(), ContextItemError> {
        match ContextKey::parse(key)? {
            ContextKey::File(path) => {
                // What is not pinned need not be let go.
                let _ = self.unpin_item(key);
                self.context.exclude(path);
            }
            ContextKey::Message(id) => {
                self.agent.delete_messages(MessageRange { first: id, last: None }).await?;
            }
        }
        Ok(())
    }

    /// Sends again what was left out.
    pub async fn include_item(&self, key: &str) -> Result<(), ContextItemError> {
        match ContextKey::parse(key)? {
            ContextKey::File(path) => match self.context.include(path) {
                true => Ok(()),
                false => Err(ContextItemError::NotOpen(key.to_owned())),
            },
            ContextKey::Message(id) => {
                self.agent.restore_messages(MessageRange { first: id, last: None }).await?;
                Ok(())
            }
        }
    }

    /// The keys of everything that the user has left out.
    pub fn excluded_items(&self) -> Vec<String> {
        let files = self.context.pinned_context().excluded;
        let is_deleted = |message: &&AgentMessage| message.state == MessageState::Deleted;
        let messages = self.agent.messages();
        let messages = messages.iter().filter(is_deleted).map(|message| format!("message:{}", message.id));
        files.iter().map(|path| format!("file:{path}")).chain(messages).collect()
    }

    /// The path of a file that a name stands for: an id or the path itself.
    pub fn item_path(&self, name: &str) -> Arc<Path> {
        let key = self.panels.registry.key_of(name);
        let path = key.as_deref().and_then(|key| key.strip_prefix("file:")).unwrap_or(name);
        Path::new(path).into()
    }
}
