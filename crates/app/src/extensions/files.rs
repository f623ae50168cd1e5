//! The files that an extension may use: those of the workspace, and those of its own folder. Keys and
//! permissions are hidden from it as they are from the model.

mod anchored_entry; // AnchoredEntry: an entry of a folder held open
mod disk_use; // DiskUse: how much of the disk extensions take
mod places; // Places: where an extension may read and write

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hardpan_extensions::HostError;
use hardpan_files::{RegularFile, UnreadableReason};
use serde_json::{Value, json};

use rustix::fs::{FileType, OFlags};

use self::anchored_entry::{AnchoredEntry, MissingFolders, git_error};
pub use self::disk_use::DiskUse;
use self::disk_use::{BLOCK, disk_bytes, freed_bytes};
pub use self::places::resource_place;
use self::places::{Access, Places};
use super::host::ExtensionHost;
use super::permissions::Permissions;

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 32 << 20;

/// The most entries of folders that are listed at once.
const MAX_ENTRIES: usize = 100_000;

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
    Places::new(host).follow(folder, Access::Read)
}

/// Carries out an operation of `node:fs`.
pub fn call(host: &ExtensionHost, operation: &str, arguments: &Value) -> Result<Value, HostError> {
    let places = Places::new(host);
    let path = path_of(arguments, "path")?;
    let is_set = |name: &str| arguments[name].as_bool() == Some(true);
    let mode = &arguments["mode"];
    let read = || places.follow(path, Access::Read);
    let write = || places.follow(path, Access::Write);
    let done = match operation {
        "readFile" => read_file(&places, &read()?).map(|bytes| json!(STANDARD.encode(bytes))),
        "stat" if arguments["follow"] == false => stat(&places.entry(path, Access::Read)?),
        "stat" => stat(&read()?),
        "readdir" => list(&places, &read()?, is_set("recursive")),
        // Its links are resolved.
        "realpath" => {
            let place = read()?;
            stat(&place).map(|_| json!(place))
        }
        "writeFile" => {
            let content = arguments["content"].as_str().unwrap_or_default();
            let bytes = STANDARD.decode(content).map_err(|error| HostError(error.to_string()))?;
            write_with_mode(&places, &write()?, &bytes, write_mode(arguments), mode)
        }
        "chmod" => set_mode(&places, &write()?, mode),
        "utimes" => set_time(&places, &write()?, &arguments["time"]),
        "mkdir" => make_folder(&places, &write()?, is_set("recursive")),
        "mkdtemp" => make_unique_folder(&places, path)?,
        "rm" => remove(&places, &places.entry(path, Access::Write)?, is_set("recursive"), is_set("folder")),
        "rename" => {
            let to = places.entry(path_of(arguments, "to")?, Access::Write)?;
            rename(&places, &places.entry(path, Access::Write)?, &to)
        }
        "copyFile" => {
            let to = places.follow(path_of(arguments, "to")?, Access::Write)?;
            let content = read_file(&places, &write()?);
            content.and_then(|bytes| write_file(&places, &to, &bytes, WriteMode::Replace))
        }
        _ => return Err(HostError(format!("fs.{operation} is not available in Hardpan yet"))),
    };
    done.map_err(|error| HostError(format!("{}: {error}, {operation} '{path}'", error_code(&error))))
}

fn path_of<'a>(arguments: &'a Value, name: &str) -> Result<&'a str, HostError> {
    arguments[name].as_str().ok_or_else(|| HostError("EINVAL: the path must be a string".into()))
}

/// Reads a file, which is judged when it is open: its name may be another link to a hidden one.
fn read_file(places: &Places<'_>, place: &Path) -> io::Result<Vec<u8>> {
    places.guard.open(place).and_then(|file| file.read_all(MAX_BYTES)).map_err(unreadable)
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

fn write_mode(arguments: &Value) -> WriteMode {
    match (arguments["append"] == true, arguments["exclusive"] == true) {
        (_, true) => WriteMode::Create,
        (true, false) => WriteMode::Append,
        (false, false) => WriteMode::Replace,
    }
}

/// Writes a file; `mode` is that of a new one, if it is a number.
fn write_with_mode(
    places: &Places<'_>,
    place: &Path,
    bytes: &[u8],
    write_mode: WriteMode,
    mode: &Value,
) -> io::Result<Value> {
    let is_new = mode.is_u64() && !place.exists();
    write_file(places, place, bytes, write_mode)?;
    if is_new { set_mode(places, place, mode) } else { Ok(Value::Null) }
}

fn write_file(places: &Places<'_>, place: &Path, bytes: &[u8], mode: WriteMode) -> io::Result<Value> {
    let found = AnchoredEntry::open(place, MissingFolders::Fail)?.stat().ok();
    let before = found.map(|found| u64::try_from(found.st_size).unwrap_or(0));
    let kept = if let WriteMode::Append = mode { before.unwrap_or(0) } else { 0 };
    let before = before.map_or(0, disk_bytes);
    let after = disk_bytes(kept + bytes.len() as u64);
    let (added, freed) = (after.saturating_sub(before), before.saturating_sub(after));
    places.add_to_disk(added)?;
    let written = write_open(places, place, bytes, mode);
    places.free_on_disk(if written.is_ok() { freed } else { added });
    written.map(|()| Value::Null)
}

fn write_open(places: &Places<'_>, place: &Path, bytes: &[u8], mode: WriteMode) -> io::Result<()> {
    let more = match mode {
        WriteMode::Replace => OFlags::CREATE,
        WriteMode::Append => OFlags::CREATE | OFlags::APPEND,
        WriteMode::Create => OFlags::CREATE | OFlags::EXCL,
    };
    let mut file = open_to_write(places, place, more)?;
    if let WriteMode::Replace = mode {
        file.set_len(0)?;
    }
    file.write_all(bytes)
}

/// Opens a file that the extension may change.
fn open_to_write(places: &Places<'_>, place: &Path, more: OFlags) -> io::Result<fs::File> {
    let file = AnchoredEntry::open(place, MissingFolders::Fail)?.open_to_write(more)?;
    // Judged when it is open, and before it is changed: its name may be another link to a hidden file.
    let opened = RegularFile::from_open(file.try_clone()?).map_err(unreadable)?;
    places.guard.judge(opened, place).map_err(unreadable)?;
    Ok(file)
}

/// Sets who may read, write and run a file. Folders stay as they are.
fn set_mode(places: &Places<'_>, place: &Path, mode: &Value) -> io::Result<Value> {
    let bits = mode.as_u64().and_then(|mode| u32::try_from(mode & 0o777).ok());
    let bits = bits.ok_or(io::ErrorKind::InvalidInput)?;
    if !fs::metadata(place)?.is_dir() {
        places.check_mode(place, bits)?;
        open_to_write(places, place, OFlags::empty())?.set_permissions(fs::Permissions::from_mode(bits))?;
    }
    Ok(Value::Null)
}

/// Sets when a file was changed, in milliseconds since 1970. Folders stay as they are.
fn set_time(places: &Places<'_>, place: &Path, time: &Value) -> io::Result<Value> {
    let time = time.as_f64().and_then(|time| Duration::try_from_secs_f64(time / 1000.0).ok());
    let time = time.and_then(|time| UNIX_EPOCH.checked_add(time)).ok_or(io::ErrorKind::InvalidInput)?;
    if !fs::metadata(place)?.is_dir() {
        open_to_write(places, place, OFlags::empty())?.set_modified(time)?;
    }
    Ok(Value::Null)
}

fn make_folder(places: &Places<'_>, place: &Path, recursive: bool) -> io::Result<Value> {
    // Not given back if it fails: folders above may have been made.
    let new = place.ancestors().take_while(|above| above.symlink_metadata().is_err()).count();
    places.add_to_disk(new as u64 * BLOCK)?;
    let missing = if recursive { MissingFolders::Create } else { MissingFolders::Fail };
    let entry = AnchoredEntry::open(place, missing)?;
    match entry.make_folder(0o777) {
        Err(error) if recursive && error.kind() == io::ErrorKind::AlreadyExists && entry.is_folder() => {}
        made => made?,
    }
    Ok(Value::Null)
}

/// Makes a folder whose path begins with `prefix`, and which was not there.
fn make_unique_folder(places: &Places<'_>, prefix: &str) -> Result<io::Result<Value>, HostError> {
    loop {
        let suffix = format!("{:06x}", RandomState::new().hash_one(0) % (1 << 24));
        let place = places.follow(&format!("{prefix}{suffix}"), Access::Write)?;
        let make = || {
            places.add_to_disk(BLOCK)?;
            AnchoredEntry::open(&place, MissingFolders::Fail)?.make_folder(0o700)
        };
        match make() {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return Ok(made.map(|()| json!(place))),
        }
    }
}

fn rename(places: &Places<'_>, from: &Path, to: &Path) -> io::Result<Value> {
    for place in [from, to] {
        places.check_removal(place)?;
    }
    places.check_arrival(from, to)?;
    let old = AnchoredEntry::open(from, MissingFolders::Fail)?;
    let new = AnchoredEntry::open(to, MissingFolders::Fail)?;
    let stays_in_data = places.is_data(from) && places.is_data(to);
    if !stays_in_data && old.holds_git()? {
        return Err(git_error());
    }
    let (moved, replaced) = (old.stat()?, new.stat().ok());
    old.rename_to(&new)?;
    // Nothing is replaced where both names are of one file.
    let replaced = replaced.filter(|other| (other.st_dev, other.st_ino) != (moved.st_dev, moved.st_ino));
    places.free_on_disk(replaced.as_ref().map_or(0, freed_bytes));
    Ok(Value::Null)
}

fn remove(places: &Places<'_>, place: &Path, recursive: bool, folder: bool) -> io::Result<Value> {
    places.check_removal(place)?;
    let entry = AnchoredEntry::open(place, MissingFolders::Fail)?;
    let found = entry.stat()?;
    match FileType::from_raw_mode(found.st_mode) == FileType::Directory {
        true if recursive => return remove_tree(places, place, &entry),
        true if folder => entry.remove_folder()?,
        true => return Err(io::ErrorKind::IsADirectory.into()),
        false => entry.remove_file()?,
    }
    places.free_on_disk(freed_bytes(&found));
    Ok(Value::Null)
}

fn remove_tree(places: &Places<'_>, place: &Path, entry: &AnchoredEntry) -> io::Result<Value> {
    let spares_git = !places.is_data(place);
    // Looked for first, so that nothing is removed of what cannot be removed whole.
    if spares_git && entry.holds_git()? {
        return Err(git_error());
    }
    let mut freed = 0;
    let removed = entry.remove_tree(spares_git, &mut freed);
    places.free_on_disk(freed);
    removed.map(|()| Value::Null)
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

fn list(places: &Places<'_>, place: &Path, recursive: bool) -> io::Result<Value> {
    let may_enter = |below: &str| recursive && !places.guard.is_hidden(&place.join(below));
    let entries = AnchoredEntry::open(place, MissingFolders::Fail)?.list(&may_enter, MAX_ENTRIES)?;
    let entries = entries.into_iter();
    Ok(entries.map(|(name, file_type)| json!({ "name": name, "kind": kind(file_type) })).collect())
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
        io::ErrorKind::StorageFull => "ENOSPC",
        // Programs copy then.
        io::ErrorKind::CrossesDevices => "EXDEV",
        _ => "EIO",
    }
}
