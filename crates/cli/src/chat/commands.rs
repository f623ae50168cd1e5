//! What can be typed after a slash.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hardpan_agent::{Agent, Command, Conversation, CustomMessage, Leave, Switch};
use hardpan_context::fill;
use hardpan_economy::Act;
use hardpan_models::did_you_mean;
use hardpan_prompt::{Body, Part, Thinking};
use hardpan_session::{Record, Session};
use hardpan_tools::{How, Undone};

use super::attach::{self, Found, Source};
use super::open::{self, Opened};
use super::{price, show};
use crate::output::{Align, Table, cut, thousands};
use crate::settings::at_home;
use crate::{gather, views};

/// Each command with what it does.
const COMMANDS: [(&str, &str); 23] = [
    ("help", "what can be typed"),
    ("quit", "end the conversation"),
    ("model", "show the model, or choose another: /model NAME"),
    ("thinking", "let the model think first: /thinking TOKENS, or off"),
    ("context", "what the last request held"),
    ("hud", "tokens, cache and cost of the last request"),
    ("why", "how the last request used the cache, and what it lost"),
    ("price", "what an act would cost now: /price model NAME, thinking, tool NAME, open PATH, close PATH"),
    ("cache", "how long the provider's cache will live"),
    ("open", "add a file to the context: /open PATH"),
    ("close", "take a file out of the context: /close PATH"),
    ("queue", "what waits to be delivered"),
    ("unqueue", "drop what waits"),
    ("later", "say something when the agent is done: /later TEXT"),
    ("session", "which conversation this is"),
    ("name", "give the conversation a name: /name [TEXT]"),
    ("label", "mark a message, as /tree shows it: /label ENTRY [TEXT]"),
    ("new", "begin another conversation"),
    ("resume", "go on with an earlier conversation: /resume SESSION; /resume lists them"),
    ("compact", "put a summary in place of what was said long ago: /compact [WHAT MATTERS]"),
    ("undo", "take back what the last run did to files"),
    ("tree", "the messages; /tree ENTRY goes back there, /tree ENTRY summary takes along what was learned"),
    ("fork", "go on in a conversation of its own: /fork [ENTRY]"),
];

/// The names, which no template can have.
pub fn names() -> Vec<&'static str> {
    COMMANDS.map(|(name, _)| name).to_vec()
}

/// What is said to a command that nobody knows. A path, or a sentence that begins with a slash, is none.
pub fn unknown(agent: &Agent, text: &str) -> Option<String> {
    let name = text.strip_prefix('/')?.split(char::is_whitespace).next().unwrap_or_default();
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':'));
    if !is_name || name == "later" || agent.commands().contains_key(name) || agent.expansions().known(name) {
        return None;
    }
    let meant = agent.expansions().nearest(name, &names());
    let meant: Vec<String> = meant.iter().map(|name| format!("/{name}")).collect();
    Some(format!("there is no command /{name}{}; /help lists them", did_you_mean(&meant)))
}

/// The command that a text calls, if it calls one: its name, its arguments, and the command itself.
pub fn called<'a>(agent: &Agent, text: &'a str) -> Option<(&'a str, &'a str, Command)> {
    let rest = text.strip_prefix('/')?;
    let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let command = agent.commands().remove(name)?;
    Some((name, arguments.trim(), command))
}

/// Registers the commands. What comes back becomes true when the person wants to leave.
pub fn register(opened: &Arc<Opened>) -> Arc<AtomicBool> {
    let ended = Arc::new(AtomicBool::new(false));
    let agent = &opened.agent;
    for (name, description) in COMMANDS.into_iter().filter(|(name, _)| *name != "later") {
        let (opened, ended) = (Arc::downgrade(opened), ended.clone());
        agent.command(name, description, move |arguments, agent| {
            let (opened, ended) = (opened.upgrade(), ended.clone());
            async move {
                let Some(opened) = opened else { return Ok(None) };
                run(name, &arguments, &opened, &agent, &ended).await
            }
        });
    }
    ended
}

async fn run(
    name: &str,
    arguments: &str,
    opened: &Opened,
    agent: &Agent,
    ended: &AtomicBool,
) -> Result<Option<String>, String> {
    Ok(Some(match name {
        "help" => help(agent),
        "quit" => {
            ended.store(true, Ordering::Relaxed);
            agent.abort();
            return Ok(None);
        }
        "model" => model(arguments, opened, agent).await?,
        "thinking" => thinking(arguments, agent).await?,
        "context" => match agent.breakdown() {
            Some(breakdown) => views::context(&breakdown, &agent.target().provider),
            None => "nothing has been sent yet".into(),
        },
        "cache" => match agent.warmth() {
            Some(warmth) => show::countdown(&warmth),
            None => "nothing is known of a cache yet".into(),
        },
        "hud" => show::hud(agent).unwrap_or_else(|| "nothing has been sent yet".into()),
        "why" => price::why(agent),
        "price" => price::price(arguments, opened, agent)?,
        "open" => open_file(arguments, opened, agent)?,
        "close" => {
            let told = price::closing(arguments, opened, agent);
            if !opened.around.close(&at_home(arguments)) {
                return Err(format!("{arguments} is not open; `/open` without a name lists what is"));
            }
            with_price(&format!("{arguments} is closed."), told)
        }
        "queue" => queue(agent),
        "unqueue" => {
            let dropped = agent.unqueue().await;
            if dropped.is_empty() {
                return Ok(Some("nothing waited".into()));
            }
            let texts =
                dropped.steering.iter().chain(&dropped.follow_up).map(|accepted| accepted.typed.clone());
            format!("dropped:\n{}", texts.collect::<Vec<_>>().join("\n"))
        }
        "session" => {
            let (id, path) = agent.session();
            let usage = agent.token_usage();
            let messages = counted(agent.messages().len(), "message");
            let requests = counted(usize::try_from(usage.requests).unwrap_or(usize::MAX), "request");
            format!("{id} · {messages} · {requests} · {}", path.display())
        }
        "name" => {
            let asked = if arguments.is_empty() {
                agent.input("What is this conversation called?").await
            } else {
                None
            };
            let arguments = asked.as_deref().unwrap_or(arguments);
            if arguments.is_empty() {
                return Err("it needs a name: /name TEXT".into());
            }
            agent.rename(arguments).await.map_err(|error| error.to_string())?;
            format!("this conversation is called {arguments}")
        }
        "label" => {
            let (entry, text) = arguments.split_once(' ').unwrap_or((arguments, ""));
            if entry.is_empty() {
                return Err("it needs a message: /label ENTRY TEXT; /tree names them".into());
            }
            let text = Some(text.trim()).filter(|text| !text.is_empty());
            agent.label(entry, text).await.map_err(|error| error.to_string())?;
            text.map_or_else(|| format!("{entry} has no label"), |text| format!("{entry} is labelled {text}"))
        }
        "resume" if arguments.is_empty() => conversations(opened, agent),
        "resume" => {
            let found =
                opened.store.find(Some(&opened.folder), arguments).map_err(|error| error.to_string())?;
            if found.id == agent.session().0 {
                return Err("this is that conversation".into());
            }
            let conversation = Conversation::resume(&found.path, None)?;
            let messages = counted(conversation.messages.len(), "message");
            opened.turn_to(conversation, Switch::Other).await;
            let last =
                show::last_exchange(&agent.messages()).map_or_else(String::new, |last| format!("\n{last}"));
            format!("{} goes on, with {messages}{last}", found.id)
        }
        "new" => {
            let conversation =
                open::begin(&opened.store, &opened.folder).map_err(|error| format!("{error:#}"))?;
            opened.turn_to(conversation, Switch::Other).await;
            "a new conversation".into()
        }
        "compact" => {
            let compacted = agent.compact(Some(arguments.to_owned()).filter(|text| !text.is_empty())).await;
            let compacted = compacted.map_err(|error| error.to_string())?;
            let messages = counted(compacted.messages, "message");
            format!("{messages} became a summary:\n\n{}", compacted.summary)
        }
        "undo" => {
            // Half of what a run does is not what it did.
            agent.idle().await;
            undo(opened)?
        }
        "tree" if arguments.is_empty() => tree(agent)?,
        "tree" => {
            let (entry, leave) = match arguments.split_once(' ') {
                Some((entry, "summary")) => (entry, Leave::WithSummary),
                Some(_) => return Err("expected /tree ENTRY, or /tree ENTRY summary".into()),
                None => (arguments, Leave::Silently),
            };
            agent.go_to(entry, leave).await.map_err(|error| error.to_string())?;
            format!("back at {entry}; what came after it is still in the session")
        }
        "fork" => fork(arguments, opened, agent).await?,
        _ => return Err("it is not known".into()),
    }))
}

fn help(agent: &Agent) -> String {
    let commands = COMMANDS.iter().map(|(name, what)| format!("  /{name:<10} {what}"));
    let own = agent.expansions().names();
    let own = own.iter().map(|known| format!("  /{:<10} {}", known.name, known.description));
    let typing = "  @path       add a file, or attach an image; lines typed while the agent works are queued; Ctrl-C stops it";
    let running =
        "  !COMMAND    run a command and show it to the model; !!COMMAND runs it for yourself alone";
    let keys =
        "  Up, Down    earlier lines; Alt-Enter begins a line within the prompt; pasted lines are one prompt";
    commands.chain(own).chain([typing, running, keys].map(str::to_owned)).collect::<Vec<_>>().join("\n")
}

async fn model(name: &str, opened: &Opened, agent: &Agent) -> Result<String, String> {
    let target = agent.target();
    if name.is_empty() {
        return Ok(format!(
            "{} ({} tokens); /model NAME chooses another",
            target.model.name(),
            thousands(target.model.context as usize)
        ));
    }
    let whom = crate::args::Whom { model: Some(name.to_owned()), ..Default::default() };
    let target = gather::target(&whom, &opened.settings, None).map_err(|error| format!("{error:#}"))?;
    let chosen = target.model.name();
    let told = price::of(agent, Act::SwitchModel { model: &target.model, wire: &target.wire });
    agent.select_model(target).await.map_err(|error| error.to_string())?;
    Ok(with_price(&format!("{chosen} answers from now on."), told))
}

async fn thinking(level: &str, agent: &Agent) -> Result<String, String> {
    let thinking = match (level, level.parse()) {
        ("", _) => {
            return Ok(match agent.thinking() {
                Thinking::Off => "off".into(),
                Thinking::Budget(tokens) => format!("at most {tokens} tokens"),
            });
        }
        ("off" | "0", _) => Thinking::Off,
        (_, Ok(tokens)) => Thinking::Budget(tokens),
        (_, Err(_)) => return Err("expected a number of tokens, or off".into()),
    };
    agent.target().check_thinking(thinking).map_err(|error| error.to_string())?;
    let told = if thinking == agent.thinking() { None } else { price::of(agent, Act::Thinking) };
    agent.select_thinking(thinking).await.map_err(|error| error.to_string())?;
    Ok(with_price("From the next request on.", told))
}

/// What was done, and what that costs.
fn with_price(done: &str, told: Option<String>) -> String {
    told.map_or_else(|| done.to_owned(), |told| format!("{done} {told}"))
}

fn open_file(name: &str, opened: &Opened, agent: &Agent) -> Result<String, String> {
    if name.is_empty() {
        let files = opened.around.keep().files;
        let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
        return Ok(if names.is_empty() { "no file is open".into() } else { names.join("\n") });
    }
    match attach::look(name, &opened.scope, Source::Typed) {
        Err(why) => Err(format!("{name}: {why}")),
        Ok(Found::Image(_)) => {
            Err(format!("{name} is an image: name it in the prompt that asks about it, @{name}"))
        }
        Ok(Found::Text { path, .. }) => {
            let told = price::opening(&path.to_string_lossy(), opened, agent);
            opened.around.open(path);
            Ok(with_price(&format!("{name} is part of the context from the next prompt on."), told))
        }
    }
}

fn queue(agent: &Agent) -> String {
    let waiting = agent.waiting();
    let steering = waiting.steering.iter().map(|accepted| format!("  next: {}", accepted.typed));
    let later = waiting.follow_up.iter().map(|accepted| format!("  later: {}", accepted.typed));
    let lines: Vec<String> = steering.chain(later).collect();
    if lines.is_empty() { "nothing waits".into() } else { lines.join("\n") }
}

fn undo(opened: &Opened) -> Result<String, String> {
    let journal = opened.hands.journal.as_ref().ok_or("no changes were recorded")?;
    let turn = journal.last_turn().ok_or("there is nothing to take back")?;
    let undone = journal.undo(turn).map_err(|error| error.to_string())?;
    let line = |undone: &Undone| {
        let how = match &undone.how {
            How::Restored => "as it was before".to_owned(),
            How::Removed => "removed again".to_owned(),
            How::Unchanged => "was as before already".to_owned(),
            How::ChangedSince => "changed since, so it was left alone".to_owned(),
            How::Failed(why) => format!("could not be taken back: {why}"),
        };
        format!("{}: {how}", undone.path.display())
    };
    tell_undone(opened, &undone);
    Ok(undone.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// The model believes in what it wrote: with the next prompt it is told that this is gone.
fn tell_undone(opened: &Opened, undone: &[Undone]) {
    let taken_back = undone.iter().filter(|undone| matches!(undone.how, How::Restored | How::Removed));
    let root = hardpan_workspace::root_of(&opened.folder);
    let paths: Vec<String> =
        taken_back.map(|undone| hardpan_workspace::display_path(&root, &undone.path)).collect();
    if paths.is_empty() {
        return;
    }
    let text = fill(&opened.settings.texts.phrases.agent.undone, &[("files", &paths.join(", "))]);
    opened.agent.with_next_prompt(CustomMessage {
        custom_type: "hardpan.undone".into(),
        content: vec![Part::text(text)],
        display: false,
    });
}

/// `1 message`, `2 messages`.
pub fn counted(count: usize, what: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {what}{ending}", thousands(count))
}

/// The conversations of this folder, the last one first.
fn conversations(opened: &Opened, agent: &Agent) -> String {
    let (here, _) = agent.session();
    let mut sessions = opened.store.list(Some(&opened.folder));
    sessions.retain(|session| session.id != here);
    if sessions.is_empty() {
        return "there is no other conversation of this folder; `hardpan sessions --all` lists all".into();
    }
    let mut table = Table::new(&[("id", Align::Left), ("messages", Align::Right), ("about", Align::Left)]);
    for session in &sessions {
        let about = session.name.as_deref().or(session.first_prompt.as_deref()).unwrap_or_default();
        table.row([session.id.to_string(), session.messages.to_string(), about.to_owned()]);
    }
    format!("{}/resume SESSION goes on with one of them", table.render(views::width()))
}

/// The session as its file has it, which is made with the first entry.
pub fn stored(agent: &Agent) -> Result<Session, String> {
    let (_, path) = agent.session();
    if !path.exists() {
        return Err("nothing was said yet".into());
    }
    Session::open(&path).map_err(|error| error.to_string())
}

fn tree(agent: &Agent) -> Result<String, String> {
    let session = stored(agent)?;
    let labels = session.labels();
    let lines = session.entries.iter().filter_map(|entry| {
        let Record::Message(message) = &entry.record else { return None };
        let (who, parts) = match &*message.body {
            Body::User { content } => ("you", content),
            Body::Assistant { content, .. } => ("model", content),
            _ => return None,
        };
        let text: String = parts
            .iter()
            .filter_map(|part| if let Part::Text { text } = part { Some(text.as_str()) } else { None })
            .collect();
        let label = labels.get(&*entry.id).map_or_else(String::new, |label| format!("[{label}] "));
        Some(cut(&format!("{:>6}  {who:<5}  {label}{}", entry.id, text.replace('\n', " ")), views::width()))
    });
    let lines: Vec<String> = lines.collect();
    Ok(if lines.is_empty() { "nothing was said yet".into() } else { lines.join("\n") })
}

async fn fork(entry: &str, opened: &Opened, agent: &Agent) -> Result<String, String> {
    let session = stored(agent)?;
    let at = Some(entry).filter(|entry| !entry.is_empty());
    let conversation =
        open::fork(&opened.store, &opened.folder, &session, at).map_err(|error| format!("{error:#}"))?;
    let messages = counted(conversation.messages.len(), "message");
    opened.turn_to(conversation, Switch::Fork { entry: at.map(Into::into) }).await;
    let (id, _) = agent.session();
    Ok(format!("a conversation of its own, {id}, with {messages}; the one before is as it was"))
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_is_not_many() {
        assert_eq!(
            [0, 1, 1000].map(|count| counted(count, "message")),
            ["0 messages", "1 message", "1,000 messages"]
        );
    }
}
