//! [`GitHubCli`] runs `gh`, GitHub's command line, for a repository.
//!
//! gh runs git in the repository, whose settings anybody may have written. So it runs where git runs: in
//! the sandbox, where it writes nothing and reads only the repository, with GitHub as its whole network.
//! It gets the user's token, and no settings, aliases or extensions.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hardpan_sandbox::{
    HostPattern, NetworkAccess, OutputLimits, ProcessEnd, Program, ProgramOutput, SandboxPolicy, run_program,
};

use super::{Git, GitConfinement, GitError, lossy};

/// The longest time for a command that reads. Requests wait for it.
const READ_TIME: Duration = Duration::from_secs(20);
/// The longest time for a command that changes something.
const CHANGE_TIME: Duration = Duration::from_secs(60);
/// The longest time to find the token, which a keyring may have to be asked for.
const TOKEN_TIME: Duration = Duration::from_secs(10);
/// The most bytes of a token.
const TOKEN_BYTES: usize = 4096;

/// The server that gh asks unless `GH_HOST` names another one.
const DEFAULT_HOST: &str = "github.com";
/// Variables that hold a token, in the order in which gh looks at them.
const TOKEN_VARIABLES: [&str; 2] = ["GH_TOKEN", "GITHUB_TOKEN"];
/// Where systems keep the certificates that gh trusts.
const CERTIFICATES: [&str; 4] = ["/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/crypto-policies"];

/// Variables of the user that say where gh keeps the token.
pub const GITHUB_VARIABLES: [&str; 10] = [
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "GH_HOST",
    "GH_CONFIG_DIR",
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "PATH",
    "USER",
];

/// Why gh tells nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitHubError {
    /// There is no gh, or only one that commands of the model could have put there.
    #[error(
        "cannot find gh, GitHub's command line: install it from https://cli.github.com, outside of this folder"
    )]
    NotFound,
    /// gh knows no token.
    #[error("gh has no account for {host}: run `gh auth login --hostname {host}` in a terminal")]
    NoAccount {
        /// The server.
        host: String,
    },
    /// The repository is none, or there is no sandbox.
    #[error(transparent)]
    Git(#[from] GitError),
    /// gh does not start.
    #[error("cannot run gh: {0}")]
    NotStarted(#[source] std::io::Error),
    /// It did not end in time.
    #[error("gh {arguments} did not end within {seconds} seconds")]
    TimedOut {
        /// What gh was asked to do.
        arguments: String,
        /// How long it had.
        seconds: u64,
    },
    /// It exited with an error.
    #[error("gh {arguments} failed: {message}")]
    Failed {
        /// What gh was asked to do.
        arguments: String,
        /// What gh wrote to standard error.
        message: String,
    },
}

/// Runs gh for one repository.
#[derive(Debug)]
pub struct GitHubCli {
    git: Arc<Git>,
    /// [`GITHUB_VARIABLES`] of the user.
    variables: Vec<(OsString, OsString)>,
    token: Mutex<Option<String>>,
}

impl GitHubCli {
    /// For the repository of `git`. `variables` are those of [`GITHUB_VARIABLES`] that are set.
    pub fn new(git: Arc<Git>, variables: Vec<(OsString, OsString)>) -> Self {
        GitHubCli { git, variables, token: Mutex::default() }
    }

    /// Whether there is a gh in a safe place.
    pub fn is_installed(&self) -> bool {
        self.git.options.programs.gh.is_some()
    }

    /// Runs a command that only reads, and returns at most `max_bytes` of what it prints.
    pub fn read(&self, arguments: &[&str], max_bytes: usize) -> Result<Vec<u8>, GitHubError> {
        self.run(arguments, "", OutputLimits { max_bytes, time: READ_TIME })
    }

    /// Runs a command that may change something on GitHub, with this standard input.
    pub fn change(&self, arguments: &[&str], input: &str, max_bytes: usize) -> Result<Vec<u8>, GitHubError> {
        self.run(arguments, input, OutputLimits { max_bytes, time: CHANGE_TIME })
    }

    fn run(&self, arguments: &[&str], input: &str, limits: OutputLimits) -> Result<Vec<u8>, GitHubError> {
        let program = self.program()?;
        let token = self.token()?;
        let repository = self.git.repository(super::READ_TIME)?;
        let git_folder = self.git.program()?.parent().unwrap_or(Path::new("/usr/bin"));
        let search_path = std::env::join_paths([git_folder, Path::new("/usr/bin"), Path::new("/bin")]);
        let program = Program::new(program, &repository.folders.work_tree)
            .arguments(arguments)
            .variables(super::environment::for_reading(
                &repository.folders,
                repository.own,
                &repository.settings,
            ))
            .variable("PATH", search_path.unwrap_or_default())
            .variable("GH_TOKEN", &token)
            .variable("GH_HOST", self.host())
            .variable("GH_CONFIG_DIR", "/nonexistent")
            .variables(QUIET.iter().map(|(name, value)| (name.into(), value.into())))
            .input(input);
        let policy = self.policy(repository.readable(&self.git).unwrap_or_default());
        let sandbox = match &self.git.options.confinement {
            GitConfinement::Sandbox(launcher) => Some((launcher, &policy)),
            GitConfinement::None => None,
            GitConfinement::Refused(reason) => return Err(GitError::NoSandbox(reason.clone()).into()),
        };
        let output = run_program(sandbox, &program, limits).map_err(GitHubError::NotStarted)?;
        let hide = |bytes: &[u8]| lossy(bytes).replace(&token, "[token]");
        let said = || arguments.join(" ");
        match output {
            ProgramOutput { timed_out: true, .. } => {
                Err(GitHubError::TimedOut { arguments: said(), seconds: limits.time.as_secs() })
            }
            ProgramOutput { truncated: true, stdout, .. }
            | ProgramOutput { end: ProcessEnd::Exit(0), stdout, .. } => Ok(hide(&stdout).into_bytes()),
            ProgramOutput { stdout, stderr, .. } => {
                // `gh pr checks` fails when a check fails, and prints them all.
                let message = format!("{}\n{}", hide(&stdout).trim(), hide(&stderr).trim());
                Err(GitHubError::Failed { arguments: said(), message: message.trim().to_owned() })
            }
        }
    }

    fn program(&self) -> Result<&Path, GitHubError> {
        self.git.options.programs.gh.as_deref().ok_or(GitHubError::NotFound)
    }

    fn host(&self) -> String {
        let host = self.variable("GH_HOST").map(|host| host.to_string_lossy().into_owned());
        host.unwrap_or_else(|| DEFAULT_HOST.to_owned())
    }

    fn variable(&self, name: &str) -> Option<&OsStr> {
        let mut found = self.variables.iter().filter(|(known, value)| known == name && !value.is_empty());
        found.next().map(|(_, value)| value.as_os_str())
    }

    /// The user's token. gh itself is asked for it where nothing of the repository is near, and outside
    /// of the sandbox, where it can ask a keyring.
    fn token(&self) -> Result<String, GitHubError> {
        let mut kept = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(token) = &*kept {
            return Ok(token.clone());
        }
        let given = TOKEN_VARIABLES.iter().find_map(|name| self.variable(name)).and_then(OsStr::to_str);
        let token = match given {
            Some(token) => token.to_owned(),
            None => self.ask_for_token()?,
        };
        Ok(kept.insert(token).clone())
    }

    fn ask_for_token(&self) -> Result<String, GitHubError> {
        let host = self.host();
        let program = Program::new(self.program()?, "/")
            .arguments(["auth", "token", "--hostname", &host])
            .variables(self.variables.iter().cloned())
            .variables(QUIET.iter().map(|(name, value)| (name.into(), value.into())));
        let limits = OutputLimits { max_bytes: TOKEN_BYTES, time: TOKEN_TIME };
        let output = run_program(None, &program, limits).map_err(GitHubError::NotStarted)?;
        let token = lossy(&output.stdout).trim().to_owned();
        let is_token = output.end == ProcessEnd::Exit(0) && !output.truncated && !token.is_empty();
        if is_token { Ok(token) } else { Err(GitHubError::NoAccount { host }) }
    }

    /// What git may read, the certificates, and the network of GitHub.
    fn policy(&self, readable: Vec<PathBuf>) -> SandboxPolicy {
        let prefix = self.git.options.programs.gh.iter().filter_map(|gh| gh.canonicalize().ok());
        let prefix = prefix.filter_map(|gh| gh.parent()?.parent().map(Path::to_owned));
        let prefix = prefix.filter(|prefix| prefix.parent().is_some());
        let readable = readable.into_iter().chain(CERTIFICATES.map(PathBuf::from)).chain(prefix);
        let host = self.host();
        let hosts = [host.clone(), format!("*.{host}"), "*.githubusercontent.com".to_owned()];
        let hosts: Vec<HostPattern> = hosts.iter().filter_map(|host| host.parse().ok()).collect();
        SandboxPolicy { network: NetworkAccess::Hosts(hosts), ..self.git.policy(Some(readable.collect())) }
    }
}

/// No questions, pagers, browsers, colours and looking for updates.
const QUIET: [(&str, &str); 10] = [
    ("GH_PROMPT_DISABLED", "1"),
    ("GH_NO_UPDATE_NOTIFIER", "1"),
    ("GH_NO_EXTENSION_UPDATE_NOTIFIER", "1"),
    ("GH_PAGER", "cat"),
    ("PAGER", "cat"),
    ("GH_BROWSER", "false"),
    ("GH_EDITOR", "false"),
    ("GH_SPINNER_DISABLED", "1"),
    ("NO_COLOR", "1"),
    ("TERM", "dumb"),
];
