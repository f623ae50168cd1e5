//! What each request cost, and what is said about it.

use hardpan_context::Breakdown;
use hardpan_economy::foresight::{Act, Foresight};
use hardpan_economy::{Charge, Ledger, Verdict};
use hardpan_prompt::{Measured, MessageId, Prompt};
use hardpan_providers::Usage;
use jiff::Timestamp;

use crate::agent::{Agent, Choice, lock};
use crate::books::{Billed, On, row_of};
use crate::events::CacheVerdict;

/// When a request was sent, and when its answer began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub sent: Timestamp,
    pub began: Timestamp,
}

impl Agent {
    /// Enters a request into the books, the conversation's own (`turn`) or a helper's, and says what of it was paid again.
    /// Nobody waits for the record.
    pub(crate) fn bill(
        &self,
        purpose: &str,
        choice: &Choice,
        ((prompt, measured), on): ((&Prompt, &Measured), On),
        message: Option<&MessageId>,
        usage: Option<&Usage>,
        Times { sent, began }: Times,
    ) -> Option<Verdict> {
        let ended = self.now();
        let day = self.inner.setup.surroundings.day(sent);
        let (target, layout) = (&choice.target, choice.layout.word());
        let billed = Billed {
            purpose,
            on,
            target,
            layout,
            prompt,
            measured,
            message,
            usage,
            sent,
            began,
            ended,
            day: &day,
        };
        let (_stored, loss) = lock(&self.inner.conversation).bill(&billed);
        loss
    }

    /// Tells everyone what was paid again.
    pub(crate) async fn tell_loss(&self, message: Option<&MessageId>, loss: Option<Verdict>) {
        if let Some(verdict) = loss {
            let sentence = verdict.sentence();
            self.events().tell(self, CacheVerdict { message: message.cloned(), verdict, sentence }).await;
        }
    }

    /// What is to be said about how the last request used the cache, loss or not; none before the first of this process.
    pub fn verdict(&self) -> Option<Verdict> {
        lock(&self.inner.conversation).books.last.as_ref().map(|(_, verdict)| verdict.clone())
    }

    /// The bill of the last request, split over what was in it.
    pub fn charge(&self) -> Option<Charge> {
        lock(&self.inner.conversation).books.last.as_ref().map(|(charge, _)| charge.clone())
    }

    /// Everything that was paid in this session.
    pub fn ledger(&self) -> Ledger {
        lock(&self.inner.conversation).books.ledger.clone()
    }

    /// When what the conversation has in the cache expires, unless it is used before. None where nothing is cached, or
    /// nobody says how long it lives.
    pub fn cache_expires(&self) -> Option<Timestamp> {
        lock(&self.inner.conversation).books.expires()
    }

    /// What an act would cost now, and when it would be free; none before the first request.
    pub fn foresee(&self, act: Act<'_>) -> Option<Foresight> {
        let next = self.target();
        let asked = lock(&self.inner.asked).clone();
        let last = asked.as_ref().map_or(&next, |asked| &asked.target);
        lock(&self.inner.conversation).books.foresee(act, last, &next, self.now())
    }

    /// The breakdown with what the provider billed for each panel, where the layout tells hits at all.
    pub(crate) fn as_billed(&self, mut breakdown: Breakdown) -> Breakdown {
        let conversation = lock(&self.inner.conversation);
        let Some((charge, _)) = &conversation.books.last else { return breakdown };
        let contents = breakdown.blocks.iter_mut().flat_map(|block| &mut block.contents);
        for content in contents.filter(|content| content.hit.is_some()) {
            if let Some(row) = row_of(charge, &content.key) {
                content.hit = Some(row.tokens.read > row.tokens.prompt() / 2);
                content.cost = Some(conversation.books.ledger.of_key(&content.key).dollars);
            }
        }
        breakdown
    }
}
