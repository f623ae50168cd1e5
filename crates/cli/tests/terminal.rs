//! The conversation in a terminal: how lines are typed, and what a person sees of what happens.

#[path = "terminal/devices.rs"]
mod devices;
#[path = "terminal/disguise.rs"]
mod disguise;
#[path = "terminal/in_tmux.rs"]
mod in_tmux;
mod support;
#[path = "support/test_cli.rs"]
mod test_cli;

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use hardpan_prompt::{MessageBody, MessagePart};
use test_cli::{Terminal, TestCli};

/// What the person said, in order.
fn user_messages(cli: &TestCli) -> Vec<String> {
    let text = |part: &MessagePart| {
        if let MessagePart::Text { text } = part { Some(text.to_string()) } else { None }
    };
    let messages = cli.messages().into_iter().filter_map(|message| match &*message.body {
        MessageBody::User { content } => Some(content.iter().filter_map(text).collect()),
        _ => None,
    });
    messages.collect()
}

#[test]
fn what_is_pasted_is_one_prompt_however_long_and_steers_nothing() {
    let cli = TestCli::new("");
    let Some(mut terminal) = Terminal::open_page(&cli, &[], ":") else { return };
    terminal.expect("help");
    terminal.press("\u{1b}[200~first\r\nsecond\u{1b}]0;title\u{7}\n\tthird\u{1b}[201~");
    terminal.expect("third");
    terminal.enter(" and typed", "I have nothing to add.");
    terminal.expect("done");
    // Longer than what a terminal keeps of a line.
    let long = "rope ".repeat(2000);
    terminal.enter(&long, "I have nothing to add.");
    terminal.expect("done");
    // A line is edited as elsewhere, and an earlier one comes back.
    terminal.enter("ups\u{15}Grü\u{7f}üße nix\u{17}\u{7f}\u{1b}[D\u{1b}[3~é", "I have nothing to add.");
    terminal.expect("done");
    terminal.enter("\u{1b}[A again", "I have nothing to add.");
    terminal.expect("done");
    let screen = terminal.end_page();
    assert!(!screen.contains("\u{1b}]0;"), "{screen:?}");
    let pasted = "first\nsecond\u{1b}]0;title\u{7}\n\tthird and typed";
    assert_eq!(user_messages(&cli), [pasted, long.trim_end(), "Grüßé", "Grüßé again"]);
}

#[test]
fn a_terminal_that_understands_little_edits_lines_itself() {
    let cli = TestCli::new("");
    let Some(mut terminal) = Terminal::open_as(&cli, &[], "dumb", ":") else { return };
    terminal.expect("you: ");
    terminal.say("Hello", "I have nothing to add.");
    let screen = terminal.end();
    assert!(!screen.contains('\u{1b}'), "{screen:?}");
}

/// Stands for a signal from outside, among the keys by which a conversation is left.
const SIGNALS: [&str; 3] = ["TERM", "HUP", "QUIT"];

#[test]
fn what_is_typed_at_a_question_is_not_lost() {
    let cli = TestCli::new("");
    let Some(mut terminal) = Terminal::open(&cli, &[]) else { return };
    terminal.expect("you: ");
    terminal.say("Write notes", "5 no, and stop");
    // Commands run as always, and the question stays.
    terminal.say("!echo from me", "from me\r\n");
    terminal.expect("asks: Change this file?");
    terminal.say("/queue", "the queue is empty");
    terminal.expect("asks: Change this file?");
    terminal.say("/qeue", "did you mean /queue, ");
    terminal.expect("asks: Change this file?");
    // One question at a time: the last one first.
    terminal.say("/name", "What should this conversation be called?");
    terminal.say("notes", "this conversation is now called notes");
    terminal.expect("asks: Change this file?");
    // Anything else is a no, with what was said.
    terminal.say(
        "a better idea: edit a.txt",
        "tool: write notes/a.txt: not run: the person said no: a better idea",
    );
    terminal.expect("I have nothing to add.");
    terminal.end();
    assert!(!cli.exists("notes/a.txt"));
    assert_eq!(cli.last_result(), "The call was not allowed: the person said no: a better idea: edit a.txt");
}

#[test]
fn what_becomes_of_calls_and_of_what_was_typed_meanwhile_is_shown() {
    let cli = TestCli::new("allow = [\"bash\"]");
    let Some(mut terminal) = Terminal::open(&cli, &[]) else { return };
    terminal.expect("you: ");
    terminal.say("Call twice", "tool: bash seq 1 20; sleep 2");
    terminal.say("Something else", "note: queued, 1 after this tool: Something else");
    terminal.expect("tool: bash seq 1 20; sleep 2: done");
    terminal.expect("tool: write b.txt: not run: you said something else");
    terminal.expect("you: Something else\r\n");
    terminal.expect("I have nothing to add.");
    terminal.end();
    assert!(!cli.exists("b.txt"));
}

#[test]
fn a_conversation_that_goes_on_shows_where_it_was() {
    let cli = TestCli::new("");
    cli.print(&["-p", "Hello there"]);
    cli.print(&["--continue", "-p", "/name Greeting"]);
    cli.print(&["-p", "Write notes"]);
    let Some(mut terminal) = Terminal::open(&cli, &["--continue"]) else { return };
    terminal.expect("4 messages so far\r\n");
    terminal.expect("\r\n  > Write notes\r\n  I have nothing to add.\r\n");
    terminal.expect("you: ");
    terminal.say("/resume", "about\r\n");
    terminal.expect("Greeting\r\n  /resume SESSION switches to one of them");
    terminal.say("/resume greeting", ", with 2 messages\r\n  > Hello there\r\n  I have nothing to add.\r\n");
    terminal.end();
}

#[test]
fn thinking_is_set_by_level_and_a_change_that_loses_the_cache_says_what_it_costs() {
    let cli = TestCli::new("");
    // Providers keep no prompt that is shorter than about a thousand tokens.
    cli.sandbox.write("work/AGENTS.md", "Be kind to those who read this.\n".repeat(40));
    let Some(mut terminal) = Terminal::open(&cli, &[]) else { return };
    terminal.expect("you: ");
    terminal.say("/thinking", "thinking is default; requests to claude-sonnet-5 say: adaptive, effort high");
    // Nothing is cached yet, so nothing is lost.
    terminal.say("/thinking low", "This applies from the next request on.");
    terminal.say("Hello", "I have nothing to add.");
    terminal.expect("you: ");
    terminal.say("/price thinking", "$0.0");
    terminal.say("/thinking max", "This applies from the next request on. ");
    terminal.expect("$0.0");
    terminal.say("/thinking", "thinking is max; requests to claude-sonnet-5 say: adaptive, effort max");
    // What is chosen already costs nothing; what the model lacks is said, once.
    terminal.say("/thinking max", "This applies from the next request on.\r\n");
    terminal.say("/thinking 3000", "effort low is used for 3000 tokens");
    terminal.say("/thinking high", "This applies from the next request on. ");
    terminal.say("/thinking 3000", "This applies from the next request on. ");
    terminal.say("/thinking much", "\"much\" is no thinking level; the levels are off, minimal, low");
    let screen = terminal.end();
    let notes =
        screen.matches("this model takes no thinking budget; effort low is used for 3000 tokens").count();
    assert_eq!(notes, 1, "{screen}");
}

#[test]
fn the_page_prints_a_diff_asks_below_it_and_takes_a_reason_for_a_no() {
    let cli = TestCli::new("");
    let Some(mut terminal) = Terminal::open_page(&cli, &[], ":") else { return };
    terminal.expect("help");
    terminal.press("Edit it\r");
    terminal.expect("one");
    terminal.expect("two");
    terminal.expect("Change this file?");
    // Once it has the keys, it shows what they do.
    terminal.expect("no, and say why");
    terminal.press("y");
    terminal.expect("you: ");
    terminal.expect("yes");
    terminal.expect("done");
    terminal.press("Be quick\r");
    terminal.expect("echo quick");
    terminal.expect("no, and say why");
    terminal.press("n");
    terminal.expect("no, because");
    terminal.press("not today\r");
    terminal.expect("no: not today");
    terminal.expect("done");
    terminal.press("\u{1b}[Z");
    terminal.expect("edits in this folder run");
    terminal.press("\u{4}");
    terminal.expect("to continue this conversation");
    let screen = terminal.screen();
    assert_nothing_forbidden(&screen);
    assert_eq!(user_messages(&cli), ["Edit it", "Be quick"]);
}

#[test]
fn the_page_gives_the_terminal_back_whatever_ends_it() {
    let cli = TestCli::new("");
    for leave in ["\u{4}", "\u{3}", "/quit\r"].into_iter().chain(SIGNALS) {
        let Some(mut terminal) = Terminal::open_page(&cli, &[], "stty -a; echo left") else { return };
        terminal.expect("\u{1b}[?2004h");
        terminal.expect("help");
        match leave {
            signal if SIGNALS.contains(&signal) => terminal.signal(signal),
            keys => terminal.press(keys),
        }
        if leave == "\u{3}" {
            terminal.expect("again leaves");
            terminal.press(leave);
        }
        terminal.expect("\u{1b}[?2004l");
        terminal.expect("speed ");
        terminal.expect("left");
        let modes = terminal.screen();
        let modes = &modes[modes.rfind("speed ").expect("the modes")..];
        for mode in [" icanon", " echo ", " icrnl"] {
            assert!(modes.contains(mode), "no {mode} after {leave:?}: {modes}");
        }
    }
}

#[test]
fn a_model_is_chosen_with_its_price_before_and_the_session_has_it() {
    let cli = TestCli::new("");
    let Some(mut terminal) = Terminal::open_page(&cli, &[], ":") else { return };
    terminal.expect("help");
    terminal.press("Hello\r");
    terminal.expect("done");
    terminal.press("/model\r");
    terminal.expect("effort");
    terminal.press("opus-5");
    terminal.expect("opus-5");
    terminal.press("\r");
    terminal.expect("Switch to anthropic/claude-opus-5");
    terminal.expect("leave it");
    terminal.press("n");
    terminal.expect("Switched to anthropic/claude-opus-5");
    terminal.press("\u{4}");
    terminal.expect("to continue this conversation");
    let store = hardpan_session::SessionStore::new(cli.data().join("sessions"));
    let model = store.list(None)[0].model.clone().expect("a model");
    assert!(model.starts_with("claude-opus-5"), "{model}");
}

#[test]
fn the_tree_takes_the_files_back_and_the_diff_of_an_edit_is_shown_before() {
    let cli = TestCli::new("");
    let Some(mut terminal) = Terminal::open_page(&cli, &[], ":") else { return };
    terminal.expect("help");
    terminal.press("Hello\r");
    terminal.expect("done");
    terminal.press("Edit it\r");
    terminal.expect("no, and say why");
    terminal.press("d");
    terminal.expect("next change");
    terminal.press("q");
    terminal.expect("Change this file?");
    terminal.press("y");
    terminal.expect("done");
    assert_eq!(cli.read("a.txt"), "two\n");
    terminal.press("\u{18}d");
    terminal.expect("next change");
    terminal.press("q");
    terminal.expect("ask");
    terminal.press("\u{18}t");
    terminal.expect("keep the files");
    terminal.press("k");
    terminal.expect("a.txt goes back");
    terminal.press("\r");
    terminal.expect("restored");
    assert_eq!(cli.read("a.txt"), "one\n");
    terminal.press("Go on\r");
    terminal.expect("done");
    terminal.press("\u{4}");
    terminal.expect("to continue this conversation");
    assert_eq!(user_messages(&cli), ["Hello", "Go on"]);
}

/// What the page never sends: it clears nothing, asks nothing, and takes no mouse.
fn assert_nothing_forbidden(screen: &str) {
    for forbidden in
        ["\u{1b}[2J", "\u{1b}[3J", "\u{1b}[H", "\u{1b}[6n", "\u{1b}[r", "\u{1b}[?1000h", "\u{1b}[?1006h"]
    {
        assert!(!screen.contains(forbidden), "{forbidden:?} in {screen:?}");
    }
}

#[test]
fn the_page_completes_steers_resizes_and_stops() {
    let cli = TestCli::new("allow = [\"bash\"]");
    let Some(mut terminal) = Terminal::open_page(&cli, &[], ":") else { return };
    terminal.expect("help");
    terminal.press("/que");
    terminal.expect("list the messages that wait");
    terminal.press("\t");
    terminal.enter("", "the queue is empty");
    // The last lines of what runs are shown.
    terminal.enter("Work slowly", "begun");
    terminal.enter("and the docs", "after this tool");
    terminal.resize(60, 20);
    terminal.press("a draft");
    terminal.expect("a draft");
    terminal.press("\u{1b}");
    terminal.expect("stopped");
    // The draft stays, and so does the queue, which goes with the next prompt.
    terminal.press(" goes on\r");
    terminal.expect("I have nothing to add.");
    terminal.expect("done");
    let screen = terminal.end_page();
    assert_nothing_forbidden(&screen);
    let said = user_messages(&cli);
    assert!(
        said.contains(&"a draft goes on".to_owned()) && said.contains(&"and the docs".to_owned()),
        "{said:?}"
    );
    let stopped = format!("{:?}", cli.messages());
    assert!(stopped.contains("The user stopped this call before it ended."), "{stopped}");
}

#[test]
fn a_draft_survives_a_kill_and_a_megabyte_is_one_paste() {
    let cli = TestCli::new("");
    let Some(mut terminal) = Terminal::open_page(&cli, &[], ":") else { return };
    terminal.expect("help");
    let long = "rope number one\n".repeat(65_536);
    terminal.press(&format!("\u{1b}[200~{long}\u{1b}[201~"));
    terminal.expect("paste 1");
    terminal.press("\u{3}");
    terminal.expect("brings the line back");
    terminal.press("half a thought");
    terminal.expect("half a thought");
    let drafts = cli.sandbox.work().with_file_name("home").join(".local/state/hardpan/drafts");
    let is_stored = || {
        let files = std::fs::read_dir(&drafts).into_iter().flatten().flatten();
        // A hidden file is still being written.
        let files = files.filter(|file| !file.file_name().to_string_lossy().starts_with('.'));
        let texts: Vec<String> = files.filter_map(|file| std::fs::read_to_string(file.path()).ok()).collect();
        texts == ["half a thought"]
    };
    let stored = (0..6000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        is_stored()
    });
    assert!(stored, "no draft in {}", drafts.display());
    terminal.signal("KILL");
    terminal.wait_for_end();
    let Some(mut terminal) = Terminal::open_page(&cli, &[], ":") else { return };
    terminal.expect("half a thought");
    terminal.enter(" is enough", "I have nothing to add.");
    terminal.expect("done");
    assert_nothing_forbidden(&terminal.end_page());
    assert_eq!(user_messages(&cli), ["half a thought is enough"]);
}

#[test]
fn a_plan_changes_nothing_its_yes_switches_to_edits_and_the_mode_comes_back() {
    // A rule would let it run.
    let cli = TestCli::new("allow = [\"edit\"]");
    let Some(mut terminal) = Terminal::open_page(&cli, &[], ":") else { return };
    terminal.expect("help");
    terminal.enter("/mode plan", "reading tools only");
    terminal.enter("Edit it", "not run");
    terminal.expect("Carry out this plan?");
    assert_eq!(cli.read("a.txt"), "one\n");
    terminal.enter("y", "edits in this folder run");
    terminal.expect("Carry out the plan.");
    terminal.expect("done");
    terminal.end_page();
    assert_eq!(user_messages(&cli), ["Edit it", "Carry out the plan."]);
    let Some(mut terminal) = Terminal::open_page(&cli, &["--continue"], ":") else { return };
    terminal.expect("edits in this folder run");
    terminal.end_page();
}

#[test]
fn a_command_is_changed_in_the_editor_before_it_runs() {
    let cli = TestCli::new("");
    std::fs::write(cli.editor(), "#!/bin/sh\nsed -i s/quick/slow/ \"$1\"\n").expect("an editor");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(cli.editor(), executable).expect("it can be run");
    let Some(mut terminal) = Terminal::open_page(&cli, &[], ":") else { return };
    terminal.expect("help");
    terminal.enter("Be quick", "edit the command first");
    terminal.press("e");
    terminal.expect("as changed in the editor");
    terminal.expect("echo slow");
    terminal.expect("done");
    terminal.end_page();
    let told = format!("{:?}", cli.messages());
    assert!(told.contains("slow\\n") && told.contains("The person changed this call."), "{told}");
}

#[test]
fn plain_lines_need_no_terminal() {
    let cli = TestCli::new("");
    let ran = cli.print_with(&["--plain"], "Hello\n/mode plan\n");
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!(ran.code, Some(0), "{said}{}", ran.stderr);
    for line in ["you: Hello\n", "model: I have nothing to add.\n", "note: mode plan: reading tools only"] {
        assert!(said.contains(line), "no {line:?} in {said}");
    }
    assert!(!said.contains('\u{1b}'), "{said:?}");
}

/// Where each of these begins, in this order.
fn places(text: &str, parts: &[&str]) -> Vec<usize> {
    let mut from = 0;
    let place = |part: &&str| {
        let at = text[from..].find(part).unwrap_or_else(|| panic!("no {part:?} behind {from} in {text}"));
        from += at + part.len();
        from
    };
    parts.iter().map(place).collect()
}

#[test]
fn piped_lines_are_answered_one_by_one_and_a_failure_is_told_by_the_exit_code() {
    let script = "
turns:
  - when: {contains: slow}
    delay: 400ms
    text: That took a while.
default: {text: Fine.}
";
    let cli = TestCli::with_script("", script);
    let ran = cli.print_with(&["--plain"], "a slow one\n\nsecond\n/quit\nnever\n");
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!(ran.code, Some(0), "{said}{}", ran.stderr);
    places(
        &said,
        &[
            "you: a slow one\n",
            "model: That took a while.\n",
            "you: second\n",
            "model: Fine.\n",
            "you: /quit\n",
        ],
    );
    assert_eq!(user_messages(&cli), ["a slow one", "second"]);
    // What fails does not keep the rest from being done.
    for (lines, expected) in [("!true\nHello\n", 0), ("!false\nHello\n", 1), ("/nothing\nHello\n", 1)] {
        let ran = cli.print_with(&["--plain"], lines);
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert_eq!(ran.code, Some(expected), "{lines:?}: {said}{}", ran.stderr);
        assert!(said.contains("model: Fine.\n"), "{lines:?}: {said}");
    }
}

/// `kill -9` right after going back: the conversation is there again.
#[test]
fn going_back_survives_a_kill() {
    let cli = TestCli::with_script("", "default: {text: Fine.}\n");
    let ran = cli.print_with(&["--plain"], "first\nsecond\n");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let answer = cli.messages()[1].id.to_string();
    let mut command = cli.command(&["--plain", "--continue"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut input = child.stdin.take().expect("a pipe");
    writeln!(input, "/tree {answer}").expect("it reads");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let told: Vec<String> =
        lines.map_while(Result::ok).take_while(|line| !line.contains("went back to")).collect();
    child.kill().expect("it runs until then");
    child.wait().expect("it ends");
    assert_eq!(user_messages(&cli), ["first"], "{told:?}");
    let ran = cli.print_with(&["--plain", "--continue"], "another second\n");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(user_messages(&cli), ["first", "another second"]);
}

/// The end of a run, the status line, `/cost` and `hardpan cost` name the same amount with the same
/// digits.
#[test]
fn the_page_names_the_amount_that_cost_names() {
    let cli = TestCli::new("");
    let Some(mut terminal) = Terminal::open_page(&cli, &[], ":") else { return };
    terminal.expect("help");
    terminal.press("Hello\r");
    terminal.expect("done");
    let summary_at = terminal.screen().rfind("done").expect("it was waited for");
    terminal.press("/cost\r");
    terminal.expect("kind");
    terminal.expect("answer");
    terminal.expect("all");
    terminal.press("\u{4}");
    terminal.expect("to continue this conversation");
    let screen = terminal.screen();
    let cost = cli.command(&["cost", "--json"]).output().expect("it runs").stdout;
    let cost: serde_json::Value = serde_json::from_slice(&cost).expect("JSON");
    let dollars = cost["total"]["dollars"].as_f64().expect("an amount");
    assert!(dollars > 0.0 && cost["total"]["requests"] == 1, "{cost}");
    let shown = hardpan_prompt::figures::format_dollars(dollars);
    // The first amount behind `done` is what the run cost.
    let after = &screen[summary_at..];
    let first = after.find('$').map(|at| &after[at..]).unwrap_or_default();
    assert!(first.starts_with(&shown), "{shown} in {after:?}");
    // The status line, which is drawn again, and the first line and the last row of `/cost`.
    assert!(screen.matches(&shown).count() > 3, "{shown} in {screen:?}");
}
