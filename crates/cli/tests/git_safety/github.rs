//! Panels of `gh`, with a stand-in for it: a script that takes its token, asks git for the commit and
//! prints as gh prints into a pipe.

use std::process::Command;

use serde_json::{Value, json};

use super::provider::Provider;
use super::{CommandOutput, Repository, output_of};

const TOKEN: &str = "gho_aTokenOfTheTestThatNobodyShouldSee00";

/// What real gh does with the subcommands of the tests: the token comes from its settings, everything
/// else needs it in the environment.
const STAND_IN: &str = r#"
case "$1 $2" in
  "auth token")
    [ "$3 $4" = "--hostname github.com" ] || exit 1
    cat "${GH_CONFIG_DIR:-$HOME/.config/gh}/token" 2>/dev/null || { echo "no oauth token found for github.com" >&2; exit 1; }
    ;;
  "pr list") printf '12\tFix the ring\tfix-ring\tOPEN\t2026-01-02T03:04:05Z\n' ;;
  "pr view") printf 'title:\tFix the ring\ncommit:\t%s\n' "$(git rev-parse HEAD)" ;;
  "pr create") printf 'https://github.com/o/n/pull/13\n%s\n' "$(cat)" ;;
  "run list") echo "the token is $GH_TOKEN in $GH_HOST, settings in $GH_CONFIG_DIR"; env | grep -c '^\(HOME\|GH_PROMPT_DISABLED\)=' ;;
  "repo view") echo x > "$PWD/escaped" || echo "not written" ; cat "$HOME/secret" 2>/dev/null || echo "not read" ;;
  "issue list") echo "HTTP 502: Bad Gateway" >&2; exit 1 ;;
  *) echo "unknown command \"$1\" for \"gh\"" >&2; exit 1 ;;
esac
"#;

fn script(calls: &[Value]) -> String {
    let calls: Vec<String> = calls.iter().map(|call| format!("{{name: gh, arguments: {call}}}")).collect();
    format!("turns:\n  - {{text: I look., tool_calls: [{}]}}\ndefault: {{text: Done.}}\n", calls.join(", "))
}

/// A repository, and a gh beside the usual programs unless there is to be none.
fn repository(gh: Option<&str>) -> Option<Repository> {
    let repository = Repository::new()?;
    if let Some(gh) = gh {
        repository.program("opt/gh/bin/gh", gh);
    }
    repository.write("home/secret", "a secret of the user");
    Some(repository)
}

fn command(repository: &Repository, args: &[&str]) -> Command {
    let mut command = repository.command(args);
    let root = repository.sandbox.work().with_file_name("opt/gh/bin");
    let usual = std::env::var("PATH").expect("a PATH");
    command.env("PATH", format!("{}:{usual}", root.display())).env("HARDPAN_DATA_DIR", data(repository));
    command
}

fn data(repository: &Repository) -> std::path::PathBuf {
    repository.sandbox.work().with_file_name("data")
}

/// The results of the calls of a run.
fn results(ran: &CommandOutput) -> Vec<String> {
    let stdout = String::from_utf8(ran.stdout.clone()).expect("JSON is UTF-8");
    let events = stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    let results = events.filter(|event| event["type"] == "tool_execution_end");
    results.map(|event| event["content"][0]["text"].as_str().unwrap_or_default().to_owned()).collect()
}

fn run(repository: &Repository, more: &[&str]) -> Vec<String> {
    let ran = output_of(command(repository, &[&["-p", "Go", "--output", "json"], more].concat()));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    results(&ran)
}

#[test]
fn what_gh_reads_is_a_panel_that_follows_the_repository_and_gh_can_do_nothing_else() {
    let Some(repository) = repository(Some(STAND_IN)) else { return };
    repository.write("home/.config/gh/token", TOKEN);
    let calls = ["pr list", "gh pr view", "run list", "repo view", "issue list"]
        .map(|command| json!({ "command": command }));
    let _provider = Provider::start(&repository.sandbox, &script(&calls), "panels = [\"gh\"]");
    let results = run(&repository, &[]);
    let opened = |line: &str, id: usize| format!("Opened '{line}' as P{id}");
    assert_eq!(
        results[..4],
        [
            opened("gh pr list", 10),
            opened("gh pr view", 11),
            opened("gh run list", 12),
            opened("gh repo view", 13),
        ]
    );
    assert_eq!(results[4], "gh issue list failed: HTTP 502: Bad Gateway.");
    assert!(!repository.sandbox.work().join("escaped").exists());
    let shown = || {
        let ran = output_of(command(&repository, &["request", "Hi", "--continue", "--json"]));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        String::from_utf8(ran.stdout).expect("JSON is UTF-8")
    };
    let before = shown();
    let head = || {
        let mut command = Command::new("git");
        command.arg("-C").arg(repository.sandbox.work()).args(["rev-parse", "HEAD"]);
        String::from_utf8_lossy(&command.output().expect("git can be run").stdout).trim().to_owned()
    };
    for text in ["12\\tFix the ring", &format!("commit:\\t{}", head()), "not written", "not read"] {
        assert!(before.contains(text), "{text}: {before}");
    }
    assert!(before.contains("the token is [token] in github.com, settings in /nonexistent"), "{before}");
    assert!(!before.contains(TOKEN));
    let first = head();
    repository.git(&["commit", "--quiet", "--allow-empty", "-m", "more"]);
    let after = shown();
    assert!(first != head() && after.contains(&format!("commit:\\t{}", head())), "{after}");
}

#[test]
fn what_changes_something_is_asked_about_and_what_concerns_gh_itself_never_runs() {
    let Some(repository) = repository(Some(STAND_IN)) else { return };
    let create = json!({"command": "pr create --title x --body-file -", "input": "Two\nlines"});
    let calls = [create, json!({"command": "auth token"}), json!({"command": "pr list | sh"})];
    let run = |more: &[&str]| {
        let _provider = Provider::start(&repository.sandbox, &script(&calls), "panels = [\"gh\"]");
        run(&repository, more)
    };
    let denied = run(&[]);
    assert!(denied.iter().all(|result| result.contains("nobody is there to ask")), "{denied:?}");
    // Without an account, what is missing is said.
    let unknown = run(&["--yes"]);
    assert!(unknown[0].contains("run `gh auth login --hostname github.com`"), "{unknown:?}");
    repository.write("home/.config/gh/token", TOKEN);
    let allowed = run(&["--yes"]);
    assert_eq!(allowed[0], "https://github.com/o/n/pull/13\nTwo\nlines\n");
    assert!(allowed[1].contains("only the user sets up"), "{allowed:?}");
    assert!(allowed[2].contains("one plain command"), "{allowed:?}");
}

#[test]
fn without_gh_who_asks_for_it_is_told_and_nobody_else_gets_the_tool() {
    let Some(repository) = repository(None) else { return };
    let calls = [json!({"command": "pr list"})];
    let _provider = Provider::start(&repository.sandbox, &script(&calls), "panels = [\"gh\"]");
    let usual = "/usr/bin:/bin";
    let ran = output_of({
        let mut command = command(&repository, &["-p", "Go", "--output", "json"]);
        command.env("PATH", usual);
        command
    });
    assert!(results(&ran)[0].starts_with("cannot find gh, GitHub's command line: install it"), "{ran:?}");
    let declared = |path: &str| {
        let mut command = command(&repository, &["request", "Hi", "--layout", "panels", "--json"]);
        command.env("PATH", path);
        let body: Value = serde_json::from_slice(&output_of(command).stdout).expect("JSON");
        let tools = body["tools"].as_array().expect("tools").clone();
        tools.iter().any(|tool| tool["name"] == "gh")
    };
    repository.write("config/config.toml", "map_tokens = 0\n");
    assert!(!declared(usual), "by default there is no tool that cannot work");
    let gh = repository.program("opt/gh/bin/gh", STAND_IN);
    let folder = gh.parent().expect("a folder").display().to_string();
    assert!(declared(&format!("{folder}:{usual}")));
}
