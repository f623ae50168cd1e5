//! The tree of a session: its prompts, and what going back to one does.

use hardpan_app::ConversationApp;
use hardpan_app::actions::TURN_ENTRY;
use hardpan_prompt::{MessageBody, MessagePart};
use hardpan_session::{Entry, POSITION_RECORD, Record, Session};
use hardpan_terminal::blocks::pickers::{GoingOn, StepBack, TreeStep};
use hardpan_terminal::views::{TreeData, TreeItem};

use super::session_list::going_on;

/// A prompt and everything up to the next one.
struct Step {
    /// The prompt's entry.
    at: usize,
    /// The last entry before another prompt.
    end: usize,
    /// The steps that follow it; the one that leads to the newest entry is last.
    below: Vec<usize>,
    cost: f64,
    turns: Vec<u64>,
}

/// The steps of a session, parents before children.
pub fn tree(app: &ConversationApp, session: &Session) -> TreeData {
    let (steps, roots) = steps(session);
    let labels = session.labels();
    let path = session.path_to(None).unwrap_or_default();
    let is_on_path = |step: &Step| path.iter().any(|entry| entry.id == session.entries[step.at].id);
    let here = steps.iter().rposition(&is_on_path);
    let mut items = Vec::new();
    // Not recursive: a conversation may be deeper than the stack.
    let mut waiting = placed(&roots, 1, &[], 0);
    while let Some(place) = waiting.pop() {
        let step = &steps[place.step];
        let entry = &session.entries[step.end];
        let is_here = here == Some(place.step);
        let label = (step.at..=step.end).find_map(|at| labels.get(&*session.entries[at].id));
        let files: Vec<String> = step.turns.iter().flat_map(|turn| app.turn_files(*turn)).collect();
        items.push(TreeItem {
            entry: entry.id.to_string(),
            step: TreeStep {
                number: place.number.clone(),
                depth: place.depth,
                is_last: step.below.is_empty(),
                open_branches: place.open.clone(),
                prompt: prompt_text(&session.entries[step.at]).unwrap_or_default(),
                changes: files.iter().map(|file| file_name(file)).collect::<Vec<_>>().join(", "),
                cost: step.cost,
                label: label.map(|label| (*label).to_owned()),
                note: (!is_on_path(step)).then(|| "left".to_owned()),
                is_here,
            },
            back: (!is_here).then(|| step_back(app, session, entry, &place.number)),
        });
        waiting.extend(placed(&step.below, place.level + 1, &place.open, place.depth));
    }
    TreeData { steps: items }
}

/// A step with its place in the drawing.
struct PlacedStep {
    step: usize,
    level: usize,
    number: String,
    depth: usize,
    open: Vec<bool>,
}

/// The steps that follow one, in the order of a stack: those that were left come first, a little to
/// the right.
fn placed(below: &[usize], level: usize, open: &[bool], depth: usize) -> Vec<PlacedStep> {
    let count = below.len();
    let place = |(index, step): (usize, &usize)| {
        let letter = if count > 1 {
            char::from(b'a' + u8::try_from(index % 26).unwrap_or(0)).to_string()
        } else {
            String::new()
        };
        let is_left = index + 1 < count;
        let mut open = open.to_vec();
        if is_left {
            open.push(true);
        }
        PlacedStep {
            step: *step,
            level,
            number: format!("{level}{letter}"),
            depth: depth + usize::from(is_left),
            open,
        }
    };
    let mut placed: Vec<PlacedStep> = below.iter().enumerate().map(place).collect();
    placed.reverse();
    placed
}

fn steps(session: &Session) -> (Vec<Step>, Vec<usize>) {
    let tree = session.tree();
    let count = session.entries.len();
    let mut newest: Vec<usize> = (0..count).collect();
    for at in (0..count).rev() {
        newest[at] = tree.children[at].iter().map(|child| newest[*child]).fold(at, usize::max);
    }
    let (mut steps, mut roots): (Vec<Step>, Vec<usize>) = (Vec::new(), Vec::new());
    // The step that each entry belongs to. Parents come before their children.
    let mut step_of: Vec<Option<usize>> = vec![None; count];
    let mut parents: Vec<Option<usize>> = vec![None; count];
    for (at, children) in tree.children.iter().enumerate() {
        children.iter().for_each(|child| parents[*child] = Some(at));
    }
    for (at, entry) in session.entries.iter().enumerate() {
        let above = parents[at].and_then(|parent| step_of[parent]);
        if prompt_text(entry).is_some() {
            let step = steps.len();
            above.map_or(&mut roots, |above| &mut steps[above].below).push(step);
            steps.push(Step { at, end: at, below: Vec::new(), cost: 0.0, turns: Vec::new() });
            step_of[at] = Some(step);
            continue;
        }
        step_of[at] = above;
        let Some(step) = above.map(|above| &mut steps[above]) else { continue };
        match &entry.record {
            Record::Request(request) => step.cost += request.dollars,
            Record::Custom { custom_type, data } if &**custom_type == TURN_ENTRY => {
                step.turns.extend(data.as_u64());
            }
            // It may stand behind the middle of a step, whose end is elsewhere.
            Record::Custom { custom_type, .. } if &**custom_type == POSITION_RECORD => continue,
            _ => {}
        }
        step.end = at;
    }
    let order: Vec<usize> = steps.iter().map(|step| newest[step.at]).collect();
    steps.iter_mut().for_each(|step| step.below.sort_by_key(|below| order[*below]));
    roots.sort_by_key(|root| order[*root]);
    (steps, roots)
}

/// The text of a prompt; none for other entries.
fn prompt_text(entry: &Entry) -> Option<String> {
    let Record::Message(message) = &entry.record else { return None };
    let MessageBody::User { content } = &*message.body else { return None };
    let texts = content.iter().filter_map(|part| match part {
        MessagePart::Text { text } => Some(text.as_str()),
        _ => None,
    });
    Some(texts.collect::<Vec<_>>().join(" "))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn step_back(app: &ConversationApp, session: &Session, entry: &Entry, number: &str) -> StepBack {
    let path = session.path_to(Some(&entry.id)).unwrap_or_default();
    let last = path.iter().rev().find_map(|entry| match &entry.record {
        Record::Request(request) => Some(request),
        _ => None,
    });
    let (next, is_cached) = match last.and_then(|last| going_on(app, last)) {
        Some(GoingOn::Warm(price, _)) => (price, true),
        Some(GoingOn::Cold(price) | GoingOn::Copy(price)) => (price, false),
        Some(GoingOn::Unknown) | None => (0.0, false),
    };
    StepBack { number: number.to_owned(), files: app.files_after(session, &entry.id), next, is_cached }
}
