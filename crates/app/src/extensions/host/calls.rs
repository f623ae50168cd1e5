//! What a script asks of its host, by the names that `api.js` uses.

use std::sync::Weak;

use futures_util::future::BoxFuture;
use hardpan_agent::Delivery;
use hardpan_agent::events::FaceChange;
use hardpan_extensions::{HostError, LogLevel, ScriptFault, ScriptHost};
use serde_json::{Value, json};

use super::super::GUARD_EVENT;
use super::super::api::to_script;
use super::super::{entries, exec, files, model_calls, models, network, providers, questions, sessions};
use super::limits::{
    MAX_DESCRIPTION, MAX_HANDLERS, MAX_MESSAGE_BYTES, MAX_PROVIDER_BYTES, MAX_REGISTERED, MAX_UPDATE_BYTES,
    check_count, check_name, check_size, cut_text, json_bytes,
};
use super::{ExtensionHost, failed, lock, machine, optional_text, text};

impl ScriptHost for ExtensionHost {
    fn call(&self, name: &str, arguments: Value) -> BoxFuture<'static, Result<Value, HostError>> {
        let (me, agent, name) = (self.me.upgrade(), self.agent(), name.to_owned());
        Box::pin(async move {
            let (host, agent) = (me.ok_or_else(|| HostError("the extension is gone".into()))?, agent?);
            match &*name {
                "ui.confirm" | "ui.select" | "ui.input" | "ui.editor" => {
                    Ok(questions::ask(&host, &name, &arguments).await)
                }
                "exec" => exec::run(&host, &arguments).await,
                "fetch" => network::fetch(&host, &arguments).await,
                "fetch.read" => network::read_body(&host, &arguments).await,
                "model.complete" => model_calls::complete(&host, &arguments).await,
                "waitForIdle" => {
                    agent.wait_until_idle().await;
                    Ok(Value::Null)
                }
                "compact" => {
                    let instructions = arguments["customInstructions"].as_str().map(str::to_owned);
                    let result = agent.compact(instructions).await.map_err(failed)?;
                    serde_json::to_value(result).map_err(failed)
                }
                "provider.key" => providers::key_for_script(&host, &arguments).await,
                "setModel" => models::set_model(&*host.app()?, &arguments).await,
                "newSession" => sessions::start_new(&*host.app()?).await,
                "switchSession" => sessions::switch(&*host.app()?, &arguments).await,
                "fork" => sessions::fork(&*host.app()?, &arguments).await,
                "navigateTree" => sessions::navigate(&*host.app()?, &arguments).await,
                "reload" => {
                    let app = host.app()?;
                    // The calling handler belongs to what is replaced: nobody waits for it.
                    tokio::spawn(async move { app.extensions.reload(&app).await });
                    Ok(Value::Null)
                }
                "flush" => {
                    agent.flush_session().await.map_err(failed)?;
                    Ok(Value::Null)
                }
                _ => Err(HostError(format!("{name} is not available in Hardpan yet"))),
            }
        })
    }

    fn call_now(&self, name: &str, arguments: Value) -> Result<Value, HostError> {
        if let Some(operation) = name.strip_prefix("fs.") {
            return files::call(self, operation, &arguments);
        }
        match name {
            "on" => {
                let (event, handler) = (text(&arguments, "event")?, text(&arguments, "handler")?);
                check_name("the name of an event", event)?;
                {
                    let registered = &mut *lock(&self.registered);
                    check_count("handlers of events", registered.handlers.len(), MAX_HANDLERS)?;
                    registered.handlers.push((event.into(), handler.into()));
                    registered.guards += usize::from(event == GUARD_EVENT);
                }
                if let Some(me) = lock(&self.script).upgrade().and(self.me.upgrade()) {
                    me.subscribe(event, handler);
                }
            }
            "off" => {
                let handler = text(&arguments, "handler")?;
                lock(&self.registered).handlers.retain(|(_, known)| known != handler);
            }
            "ui.status" => {
                let key = text(&arguments, "key")?.to_owned();
                self.change_face(FaceChange::Status { key, text: optional_text(&arguments, "text") })?;
            }
            "ui.widget" => self.change_widget(&arguments)?,
            "ui.title" => {
                self.change_face(FaceChange::Title { text: text(&arguments, "text")?.to_owned() })?;
            }
            "ui.working" => {
                self.change_face(FaceChange::WorkingMessage { text: optional_text(&arguments, "text") })?;
            }
            "ui.editorText" => {
                let insert = arguments["insert"].as_bool() == Some(true);
                self.change_face(FaceChange::EditorText {
                    text: text(&arguments, "text")?.to_owned(),
                    insert,
                })?;
            }
            "ui.getEditorText" => return Ok(json!(*lock(&self.setting.editor_text))),
            "registerTool" => self.register_tool(&arguments)?,
            "registerCommand" => self.register_command(&arguments)?,
            "registerFlag" => {
                let name = text(&arguments, "name")?.to_owned();
                check_name("the name of a flag", &name)?;
                let flags = &mut lock(&self.registered).flags;
                if !flags.contains_key(&name) {
                    check_count("flags", flags.len(), MAX_REGISTERED)?;
                    check_size("a flag", &arguments, MAX_DESCRIPTION)?;
                    flags.insert(name, arguments);
                }
            }
            "flag" => return Ok(self.flag(text(&arguments, "name")?)),
            "registerShortcut" => {
                let (key, does) = (text(&arguments, "key")?, optional_text(&arguments, "description"));
                let does = cut_text(&does.unwrap_or_default(), MAX_DESCRIPTION);
                check_name("a shortcut", key)?;
                let shortcuts = &mut lock(&self.registered).shortcuts;
                check_count("shortcuts", shortcuts.len(), MAX_REGISTERED)?;
                shortcuts.insert(key.to_owned(), does);
            }
            "registerProvider" => {
                let me = self.me.upgrade().ok_or_else(|| HostError("the extension is gone".into()))?;
                let known = self.setting.providers.names_of(&self.name);
                check_count("providers", known.len(), MAX_REGISTERED)?;
                check_name("the name of a provider", text(&arguments, "name")?)?;
                check_size("a provider", &arguments, MAX_PROVIDER_BYTES)?;
                providers::register_provider(&me, &arguments);
            }
            "provider.event" => self.continue_answer(&arguments)?,
            "fetch.close" => self.bodies.close(arguments["body"].as_u64().unwrap_or(u64::MAX)),
            "providers.login" => return Ok(providers::login_state(self, &arguments)),
            "unregisterProvider" => {
                let (name, base) = (text(&arguments, "name")?, &self.setting.catalogue);
                self.setting.providers.remove(&self.name, Some(name), base)?;
                providers::withdraw_commands(self);
            }
            "bus.on" => {
                let channel = text(&arguments, "channel")?;
                check_name("the name of a channel", channel)?;
                let mut listeners = lock(&self.bus.listeners);
                // Once for each channel: the script knows its own listeners.
                let own = listeners.iter().filter(|(_, host)| host.ptr_eq(&self.me));
                if !own.clone().any(|(name, _)| name == channel) {
                    check_count("channels", own.count(), MAX_REGISTERED)?;
                    listeners.push((channel.into(), self.me.clone()));
                }
            }
            "bus.off" => {
                let channel = text(&arguments, "channel")?;
                let is_meant =
                    |(name, host): &(String, Weak<ExtensionHost>)| name == channel && host.ptr_eq(&self.me);
                lock(&self.bus.listeners).retain(|listener| !is_meant(listener));
            }
            "bus.emit" => self.emit_on_bus(text(&arguments, "channel")?, &arguments["data"])?,
            "ui.notify" => self.notify(&arguments)?,
            "toolUpdate" => {
                let is_small = json_bytes(&arguments) <= MAX_UPDATE_BYTES;
                let updates = lock(&self.updates);
                if let Some(sender) = updates.get(text(&arguments, "callId")?).filter(|_| is_small) {
                    // The call may have ended; of a flood, what does not fit is left out.
                    let _ = sender.try_send(arguments["content"].clone());
                }
            }
            "ephemeral" => self.add_ephemeral(text(&arguments, "text")?)?,
            "sendMessage" => {
                check_size("a message", &arguments, MAX_MESSAGE_BYTES)?;
                lock(&self.sent).count_message(json_bytes(&arguments))?;
                self.send_message(&arguments)?;
            }
            "sendUserMessage" => {
                check_size("a message", &arguments, MAX_MESSAGE_BYTES)?;
                lock(&self.sent).count_message(json_bytes(&arguments))?;
                let delivery = match arguments["deliverAs"].as_str() {
                    Some("steer") => Delivery::Steer,
                    _ => Delivery::FollowUp,
                };
                let expands = arguments["expands"].as_bool() == Some(true);
                self.send_input(self.agent()?, &arguments["content"], delivery, expands);
            }
            "appendEntry" => {
                let (agent, data) = (self.agent()?, arguments["data"].clone());
                let custom_type = text(&arguments, "customType")?;
                if custom_type.starts_with(entries::OWN_TYPES) {
                    return Err(HostError(format!("{custom_type} is a type of Hardpan's own entries")));
                }
                self.count_stored(&agent, &arguments)?;
                let stored = agent.store_extension_state(custom_type, data);
                self.setting.runtime.block_on(stored).map_err(failed)?;
            }
            "setSessionName" => {
                let agent = self.agent()?;
                self.count_stored(&agent, &arguments)?;
                let renamed = agent.rename_session(text(&arguments, "name")?);
                self.setting.runtime.block_on(renamed).map_err(failed)?;
            }
            "setLabel" => {
                let agent = self.agent()?;
                self.count_stored(&agent, &arguments)?;
                let labelled = agent.label_entry(text(&arguments, "entry")?, arguments["label"].as_str());
                self.setting.runtime.block_on(labelled).map_err(failed)?;
            }
            "setActiveTools" => self.set_active_tools(&arguments["names"])?,
            "abort" => self.agent()?.abort(),
            "cwd" => return Ok(json!(self.cwd())),
            "hasUI" => return Ok(json!(self.setting.prompter.is_some())),
            "mode" => return Ok(json!(self.setting.prompter.as_ref().map_or("print", |face| face.mode()))),
            "isIdle" => return Ok(json!(!self.agent()?.is_busy())),
            "hasPendingMessages" => return Ok(json!(!self.agent()?.queued_inputs().is_empty())),
            "isProjectTrusted" => return Ok(json!(self.setting.is_project_trusted)),
            "model" => {
                return Ok(to_script(&models::own_target_to_script(
                    &self.agent()?.target(),
                    &self.setting.providers,
                )));
            }
            "models" => {
                let only_available = arguments["available"].as_bool() == Some(true);
                return Ok(models::list_models(&*self.app()?, only_available));
            }
            "models.find" => return Ok(models::find_model(&*self.app()?, &arguments)),
            "models.access" => return Ok(json!(model_calls::has_access(&*self.app()?, &arguments))),
            "setThinkingLevel" => self.set_thinking(text(&arguments, "level")?)?,
            "session.branch" => return self.setting.runtime.block_on(entries::branch(&self.agent()?)),
            "session.entries" => {
                return Ok(self.setting.runtime.block_on(sessions::all_entries(&self.agent()?)));
            }
            "shutdown" => {
                let agent = self.agent()?;
                let is_open = self.setting.prompter.as_ref().is_some_and(|face| face.mode() != "print");
                if let Some(quit) = agent.commands().remove("quit").filter(|_| is_open) {
                    // A face without such a command ends by itself, and so does one that prints an answer.
                    self.setting.runtime.spawn(async move {
                        agent.wait_until_idle().await;
                        quit.run("", &agent).await
                    });
                }
            }
            "session.info" => {
                return Ok(self.setting.runtime.block_on(entries::session_info(&self.agent()?)));
            }
            "tools" => return self.tools(),
            "commands" => return self.commands(),
            "thinkingLevel" => {
                let agent = self.agent()?;
                let setting = lock(&self.wanted_thinking).unwrap_or_else(|| agent.thinking());
                return Ok(json!(models::thinking_level(&agent.target(), setting)));
            }
            "agentDir" => return Ok(json!(self.data_folder())),
            "process.platform" => {
                return Ok(json!(if cfg!(target_os = "macos") { "darwin" } else { "linux" }));
            }
            "process.arch" => return Ok(json!(if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" })),
            "process.info" => return Ok(machine::process()),
            "process.isAlive" => return Ok(json!(machine::is_alive(arguments["pid"].as_i64()))),
            "os.info" => return Ok(machine::system()),
            "process.env" => return Ok(files::environment(&self.permissions)),
            "os.homedir" => return Ok(json!(std::env::home_dir())),
            "os.tmpdir" => {
                let folder = self.data_folder().map(|folder| folder.join("tmp"));
                folder.iter().try_for_each(std::fs::create_dir_all).map_err(failed)?;
                return Ok(json!(folder));
            }
            "os.hostname" => return Ok(json!("localhost")),
            "contextUsage" => return Ok(models::context_usage(&*self.app()?)),
            "systemPrompt" => {
                let agent = self.agent()?;
                let prompt = self.setting.runtime.block_on(agent.current_system_prompt());
                return prompt.map(|prompt| json!(prompt)).map_err(failed);
            }
            _ => return Err(HostError(format!("{name} is not available in Hardpan yet"))),
        }
        Ok(Value::Null)
    }

    fn log(&self, level: LogLevel, text: &str) {
        let extension = &*self.name;
        match level {
            LogLevel::Debug => tracing::debug!(extension, "{text}"),
            LogLevel::Info => tracing::info!(extension, "{text}"),
            LogLevel::Warn => tracing::warn!(extension, "{text}"),
            LogLevel::Error => tracing::error!(extension, "{text}"),
        }
    }

    fn fault(&self, fault: ScriptFault) {
        self.tell_fault(&fault);
    }
}
