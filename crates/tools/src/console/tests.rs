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
