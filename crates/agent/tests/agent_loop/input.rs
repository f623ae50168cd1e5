use hardpan_agent::events::{HandlerFailed, InputReply};
use hardpan_agent::{
    AgentError, Command, CommandError, CommandPrompt, Delivery, Input, InputOutcome, InputSource, RunEnd,
};
use hardpan_context::LayoutName;
use hardpan_prompt::{MessageBody, MessagePart};
use hardpan_test_support::{NoteLog, TestAgent, handler_failed, input, pixel};

const TALK: &str = "
turns:
  - text: one two three four five six seven eight nine ten
default: {text: Fine.}
";

const FILES: &[(&str, &str)] = &[
    ("skills/sort/SKILL.md", "---\nname: sort\ndescription: Sorts.\n---\nSort by size.\n"),
    ("templates/fix.md", "Fix $1, then test ${@:2}."),
];

/// Subscribes a handler that notes each input and replies as given.
fn on_input(
    test_agent: &TestAgent,
    owner: &'static str,
    notes: &NoteLog,
    reply: impl Fn(&Input) -> InputReply + Send + Sync + 'static,
) {
    let notes = notes.clone();
    test_agent.agent.events().subscribe::<Input, _>(owner, move |input, _agent| {
        notes.add(format!("{owner} {}", input.text));
        let reply = reply(&input);
        async move { Ok(reply) }
    });
}

fn transform(text: String) -> InputReply {
    InputReply::Transform { text, images: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_run_at_once_while_an_answer_streams() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).script(TALK).start().await;
        let notes = NoteLog::default();
        on_input(&test_agent, "input", &notes, |_| InputReply::Continue);
        test_agent.agent.register_command("greet", "Greets.", |name, agent| async move {
            assert!(agent.is_busy());
            Ok(Some(format!("hello, {name}")))
        });
        let (running, gate) = test_agent.begin_and_hold("Talk").await;
        let said = || InputOutcome::Command { output: Some("hello, you".into()) };
        assert_eq!(test_agent.prompt("/greet you").await, said());
        assert_eq!(test_agent.agent.queue(input("/greet  you "), Delivery::Steer).await.unwrap(), said());
        assert_eq!(test_agent.agent.queue(input("/greet you"), Delivery::FollowUp).await.unwrap(), said());
        assert!(!running.is_finished());
        gate.release();
        assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Done));
        assert_eq!(notes.all(), ["input Talk"]);
        assert_eq!(test_agent.sent_bodies().len(), 1);
        assert_eq!(
            test_agent.order(),
            [
                "message_start",
                "message_end",
                "agent_start",
                "turn_start",
                "before_provider_request",
                "message_start",
                "message_end",
                "turn_end",
                "agent_end",
            ],
            "{layout}"
        );
        assert_eq!(
            test_agent.transcript_lines(),
            ["user: Talk", "assistant: one two three four five six seven eight nine ten"]
        );
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_fails_or_breaks_breaks_nothing_else() {
    let test_agent = TestAgent::builder().script(TALK).start().await;
    test_agent
        .agent
        .register_command("fail", "Fails.", |_, _| async { Err(CommandError::failed("no such thing")) });
    test_agent.agent.register_command("ask", "Expects something.", |_, _| async {
        Err(CommandError::Usage("/ask NAME"))
    });
    test_agent.agent.register_command("break", "Breaks.", |_, _| async { panic!("a command that breaks") });
    test_agent.agent.register_command("snap", "Breaks at once.", |why, _| {
        assert!(why.is_empty(), "a command that breaks before it begins");
        async { Ok(None) }
    });
    let (running, gate) = test_agent.begin_and_hold("Talk").await;
    let said = |text: &str| InputOutcome::Command { output: Some(text.into()) };
    assert_eq!(test_agent.prompt("/fail").await, said("/fail: no such thing"));
    assert_eq!(test_agent.prompt("/ask").await, said("/ask: expected /ask NAME"));
    assert_eq!(test_agent.prompt("/break").await, said("/break crashed; nothing else was affected"));
    assert_eq!(test_agent.prompt("/snap now").await, said("/snap crashed; nothing else was affected"));
    assert_eq!(test_agent.prompt("/snap").await, InputOutcome::Command { output: None });
    gate.release();
    assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Done));
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_for_a_prompt_is_replaced_by_it_and_by_nothing_if_it_fails() {
    let test_agent = TestAgent::builder().start().await;
    let write = |about: String, _| async move {
        match about.as_str() {
            "" => Err(CommandError::Usage("/talk TOPIC")),
            about => Ok(CommandPrompt { text: format!("Talk about {about}."), images: vec![pixel()] }),
        }
    };
    test_agent.agent.add_command("talk", Command::for_prompt("Talks.", write).of("server"));
    assert_eq!(test_agent.prompt("/talk  birds ").await, InputOutcome::Ran(RunEnd::Done));
    let said = test_agent.agent.messages();
    let MessageBody::User { content } = &*said[0].body else { panic!("{said:?}") };
    assert_eq!(content[..], [MessagePart::text("Talk about birds."), MessagePart::Image(pixel())]);
    let failed = test_agent.agent.prompt(input("/talk")).await.expect_err("nothing to talk about");
    assert_eq!(failed.to_string(), "/talk: expected /talk TOPIC");
    assert_eq!(test_agent.agent.messages().len(), said.len());
    // What an extension sends is taken as it is.
    let sent = Input { source: InputSource::Extension, ..input("/talk birds") };
    test_agent.agent.prompt(sent).await.expect("it runs");
    let said = test_agent.agent.messages();
    let MessageBody::User { content } = &*said[2].body else { panic!("{said:?}") };
    assert_eq!(content[..], [MessagePart::text("/talk birds")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_is_rewritten_by_one_handler_after_the_other() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).start().await;
        let notes = NoteLog::default();
        on_input(&test_agent, "a", &notes, |input| transform(format!("{}, please", input.text)));
        on_input(&test_agent, "b", &notes, |_| InputReply::Continue);
        on_input(&test_agent, "c", &notes, |input| transform(input.text.to_uppercase()));
        assert_eq!(test_agent.prompt("Sing").await, InputOutcome::Ran(RunEnd::Done));
        assert_eq!(notes.all(), ["a Sing", "b Sing, please", "c Sing, please"]);
        assert_eq!(test_agent.transcript_lines(), ["user: SING, PLEASE", "assistant: Fine."]);
        assert!(
            test_agent.request_lines()[0].contains(&"user: SING, PLEASE".to_owned()),
            "{:?}",
            test_agent.request_lines()
        );
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_a_handler_deals_with_goes_no_further() {
    let test_agent = TestAgent::builder().start().await;
    let notes = NoteLog::default();
    on_input(&test_agent, "a", &notes, |input| match input.text.as_str() {
        "mine" => InputReply::Handled,
        _ => InputReply::Continue,
    });
    on_input(&test_agent, "b", &notes, |_| InputReply::Continue);
    assert_eq!(test_agent.prompt("mine").await, InputOutcome::Handled);
    assert_eq!(notes.all(), ["a mine"]);
    assert!(
        test_agent.order().is_empty()
            && test_agent.sent_bodies().is_empty()
            && test_agent.transcript_lines().is_empty()
    );
    assert!(!test_agent.session_path().exists(), "nothing was said, so there is no session");
    assert_eq!(test_agent.prompt("yours").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(notes.all(), ["a mine", "a yours", "b yours"]);
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn handlers_see_the_source_and_the_images_and_may_replace_them() {
    let test_agent = TestAgent::builder().layout(LayoutName::Inline).start().await;
    let notes = NoteLog::default();
    let seen = notes.clone();
    test_agent.agent.events().subscribe::<Input, _>("a", move |input, _| {
        seen.add(format!("{:?} {} {}", input.source, input.text, input.images.len()));
        let images = match input.text.as_str() {
            "without" => Some(Vec::new()),
            "with" => Some(vec![pixel(), pixel()]),
            _ => None,
        };
        async move { Ok(InputReply::Transform { text: input.text, images }) }
    });
    for (text, source) in [
        ("as it is", InputSource::Interactive),
        ("without", InputSource::Rpc),
        ("with", InputSource::Extension),
    ] {
        let outcome = test_agent
            .agent
            .prompt(Input { text: text.into(), below: None, images: vec![pixel()], source, id: None })
            .await;
        assert_eq!(outcome.unwrap(), InputOutcome::Ran(RunEnd::Done));
    }
    assert_eq!(notes.all(), ["Interactive as it is 1", "Rpc without 1", "Extension with 1"]);
    assert_eq!(
        test_agent.transcript_lines(),
        [
            "user: as it is [image]",
            "assistant: Fine.",
            "user: without",
            "assistant: Fine.",
            "user: with [image] [image]",
            "assistant: Fine.",
        ]
    );
    let request_lines = test_agent.request_lines().pop().unwrap();
    assert_eq!(request_lines[..2], ["user: as it is", "user: [image]"]);
    assert_eq!(
        request_lines[3..],
        ["user: without", "assistant: Fine.", "user: with", "user: [image]", "user: [image]"]
    );
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_below_an_input_follows_it_whole() {
    let test_agent = TestAgent::builder().layout(LayoutName::Inline).files(FILES).start().await;
    let notes = NoteLog::default();
    on_input(&test_agent, "a", &notes, |_| InputReply::Continue);
    let below = "/fix  'one\n\t$1 ";
    let both = Input { below: Some(below.into()), ..input("/fix it all") };
    assert_eq!(test_agent.agent.prompt(both).await.unwrap(), InputOutcome::Ran(RunEnd::Done));
    assert_eq!(test_agent.prompt("again").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(notes.all(), ["a /fix it all", "a again"]);
    let fixed = format!("user: Fix it, then test all.\n\n{below}");
    assert_eq!(
        test_agent.transcript_lines(),
        [&*fixed, "assistant: Fine.", "user: again", "assistant: Fine."]
    );
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn skills_and_templates_are_expanded_after_the_input_event() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).files(FILES).start().await;
        let notes = NoteLog::default();
        on_input(&test_agent, "a", &notes, |input| match input.text.as_str() {
            "fix it" => transform("/fix it all".into()),
            _ => InputReply::Continue,
        });
        for text in ["/skill:sort by name", "/fix '$2 now' a b", "fix it", "/unknown thing", "/skill:unknown"]
        {
            assert_eq!(test_agent.prompt(text).await, InputOutcome::Ran(RunEnd::Done));
        }
        assert_eq!(
            notes.all(),
            [
                "a /skill:sort by name",
                "a /fix '$2 now' a b",
                "a fix it",
                "a /unknown thing",
                "a /skill:unknown"
            ]
        );
        let skill = test_agent.file("skills/sort/SKILL.md");
        let (file, folder) = (skill.display(), skill.parent().unwrap().display());
        let expected = [
            format!(
                "user: <skill name=\"sort\" location=\"{file}\">\nReferences are relative to {folder}.\n\nSort by size.\n</skill>\n\nby name"
            ),
            "assistant: Fine.".into(),
            "user: Fix $2 now, then test a b.".into(),
            "assistant: Fine.".into(),
            "user: Fix it, then test all.".into(),
            "assistant: Fine.".into(),
            "user: /unknown thing".into(),
            "assistant: Fine.".into(),
            "user: /skill:unknown".into(),
            "assistant: Fine.".into(),
        ];
        assert_eq!(test_agent.transcript_lines(), expected);
        let request_lines = test_agent.request_lines().pop().unwrap();
        assert!(
            expected[..9].iter().all(|line| request_lines.contains(line)),
            "{layout}: {request_lines:#?}"
        );
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_queued_passes_commands_input_and_expansion_when_it_is_queued() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).script(TALK).files(FILES).start().await;
        let notes = NoteLog::default();
        on_input(&test_agent, "a", &notes, |input| match input.text.as_str() {
            "mine" => InputReply::Handled,
            "Talk" => InputReply::Continue,
            text => transform(format!("{text} b c")),
        });
        let (running, gate) = test_agent.begin_and_hold("Talk").await;
        test_agent.follow_up("/fix a").await;
        let outcome = test_agent.agent.queue(input("mine"), Delivery::Steer).await.unwrap();
        assert_eq!(outcome, InputOutcome::Handled);
        assert_eq!(notes.all(), ["a Talk", "a /fix a", "a mine"]);
        let waiting = test_agent.agent.queued_inputs();
        assert_eq!(waiting.steering, []);
        assert_eq!(waiting.follow_up.len(), 1);
        assert_eq!(
            (&*waiting.follow_up[0].text, &*waiting.follow_up[0].typed),
            ("Fix a, then test b c.", "/fix a")
        );
        gate.release();
        assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Done));
        assert_eq!(notes.all().len(), 3);
        assert_eq!(test_agent.transcript_lines()[2..], ["user: Fix a, then test b c.", "assistant: Fine."]);
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_is_refused_while_the_agent_works_and_when_there_is_nothing_in_it() {
    let test_agent = TestAgent::builder().script(TALK).start().await;
    let notes = NoteLog::default();
    on_input(&test_agent, "a", &notes, |_| InputReply::Continue);
    assert!(matches!(test_agent.agent.prompt(input(" \n")).await, Err(AgentError::Empty)));
    let (running, gate) = test_agent.begin_and_hold("Talk").await;
    assert!(matches!(test_agent.agent.prompt(input("Me too")).await, Err(AgentError::Busy)));
    assert!(matches!(test_agent.agent.queue(input(""), Delivery::Steer).await, Err(AgentError::Empty)));
    gate.release();
    assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Done));
    assert_eq!(notes.all(), ["a  \n", "a Talk", "a "], "what is refused raises no event");
    assert_eq!(test_agent.transcript_lines().len(), 2);
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_alone_is_a_prompt() {
    let test_agent = TestAgent::builder().layout(LayoutName::Inline).start().await;
    let outcome = test_agent.agent.prompt(Input { images: vec![pixel()], ..input("") }).await.unwrap();
    assert_eq!(outcome, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(
        *test_agent.agent.messages()[0].body,
        MessageBody::User { content: vec![MessagePart::Image(pixel())] }
    );
    assert_eq!(test_agent.request_lines()[0], ["user: [image]"]);
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_handler_that_fails_is_reported_and_passed_over() {
    let test_agent = TestAgent::builder().start().await;
    test_agent.agent.events().subscribe::<Input, _>("broken", |_, _| async { Err("no idea".into()) });
    test_agent
        .agent
        .events()
        .subscribe::<Input, _>("whole", |input, _| async move { Ok(transform(format!("{}!", input.text))) });
    assert_eq!(test_agent.prompt("Hello").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(test_agent.transcript_lines(), ["user: Hello!", "assistant: Fine."]);
    let failed = test_agent.events_of::<HandlerFailed>();
    assert_eq!(failed, [handler_failed("broken", "input", "no idea")]);
    test_agent.assert_continues().await;
}
