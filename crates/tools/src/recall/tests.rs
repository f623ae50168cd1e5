use hardpan_context::knowledge::LineRanges;
use hardpan_prompt::{Json, MediaType};
use proptest::prelude::*;

use super::*;
use crate::Scope;

/// An archive of one message, `e7`.
struct OneMessage(ArchivedContent);

#[derive(Debug, thiserror::Error)]
#[error("this conversation has no message {0}; it has e7")]
struct NoSuchMessage(String);

impl MessageArchive for OneMessage {
    fn recall<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<ArchivedContent, ArchiveError>> {
        let found = if id == "e7" {
            Ok(self.0.clone())
        } else {
            Err(ArchiveError::new(NoSuchMessage(id.to_owned())))
        };
        Box::pin(std::future::ready(found))
    }
}

fn recall_with(content: ArchivedContent, arguments: &Value, knowledge: &FileKnowledge) -> ToolOutcome {
    let tool = Recall::new(Arc::new(OneMessage(content)));
    let (arguments, scope) = (Json::new(arguments), Scope::new("/", "/"));
    let call = ToolInvocation { id: "c", arguments: &arguments, scope: &scope, knowledge, progress: &|_| {} };
    futures_util::FutureExt::now_or_never(tool.run(call)).unwrap()
}

fn recall(text: &str, arguments: &Value) -> ToolOutcome {
    let content = ArchivedContent { text: text.into(), images: Vec::new() };
    recall_with(content, arguments, &FileKnowledge::default())
}

fn only_text(outcome: &ToolOutcome) -> String {
    match &outcome.content[..] {
        [MessagePart::Text { text }] => text.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_short_content_comes_back_byte_for_byte() {
    for text in ["", "one", "one\r\ntwo\r\n", "tab\there \u{1b}[1m"] {
        let outcome = recall(text, &json!({"id": "e7"}));
        assert!(!outcome.is_error);
        assert_eq!(only_text(&outcome), text);
    }
}

#[test]
fn pages_end_with_a_line_and_say_how_to_go_on() {
    let text = "0123456789\n".repeat(3000);
    let first = only_text(&recall(&text, &json!({"id": "e7"})));
    assert!(
        first.ends_with("9\n[bytes 0-22110 of 33000; go on with offset=22110]"),
        "2000 lines, as read, and a few"
    );
    let rest = only_text(&recall(&text, &json!({"id": "e7", "offset": 22110})));
    assert!(rest.ends_with("9\n[bytes 22110-33000 of 33000]"));
    let beyond = recall(&text, &json!({"id": "e7", "offset": 33000}));
    assert_eq!(only_text(&beyond), "e7 has only 33000 bytes: offset 33000 is past its end.");
    assert!(beyond.is_error);
}

#[test]
fn an_unknown_id_is_an_error_that_names_others() {
    let outcome = recall("x", &json!({"id": "e8"}));
    assert!(outcome.is_error);
    let expected = "Nothing was recalled: this conversation has no message e8; it has e7.";
    assert_eq!(only_text(&outcome), expected);
}

#[test]
fn images_come_with_the_first_page() {
    let image = Image { media_type: MediaType::Png, data: "AQID".into(), width: None, height: None };
    let content = ArchivedContent { text: "x\n".repeat(2011), images: vec![image.clone()] };
    let page = |offset| {
        recall_with(content.clone(), &json!({"id": "e7", "offset": offset}), &FileKnowledge::default())
            .content
    };
    assert_eq!(page(0)[1..], [MessagePart::Image(image)]);
    assert_eq!(page(4020).len(), 1);
}

#[test]
fn a_file_counts_as_shown_again_only_while_it_is_as_recalled() {
    let observe =
        |text: &str| FileObservation::of_text("a.rs", ObservationKind::Shown, text, LineRanges::span(1, 9));
    let mut knowledge = FileKnowledge::default();
    knowledge.record(&"e7".into(), observe("one\n"));
    let content = ArchivedContent { text: "one\n".into(), images: Vec::new() };
    let observed = || recall_with(content.clone(), &json!({"id": "e7"}), &knowledge).file_observations;
    assert_eq!(observed(), [observe("one\n")]);
    assert_eq!(observed()[0].text.as_deref(), Some("one\n"), "differences can be told from it");
    knowledge.record(&"e9".into(), observe("two\n"));
    let outcome = recall_with(content, &json!({"id": "e7"}), &knowledge);
    assert_eq!(outcome.file_observations, []);
}

#[test]
fn its_declaration_is_short() {
    let declared = &*DECLARATION;
    assert!(declared.description.len() < 60 && declared.snippet.is_none() && declared.guidelines.is_empty());
    let expected = json!({
        "type": "object",
        "properties": {"id": {"type": "string"}, "offset": {"type": "integer"}},
        "required": ["id"],
    });
    assert_eq!(declared.parameters.value(), expected);
}

proptest! {
    #[test]
    fn pages_join_to_the_whole(lines in prop::collection::vec((".{0,30}", 1usize..4000), 0..12)) {
        let text: String = lines.iter().map(|(line, times)| line.repeat(*times) + "\n").collect();
        let (mut joined, mut offset) = (String::new(), 0);
        while offset < text.len() {
            let outcome = recall(&text, &json!({"id": "e7", "offset": offset}));
            let details = outcome.details.clone().unwrap();
            let end = details["shown"][1].as_u64().unwrap() as usize;
            prop_assert!(end > offset && end - offset <= MAX_PAGE_BYTES);
            joined.push_str(&only_text(&outcome)[..end - offset]);
            offset = end;
        }
        prop_assert_eq!(joined, text);
    }
}
