//! A program that runs shell commands in the sandbox and is its own launcher: the smallest use of this
//! crate, and what its tests drive.
//!
//! `cargo run -p hardpan-sandbox --bin sandbox_commands -- '{"folder": "/tmp", "writable": ["/tmp"],
//! "commands": ["touch a && echo made", "touch /b"]}'` prints one JSON object per command.

use std::io::{Error, Write};
use std::path::PathBuf;
use std::time::Duration;

use hardpan_sandbox::{
    Enforcement, FileHandle, Namespaces, NetworkAccess, OutputLimits, Program, ResourceLimits,
    SandboxLauncher, SandboxPolicy, forbid_core_dumps, run_program,
};
use serde::Deserialize;
use serde_json::Value;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Request {
    folder: PathBuf,
    writable: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
    enforcement: Enforcement,
    namespaces: Namespaces,
    /// `true`, `false`, or a list of hosts.
    network: Value,
    limits: ResourceLimits,
    commands: Vec<String>,
}

fn main() -> std::io::Result<()> {
    SandboxLauncher::install("__sandbox");
    forbid_core_dumps();
    let request = std::env::args().nth(1).ok_or_else(|| Error::other("expected a request as JSON"))?;
    let Request { folder, writable, hidden, enforcement, namespaces, network, limits, commands } =
        serde_json::from_str(&request)?;
    let launcher = SandboxLauncher::installed().ok_or_else(|| Error::other("/proc is not mounted"))?;
    let network = match network {
        Value::Bool(true) => NetworkAccess::On,
        Value::Array(hosts) => {
            let hosts = hosts.iter().filter_map(Value::as_str).map(str::parse);
            NetworkAccess::Hosts(hosts.collect::<Result<_, _>>().map_err(Error::other)?)
        }
        _ => NetworkAccess::Off,
    };
    let writable = writable.iter().map(|path| FileHandle::open(path)).collect::<Result<_, _>>()?;
    let policy =
        SandboxPolicy { enforcement, namespaces, writable, hidden, network, limits, ..Default::default() };
    for command in commands {
        let program = Program::new("/bin/bash", &folder)
            .arguments(["-c", &command])
            .variable("PATH", std::env::var_os("PATH").unwrap_or_default());
        let limits = OutputLimits { max_bytes: 1 << 20, time: Duration::from_secs(60) };
        let output = run_program(Some((&launcher, &policy)), &program, limits)?;
        let line = serde_json::json!({
            "stdout": String::from_utf8_lossy(&output.stdout),
            "stderr": String::from_utf8_lossy(&output.stderr),
            "end": output.end,
        });
        writeln!(std::io::stdout(), "{line}")?;
    }
    Ok(())
}
