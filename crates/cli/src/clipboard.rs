//! [`copy`]: puts a text where a person can paste it from: the clipboard program, the buffer of tmux,
//! the terminal (OSC 52), and always a file. It says which of them it used: a terminal gives no answer,
//! so what only went there may not have arrived.

use std::fs::OpenOptions;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use base64::Engine;

use crate::output::{safe, thousands};

/// How long a program may take the text for.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest text that goes to the terminal: many cut longer ones.
const MAX_TERMINAL_BYTES: usize = 74_994;

/// The ways to copy that this environment offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyTargets {
    /// Clipboard programs with their arguments; the first that works is used.
    programs: Vec<Vec<&'static str>>,
    /// Whether tmux has a buffer.
    tmux: bool,
    /// Whether there is a terminal to send it to.
    terminal: bool,
}

impl CopyTargets {
    /// What the variables of this process tell.
    pub fn from_environment() -> Self {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        CopyTargets::new(&is_set, std::io::stdout().is_terminal())
    }

    fn new(is_set: &dyn Fn(&str) -> bool, terminal: bool) -> Self {
        let mut programs = Vec::new();
        if cfg!(target_os = "macos") {
            programs.push(vec!["pbcopy"]);
        }
        if is_set("WAYLAND_DISPLAY") {
            programs.push(vec!["wl-copy"]);
        }
        if is_set("DISPLAY") {
            programs.push(vec!["xclip", "-selection", "clipboard"]);
            programs.push(vec!["xsel", "--clipboard", "--input"]);
        }
        if is_set("WSL_DISTRO_NAME") {
            programs.push(vec!["clip.exe"]);
        }
        CopyTargets { programs, tmux: is_set("TMUX"), terminal }
    }
}

/// Copies a text, and says how, and in which file it is too.
pub fn copy(text: &str, targets: &CopyTargets, state_folder: Option<&Path>) -> String {
    let program = targets.programs.iter().find(|program| give(program, text));
    let tmux = targets.tmux && give(&["tmux", "load-buffer", "-"], text);
    // Where a program has it, the terminal is not needed.
    let terminal = program.is_none() && targets.terminal && send_to_terminal(text);
    let file = state_folder.and_then(|folder| write_file(folder, text).ok());
    report(text, program.map(|program| program[0]), tmux, terminal, file.as_deref())
}

fn report(text: &str, program: Option<&str>, tmux: bool, terminal: bool, file: Option<&Path>) -> String {
    let size = format!("{} characters", thousands(text.chars().count()));
    let mut ways = Vec::new();
    ways.extend(program.map(|program| format!("copied {size} with {program}")));
    if tmux {
        ways.push(format!("put {size} into the buffer of tmux (prefix ] pastes it)"));
    }
    if terminal {
        ways.push("sent it to the terminal (OSC 52), which may ignore it".to_owned());
    }
    if ways.is_empty() {
        ways.push("found no clipboard program here".to_owned());
    }
    let file = match file {
        Some(file) => format!("; it is in {}", safe(&file.display().to_string())),
        None => String::new(),
    };
    format!("{}{file}", ways.join(", and "))
}

/// Gives the text to a program; whether it took it.
fn give(command: &[&str], text: &str) -> bool {
    let child = Command::new(command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return false };
    let Some(mut input) = child.stdin.take() else { return false };
    // On a thread of its own: a program that does not read must not hold this one.
    let text = text.to_owned();
    std::thread::spawn(move || input.write_all(text.as_bytes()));
    let step = Duration::from_millis(10);
    for _ in 0..PATIENCE.as_millis() / step.as_millis() {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => std::thread::sleep(step),
            Err(_) => return false,
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    false
}

/// Sends the text as one write, so that it does not mix with what the face draws.
fn send_to_terminal(text: &str) -> bool {
    if text.len() > MAX_TERMINAL_BYTES {
        return false;
    }
    let sequence = format!("\u{1b}]52;c;{}\u{7}", base64::engine::general_purpose::STANDARD.encode(text));
    let written = OpenOptions::new()
        .write(true)
        .open("/dev/tty")
        .and_then(|mut tty| tty.write_all(sequence.as_bytes()));
    written.is_ok()
}

fn write_file(folder: &Path, text: &str) -> std::io::Result<PathBuf> {
    hardpan_files::create_private_folder(folder)?;
    let path = folder.join("copied.md");
    let mut options = OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true).create(true).truncate(true).open(&path)?.write_all(text.as_bytes())?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_which_programs_there_are() {
        let targets = |names: &'static [&str]| CopyTargets::new(&|name| names.contains(&name), false);
        assert_eq!(targets(&["WAYLAND_DISPLAY", "TMUX"]).programs.last(), Some(&vec!["wl-copy"]));
        assert!(targets(&["WAYLAND_DISPLAY", "TMUX"]).tmux);
        assert_eq!(targets(&["DISPLAY"]).programs.last(), Some(&vec!["xsel", "--clipboard", "--input"]));
    }

    #[test]
    fn the_report_never_claims_more_than_it_knows() {
        let file = Path::new("/s/copied.md");
        assert_eq!(
            report("abc", Some("wl-copy"), true, false, Some(file)),
            "copied 3 characters with wl-copy, and put 3 characters into the buffer of tmux (prefix ] pastes it); it is in /s/copied.md"
        );
        let only_terminal = report("abc", None, false, true, Some(file));
        assert!(!only_terminal.contains("copied 3") && only_terminal.contains("may ignore it"));
        assert_eq!(report("abc", None, false, false, None), "found no clipboard program here");
    }

    #[test]
    fn a_program_takes_the_text_or_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let taken = give(&["sh", "-c", &format!("cat > {}", path.display())], "text\n");
        assert!(taken && std::fs::read_to_string(path).unwrap() == "text\n");
        assert!(!give(&["no-such-program-here"], "text") && !give(&["false"], "text"));
        let kept = write_file(folder.path(), "kept").unwrap();
        assert_eq!(std::fs::read_to_string(kept).unwrap(), "kept");
    }
}
