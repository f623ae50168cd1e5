//! What an act would cost, and why the last request cost what it did.

use std::path::Path;

use hardpan_agent::{Agent, books};
use hardpan_economy::Act;
use hardpan_prompt::{Counter, Text};
use hardpan_session::Session;
use hardpan_workspace as workspace;

use super::open::Opened;
use crate::gather;
use crate::why::explained;

/// How `/price` is used.
const USAGE: &str = "expected /price model NAME, thinking, tool NAME, open PATH, or close PATH";

/// `/price`: what an act would cost now. Nothing is done.
pub fn price(words: &str, opened: &Opened, agent: &Agent) -> Result<String, String> {
    let (act, name) = words.split_once(' ').unwrap_or((words, ""));
    let name = name.trim();
    let told = match (act, name) {
        ("thinking", _) => of(agent, Act::Thinking),
        (_, "") => return Err(USAGE.into()),
        ("model", name) => {
            let whom = crate::args::Whom { model: Some(name.to_owned()), ..Default::default() };
            let target =
                gather::target(&whom, &opened.settings, None).map_err(|error| format!("{error:#}"))?;
            of(agent, Act::SwitchModel { model: &target.model, wire: &target.wire })
        }
        ("tool", name) => of(agent, Act::ToggleTool(name)),
        ("open", path) => opening(path, opened, agent),
        ("close", path) => closing(path, opened, agent),
        _ => return Err(USAGE.into()),
    };
    Ok(told.unwrap_or_else(|| "It costs nothing: nothing has been sent yet.".into()))
}

/// The price of an act in words; none before the first request.
pub fn of(agent: &Agent, act: Act<'_>) -> Option<String> {
    agent.foresee(act).map(|foresight| foresight.sentence)
}

/// The price of opening a file.
pub fn opening(path: &str, opened: &Opened, agent: &Agent) -> Option<String> {
    let text = workspace::read_text(&opened.folder.join(path), workspace::TEXT_LIMIT).ok()?;
    let target = agent.target();
    let counted = Counter::new(target.vocabulary()).count(&Text::new(text.text));
    of(agent, Act::Open { tokens: target.factor.scale(counted) as u64 })
}

/// The price of closing a file.
pub fn closing(path: &str, opened: &Opened, agent: &Agent) -> Option<String> {
    let root = workspace::root_of(&opened.folder);
    let shown = workspace::display_path(&root, &opened.folder.join(Path::new(path)));
    of(agent, Act::Close(&format!("file:{shown}")))
}

/// `/why`: what is to be said about the last request; after a resume, about the last loss of the session.
pub fn why(agent: &Agent) -> String {
    let moved: Vec<String> = agent.moved().iter().map(|change| format!("  {change}")).collect();
    let moved = if moved.is_empty() { String::new() } else { format!("\nsince then:\n{}", moved.join("\n")) };
    let last_loss = || {
        let (_, path) = agent.session();
        let session = Session::open(&path).ok()?;
        session.requests().filter_map(|request| books::verdict_of(request)).last()
    };
    match (agent.verdict(), last_loss()) {
        (Some(verdict), _) if verdict.is_loss() => format!("{}{moved}", explained(&verdict)),
        (Some(verdict), None) => format!("{}{moved}", explained(&verdict)),
        (Some(verdict), Some(loss)) => {
            format!("{}\nbefore: {}{moved}", explained(&verdict), explained(&loss))
        }
        (None, Some(loss)) => format!("the last loss: {}", explained(&loss)),
        (None, None) => "nothing has been sent yet".into(),
    }
}
