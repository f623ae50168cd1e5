//! The binary in a real terminal that rewraps, tmux: whatever is opened, closed and resized while an
//! answer streams, no line of the shell and of the answer is lost.

use std::fs;
use std::path::Path;
use std::time::Duration;

use hardpan_test_support::{Random, Tmux};

use super::test_cli::TestCli;

const COLUMNS: u16 = 160;
const SHELL_LINES: usize = 40;
const ANSWER_LINES: usize = 240;
/// Keys and resizes while it streams.
const STEPS: usize = 40;

/// The line that runs the binary in the test's surroundings, after lines of the shell.
pub fn shell_line(cli: &TestCli, args: &[&str]) -> String {
    let command = cli.command(args);
    let quoted = |text: &std::ffi::OsStr| format!("'{}'", text.to_string_lossy());
    let mut words = vec!["env -i TERM=xterm-256color LC_ALL=C.UTF-8".to_owned()];
    for (name, value) in command.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        words.push(format!("{}={}", name.to_string_lossy(), quoted(value)));
    }
    words.extend([command.get_program()].into_iter().chain(command.get_args()).map(quoted));
    let folder: &Path = &cli.sandbox.work();
    format!(
        "cd '{}'; i=0; while [ $i -lt {SHELL_LINES} ]; do printf 'shell%04d\\n' $i; i=$((i+1)); done; {}; \
         echo over; exec sleep 1000",
        folder.display(),
        words.join(" ")
    )
}

/// Markdown of every kind, with a mark in each line.
fn answer() -> String {
    (0..ANSWER_LINES)
        .map(|number| match number % 12 {
            0 => format!("\n## mark{number:04}\n"),
            1 => format!("\n- mark{number:04} **bold** `code`\n"),
            2 => format!("  - nested mark{number:04}\n"),
            3 => format!("\n```rust\nfn mark{number:04}() {{}} // {}\n", "long ".repeat(30)),
            4 => format!("\tlet mark{number:04} = 1;\r\n```\n"),
            5 => format!("\n| a | b |\n|---|---|\n| mark{number:04} | {} |\n", "wide ".repeat(20)),
            6 => format!("\n> mark{number:04} שלום עולם\n"),
            7 => format!("\nmark{number:04} 👩\u{200d}💻 🇩🇪 ❤\u{fe0f} 世界 {}\n", "word ".repeat(25)),
            8 => format!("\nmark{number:04} \u{1b}[2J\u{1b}]0;title\u{7}\u{202e}\n"),
            _ => format!("mark{number:04} and some more words of a paragraph\n"),
        })
        .collect()
}

#[test]
fn no_line_is_lost_whatever_is_opened_and_resized_while_it_streams() {
    let text = serde_json::to_string(&answer()).expect("a string");
    let script = format!(
        "turns:\n  - {{when: {{contains: Tell}}, repeat: always, pace: 8ms, text: {text}}}\ndefault: {{text: Nothing.}}\n"
    );
    let cli = TestCli::with_script("", &script);
    let Some(tmux) = Tmux::start((COLUMNS, 24), |_| shell_line(&cli, &[])) else { return };
    let recording = tmux.path("bytes");
    tmux.expect("help");
    tmux.run(&["pipe-pane", "-o", &format!("cat > '{}'", recording.display())]);
    tmux.press(&["Tell me", "Enter"]);
    tmux.expect("mark0001");
    let mut random = Random::new(18);
    let (mut is_full, mut columns, mut rows) = (false, COLUMNS, 24);
    let number = |random: &mut Random, range| u16::try_from(random.within(range)).expect("a small number");
    for _ in 0..STEPS {
        match random.within(0..=3) {
            0 => {
                tmux.press(&["C-t"]);
                is_full = !is_full;
            }
            1 => tmux.press(&["PPage"]),
            2 => {
                rows = number(&mut random, 12..=52);
                tmux.resize(columns, rows);
            }
            _ => {
                columns = number(&mut random, 40..=160);
                tmux.resize(columns, rows);
            }
        }
        // Not a wait for something: moments to come between.
        std::thread::sleep(Duration::from_millis(random.within(20..=220) as u64));
    }
    if is_full {
        // From the conversation to the line, if keys go there; then back to the page.
        tmux.press(&["C-t"]);
    }
    tmux.expect("done ");
    tmux.run(&["resize-window", "-x", "100", "-y", "30"]);
    tmux.press(&["C-d"]);
    tmux.expect("over");
    let history = tmux.history();
    let count = |wanted: &str| history.matches(wanted).count();
    for number in 0..SHELL_LINES {
        assert_eq!(count(&format!("shell{number:04}")), 1, "shell line {number}:\n{history}");
    }
    // A row of the live area that tmux has wrapped may stay behind, and repeat a line that was unfinished.
    let mut left_behind = 0;
    for number in 0..ANSWER_LINES {
        let times = count(&format!("mark{number:04}"));
        assert!(times > 0, "line {number} of the answer is lost:\n{history}");
        left_behind += times - 1;
    }
    assert!(left_behind <= STEPS, "{left_behind} lines twice:\n{history}");
    let bytes = fs::read(&recording).expect("a recording");
    let bytes = String::from_utf8_lossy(&bytes);
    for forbidden in ["\u{1b}[2J", "\u{1b}[3J", "\u{1b}[6n", "\u{1b}[?1000h", "\u{1b}]0;title", "\u{202e}"] {
        assert!(!bytes.contains(forbidden), "{forbidden:?}");
    }
}
