#![allow(clippy::needless_pass_by_value)] // `json!(…)` in place reads better than a reference to it

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;

#[derive(Clone, Copy, PartialEq)]
enum CallStatus {
    Succeeded,
    Failed,
}

struct TrackedConversation {
    files: FileObserver,
}

impl TrackedConversation {
    fn new() -> Self {
        TrackedConversation { files: FileObserver::new(Some("/home/ann/p")) }
    }

    fn call(&mut self, tool: &str, arguments: Value, answer: &str) -> &mut Self {
        self.call_with_status(tool, arguments, answer, CallStatus::Succeeded)
    }

    fn call_with_status(
        &mut self,
        tool: &str,
        arguments: Value,
        answer: &str,
        status: CallStatus,
    ) -> &mut Self {
        let call = RecordedCall {
            id: "c".into(),
            tool: tool.into(),
            arguments: "".into(),
            action: FileAction::from_call(tool, &arguments),
        };
        let result = RecordedResult {
            call: "c".into(),
            text: Arc::from(answer),
            images: Vec::new(),
            failed: status == CallStatus::Failed,
        };
        self.files.observe(&call, &result);
        self
    }

    fn read(&mut self, path: &str, text: &str) -> &mut Self {
        self.call("read", json!({"path": path}), text)
    }

    fn run(&mut self, command: &str) -> &mut Self {
        self.call("bash", json!({"command": command}), "")
    }

    fn edit(&mut self, path: &str, old: &str, new: &str) -> &mut Self {
        self.call("edit", json!({"path": path, "oldText": old, "newText": new}), "done")
    }

    /// Path, kind and shown lines of each observation, and whether the whole content is known.
    fn observed(&self) -> Vec<String> {
        let describe = |observation: &FileObservation| {
            let shown: Vec<String> =
                observation.shown.iter().map(|(first, last)| format!("{first}-{last}")).collect();
            let lines = observation.lines.map_or("?".into(), |lines| lines.to_string());
            format!("{} {:?} {}/{lines}", observation.path, observation.kind, shown.join(","))
        };
        self.files.observations().iter().map(describe).collect()
    }
}

#[test]
fn edits_are_applied_to_what_was_read_or_written() {
    let mut conversation = TrackedConversation::new();
    conversation.read("a.rs", "one two\nthree\n").edit("/home/ann/p/a.rs", "two", "2 2").edit(
        "./src/../a.rs",
        "three",
        "3",
    );
    assert_eq!(conversation.files.text("~/p/a.rs"), Some("one 2 2\n3\n"));
    let known = ["a.rs Shown 1-2/2", "a.rs Edited 1-1/2", "a.rs Edited 2-2/2"];
    assert_eq!(conversation.observed(), known);
    conversation.call("write", json!({"path": "a.rs", "content": "new\n"}), "ok");
    assert_eq!(conversation.files.text("a.rs"), Some("new\n"));
    assert_eq!(conversation.observed()[3], "a.rs Written 1-1/1");
}

#[test]
fn an_edit_that_does_not_apply_makes_the_file_unknown() {
    for (old, why) in [("four", "not there"), ("o", "there twice"), ("", "nothing")] {
        let mut conversation = TrackedConversation::new();
        conversation.read("a", "one two\n").edit("a", old, "x");
        assert_eq!(conversation.files.text("a"), None, "{why}");
        assert_eq!(conversation.observed(), ["a Shown 1-1/1"]);
        conversation.read("a", "one two\n");
        assert_eq!(conversation.observed(), ["a Shown 1-1/1"; 2]);
    }
    let mut conversation = TrackedConversation::new();
    conversation.read("a", "one two\n").call_with_status(
        "edit",
        json!({"path": "a", "oldText": "four", "newText": "x"}),
        "no match",
        CallStatus::Failed,
    );
    assert_eq!(conversation.files.text("a"), Some("one two\n"), "a failed edit changed nothing");
}

#[test]
fn parts_that_cover_a_file_make_a_body() {
    let mut conversation = TrackedConversation::new();
    conversation.call(
        "read",
        json!({"path": "a", "limit": 2}),
        "1\n2\n\n... (3 more lines not shown. Use offset=3 to continue reading)",
    );
    assert_eq!((conversation.files.text("a"), conversation.observed()), (None, vec!["a Shown 1-2/?".into()]));
    conversation.call(
        "read",
        json!({"path": "a", "offset": 2, "limit": 2}),
        "2\n3\n\n... (2 more lines not shown. Use offset=4 to continue reading)",
    );
    conversation.call("read", json!({"path": "a", "offset": 4, "limit": 9}), "4\n5\n");
    assert_eq!(conversation.files.text("a"), Some("1\n2\n3\n4\n5\n"));
    let completed = ["a Shown 1-2/5", "a Shown 2-3/5", "a Shown 4-5/5"];
    assert_eq!(conversation.observed(), completed, "what the file held is known of every part");
    // Read again in part, it says nothing new.
    conversation.call(
        "read",
        json!({"path": "a", "offset": 2, "limit": 1}),
        "2\n\n... (3 more lines not shown. Use offset=3 to continue reading)",
    );
    assert_eq!(conversation.observed()[3], "a Shown 2-2/5");
    conversation.call(
        "read",
        json!({"path": "a", "offset": 2, "limit": 1}),
        "changed\n\n... (3 more lines not shown. Use offset=3 to continue reading)",
    );
    assert_eq!(conversation.files.text("a"), None, "somebody else changed it");
    assert_eq!(conversation.observed()[4], "a Shown 2-2/?");
}

#[test]
fn parts_that_contradict_each_other_do_not_make_one() {
    let mut conversation = TrackedConversation::new();
    conversation.call(
        "read",
        json!({"path": "a", "limit": 2}),
        "1\n2\n\n... (1 more lines not shown. Use offset=3 to continue reading)",
    );
    conversation.call("read", json!({"path": "a", "offset": 2, "limit": 5}), "two\n3\n");
    assert_eq!(conversation.files.text("a"), None);
}

#[test]
fn numbered_lines_are_a_file_without_the_numbers() {
    let mut conversation = TrackedConversation::new();
    let shown = "     1→fn main() {\n     2→}\n\n<system-reminder>\nBe careful.\n</system-reminder>";
    conversation.call("Read", json!({"file_path": "/home/ann/p/a.rs"}), shown);
    assert_eq!(conversation.files.text("a.rs"), Some("fn main() {\n}\n"));
}

#[test]
fn commands_that_may_change_a_file_make_it_unknown() {
    let changing = [
        "sed -i '' 's/one/two/' src/a.rs",
        "cd src && mv a.rs b.rs",
        "cp other.rs src/a.rs",
        "echo hi > src/a.rs",
        "cargo test 2>&1 | tee -a src/a.rs",
        "git checkout -- src/a.rs",
        "git stash",
        "rm -rf src",
        "python3 - <<'E'\nopen('src/a.rs','w')\nE",
        "npx prettier --write .",
        "cargo fmt",
        "git ls-files | xargs sed -i s/a/b/",
    ];
    for command in changing {
        let mut conversation = TrackedConversation::new();
        conversation.read("src/a.rs", "one\n").run(command);
        assert_eq!(conversation.files.text("src/a.rs"), None, "{command}");
    }
    let harmless = [
        "sed -n '1,5p' src/b.rs",
        "grep -n one src/a.rs 2>/dev/null",
        "cp src/a.rs /tmp/a.rs",
        "cargo build 2>&1 | tail -3",
        "git status",
        "git checkout -b new",
        "sed -i '' 's/x/y/' src/b.rs",
        "echo 'a > src/a.rs'",
        "cd src && npm run build",
    ];
    for command in harmless {
        let mut conversation = TrackedConversation::new();
        conversation.read("src/a.rs", "one\n").run(command);
        assert_eq!(conversation.files.text("src/a.rs"), Some("one\n"), "{command}");
    }
}

#[test]
fn a_command_that_only_shows_a_file_reads_it() {
    let mut conversation = TrackedConversation::new();
    conversation.call("bash", json!({"command": "cd src && cat a.rs"}), "one\ntwo\n");
    assert_eq!(conversation.files.text("src/a.rs"), Some("one\ntwo\n"));
    conversation.call("bash", json!({"command": "sed -n '1,2p' b.rs"}), "1\n2\n");
    assert_eq!(conversation.files.text("b.rs"), None);
    conversation.call("bash", json!({"command": "sed -n '3,9p' b.rs"}), "3\n");
    assert_eq!(conversation.files.text("b.rs"), Some("1\n2\n3\n"));
    conversation.call("bash", json!({"command": "cat c.rs | head"}), "1\n");
    assert!(!conversation.files.files.contains_key("/home/ann/p/c.rs"));
}

#[test]
fn a_patch_of_codex_is_applied_or_the_file_is_unknown() {
    let patch = |text: &str| json!({"input": format!("*** Begin Patch\n{text}\n*** End Patch")});
    let mut conversation = TrackedConversation::new();
    conversation.call("apply_patch", patch("*** Add File: a\n+one\n+two\n+three"), "ok");
    assert_eq!(conversation.files.text("a"), Some("one\ntwo\nthree\n"));
    conversation.call("apply_patch", patch("*** Update File: a\n@@\n one\n-two\n+2\n three"), "ok");
    assert_eq!(
        (conversation.files.text("a"), conversation.observed()),
        (Some("one\n2\nthree\n"), vec!["a Written 1-3/3".into(), "a Edited 2-2/3".into()])
    );
    conversation.call("apply_patch", patch("*** Update File: a\n@@\n-nowhere\n+x"), "ok");
    assert_eq!(conversation.files.text("a"), None);
    let two = "*** Add File: b\n+b\n*** Add File: c\n+c";
    conversation.call("apply_patch", patch(two), "ok");
    assert_eq!(
        (conversation.files.text("c"), conversation.observed()[2..].to_vec()),
        (Some("c\n"), vec!["b Written 1-1/1".into(), "c Written 1-1/1".into()])
    );
    conversation.call("apply_patch", patch("*** Delete File: c"), "ok");
    assert_eq!(conversation.files.text("c"), None);
}
