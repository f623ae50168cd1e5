//! Which file a use of a name leads to.
//!
//! A use is believed where there is evidence: the user imports the file that defines the name, or lies in its package; and
//! where it is a method, the user also speaks of the type. Without evidence only a name that nobody writes by chance (`next_delay`, `RetryPolicy`), defined in few places, leads
//! anywhere. Everything is counted in whole numbers, so that adding and taking away in any order gives the same.

use super::{Edge, File, Index, Member, Site, Uses};
use crate::names::NameId;
use crate::resolve::FileId;

/// One whole use in fixed point.
const ONE: u64 = 1 << 16;
/// An import alone, whatever is taken from it.
const IMPORT: u64 = ONE / 4;
/// A use without evidence.
const GUESS: u64 = ONE / 4;
/// A name defined in more places than this leads nowhere without evidence.
const FEW: usize = 3;

/// A call of a name that more files define than this is not worth the search.
const MANY: usize = 40;

/// A use of a name leads from one file to another.
pub(super) struct Link {
    from: FileId,
    to: FileId,
    weight: u64,
}

impl Link {
    pub(super) fn origin(&self) -> FileId {
        self.from
    }

    pub(super) fn leads_to(&self, file: FileId) -> bool {
        self.to == file
    }
}

/// What a name may mean.
struct Meaning<'a> {
    name: NameId,
    uses: &'a Uses,
    /// The files that define it and are no tests, sorted.
    sites: Vec<(FileId, &'a File)>,
    /// Those in packages, by package.
    by_package: Vec<(NameId, FileId)>,
    is_distinct: bool,
}

/// Whether links are added or taken away.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Add,
    Take,
}

impl Index {
    /// Where every use of a name leads.
    pub(super) fn links(&self, name: NameId) -> Vec<Link> {
        let Some(meaning) = self.meaning(name) else { return Vec::new() };
        // The more files use a name, the less one of them says.
        let damped = u64::from(1 + meaning.uses.users.len().ilog2());
        let mut links = Vec::new();
        let mut found: Vec<FileId> = Vec::new();
        for from in &meaning.uses.users {
            let whole = self.believe(&meaning, *from, &mut found);
            let weight = whole / (damped * found.len().max(1) as u64);
            links.extend(found.drain(..).map(|to| Link { from: *from, to, weight }));
        }
        links
    }

    /// The one file that a use of a name in a file leads to, itself included; none where it is not certain. `within` is the
    /// type whose method uses it.
    pub(crate) fn callee(&self, name: NameId, from: FileId, within: Option<NameId>) -> Option<FileId> {
        let is_site = |site: &&Site| self.by_id(site.file).is_some_and(|file| !file.is_test);
        let sites = self.uses.get(name as usize)?.sites.iter().filter(is_site);
        let meaning = if sites.take(MANY + 1).count() <= MANY { self.meaning(name) } else { None }?;
        let file = self.by_id(from)?;
        if file.sites.binary_search(&name).is_ok() {
            // Its own, unless it may be a method of something else that has the same name.
            let owners = owners(file, name);
            let is_sibling = owners.iter().any(|(_, owner)| Some(*owner) == within);
            return (meaning.is_distinct || owners.is_empty() || is_sibling).then_some(from);
        }
        let mut found = Vec::new();
        self.believe(&meaning, from, &mut found);
        match found[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// What a name may mean; nothing where nobody defines or nobody uses it.
    fn meaning(&self, name: NameId) -> Option<Meaning<'_>> {
        let uses =
            self.uses.get(name as usize).filter(|uses| !uses.sites.is_empty() && !uses.users.is_empty())?;
        let defining = |id: FileId| self.by_id(id).filter(|file| !file.is_test).map(|file| (id, file));
        let sites: Vec<(FileId, &File)> = uses.sites.iter().filter_map(|site| defining(site.file)).collect();
        let packages = sites.iter().filter_map(|(id, file)| Some((file.package?, *id)));
        let mut by_package: Vec<(NameId, FileId)> = packages.collect();
        by_package.sort_unstable();
        Some(Meaning { name, uses, sites, by_package, is_distinct: is_distinct(self.names.get(name)) })
    }

    /// The files that a use in a file leads to, sorted, and how much that is worth together.
    fn believe(&self, meaning: &Meaning<'_>, from: FileId, found: &mut Vec<FileId>) -> u64 {
        found.clear();
        let Some(user) = self.by_id(from) else { return 0 };
        if meaning.uses.sites.binary_search_by_key(&from, |site| site.file).is_ok() {
            return 0; // It means its own.
        }
        evidence(user, &meaning.sites, &meaning.by_package, found);
        if !meaning.is_distinct {
            // Anything may have a method of that name: the type must be spoken of as well.
            let uses = |owner: NameId| self.uses[owner as usize].users.binary_search(&from).is_ok();
            found.retain(|site| {
                let owners = self.by_id(*site).map_or(&[][..], |file| owners(file, meaning.name));
                owners.is_empty() || owners.iter().any(|(_, owner)| uses(*owner))
            });
        }
        if !found.is_empty() || !meaning.is_distinct {
            return ONE;
        }
        let related = meaning.sites.iter().filter(|(_, file)| file.family == user.family);
        found.extend(related.map(|(id, _)| *id).take(FEW + 1));
        if found.len() > FEW {
            found.clear();
        }
        GUESS
    }

    /// Adds or takes away the links of a name.
    pub(super) fn shift(&mut self, name: NameId, sign: Sign) {
        for Link { from, to, weight } in self.links(name) {
            self.shift_edge(from, to, weight, sign);
            let counts = self.by_id(from).is_some_and(|file| !file.is_test);
            let sites = &mut self.uses[name as usize].sites;
            if let Ok(at) = sites.binary_search_by_key(&to, |site| site.file)
                && counts
            {
                sites[at].uses = step(sites[at].uses, sign);
                self.touch(to);
            }
        }
    }

    /// Adds or takes away the edges of a file's imports.
    pub(super) fn shift_imports(&mut self, from: FileId, sign: Sign) {
        // To import a folder is to use something in it, not everything: its names tell what.
        let importer = self.by_id(from).filter(|file| !file.imports_folders);
        let targets = importer.map(|file| file.imports.targets.clone()).unwrap_or_default();
        for target in targets {
            self.shift_edge(from, target.file, IMPORT, sign);
        }
    }

    fn shift_edge(&mut self, from: FileId, to: FileId, weight: u64, sign: Sign) {
        let counts = self.by_id(from).is_some_and(|file| !file.is_test);
        let edges = &mut self.edges[from as usize];
        let at = match edges.binary_search_by_key(&to, |edge| edge.to) {
            Ok(at) => at,
            Err(at) => {
                edges.insert(at, Edge { to, count: 0, weight: 0 });
                if counts {
                    self.used_by[to as usize] += 1;
                    self.touch(to);
                }
                at
            }
        };
        let edges = &mut self.edges[from as usize];
        let edge = &mut edges[at];
        edge.count = step(edge.count, sign);
        edge.weight =
            if sign == Sign::Add { edge.weight + weight } else { edge.weight.saturating_sub(weight) };
        if edge.count == 0 {
            edges.remove(at);
            if counts {
                self.used_by[to as usize] = self.used_by[to as usize].saturating_sub(1);
                self.touch(to);
            }
        }
    }
}

fn step(count: u32, sign: Sign) -> u32 {
    if sign == Sign::Add { count + 1 } else { count.saturating_sub(1) }
}

/// The files that define the name and that the user can see: sorted.
fn evidence(
    user: &File,
    sites: &[(FileId, &File)],
    by_package: &[(NameId, FileId)],
    found: &mut Vec<FileId>,
) {
    found.clear();
    if sites.len() <= user.visible.len() {
        let seen = sites.iter().filter(|(id, _)| user.visible.binary_search(id).is_ok());
        found.extend(seen.map(|(id, _)| *id));
    } else {
        let defining = |id: &&FileId| sites.binary_search_by_key(*id, |(site, _)| *site).is_ok();
        found.extend(user.visible.iter().filter(defining));
    }
    if let Some(package) = user.package {
        let start = by_package.partition_point(|(other, _)| *other < package);
        found
            .extend(by_package[start..].iter().take_while(|(other, _)| *other == package).map(|(_, id)| *id));
        found.sort_unstable();
        found.dedup();
    }
}

/// The types that a name is a member of in a file; none where it stands by itself.
fn owners(file: &File, name: NameId) -> &[Member] {
    let start = file.owners.partition_point(|(member, _)| *member < name);
    let length = file.owners[start..].partition_point(|(member, _)| *member == name);
    &file.owners[start..start + length]
}

/// Whether nobody writes a name by chance: two words or more.
fn is_distinct(name: &str) -> bool {
    let inner = name.trim_matches('_');
    let letters = inner.as_bytes().windows(2);
    let mut turns = letters
        .filter(|pair| pair[1] == b'_' || (pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase()));
    inner.len() >= 6 && turns.next().is_some()
}
