//! What every command needs before it starts: the folder, the user's folders and settings, and
//! [`StderrNotices`], which shows what the library has to say.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use hardpan_app::settings::{Settings, UserFolders};
use hardpan_app::{IndexProgress, Notice, NoticeSink};
use hardpan_session::SessionStore;

use crate::chat::screen;
use crate::output::{safe, thousands};

/// The folder to work in: `dir`, relative to the current folder, or the current folder itself.
pub fn working_folder(dir: Option<&Path>) -> Result<PathBuf> {
    #[allow(clippy::disallowed_methods, reason = "this is the edge where the working directory enters")]
    let here = std::env::current_dir().context("cannot determine the current folder")?;
    let folder = dir.map_or(here.clone(), |dir| here.join(dir));
    Ok(hardpan_app::gather::canonical_folder(&folder)?)
}

/// Loads the settings for a folder, and shows the notices about them.
pub fn load_settings(dir: Option<&Path>) -> Result<Arc<Settings>> {
    let root = hardpan_workspace::find_project_root(&working_folder(dir)?);
    Ok(Arc::new(Settings::load(&root, UserFolders::from_env(), &StderrNotices)?))
}

/// The folder of the user's data: sessions, bills and journals.
pub fn data_folder() -> Result<PathBuf> {
    UserFolders::from_env().data.context("no folder to store sessions in: set HOME or HARDPAN_DATA_DIR")
}

/// The user's session store.
pub fn session_store() -> Result<SessionStore> {
    Ok(SessionStore::new(data_folder()?.join("sessions")))
}

/// Prints notices on standard error, above the line that the user types.
pub struct StderrNotices;

impl StderrNotices {
    /// For functions that keep the sink.
    pub fn shared() -> Arc<dyn NoticeSink> {
        Arc::new(StderrNotices)
    }
}

/// Shows nothing, for work within a face.
pub struct QuietNotices;

impl NoticeSink for QuietNotices {
    fn notice(&self, _notice: Notice) {}

    fn index_progress(&self, _progress: IndexProgress) {}
}

impl NoticeSink for StderrNotices {
    fn notice(&self, notice: Notice) {
        screen::print_lines(&format!("hardpan: {}", safe(&notice.to_string())));
    }

    fn index_progress(&self, progress: IndexProgress) {
        if !io::stderr().is_terminal() {
            return;
        }
        match progress {
            IndexProgress::Indexed { done, total } => {
                progress!("\rindexing {} of {} files", thousands(done), thousands(total));
            }
            IndexProgress::Finished => progress!("\r\x1b[K"),
        }
    }
}
