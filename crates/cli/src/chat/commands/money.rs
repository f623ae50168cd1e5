//! What it costs: the last request, the cache, an action before it is done.

use super::super::{display, price};
use super::arguments::{ArgumentQuery, Choice, choice, nothing};
use super::context::{open_names, paths};
use super::model::{agents, models, tool_names};
use super::{CommandCall, CommandResult, SlashCommand};

/// In the order of `/help`.
pub const COMMANDS: &[SlashCommand] = &[
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

async fn hud(CommandCall { agent, .. }: CommandCall<'_>) -> CommandResult {
    Ok(display::render_hud(agent).unwrap_or_else(|| "nothing has been sent yet".into()))
}

async fn cache(CommandCall { agent, .. }: CommandCall<'_>) -> CommandResult {
    Ok(match agent.cache_warmth() {
        Some(warmth) => display::cache_countdown(&warmth),
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
        ],
        ["agent"] => agents(query.app),
        ["model"] => models(query.app),
        ["tool"] => tool_names(query.app),
        ["open"] => paths(query),
        ["close"] => open_names(query),
        _ => Vec::new(),
    }
}
