//! What a model has refused, remembered for a while, so that the next request does not run into it again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use hardpan_prompt::{Block, Prompt};
use serde::{Deserialize, Serialize};

use super::Question;
use crate::Failure;

/// How long a refusal is believed: servers and models are changed now and then.
const BELIEVED_MS: i64 = 24 * 60 * 60 * 1000;

/// Something a model does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// Images.
    Images,
    /// Tools.
    Tools,
}

impl Refusal {
    /// What the person is told.
    pub(super) fn footnote(self, model: &str) -> String {
        match self {
            Refusal::Images => {
                format!("{model} does not take images: the request was sent again without them")
            }
            Refusal::Tools => format!("{model} does not take tools: the request was sent again without them"),
        }
    }
}

/// What models have refused, by provider and model, with the time until which that is believed.
#[derive(Debug, Default)]
pub struct Learned(Mutex<BTreeMap<String, BTreeMap<Refusal, i64>>>);

impl Learned {
    /// Reads what [`to_json`](Self::to_json) wrote; anything else is forgotten.
    pub fn from_json(json: &str) -> Self {
        Learned(Mutex::new(serde_json::from_str(json).unwrap_or_default()))
    }

    /// What has been learned, to be kept.
    pub fn to_json(&self) -> String {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        serde_json::to_string(&*known).unwrap_or_default()
    }

    pub(super) fn learn(&self, provider: &str, model: &str, refusal: Refusal, now_ms: i64) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(format!("{provider}/{model}")).or_default().insert(refusal, now_ms + BELIEVED_MS);
    }

    pub(super) fn form(&self, provider: &str, model: &str, now_ms: i64) -> Form {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let refusals = known.get(&format!("{provider}/{model}"));
        let refused =
            |refusal| refusals.and_then(|all| all.get(&refusal)).is_some_and(|until| *until > now_ms);
        Form { without_images: refused(Refusal::Images), without_tools: refused(Refusal::Tools) }
    }
}

/// The form in which a prompt is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    without_images: bool,
    without_tools: bool,
}

impl Form {
    pub(super) fn apply<'a>(&self, question: &Question<'a>) -> Cow<'a, Prompt> {
        let mut prompt = Cow::Borrowed(question.prompt);
        if self.without_images && has_images(&prompt) {
            prompt = Cow::Owned(question.forms.without_images(&prompt));
        }
        if self.without_tools && !prompt.tools.is_empty() {
            prompt = Cow::Owned(question.forms.without_tools(&prompt));
        }
        prompt
    }

    /// What to leave out after a refusal; none if the request did not hold it.
    pub(super) fn downgrade(&mut self, failure: &Failure, prompt: &Prompt) -> Option<Refusal> {
        match failure {
            Failure::ImagesRefused if !self.without_images && has_images(prompt) => {
                self.without_images = true;
                Some(Refusal::Images)
            }
            Failure::ToolsRefused if !self.without_tools && !prompt.tools.is_empty() => {
                self.without_tools = true;
                Some(Refusal::Tools)
            }
            _ => None,
        }
    }
}

fn has_images(prompt: &Prompt) -> bool {
    prompt.blocks().any(Block::has_image)
}
