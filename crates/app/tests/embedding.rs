//! The library without a command line: a program opens a conversation, talks to the simulator, and
//! comes back later.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hardpan_agent::approval::ApprovalRule;
use hardpan_agent::events::BeforeProviderRequest;
use hardpan_agent::{Agent, ApprovalRequest, Input, InputOutcome, InputSource, RunEnd};
use hardpan_app::approval::{ApprovalMode, ApprovalVerdict, UserPrompter};
use hardpan_app::attachment_price::AttachmentRefusal;
use hardpan_app::gather::GatherError;
use hardpan_app::mentions::PromptSource;
use hardpan_app::options::{OpenOptions, ProviderAccess, RequestOptions, SessionChoice};
use hardpan_app::request::{RequestError, assemble};
use hardpan_app::settings::{Settings, SettingsError, UserFolders};
use hardpan_app::{ActionError, ConversationApp, DiscardNotices, FaceHooks, Notice, NoticeSink, OpenError};
use hardpan_context::FoldReason;
use hardpan_test_support::line;
use tempfile::TempDir;

/// A workspace and the user's folders, all of its own.
struct TestHome {
    folder: TempDir,
}

impl TestHome {
    fn new() -> Self {
        let home = TestHome { folder: tempfile::tempdir().unwrap() };
        home.write("work/notes.txt", "Remember the milk.\n");
        // Nobody here can enter a sandbox.
        home.write("user/config/config.toml", "sandbox = false\n");
        home
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn user_folders(&self) -> UserFolders {
        UserFolders::below(&self.folder.path().join("user"))
    }

    fn options(&self, session: SessionChoice) -> OpenOptions {
        OpenOptions {
            user_folders: self.user_folders(),
            access: ProviderAccess::Simulator,
            session,
            ..OpenOptions::new(self.folder.path().join("work"))
        }
    }

    async fn open(&self, session: SessionChoice) -> ConversationApp {
        let app = ConversationApp::open(&self.options(session), &FaceHooks::default()).unwrap();
        app.agent.start().await;
        app
    }

    fn open_error(&self, session: SessionChoice) -> OpenError {
        ConversationApp::open(&self.options(session), &FaceHooks::default()).err().unwrap()
    }
}

async fn say(app: &ConversationApp, text: &str) {
    let attachments = app.attach_mentions(text, PromptSource::Typed);
    assert!(attachments.notes.is_empty(), "{:?}", attachments.notes);
    let (text, images) = (text.to_owned(), attachments.images);
    let input = Input { text, below: None, images, source: InputSource::Interactive, id: None };
    assert_eq!(app.agent.prompt(input).await.unwrap(), InputOutcome::Ran(RunEnd::Done));
    app.save_state().await;
}

/// Who said what, one line per message.
fn lines(app: &ConversationApp) -> Vec<String> {
    app.agent.messages().iter().map(line).collect()
}

/// Keeps notices as the user would read them.
#[derive(Default)]
struct NoticeLog(Mutex<Vec<String>>);

impl NoticeSink for NoticeLog {
    fn notice(&self, notice: Notice) {
        self.0.lock().unwrap().push(notice.to_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_answered_and_goes_on_after_it_is_opened_again() {
    let home = TestHome::new();
    let app = home.open(SessionChoice::New).await;
    assert_eq!(lines(&app), [""; 0]);
    say(&app, "What is in @notes.txt?").await;
    let first = lines(&app);
    assert_eq!(first[0], "user: What is in @notes.txt?");
    assert!(first.contains(&"result: Remember the milk.\n".to_owned()), "{first:?}");
    assert!(first.last().unwrap().contains("notes.txt begins so:"), "{first:?}");
    assert!(app.is_simulated());
    app.agent.shutdown().await.unwrap();
    drop(app);
    let app = home.open(SessionChoice::Latest).await;
    assert_eq!(lines(&app), first);
    assert_eq!(app.context.pinned_context().files, [Path::new("notes.txt")]);
    say(&app, "And now?").await;
    let second = lines(&app);
    assert_eq!((&second[..first.len()], &*second[first.len()]), (&first[..], "user: And now?"));
    assert!(second.last().unwrap().starts_with("assistant: I am Hardpan's offline assistant"), "{second:?}");
    app.agent.shutdown().await.unwrap();
}

/// A project in another language: its files, and what the assistant must say to questions about it.
struct AskedProject {
    files: &'static [(&'static str, &'static str)],
    questions: &'static [(&'static str, &'static [&'static str])],
}

const ASKED_PROJECTS: [AskedProject; 5] = [
    AskedProject {
        files: &[
            ("src/retry.rs", "/// When to try again.\npub struct RetryPolicy {\n    pub tries: u32,\n}\n"),
            ("src/main.rs", "mod retry;\nfn main() {\n    let _ = retry::RetryPolicy { tries: 3 };\n}\n"),
            ("CHANGELOG.md", "- RetryPolicy, RetryPolicy and RetryPolicy\n"),
        ],
        questions: &[
            ("who uses RetryPolicy?", &["defined at src/retry.rs:2", "- src/main.rs:3:"]),
            ("where is that defined?", &["src/retry.rs:2: `struct RetryPolicy`", "/// When to try again."]),
            ("what does src/main.rs contain?", &["src/main.rs", "2 function main"]),
            ("where is RetryPol defined?", &["src/retry.rs:2"]),
        ],
    },
    AskedProject {
        files: &[
            ("pkg/retry.py", "class RetryPolicy:\n    def should_retry(self, error):\n        return True\n"),
            ("pkg/client.py", "from pkg.retry import RetryPolicy\n\npolicy = RetryPolicy()\n"),
        ],
        questions: &[
            ("where is should_retry?", &["pkg/retry.py:2: `method RetryPolicy.should_retry"]),
            ("who uses RetryPolicy", &["- pkg/client.py:3:"]),
            ("where are retries decided?", &["pkg/retry.py:"]),
        ],
    },
    AskedProject {
        files: &[
            (
                "budget.go",
                "package shop\n\ntype Budget struct{ Left int }\n\nfunc (b *Budget) Spend(n int) { b.Left -= n }\n",
            ),
            ("main.go", "package shop\n\nfunc run() { (&Budget{}).Spend(3) }\n"),
        ],
        questions: &[
            ("who calls Spend?", &["defined at budget.go:5", "- main.go:3:"]),
            ("where is Budget?", &["budget.go:3:"]),
        ],
    },
    AskedProject {
        files: &[
            ("src/budget.ts", "export class Budget {\n  spend(n: number) { return n; }\n}\n"),
            ("src/app.ts", "import { Budget } from './budget';\nnew Budget().spend(3);\n"),
        ],
        questions: &[("who uses Budget?", &["defined at src/budget.ts:1", "- src/app.ts:2:"])],
    },
    AskedProject {
        files: &[
            (
                "src/Budget.java",
                "package x;\n\npublic class Budget {\n    public int spend(int n) { return n; }\n}\n",
            ),
            ("src/App.java", "package x;\n\nclass App { int f() { return new Budget().spend(3); } }\n"),
        ],
        questions: &[
            ("where is spend defined", &["src/Budget.java:4:"]),
            ("what is this project?", &["Budget"]),
            ("where is the volcano?", &["found nothing about `volcano`"]),
        ],
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn the_offline_assistant_answers_about_projects_in_several_languages() {
    for AskedProject { files, questions } in ASKED_PROJECTS {
        let home = TestHome::new();
        for (path, content) in files {
            home.write(&format!("work/{path}"), content);
        }
        let app = home.open(SessionChoice::New).await;
        for (question, expected) in questions {
            say(&app, question).await;
            let said = lines(&app).pop().unwrap();
            for part in *expected {
                assert!(said.contains(part), "{question}\nlacks {part}\n{said}");
            }
            assert!(!said.contains("expert coding agent"), "it quotes the system prompt: {said}");
            let is_first = *question == questions[0].0;
            assert_eq!(said.contains("offline assistant"), is_first, "{said}");
        }
        app.agent.shutdown().await.unwrap();
    }
}

/// Answers every question in words, and keeps them.
struct CannedAnswer {
    answer: Option<&'static str>,
    asked: Mutex<Vec<String>>,
}

impl UserPrompter for CannedAnswer {
    fn ask_approval<'a>(
        &'a self,
        _question: &'a ApprovalRequest,
        _rule: Option<&'a ApprovalRule>,
    ) -> BoxFuture<'a, ApprovalVerdict> {
        Box::pin(std::future::ready(ApprovalVerdict::No("not asked about".into())))
    }

    fn ask_text<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        self.asked.lock().unwrap().push(question.to_owned());
        Box::pin(std::future::ready(self.answer.map(str::to_owned)))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn expensive_attachments_are_asked_about_and_refused_where_nobody_is() {
    let home = TestHome::new();
    home.write("work/big.txt", &"one two three four five\n".repeat(30_000));
    // An address of one's own needs no key, and nothing is sent.
    let config = "sandbox = false\n[providers.anthropic]\nbase_url = \"http://127.0.0.1:9\"\n";
    home.write("user/config/config.toml", config);
    let options = OpenOptions { access: ProviderAccess::ByKey, ..home.options(SessionChoice::New) };
    let confirm = async |options: &OpenOptions, prompter: Option<Arc<CannedAnswer>>, text: &str| {
        let prompter = prompter.map(|prompter| prompter as Arc<dyn UserPrompter>);
        let face = FaceHooks { prompter, notices: Arc::new(DiscardNotices) };
        let app = ConversationApp::open(options, &face).unwrap();
        app.confirm_attachments(text, None, &[]).await
    };
    let person = |answer| Some(Arc::new(CannedAnswer { answer, asked: Mutex::default() }));
    let (yes, no, gone) = (person(Some("Yes")), person(Some("no")), person(None));
    let expensive = "look at @big.txt";
    assert!(matches!(
        confirm(&options, None, expensive).await,
        Err(AttachmentRefusal::NobodyToAsk { price, limit }) if price.dollars > limit && price.tokens > 100_000
    ));
    assert_eq!(confirm(&options, yes.clone(), expensive).await, Ok(()));
    assert_eq!(confirm(&options, no, expensive).await, Err(AttachmentRefusal::Declined));
    assert_eq!(confirm(&options, gone, expensive).await, Err(AttachmentRefusal::Declined));
    assert_eq!(confirm(&options, None, "look at @notes.txt").await, Ok(()));
    let pasted = "word ".repeat(200_000);
    assert!(confirm(&options, None, &pasted).await.is_err(), "pasted text counts, too");
    let asked = yes.unwrap().asked.lock().unwrap().clone();
    assert!(asked.len() == 1 && asked[0].contains(" tokens, $"), "{asked:?}");
    let allowed = OpenOptions { approval: ApprovalMode::AllowAll, ..options };
    assert_eq!(confirm(&allowed, None, expensive).await, Ok(()));
    home.write("user/config/config.toml", &format!("ask_above = 100.0\n{config}"));
    let options = OpenOptions { approval: ApprovalMode::AskUser, ..allowed };
    assert_eq!(confirm(&options, None, expensive).await, Ok(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_are_left_resumed_and_copied() {
    let home = TestHome::new();
    let app = home.open(SessionChoice::New).await;
    assert!(matches!(app.fork(None).await, Err(ActionError::NoMessages)));
    say(&app, "One").await;
    let (one, messages) = (app.agent.session().0, lines(&app));
    app.start_new().await.unwrap();
    assert_ne!(app.agent.session().0, one);
    assert_eq!(app.agent.messages().len(), 0);
    say(&app, "Two").await;
    let summary = app.store.find(Some(&app.folder), &one).unwrap();
    assert_eq!(app.resume(&summary).await.unwrap().messages, messages.len());
    assert_eq!((app.agent.session().0, lines(&app)), (one.clone(), messages.clone()));
    app.fork(None).await.unwrap();
    assert_ne!(app.agent.session().0, one);
    assert_eq!(lines(&app), messages);
    assert!(matches!(app.undo(), Err(ActionError::NothingToUndo)));
    app.agent.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn notices_say_what_is_not_as_the_user_may_expect() {
    let home = TestHome::new();
    home.write("user/config/config.toml", "sandbox = false\nallow = [\"fly(there)\"]\n");
    home.write("work/.hardpan/config.toml", "model = \"x\"\n");
    let notices = Arc::new(NoticeLog::default());
    let face = FaceHooks { prompter: None, notices: notices.clone() };
    ConversationApp::open(&home.options(SessionChoice::New), &face).unwrap();
    let told = notices.0.lock().unwrap().clone();
    assert_eq!(
        told,
        [
            "ignoring this folder's own settings (.hardpan): read them, then run `hardpan trust` to use them",
            "the rule fly(there) has no effect: the tools are read, grep, find, ls, symbols, edit, write, bash, fetch",
        ]
    );
}

#[test]
fn what_cannot_be_opened_says_why() {
    let home = TestHome::new();
    let resume = |session: &str| SessionChoice::Resume { session: session.into(), at: None };
    assert!(matches!(home.open_error(SessionChoice::Latest), OpenError::NothingToContinue));
    assert!(matches!(home.open_error(resume("none")), OpenError::Lookup(_)));
    let nowhere = OpenOptions { user_folders: UserFolders::default(), ..home.options(SessionChoice::New) };
    let error = ConversationApp::open(&nowhere, &FaceHooks::default()).err().unwrap();
    assert!(matches!(error, OpenError::NoDataFolder));
    let gone = OpenOptions { folder: "/no/such/folder".into(), ..home.options(SessionChoice::New) };
    let error = ConversationApp::open(&gone, &FaceHooks::default()).err().unwrap();
    assert!(error.to_string().starts_with("cannot find /no/such/folder: "), "{error}");
    home.write("user/config/config.toml", "sandbox = false\nallow = [\"edit(\"]\n");
    assert!(matches!(home.open_error(SessionChoice::New), OpenError::Rule(_)));
    home.write("user/config/config.toml", "\nmodle = \"x\"\n");
    let error = home.open_error(SessionChoice::New);
    assert!(matches!(error, OpenError::Settings(SettingsError::InvalidConfig { line: 2, .. })), "{error:?}");
}

#[tokio::test]
async fn a_request_from_a_snapshot_that_contradicts_itself_is_an_error() {
    let home = TestHome::new();
    let file = r#"{"path": "a", "content": "x"}"#;
    home.write(
        "twice.json",
        &format!(r#"{{"version": 1, "now": "2026-02-19T14:00:00Z", "files": [{file}, {file}]}}"#),
    );
    let folder = home.folder.path().join("work");
    let notices: Arc<dyn NoticeSink> = Arc::new(DiscardNotices);
    let settings = Arc::new(Settings::load(&folder, home.user_folders(), &*notices).unwrap());
    let whole = RequestOptions::new(&folder);
    assert!(assemble(&whole, &settings, &notices).await.is_ok());
    let twice = RequestOptions { snapshot: Some(home.folder.path().join("twice.json")), ..whole };
    let error = assemble(&twice, &settings, &notices).await.err().unwrap();
    assert!(matches!(error, RequestError::Gather(GatherError::InvalidSnapshot(_))), "{error:?}");
}

/// A face that looks at the agent while it shows a notice.
#[derive(Default)]
struct CuriousFace {
    agent: OnceLock<Agent>,
    seen: Mutex<Vec<(Notice, AgentView)>>,
}

/// The model and the number of messages; none if the agent did not answer.
type AgentView = Option<(String, usize)>;

impl NoticeSink for CuriousFace {
    fn notice(&self, notice: Notice) {
        let Some(agent) = self.agent.get().cloned() else { return };
        // On another thread, so that a lock that is held fails the test instead of blocking it.
        let (sender, answer) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send((agent.target().model.id, agent.messages().len())));
        let answer = answer.recv_timeout(Duration::from_secs(10)).ok();
        self.seen.lock().unwrap().push((notice, answer));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_face_may_ask_the_agent_while_it_shows_a_notice() {
    let home = TestHome::new();
    // Nobody listens there: the notice comes before the request is sent.
    let config =
        "sandbox = false\n[patience]\ntries = 1\n[providers.anthropic]\nbase_url = \"http://127.0.0.1:1\"\n";
    home.write("user/config/config.toml", config);
    let face = Arc::new(CuriousFace::default());
    let hooks = FaceHooks { notices: face.clone(), ..FaceHooks::default() };
    let mut options = OpenOptions { access: ProviderAccess::ByKey, ..home.options(SessionChoice::New) };
    options.target.model = Some("claude-sonnet-5".into());
    let app = ConversationApp::open(&options, &hooks).unwrap();
    assert!(face.agent.set(app.agent.clone()).is_ok());
    let (text, source) = ("Hello".to_owned(), InputSource::Interactive);
    let input = Input { text, below: None, images: Vec::new(), source, id: None };
    let outcome = app.agent.prompt(input).await.unwrap();
    assert!(matches!(outcome, InputOutcome::Ran(RunEnd::Error { .. })), "{outcome:?}");
    let seen = face.seen.lock().unwrap();
    let [(Notice::OtherAddress { .. }, answer)] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(*answer, Some(("claude-sonnet-5".to_owned(), 1)), "the prompt is stored");
}

/// The body of the request that a prompt would lead to.
async fn next_body(app: &ConversationApp, fold: Option<FoldReason>) -> String {
    let (text, source) = ("Go on.".to_owned(), InputSource::Interactive);
    let input = Input { text, below: None, images: Vec::new(), source, id: None };
    let preview = app.agent.preview_request(Some(input), fold).await.unwrap();
    String::from_utf8(preview.http.body.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn new_renamed_and_deleted_files_are_told_in_lines_of_the_overview() {
    let home = TestHome::new();
    // In a tree of three files the whole overview would be shorter than a diff of it.
    for number in 0..12 {
        home.write(&format!("work/lib/part{number:02}.py"), &format!("def part_{number}(): ...\n"));
    }
    home.write("work/src/clock.py", "def now(): ...\n");
    home.write("work/src/alarm.py", "from clock import now\ndef ring(): now()\n");
    let app = home.open(SessionChoice::New).await;
    say(&app, "Hello").await;
    let first = next_body(&app, None).await;
    assert!(first.contains("src/\\n alarm.py: ring\\n clock.py: now"), "{first}");
    home.write("work/src/radio.py", "from clock import now\ndef play(): now()\n");
    let told = next_body(&app, None).await;
    assert!(told.contains("[overview changed") && told.contains("\\n+ radio.py: play\\n"), "{told}");
    assert_eq!(told.matches("src/\\n alarm.py: ring\\n clock.py: now").count(), 1, "only the change: {told}");
    say(&app, "And now?").await;
    let work = home.folder.path().join("work/src");
    std::fs::rename(work.join("radio.py"), work.join("sound.py")).unwrap();
    std::fs::remove_file(work.join("alarm.py")).unwrap();
    let told = next_body(&app, None).await;
    for line in ["- alarm.py: ring", "- radio.py: play", "+ sound.py: play"] {
        assert!(told.contains(&format!("\\n{line}\\n")), "{line}: {told}");
    }
    let folded = next_body(&app, Some(FoldReason::Requested)).await;
    assert!(folded.contains("src/\\n clock.py: now\\n sound.py: play"), "{folded}");
    assert!(!folded.contains("[overview changed"), "{folded}");
    app.agent.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_map_takes_in_new_files_and_closes_deleted_ones() {
    for layout in ["strata", "tiers"] {
        let home = TestHome::new();
        let config = format!("sandbox = false\nmap_tokens = 2000\nlayout = \"{layout}\"\n");
        home.write("user/config/config.toml", &config);
        home.write("work/src/clock.py", "def now(): ...\n");
        home.write("work/src/alarm.py", "from clock import now\ndef ring(): now()\n");
        let app = home.open(SessionChoice::New).await;
        say(&app, "Hello").await;
        home.write("work/src/radio.py", "from clock import now\ndef play(): now()\n");
        std::fs::remove_file(home.folder.path().join("work/src/alarm.py")).unwrap();
        let told = next_body(&app, None).await;
        assert_eq!(told.matches("f play()").count(), 1, "{layout}: {told}");
        let closed = told.contains("[symbols:src/alarm.py was closed");
        assert_eq!(closed, layout == "strata", "{told}");
        assert_eq!(told.contains("f ring()"), layout == "strata", "{told}");
        app.agent.shutdown().await.unwrap();
    }
}

/// The texts of all requests of a run, and what is done before each is sent.
fn on_each_request(
    app: &ConversationApp,
    act: impl Fn(usize) + Send + Sync + 'static,
) -> Arc<Mutex<Vec<String>>> {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let (requests, act) = (sent.clone(), Arc::new(act));
    app.agent.events().subscribe::<BeforeProviderRequest, _>("test", move |event, _| {
        let text = format!("{:?}", event.prompt);
        let count = {
            let mut requests = requests.lock().unwrap();
            requests.push(text);
            requests.len()
        };
        act(count);
        async { Ok(()) }
    });
    sent
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changes_between_two_requests_of_a_run_is_sent_in_its_new_form() {
    // `inline` sends context with the person's message only, and says so.
    for layout in ["strata", "panels", "tiers"] {
        let home = TestHome::new();
        let mut options = home.options(SessionChoice::New);
        options.target.layout = Some(layout.into());
        let app = ConversationApp::open(&options, &FaceHooks::default()).unwrap();
        app.agent.start().await;
        let notes = home.folder.path().join("work/notes.txt");
        let sent = on_each_request(&app, move |count| {
            std::fs::write(&notes, format!("Remember the bread, {count} loaves of it.\n")).unwrap();
        });
        say(&app, "What is in @notes.txt?").await;
        say(&app, "And what is in @notes.txt now?").await;
        let sent = sent.lock().unwrap().clone();
        assert!(sent.len() > 3, "{layout}: the assistant looks at files, then answers");
        assert!(sent[0].contains("Remember the milk"), "{layout}");
        for (at, request) in sent.iter().enumerate().skip(1) {
            assert!(request.contains(&format!("{at} loaves")), "{layout}: request {at} shows an old file");
        }
        app.agent.shutdown().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn times_are_those_of_the_content_also_after_a_resume() {
    let home = TestHome::new();
    let work = home.folder.path().join("work");
    let tiers = |session| {
        let mut options = home.options(session);
        options.target.layout = Some("tiers".into());
        options
    };
    let open = async |session| {
        let app = ConversationApp::open(&tiers(session), &FaceHooks::default()).unwrap();
        app.agent.start().await;
        app
    };
    let times = async |app: &ConversationApp| {
        let items = app.preview_request("And now?").await.unwrap().snapshot.items;
        let time = |key: &str| items.iter().find(|item| *item.key == *key).map(|item| item.changed_at_ms);
        (time("file:notes.txt").unwrap(), time("tree").unwrap())
    };
    let set_time = |name: &str, seconds: u64| {
        let modified = std::time::UNIX_EPOCH + Duration::from_secs(seconds);
        std::fs::File::open(work.join(name)).unwrap().set_modified(modified).unwrap();
    };
    // What is seen for the first time changed when its file did, or its folder.
    set_time("notes.txt", 1_600_000_000);
    set_time("", 1_500_000_000);
    let app = open(SessionChoice::New).await;
    say(&app, "What is in @notes.txt?").await;
    let first = times(&app).await;
    assert_eq!(first, (1_600_000_000_000, 1_500_000_000_000));
    // The same bytes at another time are no change.
    home.write("work/notes.txt", "Remember the milk.\n");
    home.write("work/other", "");
    std::fs::remove_file(work.join("other")).unwrap();
    set_time("notes.txt", 1_700_000_000);
    assert_eq!(times(&app).await, first);
    say(&app, "And now?").await;
    assert_eq!(times(&app).await, first);
    home.write("work/notes.txt", "Remember the bread.\n");
    home.write("work/new.txt", "");
    set_time("notes.txt", 1_000_000_000);
    set_time("", 1_000_000_000);
    say(&app, "And now?").await;
    let second = times(&app).await;
    assert!(second.0 > 1_700_000_000_000 && second.1 > 1_700_000_000_000, "{second:?}");
    app.agent.shutdown().await.unwrap();
    drop(app);
    let app = open(SessionChoice::Latest).await;
    assert_eq!(times(&app).await, second);
    app.agent.shutdown().await.unwrap();
}

#[path = "embedding/panel_files.rs"]
mod panel_files;
#[path = "embedding/panels.rs"]
mod panels;

#[path = "embedding/context_acts.rs"]
mod context_acts;
#[path = "embedding/context_items.rs"]
mod context_items;
#[path = "embedding/extension_api.rs"]
mod extension_api;
#[path = "embedding/extension_calls.rs"]
mod extension_calls;
#[path = "embedding/extension_compatibility.rs"]
mod extension_compatibility;
#[path = "embedding/extension_decisions.rs"]
mod extension_decisions;
#[path = "embedding/extension_events.rs"]
mod extension_events;
#[path = "embedding/extension_files_hostile.rs"]
mod extension_files_hostile;
#[path = "embedding/extension_models.rs"]
mod extension_models;
#[path = "embedding/extension_platform.rs"]
mod extension_platform;
#[path = "embedding/extension_provider_parts.rs"]
mod extension_provider_parts;
#[path = "embedding/extension_providers.rs"]
mod extension_providers;
#[path = "embedding/extension_security.rs"]
mod extension_security;
#[path = "embedding/extension_typings.rs"]
mod extension_typings;
#[path = "embedding/extensions.rs"]
mod extensions;
#[path = "embedding/hostile_extensions.rs"]
mod hostile_extensions;
#[path = "embedding/prompt_settings.rs"]
mod prompt_settings;
#[path = "embedding/spine.rs"]
mod spine;
#[path = "embedding/subagents.rs"]
mod subagents;
