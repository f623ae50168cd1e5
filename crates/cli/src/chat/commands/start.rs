//! What a person needs at the start: a key, a guide of the project, the symbol index.

use super::arguments::{ArgumentQuery, Choice, choice, nothing};
use super::{CommandCall, CommandResult, SlashCommand};
use crate::chat::command_error::SlashCommandError;
use crate::{init, key_entry};

/// In the order of `/help`.
pub const COMMANDS: &[SlashCommand] = &[
    SlashCommand {
        name: "key",
        arguments: "[PROVIDER]",
        help: "enter a provider's key: it is not shown, and stored where only you can read it",
        choices: providers,
        run: |call| Box::pin(async move { key_entry::enter_key(call.arguments, call.app).await }),
    },
    SlashCommand {
        name: "init",
        arguments: "",
        help: "write an AGENTS.md with what is known about the project; a model can improve it, at a price",
        choices: nothing,
        run: |call| Box::pin(async move { init::init_here(call.app).await }),
    },
    SlashCommand {
        name: "index",
        arguments: "[stop|start]",
        help: "build the index of symbols, or stop building it",
        choices: index_words,
        run: |call| Box::pin(index(call)),
    },
];

fn providers(query: &ArgumentQuery<'_>) -> Vec<Choice> {
    let with_keys = query.app.settings.catalogue.providers().filter(|it| !it.profile.key_env.is_empty());
    let variables = with_keys.map(|it| choice(it.id.clone(), it.profile.key_env.join(", ")));
    if query.is_first() { variables.collect() } else { Vec::new() }
}

fn index_words(query: &ArgumentQuery<'_>) -> Vec<Choice> {
    let words = [choice("stop", "stop building it"), choice("start", "go on with it")];
    if query.is_first() { words.to_vec() } else { Vec::new() }
}

async fn index(CommandCall { arguments, app, .. }: CommandCall<'_>) -> CommandResult {
    let context = app.context.clone();
    match arguments {
        "stop" => {
            app.stop_indexing().await;
            Ok("stopped; what is indexed is kept, /index start goes on".to_owned())
        }
        "" | "start" => {
            let counted = tokio::task::spawn_blocking(move || {
                let mut files = 0;
                context.resume_indexing(&mut |_, total| files = total);
                files
            });
            match counted.await {
                Ok(0) | Err(_) => Ok("the index is up to date".to_owned()),
                Ok(files) => Ok(format!("indexed {}", super::pluralize(files, "file"))),
            }
        }
        _ => Err(SlashCommandError::Usage("/index, /index stop or /index start")),
    }
}
