//! `<think>…</think>` inside the text: reasoning of models whose server does not take it apart.

use std::mem;

use crate::Event;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";
/// How many bytes of white space may stand before the tag. Without a limit, a stream of blanks would be held for ever.
const INDENT: usize = 1024;

/// Where in an answer's text the tags are taken for reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThinkTags {
    /// Nowhere: the text is passed on as it is.
    Never,
    /// Where the answer begins with the tag. A tag further on is something the model writes about.
    #[default]
    Leading,
    /// Everywhere: models that think in between.
    Anywhere,
    /// The prompt's template has opened the tag, so that the answer begins with reasoning and only the end is seen.
    Opened,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Nothing but white space, or a part of the tag, so far.
    #[default]
    Before,
    Inside,
    Outside,
}

/// Tells reasoning from text in pieces that may be cut anywhere, inside a tag too.
///
/// White space beside the tags is dropped: it is there for people who read the raw text.
#[derive(Debug, Default)]
pub struct Splitter {
    tags: ThinkTags,
    place: Place,
    /// What may be the beginning of a tag.
    held: String,
    after_tag: bool,
}

impl Splitter {
    pub fn new(tags: ThinkTags) -> Self {
        let place = if tags == ThinkTags::Never { Place::Outside } else { Place::Before };
        Splitter { tags, place, ..Splitter::default() }
    }

    /// Takes more text.
    pub fn push(&mut self, text: &str, events: &mut Vec<Event>) {
        if self.place == Place::Outside && !self.after_tag && self.tags != ThinkTags::Anywhere {
            emit(Place::Outside, text, events);
            return;
        }
        let mut held = mem::take(&mut self.held);
        held.push_str(text);
        let mut rest = held.as_str();
        while let Some(further) = self.step(rest, events) {
            rest = further;
        }
        // What stays is the end of `held`, and shorter than a tag unless it is white space.
        let taken = held.len() - self.staying(rest);
        held.drain(..taken);
        self.held = held;
    }

    /// Gives out what was held, because something else than text comes next.
    pub fn flush(&mut self, events: &mut Vec<Event>) {
        let held = mem::take(&mut self.held);
        if self.place == Place::Before && !held.is_empty() {
            self.place = self.without_tag();
        }
        emit(self.place, &held, events);
    }

    /// Takes what can be decided from the front of `text`; the rest, if there is more to decide.
    fn step<'t>(&mut self, text: &'t str, events: &mut Vec<Event>) -> Option<&'t str> {
        if self.place == Place::Before {
            return self.begin(text);
        }
        let text = if self.after_tag { text.trim_start() } else { text };
        self.after_tag &= text.is_empty();
        let (tag, beyond) = match self.place {
            Place::Inside => (CLOSE, Place::Outside),
            _ if self.tags == ThinkTags::Anywhere => (OPEN, Place::Inside),
            _ => {
                emit(self.place, text, events);
                return None;
            }
        };
        let Some(at) = text.find(tag) else {
            emit(self.place, &text[..text.len() - overlap(text, tag)], events);
            return None;
        };
        emit(self.place, &text[..at], events);
        self.place = beyond;
        self.after_tag = true;
        Some(&text[at + tag.len()..])
    }

    fn begin<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let trimmed = text.trim_start();
        if text.len() - trimmed.len() > INDENT {
            self.place = self.without_tag();
        } else if let Some(after) = trimmed.strip_prefix(OPEN) {
            self.place = Place::Inside;
            self.after_tag = true;
            return Some(after);
        } else if OPEN.starts_with(trimmed) {
            return None;
        } else {
            self.place = self.without_tag();
        }
        Some(text)
    }

    fn without_tag(&self) -> Place {
        if self.tags == ThinkTags::Opened { Place::Inside } else { Place::Outside }
    }

    /// How many bytes at the end of `rest` must wait for what comes next.
    fn staying(&self, rest: &str) -> usize {
        match self.place {
            Place::Before => rest.len(),
            Place::Inside => overlap(rest, CLOSE),
            Place::Outside if self.tags == ThinkTags::Anywhere => overlap(rest, OPEN),
            Place::Outside => 0,
        }
    }
}

/// How many bytes at the end of `text` may be the beginning of `tag`.
fn overlap(text: &str, tag: &str) -> usize {
    (1..tag.len()).rev().find(|&length| text.ends_with(&tag[..length])).unwrap_or(0)
}

fn emit(place: Place, text: &str, events: &mut Vec<Event>) {
    if text.is_empty() {
        return;
    }
    events.push(match place {
        Place::Inside => Event::Reasoning(text.to_owned()),
        Place::Before | Place::Outside => Event::Text(text.to_owned()),
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(tags: ThinkTags, pieces: &[&str]) -> Vec<Event> {
        let mut splitter = Splitter::new(tags);
        let mut events = Vec::new();
        pieces.iter().for_each(|piece| splitter.push(piece, &mut events));
        splitter.flush(&mut events);
        Event::merge(events)
    }

    fn text(text: &str) -> Event {
        Event::Text(text.into())
    }

    fn reasoning(text: &str) -> Event {
        Event::Reasoning(text.into())
    }

    #[test]
    fn an_answer_that_begins_with_the_tag_begins_with_reasoning() {
        let pieces = ["\n<thi", "nk>\nhm <", "b> </", "think>\n\nYes, <think> is ", "a tag</think>"];
        let events = split(ThinkTags::Leading, &pieces);
        assert_eq!(events, [reasoning("hm <b> "), text("Yes, <think> is a tag</think>")]);
    }

    #[test]
    fn a_tag_further_on_is_text_unless_the_row_says_otherwise() {
        let pieces = ["So: <think>a</think> b"];
        assert_eq!(split(ThinkTags::Leading, &pieces), [text(pieces[0])]);
        assert_eq!(split(ThinkTags::Anywhere, &pieces), [text("So: "), reasoning("a"), text("b")]);
        assert_eq!(split(ThinkTags::Never, &["<think>a"]), [text("<think>a")]);
    }

    #[test]
    fn a_template_that_opens_the_tag_is_understood() {
        assert_eq!(split(ThinkTags::Opened, &["hm</thi", "nk>\n", "Yes"]), [reasoning("hm"), text("Yes")]);
        assert_eq!(split(ThinkTags::Opened, &["<think>hm</think>Yes"]), [reasoning("hm"), text("Yes")]);
    }

    #[test]
    fn nothing_is_lost_when_the_answer_ends_inside_a_tag() {
        assert_eq!(split(ThinkTags::Leading, &["<thi"]), [text("<thi")]);
        assert_eq!(split(ThinkTags::Leading, &["<think>a</thi"]), [reasoning("a</thi")]);
        assert_eq!(split(ThinkTags::Leading, &[" \n", " Hi"]), [text(" \n Hi")]);
        assert_eq!(split(ThinkTags::Leading, &["<think>\n\n</think>\n\nHi"]), [text("Hi")]);
    }

    proptest! {
        #[test]
        fn where_the_text_is_cut_makes_no_difference(
            words in prop::collection::vec(prop::sample::select(vec!["<think>", "</think>", "<", "</th", "é", " ", "\n", "ink>", "a"]), 0..12),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let whole: String = words.concat();
            let bounds: Vec<usize> = (0..=whole.len()).filter(|&at| whole.is_char_boundary(at)).collect();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| *cut.get(&bounds)).chain([0, whole.len()]).collect();
            cuts.sort_unstable();
            let pieces: Vec<&str> = cuts.windows(2).map(|pair| &whole[pair[0]..pair[1]]).collect();
            for tags in [ThinkTags::Never, ThinkTags::Leading, ThinkTags::Anywhere, ThinkTags::Opened] {
                prop_assert_eq!(split(tags, &pieces), split(tags, &[&whole]));
            }
        }
    }
}
