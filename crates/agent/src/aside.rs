//! [`Agent::ask_aside`]: a request on behalf of somebody else, such as a server, that has nothing to do
//! with the conversation. It is billed to the conversation under the name of whoever asked.

use hardpan_context::Target;
use hardpan_models::ThinkingSetting;
use hardpan_prompt::{
    Block, Content, ItemKind, MessagePart, Origin, Prompt, PromptMessage, Region, Role, Text, TokenCounter,
    TokenUsage,
};
use hardpan_providers::{ClientRequest, StopReason};
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, lock};
use crate::error::SideRequestError;
use crate::last_request::TextFallbacks;
use crate::session_ledger::{CacheBase, RequestBill, TASK_PURPOSE, TaskRequest, bill_standalone};

/// A request on behalf of somebody else.
#[derive(Clone, Debug)]
pub struct AsideRequest<'a> {
    /// Who asks, as bills name it.
    pub owner: &'a str,
    /// The provider and model that answer.
    pub target: Target,
    /// What the model is told first.
    pub system: Option<&'a str>,
    /// The messages in their order: text and images.
    pub messages: &'a [(Role, Vec<MessagePart>)],
    /// How much the model thinks; none: the request does not say.
    pub thinking: Option<ThinkingSetting>,
    /// Ends the request early. What was used by then is billed.
    pub stop: CancellationToken,
}

/// What the model answered.
#[derive(Clone, Debug, PartialEq)]
pub struct AsideAnswer {
    /// The text of the answer.
    pub text: String,
    /// Whether it reached its limit of tokens.
    pub is_cut: bool,
    /// What it used, as billed.
    pub usage: TokenUsage,
    /// What was paid for it, in US dollars.
    pub dollars: f64,
}

impl AsideRequest<'_> {
    /// The prompt that is sent.
    fn prompt(&self) -> Prompt {
        let origin = |kind| Origin::rule(kind, "aside");
        let block = |part: &MessagePart| match part {
            MessagePart::Text { text } => {
                Some(Block::text(Region::Log, text.clone(), origin(ItemKind::History)))
            }
            MessagePart::Image(image) => {
                let content = Content::Image(image.clone(), origin(ItemKind::History));
                Some(Block::new(Region::Log, content))
            }
            _ => None,
        };
        let messages = self.messages.iter();
        let messages =
            messages.map(|(role, parts)| PromptMessage::new(*role, parts.iter().filter_map(block).collect()));
        let system =
            self.system.map(|text| Block::text(Region::Base, Text::new(text), origin(ItemKind::System)));
        let thinking = self.thinking.map(|setting| self.target.thinking_request(setting));
        let thinking = thinking.unwrap_or_default();
        Prompt {
            thinking: thinking.thinking,
            effort: thinking.effort,
            model: self.target.model.id.as_str().into(),
            max_tokens: self.target.max_tokens,
            system: system.into_iter().collect(),
            messages: messages.collect(),
            ..Prompt::default()
        }
    }

    /// How many tokens are sent, about.
    pub fn tokens(&self) -> usize {
        let counter = TokenCounter::new(self.target.vocabulary());
        counter.measure(&self.prompt()).scaled(&self.target.factor).total()
    }
}

impl Agent {
    /// Asks a model on behalf of somebody else. Known secrets are replaced; the answer is not checked.
    pub async fn ask_aside(&self, request: &AsideRequest<'_>) -> Result<AsideAnswer, SideRequestError> {
        let (target, mut prompt) = (&request.target, request.prompt());
        let redactions = {
            let mut secrets = lock(&self.inner.secrets);
            secrets.inspect(&prompt);
            secrets.redactions()
        };
        redactions.apply(&mut prompt);
        let session = lock(&self.inner.conversation).session.clone();
        let client = self.inner.setup.client_factory.client(target, &session)?;
        let (sent, mut began) = (self.now(), None);
        let forms = TextFallbacks::new(&self.inner.setup.texts);
        let mut stream = client.send(ClientRequest {
            prompt: &prompt,
            profile: &target.profile,
            provider: &target.provider,
            fallbacks: &forms,
            previous_answer: None,
            now_ms: sent.as_millisecond(),
        });
        let is_stopped = loop {
            tokio::select! {
                biased;
                () = request.stop.cancelled() => break true,
                event = stream.next_event() => match event {
                    Some(event) => event?,
                    None => break false,
                },
            };
            began = began.or_else(|| Some(self.now()));
        };
        let answer = stream.into_answer();
        if is_stopped && answer.usage.is_none() {
            return Err(SideRequestError::Incomplete(answer.stop));
        }
        let counter = TokenCounter::new(target.vocabulary());
        let billed = bill_standalone(&RequestBill {
            purpose: TASK_PURPOSE,
            base: CacheBase::Standalone,
            target,
            layout: "none",
            prompt: &prompt,
            measured: &counter.measure(&prompt).scaled(&target.factor),
            message: None,
            usage: answer.usage.as_ref(),
            searches: 0, // none are asked for
            answer_id: &answer.id,
            diagnosis: None,
            sent,
            began: began.unwrap_or(sent),
            ended: self.now(),
            day: &self.inner.setup.context_source.day(sent),
            is_simulated: self.inner.setup.client_factory.is_simulated(),
        });
        self.record_task_request(&TaskRequest { agent: request.owner, session: &session, request: &billed });
        if is_stopped {
            return Err(SideRequestError::Incomplete(answer.stop));
        }
        if let Some(error) = answer.error {
            return Err(error.into());
        }
        let text = answer.text();
        let is_cut = answer.stop == Some(StopReason::Length);
        if text.trim().is_empty() {
            return Err(SideRequestError::Empty);
        }
        Ok(AsideAnswer { text, is_cut, usage: billed.usage, dollars: billed.dollars })
    }
}
