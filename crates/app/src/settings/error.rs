use std::io;
use std::path::PathBuf;

use hardpan_context::PromptTextsError;
use hardpan_models::CatalogueError;

use super::project_files::ProjectFilesError;
use super::server_table::ServerTableError;

/// Why the settings cannot be read or changed. Each message says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A file is there but cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The folder of the settings cannot be created.
    #[error("cannot create {}: {source}", path.display())]
    FolderNotCreated {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The project's folder is not there.
    #[error("cannot find {}: {source}", path.display())]
    FolderNotFound {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// `config.toml` has a mistake.
    #[error("{}:{line}: {message}", path.display())]
    InvalidConfig {
        /// The file.
        path: PathBuf,
        /// Counted from one.
        line: usize,
        /// What is wrong, in the parser's words.
        message: String,
    },
    /// The servers in `config.toml` cannot be changed as asked.
    #[error(transparent)]
    ServerTable(#[from] ServerTableError),
    /// `models.json` has a mistake.
    #[error(transparent)]
    InvalidModels(#[from] CatalogueError),
    /// A file in `prompts/` has a mistake.
    #[error(transparent)]
    InvalidTexts(#[from] PromptTextsError),
    /// `keys.toml` has a mistake. The parser's message is left out: it would quote a key.
    #[error("{}: expected lines like anthropic = \"your key\"", path.display())]
    InvalidKeys {
        /// The file.
        path: PathBuf,
    },
    /// Others than the owner can read `keys.toml`.
    #[error("other users can read {}: run `chmod 600 {}`", path.display(), path.display())]
    KeysNotPrivate {
        /// The file.
        path: PathBuf,
    },
    /// There is no folder for the user's settings.
    #[error("no config folder: set HOME or HARDPAN_CONFIG_DIR")]
    NoConfigFolder,
    /// The list of trusted folders cannot hold this name.
    #[error("cannot trust a folder whose name {problem}: rename it")]
    UntrustableName {
        /// What is wrong with the name.
        problem: &'static str,
    },
    /// The project's own settings cannot be read as a whole.
    #[error(transparent)]
    ProjectFiles(#[from] ProjectFilesError),
}
