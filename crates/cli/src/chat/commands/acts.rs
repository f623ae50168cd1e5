//! What a person does to the context: pin, leave out, bring back, fold, another layout; now or when it
//! costs nothing.

use std::sync::Arc;

use hardpan_agent::Agent;
use hardpan_agent::events::AgentStart;
use hardpan_app::context_items::ContextKey;
use hardpan_app::{ConversationApp, Notice};
use hardpan_context::LayoutName;
use hardpan_terminal::blocks::FileDiff;
use hardpan_terminal::theme::{Palette, Theme};

use super::super::act_price::{forecast_command, is_fold_due};
use super::super::command_error::SlashCommandError;
use super::arguments::{ArgumentQuery, Choice, choice, nothing};
use super::context::{open_names, paths};
use super::{CommandCall, CommandResult, SlashCommand, parse_call};
use crate::output::safe;

/// In the order of `/help`.
pub const COMMANDS: &[SlashCommand] = &[
    SlashCommand {
        name: "pin",
        arguments: "PATH",
        help: "keep a file in every request, as it is now and later",
        choices: |query| if query.is_first() { paths(query) } else { Vec::new() },
        run: |call| Box::pin(pin(call)),
    },
    SlashCommand {
        name: "unpin",
        arguments: "PATH",
        help: "let a pinned file go",
        choices: |query| if query.is_first() { open_names(query) } else { Vec::new() },
        run: |call| Box::pin(unpin(call)),
    },
    SlashCommand {
        name: "exclude",
        arguments: "PATH|message:ID [free]",
        help: "leave a file or a message out of requests at once, or where that is `free`",
        choices: excludable,
        run: |call| Box::pin(exclude(call)),
    },
    SlashCommand {
        name: "include",
        arguments: "[PATH|message:ID]",
        help: "list what is left out, or send it again",
        choices: |query| if query.is_first() { excluded(query.app) } else { Vec::new() },
        run: |call| Box::pin(include(call)),
    },
    SlashCommand {
        name: "fold",
        arguments: "",
        help: "drop what is outdated with the next request, and write the rest again",
        choices: nothing,
        run: |call| Box::pin(fold(call)),
    },
    SlashCommand {
        name: "layout",
        arguments: "[NAME]",
        help: "show the layout, or use another from the next request on",
        choices: |query| if query.is_first() { layouts() } else { Vec::new() },
        run: |call| Box::pin(layout(call)),
    },
    SlashCommand {
        name: "defer",
        arguments: "[COMMAND]",
        help: "run a command when it costs nothing: at a fold, or once the cache has expired",
        choices: deferrable,
        run: |call| Box::pin(defer(call)),
    },
    SlashCommand {
        name: "sessions",
        arguments: "name ID TEXT | delete ID",
        help: "name or delete a conversation",
        choices: |query| match query.before {
            [] => vec![choice("name", "gives one a name"), choice("delete", "deletes one for good")],
            [_] => query.sessions(),
            _ => Vec::new(),
        },
        run: |call| Box::pin(sessions(call)),
    },
    SlashCommand {
        name: "changes",
        arguments: "",
        help: "show what this conversation has changed in files",
        choices: nothing,
        run: |call| Box::pin(changes(call)),
    },
];

/// Runs what has become free before each run of the agent.
pub fn run_when_free(app: &Arc<ConversationApp>) {
    let weak = Arc::downgrade(app);
    app.agent.events().subscribe::<AgentStart, _>("hardpan", move |_, agent| {
        let app = weak.upgrade();
        async move {
            let Some(app) = app.filter(|app| !app.deferred.list().is_empty()) else { return Ok(()) };
            let folds = is_fold_due(&app);
            let costs_nothing = |text: &str| {
                folds || forecast_command(text, &app).is_none_or(|act| act.cost.tokens_written_again == 0)
            };
            for text in app.deferred.take(costs_nothing) {
                let text = run_deferred(&text, &agent).await;
                app.notice(Notice::Deferred { text });
            }
            app.save_state().await;
            Ok(())
        }
    });
}

async fn run_deferred(text: &str, agent: &Agent) -> String {
    let Some((_, arguments, command)) = parse_call(agent, text) else {
        return format!("{text}: unknown");
    };
    match command.run(arguments, agent).await {
        Ok(said) => format!("{text}, as deferred: {}", said.unwrap_or_default()),
        Err(error) => format!("{text}, as deferred: {error}"),
    }
}

async fn pin(CommandCall { arguments, app, .. }: CommandCall<'_>) -> CommandResult {
    if arguments.is_empty() {
        return Err(SlashCommandError::Usage("a file: /pin PATH"));
    }
    app.pin_item(arguments)?;
    app.save_state().await;
    Ok(format!("{} stays in every request from the next one on.", safe(arguments)))
}

async fn unpin(CommandCall { arguments, app, .. }: CommandCall<'_>) -> CommandResult {
    if arguments.is_empty() {
        return Err(SlashCommandError::Usage("a file: /unpin PATH"));
    }
    app.unpin_item(arguments)?;
    app.save_state().await;
    Ok(format!("{} is not pinned any more.", safe(arguments)))
}

async fn exclude(CommandCall { arguments, app, agent, .. }: CommandCall<'_>) -> CommandResult {
    let (key, is_free) = match arguments.rsplit_once(' ') {
        Some((key, "free")) => (key.trim(), true),
        _ => (arguments, false),
    };
    if key.is_empty() {
        return Err(SlashCommandError::Usage("a file or a message: /exclude PATH, or /exclude message:ID"));
    }
    let is_file = matches!(ContextKey::parse(key)?, ContextKey::File(_));
    if is_free && !is_file {
        return defer_command(app, &format!("/exclude {key}")).await;
    }
    app.exclude_item(key).await?;
    if is_file && !is_free {
        agent.request_fold();
    }
    app.save_state().await;
    let when = if is_free { "from the next fold on" } else { "from the next request on" };
    Ok(format!("{} is left out {when}; /include {} brings it back.", safe(key), safe(key)))
}

async fn include(CommandCall { arguments, app, .. }: CommandCall<'_>) -> CommandResult {
    if arguments.is_empty() {
        let excluded = app.excluded_items();
        return Ok(if excluded.is_empty() { "nothing is left out".into() } else { excluded.join("\n") });
    }
    app.include_item(arguments).await?;
    app.save_state().await;
    Ok(format!("{} is sent again from the next request on.", safe(arguments)))
}

fn excluded(app: &ConversationApp) -> Vec<Choice> {
    app.excluded_items().into_iter().map(|key| choice(key, "")).collect()
}

async fn fold(CommandCall { agent, .. }: CommandCall<'_>) -> CommandResult {
    if !agent.layout().layout().folds() {
        return Ok(format!("the layout {} never folds.", agent.layout()));
    }
    agent.request_fold();
    Ok("the next request folds.".into())
}

pub fn layout_meaning(layout: LayoutName) -> &'static str {
    match layout {
        LayoutName::Strata => "what is stable first; garbage is folded where it pays",
        LayoutName::Tiers => "by how long each piece has been unchanged, in tiers",
        LayoutName::Panels => "panels in the order of their last change",
        LayoutName::Inline => "everything where it was said",
    }
}

fn layouts() -> Vec<Choice> {
    LayoutName::ALL.iter().map(|layout| choice(layout.as_str(), layout_meaning(*layout))).collect()
}

/// The files that are open, files by their path, and messages.
fn excludable(query: &ArgumentQuery<'_>) -> Vec<Choice> {
    match query.before {
        [] => {
            let messages = query.sent_entries().into_iter();
            let messages = messages.map(|it| choice(format!("message:{}", it.text), it.detail));
            open_names(query).into_iter().chain(paths(query)).chain(messages).collect()
        }
        [_] => vec![choice("free", "at the next fold, which costs nothing")],
        _ => Vec::new(),
    }
}

/// The commands that can wait, and then what can follow them.
fn deferrable(query: &ArgumentQuery<'_>) -> Vec<Choice> {
    const COSTLY: [&str; 11] = [
        "agent", "close", "compact", "delete", "exclude", "fold", "layout", "model", "thinking", "tldr",
        "tools",
    ];
    match query.before {
        [] => {
            let commands = super::all().filter(|command| COSTLY.contains(&command.name));
            commands.map(|command| choice(command.name, command.help)).collect()
        }
        [name, before @ ..] => query.of_command(name, before),
    }
}

async fn layout(CommandCall { arguments, app, agent, .. }: CommandCall<'_>) -> CommandResult {
    if arguments.is_empty() {
        let names: Vec<&str> = LayoutName::ALL.iter().map(|layout| layout.as_str()).collect();
        return Ok(format!("{}; /layout NAME uses another: {}", agent.layout(), names.join(", ")));
    }
    let found = LayoutName::ALL.into_iter().find(|layout| layout.as_str() == arguments);
    let layout = found.ok_or(SlashCommandError::Usage("a layout: strata, tiers, inline or panels"))?;
    app.select_layout(layout).await?;
    Ok(format!("The layout is {layout} from the next request on."))
}

async fn defer(CommandCall { arguments, app, .. }: CommandCall<'_>) -> CommandResult {
    if arguments.is_empty() {
        let waiting = app.deferred.list();
        return Ok(if waiting.is_empty() { "nothing is deferred".into() } else { waiting.join("\n") });
    }
    defer_command(app, &format!("/{}", arguments.trim_start_matches('/'))).await
}

async fn defer_command(app: &ConversationApp, text: &str) -> CommandResult {
    if parse_call(&app.agent, text).is_none() {
        return Err(SlashCommandError::Usage("a command: /defer COMMAND"));
    }
    app.deferred.add(text);
    app.save_state().await;
    Ok(format!("{} runs when it costs nothing.", safe(text)))
}

async fn sessions(CommandCall { arguments, app, agent, .. }: CommandCall<'_>) -> CommandResult {
    const USAGE: &str = "/sessions name ID TEXT, or /sessions delete ID";
    let (act, rest) = arguments.split_once(' ').unwrap_or((arguments, ""));
    let (id, text) = rest.trim().split_once(' ').unwrap_or((rest.trim(), ""));
    if id.is_empty() {
        return Err(SlashCommandError::Usage(USAGE));
    }
    let found = app.store.find(None, id)?;
    let is_current = found.id == agent.session().0;
    match act {
        "name" if text.trim().is_empty() => Err(SlashCommandError::Usage(USAGE)),
        "name" if is_current => {
            agent.rename_session(text.trim()).await?;
            Ok(format!("this conversation is now called {}", safe(text.trim())))
        }
        "name" => {
            app.rename_other(&found, text.trim())?;
            Ok(format!("{} is now called {}", found.id, safe(text.trim())))
        }
        "delete" if is_current => Err(SlashCommandError::CurrentConversation),
        "delete" => {
            app.delete_other(&found)?;
            Ok(format!("{} is deleted", found.id))
        }
        _ => Err(SlashCommandError::Usage(USAGE)),
    }
}

async fn changes(CommandCall { app, .. }: CommandCall<'_>) -> CommandResult {
    let theme = Theme { palette: Palette::None, ..Theme::default() };
    let width = crate::views::width().min(100);
    let mut text = String::new();
    for diff in session_changes(app) {
        text.push_str(&format!("{}  {}\n", safe(diff.path()), diff.facts(&theme).join(", ")));
        for line in diff.unified(width, &theme) {
            text.push_str(&format!("{}\n", line.to_string().trim_end()));
        }
    }
    Ok(if text.is_empty() { "no file has changed".into() } else { text.trim_end().to_owned() })
}

/// The changes of files since the conversation began, as far as tools made them.
pub fn session_changes(app: &ConversationApp) -> Vec<FileDiff> {
    let Some(journal) = &app.tool_set.journal else { return Vec::new() };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let diff = |(path, before): (std::path::PathBuf, Option<Vec<u8>>)| {
        let shown = hardpan_workspace::display_path(&app.scope.root, &path);
        let after = std::fs::metadata(&path).ok().filter(|found| found.is_file() && found.len() <= MAX_BYTES);
        let after = after.and_then(|_| std::fs::read(&path).ok());
        FileDiff::new(&shown, &before.map(text).unwrap_or_default(), &after.map(text).unwrap_or_default())
    };
    let diffs = journal.contents_before(0).into_iter().map(diff);
    diffs.filter(|diff| diff.added() + diff.removed() > 0).collect()
}

/// Larger files are shown as removed.
const MAX_BYTES: u64 = 2 * 1024 * 1024;
