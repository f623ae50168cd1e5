//! [`LoginFile`]: where the login of a server is kept, for its owner only.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hardpan_files::{FileLock, RegularFile, UnreadableReason, write_private_file};

use super::Login;
use super::error::LoginError;
use crate::config::ServerName;

/// The largest file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// How long another process may hold the file: a refresh takes 30 s at most.
const LOCK_TIME: Duration = Duration::from_secs(40);

/// The file with the login of a server. It applies only to the address that it was made for.
#[derive(Clone, Debug)]
pub struct LoginFile {
    path: PathBuf,
    url: String,
}

impl LoginFile {
    /// The login of a server with this address, in the folder of logins.
    pub fn new(folder: &Path, name: &ServerName, url: &str) -> Self {
        LoginFile { path: folder.join(format!("{name}.json")), url: url.to_owned() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The server's address.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The login, if there is one for this address.
    pub fn read(&self) -> Result<Option<Login>, LoginError> {
        Ok(self.read_any()?.filter(|login| login.url == self.url))
    }

    /// The login, whatever address it is for.
    fn read_any(&self) -> Result<Option<Login>, LoginError> {
        let unreadable = |reason: UnreadableReason| self.failed(io::Error::other(reason));
        let file = match RegularFile::open(&self.path) {
            Err(UnreadableReason::Missing) => return Ok(None),
            file => file.map_err(unreadable)?,
        };
        #[cfg(unix)]
        if std::os::unix::fs::PermissionsExt::mode(&file.metadata.permissions()) & 0o077 != 0 {
            return Err(LoginError::NotPrivate(self.path.clone()));
        }
        let bytes = file.read_all(MAX_BYTES).map_err(unreadable)?;
        // The parser's own message could quote a token.
        let login: Result<Login, _> = serde_json::from_slice(&bytes);
        login.map(Some).map_err(|_| self.failed(io::Error::from(io::ErrorKind::InvalidData)))
    }

    /// Keeps a login. Waits for a process that is refreshing the former one.
    pub fn store(&self, login: &Login) -> Result<(), LoginError> {
        let lock = self.lock()?;
        self.replace(&lock, login)
    }

    /// Forgets the login, also one for a former address of the server, and returns it.
    pub fn remove(&self) -> Result<Option<Login>, LoginError> {
        if !self.path.exists() {
            return Ok(None);
        }
        let lock = self.lock()?;
        let login = self.read_any().ok().flatten();
        self.delete(&lock)?;
        Ok(login)
    }

    /// Replaces the file as a whole.
    pub(super) fn replace(&self, _lock: &FileLock, login: &Login) -> Result<(), LoginError> {
        let json = serde_json::to_vec(login).map_err(|error| self.failed(error.into()))?;
        write_private_file(&self.path, &json).map_err(|source| self.failed(source))
    }

    pub(super) fn delete(&self, _lock: &FileLock) -> Result<(), LoginError> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(error)),
            _ => Ok(()),
        }
    }

    /// Waits until no other process changes the file.
    pub(super) fn lock(&self) -> Result<FileLock, LoginError> {
        FileLock::acquire(&self.path.with_extension("lock"), LOCK_TIME).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> LoginError {
        LoginError::File { path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::login::tests::login;

    fn file(folder: &Path, url: &str) -> LoginFile {
        LoginFile::new(folder, &ServerName::try_from("a".to_owned()).unwrap(), url)
    }

    #[test]
    fn a_login_is_kept_for_its_owner_and_for_one_address() {
        let folder = tempfile::tempdir().unwrap();
        let file_of = |url: &str| file(&folder.path().join("logins"), url);
        let file = file_of("https://a.example/mcp");
        assert_eq!(file.read().unwrap(), None);
        file.store(&login()).unwrap();
        assert_eq!(file.read().unwrap(), Some(login()));
        assert_eq!(file_of("https://other.example/mcp").read().unwrap(), None);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(file.path()), mode(file.path().parent().unwrap())), (0o600, 0o700));
        assert_eq!(file_of("https://other.example/mcp").remove().unwrap(), Some(login()));
        assert_eq!((file.read().unwrap(), file.remove().unwrap()), (None, None));
    }

    #[test]
    fn a_file_that_others_can_read_and_one_that_is_broken_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = file(folder.path(), "https://a.example/mcp");
        file.store(&login()).unwrap();
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(file.read(), Err(LoginError::NotPrivate(_))));
        write_private_file(file.path(), b"{\"access_token\": \"old-access\"").unwrap();
        let error = file.read().unwrap_err();
        assert!(matches!(&error, LoginError::File { .. }) && !format!("{error:?}").contains("old-access"));
    }
}
