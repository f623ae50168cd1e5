//! Files that an extension gets at by no detour: hidden ones below a folder that it moves, `.git` in a folder or
//! under another name, other names of a key, links, and more of the disk than it may take.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hardpan_app::options::{OpenOptions, SessionChoice};

use super::extension_providers::Person;
use super::extensions::{FINE, TestConversation};
use super::subagents::TaskHome;

/// An extension with a command `try` that notes what came of each of these expressions: its value, or the code of
/// its error.
fn attempts(expressions: &[&str]) -> String {
    let attempts: Vec<String> = expressions.iter().map(|work| format!("attempt(() => {work})")).collect();
    format!(
        "import * as fs from 'node:fs'; import {{ tmpdir }} from 'node:os'; import {{ dirname, join }} from 'node:path'; import {{ fileURLToPath }} from 'node:url';\n\
         const here = dirname(fileURLToPath(import.meta.url)); const cwd = process.cwd(); const data = dirname(tmpdir());\n\
         const attempt = (work) => {{ try {{ return work() ?? 'done'; }} catch (error) {{ return error.code ?? error.message; }} }};\n\
         export default (pi) => pi.registerCommand('try', {{ handler: (_, ctx) => ctx.ui.notify([{}].join('|')) }});",
        attempts.join(", ")
    )
}

/// Says `/try` to an extension of the user with these attempts; `folder` is what it works in.
async fn outcomes_in(home: TaskHome, folder: &str, expressions: &[&str]) -> (TaskHome, Vec<String>) {
    home.home.write("user/config/extensions/one.ts", &attempts(expressions));
    let folder = home.home.folder.path().join(folder);
    let options = OpenOptions { folder, ..home.options(SessionChoice::New) };
    let mut test = TestConversation::with_prompter(home, options, Arc::new(Person::default())).await;
    test.take_events();
    test.say("/try").await;
    let note = test.notes().pop().unwrap();
    (test.home, note.split('|').map(str::to_owned).collect())
}

async fn outcomes(home: TaskHome, expressions: &[&str]) -> (TaskHome, Vec<String>) {
    outcomes_in(home, "work", expressions).await
}

fn place(home: &TaskHome, path: &str) -> PathBuf {
    home.home.folder.path().join(path)
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

/// The workspace is the folder above that of the settings, as where somebody works in the home folder.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_with_hidden_files_is_not_moved_or_removed() {
    let home = TaskHome::new(FINE, "").await;
    home.home.write("made/config/config.toml", "sandbox = false\n");
    symlink("user", place(&home, "alias")).unwrap();
    let before = text(&place(&home, "user/config/config.toml"));
    let (home, outcomes) = outcomes_in(
        home,
        "",
        &[
            "fs.renameSync('user', 'm')",
            "fs.renameSync('user/', 'm')",
            "fs.renameSync('work/../user/.', 'm')",
            "fs.renameSync('user/config', 'm')",
            "fs.renameSync('user', join(data, 'm'))",
            "fs.renameSync('made', 'user')",
            "fs.renameSync('made/config', 'user/config')",
            "fs.rmSync('user', { recursive: true })",
            "fs.rmdirSync('user', { recursive: true })",
            "fs.rmSync('alias/config', { recursive: true })",
            "fs.cpSync('user', 'm', { recursive: true })",
            "fs.cpSync('made', 'user', { recursive: true })",
            "fs.copyFileSync('user/config/keys.toml', 'm')",
            "fs.readdirSync('.', { recursive: true }).filter((name) => name.includes('keys.toml')).join()",
            "fs.readdirSync('user/config')",
            "fs.renameSync(cwd, join(data, 'm'))",
            "fs.renameSync(join(data, '../..'), 'm')",
        ],
    )
    .await;
    let listed = outcomes.iter().position(String::is_empty);
    assert_eq!(listed, Some(13), "{outcomes:?}");
    let refused = outcomes.iter().filter(|outcome| *outcome == "EACCES").count();
    assert_eq!(refused, outcomes.len() - 1, "{outcomes:?}");
    assert_eq!(text(&place(&home, "user/config/config.toml")), before);
    assert!(!place(&home, "m/config").exists(), "nothing of it was copied");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_stays_as_it_is_wherever_it_is_named_from() {
    let home = TaskHome::new(FINE, "").await;
    for path in ["work/.git/config", "work/sub/deep/.git/config", "work/linked/.git", "work/notes/a.txt"] {
        home.home.write(path, "[core]\n");
    }
    let expressions = [
        "fs.renameSync(cwd, join(data, 'w'))",
        "fs.renameSync(cwd + '/.', join(data, 'w'))",
        "fs.rmSync(cwd + '/.', { recursive: true })",
        "fs.rmSync('', { recursive: true })",
        "fs.rmSync('notes/..', { recursive: true })",
        "fs.rmSync('.', { recursive: true, force: true })",
        "fs.renameSync('sub', join(data, 'sub'))",
        "fs.renameSync('sub//deep/', 'other')",
        "fs.rmSync('sub', { recursive: true })",
        "fs.rmSync('sub/deep/.git', { recursive: true })",
        "fs.renameSync('linked', 'other')",
        "fs.rmSync('linked/.git')",
        "fs.renameSync('notes', '.git')",
        "fs.renameSync('notes/a.txt', 'notes/.git')",
        "fs.writeFileSync('notes/.git', 'gitdir: x')",
        "fs.writeFileSync(join(data, '.git'), 'gitdir: x')",
        "fs.mkdirSync(join(data, 'r/.git/hooks'), { recursive: true })",
        "fs.mkdirSync(join(data, 'r/.GIT'), { recursive: true })",
        "fs.cpSync('sub', 'other', { recursive: true })",
    ];
    let (home, outcomes) = outcomes(home, &expressions).await;
    for (expression, outcome) in expressions.iter().zip(&outcomes) {
        let expected = if expression.contains("''") { "ENOENT" } else { "EACCES" };
        assert_eq!(outcome, expected, "{expression}: {outcomes:?}");
    }
    for path in ["work/.git/config", "work/sub/deep/.git/config", "work/linked/.git", "work/notes/a.txt"] {
        assert_eq!(text(&place(&home, path)), "[core]\n", "{path}");
    }
}

/// A program outside of the sandbox may have made one in the extension's folder.
#[tokio::test(flavor = "multi_thread")]
async fn a_repository_among_its_data_is_not_moved_into_the_workspace_and_may_be_removed() {
    let home = TaskHome::new(FINE, "").await;
    home.home.write("user/data/extensions/one/r/.git/config", "[core]\n");
    home.home.write("user/data/extensions/one/f/file", "");
    let (home, outcomes) = outcomes(
        home,
        &[
            "fs.renameSync(join(data, 'r'), 'r')",
            "fs.renameSync(join(data, 'r/.git'), 'x')",
            "fs.renameSync(join(data, 'r'), join(data, 's'))",
            "fs.rmSync(join(data, 's'), { recursive: true })",
            "fs.renameSync(join(data, 'f'), 'f')",
            "fs.renameSync(join(data, 'tmp'), 'f')",
            "fs.renameSync(data, 'data')",
        ],
    )
    .await;
    assert_eq!(outcomes.join("|"), "EACCES|EACCES|done|done|done|ENOTEMPTY|EACCES");
    assert!(place(&home, "work/f/file").exists() && !place(&home, "work/r").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_name_of_a_key_is_refused_wherever_it_is_moved() {
    let home = TaskHome::new(FINE, "").await;
    let keys = place(&home, "user/config/keys.toml");
    let mode = || fs::metadata(&keys).unwrap().permissions().mode();
    fs::hard_link(&keys, place(&home, "work/hard")).unwrap();
    fs::write(place(&home, "work/plain"), "plain").unwrap();
    fs::hard_link(place(&home, "work/plain"), place(&home, "work/plain-too")).unwrap();
    let (before, mode_before) = (text(&keys), mode());
    let (home, outcomes) = outcomes(
        home,
        &[
            "fs.readFileSync('hard', 'utf8')",
            "fs.copyFileSync('hard', join(data, 'c'))",
            "fs.renameSync('hard', join(data, 'k'))",
            "fs.readFileSync(join(data, 'k'), 'utf8')",
            "fs.copyFileSync(join(data, 'k'), 'c')",
            "fs.cpSync(join(data, 'k'), 'c')",
            "fs.writeFileSync(join(data, 'k'), 'evil')",
            "fs.appendFileSync(join(data, 'k'), 'evil')",
            "fs.copyFileSync('notes.txt', join(data, 'k'))",
            "fs.truncateSync(join(data, 'k'))",
            "fs.writeSync(fs.openSync(join(data, 'k'), 'a'), 'evil')",
            "fs.readSync(fs.openSync(join(data, 'k'), 'r'), Buffer.alloc(9))",
            "fs.chmodSync(join(data, 'k'), 0o666)",
            "fs.utimesSync(join(data, 'k'), 1, 1)",
            "fs.unlinkSync(join(data, 'k'))",
            "fs.renameSync('plain', join(data, 'plain'))",
            "fs.readFileSync(join(data, 'plain'), 'utf8')",
            "fs.writeFileSync(join(data, 'plain'), 'mine')",
        ],
    )
    .await;
    let refused = ["EACCES"; 11].join("|");
    assert_eq!(outcomes.join("|"), format!("EACCES|EACCES|done|{refused}|done|done|plain|done"));
    assert_eq!((text(&keys), mode()), (before, mode_before));
    assert_eq!(text(&place(&home, "work/plain-too")), "mine");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_moved_and_removed_and_not_what_it_leads_to() {
    let home = TaskHome::new(FINE, "").await;
    for path in ["work/real.txt", "work/folder/file", "outside/file", "work/.git/config"] {
        home.home.write(path, "real");
    }
    for (target, link) in [
        ("real.txt", "link"),
        ("folder", "to-folder"),
        ("../outside", "out"),
        ("nowhere", "broken"),
        (".git", "to-git"),
        ("link", "chain"),
        ("../outside/file", "folder/out"),
    ] {
        symlink(target, place(&home, "work").join(link)).unwrap();
    }
    let (home, outcomes) = outcomes(
        home,
        &[
            "[fs.lstatSync('to-folder').isSymbolicLink(), fs.statSync('to-folder').isDirectory(), fs.lstatSync('to-folder/file').isFile(), fs.lstatSync('.').isDirectory()].join()",
            "fs.lstatSync('out').isSymbolicLink()",
            "fs.statSync('out')",
            "fs.lstatSync('out/file')",
            "fs.unlinkSync('chain')",
            "fs.renameSync('link', 'moved')",
            "fs.readFileSync('moved', 'utf8')",
            "fs.unlinkSync('moved')",
            "fs.rmSync('to-folder', { recursive: true })",
            "fs.renameSync('to-git', 'git-too')",
            "fs.writeFileSync('git-too/config', 'evil')",
            "fs.rmSync('git-too')",
            "fs.rmSync('out/file')",
            "fs.renameSync('real.txt', 'out/real.txt')",
            "fs.writeFileSync('broken', 'x')",
            "fs.rmSync('broken')",
            "fs.renameSync('real.txt', 'out')",
            "fs.rmSync('folder', { recursive: true })",
        ],
    )
    .await;
    assert_eq!(
        outcomes.join("|"),
        "true,true,true,true|true|EACCES|EACCES|done|done|real|done|done|done|EACCES|done|EACCES|EACCES|EACCES|done|done|done"
    );
    for path in ["outside/file", "work/out", "work/.git/config"] {
        assert_eq!(text(&place(&home, path)), "real", "{path}");
    }
    let mut left: Vec<String> = fs::read_dir(place(&home, "work"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, [".git", "notes.txt", "out"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_with_a_name_of_its_own_is_made_where_it_may_write() {
    let home = TaskHome::new(FINE, "").await;
    let (home, outcomes) = outcomes(
        home,
        &[
            "dirname(fs.mkdtempSync(cwd + '/')) === cwd",
            "dirname(fs.mkdtempSync(tmpdir() + '/')) === tmpdir()",
            "fs.mkdtempSync(join(cwd, 'a-')).startsWith(join(cwd, 'a-'))",
            "fs.mkdtempSync(cwd)",
            "fs.mkdtempSync('../a-')",
            "fs.mkdtempSync('.git/a-')",
        ],
    )
    .await;
    assert_eq!(outcomes.join("|"), "true|true|true|EACCES|EACCES|EACCES");
    assert_eq!(fs::read_dir(place(&home, "work")).unwrap().count(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_program_comes_beside_a_file_that_was_named_by_another_way() {
    let home = TaskHome::new(FINE, "").await;
    home.home.write("work/folder/index.js", "");
    for (path, mode) in [("work/run", 0o755), ("bin/ls", 0o755), ("bin/state", 0o644)] {
        home.home.write(path, "old");
        fs::set_permissions(place(&home, path), fs::Permissions::from_mode(mode)).unwrap();
    }
    let writes = [
        "fs.writeFileSync(join(here, 'ls'), 'evil')",
        "fs.renameSync('run', join(here, 'git'))",
        "fs.renameSync('folder', join(here, 'folder'))",
        "fs.chmodSync(join(here, 'state'), 0o755)",
        "fs.rmSync(join(here, 'ls'))",
        "fs.renameSync(here, join(data, 'here'))",
        "fs.chmodSync(join(here, 'state'), 0o600)",
        "fs.renameSync('notes.txt', join(here, 'notes.txt'))",
    ];
    home.home.write("bin/one.ts", &attempts(&writes));
    let path = place(&home, "bin/one.ts");
    let mut test = TestConversation::open_in(home, &[path], None).await;
    test.take_events();
    test.say("/try").await;
    let refused = ["EACCES"; 6].join("|");
    assert_eq!(test.notes().pop().unwrap(), format!("{refused}|done|done"));
    assert_eq!(text(&place(&test.home, "bin/ls")), "old");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_takes_no_more_of_the_disk_than_it_may() {
    let home = TaskHome::new(FINE, "").await;
    let large = fs::File::create(place(&home, "work/large")).unwrap();
    // Copies are written in full.
    large.set_len(30 << 20).unwrap();
    let copies = "let n = 0; let error; try { for (; n < 20; n++) fs.copyFileSync('large', (n % 2 ? tmpdir() + '/' : '') + 'copy' + n) } catch (problem) { error = problem }";
    let (home, outcomes) = outcomes(
        home,
        &[
            &format!("{{ {copies} return n + ' ' + error.code + ' ' + error.message.includes('256 MB') }}"),
            // What is written again, also by way of another file, takes nothing.
            "{ for (let n = 0; n < 10; n++) { fs.copyFileSync('large', 'copy0') } }",
            "{ fs.rmSync('copy0'); for (let n = 0; n < 10; n++) { fs.copyFileSync('large', 'new'); fs.renameSync('new', 'new'); fs.renameSync('new', 'copy2'); } }",
            "fs.copyFileSync('large', 'copy0')",
            "fs.copyFileSync('large', 'one-more')",
            "{ for (let n = 0; n < 20; n++) { fs.mkdirSync(n + '/d'.repeat(500), { recursive: true }) } }",
            "fs.rmSync(tmpdir(), { recursive: true })",
            "fs.copyFileSync('large', 'one-more')",
        ],
    )
    .await;
    assert_eq!(outcomes.join("|"), "8 ENOSPC true|done|done|done|ENOSPC|ENOSPC|done|done");
    assert!(!place(&home, "work/copy8").exists());
}
