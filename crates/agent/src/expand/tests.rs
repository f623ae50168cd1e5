//! From files to expanded texts.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tempfile::{TempDir, tempdir};

use super::*;

/// A place with a `config` and a `project` folder that hold these files.
fn place(files: &[(&str, &[u8])]) -> TempDir {
    let place = tempdir().unwrap();
    for (name, bytes) in files {
        let path = place.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    place
}

fn discovered(place: &Path) -> Expansions {
    let project = place.join("project");
    let files = Arc::new(files_below(&project, &project));
    let folders =
        Folder::defaults(Some(&place.join("config")), None, Some((&project, &files)), ForeignFolders::ALL);
    Expansions::discover(&FileGuard::for_folder(&project), &folders, &["help", "model"])
}

/// The content of the readable files below a folder, by path relative to the root.
fn files_below(root: &Path, folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let below = entries.flat_map(|path| match path.is_dir() {
        true => files_below(root, &path),
        false => {
            let content = path.is_file().then(|| fs::read(&path).ok()).flatten();
            let name = path.strip_prefix(root).unwrap().to_owned();
            content.map(|content| (name, content)).into_iter().collect()
        }
    });
    below.collect()
}

/// What was left out, paths relative to the place.
fn problems(place: &Path, found: &Expansions) -> Vec<(String, String)> {
    let tell = |problem: &ExpansionProblem| {
        let path = problem.path.strip_prefix(place).unwrap().display().to_string();
        (path, problem.fault.to_string().replace(&format!("{}/", place.display()), ""))
    };
    found.problems.iter().map(tell).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|&(path, what)| (path.to_owned(), what.to_owned())).collect()
}

#[test]
fn skills_of_user_and_project_are_found_and_called() {
    let place = place(&[
        (
            "config/skills/sort/SKILL.md",
            b"---\nname: sort\ndescription: >\n  Sorts\n  lines.\nlicense: MIT\n---\n\nSort.\n",
        ),
        (
            "config/skills/one.md",
            b"---\nname: one\ndescription: \"In: one file.\"\ndisable-model-invocation: true\n---\nOne.",
        ),
        (
            "project/.agents/skills/deploy/SKILL.md",
            b"---\r\nname: deploy\r\ndescription: Deploys.\r\n---\r\nRun it.\r\n",
        ),
        ("config/skills/README.md", b"About these skills."),
        ("config/skills/notes.txt", b"x"),
        ("config/skills/.git/HEAD", b"x"),
    ]);
    let found = discovered(place.path());
    assert!(found.problems.is_empty(), "{:?}", found.problems);

    let listing: Vec<_> =
        found.model_listing().into_iter().map(|s| (s.name, s.description, s.location)).collect();
    let sort = place.path().join("config/skills/sort/SKILL.md").display().to_string();
    let deploy = ".agents/skills/deploy/SKILL.md".to_owned();
    assert_eq!(
        listing,
        [
            ("deploy".to_owned(), "Deploys.".to_owned(), deploy),
            ("sort".to_owned(), "Sorts lines.".to_owned(), sort)
        ]
    );
    let expected = "<skill name=\"deploy\" location=\".agents/skills/deploy/SKILL.md\">\n\
                    References are relative to .agents/skills/deploy.\n\nRun it.\n</skill>\n\nto staging";
    let expanded = found.expand("/skill:deploy to staging");
    assert_eq!(
        (expanded.text.as_str(), expanded.used),
        (expected, Some(UsedExpansion::Skill("deploy".into())))
    );
    assert!(found.expand("/skill:one").text.ends_with("One.\n</skill>"));
}

#[test]
fn what_the_home_folder_has_for_other_agents_comes_after_the_user_s_own() {
    let skill =
        |name: &str, text: &str| format!("---\nname: {name}\ndescription: About {name}.\n---\n{text}\n");
    let place = place(&[
        ("config/skills/sort.md", skill("sort", "Own.").as_bytes()),
        ("config/templates/fix.md", b"Own."),
        ("home/.claude/skills/sort/SKILL.md", skill("sort", "Claude.").as_bytes()),
        ("home/.claude/skills/test/SKILL.md", skill("test", "Claude.").as_bytes()),
        ("home/.agents/skills/test/SKILL.md", skill("test", "Agents.").as_bytes()),
        ("home/.agents/skills/tidy/SKILL.md", skill("tidy", "Agents.").as_bytes()),
        ("home/.claude/commands/fix.md", b"Claude."),
        ("home/.claude/commands/help.md", b"Claude."),
        ("home/.claude/commands/web/page.md", b"Claude $1."),
        ("home/.codex/prompts/page.md", b"---\nargument-hint: NAME\n---\nCodex $1."),
        ("home/.claude/agents/tester.md", b"---\nname: tester\n---\nYou test."),
        ("project/.claude/skills/tidy/SKILL.md", skill("tidy", "Project.").as_bytes()),
        ("project/.hardpan/templates/page.md", b"Project."),
    ]);
    let (config, home, project) =
        (place.path().join("config"), place.path().join("home"), place.path().join("project"));
    let files = Arc::new(files_below(&project, &project));
    let found = |foreign| {
        let folders = Folder::defaults(Some(&config), Some(&home), Some((&project, &files)), foreign);
        Expansions::discover(&FileGuard::for_folder(&project), &folders, &["help"])
    };
    let unlisted = found(ForeignFolders { home_listed: false, ..ForeignFolders::ALL });
    let said = |call: &str| {
        let text = unlisted.expand(call).text;
        ["Own.", "Claude", "Agents.", "Codex", "Project."].into_iter().find(|who| text.contains(who))
    };
    assert_eq!(said("/skill:sort"), Some("Own."));
    assert_eq!(said("/skill:test"), Some("Claude"));
    assert_eq!(said("/skill:tidy"), Some("Agents."));
    assert_eq!(said("/fix"), Some("Own."));
    assert_eq!(unlisted.expand("/web:page home").text, "Claude home.");
    assert_eq!(unlisted.expand("/page home").text, "Codex home.");
    // The other agent does not know which names are taken here; the project should.
    assert_eq!(
        problems(place.path(), &unlisted),
        pairs(&[
            (
                "project/.claude/skills/tidy/SKILL.md",
                "the skill tidy is already in home/.agents/skills/tidy/SKILL.md, which is used: rename one of them"
            ),
            (
                "project/.hardpan/templates/page.md",
                "the template page is already in home/.codex/prompts/page.md, which is used: rename one of them"
            ),
        ])
    );
    let names =
        |skills: Vec<hardpan_context::Skill>| skills.into_iter().map(|skill| skill.name).collect::<Vec<_>>();
    assert_eq!(names(unlisted.model_listing()), ["sort"]);
    assert_eq!(names(unlisted.unlisted_home_skills()), ["test", "tidy"]);
    let listed = found(ForeignFolders::ALL);
    assert_eq!(names(listed.model_listing()), ["sort", "test", "tidy"]);
    assert_eq!(names(listed.unlisted_home_skills()), [""; 0]);
    let is_told = |expansions: &Expansions| {
        expansions.agents.iter().find(|agent| agent.name == "tester").map(|agent| agent.listed)
    };
    assert_eq!((is_told(&unlisted), is_told(&listed)), (Some(false), Some(true)));
    let none = found(ForeignFolders {
        home_claude_commands: false,
        home_codex_prompts: false,
        home_claude_skills: false,
        home_agents_skills: false,
        home_claude_agents: false,
        ..ForeignFolders::ALL
    });
    let skills: Vec<&str> = none.skills.iter().map(|skill| skill.name.as_str()).collect();
    let templates: Vec<&str> = none.templates.iter().map(|template| template.name.as_str()).collect();
    assert_eq!((skills, templates, is_told(&none)), (vec!["sort", "tidy"], vec!["fix", "page"], None));
}

#[test]
fn templates_are_found_and_described() {
    let place = place(&[
        (
            "config/templates/fix.md",
            b"---\ndescription: Fixes an issue.\nargument-hint: <issue> [crate]\n---\nFix $1 in $2.",
        ),
        ("project/.hardpan/templates/review_2.md", "# Review äöü\n\nAll of $@.\n".as_bytes()),
        ("project/.hardpan/templates/sub/x.md", b"not here"),
        ("project/.hardpan/templates/.hidden.md", b"not this"),
    ]);
    let found = discovered(place.path());
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    let name = |name: &str, description: &str, hint: Option<&str>| ExpansionName {
        kind: ExpansionKind::Template,
        name: name.into(),
        description: description.into(),
        argument_hint: hint.map(Into::into),
    };
    let expected =
        [name("fix", "Fixes an issue.", Some("<issue> [crate]")), name("review_2", "Review äöü", None)];
    assert_eq!(found.names(), expected);
    assert_eq!(found.expand("/fix '#1 $2'\n\"the parser\"").text, "Fix #1 $2 in the parser.");
    assert_eq!(found.expand("/review_2").text, "# Review äöü\n\nAll of .");
    assert!(
        found.is_known("fix")
            && !found.is_known("skill:fix")
            && !found.is_known("/fix")
            && !found.is_known("")
    );
}

#[test]
fn a_text_that_calls_nothing_known_is_unchanged() {
    let place = place(&[("config/templates/fix.md", b"Fixed.")]);
    let found = discovered(place.path());
    for text in [
        "",
        "/",
        "/ fix",
        " /fix",
        "a /fix",
        "/fixes",
        "/Fix",
        "/fix/x",
        "/skill:fix a",
        "/skill:",
        "//fix",
        "\u{feff}/fix",
    ] {
        let unchanged = ExpandedText { text: text.into(), used: None, notes: vec![] };
        assert_eq!(found.expand(text), unchanged);
    }
    for text in ["/fix", "/fix ", "/fix\n", "/fix\u{a0}"] {
        assert_eq!(found.expand(text).text, "Fixed.");
    }
    assert_eq!(found.nearest("fixx", &["fast", "quit"]), ["fix"]);
    assert_eq!(found.nearest("qui", &["fast", "quit"]), ["quit"]);
}

#[test]
fn the_first_of_a_name_wins_and_the_others_are_reported() {
    let skill = b"---\nname: same\ndescription: D.\n---\nBody.".as_slice();
    let place = place(&[
        ("config/skills/a.md", skill),
        ("config/skills/b/SKILL.md", skill),
        ("project/.hardpan/skills/same.md", skill),
        ("config/templates/t.md", b"the user's"),
        ("project/.hardpan/templates/t.md", b"the project's"),
        ("project/.hardpan/templates/help.md", b"mine"),
    ]);
    let found = discovered(place.path());
    assert!(found.skills[0].path.ends_with("config/skills/a.md"));
    assert_eq!(found.expand("/t").text, "the user's");
    let taken = "the skill same is already in config/skills/a.md, which is used: rename one of them";
    let expected = pairs(&[
        ("config/skills/b/SKILL.md", taken),
        ("project/.hardpan/skills/same.md", taken),
        ("project/.hardpan/templates/help.md", "/help is a built-in command: rename the file"),
        (
            "project/.hardpan/templates/t.md",
            "the template t is already in config/templates/t.md, which is used: rename one of them",
        ),
    ]);
    assert_eq!(problems(place.path(), &found), expected);
}

#[test]
fn every_fault_of_a_file_is_reported_with_its_remedy() {
    let long = format!("---\nname: long\ndescription: {}\n---\nx", "é".repeat(1_025));
    let fits = format!("---\nname: {}\ndescription: {}\n---\nx", "n".repeat(64), "é".repeat(1_024));
    let name = format!("---\nname: {}\ndescription: x\n---\nx", "n".repeat(65));
    let huge = vec![b'x'; 256 * 1024 + 1];
    let place = place(&[
        ("config/skills/bare.md", b"No front matter."),
        ("config/skills/fits.md", fits.as_bytes()),
        ("config/skills/long.md", long.as_bytes()),
        ("config/skills/name.md", name.as_bytes()),
        ("config/skills/none.md", b"---\nname: none\ndescription: D.\n---\n \n"),
        ("config/skills/open.md", b"---\nname: open\n"),
        ("config/skills/silent.md", b"---\nname: silent\ndescription: ''\n---\nx"),
        ("config/skills/unnamed.md", b"---\n---\nx"),
        ("config/skills/upper.md", b"---\nname: Upper\ndescription: D.\n---\nx"),
        ("config/skills/empty/skill.txt", b""),
        ("config/templates/blank.md", b"\n \n"),
        ("config/templates/huge.md", &huge),
        ("config/templates/latin.md", b"caf\xe9"),
        ("config/templates/two words.md", b"x"),
    ]);
    let found = discovered(place.path());
    assert_eq!(found.skills.len(), 1);
    assert_eq!(found.templates, []);
    let nn = "n".repeat(65);
    let bad_name = |name: &str| {
        format!("the name {name:?} cannot be used: take lower case letters, digits and hyphens, 64 at most")
    };
    let expected = pairs(&[
        (
            "config/skills/bare.md",
            "has no front matter: begin it with lines of ---, `name: …`, `description: …`, ---",
        ),
        ("config/skills/empty", "contains no SKILL.md: add one, or move the folder elsewhere"),
        (
            "config/skills/long.md",
            "its description has 1025 characters: shorten it to 1024, and say the rest below the front matter",
        ),
        ("config/skills/name.md", &bad_name(&nn)),
        ("config/skills/none.md", "has no text below its front matter: write what to do there"),
        ("config/skills/open.md", "its front matter is not closed: put a line of --- below it"),
        ("config/skills/silent.md", "its front matter has no `description`: say there when to use the skill"),
        ("config/skills/unnamed.md", "its front matter has no `name`: add one"),
        ("config/skills/upper.md", &bad_name("Upper")),
        ("config/templates/blank.md", "has no text: write the prompt into it, or remove it"),
        (
            "config/templates/huge.md",
            "is larger than 256 KB: shorten it, and move details to files that it refers to",
        ),
        (
            "config/templates/latin.md",
            "is not UTF-8 (byte 3 is the first wrong one): convert it, for example with iconv",
        ),
        (
            "config/templates/two words.md",
            "its name cannot be typed as a command: take letters, digits, hyphens, underscores and points",
        ),
    ]);
    assert_eq!(problems(place.path(), &found), expected);
}

#[test]
fn yaml_that_cannot_be_read_leaves_the_others_alone() {
    let place = place(&[
        ("config/skills/a.md", b"---\nname: a\ndescription: Use when: asked\n---\nx"),
        ("config/skills/b.md", b"---\n- name\n---\nx"),
        ("config/skills/c.md", b"---\nname: c\nname: d\ndescription: D.\n---\nx"),
        ("config/skills/d.md", b"---\nname: d\ndescription: D.\n---\nx"),
    ]);
    let found = discovered(place.path());
    assert_eq!(found.skills.iter().map(|skill| &*skill.name).collect::<Vec<_>>(), ["d"]);
    let found_problems = problems(place.path(), &found);
    assert_eq!(found_problems.len(), 3);
    for (_, what) in found_problems {
        assert!(what.starts_with("its front matter cannot be read ("), "{what}");
    }
}

#[cfg(unix)]
mod links {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_that_lead_nowhere_or_in_circles_are_reported() {
        let place = place(&[("config/skills/x.txt", b""), ("config/templates/x.txt", b"")]);
        let config = place.path().join("config");
        symlink("loop", config.join("skills/loop")).unwrap();
        symlink(".", config.join("skills/self")).unwrap();
        symlink("nothing.md", config.join("templates/gone.md")).unwrap();
        symlink("/dev/zero", config.join("templates/zero.md")).unwrap();
        let found_problems = problems(place.path(), &discovered(place.path()));
        assert_eq!(
            found_problems.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(),
            [
                "config/skills/loop",
                "config/skills/self",
                "config/templates/gone.md",
                "config/templates/zero.md"
            ]
        );
        assert!(found_problems[0].1.starts_with("is a link that cannot be followed ("), "{found_problems:?}");
        assert_eq!(found_problems[1].1, "contains no SKILL.md: add one, or move the folder elsewhere");
        assert_eq!(found_problems[2].1, "links to a file that does not exist: correct the link");
        assert_eq!(found_problems[3].1, "is not a regular file: put a text file in its place");
    }

    #[test]
    fn a_project_cannot_link_to_the_user_s_files_but_the_user_can() {
        let skill = b"---\nname: far\ndescription: D.\n---\nBody.".as_slice();
        let place = place(&[
            ("elsewhere/far/SKILL.md", skill),
            ("elsewhere/secret", b"key"),
            ("project/.hardpan/templates/own.md", b"own"),
            ("config/skills/x.txt", b""),
        ]);
        let at = |name: &str| place.path().join(name);
        symlink(at("elsewhere/far"), at("config/skills/far")).unwrap();
        symlink(at("elsewhere/secret"), at("project/.hardpan/templates/steal.md")).unwrap();
        symlink("own.md", at("project/.hardpan/templates/copy.md")).unwrap();
        let found = discovered(place.path());
        assert!(found.is_known("skill:far"));
        assert!(!found.is_known("steal"));
        assert_eq!(found.expand("/copy").text, "own");
        assert_eq!(found.expand("/own").text, "own");
        let outside = "links to a place outside the project: copy the file into the project";
        assert_eq!(
            problems(place.path(), &found),
            pairs(&[("project/.hardpan/templates/steal.md", outside)])
        );
    }

    #[test]
    fn a_folder_that_is_reached_twice_is_no_conflict() {
        let place = place(&[
            ("project/.hardpan/skills/a/SKILL.md", b"---\nname: a\ndescription: D.\n---\nBody."),
            ("project/.agents/x", b""),
        ]);
        symlink("../.hardpan/skills", place.path().join("project/.agents/skills")).unwrap();
        let found = discovered(place.path());
        assert_eq!((found.skills.len(), found.problems.len()), (1, 0));
    }
}

/// Pieces that texts, bodies and arguments are made of: every form of a place, quotes, and letters
/// of several bytes.
fn pieces() -> impl Strategy<Value = String> {
    let places =
        ["$1", "$9", "$@", "$ARGUMENTS", "${10}", "${@:2}", "${@:2:3}", "$$", "$", "${", "}", "${@:"];
    let others = ["'", "\"", "\\", " ", "\n", "é", "日本", "🦀", "a", "7", "</skill>", "/", "skill:s", "t"];
    let piece = prop::sample::select([&places[..], &others[..]].concat());
    prop_oneof![
        3 => prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat()),
        1 => any::<String>(),
    ]
}

fn template(body: String) -> Template {
    Template {
        name: "t".into(),
        description: String::new(),
        argument_hint: None,
        path: "t.md".into(),
        body,
        listed: true,
        notes: Vec::new(),
    }
}

/// An argument as it must be typed to arrive as it is.
fn quoted(argument: &str) -> String {
    format!("'{}'", argument.replace('\'', "'\\''"))
}

proptest! {
    #[test]
    fn an_argument_is_never_expanded(arguments in prop::collection::vec(pieces(), 0..4)) {
        let body = "[$1] [$2] [$3] [$@] [$ARGUMENTS] [${@:2}] [${@:2:1}]";
        let line: Vec<String> = arguments.iter().map(|argument| quoted(argument)).collect();
        let expanded = template(body.into()).expand(&line.join(" "));
        let one = |index: usize| arguments.get(index).cloned().unwrap_or_default();
        let from = |index: usize| arguments.get(index..).unwrap_or_default().join(" ");
        let expected = format!(
            "[{}] [{}] [{}] [{}] [{}] [{}] [{}]",
            one(0), one(1), one(2), from(0), from(0), from(1), one(1)
        );
        prop_assert_eq!(expanded.text, expected);
    }

    #[test]
    fn a_body_without_places_comes_back_as_it_is(body in pieces(), line in pieces()) {
        let body = body.replace('$', "");
        prop_assert_eq!(template(body.clone()).expand(&line).text, body);
    }

    #[test]
    fn no_text_is_too_odd(text in pieces(), body in pieces()) {
        let skill = Skill {
            name: "s".into(),
            description: String::new(),
            location: text.clone(),
            path: "s.md".into(),
            body: body.clone(),
            listed: true,
            is_kept_back: false,
        };
        let known = Expansions { skills: vec![skill], templates: vec![template(body)], agents: vec![], problems: vec![] };
        let plain = known.expand(&text);
        prop_assert!(plain.used.is_some() || plain.text == text);
        let rest = format!(" {text}");
        let of_the_template = known.expand(&format!("/t{rest}"));
        prop_assert!(of_the_template.used.is_some());
        let element = known.expand("/skill:s").text;
        prop_assert_eq!(element.matches("</skill").count(), 1);
        let called = known.expand(&format!("/skill:s{rest}")).text;
        prop_assert!(called.starts_with(&element));
    }
}
