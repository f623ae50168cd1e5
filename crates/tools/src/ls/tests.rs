use std::fs::File;

use serde_json::Value;

use super::*;
use crate::test_workspace::workspace;

#[test]
#[cfg(unix)]
fn names_are_sorted_with_what_they_are() {
    let project =
        workspace(&[("src/", ""), ("b.txt", ""), ("A.txt", ""), (".hidden", ""), ("src/x", ""), ("é", "")]);
    project.link("link", "src");
    project.link("dangling", "/no/such\nplace");
    project.pipe("pipe");
    project.write("two\nlines\x1b", "");
    let expected =
        ".hidden\nA.txt\nb.txt\ndangling -> /no/such\\nplace\nlink -> src\npipe\nsrc/\ntwo\\nlines\x1b\né";
    let details = json!({"path": ".", "names": 9, "shown": 9});
    assert_eq!(project.call(&Ls, &json!({})), ToolOutcome::text(expected).with_details(details));
    assert_eq!(project.text(&Ls, &json!({"path": "link"})), "x");
}

#[test]
fn a_long_list_is_cut_with_a_notice() {
    let project = workspace(&[]);
    (0..700).for_each(|n| project.write(&format!("f{n:03}"), ""));
    let names = |count: usize| (0..count).map(|n| format!("f{n:03}\n")).collect::<String>();
    let notice = "raise limit, or use find with a pattern]";
    assert_eq!(project.text(&Ls, &json!({})), names(500) + "[500 of 700 names; " + notice);
    assert_eq!(project.text(&Ls, &json!({"limit": 2})), names(2) + "[2 of 700 names; " + notice);
    assert_eq!(project.text(&Ls, &json!({"limit": 700})) + "\n", names(700));
}

#[test]
fn the_first_names_are_shown_whatever_the_order_on_disk() {
    let project = workspace(&[]);
    (0..20_000).for_each(|n| drop(File::create(project.path(&format!("{n:05}"))).unwrap()));
    let listed = list_names(&File::open(project.path("")).unwrap(), 3, &CancelFlag::default()).unwrap();
    let names: Vec<&str> = listed.first.iter().map(|(_, line)| line.as_str()).collect();
    assert_eq!((names, listed.total), (vec!["00000", "00001", "00002"], 20_000));
    // However many are asked for, an answer has its size: 8,533 lines of 6 bytes.
    let text = project.text(&Ls, &json!({"limit": 1_000_000_000}));
    assert!(
        text.ends_with("\n08532\n[8533 of 20000 names; raise limit, or use find with a pattern]"),
        "{}",
        text.len()
    );
}

#[test]
fn what_is_no_folder_is_told_with_the_remedy() {
    let project = workspace(&[("src/a.rs", ""), ("empty/", "")]);
    assert_eq!(project.text(&Ls, &json!({"path": "empty"})), "[an empty folder]");
    assert_eq!(project.failure(&Ls, &json!({"path": "src/a.rs"})), "src/a.rs is a file: show it with read.");
    assert_eq!(project.failure(&Ls, &json!({"path": "scr"})), "scr does not exist. Nearest names: src");
    assert!(project.failure(&Ls, &json!({"path": ".."})).starts_with(".. is outside of the workspace."));
}

#[test]
#[cfg(target_os = "linux")]
fn names_that_are_not_unicode_are_shown_as_well_as_can_be() {
    use std::os::unix::ffi::OsStrExt;
    let project = workspace(&[]);
    let name = OsStr::from_bytes(b"gr\xfcn");
    std::fs::write(project.path("").join(name), "").unwrap();
    assert_eq!(project.text(&Ls, &json!({})), "gr\u{fffd}n");
}

#[test]
fn what_a_declaration_names_is_understood() {
    let all: Value = json!({"path": ".", "limit": 5});
    let schema = Ls.declaration().parameters.value();
    assert!(schema["properties"].as_object().unwrap().keys().eq(all.as_object().unwrap().keys()));
    assert_eq!(workspace(&[("a", "")]).text(&Ls, &all), "a");
}
