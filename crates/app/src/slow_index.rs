//! A request does not wait long for the symbol index of a large folder: it goes without a description
//! of the repository, and the user is told.

use std::sync::{Arc, Mutex, mpsc};

use hardpan_agent::{Input, InputOutcome, InputSource, RunEnd};

use crate::options::{OpenOptions, ProviderAccess};
use crate::settings::UserFolders;
use crate::{ConversationApp, FaceHooks, Notice, NoticeSink};

#[derive(Default)]
struct IndexNotices(Mutex<Vec<String>>);

impl NoticeSink for IndexNotices {
    fn notice(&self, notice: Notice) {
        if matches!(notice, Notice::IndexBehind(_)) {
            self.0.lock().unwrap().push(notice.to_string());
        }
    }
}

async fn prompt(app: &ConversationApp) -> String {
    let input = Input {
        text: "hello".into(),
        below: None,
        images: Vec::new(),
        source: InputSource::Interactive,
        id: None,
    };
    assert_eq!(app.agent.prompt(input).await.unwrap(), InputOutcome::Ran(RunEnd::Done));
    serde_json::to_string(&app.agent.breakdown().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_goes_without_the_overview_while_the_index_is_held() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work");
    std::fs::create_dir(&work).unwrap();
    for number in 0..510 {
        std::fs::write(work.join(format!("f{number}.py")), format!("def f{number}(): ...\n")).unwrap();
    }
    let notices = Arc::new(IndexNotices::default());
    let options = OpenOptions {
        user_folders: UserFolders::below(&folder.path().join("user")),
        access: ProviderAccess::Simulator,
        ..OpenOptions::new(work)
    };
    let face = FaceHooks { prompter: None, notices: notices.clone() };
    let app = ConversationApp::open(&options, &face).unwrap();
    app.agent.start().await;
    let (begun, has_begun) = mpsc::channel();
    let (finish, may_finish) = mpsc::channel::<()>();
    let context = app.context.clone();
    let holder = std::thread::spawn(move || {
        context.reader().index().with_current(&mut |_, _| (), |_| {
            begun.send(()).unwrap();
            // Until the test says so, or fails.
            let _ = may_finish.recv();
        });
    });
    has_begun.recv().unwrap();
    let without = prompt(&app).await;
    assert!(!without.contains("overview"), "{without}");
    assert_eq!(notices.0.lock().unwrap().len(), 1, "the user is told once");
    finish.send(()).unwrap();
    holder.join().unwrap();
    app.start_new().await.unwrap();
    let with = prompt(&app).await;
    assert!(with.contains("overview"), "{with}");
    assert_eq!(notices.0.lock().unwrap().len(), 1);
    app.agent.shutdown().await.unwrap();
}
