//! The binary with hands: approvals, the terminal face, undo, compaction, what is left behind. It talks to a simulator
//! over HTTP.

#[path = "tools/extensions.rs"]
mod extensions;
#[path = "tools/guards.rs"]
mod guards;
#[path = "tools/hooks.rs"]
mod hooks;
#[path = "tools/mcp.rs"]
mod mcp;
#[path = "tools/mcp_http.rs"]
mod mcp_http;
#[path = "tools/mcp_on_demand.rs"]
mod mcp_on_demand;
#[path = "tools/mcp_parts.rs"]
mod mcp_parts;
#[path = "tools/mcp_serve.rs"]
mod mcp_serve;
#[path = "support/mcp_servers.rs"]
mod mcp_servers;
mod support;
#[path = "support/test_cli.rs"]
mod test_cli;

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use hardpan_prompt::MessageBody;
use hardpan_test_support::prerequisite;
use test_cli::{Terminal, TestCli};

#[test]
fn without_a_terminal_a_change_is_refused_with_the_reason_and_a_remedy() {
    let cli = TestCli::new("");
    let ran = cli.print(&["-p", "Write notes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!cli.exists("notes/a.txt"));
    let said = cli.last_result();
    assert!(
        said.contains("nobody is there to ask") && said.contains("allow = [\"write(notes/a.txt)\"]"),
        "{said}"
    );
    // The person is told the same, in one line, whatever its length.
    let told = "· write notes/a.txt: not run: nobody is there to ask; it can be allowed with --yes, or with allow = [\"write(notes/a.txt)\"] in config.toml\n";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    let ran = cli.print(&["-p", "Do fly"]);
    let told = "· fly to=the moon: not run: There is no tool named fly. The tools are: read, grep, find, ls, symbols, edit, write, bash, fetch, recall.\n";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "I have nothing to add.\n");
}

#[test]
fn rules_allow_and_deny_and_a_denial_counts_more_than_yes() {
    let cli = TestCli::new("allow = [\"write(notes/**)\"]\ndeny = [\"write(notes/secret*)\"]");
    assert_eq!(cli.print(&["-p", "Write notes"]).code, Some(0));
    assert_eq!(cli.read("notes/a.txt"), "noted");
    for args in [&["-p", "Write secret"][..], &["-p", "Write secret", "--yes"]] {
        cli.print(args);
        assert_eq!(
            cli.last_result(),
            "The call was not allowed: the settings deny it (write(notes/secret*))"
        );
        assert!(!cli.exists("notes/secret.txt"));
    }
    cli.print(&["-p", "Edit it"]);
    assert_eq!(cli.read("a.txt"), "one\n", "what no rule names is asked about");
    cli.print(&["-p", "Edit it", "--yes"]);
    assert_eq!(cli.read("a.txt"), "two\n");
}

#[test]
fn a_project_can_only_narrow_what_the_person_allowed() {
    let cli = TestCli::new("allow = [\"edit\"]");
    cli.sandbox.write("work/.hardpan/config.toml", "allow = [\"write\"]\ndeny = [\"edit(a.txt)\"]\n");
    let trusted = cli.sandbox.run(&["trust"]);
    assert_eq!(trusted.code, Some(0), "{}", trusted.stderr);
    cli.print(&["-p", "Write notes"]);
    assert!(!cli.exists("notes/a.txt") && cli.last_result().contains("nobody is there to ask"));
    cli.print(&["-p", "Edit it"]);
    assert_eq!(cli.read("a.txt"), "one\n");
    assert!(cli.last_result().contains("the settings deny it (edit(a.txt))"));
}

#[test]
fn commands_see_no_keys() {
    let cli = TestCli::new("");
    let keys = cli.sandbox.write("config/keys.toml", "openai = \"the-other-key\"\n");
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(keys, fs::Permissions::from_mode(0o600)).expect("its mode");
    cli.print(&["-p", "Print the variables", "--yes"]);
    let said = cli.last_result();
    assert!(said.contains("PATH="), "{said}");
    for secret in ["the-key-of-the-test", "the-token-of-the-test", "ANTHROPIC_API_KEY"] {
        assert!(!said.contains(secret), "{said}");
    }
    if hardpan_sandbox::sandbox_support() == hardpan_sandbox::SandboxSupport::Full {
        assert!(!said.contains("the-other-key") && said.contains("The sandbox denied reading"), "{said}");
    }
}

#[test]
fn a_conversation_in_the_terminal_from_the_first_prompt_to_undo() {
    let cli = TestCli::new("");
    let Some(mut terminal) = Terminal::open(&cli, &[]) else { return };
    terminal.expect("hardpan ");
    terminal.expect("you: ");
    terminal.say("Hello", "I have nothing to add.");
    terminal.expect("done ");
    terminal.expect("you: ");
    // Asked, not answered, asked again, and said no to.
    terminal.say("Write notes", "write  notes/a.txt");
    terminal.expect("+ noted");
    terminal.expect("asks: Change this file?");
    terminal.expect("2 yes, write of notes/a.txt until you leave");
    terminal.expect("3 yes, write of notes/a.txt always in this repository");
    terminal.say("", "asks: Change this file?");
    terminal.say("n not now", "I have nothing to add.");
    terminal.expect("you: ");
    assert!(!cli.exists("notes/a.txt"));
    assert_eq!(cli.last_result(), "The call was not allowed: the person said no: not now");
    // Yes, once; then for the conversation; then from now on.
    for (answer, is_asked) in [("y", true), ("s", true), ("", false)] {
        terminal.press("Write notes\n");
        if is_asked {
            terminal.expect("asks: Change this file?");
            terminal.press(&format!("{answer}\n"));
        }
        terminal.expect("I have nothing to add.");
        terminal.expect("you: ");
        assert_eq!(cli.read("notes/a.txt"), "noted");
    }
    terminal.say("Edit it", "asks: Change this file?");
    terminal.say("a", "I have nothing to add.");
    terminal.expect("you: ");
    assert_eq!(cli.read("a.txt"), "two\n");
    let list = fs::read_to_string(cli.sandbox.config().join("allowed")).expect("the list");
    let work = cli.sandbox.work().canonicalize().expect("the workspace");
    assert_eq!(list, format!("edit(a.txt)\t{}\n", work.display()));
    terminal.say("/undo", "restored");
    assert_eq!(cli.read("a.txt"), "one\n");
    terminal.say("Go on", "I have nothing to add.");
    let told = cli.messages().into_iter().any(|message| match &*message.body {
        MessageBody::Custom { content, .. } => {
            format!("{content:?}").contains("took your last changes back")
                && format!("{content:?}").contains("a.txt")
        }
        _ => false,
    });
    assert!(told, "the model is told that its change is gone");
    let screen = terminal.end();
    assert!(screen.contains("to continue this conversation: hardpan --resume"), "{screen}");
    // What is always allowed needs no terminal any more; in another workspace, it is not the same file.
    cli.print(&["-p", "Edit it"]);
    assert_eq!(cli.read("a.txt"), "two\n");
    let other = cli.sandbox.write("other/a.txt", "one\n");
    let folder = other.parent().expect("a folder").display().to_string();
    cli.print(&["-p", "Edit it", "--dir", &folder]);
    assert_eq!(fs::read_to_string(&other).expect("the file"), "one\n");
    fs::write(cli.sandbox.config().join("allowed"), "edit(a.txt)\n").expect("the list");
    cli.print(&["-p", "Edit it", "--dir", &folder]);
    assert_eq!(
        fs::read_to_string(&other).expect("the file"),
        "two\n",
        "a rule without a folder holds everywhere"
    );
}

#[test]
fn an_interrupt_ends_the_command_and_not_the_conversation() {
    let cli = TestCli::new("allow = [\"bash\"]");
    let Some(mut terminal) = Terminal::open(&cli, &[]) else { return };
    terminal.expect("you: ");
    terminal.say("Work slowly", "tool: bash ");
    // Told before it begins: in the first moment of a process the terminal's signal reaches it, too, and ends it at once.
    std::thread::sleep(Duration::from_millis(1000));
    terminal.press("\u{3}");
    terminal.expect("note: stopped ");
    terminal.expect("you: ");
    terminal.say("!echo from me", "from me\r\n");
    terminal.expect("you: ");
    terminal.press("!echo begun; sleep 1000\n");
    // Nothing is shown before it ends; on a busy machine it begins late.
    std::thread::sleep(Duration::from_millis(2000));
    terminal.press("\u{3}");
    terminal.expect(": failed, stopped");
    terminal.expect("you: ");
    terminal.say("Still there?", "I have nothing to add.");
    terminal.end();
    let stopped = cli
        .messages()
        .into_iter()
        .filter(|message| matches!(*message.body, MessageBody::BashExecution { .. }));
    assert_eq!(stopped.count(), 2);
    assert_eq!(cli.last_result(), "The user stopped this call before it ended.");
}

#[test]
fn leaving_while_the_agent_works_stops_it() {
    let cli = TestCli::new("allow = [\"bash\"]");
    let Some(mut terminal) = Terminal::open(&cli, &[]) else { return };
    terminal.expect("you: ");
    terminal.say("Work slowly", "tool: bash ");
    let screen = terminal.end();
    assert!(screen.contains("note: stopped "), "{screen}");
    assert_eq!(cli.last_result(), "The user stopped this call before it ended.");
    // The same where it waits for an answer.
    let Some(mut terminal) = Terminal::open(&cli, &[]) else { return };
    terminal.expect("you: ");
    terminal.say("Edit it", "asks: Change this file?");
    terminal.press("\u{3}");
    terminal.expect("you: ");
    terminal.end();
    assert_eq!(cli.read("a.txt"), "one\n");
}

#[test]
fn a_person_who_takes_their_time_takes_none_of_the_tools() {
    let cli = TestCli::new("");
    let Some(mut terminal) = Terminal::open(&cli, &[]) else { return };
    terminal.expect("you: ");
    terminal.say("Be quick", "asks: Run this, 1 line?");
    // Longer than the second that the call gives its command.
    std::thread::sleep(Duration::from_millis(1500));
    terminal.say("y", "I have nothing to add.");
    terminal.end();
    assert_eq!(cli.last_result(), "quick\n");
}

#[test]
fn a_long_conversation_is_compacted_and_what_was_done_before_can_be_taken_back() {
    let cli = TestCli::new("");
    cli.print(&["-p", "Edit it", "--yes"]);
    assert_eq!(cli.read("a.txt"), "two\n");
    let long: String = (0..4000).map(|n| format!("rope number {n}\n")).collect();
    for _ in 0..3 {
        let ran = cli.print_with(&["--continue", "-p", "Remember this"], &long);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    let before = cli.messages().len();
    let Some(mut terminal) = Terminal::open(&cli, &["--continue"]) else { return };
    terminal.expect(&format!("{before} messages so far"));
    terminal.say("/compact the ropes", "with a summary");
    terminal.expect("The summary of it all.");
    terminal.expect("Files changed so far: a.txt");
    terminal.say("/undo", "restored");
    assert_eq!(cli.read("a.txt"), "one\n", "the journal of the session was opened again");
    terminal.say("Go on", "I have nothing to add.");
    terminal.end();
    let messages = cli.messages();
    assert!(messages.len() < before && matches!(*messages[0].body, MessageBody::CompactionSummary { .. }));
    assert_eq!(cli.print(&["--continue", "-p", "And now?"]).code, Some(0));
}

/// The names below a folder.
fn names(folder: PathBuf) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn what_the_tools_of_a_session_leave_goes_with_it() {
    let cli = TestCli::new("");
    let cache = cli.sandbox.work().with_file_name("home").join(".cache/hardpan/tmp");
    cli.print(&["-p", "Edit it", "--yes", "--no-session"]);
    cli.print(&["-p", "Be quick", "--yes", "--no-session"]);
    assert_eq!(cli.read("a.txt"), "two\n");
    for folder in ["journal", "outputs", "sessions"] {
        assert_eq!(names(cli.data().join(folder)), [""; 0], "{folder}");
    }
    assert_eq!(names(cache.clone()), [""; 0]);
    cli.sandbox.write("work/a.txt", "one\n");
    cli.print(&["-p", "Edit it", "--yes"]);
    cli.print(&["--continue", "-p", "Be quick", "--yes"]);
    let ids = names(cli.data().join("journal"));
    assert_eq!((ids.len(), names(cache.clone())), (1, ids.clone()));
    let deleted = cli.sandbox.run(&["sessions", "delete", &ids[0], "--yes"]);
    assert_eq!(deleted.code, Some(0), "{}", deleted.stderr);
    for folder in [cli.data().join("journal"), cli.data().join("outputs"), cache] {
        assert_eq!(names(folder.clone()), [""; 0], "{}", folder.display());
    }
}

#[test]
fn an_interrupt_between_two_answers_ends_nothing_and_a_second_one_the_conversation() {
    let cli = TestCli::new("allow = [\"bash\"]");
    let Some(mut terminal) = Terminal::open(&cli, &[]) else { return };
    terminal.expect("you: ");
    terminal.press("\u{3}");
    terminal.expect("press Ctrl-C again, or Ctrl-D, to leave");
    terminal.say("Still there?", "I have nothing to add.");
    terminal.expect("you: ");
    terminal.press("\u{3}");
    terminal.expect("press Ctrl-C again, or Ctrl-D, to leave");
    terminal.press("\u{3}");
    terminal.expect("to continue this conversation: hardpan --resume");
    // Ctrl-D lets what runs come to its end, unless that takes too long.
    let Some(mut terminal) = Terminal::open(&cli, &[]) else { return };
    terminal.expect("you: ");
    terminal.say("Work slowly", "tool: bash ");
    terminal.press("\u{4}");
    std::thread::sleep(Duration::from_millis(300));
    terminal.press("\u{3}");
    terminal.expect("note: stopped ");
    terminal.expect("to continue this conversation: hardpan --resume");
}

#[test]
fn what_a_model_says_is_shown_as_it_is_but_steers_nothing() {
    let cli = TestCli::new("");
    let Some(mut terminal) = Terminal::open(&cli, &[]) else { return };
    terminal.expect("you: ");
    terminal.say("Show code", "\tif x {\u{fffd}]0;title\u{fffd}}");
    terminal.expect("you: ");
    // A name with line ends in it is not offered as a rule: in the list it would be three.
    terminal.say("Write oddly", "3 no, and stop");
    terminal.say("a", "answer with one of the numbers");
    terminal.expect("3 no, and stop");
    terminal.say("n", "I have nothing to add.");
    assert!(!cli.sandbox.config().join("allowed").exists());
    terminal.say("/later", "expected a text: /later TEXT");
    terminal.say("!", "expected a command");
    terminal.say("/unqueue", "the queue was empty");
    terminal.end();
}

#[test]
fn messages_and_documents_join_the_context_and_leave_it() {
    let cli = TestCli::new("");
    let Some(mut terminal) = Terminal::open(&cli, &["--layout", "panels"]) else { return };
    terminal.expect("you: ");
    terminal.say("Hello", "I have nothing to add.");
    terminal.expect("you: ");
    terminal.say("/detach", "2 messages: a history panel from the next request on");
    terminal.say("Hello again", "I have nothing to add.");
    terminal.expect("you: ");
    terminal.say("/panels", "H1");
    terminal.say("/close H1", "H1 is closed.");
    terminal.say("/close H1", "H1");
    terminal.say("/doc", "expected a document: /doc ID");
    terminal.say("/doc d-1", "doc:d-1 is attached, but requests do not name it");
    terminal.say("/open", "doc:d-1");
    terminal.say("/close doc:d-1", "is closed.");
    terminal.say("/open", "no file is open");
    terminal.end();
}

#[test]
fn another_conversation_has_its_own_open_files_and_its_own_changes() {
    let cli = TestCli::new("allow = [\"edit\", \"write\"]");
    let Some(mut terminal) = Terminal::open(&cli, &[]) else { return };
    terminal.expect("you: ");
    terminal.say("Edit it in @a.txt", "I have nothing to add.");
    terminal.expect("you: ");
    terminal.say("/open", "\r\n  a.txt");
    terminal.say("/new", "started a new conversation");
    terminal.say("/open", "no file is open");
    terminal.say("/undo", "there is nothing to undo");
    terminal.say("/open a.txt", "joins the context");
    terminal.say("Write notes", "I have nothing to add.");
    terminal.expect("you: ");
    terminal.say("/label e1 begin", "e1 is labelled begin");
    terminal.say("/tree", "[begin] Write notes");
    terminal.say("/tools off", "expected /tools, /tools on NAME, /tools off NAME, or one of these");
    terminal.say("/tools off fetch", "fetch is off: its calls are refused.");
    terminal.say("/tools", "fetch    off  built-in  ");
    terminal.say("/tools off fetch", "fetch is off already.");
    terminal.say("/resume nothing", "there is no session");
    terminal.say("/name", "What should this conversation be called?");
    terminal.say("second", "now called second");
    terminal.say("/resume second", "you are in that conversation already");
    terminal.end();
    assert_eq!(names(cli.data().join("journal")).len(), 2, "each has a journal of its own");
    // Both are there after a resume.
    let Some(mut terminal) = Terminal::open(&cli, &["--continue"]) else { return };
    terminal.expect("you: ");
    terminal.say("/open", "\r\n  a.txt");
    terminal.say("/undo", "removed, since the run created it");
    terminal.end();
    assert!(!cli.exists("notes/a.txt"));
    assert_eq!(cli.read("a.txt"), "two\n", "the other conversation's change stays");
}

#[test]
fn mistakes_in_the_settings_and_on_the_command_line_are_told() {
    let cli = TestCli::new("deny = [\"bsah(git push)\"]\n[providers.antropic]\nproxy = \"http://x\"");
    let told = cli.print(&["-p", "Hello"]).stderr;
    assert!(told.contains("the rule bsah(git push) has no effect"), "{told}");
    assert!(told.contains("ignoring [providers.antropic] in config.toml"), "{told}");
    // A command runs, also without a terminal; one that does not exist is not sent to the model.
    let named = cli.print(&["-p", "/model"]);
    assert!(String::from_utf8_lossy(&named.stdout).contains("claude-sonnet-5"), "{}", named.stderr);
    let unknown = cli.print(&["-p", "/modle"]);
    assert_eq!((unknown.code, &unknown.stdout[..]), (Some(1), &b""[..]));
    assert!(unknown.stderr.contains("unknown command /modle (did you mean /mode"), "{}", unknown.stderr);
    // A run that failed has no answer, not an empty one.
    let failed = cli.print(&["-p", "Hello", "--model", "claude-haiku-4-5", "--thinking", "5"]);
    assert_eq!((failed.code, &failed.stdout[..]), (Some(1), &b""[..]), "{}", failed.stderr);
}

#[test]
fn events_that_cannot_be_written_are_an_error() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full");
    let Some(full) = prerequisite("/dev/full", "run on Linux", full.ok()) else { return };
    let cli = TestCli::new("");
    let mut command = cli.command(&["-p", "Hello", "--output", "json"]);
    let output = command.stdin(Stdio::null()).stdout(full).stderr(Stdio::piped()).output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("cannot write to standard output"), "{told}");
}

#[test]
fn a_process_that_is_told_to_end_takes_its_commands_along() {
    let cli = TestCli::new("");
    let mut command = cli.command(&["-p", "Work slowly", "--yes"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary can be run");
    let mut words = std::io::BufReader::new(child.stderr.take().expect("it is piped"));
    let mut line = String::new();
    while !line.contains("· bash") {
        line.clear();
        assert_ne!(
            std::io::BufRead::read_line(&mut words, &mut line).expect("words"),
            0,
            "it ended too early"
        );
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill").success());
    // The pipe ends with the last process that holds it.
    let mut rest = String::new();
    words.read_to_string(&mut rest).expect("words");
    assert_eq!(child.wait().expect("it ends").code(), Some(143), "{rest}");
    assert!(rest.contains("interrupted; the session keeps what arrived"), "{rest}");
    assert_eq!(cli.last_result(), "The user stopped this call before it ended.");
}

#[test]
fn what_is_allowed_for_longer_is_what_was_seen() {
    let cli = TestCli::new("");
    cli.sandbox.write("work/src/a.rs", "kept");
    let Some(mut terminal) = Terminal::open(&cli, &[]) else { return };
    terminal.expect("you: ");
    terminal.say("Remove one", "asks: Run this, 1 line?");
    terminal.expect("2 yes, this exact command until you leave");
    terminal.say("a", "I have nothing to add.");
    terminal.expect("you: ");
    let list = fs::read_to_string(cli.sandbox.config().join("allowed")).expect("the list");
    assert!(list.starts_with("bash(exactly: rm a.tmp)\t"), "{list}");
    // Longer by a few words, and asked about.
    terminal.say("Remove more", "asks: Run this, 1 line?");
    terminal.say("n", "I have nothing to add.");
    terminal.expect("you: ");
    assert!(cli.exists("src/a.rs"));
    // Reading is remembered with other arguments.
    terminal.say("Look at it", "2 yes, ls that only reads until you leave");
    terminal.say("s", "I have nothing to add.");
    terminal.expect("you: ");
    terminal.say("Look again", "I have nothing to add.");
    let screen = terminal.end();
    assert_eq!(screen.matches("asks: Run this").count(), 3, "{screen}");
}

#[test]
fn a_question_cannot_be_forged_or_pushed_off_the_screen() {
    let cli = TestCli::new("");
    let Some(mut terminal) = Terminal::open(&cli, &[]) else { return };
    terminal.expect("you: ");
    terminal.say("Bury it", "touch buried");
    terminal.expect("asks: Run this, 50 lines?");
    terminal.expect("1 yes");
    terminal.say("n", "I have nothing to add.");
    let screen = terminal.end();
    // What the model wrote does not begin a line.
    assert_eq!(screen.matches("\nasks: ").count(), 1, "{screen}");
    assert!(!screen.contains("\u{1b}[2J") && !cli.exists("buried"));
}
