use hardpan_agent::events::InputReply;
use hardpan_agent::{AgentError, Delivery, Input, InputSource, Stop, Taken};
use hardpan_context::LayoutName;
use hardpan_prompt::{Body, Part};

use crate::props::Notes;
use crate::trial::{Given, Trial, input, pixel};

const TALK: &str = "
turns:
  - text: one two three four five six seven eight nine ten
default: {text: Fine.}
";

const FILES: &[(&str, &str)] = &[
    ("skills/sort/SKILL.md", "---\nname: sort\ndescription: Sorts.\n---\nSort by size.\n"),
    ("templates/fix.md", "Fix $1, then test ${@:2}."),
];

/// Registers a handler that writes down what it sees and answers as it is told.
fn on_input(
    trial: &Trial,
    owner: &'static str,
    notes: &Notes,
    reply: impl Fn(&Input) -> InputReply + Send + Sync + 'static,
) {
    let notes = notes.clone();
    trial.agent.events().on::<Input, _>(owner, move |input, _agent| {
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
        let trial = Trial::new(Given { layout, script: TALK, ..Given::default() }).await;
        let notes = Notes::default();
        on_input(&trial, "input", &notes, |_| InputReply::Continue);
        trial.agent.command("greet", "Greets.", |name, agent| async move {
            assert!(agent.is_busy());
            Ok(Some(format!("hello, {name}")))
        });
        let (running, held) = trial.begin_and_hold("Talk").await;
        let said = || Taken::Command { said: Some("hello, you".into()) };
        assert_eq!(trial.prompt("/greet you").await, said());
        assert_eq!(trial.agent.queue(input("/greet  you "), Delivery::Steer).await.unwrap(), said());
        assert_eq!(trial.agent.queue(input("/greet you"), Delivery::FollowUp).await.unwrap(), said());
        assert!(!running.is_finished());
        held.let_go();
        assert_eq!(running.await.unwrap(), Taken::Ran(Stop::Done));
        assert_eq!(notes.all(), ["input Talk"]);
        assert_eq!(trial.sent().len(), 1);
        assert_eq!(
            trial.order(),
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
            trial.said(),
            ["user: Talk", "assistant: one two three four five six seven eight nine ten"]
        );
        trial.goes_on().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_fails_or_breaks_breaks_nothing_else() {
    let trial = Trial::new(Given { script: TALK, ..Given::default() }).await;
    trial.agent.command("fail", "Fails.", |_, _| async { Err("no such thing".into()) });
    trial.agent.command("break", "Breaks.", |_, _| async { panic!("a command that breaks") });
    trial.agent.command("snap", "Breaks at once.", |why, _| {
        assert!(why.is_empty(), "a command that breaks before it begins");
        async { Ok(None) }
    });
    let (running, held) = trial.begin_and_hold("Talk").await;
    let said = |text: &str| Taken::Command { said: Some(text.into()) };
    assert_eq!(trial.prompt("/fail").await, said("/fail: no such thing"));
    assert_eq!(trial.prompt("/break").await, said("/break broke; nothing else was touched"));
    assert_eq!(trial.prompt("/snap now").await, said("/snap broke; nothing else was touched"));
    assert_eq!(trial.prompt("/snap").await, Taken::Command { said: None });
    held.let_go();
    assert_eq!(running.await.unwrap(), Taken::Ran(Stop::Done));
    trial.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_is_rewritten_by_one_handler_after_the_other() {
    for layout in LayoutName::ALL {
        let trial = Trial::new(Given { layout, ..Given::default() }).await;
        let notes = Notes::default();
        on_input(&trial, "a", &notes, |input| transform(format!("{}, please", input.text)));
        on_input(&trial, "b", &notes, |_| InputReply::Continue);
        on_input(&trial, "c", &notes, |input| transform(input.text.to_uppercase()));
        assert_eq!(trial.prompt("Sing").await, Taken::Ran(Stop::Done));
        assert_eq!(notes.all(), ["a Sing", "b Sing, please", "c Sing, please"]);
        assert_eq!(trial.said(), ["user: SING, PLEASE", "assistant: Fine."]);
        assert!(trial.heard()[0].contains(&"user: SING, PLEASE".to_owned()), "{:?}", trial.heard());
        trial.goes_on().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_a_handler_deals_with_goes_no_further() {
    let trial = Trial::new(Given::default()).await;
    let notes = Notes::default();
    on_input(&trial, "a", &notes, |input| match input.text.as_str() {
        "mine" => InputReply::Handled,
        _ => InputReply::Continue,
    });
    on_input(&trial, "b", &notes, |_| InputReply::Continue);
    assert_eq!(trial.prompt("mine").await, Taken::Handled);
    assert_eq!(notes.all(), ["a mine"]);
    assert!(trial.order().is_empty() && trial.sent().is_empty() && trial.said().is_empty());
    assert!(!trial.path().exists(), "nothing was said, so there is no session");
    assert_eq!(trial.prompt("yours").await, Taken::Ran(Stop::Done));
    assert_eq!(notes.all(), ["a mine", "a yours", "b yours"]);
    trial.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn handlers_see_the_source_and_the_images_and_may_replace_them() {
    let trial = Trial::new(Given { layout: LayoutName::Inline, ..Given::default() }).await;
    let notes = Notes::default();
    let seen = notes.clone();
    trial.agent.events().on::<Input, _>("a", move |input, _| {
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
        let taken =
            trial.agent.prompt(Input { text: text.into(), below: None, images: vec![pixel()], source }).await;
        assert_eq!(taken.unwrap(), Taken::Ran(Stop::Done));
    }
    assert_eq!(notes.all(), ["Interactive as it is 1", "Rpc without 1", "Extension with 1"]);
    assert_eq!(
        trial.said(),
        [
            "user: as it is [image]",
            "assistant: Fine.",
            "user: without",
            "assistant: Fine.",
            "user: with [image] [image]",
            "assistant: Fine.",
        ]
    );
    let heard = trial.heard().pop().unwrap();
    assert_eq!(heard[..2], ["user: as it is", "user: [image]"]);
    assert_eq!(
        heard[3..],
        ["user: without", "assistant: Fine.", "user: with", "user: [image]", "user: [image]"]
    );
    trial.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_below_an_input_follows_it_whole() {
    let trial = Trial::new(Given { layout: LayoutName::Inline, files: FILES, ..Given::default() }).await;
    let notes = Notes::default();
    on_input(&trial, "a", &notes, |_| InputReply::Continue);
    let below = "/fix  'one\n\t$1 ";
    let both = Input { below: Some(below.into()), ..input("/fix it all") };
    assert_eq!(trial.agent.prompt(both).await.unwrap(), Taken::Ran(Stop::Done));
    assert_eq!(trial.prompt("again").await, Taken::Ran(Stop::Done));
    assert_eq!(notes.all(), ["a /fix it all", "a again"]);
    let fixed = format!("user: Fix it, then test all.\n\n{below}");
    assert_eq!(trial.said(), [&*fixed, "assistant: Fine.", "user: again", "assistant: Fine."]);
    trial.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn skills_and_templates_are_expanded_after_the_input_event() {
    for layout in LayoutName::ALL {
        let trial = Trial::new(Given { layout, files: FILES, ..Given::default() }).await;
        let notes = Notes::default();
        on_input(&trial, "a", &notes, |input| match input.text.as_str() {
            "fix it" => transform("/fix it all".into()),
            _ => InputReply::Continue,
        });
        for text in ["/skill:sort by name", "/fix '$2 now' a b", "fix it", "/unknown thing", "/skill:unknown"]
        {
            assert_eq!(trial.prompt(text).await, Taken::Ran(Stop::Done));
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
        let skill = trial.file("skills/sort/SKILL.md");
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
        assert_eq!(trial.said(), expected);
        let heard = trial.heard().pop().unwrap();
        assert!(expected[..9].iter().all(|line| heard.contains(line)), "{layout}: {heard:#?}");
        trial.goes_on().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_queued_passes_commands_input_and_expansion_when_it_is_queued() {
    for layout in LayoutName::ALL {
        let trial = Trial::new(Given { layout, script: TALK, files: FILES, ..Given::default() }).await;
        let notes = Notes::default();
        on_input(&trial, "a", &notes, |input| match input.text.as_str() {
            "mine" => InputReply::Handled,
            "Talk" => InputReply::Continue,
            text => transform(format!("{text} b c")),
        });
        let (running, held) = trial.begin_and_hold("Talk").await;
        trial.follow_up("/fix a").await;
        let taken = trial.agent.queue(input("mine"), Delivery::Steer).await.unwrap();
        assert_eq!(taken, Taken::Handled);
        assert_eq!(notes.all(), ["a Talk", "a /fix a", "a mine"]);
        let waiting = trial.agent.waiting();
        assert_eq!(waiting.steering, []);
        assert_eq!(waiting.follow_up.len(), 1);
        assert_eq!(
            (&*waiting.follow_up[0].text, &*waiting.follow_up[0].typed),
            ("Fix a, then test b c.", "/fix a")
        );
        held.let_go();
        assert_eq!(running.await.unwrap(), Taken::Ran(Stop::Done));
        assert_eq!(notes.all().len(), 3);
        assert_eq!(trial.said()[2..], ["user: Fix a, then test b c.", "assistant: Fine."]);
        trial.goes_on().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_is_refused_while_the_agent_works_and_when_there_is_nothing_in_it() {
    let trial = Trial::new(Given { script: TALK, ..Given::default() }).await;
    let notes = Notes::default();
    on_input(&trial, "a", &notes, |_| InputReply::Continue);
    assert!(matches!(trial.agent.prompt(input(" \n")).await, Err(AgentError::Empty)));
    let (running, held) = trial.begin_and_hold("Talk").await;
    assert!(matches!(trial.agent.prompt(input("Me too")).await, Err(AgentError::Busy)));
    assert!(matches!(trial.agent.queue(input(""), Delivery::Steer).await, Err(AgentError::Empty)));
    held.let_go();
    assert_eq!(running.await.unwrap(), Taken::Ran(Stop::Done));
    assert_eq!(notes.all(), ["a  \n", "a Talk", "a "], "what is refused raises no event");
    assert_eq!(trial.said().len(), 2);
    trial.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_alone_is_a_prompt() {
    let trial = Trial::new(Given { layout: LayoutName::Inline, ..Given::default() }).await;
    let taken = trial.agent.prompt(Input { images: vec![pixel()], ..input("") }).await.unwrap();
    assert_eq!(taken, Taken::Ran(Stop::Done));
    assert_eq!(*trial.agent.messages()[0].body, Body::User { content: vec![Part::Image(pixel())] });
    assert_eq!(trial.heard()[0], ["user: [image]"]);
    trial.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_handler_that_fails_is_reported_and_passed_over() {
    let trial = Trial::new(Given::default()).await;
    trial.agent.events().on::<Input, _>("broken", |_, _| async { Err("no idea".into()) });
    trial
        .agent
        .events()
        .on::<Input, _>("whole", |input, _| async move { Ok(transform(format!("{}!", input.text))) });
    assert_eq!(trial.prompt("Hello").await, Taken::Ran(Stop::Done));
    assert_eq!(trial.said(), ["user: Hello!", "assistant: Fine."]);
    let failed = trial.told("handler_failed");
    assert_eq!(
        failed,
        [
            serde_json::json!({"type": "handler_failed", "owner": "broken", "event": "input", "what": "no idea"})
        ]
    );
    trial.goes_on().await;
}
