use std::fs;
use std::os::unix::fs::PermissionsExt;

use hardpan_context::knowledge::{FileObservation, LineRanges, count_lines};
use hardpan_prompt::Hash;
use hardpan_test_support::prerequisite;
use serde_json::json;

use super::*;
use crate::test_workspace::{TestWorkspace, workspace};

fn tool() -> Write {
    Write(FileChanger::new(None))
}

#[test]
fn a_new_file_is_created_with_its_folders() {
    let fixture = workspace(&[]);
    let outcome = fixture.call(&tool(), &json!({"path": "a/b/c.txt", "content": "one\ntwo"}));
    assert!(!outcome.is_error);
    assert_eq!(outcome.content, [hardpan_prompt::MessagePart::text("Created a/b/c.txt (2 lines).")]);
    let details = outcome.details.unwrap();
    assert_eq!(details["path"], "a/b/c.txt");
    assert_eq!(details["hash"], json!(Hash::of(b"one\ntwo")));
    assert!(details["diff"].as_str().unwrap().contains("+one\n+two"));
    assert_eq!(fs::read(fixture.path("a/b/c.txt")).unwrap(), b"one\ntwo");
    let names: Vec<_> =
        fs::read_dir(fixture.path("a/b")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["c.txt"], "no temporary file is left");
}

#[test]
fn a_file_that_was_not_read_is_not_overwritten() {
    let fixture = workspace(&[("a.txt", "old\n"), ("empty", "")]);
    let tool = tool();
    let told = fixture.failure(&tool, &json!({"path": "a.txt", "content": "new\n"}));
    assert_eq!(
        told,
        "a.txt exists and you have not read it; nothing was written. Read it first, or choose another name."
    );
    assert_eq!(fs::read(fixture.path("a.txt")).unwrap(), b"old\n");
    // The same content shows that it is known.
    let told = fixture.text(&tool, &json!({"path": "a.txt", "content": "old\n"}));
    assert_eq!(told, "a.txt already has this content; nothing was written.");
    fixture.text(&tool, &json!({"path": "a.txt", "content": "new\n"}));
    fixture.text(&tool, &json!({"path": "empty", "content": "x"}));
}

#[test]
fn what_was_read_is_overwritten_and_keeps_mode_line_endings_and_mark() {
    let fixture = workspace(&[("run.sh", "\u{feff}a\r\nb\r\n")]);
    fs::set_permissions(fixture.path("run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    let tool = tool();
    fixture.read("run.sh");
    let told = fixture.text(&tool, &json!({"path": "run.sh", "content": "a\nb\nc"}));
    assert_eq!(told, "Overwrote run.sh (3 lines, was 2 lines).");
    assert_eq!(fs::read(fixture.path("run.sh")).unwrap(), "\u{feff}a\r\nb\r\nc".as_bytes());
    assert_eq!(fixture.path("run.sh").metadata().unwrap().permissions().mode() & 0o7777, 0o750);
    // What the model wrote itself it knows.
    fixture.text(&tool, &json!({"path": "run.sh", "content": "x\n"}));
}

#[test]
fn a_change_from_outside_is_shown_and_then_known() {
    let fixture = workspace(&[("a.txt", "one\ntwo\nthree\n")]);
    let tool = tool();
    fixture.read("a.txt");
    fixture.write("a.txt", "one\n2\nthree\n");
    let told = fixture.failure(&tool, &json!({"path": "a.txt", "content": "mine\n"}));
    assert!(
        told.starts_with("a.txt has changed since you saw it; nothing was written. What changed:"),
        "{told}"
    );
    assert!(told.contains("-two\n+2\n"), "{told}");
    assert_eq!(fs::read(fixture.path("a.txt")).unwrap(), b"one\n2\nthree\n");
    fixture.text(&tool, &json!({"path": "a.txt", "content": "mine\n"}));
}

#[test]
fn what_a_call_tells_about_its_file_is_said() {
    let fixture = workspace(&[("a.txt", "\u{feff}one\ntwo\n")]);
    let observed = |content: &str| {
        let outcome = fixture.call(&tool(), &json!({"path": "a.txt", "content": content}));
        outcome.file_observations
    };
    let whole = |kind, text: &str| {
        vec![FileObservation::of_text("a.txt", kind, text, LineRanges::all(count_lines(text)))]
    };
    assert_eq!(observed("other"), [], "it was not read: nothing was written");
    assert_eq!(observed("one\ntwo\n"), whole(ObservationKind::Confirmed, "one\ntwo\n"));
    assert_eq!(observed("1\n2\n"), whole(ObservationKind::Written, "1\n2\n"));
    fixture.write("a.txt", "1\n2\n3\n");
    assert_eq!(observed("mine\n"), whole(ObservationKind::Diffed, "1\n2\n3\n"));
    assert_eq!(observed("mine\n"), whole(ObservationKind::Written, "mine\n"));
}

#[test]
fn a_file_is_known_by_the_name_of_the_link_that_showed_it() {
    let fixture = workspace(&[("real.txt", "old\n")]);
    fixture.link("link.txt", "real.txt");
    fixture.show_item("link.txt", "old\n");
    fixture.failure(&tool(), &json!({"path": "real.txt", "content": "new\n"}));
    fixture.text(&tool(), &json!({"path": "link.txt", "content": "new\n"}));
}

#[test]
fn a_change_too_large_to_show_is_not_taken_as_seen() {
    let fixture = workspace(&[("a.txt", "one\n")]);
    let tool = tool();
    fixture.read("a.txt");
    let large: String = (0..2000).map(|line| format!("line {line}\n")).collect();
    fixture.write("a.txt", &large);
    for _ in 0..2 {
        let told = fixture.failure(&tool, &json!({"path": "a.txt", "content": "mine\n"}));
        assert!(told.ends_with("Read it again before you change it.") && told.len() < 5000, "{told}");
    }
}

#[test]
fn a_link_is_followed_within_the_workspace_and_not_out_of_it() {
    let fixture = workspace(&[("real.txt", "")]);
    fixture.link("link.txt", "real.txt");
    fixture.text(&tool(), &json!({"path": "link.txt", "content": "x"}));
    assert!(fixture.path("link.txt").is_symlink());
    assert_eq!(fs::read(fixture.path("real.txt")).unwrap(), b"x");

    let outside = fixture.outside();
    fixture.link("out", &outside);
    fixture.link("file", outside.join("not there"));
    for path in ["out/x", "file", "../x", outside.join("x").to_str().unwrap()] {
        fixture.failure(&tool(), &json!({"path": path, "content": "x"}));
    }
    assert!(!outside.join("x").exists() && !outside.join("not there").exists());
}

#[test]
fn a_link_put_in_the_way_after_the_check_is_not_followed() {
    let fixture = workspace(&[("folder/a.txt", "")]);
    let place = fixture.scope.resolve_for_write("folder/a.txt").unwrap();
    fs::create_dir(fixture.outside().join("elsewhere")).unwrap();
    fs::remove_dir_all(fixture.path("folder")).unwrap();
    fixture.link("folder", fixture.outside().join("elsewhere"));
    let trouble = crate::anchored_file::AnchoredFile::open(&place, MissingFolders::Create).unwrap_err();
    assert!(matches!(trouble, crate::anchored_file::FileChangeError::NotAFolder), "{trouble:?}");
}

#[test]
fn pipes_folders_and_read_only_files_are_refused_in_words() {
    let fixture = workspace(&[("folder/", ""), ("locked", "x")]);
    fixture.pipe("pipe");
    fs::set_permissions(fixture.path("locked"), fs::Permissions::from_mode(0o444)).unwrap();
    let tool = tool();
    fixture.read("locked");
    let fail = |path: &str| fixture.failure(&tool, &json!({"path": path, "content": "y"}));
    assert_eq!(
        fail("pipe"),
        "pipe is a device, a pipe or a socket, not a regular file: choose another name."
    );
    assert_eq!(fail("folder"), "folder is a directory: name a file in it.");
    assert!(fail("locked").starts_with("locked is read-only"));
    assert!(fail("locked/x").starts_with("locked"), "{}", fail("locked/x"));
    assert_eq!(fs::read(fixture.path("locked")).unwrap(), b"x");
}

#[test]
fn utf_16_is_not_replaced_by_something_else() {
    let fixture = workspace(&[]);
    fixture.write("a.txt", b"\xff\xfea\0\n\0");
    let tool = tool();
    fixture.read("a.txt");
    let told = fixture.failure(&tool, &json!({"path": "a.txt", "content": "b\n"}));
    assert!(told.starts_with("a.txt is UTF-16"), "{told}");
}

#[test]
fn a_wrong_argument_is_named() {
    let fixture = workspace(&[]);
    let told = fixture.failure(&tool(), &json!({"path": "a", "text": "x"}));
    assert!(told.contains("unknown field `text`"), "{told}");
}

/// A disk of 64 KiB in the workspace, unmounted when it is dropped. None where that takes rights we lack.
struct SmallDisk(std::path::PathBuf);

fn mount_small_disk(fixture: &TestWorkspace) -> Option<SmallDisk> {
    fixture.write("disk/", "");
    let path = fixture.path("disk");
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(&path)
        .output();
    let disk = mounted.is_ok_and(|output| output.status.success()).then_some(SmallDisk(path));
    prerequisite("a disk of its own", "run as root with the right to mount (CAP_SYS_ADMIN)", disk)
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_and_a_read_only_disk_leave_the_file_as_it_was() {
    let fixture = workspace(&[]);
    let Some(disk) = mount_small_disk(&fixture) else { return };
    let tool = tool();
    fixture.text(&tool, &json!({"path": "disk/a", "content": "old"}));
    let told = fixture.failure(&tool, &json!({"path": "disk/a", "content": "x".repeat(100_000)}));
    assert_eq!(told, "disk/a cannot be changed: there is no space left on the disk.");
    let remounted =
        std::process::Command::new("mount").args(["-o", "remount,ro"]).arg(&disk.0).status().unwrap();
    assert!(remounted.success());
    let told = fixture.failure(&tool, &json!({"path": "disk/a", "content": "new"}));
    assert!(told.contains("Read-only file system"), "{told}");
    assert_eq!(fs::read(fixture.path("disk/a")).unwrap(), b"old");
    assert_eq!(fs::read_dir(&disk.0).unwrap().count(), 1, "no temporary file is left");
}
