//! Which conversation: new ones, earlier ones, its tree, its name, its file.

use hardpan_agent::{Agent, BranchExit};
use hardpan_app::ConversationApp;
use hardpan_prompt::{MessageBody, MessagePart};
use hardpan_session::Record;
use hardpan_tools::{UndoOutcome, UndoneFile};

use super::super::command_error::SlashCommandError;
use super::super::display;
use super::arguments::{any_entry, choice, nothing};
use super::{CommandCall, CommandResult, SlashCommand, pluralize};
use crate::output::{Align, Table, cut};
use crate::sessions::day_and_minute;
use crate::views;

/// In the order of `/help`.
pub const COMMANDS: &[SlashCommand] = &[
    SlashCommand {
        name: "session",
        arguments: "",
        help: "show this conversation's id, size and file",
        choices: nothing,
        run: |call| Box::pin(session(call)),
    },
    SlashCommand {
        name: "name",
        arguments: "[TEXT]",
        help: "name this conversation",
        choices: nothing,
        run: |call| Box::pin(name(call)),
    },
    SlashCommand {
        name: "label",
        arguments: "ENTRY [TEXT]",
        help: "label a message for /tree",
        choices: any_entry,
        run: |call| Box::pin(label(call)),
    },
    SlashCommand {
        name: "new",
        arguments: "",
        help: "start a new conversation; this one stays on disk, for /resume",
        choices: nothing,
        run: |call| Box::pin(start_new(call)),
    },
    SlashCommand {
        name: "clear",
        arguments: "",
        help: "the same as /new",
        choices: nothing,
        run: |call| Box::pin(start_new(call)),
    },
    SlashCommand {
        name: "resume",
        arguments: "[SESSION]",
        help: "list earlier conversations, or switch to one",
        choices: |query| if query.is_first() { query.sessions() } else { Vec::new() },
        run: |call| Box::pin(resume(call)),
    },
    SlashCommand {
        name: "undo",
        arguments: "",
        help: "undo what the last run did to files",
        choices: nothing,
        run: |call| Box::pin(undo(call)),
    },
    SlashCommand {
        name: "tree",
        arguments: "[ENTRY [files] [summary]]",
        help: "list the messages, or go back to one: with its files, with a summary of what you leave",
        choices: |query| match query.before {
            [] => query.entries(),
            _ => vec![
                choice("files", "undoes what was done to files since"),
                choice("summary", "keeps a summary of what you leave"),
            ],
        },
        run: |call| Box::pin(tree(call)),
    },
    SlashCommand {
        name: "reload",
        arguments: "",
        help: "load the extensions anew",
        choices: nothing,
        run: |call| Box::pin(reload(call)),
    },
    SlashCommand {
        name: "fork",
        arguments: "[ENTRY]",
        help: "copy this conversation into a new one and continue there",
        choices: any_entry,
        run: |call| Box::pin(fork(call)),
    },
];

async fn session(CommandCall { agent, .. }: CommandCall<'_>) -> CommandResult {
    let (id, path) = agent.session();
    let usage = agent.token_usage();
    let messages = pluralize(agent.messages().len(), "message");
    let requests = pluralize(usize::try_from(usage.requests).unwrap_or(usize::MAX), "request");
    Ok(format!("{id} · {messages} · {requests} · {}", path.display()))
}

async fn name(CommandCall { arguments, agent, .. }: CommandCall<'_>) -> CommandResult {
    let typed_name = if arguments.is_empty() {
        agent.ask_user("What should this conversation be called?").await
    } else {
        None
    };
    let arguments = typed_name.as_deref().unwrap_or(arguments);
    if arguments.is_empty() {
        return Err(SlashCommandError::Usage("a name: /name TEXT"));
    }
    agent.rename_session(arguments).await?;
    Ok(format!("this conversation is now called {arguments}"))
}

async fn label(CommandCall { arguments, agent, .. }: CommandCall<'_>) -> CommandResult {
    let (entry, text) = arguments.split_once(' ').unwrap_or((arguments, ""));
    if entry.is_empty() {
        return Err(SlashCommandError::Usage("a message: /label ENTRY TEXT; /tree lists the entries"));
    }
    let text = Some(text.trim()).filter(|text| !text.is_empty());
    agent.label_entry(entry, text).await?;
    Ok(text.map_or_else(
        || format!("{entry} no longer has a label"),
        |text| format!("{entry} is labelled {text}"),
    ))
}

async fn start_new(CommandCall { app, .. }: CommandCall<'_>) -> CommandResult {
    app.start_new().await?;
    Ok("started a new conversation".into())
}

async fn resume(CommandCall { arguments, app, agent, .. }: CommandCall<'_>) -> CommandResult {
    if arguments.is_empty() {
        return Ok(conversations(app, agent));
    }
    let found = app.store.find(Some(&app.folder), arguments)?;
    if found.id == agent.session().0 {
        return Err(SlashCommandError::CurrentConversation);
    }
    let resumed = app.resume(&found).await?;
    let messages = pluralize(resumed.messages, "message");
    let last = display::last_exchange(&agent.messages()).map_or_else(String::new, |last| format!("\n{last}"));
    Ok(format!("resumed {}, with {messages}{last}", found.id))
}

/// A table of this folder's other conversations, newest first.
fn conversations(app: &ConversationApp, agent: &Agent) -> String {
    let (here, _) = agent.session();
    let mut sessions = app.store.list(Some(&app.folder));
    sessions.retain(|session| session.id != here);
    if sessions.is_empty() {
        return "this folder has no other conversation; `hardpan sessions --all` lists all folders".into();
    }
    let mut table = Table::new(&[
        ("id", Align::Left),
        ("last used (UTC)", Align::Left),
        ("messages", Align::Right),
        ("about", Align::Left),
    ]);
    for session in &sessions {
        let about = session.name.as_deref().or(session.first_prompt.as_deref()).unwrap_or_default();
        let used = day_and_minute(session.last_activity);
        table.row([session.id.to_string(), used, session.messages.to_string(), about.to_owned()]);
    }
    format!("{}/resume SESSION switches to one of them", table.render(views::width()))
}

async fn reload(CommandCall { app, .. }: CommandCall<'_>) -> CommandResult {
    app.reload_extensions().await;
    let names: Vec<String> = app.extensions.list().into_iter().map(|extension| extension.name).collect();
    Ok(match names.len() {
        0 => "there are no extensions to load".into(),
        count => format!("loaded {}: {}", pluralize(count, "extension"), names.join(", ")),
    })
}

async fn undo(CommandCall { app, agent, .. }: CommandCall<'_>) -> CommandResult {
    // Waits for the end of the run: undoing half of it would leave the files in between.
    agent.wait_until_idle().await;
    Ok(undone_lines(&app.undo()?))
}

/// What became of each file.
fn undone_lines(undone: &[UndoneFile]) -> String {
    let line = |undone: &UndoneFile| {
        let how = match &undone.outcome {
            UndoOutcome::Restored => "restored".to_owned(),
            UndoOutcome::Removed => "removed, since the run created it".to_owned(),
            UndoOutcome::Unchanged => "unchanged".to_owned(),
            UndoOutcome::ChangedSince => "left alone, because it changed since".to_owned(),
            UndoOutcome::NotKept => {
                "not undone: a command changed it, and what it held before was not kept".to_owned()
            }
            UndoOutcome::Failed(why) => format!("could not be undone: {why}"),
        };
        format!("{}: {how}", undone.path.display())
    };
    undone.iter().map(line).collect::<Vec<_>>().join("\n")
}

async fn tree(CommandCall { arguments, app, .. }: CommandCall<'_>) -> CommandResult {
    if arguments.is_empty() {
        return message_list(app);
    }
    let mut words = arguments.split_whitespace();
    let entry = words.next().unwrap_or_default();
    let (mut leave, mut wants_files) = (BranchExit::WithoutSummary, false);
    for word in words {
        match word {
            "summary" => leave = BranchExit::WithSummary,
            "files" => wants_files = true,
            _ => return Err(SlashCommandError::Usage("/tree ENTRY [files] [summary]")),
        }
    }
    let went = format!("went back to {entry}; the session keeps the messages after it");
    if !wants_files {
        app.go_to_entry(entry, leave).await?;
        return Ok(went);
    }
    let session = app.read_session()?;
    app.go_to_entry(entry, leave).await?;
    let undone = app.undo_after(&session, entry)?;
    Ok(format!("{went}\n{}", undone_lines(&undone)).trim_end().to_owned())
}

/// The messages with their ids, oldest first.
fn message_list(app: &ConversationApp) -> CommandResult {
    let session = app.read_session()?;
    let labels = session.labels();
    let lines = session.entries.iter().filter_map(|entry| {
        let Record::Message(message) = &entry.record else { return None };
        let (who, parts) = match &*message.body {
            MessageBody::User { content } => ("you", content),
            MessageBody::Assistant { content, .. } => ("model", content),
            _ => return None,
        };
        let text: String = parts
            .iter()
            .filter_map(|part| if let MessagePart::Text { text } = part { Some(text.as_str()) } else { None })
            .collect();
        let label = labels.get(&*entry.id).map_or_else(String::new, |label| format!("[{label}] "));
        Some(cut(&format!("{:>6}  {who:<5}  {label}{}", entry.id, text.replace('\n', " ")), views::width()))
    });
    let lines: Vec<String> = lines.collect();
    Ok(if lines.is_empty() { "this conversation has no messages yet".into() } else { lines.join("\n") })
}

async fn fork(CommandCall { arguments: entry, app, agent, .. }: CommandCall<'_>) -> CommandResult {
    let entry = Some(entry).filter(|entry| !entry.is_empty());
    app.fork(entry).await?;
    let messages = pluralize(agent.messages().len(), "message");
    let (id, _) = agent.session();
    Ok(format!("continuing in the new conversation {id}, with {messages}; the original is unchanged"))
}
