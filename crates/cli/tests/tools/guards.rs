//! Extensions and hooks that decide about tool calls, and are missing: no call runs without them.

use super::test_cli::TestCli;

/// Decides about tool calls, and cannot be loaded.
const BROKEN: &str = "export default function (pi) { pi.on('tool_call', () => {}); ";

/// Lets nothing run.
const GUARD: &str =
    "export default function (pi) { pi.on('tool_call', () => ({ block: true, reason: 'no runs today' })); }";

/// Runs the command of the script's prompt, and answers with what the model got.
fn call(cli: &TestCli, args: &[&str]) -> (String, String) {
    let ran = cli.print(&[&["-p", "Be quick", "--yes"], args].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    (cli.last_result(), ran.stderr)
}

/// A file below the folder of the user's extensions.
type ExtensionFile = (&'static str, &'static [u8]);

#[test]
fn a_guard_that_cannot_be_loaded_blocks_in_whatever_way_it_is_missing() {
    let late = "export default function (pi) { pi.on('tool_' + 'call', () => {}); throw new Error('late'); }";
    let manifest = r#"{"pi": {"extensions": ["./gone.ts"]}}"#;
    let cases: [(&str, &[ExtensionFile]); 8] = [
        ("it is broken", &[("guard.ts", BROKEN.as_bytes())]),
        (
            "what it imports is broken",
            &[
                ("index.ts", b"import g from './guard.ts'; export default g;"),
                ("guard.ts", BROKEN.as_bytes()),
            ],
        ),
        ("it is no text", &[("guard.ts", b"// tool_call \xff\xfe")]),
        ("it fails after it began", &[("guard.ts", late.as_bytes())]),
        ("its ending is another", &[("guard.mts", GUARD.as_bytes())]),
        ("its manifest is broken", &[("pack/package.json", b"{\"pi\": tool_call")]),
        ("its manifest names what is not there", &[("pack/package.json", manifest.as_bytes())]),
        ("it is a folder", &[("guard.ts/readme", b"tool_call")]),
    ];
    for (what, files) in cases {
        let cli = TestCli::new("");
        for (path, content) in files {
            cli.sandbox.write(&format!("config/extensions/{path}"), content);
        }
        let (result, told) = call(&cli, &[]);
        let is_told = told.contains("was not loaded");
        // A manifest that says nothing about calls is told of.
        match what {
            "its manifest names what is not there" => assert!(is_told, "{what}: {told}"),
            _ => assert!(is_told && result.contains("could not be loaded"), "{what}: {result}\n{told}"),
        }
    }
}

#[test]
fn the_end_of_a_script_takes_no_block_away() {
    let cli = TestCli::new("");
    cli.sandbox.write(
        "config/extensions/pack/package.json",
        r#"{"pi": {"extensions": ["./other.ts", "./guard.ts"]}}"#,
    );
    cli.sandbox.write("config/extensions/pack/guard.ts", BROKEN);
    let floods = "export default function (pi) {
        pi.on('turn_start', () => { const again = () => Promise.resolve().then(again); again(); again(); });
    }";
    cli.sandbox.write("config/extensions/pack/other.ts", floods);
    for _ in 0..2 {
        let (result, told) = call(&cli, &[]);
        assert!(result.contains("could not be loaded"), "{result}\n{told}");
    }
}

#[test]
fn what_a_trusted_project_forbids_stays_forbidden_when_its_files_change() {
    let deny = "deny = [\"bash(echo)\"]\n";
    let hook = "[[hooks.PreToolUse]]\ncommand = \"echo 'no runs today' >&2; exit 2\"\n";
    for (guard, content, change, told_reason) in [
        (".hardpan/extensions/guard.ts", GUARD, ".hardpan/extensions/guard.ts", "no runs today"),
        (".hardpan/extensions/guard.ts", GUARD, ".hardpan/skills/new/SKILL.md", "no runs today"),
        (".hardpan/config.toml", hook, ".hardpan/config.toml", "hardpan trust"),
        (".hardpan/config.toml", deny, ".hardpan/config.toml", "the settings deny it"),
    ] {
        let cli = TestCli::new("");
        cli.sandbox.write(&format!("work/{guard}"), content);
        let trusted = cli.print(&["trust"]);
        assert_eq!(trusted.code, Some(0), "{}", trusted.stderr);
        let (before, _) = call(&cli, &[]);
        assert!(before.contains("no runs today") || before.contains("the settings deny it"), "{before}");

        cli.sandbox.write(&format!("work/{change}"), "// nothing is forbidden any more\n");
        let (result, told) = call(&cli, &[]);
        assert!(result.contains(told_reason), "{guard}, {change}: {result}");
        assert!(told.contains("hardpan trust"), "{told}");
        let trusted = cli.print(&["trust"]);
        assert_eq!(trusted.code, Some(0), "{}", trusted.stderr);
    }
}
