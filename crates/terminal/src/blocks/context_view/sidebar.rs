//! The strata beside a conversation, in the full screen.

use ratatui::text::{Line, Span};

use super::merge::merge_between_marks;
use super::rows::tokens_per_cell;
use super::{ContextRow, ContextView, LastUse, LayerAge};
use crate::blocks::core_sample::layer_bar;
use crate::blocks::format::{clock, dollars, percent, short_count};
use crate::text::{escape, pad_left, pad_right, truncate, truncate_line, width};
use crate::theme::{Role, Theme};

/// Columns of the bars.
const BAR: usize = 9;

/// Columns of the names.
const NAME: usize = 11;

impl ContextView {
    /// The strata in a column beside the conversation.
    pub fn sidebar(&self, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        let glyphs = theme.glyphs;
        let tokens = self.tokens();
        let title = format!("{} {} {}", escape(&self.layout), glyphs.separator, escape(&self.model));
        let figures = format!("{} {:>3}", short_count(tokens), self.share());
        let room = columns.saturating_sub(width(&figures) + 1);
        let title = pad_right(&truncate(&title, room, glyphs.ellipsis), room + 1);
        let mut lines =
            vec![Line::from(vec![Span::styled(title, theme.bold(Role::Text)), Span::raw(figures)])];
        let rows = if self.is_split { self.rows.clone() } else { merge_between_marks(&self.rows, theme) };
        let per_cell = tokens_per_cell(&rows, BAR);
        for row in &rows {
            match row {
                ContextRow::Layer(layer) if layer.depth > 0 || layer.tokens() == 0 => {}
                ContextRow::Layer(layer) => {
                    let name = truncate(&layer.full_name(theme), NAME - 1, glyphs.ellipsis);
                    let bar = layer_bar(&layer.parts, per_cell, theme);
                    let used: usize = bar.iter().map(|span| width(&span.content)).sum();
                    let last = match (&layer.age, &layer.last) {
                        (_, LastUse::Sent) => "sent".to_owned(),
                        (LayerAge::New, _) => "new".to_owned(),
                        (_, LastUse::Read(share)) => format!("{share}%"),
                        (_, LastUse::Written) => "new".to_owned(),
                        (_, LastUse::Text(text)) => escape(text).into_owned(),
                    };
                    let mut spans = vec![Span::raw(pad_right(&name, NAME))];
                    spans.extend(bar);
                    let tokens = pad_left(&short_count(layer.tokens()), 6 + BAR.saturating_sub(used));
                    spans.push(Span::raw(format!("{tokens} {}", pad_left(&last, 4))));
                    lines.push(Line::from(spans));
                }
                ContextRow::Mark(mark) if mark.is_older => {
                    let fold = self.facts.next_fold.and_then(|fold| fold.in_requests);
                    let text =
                        fold.map_or_else(String::new, |requests| format!(" next fold, in about {requests}"));
                    lines.push(Line::styled(
                        format!("{}{text}", glyphs.older_entry),
                        theme.style(Role::Quiet),
                    ));
                }
                ContextRow::Mark(_) => lines.push(Line::styled(glyphs.breakpoint, theme.style(Role::Accent))),
            }
        }
        lines.extend(self.sidebar_facts(theme));
        lines.into_iter().map(|line| truncate_line(line, columns, glyphs.ellipsis)).collect()
    }

    fn sidebar_facts(&self, theme: &Theme) -> Vec<Line<'static>> {
        let dot = theme.glyphs.separator;
        let facts = &self.facts;
        let mut lines = Vec::new();
        if let Some(garbage) = facts.garbage.filter(|garbage| garbage.tokens > 0) {
            let (tokens, rent) = (short_count(garbage.tokens), dollars(garbage.rent));
            lines.push(Line::styled(format!("garbage {tokens}, rent {rent}"), theme.style(Role::Garbage)));
        }
        let next = if self.is_price_unknown {
            "price unknown".to_owned()
        } else {
            format!("next {}", dollars(self.next))
        };
        lines.push(Line::from(match facts.expiry {
            Some(expiry) if expiry.remaining.is_zero() => format!("cold {dot} {next}"),
            Some(expiry) => format!("warm {} {dot} {next}", clock(expiry.remaining)),
            None => next,
        }));
        if let Some(session) = facts.session {
            let share = percent(session.read.0, session.read.1);
            lines.push(Line::from(format!("session {} {dot} {share} read", session.cost.text())));
        }
        if let Some(verdict) = &facts.verdict {
            let (tokens, paid) = (short_count(verdict.tokens), dollars(verdict.dollars));
            lines.push(Line::styled(format!("last miss {tokens}, {paid}"), theme.style(Role::Care)));
            lines.push(Line::from(format!("  {}", escape(&verdict.cause))));
        }
        lines
    }
}
