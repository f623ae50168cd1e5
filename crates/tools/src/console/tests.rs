use super::*;
use crate::Confinement;

/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn shell(folder: &Path) -> (ConsoleShell, Scope) {
    let options = ShellOptions {
        program: "/bin/bash".into(),
        outputs: folder.join("outputs"),
        temp: folder.join("temp"),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        confinement: Confinement::None,
    };
    (ConsoleShell::new(options), Scope::new(folder, folder))
}

#[tokio::test]
async fn keys_reach_the_program_and_its_answers_are_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let (shell, scope) = shell(folder.path());
    let console = shell.start("read -p 'name? ' name; echo \"hello $name\"; exit 3", &scope).unwrap();
    assert_eq!(console.wait(Some("name?"), PATIENCE).await, WaitOutcome::Matched);
    console.send(&parse_keys("world<Enter>")).unwrap();
    assert_eq!(console.wait(Some("hello world"), PATIENCE).await, WaitOutcome::Matched);
    assert_eq!(console.wait(None, PATIENCE).await, WaitOutcome::Ended);
    let view = console.view(10);
    assert_eq!(view.lines, ["name? world", "hello world"]);
    assert_eq!(view.end, Some(ConsoleEnd::Process(ProcessEnd::Exit(3))));
    assert!(matches!(console.send(b"x"), Err(ConsoleError::Ended)));
}

#[tokio::test]
async fn a_flood_of_output_stays_small_and_a_stop_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let (shell, scope) = shell(folder.path());
    let console = shell.start("yes 0123456789 & yes abc; echo never", &scope).unwrap();
    assert_eq!(console.wait(Some("0123456789"), PATIENCE).await, WaitOutcome::Matched);
    let before = console.revision();
    console.stop();
    assert_eq!(console.wait(None, PATIENCE).await, WaitOutcome::Ended);
    let view = console.view(usize::MAX);
    assert!(view.lines.len() <= 2001 && console.revision() > before);
    assert_eq!(view.end, Some(ConsoleEnd::Stopped));
    assert!(!view.lines.iter().any(|line| line == "never"));
}

#[tokio::test]
async fn typing_into_a_program_that_does_not_read_does_not_wait() {
    let folder = tempfile::tempdir().unwrap();
    let (shell, scope) = shell(folder.path());
    // Raw, so that the terminal does not throw away what is too much for a line.
    let console = shell.start("stty raw -echo; echo ready; exec sleep 1000", &scope).unwrap();
    assert_eq!(console.wait(Some("ready"), PATIENCE).await, WaitOutcome::Matched);
    let typed = (0..1000).find_map(|_| console.send(&[b'x'; 4096]).err());
    assert!(matches!(typed, Some(ConsoleError::InputFull)), "{typed:?}");
    assert_eq!(console.wait(Some("never"), Duration::from_millis(10)).await, WaitOutcome::TimedOut);
}

/// Prints so many lines of 64 bytes, then a word, and returns the seconds that took.
#[allow(clippy::disallowed_methods, reason = "a measurement looks at the clock")]
async fn print_lines(lines: u64) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let (shell, scope) = shell(folder.path());
    let line = "x".repeat(62);
    let command = format!("yes {line} | head -n {lines}; echo the needle; yes {line} | head -n 10000");
    let begun = std::time::Instant::now();
    let console = shell.start(&command, &scope).unwrap();
    assert_eq!(console.wait(Some("the needle"), PATIENCE * 10).await, WaitOutcome::Matched);
    assert_eq!(console.wait(None, PATIENCE * 10).await, WaitOutcome::Ended);
    let view = console.view(usize::MAX);
    assert!(view.lines.iter().map(String::len).sum::<usize>() <= 512 * 1024);
    assert_eq!(view.earlier_lines + view.lines.len() as u64, lines + 10_001);
    begun.elapsed().as_secs_f64()
}

#[tokio::test]
async fn of_much_output_little_is_kept_and_a_text_in_it_is_found() {
    print_lines(100_000).await;
}

/// `cargo test --release -p hardpan-tools --lib console -- --ignored --nocapture`
#[tokio::test]
#[ignore = "a measurement"]
#[allow(clippy::print_stdout, reason = "a measurement")]
async fn a_gigabyte_measured() {
    let seconds = print_lines(16_000_000).await;
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    println!("1 GB in {seconds:.1} s; {peak}");
}
