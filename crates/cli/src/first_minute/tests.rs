use hardpan_app::NotableName;

use super::*;

#[test]
fn without_a_key_three_lines_say_who_answers_and_what_to_do() {
    let opening = Opening { folder: "~/retry-demo".into(), ..Opening::default() };
    let lines = opening.lines();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with("hardpan ") && lines[0].ends_with(" · ~/retry-demo"), "{lines:?}");
    assert!(lines[1].contains("offline assistant") && lines[1].contains("costs nothing"), "{lines:?}");
    assert!(lines[2].contains("/key") && lines[2].contains("OPENAI_API_KEY"), "{lines:?}");
}

#[test]
fn with_a_key_the_model_the_price_and_the_last_conversation_are_told() {
    let model = ModelLine {
        name: "anthropic/claude-sonnet-5-5".into(),
        effort: Some("high".into()),
        layout: "strata".into(),
    };
    let opening = Opening { folder: "/srv/x".into(), model: Some(model), messages: 2 };
    assert_eq!(
        opening.lines()[1..],
        ["anthropic/claude-sonnet-5-5 high · strata"],
        "the first line ends with: 2 messages so far"
    );
    assert!(opening.lines()[0].ends_with("/srv/x · 2 messages so far"));
    let outlook = Outlook {
        folder: FolderFacts {
            branch: Some("main".into()),
            changed_files: Some(3),
            files: Some(1214),
            instruction_files: vec!["sub/AGENTS.md".into(), "AGENTS.md".into()],
            skills: 2,
            notable_names: Vec::new(),
        },
        first_request: Some(RequestPrice { tokens: 4100, dollars: Some(0.0102) }),
        ping_dollars: Some(0.0004),
        last: Some(LastConversation {
            about: "cap the gap\u{1b}[2J penalty".into(),
            age: Duration::from_secs(7300),
            dollars: 0.48,
        }),
        ..Outlook::default()
    };
    assert_eq!(
        outlook.lines(100),
        [
            "main, 3 changed · 1,214 files · AGENTS.md · 2 skills",
            "first request about 4,100 tokens, $0.010",
            "keep_alive is on: a pause costs $0.0004 or more each time, while that saves money",
            "last time here: \"cap the gap\u{fffd}[2J penalty\", 2 h ago, $0.48 · /resume",
        ]
    );
}

#[test]
fn offline_the_prompts_are_made_from_the_folder() {
    let name = |name: &str| NotableName { name: name.into(), path: format!("{name}.rs"), users: 3 };
    let agent = |name, count| AgentSessions { name, count, is_cut: false };
    let mut outlook = Outlook { is_offline: true, ..Outlook::default() };
    outlook.folder.notable_names = vec![name("RetryPolicy"), name("Budget")];
    outlook.other_agents = vec![agent("Claude Code", 30), agent("Codex", 10), agent("pi", 1)];
    assert_eq!(
        outlook.lines(100),
        [
            "try  who uses RetryPolicy?   where is Budget defined?   /map",
            "41 sessions of Claude Code, Codex and pi on this machine: hardpan audit --discover",
        ]
    );
    outlook = Outlook { is_offline: true, ..Outlook::default() };
    assert_eq!(
        outlook.lines(100),
        ["try  what is in this folder?   where are errors handled?   what does README.md say?"]
    );
    let narrow =
        ["try  what is in this folder?", "     where are errors handled?", "     what does README.md say?"];
    assert_eq!(outlook.lines(40), narrow);
}

#[test]
fn folders_are_shortened_below_home_only() {
    let short = |folder: &str, home: &str| short_folder(Path::new(folder), Path::new(home));
    assert_eq!(short("/home/me/x", "/home/me"), "~/x");
    assert_eq!(short("/home/me", "/home/me"), "~");
    assert_eq!(short("/home/meadow", "/home/me"), "/home/meadow");
    assert_eq!(short("/srv", ""), "/srv");
}
