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
    assert_eq!(like("bash", a_command("cargo test -p x")).as_deref(), Some("bash(cargo test)"));
    assert_eq!(like("bash", a_command("cargo test; x")), None);
    assert_eq!(like("edit", a_file("src/a.rs")).as_deref(), Some("edit(src/a.rs)"));
    assert_eq!(like("edit", a_file("/etc/passwd")), None);
    assert_eq!(like("fetch", a_url("https://docs.rs/x")).as_deref(), Some("fetch(docs.rs)"));
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
    assert_eq!(like("python3 run.py --fast").as_deref(), Some("bash(python3 run.py)"));
    // Not `ls`: what is said of `rm -rf target` must not hold for every `rm`.
    assert_eq!(like("ls -la").as_deref(), Some("bash(ls -la)"));
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
    assert_eq!(like("rm -rf target").as_deref(), Some("bash(rm -rf target)"));
    assert_eq!(like("git -c core.pager=x log").as_deref(), Some("bash(git -c core.pager=x log)"));
    assert_eq!(like("env A=b cargo test").as_deref(), Some("bash(env A=b cargo test)"));
    assert_eq!(like("/usr/bin/timeout 5 make x").as_deref(), Some("bash(/usr/bin/timeout 5 make x)"));
    assert_eq!(like("make").as_deref(), Some("bash(make)"));
    assert_eq!(like("bash -c 'a b'"), None);
    assert_eq!(like("'' rm"), None);
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
