//! [`MessageBuilder`]: the messages of a prompt under construction.

use hardpan_prompt::{
    Block, Content, ItemKind, Omission, OmissionKey, OmissionReason, Origin, Prompt, PromptMessage, Region,
    Role, Segment, Text, Thinking,
};

use crate::history::ConvertedMessage;
use crate::layout::LayoutInput;
use crate::snapshot::ContextImage;
use crate::texts::fill_template;

/// The messages of a prompt, as a layout adds them one after the other.
#[derive(Default)]
pub struct MessageBuilder(pub Vec<PromptMessage>);

impl MessageBuilder {
    /// Adds a message of one text block.
    pub fn push_text(&mut self, role: Role, region: Region, text: &Text, origin: Origin) {
        self.0.push(PromptMessage::new(role, vec![Block::text(region, text.clone(), origin)]));
    }

    /// Adds a message of one text block that is made of segments with origins of their own.
    pub fn push_segments(&mut self, role: Role, region: Region, segments: Vec<Segment>) {
        self.0.push(PromptMessage::new(role, vec![Block::new(region, Content::Text(segments))]));
    }

    /// Adds a converted message of the conversation, with its id where the provider takes ids.
    pub fn push_converted(&mut self, message: &ConvertedMessage, region: Region, input: &LayoutInput<'_>) {
        let blocks = message.contents.iter().map(|content| Block::new(region, content.clone())).collect();
        let id = message.ids.last().filter(|_| input.target.profile.message_ids).map(|id| id.0.clone());
        self.0.push(PromptMessage { id, ..PromptMessage::new(message.role, blocks) });
    }

    /// Adds the user's new prompt with its images; nothing if there is no prompt.
    pub fn push_user_prompt(&mut self, input: &LayoutInput<'_>, region: Region, images: &[&ContextImage]) {
        let Some(prompt) = &input.snapshot.prompt else { return };
        let origin = Origin::message(&prompt.id);
        let mut blocks = vec![Block::text(region, prompt.text.clone(), origin.clone())];
        for image in images {
            if let Some(path) = &image.path {
                let name = fill_template(&input.texts.phrases.history.image_name, &[("path", path)]);
                blocks.push(Block::text(region, Text::new(name), origin.clone()));
            }
            blocks.push(Block::new(region, Content::Image(image.image.clone(), origin.clone())));
        }
        let id = input.target.profile.message_ids.then(|| prompt.id.0.clone());
        self.0.push(PromptMessage { id, ..PromptMessage::new(Role::User, blocks) });
    }

    /// How many messages [`finish`](MessageBuilder::finish) will put before the first: one if the
    /// conversation does not begin with the user.
    pub fn opening_messages(&self) -> usize {
        usize::from(self.0.first().is_none_or(|message| message.role == Role::Assistant))
    }

    /// Makes the conversation acceptable as a whole: it begins and ends with the user, and thinking
    /// is switched off where the tool round in progress began without it. `region` is the region of
    /// messages added for this.
    pub fn finish(mut self, input: &LayoutInput<'_>, region: Region, mut prompt: Prompt) -> Prompt {
        let phrases = &input.texts.phrases.history;
        if self.opening_messages() > 0 {
            let origin = Origin::rule(ItemKind::History, "opening");
            let region = self
                .0
                .first()
                .and_then(|message| message.blocks.first())
                .map_or(region, |block| block.region);
            let message =
                PromptMessage::new(Role::User, vec![Block::text(region, phrases.opening.clone(), origin)]);
            self.0.insert(0, message);
        }
        if self.0.last().is_some_and(|message| message.role == Role::Assistant) {
            self.push_text(Role::User, region, &phrases.go_on, Origin::rule(ItemKind::History, "go on"));
        }
        let traits = input.target.profile.protocol.traits();
        prompt.messages = self.0;
        input.render_cache.reuse_unchanged_blocks(&mut prompt);
        list_unsent_attachments(input, &mut prompt);
        if prompt.thinking.budget().is_some()
            && traits.signed_reasoning
            && !traits.detached_signatures
            && !round_began_with_reasoning(&prompt)
        {
            prompt.thinking = Thinking::Unspecified;
            let key = OmissionKey::Feature("thinking");
            prompt.left_out.push(Omission { key, reason: OmissionReason::RoundBeganWithoutThinking });
        }
        prompt
    }
}

/// Joins neighbouring messages of the model. The user's stay apart: results are a message of their
/// own.
pub fn merge_model_messages(messages: Vec<PromptMessage>) -> Vec<PromptMessage> {
    let mut merged: Vec<PromptMessage> = Vec::with_capacity(messages.len());
    for message in messages {
        match merged.last_mut() {
            Some(last) if last.role == Role::Assistant && message.role == Role::Assistant => {
                last.blocks.extend(message.blocks);
            }
            _ => merged.push(message),
        }
    }
    merged
}

/// Lists the images and documents that no message carries as left out.
fn list_unsent_attachments(input: &LayoutInput<'_>, prompt: &mut Prompt) {
    let is_sent = |image: &ContextImage| {
        prompt
            .blocks()
            .any(|block| matches!(&*block.content, Content::Image(sent, _) if *sent == image.image))
    };
    let images = input.snapshot.images.iter().enumerate().filter(|(_, image)| !is_sent(image));
    let mut unsent: Vec<Omission> = images
        .map(|(index, image)| {
            let name =
                image.path.as_ref().map_or_else(|| format!("image:{index}"), |path| format!("image:{path}"));
            Omission::of_attachment(name, OmissionReason::ImageWithoutPrompt)
        })
        .collect();
    let understood = input.target.profile.document_context;
    let reason =
        if understood { OmissionReason::NoMessageForDocument } else { OmissionReason::NoDocumentIds };
    let is_attached =
        |id: &_| understood && prompt.messages.iter().any(|message| message.documents.contains(id));
    let documents = input.snapshot.documents.iter().filter(|id| !is_attached(*id));
    unsent.extend(documents.map(|id| Omission::of_attachment(format!("document:{id}"), reason.clone())));
    prompt.left_out.append(&mut unsent);
}

/// Whether thinking may stay on: within a tool round, Anthropic requires the message that made the
/// calls to begin with its reasoning. Consecutive messages of one role count as one, as the server
/// sees them.
fn round_began_with_reasoning(prompt: &Prompt) -> bool {
    let messages = &prompt.messages;
    let results_at =
        messages.iter().rposition(|message| message.role == Role::Assistant).map_or(0, |last| last + 1);
    let holds_results = |message: &PromptMessage| {
        message.blocks.iter().any(|block| matches!(*block.content, Content::Result(_)))
    };
    if !messages[results_at..].iter().any(holds_results) {
        return true;
    }
    let first = messages[..results_at]
        .iter()
        .rposition(|message| message.role == Role::User)
        .map_or(0, |user| user + 1);
    let opens_with_reasoning = |message: &PromptMessage| {
        message.blocks.first().is_some_and(|block| matches!(*block.content, Content::Reasoning(_)))
    };
    messages[first..results_at].first().is_some_and(opens_with_reasoning)
}
