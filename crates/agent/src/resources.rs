//! Skills and templates that handlers name when a session begins, and when they are loaded anew.

use std::ops::ControlFlow;
use std::sync::Arc;

use hardpan_context::{Skill, Snapshot};

use crate::agent::{Agent, lock};
use crate::events::{DiscoveryReason, Note, NoteKind, ResourcesDiscover, ResourcesReply};
use crate::expand::{Expansions, Folder, FolderContents, FolderOwner};

/// What handlers named, and what of it the model has read.
pub(crate) struct DiscoveredResources {
    /// With those of the settings.
    all: Arc<Expansions>,
    /// The skills that requests list. They stay as they are until a request finds nothing in the cache,
    /// because everything after a changed list would be paid for again.
    listed: Option<Vec<Skill>>,
}

impl DiscoveredResources {
    /// Those of the settings, before handlers are asked.
    pub fn new(own: &Expansions) -> Self {
        DiscoveredResources { all: Arc::new(own.clone()), listed: None }
    }
}

impl Agent {
    /// Asks the handlers where more skills and templates are, and takes them over from there. A name
    /// that is taken keeps its meaning. Inputs can call them at once; the model reads of new skills from
    /// the next fold on.
    pub async fn discover_resources(&self, reason: DiscoveryReason) {
        let own = &self.inner.setup.expansions;
        let replace = |all: Expansions| lock(&self.inner.resources).all = Arc::new(all);
        if !self.events().has_handlers::<ResourcesDiscover>() {
            // After a reload there may be none any more.
            if reason == DiscoveryReason::Reload {
                replace(own.clone());
            }
            return;
        }
        let scope = &self.inner.setup.scope;
        let mut found = ResourcesReply::default();
        let event = ResourcesDiscover { cwd: scope.folder.clone(), reason };
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
        let commands = self.commands();
        let reserved: Vec<&str> = commands.keys().map(String::as_str).collect();
        let more = Expansions::discover(&scope.guard(), &folders, &reserved);
        for problem in &more.problems {
            self.publish_note(&Note { text: problem.to_string(), kind: NoteKind::Expansion });
        }
        replace(own.clone().with(more));
    }

    /// The skills and templates that inputs can call.
    pub fn expansions(&self) -> Arc<Expansions> {
        lock(&self.inner.resources).all.clone()
    }

    /// Adds the skills that handlers named to a request, as the model reads of them.
    pub(crate) fn add_discovered_skills(&self, snapshot: &mut Snapshot) {
        let resources = lock(&self.inner.resources);
        let listed = resources.listed.as_ref().filter(|_| snapshot.fold.is_none());
        let skills = listed.cloned().unwrap_or_else(|| {
            let known = self.inner.setup.expansions.model_listing();
            let all = resources.all.model_listing().into_iter();
            all.filter(|skill| !known.contains(skill)).collect()
        });
        snapshot.system.skills.extend(skills);
    }

    /// The provider has accepted a request: the skills that it lists stay.
    pub(crate) fn note_listed_skills(&self, sent: &Snapshot) {
        let known = self.inner.setup.expansions.model_listing();
        let skills = sent.system.skills.iter().filter(|skill| !known.contains(skill));
        lock(&self.inner.resources).listed = Some(skills.cloned().collect());
    }

    /// Another conversation has a cache of its own.
    pub(crate) fn forget_listed_skills(&self) {
        lock(&self.inner.resources).listed = None;
    }
}
