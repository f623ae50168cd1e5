//! [`LogFile`]: a file that only its owner can read, and that does not grow without end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tracing_subscriber::fmt::MakeWriter;

use crate::output::safe_lines;

/// Size at which a log is set aside, in bytes: some days of work at `debug`. With the one set aside
/// before, a log takes twice as much at most.
const MAX_BYTES: u64 = 10 * 1024 * 1024;

/// A log. When it reaches [`MAX_BYTES`], it is renamed to `NAME.old`, in place of the one before,
/// and begins anew.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    max_bytes: u64,
    /// Taken only to copy or to replace the handle, never while something is written.
    file: RwLock<Arc<File>>,
    bytes: AtomicU64,
}

impl LogFile {
    /// Opens or creates the log, and the folders above it.
    pub fn open(path: &Path) -> io::Result<Self> {
        LogFile::with_limit(path, MAX_BYTES)
    }

    fn with_limit(path: &Path, max_bytes: u64) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            hardpan_files::create_private_folder(folder)?;
        }
        let file = open_private(path)?;
        // Above the limit, the next line would not cross it.
        let bytes = file.metadata()?.len().min(max_bytes);
        let file = RwLock::new(Arc::new(file));
        Ok(LogFile { path: path.to_owned(), max_bytes, file, bytes: AtomicU64::new(bytes) })
    }

    /// Sets the log aside. If that fails, it grows on: a line too many is better than none.
    fn rotate(&self) {
        let mut aside = self.path.clone().into_os_string();
        aside.push(".old");
        let fresh = fs::rename(&self.path, aside).and_then(|()| open_private(&self.path));
        if let Ok(fresh) = fresh {
            *self.file.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(fresh);
        }
    }
}

/// Opens a file to append to it, for its owner alone.
fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    #[cfg(unix)]
    if metadata.is_file() {
        // It may have been there before, open to others.
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    }
    Ok(file)
}

/// Writes one line of the log. A line is one write to a file opened for appending, so that the
/// lines of several threads and processes do not mix.
pub struct LineWriter<'a>(&'a LogFile);

impl Write for LineWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let LineWriter(log) = self;
        let length = line.len() as u64;
        let before = log.bytes.fetch_add(length, Ordering::Relaxed);
        // One thread alone crosses the limit, and that one sets the log aside.
        if before <= log.max_bytes && before + length > log.max_bytes {
            log.rotate();
            log.bytes.store(length, Ordering::Relaxed);
        }
        let file = log.file.read().unwrap_or_else(PoisonError::into_inner).clone();
        // A log is looked at in a terminal, and quotes others.
        let harmless = safe_lines(&String::from_utf8_lossy(line));
        (&*file).write_all(harmless.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> LineWriter<'a> {
        LineWriter(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_is_full_is_set_aside_and_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/a.log");
        let log = LogFile::with_limit(&path, 10).unwrap();
        for line in ["one\n", "two\n", "three\n", "four\n", "five\n"] {
            log.make_writer().write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "four\nfive\n");
        assert_eq!(fs::read_to_string(folder.path().join("logs/a.log.old")).unwrap(), "three\n");
    }

    #[test]
    fn a_log_is_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        for line in ["one\n", "two\n"] {
            LogFile::open(&path).unwrap().make_writer().write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    }

    #[test]
    fn a_log_that_was_too_large_from_the_start_is_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        fs::write(&path, "a long line of another version\n").unwrap();
        let log = LogFile::with_limit(&path, 10).unwrap();
        log.make_writer().write_all(b"new\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
    }

    #[cfg(unix)]
    #[test]
    fn a_log_is_for_its_owner_alone_even_if_it_was_open_to_others() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        LogFile::open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
