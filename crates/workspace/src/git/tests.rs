//! Git without a sandbox: what its own settings and checks are good for. The tests of the command line
//! have the sandbox.

use std::fs;
use std::process::Command;

use tempfile::tempdir;

use super::*;

fn git(folder: &Path, arguments: &[&str]) {
    let status = Command::new("git").arg("-C").arg(folder).args(arguments).status();
    assert!(status.unwrap().success());
}

fn options() -> GitOptions {
    GitOptions {
        programs: Programs::find(std::env::var_os("PATH").as_deref(), &[]),
        confinement: GitConfinement::None,
        hidden: Vec::new(),
        home: None,
        config_home: None,
        cache: None,
    }
}

fn git_status(root: &Path) -> Option<String> {
    Git::new(root, options()).status().unwrap()
}

fn problem(root: &Path) -> RepositoryProblem {
    match Git::new(root, options()).status() {
        Err(GitError::Repository(problem)) => problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_branch_and_the_changes_are_told() {
    let folder = tempdir().unwrap();
    git(folder.path(), &["init", "--quiet", "--initial-branch=main"]);
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("src/a b.rs"), "").unwrap();
    fs::write(folder.path().join("ü"), "").unwrap();
    git(folder.path(), &["add", "src"]);
    let expected = "## No commits yet on main\nA  \"src/a b.rs\"\n?? ü\n";
    assert_eq!(git_status(folder.path()).as_deref(), Some(expected));
}

#[test]
fn a_status_after_changes_is_the_one_that_a_whole_status_tells() {
    let folder = tempdir().unwrap();
    let root = folder.path();
    git(root, &["init", "--quiet", "--initial-branch=main"]);
    let names =
        ["a", "b", "src/c", "src/d", "src/deep/e", "src/deep/f", "other/g", "x y", "ü", "lib/h", "lib/i"];
    let write = |name: &str, text: &str| {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), text).unwrap();
    };
    names[..9].iter().for_each(|name| write(name, "1\n"));
    git(root, &["add", "."]);
    git(root, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "1"]);
    let status = Git::new(root, options());
    let mut before = status.status().unwrap().unwrap();
    let mut seed = 11_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let mut kinds = std::collections::BTreeSet::new();
    for round in 0..60 {
        let mut changes = StatusChanges::default();
        for _ in 0..=random(2) {
            let name = names[random(names.len())].to_owned();
            let is_there = root.join(&name).exists();
            if random(3) == 0 && is_there {
                fs::remove_file(root.join(&name)).unwrap();
                // Folders without files are gone for git.
                root.join(&name).parent().filter(|folder| *folder != root).map(fs::remove_dir);
                changes.add([&name], true);
            } else {
                write(&name, if random(3) == 0 { "1\n" } else { "22\n" });
                changes.add([&name], !is_there);
            }
        }
        if random(8) == 0 {
            git(root, &["add", names[random(2)]]);
            before = status.status().unwrap().unwrap();
        }
        let after = status.status_after(&before, &changes).unwrap().unwrap();
        assert_eq!(Some(&after), status.status().unwrap().as_ref(), "{round}: {before}{changes:?}");
        kinds.extend(after.lines().map(|line| line[..2].to_owned()));
        before = after;
    }
    assert!(["##", " M", " D", "??"].iter().all(|kind| kinds.contains(*kind)), "{kinds:?}");
}

#[test]
fn a_folder_that_is_no_repository_or_missing_has_no_status() {
    let folder = tempdir().unwrap();
    assert_eq!(git_status(folder.path()), None);
    assert_eq!(git_status(&folder.path().join("none")), None);
}

#[test]
fn the_status_runs_no_file_monitor() {
    let folder = tempdir().unwrap();
    git(folder.path(), &["init", "--quiet"]);
    let witness = folder.path().join("witness");
    git(folder.path(), &["config", "core.fsmonitor", &format!("touch {} #", witness.display())]);
    assert!(git_status(folder.path()).is_some());
    assert!(!witness.exists());
}

#[test]
fn the_status_runs_no_filter_that_the_repository_names() {
    let folder = tempdir().unwrap();
    let witness = folder.path().join(".git/witness");
    git(folder.path(), &["init", "--quiet", "--initial-branch=main"]);
    fs::write(folder.path().join("a"), "text\n").unwrap();
    git(folder.path(), &["add", "a"]);
    fs::write(folder.path().join(".git/info/attributes"), "a filter=x=y\n").unwrap();
    // Of the same length, so that git has to look into it.
    let changed = || fs::write(folder.path().join("a"), "TEXT\n").unwrap();
    for (key, required) in [("clean", "false"), ("process", "false"), ("clean", "true")] {
        git(folder.path(), &["config", "filter.x=y.required", required]);
        let program = format!("touch {}; cat", witness.display());
        git(folder.path(), &["config", &format!("filter.x=y.{key}"), &program]);
        changed();
        let expected = "## No commits yet on main\nAM a\n";
        assert_eq!(git_status(folder.path()).as_deref(), Some(expected), "{key}");
        assert!(!witness.exists(), "{key}");
    }
    // It would have been run.
    git(folder.path(), &["config", "--unset", "filter.x=y.process"]);
    git(folder.path(), &["status", "--short"]);
    assert!(witness.exists());
}

#[test]
fn the_status_fetches_nothing_that_a_partial_clone_lacks() {
    let folder = tempdir().unwrap();
    let witness = folder.path().join(".git/witness");
    git(folder.path(), &["init", "--quiet", "--initial-branch=main"]);
    fs::write(folder.path().join("a"), "some text\n".repeat(50)).unwrap();
    git(folder.path(), &["add", "a"]);
    git(folder.path(), &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "a"]);
    git(folder.path(), &["mv", "a", "b"]);
    fs::write(folder.path().join("b"), "some text\n".repeat(51)).unwrap();
    git(folder.path(), &["add", "b"]);
    // What was committed is missing, and would be fetched to tell whether the file was renamed.
    let object = Command::new("git").arg("-C").arg(folder.path()).args(["rev-parse", "HEAD:a"]).output();
    let object = String::from_utf8(object.unwrap().stdout).unwrap();
    let (start, rest) = object.trim().split_at(2);
    fs::remove_file(folder.path().join(".git/objects").join(start).join(rest)).unwrap();
    for (key, value) in [
        ("core.repositoryFormatVersion", "1".to_owned()),
        ("extensions.partialClone", "origin".to_owned()),
        ("remote.origin.promisor", "true".to_owned()),
        ("remote.origin.url", folder.path().display().to_string()),
        ("remote.origin.uploadpack", format!("touch {}; false", witness.display())),
    ] {
        git(folder.path(), &["config", key, &value]);
    }
    assert!(matches!(Git::new(folder.path(), options()).status(), Err(GitError::Failed { .. })));
    assert!(!witness.exists());
    // It would have been run.
    let status = Command::new("git").arg("-C").arg(folder.path()).args(["status", "--short"]).output();
    assert!(status.is_ok() && witness.exists());
}

#[test]
fn the_root_is_the_nearest_folder_with_a_git_folder_or_file() {
    let folder = tempdir().unwrap();
    let inner = folder.path().join("module/src");
    fs::create_dir_all(&inner).unwrap();
    assert_eq!(find_project_root(&inner), inner);
    fs::create_dir(folder.path().join(".git")).unwrap();
    assert_eq!(find_project_root(&inner), folder.path());
    fs::write(folder.path().join("module/.git"), "gitdir: ../.git/modules/module").unwrap();
    assert_eq!(find_project_root(&inner), folder.path().join("module"));
}

/// A repository with one commit, and the folder that it is in, without links.
fn repository() -> (tempfile::TempDir, PathBuf) {
    let place = tempdir().unwrap();
    let root = place.path().canonicalize().unwrap().join("main");
    fs::create_dir(&root).unwrap();
    git(&root, &["init", "--quiet", "--initial-branch=main"]);
    fs::write(root.join("a"), "a\n").unwrap();
    git(&root, &["add", "a"]);
    git(&root, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "a"]);
    (place, root)
}

#[test]
fn linked_work_trees_and_submodules_have_a_status() {
    let (place, root) = repository();
    let (linked, relative) = (root.with_file_name("linked"), root.with_file_name("relative"));
    git(&root, &["worktree", "add", "--quiet", "-b", "other", linked.to_str().unwrap()]);
    fs::write(linked.join("b"), "").unwrap();
    assert_eq!(git_status(&linked).as_deref(), Some("## other\n?? b\n"));
    // As newer versions of git can link them.
    git(&root, &["worktree", "add", "--quiet", "-b", "third", relative.to_str().unwrap()]);
    fs::write(relative.join(".git"), "gitdir: ../main/.git/worktrees/relative\n").unwrap();
    fs::write(root.join(".git/worktrees/relative/gitdir"), "../../../../relative/.git\n").unwrap();
    assert_eq!(git_status(&relative).as_deref(), Some("## third\n"));
    let outer = place.path().canonicalize().unwrap().join("outer");
    fs::create_dir(&outer).unwrap();
    git(&outer, &["init", "--quiet", "--initial-branch=main"]);
    let allow = ["-c", "protocol.file.allow=always"];
    git(&outer, &[&allow[..], &["submodule", "--quiet", "add", root.to_str().unwrap(), "sub"]].concat());
    fs::write(outer.join("sub/c"), "").unwrap();
    assert_eq!(git_status(&outer.join("sub")).as_deref(), Some("## main...origin/main\n?? c\n"));
    assert_eq!(
        git_status(&outer).as_deref(),
        Some("## No commits yet on main\nA  .gitmodules\nA  sub\n"),
        "what is in it is not told"
    );
}

#[test]
fn a_repository_that_names_another_one_is_left_out() {
    let (place, private) = repository();
    let work = place.path().canonicalize().unwrap().join("work");
    let again = || {
        let _ = fs::remove_dir_all(&work);
        fs::create_dir(&work).unwrap();
        work.join(".git")
    };
    let is_problem = |name: &str| {
        let told = problem(&work);
        assert!(!told.to_string().is_empty(), "{name}");
    };
    // A file that names another repository, one of its work trees, or something made up.
    fs::write(again(), format!("gitdir: {}/.git\n", private.display())).unwrap();
    is_problem("a file");
    let linked = private.with_file_name("linked");
    git(&private, &["worktree", "add", "--quiet", "-b", "other", linked.to_str().unwrap()]);
    fs::write(again(), format!("gitdir: {}/.git/worktrees/linked\n", private.display())).unwrap();
    is_problem("a work tree of others");
    fs::write(again(), "gitdir: fake/worktrees/x\n").unwrap();
    let fake = work.join("fake/worktrees/x");
    fs::create_dir_all(&fake).unwrap();
    fs::write(fake.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(fake.join("gitdir"), format!("{}\n", work.join(".git").display())).unwrap();
    fs::write(fake.join("commondir"), format!("{}/.git\n", private.display())).unwrap();
    is_problem("a made-up work tree");
    // Links.
    std::os::unix::fs::symlink(private.join(".git"), again()).unwrap();
    is_problem("a link");
    std::os::unix::fs::symlink("missing", again()).unwrap();
    is_problem("a broken link");
    // A folder that borrows, or that works elsewhere.
    again();
    git(&work, &["init", "--quiet"]);
    fs::write(work.join(".git/commondir"), format!("{}/.git\n", private.display())).unwrap();
    is_problem("commondir");
    again();
    git(&work, &["init", "--quiet"]);
    fs::write(work.join(".git/objects/info/alternates"), format!("{}/.git/objects\n", private.display()))
        .unwrap();
    is_problem("alternates");
    for scope in [&["config"][..], &["config", "--worktree"]] {
        again();
        git(&work, &["init", "--quiet"]);
        git(&work, &["config", "extensions.worktreeConfig", "true"]);
        git(&work, &[scope, &["core.worktree", private.to_str().unwrap()]].concat());
        assert_eq!(problem(&work), RepositoryProblem::OtherWorkTree, "{scope:?}");
    }
    // In a file that the settings include.
    again();
    git(&work, &["init", "--quiet"]);
    git(&work, &["config", "include.path", "more"]);
    fs::write(work.join(".git/more"), format!("[core]\n\tworkTree = {}\n", private.display())).unwrap();
    assert_eq!(problem(&work), RepositoryProblem::OtherWorkTree);
}

#[test]
fn without_a_sandbox_or_a_program_there_is_an_error_and_no_status() {
    let (_place, root) = repository();
    let refused = GitOptions { confinement: GitConfinement::Refused("no kernel".into()), ..options() };
    assert!(
        matches!(Git::new(&root, refused).status(), Err(GitError::NoSandbox(reason)) if reason == "no kernel")
    );
    let changeable = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    let programs = Programs::find(std::env::var_os("PATH").as_deref(), &changeable.unwrap_or_default());
    assert!(matches!(
        Git::new(&root, GitOptions { programs, ..options() }).status(),
        Err(GitError::NotFound)
    ));
}

#[test]
fn the_user_s_own_settings_count_below_those_of_the_repository() {
    let (place, root) = repository();
    let home = place.path().join("home");
    fs::create_dir_all(home.join(".config/git")).unwrap();
    fs::write(
        home.join(".gitconfig"),
        "[user]\n\tname = \"A \\\"B\\\" \\\\ C\"\n\temail = a@b\n[core]\n\texcludesFile = ~/ignored\n\tfsmonitor = evil\n[includeIf \"gitdir:**/main/\"]\n\tpath = work\n[commit]\n\tgpgSign = true\n",
    )
    .unwrap();
    fs::write(home.join("work"), "[user]\n\temail = work@b\n").unwrap();
    fs::write(home.join("ignored"), "*.tmp\n").unwrap();
    fs::write(root.join("x.tmp"), "").unwrap();
    let options =
        GitOptions { home: Some(home.clone()), cache: Some(place.path().join("cache")), ..options() };
    let own = Git::new(&root, options.clone());
    assert_eq!(own.status().unwrap().as_deref(), Some("## main\n"));
    let read =
        |git: &Git, name: &str| lossy(&git.read(&["config", name], 1000).unwrap()).trim_end().to_owned();
    assert_eq!(read(&own, "user.name"), "A \"B\" \\ C");
    assert_eq!(read(&own, "user.email"), "work@b");
    assert_eq!(read(&own, "core.fsmonitor"), "false");
    assert!(own.signs_commits().unwrap());
    git(&root, &["config", "user.email", "repository@b"]);
    git(&root, &["config", "commit.gpgSign", "false"]);
    assert_eq!(read(&own, "user.email"), "repository@b");
    assert!(!own.signs_commits().unwrap());
    // What git ignores by itself.
    fs::write(home.join(".gitconfig"), "").unwrap();
    fs::write(home.join(".config/git/ignore"), "*.tmp\n").unwrap();
    assert_eq!(Git::new(&root, options).status().unwrap().as_deref(), Some("## main\n"));
}

/// What a repository can name to be run when somebody looks at it. Here nothing but the arguments and
/// settings of [`Git`] keeps it from running.
#[test]
fn reading_runs_nothing_that_settings_and_attributes_name() {
    let folder = tempdir().unwrap();
    let witness = folder.path().join(".git/witness");
    git(folder.path(), &["init", "--quiet", "--initial-branch=main"]);
    fs::write(folder.path().join("a"), "text\n").unwrap();
    fs::write(folder.path().join(".gitattributes"), "a diff=x\n").unwrap();
    git(folder.path(), &["add", "."]);
    let person = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "first"];
    git(folder.path(), &person);
    fs::write(folder.path().join("a"), "other\n").unwrap();
    let program = folder.path().join(".git/program");
    fs::write(&program, format!("#!/bin/sh\ntouch {}\ncat \"$1\" 2>/dev/null\n", witness.display())).unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for setting in [
        "diff.external",
        "diff.x.command",
        "diff.x.textconv",
        "core.fsmonitor",
        "core.pager",
        "pager.log",
        "pager.diff",
        "gpg.program",
        "core.editor",
        "interactive.diffFilter",
        "core.sshCommand",
        "core.alternateRefsCommand",
    ] {
        git(folder.path(), &["config", setting, &program.to_string_lossy()]);
    }
    git(folder.path(), &["config", "log.showSignature", "true"]);
    let reader = Git::new(folder.path(), options());
    for line in [
        "diff",
        "diff --cached",
        "diff --stat",
        "log -p",
        "log -p -Stext",
        "log --format=%G?%GS",
        "show",
        "show HEAD:a",
        "blame a",
        "grep other",
        "grep nothing-of-this-kind",
        "status --short",
        "describe --always --dirty",
        "branch --all",
        "ls-files --others",
    ] {
        let arguments: Vec<&str> = line.split(' ').collect();
        let printed = reader.read(&arguments, 100_000);
        assert!(printed.is_ok(), "{line}: {printed:?}");
        assert!(!witness.exists(), "git {line} ran a program");
    }
    // As a check of the test: git as a user would run it.
    let _ = Command::new("git").arg("-C").arg(folder.path()).arg("diff").output().unwrap();
    assert!(witness.exists());
}

#[test]
fn settings_of_a_submodule_run_nothing_either() {
    let folder = tempdir().unwrap();
    let (inner, outer) = (folder.path().join("inner"), folder.path().join("outer"));
    let person = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"];
    for repository in [&inner, &outer] {
        fs::create_dir(repository).unwrap();
        git(repository, &["init", "--quiet", "--initial-branch=main"]);
        fs::write(repository.join("a"), "text\n").unwrap();
        git(repository, &["add", "."]);
        git(repository, &[&person[..], &["commit", "--quiet", "-m", "first"]].concat());
    }
    let path = inner.to_string_lossy().into_owned();
    git(&outer, &[&person[..], &["submodule", "--quiet", "add", &path, "part"]].concat());
    let witness = folder.path().join("witness");
    let program = format!("touch {} #", witness.display());
    git(&outer.join("part"), &["config", "core.fsmonitor", &program]);
    fs::write(outer.join("part/a"), "TEXT\n").unwrap();
    let reader = Git::new(&outer, options());
    for line in ["status --short", "diff", "diff --stat", "describe --always --dirty"] {
        let arguments: Vec<&str> = line.split(' ').collect();
        reader.read(&arguments, 100_000).unwrap();
        assert!(!witness.exists(), "git {line} ran a program of the submodule");
    }
    git(&outer, &["status", "--short"]);
    assert!(witness.exists(), "the test shows something");
}
