//! [`AttachmentPrice`]: what a prompt costs by what goes with it, told before it is sent.

use std::fmt;
use std::path::PathBuf;

use hardpan_context::Target;
use hardpan_economy::format::{format_dollars, format_number};
use hardpan_prompt::{Image, Text, TokenCounter};
use hardpan_workspace as workspace;

use crate::approval::ApprovalMode;
use crate::conversation_app::{ConversationApp, is_command};
use crate::mentions::{Mentions, PromptSource};

/// Dollars that what goes with a prompt may cost without a question, unless the settings say otherwise.
pub const DEFAULT_ASK_ABOVE: f64 = 0.10;

/// Texts of up to this many bytes are not worth counting: they cost less than a cent on any model.
const SMALL_BYTES: usize = 2_000;

/// What the files, images and long text of a prompt cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttachmentPrice {
    /// Tokens, about.
    pub tokens: usize,
    /// What sending them once costs, about.
    pub dollars: f64,
}

impl fmt::Display for AttachmentPrice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tokens = format_number(self.tokens as u64);
        write!(f, "about {tokens} tokens, {}", format_dollars(self.dollars))
    }
}

/// Why a prompt is not sent.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AttachmentRefusal {
    /// Nobody is there to ask.
    #[error(
        "not sent: what goes with this prompt costs {price}, more than {} (`ask_above` in config.toml); add --yes to send it",
        format_dollars(*limit)
    )]
    NobodyToAsk {
        /// What it costs.
        price: AttachmentPrice,
        /// What it may cost without a question, in dollars.
        limit: f64,
    },
    /// The user said no.
    #[error("not sent")]
    Declined,
}

/// The price per million of tokens that a request holds for the first time: what it costs to cache
/// them, where that is more.
pub fn first_price(target: &Target) -> Option<f64> {
    let price = &target.model.price;
    price.is_known().then(|| price.write().max(price.input))
}

impl ConversationApp {
    /// What the prompt, and what goes with it, costs when it is sent for the first time; none if no
    /// price is known. Files that are open already are sent anyway. `images` are those that the prompt
    /// does not mention.
    pub fn price_attachments(
        &self,
        prompt: &str,
        below: Option<&str>,
        images: &[Image],
    ) -> Option<AttachmentPrice> {
        let target = self.agent.target();
        let per_million = first_price(&target).filter(|_| !self.is_offline(&target))?;
        let open = self.context.pinned_context().files;
        let mentioned = Mentions::find(prompt, &self.scope, PromptSource::Typed);
        let guard = self.scope.guard();
        let read = |path: &PathBuf| {
            let file = guard.open_named_by_user(&self.folder.join(path)).ok()?;
            Some(workspace::read_open_text(&file, workspace::TEXT_LIMIT).ok()?.text)
        };
        let files: Vec<String> =
            mentioned.files.iter().filter(|path| !open.contains(path)).filter_map(read).collect();
        let typed = [prompt, below.unwrap_or_default()].map(str::to_owned);
        let counter = TokenCounter::new(target.vocabulary());
        let long = files.into_iter().chain(typed).filter(|text| text.len() > SMALL_BYTES);
        let counted: usize = long.map(|text| counter.count(&Text::new(text))).sum();
        let waiting = self.waiting_images();
        let images = mentioned.images.iter().map(|(_, image)| image).chain(images).chain(&waiting);
        let tokens = target.factor.scale(counted) + images.map(Image::tokens).sum::<usize>();
        Some(AttachmentPrice { tokens, dollars: tokens as f64 * per_million / 1e6 })
    }

    /// Asks the user before a prompt is sent whose attachments cost more than `ask_above`. Commands are
    /// not asked about.
    pub async fn confirm_attachments(
        &self,
        prompt: &str,
        below: Option<&str>,
        images: &[Image],
    ) -> Result<(), AttachmentRefusal> {
        let limit = self.settings.config.ask_above.unwrap_or(DEFAULT_ASK_ABOVE);
        if self.approval == ApprovalMode::AllowAll || is_command(&self.agent, prompt) {
            return Ok(());
        }
        let price = self.price_attachments(prompt, below, images);
        let Some(price) = price.filter(|price| price.dollars > limit) else { return Ok(()) };
        let Some(prompter) = &self.prompter else {
            return Err(AttachmentRefusal::NobodyToAsk { price, limit });
        };
        match prompter.confirm_price("What goes with this prompt", price, limit).await {
            true => Ok(()),
            false => Err(AttachmentRefusal::Declined),
        }
    }
}
