//! Repositories that a prompt names: fetched with git in the sandbox, shown as a README and a map.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use hardpan_test_support::{GitServer, TestResponse, TestServer};

use super::provider::Provider;
use super::{Repository, git, output_of};

/// An address of this machine that programs in the sandbox reach only through its proxy.
const HOST: &str = "127.0.0.2";

/// A bare repository `team/tool.git` in `folder`, with a link that leads out, a file that is too large
/// and attributes that name a filter.
fn published(folder: &Path) {
    let work = folder.join("tool");
    fs::create_dir_all(work.join("src")).expect("a folder");
    git(&work, &["init", "--quiet", "--initial-branch=main"]);
    fs::write(work.join("README.md"), "# The tool\n\nIt sharpens \u{1b}[31mpencils.\n").expect("a file");
    fs::write(work.join("src/sharpen.py"), "class Sharpener:\n    def turn(self, times):\n        pass\n")
        .expect("a file");
    fs::write(work.join(".gitattributes"), "* filter=x diff=x\n").expect("a file");
    fs::write(work.join("large.py"), format!("def too_large(): pass\n{}", "# x\n".repeat(100_000)))
        .expect("a file");
    symlink("/etc/passwd", work.join("linked.py")).expect("a link");
    git(&work, &["add", "."]);
    git(&work, &["commit", "--quiet", "-m", "begin"]);
    git(&work, &["branch", "other"]);
    let bare = folder.join("team/tool.git");
    git(folder, &["clone", "--quiet", "--bare", "tool", &bare.display().to_string()]);
    git(&bare, &["config", "uploadpack.allowFilter", "true"]);
}

/// Says something to a new conversation; returns the next request and what was said beside.
fn say(repository: &Repository, text: &str) -> (String, String) {
    let root = repository.sandbox.work();
    let with_folders = |args: &[&str]| {
        let mut command = repository.command(args);
        command.env("HARDPAN_DATA_DIR", root.with_file_name("data"));
        command.env("HARDPAN_CACHE_DIR", root.with_file_name("cache"));
        output_of(command)
    };
    let ran = with_folders(&["-p", text]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let shown = with_folders(&["request", "Hi", "--continue", "--json"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    (String::from_utf8_lossy(&shown.stdout).into_owned(), ran.stderr)
}

#[test]
fn a_repository_is_its_readme_and_a_map_and_is_kept_for_a_day() {
    for sandbox in ["on", "off"] {
        let Some(repository) = Repository::new() else { return };
        let folder = repository.sandbox.work().with_file_name("served");
        published(&folder);
        let server = GitServer::start(folder, HOST);
        let settings = format!("pages = \"on\"\nsandbox = \"{sandbox}\"\nprivate_hosts = [\"{HOST}\"]");
        let _provider = Provider::start(&repository.sandbox, "turns: []\ndefault: {text: Fine.}", &settings);
        let url = format!("{}/team/tool.git", server.url());
        let (body, told) = say(&repository, &format!("Look at {url} please"));
        assert!(told.contains("joins the context"), "{sandbox}: {told}");
        for text in
            ["Repository at commit", "5 files.", "# The tool", "It sharpens pencils.", "Sharpener", "turn"]
        {
            assert!(body.contains(text), "{sandbox}: {text}: {body}");
        }
        for text in ["root:", "too_large", "\\u001b"] {
            assert!(!body.contains(text), "{sandbox}: {text}: {body}");
        }
        let asked = server.requests();
        assert!(asked > 0);
        let (body, _) = say(&repository, &format!("Again {url}"));
        assert!(body.contains("It sharpens pencils.") && server.requests() == asked, "it is kept");
        // Of a repository that is not there nothing is kept, and nothing waits for a password.
        let (_, told) = say(&repository, &format!("Look at {}/team/none.git", server.url()));
        let expected = "was not fetched: the server answered with status 404; git says";
        assert!(told.contains(expected), "{sandbox}: {told}");
        let pages =
            fs::read_dir(repository.sandbox.work().with_file_name("cache/pages")).expect("the folder");
        assert_eq!((pages.count(), server.requests() > asked), (1, true));
        let left =
            fs::read_dir(repository.sandbox.work().with_file_name("cache/clones")).expect("the folder");
        assert_eq!(left.count(), 0, "nothing is left");
        repository.assert_nothing_ran();
    }
}

#[test]
fn a_repository_of_a_private_network_needs_the_setting_and_a_password_is_never_asked_for() {
    let Some(repository) = Repository::new() else { return };
    let folder = repository.sandbox.work().with_file_name("served");
    published(&folder);
    let server = GitServer::start(folder, HOST);
    let answers = "turns: []\ndefault: {text: Fine.}";
    {
        let _provider = Provider::start(&repository.sandbox, answers, "pages = \"on\"");
        let (body, told) = say(&repository, &format!("Look at {}/team/tool.git", server.url()));
        assert!(told.contains("only fetched from if the user allows the host"), "{told}");
        assert!(!body.contains("pencils") && server.requests() == 0);
    }
    let locked = TestServer::start(|_, _| {
        TestResponse::new(401, "text/plain", "who?").with_header("www-authenticate", "Basic realm=\"x\"")
    });
    let _provider = Provider::start(
        &repository.sandbox,
        answers,
        "pages = \"on\"\nsandbox = \"off\"\nprivate_hosts = [\"*\"]",
    );
    let (_, told) = say(&repository, &format!("Look at {}/a.git", locked.url()));
    assert!(told.contains("was not fetched: the server answered with status 401"), "{told}");
    assert!(!locked.received().iter().any(|request| request.header("authorization").is_some()));
}
