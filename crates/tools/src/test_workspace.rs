//! [`TestWorkspace`]: a temporary workspace in which tests call tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use hardpan_context::knowledge::FileKnowledge;
use hardpan_prompt::{Json, MessagePart};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Scope, Tool, ToolInvocation, ToolOutcome};

/// A workspace in a folder of its own, with a folder beside it. What calls tell about files is
/// known to the next call.
pub(crate) struct TestWorkspace {
    folder: TempDir,
    pub scope: Scope,
    knowledge: Mutex<FileKnowledge>,
}

/// A workspace with these files; a name that ends in `/` is a folder.
pub(crate) fn workspace(files: &[(&str, &str)]) -> TestWorkspace {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap().join("project");
    let fixture = TestWorkspace { folder, scope: Scope::new(&root, &root), knowledge: Mutex::default() };
    fs::create_dir(&root).unwrap();
    files.iter().for_each(|(name, text)| fixture.write(name, text));
    fixture
}

impl TestWorkspace {
    /// Absolute path of a file in the workspace.
    pub fn path(&self, name: &str) -> PathBuf {
        self.scope.root.join(name)
    }

    /// The folder that contains the workspace, which is out of scope.
    pub fn outside(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        if name.ends_with('/') {
            return fs::create_dir_all(path).unwrap();
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    #[cfg(unix)]
    pub fn link(&self, name: &str, target: impl AsRef<Path>) {
        std::os::unix::fs::symlink(target, self.path(name)).unwrap();
    }

    #[cfg(unix)]
    pub fn pipe(&self, name: &str) {
        let status = std::process::Command::new("mkfifo").arg(self.path(name)).status();
        assert!(status.unwrap().success());
    }

    /// What the model knows about the files now.
    pub fn knowledge(&self) -> FileKnowledge {
        self.knowledge.lock().unwrap().clone()
    }

    /// Calls a tool for a model that knows this much, and waits for its outcome.
    pub fn call_with(&self, tool: &dyn Tool, arguments: &Value, knowledge: &FileKnowledge) -> ToolOutcome {
        let arguments = Json::new(arguments);
        let call = ToolInvocation {
            id: "1",
            arguments: &arguments,
            scope: &self.scope,
            knowledge,
            progress: &|_| {},
        };
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(tool.run(call))
    }

    /// Calls a tool and waits for its outcome, which the next call knows.
    pub fn call(&self, tool: &dyn Tool, arguments: &Value) -> ToolOutcome {
        let outcome = self.call_with(tool, arguments, &self.knowledge());
        for observation in outcome.file_observations.clone() {
            self.knowledge.lock().unwrap().record(&"m".into(), observation);
        }
        outcome
    }

    /// Shows the model a file as an item of the context.
    pub fn show_item(&self, name: &str, body: &str) {
        self.knowledge.lock().unwrap().record_item(name, &body.into());
    }

    /// Lets the model read a file.
    pub fn read(&self, name: &str) {
        self.text(&crate::Read, &json!({ "path": name }));
    }

    /// The text of a call that must succeed.
    pub fn text(&self, tool: &dyn Tool, arguments: &Value) -> String {
        let outcome = self.call(tool, arguments);
        assert!(!outcome.is_error, "{outcome:?}");
        text_of(&outcome)
    }

    /// The text of a call that must fail.
    pub fn failure(&self, tool: &dyn Tool, arguments: &Value) -> String {
        let outcome = self.call(tool, arguments);
        assert!(outcome.is_error, "{outcome:?}");
        text_of(&outcome)
    }
}

fn text_of(outcome: &ToolOutcome) -> String {
    match &outcome.content[..] {
        [MessagePart::Text { text }] => text.to_string(),
        other => panic!("{other:?}"),
    }
}
