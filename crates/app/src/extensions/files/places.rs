//! [`Places`]: where an extension may read and write.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hardpan_extensions::HostError;
use hardpan_files::{FileGuard, is_git_name, is_in_git, plain_path};
use hardpan_tools::ScopeError;

use super::super::discovery::{ExtensionOrigin, OwnFolder};
use super::super::host::ExtensionHost;

/// The endings of files that hold programs.
const SCRIPTS: [&str; 6] = ["cjs", "js", "mjs", "mts", "sh", "ts"];

/// Where extensions look for data, below the home folder.
const FOREIGN_DATA: [&str; 2] = [".pi/agent", ".pi"];

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// The places of an extension: the workspace, the folder of its data, and perhaps that of its files.
pub struct Places<'host> {
    pub host: &'host ExtensionHost,
    /// The folder of its data, without links.
    data: Option<PathBuf>,
    /// Judges open files. What is in folders of the extension's own is not hidden from it, but a hidden file is
    /// that has another name there.
    pub guard: FileGuard,
}

impl<'host> Places<'host> {
    pub fn new(host: &'host ExtensionHost) -> Self {
        let data = host.data_folder();
        let files = (host.own_folder() != OwnFolder::Nothing).then(|| host.root().to_owned());
        let own: Vec<PathBuf> = data.iter().cloned().chain(files).collect();
        let guard = host.setting.scope.guard().with_folders(&own, host.hidden_files.clone());
        Places { host, data, guard }
    }

    /// The place that a path names, links followed, if the extension may use it.
    pub fn follow(&self, path: &str, access: Access) -> Result<PathBuf, HostError> {
        self.judge(&self.whole(path)?, path, access)
    }

    /// The same for what removes, moves or looks at the thing itself: a link at the end is not followed.
    pub fn entry(&self, path: &str, access: Access) -> Result<PathBuf, HostError> {
        let whole = self.whole(path)?;
        let (true, Some(parent), Some(name)) = (whole.is_symlink(), whole.parent(), whole.file_name()) else {
            return self.judge(&whole, path, access);
        };
        let place = real_place(parent).join(name);
        if self.is_own(&place, access) {
            return Ok(place);
        }
        let place = self.judge(parent, path, access)?.join(name);
        let path = path.to_owned();
        if self.guard.is_hidden(&place) {
            return Err(refused(&ScopeError::Hidden { path }));
        }
        if access == Access::Write && is_git_name(name) {
            return Err(refused(&ScopeError::Git { path }));
        }
        Ok(place)
    }

    /// An absolute path without dots.
    fn whole(&self, path: &str) -> Result<PathBuf, HostError> {
        if path.is_empty() {
            return Err(HostError("ENOENT: the path is empty".into()));
        }
        Ok(own_place(self.host, plain_path(&self.host.setting.scope.folder.join(path))))
    }

    fn judge(&self, whole: &Path, path: &str, access: Access) -> Result<PathBuf, HostError> {
        let real = real_place(whole);
        if self.is_own(&real, access) {
            return Ok(real);
        }
        if access == Access::Write && self.is_data(&real) {
            return Err(refused(&ScopeError::Git { path: path.to_owned() }));
        }
        let whole = whole
            .to_str()
            .ok_or_else(|| HostError(format!("EINVAL: {path} leads to a name without UTF-8")))?;
        let scope = &self.host.setting.scope;
        let resolved = match access {
            Access::Read => scope.resolve_for_read(whole),
            Access::Write => scope.resolve_for_write(whole),
        };
        resolved.map_err(|error| {
            let code = if access == Access::Read && !real.exists() { "ENOENT" } else { "EACCES" };
            HostError(format!(
                "{code}: {error} (extensions use the workspace and folders of their own), '{path}'"
            ))
        })
    }

    /// Whether a path without links lies in a folder of the extension's own: that of its data, or that of its files.
    pub fn is_own(&self, real: &Path, access: Access) -> bool {
        if let Some(below) = self.data.as_ref().and_then(|data| real.strip_prefix(data).ok()) {
            return access == Access::Read || !is_in_git(below);
        }
        let is_allowed = match self.host.own_folder() {
            OwnFolder::Nothing => false,
            OwnFolder::Data => access == Access::Read || !(is_program(real) || real.is_dir()),
            OwnFolder::Whole => true,
        };
        // An extension may live in a folder that is hidden from others, such as that of the settings.
        let is_hidden = || self.guard.is_hidden(real) || self.guard.contains_hidden(real);
        // What stands in `.git` runs programs.
        is_allowed && real.starts_with(self.host.root()) && !is_in_git(real) && !is_hidden()
    }

    /// Whether a path without links lies in the folder of the extension's data.
    pub fn is_data(&self, real: &Path) -> bool {
        self.data.as_ref().is_some_and(|data| real.starts_with(data))
    }

    /// Whether a path lies where the extension keeps data beside its file, among things of others.
    fn is_beside_file(&self, place: &Path) -> bool {
        self.host.own_folder() == OwnFolder::Data
            && place.starts_with(self.host.root())
            && !self.is_data(place)
            && place.to_str().is_none_or(|path| self.host.setting.scope.resolve_for_write(path).is_err())
    }

    /// Refuses to move or remove what other things depend on: a folder with hidden files below it would show them
    /// under another name, and whoever moves the workspace decides what `.git` is.
    pub fn check_removal(&self, place: &Path) -> io::Result<()> {
        let scope = &self.host.setting.scope;
        let kept = [&scope.root, &scope.folder].map(PathBuf::as_path);
        let kept = kept.into_iter().chain(self.data.as_deref()).chain([self.host.root()]);
        if kept.into_iter().any(|kept| kept.starts_with(place)) {
            return Err(denied("the workspace and the folders of extensions stay where they are"));
        }
        if self.guard.contains_hidden(place) {
            return Err(denied("files are below it that extensions neither read nor write, such as keys"));
        }
        Ok(())
    }

    /// Refuses programs beside a file that was named, and folders, which may hold some.
    pub fn check_arrival(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.is_beside_file(to) && (from.is_dir() || is_program(from)) {
            return Err(denied("an extension that is a single file keeps data beside it, and no programs"));
        }
        Ok(())
    }

    /// Refuses to make a program of a file beside one that was named.
    pub fn check_mode(&self, place: &Path, bits: u32) -> io::Result<()> {
        if bits & 0o111 != 0 && self.is_beside_file(place) {
            return Err(denied("an extension that is a single file keeps data beside it, and no programs"));
        }
        Ok(())
    }

    /// Counts what is about to be written.
    pub fn add_to_disk(&self, bytes: u64) -> io::Result<()> {
        self.host.setting.disk_use.add(self.host.name(), bytes)
    }

    /// Counts what was removed.
    pub fn free_on_disk(&self, bytes: u64) {
        self.host.setting.disk_use.give_back(self.host.name(), bytes);
    }
}

/// The place of skills or templates that the extension brings; none if it may not read them. A file of the
/// user's extensions may bring what stands beside it.
pub fn resource_place(host: &ExtensionHost, path: &str) -> Option<PathBuf> {
    let place = real_place(&host.root().join(path));
    let stands_beside = host.origin() == ExtensionOrigin::User && place.starts_with(host.root());
    if Places::new(host).is_own(&place, Access::Read) || stands_beside {
        return Some(place);
    }
    host.setting.scope.resolve_for_read(place.to_str()?).ok()
}

fn refused(error: &ScopeError) -> HostError {
    HostError(format!("EACCES: {error}"))
}

fn denied(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, reason)
}

/// Whether a file may be part of an extension, perhaps of another one, or runs as a command.
fn is_program(path: &Path) -> bool {
    let is_script = path.extension().and_then(|it| it.to_str()).is_some_and(|it| SCRIPTS.contains(&it));
    is_script
        || path.file_name().is_some_and(|name| name == "package.json")
        || path.components().any(|part| part.as_os_str() == "node_modules")
        || path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The place of a path below a folder in which extensions keep data elsewhere, that of the system that they are
/// written for or one of their own name in the home folder: the same path in the folder that the extension has here.
fn own_place(host: &ExtensionHost, path: PathBuf) -> PathBuf {
    let home = std::env::home_dir();
    let own_name = format!(".{}", host.name());
    let folders = FOREIGN_DATA.into_iter().chain([&*own_name]);
    let mut foreign = home.iter().flat_map(|home| folders.clone().map(|folder| home.join(folder)));
    match foreign.find_map(|foreign| path.strip_prefix(foreign).ok().map(Path::to_owned)) {
        Some(rest) => host.data_folder().map_or(path, |data| data.join(rest)),
        None => path,
    }
}

/// The path with links resolved, as far as it exists.
fn real_place(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(real), _, _) => real,
        (Err(_), Some(parent), Some(name)) => real_place(parent).join(name),
        _ => path.to_owned(),
    }
}
