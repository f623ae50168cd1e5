//! [`Git`] runs git on a repository that others can change, and [`find_project_root`] finds it.
//!
//! A repository names programs: filters, file monitors, hooks, signers. Commands of the model, or
//! whoever made the repository, can write its settings at any moment. So git runs in the sandbox,
//! where it reads nothing but the repository, and gets an environment and settings of its own.

mod environment; // the variables and settings that git gets
mod github; // GitHubCli: gh, for a repository
mod head; // checked_out_branch: what HEAD names
mod own_settings; // what git gets of the user's own settings
mod remote; // RemoteRepository: files of another machine's repository
mod repository; // RepositoryFolders: where a repository keeps what, verified
mod status_update; // StatusUpdate: the status after some files changed

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use hardpan_sandbox::{
    OutputLimits, ProcessEnd, Program, ProgramOutput, Programs, SandboxLauncher, SandboxPolicy, run_program,
};

pub use github::{GITHUB_VARIABLES, GitHubCli, GitHubError};
pub use head::checked_out_branch;
use own_settings::OwnSettings;
pub use remote::{RemoteError, RemoteRepository};
pub use repository::RepositoryProblem;
use repository::{RepositoryFolders, Setting, SettingsIdentity};
pub use status_update::StatusChanges;
use status_update::StatusUpdate;

/// Longer than a warm status of the largest repositories takes, shorter than a person waits.
const STATUS_TIME: Duration = Duration::from_secs(5);
/// Enough for some 1,000 changed files; more would only fill the context window.
const STATUS_BYTES: usize = 64 * 1024;
const STATUS_ARGUMENTS: [&str; 5] =
    ["status", "--porcelain=v1", "--branch", "--untracked-files=normal", "--ignore-submodules=dirty"];
/// For what the user asks for and waits for.
const READ_TIME: Duration = Duration::from_secs(60);
/// Limit for listing settings, of which there are some hundred.
const SETTINGS_BYTES: usize = 1024 * 1024;

/// The most folders of branches and tags that are watched.
const MAX_REF_FOLDERS: usize = 1000;

/// What programs need to start: themselves, their libraries, and who the user is.
const SYSTEM_FILES: [&str; 15] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/gnu/store",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/passwd",
    "/etc/nsswitch.conf",
    "/etc/localtime",
    "/etc/alternatives",
];

/// Where git runs.
#[derive(Clone, Debug)]
pub enum GitConfinement {
    /// In the sandbox.
    Sandbox(SandboxLauncher),
    /// With all the rights of the user, who wants no sandbox.
    None,
    /// Nowhere; the text says why there is no sandbox.
    Refused(String),
}

/// What [`Git`] needs to know of the surroundings.
#[derive(Clone, Debug)]
pub struct GitOptions {
    /// The programs that were found at the start.
    pub programs: Programs,
    /// Where git runs.
    pub confinement: GitConfinement,
    /// What it cannot read, besides everything that is not of the repository.
    pub hidden: Vec<PathBuf>,
    /// The home folder, with the user's own settings of git.
    pub home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`, where the user's own settings of git may be instead.
    pub config_home: Option<PathBuf>,
    /// The folder for the copy of the user's own settings that git gets.
    pub cache: Option<PathBuf>,
}

/// Why git tells nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// There is no git, or only one that commands of the model could have put there.
    #[error("cannot find git: is it installed, outside of this folder?")]
    NotFound,
    /// There is no sandbox for it.
    #[error(
        "git would run on files that anybody may have written, and there is no sandbox for it: {0}. `sandbox = \"off\"` in your config.toml lets it run with all your rights"
    )]
    NoSandbox(String),
    /// The folder has no `.git`.
    #[error("there is no repository")]
    NoRepository,
    /// The repository is none that git may run on.
    #[error(transparent)]
    Repository(#[from] RepositoryProblem),
    /// git does not start.
    #[error("cannot run git: {0}")]
    NotStarted(#[source] io::Error),
    /// It did not end in time.
    #[error("git {arguments} did not end in time")]
    TimedOut {
        /// What git was asked to do.
        arguments: String,
    },
    /// It exited with an error.
    #[error("git {arguments} failed: {message}")]
    Failed {
        /// What git was asked to do.
        arguments: String,
        /// What git wrote to standard error.
        message: String,
    },
}

/// Runs git on one repository.
#[derive(Debug)]
pub struct Git {
    root: PathBuf,
    options: GitOptions,
    own: OnceLock<OwnSettings>,
    /// The repository's settings as they were listed last.
    listed: Mutex<Option<(SettingsIdentity, Vec<Setting>)>>,
}

impl Git {
    /// For the repository whose work tree is `root`.
    pub fn new(root: impl Into<PathBuf>, options: GitOptions) -> Self {
        Git { root: root.into(), options, own: OnceLock::new(), listed: Mutex::default() }
    }

    /// The branch and the changed files, as `git status --short --branch` prints them; `None` if the
    /// folder is not a repository. If git takes longer than 5 seconds or prints more than 64 KiB,
    /// the text says so.
    ///
    /// Of a submodule it tells only whether it is at another commit.
    pub fn status(&self) -> Result<Option<String>, GitError> {
        if self.root.join(".git").symlink_metadata().is_err() {
            return Ok(None);
        }
        let output = self.run_status(&STATUS_ARGUMENTS)?;
        match output {
            ProgramOutput { timed_out: true, .. } => {
                Ok(Some("(git status was stopped after 5 seconds)\n".into()))
            }
            ProgramOutput { truncated: true, stdout, .. } => {
                let text = whole_lines(&stdout);
                Ok(Some(format!("{text}(cut here: git status printed more than 64 KiB)\n")))
            }
            output => Ok(Some(lossy(&successful(&STATUS_ARGUMENTS, output)?.stdout))),
        }
    }

    /// The status after these changes of the work tree, from the status before them. It is the one that
    /// [`status`](Self::status) tells, and git looks only at the files that changed, if that is possible.
    /// What changed in the repository itself (its index, its branch) makes a former status useless.
    pub fn status_after(&self, before: &str, changes: &StatusChanges) -> Result<Option<String>, GitError> {
        let Some(update) = StatusUpdate::new(before, changes) else { return self.status() };
        let paths: Vec<&str> = update.paths().collect();
        if paths.is_empty() {
            return Ok(Some(before.to_owned()));
        }
        let arguments = [&["--literal-pathspecs"], &STATUS_ARGUMENTS[..], &["--"], &paths[..]].concat();
        let output = self.run_status(&arguments)?;
        let part = successful(&arguments, output).ok().map(|output| lossy(&output.stdout));
        match part.and_then(|part| update.merge(&part)) {
            Some(status) => Ok(Some(status)),
            None => self.status(),
        }
    }

    fn run_status(&self, arguments: &[&str]) -> Result<ProgramOutput, GitError> {
        let repository = self.repository(STATUS_TIME)?;
        let limits = OutputLimits { max_bytes: STATUS_BYTES, time: STATUS_TIME };
        self.run(&repository.program(arguments), repository.readable(self), limits)
    }

    /// Runs git to read something, and returns at most `max_bytes` of what it prints. Files are compared
    /// as they are: by no program that the repository names.
    pub fn read(&self, arguments: &[&str], max_bytes: usize) -> Result<Vec<u8>, GitError> {
        let repository = self.repository(READ_TIME)?;
        let limits = OutputLimits { max_bytes, time: READ_TIME };
        let whole = without_programs(arguments);
        let output = self.run(&repository.program(&whole), repository.readable(self), limits)?;
        // A search that finds nothing exits with 1, without a word.
        let found_nothing = output.end == ProcessEnd::Exit(1) && output.stderr.is_empty();
        if output.truncated || (arguments.first() == Some(&"grep") && found_nothing) {
            return Ok(output.stdout);
        }
        Ok(successful(arguments, output)?.stdout)
    }

    /// Whether git knows the repository, and it is one that git may run on.
    pub fn check(&self) -> Result<(), GitError> {
        self.repository(READ_TIME).map(|_| ())
    }

    /// Whether the settings of the user or of the repository have commits signed.
    pub fn signs_commits(&self) -> Result<bool, GitError> {
        let repository = self.repository(READ_TIME)?;
        let own = self.own_settings().values("commit.gpgsign");
        let signs = repository.settings.iter().filter(|setting| setting.name == "commit.gpgsign");
        let signs =
            own.chain(signs.filter(|setting| setting.scope != "command").map(|setting| &*setting.value));
        Ok(signs.last().is_some_and(|value| matches!(&*value.to_lowercase(), "true" | "yes" | "on" | "1")))
    }

    /// A setting of the user's own, whatever the repository says. None if the user's settings lie in
    /// the work tree, where others write, too.
    pub fn own_setting(&self, name: &str) -> Option<&str> {
        let GitOptions { home, config_home, .. } = &self.options;
        let is_within = |folder: &PathBuf| folder.starts_with(&self.root);
        let is_own = !home.iter().chain(config_home).any(is_within);
        self.own_settings().values(name).last().filter(|_| is_own)
    }

    /// The program that commits with the message in a file, and the folders that it writes. Hooks and
    /// what else the repository names run with it: it belongs into the sandbox. Where the user wants
    /// none, it is git as the user would run it.
    pub fn commit_program(
        &self,
        message: &Path,
        environment: Vec<(OsString, OsString)>,
    ) -> Result<(Program, Vec<PathBuf>), GitError> {
        let repository = self.repository(READ_TIME)?;
        let program = Program::new(self.program()?, &repository.folders.work_tree)
            .arguments(["commit", "-F"])
            .arguments([message])
            .variables(environment);
        let program = match self.options.confinement {
            GitConfinement::None => program,
            GitConfinement::Sandbox(_) | GitConfinement::Refused(_) => {
                program.variables(environment::for_commit(&repository.folders, self.own_settings().file()))
            }
        };
        Ok((program, repository.folders.writable()))
    }

    /// Where git runs.
    pub fn confinement(&self) -> &GitConfinement {
        &self.options.confinement
    }

    fn program(&self) -> Result<&Path, GitError> {
        self.options.programs.git.as_deref().ok_or(GitError::NotFound)
    }

    /// Finds and checks the repository.
    fn repository(&self, time: Duration) -> Result<CheckedRepository<'_>, GitError> {
        let program = self.program()?;
        let folders = RepositoryFolders::locate(&self.root)?.ok_or(GitError::NoRepository)?;
        let own = self.own_settings().file();
        let identity = folders.settings_identity();
        let mut repository = CheckedRepository { program, own, folders, settings: Vec::new() };
        if let Some((_, settings)) = self.lock_listed().as_ref().filter(|(listed, _)| *listed == identity) {
            repository.settings.clone_from(settings);
            repository.folders.check_settings(&repository.settings)?;
            return Ok(repository);
        }
        let arguments = ["config", "--list", "--show-scope", "-z"];
        let limits = OutputLimits { max_bytes: SETTINGS_BYTES, time };
        let listed = self.run(&repository.program(&arguments), repository.readable(self), limits)?;
        repository.settings = Setting::parse_list(&lossy(&successful(&arguments, listed)?.stdout));
        // What the settings include may change unnoticed, which does no harm in the sandbox.
        if matches!(self.options.confinement, GitConfinement::Sandbox(_)) {
            *self.lock_listed() = Some((identity, repository.settings.clone()));
        }
        repository.folders.check_settings(&repository.settings)?;
        Ok(repository)
    }

    fn lock_listed(&self) -> MutexGuard<'_, Option<(SettingsIdentity, Vec<Setting>)>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What git gets of the user's own settings. Read once: includes of the user's files depend on
    /// the repository, and its settings may change.
    fn own_settings(&self) -> &OwnSettings {
        self.own.get_or_init(|| {
            let arguments = ["config", "--global", "--includes", "--list", "-z"];
            let program = self.program().ok().filter(|_| self.has_own_settings());
            let folders = RepositoryFolders::locate(&self.root).ok().flatten();
            let listed = program.zip(folders).and_then(|(program, folders)| {
                let home = self.options.home.as_deref();
                let variables =
                    environment::for_own_settings(&folders, home, self.options.config_home.as_deref());
                let program = Program::new(program, "/").arguments(arguments).variables(variables);
                let limits = OutputLimits { max_bytes: SETTINGS_BYTES, time: STATUS_TIME };
                self.run(&program, None, limits).ok()
            });
            // Without such settings git fails, and there is nothing to pass on.
            let listed = listed.filter(|output| output.end == ProcessEnd::Exit(0) && !output.truncated);
            let listed = listed.map(|output| lossy(&output.stdout)).unwrap_or_default();
            let GitOptions { home, config_home, cache, .. } = &self.options;
            let config_home = config_home.clone().or_else(|| home.as_ref().map(|home| home.join(".config")));
            OwnSettings::new(&listed, home.as_deref(), config_home.as_deref(), cache.as_deref())
        })
    }

    /// Whether the user has a file of settings: without one, git need not be asked for what is in it.
    fn has_own_settings(&self) -> bool {
        let GitOptions { home, config_home, .. } = &self.options;
        let usual = home.as_ref().map(|home| home.join(".config"));
        let below = config_home.as_ref().or(usual.as_ref()).map(|folder| folder.join("git/config"));
        let files = home.iter().map(|home| home.join(".gitconfig")).chain(below);
        // What cannot be looked at may be there.
        let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        files.into_iter().any(|file| !file.symlink_metadata().is_err_and(|error| is_missing(&error)))
    }

    /// Runs git where it can write nothing, and read these files and its own; without `readable`, all
    /// that is not hidden.
    fn run(
        &self,
        program: &Program,
        readable: Option<Vec<PathBuf>>,
        limits: OutputLimits,
    ) -> Result<ProgramOutput, GitError> {
        let sandbox = match &self.options.confinement {
            GitConfinement::Sandbox(launcher) => Some((launcher, self.policy(readable))),
            GitConfinement::None => None,
            GitConfinement::Refused(reason) => return Err(GitError::NoSandbox(reason.clone())),
        };
        let sandbox = sandbox.as_ref().map(|(launcher, policy)| (*launcher, policy));
        run_program(sandbox, program, limits).map_err(GitError::NotStarted)
    }

    /// Everything is hidden but what git needs to run, and what it is to read: neither a link nor a
    /// setting of the repository leads anywhere else.
    fn policy(&self, readable: Option<Vec<PathBuf>>) -> SandboxPolicy {
        let Some(readable) = readable else {
            return SandboxPolicy { hidden: self.options.hidden.clone(), ..SandboxPolicy::default() };
        };
        let program = self.options.programs.git.iter().filter_map(|git| git.canonicalize().ok());
        // `/opt/git` for `/opt/git/bin/git`.
        let prefix = program.filter_map(|git| git.parent()?.parent().map(Path::to_owned));
        let prefix = prefix.filter(|prefix| prefix.parent().is_some());
        SandboxPolicy {
            hidden: vec!["/".into()],
            readable: SYSTEM_FILES.map(PathBuf::from).into_iter().chain(prefix).chain(readable).collect(),
            ..SandboxPolicy::default()
        }
    }
}

/// A repository that git may run on.
struct CheckedRepository<'a> {
    program: &'a Path,
    /// The file with the user's own settings.
    own: Option<&'a Path>,
    folders: RepositoryFolders,
    settings: Vec<Setting>,
}

impl CheckedRepository<'_> {
    /// The files that git reads.
    fn readable(&self, git: &Git) -> Option<Vec<PathBuf>> {
        Some(self.folders.readable().into_iter().chain(git.own_settings().readable()).collect())
    }

    /// A git that only looks.
    fn program(&self, arguments: &[&str]) -> Program {
        Program::new(self.program, &self.folders.work_tree)
            .arguments(["--no-pager", "--no-optional-locks"])
            .arguments(arguments)
            .variables(environment::for_reading(&self.folders, self.own, &self.settings))
    }
}

/// The folders of the repository of `root` in which changes of the branch, of the index and of the
/// ignore rules show, and whether a folder has only such rules.
pub(crate) fn watched_folders(root: &Path) -> Vec<(PathBuf, bool)> {
    let Ok(Some(folders)) = RepositoryFolders::locate(root) else { return Vec::new() };
    let mut found = vec![(folders.common_dir.join("info"), true), (folders.git_dir.clone(), false)];
    if folders.common_dir != folders.git_dir {
        found.push((folders.common_dir.clone(), false));
    }
    let mut waiting = vec![folders.common_dir.join("refs")];
    while let Some(folder) = waiting.pop().filter(|_| found.len() < MAX_REF_FOLDERS) {
        let entries = folder.read_dir().into_iter().flatten().flatten();
        waiting.extend(
            entries
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path()),
        );
        found.push((folder, false));
    }
    found.retain(|(folder, _)| folder.symlink_metadata().is_ok_and(|found| found.is_dir()));
    found
}

/// The arguments, with options after the subcommand that keep it from running what the attributes of
/// files ask for. No setting turns that off.
fn without_programs<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let (first, rest) = arguments.split_at(arguments.len().min(1));
    let options: &[&str] = match first {
        ["diff" | "log" | "show"] => &["--no-ext-diff", "--no-textconv"],
        ["blame"] => &["--no-textconv"],
        _ => &[],
    };
    [first, options, rest].concat()
}

fn successful(arguments: &[&str], output: ProgramOutput) -> Result<ProgramOutput, GitError> {
    let arguments = || arguments.join(" ");
    if output.timed_out {
        return Err(GitError::TimedOut { arguments: arguments() });
    }
    if output.end == ProcessEnd::Exit(0) && !output.truncated {
        return Ok(output);
    }
    Err(GitError::Failed { arguments: arguments(), message: lossy(&output.stderr).trim().to_owned() })
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn whole_lines(bytes: &[u8]) -> String {
    let end = memchr::memrchr(b'\n', bytes).map_or(0, |newline| newline + 1);
    lossy(&bytes[..end])
}

/// The root of the git repository that contains `path` (absolute): the nearest folder upwards with
/// a `.git` folder or file. `path` itself if there is none.
pub fn find_project_root(path: &Path) -> PathBuf {
    path.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests;
