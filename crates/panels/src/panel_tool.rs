//! [`PanelTool`]: the one tool for all panels.
//!
//! Nine tools would cost nine declarations in every request. This one has an action and two
//! arguments; what each action takes is said in its description, which is made once, from the panels
//! of the conversation, and does not change after that.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hardpan_prompt::{Json, Tool as Declaration};
use hardpan_tools::{CallSubject, Effect, Scope, Tool, ToolInvocation, ToolOutcome, parse_arguments};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::panel::{ActionCall, ActionError};
use crate::registry::PanelRegistry;

/// The files that are open beside the panels.
pub trait OpenFiles: Send + Sync {
    /// Opens a file that tools may read. Returns its path as the model knows it, and its id.
    fn open(&self, path: &str, scope: &Scope) -> Result<(String, Arc<str>), ActionError>;

    /// Closes a file by its path. False if it is not open.
    fn close(&self, path: &str, scope: &Scope) -> bool;
}

/// The tool `panel`.
pub struct PanelTool {
    registry: Arc<PanelRegistry>,
    files: Arc<dyn OpenFiles>,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    declaration: Declaration,
}

/// What can be done with every panel.
const COMMON_ACTIONS: [(&str, &str); 5] = [
    ("open", "target: path of a file to keep in view"),
    ("close", "target: id or path"),
    ("page", "target: id, text: number"),
    ("hide", "target: id"),
    ("show", "target: id"),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    action: String,
    #[serde(default)]
    target: Option<String>,
    #[serde(default)]
    text: Option<String>,
}

impl PanelTool {
    /// The tool for the panels of a conversation, as they are now.
    pub fn new(
        registry: Arc<PanelRegistry>,
        files: Arc<dyn OpenFiles>,
        clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    ) -> Self {
        let own = registry.actions();
        let actions: Vec<(&str, &str)> = COMMON_ACTIONS
            .into_iter()
            .chain(own.iter().map(|action| (action.name, action.arguments)))
            .collect();
        let lines: Vec<String> =
            actions.iter().map(|(name, arguments)| format!("- {name} ({arguments})")).collect();
        let names: Vec<&str> = actions.iter().map(|(name, _)| *name).collect();
        let declaration = Declaration {
            name: "panel".into(),
            description: format!(
                "Change the panels that you are shown (P1, P2, …). Actions:\n{}",
                lines.join("\n")
            )
            .into(),
            parameters: Json::new(&json!({
                "type": "object",
                "properties": {
                    "action": {"type": "string", "enum": names},
                    "target": {"type": "string"},
                    "text": {"type": "string"},
                },
                "required": ["action"],
            })),
            snippet: Some("change your panels: open files, todos, notes".into()),
            guidelines: Vec::new(),
        };
        PanelTool { registry, files, clock, declaration }
    }

    fn carry_out(&self, arguments: &Arguments, scope: &Scope) -> Result<String, ActionError> {
        let Arguments { action, target, text } = arguments;
        let call =
            ActionCall { action, target: target.as_deref(), text: text.as_deref(), now: (self.clock)() };
        match action.as_str() {
            "open" => {
                let (path, id) = self.files.open(call.target()?, scope)?;
                Ok(format!("Opened '{path}' as {id}"))
            }
            "close" => self.close(call.target()?, scope),
            "page" => {
                let number = call.text()?;
                let page = number.trim().parse().map_err(|_| ActionError::Invalid {
                    what: "page",
                    name: number.to_owned(),
                    expected: "a number from 1",
                })?;
                let (page, pages) = self.registry.turn_page(call.target()?, page, call.now)?;
                Ok(format!("page {page} of {pages}"))
            }
            "hide" => Ok(format!("{} is hidden", self.registry.set_hidden(call.target()?, true)?)),
            "show" => Ok(format!("{} is shown", self.registry.set_hidden(call.target()?, false)?)),
            _ => self.registry.act(&call),
        }
    }

    /// Closes a panel or a file.
    fn close(&self, target: &str, scope: &Scope) -> Result<String, ActionError> {
        let key = self.registry.key_of(target);
        let path = key.as_deref().map_or(Some(target), |key| key.strip_prefix("file:"));
        if let Some(path) = path
            && self.files.close(path, scope)
        {
            return Ok(format!("Closed '{path}'"));
        }
        Ok(format!("Closed {}", self.registry.close(target)?))
    }
}

impl Tool for PanelTool {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn effect(&self, arguments: &Value) -> Effect {
        let action = arguments["action"].as_str().unwrap_or_default();
        self.registry.panel_for(action).map_or(Effect::Reads, |(_, action)| action.effect)
    }

    fn subject(&self, arguments: &Value) -> CallSubject {
        let action = arguments["action"].as_str().unwrap_or_default();
        let target = arguments["target"].as_str().unwrap_or_default();
        let found = self.registry.panel_for(action);
        found.map_or(CallSubject::Other, |(panel, action)| panel.subject(action.name, target))
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let arguments: Arguments = match parse_arguments(&call) {
                Ok(arguments) => arguments,
                Err(outcome) => return outcome,
            };
            match self.carry_out(&arguments, call.scope) {
                Ok(done) => ToolOutcome::text(done),
                Err(error) => ToolOutcome::failed(format!("Nothing was done: {error}.")),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use hardpan_context::knowledge::FileKnowledge;
    use hardpan_prompt::MessagePart;

    use super::*;
    use crate::{Logs, Scratchpad, Todo};

    #[derive(Default)]
    struct Files(Mutex<Vec<String>>, Arc<PanelRegistry>);

    impl OpenFiles for Files {
        fn open(&self, path: &str, _scope: &Scope) -> Result<(String, Arc<str>), ActionError> {
            self.0.lock().unwrap().push(path.into());
            Ok((path.into(), self.1.assign_id(&format!("file:{path}"))))
        }

        fn close(&self, path: &str, _scope: &Scope) -> bool {
            let mut files = self.0.lock().unwrap();
            let before = files.len();
            files.retain(|open| open != path);
            files.len() < before
        }
    }

    fn tool() -> PanelTool {
        let registry = Arc::new(PanelRegistry::default());
        registry.add(Arc::new(Todo::default()));
        registry.add(Arc::new(Logs::default()));
        registry.add(Arc::new(Scratchpad::default()));
        let files = Files(Mutex::default(), registry.clone());
        PanelTool::new(registry, Arc::new(files), Arc::new(|| Timestamp::UNIX_EPOCH))
    }

    fn call(tool: &PanelTool, arguments: &Value) -> String {
        let (scope, knowledge) = (Scope::new("/", "/"), FileKnowledge::default());
        let arguments = Json::new(arguments);
        let call = ToolInvocation {
            id: "c1",
            arguments: &arguments,
            scope: &scope,
            knowledge: &knowledge,
            progress: &|_| {},
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let outcome = runtime.block_on(tool.run(call));
        match &outcome.content[..] {
            [MessagePart::Text { text }] => text.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn files_are_opened_and_closed_by_path_or_id() {
        let tool = tool();
        let open = |path: &str| call(&tool, &json!({"action": "open", "target": path}));
        let close = |target: &str| call(&tool, &json!({"action": "close", "target": target}));
        assert_eq!(open("src/main.rs"), "Opened 'src/main.rs' as P10");
        assert_eq!(open("src/lib.rs"), "Opened 'src/lib.rs' as P11");
        assert_eq!(close("P10"), "Closed 'src/main.rs'");
        assert_eq!(close("src/lib.rs"), "Closed 'src/lib.rs'");
        assert_eq!(open("src/other.rs"), "Opened 'src/other.rs' as P12");
        assert_eq!(open("src/main.rs"), "Opened 'src/main.rs' as P10");
        assert_eq!(close("nothing"), "Nothing was done: there is no panel nothing; there is P1, P8, P9.");
    }

    #[test]
    fn actions_reach_their_panels() {
        let tool = tool();
        assert_eq!(call(&tool, &json!({"action": "todo_add", "text": "a"})), "added 1: a");
        assert_eq!(call(&tool, &json!({"action": "hide", "target": "P1"})), "P1 is hidden");
        assert_eq!(call(&tool, &json!({"action": "page", "target": "P1", "text": "2"})), "page 1 of 1");
        let none = call(&tool, &json!({"action": "fly"}));
        assert_eq!(none, "Nothing was done: there is no action \"fly\" here.");
        assert!(call(&tool, &json!({"action": 7})).starts_with("The arguments cannot be used"));
    }

    // Every request in the layout pays for these bytes.
    #[test]
    fn the_declaration_stays_short() {
        let tool = tool();
        let declared = tool.declaration();
        assert!(declared.description.len() + declared.parameters.as_str().len() < 1200);
        assert_eq!(declared.parameters.value()["properties"]["action"]["enum"][0], "open");
    }
}
