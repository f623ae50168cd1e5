use std::fs;

use proptest::prelude::*;

use super::*;
use crate::test_workspace::{TestWorkspace, workspace};

/// A workspace with something outside of it.
fn project() -> TestWorkspace {
    let project = workspace(&[("src/a.rs", "a"), ("src/deep/b.rs", "b"), (".git/config", "c")]);
    fs::write(project.outside().join("secret"), "s").unwrap();
    fs::create_dir(project.outside().join("project-2")).unwrap();
    project
}

fn outside(path: &str) -> Result<PathBuf, ScopeError> {
    Err(ScopeError::Outside { path: path.into() })
}

#[test]
fn what_is_inside_is_found_by_every_name() {
    let project = project();
    let place = Ok(project.path("src/a.rs"));
    let absolute = project.path("src/a.rs").to_str().unwrap().to_owned();
    for path in ["src/a.rs", "./src//a.rs", "src/deep/../a.rs", "../project/src/a.rs", &absolute] {
        assert_eq!(project.scope.resolve_for_read(path), place, "{path}");
    }
    assert_eq!(project.scope.resolve_for_read("."), Ok(project.path("")));
    assert_eq!(project.scope.resolve_for_read("src/new/c.rs"), Ok(project.path("src/new/c.rs")));
    assert_eq!(project.scope.resolve_for_read(".git/config"), Ok(project.path(".git/config")));
}

#[test]
fn what_is_outside_is_refused_by_every_name() {
    let project = project();
    let absolute = project.outside().join("secret").to_str().unwrap().to_owned();
    // A folder whose name begins like the workspace's is another folder.
    for path in [
        "..",
        "../secret",
        "src/../../secret",
        "../project-2",
        "../project-2/new",
        "/etc/passwd",
        "/",
        &absolute,
    ] {
        assert_eq!(project.scope.resolve_for_read(path), outside(path));
        assert_eq!(project.scope.resolve_for_write(path), Err(ScopeError::Unwritable { path: path.into() }));
    }
}

#[test]
fn nothing_goes_up_from_what_does_not_exist() {
    let project = project();
    for path in ["missing/../../secret", "missing/..", "missing/../src/a.rs", "src/no/../../../../etc/passwd"]
    {
        let unclear = Err(ScopeError::ParentOfMissing { path: path.into() });
        assert_eq!(project.scope.resolve_for_read(path), unclear);
        assert_eq!(project.scope.resolve_for_write(path), unclear);
    }
}

#[test]
fn a_path_that_names_nothing_is_refused_with_the_remedy() {
    let project = project();
    assert_eq!(project.scope.resolve_for_read(""), Err(ScopeError::Empty));
    assert_eq!(project.scope.resolve_for_read("a\0b"), Err(ScopeError::Nul { path: "a\0b".into() }));
    assert_eq!(
        ScopeError::Nul { path: "a\0b".into() }.to_string(),
        r#""a\0b" holds a NUL character, which no path can: leave it out"#
    );
    for path in ["~", "~/.ssh/id_rsa"] {
        assert_eq!(project.scope.resolve_for_write(path), Err(ScopeError::Tilde { path: path.into() }));
    }
    project.write("~/a", "literally");
    assert_eq!(project.scope.resolve_for_read("~/a"), Ok(project.path("~/a")));
    let long = "x".repeat(5000);
    assert!(matches!(project.scope.resolve_for_read(&long), Err(ScopeError::Unresolvable { .. })));
    assert!(matches!(project.scope.resolve_for_read("src/a.rs/b"), Err(ScopeError::Unresolvable { .. })));
}

#[test]
#[cfg(unix)]
fn links_are_followed_before_the_place_is_judged() {
    let project = project();
    project.link("out", "../secret");
    project.link("out-folder", "..");
    project.link("second", "out");
    project.link("in", "src/a.rs");
    project.link("in-again", "in");
    project.link("up", "src/deep");
    for path in
        ["out", "second", "out-folder/secret", "out-folder/new", "src/../out", "out-folder/project-2/x"]
    {
        assert_eq!(project.scope.resolve_for_read(path), outside(path));
        assert!(
            matches!(project.scope.resolve_for_write(path), Err(ScopeError::Unwritable { .. })),
            "{path}"
        );
    }
    assert_eq!(project.scope.resolve_for_read("in-again"), Ok(project.path("src/a.rs")));
    assert_eq!(project.scope.resolve_for_read("out-folder/project/src/a.rs"), Ok(project.path("src/a.rs")));
    // `..` after a link goes up from where the link leads.
    assert_eq!(project.scope.resolve_for_read("up/../a.rs"), Ok(project.path("src/a.rs")));
    assert_eq!(project.scope.resolve_for_write("up/new.rs"), Ok(project.path("src/deep/new.rs")));
}

#[test]
#[cfg(unix)]
fn a_link_that_leads_nowhere_or_round_is_refused() {
    let project = project();
    project.link("dangling", "../not-yet");
    project.link("chained", "dangling");
    project.link("a", "b");
    project.link("b", "a");
    project.link("self", "self");
    for path in ["dangling", "chained", "dangling/x", "a", "a/x", "self"] {
        for judged in [project.scope.resolve_for_read(path), project.scope.resolve_for_write(path)] {
            assert!(matches!(judged, Err(ScopeError::Unresolvable { .. })), "{path}: {judged:?}");
        }
    }
    let why =
        format!("dangling cannot be followed: the link {} leads nowhere", project.path("dangling").display());
    assert_eq!(project.scope.resolve_for_read("dangling").unwrap_err().to_string(), why);
}

#[test]
#[cfg(unix)]
fn a_workspace_may_itself_be_a_link() {
    let project = project();
    let link = project.outside().join("link");
    std::os::unix::fs::symlink(project.path(""), &link).unwrap();
    let scope = Scope::new(&link, link.join("src"));
    assert_eq!(scope.resolve_for_read("a.rs"), Ok(project.path("src/a.rs")));
    assert_eq!(scope.resolve_for_read(link.join("src/a.rs").to_str().unwrap()), Ok(project.path("src/a.rs")));
    assert_eq!(
        scope.resolve_for_read(project.path("src/a.rs").to_str().unwrap()),
        Ok(project.path("src/a.rs"))
    );
    assert_eq!(scope.resolve_for_read("../../secret"), outside("../../secret"));
    assert_eq!(scope.display_name(&project.path("src/a.rs")), "a.rs");
}

#[test]
fn a_workspace_that_does_not_exist_holds_nothing() {
    let project = project();
    let scope = Scope::new(project.path("none"), project.path("none"));
    assert_eq!(scope.resolve_for_read("a"), outside("a"));
    assert_eq!(scope.resolve_for_write("a"), Err(ScopeError::Unwritable { path: "a".into() }));
}

#[test]
fn what_else_is_allowed_may_be_read_and_not_written() {
    let mut project = project();
    let beside = project.outside().join("project-2");
    fs::write(beside.join("x"), "").unwrap();
    project.scope.readable = vec![beside.clone(), project.outside().join("none")];
    assert_eq!(project.scope.resolve_for_read("../project-2/x"), Ok(beside.join("x")));
    assert!(matches!(project.scope.resolve_for_write("../project-2/x"), Err(ScopeError::Unwritable { .. })));
    assert_eq!(project.scope.resolve_for_read("../secret"), outside("../secret"));
    assert_eq!(project.scope.display_name(&beside.join("x")), beside.join("x").to_str().unwrap());
}

#[cfg(unix)]
#[test]
fn a_folder_that_became_a_link_since_leads_nowhere() {
    let mut project = project();
    let beside = project.outside().join("project-2");
    fs::write(beside.join("x"), "").unwrap();
    // A link that the user made is followed, as it is now.
    std::os::unix::fs::symlink(&beside, project.outside().join("link")).unwrap();
    let link = project.outside().join("link");
    project.scope.add_readable(&link);
    assert_eq!(project.scope.resolve_for_read("../link/x"), Ok(beside.join("x")));
    for folder in [beside, project.scope.root.clone()] {
        let moved = project.outside().join("moved");
        fs::rename(&folder, &moved).unwrap();
        std::os::unix::fs::symlink(project.outside(), &folder).unwrap();
        let secret = folder.join("secret");
        let secret = secret.to_str().unwrap();
        assert_eq!(project.scope.resolve_for_read(secret), outside(secret));
        assert!(project.scope.resolve_for_write(secret).is_err());
        fs::remove_file(&folder).unwrap();
        fs::rename(&moved, &folder).unwrap();
    }
}

#[test]
fn git_s_own_files_are_never_written() {
    let project = project();
    #[cfg(unix)]
    project.link("hooks", ".git");
    for path in [
        ".git",
        ".git/config",
        ".git/hooks/new",
        "src/.GIT/x",
        "src/git~1/x",
        #[cfg(unix)]
        "hooks/x",
    ] {
        assert_eq!(project.scope.resolve_for_write(path), Err(ScopeError::Git { path: path.into() }));
    }
    for path in [".gitignore", "src/.github/x", "a.git/x"] {
        assert_eq!(project.scope.resolve_for_write(path), Ok(project.path(path)));
    }
}

#[test]
fn a_relative_path_is_meant_from_the_folder_and_else_from_the_root() {
    let project = workspace(&[("a.rs", ""), ("lib/a.rs", ""), ("lib/src/b.rs", ""), ("docs/c.md", "")]);
    let scope = Scope::new(project.path(""), project.path("lib"));
    let place = |path| scope.resolve_for_write(path).map(|place| scope.workspace_path(&place));
    assert_eq!(place("a.rs"), Ok("lib/a.rs".into()));
    assert_eq!(place("../a.rs"), Ok("a.rs".into()));
    assert_eq!(place("lib/src/b.rs"), Ok("lib/src/b.rs".into()));
    assert_eq!(place("docs/c.md"), Ok("docs/c.md".into()));
    // Nothing there yet: where its folder is.
    assert_eq!(place("src/new.rs"), Ok("lib/src/new.rs".into()));
    assert_eq!(place("lib/src/new.rs"), Ok("lib/src/new.rs".into()));
    assert_eq!(place("new/new.rs"), Ok("lib/new/new.rs".into()));
    // Names in answers lead back to where they came from.
    for (path, name) in
        [("a.rs", "../a.rs"), ("lib/a.rs", "a.rs"), ("docs/c.md", "../docs/c.md"), ("", ".."), ("lib", ".")]
    {
        assert_eq!(scope.display_name(&project.path(path)), name);
        assert_eq!(scope.resolve_for_read(name), Ok(project.path(path).components().collect()));
    }
}

#[test]
#[cfg(unix)]
fn an_open_file_is_judged_by_where_it_is() {
    let project = project();
    let guard = project.scope.guard();
    assert!(guard.open(&project.path("src/a.rs")).is_ok());
    // What the path said when it was judged no longer counts.
    fs::remove_file(project.path("src/a.rs")).unwrap();
    project.link("src/a.rs", "../../secret");
    assert!(matches!(guard.open(&project.path("src/a.rs")), Err(UnreadableReason::Outside)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Whatever a path is made of: where it is allowed and leads somewhere, it leads inside.
    #[test]
    #[cfg(unix)]
    fn no_path_leads_out(parts in prop::collection::vec(
        prop::sample::select(vec!["..", ".", "src", "deep", "a.rs", "missing", "out", "in", "loop", "~", "secret", "project"]), 1..8,
    ), lead in prop::sample::select(vec!["", "/"])) {
        let project = project();
        project.link("out", "..");
        project.link("src/out", "../..");
        project.link("in", "src/deep");
        project.link("loop", "loop");
        let path = format!("{lead}{}", parts.join("/"));
        for place in [project.scope.resolve_for_read(&path), project.scope.resolve_for_write(&path)].into_iter().flatten() {
            prop_assert!(place.starts_with(&project.scope.root), "{} {}", path, place.display());
            prop_assert!(!place.components().any(|part| part == Component::ParentDir), "{}", place.display());
            if let Ok(real) = project.scope.folder.join(&path).canonicalize() {
                prop_assert_eq!(real, place);
            }
        }
    }
}

#[test]
fn what_is_hidden_is_neither_read_nor_written_by_any_name() {
    let mut project = project();
    fs::create_dir_all(project.path("config/hardpan")).unwrap();
    fs::write(project.path("config/hardpan/keys.toml"), "k").unwrap();
    std::os::unix::fs::symlink("config/hardpan/keys.toml", project.path("link")).unwrap();
    project.scope.hidden =
        ["keys.toml", "allowed"].map(|name| project.path("config/hardpan").join(name)).into();
    for path in ["config/hardpan/keys.toml", "link", "src/../link", "config/hardpan/allowed"] {
        let hidden = Err(ScopeError::Hidden { path: path.into() });
        assert_eq!(project.scope.resolve_for_read(path), hidden);
        assert_eq!(project.scope.resolve_for_write(path), hidden);
    }
    fs::hard_link(project.path("config/hardpan/keys.toml"), project.path("hard")).unwrap();
    for path in ["link", "hard"] {
        let opened = project.scope.guard().open(&project.path(path));
        assert!(matches!(opened, Err(UnreadableReason::Private)), "{path}");
    }
    assert!(project.scope.resolve_for_read("config/hardpan/skills").is_ok());
}
