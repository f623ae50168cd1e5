use std::fs;

use tempfile::TempDir;

use super::*;

fn folder_of(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::Builder::new().tempdir_in(std::env::temp_dir().canonicalize().unwrap()).unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn instructions(root: &Path, folder: &Path, user: Option<&Path>) -> Vec<(String, String)> {
    let places = InstructionPlaces { root, working_directory: folder, user_folder: user, home: user };
    read_instructions(&FileGuard::for_folder(root), &places, InstructionKinds::ALL)
}

fn pair(path: &str, text: &str) -> (String, String) {
    (path.into(), text.into())
}

#[test]
fn the_user_s_come_first_and_then_those_on_the_way_down() {
    let user = folder_of(&[("CLAUDE.md", "user")]);
    let project = folder_of(&[
        ("AGENTS.md", "root"),
        ("CLAUDE.md", "also"),
        (".claude/CLAUDE.md", "hidden"),
        ("CLAUDE.local.md", "mine"),
        ("a/x", ""),
        ("a/b/CLAUDE.md", "deep"),
        ("a/b/c/AGENTS.md", "deeper"),
        ("other/AGENTS.md", "elsewhere"),
        (".github/copilot-instructions.md", "copilot"),
        (".cursor/rules/b.mdc", "---\nalwaysApply: true\n---\nrule\n"),
        (".cursor/rules/a.mdc", "---\nglobs: *.rs\n---\nnot always\n"),
    ]);
    let here = project.path().join("a/b");
    let expected = [
        pair("CLAUDE.md (user)", "user"),
        pair("AGENTS.md", "root"),
        pair("CLAUDE.md", "also"),
        pair(".claude/CLAUDE.md", "hidden"),
        pair("CLAUDE.local.md", "mine"),
        pair("a/b/CLAUDE.md", "deep"),
        pair(".github/copilot-instructions.md", "copilot"),
        pair(".cursor/rules/b.mdc", "rule"),
    ];
    assert_eq!(instructions(project.path(), &here, Some(user.path())), expected);
}

#[test]
fn each_kind_can_be_left_out() {
    let files = [
        ("AGENTS.md", "1"),
        ("CLAUDE.md", "2 @more.md"),
        ("CLAUDE.local.md", "3"),
        (".github/copilot-instructions.md", "4"),
        (".cursor/rules/b.mdc", "---\nalwaysApply: true\n---\n5"),
        ("more.md", "6"),
    ];
    let project = folder_of(&files);
    let root = project.path();
    let without = |change: fn(&mut InstructionKinds)| {
        let mut kinds = InstructionKinds::ALL;
        change(&mut kinds);
        let places = InstructionPlaces { root, working_directory: root, user_folder: None, home: None };
        let found = read_instructions(&FileGuard::for_folder(root), &places, kinds);
        found.iter().map(|(_, text)| text[..1].to_owned()).collect::<String>()
    };
    assert_eq!(without(|_| ()), "126345");
    assert_eq!(without(|kinds| kinds.agents_md = false), "26345");
    assert_eq!(without(|kinds| kinds.claude_md = false), "1345");
    assert_eq!(without(|kinds| kinds.claude_local_md = false), "12645");
    assert_eq!(without(|kinds| kinds.copilot_instructions = false), "12635");
    assert_eq!(without(|kinds| kinds.cursor_rules = false), "12634");
    assert_eq!(without(|kinds| kinds.imports = false), "12345");
}

#[test]
fn the_home_folder_has_the_user_s_instructions_if_the_config_folder_has_none() {
    let project = folder_of(&[("AGENTS.md", "project")]);
    let found = |config: &[(&str, &str)], home: &[(&str, &str)], kinds| {
        let (config, home) = (folder_of(config), folder_of(home));
        let places = InstructionPlaces {
            root: project.path(),
            working_directory: project.path(),
            user_folder: Some(config.path()),
            home: Some(home.path()),
        };
        let found = read_instructions(&FileGuard::for_folder(project.path()), &places, kinds);
        assert_eq!(found.last(), Some(&pair("AGENTS.md", "project")));
        found[..found.len() - 1].to_vec()
    };
    let own = [("CLAUDE.md", "own")];
    let claude = (".claude/CLAUDE.md", "claude @more.md @~/x.md");
    let codex = (".codex/AGENTS.md", "codex");
    let both = [claude, codex, (".claude/more.md", "more"), ("x.md", "x")];
    let of_claude =
        [pair("~/.claude/CLAUDE.md", claude.1), pair("more.md (user)", "more"), pair("~/x.md (user)", "x")];
    let of_codex = [pair("~/.codex/AGENTS.md", "codex")];
    let all = InstructionKinds::ALL;
    assert_eq!(found(&own, &both, all), [pair("CLAUDE.md (user)", "own")]);
    assert_eq!(found(&[], &both, all), of_claude);
    assert_eq!(found(&[("AGENTS.md", " \n")], &both, all), of_claude);
    assert_eq!(found(&[], &[(claude.0, "\n"), codex], all), of_codex);
    assert_eq!(found(&own, &both, InstructionKinds { claude_md: false, ..all }), of_claude);
    assert_eq!(found(&[], &both, InstructionKinds { home_claude_md: false, ..all }), of_codex);
    let neither = InstructionKinds { home_claude_md: false, home_codex_md: false, ..all };
    assert_eq!(found(&[], &both, neither), []);
}

#[test]
fn a_project_that_is_the_home_folder_gives_its_instructions_once() {
    let home = folder_of(&[(".claude/CLAUDE.md", "mine")]);
    let places = InstructionPlaces {
        root: home.path(),
        working_directory: home.path(),
        user_folder: None,
        home: Some(home.path()),
    };
    let found = read_instructions(&FileGuard::for_folder(home.path()), &places, InstructionKinds::ALL);
    assert_eq!(found, [pair("~/.claude/CLAUDE.md", "mine")]);
}

#[test]
fn no_file_is_given_twice() {
    let project = folder_of(&[("AGENTS.md", "x")]);
    let expected = [pair("AGENTS.md (user)", "x")];
    assert_eq!(instructions(project.path(), project.path(), Some(project.path())), expected);
}

#[test]
fn two_files_that_say_the_same_are_sent_once() {
    let expected = [pair("AGENTS.md", "same\n")];
    let copied = folder_of(&[("AGENTS.md", "same\n"), ("CLAUDE.md", "same")]);
    assert_eq!(instructions(copied.path(), copied.path(), None), expected);
    let importing = folder_of(&[("AGENTS.md", "same\n"), ("CLAUDE.md", "@AGENTS.md\n")]);
    assert_eq!(instructions(importing.path(), importing.path(), None), expected);
    let linked = folder_of(&[("AGENTS.md", "same\n")]);
    std::os::unix::fs::symlink("AGENTS.md", linked.path().join("CLAUDE.md")).unwrap();
    assert_eq!(instructions(linked.path(), linked.path(), None), expected);
    let reversed = folder_of(&[("AGENTS.md", "@CLAUDE.md"), ("CLAUDE.md", "same\n")]);
    assert_eq!(instructions(reversed.path(), reversed.path(), None), [pair("CLAUDE.md", "same\n")]);
}

#[test]
fn imports_follow_the_file_that_names_them() {
    let project = folder_of(&[
        ("CLAUDE.md", "See @docs/a.md, @nobody, @types/node and `@docs/no.md`."),
        ("docs/a.md", "a: @b.md @../CLAUDE.md"),
        ("docs/b.md", "b: @a.md"),
        ("docs/no.md", "no"),
        ("d0.md", "0 @d1.md"),
    ]);
    let expected = [
        pair("CLAUDE.md", "See @docs/a.md, @nobody, @types/node and `@docs/no.md`."),
        pair("docs/a.md", "a: @b.md @../CLAUDE.md"),
        pair("docs/b.md", "b: @a.md"),
    ];
    assert_eq!(instructions(project.path(), project.path(), None), expected);
}

#[test]
fn imports_end() {
    let names: Vec<String> = (0..9).map(|at| format!("d{at}.md")).collect();
    let texts: Vec<String> = (1..10).map(|at| format!("{at} @d{at}.md")).collect();
    let mut files: Vec<(&str, &str)> =
        names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
    files.push(("CLAUDE.md", "start @d0.md"));
    let project = folder_of(&files);
    let found = instructions(project.path(), project.path(), None);
    let shown: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(shown, ["CLAUDE.md", "d0.md", "d1.md", "d2.md", "d3.md", "d4.md", "d5.md"]);
    assert_eq!(found[6].1, "[not read: at most 50 files are imported, 5 deep]");
}

#[test]
fn only_the_user_s_own_file_imports_from_elsewhere() {
    let home = folder_of(&[
        ("mine.md", "mine @deeper.md"),
        ("deeper.md", "deeper"),
        ("CLAUDE.md", "user @~/mine.md"),
    ]);
    let absolute = home.path().join("deeper.md");
    let project = folder_of(&[("CLAUDE.md", &format!("x @~/mine.md @{} @../deeper.md", absolute.display()))]);
    let found = instructions(project.path(), project.path(), Some(home.path()));
    assert_eq!(found[0], pair("CLAUDE.md (user)", "user @~/mine.md"));
    assert_eq!(found[1], pair("~/mine.md (user)", "mine @deeper.md"));
    assert_eq!(found[2], pair("deeper.md (user)", "deeper"));
    assert_eq!(found[3].0, "CLAUDE.md");
    assert_eq!(
        found[4],
        pair("~/mine.md", "[not read: a project's file cannot import from your home folder]")
    );
    assert_eq!(found[5].1, "[not read: it links to a place outside the project]");
    assert!(found[4..].iter().all(|(_, text)| text.starts_with("[not read")), "{found:?}");
}

#[test]
fn a_project_s_file_that_the_user_imports_stays_a_project_s_file() {
    let project = folder_of(&[("docs/a.md", "a @~/secret.md")]);
    let home = folder_of(&[("secret.md", "secret")]);
    fs::write(home.path().join("CLAUDE.md"), format!("u @{}/docs/a.md", project.path().display())).unwrap();
    let found = instructions(project.path(), project.path(), Some(home.path()));
    assert!(found.iter().all(|(_, text)| text != "secret"), "{found:?}");
    assert_eq!(found.len(), 3);
}

#[test]
fn a_working_directory_elsewhere_counts_as_the_root() {
    let project = folder_of(&[("AGENTS.md", "x")]);
    let elsewhere = folder_of(&[("AGENTS.md", "y")]);
    assert_eq!(instructions(project.path(), elsewhere.path(), None), [pair("AGENTS.md", "x")]);
}

#[test]
fn an_empty_file_is_left_out_and_an_unreadable_one_is_not() {
    let project = folder_of(&[("AGENTS.md", " \n"), ("a/x", "")]);
    fs::write(project.path().join("a/AGENTS.md"), b"caf\xe9!").unwrap();
    let found = instructions(project.path(), &project.path().join("a"), None);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, "a/AGENTS.md");
    assert!(found[0].1.starts_with("[not read: it is not UTF-8 (byte 3"), "{found:?}");
}

#[test]
#[cfg(unix)]
fn a_link_out_of_the_project_is_not_read() {
    use std::os::unix::fs::symlink;
    let secret = folder_of(&[("key", "secret")]);
    let project = folder_of(&[("docs/guide.md", "inside"), ("a/x", ""), ("a/b/x", "")]);
    symlink("docs/guide.md", project.path().join("AGENTS.md")).unwrap();
    symlink(secret.path().join("key"), project.path().join("a/AGENTS.md")).unwrap();
    symlink("nowhere", project.path().join("a/b/AGENTS.md")).unwrap();
    let expected = [
        pair("AGENTS.md", "inside"),
        pair("a/AGENTS.md", "[not read: it links to a place outside the project]"),
        pair("a/b/AGENTS.md", "[not read: it links to a file that does not exist]"),
    ];
    assert_eq!(instructions(project.path(), &project.path().join("a/b"), None), expected);
}
