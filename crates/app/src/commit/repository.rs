//! [`Repository`]: the repository that `hardpan commit` works in. Everything that the repository names,
//! hooks too, runs in the sandbox; only the user's own editor runs outside.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use hardpan_sandbox::{
    Enforcement, OutputLimits, ProcessEnd, Programs, SandboxLauncher, SandboxPolicy, run_program,
};
use hardpan_tools::{command_environment, scrub_environment};
use hardpan_workspace::{Git, GitConfinement, GitError, find_project_root};

use super::error::CommitError;
use super::message::CommitMessage;
use super::staged::StagedChanges;
use crate::command_sandbox::commit_policy;
use crate::git_access::{find_programs, git_for};
use crate::session_folder::ScratchFolder;
use crate::settings::Settings;

/// Hooks may run tests.
const COMMIT_LIMITS: OutputLimits = OutputLimits { max_bytes: 64 << 20, time: Duration::from_secs(3600) };

/// The most bytes of a message that comes back from the editor.
const MAX_MESSAGE_BYTES: u64 = 1 << 20;

/// A git repository.
pub struct Repository {
    git: Git,
    programs: Programs,
    settings: Arc<Settings>,
}

impl Repository {
    /// The repository that contains a folder.
    pub fn at(folder: &Path, settings: &Arc<Settings>) -> Result<Self, CommitError> {
        let root = find_project_root(folder);
        let programs = find_programs(&root, settings);
        let mode = settings.config.sandbox.unwrap_or_default();
        let git = git_for(&root, settings, programs.clone(), mode, None);
        git.check().map_err(|source| match source {
            GitError::NoRepository => CommitError::NoRepository { folder: folder.to_owned() },
            other => CommitError::Git(other),
        })?;
        Ok(Repository { git, programs, settings: settings.clone() })
    }

    /// Reads the staged changes. Fails if nothing is staged or there are conflicts.
    pub fn staged(&self) -> Result<StagedChanges, CommitError> {
        StagedChanges::read(&self.git)
    }

    /// Fails if commits are signed: the sandbox keeps the user's keys from git.
    pub fn check_can_commit(&self) -> Result<(), CommitError> {
        if !matches!(self.git.confinement(), GitConfinement::None) && self.git.signs_commits()? {
            return Err(CommitError::Signed);
        }
        Ok(())
    }

    /// Commits. Hooks run in the sandbox. `show` gets what they and git print.
    pub fn commit(
        &self,
        staged: &StagedChanges,
        message: &CommitMessage,
        show: &dyn Fn(&str),
    ) -> Result<(), CommitError> {
        self.check_can_commit()?;
        if !staged.is_current(&self.git)? {
            return Err(CommitError::ChangesMoved);
        }
        let scratch = ScratchFolder::new().map_err(CommitError::NoTemporaryFolder)?;
        let file = write_message(&scratch.0, message)?;
        let mut environment = match self.git.confinement() {
            GitConfinement::None => self.own_environment(),
            GitConfinement::Sandbox(_) | GitConfinement::Refused(_) => self.hook_environment(),
        };
        environment.push(("TMPDIR".into(), scratch.0.clone().into()));
        let (program, mut writable) = self.git.commit_program(&file, environment)?;
        writable.push(scratch.0.clone());
        let sandbox = match self.git.confinement() {
            GitConfinement::Sandbox(launcher) => {
                let policy = commit_policy(&self.settings, &writable).map_err(GitError::NotStarted)?;
                Some((launcher.clone(), policy))
            }
            // What hooks leave running still ends with them.
            GitConfinement::None => SandboxLauncher::installed().map(|launcher| {
                let policy = SandboxPolicy { enforcement: Enforcement::None, ..SandboxPolicy::default() };
                (launcher, policy)
            }),
            GitConfinement::Refused(reason) => return Err(GitError::NoSandbox(reason.clone()).into()),
        };
        let sandbox = sandbox.as_ref().map(|(launcher, policy)| (launcher, policy));
        let output = run_program(sandbox, &program, COMMIT_LIMITS).map_err(GitError::NotStarted)?;
        for text in [&output.stdout, &output.stderr] {
            show(&String::from_utf8_lossy(text));
        }
        match output.end {
            ProcessEnd::Exit(0) => Ok(()),
            ProcessEnd::Exit(code) => Err(CommitError::GitRefused { end: format!("exit code {code}") }),
            ProcessEnd::Signal(signal) => Err(CommitError::GitRefused { end: format!("signal {signal}") }),
            ProcessEnd::Unknown => Err(CommitError::GitRefused { end: "it was stopped".into() }),
        }
    }

    /// Lets the user edit the message in their own editor: that of the environment, or of their own
    /// git settings, never one that the repository names.
    pub fn edit(&self, message: &CommitMessage) -> Result<CommitMessage, CommitError> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let own = || self.git.own_setting("core.editor").map(str::to_owned);
        let editor = variable("GIT_EDITOR").or_else(own).or_else(|| variable("VISUAL"));
        let editor = editor.or_else(|| variable("EDITOR")).unwrap_or_else(|| "vi".into());
        // Not in the repository, where a link could lead the writing elsewhere.
        let scratch = ScratchFolder::new().map_err(CommitError::NoTemporaryFolder)?;
        let file = write_message(&scratch.0, message)?;
        // Like git: the editor may have arguments, so a shell parses the command.
        let script = format!("{editor} \"$@\"");
        let mut command = Command::new(&self.programs.shell);
        command.args(["-c", &script, "editor"]).arg(&file).current_dir(&scratch.0);
        command.env_clear().envs(self.own_environment()).env("PATH", &self.programs.search_path);
        command.stdout(Stdio::from(std::io::stderr()));
        let status = command.status().map_err(CommitError::EditorNotStarted)?;
        if !status.success() {
            return Err(CommitError::EditorFailed { status });
        }
        let unusable = |source| CommitError::MessageFile { path: file.clone(), source };
        let mut edited = String::new();
        let opened = std::fs::File::open(&file).map_err(unusable)?;
        std::io::Read::read_to_string(&mut std::io::Read::take(opened, MAX_MESSAGE_BYTES), &mut edited)
            .map_err(unusable)?;
        CommitMessage::from_editor(&edited).ok_or(CommitError::EmptyMessage)
    }
}

impl Repository {
    /// The variables of git and its hooks: those of commands, and who the user is to git.
    fn hook_environment(&self) -> Vec<(OsString, OsString)> {
        let mut passed = self.settings.config.pass_environment.clone();
        passed.extend(["GIT_AUTHOR_*", "GIT_COMMITTER_*"].map(str::to_owned));
        command_environment(std::env::vars_os(), &self.settings.all_keys(), &passed)
    }

    /// The variables of what runs with all the rights of the user: all but secrets.
    fn own_environment(&self) -> Vec<(OsString, OsString)> {
        let providers = self.settings.catalogue.providers();
        let named: Vec<String> = providers.flat_map(|provider| provider.profile.key_env.clone()).collect();
        let passed = &self.settings.config.pass_environment;
        scrub_environment(std::env::vars_os(), &named, &self.settings.all_keys(), passed)
    }
}

/// Writes the message into a file that editors know by its name.
fn write_message(folder: &Path, message: &CommitMessage) -> Result<PathBuf, CommitError> {
    let path = folder.join("COMMIT_EDITMSG");
    std::fs::write(&path, message.to_string())
        .map_err(|source| CommitError::MessageFile { path: path.clone(), source })?;
    Ok(path)
}
