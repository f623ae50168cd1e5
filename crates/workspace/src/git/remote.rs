//! [`RemoteRepository`]: what another machine's repository holds now, without a work tree.
//!
//! The newest commit is fetched into a folder of its own, in the sandbox, with the network of that one
//! host. Nothing of it is checked out: no link, hook, filter or name of the repository meets the file
//! system. Files are read out of the packed objects.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hardpan_sandbox::{
    FileHandle, HostPattern, InvalidHostPattern, NetworkAccess, OutputLimits, Program, ProgramOutput,
    ResourceLimits, SandboxPolicy, run_program,
};

use super::{GitConfinement, GitError, GitOptions, environment, lossy, successful};

/// How long fetching may take.
const FETCH_TIME: Duration = Duration::from_secs(60);
/// How long reading what was fetched may take.
const READ_TIME: Duration = Duration::from_secs(20);
/// The largest file that git may write: everything that it fetches is in one.
const MAX_PACK_BYTES: u64 = 128 << 20;
/// Larger files are not fetched, where the server can leave them out.
const MAX_FILE_BYTES: usize = 256 * 1024;
/// The most bytes of the list of files.
const MAX_LIST_BYTES: usize = 16 << 20;
/// The most files that are read, and all their bytes.
const MAX_FILES: usize = 5_000;
const MAX_BYTES: usize = 32 << 20;
/// Folders of processes that were killed are removed after this time.
const LEFTOVER_AGE: Duration = Duration::from_secs(3600);

/// A number for each folder of this process.
static FOLDERS: AtomicUsize = AtomicUsize::new(0);

/// Why a repository was not fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// git cannot run, or failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// There is no folder to fetch it into.
    #[error("there is no folder for it: {0}")]
    Folder(#[from] io::Error),
    /// The address has no host that a sandbox can be limited to.
    #[error(transparent)]
    Host(#[from] InvalidHostPattern),
    /// It holds more than is fetched.
    #[error("it is larger than {} MB", MAX_PACK_BYTES >> 20)]
    Large,
    /// It did not come in time.
    #[error("it took longer than {} seconds", FETCH_TIME.as_secs())]
    Late,
}

/// The newest commit of a branch of another machine's repository.
#[derive(Debug, Default)]
pub struct RemoteRepository {
    /// The commit's name.
    pub commit: String,
    /// The files that were read, by path. Links, submodules, large files and files beyond the limits are
    /// missing.
    pub files: BTreeMap<String, Vec<u8>>,
    /// How many files there are in all.
    pub file_count: usize,
}

/// A folder that goes away with what is in it.
struct CloneFolder(PathBuf);

impl Drop for CloneFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl CloneFolder {
    fn new(options: &GitOptions) -> io::Result<Self> {
        let base = options.cache.clone().unwrap_or_else(std::env::temp_dir).join("clones");
        hardpan_files::create_private_folder(&base)?;
        for entry in fs::read_dir(&base)?.flatten() {
            let age =
                entry.metadata().and_then(|found| found.modified()).ok().and_then(|at| at.elapsed().ok());
            if age.is_some_and(|age| age > LEFTOVER_AGE) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = base.join(format!("{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        hardpan_files::create_private_folder(&folder)?;
        Ok(CloneFolder(folder.canonicalize()?))
    }
}

impl RemoteRepository {
    /// Fetches the newest commit from `url`, which names no user and no password: of the branch or tag
    /// `reference`, else of the default branch. `host` is the host of the address with its port.
    /// `wanted` says which files are worth reading.
    pub fn fetch(
        options: &GitOptions,
        url: &str,
        host: &str,
        reference: Option<&str>,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Self, RemoteError> {
        let remote = RemoteGit { options, folder: CloneFolder::new(options)?, host: host.parse()? };
        let reference = reference.filter(|reference| !reference.starts_with('-')).unwrap_or("HEAD");
        remote.run(
            &["init", "--quiet", "--bare", "--template=", "."],
            "",
            MAX_LIST_BYTES,
            READ_TIME,
            false,
        )?;
        let limit = format!("--filter=blob:limit={MAX_FILE_BYTES}");
        let arguments = [
            "fetch",
            "--quiet",
            "--depth=1",
            "--no-tags",
            "--no-recurse-submodules",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            &limit,
            "--",
            url,
        ];
        let target = format!("+{reference}:refs/heads/fetched");
        let fetched =
            remote.run(&[&arguments[..], &[&target]].concat(), "", MAX_LIST_BYTES, FETCH_TIME, true)?;
        match fetched {
            ProgramOutput { timed_out: true, .. } => return Err(RemoteError::Late),
            output if remote.is_large() => {
                drop(output);
                return Err(RemoteError::Large);
            }
            output => drop(successful(&["fetch", url], output)?),
        }
        remote.read_files(wanted)
    }
}

struct RemoteGit<'a> {
    options: &'a GitOptions,
    folder: CloneFolder,
    host: HostPattern,
}

impl RemoteGit<'_> {
    fn run(
        &self,
        arguments: &[&str],
        input: &str,
        max_bytes: usize,
        time: Duration,
        has_network: bool,
    ) -> Result<ProgramOutput, RemoteError> {
        let program = self.options.programs.git.as_deref().ok_or(GitError::NotFound)?;
        let program = Program::new(program, &self.folder.0)
            .arguments(["--no-pager", "--git-dir=."])
            .arguments(arguments)
            .variables(environment::for_fetching(&self.folder.0))
            .input(input);
        let policy = self.policy(has_network)?;
        let sandbox = match &self.options.confinement {
            GitConfinement::Sandbox(launcher) => Some((launcher, &policy)),
            GitConfinement::None => None,
            GitConfinement::Refused(reason) => return Err(GitError::NoSandbox(reason.clone()).into()),
        };
        let limits = OutputLimits { max_bytes, time };
        Ok(run_program(sandbox, &program, limits).map_err(GitError::NotStarted)?)
    }

    /// It writes its folder alone, and reads none of the user's secrets.
    fn policy(&self, has_network: bool) -> Result<SandboxPolicy, RemoteError> {
        let hosts = vec![self.host.clone()];
        Ok(SandboxPolicy {
            hidden: self.options.hidden.clone(),
            writable: vec![FileHandle::open(&self.folder.0)?],
            network: if has_network { NetworkAccess::Hosts(hosts) } else { NetworkAccess::Off },
            limits: ResourceLimits { file_size: Some(MAX_PACK_BYTES), ..ResourceLimits::default() },
            ..SandboxPolicy::default()
        })
    }

    /// Whether git stopped because a file became too large.
    fn is_large(&self) -> bool {
        let objects = self.folder.0.join("objects/pack");
        let sizes = fs::read_dir(objects).into_iter().flatten().flatten();
        let mut sizes = sizes.filter_map(|entry| entry.metadata().ok()).map(|found| found.len());
        sizes.any(|size| size >= MAX_PACK_BYTES)
    }

    fn read_files(&self, wanted: impl Fn(&str) -> bool) -> Result<RemoteRepository, RemoteError> {
        let read = |arguments: &[&str], input: &str, max_bytes: usize| -> Result<Vec<u8>, RemoteError> {
            let output = self.run(arguments, input, max_bytes, READ_TIME, false)?;
            if output.truncated {
                return Ok(output.stdout);
            }
            Ok(successful(arguments, output)?.stdout)
        };
        let name = read(&["rev-parse", "refs/heads/fetched"], "", 1000)?;
        let commit = lossy(&name).trim().to_owned();
        let list = lossy(&read(&["ls-tree", "-r", "-z", "refs/heads/fetched"], "", MAX_LIST_BYTES)?);
        let mut files: Vec<(&str, &str)> = Vec::new();
        let mut file_count = 0;
        // `100644 blob NAME\tpath`; links and submodules are of other kinds.
        for entry in list.split_terminator('\0') {
            let Some((head, path)) = entry.split_once('\t') else { continue };
            file_count += 1;
            let mut words = head.split(' ');
            let is_file = words.next().is_some_and(|mode| mode.starts_with("100"));
            if let Some(name) = words.nth(1).filter(|_| is_file && wanted(path) && files.len() < MAX_FILES) {
                files.push((path, name));
            }
        }
        let names: String = files.iter().map(|(_, name)| format!("{name}\n")).collect();
        // Each object comes with a line before it.
        let contents = read(&["cat-file", "--batch"], &names, MAX_BYTES)?;
        let mut found = BTreeMap::new();
        let mut rest = contents.as_slice();
        for (path, _) in files {
            let Some((content, after)) = next_object(rest) else { break };
            rest = after;
            if let Some(content) = content.filter(|content| content.len() <= MAX_FILE_BYTES) {
                found.insert(path.to_owned(), content.to_vec());
            }
        }
        Ok(RemoteRepository { commit, files: found, file_count })
    }
}

/// An object of `cat-file --batch`, and what follows it. The object is none where it is missing.
fn next_object(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let end = memchr::memchr(b'\n', bytes)?;
    let (head, rest) = (std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]);
    let mut words = head.split(' ').skip(1);
    if words.next() == Some("missing") {
        return Some((None, rest));
    }
    let size: usize = words.next()?.parse().ok()?;
    Some((Some(rest.get(..size)?), rest.get(size + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_follow_each_other_and_some_are_missing() {
        let bytes = b"a1 blob 3\none\nb2 missing\nc3 blob 0\n\nd4 blob 99\nbroken";
        let (one, rest) = next_object(bytes).unwrap();
        let (missing, rest) = next_object(rest).unwrap();
        let (empty, rest) = next_object(rest).unwrap();
        assert_eq!((one, missing, empty), (Some(&b"one"[..]), None, Some(&b""[..])));
        assert!(next_object(rest).is_none());
    }
}
