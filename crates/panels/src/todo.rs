//! [`Todo`] (P1): what is left to do.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::panel::{ActionCall, ActionError, Panel, PanelAction, RefreshStrategy, Revision};

/// More todos than anybody works off.
const MAX_TODOS: usize = 200;
/// The longest todo, in characters.
const MAX_TEXT: usize = 500;

/// The todo list.
#[derive(Debug, Default)]
pub struct Todo {
    list: Mutex<TodoList>,
    revision: Revision,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct TodoList {
    todos: Vec<TodoEntry>,
    /// The highest number that was ever given.
    last: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct TodoEntry {
    number: u32,
    text: String,
    status: TodoStatus,
}

/// How far a todo is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Nobody works on it yet.
    Open,
    /// It is being worked on.
    Active,
    /// It is done.
    Done,
}

impl TodoStatus {
    fn named(name: &str) -> Option<Self> {
        match name {
            "open" => Some(TodoStatus::Open),
            "active" => Some(TodoStatus::Active),
            "done" => Some(TodoStatus::Done),
            _ => None,
        }
    }

    fn mark(self) -> char {
        match self {
            TodoStatus::Open => ' ',
            TodoStatus::Active => '>',
            TodoStatus::Done => 'x',
        }
    }
}

impl TodoEntry {
    fn line(&self) -> String {
        format!("{} [{}] {}", self.number, self.status.mark(), self.text)
    }
}

impl Todo {
    /// What is not done yet, a line for each.
    pub fn remaining(&self) -> Vec<String> {
        let list = self.lock();
        let open = list.todos.iter().filter(|todo| todo.status != TodoStatus::Done);
        open.map(|todo| format!("{}: {}", todo.number, todo.text)).collect()
    }

    /// Every todo with its status, in order.
    pub fn entries(&self) -> Vec<(String, TodoStatus)> {
        self.lock().todos.iter().map(|todo| (todo.text.clone(), todo.status)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, TodoList> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, call: &ActionCall<'_>) -> Result<String, ActionError> {
        // One call may bring a whole plan, a line for each todo.
        let texts: Vec<String> = call.text()?.lines().filter_map(todo_text).collect();
        let mut list = self.lock();
        if list.todos.len() + texts.len() > MAX_TODOS {
            return Err(ActionError::Full { what: "the todo list", limit: format!("{MAX_TODOS} todos") });
        }
        let mut added = Vec::new();
        for text in texts {
            list.last += 1;
            let number = list.last;
            added.push(format!("{number}: {text}"));
            list.todos.push(TodoEntry { number, text, status: TodoStatus::Open });
        }
        Ok(format!("added {}", added.join(", ")))
    }

    fn update(&self, call: &ActionCall<'_>) -> Result<String, ActionError> {
        let text = call.text()?;
        let status = TodoStatus::named(text.trim());
        let mut list = self.lock();
        let mut lines = Vec::new();
        let numbers = list.find(call.target()?)?;
        for todo in list.todos.iter_mut().filter(|todo| numbers.contains(&todo.number)) {
            match status {
                Some(status) => todo.status = status,
                None => todo.text = todo_text(text).unwrap_or_default(),
            }
            lines.push(todo.line());
        }
        Ok(lines.join("\n"))
    }

    fn remove(&self, call: &ActionCall<'_>) -> Result<String, ActionError> {
        let target = call.target()?;
        let mut list = self.lock();
        let numbers = list.find(target)?;
        list.todos.retain(|todo| !numbers.contains(&todo.number));
        Ok(format!("removed {target}"))
    }
}

impl TodoList {
    /// The todos that a target means: `3`, `1,2`, or `done` for all that are done.
    fn find(&self, target: &str) -> Result<Vec<u32>, ActionError> {
        if target == "done" {
            let done = self.todos.iter().filter(|todo| todo.status == TodoStatus::Done);
            return Ok(done.map(|todo| todo.number).collect());
        }
        let known = || self.todos.iter().take(20).map(|todo| todo.number.to_string()).collect();
        let find = |name: &str| {
            let number = name.trim().parse().ok();
            let found = number.filter(|number| self.todos.iter().any(|todo| todo.number == *number));
            found.ok_or_else(|| ActionError::NotFound { what: "todo", name: name.into(), known: known() })
        };
        target.split(',').map(find).collect()
    }
}

/// A line as the text of a todo, without the mark of a list; `None` if nothing is left.
fn todo_text(line: &str) -> Option<String> {
    let text = line.trim().trim_start_matches(['-', '*', ' ']);
    (!text.is_empty()).then(|| text.chars().take(MAX_TEXT).collect())
}

impl Panel for Todo {
    fn key(&self) -> &str {
        "todo"
    }

    fn fixed_id(&self) -> Option<&'static str> {
        Some("P1")
    }

    fn title(&self) -> String {
        "Todo List".into()
    }

    fn strategy(&self) -> RefreshStrategy {
        RefreshStrategy::Derived
    }

    fn revision(&self) -> u64 {
        self.revision.current()
    }

    fn render(&self) -> Option<String> {
        let list = self.lock();
        let lines: Vec<String> = list.todos.iter().map(TodoEntry::line).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    fn actions(&self) -> &'static [PanelAction] {
        const {
            &[
                PanelAction::new("todo_add", "text: one per line"),
                PanelAction::new("todo_update", "target: number(s), text: open|active|done or new text"),
                PanelAction::new("todo_remove", "target: number(s) or done"),
            ]
        }
    }

    fn act(&self, call: &ActionCall<'_>) -> Result<String, ActionError> {
        let done = match call.action {
            "todo_add" => self.add(call)?,
            "todo_update" => self.update(call)?,
            "todo_remove" => self.remove(call)?,
            _ => return Err(ActionError::UnknownAction { action: call.action.to_owned() }),
        };
        self.revision.bump();
        Ok(done)
    }

    fn save(&self) -> Option<Value> {
        let list = self.lock();
        (list.last > 0).then(|| serde_json::to_value(&*list).unwrap_or_default())
    }

    fn restore(&self, state: Option<&Value>) {
        let list = state.and_then(|state| TodoList::deserialize(state).ok()).unwrap_or_default();
        *self.lock() = list;
        self.revision.bump();
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn act(todo: &Todo, action: &str, target: Option<&str>, text: Option<&str>) -> Result<String, String> {
        let call = ActionCall { target, text, ..ActionCall::new(action, Timestamp::UNIX_EPOCH) };
        todo.act(&call).map_err(|error| error.to_string())
    }

    #[test]
    fn todos_are_added_changed_and_removed() {
        let todo = Todo::default();
        assert_eq!(todo.render(), None);
        let added = act(&todo, "todo_add", None, Some("- read the parser\n\n* write a test"));
        assert_eq!(added.unwrap(), "added 1: read the parser, 2: write a test");
        act(&todo, "todo_update", Some("1"), Some("done")).unwrap();
        act(&todo, "todo_update", Some("2"), Some("write two tests")).unwrap();
        act(&todo, "todo_update", Some("2"), Some("active")).unwrap();
        assert_eq!(todo.render().unwrap(), "1 [x] read the parser\n2 [>] write two tests");
        assert_eq!(todo.remaining(), ["2: write two tests"]);
        act(&todo, "todo_remove", Some("done"), None).unwrap();
        act(&todo, "todo_add", None, Some("third")).unwrap();
        assert_eq!(todo.render().unwrap(), "2 [>] write two tests\n3 [ ] third");
        let missing = act(&todo, "todo_update", Some("1"), Some("done"));
        assert_eq!(missing.unwrap_err(), "there is no todo 1; there is 2, 3");
        assert_eq!(act(&todo, "todo_add", None, None).unwrap_err(), "todo_add needs the argument `text`");
    }

    #[test]
    fn a_restored_list_is_the_same_and_goes_on_counting() {
        let todo = Todo::default();
        act(&todo, "todo_add", None, Some("a\nb")).unwrap();
        act(&todo, "todo_remove", Some("2"), None).unwrap();
        let other = Todo::default();
        other.restore(todo.save().as_ref());
        assert_eq!(other.render(), todo.render());
        assert_eq!(act(&other, "todo_add", None, Some("c")).unwrap(), "added 3: c");
        other.restore(Some(&serde_json::json!("not a list")));
        assert_eq!(other.render(), None);
    }

    #[test]
    fn the_list_is_bounded() {
        let todo = Todo::default();
        let many = "x\n".repeat(MAX_TODOS + 1);
        assert!(act(&todo, "todo_add", None, Some(&many)).unwrap_err().contains("200 todos"));
        act(&todo, "todo_add", None, Some(&"y".repeat(10_000))).unwrap();
        assert!(todo.render().unwrap().len() < 600);
    }
}
