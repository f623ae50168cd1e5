use std::fs::{self, File};

use hardpan_prompt::Hash;
use serde_json::json;

use super::*;
use crate::test_workspace::{TestWorkspace, workspace};

fn read(project: &TestWorkspace, arguments: &Value) -> String {
    project.text(&Read, arguments)
}

fn numbered(lines: usize) -> String {
    (1..=lines).map(|line| format!("line {line}\n")).collect()
}

#[test]
fn a_short_file_comes_whole_and_exactly_as_it_is() {
    for text in ["one\ntwo\n", "one\r\ntwo", "\n\n", "tab\tä\u{1b}[0m\n"] {
        let project = workspace(&[("a.txt", text)]);
        let outcome = project.call(&Read, &json!({"path": "a.txt"}));
        let lines = text.split_inclusive('\n').count();
        let details = json!({
            "path": "a.txt", "lines": lines, "shown": [1, lines], "bytes": text.len(), "hash": Hash::of(text.as_bytes()),
        });
        let shown = LineRanges::all(lines as u64);
        let observation = FileObservation::of_text("a.txt", ObservationKind::Shown, text, shown);
        assert_eq!(outcome, ToolOutcome::text(text).with_details(details).with_observation(observation));
    }
}

#[test]
fn the_notice_says_what_is_shown_and_how_to_go_on() {
    let project = workspace(&[("a.txt", &numbered(5321))]);
    let first = read(&project, &json!({"path": "a.txt"}));
    assert_eq!(first, numbered(2000) + "[lines 1-2000 of 5321; go on with offset=2001]");
    let some = json!({"path": "a.txt", "offset": 3, "limit": 2});
    assert_eq!(read(&project, &some), "line 3\nline 4\n[lines 3-4 of 5321; go on with offset=5]");
    let end = json!({"path": "a.txt", "offset": 5321});
    assert_eq!(read(&project, &end), "line 5321\n[lines 5321-5321 of 5321]");
    let outcome = project.call(&Read, &some);
    assert_eq!(outcome.details.unwrap()["shown"], json!([3, 4]));
    let past = project.failure(&Read, &json!({"path": "a.txt", "offset": 5322}));
    assert_eq!(past, "a.txt has only 5321 lines: offset 5322 is past its end.");
}

#[test]
fn following_the_notices_gives_the_whole_file() {
    let text: String = (0..9000).map(|line| "x".repeat(line % 90) + "\n").collect();
    let project = workspace(&[("a.txt", &text)]);
    let (mut whole, mut offset, mut pages) = (String::new(), 1, 0);
    loop {
        let page = read(&project, &json!({"path": "a.txt", "offset": offset}));
        let (body, notice) = page.rsplit_once("\n[").unwrap();
        assert!(body.len() <= MAX_ANSWER_BYTES);
        whole.extend([body, "\n"]);
        pages += 1;
        match notice.split_once("offset=") {
            Some((_, next)) => offset = next.trim_end_matches(']').parse().unwrap(),
            None => break,
        }
    }
    assert!(whole == text && pages > 4, "{pages}");
}

#[test]
fn null_and_zero_stand_for_nothing_said() {
    let project = workspace(&[("a.txt", "a\nb\n")]);
    assert_eq!(read(&project, &json!({"path": "a.txt", "offset": 0, "limit": null})), "a\nb\n");
    assert_eq!(
        project.failure(&Read, &json!({"file": "a.txt"})),
        "The arguments cannot be used: unknown field `file`, expected one of `path`, `offset`, `limit`. Make the call again with arguments as declared."
    );
}

#[test]
fn long_lines_are_cut_and_many_bytes_too() {
    let project = workspace(&[("min.js", &format!("{}\nend\n", "ä".repeat(2010)))]);
    let expected = format!("{}…[10 more characters]\nend\n", "ä".repeat(2000));
    assert_eq!(read(&project, &json!({"path": "min.js"})), expected);
    let observed = project.call(&Read, &json!({"path": "min.js"})).file_observations;
    assert_eq!(observed[0].shown, LineRanges::span(2, 2), "a line that was cut is not shown");
    let line = "y".repeat(1023) + "\n";
    project.write("wide.txt", line.repeat(60));
    let expected = line.repeat(50) + "[lines 1-50 of 60; go on with offset=51]";
    assert_eq!(read(&project, &json!({"path": "wide.txt"})), expected);
}

#[test]
fn an_empty_file_is_said_to_be_empty() {
    let project = workspace(&[("a.txt", "")]);
    assert_eq!(read(&project, &json!({"path": "a.txt"})), "[a.txt is empty]");
}

#[test]
fn other_encodings_are_understood_and_binaries_refused() {
    let project = workspace(&[]);
    let utf16: Vec<u8> = "\u{feff}grün\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    project.write("utf16.txt", utf16);
    assert_eq!(read(&project, &json!({"path": "utf16.txt"})), "grün\n");
    project.write("a.bin", b"ab\0cd");
    assert_eq!(
        project.failure(&Read, &json!({"path": "a.bin"})),
        "a.bin is binary (byte 2 is a control character): only text can be shown"
    );
    project.write("latin.txt", b"gr\xfcn");
    assert_eq!(
        project.failure(&Read, &json!({"path": "latin.txt"})),
        "latin.txt is not UTF-8 (byte 2 is the first wrong one): convert it, for example with iconv"
    );
}

#[test]
fn what_is_shown_of_a_file_is_said_with_the_content_that_it_has() {
    let text = numbered(3000);
    let project = workspace(&[("a.txt", &text), ("mark.txt", "\u{feff}one"), ("empty", "")]);
    let observed = |arguments: Value| project.call(&Read, &arguments).file_observations;
    let shown = |path: &str, text: &str, first, last| {
        let kind = ObservationKind::Shown;
        vec![FileObservation::of_text(path, kind, text, LineRanges::span(first, last))]
    };
    assert_eq!(observed(json!({"path": "a.txt"})), shown("a.txt", &text, 1, 2000));
    assert_eq!(observed(json!({"path": "a.txt", "offset": 2001})), shown("a.txt", &text, 2001, 3000));
    assert_eq!(observed(json!({"path": "./mark.txt"})), shown("mark.txt", "one", 1, 1));
    assert_eq!(observed(json!({"path": "empty"})), shown("empty", "", 1, 0));
    assert_eq!(observed(json!({"path": "missing"})), []);
    let kept = &observed(json!({"path": "mark.txt"}))[0].text;
    assert_eq!(kept.as_deref(), Some("one"), "to show later what has changed");
}

#[test]
fn an_image_comes_back_as_one() {
    let project = workspace(&[]);
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    png.extend(120u32.to_be_bytes());
    png.extend(80u32.to_be_bytes());
    png.extend(b"\x08\x02\0\0\0\0\0\0\0");
    project.write("logo.png", &png);
    let outcome = project.call(&Read, &json!({"path": "logo.png"}));
    let image = hardpan_workspace::read_image(&project.path("logo.png")).unwrap();
    assert_eq!(
        outcome,
        ToolOutcome {
            content: vec![MessagePart::text("logo.png: image/png, 120x80 pixels"), MessagePart::Image(image)],
            details: Some(json!({"path": "logo.png", "media_type": "image/png", "width": 120, "height": 80})),
            is_error: false,
            file_observations: vec![FileObservation::of_unknown("logo.png", LineRanges::default())],
            ends_run: false,
        }
    );
    project.write("cut.png", &png[..14]);
    assert_eq!(
        project.failure(&Read, &json!({"path": "cut.png"})),
        "cut.png begins like image/png but its size cannot be found: it is damaged or cut off"
    );
}

#[test]
fn a_folder_and_a_name_that_is_wrong_are_told_with_the_remedy() {
    let project = workspace(&[("src/main.rs", "")]);
    assert_eq!(project.failure(&Read, &json!({"path": "src"})), "src is a folder: list it with ls.");
    assert_eq!(
        project.failure(&Read, &json!({"path": "src/man.rs"})),
        "src/man.rs does not exist. Nearest names: src/main.rs"
    );
    assert_eq!(
        project.failure(&Read, &json!({"path": "../x"})),
        ScopeError::Outside { path: "../x".into() }.to_string()
    );
}

#[test]
#[cfg(unix)]
fn pipes_devices_and_links_out_are_refused() {
    let mut project = workspace(&[]);
    project.pipe("pipe");
    assert_eq!(
        project.failure(&Read, &json!({"path": "pipe"})),
        "pipe is a named pipe, not a regular file: copy what it holds into a file first"
    );
    fs::write(project.outside().join("secret"), "s").unwrap();
    project.link("link", "../secret");
    assert_eq!(
        project.failure(&Read, &json!({"path": "link"})),
        ScopeError::Outside { path: "link".into() }.to_string()
    );
    project.scope.readable = vec!["/dev".into()];
    assert_eq!(
        project.failure(&Read, &json!({"path": "/dev/zero"})),
        "/dev/zero is a device, not a regular file: copy what it holds into a file first"
    );
}

#[test]
fn of_a_huge_file_the_start_is_read() {
    let project = workspace(&[]);
    let line = "z".repeat(99) + "\n";
    project.write("huge.log", line.repeat(MAX_READ_BYTES / 100 + 100_000));
    let held = MAX_READ_BYTES / 100; // lines that fit into what is looked at
    let bytes = project.path("huge.log").metadata().unwrap().len();
    let outcome = project.call(&Read, &json!({"path": "huge.log", "offset": held, "limit": 1}));
    let text = format!(
        "{line}[lines {held}-{held} of more than {held}; the file has {bytes} bytes and read ends here: search the rest with grep]"
    );
    let details =
        json!({"path": "huge.log", "lines": null, "shown": [held, held], "bytes": bytes, "hash": null});
    let observation = FileObservation::of_unknown("huge.log", LineRanges::span(held as u64, held as u64));
    assert_eq!(outcome, ToolOutcome::text(text).with_details(details).with_observation(observation));
    assert_eq!(
        project.failure(&Read, &json!({"path": "huge.log", "offset": held + 1})),
        format!(
            "Line {} of huge.log is beyond its first 16 MiB, where read ends: search it with grep.",
            held + 1
        )
    );
    // A hole of 1 TB is binary, whatever its size.
    if File::create(project.path("hole")).unwrap().set_len(1 << 40).is_ok() {
        assert_eq!(
            project.failure(&Read, &json!({"path": "hole"})),
            "hole is binary (byte 0 is a control character): only text can be shown"
        );
    }
}

#[test]
fn what_a_declaration_names_is_understood() {
    let project = workspace(&[("a", "text\n")]);
    let all = json!({"path": "a", "offset": 1, "limit": 5});
    let schema = Read.declaration().parameters.value();
    assert!(schema["properties"].as_object().unwrap().keys().eq(all.as_object().unwrap().keys()));
    assert_eq!(read(&project, &all), "text\n");
}
