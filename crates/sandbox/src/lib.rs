//! Starts programs that can do only what a policy says, and ends them with all their descendants.
//!
//! The principal type is [`SandboxPolicy`]: what a program may write, what is hidden from it, whether
//! it has a network. The kernel enforces it for everything that the program starts, too. A process
//! can only restrict itself, so a [`SandboxLauncher`] comes in between: a program, usually the calling
//! one, that restricts itself and starts the program to run.
//!
//! - [`run_program`] runs a [`Program`] to its end, within limits of time and output.
//! - [`RunningProgram`] is a program that runs, for callers who read its output themselves.
//! - [`explain_denials`] tells from a program's output what the sandbox denied it.
//!
//! ```
//! use std::time::Duration;
//! use hardpan_sandbox::{OutputLimits, ProcessEnd, Program, run_program};
//!
//! let program = Program::new("/bin/sh", "/").arguments(["-c", "cat; echo $A"]).variable("A", "1");
//! let limits = OutputLimits { max_bytes: 1000, time: Duration::from_secs(10) };
//! // Without a sandbox here: a documentation test is no program that could enter one.
//! let output = run_program(None, &program.input("in "), limits)?;
//! assert_eq!((output.stdout, output.end), (b"in 1\n".to_vec(), ProcessEnd::Exit(0)));
//! # Ok::<(), std::io::Error>(())
//! ```

#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only the sandbox of Linux uses it"))]

mod denials; // what the sandbox denied, told from the output
mod launcher; // SandboxLauncher: the program that enters the sandbox
#[cfg(target_os = "linux")]
mod linux; // Landlock, seccomp, namespaces, and the processes of the launcher
mod policy; // Sandbox and SandboxPolicy: what a program can do
mod process_group; // ProcessGroup: a program without a launcher
mod program; // Program, run_program
mod programs; // Programs: what Hardpan itself runs, found once
mod proxy; // HostPattern, and the proxy that reaches what patterns name
mod public_address; // is_public_address
mod running; // RunningProgram: a program and its descendants
#[cfg(target_os = "linux")]
mod supervised; // SupervisedProgram: a program with a launcher

pub use denials::explain_denials;
pub use launcher::{SandboxLauncher, forbid_core_dumps};
pub use policy::{
    Enforcement, FileHandle, Namespaces, NetworkAccess, ResourceLimits, Sandbox, SandboxPolicy,
    SandboxSupport, sandbox_support,
};
pub use process_group::ProcessEnd;
pub use program::{OutputLimits, Program, ProgramOutput, run_program, run_program_until};
pub use programs::Programs;
pub use proxy::{HostPattern, InvalidHostPattern};
pub use public_address::is_public_address;
pub use running::{ProgramEvent, ProgramStreams, RunningProgram};

#[cfg(test)]
mod tests;
