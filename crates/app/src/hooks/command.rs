//! Runs the command of a hook: in the sandbox of the model's commands, unless the user's own settings
//! say otherwise.

use std::io;
use std::sync::mpsc;

use hardpan_sandbox::{FileHandle, OutputLimits, Program, ProgramOutput, run_program_until};
use hardpan_tools::Confinement;
use serde_json::Value;

use super::HookPlace;
use super::output::{HookError, HookOutput};
use crate::settings::HookConfig;

/// The most bytes that a hook may print.
const MAX_OUTPUT: usize = 1 << 20;

/// Runs a hook to its end. It is stopped when the future is dropped.
pub async fn run(hook: &HookConfig, place: &HookPlace, payload: &Value) -> Result<HookOutput, HookError> {
    let program = Program::new(&place.shell.program, place.root.clone())
        .arguments(["-c", hook.command.as_str()])
        .variables(place.shell.environment.clone())
        .variable("HARDPAN_PROJECT_DIR", place.root.as_os_str())
        .variable("CLAUDE_PROJECT_DIR", place.root.as_os_str())
        .input(payload.to_string());
    let limits = OutputLimits { max_bytes: MAX_OUTPUT, time: hook.timeout };
    let confinement = match hook.sandbox {
        true => place.shell.confinement.clone(),
        false => place.unconfined.clone(),
    };
    let root = place.root.clone();
    let (_keep_running, stop) = mpsc::channel();
    let running = tokio::task::spawn_blocking(move || start(&confinement, &root, &program, limits, stop));
    let output = running.await.map_err(io::Error::other)??;
    if output.timed_out {
        return Err(HookError::Timeout(hook.timeout.as_secs()));
    }
    if output.truncated {
        return Err(HookError::TooMuch(MAX_OUTPUT));
    }
    HookOutput::read(&output)
}

fn start(
    confinement: &Confinement,
    root: &std::path::Path,
    program: &Program,
    limits: OutputLimits,
    stop: mpsc::Receiver<std::convert::Infallible>,
) -> io::Result<ProgramOutput> {
    match confinement {
        Confinement::None => run_program_until(None, program, limits, stop),
        Confinement::Refused(reason) => Err(io::Error::other(reason.clone())),
        Confinement::Sandbox(sandbox) => {
            let policy = sandbox.policy.clone().with_writable([FileHandle::open(root)?]);
            run_program_until(Some((&sandbox.launcher, &policy)), program, limits, stop)
        }
    }
}
