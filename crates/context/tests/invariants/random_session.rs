//! [`Session`]: a random first request, and up to two that follow from it.

use hardpan_context::{
    AgentMode, ImageEntry, ItemEntry, LifetimeSetting, LostCache, ProjectFile, PromptEntry, PromptType,
    Skill, SnapshotFile, SystemEntry, ThinkingEntry, WebSearchEntry,
};
use hardpan_prompt::{
    AgentMessage, Effort, Json, MessageBody, MessageId, MessagePart, MessageState, Text, Tool,
};
use jiff::{Span, Timestamp};

use crate::conversations::ConversationGenerator;
use crate::rng::TestRng;
use crate::{random_items, random_text};

/// The working directory, which no cached byte may name.
pub const WORKING_DIRECTORY: &str = "/somewhere/on/this-machine";

/// How a request follows from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is the first request of the session.
    First,
    /// The prompt became a message, messages were appended, items changed: what was said stays
    /// said.
    Appended,
    /// Anything may have changed.
    Rewritten,
}

/// One request. The runner fills in the layout state that the request before it left.
#[derive(Clone)]
pub struct Request {
    pub file: SnapshotFile,
    pub target: usize,
    pub step: Step,
}

/// Up to three requests in a row.
#[derive(Clone)]
pub struct Session {
    pub seed: u64,
    pub requests: Vec<Request>,
}

/// The session of a random seed. `model_names` are provider and model of each target.
pub fn generate_session(seed: u64, model_names: &[(String, String)]) -> Session {
    let mut rng = TestRng::new(seed);
    let target = if rng.one_in(4) { 0 } else { rng.below(model_names.len()) };
    let mut conversation = ConversationGenerator::new(model_names, target);
    let mut requests =
        vec![Request { file: first_request(&mut rng, &mut conversation), target, step: Step::First }];
    for _ in 0..rng.below(3) {
        let before = requests.last().expect("there is a first");
        let next = next_request(&mut rng, &mut conversation, before);
        requests.push(next);
    }
    Session { seed, requests }
}

fn first_request(rng: &mut TestRng, conversation: &mut ConversationGenerator<'_>) -> SnapshotFile {
    let now = Timestamp::from_second(1_790_000_000 + rng.below(1_000_000) as i64).expect("a time");
    let mut file = SnapshotFile::empty(now);
    file.working_directory = (!rng.one_in(5)).then(|| WORKING_DIRECTORY.into());
    file.system = system(rng);
    file.agent_mode = if rng.one_in(6) { AgentMode::Off } else { AgentMode::On };
    file.messages = conversation.generate(rng);
    file.tools = tools(rng);
    file.use_repo_map = !rng.one_in(6);
    file.directory_map = !rng.one_in(6);
    file.web_search = rng.rarely(8, |_| WebSearchEntry { max_results: 3 });
    file.documents = rng.rarely(8, |_| vec!["doc-1".into(), "doc-2".into()]).unwrap_or_default();
    file.fold = rng.one_in(10);
    file.cache_lifetime = *rng.pick(&LifetimeSetting::ALL);
    file.pauses.bridged = u32::from(rng.one_in(3));
    random_items::add_items(rng, &mut file);
    add_prompt(rng, conversation, &mut file);
    file
}

/// Adds what is new in each request: the prompt, its images, whether the model thinks.
fn add_prompt(rng: &mut TestRng, conversation: &mut ConversationGenerator<'_>, file: &mut SnapshotFile) {
    file.thinking = rng.rarely(3, |rng| {
        let effort = Effort::ALL[rng.below(Effort::ALL.len())];
        let budget = ThinkingEntry::Budget { budget_tokens: rng.between(1024, 2000) as u32 };
        if rng.below(2) == 0 { budget } else { ThinkingEntry::Level { effort } }
    });
    file.prompt = (!rng.one_in(3)).then(|| {
        // Now and then more than a small window holds.
        let text = Text::new(if rng.one_in(60) {
            random_text::text(rng, 900)
        } else {
            random_text::typed_text(rng)
        });
        match rng.below(12) {
            0 => PromptEntry::Text(text),
            1 => PromptEntry::WithId { id: conversation.any_id(rng, &file.messages), text },
            _ => PromptEntry::WithId { id: conversation.new_id(), text },
        }
    });
    let count = if rng.one_in(6) { rng.between(1, 2) } else { 0 };
    file.images = (0..count).map(|_| image(rng)).collect();
}

fn image(rng: &mut TestRng) -> ImageEntry {
    let image = crate::conversations::image(rng);
    let path = rng.rarely(3, |_| "picture.png".into());
    ImageEntry {
        path,
        media_type: image.media_type,
        data: image.data,
        width: image.width,
        height: image.height,
    }
}

fn system(rng: &mut TestRng) -> SystemEntry {
    let mut text = |n| {
        rng.rarely(n, |rng| Text::new(if rng.one_in(4) { String::new() } else { random_text::text(rng, 3) }))
    };
    let (whole, agent, extra, append, custom) = (text(12), text(3), text(6), text(6), text(6));
    let project_file = |rng: &mut TestRng| ProjectFile {
        path: "AGENTS.md".into(),
        content: random_text::file_text(rng).into(),
    };
    let skill =
        Skill { name: "sort".into(), description: "Sorts.".into(), location: "skills/sort.md".into() };
    SystemEntry {
        whole,
        agent,
        extra,
        append,
        project_files: rng.rarely(5, project_file).into_iter().collect(),
        skills: rng.rarely(6, |_| skill).into_iter().collect(),
        prompt_type: *rng.pick(&[
            PromptType::General,
            PromptType::General,
            PromptType::Agent,
            PromptType::Custom,
        ]),
        prompt_path: None,
        custom,
        edit_blocks: rng.one_in(2),
    }
}

/// Random tools. Some have the names of the layouts' own tools, as a user's tool may, and some are a server's.
fn tools(rng: &mut TestRng) -> Vec<Tool> {
    let count = if rng.one_in(3) { 0 } else { rng.between(1, 4) };
    let names = ["read", "bash", "context", "dynamic_panel", "edit-file_2", "web__get", "web__search"];
    let start = rng.below(names.len());
    let schema = serde_json::json!({
        "type": "object", "strict": true, "required": ["path"],
        "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}, "mode": {"enum": ["a", "b"]}},
    });
    let tool = |name: &str| Tool {
        name: name.into(),
        description: "Does something.".into(),
        parameters: Json::new(&schema),
        snippet: Some("does something".into()),
        guidelines: vec!["Use it well.".into()],
    };
    (0..count).map(|index| tool(names[(start + index) % names.len()])).collect()
}

/// Switches tools on and off, or changes what one says of itself.
fn change_tools(rng: &mut TestRng, file: &mut SnapshotFile) {
    match rng.below(4) {
        0 => file.tools = tools(rng),
        1 => file.agent_mode = if file.agent_mode == AgentMode::On { AgentMode::Off } else { AgentMode::On },
        2 if !file.tools.is_empty() => drop(file.tools.remove(rng.below(file.tools.len()))),
        _ => {
            for tool in file.tools.iter_mut().filter(|_| rng.one_in(2)) {
                tool.description = "Does something else.".into();
                tool.guidelines = vec!["Use it better.".into()];
            }
        }
    }
}

/// The request after `before`.
fn next_request(
    rng: &mut TestRng,
    conversation: &mut ConversationGenerator<'_>,
    before: &Request,
) -> Request {
    let mut file = before.file.clone();
    file.now = file.now.checked_add(Span::new().seconds(rng.between(1, 4000) as i64)).expect("a time");
    file.fold = rng.one_in(6);
    file.pauses.bridged += u32::from(rng.one_in(3));
    file.pauses.ended += u32::from(rng.one_in(6));
    file.lost_cache = rng.rarely(3, |rng| if rng.one_in(2) { LostCache::All } else { LostCache::Short });
    let kept = keep_prompt(rng, &mut file);
    let mut step = if kept { Step::Appended } else { Step::Rewritten };
    let had_prompt = before.file.prompt.is_some();
    conversation.continue_after_request(rng, &mut file.messages, had_prompt);
    random_items::change_items(rng, &mut file);
    if rng.one_in(4) {
        change_tools(rng, &mut file);
    }
    add_prompt(rng, conversation, &mut file);
    let mut target = before.target;
    if rng.one_in(4) {
        step = Step::Rewritten;
        target = rewrite(rng, conversation, &mut file, target);
    }
    Request { file, target, step }
}

/// The prompt becomes a message, images and all. False if it was lost, or if images lost the names
/// they were sent with: a message keeps none.
fn keep_prompt(rng: &mut TestRng, file: &mut SnapshotFile) -> bool {
    let images = std::mem::take(&mut file.images);
    let Some(prompt) = file.prompt.take() else { return true };
    if rng.one_in(15) {
        return false;
    }
    let nameless = images.iter().all(|image| image.path.is_none());
    let (id, text) = match prompt {
        PromptEntry::Text(text) => (MessageId::from("prompt"), text),
        PromptEntry::WithId { id, text } => (id, text),
    };
    let image = |ImageEntry { media_type, data, width, height, .. }| {
        MessagePart::Image(hardpan_prompt::Image { media_type, data, width, height })
    };
    let content = [MessagePart::Text { text }].into_iter().chain(images.into_iter().map(image)).collect();
    file.messages.push(AgentMessage::new(id, MessageBody::User { content }));
    nameless
}

/// Changes a session as a user or another part of the agent may between two requests. Returns the
/// next target.
fn rewrite(
    rng: &mut TestRng,
    conversation: &mut ConversationGenerator<'_>,
    file: &mut SnapshotFile,
    target: usize,
) -> usize {
    match rng.below(5) {
        0 => change_tools(rng, file),
        1 => file.system = system(rng),
        2 => return conversation.switch(rng),
        _ => {
            for message in &mut file.messages {
                if rng.one_in(3) {
                    message.state = *rng.pick(&[
                        MessageState::Deleted,
                        MessageState::Deleted,
                        MessageState::TlDr,
                        MessageState::Detached,
                    ]);
                    message.tl_dr = rng.rarely(2, |rng| Text::new(random_text::line(rng)));
                }
            }
            if rng.one_in(2) && !file.messages.is_empty() {
                let at = rng.below(file.messages.len());
                file.messages.remove(at);
            }
        }
    }
    target
}

/// Keys of items must be unique: the key that an entry will have.
pub fn key_of(entry: &ItemEntry) -> String {
    entry.key.as_deref().map_or_else(|| format!("panel:{}", entry.id), str::to_owned)
}
