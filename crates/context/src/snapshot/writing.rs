//! From a [`Snapshot`] to its file form, such that reading it again gives the same snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_models::ThinkingSetting;
use hardpan_prompt::{AgentMessage, Item, ItemKind, MessageId, Omission, OmissionReason, UnavailableCode};

use super::file::{
    FileEntry, FoldDescriptionEntry, ImageEntry, ItemEntry, LostCache, ObservationEntry, ProjectFile,
    PromptEntry, SnapshotFile, SymbolEntry, SymbolsEntry, SystemEntry, ThinkingEntry, TreeEntry,
    UnavailableEntry, WebSearchEntry,
};
use super::{ContextImage, FoldDescription, OVERVIEW_KEY, Snapshot, SystemParts, UserPrompt};
use crate::FoldReason;
use crate::knowledge::{FileKnowledge, RecordedObservation};

impl SnapshotFile {
    /// The file form of a snapshot.
    pub fn from_snapshot(snapshot: &Snapshot) -> Self {
        // Every field is named, so that a new one forces a decision here.
        let Snapshot {
            now,
            working_directory,
            system,
            agent_mode,
            items,
            unavailable,
            use_repo_map,
            directory_map,
            messages,
            tools,
            images,
            documents,
            web_search,
            thinking,
            prompt,
            first_unsent,
            knowledge,
            keep,
            detach,
            cache_lifetime,
            pauses,
            stands_alone: _, // such a request is no part of a conversation, and nobody writes it down
            fold,
            at_fold,
            layout_state,
            answer_prefixes,
            stale_reasoning,
            ephemeral,
            // They are the secrets themselves.
            redactions: _,
        } = snapshot.clone();
        let file_observations = observations(&knowledge, &messages);
        let mut file = SnapshotFile {
            working_directory,
            system: SystemEntry::from_parts(system),
            agent_mode,
            unavailable: unavailable.into_iter().map(UnavailableEntry::from_omission).collect(),
            use_repo_map,
            directory_map,
            messages,
            tools,
            images: images.into_iter().map(ImageEntry::from_image).collect(),
            documents,
            web_search: web_search.map(|search| WebSearchEntry { max_results: search.max_results }),
            thinking: Some(thinking)
                .filter(|it| *it != ThinkingSetting::Default)
                .and_then(ThinkingEntry::new),
            prompt: prompt.map(|UserPrompt { id, text }| PromptEntry::WithId { id, text }),
            first_unsent,
            file_observations,
            keep,
            detach,
            cache_lifetime,
            ephemeral,
            pauses,
            fold: fold.is_some_and(|reason| !reason.is_loss()),
            lost_cache: match fold {
                Some(FoldReason::CacheLost) => Some(LostCache::All),
                Some(FoldReason::ShortCacheLost) => Some(LostCache::Short),
                Some(FoldReason::Requested | FoldReason::WindowFull | FoldReason::RentPaid) | None => None,
            },
            layout_state,
            answer_prefixes: (*answer_prefixes).clone(),
            stale_reasoning: (*stale_reasoning).clone(),
            ..SnapshotFile::empty(now)
        };
        items.into_iter().for_each(|item| file.add_item(item));
        file.at_fold = at_fold.map(|at_fold| {
            let FoldDescription { bases, items } = Arc::unwrap_or_clone(at_fold);
            let mut described = SnapshotFile::empty(now);
            items.into_iter().for_each(|item| described.add_item(item));
            let SnapshotFile { overview, symbols, .. } = described;
            FoldDescriptionEntry { bases, overview, symbols }
        });
        file
    }

    /// Adds an item to the list of its kind. An item that no list could give back goes in whole.
    fn add_item(&mut self, item: Item) {
        let path = item.title.to_string();
        match item.kind {
            ItemKind::File if *item.key == *format!("file:{path}") => {
                self.files.push(FileEntry::from_item(path, item));
            }
            ItemKind::Symbols if *item.key == *format!("symbols:{path}") && item.key == item.id => {
                let Item { body: content, tier, unchanged_responses, .. } = item;
                let entry = SymbolEntry { path, content, tier, unchanged_responses };
                self.symbols.get_or_insert_with(SymbolsEntry::default).entries.push(entry);
            }
            ItemKind::Legend if self.symbols.is_none() => {
                self.symbols = Some(SymbolsEntry { legend: Some(item.body), entries: Vec::new() });
            }
            ItemKind::Tree
                if *item.key == *OVERVIEW_KEY
                    && item.changed_at_ms == 0
                    && self.overview.is_none()
                    && self.symbols.is_none()
                    && self.files.is_empty() =>
            {
                self.overview = Some(item.body);
            }
            ItemKind::Tree
                if *item.key == *"tree"
                    && self.tree.is_none()
                    && self.symbols.is_none()
                    && self.files.is_empty() =>
            {
                let files = item.body.lines().map(str::to_owned).collect();
                self.tree = Some(TreeEntry { files, last_refresh_ms: item.changed_at_ms });
            }
            _ => self.items.push(ItemEntry::from_item(item)),
        }
    }
}

/// What the messages told about files, in their order.
fn observations(knowledge: &FileKnowledge, messages: &[AgentMessage]) -> Vec<ObservationEntry> {
    let place = messages.iter().enumerate().map(|(at, message)| (&message.id, at));
    let place: BTreeMap<&MessageId, usize> = place.collect();
    let recorded = knowledge.paths().flat_map(|path| knowledge.observations(path));
    let mut recorded: Vec<&RecordedObservation> = recorded.collect();
    recorded.sort_by_key(|recorded| place.get(&recorded.message));
    let entry = |recorded: &RecordedObservation| ObservationEntry {
        message: recorded.message.clone(),
        observation: recorded.observation.clone(),
    };
    recorded.into_iter().map(entry).collect()
}

impl SystemEntry {
    fn from_parts(parts: SystemParts) -> Self {
        let SystemParts {
            whole,
            agent,
            extra,
            append,
            project_files,
            skills,
            prompt_type,
            custom,
            edit_blocks,
        } = parts;
        let file = |(path, content)| ProjectFile { path, content };
        let project_files = project_files.into_iter().map(file).collect();
        SystemEntry {
            whole,
            agent,
            extra,
            append,
            project_files,
            skills,
            prompt_type,
            prompt_path: None,
            custom,
            edit_blocks,
        }
    }
}

impl FileEntry {
    fn from_item(path: String, item: Item) -> Self {
        FileEntry {
            path,
            content: Some(item.body),
            reason: None,
            code: None,
            id: Some(item.id),
            last_refresh_ms: item.changed_at_ms,
            tier: item.tier,
            unchanged_responses: item.unchanged_responses,
            volatility: Some(item.volatility),
            shown_by: item.shown_by,
        }
    }
}

impl ItemEntry {
    fn from_item(item: Item) -> Self {
        ItemEntry {
            id: item.id,
            key: Some(item.key),
            kind: item.kind,
            header: item.title,
            content: item.body,
            last_refresh_ms: item.changed_at_ms,
            tier: item.tier,
            unchanged_responses: item.unchanged_responses,
            volatility: Some(item.volatility),
            shown_by: item.shown_by,
        }
    }
}

impl UnavailableEntry {
    fn from_omission(omission: Omission) -> Self {
        let key = omission.key.to_string();
        match omission.reason {
            OmissionReason::Unavailable { code, detail } => {
                UnavailableEntry { key, reason: detail, code: Some(code) }
            }
            reason => {
                UnavailableEntry { key, reason: reason.to_string(), code: Some(UnavailableCode::default()) }
            }
        }
    }
}

impl ImageEntry {
    fn from_image(ContextImage { path, image }: ContextImage) -> Self {
        let hardpan_prompt::Image { media_type, data, width, height } = image;
        ImageEntry { path, media_type, data, width, height }
    }
}
