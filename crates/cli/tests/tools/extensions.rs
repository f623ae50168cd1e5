//! Extensions in the binary.

use super::test_cli::TestCli;

/// Adds two messages to every run; only one of them is for people.
const MESSAGES: &str = r#"
export default function (pi) {
  pi.on("before_agent_start", () => ({
    message: { customType: "note", content: "This is for everybody.", display: true },
  }));
  pi.on("before_agent_start", () => ({
    message: { customType: "note", content: "This is for the model.", display: false },
  }));
}
"#;

#[test]
fn the_model_reads_every_message_and_people_those_that_are_displayed() {
    let cli = TestCli::new("");
    let file = cli.sandbox.write("messages.ts", MESSAGES);
    let extension = file.to_str().expect("a path");
    let shown = |text: &str, face: &str| {
        assert!(text.contains("This is for everybody."), "{face}: {text}");
        assert!(!text.contains("This is for the model."), "{face}: {text}");
    };
    let printed = cli.print(&["-p", "Hello", "--extension", extension]);
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    shown(&printed.stderr, "-p");
    let session = format!("{:?}", cli.messages());
    assert!(session.contains("This is for everybody.") && session.contains("This is for the model."));
    let plain = cli.print_with(&["--plain", "--extension", extension], "Hello\n");
    shown(&(String::from_utf8_lossy(&plain.stdout).into_owned() + &plain.stderr), "--plain");
    let listed = cli.print(&["sessions", "--json"]);
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let id = listed[0]["id"].as_str().expect("an id");
    let export = cli.print(&["sessions", "export", id]);
    shown(&String::from_utf8_lossy(&export.stdout), "export");
    // Programs get all of them, with the mark.
    let events = cli.print(&["-p", "Hello", "--extension", extension, "--output", "json"]);
    let events = String::from_utf8_lossy(&events.stdout).into_owned();
    assert!(events.contains("This is for the model.") && events.contains("\"display\":false"), "{events}");
}
