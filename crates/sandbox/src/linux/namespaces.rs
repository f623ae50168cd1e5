//! Namespaces: in its own, a program sees and reaches no other processes, all of its own end with the
//! first one, and everything outside of its writable folders is mounted read-only. That also keeps it
//! from changing modes, times and attributes of files, for which Landlock has no right.
//!
//! Not every system allows them to users. Without them, the program is restricted all the same.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change, mount_remount,
};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use rustix::process::{getegid, geteuid};
use rustix::thread::{
    CapabilitySet, UnshareFlags, capabilities, clear_ambient_capability_set,
    configure_capability_in_ambient_set, set_capabilities,
};

use super::wire::{NetworkMode, ReceivedRequest};

/// Moves this process to a mount namespace, and its children to a process namespace, of their own. On
/// failure, nothing may be started from this process.
pub(super) fn enter(received: &ReceivedRequest) -> io::Result<()> {
    let (user, group) = (geteuid(), getegid());
    let mut own = UnshareFlags::NEWPID | UnshareFlags::NEWNS;
    if received.request.network == NetworkMode::Own {
        own |= UnshareFlags::NEWNET;
    }
    if !(user.is_root() && unshare(own).is_ok()) {
        unshare(own | UnshareFlags::NEWUSER)?;
        // Everybody stays who they are; there are no other users.
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{0} {0} 1", user.as_raw()))?;
        fs::write("/proc/self/gid_map", format!("{0} {0} 1", group.as_raw()))?;
    }
    // What is mounted here stays here.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let writable: Vec<PathBuf> = received.request.writable.iter().map(super::wire::PathBytes::path).collect();
    for (place, (path, file)) in writable.iter().zip(&received.writable).enumerate() {
        // In another one it is writable already, and can be moved there.
        let is_in = |(other, folder): (usize, &PathBuf)| {
            other != place && path.starts_with(folder) && (path != folder || other < place)
        };
        if !writable.iter().enumerate().any(is_in) {
            bind_to_itself(path, file)?;
        }
    }
    make_read_only(&writable)?;
    // The init process mounts its own /proc, for which it must keep this capability when it is
    // executed. It counts within these namespaces only, and is dropped right after.
    let mut sets = capabilities(None)?;
    sets.inheritable |= CapabilitySet::SYS_ADMIN;
    set_capabilities(None, sets)?;
    Ok(configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)?)
}

/// The port that the proxy of a program's own network listens on.
pub(crate) const PROXY_PORT: u16 = 3128;

/// A socket that listens in this process's network, which is new: its only interface is switched on
/// first.
pub(super) fn listen() -> io::Result<TcpListener> {
    let routes = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    send(&routes, &switch_on_request(), SendFlags::empty())?;
    // The answer: a header of 16 bytes, then an error number, which is 0.
    let mut answer = [0; 64];
    let (length, _) = recv(&routes, &mut answer, RecvFlags::empty())?;
    if length < 20 || answer[16..20] != [0; 4] {
        return Err(io::Error::other("the loopback interface cannot be switched on"));
    }
    TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT))
}

/// `RTM_NEWLINK` for the first interface, with the flag `IFF_UP` (rtnetlink(7)).
fn switch_on_request() -> Vec<u8> {
    const LENGTH: u32 = 32;
    const RTM_NEWLINK: u16 = 16;
    const REQUEST_WITH_ANSWER: u16 = 0x5;
    const LOOPBACK: i32 = 1;
    const UP: u32 = 1;
    let mut bytes = Vec::new();
    bytes.extend(LENGTH.to_ne_bytes());
    bytes.extend(RTM_NEWLINK.to_ne_bytes());
    bytes.extend(REQUEST_WITH_ANSWER.to_ne_bytes());
    // Sequence number and port.
    bytes.extend([0; 8]);
    // Family, padding and type.
    bytes.extend([0; 4]);
    bytes.extend(LOOPBACK.to_ne_bytes());
    bytes.extend(UP.to_ne_bytes());
    // Which flags are meant.
    bytes.extend(UP.to_ne_bytes());
    bytes
}

/// In the first process of the namespace: shows its processes in `/proc`.
pub(super) fn mount_proc() -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount("proc", "/proc", "proc", flags, None)?)
}

/// In the first process of the namespace: gives it shared memory of its own. Returns whether it has.
pub(super) fn mount_shared_memory() -> bool {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("tmpfs", SHARED_MEMORY, "tmpfs", flags, c"mode=1777").is_ok()
}

/// Where programs expect a file system for shared memory.
pub(super) const SHARED_MEMORY: &str = "/dev/shm";

/// Drops the capability that [`mount_proc`] needs.
pub(super) fn drop_capability() -> io::Result<()> {
    clear_ambient_capability_set()?;
    let mut sets = capabilities(None)?;
    for set in [&mut sets.effective, &mut sets.permitted, &mut sets.inheritable] {
        set.remove(CapabilitySet::SYS_ADMIN);
    }
    Ok(set_capabilities(None, sets)?)
}

#[allow(deprecated, reason = "safe here: the flag that is not, FILES, is not set")]
fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    rustix::thread::unshare(flags)
}

/// Makes a mount of its own of a file or folder, so that it stays writable; unless something else is
/// in its place now.
fn bind_to_itself(path: &Path, held: &OwnedFd) -> io::Result<()> {
    let Ok(there) = rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
    else {
        return Ok(());
    };
    let identity = |file: &OwnedFd| -> io::Result<(u64, u64)> {
        let metadata = File::from(file.try_clone()?).metadata()?;
        Ok((metadata.dev(), metadata.ino()))
    };
    if identity(&there)? == identity(held)? {
        let name = format!("/proc/self/fd/{}", there.as_raw_fd());
        mount_bind_recursive(&name, &name)?;
    }
    Ok(())
}

/// Makes every mount outside of the writable ones read-only.
fn make_read_only(writable: &[PathBuf]) -> io::Result<()> {
    for line in fs::read_to_string("/proc/self/mountinfo")?.lines() {
        let Some((path, flags)) = parse_mount(line) else { continue };
        if writable.iter().any(|writable| path.starts_with(writable)) {
            continue;
        }
        // Mounts under other mounts cannot be reached, neither by us nor by the program.
        let changed = mount_remount(&path, flags | MountFlags::BIND | MountFlags::RDONLY, "");
        if path == Path::new("/") {
            changed?;
        }
    }
    Ok(())
}

/// Where a mount is and its flags, from a line of `mountinfo`. None for what is mounted on demand.
fn parse_mount(line: &str) -> Option<(PathBuf, MountFlags)> {
    let (before, after) = line.split_once(" - ")?;
    if after.split(' ').next() == Some("autofs") {
        return None;
    }
    let mut fields = before.split(' ').skip(4);
    let (path, options) = (fields.next()?, fields.next()?);
    let flags = options.split(',').map(|option| match option {
        "nosuid" => MountFlags::NOSUID,
        "nodev" => MountFlags::NODEV,
        "noexec" => MountFlags::NOEXEC,
        "noatime" => MountFlags::NOATIME,
        "nodiratime" => MountFlags::NODIRATIME,
        "relatime" => MountFlags::RELATIME,
        _ => MountFlags::empty(),
    });
    Some((unescape(path), flags.fold(MountFlags::empty(), |all, flag| all | flag)))
}

/// Spaces and other characters are written as `\040`.
fn unescape(path: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if *first == b'\\' => {
                bytes.push(byte);
                rest = &after[3..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_with_their_flags_and_odd_names() {
        let line = r"36 35 98:0 / /mnt/a\040b\134c rw,nosuid,relatime shared:1 - ext4 /dev/sda rw";
        let flags = MountFlags::NOSUID | MountFlags::RELATIME;
        assert_eq!(parse_mount(line), Some((PathBuf::from(r"/mnt/a b\c"), flags)));
        assert_eq!(parse_mount("36 35 0:1 / /net rw - autofs auto rw"), None);
    }
}
