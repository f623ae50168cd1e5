//! Random sessions: a first request, and what became of it.

use hardpan_context::{
    AgentMode, ImageEntry, ItemEntry, ProjectFile, PromptEntry, PromptType, Skill, SnapshotFile, SystemEntry,
    ThinkingEntry, WebSearchEntry,
};
use hardpan_prompt::{AgentMessage, Body, Json, MessageId, Part, State, Text, Tool};
use jiff::{Span, Timestamp};

use crate::dice::Dice;
use crate::talk::Talk;
use crate::{items, words};

/// The folder that no cached byte may name.
pub const FOLDER: &str = "/somewhere/on/this-machine";

/// How a request follows from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It does not.
    First,
    /// The prompt became a message, messages were appended, items changed: what was said stays said.
    Appended,
    /// Anything may have changed.
    Rewritten,
}

/// One request; its memory is that of the one before, and is filled in by who runs it.
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

/// The session of a seed. `makers` are provider and model of each target.
pub fn session(seed: u64, makers: &[(String, String)]) -> Session {
    let mut dice = Dice::new(seed);
    let target = if dice.one_in(4) { 0 } else { dice.below(makers.len()) };
    let mut talk = Talk::new(makers, target);
    let mut requests = vec![Request { file: first(&mut dice, &mut talk), target, step: Step::First }];
    for _ in 0..dice.below(3) {
        let before = requests.last().expect("there is a first");
        let next = follow(&mut dice, &mut talk, before);
        requests.push(next);
    }
    Session { seed, requests }
}

fn first(dice: &mut Dice, talk: &mut Talk<'_>) -> SnapshotFile {
    let now = Timestamp::from_second(1_790_000_000 + dice.below(1_000_000) as i64).expect("a time");
    let mut file = SnapshotFile::empty(now);
    file.working_directory = (!dice.one_in(5)).then(|| FOLDER.into());
    file.system = system(dice);
    file.agent_mode = if dice.one_in(6) { AgentMode::Off } else { AgentMode::On };
    file.messages = talk.history(dice);
    file.tools = tools(dice);
    file.use_repo_map = !dice.one_in(6);
    file.directory_map = !dice.one_in(6);
    file.web_search = dice.rarely(8, |_| WebSearchEntry { max_results: 3 });
    file.documents = dice.rarely(8, |_| vec!["doc-1".into(), "doc-2".into()]).unwrap_or_default();
    file.fold = dice.one_in(10);
    items::fill(dice, &mut file);
    turn(dice, talk, &mut file);
    file
}

/// What a request has of its own: the prompt, its images, whether the model thinks.
fn turn(dice: &mut Dice, talk: &mut Talk<'_>, file: &mut SnapshotFile) {
    file.thinking = dice.rarely(3, |dice| ThinkingEntry { budget_tokens: dice.between(1024, 2000) as u32 });
    file.prompt = (!dice.one_in(3)).then(|| {
        // Now and then more than a small window holds.
        let text = Text::new(if dice.one_in(60) { words::text(dice, 900) } else { words::said(dice) });
        match dice.below(12) {
            0 => PromptEntry::Text(text),
            1 => PromptEntry::WithId { id: talk.any_id(dice, &file.messages), text },
            _ => PromptEntry::WithId { id: talk.new_id(), text },
        }
    });
    let count = if dice.one_in(6) { dice.between(1, 2) } else { 0 };
    file.images = (0..count).map(|_| image(dice)).collect();
}

fn image(dice: &mut Dice) -> ImageEntry {
    let image = crate::talk::image(dice);
    let path = dice.rarely(3, |_| "picture.png".into());
    ImageEntry {
        path,
        media_type: image.media_type,
        data: image.data,
        width: image.width,
        height: image.height,
    }
}

fn system(dice: &mut Dice) -> SystemEntry {
    let mut text = |n| {
        dice.rarely(n, |dice| Text::new(if dice.one_in(4) { String::new() } else { words::text(dice, 3) }))
    };
    let (whole, agent, extra, append, custom) = (text(12), text(3), text(6), text(6), text(6));
    let project_file =
        |dice: &mut Dice| ProjectFile { path: "AGENTS.md".into(), content: words::body(dice).into() };
    let skill =
        Skill { name: "sort".into(), description: "Sorts.".into(), location: "skills/sort.md".into() };
    SystemEntry {
        whole,
        agent,
        extra,
        append,
        project_files: dice.rarely(5, project_file).into_iter().collect(),
        skills: dice.rarely(6, |_| skill).into_iter().collect(),
        prompt_type: *dice.pick(&[
            PromptType::General,
            PromptType::General,
            PromptType::Agent,
            PromptType::Custom,
        ]),
        prompt_path: None,
        custom,
        edit_blocks: dice.one_in(2),
    }
}

/// Tool names of ours are among them: someone else may declare a tool of the same name.
fn tools(dice: &mut Dice) -> Vec<Tool> {
    let count = if dice.one_in(3) { 0 } else { dice.between(1, 4) };
    let names = ["read", "bash", "context", "dynamic_panel", "edit-file_2"];
    let start = dice.below(names.len());
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

/// The request after `before`.
fn follow(dice: &mut Dice, talk: &mut Talk<'_>, before: &Request) -> Request {
    let mut file = before.file.clone();
    file.now = file.now.checked_add(Span::new().seconds(dice.between(1, 4000) as i64)).expect("a time");
    file.fold = dice.one_in(6);
    let kept = keep_prompt(dice, &mut file);
    let mut step = if kept { Step::Appended } else { Step::Rewritten };
    let had_prompt = before.file.prompt.is_some();
    talk.go_on(dice, &mut file.messages, had_prompt);
    items::change(dice, &mut file);
    turn(dice, talk, &mut file);
    let mut target = before.target;
    if dice.one_in(4) {
        step = Step::Rewritten;
        target = rewrite(dice, talk, &mut file, target);
    }
    Request { file, target, step }
}

/// The prompt becomes a message, images and all. False if it was lost, or if images lost the names they were sent with:
/// a message keeps none.
fn keep_prompt(dice: &mut Dice, file: &mut SnapshotFile) -> bool {
    let images = std::mem::take(&mut file.images);
    let Some(prompt) = file.prompt.take() else { return true };
    if dice.one_in(15) {
        return false;
    }
    let nameless = images.iter().all(|image| image.path.is_none());
    let (id, text) = match prompt {
        PromptEntry::Text(text) => (MessageId::from("prompt"), text),
        PromptEntry::WithId { id, text } => (id, text),
    };
    let image = |ImageEntry { media_type, data, width, height, .. }| {
        Part::Image(hardpan_prompt::Image { media_type, data, width, height })
    };
    let content = [Part::Text { text }].into_iter().chain(images.into_iter().map(image)).collect();
    file.messages.push(AgentMessage::new(id, Body::User { content }));
    nameless
}

/// What a person or another part of the agent may do to a session between two requests. Returns the next target.
fn rewrite(dice: &mut Dice, talk: &mut Talk<'_>, file: &mut SnapshotFile, target: usize) -> usize {
    match dice.below(6) {
        0 => file.tools = tools(dice),
        1 => file.system = system(dice),
        2 => return talk.switch(dice),
        3 => file.agent_mode = if file.agent_mode == AgentMode::On { AgentMode::Off } else { AgentMode::On },
        _ => {
            for message in &mut file.messages {
                if dice.one_in(3) {
                    message.state =
                        *dice.pick(&[State::Deleted, State::Deleted, State::TlDr, State::Detached]);
                    message.tl_dr = dice.rarely(2, |dice| Text::new(words::line(dice)));
                }
            }
            if dice.one_in(2) && !file.messages.is_empty() {
                let at = dice.below(file.messages.len());
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
