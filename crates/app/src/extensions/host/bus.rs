//! [`ExtensionBus`]: the channel that extensions talk to each other on.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};

use hardpan_extensions::{CallKind, HostError};
use serde_json::Value;

use super::limits::MAX_BUS_EVENTS;
use super::{ExtensionHost, lock};

/// The channel that extensions talk to each other on.
#[derive(Default)]
pub struct ExtensionBus {
    pub(super) listeners: Mutex<Vec<(String, Weak<ExtensionHost>)>>,
}

impl ExtensionHost {
    pub(super) fn emit_on_bus(&self, channel: &str, data: &Value) -> Result<(), HostError> {
        let listeners: Vec<Arc<ExtensionHost>> = lock(&self.bus.listeners)
            .iter()
            .filter(|(name, host)| name == channel && !host.ptr_eq(&self.me))
            .filter_map(|(_, host)| host.upgrade())
            .collect();
        for host in listeners {
            if host.bus_events.fetch_add(1, Ordering::Relaxed) >= MAX_BUS_EVENTS {
                host.bus_events.fetch_sub(1, Ordering::Relaxed);
                let name = &host.name;
                return Err(HostError(format!(
                    "{name} has {MAX_BUS_EVENTS} events that it has not taken yet"
                )));
            }
            let (channel, data) = (channel.to_owned(), data.clone());
            self.setting.runtime.spawn(async move {
                // Its own faults are reported by the script.
                let _ = host.call(CallKind::Bus, &channel, data.to_string()).await;
                host.bus_events.fetch_sub(1, Ordering::Relaxed);
            });
        }
        Ok(())
    }
}
