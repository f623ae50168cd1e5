//! Landlock: which files a program can read and write.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use super::namespaces::SHARED_MEMORY;
use super::wire::{LaunchRequest, NetworkMode, PathBytes};
use crate::SandboxSupport;

/// The Landlock version whose file rights are restricted. Version 3 (Linux 6.2) is the first that
/// also covers truncation.
const FILE_ABI: ABI = ABI::V3;

/// Devices that every command may read and write, because they store nothing.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Terminals are hidden from commands: whoever can read one sees what the user types into it,
/// approvals and passwords included.
const TERMINALS: &str = "/dev/pts";

/// What this kernel's Landlock lacks, if anything.
pub(super) fn missing_support() -> Option<SandboxSupport> {
    let handles = |abi| {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        ruleset.handle_access(AccessFs::from_all(abi)).and_then(Ruleset::create).is_ok()
    };
    if !handles(ABI::V1) {
        return Some(SandboxSupport::None(
            "the kernel has no Landlock, or it is not enabled (Linux 5.13, lsm=landlock)".to_owned(),
        ));
    }
    (!handles(FILE_ABI)).then(|| {
        SandboxSupport::Partial(
            "the kernel cannot keep commands from truncating files (Linux 6.2 can)".to_owned(),
        )
    })
}

/// Restricts this process, and every process that it starts, to the files of the request. Shared
/// memory is writable if it is the sandbox's own.
pub(super) fn restrict(
    request: &LaunchRequest,
    writable: &[OwnedFd],
    own_shared_memory: bool,
) -> io::Result<()> {
    restrict_files(request, writable, own_shared_memory)
        .map_err(|error| io::Error::other(format!("the sandbox (Landlock): {error}")))
}

fn restrict_files(
    request: &LaunchRequest,
    writable: &[OwnedFd],
    own_shared_memory: bool,
) -> Result<(), RulesetError> {
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(FILE_ABI))?
        // The command can send signals only to what it started itself.
        .scope(Scope::from_all(ABI::V6))?;
    if request.network == NetworkMode::Off {
        ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V4))?;
    }
    let paths = |paths: &[PathBytes]| paths.iter().map(PathBytes::path).collect::<Vec<_>>();
    let mut hidden = paths(&request.hidden);
    hidden.push(TERMINALS.into());
    let mut rules = RulesetBuilder { ruleset: ruleset.create()?, hidden: &hidden };
    let read = AccessFs::ReadFile | AccessFs::Execute | AccessFs::ReadDir;
    // The names in folders may be listed everywhere.
    rules.allow(Path::new("/"), AccessFs::ReadDir.into())?;
    rules.allow_but_hidden(Path::new("/"), read)?;
    for path in paths(&request.readable) {
        rules.allow(&path, read)?;
    }
    for (path, file) in paths(&request.writable).iter().zip(writable) {
        rules.allow_writing(path, file)?;
    }
    if own_shared_memory {
        rules.allow(Path::new(SHARED_MEMORY), AccessFs::from_all(FILE_ABI))?;
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

/// Drops the capabilities that reach past the sandbox, for when Hardpan runs as root: raw disks
/// through `mknod`, the memory and environment of any process. Those over files and the command's
/// own processes stay. They cannot be regained: Landlock and seccomp require `no_new_privs`.
pub(super) fn drop_privileges() -> io::Result<()> {
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

struct RulesetBuilder<'a> {
    ruleset: RulesetCreated,
    hidden: &'a [PathBuf],
}

impl RulesetBuilder<'_> {
    /// Allows `access` for a file, or for everything below a folder.
    fn allow(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), RulesetError> {
        // What does not exist or cannot be opened needs no rule.
        let Ok(opened) = PathFd::new(path) else { return Ok(()) };
        self.allow_opened(opened, path.is_dir(), access)
    }

    fn allow_opened(
        &mut self,
        file: impl AsFd,
        is_folder: bool,
        access: BitFlags<AccessFs>,
    ) -> Result<(), RulesetError> {
        let access = if is_folder { access } else { access & AccessFs::from_file(FILE_ABI) };
        if !access.is_empty() {
            (&mut self.ruleset).add_rule(PathBeneath::new(file, access))?;
        }
        Ok(())
    }

    /// Allows everything for a file or folder that was opened before the first command ran; what is
    /// at its path now may be another one. Something hidden in it stays hidden.
    fn allow_writing(&mut self, path: &Path, file: &OwnedFd) -> Result<(), RulesetError> {
        let access = AccessFs::from_all(FILE_ABI);
        let is_hidden = |hidden: &PathBuf| path.starts_with(hidden) || hidden.starts_with(path);
        if self.hidden.iter().any(is_hidden) {
            // By path, then: each entry has its own rule. Only while the path leads to the file.
            let same = rustix::fs::fstat(file).ok().zip(rustix::fs::stat(path).ok());
            let is_same = same.is_some_and(|(a, b)| (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino));
            return if is_same { self.allow_but_hidden(path, access) } else { Ok(()) };
        }
        let kind = rustix::fs::fstat(file).map(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode));
        self.allow_opened(file, kind == Ok(rustix::fs::FileType::Directory), access)
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
