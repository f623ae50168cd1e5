//! Skills and templates that handlers name when a session begins.

use std::ops::ControlFlow;

use hardpan_context::Skill;

use crate::agent::Agent;
use crate::events::{Note, NoteKind, ResourcesDiscover, ResourcesReply};
use crate::expand::{Expansions, Folder, FolderContents, FolderOwner};

impl Agent {
    /// Asks the handlers where more skills and templates are, and takes them over from there. A name
    /// that is taken keeps its meaning.
    pub(crate) async fn discover_resources(&self) {
        if !self.events().has_handlers::<ResourcesDiscover>() {
            return;
        }
        let scope = &self.inner.setup.scope;
        let mut found = ResourcesReply::default();
        let event = ResourcesDiscover { cwd: scope.folder.clone() };
        let asking = self.events().ask_handlers(self, event, |_, reply: ResourcesReply| {
            found.skill_paths.extend(reply.skill_paths);
            found.prompt_paths.extend(reply.prompt_paths);
            ControlFlow::Continue(())
        });
        let (_, faults) = asking.await;
        self.events().report_faults(&faults);
        let folder = |path, contents| Folder { path, contents, owner: FolderOwner::User };
        let skills = found.skill_paths.into_iter().map(|path| folder(path, FolderContents::Skills));
        let templates = found.prompt_paths.into_iter().map(|path| folder(path, FolderContents::Templates));
        let folders: Vec<Folder> = skills.chain(templates).collect();
        if folders.is_empty() {
            return;
        }
        let commands = self.commands();
        let reserved: Vec<&str> = commands.keys().map(String::as_str).collect();
        let more = Expansions::discover(&scope.guard(), &folders, &reserved);
        for problem in &more.problems {
            self.publish_note(&Note { text: problem.to_string(), kind: NoteKind::Expansion });
        }
        // Handlers are asked once, when the session begins.
        let _ = self.inner.discovered.set(self.inner.setup.expansions.clone().with(more));
    }

    /// The skills that handlers named, as the model reads of them.
    pub(crate) fn discovered_skills(&self) -> Vec<Skill> {
        let Some(all) = self.inner.discovered.get() else { return Vec::new() };
        let known = self.inner.setup.expansions.model_listing();
        all.model_listing().into_iter().filter(|skill| !known.contains(skill)).collect()
    }
}
