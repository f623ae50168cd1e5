//! [`PromptSettings`]: what the settings and the flags say about the system prompt, tools and the map.

use std::path::{Path, PathBuf};

use hardpan_context::{AgentMode, PromptType, SnapshotFile};
use hardpan_prompt::Text;

use crate::notice::{Notice, NoticeSink};
use crate::options::TargetOptions;
use crate::settings::{Settings, SettingsError, expand_home};

/// What every request of a conversation has, as the settings and the flags say.
#[derive(Clone, Debug)]
pub struct PromptSettings {
    agent_mode: AgentMode,
    prompt_type: PromptType,
    prompt_path: Option<PathBuf>,
    /// The text of the custom prompt; none if there is no such file.
    custom: Option<Text>,
    use_repo_map: bool,
    directory_map: bool,
}

impl Default for PromptSettings {
    fn default() -> Self {
        PromptSettings {
            agent_mode: AgentMode::On,
            prompt_type: PromptType::General,
            prompt_path: None,
            custom: None,
            use_repo_map: true,
            directory_map: true,
        }
    }
}

impl PromptSettings {
    /// The flags, and where they say nothing, the settings. Reads the custom prompt; where there is
    /// none, a notice says that a minimal one takes its place.
    pub fn resolve(
        options: &TargetOptions,
        settings: &Settings,
        notices: &dyn NoticeSink,
    ) -> Result<Self, SettingsError> {
        let config = &settings.config;
        let in_config = |path: &PathBuf| {
            let path = expand_home(&path.to_string_lossy());
            settings.user_folders.config.as_deref().unwrap_or(Path::new("")).join(path)
        };
        let prompt_path = options.prompt_path.clone().or_else(|| config.prompt_path.as_ref().map(in_config));
        // Who names a file wants it.
        let named = if prompt_path.is_some() { PromptType::Custom } else { PromptType::General };
        let prompt_type = options.prompt_type.or(config.prompt_type).unwrap_or(named);
        let mut custom = None;
        if prompt_type == PromptType::Custom {
            let text = prompt_path.as_deref().map(|path| settings.read_prompt(path)).transpose()?.flatten();
            custom = text.filter(|text| !text.trim().is_empty()).map(|text| Text::new(text.trim_end()));
            if custom.is_none() {
                notices.notice(Notice::PromptMissing { path: prompt_path.clone() });
            }
        }
        Ok(PromptSettings {
            agent_mode: options.agent_mode.or(config.agent_mode).unwrap_or_default(),
            prompt_type,
            prompt_path,
            custom,
            use_repo_map: config.use_repo_map.unwrap_or(true),
            directory_map: config.directory_map.unwrap_or(true),
        })
    }

    /// Puts them into a snapshot.
    pub(crate) fn apply(&self, file: &mut SnapshotFile) {
        file.agent_mode = self.agent_mode;
        file.use_repo_map = self.use_repo_map;
        file.directory_map = self.directory_map;
        file.system.prompt_type = self.prompt_type;
        file.system.prompt_path = self.prompt_path.as_ref().map(|path| path.to_string_lossy().into());
        file.system.custom.clone_from(&self.custom);
    }
}
