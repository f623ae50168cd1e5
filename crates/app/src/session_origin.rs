//! [`ForeignSession`]: a conversation that did not come about here. Its paths are data that somebody
//! else may have written: none of them is read outside of the workspace.

use std::fmt;
use std::path::{Path, PathBuf};

use hardpan_agent::Conversation;
use hardpan_panels::SavedPanels;
use hardpan_session::{Record, Session, SessionStore, SessionSummary};
use hardpan_tools::Scope;
use hardpan_workspace::find_project_root;

use crate::conversation_app::{PINNED_ENTRY, restore_pinned};

use crate::conversation_panels::{PANELS_ENTRY, restore_panels};
use crate::deferred::DEFERRED_ENTRY;
use crate::notice::{Notice, NoticeSink};
use crate::workspace_context::PinnedContext;

/// What happens when a conversation from elsewhere is to be continued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForeignSessions {
    /// It is refused. A face with a person can ask and try again.
    #[default]
    Refuse,
    /// The user has said that it may be continued.
    Accept,
}

/// Where a conversation comes from, if not from this workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForeignSession {
    /// From a file that is not among the user's sessions: anybody may have written it.
    File(PathBuf),
    /// From another workspace of the user.
    OtherFolder {
        /// The id of the session.
        id: String,
        /// Where it began.
        began_in: String,
    },
}

impl fmt::Display for ForeignSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ForeignSession::File(path) => {
                write!(f, "{} is not one of your stored conversations", path.display())
            }
            ForeignSession::OtherFolder { id, began_in } => {
                write!(f, "the conversation {id} began in another folder, {began_in}")
            }
        }
    }
}

/// Where a session comes from; none if it is the user's own and of this workspace.
pub(crate) fn foreign_session(
    summary: &SessionSummary,
    store: &SessionStore,
    root: &Path,
) -> Option<ForeignSession> {
    if !store.contains(&summary.path) {
        return Some(ForeignSession::File(summary.path.clone()));
    }
    let began_in = Path::new(&*summary.cwd);
    let is_here = began_in.starts_with(root) && find_project_root(began_in) == root;
    let (id, began_in) = (summary.id.to_string(), summary.cwd.to_string());
    (!is_here).then_some(ForeignSession::OtherFolder { id, began_in })
}

/// Takes the files out of a foreign conversation's context that no tool could read: the user opened
/// them elsewhere, or nobody did.
fn drop_outside_files(pinned: &mut PinnedContext, scope: &Scope, notices: &dyn NoticeSink) {
    let is_inside =
        |path: &PathBuf| scope.resolve_for_read(&scope.folder.join(path).to_string_lossy()).is_ok();
    let (inside, outside) = std::mem::take(&mut pinned.files).into_iter().partition(is_inside);
    pinned.files = inside;
    if !outside.is_empty() {
        notices.notice(Notice::OutsideFilesDropped { files: outside });
    }
}

/// The same for a conversation that is to be continued.
pub(crate) fn drop_pinned_outside(conversation: &mut Conversation, scope: &Scope, notices: &dyn NoticeSink) {
    let mut pinned = restore_pinned(conversation);
    drop_outside_files(&mut pinned, scope, notices);
    let data = serde_json::to_value(pinned).unwrap_or_default();
    conversation.custom.insert(PINNED_ENTRY.into(), data);
    // Nobody here has asked for these commands.
    conversation.custom.remove(DEFERRED_ENTRY);
    if conversation.custom.contains_key(PANELS_ENTRY) {
        let panels = restore_panels(conversation).without_opened_panels();
        let data = serde_json::to_value(panels).unwrap_or_default();
        conversation.custom.insert(PANELS_ENTRY.into(), data);
    }
}

/// The same for every entry of a session that is to be copied.
pub(crate) fn drop_outside_files_of(session: &mut Session, scope: &Scope, notices: &dyn NoticeSink) {
    for entry in &mut session.entries {
        let Record::Custom { custom_type, data } = &mut entry.record else { continue };
        if &**custom_type == DEFERRED_ENTRY {
            // Nobody here has asked for these commands.
            *data = serde_json::Value::Null;
        }
        if &**custom_type == PANELS_ENTRY {
            let panels: SavedPanels = serde_json::from_value(data.clone()).unwrap_or_default();
            *data = serde_json::to_value(panels.without_opened_panels()).unwrap_or_default();
        }
        if &**custom_type != PINNED_ENTRY {
            continue;
        }
        let mut pinned: PinnedContext = serde_json::from_value(data.clone()).unwrap_or_default();
        drop_outside_files(&mut pinned, scope, notices);
        *data = serde_json::to_value(pinned).unwrap_or_default();
    }
}
