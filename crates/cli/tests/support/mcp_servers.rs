//! MCP servers from npm and PyPI, for tests that need ones that nobody here wrote.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use hardpan_test_support::prerequisite;

/// The folder of the servers that `tests/mcp/install.sh` installs. None where they cannot be.
pub fn real_servers() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = Path::new(env!("CARGO_BIN_EXE_hardpan")).ancestors().nth(2)?.to_owned();
    let folder = target.join("mcp-servers");
    let installed =
        Command::new(root.join("tests/mcp/install.sh")).arg(&folder).stdout(Stdio::null()).status();
    let found = installed.ok().filter(ExitStatus::success).map(|_| folder);
    prerequisite("MCP servers from npm and PyPI", "install Node.js and Python with venv", found)
}
