//! [`ThinkTagSplitter`] separates `<think>…</think>` from text, for servers that do not send
//! reasoning in a field of its own.

use std::mem;

use crate::AnswerEvent;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";
/// The maximum bytes of white space before the tag. Without a limit, a stream of blanks would be
/// held back forever.
const MAX_INDENT: usize = 1024;

/// Where in an answer's text `<think>` tags mark reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThinkTags {
    /// Nowhere: tags are ordinary text.
    Never,
    /// Only at the beginning of the answer. A later tag is something the model writes about.
    #[default]
    Leading,
    /// Anywhere, for models that think between texts.
    Anywhere,
    /// The chat template has opened the tag: the answer begins with reasoning, and only the closing
    /// tag appears.
    Opened,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TagPosition {
    /// Only white space, or a part of the tag, so far.
    #[default]
    Before,
    Inside,
    Outside,
}

/// Separates reasoning from text in chunks that may be cut anywhere, even inside a tag.
///
/// White space beside the tags is dropped: it only formats the raw text.
#[derive(Debug, Default)]
pub struct ThinkTagSplitter {
    tags: ThinkTags,
    place: TagPosition,
    /// The end of the input so far that may be the beginning of a tag.
    held: String,
    after_tag: bool,
}

impl ThinkTagSplitter {
    pub fn new(tags: ThinkTags) -> Self {
        let place = if tags == ThinkTags::Never { TagPosition::Outside } else { TagPosition::Before };
        ThinkTagSplitter { tags, place, ..ThinkTagSplitter::default() }
    }

    /// Adds a chunk of text and emits what is certain.
    pub fn push(&mut self, text: &str, events: &mut Vec<AnswerEvent>) {
        if self.place == TagPosition::Outside && !self.after_tag && self.tags != ThinkTags::Anywhere {
            emit(TagPosition::Outside, text, events);
            return;
        }
        let mut held = mem::take(&mut self.held);
        held.push_str(text);
        let mut rest = held.as_str();
        while let Some(further) = self.advance(rest, events) {
            rest = further;
        }
        // What is held back is the end of `held`, shorter than a tag unless it is white space.
        let taken = held.len() - self.held_back_len(rest);
        held.drain(..taken);
        self.held = held;
    }

    /// Emits what was held back, because something other than text comes next.
    pub fn flush(&mut self, events: &mut Vec<AnswerEvent>) {
        let held = mem::take(&mut self.held);
        if self.place == TagPosition::Before && !held.is_empty() {
            self.place = self.without_tag();
        }
        emit(self.place, &held, events);
    }

    /// Emits what is certain at the front of `text`. Returns the rest if there is more to decide.
    fn advance<'t>(&mut self, text: &'t str, events: &mut Vec<AnswerEvent>) -> Option<&'t str> {
        if self.place == TagPosition::Before {
            return self.detect_opening_tag(text);
        }
        let text = if self.after_tag { text.trim_start() } else { text };
        self.after_tag &= text.is_empty();
        let (tag, beyond) = match self.place {
            TagPosition::Inside => (CLOSE, TagPosition::Outside),
            _ if self.tags == ThinkTags::Anywhere => (OPEN, TagPosition::Inside),
            _ => {
                emit(self.place, text, events);
                return None;
            }
        };
        let Some(at) = text.find(tag) else {
            emit(self.place, &text[..text.len() - partial_tag_len(text, tag)], events);
            return None;
        };
        emit(self.place, &text[..at], events);
        self.place = beyond;
        self.after_tag = true;
        Some(&text[at + tag.len()..])
    }

    fn detect_opening_tag<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let trimmed = text.trim_start();
        if text.len() - trimmed.len() > MAX_INDENT {
            self.place = self.without_tag();
        } else if let Some(after) = trimmed.strip_prefix(OPEN) {
            self.place = TagPosition::Inside;
            self.after_tag = true;
            return Some(after);
        } else if OPEN.starts_with(trimmed) {
            return None;
        } else {
            self.place = self.without_tag();
        }
        Some(text)
    }

    fn without_tag(&self) -> TagPosition {
        if self.tags == ThinkTags::Opened { TagPosition::Inside } else { TagPosition::Outside }
    }

    /// How many bytes at the end of `rest` must wait for what comes next.
    fn held_back_len(&self, rest: &str) -> usize {
        match self.place {
            TagPosition::Before => rest.len(),
            TagPosition::Inside => partial_tag_len(rest, CLOSE),
            TagPosition::Outside if self.tags == ThinkTags::Anywhere => partial_tag_len(rest, OPEN),
            TagPosition::Outside => 0,
        }
    }
}

/// How many bytes at the end of `text` may be the beginning of `tag`.
fn partial_tag_len(text: &str, tag: &str) -> usize {
    (1..tag.len()).rev().find(|&length| text.ends_with(&tag[..length])).unwrap_or(0)
}

fn emit(place: TagPosition, text: &str, events: &mut Vec<AnswerEvent>) {
    if text.is_empty() {
        return;
    }
    events.push(match place {
        TagPosition::Inside => AnswerEvent::Reasoning(text.to_owned()),
        TagPosition::Before | TagPosition::Outside => AnswerEvent::Text(text.to_owned()),
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(tags: ThinkTags, pieces: &[&str]) -> Vec<AnswerEvent> {
        let mut splitter = ThinkTagSplitter::new(tags);
        let mut events = Vec::new();
        pieces.iter().for_each(|piece| splitter.push(piece, &mut events));
        splitter.flush(&mut events);
        AnswerEvent::merge(events)
    }

    fn text(text: &str) -> AnswerEvent {
        AnswerEvent::Text(text.into())
    }

    fn reasoning(text: &str) -> AnswerEvent {
        AnswerEvent::Reasoning(text.into())
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
