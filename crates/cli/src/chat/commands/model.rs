//! What is asked: the agent, the model, its thinking, its tools.

use hardpan_agent::Agent;
use hardpan_agent::expand::DEFAULT_AGENT;
use hardpan_app::ConversationApp;
use hardpan_economy::PlannedAction;
use hardpan_models::{Model, Provider, ThinkingRequest, ThinkingSetting};
use hardpan_terminal::model::Mode;
use hardpan_tools::ToolState;

use super::super::command_error::SlashCommandError;
use super::super::price;
use super::arguments::{Choice, choice};
use super::{CommandCall, CommandResult, MODE, SlashCommand, with_price};
use crate::output::{Align, Table, safe, thousands};
use crate::views;

/// In the order of `/help`.
pub const COMMANDS: &[SlashCommand] = &[
    SlashCommand {
        name: MODE,
        arguments: "[ask|edits|plan|all]",
        help: "show how much the agent may do without asking, or change it",
        choices: |query| match query.is_first() {
            true => Mode::EVERY.iter().map(|mode| choice(mode.name(), mode.meaning())).collect(),
            false => Vec::new(),
        },
        run: |_| {
            Box::pin(async {
                Err(SlashCommandError::Usage("a conversation in a terminal: /mode is for those"))
            })
        },
    },
    SlashCommand {
        name: "agent",
        arguments: "[NAME]",
        help: "list the agents, or switch to another",
        choices: |query| if query.is_first() { agents(query.app) } else { Vec::new() },
        run: |call| Box::pin(switch_agent(call)),
    },
    SlashCommand {
        name: "model",
        arguments: "[NAME [LEVEL]]",
        help: "show the model, or switch to another",
        choices: |query| match query.before {
            [] => models(query.app),
            [_] => levels(),
            _ => Vec::new(),
        },
        run: |call| Box::pin(model(call)),
    },
    SlashCommand {
        name: "thinking",
        arguments: "[LEVEL]",
        help: "how much the model thinks: off, low, medium, high, xhigh, max, TOKENS, or default",
        choices: |query| if query.is_first() { levels() } else { Vec::new() },
        run: |call| Box::pin(thinking(call)),
    },
    SlashCommand {
        name: "tools",
        arguments: "[on|off NAME]",
        help: "list the tools, or switch one on or off",
        choices: |query| match query.before {
            [] => vec![choice("on", "offers a tool to the model"), choice("off", "takes one away")],
            [_] => tool_names(query.app),
            _ => Vec::new(),
        },
        run: |call| Box::pin(tools(call)),
    },
];

/// The agents, by name.
pub fn agents(app: &ConversationApp) -> Vec<Choice> {
    let own = app.agents().iter().map(|agent| choice(&*agent.name, &*agent.description));
    [choice(DEFAULT_AGENT, "Hardpan's own")].into_iter().chain(own).collect()
}

/// The models of the providers that this person has a key for, and of the present one.
pub fn models(app: &ConversationApp) -> Vec<Choice> {
    let present = app.agent.target().provider;
    let catalogue = &app.settings.catalogue;
    let usable = |provider: &&Provider| {
        *provider.id == *present
            || (!provider.profile.key_env.is_empty()
                && app.settings.key(&provider.id, &provider.profile).is_ok_and(|key| key.is_some()))
    };
    let usable: Vec<&str> = catalogue.providers().filter(usable).map(|provider| &*provider.id).collect();
    let offered = catalogue.models().filter(|model| !model.gone && usable.contains(&&*model.provider));
    let describe = |model: &Model| {
        let price = match model.price.is_known() {
            true => format!(", ${} in, ${} out per million", model.price.input, model.price.output),
            false => String::new(),
        };
        choice(model.name(), format!("{} tokens{price}", thousands(model.context as usize)))
    };
    offered.map(describe).collect()
}

fn levels() -> Vec<Choice> {
    ["off", "low", "medium", "high", "xhigh", "max", "default"].map(|level| choice(level, "")).to_vec()
}

/// The tools, with their state.
pub fn tool_names(app: &ConversationApp) -> Vec<Choice> {
    app.agent.tools().list().iter().map(|tool| choice(&*tool.name, &*tool.summary)).collect()
}

async fn switch_agent(CommandCall { arguments: name, app, agent, .. }: CommandCall<'_>) -> CommandResult {
    let current = app.agent_name();
    if name.is_empty() {
        let default = (DEFAULT_AGENT, "Hardpan's own");
        let others = app.agents().iter().map(|agent| (&*agent.name, &*agent.description));
        let line = |(name, description): (&str, &str)| {
            let mark = if name == current { '*' } else { ' ' };
            format!("{mark} {}  {}", safe(name), safe(description)).trim_end().to_owned()
        };
        let lines: Vec<String> = [default].into_iter().chain(others).map(line).collect();
        return Ok(format!("{}\n/agent NAME switches to another", lines.join("\n")));
    }
    let cost = price::describe_cost(agent, PlannedAction::SwitchAgent).filter(|_| name != current);
    app.switch_agent(name).await?;
    Ok(with_price(&format!("The agent is {} now.", safe(name)), cost))
}

async fn model(CommandCall { arguments: name, app, agent, .. }: CommandCall<'_>) -> CommandResult {
    let target = agent.target();
    if name.is_empty() {
        return Ok(format!(
            "{} (context window of {} tokens); /model NAME switches to another",
            target.model.name(),
            thousands(target.model.context as usize)
        ));
    }
    let (name, level) = name.split_once(' ').unwrap_or((name, ""));
    let thinking = Some(level.trim()).filter(|level| !level.is_empty());
    let thinking = thinking.map(str::parse::<ThinkingSetting>).transpose()?;
    let target = app.find_model(None, name.to_owned())?;
    let chosen = target.model.name();
    let cost = price::describe_cost(
        agent,
        PlannedAction::SwitchModel { model: &target.model, profile: &target.profile },
    );
    app.switch_model(target).await?;
    if let Some(thinking) = thinking {
        app.select_thinking(thinking).await?;
    }
    Ok(with_price(&format!("Switched to {chosen}."), cost))
}

async fn thinking(CommandCall { arguments: level, app, agent, .. }: CommandCall<'_>) -> CommandResult {
    if level.is_empty() {
        return Ok(describe_thinking(agent));
    }
    let thinking = level.parse()?;
    let cost = if agent.thinking_change_is_free(thinking) {
        None
    } else {
        price::describe_cost(agent, PlannedAction::Thinking)
    };
    app.select_thinking(thinking).await?;
    Ok(with_price("This applies from the next request on.", cost))
}

/// The setting, and what requests to the present model say for it.
fn describe_thinking(agent: &Agent) -> String {
    let (setting, target) = (agent.thinking(), agent.target());
    let ThinkingRequest { thinking, effort, substitution } = target.thinking_request(setting);
    let effort = effort.map(|effort| format!(", effort {effort}")).unwrap_or_default();
    let note = substitution.map(|instead| format!(" ({instead})")).unwrap_or_default();
    format!("thinking is {setting}; requests to {} say: {thinking}{effort}{note}", target.model.id)
}

async fn tools(CommandCall { arguments, agent, .. }: CommandCall<'_>) -> CommandResult {
    let (state, name) = match arguments.split_once(char::is_whitespace) {
        None if arguments.is_empty() => return Ok(tool_table(agent)),
        Some(("on", name)) => (ToolState::On, name.trim()),
        Some(("off", name)) => (ToolState::Off, name.trim()),
        _ => return Err(SlashCommandError::Usage("/tools, /tools on NAME, or /tools off NAME")),
    };
    // Asked first: afterwards the cache that would be lost is no longer the one that is asked for.
    let told = price::describe_cost(agent, PlannedAction::ToggleTool(name));
    let word = if state == ToolState::On { "on" } else { "off" };
    if !agent.switch_tool(name, state).await? {
        return Ok(format!("{name} is {word} already."));
    }
    let how = if agent.tool_changes_are_free() {
        "tells the model so and keeps its list of tools"
    } else {
        "sends a changed list of tools"
    };
    Ok(with_price(&format!("{name} is {word} from the next request on, which {how}."), told))
}

fn tool_table(agent: &Agent) -> String {
    let mut table = Table::new(&["tool", "", "from", "what it does"].map(|head| (head, Align::Left)));
    for tool in agent.tools().list() {
        let state = if tool.state == ToolState::On { "on" } else { "off" };
        let row = [&*tool.name, state, &tool.source.to_string(), &tool.summary];
        table.row(row.map(str::to_owned));
    }
    table.render(views::width())
}
