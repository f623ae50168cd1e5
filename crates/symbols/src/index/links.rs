//! Links: which definition a use of a name refers to.
//!
//! A use counts as a reference if there is evidence: the user imports the file that defines the
//! name, or lies in its package; and for a method, the user also mentions the type. Without
//! evidence only a distinctive name (`next_delay`, `RetryPolicy`) with few definitions counts.
//! Everything is counted in whole numbers, so that adding and removing in any order gives the same
//! result.

use super::{DefinitionSite, Edge, File, Member, NameUses, SymbolIndex};
use crate::name_table::NameId;
use crate::resolve::FileId;

/// Weight of one use, in fixed point.
const FULL_WEIGHT: u64 = 1 << 16;
/// Weight of an import, whatever names are taken from it.
const IMPORT_WEIGHT: u64 = FULL_WEIGHT / 4;
/// Weight of a use without evidence.
const GUESS_WEIGHT: u64 = FULL_WEIGHT / 4;
/// Without evidence, a name defined in more files than this refers to none of them.
const MAX_GUESSED_DEFINERS: usize = 3;

/// A call of a name that more files define than this is not resolved.
const MAX_CALLEE_DEFINERS: usize = 40;

/// A use of a name in one file that refers to another.
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

/// The files that define and use a name.
struct NameDefinitions<'a> {
    name: NameId,
    uses: &'a NameUses,
    /// Files that define it, tests excluded, sorted.
    sites: Vec<(FileId, &'a File)>,
    /// Those of them in packages, sorted by package.
    by_package: Vec<(NameId, FileId)>,
    is_distinctive: bool,
}

/// Whether links are added or removed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkChange {
    Add,
    Remove,
}

impl SymbolIndex {
    /// The links of all uses of a name.
    pub(super) fn links(&self, name: NameId) -> Vec<Link> {
        let Some(definitions) = self.name_definitions(name) else { return Vec::new() };
        // The more files use a name, the less each use tells.
        let damping = u64::from(1 + definitions.uses.users.len().ilog2());
        let mut links = Vec::new();
        let mut found: Vec<FileId> = Vec::new();
        for from in &definitions.uses.users {
            let whole = self.collect_targets(&definitions, *from, &mut found);
            let weight = whole / (damping * found.len().max(1) as u64);
            links.extend(found.drain(..).map(|to| Link { from: *from, to, weight }));
        }
        links
    }

    /// The one file that a use of a name refers to, the using file included; `None` if it is not
    /// certain. `within` is the type whose method uses it.
    pub(crate) fn callee(&self, name: NameId, from: FileId, within: Option<NameId>) -> Option<FileId> {
        let is_site = |site: &&DefinitionSite| self.by_id(site.file).is_some_and(|file| !file.is_test);
        let sites = self.uses.get(name as usize)?.sites.iter().filter(is_site);
        let definitions = if sites.take(MAX_CALLEE_DEFINERS + 1).count() <= MAX_CALLEE_DEFINERS {
            self.name_definitions(name)
        } else {
            None
        }?;
        let file = self.by_id(from)?;
        if file.sites.binary_search(&name).is_ok() {
            // Its own definition, unless it may be a method of another type with the same name.
            let owners = owners(file, name);
            let is_sibling = owners.iter().any(|(_, owner)| Some(*owner) == within);
            return (definitions.is_distinctive || owners.is_empty() || is_sibling).then_some(from);
        }
        let mut found = Vec::new();
        self.collect_targets(&definitions, from, &mut found);
        match found[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The definitions of a name; `None` if no file defines it or none uses it.
    fn name_definitions(&self, name: NameId) -> Option<NameDefinitions<'_>> {
        let uses =
            self.uses.get(name as usize).filter(|uses| !uses.sites.is_empty() && !uses.users.is_empty())?;
        let defining = |id: FileId| self.by_id(id).filter(|file| !file.is_test).map(|file| (id, file));
        let sites: Vec<(FileId, &File)> = uses.sites.iter().filter_map(|site| defining(site.file)).collect();
        let packages = sites.iter().filter_map(|(id, file)| Some((file.package?, *id)));
        let mut by_package: Vec<(NameId, FileId)> = packages.collect();
        by_package.sort_unstable();
        Some(NameDefinitions {
            name,
            uses,
            sites,
            by_package,
            is_distinctive: is_distinctive(self.names.get(name)),
        })
    }

    /// Collects the files that a use in `from` may refer to, sorted, and returns their total
    /// weight.
    fn collect_targets(
        &self,
        definitions: &NameDefinitions<'_>,
        from: FileId,
        found: &mut Vec<FileId>,
    ) -> u64 {
        found.clear();
        let Some(user) = self.by_id(from) else { return 0 };
        if definitions.uses.sites.binary_search_by_key(&from, |site| site.file).is_ok() {
            return 0; // it refers to its own definition
        }
        collect_visible_definers(user, &definitions.sites, &definitions.by_package, found);
        if !definitions.is_distinctive {
            // Any type may have a method of that name, so the type must be mentioned as well.
            let uses = |owner: NameId| self.uses[owner as usize].users.binary_search(&from).is_ok();
            found.retain(|site| {
                let owners = self.by_id(*site).map_or(&[][..], |file| owners(file, definitions.name));
                owners.is_empty() || owners.iter().any(|(_, owner)| uses(*owner))
            });
        }
        if !found.is_empty() || !definitions.is_distinctive {
            return FULL_WEIGHT;
        }
        let related = definitions.sites.iter().filter(|(_, file)| file.family == user.family);
        found.extend(related.map(|(id, _)| *id).take(MAX_GUESSED_DEFINERS + 1));
        if found.len() > MAX_GUESSED_DEFINERS {
            found.clear();
        }
        GUESS_WEIGHT
    }

    /// Adds or removes the links of a name.
    pub(super) fn adjust_name_links(&mut self, name: NameId, change: LinkChange) {
        for Link { from, to, weight } in self.links(name) {
            self.adjust_edge(from, to, weight, change);
            let counts = self.by_id(from).is_some_and(|file| !file.is_test);
            let sites = &mut self.uses[name as usize].sites;
            if let Ok(at) = sites.binary_search_by_key(&to, |site| site.file)
                && counts
            {
                sites[at].uses = adjust_count(sites[at].uses, change);
                self.bump_revision(to);
            }
        }
    }

    /// Adds or removes the edges of a file's imports.
    pub(super) fn adjust_import_edges(&mut self, from: FileId, change: LinkChange) {
        // Importing a folder uses something in it, not everything; the names tell what.
        let importer = self.by_id(from).filter(|file| !file.imports_folders);
        let targets = importer.map(|file| file.imports.targets.clone()).unwrap_or_default();
        for target in targets {
            self.adjust_edge(from, target.file, IMPORT_WEIGHT, change);
        }
    }

    fn adjust_edge(&mut self, from: FileId, to: FileId, weight: u64, change: LinkChange) {
        let counts = self.by_id(from).is_some_and(|file| !file.is_test);
        let edges = &mut self.edges[from as usize];
        let at = match edges.binary_search_by_key(&to, |edge| edge.to) {
            Ok(at) => at,
            Err(at) => {
                edges.insert(at, Edge { to, count: 0, weight: 0 });
                if counts {
                    self.used_by[to as usize] += 1;
                    self.bump_revision(to);
                }
                at
            }
        };
        let edges = &mut self.edges[from as usize];
        let edge = &mut edges[at];
        edge.count = adjust_count(edge.count, change);
        edge.weight =
            if change == LinkChange::Add { edge.weight + weight } else { edge.weight.saturating_sub(weight) };
        if edge.count == 0 {
            edges.remove(at);
            if counts {
                self.used_by[to as usize] = self.used_by[to as usize].saturating_sub(1);
                self.bump_revision(to);
            }
        }
    }
}

fn adjust_count(count: u32, change: LinkChange) -> u32 {
    if change == LinkChange::Add { count + 1 } else { count.saturating_sub(1) }
}

/// Collects the files that define the name and that the user can see: sorted.
fn collect_visible_definers(
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

/// The types that have a member of this name in a file; empty if the name is also defined outside
/// of types.
fn owners(file: &File, name: NameId) -> &[Member] {
    let start = file.owners.partition_point(|(member, _)| *member < name);
    let length = file.owners[start..].partition_point(|(member, _)| *member == name);
    &file.owners[start..start + length]
}

/// Whether a name consists of two words or more, so that nobody writes it by chance.
fn is_distinctive(name: &str) -> bool {
    let inner = name.trim_matches('_');
    let letters = inner.as_bytes().windows(2);
    let mut turns = letters
        .filter(|pair| pair[1] == b'_' || (pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase()));
    inner.len() >= 6 && turns.next().is_some()
}
