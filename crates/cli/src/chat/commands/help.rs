//! The commands and the keys: `/help`, `/keys`; and `/quit`.

use hardpan_terminal::keymap::{Action, KeyLayer, Keymap};

use super::super::command_error::SlashCommandError;
use super::arguments::{choice, first_choices, nothing};
use super::{CommandCall, CommandResult, SlashCommand, all, nearest_names, quit};
use crate::output::{Align, Table, safe};
use crate::views;

/// In the order of `/help`.
pub const COMMANDS: &[SlashCommand] = &[
    SlashCommand {
        name: "help",
        arguments: "[COMMAND]",
        help: "list the commands, or explain one",
        choices: |query| match query.is_first() {
            true => all().map(|command| choice(command.name, command.help)).collect(),
            false => Vec::new(),
        },
        run: |call| Box::pin(help(call)),
    },
    SlashCommand {
        name: "keys",
        arguments: "",
        help: "list the keys of the terminal, and their names for [keys] in config.toml",
        choices: nothing,
        run: |call| Box::pin(keys(call)),
    },
    SlashCommand {
        name: "quit",
        arguments: "",
        help: "leave the conversation",
        choices: nothing,
        run: |call| Box::pin(quit(call)),
    },
    SlashCommand {
        name: "exit",
        arguments: "",
        help: "the same as /quit",
        choices: nothing,
        run: |call| Box::pin(quit(call)),
    },
];

/// Every action with its keys, as the settings have them.
async fn keys(CommandCall { app, .. }: CommandCall<'_>) -> CommandResult {
    let keymap = Keymap::new(&app.settings.config.keys).unwrap_or_default();
    let mut text = String::new();
    for layer in KeyLayer::ALL {
        let mut table = Table::new(&["keys", "does", "name"].map(|head| (head, Align::Left)));
        for action in Action::ALL.into_iter().filter(|action| action.layer() == layer) {
            table.row([keymap.keys(action).join(", "), action.help().to_owned(), action.name().to_owned()]);
        }
        text.push_str(&format!("{}\n{}\n", layer.heading(), table.render(views::width())));
    }
    Ok(text.trim_end().to_owned())
}

/// The most values of an argument that `/help COMMAND` names.
const SHOWN_CHOICES: usize = 12;

async fn help(call: CommandCall<'_>) -> CommandResult {
    match call.arguments.trim_start_matches('/') {
        "" => Ok(overview(call)),
        name => explain(name, call),
    }
}

fn overview(CommandCall { agent, .. }: CommandCall<'_>) -> String {
    let mut table = Table::new(&[("command", Align::Left), ("what it does", Align::Left)]);
    for command in all() {
        table.row([command.usage(), command.help.to_owned()]);
    }
    for own in agent.expansions().names() {
        let hint = own.argument_hint.map_or_else(String::new, |hint| format!(" {hint}"));
        table.row([format!("/{}{hint}", own.name), own.description.to_string()]);
    }
    // Those of extensions and servers.
    for (name, command) in agent.commands().iter().filter(|(_, command)| command.owner.is_some()) {
        table.row([format!("/{}", safe(name)), safe(&command.description)]);
    }
    let typing = [
        ("@path", "add a file or attach an image"),
        ("@SERVER:ADDRESS", "add a resource of an MCP server"),
        ("!COMMAND", "run a shell command and show its output to the model"),
        ("!!COMMAND", "run a shell command that only you see"),
    ];
    for (what, effect) in typing {
        table.row([what.to_owned(), effect.to_owned()]);
    }
    format!("{}/help COMMAND explains one; /keys lists the keys", table.render(views::width()))
}

/// A command's arguments, what it does, and what could be typed now.
fn explain(name: &str, CommandCall { app, agent, .. }: CommandCall<'_>) -> CommandResult {
    if let Some(command) = all().find(|command| command.name == name) {
        let choices = first_choices(command, app);
        let lines = choices.iter().take(SHOWN_CHOICES).map(|choice| {
            let detail =
                if choice.detail.is_empty() { String::new() } else { format!("  {}", choice.detail) };
            format!("\n  {}", safe(&format!("{}{detail}", choice.text)))
        });
        let more = match choices.len().saturating_sub(SHOWN_CHOICES) {
            0 => String::new(),
            more => format!("\n  … and {more} more"),
        };
        let lines: String = lines.collect();
        return Ok(format!("{}\n{}{lines}{more}", command.usage(), command.help));
    }
    if let Some(command) = agent.commands().get(name) {
        return Ok(format!("/{name}\n{}", safe(&command.description)));
    }
    let own = agent.expansions().names().into_iter().find(|own| &*own.name == name);
    match own {
        Some(own) => {
            let hint = own.argument_hint.map_or_else(String::new, |hint| format!(" {hint}"));
            Ok(format!("/{}{hint}\n{}", own.name, own.description))
        }
        None => Err(SlashCommandError::Unknown { name: name.to_owned(), hint: nearest_names(agent, name) }),
    }
}
