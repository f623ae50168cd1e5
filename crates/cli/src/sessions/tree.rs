//! [`draw`]: a session as a tree, in ASCII characters that work in every pipe and terminal.

use hardpan_session::Session;

/// How many characters of each message to show.
const GIST_CHARS: usize = 200;

/// Draws one line per message, with `*` before the current one.
///
/// Branches that were left hang off the line that leads to the newest message. That line stays at
/// the left however often the user went back:
///
/// ```text
///   e1  user: Why does the build fail?
///   |- e2  assistant: A semicolon.
///   |  e3  user: Where?
/// * e4  assistant: The lock file.
/// ```
pub fn draw(session: &Session) -> Vec<String> {
    let labels = session.labels();
    // The last message on the way to the leaf; other records may follow it.
    let path = session.path_to(None).unwrap_or_default();
    let last = path.iter().rev().find(|entry| entry.preview(GIST_CHARS).is_some()).map(|entry| &*entry.id);
    let shown = MessageTree::from_session(session);
    let mut lines = Vec::new();
    // Not recursive, because a conversation may be deeper than the stack.
    let mut waiting = branches(&shown.roots, "");
    while let Some(Branch { at, first, rest }) = waiting.pop() {
        let entry = &session.entries[at];
        if let Some(preview) = entry.preview(GIST_CHARS) {
            let mark = if last == Some(&entry.id) { '*' } else { ' ' };
            let label = labels.get(&*entry.id).map_or_else(String::new, |label| format!("[{label}] "));
            lines.push(format!("{mark} {first}{}  {}: {label}{}", entry.id, preview.role, preview.text));
        }
        waiting.extend(branches(&shown.below[at], &rest));
    }
    lines
}

/// An entry to draw, the prefix of its line, and the prefix of the lines below it.
struct Branch {
    at: usize,
    first: String,
    rest: String,
}

/// The branches for an entry's children, whose lines start with `before`, in stack order: the last
/// child continues the main line and is drawn last.
fn branches(children: &[usize], before: &str) -> Vec<Branch> {
    let Some((&on, left)) = children.split_last() else { return Vec::new() };
    let on = Branch { at: on, first: before.to_owned(), rest: before.to_owned() };
    let left = left.iter().rev();
    let left = left.map(|&at| Branch { at, first: format!("{before}|- "), rest: format!("{before}|  ") });
    [on].into_iter().chain(left).collect()
}

/// The tree of the messages only. Other records are left out; their children become children of the
/// message before them.
struct MessageTree {
    roots: Vec<usize>,
    /// The children of each message, by entry index; the one that leads to the newest entry is
    /// last.
    below: Vec<Vec<usize>>,
}

impl MessageTree {
    fn from_session(session: &Session) -> Self {
        let (tree, count) = (session.tree(), session.entries.len());
        // Parents come before their children, so going backwards knows all descendants …
        let mut newest: Vec<usize> = (0..count).collect();
        for at in (0..count).rev() {
            newest[at] = tree.children[at].iter().map(|&child| newest[child]).fold(at, usize::max);
        }
        // … and going forwards knows all ancestors.
        let mut above: Vec<Option<usize>> = vec![None; count];
        let mut shown = MessageTree { roots: Vec::new(), below: vec![Vec::new(); count] };
        let mut place = |at: usize, above: Option<usize>| {
            if session.entries[at].preview(1).is_none() {
                return above;
            }
            above.map_or(&mut shown.roots, |above| &mut shown.below[above]).push(at);
            Some(at)
        };
        for &root in &tree.roots {
            above[root] = place(root, None);
        }
        for at in 0..count {
            for &child in &tree.children[at] {
                above[child] = place(child, above[at]);
            }
        }
        for children in shown.below.iter_mut().chain([&mut shown.roots]) {
            children.sort_by_key(|&child| newest[child]);
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use hardpan_prompt::{AgentMessage, MessageBody, MessagePart};
    use hardpan_session::{Entry, Header, Record};

    use super::*;

    /// A session of these entries; a text of none is something else than a message.
    fn session(entries: &[(&str, Option<&str>, Option<&str>)]) -> Session {
        let entry = |&(id, parent, text): &(&str, Option<&str>, Option<&str>)| match text {
            Some(text) => Entry::message(
                parent,
                AgentMessage::new(id, MessageBody::User { content: vec![MessagePart::text(text)] }),
            ),
            None => Entry::new(id, parent, None, Record::Name { name: "x".into() }),
        };
        let header = Header { id: "s".into(), time: None, cwd: "/".into(), extra: Default::default() };
        let lines: String = entries.iter().map(|entry_of| entry(entry_of).to_line()).collect();
        Session::parse("s", (header.to_line() + &lines).as_bytes()).unwrap()
    }

    #[test]
    fn a_conversation_without_branches_is_a_list() {
        let session =
            session(&[("a", None, Some("one")), ("x", Some("a"), None), ("b", Some("x"), Some("two"))]);
        assert_eq!(draw(&session), ["  a  user: one", "* b  user: two"]);
    }

    #[test]
    fn branches_that_were_left_hang_off_the_line_that_goes_on() {
        let session = session(&[
            ("a", None, Some("one")),
            ("b", Some("a"), Some("left first")),
            ("c", Some("b"), Some("and on")),
            ("d", Some("b"), Some("and otherwise")),
            ("e", Some("d"), Some("to here")),
            ("f", Some("a"), Some("left second")),
            ("g", Some("a"), Some("goes on")),
            ("h", Some("g"), Some("to the end")),
        ]);
        let expected = [
            "  a  user: one",
            "  |- b  user: left first",
            "  |  |- c  user: and on",
            "  |  d  user: and otherwise",
            "  |  e  user: to here",
            "  |- f  user: left second",
            "  g  user: goes on",
            "* h  user: to the end",
        ];
        assert_eq!(draw(&session), expected);
    }

    #[test]
    fn a_branch_may_part_where_nothing_is_shown_and_an_older_one_may_be_the_current() {
        let session = session(&[
            ("a", None, Some("one")),
            ("x", Some("a"), None),
            ("b", Some("x"), Some("older")),
            ("c", Some("x"), Some("newer")),
            ("d", Some("b"), Some("gone on with")),
            ("y", Some("d"), None),
            ("z", None, Some("another beginning")),
            ("w", Some("y"), None),
        ]);
        let expected = [
            "  |- z  user: another beginning",
            "  a  user: one",
            "  |- c  user: newer",
            "  b  user: older",
            "* d  user: gone on with",
        ];
        assert_eq!(draw(&session), expected);
    }
}
