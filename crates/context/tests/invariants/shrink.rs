//! Makes a failing session smaller for as long as it breaks the same rule.

use hardpan_context::{PromptEntry, SnapshotFile};
use hardpan_economy::PauseCounts;

use crate::random_session::{Session, Step};
use crate::violation::Violation;

/// The smallest session found, and how it fails.
pub fn shrink(
    session: Session,
    violation: Violation,
    fails: impl Fn(&Session) -> Option<Violation>,
) -> (Session, Violation) {
    let (mut smallest, mut violation) = (session, violation);
    loop {
        let smaller = candidates(&smallest).find_map(|candidate| {
            let found = fails(&candidate).filter(|found| found.rule == violation.rule)?;
            Some((candidate, found))
        });
        match smaller {
            Some(found) => (smallest, violation) = found,
            None => return (smallest, violation),
        }
    }
}

/// A way of leaving something out of a snapshot; false if there was nothing to leave out.
type Cut = Box<dyn Fn(&mut SnapshotFile) -> bool>;

fn candidates(session: &Session) -> impl Iterator<Item = Session> {
    let count = session.requests.len();
    let shorter = (0..count).filter(move |_| count > 1).map(move |index| {
        let mut shorter = session.clone();
        shorter.requests.remove(index);
        // What followed it now follows something else.
        let after = if index == 0 { Step::First } else { Step::Rewritten };
        shorter.requests[index.min(count - 2)..].iter_mut().take(1).for_each(|request| request.step = after);
        shorter
    });
    let cut = cuts(session).into_iter().filter_map(|cut| {
        let mut smaller = session.clone();
        let hit = smaller
            .requests
            .iter_mut()
            .map(|request| cut(&mut request.file))
            .fold(false, |any, hit| any | hit);
        hit.then_some(smaller)
    });
    shorter.chain(cut)
}

fn remove<T>(list: &mut Vec<T>, matches: impl Fn(&T) -> bool) -> bool {
    let before = list.len();
    list.retain(|entry| !matches(entry));
    list.len() < before
}

/// Things are cut by name from all requests at once, so that what was appended is still appended.
fn cuts(session: &Session) -> Vec<Cut> {
    let mut cuts: Vec<Cut> = vec![
        Box::new(|file| file.symbols.take().is_some()),
        Box::new(|file| file.tree.take().is_some()),
        Box::new(|file| file.thinking.take().is_some()),
        Box::new(|file| file.web_search.take().is_some()),
        Box::new(|file| file.working_directory.take().is_some()),
        Box::new(|file| !std::mem::take(&mut file.documents).is_empty()),
        Box::new(|file| !std::mem::take(&mut file.images).is_empty()),
        Box::new(|file| !std::mem::take(&mut file.tools).is_empty()),
        Box::new(|file| !std::mem::take(&mut file.pages).is_empty()),
        Box::new(|file| std::mem::take(&mut file.fold)),
        Box::new(|file| file.lost_cache.take().is_some()),
        Box::new(|file| std::mem::take(&mut file.pauses) != PauseCounts::default()),
    ];
    let last = session.requests.last().expect("there is one");
    for request in &session.requests {
        for message in &request.file.messages {
            let id = message.id.clone();
            cuts.push(Box::new(move |file| {
                // The prompt is the message that it becomes.
                let is_it = |prompt: &PromptEntry| matches!(prompt, PromptEntry::WithId { id: other, .. } if *other == id);
                let prompt = file.prompt.take_if(|prompt| is_it(prompt));
                remove(&mut file.messages, |message| message.id == id) | prompt.is_some()
            }));
        }
        for entry in &request.file.items {
            let id = entry.id.clone();
            cuts.push(Box::new(move |file| remove(&mut file.items, |entry| entry.id == id)));
        }
        for entry in &request.file.files {
            let path = entry.path.clone();
            cuts.push(Box::new(move |file| remove(&mut file.files, |entry| entry.path == path)));
        }
    }
    if last.file.prompt.is_some() {
        let now = last.file.now;
        cuts.push(Box::new(move |file| file.now == now && file.prompt.take().is_some()));
    }
    cuts
}
