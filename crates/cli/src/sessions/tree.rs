//! A session drawn as a tree, in characters that every pipe and terminal has.

use hardpan_session::Session;

/// So many characters of a message are shown.
const GIST: usize = 200;

/// One line per message, `*` before the one where the session goes on.
///
/// Where a conversation parts, the branches that were left hang off the line that leads to what came last. However often one
/// goes back, that line stays at the left:
///
/// ```text
///   e1  user: Why does the build fail?
///   |- e2  assistant: A semicolon.
///   |  e3  user: Where?
/// * e4  assistant: The lock file.
/// ```
pub fn lines(session: &Session) -> Vec<String> {
    let labels = session.labels();
    // The last message on the way to the leaf: requests and the like may come after it.
    let path = session.path_to(None).unwrap_or_default();
    let last = path.iter().rev().find(|entry| entry.gist(GIST).is_some()).map(|entry| &*entry.id);
    let shown = Shown::of(session);
    let mut lines = Vec::new();
    // Not recursive: a conversation may be longer than a stack is deep.
    let mut waiting = branches(&shown.roots, "");
    while let Some(Branch { at, first, rest }) = waiting.pop() {
        let entry = &session.entries[at];
        if let Some(gist) = entry.gist(GIST) {
            let mark = if last == Some(&entry.id) { '*' } else { ' ' };
            let label = labels.get(&*entry.id).map_or_else(String::new, |label| format!("[{label}] "));
            lines.push(format!("{mark} {first}{}  {}: {label}{}", entry.id, gist.role, gist.text));
        }
        waiting.extend(branches(&shown.below[at], &rest));
    }
    lines
}

/// An entry, what stands before it, and what stands before those that follow it.
struct Branch {
    at: usize,
    first: String,
    rest: String,
}

/// What follows an entry whose own followers have this before them. The last is the line that goes on; it waits longest.
fn branches(children: &[usize], before: &str) -> Vec<Branch> {
    let Some((&on, left)) = children.split_last() else { return Vec::new() };
    let on = Branch { at: on, first: before.to_owned(), rest: before.to_owned() };
    let left = left.iter().rev();
    let left = left.map(|&at| Branch { at, first: format!("{before}|- "), rest: format!("{before}|  ") });
    [on].into_iter().chain(left).collect()
}

/// The tree of the messages alone: what else is recorded is left out, and what follows it follows the message before it.
struct Shown {
    roots: Vec<usize>,
    /// For each message those that follow it, the way to what came last at the end.
    below: Vec<Vec<usize>>,
}

impl Shown {
    fn of(session: &Session) -> Self {
        let (tree, count) = (session.tree(), session.entries.len());
        // An entry follows another on an earlier line: from the end, all below one are known when it is its turn.
        let mut newest: Vec<usize> = (0..count).collect();
        for at in (0..count).rev() {
            newest[at] = tree.children[at].iter().map(|&child| newest[child]).fold(at, usize::max);
        }
        // And from the start, all above it.
        let mut above: Vec<Option<usize>> = vec![None; count];
        let mut shown = Shown { roots: Vec::new(), below: vec![Vec::new(); count] };
        let mut place = |at: usize, above: Option<usize>| {
            if session.entries[at].gist(1).is_none() {
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
    use hardpan_prompt::{AgentMessage, Body, Part};
    use hardpan_session::{Entry, Header, Record};

    use super::*;

    /// A session of these entries; a text of none is something else than a message.
    fn session(entries: &[(&str, Option<&str>, Option<&str>)]) -> Session {
        let entry = |&(id, parent, text): &(&str, Option<&str>, Option<&str>)| match text {
            Some(text) => {
                Entry::message(parent, AgentMessage::new(id, Body::User { content: vec![Part::text(text)] }))
            }
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
        assert_eq!(lines(&session), ["  a  user: one", "* b  user: two"]);
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
        assert_eq!(lines(&session), expected);
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
        assert_eq!(lines(&session), expected);
    }
}
