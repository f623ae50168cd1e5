//! How Hardpan itself runs git: [`git_for`] makes a [`Git`] for a folder, and [`find_programs`] finds
//! the programs that Hardpan runs.

use std::path::{Path, PathBuf};

use hardpan_sandbox::{Programs, SandboxLauncher, SandboxSupport, sandbox_support};
use hardpan_workspace::{Git, GitConfinement, GitOptions};

use crate::command_sandbox::hidden_folders;
use crate::settings::{SandboxMode, Settings, expand_home};

/// Finds the programs that Hardpan itself runs, outside of what commands may write.
pub(crate) fn find_programs(root: &Path, settings: &Settings) -> Programs {
    let mut changeable = vec![root.to_owned()];
    changeable.extend(settings.config.writable.iter().map(|folder| expand_home(folder)));
    changeable.extend(settings.user_folders.cache.iter().map(|cache| cache.join("tmp")));
    Programs::find(std::env::var_os("PATH").as_deref(), &changeable)
}

/// A [`Git`] for the repository at `root`. Without a launcher of the caller's, this process is asked
/// for its own.
pub(crate) fn git_for(
    root: &Path,
    settings: &Settings,
    programs: Programs,
    mode: SandboxMode,
    launcher: Option<SandboxLauncher>,
) -> Git {
    Git::new(root, git_options(settings, programs, mode, launcher))
}

/// How git runs for Hardpan.
pub(crate) fn git_options(
    settings: &Settings,
    programs: Programs,
    mode: SandboxMode,
    launcher: Option<SandboxLauncher>,
) -> GitOptions {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    GitOptions {
        programs,
        confinement: confinement(mode, launcher.or_else(SandboxLauncher::installed)),
        hidden: hidden_folders(settings),
        home: folder("HOME"),
        config_home: folder("XDG_CONFIG_HOME"),
        cache: settings.user_folders.cache.clone(),
    }
}

/// Unlike a command, which the user can be asked about, git does not run without a sandbox that
/// restricts files.
fn confinement(mode: SandboxMode, launcher: Option<SandboxLauncher>) -> GitConfinement {
    if mode == SandboxMode::Off {
        return GitConfinement::None;
    }
    match (sandbox_support(), launcher) {
        (SandboxSupport::None(reason), _) => GitConfinement::Refused(reason),
        (SandboxSupport::Partial(reason), _) if mode == SandboxMode::Required => {
            GitConfinement::Refused(reason)
        }
        (_, None) => {
            GitConfinement::Refused("there is no program that enters it (`sandbox_launcher`)".into())
        }
        (_, Some(launcher)) => GitConfinement::Sandbox(launcher),
    }
}
