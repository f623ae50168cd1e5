//! The queues: inputs that wait while a run is in progress.

use std::collections::VecDeque;

use hardpan_prompt::{Image, MessageBody, MessagePart};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::events::CustomMessage;
use crate::run_status::Activity;

/// How many queued inputs are delivered at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueMode {
    /// One input, then the model answers.
    #[default]
    OneAtATime,
    /// Everything in the queue.
    All,
}

/// A face's own number for an input. The events of the message that the input becomes carry it, so
/// that the face can tell which run is the answer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InputId(pub u64);

/// An input after slash commands, the input event and expansion: ready to become a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct PreparedInput {
    /// The text that goes to the model.
    pub text: String,
    /// The text as typed, before expansion: shown in queue lists.
    pub typed: String,
    /// Images that are sent after the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// The number that its face gave it.
    #[serde(skip)]
    pub id: Option<InputId>,
    /// The message of an extension that it is, instead of an input. Lists of what is queued leave
    /// it out.
    #[serde(skip)]
    pub custom: Option<CustomMessage>,
}

impl PreparedInput {
    /// The message that it becomes, and what is only stored with that.
    pub(crate) fn message(&self) -> (MessageBody, Option<Value>) {
        match &self.custom {
            Some(custom) => custom.clone().into_parts(),
            None => (MessageBody::User { content: self.parts() }, None),
        }
    }

    /// The content of the user message: the text, then the images.
    pub fn parts(&self) -> Vec<MessagePart> {
        let text =
            Some(&self.text).filter(|text| !text.is_empty()).map(|text| MessagePart::text(text.as_str()));
        text.into_iter().chain(self.images.iter().cloned().map(MessagePart::Image)).collect()
    }
}

/// The contents of both queues.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "QueueContents")]
pub struct QueuedInputs {
    /// Delivered after the running tool ends, before the next request.
    pub steering: Vec<PreparedInput>,
    /// Delivered when the model has nothing more to do.
    pub follow_up: Vec<PreparedInput>,
}

impl QueuedInputs {
    /// Whether both queues are empty.
    pub fn is_empty(&self) -> bool {
        self.steering.is_empty() && self.follow_up.is_empty()
    }
}

/// Both queues.
#[derive(Debug, Default)]
pub(crate) struct InputQueues {
    steering: VecDeque<PreparedInput>,
    follow_up: VecDeque<PreparedInput>,
    /// Inputs that were sent after the run had been stopped: they begin the next one.
    after_stop: VecDeque<PreparedInput>,
    /// Inputs that arrived while `agent_end` was emitted.
    next: VecDeque<PreparedInput>,
}

/// When an input that is queued during a run is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// As soon as the running tool has ended; the remaining calls of the answer are skipped.
    Steer,
    /// When the model has nothing more to do.
    FollowUp,
}

impl InputQueues {
    /// Queues an input for the run that is the agent's activity. If no run is there to deliver it,
    /// the input is given back as the error.
    pub fn add(
        &mut self,
        activity: Activity,
        delivery: Delivery,
        prepared: PreparedInput,
    ) -> Result<(), PreparedInput> {
        match activity {
            Activity::Running => self.queue_mut(delivery).push_back(prepared),
            Activity::Ending => self.next.push_back(prepared),
            _ => return Err(prepared),
        }
        Ok(())
    }

    /// The same for an input that was sent after the run had been stopped. It does not wait for another
    /// prompt: it is that prompt.
    pub fn add_after_stop(
        &mut self,
        activity: Activity,
        prepared: PreparedInput,
    ) -> Result<(), PreparedInput> {
        match activity {
            Activity::Running | Activity::Ending => self.after_stop.push_back(prepared),
            _ => return Err(prepared),
        }
        Ok(())
    }

    /// Keeps a message for the next run, whoever begins that.
    pub fn hold(&mut self, prepared: PreparedInput) {
        self.follow_up.push_back(prepared);
    }

    /// Whether no input waits for the run that is in progress.
    pub fn is_empty(&self) -> bool {
        self.steering.is_empty() && self.follow_up.is_empty()
    }

    /// Called after `agent_end` was emitted: returns the input that starts the next run, if one
    /// arrived meanwhile.
    pub fn next_after_end(&mut self) -> Option<PreparedInput> {
        self.after_stop.pop_front().or_else(|| self.next.pop_front())
    }

    /// Called after the end of an aborted run: inputs that arrived meanwhile become follow-ups.
    pub fn after_abort(&mut self) {
        self.follow_up.append(&mut self.next);
    }

    /// Takes the next input, or all of them, from a queue.
    pub fn take(&mut self, delivery: Delivery, mode: QueueMode) -> Vec<PreparedInput> {
        let queue = self.queue_mut(delivery);
        match mode {
            QueueMode::OneAtATime => queue.pop_front().into_iter().collect(),
            QueueMode::All => queue.drain(..).collect(),
        }
    }

    pub fn has_steering(&self) -> bool {
        !self.steering.is_empty()
    }

    /// A copy of the inputs in both queues.
    pub fn queued_inputs(&self) -> QueuedInputs {
        let inputs = |prepared: &&PreparedInput| prepared.custom.is_none();
        QueuedInputs {
            steering: self.steering.iter().filter(inputs).cloned().collect(),
            follow_up: self
                .follow_up
                .iter()
                .chain(&self.after_stop)
                .chain(&self.next)
                .filter(inputs)
                .cloned()
                .collect(),
        }
    }

    /// Takes the inputs out of both queues. Messages of extensions stay: nobody could type them again.
    pub fn clear(&mut self) -> QueuedInputs {
        let waiting = self.queued_inputs();
        for queue in [&mut self.steering, &mut self.follow_up, &mut self.after_stop, &mut self.next] {
            queue.retain(|prepared| prepared.custom.is_some());
        }
        waiting
    }

    fn queue_mut(&mut self, delivery: Delivery) -> &mut VecDeque<PreparedInput> {
        match delivery {
            Delivery::Steer => &mut self.steering,
            Delivery::FollowUp => &mut self.follow_up,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> PreparedInput {
        PreparedInput { text: text.into(), typed: text.into(), ..PreparedInput::default() }
    }

    #[test]
    fn a_queue_gives_one_at_a_time_or_all() {
        let mut queues = InputQueues::default();
        for activity in [Activity::Idle, Activity::Compacting, Activity::Finishing] {
            assert_eq!(queues.add(activity, Delivery::Steer, typed("early")), Err(typed("early")));
        }
        for text in ["a", "b", "c"] {
            queues.add(Activity::Running, Delivery::Steer, typed(text)).unwrap();
        }
        assert_eq!(queues.take(Delivery::Steer, QueueMode::OneAtATime), [typed("a")]);
        assert_eq!(queues.take(Delivery::Steer, QueueMode::All), [typed("b"), typed("c")]);
        assert!(queues.take(Delivery::Steer, QueueMode::OneAtATime).is_empty());
        assert!(queues.queued_inputs().is_empty());
    }
}
