//! [`CommandSandbox`]: how the commands of the model run, from the settings and from what the system
//! supports.

use std::io;
use std::path::{Path, PathBuf};

use hardpan_sandbox::{
    Enforcement, FileHandle, NetworkAccess, Sandbox, SandboxLauncher, SandboxPolicy, SandboxSupport,
    sandbox_support,
};
use hardpan_tools::Confinement;

use crate::approval::CommandRules;
use crate::notice::{DiscardNotices, Notice, NoticeSink};
use crate::settings::{NetworkSetting, SandboxMode, Settings, UserFolders, expand_home};

/// Files and folders of the home folder that hold keys, passwords and sessions of other programs.
/// Neither commands nor tools can read them, unless `readable` names them.
const SECRETS: [&str; 30] = [
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".netrc",
    ".authinfo",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    ".config/gcloud",
    ".config/doctl",
    ".docker/config.json",
    ".kube",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".gem/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".password-store",
    ".local/share/keyrings",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
];

/// How the commands of the model run.
pub(crate) struct CommandSandbox {
    pub confinement: Confinement,
    pub rules: CommandRules,
}

impl CommandSandbox {
    /// Chooses the strictest that the mode asks for and the system supports. What is missing is worth
    /// a notice.
    pub fn choose(
        settings: &Settings,
        mode: SandboxMode,
        launcher: Option<SandboxLauncher>,
        outputs: &Path,
        notices: &dyn NoticeSink,
    ) -> Self {
        if mode == SandboxMode::Off {
            return CommandSandbox {
                confinement: without_restrictions(launcher),
                rules: CommandRules::Apply,
            };
        }
        let missing = match (sandbox_support(), &launcher) {
            (SandboxSupport::Full, Some(_)) => None,
            (SandboxSupport::Partial(missing), Some(_)) if mode == SandboxMode::On => {
                notices.notice(Notice::SandboxIncomplete { missing });
                None
            }
            (SandboxSupport::Full, None) => {
                Some("there is no program that enters it (`sandbox_launcher`)".to_owned())
            }
            (SandboxSupport::Partial(reason) | SandboxSupport::None(reason), _) => Some(reason),
        };
        let policy = |enforcement| SandboxPolicy { enforcement, ..policy(settings, outputs, notices) };
        match (missing, launcher, mode) {
            (Some(reason), _, SandboxMode::Required) => {
                let reason = format!("the settings require a sandbox (`sandbox`), and {reason}");
                notices.notice(Notice::CommandsRefused { reason: reason.clone() });
                CommandSandbox { confinement: Confinement::Refused(reason), rules: CommandRules::Apply }
            }
            (None, Some(launcher), _) => CommandSandbox {
                confinement: Confinement::Sandbox(Sandbox { launcher, policy: policy(Enforcement::Full) }),
                rules: CommandRules::Apply,
            },
            (reason, launcher, _) => {
                notices.notice(Notice::NoSandbox { reason: reason.unwrap_or_default() });
                let confinement = launcher.map_or(Confinement::None, |launcher| {
                    Confinement::Sandbox(Sandbox { launcher, policy: policy(Enforcement::SystemCalls) })
                });
                CommandSandbox { confinement, rules: CommandRules::AskAlways }
            }
        }
    }
}

/// For commands that run with all the rights of the user, but end with all their processes.
pub(crate) fn without_restrictions(launcher: Option<SandboxLauncher>) -> Confinement {
    launcher.map_or(Confinement::None, |launcher| {
        let policy = SandboxPolicy { enforcement: Enforcement::None, ..SandboxPolicy::default() };
        Confinement::Sandbox(Sandbox { launcher, policy })
    })
}

/// What hooks may do when Hardpan commits: what commands may. `writable` are the repository's folders.
pub(crate) fn commit_policy(settings: &Settings, writable: &[PathBuf]) -> io::Result<SandboxPolicy> {
    let writable = writable.iter().map(|path| FileHandle::open(path)).collect::<io::Result<Vec<_>>>()?;
    // There are no outputs of earlier commands.
    Ok(policy(settings, Path::new("/dev/null"), &DiscardNotices).with_writable(writable))
}

/// What neither commands nor git can read.
pub(crate) fn hidden_folders(settings: &Settings) -> Vec<PathBuf> {
    let readable: Vec<PathBuf> = settings.config.readable.iter().map(|folder| expand_home(folder)).collect();
    hidden(&settings.user_folders, &readable)
}

/// What no tool reads: the same, with our own files of keys and permissions by any name.
pub(crate) fn hidden_files(settings: &Settings) -> Vec<PathBuf> {
    settings.user_folders.private_files().into_iter().chain(hidden_folders(settings)).collect()
}

fn policy(settings: &Settings, outputs: &Path, notices: &dyn NoticeSink) -> SandboxPolicy {
    let config = &settings.config;
    let expand = |folders: &[String]| folders.iter().map(|folder| expand_home(folder)).collect::<Vec<_>>();
    let mut writable = Vec::new();
    for path in expand(&config.writable) {
        match FileHandle::open(&path) {
            Ok(handle) => writable.push(handle),
            Err(error) => notices.notice(Notice::WritableSkipped { path, error }),
        }
    }
    let readable = expand(&config.readable);
    let network = match &config.network {
        Some(NetworkSetting::Switch(true)) => NetworkAccess::On,
        Some(NetworkSetting::Switch(false)) | None => NetworkAccess::Off,
        Some(NetworkSetting::Hosts(hosts)) => NetworkAccess::Hosts(hosts.clone()),
    };
    SandboxPolicy {
        enforcement: Enforcement::Full,
        writable,
        hidden: hidden(&settings.user_folders, &readable),
        // What the model may read in hidden folders: its own long outputs, and skills.
        readable: settings
            .user_folders
            .skills(&config.conventions.foreign_folders())
            .into_iter()
            .chain([outputs.to_owned()])
            .collect(),
        network,
        limits: config.limits.resource_limits(),
        ..SandboxPolicy::default()
    }
}

/// What commands cannot read: our own folders, with keys and other conversations, and the user's
/// secrets.
fn hidden(folders: &UserFolders, readable: &[PathBuf]) -> Vec<PathBuf> {
    let UserFolders { config, state, data, cache: _, home: _ } = folders;
    let secrets = SECRETS.iter().map(|name| expand_home(&format!("~/{name}")));
    let secrets = secrets.filter(|secret| secret.is_absolute() && !readable.contains(secret));
    [config, state, data].into_iter().flatten().cloned().chain(secrets).collect()
}
