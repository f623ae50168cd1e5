//! [`FoundPage`]: what the simulated search of the web finds.

use hardpan_prompt::Hash;

use crate::answer::SimulatedPart;

/// The one page that a search finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundPage {
    pub url: String,
    pub title: String,
}

impl FoundPage {
    pub fn new(query: &str) -> Self {
        let short = Hash::of(query.as_bytes()).to_string();
        FoundPage { url: format!("https://example.com/{}", &short[..8]), title: format!("About {query}") }
    }

    /// The page of the last search before a part, which the part cites.
    pub fn before(parts: &[SimulatedPart]) -> Option<Self> {
        parts.iter().rev().find_map(|part| match part {
            SimulatedPart::Search(query) => Some(FoundPage::new(query)),
            _ => None,
        })
    }

    /// A text that stands for its encrypted contents, and for a place in them.
    pub fn seal(&self, place: &str) -> String {
        let FoundPage { url, title } = self;
        format!("sealed-{}", Hash::of(format!("{url} {title} {place}").as_bytes()))
    }
}

/// A text that cites a page: the model says a word of its own first.
pub(crate) fn split_cited(text: &str) -> (&str, &str) {
    let begin = text.find(' ').map_or(0, |space| space + 1);
    text.split_at(begin)
}
