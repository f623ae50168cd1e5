//! `/price` and `/why`: what an action would cost now, and why the last request cost what it did.

use std::path::Path;

use hardpan_agent::{Agent, session_ledger};
use hardpan_economy::PlannedAction;
use hardpan_prompt::{Text, TokenCounter};
use hardpan_session::Session;
use hardpan_workspace as workspace;

use crate::output::error_text;
use crate::why::explain_verdict;
use hardpan_app::ConversationApp;
use hardpan_app::gather;

/// The usage message of `/price`.
const USAGE: &str = "expected /price model NAME, thinking, tool NAME, open PATH, or close PATH";

/// `/price`: describes what an action would cost now, without performing it.
pub fn price(words: &str, app: &ConversationApp, agent: &Agent) -> Result<String, String> {
    let (act, name) = words.split_once(' ').unwrap_or((words, ""));
    let name = name.trim();
    let cost = match (act, name) {
        ("thinking", _) => describe_cost(agent, PlannedAction::Thinking),
        (_, "") => return Err(USAGE.into()),
        ("model", name) => {
            let options =
                hardpan_app::options::TargetOptions { model: Some(name.to_owned()), ..Default::default() };
            let target = gather::resolve_target(&options, &app.settings, None)
                .map_err(|error| error_text(error.as_ref()))?;
            describe_cost(
                agent,
                PlannedAction::SwitchModel { model: &target.model, profile: &target.profile },
            )
        }
        ("tool", name) => describe_cost(agent, PlannedAction::ToggleTool(name)),
        ("open", path) => cost_of_opening(path, app, agent),
        ("close", path) => cost_of_closing(path, app, agent),
        _ => return Err(USAGE.into()),
    };
    Ok(cost.unwrap_or_else(|| "It costs nothing, because nothing has been sent yet.".into()))
}

/// What an action would cost, as a sentence; none before the first request.
pub fn describe_cost(agent: &Agent, act: PlannedAction<'_>) -> Option<String> {
    agent.forecast_cost(act).map(|foresight| foresight.sentence)
}

/// What opening a file would cost; none if it cannot be read, or before the first request.
pub fn cost_of_opening(path: &str, app: &ConversationApp, agent: &Agent) -> Option<String> {
    let text = workspace::read_text(&app.folder.join(path), workspace::TEXT_LIMIT).ok()?;
    let target = agent.target();
    let pluralize = TokenCounter::new(target.vocabulary()).count(&Text::new(text.text));
    describe_cost(agent, PlannedAction::Open { tokens: target.factor.scale(pluralize) as u64 })
}

/// What closing a file would cost; none before the first request.
pub fn cost_of_closing(path: &str, app: &ConversationApp, agent: &Agent) -> Option<String> {
    let root = workspace::find_project_root(&app.folder);
    let shown = workspace::display_path(&root, &app.folder.join(Path::new(path)));
    describe_cost(agent, PlannedAction::Close(&format!("file:{shown}")))
}

/// `/why`: explains how the last request used the cache; after a resume, the session's last loss.
pub fn explain_last_request(agent: &Agent) -> String {
    let moved: Vec<String> = agent.tier_moves().iter().map(|change| format!("  {change}")).collect();
    let moved = if moved.is_empty() { String::new() } else { format!("\nsince then:\n{}", moved.join("\n")) };
    let last_loss = || {
        let (_, path) = agent.session();
        let session = Session::open(&path).ok()?;
        session.requests().filter_map(|request| session_ledger::verdict_of(request)).last()
    };
    match (agent.last_verdict(), last_loss()) {
        (Some(verdict), _) if verdict.is_loss() => format!("{}{moved}", explain_verdict(&verdict)),
        (Some(verdict), None) => format!("{}{moved}", explain_verdict(&verdict)),
        (Some(verdict), Some(loss)) => {
            format!("{}\nbefore: {}{moved}", explain_verdict(&verdict), explain_verdict(&loss))
        }
        (None, Some(loss)) => format!("the last loss: {}", explain_verdict(&loss)),
        (None, None) => "nothing has been sent yet".into(),
    }
}
