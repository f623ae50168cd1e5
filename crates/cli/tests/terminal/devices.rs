//! What is at the terminal besides keys: its background, the mouse, the clipboard, an editor.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use hardpan_prompt::{MessageBody, MessagePart};
use hardpan_test_support::pixel;

use super::test_cli::{Terminal, TestCli};

/// Puts a program somewhere.
fn write_program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a program");
    fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("it can be run");
}

/// The page, started once the terminal's answer to its question for the background has been typed: it
/// waits for one for a moment only.
fn page_with_background(answer: &str) -> Option<String> {
    let cli = TestCli::new("theme = \"auto\"");
    let go = cli.sandbox.work().with_file_name("go");
    let before = format!("while [ ! -e '{}' ]; do sleep 0.01; done", go.display());
    let mut terminal = Terminal::open_page_after(&cli, &[], &before)?;
    if !answer.is_empty() {
        terminal.press(answer);
        // The terminal has echoed it: it is there.
        terminal.expect("11;rgb");
    }
    fs::write(&go, "").expect("a file");
    terminal.expect("\u{1b}]11;?");
    terminal.expect("help");
    Some(terminal.end_page())
}

#[test]
fn colours_follow_the_background_that_the_terminal_tells() {
    // The colour of the sign before the line: for a light background, for a dark one, the terminal's own.
    let accents = ["38;2;11;110;127", "38;2;108;199;216", ";36m"];
    for (answer, expected) in
        [("\u{1b}]11;rgb:ffff/ffff/dddd\u{1b}\\", 0), ("\u{1b}]11;rgb:1c/1c/1c\u{7}", 1), ("", 2)]
    {
        let Some(screen) = page_with_background(answer) else { return };
        let found: Vec<bool> = accents.iter().map(|accent| screen.contains(accent)).collect();
        assert_eq!(found, [0, 1, 2].map(|accent| accent == expected), "{answer:?}: {screen:?}");
    }
}

#[test]
fn an_image_of_the_clipboard_becomes_part_of_the_prompt() {
    let cli = TestCli::new("");
    let programs = cli.sandbox.work().with_file_name("programs");
    let image = cli.sandbox.work().with_file_name("image.png");
    let encoded = serde_json::to_value(pixel()).expect("JSON")["data"].as_str().expect("text").to_owned();
    let print =
        format!("#!/bin/sh\nif [ -e '{0}' ]; then base64 -d '{0}'; else echo words; fi\n", image.display());
    write_program(&programs.join("wl-paste"), &print);
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", programs.display());
    let Some(mut terminal) = Terminal::open_page_with(&cli, &[], |command| _ = command.env("PATH", path))
    else {
        return;
    };
    terminal.expect("help");
    terminal.press("\u{16}");
    terminal.expect("the clipboard holds no image");
    fs::write(&image, encoded).expect("an image");
    terminal.press("\u{16}");
    terminal.expect("clipboard-");
    terminal.expect(".png");
    terminal.press("what is this?\r");
    terminal.expect("I have nothing to add.");
    terminal.expect("done");
    let screen = terminal.end_page();
    let images = cli.messages().into_iter().filter(|message| match &*message.body {
        MessageBody::User { content } => content.iter().any(|part| matches!(part, MessagePart::Image(_))),
        _ => false,
    });
    assert_eq!(images.count(), 1, "{screen}");
}

#[test]
fn an_image_is_drawn_where_the_terminal_says_that_it_can_and_named_elsewhere() {
    let data = serde_json::to_value(pixel()).expect("JSON")["data"].as_str().expect("text").to_owned();
    let kitty = format!("\u{1b}_Ga=T,f=100,q=2,r=1,m=0;{data}\u{1b}\\\r\n");
    let iterm = format!("\u{1b}]1337;File=inline=1;preserveAspectRatio=1;height=1:{data}\u{7}\r\n");
    for (variable, picture) in [
        (("KITTY_WINDOW_ID", "1"), Some(&kitty)),
        (("TERM_PROGRAM", "iTerm.app"), Some(&iterm)),
        (("TERM_PROGRAM", "unknown"), None),
    ] {
        let cli = TestCli::new("");
        let path = cli.sandbox.write("work/dot.base64", &data);
        let decode =
            format!("base64 -d '{}' > '{}'", path.display(), path.with_file_name("dot.png").display());
        assert!(std::process::Command::new("sh").args(["-c", &decode]).status().expect("a shell").success());
        let opened = Terminal::open_page_with(&cli, &[], |command| _ = command.env(variable.0, variable.1));
        let Some(mut terminal) = opened else { return };
        terminal.expect("help");
        terminal.press("look at @dot.png now\r");
        terminal.expect("image: png, 1 x 1");
        terminal.expect("I have nothing to add.");
        terminal.expect("done");
        let screen = terminal.end_page();
        assert_eq!(picture.is_some_and(|picture| screen.contains(picture)), picture.is_some(), "{screen:?}");
        let sequences = ["\u{1b}_G", "\u{1b}]1337"].map(|start| screen.matches(start).count());
        assert_eq!(sequences.iter().sum::<usize>(), usize::from(picture.is_some()), "{screen:?}");
    }
}

#[test]
fn a_failed_request_is_sent_at_once_by_a_key() {
    // Nobody waits that long.
    let config = "[patience]\nlongest_wait_seconds = 5000\n";
    let script = "default: {text: Here I am.}\nfaults: [{status: 529, retry_after: 3000, times: 2}]\n";
    let cli = TestCli::with_script(config, script);
    let Some(mut terminal) = Terminal::open_page(&cli, &[], ":") else { return };
    terminal.expect("help");
    terminal.press("Hello\r");
    terminal.expect("2 of ");
    terminal.press("r");
    terminal.expect("3 of ");
    // With something in the line, it is a letter.
    terminal.press("xr");
    terminal.expect("xr");
    terminal.press("\u{15}r");
    terminal.expect("Here I am.");
    terminal.expect("done");
    terminal.end_page();
    // The same in plain lines.
    let cli = TestCli::with_script(config, script);
    let Some(mut terminal) = Terminal::open(&cli, &[]) else { return };
    terminal.expect("you: ");
    terminal.say("Hello", "r sends it now");
    terminal.say("r", "r sends it now");
    terminal.say("r", "Here I am.");
    terminal.end();
}

#[test]
fn the_mouse_is_taken_by_views_alone_if_the_person_wants_it_and_given_back_whatever_ends_them() {
    let cli = TestCli::new("mouse = true");
    let mouse = ["\u{1b}[?1000h", "\u{1b}[?1006h", "\u{1b}[?1006l", "\u{1b}[?1000l"];
    for end in ["keys", "TERM", "HUP"] {
        let Some(mut terminal) = Terminal::open_page(&cli, &[], "echo left") else { return };
        terminal.expect("help");
        assert!(!terminal.screen().contains(mouse[0]), "on the page");
        terminal.press("\u{14}");
        terminal.expect(mouse[0]);
        terminal.expect(mouse[1]);
        // The wheel, a click, and a button that is let go: nothing of it is typed.
        terminal.press("\u{1b}[<64;5;5M\u{1b}[<0;3;2M\u{1b}[<0;3;2m");
        match end {
            "keys" => terminal.press("\u{14}"),
            signal => terminal.signal(signal),
        }
        terminal.expect(mouse[2]);
        terminal.expect(mouse[3]);
        if end == "keys" {
            terminal.press("\u{4}");
        }
        terminal.expect("left");
        let screen = terminal.wait_for_end();
        assert_eq!(screen.matches(mouse[0]).count(), screen.matches(mouse[3]).count());
    }
}

#[test]
fn several_edits_are_changed_in_the_editor_before_they_are_made() {
    let script = r#"
turns:
  - {when: {contains: Edit both}, repeat: always, tool_calls: [{name: edit, arguments: {path: b.txt, edits: [{old_text: one, new_text: "1"}, {old_text: two, new_text: "2"}]}}]}
default: {text: I have nothing to add.}
"#;
    let cli = TestCli::with_script("", script);
    cli.sandbox.write("work/b.txt", "one\nand\ntwo\n");
    // The first time it removes the lines between the edits, then it changes one of them.
    let editor = "#!/bin/sh\nif [ ! -e \"$0.ran\" ]; then touch \"$0.ran\"; sed -i /=====/d \"$1\"; else sed -i s/^2$/deux/ \"$1\"; fi\n";
    write_program(&cli.editor(), editor);
    let Some(mut terminal) = Terminal::open_page(&cli, &[], ":") else { return };
    terminal.expect("help");
    terminal.enter("Edit both", "change it in the editor");
    terminal.press("e");
    terminal.expect("nothing was changed");
    terminal.expect("change it in the editor");
    assert_eq!(cli.read("b.txt"), "one\nand\ntwo\n");
    terminal.press("e");
    terminal.expect("done");
    terminal.end_page();
    assert_eq!(cli.read("b.txt"), "1\nand\ndeux\n");
}
