//! [`ExtensionBus`]: the channel that extensions talk to each other on.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};

use hardpan_extensions::{CallKind, HostError};
use serde_json::Value;

use super::limits::{MAX_BUS_BYTES, MAX_BUS_EVENTS};
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
        if listeners.is_empty() {
            return Ok(());
        }
        let payload = data.to_string();
        for host in listeners {
            host.count_bus_event(payload.len())?;
            let (channel, payload) = (channel.to_owned(), payload.clone());
            self.setting.runtime.spawn(async move {
                let bytes = payload.len();
                // Its own faults are reported by the script.
                let _ = host.call(CallKind::Bus, &channel, payload).await;
                host.bus_events.fetch_sub(1, Ordering::Relaxed);
                host.bus_bytes.fetch_sub(bytes, Ordering::Relaxed);
            });
        }
        Ok(())
    }

    /// Counts an event that waits for this extension; an error if too many do.
    fn count_bus_event(&self, bytes: usize) -> Result<(), HostError> {
        let (name, megabytes) = (&self.name, MAX_BUS_BYTES >> 20);
        if self.bus_events.fetch_add(1, Ordering::Relaxed) >= MAX_BUS_EVENTS {
            self.bus_events.fetch_sub(1, Ordering::Relaxed);
            return Err(HostError(format!("{name} has {MAX_BUS_EVENTS} events that it has not taken yet")));
        }
        if self.bus_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_BUS_BYTES {
            self.bus_events.fetch_sub(1, Ordering::Relaxed);
            self.bus_bytes.fetch_sub(bytes, Ordering::Relaxed);
            return Err(HostError(format!(
                "the events that {name} has not taken yet have more than {megabytes} MB"
            )));
        }
        Ok(())
    }
}
