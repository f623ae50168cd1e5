//! [`login_file`]: where the login at a server is kept.

use std::path::Path;

use hardpan_mcp::{LoginFile, ServerConfig, ServerName, ServerTransport};

/// The file of the login at a server, in the folder of logins. None for a program, which has no login.
pub fn login_file(name: &ServerName, config: &ServerConfig, logins: Option<&Path>) -> Option<LoginFile> {
    let ServerTransport::Http { url, .. } = &config.transport else { return None };
    Some(LoginFile::new(logins?, name, url))
}
