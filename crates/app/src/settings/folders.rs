//! [`UserFolders`]: where the user's settings, state, data and cache are.

use std::path::{Path, PathBuf};

use hardpan_agent::expand::ForeignFolders;

/// The user's folders. Each may be missing, on a system without a home folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserFolders {
    /// Settings, keys, skills and templates.
    pub config: Option<PathBuf>,
    /// What is learned from run to run.
    pub state: Option<PathBuf>,
    /// Data that the user would miss: sessions and journals.
    pub data: Option<PathBuf>,
    /// What can be made again.
    pub cache: Option<PathBuf>,
    /// The home folder, for what the user keeps there for other agents.
    pub home: Option<PathBuf>,
}

impl UserFolders {
    /// The folders that the environment names: our own variables (`HARDPAN_CONFIG_DIR`, …), else
    /// `hardpan` in the usual places.
    pub fn from_env() -> Self {
        UserFolders {
            config: user_folder("HARDPAN_CONFIG_DIR", "XDG_CONFIG_HOME", ".config"),
            state: user_folder("HARDPAN_STATE_DIR", "XDG_STATE_HOME", ".local/state"),
            data: user_folder("HARDPAN_DATA_DIR", "XDG_DATA_HOME", ".local/share"),
            cache: user_folder("HARDPAN_CACHE_DIR", "XDG_CACHE_HOME", ".cache"),
            home: std::env::home_dir().filter(|home| home.is_absolute()),
        }
    }

    /// Five folders below one, for tests and for programs that keep everything together.
    pub fn below(folder: &Path) -> Self {
        let below = |name: &str| Some(folder.join(name));
        UserFolders {
            config: below("config"),
            state: below("state"),
            data: below("data"),
            cache: below("cache"),
            home: below("home"),
        }
    }

    /// The folders of the user's skills: our own, and those of other agents that are used.
    pub fn skills(&self, foreign: &ForeignFolders) -> Vec<PathBuf> {
        let own = self.config.iter().map(|config| config.join("skills"));
        let others = self.home.iter().flat_map(|home| foreign.home_skills().map(|name| home.join(name)));
        own.chain(others.filter(|folder| folder.is_dir())).collect()
    }

    /// The folder of the stored conversations.
    pub fn sessions(&self) -> Option<PathBuf> {
        self.data.as_ref().map(|data| data.join("sessions"))
    }

    /// The folder of the logins at servers of the Model Context Protocol.
    pub fn logins(&self) -> Option<PathBuf> {
        self.config.as_ref().map(|config| config.join("mcp-logins"))
    }

    /// The folder of the logins at providers of extensions.
    pub fn extension_logins(&self) -> Option<PathBuf> {
        self.config.as_ref().map(|config| config.join("extension-logins"))
    }

    /// Our own files, which never become context: keys, permissions, settings and sessions. The
    /// files with keys and permissions are named one by one, so that they are known by any name.
    pub fn private_files(&self) -> Vec<PathBuf> {
        let files = self.config.iter().flat_map(|folder| secret_files(folder));
        // Each login has a file of its own.
        let folders = [self.logins(), self.extension_logins()];
        let logins = folders.into_iter().flatten().filter_map(|folder| std::fs::read_dir(folder).ok());
        let logins = logins.flatten().filter_map(|entry| Some(entry.ok()?.path()));
        files
            .chain(logins)
            .chain([&self.config, &self.state, &self.data].into_iter().flatten().cloned())
            .collect()
    }
}

/// The file of the config folder that says what extensions may do.
pub(crate) const EXTENSION_PERMISSIONS: &str = "extension-permissions.json";

/// The files with keys and permissions in a config folder.
pub(super) fn secret_files(config: &Path) -> [PathBuf; 5] {
    ["config.toml", "keys.toml", "allowed", "trusted", EXTENSION_PERMISSIONS].map(|name| config.join(name))
}

/// Our own variable names the folder itself; else it is `hardpan` in the usual place.
fn user_folder(own: &str, usual: &str, below_home: &str) -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let usual = || of(usual).or_else(|| of("HOME").map(|home| home.join(below_home)));
    of(own).or_else(|| usual().map(|folder| folder.join("hardpan")))
}

/// A folder of the settings; `~` at its start is the home folder, as in a shell.
pub fn expand_home(folder: &str) -> PathBuf {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    match (folder.strip_prefix('~'), home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            Path::new(&home).join(rest.trim_start_matches('/'))
        }
        _ => PathBuf::from(folder),
    }
}
