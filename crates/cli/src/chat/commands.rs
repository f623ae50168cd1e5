//! The slash commands: [`register_commands`] gives them to the agent.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hardpan_agent::expand::DEFAULT_AGENT;
use hardpan_agent::{Agent, BranchExit, Command, MessageRange};
use hardpan_app::ConversationApp;
use hardpan_app::context_items::{DOCUMENT_PREFIX, OpenedItem};
use hardpan_app::mentions::{self, MentionedFile, PromptSource};
use hardpan_economy::PlannedAction;
use hardpan_models::{ThinkingRequest, did_you_mean};
use hardpan_prompt::{MessageBody, MessagePart};
use hardpan_session::Record;
use hardpan_tools::{ToolState, UndoOutcome, UndoneFile};

use super::command_error::SlashCommandError;
use super::{display, panels, price};
use crate::output::{Align, Table, cut, safe, thousands};
use crate::sessions::day_and_minute;
use crate::{context_layers, views};

/// Each command with its description, in the order of `/help`.
const COMMANDS: [(&str, &str); 34] = [
    ("help", "list the commands"),
    ("quit", "leave the conversation"),
    ("agent", "list the agents, or switch to another: /agent NAME"),
    ("model", "show the model, or switch to another: /model NAME"),
    (
        "thinking",
        "how much the model thinks: /thinking off, low, medium, high, xhigh, max, TOKENS, or default",
    ),
    ("tools", "list the tools; /tools on NAME and /tools off NAME switch one"),
    ("request", "show the request that a prompt would lead to, without sending it: /request TEXT"),
    ("context", "show what filled the context window in the last request; before the first, in the next"),
    ("hud", "show tokens, cache use and cost of the last request"),
    ("why", "explain how the last request used the cache, and what it lost"),
    (
        "price",
        "show what an action would cost now: /price agent NAME, model NAME, thinking, tool NAME, open PATH, close PATH",
    ),
    ("cache", "show when the provider's cache expires"),
    ("open", "add a file or an image to the context: /open PATH; /open lists what is open"),
    ("doc", "attach a document that the server has: /doc ID"),
    (
        "close",
        "remove a file, a document, a page, a panel or a history from the context: /close PATH, doc:ID, URL or ID",
    ),
    ("panels", "list the panels; /panels ID shows one, /panels ID hide, show or PAGE changes its view"),
    ("queue", "list the messages that wait to be sent"),
    ("unqueue", "drop the messages that wait to be sent"),
    ("later", "send a message when the agent has finished: /later TEXT"),
    ("session", "show this conversation's id, size and file"),
    ("name", "name this conversation: /name [TEXT]"),
    ("label", "label a message for /tree: /label ENTRY [TEXT]"),
    ("tldr", "send a summary in place of messages: /tldr ENTRY[..ENTRY] SUMMARY"),
    ("delete", "leave messages out of requests: /delete ENTRY[..ENTRY]"),
    ("restore", "send messages as they are again: /restore ENTRY[..ENTRY]"),
    (
        "detach",
        "layout panels: move the messages so far, or up to ENTRY, into a history panel: /detach [ENTRY]",
    ),
    ("freeze", "the same as /detach"),
    ("recall", "show what a message holds that requests show as a line: /recall ID"),
    ("new", "start a new conversation"),
    ("resume", "switch to an earlier conversation: /resume SESSION; /resume lists them"),
    ("compact", "replace older messages with a summary: /compact [WHAT MATTERS]"),
    ("undo", "undo what the last run did to files"),
    (
        "tree",
        "list the messages; /tree ENTRY goes back to one, /tree ENTRY summary keeps a summary of what you leave",
    ),
    ("fork", "copy this conversation into a new one and continue there: /fork [ENTRY]"),
];

/// The commands' names, which prompt templates cannot use.
pub fn names() -> Vec<&'static str> {
    COMMANDS.map(|(name, _)| name).to_vec()
}

/// Every command with what it does, the person's own included.
pub fn descriptions(agent: &Agent) -> Vec<(String, String)> {
    let own = agent.expansions().names().into_iter();
    let own = own.map(|own| (own.name.to_string(), own.description.to_string()));
    COMMANDS.iter().map(|(name, what)| ((*name).to_owned(), (*what).to_owned())).chain(own).collect()
}

/// The error message for a text that looks like an unknown command; none if it is a known one, a
/// path, or a sentence that begins with a slash.
pub fn unknown_command_hint(agent: &Agent, text: &str) -> Option<String> {
    let name = text.strip_prefix('/')?.split(char::is_whitespace).next().unwrap_or_default();
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':'));
    if !is_name || name == "later" || agent.commands().contains_key(name) || agent.expansions().is_known(name)
    {
        return None;
    }
    let meant = agent.expansions().nearest(name, &names());
    let meant: Vec<String> = meant.iter().map(|name| format!("/{name}")).collect();
    Some(format!("unknown command /{name}{}; /help lists the commands", did_you_mean(&meant)))
}

/// Parses a command call into its name, its arguments and the command; none for other texts.
pub fn parse_call<'a>(agent: &Agent, text: &'a str) -> Option<(&'a str, &'a str, Command)> {
    let rest = text.strip_prefix('/')?;
    let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let command = agent.commands().remove(name)?;
    Some((name, arguments.trim(), command))
}

/// Registers the commands with the agent. The returned flag becomes true on `/quit`.
pub fn register_commands(app: &Arc<ConversationApp>) -> Arc<AtomicBool> {
    let quit_requested = Arc::new(AtomicBool::new(false));
    let agent = &app.agent;
    for (name, description) in COMMANDS.into_iter().filter(|(name, _)| *name != "later") {
        let (app, quit_requested) = (Arc::downgrade(app), quit_requested.clone());
        agent.register_command(name, description, move |arguments, agent| {
            let (app, quit_requested) = (app.upgrade(), quit_requested.clone());
            async move {
                let Some(app) = app else { return Ok(None) };
                Ok(run(name, &arguments, &app, &agent, &quit_requested).await?)
            }
        });
    }
    quit_requested
}

async fn run(
    name: &str,
    arguments: &str,
    app: &ConversationApp,
    agent: &Agent,
    quit_requested: &AtomicBool,
) -> Result<Option<String>, SlashCommandError> {
    Ok(Some(match name {
        "help" => help(agent),
        "quit" => {
            quit_requested.store(true, Ordering::Relaxed);
            agent.abort();
            return Ok(None);
        }
        "agent" => switch_agent(arguments, app, agent).await?,
        "model" => model(arguments, app, agent).await?,
        "thinking" => thinking(arguments, app, agent).await?,
        "tools" => tools(arguments, agent).await?,
        "request" => {
            let preview = app.preview_request(arguments).await?;
            let (breakdown, addresses) = (preview.breakdown(), preview.addresses());
            views::request(&preview.assembled, &breakdown, &preview.target.provider, &addresses)
        }
        "context" => {
            let breakdown = match agent.breakdown() {
                Some(breakdown) => breakdown,
                None => app.preview_request("").await?.breakdown(),
            };
            let folds = breakdown.layout.layout().folds();
            let keep = if folds { format!("keep: {}\n", agent.keep()) } else { String::new() };
            // A person sees the layers; a program gets every item.
            let view = match std::io::stdout().is_terminal() {
                true => context_layers::drawing(agent, &breakdown, views::width()),
                false => views::context(&breakdown, &agent.target().provider),
            };
            view + &keep
        }
        "cache" => match agent.cache_warmth() {
            Some(warmth) => display::cache_countdown(&warmth),
            None => "no cache yet: nothing has been sent".into(),
        },
        "hud" => display::render_hud(agent).unwrap_or_else(|| "nothing has been sent yet".into()),
        "why" => price::explain_last_request(agent),
        "price" => price::price(arguments, app, agent)?,
        "open" => open_item(arguments, app)?,
        "doc" if arguments.is_empty() => {
            return Err(SlashCommandError::Usage("a document: /doc ID; /open lists what is open"));
        }
        "doc" => {
            let id = arguments.strip_prefix(DOCUMENT_PREFIX).unwrap_or(arguments);
            open_item(&format!("{DOCUMENT_PREFIX}{id}"), app)?
        }
        "close" => panels::close(arguments, app).await?,
        "panels" => panels::run(arguments, app).await?,
        "queue" => queue(agent),
        "unqueue" => {
            let dropped = agent.clear_queue().await;
            if dropped.is_empty() {
                return Ok(Some("the queue was empty".into()));
            }
            let texts =
                dropped.steering.iter().chain(&dropped.follow_up).map(|accepted| accepted.typed.clone());
            format!("dropped:\n{}", texts.collect::<Vec<_>>().join("\n"))
        }
        "session" => {
            let (id, path) = agent.session();
            let usage = agent.token_usage();
            let messages = pluralize(agent.messages().len(), "message");
            let requests = pluralize(usize::try_from(usage.requests).unwrap_or(usize::MAX), "request");
            format!("{id} · {messages} · {requests} · {}", path.display())
        }
        "name" => {
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
            format!("this conversation is now called {arguments}")
        }
        "label" => {
            let (entry, text) = arguments.split_once(' ').unwrap_or((arguments, ""));
            if entry.is_empty() {
                return Err(SlashCommandError::Usage(
                    "a message: /label ENTRY TEXT; /tree lists the entries",
                ));
            }
            let text = Some(text.trim()).filter(|text| !text.is_empty());
            agent.label_entry(entry, text).await?;
            text.map_or_else(
                || format!("{entry} no longer has a label"),
                |text| format!("{entry} is labelled {text}"),
            )
        }
        "tldr" | "delete" | "restore" => change_messages(name, arguments, agent).await?,
        "detach" | "freeze" => {
            let count = agent.freeze_messages(Some(arguments).filter(|entry| !entry.is_empty()))?;
            let messages = pluralize(count, "message");
            format!("{messages}: a history panel from the next request on; /close ID leaves it out")
        }
        "recall" if arguments.is_empty() => {
            return Err(SlashCommandError::Usage("a message: /recall ID"));
        }
        "recall" => views::stored_content(&agent.recall(arguments).await?),
        "resume" if arguments.is_empty() => conversations(app, agent),
        "resume" => {
            let found = app.store.find(Some(&app.folder), arguments)?;
            if found.id == agent.session().0 {
                return Err(SlashCommandError::CurrentConversation);
            }
            let resumed = app.resume(&found).await?;
            let messages = pluralize(resumed.messages, "message");
            let last = display::last_exchange(&agent.messages())
                .map_or_else(String::new, |last| format!("\n{last}"));
            format!("resumed {}, with {messages}{last}", found.id)
        }
        "new" => {
            app.start_new().await?;
            "started a new conversation".into()
        }
        "compact" => {
            let compacted = agent.compact(Some(arguments.to_owned()).filter(|text| !text.is_empty())).await;
            let compacted = compacted?;
            let messages = pluralize(compacted.messages, "message");
            format!("replaced {messages} with a summary:\n\n{}", compacted.summary)
        }
        "undo" => {
            // Waits for the end of the run: undoing half of it would leave the files in between.
            agent.wait_until_idle().await;
            undo(app)?
        }
        "tree" if arguments.is_empty() => tree(app)?,
        "tree" => {
            let (entry, leave) = match arguments.split_once(' ') {
                Some((entry, "summary")) => (entry, BranchExit::WithSummary),
                Some(_) => return Err(SlashCommandError::Usage("/tree ENTRY, or /tree ENTRY summary")),
                None => (arguments, BranchExit::WithoutSummary),
            };
            agent.go_to_entry(entry, leave).await?;
            format!("went back to {entry}; the session keeps the messages after it")
        }
        "fork" => fork(arguments, app, agent).await?,
        _ => return Err(SlashCommandError::Unknown),
    }))
}

fn help(agent: &Agent) -> String {
    let commands = COMMANDS.iter().map(|(name, what)| format!("  /{name:<10} {what}"));
    let own = agent.expansions().names();
    let own = own.iter().map(|known| format!("  /{:<10} {}", known.name, known.description));
    let typing = "  @path       add a file or attach an image; lines that you type while the agent works are queued; Ctrl-C stops it";
    let running =
        "  !COMMAND    run a shell command and show its output to the model; !!COMMAND shows it to you only";
    let keys =
        "  Up, Down    recall earlier lines; Alt-Enter inserts a line break; pasted lines are one prompt";
    commands.chain(own).chain([typing, running, keys].map(str::to_owned)).collect::<Vec<_>>().join("\n")
}

async fn switch_agent(name: &str, app: &ConversationApp, agent: &Agent) -> Result<String, SlashCommandError> {
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

async fn model(name: &str, app: &ConversationApp, agent: &Agent) -> Result<String, SlashCommandError> {
    let target = agent.target();
    if name.is_empty() {
        return Ok(format!(
            "{} (context window of {} tokens); /model NAME switches to another",
            target.model.name(),
            thousands(target.model.context as usize)
        ));
    }
    let target = app.find_model(None, name.to_owned())?;
    let chosen = target.model.name();
    let cost = price::describe_cost(
        agent,
        PlannedAction::SwitchModel { model: &target.model, profile: &target.profile },
    );
    app.switch_model(target).await?;
    Ok(with_price(&format!("Switched to {chosen}."), cost))
}

async fn thinking(level: &str, app: &ConversationApp, agent: &Agent) -> Result<String, SlashCommandError> {
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

async fn tools(arguments: &str, agent: &Agent) -> Result<String, SlashCommandError> {
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

/// Appends what an action costs to the message about it.
pub fn with_price(done: &str, cost: Option<String>) -> String {
    cost.map_or_else(|| done.to_owned(), |cost| format!("{done} {cost}"))
}

fn open_item(name: &str, app: &ConversationApp) -> Result<String, SlashCommandError> {
    if name.is_empty() {
        let names = app.open_items();
        return Ok(if names.is_empty() { "no file is open".into() } else { names.join("\n") });
    }
    let path = mentions::resolve_mention(name, &app.scope, PromptSource::Typed);
    let cost = match path {
        Ok(MentionedFile::Text { path, .. }) => app.forecast_opening(&path).map(|forecast| forecast.sentence),
        _ => None,
    };
    Ok(match app.open_item(name)? {
        OpenedItem::File | OpenedItem::ContextImage => {
            with_price(&format!("{name} joins the context with the next prompt."), cost)
        }
        OpenedItem::PromptImage => format!("{name} goes with the next prompt."),
        OpenedItem::Document { problem: None } => {
            format!("{name} goes with the last prompt of each request.")
        }
        OpenedItem::Document { problem: Some(problem) } => {
            format!("{name} is attached, but requests do not name it: {problem}.")
        }
    })
}

fn queue(agent: &Agent) -> String {
    let waiting = agent.queued_inputs();
    let steering = waiting.steering.iter().map(|accepted| format!("  next: {}", accepted.typed));
    let later = waiting.follow_up.iter().map(|accepted| format!("  later: {}", accepted.typed));
    let lines: Vec<String> = steering.chain(later).collect();
    if lines.is_empty() { "the queue is empty".into() } else { lines.join("\n") }
}

fn undo(app: &ConversationApp) -> Result<String, SlashCommandError> {
    let undone = app.undo()?;
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
    Ok(undone.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// `1 message`, `2 messages`.
pub fn pluralize(count: usize, what: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {what}{ending}", thousands(count))
}

/// `/resume`: a table of this folder's other conversations, newest first.
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

/// Summarises, deletes or restores messages, which are named as `e3` or `e3..e9`.
async fn change_messages(name: &str, arguments: &str, agent: &Agent) -> Result<String, SlashCommandError> {
    let (entries, summary) = arguments.split_once(' ').unwrap_or((arguments, ""));
    if entries.is_empty() || (name == "tldr" && summary.trim().is_empty()) {
        return Err(SlashCommandError::Usage(
            "messages: /tldr ENTRY[..ENTRY] SUMMARY, /delete ENTRY[..ENTRY], /restore ENTRY[..ENTRY]; /tree lists the entries",
        ));
    }
    let (first, last) = entries.split_once("..").map_or((entries, None), |(first, last)| (first, Some(last)));
    let range = MessageRange { first, last };
    let (count, how) = match name {
        "tldr" => (agent.summarise_messages(range, summary).await?, "sent as this summary"),
        "delete" => (agent.delete_messages(range).await?, "no longer sent; /restore brings them back"),
        _ => (agent.restore_messages(range).await?, "sent as they are again"),
    };
    Ok(format!("{}: {how}", pluralize(count, "message")))
}

fn tree(app: &ConversationApp) -> Result<String, SlashCommandError> {
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

async fn fork(entry: &str, app: &ConversationApp, agent: &Agent) -> Result<String, SlashCommandError> {
    let entry = Some(entry).filter(|entry| !entry.is_empty());
    app.fork(entry).await?;
    let messages = pluralize(agent.messages().len(), "message");
    let (id, _) = agent.session();
    Ok(format!("continuing in the new conversation {id}, with {messages}; the original is unchanged"))
}

#[cfg(test)]
mod tests {
    use super::pluralize;

    #[test]
    fn one_is_not_many() {
        assert_eq!(
            [0, 1, 1000].map(|count| pluralize(count, "message")),
            ["0 messages", "1 message", "1,000 messages"]
        );
    }
}
