//! The Linux sandbox: Landlock restricts files and TCP, seccomp the other kinds of sockets and a
//! few dangerous system calls.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

use crate::{NetworkAccess, SandboxPolicy, SandboxSupport};

/// The Landlock version whose file rights are restricted. Version 3 (Linux 6.2) is the first that
/// also covers truncation.
const FILE_ABI: ABI = ABI::V3;

/// Devices that every command may read and write, because they store nothing.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Terminals are hidden from commands: whoever can read one sees what the user types into it,
/// approvals and passwords included.
const TERMINALS: &str = "/dev/pts";

pub(super) fn sandbox_support() -> SandboxSupport {
    let handles = |abi| {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        ruleset.handle_access(AccessFs::from_all(abi)).and_then(Ruleset::create).is_ok()
    };
    if !handles(ABI::V1) {
        return SandboxSupport::None(
            "the kernel has no Landlock, or it is not enabled (Linux 5.13, lsm=landlock)".to_owned(),
        );
    }
    if !handles(FILE_ABI) {
        return SandboxSupport::Partial(
            "the kernel cannot keep commands from truncating files (Linux 6.2 can)".to_owned(),
        );
    }
    match syscall_filter(NetworkAccess::Off) {
        Ok(_) if Path::new("/proc/sys/kernel/seccomp").exists() => SandboxSupport::Full,
        _ => SandboxSupport::Partial(
            "there is no seccomp filter: only TCP is kept from commands (Linux 6.7)".to_owned(),
        ),
    }
}

/// Restricts the calling thread, and every process that it starts, to the policy.
pub(super) fn restrict(policy: &SandboxPolicy) -> io::Result<()> {
    restrict_files(policy).map_err(|error| io::Error::other(format!("the sandbox (Landlock): {error}")))?;
    drop_privileges()?;
    // Without seccomp, Landlock still blocks TCP. The caller has warned the user (`SandboxSupport`).
    if let Ok(filter) = syscall_filter(policy.network) {
        seccompiler::apply_filter(&filter)
            .map_err(|error| io::Error::other(format!("the sandbox (seccomp): {error}")))?;
    }
    Ok(())
}

/// Drops the capabilities that reach past the sandbox, for when Hardpan runs as root: raw disks
/// through `mknod`, the memory and environment of any process. Those over files and the command's
/// own processes stay. They cannot be regained: Landlock requires `no_new_privs`.
fn drop_privileges() -> io::Result<()> {
    let kept = CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::FOWNER
        | CapabilitySet::FSETID
        | CapabilitySet::KILL
        | CapabilitySet::SETGID
        | CapabilitySet::SETUID
        | CapabilitySet::NET_BIND_SERVICE;
    let mut sets = capabilities(None)?;
    for set in [&mut sets.effective, &mut sets.permitted, &mut sets.inheritable] {
        *set &= kept;
    }
    Ok(set_capabilities(None, sets)?)
}

fn restrict_files(policy: &SandboxPolicy) -> Result<(), RulesetError> {
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(FILE_ABI))?
        // The command can send signals only to what it started itself.
        .scope(Scope::from_all(ABI::V6))?;
    if policy.network == NetworkAccess::Off {
        ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V4))?;
    }
    let hidden: Vec<PathBuf> = policy.hidden.iter().cloned().chain([TERMINALS.into()]).collect();
    let mut rules = RulesetBuilder { ruleset: ruleset.create()?, hidden: &hidden };
    // The names in folders may be listed everywhere.
    rules.allow(Path::new("/"), AccessFs::ReadDir.into())?;
    rules.allow_but_hidden(Path::new("/"), AccessFs::ReadFile | AccessFs::Execute | AccessFs::ReadDir)?;
    for folder in &policy.writable {
        rules.allow_but_hidden(folder, AccessFs::from_all(FILE_ABI))?;
    }
    for device in DEVICES {
        rules.allow(Path::new(device), AccessFs::ReadFile | AccessFs::WriteFile)?;
    }
    let status = rules.ruleset.restrict_self()?;
    match status.ruleset {
        RulesetStatus::NotEnforced => {
            Err(RulesetError::CreateRuleset(landlock::CreateRulesetError::MissingHandledAccess))
        }
        _ => Ok(()),
    }
}

struct RulesetBuilder<'a> {
    ruleset: RulesetCreated,
    hidden: &'a [PathBuf],
}

impl RulesetBuilder<'_> {
    /// Allows `access` for a file, or for everything below a folder.
    fn allow(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), RulesetError> {
        // What does not exist or cannot be opened needs no rule.
        let Ok(opened) = PathFd::new(path) else { return Ok(()) };
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(FILE_ABI) };
        if !access.is_empty() {
            (&mut self.ruleset).add_rule(PathBeneath::new(opened, access))?;
        }
        Ok(())
    }

    /// Like [`allow`](Self::allow), but leaves out what is hidden. Landlock can only grant rights,
    /// never take them from a part of a folder, so a folder that holds something hidden gets none
    /// itself and each of its other entries gets its own rule.
    fn allow_but_hidden(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), RulesetError> {
        if self.hidden.iter().any(|hidden| path.starts_with(hidden)) {
            return Ok(());
        }
        if !self.hidden.iter().any(|hidden| hidden.starts_with(path)) {
            return self.allow(path, access);
        }
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        // A rule on a link would apply to its target, which may be hidden; the target has its own rule.
        let entries = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
        for entry in entries {
            self.allow_but_hidden(&entry.path(), access)?;
        }
        Ok(())
    }
}

/// The system calls that fail with "Operation not permitted" in the sandbox.
fn syscall_filter(network: NetworkAccess) -> Result<BpfProgram, seccompiler::Error> {
    let mut calls: Vec<(i64, Vec<SeccompRule>)> = vec![
        // io_uring performs other system calls without passing the filter.
        (libc::SYS_io_uring_setup, vec![]),
        // TIOCSTI types into a terminal on the user's behalf.
        (libc::SYS_ioctl, vec![seccomp_rule(1, SeccompCmpOp::Eq, libc::TIOCSTI)?]),
    ];
    if network == NetworkAccess::Off {
        // `socketpair` stays possible: programs use it to talk to their children.
        #[allow(clippy::unnecessary_cast, reason = "the widths differ from system to system")]
        calls.push((libc::SYS_socket, vec![seccomp_rule(0, SeccompCmpOp::Ne, libc::AF_UNIX as u64)?]));
        // A local server (docker, a session bus) would do for the command what it may not do itself.
        calls.push((libc::SYS_connect, vec![]));
    }
    // The x32 numbers of the same calls on x86-64.
    if cfg!(target_arch = "x86_64") {
        let twins: Vec<_> = calls.iter().map(|(call, rules)| (call | 0x4000_0000, rules.clone())).collect();
        calls.extend(twins);
    }
    let calls: BTreeMap<i64, Vec<SeccompRule>> = calls.into_iter().collect();
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    #[allow(clippy::cast_sign_loss, reason = "error numbers are positive")]
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    Ok(SeccompFilter::new(calls, SeccompAction::Allow, refuse, arch)?.try_into()?)
}

fn seccomp_rule(
    argument: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?])
}
