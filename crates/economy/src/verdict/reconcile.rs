//! Compares our own verdict with what the provider says about the same request.

use hardpan_prompt::{CacheDiagnosis, ChangedPart};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::verdict::{Blame, Cause, Verdict};

/// Who found the cause of a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictSource {
    /// We did; the provider did not say, or nothing that bears on it.
    #[default]
    Ours,
    /// The provider did; we had found another cause, or none.
    Provider,
    /// Both found the same.
    Both,
}

impl Verdict {
    /// Adds what the provider says. Its word corrects ours where it names a change, since it sees
    /// the bytes that it caches by. Where it finds no change although we did, ours stands beside it:
    /// the provider compares requests, not what is left in its cache.
    pub(crate) fn reconcile(mut self, diagnosis: Option<CacheDiagnosis>) -> Self {
        let Some(diagnosis) = diagnosis else { return self };
        self.provider_says = Some(diagnosis);
        if !self.is_loss() {
            return self;
        }
        let ours = self.changed_part();
        match diagnosis {
            // What had expired was lost whatever else changed, and the provider cannot see that.
            CacheDiagnosis::Changed { .. } if matches!(self.cause, Cause::Expired { .. }) => {}
            CacheDiagnosis::Changed { part, .. } if ours.is_some_and(|ours| part.includes(ours)) => {
                self.source = VerdictSource::Both;
            }
            CacheDiagnosis::Changed { part, .. } => {
                let corrected = Cause::SaidByProvider { part };
                self.blame = match part {
                    ChangedPart::Model | ChangedPart::Effort | ChangedPart::ServiceTier => Blame::Person,
                    ChangedPart::System
                    | ChangedPart::Tools
                    | ChangedPart::Messages
                    | ChangedPart::Input
                    | ChangedPart::CacheKey
                    | ChangedPart::OutputFormat => Blame::Us,
                };
                self.our_cause = Some(Box::new(std::mem::replace(&mut self.cause, corrected)));
                self.first_difference = None;
                self.source = VerdictSource::Provider;
            }
            CacheDiagnosis::NoDifference if ours.is_none() => {
                // An entry that is gone, or out of reach: the requests themselves agree.
                self.source = VerdictSource::Both;
            }
            CacheDiagnosis::NoDifference
            | CacheDiagnosis::Pending
            | CacheDiagnosis::PreviousNotFound
            | CacheDiagnosis::Unavailable => {}
        }
        self
    }

    /// Whether we and the provider name different causes.
    pub fn is_disputed(&self) -> bool {
        self.our_cause.is_some()
            || self.is_loss()
                && self.provider_says == Some(CacheDiagnosis::NoDifference)
                && self.changed_part().is_some()
    }

    /// The part of a request that changed according to our own cause, in the provider's terms.
    fn changed_part(&self) -> Option<ChangedPart> {
        let address = self.first_difference.as_ref().map(|difference| difference.address.as_str());
        let by_address = match address {
            Some(address) if address.starts_with("system") => Some(ChangedPart::System),
            Some(address) if address.starts_with("tools") => Some(ChangedPart::Tools),
            Some(_) => Some(ChangedPart::Messages),
            None => None,
        };
        match &self.cause {
            Cause::ToolsChanged { .. } => Some(ChangedPart::Tools),
            Cause::SystemChanged(_) => Some(ChangedPart::System),
            Cause::ModelChanged { .. } => Some(ChangedPart::Model),
            Cause::ItemChanged { .. }
            | Cause::ChangedByExtension { .. }
            | Cause::MessageChanged { .. }
            | Cause::LayoutChanged(_)
            | Cause::ImageAdded
            | Cause::ImageRemoved
            | Cause::Folded
            | Cause::Compacted => Some(by_address.unwrap_or(ChangedPart::Messages)),
            Cause::EffortChanged => Some(ChangedPart::Effort),
            Cause::Resumed => by_address,
            Cause::SaidByProvider { part } => Some(*part),
            Cause::AsExpected
            | Cause::FirstRequest
            | Cause::ThinkingChanged
            | Cause::SettingChanged(_)
            | Cause::ProviderChanged { .. }
            | Cause::Expired { .. }
            | Cause::TooManyNewBlocks { .. }
            | Cause::Unmarked
            | Cause::BelowMinimum { .. }
            | Cause::Evicted => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(cause: Cause) -> Verdict {
        Verdict { lost_tokens: 100, blame: Blame::Us, ..Verdict::without_loss(cause, 100, 0) }
    }

    fn tools() -> Cause {
        Cause::ToolsChanged {
            added: vec!["grep".into()],
            removed: Vec::new(),
            changed: Vec::new(),
            listed: Vec::new(),
        }
    }

    fn changed(part: ChangedPart) -> Option<CacheDiagnosis> {
        Some(CacheDiagnosis::Changed { part, missed_tokens: Some(41_850) })
    }

    #[test]
    fn each_pair_of_our_word_and_theirs_has_its_conclusion() {
        let expired = Cause::Expired { minutes: 9, lifetime: 5, avoidable_by: None };
        let none = Some(CacheDiagnosis::NoDifference);
        let table = [
            (tools(), changed(ChangedPart::Tools), VerdictSource::Both, false),
            (tools(), changed(ChangedPart::System), VerdictSource::Provider, true),
            (Cause::Evicted, changed(ChangedPart::Messages), VerdictSource::Provider, true),
            (Cause::Folded, changed(ChangedPart::Input), VerdictSource::Both, false),
            (tools(), changed(ChangedPart::Input), VerdictSource::Provider, true),
            (expired.clone(), none, VerdictSource::Both, false),
            (expired, changed(ChangedPart::Messages), VerdictSource::Ours, false),
            (Cause::Unmarked, none, VerdictSource::Both, false),
            (tools(), none, VerdictSource::Ours, true),
            (Cause::EffortChanged, Some(CacheDiagnosis::Unavailable), VerdictSource::Ours, false),
            (tools(), Some(CacheDiagnosis::PreviousNotFound), VerdictSource::Ours, false),
            (tools(), Some(CacheDiagnosis::Pending), VerdictSource::Ours, false),
            (tools(), None, VerdictSource::Ours, false),
        ];
        for (cause, diagnosis, source, disputed) in table {
            let verdict = loss(cause.clone()).reconcile(diagnosis);
            assert_eq!(
                (verdict.source, verdict.is_disputed()),
                (source, disputed),
                "{cause:?} {diagnosis:?}"
            );
            assert_eq!(verdict.provider_says, diagnosis);
            if source == VerdictSource::Provider {
                assert_eq!(verdict.our_cause.as_deref(), Some(&cause));
            }
        }
    }

    #[test]
    fn a_change_that_lost_nothing_is_reported_and_not_counted() {
        let verdict =
            Verdict::without_loss(Cause::AsExpected, 100, 100).reconcile(changed(ChangedPart::Messages));
        assert!(!verdict.is_loss() && !verdict.is_disputed());
        assert_eq!(verdict.cause, Cause::AsExpected);
    }

    #[test]
    fn the_sentence_gives_both_words_where_they_differ() {
        let sentence = loss(tools()).reconcile(changed(ChangedPart::System)).sentence();
        let expected = "100 tokens were paid again: the provider says that the system prompt changed; \
                        we saw that the tools changed (added grep). Hardpan could have avoided it.";
        assert_eq!(sentence, expected);
        let sentence = loss(tools()).reconcile(changed(ChangedPart::Tools)).sentence();
        assert!(
            sentence.ends_with("the tools changed (added grep), and the provider says so, too. Hardpan could have avoided it."),
            "{sentence}"
        );
        let sentence = loss(tools()).reconcile(Some(CacheDiagnosis::NoDifference)).sentence();
        assert!(sentence.contains("although the provider says that nothing changed"), "{sentence}");
    }
}
