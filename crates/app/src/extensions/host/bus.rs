//! [`ExtensionBus`]: the channel that extensions talk to each other on.

use std::sync::{Arc, Mutex, Weak};

use hardpan_extensions::CallKind;
use serde_json::Value;

use super::{ExtensionHost, lock};

/// The channel that extensions talk to each other on.
#[derive(Default)]
pub struct ExtensionBus {
    pub(super) listeners: Mutex<Vec<(String, Weak<ExtensionHost>)>>,
}

impl ExtensionHost {
    pub(super) fn emit_on_bus(&self, channel: &str, data: &Value) {
        let listeners: Vec<Arc<ExtensionHost>> = lock(&self.bus.listeners)
            .iter()
            .filter(|(name, host)| name == channel && !host.ptr_eq(&self.me))
            .filter_map(|(_, host)| host.upgrade())
            .collect();
        for host in listeners {
            let (channel, data) = (channel.to_owned(), data.clone());
            self.setting.runtime.spawn(async move {
                // Its own faults are reported by the script.
                let _ = host.call(CallKind::Bus, &channel, data.to_string()).await;
            });
        }
    }
}
