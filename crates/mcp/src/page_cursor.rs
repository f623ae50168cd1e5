//! [`PageCursor`]: where a list goes on that a server tells page by page.

use std::collections::BTreeSet;

use rmcp::model::PaginatedRequestParams;

use crate::config::ServerName;

/// Where a list goes on. It ends where a server would tell the same pages again.
#[derive(Debug, Default)]
pub(crate) struct PageCursor {
    next: Option<String>,
    seen: BTreeSet<String>,
}

impl PageCursor {
    /// What asks for the next page.
    pub fn params(&self) -> PaginatedRequestParams {
        PaginatedRequestParams::default().with_cursor(self.next.clone())
    }

    /// Goes on to where a page says that the next one is. False if it was the last one.
    pub fn advance(&mut self, server: &ServerName, next: Option<String>) -> bool {
        // Some servers write the end as an empty text.
        self.next = next.filter(|next| !next.is_empty());
        let Some(next) = &self.next else { return false };
        let is_new = self.seen.insert(next.clone());
        if !is_new {
            tracing::warn!(%server, "a list goes on where it has been: it ends there");
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_ends_without_a_next_page_and_where_it_has_been() {
        let server = ServerName::try_from("pages".to_owned()).expect("a name");
        let pages = |nexts: &[Option<&str>]| {
            let mut cursor = PageCursor::default();
            let go_on = |next: &&Option<&str>| cursor.advance(&server, next.map(str::to_owned));
            1 + nexts.iter().take_while(go_on).count()
        };
        assert_eq!(pages(&[None]), 1);
        assert_eq!(pages(&[Some("")]), 1);
        assert_eq!(pages(&[Some("a"), Some("b"), None]), 3);
        assert_eq!(pages(&[Some("a"), Some("a"), Some("a")]), 2);
        assert_eq!(pages(&[Some("a"), Some("b"), Some("a"), Some("b")]), 3);
    }
}
