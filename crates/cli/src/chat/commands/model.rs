//! What is asked: the agent, the model, its thinking, its tools.

use hardpan_agent::Agent;
use hardpan_agent::expand::DEFAULT_AGENT;
use hardpan_app::ConversationApp;
use hardpan_economy::PlannedAction;
use hardpan_models::{Catalogue, Model, Provider, ThinkingRequest, ThinkingSetting};
use hardpan_terminal::blocks::format::short_count;
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
        arguments: "[on|off NAME [now]]",
        help: "list the tools, or switch one on or off; now also changes the cached list, at a price",
        choices: |query| match query.before {
            [] => vec![choice("on", "offers a tool to the model"), choice("off", "takes one away")],
            [_] => tool_names(query.app),
            [_, _] => vec![choice("now", "sends a changed list of tools at once, at a price")],
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
    app.with_catalogue(|catalogue| usable_models(app, catalogue))
}

fn usable_models(app: &ConversationApp, catalogue: &Catalogue) -> Vec<Choice> {
    let present = app.agent.target().provider;
    let usable = |provider: &&Provider| {
        // One that an extension brought without a key needs none.
        let is_open =
            provider.profile.key_env.is_empty() && app.settings.catalogue.provider(&provider.id).is_err();
        *provider.id == *present
            || is_open
            || (!provider.profile.key_env.is_empty()
                && app.settings.key(&provider.id, &provider.profile).is_ok_and(|key| key.is_some()))
    };
    let usable: Vec<&str> = catalogue.providers().filter(usable).map(|provider| &*provider.id).collect();
    let offered = catalogue.models().filter(|model| !model.gone && usable.contains(&&*model.provider));
    let describe = |model: &Model| {
        let price = match model.price.is_known() {
            true => format!(", ${} in, ${} out", model.price.input, model.price.output),
            false => String::new(),
        };
        choice(model.name(), format!("{} tokens{price}", short_count(model.context as usize)))
    };
    offered.map(describe).collect()
}

fn levels() -> Vec<Choice> {
    [
        ("default", "as the model's maker sets it"),
        ("off", "answers at once"),
        ("low", "short thoughts"),
        ("medium", "some thought"),
        ("high", "much thought"),
        ("xhigh", "more, where the model offers it"),
        ("max", "as much as it can"),
    ]
    .map(|(level, meaning)| choice(level, meaning))
    .to_vec()
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
    const USAGE: &str = "/tools, /tools on NAME, /tools off NAME, or one of these with now at its end";
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let (word, name, is_now) = match words[..] {
        [] => return Ok(tool_table(agent)),
        [word @ ("on" | "off"), name] => (word, name, false),
        [word @ ("on" | "off"), name, "now"] => (word, name, true),
        _ => return Err(SlashCommandError::Usage(USAGE)),
    };
    // Asked first: afterwards the cache that would be lost is no longer the one that is asked for.
    let cost = price::describe_cost(agent, PlannedAction::ToggleTool(name));
    let state = if word == "on" { ToolState::On } else { ToolState::Off };
    let changed = agent.switch_tool(name, state).await?;
    let is_declared = agent.tools().list().iter().any(|tool| &*tool.name == name && tool.is_declared);
    let is_on_demand = agent.tools().list().iter().any(|tool| &*tool.name == name && tool.is_on_demand);
    let is_settled = is_on_demand || is_declared == (state == ToolState::On);
    if !changed && (is_settled || !is_now) {
        return Ok(format!("{name} is {word} already."));
    }
    let next_request = |how: &str| format!("{name} is {word} from the next request on, which {how}.");
    Ok(match state {
        _ if agent.tool_changes_are_free() => {
            with_price(&next_request("tells the model so and keeps its list of tools"), cost)
        }
        _ if is_settled => format!("{name} is {word}."),
        _ if is_now => {
            agent.declare_tools_now().await?;
            with_price(&next_request("sends a changed list of tools"), cost)
        }
        ToolState::On => {
            let when = "once the tools are declared anew: at the next fold, or when the cache expires";
            let now = format!("`/tools on {name} now` does it at once.");
            with_price(&format!("{name} is on {when}. {now}"), cost)
        }
        ToolState::Off => format!(
            "{name} is off: its calls are refused. The list of tools stays as it is until the next fold, so this costs nothing."
        ),
    })
}

fn tool_table(agent: &Agent) -> String {
    let mut table = Table::new(&["tool", "", "from", "what it does"].map(|head| (head, Align::Left)));
    for tool in agent.tools().list() {
        let state = match tool.state {
            ToolState::On if tool.is_declared => "on",
            ToolState::On if tool.is_on_demand => "on demand",
            ToolState::On => "on, not declared yet",
            ToolState::Off => "off",
        };
        let row = [&*tool.name, state, &tool.source.to_string(), &tool.summary];
        table.row(row.map(str::to_owned));
    }
    table.render(views::width())
}
