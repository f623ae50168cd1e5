//! What can be chosen: models and efforts, layouts, agents, tools, each with the price of the change.

use hardpan_agent::expand::DEFAULT_AGENT;
use hardpan_app::ConversationApp;
use hardpan_context::{LayoutName, Target};
use hardpan_economy::{PlannedAction, Rates};
use hardpan_models::{Catalogue, Model};
use hardpan_prompt::TokenUsage;
use hardpan_terminal::blocks::format::short_count;
use hardpan_terminal::blocks::pickers::{Choice, ModelPrices, ModelRow, ModelState};
use hardpan_terminal::views::{ChoiceData, ModelData};
use hardpan_tools::ToolState;

use crate::chat::commands::layout_meaning;

/// The levels of `/thinking`, as the picker shows them.
const EFFORTS: [&str; 7] = ["default", "off", "low", "medium", "high", "xhigh", "max"];

/// Every model that is still sold: those that can be used first, those of the provider in use before
/// the others.
pub fn models(app: &ConversationApp) -> ModelData {
    app.with_catalogue(|catalogue| list_models(app, catalogue))
}

fn list_models(app: &ConversationApp, catalogue: &Catalogue) -> ModelData {
    let current = app.agent.target();
    let tokens = app.agent.breakdown().map_or(0, |breakdown| breakdown.total_tokens);
    let missing_key = |provider: &str| -> Option<String> {
        if provider == current.provider {
            return None;
        }
        let found = catalogue.provider(provider).ok()?;
        let profile = &found.profile;
        let has_key = profile.key_env.is_empty() || app.settings.key(provider, profile).ok()?.is_some();
        (!has_key).then(|| profile.key_env.first().map_or_else(|| "a key".to_owned(), ToString::to_string))
    };
    let mut rows: Vec<(u8, String, ModelRow)> = Vec::new();
    for model in catalogue.models().filter(|model| !model.gone) {
        let is_current = model.provider == current.provider && model.id == current.model.id;
        let missing = missing_key(&model.provider);
        let order = match &missing {
            _ if model.provider == current.provider => 0,
            None => 1,
            Some(_) => 2,
        };
        let state = match missing {
            Some(variable) => ModelState::NoKey(variable),
            None => model_state(app, catalogue, model, is_current, tokens),
        };
        rows.push((order, model.name(), model_row(model, state)));
    }
    rows.sort_by_key(|(order, ..)| *order);
    let setting = app.agent.thinking().to_string();
    ModelData {
        models: rows.into_iter().map(|(_, name, row)| (name, row)).collect(),
        efforts: EFFORTS.map(str::to_owned).to_vec(),
        effort: EFFORTS.iter().position(|level| *level == setting).unwrap_or(0),
        effort_keeps_cache: "low".parse().is_ok_and(|low| app.agent.thinking_change_is_free(low)),
    }
}

fn model_row(model: &Model, state: ModelState) -> ModelRow {
    let price = &model.price;
    let prices = price.is_known().then(|| ModelPrices {
        input: price.input,
        read: price.cache_read.unwrap_or(price.input),
        write: price.cache_write.unwrap_or(price.input),
        output: price.output,
    });
    ModelRow {
        // The provider stands beside it.
        name: model.id.strip_prefix("claude-").unwrap_or(&model.id).to_owned(),
        provider: model.provider.to_string(),
        window: short_count(model.context as usize),
        prices,
        state,
    }
}

/// What switching to a model costs, and what a request costs then.
fn model_state(
    app: &ConversationApp,
    catalogue: &Catalogue,
    model: &Model,
    is_current: bool,
    tokens: usize,
) -> ModelState {
    let target = Target::new(catalogue, Some(&model.provider), &model.id).ok();
    let Some(target) = target else { return ModelState::Switch { now: 0.0, then: 0.0 } };
    let read = TokenUsage { cache_read: tokens as u64, ..TokenUsage::default() };
    let request = Rates::for_model(&target.model, &target.profile, tokens as u64).input_dollars(&read);
    if is_current {
        return ModelState::Current(request);
    }
    let switch = PlannedAction::SwitchModel { model: &target.model, profile: &target.profile };
    let now = app.agent.forecast_cost(switch).map_or(0.0, |cost| cost.dollars_now);
    ModelState::Switch { now, then: request }
}

/// The layouts.
pub fn layouts(app: &ConversationApp) -> ChoiceData {
    let current = app.agent.layout();
    let price = dollars(app, PlannedAction::Wait);
    let is_about_panels = |layout: LayoutName| layout.layout().is_about_panels();
    let choice = |layout: LayoutName| {
        let is_current = layout == current;
        let is_offered = is_about_panels(layout) == is_about_panels(current);
        let meaning = match is_offered {
            true => layout_meaning(layout).to_owned(),
            false => format!("begins with a conversation: hardpan --layout {layout}"),
        };
        let choice = Choice {
            name: layout.as_str().to_owned(),
            meaning,
            is_on: None,
            is_current,
            price: price.filter(|_| is_offered && !is_current),
        };
        (choice, format!("/layout {layout}"))
    };
    ChoiceData { title: "layout".into(), choices: LayoutName::ALL.map(choice).to_vec(), stays_open: false }
}

/// The agents.
pub fn agents(app: &ConversationApp) -> ChoiceData {
    let current = app.agent_name();
    let price = dollars(app, PlannedAction::SwitchAgent);
    let own = app.agents().iter().map(|agent| (agent.name.to_string(), agent.description.to_string()));
    let all = [(DEFAULT_AGENT.to_owned(), "Hardpan's own".to_owned())].into_iter().chain(own);
    let choice = |(name, meaning): (String, String)| {
        let (is_current, command) = (name == current, format!("/agent {name}"));
        (Choice { name, meaning, is_on: None, is_current, price: price.filter(|_| !is_current) }, command)
    };
    ChoiceData { title: "agent".into(), choices: all.map(choice).collect(), stays_open: false }
}

/// The tools, on or off.
pub fn tools(app: &ConversationApp) -> ChoiceData {
    let choices = app.agent.tools().list().into_iter().map(|tool| {
        let is_on = tool.state == ToolState::On;
        let command = format!("/tools {} {}", if is_on { "off" } else { "on" }, tool.name);
        let choice = Choice {
            name: tool.name.to_string(),
            meaning: tool.summary.to_string(),
            is_on: Some(is_on),
            is_current: false,
            price: dollars(app, PlannedAction::ToggleTool(&tool.name)),
        };
        (choice, command)
    });
    ChoiceData { title: "tools".into(), choices: choices.collect(), stays_open: true }
}

fn dollars(app: &ConversationApp, action: PlannedAction<'_>) -> Option<f64> {
    app.agent.forecast_cost(action).map(|cost| cost.dollars_now)
}
