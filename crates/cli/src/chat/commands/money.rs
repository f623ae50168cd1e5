//! What it costs: the last request, the cache, an action before it is done.

use clap::ValueEnum;
use hardpan_agent::UsageReport;
use hardpan_app::ConversationApp;
use hardpan_prompt::figures::format_number;

use super::super::command_error::SlashCommandError;
use super::super::{display, price};
use super::arguments::{ArgumentQuery, Choice, choice, nothing};
use super::context::{open_names, paths};
use super::model::{agents, models, tool_names};
use super::{CommandCall, CommandResult, SlashCommand, pluralize};
use crate::cost::{self, GroupBy};
use crate::output::paid_or_simulated;

/// In the order of `/help`.
pub const COMMANDS: &[SlashCommand] = &[
    SlashCommand {
        name: "cost",
        arguments: "[kind|key|model|day]",
        help: "add up what this conversation has cost, and what for",
        choices: |query| match query.is_first() {
            true => GroupBy::value_variants()
                .iter()
                .filter_map(ValueEnum::to_possible_value)
                .map(|value| {
                    choice(value.get_name(), value.get_help().map(ToString::to_string).unwrap_or_default())
                })
                .collect(),
            false => Vec::new(),
        },
        run: |call| Box::pin(conversation_cost(call)),
    },
    SlashCommand {
        name: "hud",
        arguments: "",
        help: "show tokens, cache use and cost of the last request",
        choices: nothing,
        run: |call| Box::pin(hud(call)),
    },
    SlashCommand {
        name: "why",
        arguments: "",
        help: "explain how the last request used the cache, what it lost, and who could have avoided it",
        choices: nothing,
        run: |call| Box::pin(async move { Ok(price::explain_last_request(call.agent)) }),
    },
    SlashCommand {
        name: "price",
        arguments: "ACT",
        help: "show what an act would cost now: agent, model, thinking, tool, open or close",
        choices: acts,
        run: |call| Box::pin(async move { price::price(call.arguments, call.app, call.agent) }),
    },
    SlashCommand {
        name: "cache",
        arguments: "",
        help: "show when the provider's cache expires",
        choices: nothing,
        run: |call| Box::pin(cache(call)),
    },
];

async fn conversation_cost(CommandCall { arguments, app, agent, .. }: CommandCall<'_>) -> CommandResult {
    let by = match arguments {
        "" => GroupBy::Kind,
        name => GroupBy::from_str(name, true)
            .map_err(|_| SlashCommandError::Usage("/cost, or /cost kind, key, model or day"))?,
    };
    let (_, path) = agent.session();
    let usage = agent.token_usage();
    if usage.requests == 0 || !path.exists() {
        return Ok("nothing has been sent yet".into());
    }
    let summary = app.store.find(None, &path.display().to_string())?;
    let warmth = agent.cache_warmth().filter(|_| !app.is_simulated());
    let warmth = warmth.map_or_else(String::new, |warmth| {
        format!("\n{}", display::cache_countdown(&warmth, keeps_alive(app)))
    });
    Ok(format!("{}\n{}{warmth}", spending_line(&usage), cost::session_costs(&summary, by)))
}

/// Whether the settings let Hardpan keep the cache warm in pauses.
fn keeps_alive(app: &ConversationApp) -> bool {
    app.settings.config.keep_alive.unwrap_or(false)
}

/// Requests, tokens and dollars of a conversation: the figures of the HUD, in a line.
fn spending_line(usage: &UsageReport) -> String {
    let tokens = usage.session.tokens;
    let share = |part: u64| 100 * part / tokens.prompt().max(1);
    format!(
        "{} · {} tokens in ({}% read from the cache, {}% written) · {} out · {}",
        pluralize(usize::try_from(usage.requests).unwrap_or(usize::MAX), "request"),
        format_number(tokens.prompt()),
        share(tokens.cache_read),
        share(tokens.cache_written()),
        format_number(tokens.output),
        paid_or_simulated(usage.session.dollars, usage.session.would_cost)
    )
}

async fn hud(CommandCall { agent, .. }: CommandCall<'_>) -> CommandResult {
    Ok(display::render_hud(agent).unwrap_or_else(|| "nothing has been sent yet".into()))
}

async fn cache(CommandCall { app, agent, .. }: CommandCall<'_>) -> CommandResult {
    Ok(match agent.cache_warmth() {
        Some(warmth) => display::cache_countdown(&warmth, keeps_alive(app)),
        None => "no cache yet: nothing has been sent".into(),
    })
}

/// The acts that `/price` knows, and what each can be done to.
fn acts(query: &ArgumentQuery<'_>) -> Vec<Choice> {
    match query.before {
        [] => vec![
            choice("agent", "NAME: switching to another agent"),
            choice("model", "NAME: switching to another model"),
            choice("thinking", "changing how much the model thinks"),
            choice("tool", "NAME: switching a tool on or off"),
            choice("open", "PATH: adding a file to the context"),
            choice("close", "PATH: taking one out of it"),
            choice("compact", "replacing older messages with a summary"),
        ],
        ["agent"] => agents(query.app),
        ["model"] => models(query.app),
        ["tool"] => tool_names(query.app),
        ["open"] => paths(query),
        ["close"] => open_names(query),
        _ => Vec::new(),
    }
}
