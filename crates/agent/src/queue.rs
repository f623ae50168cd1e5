//! What was said while the agent worked.

use std::collections::VecDeque;

use hardpan_prompt::{Image, Part};
use serde::{Deserialize, Serialize};

/// How much of a queue is delivered at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueMode {
    /// One message, then the model answers.
    #[default]
    OneAtATime,
    /// All that waits.
    All,
}

/// Something typed, after commands, the input event and expansion: ready to become a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Accepted {
    /// What goes to the model.
    pub text: String,
    /// What the person typed.
    pub typed: String,
    /// Images that go with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

impl Accepted {
    /// The parts of the message.
    pub fn parts(&self) -> Vec<Part> {
        let text = Some(&self.text).filter(|text| !text.is_empty()).map(|text| Part::text(text.as_str()));
        text.into_iter().chain(self.images.iter().cloned().map(Part::Image)).collect()
    }
}

/// What waits, as people see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Waiting {
    /// Delivered after the tool that runs, before the next request.
    pub steering: Vec<Accepted>,
    /// Delivered when the model has nothing more to do.
    pub follow_up: Vec<Accepted>,
}

impl Waiting {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.steering.is_empty() && self.follow_up.is_empty()
    }
}

/// Whether a run is there to take from the queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Run {
    #[default]
    None,
    /// It takes from them.
    Works,
    /// It tells that it is over. Whoever is told may have something to say: that is for the run after it.
    Ends,
}

/// Both queues.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    run: Run,
    steering: VecDeque<Accepted>,
    follow_up: VecDeque<Accepted>,
    /// What was said while the end of a run was told.
    next: VecDeque<Accepted>,
}

/// Which queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// As soon as the tool that runs has ended.
    Steer,
    /// When the model has nothing more to do.
    FollowUp,
}

impl Queues {
    /// Adds to a queue while a run takes from it; afterwards it is given back: nothing is queued for nobody.
    pub fn add(&mut self, delivery: Delivery, accepted: Accepted) -> Result<(), Accepted> {
        match self.run {
            Run::None => return Err(accepted),
            Run::Works => self.of(delivery).push_back(accepted),
            Run::Ends => self.next.push_back(accepted),
        }
        Ok(())
    }

    /// A run begins.
    pub fn open(&mut self) {
        self.run = Run::Works;
    }

    /// A run is over, and tells so; what waits stays.
    pub fn close(&mut self) {
        self.run = Run::Ends;
    }

    /// A run has nothing more to do: it is over unless something waits.
    pub fn close_if_empty(&mut self) -> bool {
        let is_over = self.steering.is_empty() && self.follow_up.is_empty();
        self.run = if is_over { Run::Ends } else { Run::Works };
        is_over
    }

    /// The end of a run was told: what the next one begins with, if something was said meanwhile.
    pub fn after_end(&mut self) -> Option<Accepted> {
        let next = self.next.pop_front();
        if next.is_none() {
            self.run = Run::None;
        }
        next
    }

    /// The end of a run was told that somebody stopped: what was said meanwhile waits with the rest.
    pub fn after_abort(&mut self) {
        self.follow_up.append(&mut self.next);
        self.run = Run::None;
    }

    /// Takes what is due.
    pub fn take(&mut self, delivery: Delivery, mode: QueueMode) -> Vec<Accepted> {
        let queue = self.of(delivery);
        match mode {
            QueueMode::OneAtATime => queue.pop_front().into_iter().collect(),
            QueueMode::All => queue.drain(..).collect(),
        }
    }

    pub fn has_steering(&self) -> bool {
        !self.steering.is_empty()
    }

    /// What waits.
    pub fn waiting(&self) -> Waiting {
        Waiting {
            steering: self.steering.iter().cloned().collect(),
            follow_up: self.follow_up.iter().chain(&self.next).cloned().collect(),
        }
    }

    /// Takes everything out, to be edited or dropped.
    pub fn clear(&mut self) -> Waiting {
        let waiting = self.waiting();
        self.steering.clear();
        self.follow_up.clear();
        self.next.clear();
        waiting
    }

    fn of(&mut self, delivery: Delivery) -> &mut VecDeque<Accepted> {
        match delivery {
            Delivery::Steer => &mut self.steering,
            Delivery::FollowUp => &mut self.follow_up,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Accepted {
        Accepted { text: text.into(), typed: text.into(), images: Vec::new() }
    }

    #[test]
    fn a_queue_gives_one_at_a_time_or_all() {
        let mut queues = Queues::default();
        assert_eq!(queues.add(Delivery::Steer, typed("early")), Err(typed("early")));
        queues.open();
        for text in ["a", "b", "c"] {
            queues.add(Delivery::Steer, typed(text)).unwrap();
        }
        assert_eq!(queues.take(Delivery::Steer, QueueMode::OneAtATime), [typed("a")]);
        assert_eq!(queues.take(Delivery::Steer, QueueMode::All), [typed("b"), typed("c")]);
        assert!(queues.take(Delivery::Steer, QueueMode::OneAtATime).is_empty());
        assert!(queues.waiting().is_empty());
    }
}
