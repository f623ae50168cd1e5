//! Prompts of servers as slash commands: `/server:prompt arguments`.

use std::sync::{Arc, Weak};

use hardpan_agent::expand::split_words;
use hardpan_agent::{ArgumentChoice, Command, CommandError, CommandPrompt};
use hardpan_mcp::{PromptArgument, ServerError, ServerPrompt};
use serde_json::{Map, Value};

use super::{McpServer, McpServers};

/// Why a prompt cannot be written.
#[derive(Debug, thiserror::Error)]
enum PromptError {
    #[error("the conversation has no such server any more")]
    Gone,
    #[error("the MCP server {server}: {error}")]
    Server { server: String, error: ServerError },
    #[error("it needs {missing}: {usage}")]
    Missing { missing: String, usage: String },
}

/// How much of a prompt's name is in the name of its command, in characters.
const MAX_COMMAND_NAME: usize = 64;

/// The commands of a server belong to this owner.
fn owner(server: &McpServer) -> String {
    format!("mcp:{}", server.name)
}

/// Makes commands of a server's prompts, in the place of those that it had. Names that are taken keep
/// their meaning.
pub(super) fn register_commands(server: &Arc<McpServer>, prompts: &[ServerPrompt]) {
    let Some(agent) = server.link.agent() else { return };
    let owner = owner(server);
    agent.remove_commands_of(&owner);
    let taken = agent.commands();
    for prompt in prompts.iter().filter(|prompt| !prompt.name.is_empty()) {
        let name = command_name(server.name.as_str(), &prompt.name);
        if taken.contains_key(&name) || agent.expansions().is_known(&name) {
            continue;
        }
        let hint = prompt.argument_hint();
        let about = [hint, prompt.description.clone()].into_iter().filter(|text| !text.is_empty());
        let about = about.collect::<Vec<_>>().join(" · ");
        let (maker, completer) = (Arc::downgrade(server), Arc::downgrade(server));
        let (made, completed) = (Arc::new(prompt.clone()), Arc::new(prompt.clone()));
        let command = Command::for_prompt(&about, move |arguments, _| {
            let (server, prompt) = (maker.clone(), made.clone());
            async move { write_prompt(&server, &prompt, &arguments).await.map_err(CommandError::failed) }
        });
        let command = command.of(&owner).completed_by(move |typed| {
            let (server, prompt) = (completer.clone(), completed.clone());
            async move { complete(&server, &prompt, &typed).await }
        });
        agent.add_command(&name, command);
    }
}

/// `server:prompt`, with `-` for what a name cannot have.
fn command_name(server: &str, prompt: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | ':') { c } else { '-' };
    format!("{server}:{}", prompt.chars().take(MAX_COMMAND_NAME).map(plain).collect::<String>())
}

async fn write_prompt(
    server: &Weak<McpServer>,
    prompt: &ServerPrompt,
    typed: &str,
) -> Result<CommandPrompt, PromptError> {
    let server = server.upgrade().ok_or(PromptError::Gone)?;
    let arguments = arguments_of(prompt, &split_words(typed)).map_err(|missing| {
        let name = command_name(server.name.as_str(), &prompt.name);
        PromptError::Missing { missing, usage: format!("/{name} {}", prompt.argument_hint()) }
    })?;
    let failed = |error| PromptError::Server { server: server.name.to_string(), error };
    let connection = server.connect().await.map_err(failed)?;
    let written = connection.get_prompt(&prompt.name, arguments).await.map_err(failed)?;
    Ok(CommandPrompt { text: written.text, images: written.images })
}

/// The arguments by name: `name=value`, or in their order. What is left over belongs to the last one. The
/// error is the name of one that is missing.
fn arguments_of(prompt: &ServerPrompt, words: &[String]) -> Result<Map<String, Value>, String> {
    let mut given: Map<String, Value> = Map::new();
    let mut last: Option<&PromptArgument> = None;
    for word in words {
        let named = word.split_once('=').filter(|(name, _)| {
            prompt.arguments.iter().any(|argument| argument.name == *name && !given.contains_key(*name))
        });
        if let Some((name, value)) = named {
            given.insert(name.to_owned(), value.into());
            continue;
        }
        let next = prompt.arguments.iter().find(|argument| !given.contains_key(&argument.name));
        match (next, last) {
            (Some(argument), _) => {
                given.insert(argument.name.clone(), word.as_str().into());
                last = Some(argument);
            }
            (None, Some(argument)) => {
                let before = given.get(&argument.name).and_then(Value::as_str).unwrap_or_default();
                let whole = format!("{before} {word}");
                given.insert(argument.name.clone(), whole.into());
            }
            (None, None) => {}
        }
    }
    let is_missing = |argument: &&PromptArgument| argument.is_required && !given.contains_key(&argument.name);
    match prompt.arguments.iter().find(is_missing) {
        Some(argument) => Err(argument.shown_name().to_uppercase()),
        None => Ok(given),
    }
}

/// What can stand at the end of the arguments that are typed.
async fn complete(server: &Weak<McpServer>, prompt: &ServerPrompt, typed: &str) -> Vec<ArgumentChoice> {
    let Some(server) = server.upgrade() else { return Vec::new() };
    let (before, word) = typed.rsplit_once(' ').unwrap_or(("", typed));
    let at = split_words(before).len();
    let Some(argument) = prompt.arguments.get(at) else { return Vec::new() };
    // A person types: a server that does not run is not started for it.
    let connection = server.connection.try_lock().ok().and_then(|connection| connection.clone());
    let Some(connection) = connection.filter(|connection| !connection.is_closed()) else {
        return Vec::new();
    };
    let values = connection.complete_argument(&prompt.name, &argument.name, word).await;
    let detail = argument.description.clone();
    values.into_iter().map(|text| ArgumentChoice { text, detail: detail.clone() }).collect()
}

impl McpServers {
    /// Starts the server of a text such as `/server:prompt` if its prompts are not known yet, so that the
    /// text can be told from a mistake.
    pub async fn learn_prompts_of(&self, text: &str) {
        let server = text.strip_prefix('/').and_then(|call| call.split_once(':'));
        let Some((name, _)) = server else { return };
        let server = self.enabled().find(|server| server.name.as_str() == name);
        let Some(server) = server.filter(|server| server.parts.prompts().is_none()) else { return };
        // Why it cannot be used is told when it starts.
        if let Ok(connection) = server.connect().await {
            server.learn_parts(&connection).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(arguments: &[(&str, bool)]) -> ServerPrompt {
        let argument = |(name, is_required): &(&str, bool)| PromptArgument {
            name: (*name).to_owned(),
            description: String::new(),
            is_required: *is_required,
        };
        let arguments = arguments.iter().map(argument).collect();
        ServerPrompt { name: "weather".into(), description: String::new(), arguments }
    }

    #[test]
    fn arguments_are_given_in_order_or_by_name() {
        let weather = prompt(&[("city", true), ("state", false)]);
        let given = |typed: &str| {
            let given = arguments_of(&weather, &split_words(typed));
            given.map(|given| Value::Object(given).to_string())
        };
        assert_eq!(given("Bern"), Ok(r#"{"city":"Bern"}"#.into()));
        assert_eq!(given("'New York' NY"), Ok(r#"{"city":"New York","state":"NY"}"#.into()));
        assert_eq!(given("state=NY New York"), Ok(r#"{"state":"NY","city":"New York"}"#.into()));
        assert_eq!(given("Bern BE and more"), Ok(r#"{"city":"Bern","state":"BE and more"}"#.into()));
        assert_eq!(given("state=NY"), Err("CITY".into()));
        assert_eq!(weather.argument_hint(), "CITY [STATE]");
        assert_eq!(arguments_of(&prompt(&[]), &["x".into()]), Ok(Map::new()));
        assert_eq!(command_name("a", "b c/d"), "a:b-c-d");
    }
}
