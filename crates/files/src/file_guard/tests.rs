use std::fs;
use std::os::unix::fs::symlink;

use super::*;

struct Place {
    _folder: tempfile::TempDir,
    root: PathBuf,
    outside: PathBuf,
    config: PathBuf,
}

/// A workspace that holds the config folder, and something outside of it.
fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    let (root, outside) = (base.join("home"), base.join("outside"));
    let config = root.join(".config/hardpan");
    fs::create_dir_all(config.join("skills")).unwrap();
    fs::create_dir(&outside).unwrap();
    for (path, text) in [
        (root.join("a"), "a"),
        (config.join("keys.toml"), "KEY"),
        (config.join("other"), "OTHER"),
        (config.join("skills/s.md"), "skill"),
        (outside.join("secret"), "SECRET"),
    ] {
        fs::write(path, text).unwrap();
    }
    Place { _folder: folder, root, outside, config }
}

impl Place {
    fn guard(&self) -> FileGuard {
        let root = OpenFolder::open(&self.root).ok().map(Arc::new);
        let hidden = [self.config.clone(), self.config.join("keys.toml")];
        FileGuard::new(root, &[self.config.join("skills")], &hidden)
    }
}

fn text(opened: Result<RegularFile, UnreadableReason>) -> String {
    match opened.and_then(|file| file.read_all(100)) {
        Ok(bytes) => String::from_utf8(bytes).unwrap(),
        Err(reason) => format!("{reason:?}"),
    }
}

#[test]
fn our_own_files_are_never_opened_by_whatever_name() {
    let place = place();
    let guard = place.guard();
    symlink(place.config.join("keys.toml"), place.root.join("link")).unwrap();
    symlink(".config/hardpan/other", place.root.join("other")).unwrap();
    symlink(&place.config, place.outside.join("config")).unwrap();
    fs::hard_link(place.config.join("keys.toml"), place.root.join("hard")).unwrap();
    // In a folder that is hidden as a whole, such as a session.
    fs::create_dir_all(place.config.join("sessions/x")).unwrap();
    fs::write(place.config.join("sessions/x/s.jsonl"), "SESSION").unwrap();
    fs::hard_link(place.config.join("sessions/x/s.jsonl"), place.root.join("hard-session")).unwrap();
    fs::write(place.root.join("plain"), "plain").unwrap();
    fs::hard_link(place.root.join("plain"), place.root.join("plain-too")).unwrap();
    assert_eq!(text(guard.open(&place.root.join("plain-too"))), "plain");
    assert_eq!(text(guard.open(&place.root.join("hard-session"))), "Private");
    // What the user made readable there stays so.
    fs::hard_link(place.config.join("skills/s.md"), place.root.join("hard-skill")).unwrap();
    assert_eq!(text(guard.open(&place.config.join("skills/s.md"))), "skill");
    for path in [
        place.config.join("keys.toml"),
        place.config.join("other"),
        place.root.join("link"),
        place.root.join("other"),
        place.root.join("hard"),
    ] {
        assert_eq!(text(guard.open(&path)), "Private", "{path:?}");
        assert_eq!(text(guard.open_named_by_user(&path)), "Private", "{path:?}");
    }
    assert_eq!(text(guard.open_named_by_user(&place.outside.join("config/keys.toml"))), "Private");
    assert_eq!(text(guard.open(&place.config.join("skills/s.md"))), "skill");
    assert_eq!(text(guard.open(&place.root.join("a"))), "a");
}

#[test]
fn a_workspace_within_the_config_folder_is_readable_except_for_the_keys() {
    let place = place();
    let root = OpenFolder::open(&place.config).ok().map(Arc::new);
    let guard = FileGuard::new(root, &[], &[place.config.clone(), place.config.join("keys.toml")]);
    assert_eq!(text(guard.open(&place.config.join("other"))), "OTHER");
    assert_eq!(text(guard.open(&place.config.join("keys.toml"))), "Private");
}

#[test]
fn the_user_may_name_a_file_anywhere_but_no_link_of_the_workspace_leads_out() {
    let place = place();
    let guard = place.guard();
    let secret = place.outside.join("secret");
    symlink(&secret, place.root.join("out")).unwrap();
    symlink(place.root.join("out"), place.outside.join("in-and-out")).unwrap();
    symlink(&place.root, place.outside.join("alias")).unwrap();
    symlink(place.root.join("a"), place.outside.join("in")).unwrap();
    symlink("secret", place.outside.join("near")).unwrap();
    let open = |path: PathBuf| text(guard.open_named_by_user(&path));
    assert_eq!(open(secret.clone()), "SECRET");
    assert_eq!(open(place.outside.join("near")), "SECRET");
    assert_eq!(open(place.root.join("../outside/secret")), "SECRET");
    assert_eq!(open(place.outside.join("in")), "a");
    assert_eq!(open(place.outside.join("alias/a")), "a");
    for path in ["in-and-out", "alias/out", "../home/out", "../home/.config/../out"] {
        assert_eq!(open(place.outside.join(path)), "Outside", "{path}");
    }
    symlink(&place.outside, place.root.join("folder")).unwrap();
    for path in ["out", "folder/secret", "../home/folder/secret", "folder/../folder/secret"] {
        assert_eq!(open(place.root.join(path)), "Outside", "{path}");
    }
    assert_eq!(text(guard.open(&secret)), "Outside");
}

#[test]
fn a_folder_and_every_link_that_leads_to_hidden_files_are_known() {
    let place = place();
    let guard = place.guard();
    for (path, contains) in [
        (place.root.clone(), true),
        (place.root.join(".config"), true),
        (place.config.join("keys.toml"), true),
        (place.config.join("other"), false),
        (place.root.join(".con"), false),
    ] {
        assert_eq!(guard.contains_hidden(&path), contains, "{path:?}");
    }

    // ~/.config -> ~/first -> second/third, relative and with `..`.
    fs::create_dir(place.root.join("second")).unwrap();
    fs::rename(place.root.join(".config"), place.root.join("second/third")).unwrap();
    symlink("first", place.root.join(".config")).unwrap();
    symlink("second/../second/third", place.root.join("first")).unwrap();
    let guard = place.guard();
    for path in [".config", "first", "second", "second/third", "second/third/hardpan"] {
        assert!(guard.contains_hidden(&place.root.join(path)), "{path}");
    }
    assert_eq!(text(guard.open(&place.root.join("second/third/hardpan/keys.toml"))), "Private");
    assert!(guard.is_hidden(&place.root.join("first/hardpan")));
}
