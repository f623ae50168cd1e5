//! What a person does to the context, seen in the next request and in the session file: pin, leave
//! out, bring back, fold, another layout, going back with the files.

use hardpan_agent::BranchExit;
use hardpan_app::approval::ApprovalMode;
use hardpan_app::context_items::ContextItemError;
use hardpan_app::options::{OpenOptions, SessionChoice};
use hardpan_app::{ActionError, ConversationApp, FaceHooks};
use hardpan_context::LayoutName;

use super::subagents::{TaskHome, prompt};
use super::{TestHome, say};

/// The bytes of the next request.
async fn next_bytes(app: &ConversationApp) -> String {
    let preview = app.preview_request("What is next?").await.unwrap();
    String::from_utf8(preview.http.body.to_vec()).unwrap()
}

/// More than the offline assistant repeats of it.
const SAID: &str = "The word is xylophone.";

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_left_out_is_not_sent_until_it_is_brought_back() {
    let home = TestHome::new();
    let app = home.open(SessionChoice::New).await;
    say(&app, SAID).await;
    let key = format!("message:{}", app.agent.messages()[0].id);
    assert!(next_bytes(&app).await.contains(SAID));
    app.exclude_item(&key).await.unwrap();
    assert!(!next_bytes(&app).await.contains(SAID));
    assert_eq!(app.excluded_items(), std::slice::from_ref(&key));
    app.include_item(&key).await.unwrap();
    assert!(next_bytes(&app).await.contains(SAID));
    assert_eq!(app.excluded_items(), Vec::<String>::new());
    assert!(matches!(app.pin_item(&key), Err(ContextItemError::NotAnItem(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_pinned_let_go_and_left_out_also_after_a_resume() {
    let home = TestHome::new();
    let app = home.open(SessionChoice::New).await;
    say(&app, "Hello").await;
    assert!(!next_bytes(&app).await.contains("Remember the milk"));
    app.pin_item("file:notes.txt").unwrap();
    assert!(app.is_pinned("notes.txt") && next_bytes(&app).await.contains("Remember the milk"));
    say(&app, "Now with the notes").await;
    app.unpin_item("file:notes.txt").unwrap();
    assert!(matches!(app.unpin_item("file:notes.txt"), Err(ContextItemError::NotOpen(_))));
    app.pin_item("file:notes.txt").unwrap();
    app.exclude_item("file:notes.txt").await.unwrap();
    app.save_state().await;
    assert!(!app.is_pinned("notes.txt"));
    app.agent.shutdown().await.unwrap();
    drop(app);
    let app = home.open(SessionChoice::Latest).await;
    assert_eq!(app.excluded_items(), ["file:notes.txt"]);
    app.agent.request_fold();
    assert!(!next_bytes(&app).await.contains("Remember the milk"), "a fold drops it");
    app.include_item("file:notes.txt").await.unwrap();
    assert_eq!(app.excluded_items(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_layout_holds_from_the_next_request_on_and_is_stored() {
    let home = TestHome::new();
    let app = home.open(SessionChoice::New).await;
    say(&app, "Hello").await;
    let strata = next_bytes(&app).await;
    app.select_layout(LayoutName::Inline).await.unwrap();
    assert_ne!(next_bytes(&app).await, strata);
    assert!(matches!(
        app.select_layout(LayoutName::Panels).await,
        Err(ActionError::PanelLayout { layout: LayoutName::Panels, .. })
    ));
    say(&app, "And on").await;
    app.agent.shutdown().await.unwrap();
    drop(app);
    assert_eq!(home.open(SessionChoice::Latest).await.agent.layout(), LayoutName::Inline);
}

const WRITER: &str = "
turns:
  - {when: {contains: First}, tool_calls: [{name: write, arguments: {path: a.txt, content: one}}]}
  - {when: {contains: Second}, tool_calls: [{name: write, arguments: {path: b.txt, content: two}}]}
  - {when: {contains: Third}, tool_calls: [{name: edit, arguments: {path: a.txt, old_text: one, new_text: three}}]}
default: {text: Done.}
";

#[tokio::test(flavor = "multi_thread")]
async fn going_back_takes_the_files_back_that_later_runs_changed() {
    let home = TaskHome::new(WRITER, "").await;
    let options = OpenOptions { approval: ApprovalMode::AllowAll, ..home.options(SessionChoice::New) };
    let app = ConversationApp::open(&options, &FaceHooks::default()).unwrap();
    let text = |name: &str| std::fs::read_to_string(app.folder.join(name)).ok();
    prompt(&app, "First").await;
    let first = app.agent.messages().last().unwrap().id.to_string();
    prompt(&app, "Nothing").await;
    prompt(&app, "Second").await;
    prompt(&app, "Third").await;
    assert_eq!((text("a.txt").as_deref(), text("b.txt").as_deref()), (Some("three"), Some("two")));
    let journal = app.tool_set.journal.as_ref().unwrap();
    let before: Vec<_> = journal.contents_before(0).into_iter().map(|(_, before)| before).collect();
    assert_eq!(before, [None, None], "the session created both");
    let session = app.read_session().unwrap();
    assert_eq!(app.files_after(&session, &first), ["a.txt", "b.txt"]);
    app.agent.go_to_entry(&first, BranchExit::WithoutSummary).await.unwrap();
    assert_eq!(text("a.txt").as_deref(), Some("three"), "going back alone keeps them");
    assert_eq!(app.undo_after(&session, &first).unwrap().len(), 2);
    assert_eq!((text("a.txt").as_deref(), text("b.txt")), (Some("one"), None));
    let session = app.read_session().unwrap();
    assert_eq!(app.files_after(&session, &first), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn other_conversations_are_named_and_deleted() {
    let home = TestHome::new();
    let app = home.open(SessionChoice::New).await;
    say(&app, "One").await;
    let one = app.agent.session().0;
    app.start_new().await.unwrap();
    say(&app, "Two").await;
    let find = || app.store.find(Some(&app.folder), &one);
    app.rename_other(&find().unwrap(), "the first").unwrap();
    app.rename_other(&find().unwrap(), "the very first").unwrap();
    assert_eq!(find().unwrap().name.as_deref(), Some("the very first"));
    assert_eq!(app.resume(&find().unwrap()).await.unwrap().messages, 2);
    app.start_new().await.unwrap();
    app.delete_other(&find().unwrap()).unwrap();
    assert!(find().is_err());
}
