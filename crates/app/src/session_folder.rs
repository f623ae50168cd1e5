//! Where conversations are stored: the user's [`SessionStore`], or a [`ScratchFolder`] for a
//! conversation that ends with its process.

use std::io;
use std::path::{Path, PathBuf};

use hardpan_agent::Conversation;
use hardpan_session::{Header, Session, SessionStore};
use hardpan_workspace::{checked_out_branch, find_project_root};
use jiff::Timestamp;

use crate::clock::now;
use crate::open::OpenError;
use crate::options::RequestPurpose;

/// The length of a session's id.
const ID_LENGTH: usize = 12;

/// Begins a new conversation.
pub(crate) fn begin_conversation(store: &SessionStore, folder: &Path) -> Result<Conversation, OpenError> {
    let header = header(folder);
    Ok(Conversation::begin(&path_for(store, folder, &header), header)?)
}

/// A new conversation to look at: it is never stored. Its id is of zeros, or one of its own.
pub(crate) fn unstored_conversation(
    store: &SessionStore,
    folder: &Path,
    purpose: RequestPurpose,
) -> Result<Conversation, OpenError> {
    let header = match purpose {
        RequestPurpose::Show => Header { id: "0".repeat(ID_LENGTH).into(), ..header(folder) },
        RequestPurpose::Send => header(folder),
    };
    Ok(Conversation::begin(&path_for(store, folder, &header), header)?)
}

/// Begins a conversation with a copy of another's messages, up to the entry `at` or the last one.
pub(crate) fn fork_conversation(
    store: &SessionStore,
    folder: &Path,
    session: &Session,
    at: Option<&str>,
) -> Result<Conversation, OpenError> {
    let header = header(folder);
    Ok(Conversation::fork(session, at, &path_for(store, folder, &header), header)?)
}

pub(crate) fn path_for(store: &SessionStore, folder: &Path, header: &Header) -> PathBuf {
    store.new_path(folder, header.time.unwrap_or(Timestamp::UNIX_EPOCH), &header.id)
}

/// The header of a new session.
pub(crate) fn header(folder: &Path) -> Header {
    let (cwd, extra) = (folder.to_string_lossy().into(), Default::default());
    let header = Header { id: new_id(folder).into(), time: Some(now()), cwd, extra };
    header.with_git_branch(checked_out_branch(&find_project_root(folder)))
}

/// An id for a session: a hash of the time in nanoseconds, the process id and the folder, so that no
/// two sessions share one.
pub(crate) fn new_id(folder: &Path) -> String {
    let source = format!("{}/{}/{}", now().as_nanosecond(), std::process::id(), folder.display());
    hardpan_prompt::Hash::of(source.as_bytes()).to_string().chars().take(ID_LENGTH).collect()
}

/// A temporary folder that is removed on drop.
pub(crate) struct ScratchFolder(pub(crate) PathBuf);

impl ScratchFolder {
    pub(crate) fn new() -> io::Result<Self> {
        let folder =
            std::env::temp_dir().join(format!("hardpan-{}-{}", std::process::id(), now().as_nanosecond()));
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        // Not one that is there already: somebody else may have made it.
        builder.create(&folder)?;
        Ok(ScratchFolder(folder))
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
