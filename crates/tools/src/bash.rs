//! `bash`: a command, its output as it comes, and its end.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rustix::process::Signal;
use serde::Deserialize;
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::sandbox::{Policy, Sandbox, denied};
use crate::texts::declare;
use crate::tool::{Call, Effect, Outcome, Tool, arguments};
use crate::{Scope, limits};

pub(crate) mod clean; // output without what a terminal would obey
mod environment; // variables without keys
mod group; // a group of processes that ends with its owner
mod output; // the end of an output, and the whole of it on disk

pub use environment::scrubbed;
use group::{Ended, Group};
use output::Output;

/// How long a command may take where the call does not say, and at most. Seconds.
const DEFAULT_TIMEOUT: u64 = 120;
const LONGEST_TIMEOUT: u64 = 600;

/// How long a group has to end by itself after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// How long output is still taken after the command has ended: a process in the background may hold the pipe.
const DRAIN: Duration = Duration::from_secs(1);

/// How often the output so far is shown.
const PROGRESS: Duration = Duration::from_millis(100);

/// How commands are run.
#[derive(Clone, Debug)]
pub struct Shell {
    /// Where outputs that are too long for an answer are kept whole.
    pub outputs: PathBuf,
    /// The commands' own folder for temporary files (`TMPDIR`), made when it is needed.
    pub temp: PathBuf,
    /// The variables that commands see; see [`scrubbed`].
    pub environment: Vec<(OsString, OsString)>,
    /// What commands are kept from; none runs them with all that the person may do.
    pub sandbox: Option<Sandbox>,
}

/// The tool `bash`.
pub(crate) struct Bash(pub Shell);

static DECLARATION: LazyLock<hardpan_prompt::Tool> =
    LazyLock::new(|| declare("bash", include_str!("../texts/bash.toml")));

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
    timeout: Option<u64>,
}

impl Tool for Bash {
    fn declaration(&self) -> &hardpan_prompt::Tool {
        &DECLARATION
    }

    fn effect(&self) -> Effect {
        Effect::Changes
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move { self.call(&call).await.unwrap_or_else(|failed| failed) })
    }
}

/// How a command ended, and what it left.
struct Finish {
    ended: Ended,
    timed_out: bool,
    /// A process in the background still held the output.
    held: bool,
}

impl Bash {
    async fn call(&self, call: &Call<'_>) -> Result<Outcome, Outcome> {
        let Arguments { command, timeout } = arguments(call)?;
        let seconds = timeout.unwrap_or(DEFAULT_TIMEOUT).clamp(1, LONGEST_TIMEOUT);
        if command.contains('\0') {
            return Err(Outcome::failed(
                "The command holds a NUL character, which no command can: leave it out.",
            ));
        }
        // What cannot be made is missed, and told, by the command that needs it.
        let _ = std::fs::create_dir_all(&self.0.temp);
        let policy = self.0.sandbox.as_ref().map(|sandbox| sandbox.policy(&call.scope.root, &self.0.temp));
        let (group, pipe) = self.start(&command, call.scope, policy.as_ref()).map_err(|error| {
            let folder = call.scope.shown(&call.scope.folder);
            Outcome::failed(format!("The command could not be started in {folder}: {error}."))
        })?;
        let mut output = Output::new(&self.0.outputs);
        let finish = follow(group, pipe, &mut output, Duration::from_secs(seconds), call.progress).await;
        let denied =
            policy.map(|policy| denied(&policy, &call.scope.folder, output.tail())).unwrap_or_default();
        Ok(answer(&finish, &output, &denied, seconds))
    }

    fn start(
        &self,
        line: &str,
        scope: &Scope,
        policy: Option<&Policy>,
    ) -> std::io::Result<(Group, Receiver)> {
        let shell = shell(&self.0.environment);
        let mut command = match (&self.0.sandbox, policy) {
            (Some(sandbox), Some(policy)) => sandbox.launcher.command(policy, &shell)?,
            _ => {
                let mut command = Command::new(&shell);
                command.process_group(0);
                command
            }
        };
        let (reader, writer) = std::io::pipe()?;
        command
            .args(["-c", line])
            .current_dir(&scope.folder)
            .env_clear()
            .envs(self.0.environment.iter().map(|(name, value)| (name, value)))
            .env("TMPDIR", &self.0.temp)
            // Nobody is there to press a key, or to look at colours.
            .envs([("TERM", "dumb"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")])
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer);
        let group = Group::start(command)?;
        Ok((group, Receiver::from_owned_fd(reader.into())?))
    }
}

/// The first bash of the path; sh where there is none.
fn shell(environment: &[(OsString, OsString)]) -> PathBuf {
    let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value);
    let folders = path.map(std::env::split_paths).into_iter().flatten();
    let is_there = |path: &PathBuf| path.is_absolute() && path.is_file();
    let in_path = folders.map(|folder| folder.join("bash")).find(is_there);
    let known = || ["/bin/bash", "/usr/bin/bash"].map(PathBuf::from).into_iter().find(is_there);
    in_path.or_else(known).unwrap_or_else(|| Path::new("/bin/sh").to_owned())
}

/// Takes the output until the command has ended. Dropping this ends the whole group.
async fn follow(
    mut group: Group,
    mut pipe: Receiver,
    output: &mut Output,
    timeout: Duration,
    progress: &(dyn Fn(&str) + Send + Sync),
) -> Finish {
    let mut buffer = vec![0; 64 * 1024];
    let mut ticks = interval(PROGRESS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut deadline = std::pin::pin!(sleep(timeout));
    let (mut open, mut news, mut timed_out) = (true, false, false);
    let mut ended = None;
    while ended.is_none() || open {
        tokio::select! {
            read = pipe.read(&mut buffer), if open => match read {
                Ok(0) | Err(_) => open = false,
                Ok(length) => {
                    output.push(&buffer[..length]);
                    news = true;
                }
            },
            how = group.ended(), if ended.is_none() => {
                ended = Some(how);
                deadline.set(sleep(DRAIN));
            }
            () = &mut deadline => {
                if ended.is_some() {
                    break;
                }
                // First a request, then no longer.
                group.signal(if timed_out { Signal::KILL } else { Signal::TERM });
                timed_out = true;
                deadline.set(sleep(GRACE));
            }
            _ = ticks.tick(), if news => {
                news = false;
                progress(&output.shown());
            }
        }
    }
    output.end();
    Finish { ended: ended.unwrap_or(Ended::Unknown), timed_out, held: open }
}

fn answer(finish: &Finish, output: &Output, denied: &[String], seconds: u64) -> Outcome {
    let mut notices = Vec::new();
    notices.extend(output.notice());
    if finish.held {
        notices.push(
            "a process in the background still held the output; it was ended with the command".to_owned(),
        );
    }
    if finish.timed_out {
        notices.push(format!("stopped after {seconds} seconds: give a longer timeout, or do less at once"));
    }
    match finish.ended {
        Ended::Exit(0) => {}
        Ended::Exit(code) => notices.push(format!("exit code {code}")),
        Ended::Signal(signal) => notices.push(format!("ended by signal {signal}")),
        Ended::Unknown => notices.push("how it ended is not known".to_owned()),
    }
    let mut text = output.shown();
    if text.trim().is_empty() && notices.is_empty() {
        text = "(no output)".to_owned();
    }
    let mut text = limits::with_notices(text, &notices);
    for sentence in denied {
        text = text + "\n" + sentence;
    }
    let (code, signal) = match finish.ended {
        Ended::Exit(code) => (Some(code), None),
        Ended::Signal(signal) => (None, Some(signal)),
        Ended::Unknown => (None, None),
    };
    let details = json!({
        "exit_code": code,
        "signal": signal,
        "timed_out": finish.timed_out,
        "lines": output.lines(),
        "bytes": output.bytes(),
        "full_output": output.file(),
        "denied": denied,
    });
    Outcome { is_error: finish.timed_out || code != Some(0), ..Outcome::text(text).with_details(details) }
}

#[cfg(test)]
mod tests;
