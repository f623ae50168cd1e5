//! Who does what with a request, and in which order.
//!
//! Inputs (prompt, steer, follow_up, abort) take effect in the order in which they came: each begins once the one before has its
//! response. Everything else is answered at once; what takes its time (bash, compact) does so beside the rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hardpan_agent::{
    Agent, AgentError, Conversation, Delivery, Input, InputSource, Switch, Taken as AgentTaken, Tell,
};
use hardpan_prompt::{Image, Thinking};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::input::{LONGEST, Typed};
use super::questions::{Answer, Questions};
use super::reply::{Out, Reply, Settled};
use super::request::{Command, Level, Refused, Remember, Request, YesOrNo};
use super::response::{Data, Model, Taken};
use super::tell;
use crate::args::Whom;
use crate::chat::approve::Verdict;
use crate::chat::attach::Source;
use crate::chat::commands;
use crate::chat::open::{self, Opened};
use crate::gather;
use crate::output::safe;
use crate::state::State;

tokio::task_local! {
    /// The input that the task works on: whatever happens in a run happens within it.
    static SAID: Arc<Said>;
}

/// Something that was said, until it is dealt with.
struct Said {
    reply: Reply,
    work: UnderWay,
}

/// Work that others have to wait for. It is over once.
struct UnderWay {
    count: Arc<AtomicUsize>,
    over: AtomicBool,
}

impl UnderWay {
    fn begin(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        UnderWay { count: count.clone(), over: AtomicBool::new(false) }
    }

    fn end(&self) {
        if !self.over.swap(true, Ordering::SeqCst) {
            self.count.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.end();
    }
}

/// Writes every event, and the response to an input right after the event that tells that it is stored.
pub fn follow(agent: &Agent, out: &Out) {
    let out = out.clone();
    agent.events().watch(move |event| {
        let kind = event["type"].as_str().unwrap_or_default();
        if kind == "agent_end" {
            // Before it is written: whoever reads it may send the next prompt.
            let _ = SAID.try_with(|said| said.work.end());
        }
        out.line(event);
        if kind == "message_end" && event["message"]["role"] == "user" {
            let message_id = event["message"]["id"].as_str().unwrap_or_default().to_owned();
            let _ = SAID.try_with(|said| said.reply.done(Data::Taken(Taken::Started { message_id })));
        }
    });
}

/// Takes requests.
pub struct Desk {
    opened: Arc<Opened>,
    out: Out,
    questions: Arc<Questions>,
    /// What was said and is not dealt with to its end.
    inputs: JoinSet<()>,
    /// What takes its time beside that.
    others: JoinSet<()>,
    under_way: Arc<AtomicUsize>,
    /// The last input.
    last: Settled,
}

impl Desk {
    pub fn new(opened: &Arc<Opened>, out: &Out, questions: &Arc<Questions>) -> Self {
        Desk {
            opened: opened.clone(),
            out: out.clone(),
            questions: questions.clone(),
            inputs: JoinSet::new(),
            others: JoinSet::new(),
            under_way: Arc::default(),
            last: Settled::default(),
        }
    }

    /// Works until there is nothing more to read, and what was asked for is done; or until a command wants to leave.
    pub async fn work(&mut self, lines: &mut mpsc::Receiver<Typed>, leaving: &AtomicBool) {
        while !leaving.load(Ordering::Relaxed) {
            tokio::select! {
                typed = lines.recv() => match typed {
                    Some(typed) => self.take(typed).await,
                    None => break,
                },
                Some(_) = self.inputs.join_next() => {}
                Some(_) = self.others.join_next() => {}
            }
        }
        self.questions.close();
        if !leaving.load(Ordering::Relaxed) {
            while self.inputs.join_next().await.is_some() {}
            while self.others.join_next().await.is_some() {}
        }
    }

    async fn take(&mut self, typed: Typed) {
        let refused = |error: String| Err(Refused { id: Value::Null, command: None, error });
        let parsed = match typed {
            Typed::Line(line) => Request::parse(&line),
            Typed::TooLong => {
                refused(format!("the line is longer than {} MB and was passed over", LONGEST >> 20))
            }
            Typed::NotUtf8 => refused("the line is not UTF-8".into()),
        };
        match parsed {
            Ok((name, Request { id, command })) => {
                let (reply, settled) = Reply::new(&self.out, id.clone(), Some(name));
                self.run(command, &id, reply, settled).await;
            }
            Err(Refused { id, command, error }) => Reply::new(&self.out, id, command).0.failed(&error),
        }
    }

    async fn run(&mut self, command: Command, id: &Value, reply: Reply, settled: Settled) {
        let agent = self.opened.agent.clone();
        let done: Result<Option<Data>, String> = match command {
            Command::Prompt { message, images, when_busy } => {
                return self.say(message, images, when_busy.map(Into::into), reply, settled);
            }
            Command::Steer { message, images } => {
                return self.say(message, images, Some(Delivery::Steer), reply, settled);
            }
            Command::FollowUp { message, images } => {
                return self.say(message, images, Some(Delivery::FollowUp), reply, settled);
            }
            Command::Abort {} => return self.abort(reply, settled),
            Command::Compact { instructions } => return self.compact(instructions, reply).await,
            Command::Bash { command, exclude_from_context } => {
                let tell = if exclude_from_context { Tell::Nobody } else { Tell::Model };
                return self.bash(command, tell, reply);
            }
            Command::AbortBash {} => {
                agent.abort_bash();
                Ok(None)
            }
            Command::GetState {} => Ok(Some(tell::state(&self.opened, self.is_busy()))),
            Command::GetMessages {} => Ok(Some(Data::Messages { messages: agent.messages() })),
            Command::SetModel { model, provider } => self.set_model(model, provider).await,
            Command::SetThinkingLevel { level } => set_thinking(&agent, level).await,
            Command::NewSession {} => self.new_session().await,
            Command::SwitchSession { session } => self.switch_session(&session).await,
            Command::Fork { entry } => self.fork(entry.as_deref()).await,
            Command::GetContext {} => Ok(Some(tell::context(&agent))),
            Command::GetSessionStats {} => Ok(Some(tell::stats(&self.opened))),
            Command::GetCommands {} => Ok(Some(tell::commands(&agent))),
            Command::ApprovalResponse { verdict, reason, remember } => self
                .questions
                .answer(id.as_str(), Answer::Verdict(judged(verdict, reason, remember)))
                .map(|()| None),
            Command::InputResponse { value } => {
                self.questions.answer(id.as_str(), Answer::Text(value)).map(|()| None)
            }
        };
        match done {
            Ok(data) => reply.done(data),
            Err(error) => reply.failed(&error),
        }
    }

    fn is_busy(&self) -> bool {
        self.under_way.load(Ordering::SeqCst) > 0
    }

    /// Says something to the agent. Without a delivery it is refused while the agent works, unless it is a command.
    fn say(
        &mut self,
        text: String,
        images: Vec<Image>,
        delivery: Option<Delivery>,
        reply: Reply,
        settled: Settled,
    ) {
        let (opened, agent) = (self.opened.clone(), self.opened.agent.clone());
        let is_command = is_command(&agent, &text);
        if delivery.is_none() && !is_command && self.is_busy() {
            return reply.failed(&AgentError::Busy);
        }
        let input = match input(&opened, text, images) {
            Ok(input) => input,
            Err(error) => return reply.failed(&error),
        };
        if is_command {
            self.others.spawn(async move { answer(&reply, agent.prompt(input).await) });
            return;
        }
        let before = std::mem::replace(&mut self.last, settled);
        let was_idle = !self.is_busy();
        let said = Arc::new(Said { reply, work: UnderWay::begin(&self.under_way) });
        self.inputs.spawn(async move {
            before.wait().await;
            if was_idle {
                // The end of the run before was told and may not be over: what is said now is not for its queues, where it would
                // stay if that run was stopped.
                agent.idle().await;
            }
            // Idle, the agent begins a run whatever the delivery.
            let working = agent.queue(input, delivery.unwrap_or(Delivery::Steer));
            let taken = SAID.scope(said.clone(), working).await;
            let ran = matches!(taken, Ok(AgentTaken::Ran(_)));
            // Before the response is written: whoever reads it may send the next prompt.
            said.work.end();
            answer(&said.reply, taken);
            if ran {
                opened.keep().await;
            }
        });
    }

    /// Stops what runs now, and what was asked for before and has not begun.
    fn abort(&mut self, reply: Reply, settled: Settled) {
        let agent = self.opened.agent.clone();
        agent.abort();
        let before = std::mem::replace(&mut self.last, settled);
        self.others.spawn(async move {
            before.wait().await;
            agent.abort();
            reply.done(None);
        });
    }

    /// Waits until the agent is idle, which it is about to be; or says that it is not.
    async fn idle(&mut self) -> Result<(), String> {
        if self.is_busy() {
            return Err(AgentError::Busy.to_string());
        }
        // Runs that have ended still keep what they learned.
        while self.inputs.join_next().await.is_some() {}
        Ok(())
    }

    async fn compact(&mut self, instructions: Option<String>, reply: Reply) {
        if let Err(error) = self.idle().await {
            return reply.failed(&error);
        }
        let (agent, work) = (self.opened.agent.clone(), UnderWay::begin(&self.under_way));
        self.others.spawn(async move {
            let compacted = agent.compact(instructions).await;
            drop(work);
            match compacted {
                Ok(compacted) => reply.done(tell::compacted(compacted)),
                Err(error) => reply.failed(&error),
            }
        });
    }

    fn bash(&mut self, command: String, tell: Tell, reply: Reply) {
        let agent = self.opened.agent.clone();
        self.others.spawn(async move {
            match agent.bash(command, tell).await {
                Ok(message) => reply.done(Data::Bash { message: Box::new(message) }),
                Err(error) => reply.failed(&error),
            }
        });
    }

    async fn set_model(&self, model: String, provider: Option<String>) -> Result<Option<Data>, String> {
        let whom = Whom { model: Some(model), provider, ..Whom::default() };
        let mut target =
            gather::target(&whom, &self.opened.settings, None).map_err(|error| format!("{error:#}"))?;
        gather::use_learned(&mut target, &State::load());
        let data = Data::Model(Model::from(&target));
        self.opened.agent.select_model(target).await.map_err(|error| error.to_string())?;
        Ok(Some(data))
    }

    async fn new_session(&mut self) -> Result<Option<Data>, String> {
        self.idle().await?;
        let opened = &self.opened;
        let conversation =
            open::begin(&opened.store, &opened.folder).map_err(|error| format!("{error:#}"))?;
        opened.turn_to(conversation, Switch::Other).await;
        Ok(Some(Data::Session(tell::session(opened))))
    }

    async fn switch_session(&mut self, name: &str) -> Result<Option<Data>, String> {
        self.idle().await?;
        let opened = self.opened.clone();
        let summary = opened.store.find(Some(&opened.folder), name).map_err(|error| error.to_string())?;
        if summary.path == opened.agent.session().1 {
            return Ok(Some(Data::Session(tell::session(&opened))));
        }
        let conversation = Conversation::resume(&summary.path, None)?;
        for problem in &conversation.problems {
            eprintln!("hardpan: {}: {}", summary.path.display(), safe(&problem.to_string()));
        }
        let (model, thinking) = (conversation.model.clone(), conversation.thinking.clone());
        opened.turn_to(conversation, Switch::Other).await;
        // It goes on with the model that it had, as with --resume.
        let target = opened.agent.target();
        if let Some((provider, model)) = model
            && (&*provider, &*model) != (target.provider.as_str(), target.model.id.as_str())
        {
            self.set_model(model.to_string(), Some(provider.to_string())).await?;
        }
        let thinking = thinking.and_then(|level| level.parse().ok()).map_or(Thinking::Off, Thinking::Budget);
        if thinking != opened.agent.thinking() {
            opened.agent.select_thinking(thinking).await.map_err(|error| error.to_string())?;
        }
        Ok(Some(Data::Session(tell::session(&opened))))
    }

    async fn fork(&mut self, entry: Option<&str>) -> Result<Option<Data>, String> {
        self.idle().await?;
        let opened = &self.opened;
        let session = commands::stored(&opened.agent)?;
        let forked = open::fork(&opened.store, &opened.folder, &session, entry);
        let conversation = forked.map_err(|error| format!("{error:#}"))?;
        opened.turn_to(conversation, Switch::Fork { entry: entry.map(Into::into) }).await;
        Ok(Some(Data::Session(tell::session(opened))))
    }
}

async fn set_thinking(agent: &Agent, level: Level) -> Result<Option<Data>, String> {
    let thinking: Thinking = level.into();
    agent.target().check_thinking(thinking).map_err(|error| error.to_string())?;
    agent.select_thinking(thinking).await.map_err(|error| error.to_string())?;
    Ok(Some(Data::Thinking { thinking: agent.thinking().into() }))
}

/// What an answer means.
fn judged(verdict: YesOrNo, reason: Option<String>, remember: Option<Remember>) -> Verdict {
    match (verdict, remember) {
        (YesOrNo::Yes, None) => Verdict::Once,
        (YesOrNo::Yes, Some(Remember::Session)) => Verdict::Session,
        (YesOrNo::Yes, Some(Remember::Always)) => Verdict::Always,
        (YesOrNo::No, _) => Verdict::No(
            reason.map_or("the person said no".into(), |reason| format!("the person said no: {reason}")),
        ),
    }
}

/// The response to an input that has none yet.
fn answer(reply: &Reply, taken: Result<AgentTaken, AgentError>) {
    match taken {
        Ok(AgentTaken::Queued(delivery)) => {
            reply.done(Data::Taken(Taken::Queued { delivery: delivery.into() }));
        }
        Ok(AgentTaken::Command { said }) => reply.done(Data::Taken(Taken::Command { said })),
        Ok(AgentTaken::Handled) => reply.done(Data::Taken(Taken::Handled {})),
        // It has one, from the moment when its message was stored.
        Ok(AgentTaken::Ran(_)) => {}
        Err(error) => reply.failed(&error),
    }
}

/// Whether a text calls a command, which runs at once, also while the agent works.
fn is_command(agent: &Agent, text: &str) -> bool {
    let name = text.strip_prefix('/').map(|rest| rest.split(char::is_whitespace).next().unwrap_or_default());
    name.is_some_and(|name| agent.commands().contains_key(name))
}

/// An input with the images that were sent and those that it names.
fn input(opened: &Opened, text: String, images: Vec<Image>) -> Result<Input, String> {
    for image in &images {
        image.check_data().and_then(|()| image.check()).map_err(|error| error.to_string())?;
    }
    let images = images.into_iter().chain(opened.attach(&text, Source::Typed)).collect();
    Ok(Input { text, below: None, images, source: InputSource::Rpc })
}
