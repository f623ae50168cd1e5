//! The user's folders: settings, state, data and cache.

use std::path::{Path, PathBuf};

/// The folder of the user's settings.
pub fn config_folder() -> Option<PathBuf> {
    user_folder("HARDPAN_CONFIG_DIR", "XDG_CONFIG_HOME", ".config")
}

/// The files of the config folder that no tool may read: keys and permissions.
pub fn private_files(folder: &Path) -> Vec<PathBuf> {
    ["config.toml", "keys.toml", "allowed", "trusted"].iter().map(|name| folder.join(name)).collect()
}

/// The folder for what is learned from run to run.
pub fn state_folder() -> Option<PathBuf> {
    user_folder("HARDPAN_STATE_DIR", "XDG_STATE_HOME", ".local/state")
}

/// The folder for data that the user would miss: sessions and journals.
pub fn data_folder() -> Option<PathBuf> {
    user_folder("HARDPAN_DATA_DIR", "XDG_DATA_HOME", ".local/share")
}

/// Where what can be made again is kept.
pub fn cache_folder() -> Option<PathBuf> {
    user_folder("HARDPAN_CACHE_DIR", "XDG_CACHE_HOME", ".cache")
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
