use super::*;

fn rule(written: &str) -> ApprovalRule {
    written.parse().unwrap()
}

/// Paths below the workspace are their own keys; absolute ones and those that lead out have none.
fn key(path: &str) -> Option<String> {
    (!path.starts_with('/') && !path.contains("..")).then(|| path.to_owned())
}

fn a_command(line: &str) -> CallSubject {
    CallSubject::Command(line.to_owned())
}

fn a_file(path: &str) -> CallSubject {
    CallSubject::File(path.to_owned())
}

fn a_url(url: &str) -> CallSubject {
    CallSubject::Url(url.to_owned())
}

fn bash(rule_text: &str, command: &str) -> bool {
    rule(rule_text).covers("bash", &a_command(command), key)
}

#[test]
fn a_prefix_covers_commands_that_begin_with_its_words() {
    assert!(bash("bash(cargo test)", "cargo test -p hardpan-agent 'a name'"));
    assert!(bash("bash(cargo test)", "  cargo   test"));
    assert!(!bash("bash(cargo test)", "cargo testament"));
    assert!(!bash("bash(cargo test)", "cargo"));
    assert!(bash("bash", "anything; at all"));
}

#[test]
fn lists_substitutions_and_redirections_are_never_covered_by_a_prefix() {
    for trick in [
        "cargo test; rm -rf x",
        "cargo test && x",
        "cargo test || x",
        "cargo test | sh",
        "cargo test & x",
        "cargo test $(x)",
        "cargo test `x`",
        "cargo test > out",
        "cargo test < in",
        "cargo test >> out",
        "cargo test\nrm x",
        "cargo test \"$(x)\"",
        "cargo test \"`x`\"",
        "cargo test ${x}",
        "cargo test <(x)",
        "A=b cargo test",
        "(cargo test)",
        "{ cargo test; }",
        "cargo test \\; x",
        "cargo test *",
        "cargo test # x",
        "cargo test 'unclosed",
        "cargo test \"unclosed",
        "!cargo test",
        "cargo test \r x",
    ] {
        assert!(!bash("bash(cargo test)", trick), "{trick}");
    }
}

#[test]
fn a_pattern_covers_paths_below_the_workspace_only() {
    let covers = |path: &str| rule("edit(src/**)").covers("edit", &a_file(path), key);
    assert!(covers("src/a.rs") && covers("src/b/c.rs"));
    assert!(!covers("tests/a.rs") && !covers("/src/a.rs") && !covers("src/../a.rs"));
    assert!(!rule("edit(src/*)").covers("edit", &a_file("src/b/c.rs"), key));
    assert!(!rule("edit(src/**)").covers("write", &a_file("src/a.rs"), key));
}

#[test]
fn a_host_covers_itself_and_what_is_below_it() {
    let covers = |url: &str| rule("fetch(docs.rs)").covers("fetch", &a_url(url), key);
    assert!(covers("https://docs.rs/serde") && covers("https://www.docs.rs:443/x"));
    assert!(
        !covers("https://evildocs.rs/")
            && !covers("https://docs.rs.evil.com/")
            && !covers("https://docs.rs@evil.com/")
    );
    assert!(!covers("https://evil.com/#@docs.rs"));
}

#[test]
fn what_is_no_rule_is_said_with_the_reason() {
    for (written, why) in [
        ("", "it does not begin with a tool's name"),
        ("(x)", "it does not begin with a tool's name"),
        ("bash(cargo test", "a parenthesis is not closed"),
        ("bash()", "there is nothing in the parentheses"),
    ] {
        assert_eq!(written.parse::<ApprovalRule>().unwrap_err().problem.to_string(), why, "{written}");
    }
}

#[test]
fn what_the_parentheses_mean_depends_on_what_the_call_acts_on() {
    let check =
        |written: &str, kind| rule(written).check_subject(kind).map_err(|error| error.problem.to_string());
    let no_command = Err("only one plain command can be allowed".to_owned());
    assert_eq!(check("run(a; b)", SubjectKind::Command), no_command);
    assert_eq!(check("run(a; b)", SubjectKind::File), Ok(()));
    assert!(check("run([a)", SubjectKind::File).unwrap_err().starts_with("error parsing glob"));
    assert_eq!(check("run([::1])", SubjectKind::Url), Ok(()));
    assert_eq!(check("run", SubjectKind::Command), Ok(()));
    // A rule is about all subjects that its text can mean, whatever the tool is called.
    for subject in [a_command("make all"), a_file("make"), a_url("https://make/")] {
        assert!(rule("run(make)").covers("run", &subject, key), "{subject:?}");
    }
    assert!(!rule("run(make)").covers("run", &CallSubject::Other, key));
    assert!(rule("run").covers("run", &CallSubject::Other, key));
    assert!(!rule("run(a; b)").covers("run", &a_command("a; b"), key));
}

#[test]
fn a_rule_like_a_call_covers_it_and_not_much_more() {
    let like = |tool: &str, subject: CallSubject| {
        ApprovalRule::for_call(tool, &subject, key).map(|rule| rule.to_string())
    };
    assert_eq!(like("bash", a_command("cargo test -p x")).as_deref(), Some("bash(exactly: cargo test -p x)"));
    assert_eq!(like("bash", a_command("cargo test; x")), None);
    assert_eq!(like("edit", a_file("src/a.rs")).as_deref(), Some("edit(src/a.rs)"));
    assert_eq!(like("edit", a_file("/etc/passwd")), None);
    assert_eq!(like("fetch", a_url("https://docs.rs/x")).as_deref(), Some("fetch(exactly: docs.rs)"));
    assert_eq!(like("paint", CallSubject::Other).as_deref(), Some("paint"));
    let subject = a_file("src/[a].rs");
    assert!(ApprovalRule::for_call("edit", &subject, key).unwrap().covers("edit", &subject, key));
}

#[test]
fn a_name_with_a_line_end_is_no_rule_so_that_the_list_of_rules_gains_no_other() {
    for subject in [a_file("x)\nbash\nwrite(y"), a_url("https://docs.rs)\nbash\nfetch(x/")] {
        assert!(ApprovalRule::for_call("any", &subject, key).is_none(), "{subject:?}");
    }
    assert!("write(x)\nbash".parse::<ApprovalRule>().is_err());
}

#[test]
fn a_program_that_runs_anything_is_not_allowed_by_its_name_alone() {
    let like =
        |command: &str| ApprovalRule::for_call("bash", &a_command(command), key).map(|rule| rule.to_string());
    for command in ["bash -c 'rm x'", "/usr/bin/python3.12 -c 1", "sudo -n id", "env", "sh"] {
        assert_eq!(like(command), None, "{command}");
    }
    assert_eq!(like("python3 run.py --fast").as_deref(), Some("bash(exactly: python3 run.py --fast)"));
    assert_eq!(like("ls -la").as_deref(), Some("bash(read-only: ls)"));
}

#[test]
fn a_host_is_the_one_that_will_be_fetched_from_or_none() {
    let covers = |url: &str| rule("fetch(docs.rs)").covers("fetch", &a_url(url), key);
    // What takes addresses apart as browsers do goes to evil.com for these.
    for url in [
        r"https:\\evil.com/x://docs.rs/",
        "https:evil.com/://docs.rs/",
        "https:/evil.com/://docs.rs/",
        "https://evil.com\\://docs.rs/",
        "https:/\t/evil.com/://docs.rs/",
        "https://evil.com\\@docs.rs/",
        "https://evil.com\t.docs.rs/",
        "https://evil.com%2F.docs.rs/",
        "https://user@docs.rs/",
        "ftp://docs.rs/",
        "docs.rs",
    ] {
        assert!(!covers(url), "{url}");
        assert_eq!(ApprovalRule::for_call("fetch", &a_url(url), key).map(|rule| rule.to_string()), None);
    }
    assert!(covers("HTTPS://DOCS.RS./x") && covers("https://docs.rs?x=https://evil.com/"));
    let loopback = a_url("http://[::1]:80/");
    assert!(rule("fetch([::1])").covers("fetch", &loopback, key));
}

#[test]
fn what_denies_is_not_passed_by_another_way_of_writing() {
    let denies = |url: &str| rule("fetch(evil.com)").denies("fetch", &a_url(url), key);
    for url in ["https://evil.com/", "https://evil.com./", "https://\u{24d4}vil.com/", r"https:\\evil.com"] {
        assert!(denies(url), "{url}");
    }
    assert!(!denies("https://docs.rs/"));
    let denies = |line: &str| rule("bash(git push)").denies("bash", &a_command(line), key);
    for line in [
        "git push",
        "cd x && git push --force",
        "A=b git push",
        "(git push)",
        "echo $(git push)",
        "if true; then git push; fi",
        "sudo 'git' push",
        "true\ngit push",
        "git push > log",
    ] {
        assert!(denies(line), "{line}");
    }
    for line in ["git status", "git pull && cargo test", "echo git push", "echo a; echo git push"] {
        assert!(!denies(line), "{line}");
    }
    assert!(!rule("bash(git push)").denies("write", &a_command("git push"), key));
}

#[test]
fn a_rule_like_a_call_allows_no_more_than_was_seen() {
    let like =
        |command: &str| ApprovalRule::for_call("bash", &a_command(command), key).map(|rule| rule.to_string());
    assert_eq!(like("rm -rf target").as_deref(), Some("bash(exactly: rm -rf target)"));
    assert_eq!(like("git -c core.pager=x log").as_deref(), Some("bash(exactly: git -c core.pager=x log)"));
    assert_eq!(like("env A=b cargo test").as_deref(), Some("bash(exactly: env A=b cargo test)"));
    assert_eq!(
        like("/usr/bin/timeout 5 make x").as_deref(),
        Some("bash(exactly: /usr/bin/timeout 5 make x)")
    );
    assert_eq!(like("make").as_deref(), Some("bash(exactly: make)"));
    assert_eq!(like("bash -c 'a b'"), None);
    // What is kept is kept in lines.
    let named = |path: &str| ApprovalRule::for_call("edit", &a_file(path), key).map(|rule| rule.to_string());
    assert_eq!(named("x)\nbash\n#y"), None);
}

#[test]
fn white_space_that_a_shell_does_not_know_is_part_of_a_word() {
    assert!(!bash("bash(cargo test)", "\u{a0}cargo test"));
    assert!(!bash("bash(cargo test)", "cargo test\r"));
    assert!(bash("bash(cargo test)", "cargo test\n"));
}

/// What is remembered of a command that was allowed for longer, and whether that covers another one.
fn remembered_covers(allowed: &str, other: &str) -> bool {
    let rule = ApprovalRule::for_call("bash", &a_command(allowed), key).expect("a rule");
    assert!(rule.covers("bash", &a_command(allowed), key), "{rule} covers what it was made for");
    // As it is read back from the file.
    let stored: ApprovalRule = rule.to_string().parse().unwrap();
    stored.narrowed().covers("bash", &a_command(other), key)
}

#[test]
fn what_is_remembered_does_not_grow_with_other_arguments() {
    for (allowed, other) in [
        ("rm a.tmp", "rm a.tmp -rf src"),
        ("rm a.tmp", "rm b.tmp"),
        ("find . -name x", "find . -delete"),
        ("find . -name x", "find . -name x -exec rm {} +"),
        ("find . -name x", "find . -fprint /tmp/x"),
        ("find . -name x", "find / -name id_rsa"),
        ("uv run pytest", "uv run python -c 1"),
        ("uv run pytest", "uv run pytest -p evil"),
        ("git diff", "git diff --output=src/a.rs"),
        ("git diff", "git diff --outpu=x"),
        ("git diff", "git diff --ext-diff"),
        ("git diff", "git diff --no-index a /etc/passwd"),
        ("git diff", "git -c core.pager=sh diff"),
        ("git log", "git log -p ../../other"),
        ("git branch", "git branch -D main"),
        ("git branch", "git branch new"),
        ("git tag", "git tag v1"),
        ("git remote -v", "git remote add x y"),
        ("sort a", "sort a -o b"),
        ("sort a", "sort --compress-program=sh a"),
        ("uniq a", "uniq a b"),
        ("sed -n 1,5p a", "sed -n 1,5p a -i"),
        ("sed -n 1,5p a", "sed -n '1w b' a"),
        ("sed -n 1,5p a", "sed -n '1e id' a"),
        ("rg x", "rg --pre sh x"),
        ("rg x", "rg -e -- --pre=./run x"),
        ("rg x", "rg --regexp -- --pre=./run x"),
        ("grep x a", "grep -e -- -f/etc/passwd a"),
        ("git log", "git log -S -- --output=a"),
        ("rg x", "rg x ~/.ssh"),
        ("cat a", "cat /etc/passwd"),
        ("cat a", "cat ~/.ssh/id_rsa"),
        ("cat a", "cat a > b"),
        ("cat a", "cat a $(id)"),
        ("ls", "./ls"),
        ("ls", "ls; id"),
        ("cargo test", "cargo test --config build.rustc-wrapper=x"),
        ("make", "make deploy"),
        ("rm '~'", "rm ~"),
        ("npm test", "npm test -- --x"),
        ("tree", "tree -o a"),
        ("tail a", "tail -f a"),
    ] {
        assert!(!remembered_covers(allowed, other), "{allowed} → {other}");
    }
}

#[test]
fn reading_with_other_arguments_needs_no_new_question() {
    for (allowed, other) in [
        ("git diff", "git diff --stat HEAD~2 -- src"),
        ("rg x", "rg -e x -- src -"),
        ("git log --oneline -5", "git log -p -n 3 --since=yesterday src/a.rs"),
        ("ls", "ls -la src"),
        ("grep -rn x src", "grep -c 'a b' README.md"),
        ("find . -name x", "find src -type f -not -name '*.rs'"),
        ("sed -n 1,5p a", "sed -n '10,$p' b"),
        ("rm a.tmp", "rm   'a.tmp'"),
    ] {
        assert!(remembered_covers(allowed, other), "{allowed} → {other}");
    }
}

#[test]
fn a_host_that_is_remembered_stands_for_itself() {
    let rule = ApprovalRule::for_call("fetch", &a_url("https://github.io/x"), key).unwrap();
    assert!(rule.covers("fetch", &a_url("http://github.io/y"), key));
    assert!(!rule.covers("fetch", &a_url("https://evil.github.io/"), key));
}

#[test]
fn a_rule_that_was_stored_before_covers_only_its_own_words() {
    let stored = rule("bash(cargo test)").narrowed();
    assert!(stored.covers("bash", &a_command("cargo test"), key));
    assert!(!stored.covers("bash", &a_command("cargo test -p x"), key));
}

#[test]
fn a_denied_command_is_found_behind_wrappers_options_and_folders() {
    let denies = |line: &str| rule("bash(git push)").denies("bash", &a_command(line), key);
    for line in [
        "env -i git push",
        "timeout 5 git push",
        "sudo -u x git push",
        "sh -c 'git push'",
        "bash -lc \"cd x; git push\"",
        "echo x | xargs git push",
        "git -C x push",
        "git --no-pager -c a=b push",
        "/usr/bin/git push",
        "git \\\npush",
        "g\\it push",
        "$'git' push",
        "{git,push}",
        "A=b exec git push",
    ] {
        assert!(denies(line), "{line}");
    }
    for line in ["git commit -m 'push'", "git log push", "ls git push", "cargo test"] {
        assert!(!denies(line), "{line}");
    }
}

#[test]
fn a_rule_says_what_it_covers_without_the_words_of_the_call() {
    let coverage = |command: &str| {
        ApprovalRule::for_call("bash", &a_command(command), key).unwrap().coverage()
            == RuleCoverage::Reading { command: "git diff".into() }
    };
    assert!(coverage("git diff --stat") && !coverage("git add x"));
    assert_eq!(rule("paint").coverage(), RuleCoverage::EveryCall);
}

/// Lines of the characters that matter to a shell, all that there are up to a length and then some.
fn shell_lines() -> Vec<String> {
    const PIECES: [&str; 26] = [
        "a", "b c", " ", "'", "\"", "\\", "$", "`", "~", "*", "?", "[a]", "{a,b}", ";", "&", "|", "<", ">",
        "(", ")", "#", "!", "\n", "\t", "=", "\u{a0}",
    ];
    let mut lines = Vec::new();
    for first in PIECES {
        for second in PIECES {
            lines.push(format!("a{first}{second}"));
            lines.push(format!("a {first}b{second}"));
            lines.push(format!("a '{first}' \"{second}\""));
            lines.extend(PIECES.map(|third| format!("a {first}{second}{third}a")));
        }
    }
    lines
}

/// What bash makes of lines: the words of each, as arguments of one command.
fn words_of_bash(lines: &[String]) -> Vec<Vec<String>> {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let script = r#"while IFS= read -r -d '' line; do eval "printf '%s\0' $line" 2>/dev/null </dev/null; printf '\1\0'; done"#;
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new("bash")
        .args(["--norc", "--noprofile", "-c", script])
        .current_dir(folder.path())
        .env_clear()
        .env("HOME", "/nowhere")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("bash is installed");
    let mut stdin = child.stdin.take().unwrap();
    let given: String = lines.iter().map(|line| format!("{line}\0")).collect();
    let writer = std::thread::spawn(move || stdin.write_all(given.as_bytes()));
    let output = child.wait_with_output().unwrap().stdout;
    writer.join().unwrap().unwrap();
    let output = String::from_utf8_lossy(&output).into_owned();
    let mut words: Vec<Vec<String>> = output
        .split("\u{1}\0")
        .map(|line| line.split_terminator('\0').map(str::to_owned).collect())
        .collect();
    words.pop();
    words
}

#[test]
fn a_line_that_is_one_plain_command_has_the_same_words_for_bash() {
    let plain =
        |line: &String| command::plain_words(line).filter(|words| words.iter().all(|word| !word.has_home));
    let lines: Vec<String> = shell_lines().into_iter().filter(|line| plain(line).is_some()).collect();
    assert!(lines.len() > 500, "{} lines are plain", lines.len());
    let of_bash = words_of_bash(&lines);
    assert_eq!(of_bash.len(), lines.len());
    for (line, words) in lines.iter().zip(of_bash) {
        let ours: Vec<String> = plain(line).unwrap().into_iter().map(|word| word.text).collect();
        assert_eq!(ours, words, "{line:?}");
        let again = command::quote_words(&plain(line).unwrap()).and_then(|line| command::plain_words(&line));
        assert!(again.is_none_or(|again| again == plain(line).unwrap()), "{line:?} is quoted faithfully");
    }
}

/// Each of these reads when it is used as it is meant, and writes, runs a program, reaches another
/// machine or reads elsewhere with these arguments.
#[test]
fn git_with_arguments_that_do_more_than_reading_is_not_read_only() {
    for line in [
        "git log --output=x",
        "git log --outpu=x",
        "git diff --output x",
        "git diff --no-index a b",
        "git diff --no-ind a b",
        "git diff --ext-diff",
        "git diff --textconv",
        "git diff /etc/passwd a",
        "git diff a ../b",
        "git diff -O/etc/passwd",
        "git show --textconv",
        "git log --show-signature",
        "git log --ext-diff -p",
        "git grep -O text",
        "git grep -Ovi text",
        "git grep --open-files-in-pager=vi text",
        "git grep --no-index text /etc",
        "git grep -f ../patterns",
        "git blame --contents /etc/passwd a",
        "git blame -S revs a",
        "git -c core.pager=x log",
        "git -c alias.log=!sh log",
        "git -C .. log",
        "git --exec-path=. log",
        "git --git-dir=x log",
        "git --paginate log",
        "git --config-env=core.pager=X log",
        "git ls-remote --upload-pack=./x .",
        "git fetch --upload-pack=./x .",
        "git archive --remote=. --exec=./x",
        "git ls-files -X ../x",
        "git ls-files --exclude-from=/etc/passwd",
        "git rev-parse --parseopt",
        "git branch new",
        "git branch -D main",
        "git branch --edit-description",
        "git tag v1",
        "git tag -d v1",
        "git remote add x y",
        "git remote update",
        "git describe --broken",
        "git config --list",
        "git config core.pager x",
        "git stash",
        "git reflog expire",
        "git notes add",
        "git log -- --output=x",
        "git log -n5 --output=x",
        "GIT_EXTERNAL_DIFF=./x git diff",
        "GIT_DIR=x git log",
        "env GIT_PAGER=x git log",
        "git diff --exit-code --quiet --output=x",
        "git show HEAD:../../x",
        "git help log",
        "git difftool",
        "git log --format=%x --output-directory=x",
    ] {
        assert!(read_only_words(line).is_none(), "{line}");
    }
    for line in ["git log --oneline -5", "git diff --stat HEAD", "git show HEAD:src/a.rs", "git grep -n text"]
    {
        assert!(read_only_words(line).is_some(), "{line}");
    }
}

#[test]
fn tools_of_servers_have_rules_of_their_own() {
    let covers = |rule: &str, name: &str| {
        let rule: ApprovalRule = rule.parse().unwrap();
        rule.covers("files__read", &CallSubject::ServerTool(name.into()), |_| None)
    };
    assert!(covers("mcp(files.read)", "files.read") && covers("mcp(files.*)", "files.read.more"));
    assert!(covers("mcp", "files.read") && covers("files__read", "files.read"));
    for (rule, name) in [
        ("mcp(files.read)", "files.reader"),
        ("mcp(file.*)", "files.read"),
        ("mcp(files)", "files.read"),
        ("mcp(*.*)", "files.read"),
        ("read", "files.read"),
        ("bash(files.read)", "files.read"),
    ] {
        assert!(!covers(rule, name), "{rule} {name}");
    }
    let remembered = |name: &str| {
        let rule = ApprovalRule::for_call("x", &CallSubject::ServerTool(name.into()), |_| None);
        rule.map(|rule| rule.narrowed().to_string())
    };
    assert_eq!(remembered("files.read").as_deref(), Some("mcp(files.read)"));
    assert_eq!((remembered("files.*"), remembered("files.a\nb")), (None, None));
    let deny: ApprovalRule = "mcp(files.*)".parse().unwrap();
    assert!(deny.denies("files__read", &CallSubject::ServerTool("files.read".into()), |_| None));
}

#[test]
fn requests_of_servers_to_a_model_have_rules_of_their_own() {
    let server = CallSubject::ServerTool("files".into());
    let covers = |rule: &str| {
        let rule: ApprovalRule = rule.parse().unwrap();
        rule.covers(SERVER_SAMPLING, &server, |_| None)
    };
    assert!(covers("mcp-sampling(files)") && covers("mcp-sampling"));
    for rule in ["mcp", "mcp(files)", "mcp(files.*)", "mcp-sampling(file)", "mcp-sampling(files.*)"] {
        assert!(!covers(rule), "{rule}");
    }
    let remembered = ApprovalRule::for_call(SERVER_SAMPLING, &server, |_| None).unwrap().narrowed();
    assert_eq!(remembered.to_string(), "mcp-sampling(files)");
    assert!(remembered.covers(SERVER_SAMPLING, &server, |_| None));
}
