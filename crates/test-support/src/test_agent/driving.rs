//! Prompting, queueing, waiting.

use hardpan_agent::events::MessageUpdate;
use hardpan_agent::{Delivery, Input, InputOutcome, RunEnd};
use hardpan_prompt::Image;
use hardpan_session::Session;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::wait::wait_until;
use crate::{AnswerGate, TestAgent, input};

impl TestAgent {
    /// Prompts, and answers with what became of it.
    pub async fn prompt(&self, text: &str) -> InputOutcome {
        self.agent.prompt(input(text)).await.expect("the prompt is taken")
    }

    /// Prompts, and answers with how the run ended.
    pub async fn run(&self, text: &str) -> RunEnd {
        match self.prompt(text).await {
            InputOutcome::Ran(end) => end,
            other => panic!("no run, but {other:?}"),
        }
    }

    /// Prompts, and asserts that the run ends normally.
    pub async fn say(&self, text: &str) {
        self.show(text, Vec::new()).await;
    }

    /// The same with images.
    pub async fn show(&self, text: &str, images: Vec<Image>) {
        let input = Input { images, ..input(text) };
        let outcome = self.agent.prompt(input).await.expect("the prompt is taken");
        assert_eq!(outcome, InputOutcome::Ran(RunEnd::Done), "{text}");
    }

    /// Starts a prompt in a task.
    pub fn begin(&self, text: &str) -> JoinHandle<InputOutcome> {
        let (agent, input) = (self.agent.clone(), input(text));
        tokio::spawn(async move { agent.prompt(input).await.expect("the prompt is taken") })
    }

    /// Starts a prompt whose answer is held after its first piece, until the gate is released.
    pub async fn begin_and_hold(&self, text: &str) -> (JoinHandle<InputOutcome>, AnswerGate) {
        let gate = AnswerGate::default();
        gate.hold(self, "");
        let running = self.begin(text);
        gate.reached().await;
        (running, gate)
    }

    /// Queues a steering input, which must not begin a run.
    pub async fn steer(&self, text: &str) {
        let outcome = self.agent.queue(input(text), Delivery::Steer).await.expect("it is queued");
        assert_eq!(outcome, InputOutcome::Queued(Delivery::Steer));
    }

    /// Queues a follow-up, which must not begin a run.
    pub async fn follow_up(&self, text: &str) {
        let outcome = self.agent.queue(input(text), Delivery::FollowUp).await.expect("it is queued");
        assert_eq!(outcome, InputOutcome::Queued(Delivery::FollowUp));
    }

    /// Waits until a condition holds.
    pub async fn until(&self, holds: impl Fn() -> bool) {
        assert!(wait_until(holds).await, "it never happened; this did: {:#?}", self.order());
    }

    /// Waits until an event of this type was emitted for the nth time.
    pub async fn until_event(&self, name: &str, nth: usize) {
        self.until(|| self.event_log().count(name) >= nth).await;
    }

    /// Waits until a piece of the streaming answer contains this text, tool name or JSON.
    pub async fn until_heard(&self, piece: &str) {
        let holds = |update: &MessageUpdate| json!(update.delta).to_string().contains(piece);
        self.until(|| self.events_of::<MessageUpdate>().iter().any(holds)).await;
    }

    /// Waits until this many calls of `slow` have ended.
    pub async fn until_slept(&self, calls: usize) {
        self.until(|| self.environment.slow_calls.ended() >= calls).await;
    }

    /// Waits until the session file satisfies the predicate.
    pub async fn until_on_disk(&self, enough: impl Fn(&Session) -> bool) {
        self.until(|| Session::open(&self.session_path()).is_ok_and(|session| enough(&session))).await;
    }
}
