//! The files that an extension may use: those of the workspace, and those of its own folder. Keys and
//! permissions are hidden from it as they are from the model.

mod anchored_entry; // AnchoredEntry: an entry of a folder held open

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hardpan_extensions::HostError;
use hardpan_files::{RegularFile, UnreadableReason, plain_path};
use serde_json::{Value, json};

use rustix::fs::OFlags;

use self::anchored_entry::{AnchoredEntry, MissingFolders};
use super::host::ExtensionHost;
use super::permissions::Permissions;

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 32 << 20;

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
        "stat" => stat(&place, is_set("follow")),
        "readdir" => list(&place, is_set("recursive")),
        "realpath" => place.canonicalize().map(|path| json!(path)),
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
    if is_own(host, &real) {
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

/// Whether a path without links lies in a folder of the extension's own.
fn is_own(host: &ExtensionHost, real: &Path) -> bool {
    // An extension may live in a folder that is hidden from others, such as that of the settings.
    let is_hidden = host.setting.scope.hidden.iter().any(|hidden| {
        !host.root().starts_with(hidden) && (real.starts_with(hidden) || hidden.starts_with(real))
    });
    let is_data = host.data_folder().is_some_and(|data| real.starts_with(&data));
    is_data || (real.starts_with(host.root()) && !is_hidden)
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
    let opened = match is_own(host, place) {
        true => RegularFile::open(place),
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
    if !is_own(host, place) {
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

fn kind(file_type: fs::FileType) -> &'static str {
    match file_type {
        link if link.is_symlink() => "symlink",
        folder if folder.is_dir() => "directory",
        file if file.is_file() => "file",
        _ => "other",
    }
}

fn stat(place: &Path, follow: bool) -> io::Result<Value> {
    let found = if follow { fs::metadata(place)? } else { fs::symlink_metadata(place)? };
    let milliseconds =
        |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1000.0;
    let changed = milliseconds(found.modified()?);
    Ok(json!({
        "size": found.len(),
        "kind": kind(found.file_type()),
        "mode": found.mode(),
        "ino": found.ino(),
        "dev": found.dev(),
        "nlink": found.nlink(),
        "uid": found.uid(),
        "gid": found.gid(),
        "mtimeMs": changed,
        "atimeMs": found.accessed().map_or(changed, milliseconds),
        "ctimeMs": found.ctime() as f64 * 1000.0 + found.ctime_nsec() as f64 / 1e6,
        "birthtimeMs": found.created().map_or(changed, milliseconds),
    }))
}

fn list(place: &Path, recursive: bool) -> io::Result<Value> {
    let mut entries = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(place.join(&folder))? {
            let entry = entry?;
            let name = folder.join(entry.file_name());
            let file_type = entry.file_type()?;
            if recursive && file_type.is_dir() {
                folders.push(name.clone());
            }
            entries.push((name.to_string_lossy().into_owned(), kind(file_type)));
        }
    }
    entries.sort();
    Ok(entries.into_iter().map(|(name, kind)| json!({ "name": name, "kind": kind })).collect())
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
