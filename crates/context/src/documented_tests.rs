//! What the documents of the modelled systems say and no other test shows; `docs/conformance.md` names
//! these tests.

use hardpan_models::Catalogue;
use hardpan_prompt::{Content, ItemKind, Prompt, Segment, Source, Tier, Vocabulary};
use serde_json::{Value, json};

use crate::breakdown::Breakdown;
use crate::inline::require_all_properties;
use crate::test_snapshots::{
    assemble_for_claude, calls, left_out, lines, model, result, snapshot, snapshot_with_state, tool, user,
};
use crate::{LayoutName, PromptTexts, RenderCache, Snapshot, Target};

/// The segments of the system prompt.
fn system_segments(prompt: &Prompt) -> Vec<Segment> {
    let segments = |block: &hardpan_prompt::Block| match &*block.content {
        Content::Text(segments) => segments.clone(),
        other => panic!("{other:?}"),
    };
    prompt.system.iter().flat_map(segments).collect()
}

fn system_text(json: Value, layout: LayoutName) -> String {
    let made = assemble_for_claude(&snapshot(json), layout);
    system_segments(&made.prompt).iter().map(|segment| segment.text.as_str()).collect()
}

/// The breakdown of a request for a current Claude model.
fn breakdown(snapshot: &Snapshot, layout: LayoutName) -> Breakdown {
    let target = Target::new(Catalogue::builtin(), None, "claude-sonnet-5").unwrap();
    let made = assemble_for_claude(snapshot, layout);
    Breakdown::new(&made, snapshot, &target, &RenderCache::new(Vocabulary::O200k))
}

#[test]
fn a_message_without_content_is_not_sent() {
    let json = json!({"messages": [
        user("m1", "go"),
        {"id": "m2", "role": "assistant", "content": []},
        {"id": "m3", "role": "assistant", "content": "  "},
        user("m4", ""),
        model("m5", "done"),
    ], "prompt": "now"});
    for layout in LayoutName::ALL {
        let prompt = assemble_for_claude(&snapshot(json.clone()), layout).prompt;
        let of = |block: &hardpan_prompt::Block| block.origin().map(|origin| origin.source.clone());
        let sent: Vec<String> = prompt
            .messages
            .iter()
            .flat_map(|message| message.blocks.iter().filter_map(of))
            .filter(|source| matches!(source, Source::Message(_)))
            .map(|source| source.to_string())
            .collect();
        for id in ["m2", "m3", "m4"] {
            assert!(!sent.contains(&format!("message:{id}")), "{layout} {sent:?}");
        }
        assert!(sent.contains(&"message:m1".into()) && sent.contains(&"message:m5".into()), "{sent:?}");
    }
}

#[test]
fn the_live_conversation_is_counted_with_its_calls_and_results() {
    let tokens = |messages: Value| {
        let snapshot = snapshot(json!({"messages": messages, "tools": [tool("read")], "prompt": "now"}));
        breakdown(&snapshot, LayoutName::Panels).conversation_tokens.unwrap()
    };
    let text = tokens(json!([user("m1", "go"), model("m2", "yes")]));
    let called = tokens(json!([user("m1", "go"), model("m2", "yes"), calls("m3", &[("a", "read")])]));
    let answered = tokens(json!([
        user("m1", "go"),
        model("m2", "yes"),
        calls("m3", &[("a", "read")]),
        result("m4", "a", "many words are in this file"),
    ]));
    assert!(0 < text && text < called && called < answered, "{text} {called} {answered}");
    // Counted anew with every request: a deleted message counts no more.
    let deleted = json!({"id": "m2", "role": "assistant", "content": "yes", "state": "deleted"});
    assert!(tokens(json!([user("m1", "go"), deleted])) < text);
    assert_eq!(breakdown(&snapshot(json!({"prompt": "now"})), LayoutName::Inline).conversation_tokens, None);
}

#[test]
fn a_panel_is_a_hit_while_it_and_all_before_it_are_unchanged() {
    let items = |second: &str| {
        let item = |number: usize, content: &str| {
            json!({"id": format!("P{number}"), "header": format!("Panel {number}"), "content": content,
                "last_refresh_ms": number})
        };
        json!({"items": [item(1, "one"), item(2, second), item(3, "three")], "prompt": "now"})
    };
    let mut state = assemble_for_claude(&snapshot(items("two")), LayoutName::Panels).layout_state;
    let expected = [("two", [1, 1, 1]), ("changed", [2, 1, 1]), ("changed", [3, 2, 2])];
    for (content, hits) in expected {
        let before = snapshot_with_state(&state, items(content));
        state = assemble_for_claude(&before, LayoutName::Panels).layout_state;
        let counted: Vec<u32> = state.panels.shown.iter().map(|shown| shown.hits).collect();
        assert_eq!(counted, hits, "{content}");
        assert!(state.panels.shown.iter().all(|shown| shown.cost > 0.0));
    }
}

#[test]
fn the_default_prompt_has_every_documented_section() {
    let with = |edit_blocks: bool, layout| {
        let text = system_text(json!({"system": {"edit_blocks": edit_blocks}, "prompt": "now"}), layout);
        let headings = text.lines().filter_map(|line| line.strip_prefix("# "));
        headings.map(str::to_owned).collect::<Vec<String>>()
    };
    let all = ["Role", "Symbol map", "Edit protocol", "Workflow", "Failure recovery", "Context trust"];
    assert_eq!(with(true, LayoutName::Tiers), all);
    // What is not in use costs nothing.
    assert_eq!(with(false, LayoutName::Strata), ["Role", "Workflow", "Failure recovery", "Context trust"]);
    // The reminder is for prompts that do not explain edit blocks themselves.
    let reminder = PromptTexts::builtin().unwrap().reminder;
    let reminds = |edit_blocks: bool, agent: Value| {
        let json = json!({"system": {"edit_blocks": edit_blocks, "agent": agent}, "prompt": "now"});
        system_text(json, LayoutName::Strata).contains(reminder.trim_end())
    };
    let own = || json!("You are terse.");
    let cases = [(false, Value::Null), (true, Value::Null), (false, own()), (true, own())];
    assert_eq!(cases.map(|(edit_blocks, agent)| reminds(edit_blocks, agent)), [false, false, false, true]);
}

#[test]
fn the_system_prompt_has_its_parts_in_the_documented_order() {
    let mut brief = tool("brief");
    brief["snippet"] = json!("in short");
    brief["guidelines"] = json!(["be careful", "be careful"]);
    let json = json!({
        "system": {
            "agent": "THE AGENT",
            "extra": "THE EXTRA TEXT",
            "append": "THE SETTING",
            "project_files": [{"path": "AGENTS.md", "content": "THE PROJECT"}],
            "skills": [{"name": "sort", "description": "how to sort", "location": "/skills/sort.md"}],
        },
        "tools": [brief, tool("plain")],
        "prompt": "now",
    });
    for layout in LayoutName::ALL {
        let text = system_text(json.clone(), layout);
        let parts = [
            "THE AGENT",
            "THE EXTRA TEXT",
            "Available tools:\n- brief: in short\n- plain: d",
            "Guidelines:\n- be careful\n\n",
            "THE SETTING",
            "## AGENTS.md\n\nTHE PROJECT",
            "- sort: how to sort (/skills/sort.md)",
            "Use the declared tools",
            "`hardpan docs`",
        ];
        let places: Vec<usize> =
            parts.iter().map(|part| text.find(part).unwrap_or_else(|| panic!("{part}\n{text}"))).collect();
        assert!(places.is_sorted(), "{layout} {places:?}\n{text}");
        assert!(!text.contains("2026-02-19"), "no clock: {layout}");
    }
    // Without tools nothing is said of them.
    let text = system_text(json!({"system": {"agent": "THE AGENT"}, "prompt": "now"}), LayoutName::Inline);
    assert!(text.ends_with("THE AGENT"), "{text}");
}

#[test]
fn inline_begins_with_the_chosen_prompt_and_the_agent_s_before_it() {
    let agent = PromptTexts::builtin().unwrap().agent;
    let text = |mode: &str, system: Value| {
        system_text(json!({"agent_mode": mode, "system": system, "prompt": "now"}), LayoutName::Inline)
    };
    let general = json!({"agent": "THE GENERAL PROMPT"});
    let custom = json!({"prompt_type": "custom", "custom": "MY OWN PROMPT"});
    let missing = json!({"prompt_type": "custom"});
    assert_eq!(text("on", general.clone()), format!("{agent}\n\nTHE GENERAL PROMPT"));
    assert_eq!(text("off", general), "THE GENERAL PROMPT");
    assert_eq!(text("on", custom.clone()), format!("{agent}\n\nMY OWN PROMPT"));
    assert_eq!(text("off", custom), "MY OWN PROMPT");
    for mode in ["on", "off"] {
        assert_eq!(text(mode, json!({"prompt_type": "agent"})), agent.as_str(), "not twice");
    }
    assert!(text("off", missing).starts_with("You are a coding assistant."));
}

#[test]
fn what_is_switched_off_is_left_out_and_listed() {
    let json = |field: &str, on: bool| {
        let mut json = json!({
            "tree": {"files": ["a.py", "src/b.py", "src/c.py"]},
            "symbols": {"legend": "f=function", "entries": [{"path": "a.py", "content": "a.py:\nf a"}]},
            "prompt": "now",
        });
        json[field] = json!(on);
        snapshot(json)
    };
    let tiers = |on| assemble_for_claude(&json("use_repo_map", on), LayoutName::Tiers).prompt;
    assert!(lines(&tiers(true)).iter().any(|line| line.contains("# File Tree (3 files)")));
    let kinds = |prompt: &Prompt| -> Vec<ItemKind> {
        prompt.blocks().filter_map(|block| block.origin().map(|origin| origin.kind)).collect()
    };
    let off = tiers(false);
    let map = [ItemKind::Tree, ItemKind::Legend, ItemKind::Symbols];
    assert!(kinds(&off).iter().all(|kind| !map.contains(kind)), "{:?}", lines(&off));
    assert_eq!(left_out(&off).len(), 3, "{:?}", left_out(&off));
    let inline = |on| assemble_for_claude(&json("directory_map", on), LayoutName::Inline).prompt;
    let map = "user: Directory structure of the workspace:\n\n./ (1 file)\nsrc/ (2 files)";
    assert!(lines(&inline(true)).iter().any(|line| line.starts_with(map)), "{:?}", lines(&inline(true)));
    assert!(!lines(&inline(false)).iter().any(|line| line.contains("Directory structure")));
}

#[test]
fn a_tree_of_folders_says_so_and_counts_files() {
    let json =
        json!({"tree": {"files": ["README.md", "src/ (60 files)", "tests/ (1 file)"]}, "prompt": "now"});
    let lines = lines(&assemble_for_claude(&snapshot(json), LayoutName::Tiers).prompt);
    let tree = lines.iter().find(|line| line.contains("# File Tree")).unwrap();
    assert!(tree.contains("# File Tree (62 files)\n\nREADME.md\nsrc/ (60 files)"), "{tree}");
    assert!(!tree.contains("Complete list"), "{tree}");
}

#[test]
fn a_file_that_cannot_be_read_leaves_no_header_behind() {
    let json = json!({"files": [{"path": "gone.py", "reason": "it is gone"}], "prompt": "now"});
    let prompt = assemble_for_claude(&snapshot(json), LayoutName::Tiers).prompt;
    assert!(!lines(&prompt).iter().any(|line| line.contains("Working Files")), "{:?}", lines(&prompt));
    assert_eq!(left_out(&prompt), ["file:gone.py: it is gone"]);
}

#[test]
fn paths_have_forward_slashes() {
    let json = json!({"files": [{"path": "src\\a.py", "content": "a"}], "prompt": "now"});
    let prompt = assemble_for_claude(&snapshot(json), LayoutName::Tiers).prompt;
    assert!(lines(&prompt).iter().any(|line| line.contains("src/a.py\n```\na\n```")), "{:?}", lines(&prompt));
}

#[test]
fn a_file_is_in_the_tier_it_is_tracked_in_and_active_otherwise() {
    let file = |path: &str, tier: Value| json!({"path": path, "content": "text", "tier": tier});
    let files = [file("a.py", json!("L1")), file("b.py", json!("L3")), file("c.py", Value::Null)];
    let made = assemble_for_claude(&snapshot(json!({"files": files, "prompt": "now"})), LayoutName::Tiers);
    let headers: Vec<String> = lines(&made.prompt)
        .into_iter()
        .filter_map(|line| line.strip_prefix("user: # ").map(|rest| rest.replace('\n', "|")))
        .collect();
    assert!(headers[0].starts_with("Reference Files||") && headers[0].contains("|a.py|"), "{headers:?}");
    assert!(headers[1].starts_with("Reference Files (L3)||") && headers[1].contains("|b.py|"), "{headers:?}");
    assert!(headers[2].starts_with("Working Files||") && headers[2].contains("|c.py|"), "{headers:?}");
    assert_eq!(Tier::ALL.len(), 5);
}

#[test]
fn the_prompt_is_told_apart_from_the_history() {
    let conversation = |prompt: Value| {
        let mut json = json!({"messages": [user("m1", "go"), model("m2", "done")]});
        match prompt.as_str() {
            Some(_) => json["prompt"] = prompt,
            None => json["messages"].as_array_mut().unwrap().push(prompt),
        }
        breakdown(&snapshot(json), LayoutName::Tiers)
    };
    // As a prompt of its own, and as the agent has it: the last message.
    for prompt in [json!("and now?"), user("m3", "and now?")] {
        let breakdown = conversation(prompt);
        let active = breakdown.tier_info.unwrap().active;
        assert_eq!((active.history, active.has_history), (2, Some(true)));
        assert_eq!(breakdown.user_text.as_deref(), Some("and now?"));
    }
    let first = breakdown(&snapshot(json!({"messages": [user("m1", "hello")]})), LayoutName::Tiers);
    let active = first.tier_info.unwrap().active;
    assert_eq!((active.history, active.has_history), (0, Some(false)));
    // After tools have run, there is no new prompt.
    let answered = conversation(calls("m3", &[("a", "read")]));
    assert_eq!(answered.user_text, None);
}

#[test]
fn schemas_for_inline_require_every_property_and_are_not_strict() {
    let mut given = tool("edit");
    given["parameters"] = json!({
        "type": "object", "strict": true, "required": ["path"],
        "properties": {"path": {"type": "string"}, "all": {"type": "boolean"}, "mode": {"enum": ["a", "b"]}},
    });
    let made = snapshot(json!({"tools": [given], "prompt": "now"}));
    let normalised = require_all_properties(&made.tools[0]).parameters.value();
    assert_eq!(
        normalised,
        json!({
            "type": "object", "required": ["path", "all", "mode"],
            "properties": {
                "path": {"type": "string"}, "all": {"type": ["boolean", "null"]}, "mode": {"enum": ["a", "b", null]},
            },
        })
    );
    // Other layouts send them as they are.
    let strata = assemble_for_claude(&made, LayoutName::Strata).prompt;
    let sent = strata.tools.iter().find(|block| &*block.tool.name == "edit").unwrap();
    assert_eq!(sent.tool.parameters.value()["required"], json!(["path"]));
}

#[test]
fn a_newer_message_brings_the_context_of_inline_again() {
    let sent = |newer: Option<Value>| {
        let mut messages = vec![user("m1", "go"), calls("m2", &[("a", "read")]), result("m3", "a", "A")];
        messages.extend(newer);
        let files = [json!({"path": "a.py", "content": "text"})];
        let json = json!({"messages": messages, "files": files, "tools": [tool("read")]});
        lines(&assemble_for_claude(&snapshot(json), LayoutName::Inline).prompt)
    };
    let context =
        |lines: &[String]| lines.iter().position(|line| line.starts_with("user: Context from a.py:"));
    assert_eq!(context(&sent(None)), None, "the model goes on after its tools");
    let steered = sent(Some(user("m4", "stop that")));
    let at = context(&steered).unwrap();
    assert!(steered[at + 1].starts_with("user: stop that"), "{steered:#?}");
}
