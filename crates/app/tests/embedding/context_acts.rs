//! What a person does to the context, seen in the next request and in the session file: pin, leave
//! out, bring back, fold, another layout, going back with the files.

use std::sync::{Arc, Mutex};

use hardpan_agent::BranchExit;
use hardpan_app::approval::{ApprovalMode, UserPrompter};
use hardpan_app::context_items::ContextItemError;
use hardpan_app::options::{OpenOptions, SessionChoice};
use hardpan_app::{ActionError, ConversationApp, FaceHooks};
use hardpan_context::LayoutName;
use hardpan_prompt::{AgentMessage, MessageBody};
use hardpan_session::{Entry, GIT_BRANCH_RECORD, Record};

use hardpan_test_support::{TestResponse, TestServer};

use super::subagents::{TaskHome, prompt};
use super::{CannedAnswer, NoticeLog, TestHome, say};

/// The bytes of the next request, without the times in it.
async fn next_bytes(app: &ConversationApp) -> String {
    let preview = app.preview_request("What is next?").await.unwrap();
    let body = String::from_utf8(preview.http.body.to_vec()).unwrap();
    const TIME: &str = "Current date and time: ";
    let mut parts = body.split(TIME);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + TIME + &part["2026-11-16T19:04:10Z".len()..])
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

/// How many prompts the session has on the branch that it ends with.
fn stored_prompts(app: &ConversationApp) -> usize {
    let branch = app.read_session().unwrap().branch(None).unwrap();
    let is_prompt = |message: &&AgentMessage| matches!(*message.body, MessageBody::User { .. });
    branch.messages.iter().filter(is_prompt).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn going_back_is_stored_at_once_with_what_stays_open_and_what_waits() {
    let home = TestHome::new();
    let app = home.open(SessionChoice::New).await;
    say(&app, "One").await;
    let one = app.agent.messages().last().unwrap().id.to_string();
    app.deferred.add("/fold");
    say(&app, "Two").await;
    app.pin_item("file:notes.txt").unwrap();
    app.save_state().await;
    let two = app.agent.messages().last().unwrap().id.to_string();
    let session = app.agent.session().0;
    app.go_to_entry(&one, BranchExit::WithoutSummary).await.unwrap();
    assert_eq!(stored_prompts(&app), 1);
    let next = next_bytes(&app).await;
    // The file as a killed process leaves it.
    let path = app.agent.session().1;
    let killed = std::fs::read(&path).unwrap();
    drop(app);
    std::fs::write(&path, killed).unwrap();
    let app = home.open(SessionChoice::Latest).await;
    assert_eq!((app.agent.session().0, app.agent.messages().len()), (session, 2));
    assert!(app.is_pinned("notes.txt"));
    assert_eq!(app.deferred.list(), ["/fold"]);
    assert_eq!(next_bytes(&app).await, next);
    // Going forward again is stored, too; going nowhere adds nothing.
    app.go_to_entry(&two, BranchExit::WithoutSummary).await.unwrap();
    let entries = app.read_session().unwrap().entries.len();
    let here = app.read_session().unwrap().leaf().unwrap().id.clone();
    app.go_to_entry(&here, BranchExit::WithoutSummary).await.unwrap();
    assert_eq!((stored_prompts(&app), app.read_session().unwrap().entries.len()), (2, entries));
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_wait_belong_to_their_conversation() {
    let home = TestHome::new();
    let app = home.open(SessionChoice::New).await;
    say(&app, "One").await;
    let one = app.agent.session().0;
    app.deferred.add("/fold");
    app.save_state().await;
    app.start_new().await.unwrap();
    assert_eq!(app.deferred.list(), Vec::<String>::new());
    let found = app.store.find(Some(&app.folder), &one).unwrap();
    app.resume(&found).await.unwrap();
    assert_eq!(app.deferred.list(), ["/fold"]);
    assert_eq!(app.deferred.take(|_| true), ["/fold"]);
    app.save_state().await;
    drop(app);
    assert_eq!(home.open(SessionChoice::Latest).await.deferred.list(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_knows_the_branch_of_git_that_it_was_last_used_on() {
    let home = TestHome::new();
    let git = home.folder.path().join("work/.git");
    std::fs::create_dir_all(&git).unwrap();
    std::fs::write(git.join("config"), "").unwrap();
    let check_out =
        |name: &str| std::fs::write(git.join("HEAD"), format!("ref: refs/heads/{name}\n")).unwrap();
    check_out("main");
    let app = home.open(SessionChoice::New).await;
    let branch = || app.store.latest(&app.folder).unwrap().git_branch;
    say(&app, "One").await;
    assert_eq!(branch().as_deref(), Some("main"));
    let records = |app: &ConversationApp| {
        let session = app.read_session().unwrap();
        let is_branch = |entry: &&Entry| match &entry.record {
            Record::Custom { custom_type, .. } => &**custom_type == GIT_BRANCH_RECORD,
            _ => false,
        };
        session.entries.iter().filter(is_branch).count()
    };
    assert_eq!(records(&app), 0, "the header tells it");
    check_out("fix-retry");
    say(&app, "Two").await;
    say(&app, "Three").await;
    assert_eq!((branch().as_deref(), records(&app)), (Some("fix-retry"), 1));
}

/// The size of a page is known when it has been fetched, so the question comes then.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_costs_much_is_asked_about_before_it_is_sent() {
    let page = "All the words of a long page. ".repeat(9_000);
    let server = TestServer::start(move |_, request| match &*request.path {
        "/long" => TestResponse::new(200, "text/plain", page.clone()),
        _ => TestResponse::new(200, "text/plain", "A short page."),
    });
    let address = server.url();
    let config = "ask_above = 0.01\npages = \"on\"\nprivate_hosts = [\"127.0.0.1\"]";
    let home = TaskHome::new("default: {text: Fine.}", config).await;
    let person = |answer| -> Option<Arc<dyn UserPrompter>> {
        Some(Arc::new(CannedAnswer { answer, asked: Mutex::default() }))
    };
    for (prompter, approval, expected) in [
        (None, ApprovalMode::AskUser, 1),
        (person(Some("n")), ApprovalMode::AskUser, 1),
        (person(Some("y")), ApprovalMode::AskUser, 2),
        (None, ApprovalMode::AllowAll, 2),
    ] {
        let notices: Arc<NoticeLog> = Arc::default();
        let options = OpenOptions { approval, ..home.options(SessionChoice::New) };
        let face = FaceHooks { prompter, notices };
        let app = ConversationApp::open(&options, &face).unwrap();
        prompt(&app, &format!("Read {address}/long and {address}/short")).await;
        assert_eq!(app.agent.pages().len(), expected);
        assert!(app.agent.pages().contains(&format!("{address}/short")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_goes_on_where_nothing_can_be_stored() {
    let home = TestHome::new();
    // A file where the folder would be: nobody can create that, whoever runs the test.
    home.write("user/data", "no folder");
    let notices: Arc<NoticeLog> = Arc::default();
    let prompter: Arc<dyn UserPrompter> = Arc::new(CannedAnswer { answer: None, asked: Mutex::default() });
    let face = FaceHooks { prompter: Some(prompter), notices: notices.clone() };
    let app = ConversationApp::open(&home.options(SessionChoice::New), &face).unwrap();
    assert!(!app.is_stored());
    say(&app, "Hello").await;
    assert_eq!(app.agent.messages().len(), 2);
    let told = notices.0.lock().unwrap().join("\n");
    assert!(told.starts_with("this conversation is not stored: nothing can be written to "), "{told}");
}
