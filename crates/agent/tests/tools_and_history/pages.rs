use hardpan_agent::events::{Note, NoteKind};
use hardpan_context::LayoutName;
use hardpan_test_support::{TestAgent, TestAgentBuilder, TestApprovals, TestResponse, TestServer};

const HTML: &str = "text/html; charset=utf-8";

/// `/a` and `/b` are pages, `/moved` leads to `/a`, `/loop` to itself, `/pdf` says that it is a PDF file.
fn site() -> TestServer {
    TestServer::start(|number, request| match &*request.path {
        "/a" => {
            TestResponse::new(200, HTML, format!("<title>First</title><p>Visit <b>{number}</b> of A.</p>"))
        }
        "/b" => TestResponse::new(200, "text/plain", "Plain words of B."),
        "/moved" => TestResponse::new(302, HTML, "").with_header("location", "/a"),
        "/loop" => TestResponse::new(302, HTML, "").with_header("location", "/loop"),
        "/pdf" => TestResponse::new(200, "application/pdf", "%PDF"),
        _ => TestResponse::new(404, HTML, "Nothing."),
    })
}

fn setup() -> TestAgentBuilder {
    TestAgent::with_real_tools().pages()
}

/// The pages that were not fetched.
fn problems(test_agent: &TestAgent) -> Vec<String> {
    let notes = test_agent.events_of::<Note>();
    let problem = |note: Note| matches!(note.kind, NoteKind::PageNotFetched { .. }).then_some(note.text);
    notes.into_iter().filter_map(problem).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_a_prompt_names_are_context_in_every_layout() {
    for layout in LayoutName::ALL {
        let server = site();
        let url = server.url();
        let test_agent = setup().layout(layout).start().await;
        test_agent.say(&format!("Compare {url}/a with ({url}/b).")).await;
        let body = test_agent.last_sent().body;
        assert!(body.contains("Visit **0** of A.") && body.contains("Plain words of B."), "{layout}: {body}");
        if layout == LayoutName::Tiers {
            let context = format!(
                "# URL Context\\n\\nThe following content was fetched from URLs mentioned in the conversation:\\n\\n\
                 First\\n\\nVisit **0** of A.\\n---\\n{url}/b\\n\\nPlain words of B."
            );
            assert!(body.contains(&context), "{body}");
            assert!(body.contains("Ok, I've reviewed the URL content."), "{body}");
        }
        assert_eq!(test_agent.agent.pages(), [format!("{url}/a"), format!("{url}/b")]);
        // A page is fetched once, and a copy of the session shows it as it was.
        test_agent.say(&format!("And {url}/a again?")).await;
        assert_eq!(server.received().len(), 2);
        test_agent.assert_copy_sends_the_same().await;
        assert_eq!(server.received().len(), 2);
        // Closed, it is gone, also after a resume.
        assert!(test_agent.agent.close_page(&format!("{url}/a")).await.expect("stored"));
        assert!(!test_agent.agent.close_page(&format!("{url}/a")).await.expect("stored"));
        test_agent.assert_copy_sends_the_same().await;
        assert_eq!(test_agent.agent.pages(), [format!("{url}/b")], "{layout}");
        let resumed = test_agent.restart().await;
        assert_eq!(resumed.agent.pages(), [format!("{url}/b")], "{layout}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_fetched_is_noted_and_asked_for_again() {
    let server = site();
    let url = server.url();
    let test_agent = setup().start().await;
    test_agent.say(&format!("See {url}/missing {url}/loop {url}/pdf {url}/a")).await;
    let told = problems(&test_agent);
    assert_eq!(told.len(), 4, "{told:#?}");
    assert!(told[0].ends_with("/missing was not fetched: the server answered with status 404"), "{told:#?}");
    assert!(told[1].contains("more than 5 times"), "{told:#?}");
    assert!(told[2].ends_with("it says that it is a PDF file, but it is none"), "{told:#?}");
    assert!(told[3].ends_with("/a was not fetched: a message names at most 3 pages"), "{told:#?}");
    assert!(!test_agent.last_sent().body.contains("Visit"));
    let before = server.received().len();
    test_agent.say(&format!("Once more: {url}/missing, {url}/moved")).await;
    assert_eq!(server.received().len(), before + 3, "an error is not kept, and a redirect is followed");
    assert!(test_agent.last_sent().body.contains("of A."));
    test_agent.assert_copy_sends_the_same().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_kept_for_a_day_and_need_the_permission_of_fetch() {
    let server = site();
    let url = server.url();
    let test_agent = setup().simulator_in_process().start().await;
    test_agent.say(&format!("See {url}/a")).await;
    for (minutes, requests) in [(60, 1), (24 * 60, 2)] {
        test_agent.pass_minutes(minutes);
        let other = test_agent.with_conversation(test_agent.begin_session(&format!("after{minutes}")));
        other.say(&format!("See {url}/a")).await;
        assert_eq!(server.received().len(), requests);
        assert!(other.last_sent().body.contains(&format!("Visit **{}** of A.", requests - 1)));
    }
    let denied = setup().approvals(TestApprovals::DenyAll).start().await;
    denied.say(&format!("See {url}/b")).await;
    assert_eq!(problems(&denied).len(), 1);
    assert_eq!(server.received().len(), 2, "nothing was asked for");
    // Without the setting, an address is a word.
    let off = TestAgent::with_real_tools().start().await;
    off.say(&format!("See {url}/b")).await;
    assert_eq!((server.received().len(), problems(&off).len()), (2, 0));
}
