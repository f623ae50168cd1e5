//! Programs that extensions start: asked about as the model's commands are, and in the same sandbox.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hardpan_agent::{ApprovalDecision, ApprovalRequest};
use hardpan_extensions::HostError;
use hardpan_sandbox::{FileHandle, OutputLimits, ProcessEnd, Program, ProgramOutput, run_program_until};
use hardpan_tools::{CallSubject, Confinement, ShellOptions};
use serde_json::{Value, json};

use super::files;
use super::host::ExtensionHost;

/// How much of a program's output is kept, in bytes.
const MAX_OUTPUT: usize = 4 << 20;

/// How long a program may run where the extension does not say.
const MAX_TIME: Duration = Duration::from_secs(600);

/// Runs a program: `{stdout, stderr, code, killed}`. One that cannot start, or may not, gives code 1.
pub async fn run(host: &Arc<ExtensionHost>, arguments: &Value) -> Result<Value, HostError> {
    let command =
        arguments["command"].as_str().ok_or_else(|| HostError("command must be a string".into()))?;
    let encode: fn(&[u8]) -> String = match arguments["bytes"].as_bool() {
        Some(true) => |bytes| STANDARD.encode(bytes),
        _ => |bytes| String::from_utf8_lossy(bytes).into_owned(),
    };
    let failed = |reason: &str| json!({ "stdout": "", "stderr": encode(reason.as_bytes()), "code": 1, "killed": false });
    if command.contains('=') {
        // A shell, and whoever is asked, would take it for a variable.
        return Err(HostError(format!("the name of a program has no `=`: {command}")));
    }
    let name = declared_name(host, command);
    if !host.permissions.may_ask_for_program(name) {
        return Ok(failed(&format!("the extension's package.json does not declare {name} in \"exec\"")));
    }
    let usual_folder = &host.setting.scope.folder;
    // With a path of its own, the program may be anywhere.
    if arguments["env"]["PATH"].is_null() && !is_there(host, command, arguments["cwd"].as_str()) {
        let reason = format!("{command}: there is no such program");
        let mut result = failed(&reason);
        result["missing"] = json!(true);
        return Ok(result);
    }
    let folder = match arguments["cwd"].as_str() {
        Some(cwd) => files::readable_folder(host, cwd)?,
        None => usual_folder.clone(),
    };
    let input = arguments["input"].as_str().map(|input| STANDARD.decode(input)).transpose();
    let input = input.map_err(|error| HostError(error.to_string()))?.unwrap_or_default();
    let start_of_program =
        ProgramStart { words: words(command, arguments)?, folder, input }.in_named_folder();
    let ProgramStart { words, folder, input } = match approve(host, start_of_program).await {
        Ok(approved) => approved,
        Err(reason) => return Ok(failed(&reason)),
    };
    let time = arguments["timeout"].as_u64().filter(|time| *time > 0);
    let time = time.map_or(MAX_TIME, Duration::from_millis).min(MAX_TIME);
    let (shell, root) = (host.setting.shell.clone(), host.setting.scope.root.clone());
    // When the extension no longer waits, this end is dropped, and the program ends.
    let (_owner, owned) = mpsc::channel();
    let running =
        tokio::task::spawn_blocking(move || start(&shell, &root, folder, &words, input, time, owned));
    Ok(match running.await.map_err(|error| HostError(error.to_string()))? {
        Ok(output) => result(&output, encode),
        Err(error) => failed(&error.to_string()),
    })
}

/// The folders of the path that programs get; none if the shell has one of its own.
fn path_folders(host: &ExtensionHost) -> Option<Vec<PathBuf>> {
    let variables = &host.setting.shell.environment;
    let path = variables.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone())?;
    Some(std::env::split_paths(&path).collect())
}

/// The name under which an extension declares a program: a file of any other folder than those of the path is not the
/// program of its name.
fn declared_name<'a>(host: &ExtensionHost, command: &'a str) -> &'a str {
    let place = Path::new(command);
    let is_in_path =
        |folder: &Path| path_folders(host).is_some_and(|path| path.iter().any(|known| known == folder));
    match (place.parent(), place.file_name().and_then(|name| name.to_str())) {
        (Some(folder), Some(name)) if is_in_path(folder) => name,
        _ => command,
    }
}

/// Whether there is a program of this name: in the path that programs get, or at the place that it names.
fn is_there(host: &ExtensionHost, command: &str, folder: Option<&str>) -> bool {
    if command.contains('/') {
        let folder = host.setting.scope.folder.join(folder.unwrap_or_default());
        return folder.join(command).exists();
    }
    path_folders(host).is_none_or(|path| path.iter().any(|folder| folder.join(command).is_file()))
}

/// The program and its arguments. Variables that differ from the usual ones are set by `env`, so that
/// whoever is asked sees them.
fn words(command: &str, arguments: &Value) -> Result<Vec<String>, HostError> {
    let variables = arguments["env"].as_object().into_iter().flatten();
    // `env` would take any other name for a flag, or for the program.
    let is_name = |name: &str| {
        !name.starts_with(|first: char| first.is_ascii_digit())
            && !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if let Some((name, _)) = variables.clone().find(|(name, value)| value.is_string() && !is_name(name)) {
        return Err(HostError(format!("{name:?} cannot be the name of a variable")));
    }
    let variables = variables.filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?)));
    let mut words: Vec<String> = variables.collect();
    if !words.is_empty() {
        words.insert(0, "env".into());
    }
    words.push(command.to_owned());
    let rest = arguments["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    words.extend(rest.map(str::to_owned));
    Ok(words)
}

/// What is started, and where.
struct ProgramStart {
    words: Vec<String>,
    folder: PathBuf,
    input: Vec<u8>,
}

impl ProgramStart {
    /// Git in a folder that it is told of is git in that folder: rules know the command without it.
    fn in_named_folder(mut self) -> Self {
        if let [program, flag, folder, _, ..] = &self.words[..]
            && program == "git"
            && flag == "-C"
            && let Ok(folder) = self.folder.join(folder).canonicalize()
            && folder == self.folder
        {
            self.words.drain(1..3);
        }
        self
    }

    /// The command that does the same in the folder of the conversation: whoever is asked sees all of it, and
    /// rules about a command do not cover it with another folder or with an input.
    fn line(&self, usual_folder: &Path) -> String {
        let mut words: Vec<String> = self.words.iter().map(|word| quoted(word)).collect();
        if self.folder != usual_folder {
            let folder = self.folder.strip_prefix(usual_folder).unwrap_or(&self.folder);
            let is_env = words.first().is_some_and(|word| word == "env");
            words.splice(
                0..usize::from(is_env),
                ["env".into(), "-C".into(), quoted(&folder.to_string_lossy())],
            );
        }
        let line = words.join(" ");
        if self.input.is_empty() {
            return line;
        }
        let input = String::from_utf8_lossy(&self.input);
        let mut mark = "INPUT".to_owned();
        while input.lines().any(|line| line == mark) {
            mark.push('_');
        }
        format!("{line} <<'{mark}'\n{}\n{mark}", input.strip_suffix('\n').unwrap_or(&input))
    }
}

/// Asks as for the same command of the model's. Returns what is to be started, which the person may have
/// changed; the error is why nothing may run.
async fn approve(host: &Arc<ExtensionHost>, start: ProgramStart) -> Result<ProgramStart, String> {
    let usual_folder = &host.setting.scope.folder;
    let is_usual = start.folder == *usual_folder && start.input.is_empty();
    if is_usual && host.use_allowed_command(&start.words) {
        return Ok(start);
    }
    let line = start.line(usual_folder);
    let request = ApprovalRequest {
        call_id: format!("extension:{}", host.name()).into(),
        tool_name: "bash".into(),
        args: json!({ "command": line }),
        subject: CallSubject::Command(line),
        claim: None,
        agent: Some(format!("extension {}", host.name()).into()),
        handler_reason: None,
    };
    let _pauses = host.pause_clocks();
    // Dialogs of extensions wait meanwhile: none of them stands between this question and its answer.
    let _alone = host.setting.dialog.lock().await;
    match host.setting.approvals.approve(&request).await {
        ApprovalDecision::Allow => Ok(start),
        ApprovalDecision::AllowChanged { args, .. } => match args["command"].as_str() {
            Some(line) => Ok(ProgramStart {
                words: ["sh", "-c", line].map(str::to_owned).into(),
                folder: usual_folder.clone(),
                input: Vec::new(),
            }),
            None => Err("the changed command is not a string".into()),
        },
        ApprovalDecision::Deny { reason, .. } => Err(reason),
    }
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn start(
    shell: &ShellOptions,
    root: &Path,
    folder: PathBuf,
    words: &[String],
    input: Vec<u8>,
    time: Duration,
    owned: mpsc::Receiver<Infallible>,
) -> io::Result<ProgramOutput> {
    // The shell finds the program in the path of its environment, and becomes it.
    let program = Program::new(&shell.program, folder)
        .arguments(["-c", "exec \"$0\" \"$@\""].into_iter().chain(words.iter().map(String::as_str)))
        .variables(shell.environment.clone())
        .input(input);
    let limits = OutputLimits { max_bytes: MAX_OUTPUT, time };
    match &shell.confinement {
        Confinement::None => run_program_until(None, &program, limits, owned),
        Confinement::Refused(reason) => Err(io::Error::other(reason.clone())),
        Confinement::Sandbox(sandbox) => {
            let policy = sandbox.policy.clone().with_writable([FileHandle::open(root)?]);
            run_program_until(Some((&sandbox.launcher, &policy)), &program, limits, owned)
        }
    }
}

fn result(output: &ProgramOutput, encode: fn(&[u8]) -> String) -> Value {
    let code = match output.end {
        ProcessEnd::Exit(code) => code,
        ProcessEnd::Signal(signal) => 128 + signal,
        ProcessEnd::Unknown => 1,
    };
    let signal = match output.end {
        ProcessEnd::Signal(signal) => signal_name(signal),
        _ => None,
    };
    let mut result = json!({
        "stdout": encode(&output.stdout),
        "stderr": encode(&output.stderr),
        "code": code,
        "killed": output.timed_out || output.truncated,
    });
    if let Some(signal) = signal {
        result["signal"] = json!(signal);
    }
    result
}

/// The name of a signal that ends programs.
fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{ProgramStart, quoted};

    #[test]
    fn the_line_that_is_asked_about_says_where_it_runs_and_what_it_reads() {
        let line = |words: &[&str], folder: &str, input: &str| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            ProgramStart { words, folder: folder.into(), input: input.into() }.line(Path::new("/work"))
        };
        assert_eq!(line(&["git", "status"], "/work", ""), "git status");
        assert_eq!(line(&["git", "status"], "/work/bare", ""), "env -C bare git status");
        assert_eq!(line(&["env", "A=1", "make"], "/data/x y", ""), "env -C '/data/x y' A=1 make");
        assert_eq!(line(&["sh"], "/work", "ls\n"), "sh <<'INPUT'\nls\nINPUT");
        assert_eq!(line(&["sh"], "/work", "INPUT\nls"), "sh <<'INPUT_'\nINPUT\nls\nINPUT_");
    }

    #[test]
    fn words_are_quoted_so_that_rules_see_them_whole() {
        assert_eq!(quoted("status"), "status");
        assert_eq!(quoted("a b; rm -rf x"), "'a b; rm -rf x'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
