//! `/price` and `/why`: what an action would cost now, and why the last request cost what it did.

use std::path::Path;

use hardpan_agent::{Agent, session_ledger};
use hardpan_app::ConversationApp;
use hardpan_economy::PlannedAction;
use hardpan_session::Session;

use super::command_error::SlashCommandError;
use super::compaction_price;
use crate::why::explain_verdict;

/// What `/price` expects.
const USAGE: &str = "/price agent NAME, model NAME, thinking, tool NAME, open PATH, close PATH, or compact";

/// `/price`: describes what an action would cost now, without performing it.
pub fn price(words: &str, app: &ConversationApp, agent: &Agent) -> Result<String, SlashCommandError> {
    let (act, name) = words.split_once(' ').unwrap_or((words, ""));
    let name = name.trim();
    let cost = match (act, name) {
        ("agent", _) => describe_cost(agent, PlannedAction::SwitchAgent),
        ("thinking", _) => describe_cost(agent, PlannedAction::Thinking),
        ("compact", _) => {
            let forecast = agent.forecast_compaction();
            return Ok(forecast.map_or_else(
                || "There is too little to compact.".to_owned(),
                |forecast| compaction_price::describe(&forecast),
            ));
        }
        (_, "") => return Err(SlashCommandError::Usage(USAGE)),
        ("model", name) => {
            let target = app.find_model(None, name.to_owned())?;
            describe_cost(
                agent,
                PlannedAction::SwitchModel { model: &target.model, profile: &target.profile },
            )
        }
        ("tool", name) => describe_cost(agent, PlannedAction::ToggleTool(name)),
        ("open", path) => app.forecast_opening(Path::new(path)).map(|forecast| forecast.sentence),
        ("close", path) => app.forecast_closing(Path::new(path)).map(|forecast| forecast.sentence),
        _ => return Err(SlashCommandError::Usage(USAGE)),
    };
    Ok(cost.unwrap_or_else(|| "It costs nothing, because nothing has been sent yet.".into()))
}

/// What an action would cost, as a sentence; none before the first request.
pub fn describe_cost(agent: &Agent, act: PlannedAction<'_>) -> Option<String> {
    agent.forecast_cost(act).map(|foresight| foresight.sentence)
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
        (None, None) => match agent.token_usage().requests {
            0 => "nothing has been sent yet".into(),
            sent => format!("nothing was paid again in the {sent} requests of this conversation"),
        },
    }
}
