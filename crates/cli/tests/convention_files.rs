//! Every file that Hardpan reads by convention, as everything that a file can be: each run ends soon,
//! in bounded memory, without a crash, and sends nothing from outside of the workspace.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod support;

use std::cell::OnceCell;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::Sandbox;

/// In the keys, and in a file outside of the workspace.
const CANARY: &str = "canary-of-the-keys";
/// In the content that a file should have.
const MARK: &str = "mark-of-the-content";

const MAX_MEMORY_KB: u64 = 500_000;
const MAX_TIME: Duration = Duration::from_secs(60);

/// What a file can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Regular,
    NoFinalNewline,
    Crlf,
    InvalidUtf8,
    Sparse,
    LongLine,
    Pipe,
    Socket,
    DeviceLink,
    LinkOutside,
    LinkLoop,
    LinkChain,
    Directory,
    Unreadable,
    LinkToKeys,
    HardLinkToKeys,
    DeepNesting,
    ManyValues,
}

const KINDS: [Kind; 18] = [
    Kind::Regular,
    Kind::NoFinalNewline,
    Kind::Crlf,
    Kind::InvalidUtf8,
    Kind::Sparse,
    Kind::LongLine,
    Kind::Pipe,
    Kind::Socket,
    Kind::DeviceLink,
    Kind::LinkOutside,
    Kind::LinkLoop,
    Kind::LinkChain,
    Kind::Directory,
    Kind::Unreadable,
    Kind::LinkToKeys,
    Kind::HardLinkToKeys,
    Kind::DeepNesting,
    Kind::ManyValues,
];

/// A file that Hardpan reads by convention.
#[derive(Clone, Copy)]
struct Convention {
    /// Below the sandbox.
    path: &'static str,
    /// What it holds when all is well.
    content: &'static str,
}

/// Files that are tried at the same time, because none of them keeps the others from being read, and
/// the commands that read them.
struct Group {
    files: Vec<Convention>,
    commands: &'static [&'static [&'static str]],
}

/// Reads the folder, the settings, the instructions and a file that the user names; shows the tree and
/// the map.
const REQUEST: &[&str] = &["request", "see @named.md", "named.md", "--layout", "panels", "--json"];
const MAP: &[&str] = &["map"];
const SESSION: &str = "{\"type\":\"session\",\"version\":1,\"id\":\"s\",\"cwd\":\"/\"}\n{\"type\":\"message\",\"id\":\"m\",\"parent\":null,\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"mark-of-the-content\"}]}}\n";
const SKILL: &str = "---\nname: a\ndescription: mark-of-the-content\n---\nDo.\n";

fn groups() -> Vec<Group> {
    let of = |path, content| Convention { path, content };
    let group = |files: &[Convention], commands| Group { files: files.to_vec(), commands };
    let request: &[&[&str]] = &[REQUEST];
    vec![
        group(
            &[
                of("work/.gitignore", "*.mark-of-the-content\n"),
                of("work/src/.gitignore", "*.mark-of-the-content\n"),
                of("work/.ignore", "*.mark-of-the-content\n"),
                of("work/.git/info/exclude", "*.mark-of-the-content\n"),
                of("work/.git/HEAD", "ref: refs/heads/mark-of-the-content\n"),
                of("work/.git/config", "[core]\n\tbare = false\n"),
                of("work/.env", "A_TOKEN=mark-of-the-content\n"),
                of("work/AGENTS.md", "mark-of-the-content\n"),
                of("work/CLAUDE.md", "mark-of-the-content\n"),
                of("work/CLAUDE.local.md", "mark-of-the-content @imported.md\n"),
                of("work/imported.md", "mark-of-the-content\n"),
                of("work/.github/copilot-instructions.md", "mark-of-the-content\n"),
                of("work/.cursor/rules/a.mdc", "---\nalwaysApply: true\n---\nmark-of-the-content\n"),
                of("work/.cursor/rules/b.mdc", "---\nglobs: *.md\n---\nmark-of-the-content\n"),
                of("work/.claude/commands/a.md", "mark-of-the-content\n"),
                of("work/named.md", "mark-of-the-content\n"),
                of("work/.hardpan/prompts/agent.md", "mark-of-the-content\n"),
                of("work/.agents/skills/a/SKILL.md", SKILL),
            ],
            &[REQUEST, MAP],
        ),
        group(
            &[
                of("home/.config/git/ignore", "*.mark-of-the-content\n"),
                of("home/.gitconfig", "[core]\n\texcludesFile = ~/mark-of-the-content\n"),
                of("config/AGENTS.md", "mark-of-the-content\n"),
                of("config/allowed", "# mark-of-the-content\n"),
                of("config/skills/a/SKILL.md", SKILL),
                of("config/templates/a.md", "mark-of-the-content\n"),
                of("home/.local/state/hardpan/learned.json", "{}"),
            ],
            request,
        ),
        group(
            &[
                of("home/.claude/CLAUDE.md", "mark-of-the-content @more.md\n"),
                of("home/.claude/more.md", "mark-of-the-content\n"),
                of("home/.claude/commands/a.md", "mark-of-the-content\n"),
                of("home/.claude/commands/b/a.md", "mark-of-the-content\n"),
                of("home/.claude/skills/a/SKILL.md", SKILL),
                of("home/.claude/agents/a.md", SKILL),
                of("home/.agents/skills/a/SKILL.md", SKILL),
                of("home/.codex/prompts/a.md", "mark-of-the-content\n"),
            ],
            request,
        ),
        group(&[of("home/.codex/AGENTS.md", "mark-of-the-content\n")], request),
        // Each of these may end a run, with a line that says which.
        group(&[of("work/.git", "gitdir: /nowhere/mark-of-the-content\n")], request),
        group(&[of("config/config.toml", "# mark-of-the-content\n")], request),
        group(&[of("config/models.json", "{\"models\":{}}")], &[REQUEST, &["models"]]),
        group(&[of("config/keys.toml", "other = \"mark-of-the-content\"\n")], &[REQUEST, &["providers"]]),
        group(&[of("config/trusted", "/mark-of-the-content\n")], request),
        group(&[of("config/prompts/system.md", "mark-of-the-content\n")], request),
        group(
            &[of("home/.local/share/hardpan/sessions/x/s.jsonl", SESSION)],
            &[
                &["sessions", "--all"],
                &["cost", "--all"],
                &["request", "Hi", "--json", "--session", "../home/.local/share/hardpan/sessions/x/s.jsonl"],
                &["why", "../home/.local/share/hardpan/sessions/x/s.jsonl"],
                &["audit", "../home/.local/share/hardpan/sessions/x/s.jsonl"],
                &["replay", "../home/.local/share/hardpan/sessions/x/s.jsonl"],
            ],
        ),
        group(&[of("work/snapshot.json", "{}")], &[&["request", "--snapshot", "snapshot.json", "--json"]]),
    ]
}

/// A file that is made once, if at all, because it is large.
struct LargeFiles {
    folder: tempfile::TempDir,
    long_line: OnceCell<PathBuf>,
}

impl LargeFiles {
    fn new() -> Self {
        LargeFiles { folder: tempfile::TempDir::new().unwrap(), long_line: OnceCell::new() }
    }

    fn long_line(&self) -> &Path {
        self.long_line.get_or_init(|| {
            let path = self.folder.path().join("long");
            let mut file = File::create(&path).unwrap();
            let piece = vec![b'a'; 1 << 20];
            (0..300).for_each(|_| file.write_all(&piece).unwrap());
            path
        })
    }
}

/// A sandbox in which files are of one kind. None if this system or user cannot have one of them so.
fn prepare(files: &[Convention], kind: Kind, large: &LargeFiles) -> Option<Sandbox> {
    let sandbox = Sandbox::new();
    sandbox.write("work/src/main.rs", "fn main() {}\n");
    let keys = sandbox.write("config/keys.toml", format!("anthropic = \"{CANARY}\"\n"));
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o600)).unwrap();
    let secret = sandbox.write("outside/secret", format!("{CANARY}\n"));
    for (number, convention) in files.iter().enumerate() {
        place(&sandbox, convention, kind, large, (&keys, &secret), number)?;
    }
    Some(sandbox)
}

/// Puts a file of this kind in its place.
fn place(
    sandbox: &Sandbox,
    convention: &Convention,
    kind: Kind,
    large: &LargeFiles,
    (keys, secret): (&Path, &Path),
    number: usize,
) -> Option<()> {
    let path = sandbox.write(convention.path, convention.content);
    let replace = |content: &[u8]| fs::write(&path, content).unwrap();
    if kind != Kind::Regular {
        fs::remove_file(&path).unwrap();
    }
    let content = convention.content;
    match kind {
        Kind::Regular => {}
        Kind::NoFinalNewline => replace(content.trim_end().as_bytes()),
        Kind::Crlf => replace(content.replace('\n', "\r\n").as_bytes()),
        Kind::InvalidUtf8 => replace(&[content.as_bytes(), b"\xff\xfe\xe9\n"].concat()),
        Kind::Sparse => {
            replace(content.as_bytes());
            let mut file = File::options().write(true).open(&path).unwrap();
            file.set_len(1 << 30).ok()?;
            file.seek(SeekFrom::End(0)).unwrap();
            file.write_all(b"\nend\n").unwrap();
        }
        // The same file everywhere, but for one whose first lines matter.
        Kind::LongLine if content != SESSION => fs::hard_link(large.long_line(), &path).unwrap(),
        Kind::LongLine => {
            replace(content.as_bytes());
            let mut long = File::open(large.long_line()).unwrap();
            std::io::copy(&mut long, &mut File::options().append(true).open(&path).unwrap()).unwrap();
        }
        Kind::Pipe => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
        Kind::Socket => drop(std::os::unix::net::UnixListener::bind(&path).ok()?),
        Kind::DeviceLink => symlink("/dev/zero", &path).unwrap(),
        Kind::LinkOutside => symlink(secret, &path).unwrap(),
        Kind::LinkLoop => symlink(path.file_name().unwrap(), &path).unwrap(),
        Kind::LinkChain => {
            let folder = sandbox.write(&format!("work/chain{number}/0"), content);
            let at = |n: usize| folder.with_file_name(n.to_string());
            (0..50).for_each(|n| symlink(at(n), at(n + 1)).unwrap());
            symlink(at(50), &path).unwrap();
        }
        Kind::Directory => fs::create_dir(&path).unwrap(),
        Kind::Unreadable => {
            replace(content.as_bytes());
            fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        }
        Kind::LinkToKeys if keys != path => symlink(keys, &path).unwrap(),
        Kind::HardLinkToKeys if keys != path => fs::hard_link(keys, &path).unwrap(),
        Kind::LinkToKeys | Kind::HardLinkToKeys => return None,
        Kind::DeepNesting => replace(in_its_language(convention, &"[{".repeat(100_000)).as_bytes()),
        Kind::ManyValues => {
            let values = format!("[{}1]", "1,".repeat(15 << 20));
            replace(in_its_language(convention, &values).as_bytes());
        }
    }
    Some(())
}

/// A value where the file of this name has one: TOML, JSON, YAML; elsewhere a line.
fn in_its_language(convention: &Convention, value: &str) -> String {
    let content = convention.content;
    match convention.path.rsplit('.').next() {
        Some("toml") => format!("{content}a = {value}\n"),
        Some("json") => format!("{{\"models\": {value}}}"),
        Some("jsonl") => {
            format!("{content}{{\"type\":\"memory\",\"id\":\"k\",\"parent\":\"m\",\"memory\":{value}}}\n")
        }
        Some("md") => format!("---\nname: a\ndescription: {value}\n---\n{content}"),
        _ => format!("{content}{value}\n"),
    }
}

/// What a run left behind.
struct Run {
    code: Option<i32>,
    stdout: Vec<u8>,
    stderr: String,
    memory_kb: u64,
}

/// Runs a command, and ends it when it takes too long or too much.
#[expect(clippy::disallowed_methods, reason = "the time that a run takes is what is tested")]
fn run_bounded(sandbox: &Sandbox, args: &[&str]) -> Run {
    let mut command = sandbox.command(args);
    let outputs = ["stdout", "stderr"].map(|name| sandbox.work().parent().unwrap().join(name));
    let file = |path: &Path| File::create(path).unwrap();
    command.stdin(Stdio::null()).stdout(file(&outputs[0])).stderr(file(&outputs[1]));
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    let mut memory_kb = 0;
    let status = loop {
        memory_kb = memory_kb.max(peak_memory(child.id()));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > MAX_TIME || memory_kb > MAX_MEMORY_KB {
            child.kill().unwrap();
            break child.wait().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let read = |path: &Path| {
        let mut bytes = Vec::new();
        File::open(path).unwrap().take(64 << 20).read_to_end(&mut bytes).unwrap();
        bytes
    };
    let stderr = String::from_utf8_lossy(&read(&outputs[1])).into_owned();
    Run { code: status.code(), stdout: read(&outputs[0]), stderr, memory_kb }
}

fn peak_memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0)
}

/// What is wrong with a run on files of this kind.
fn fault(files: &[Convention], kind: Kind, run: &Run) -> Option<String> {
    let said = String::from_utf8_lossy(&run.stdout);
    // The user's own links may lead anywhere, except to the keys.
    let is_own = kind == Kind::LinkOutside && files.iter().all(|file| !file.path.starts_with("work/"));
    let leaks = said.contains(CANARY) || run.stderr.contains(CANARY);
    if run.memory_kb > MAX_MEMORY_KB {
        Some(format!("{} kB", run.memory_kb))
    } else if !matches!(run.code, Some(0 | 1)) {
        Some(format!("{:?} {}", run.code, run.stderr))
    } else if leaks && !is_own {
        Some(format!("a secret in {said} {}", run.stderr))
    } else if run.code == Some(1) && !run.stderr.starts_with("hardpan: ") {
        Some(format!("no reason in {}", run.stderr))
    } else {
        None
    }
}

fn check(files: &[Convention], commands: &[&[&str]], kind: Kind, large: &LargeFiles) {
    let Some(sandbox) = prepare(files, kind, large) else { return };
    for args in commands {
        let run = run_bounded(&sandbox, args);
        let fault = fault(files, kind, &run);
        match (files, fault) {
            ([file], Some(fault)) => panic!("{} as {kind:?}, {}: {fault}", file.path, args.join(" ")),
            (_, None) if run.code == Some(0) || files.len() == 1 => {}
            // Which one is it? And a run that ended may not have read all of them.
            (_, fault) => {
                files.iter().for_each(|file| check(std::slice::from_ref(file), &[args], kind, large));
                assert_eq!(fault, None, "all together as {kind:?}, {}", args.join(" "));
            }
        }
    }
}

/// All groups, as the kinds whose number leaves this rest: two tests run side by side.
fn check_share(rest: usize) {
    let large = LargeFiles::new();
    for (_, kind) in KINDS.iter().enumerate().filter(|(number, _)| number % 2 == rest) {
        groups().iter().for_each(|group| check(&group.files, group.commands, *kind, &large));
    }
}

#[test]
fn no_convention_file_costs_time_memory_or_a_secret() {
    check_share(0);
}

#[test]
fn no_convention_file_of_another_kind_costs_time_memory_or_a_secret() {
    check_share(1);
}

#[test]
fn what_a_file_of_the_project_says_is_used_if_it_is_one() {
    let large = LargeFiles::new();
    let files = groups().into_iter().flat_map(|group| group.files);
    for convention in files.filter(|convention| convention.path.ends_with("AGENTS.md")) {
        for kind in [Kind::Regular, Kind::NoFinalNewline, Kind::Crlf] {
            let sandbox = prepare(&[convention], kind, &large).unwrap();
            let said = String::from_utf8(run_bounded(&sandbox, REQUEST).stdout).unwrap();
            assert!(said.contains(MARK), "{} as {kind:?}: {said}", convention.path);
        }
        for kind in [Kind::Pipe, Kind::DeviceLink, Kind::LinkLoop, Kind::LinkToKeys, Kind::HardLinkToKeys] {
            let sandbox = prepare(&[convention], kind, &large).unwrap();
            let said = String::from_utf8(run_bounded(&sandbox, REQUEST).stdout).unwrap();
            assert!(said.contains("[not read: it "), "{} as {kind:?}: {said}", convention.path);
        }
    }
}

#[test]
fn what_the_home_folder_has_for_other_agents_is_called_unless_it_is_a_secret() {
    let large = LargeFiles::new();
    let of = |path, content| Convention { path, content };
    let calls = [
        (
            of("home/.claude/skills/a/SKILL.md", "---\nname: a\ndescription: b\n---\nmark-of-the-content\n"),
            "/skill:a",
        ),
        (
            of("home/.agents/skills/a.md", "---\nname: a\ndescription: b\n---\nmark-of-the-content\n"),
            "/skill:a",
        ),
        (of("home/.claude/commands/web/a.md", "mark-of-the-content\n"), "/web:a"),
        (of("home/.codex/prompts/a.md", "mark-of-the-content\n"), "/a"),
    ];
    for (convention, call) in calls {
        let request = |kind| {
            let sandbox = prepare(&[convention], kind, &large).unwrap();
            let run = run_bounded(&sandbox, &["request", call, "--json"]);
            (String::from_utf8(run.stdout).unwrap(), run.stderr)
        };
        let (said, told) = request(Kind::Regular);
        assert!(said.contains(MARK) && !said.contains(call), "{}: {said} {told}", convention.path);
        for kind in [Kind::LinkToKeys, Kind::HardLinkToKeys, Kind::Pipe, Kind::DeviceLink] {
            // A name that nothing can be called by is a text.
            let (said, told) = request(kind);
            assert!(!said.contains(CANARY) && said.contains(call), "{kind:?}: {said} {told}");
        }
    }
}

/// A workspace that holds the config folder: its files are not context, by whatever name.
#[test]
fn the_keys_of_a_workspace_that_holds_them_are_not_sent() {
    let sandbox = Sandbox::new();
    sandbox.write("work/.config/hardpan/keys.toml", format!("anthropic = \"{CANARY}\"\n"));
    let keys = sandbox.work().join(".config/hardpan/keys.toml");
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o600)).unwrap();
    sandbox.write("work/.local/share/hardpan/sessions/x/s.jsonl", SESSION.replace(MARK, CANARY));
    fs::create_dir(sandbox.work().join("sub")).unwrap();
    symlink(&keys, sandbox.work().join("AGENTS.md")).unwrap();
    fs::hard_link(&keys, sandbox.work().join("sub/AGENTS.md")).unwrap();
    fs::hard_link(&keys, sandbox.work().join("plain.md")).unwrap();
    for layout in support::LAYOUTS {
        let files = [
            "plain.md",
            "AGENTS.md",
            ".config/hardpan/keys.toml",
            ".local/share/hardpan/sessions/x/s.jsonl",
            "sub/../plain.md",
        ];
        let prompt = "see @plain.md @AGENTS.md @.config/hardpan/keys.toml";
        let args =
            [&["request", prompt], &files[..], &["--layout", layout, "--json", "--dir", "sub/.."]].concat();
        let mut command = sandbox.command(&args);
        command.env_remove("HARDPAN_CONFIG_DIR").env("HOME", sandbox.work());
        let output = command.output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success(), "{said}");
        assert!(!said.contains(CANARY), "{layout}: {said}");
    }
}
