//! The texts that the layouts `panels`, `tiers` and `inline` put around items are, to the letter,
//! those of the systems that they model.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod support;

use serde_json::Value;
use support::{Sandbox, snapshot, texts};

fn body(name: &str, layout: &str) -> Value {
    let file = snapshot(name);
    Sandbox::new().json(&[
        "request",
        "--snapshot",
        &file,
        "--layout",
        layout,
        "--model",
        "claude-sonnet-5",
        "--json",
    ])
}

/// Role and text of each message, for messages of one text.
fn role_and_text(body: &Value) -> Vec<(&str, &str)> {
    let messages = body["messages"].as_array().unwrap().iter();
    messages.filter_map(|message| Some((message["role"].as_str()?, *texts(message).first()?))).collect()
}

#[test]
fn panels_use_the_documented_texts() {
    let body = body("everything", "panels");
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(
        texts(&messages[1]),
        [
            "Beginning of dynamic panel display. All content displayed below may be considered up to date.",
            "Panel automatically generated at 2026-02-18T07:33:20Z",
        ]
    );
    assert_eq!(texts(&messages[2]), ["======= [P11] File: README.md =======\n# App\n\nIt runs.\n"]);
    // The header stands before the first panel only.
    assert_eq!(texts(&messages[3]), ["Panel automatically generated at 2026-02-19T11:20:00Z"]);
    let footer = messages.iter().position(|message| message["content"][1]["id"] == "panel_footer").unwrap();
    assert_eq!(
        texts(&messages[footer]),
        ["End of dynamic panel displays...\n\
          Message timestamps:\n\
          - m2 (assistant): 2026-02-19T13:40:00Z\n\
          - m3 (user): 2026-02-19T13:41:00Z\n\
          - m4 (assistant): 2026-02-19T13:41:05Z\n\
          - m5 (tool): 2026-02-19T13:41:06Z\n\
          - m6 (tool): 2026-02-19T13:41:07Z\n\
          - m7 (assistant): 2026-02-19T13:41:09Z\n\
          Current datetime: 2026-02-19T14:00:00Z\n\
          Current working directory: /srv/app"]
    );
    assert_eq!(messages[footer]["content"][1]["input"], serde_json::json!({"action": "end_panels"}));
    assert_eq!(texts(&messages[footer + 1]), ["Panel display complete. Proceeding with conversation."]);
    let system = body["system"][0]["text"].as_str().unwrap();
    let repeated = format!("System instructions (repeated for emphasis):\n\n{system}");
    assert_eq!(texts(&messages[footer + 2]), [repeated.as_str()]);
    assert_eq!(texts(&messages[footer + 3]), ["Understood. I will follow these instructions."]);
}

#[test]
fn panels_are_sorted_by_their_refresh_and_ties_by_number() {
    let body = body("everything", "panels");
    let calls = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|message| message["content"].as_array().unwrap());
    let ids: Vec<&str> =
        calls.filter(|block| block["name"] == "dynamic_panel").map(|b| b["id"].as_str().unwrap()).collect();
    let expected = "P11 P5 P3 P1 P2 P10 P14 P15 P16 P17 P12 git footer";
    assert_eq!(ids, expected.split(' ').map(|id| format!("panel_{id}")).collect::<Vec<_>>());
}

#[test]
fn tiers_use_the_documented_texts() {
    let body = body("l0_history", "tiers");
    let l0 = "You are a careful coding agent.\n\nTabs, not spaces.\n\n\
        Use the declared tools when the answer depends on something you have not been shown, \
        and never invent their results.\n\n\
        When asked about Hardpan itself, do not guess: `hardpan docs` lists its documents, `hardpan docs NAME` \
        prints one.\n\n\
        # Repository Structure\n\n\
        Below is a map of the repository showing classes, functions, and their relationships.\n\
        Use this to understand the codebase structure and find relevant code.\n\n\
        c=class f=function\n@1/=src/core/\n\n@1/a.py: ←4\nf start\n\n@1/b.py: ←3\nc B\n\n\
        # Reference Files (Stable)\n\nThese files are included for reference:\n\n\
        pyproject.toml\n```\n[project]\n\n```\n\nsetup.cfg\n```\n[flake8]\n```";
    assert_eq!(body["system"][0]["text"], l0);
    let expected = [
        ("user", "What is this?"),
        ("assistant", "A package."),
        (
            "user",
            "# Repository Structure (continued)\n\nsrc/c.py: ←2\nf c\n\n\
             # Reference Files\n\nThese files are included for reference:\n\nsrc/one.py\n```\none = 1\n\n```",
        ),
        ("assistant", "Ok."),
        ("user", "Who uses a.py?"),
        ("assistant", "Four files. (Its exchange is held back by the question, which is in L1.)"),
        (
            "user",
            "# Repository Structure (continued)\n\nsrc/d.py:\nf d\n\n\
             # Reference Files (L2)\n\nThese files are included for reference:\n\nsrc/two.py\n```\ntwo = 2\n\n```",
        ),
        ("assistant", "Ok."),
        (
            "user",
            "# Repository Structure (continued)\n\nsrc/e.py:\nf e\n\nsrc/new.py: untracked\nf new\n\n\
             # Reference Files (L3)\n\nThese files are included for reference:\n\nsrc/three.py\n```\nthree = 3\n\n```",
        ),
        ("assistant", "Ok."),
        ("user", "Run it."),
        // The message of the call has no text.
        ("user", "started"),
        ("assistant", "It runs."),
        (
            "user",
            "# Repository Files\n\nComplete list of files in the repository:\n\n\
             # File Tree (4 files)\n\n.gitignore\nREADME.md\nsrc/core/a.py\nsrc/open.py",
        ),
        ("assistant", "Ok."),
        (
            "user",
            "# URL Context\n\nThe following content was fetched from URLs mentioned in the conversation:\n\n\
             Guide\n\nHow to start.",
        ),
        ("assistant", "Ok, I've reviewed the URL content."),
        ("user", "# Working Files\n\nHere are the files:\n\nsrc/open.py\n```\ndef open():\n    pass\n\n```"),
        ("assistant", "Ok."),
        ("user", "Good."),
        ("assistant", "Anything else?"),
        ("user", "Stop it again."),
    ];
    assert_eq!(role_and_text(&body), expected);
}

#[test]
fn a_marker_ends_each_tier_and_the_conversation() {
    let marked = |name: &str| -> Vec<String> {
        let body = body(name, "tiers");
        let mut marked: Vec<String> = Vec::new();
        if body["system"][0].get("cache_control").is_some() {
            marked.push("system".into());
        }
        for message in body["messages"].as_array().unwrap() {
            let blocks = message["content"].as_array().unwrap().iter();
            marked.extend(
                blocks
                    .filter(|b| b.get("cache_control").is_some())
                    .map(|b| b["text"].as_str().unwrap().into()),
            );
        }
        marked
    };
    // With history in L0 the marker is on its last message, and the system message has none. There are
    // four: here L3 spares nothing.
    let held = "Four files. (Its exchange is held back by the question, which is in L1.)";
    assert_eq!(marked("l0_history"), ["A package.", held, "Ok.", "Stop it again."]);
    // Without, it is on the system message; L1 to L3 are empty and skipped.
    let plain = marked("plain");
    assert_eq!((plain.len(), &*plain[0]), (2, "system"), "{plain:?}");
}

#[test]
fn pages_are_joined_by_a_line() {
    let body = body("everything", "tiers");
    let expected = "# URL Context\n\nThe following content was fetched from URLs mentioned in the conversation:\n\n\
        One\n\nFirst page.\n\nf one\n---\nhttps://example.org/2\n\nSecond page.\n---\nThree\n\nThird page.\n---\n\
        Four\n\nOne page too many for the tiers.";
    assert!(role_and_text(&body).contains(&("user", expected)), "{:#?}", role_and_text(&body));
}

#[test]
fn the_context_of_inline_stands_right_before_the_last_user_message() {
    let body = body("images", "inline");
    let messages = body["messages"].as_array().unwrap();
    let [.., answer, file, image, prompt] = &messages[..] else { panic!("{messages:#?}") };
    assert_eq!(texts(answer), ["It is green."]);
    assert_eq!(
        (file["role"].as_str(), texts(file)),
        (Some("user"), vec!["Context from src/button.css:\n\nbutton { color: green }\n"])
    );
    assert_eq!(texts(image), ["Context from docs/button.png:"]);
    assert_eq!(image["content"][1]["type"], "image");
    let [words, time] = &texts(prompt)[..] else { panic!("{prompt:#}") };
    assert_eq!((*words, *time), ("Make it as in these two.", "Current date and time: 2026-02-19T14:00:00Z"));
}

#[test]
fn a_continuation_of_inline_sends_no_context() {
    let body = body("continuation", "inline");
    assert_eq!(role_and_text(&body), [("user", "What does main do?"), ("user", "fn main() {}\n")]);
}

#[test]
fn inline_takes_the_search_plugin_of_the_provider_s_row() {
    let file = snapshot("everything");
    let args = ["request", "--snapshot", &file, "--layout", "inline", "--json", "--model"];
    let sandbox = Sandbox::new();
    let openrouter =
        sandbox.json(&[&args[..], &["anthropic/claude-sonnet-4.5", "--provider", "openrouter"]].concat());
    assert_eq!(openrouter["plugins"], serde_json::json!([{"id": "web", "max_results": 3}]));
    assert_eq!((&openrouter["stream"], &openrouter["include_reasoning"]), (&true.into(), &true.into()));
    let openai = sandbox.json(&[&args[..], &["gpt-4.1"]].concat());
    assert_eq!(openai.get("plugins"), None);
    assert_eq!(openai["stream_options"], serde_json::json!({"include_usage": true}));
}
