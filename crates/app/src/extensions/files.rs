//! The files that an extension may use: those of the workspace, and those of its own folder. Keys and
//! permissions are hidden from it as they are from the model.

mod anchored_entry; // AnchoredEntry: an entry of a folder held open

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hardpan_extensions::HostError;
use hardpan_files::{RegularFile, UnreadableReason, plain_path};
use serde_json::{Value, json};

use rustix::fs::{FileType, OFlags};

use self::anchored_entry::{AnchoredEntry, MissingFolders};
use super::discovery::{ExtensionOrigin, OwnFolder};
use super::host::ExtensionHost;
use super::permissions::Permissions;

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 32 << 20;

/// The most entries of folders that are listed at once.
const MAX_ENTRIES: usize = 100_000;

/// The endings of files that hold programs.
const SCRIPTS: [&str; 6] = ["cjs", "js", "mjs", "mts", "sh", "ts"];

/// Where extensions look for data, below the home folder.
const FOREIGN_DATA: [&str; 2] = [".pi/agent", ".pi"];

/// Environment variables that extensions see.
const VARIABLES: [&str; 10] =
    ["HOME", "USER", "SHELL", "LANG", "LC_ALL", "TERM", "PATH", "EDITOR", "TZ", "TMPDIR"];

/// The variables of the environment that an extension sees, as an object: some that every program needs,
/// and those that the person allowed it.
pub fn environment(permissions: &Permissions) -> Value {
    let granted = permissions.granted().env;
    let names = VARIABLES.iter().copied().chain(granted.iter().map(String::as_str));
    Value::Object(
        names.filter_map(|name| Some((name.to_owned(), json!(std::env::var(name).ok()?)))).collect(),
    )
}

/// A folder that a program may run in.
pub fn readable_folder(host: &ExtensionHost, folder: &str) -> Result<PathBuf, HostError> {
    allowed_path(host, folder, Access::Read)
}

/// Carries out an operation of `node:fs`.
pub fn call(host: &ExtensionHost, operation: &str, arguments: &Value) -> Result<Value, HostError> {
    let path =
        arguments["path"].as_str().ok_or_else(|| HostError("EINVAL: the path must be a string".into()))?;
    let access = match operation {
        "readFile" | "stat" | "readdir" | "realpath" => Access::Read,
        _ => Access::Write,
    };
    let place = allowed_path(host, path, access)?;
    let is_set = |name: &str| arguments[name].as_bool() == Some(true);
    let done = match operation {
        "readFile" => read(host, &place).map(|bytes| json!(STANDARD.encode(bytes))),
        "writeFile" => {
            let mode = match (is_set("append"), is_set("exclusive")) {
                (_, true) => WriteMode::Create,
                (true, false) => WriteMode::Append,
                (false, false) => WriteMode::Replace,
            };
            let content = arguments["content"].as_str().unwrap_or_default();
            let bytes = STANDARD.decode(content).map_err(|error| HostError(error.to_string()))?;
            let is_new = arguments["mode"].is_u64() && !place.exists();
            let written = write(host, &place, &bytes, mode);
            if is_new { written.and_then(|_| set_mode(host, &place, &arguments["mode"])) } else { written }
        }
        "chmod" => set_mode(host, &place, &arguments["mode"]),
        "utimes" => set_time(host, &place, &arguments["time"]),
        "mkdtemp" => make_unique_folder(&place),
        "stat" => stat(&place),
        "readdir" => list(&place, is_set("recursive")),
        // Its links are resolved.
        "realpath" => stat(&place).map(|_| json!(place)),
        "mkdir" => make_folder(&place, is_set("recursive")),
        "rm" => remove(&place, is_set("recursive"), is_set("folder")),
        "rename" | "copyFile" => {
            let to = arguments["to"]
                .as_str()
                .ok_or_else(|| HostError("EINVAL: the path must be a string".into()))?;
            let to = allowed_path(host, to, Access::Write)?;
            match operation {
                "rename" => rename(&place, &to),
                _ => read(host, &place).and_then(|bytes| write(host, &to, &bytes, WriteMode::Replace)),
            }
        }
        _ => return Err(HostError(format!("fs.{operation} is not available in Hardpan yet"))),
    };
    done.map_err(|error| HostError(format!("{}: {error}, {operation} '{path}'", error_code(&error))))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// The place that a path names, if the extension may use it.
fn allowed_path(host: &ExtensionHost, path: &str, access: Access) -> Result<PathBuf, HostError> {
    let scope = &host.setting.scope;
    let whole = own_place(host, plain_path(&scope.folder.join(path)));
    let path = whole.to_str().unwrap_or(path);
    let real = real_place(&whole);
    if is_own(host, &real, access) {
        return Ok(real);
    }
    let resolved = match access {
        Access::Read => scope.resolve_for_read(path),
        Access::Write => scope.resolve_for_write(path),
    };
    resolved.map_err(|error| {
        let code = if access == Access::Read && !real.exists() { "ENOENT" } else { "EACCES" };
        HostError(format!(
            "{code}: {error} (extensions use the workspace and folders of their own), '{path}'"
        ))
    })
}

/// Whether a path without links lies in a folder of the extension's own: that of its data, or that of its files.
fn is_own(host: &ExtensionHost, real: &Path, access: Access) -> bool {
    if host.data_folder().is_some_and(|data| real.starts_with(&data)) {
        return true;
    }
    let root = host.root();
    let is_allowed = match host.own_folder() {
        OwnFolder::Nothing => false,
        OwnFolder::Data => access == Access::Read || !(is_program(real) || real.is_dir()),
        OwnFolder::Whole => true,
    };
    if !is_allowed {
        return false;
    }
    // An extension may live in a folder that is hidden from others, such as that of the settings.
    let is_hidden =
        host.setting.scope.hidden.iter().any(|hidden| {
            !root.starts_with(hidden) && (real.starts_with(hidden) || hidden.starts_with(real))
        });
    // What stands there runs programs.
    let is_git = real.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"));
    real.starts_with(root) && !is_hidden && !is_git
}

/// Whether a file may be part of an extension, perhaps of another one.
fn is_program(path: &Path) -> bool {
    let is_script = path.extension().and_then(|it| it.to_str()).is_some_and(|it| SCRIPTS.contains(&it));
    is_script
        || path.file_name().is_some_and(|name| name == "package.json")
        || path.components().any(|part| part.as_os_str() == "node_modules")
}

/// The place of skills or templates that the extension brings; none if it may not read them. A file of the
/// user's extensions may bring what stands beside it.
pub fn resource_place(host: &ExtensionHost, path: &str) -> Option<PathBuf> {
    let place = real_place(&host.root().join(path));
    let stands_beside = host.origin() == ExtensionOrigin::User && place.starts_with(host.root());
    if is_own(host, &place, Access::Read) || stands_beside {
        return Some(place);
    }
    host.setting.scope.resolve_for_read(place.to_str()?).ok()
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

fn read(host: &ExtensionHost, place: &Path) -> io::Result<Vec<u8>> {
    // A file of the workspace is judged when it is open: its name may be another link to a hidden one.
    let opened = match is_own(host, place, Access::Read) {
        true => AnchoredEntry::open(place, MissingFolders::Fail)
            .and_then(|entry| entry.open_to_read())
            .map_err(UnreadableReason::from)
            .and_then(RegularFile::from_open),
        false => host.setting.scope.guard().open(place),
    };
    opened.and_then(|file| file.read_all(MAX_BYTES)).map_err(unreadable)
}

fn unreadable(reason: UnreadableReason) -> io::Error {
    let kind = match &reason {
        UnreadableReason::Missing => io::ErrorKind::NotFound,
        UnreadableReason::Directory => io::ErrorKind::IsADirectory,
        UnreadableReason::Permission | UnreadableReason::Private => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, reason)
}

/// How a file is written.
#[derive(Clone, Copy)]
enum WriteMode {
    Replace,
    Append,
    /// Only if there is none.
    Create,
}

fn write(host: &ExtensionHost, place: &Path, bytes: &[u8], mode: WriteMode) -> io::Result<Value> {
    let mut file = open_to_write(
        host,
        place,
        match mode {
            WriteMode::Replace => OFlags::CREATE,
            WriteMode::Append => OFlags::CREATE | OFlags::APPEND,
            WriteMode::Create => OFlags::CREATE | OFlags::EXCL,
        },
    )?;
    if let WriteMode::Replace = mode {
        file.set_len(0)?;
    }
    file.write_all(bytes)?;
    Ok(Value::Null)
}

/// Opens a file that the extension may change.
fn open_to_write(host: &ExtensionHost, place: &Path, more: OFlags) -> io::Result<fs::File> {
    let file = AnchoredEntry::open(place, MissingFolders::Fail)?.open_to_write(more)?;
    // Judged when it is open, and before it is changed: its name may be another link to a hidden file.
    let opened = RegularFile::from_open(file.try_clone()?).map_err(unreadable)?;
    if !is_own(host, place, Access::Write) {
        host.setting.scope.guard().judge(opened, place).map_err(unreadable)?;
    }
    Ok(file)
}

/// Sets who may read, write and run a file. Folders stay as they are.
fn set_mode(host: &ExtensionHost, place: &Path, mode: &Value) -> io::Result<Value> {
    let bits = mode.as_u64().and_then(|mode| u32::try_from(mode & 0o777).ok());
    let bits = bits.ok_or(io::ErrorKind::InvalidInput)?;
    if !fs::metadata(place)?.is_dir() {
        open_to_write(host, place, OFlags::empty())?.set_permissions(fs::Permissions::from_mode(bits))?;
    }
    Ok(Value::Null)
}

/// Sets when a file was changed, in milliseconds since 1970. Folders stay as they are.
fn set_time(host: &ExtensionHost, place: &Path, time: &Value) -> io::Result<Value> {
    let time = time.as_f64().and_then(|time| Duration::try_from_secs_f64(time / 1000.0).ok());
    let time = time.and_then(|time| UNIX_EPOCH.checked_add(time)).ok_or(io::ErrorKind::InvalidInput)?;
    if !fs::metadata(place)?.is_dir() {
        open_to_write(host, place, OFlags::empty())?.set_modified(time)?;
    }
    Ok(Value::Null)
}

fn make_folder(place: &Path, recursive: bool) -> io::Result<Value> {
    let missing = if recursive { MissingFolders::Create } else { MissingFolders::Fail };
    let entry = AnchoredEntry::open(place, missing)?;
    match entry.make_folder() {
        Err(error) if recursive && error.kind() == io::ErrorKind::AlreadyExists && entry.is_folder() => {}
        made => made?,
    }
    Ok(Value::Null)
}

fn rename(from: &Path, to: &Path) -> io::Result<Value> {
    let from = AnchoredEntry::open(from, MissingFolders::Fail)?;
    from.rename_to(&AnchoredEntry::open(to, MissingFolders::Fail)?)?;
    Ok(Value::Null)
}

/// Makes a folder whose name begins with that of `prefix`, and which was not there.
fn make_unique_folder(prefix: &Path) -> io::Result<Value> {
    let entry = AnchoredEntry::open(prefix, MissingFolders::Fail)?;
    loop {
        let suffix = format!("{:06x}", RandomState::new().hash_one(0) % (1 << 24));
        match entry.make_folder_with_suffix(&suffix) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => {
                made?;
                let mut name = prefix.as_os_str().to_owned();
                name.push(suffix);
                return Ok(json!(PathBuf::from(name)));
            }
        }
    }
}

fn kind(file_type: FileType) -> &'static str {
    match file_type {
        FileType::Symlink => "symlink",
        FileType::Directory => "directory",
        FileType::RegularFile => "file",
        _ => "other",
    }
}

fn stat(place: &Path) -> io::Result<Value> {
    let found = AnchoredEntry::open(place, MissingFolders::Fail)?.stat()?;
    let milliseconds = |seconds, nanoseconds| seconds as f64 * 1000.0 + nanoseconds as f64 / 1e6;
    let changed = milliseconds(found.st_mtime, found.st_mtime_nsec);
    Ok(json!({
        "size": found.st_size,
        "kind": kind(FileType::from_raw_mode(found.st_mode)),
        "mode": found.st_mode,
        "ino": found.st_ino,
        "dev": found.st_dev,
        "nlink": found.st_nlink,
        "uid": found.st_uid,
        "gid": found.st_gid,
        "mtimeMs": changed,
        "atimeMs": milliseconds(found.st_atime, found.st_atime_nsec),
        "ctimeMs": milliseconds(found.st_ctime, found.st_ctime_nsec),
        "birthtimeMs": changed,
    }))
}

fn list(place: &Path, recursive: bool) -> io::Result<Value> {
    let entries = AnchoredEntry::open(place, MissingFolders::Fail)?.list(recursive, MAX_ENTRIES)?;
    let entries = entries.into_iter();
    Ok(entries.map(|(name, file_type)| json!({ "name": name, "kind": kind(file_type) })).collect())
}

fn remove(place: &Path, recursive: bool, folder: bool) -> io::Result<Value> {
    let entry = AnchoredEntry::open(place, MissingFolders::Fail)?;
    match entry.holds_folder()? {
        true if recursive => entry.remove_tree()?,
        true if folder => entry.remove_folder()?,
        true => return Err(io::ErrorKind::IsADirectory.into()),
        false => entry.remove_file()?,
    }
    Ok(Value::Null)
}

/// The code that programs for Node compare.
fn error_code(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "ENOENT",
        io::ErrorKind::AlreadyExists => "EEXIST",
        io::ErrorKind::PermissionDenied => "EACCES",
        io::ErrorKind::NotADirectory => "ENOTDIR",
        io::ErrorKind::IsADirectory => "EISDIR",
        io::ErrorKind::DirectoryNotEmpty => "ENOTEMPTY",
        _ => "EIO",
    }
}
