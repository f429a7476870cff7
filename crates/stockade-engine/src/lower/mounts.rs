//! The file-system view: which paths need a mount of their own, and what it shows.

use std::collections::BTreeMap;

use stockade_linux::plan::{Mount, Root, View};
use stockade_policy::profile::{Base, Profile};
use stockade_rules::{self as rules, AbsPath, Access, Index, PathRule, Pattern, Rank, RuleSet};

use super::home::Layer;
use crate::host::{Found, Host, Kind};
use crate::plan::PlanError;

/// What the plan needs to know about the view.
pub(super) struct Lowered {
    pub(super) root: Root,
    pub(super) mounts: Vec<Mount>,
    pub(super) cwd: AbsPath,
    /// For Landlock: where writing is allowed, and where device ioctls are.
    pub(super) writable: Vec<AbsPath>,
    pub(super) devices: Vec<AbsPath>,
    /// Directories that only this sandbox has.
    pub(super) private: Vec<AbsPath>,
    /// The rules with those about what the engine itself provides.
    pub(super) rules: RuleSet,
    /// Whether some denied files have no mount, so that the mediator must see every open.
    pub(super) has_uncovered: bool,
}

/// What is seen at a path, as far as rules are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Hidden,
    /// The host's, with a private layer that takes every write.
    Layered,
    /// Only here: a `/tmp`, `/dev` or `/proc` of the sandbox's own.
    Private,
    ReadOnly,
    Writable,
}

/// Where there is no limit on `/tmp` the kernel's own applies: half the memory.
const NO_LIMIT: u64 = 0;

/// Files that the user denied one by one get a mount each if they are at most `most_covered`.
pub(super) fn lower(
    profile: &Profile,
    rules: RuleSet,
    host: &Host,
    most_covered: usize,
    mediated: bool,
    layer: &Layer<'_>,
) -> Result<Lowered, PlanError> {
    let mut rules = with_engine_rules(rules, host);
    if let Some(home) = &layer.home {
        super::home::add_rules(home, profile, &mut rules, host);
    }
    let index = Index::new(&rules);
    let [read, write] = index.decide_both(AbsPath::root().as_path());
    if write.allowed {
        return Err(PlanError::WholeRoot);
    }
    let root = match profile.base.value {
        Base::Host if read.allowed => Root::Host,
        // What rules below it allow is put into an empty one.
        Base::Host | Base::Minimal => Root::Empty,
    };
    let mut points = Points {
        home: layer.home.clone(),
        kept: layer.kept.cloned(),
        ..Points::default()
    };
    points.add_engine(profile, &rules, host)?;
    points.add_rules(profile, &rules, &index, host);
    if root == Root::Empty {
        points.add_links(profile, host);
    }
    if !mediated {
        points.add_protected(profile, &index, host);
    }
    let has_uncovered = points.denied.len() > most_covered;
    if !has_uncovered {
        points.cover_denied();
    }

    let top = if root == Root::Host {
        Seen::ReadOnly
    } else {
        Seen::Hidden
    };
    let (mounts, writable) = points.into_mounts(top);
    let cwd = super::working_directory(profile, &rules, host)?;
    let private = [("/tmp", "/tmp"), ("/dev", "/dev/shm")]
        .into_iter()
        .filter_map(|(place, path)| Some((AbsPath::new(place).ok()?, AbsPath::new(path).ok()?)))
        .filter(|(place, _)| !stated_at(&rules, place))
        .map(|(_, path)| path)
        .collect();
    Ok(Lowered {
        root,
        mounts,
        cwd,
        writable,
        devices: AbsPath::new("/dev").into_iter().collect(),
        private,
        rules,
        has_uncovered,
    })
}

/// Places that the sandbox has of its own.
const OWN_PLACES: &[(&str, Access)] = &[
    ("/tmp", Access::Write),
    ("/dev", Access::Write),
    ("/proc", Access::Write),
    ("/sys", Access::Read),
];

/// What the sandbox has of its own may be written. What it is shown there of the host may not,
/// unless somebody grants that.
fn with_engine_rules(mut rules: RuleSet, host: &Host) -> RuleSet {
    let own: Vec<(AbsPath, Access)> = OWN_PLACES
        .iter()
        .filter_map(|(path, access)| Some((AbsPath::new(path).ok()?, *access)))
        // A place that somebody spoke about is the host's.
        .filter(|(path, _)| !stated_at(&rules, path))
        .collect();
    let mut shown = Vec::new();
    for rule in &rules {
        if let (Pattern::Subtree(path), Access::Read) = (&rule.pattern, rule.access)
            && let Some(real) = host.find(path).real()
            && own.iter().any(|(place, _)| real.is_within(place))
            && !rules.decide(rules::Kind::Write, real.as_path()).allowed
        {
            shown.push((real.clone(), Access::DenyWrite));
        }
    }
    for (path, access) in own.into_iter().chain(shown) {
        let pattern = Pattern::Subtree(path);
        let reason = "built-in: the sandbox's own";
        rules.push(PathRule::built_in(pattern, access, reason));
    }
    rules
}

#[derive(Default)]
struct Points {
    /// Paths at which something may change, in order.
    seen: BTreeMap<AbsPath, Point>,
    /// Files that the user denied one by one and nobody may execute.
    denied: Vec<AbsPath>,
    /// The home directory, if it has a layer.
    home: Option<AbsPath>,
    /// The layer, if it is kept.
    kept: Option<AbsPath>,
}

struct Point {
    seen: Seen,
    view: View,
}

impl Point {
    fn new(seen: Seen, view: View) -> Self {
        Self { seen, view }
    }
}

impl Points {
    fn add_engine(
        &mut self,
        profile: &Profile,
        rules: &RuleSet,
        host: &Host,
    ) -> Result<(), PlanError> {
        let size = profile.limits.tmp_size().unwrap_or(NO_LIMIT);
        let mut granted = Vec::new();
        for device in &profile.devices {
            let found = host.find(&device.value);
            let real = found.real();
            granted.push(
                real.ok_or_else(|| PlanError::Device(device.value.clone()))?
                    .clone(),
            );
        }
        let engine = [
            (
                "/dev",
                View::Devices {
                    granted,
                    shared_memory: size,
                },
            ),
            ("/proc", View::Proc),
            ("/tmp", View::Temporary { size }),
        ];
        for (path, view) in engine {
            let Ok(path) = AbsPath::new(path) else {
                continue;
            };
            if !stated_at(rules, &path) {
                self.seen.insert(path, Point::new(Seen::Private, view));
            }
        }
        if let Some(home) = &self.home {
            let view = match &self.kept {
                Some(layer) => View::KeptLayer {
                    layer: layer.clone(),
                },
                None => View::PrivateLayer { size },
            };
            self.seen
                .insert(home.clone(), Point::new(Seen::Layered, view));
        }
        for path in ["/run", "/var/run"] {
            let Ok(path) = AbsPath::new(path) else {
                continue;
            };
            let present = matches!(&*host.find(&path), Found::Present { real, kind: Kind::Directory, .. } if *real == path);
            if present && profile.base.value == Base::Host && !stated_at(rules, &path) {
                self.seen
                    .insert(path, Point::new(Seen::Hidden, View::Empty));
            }
        }
        if profile.base.value == Base::Minimal
            && let Ok(sys) = AbsPath::new("/sys")
        {
            self.seen
                .insert(sys, Point::new(Seen::ReadOnly, View::ReadOnly));
        }
        Ok(())
    }

    /// A point for every path that a rule names and that exists.
    fn add_rules(&mut self, profile: &Profile, rules: &RuleSet, index: &Index<'_>, host: &Host) {
        for rule in rules {
            let Pattern::Subtree(path) = &rule.pattern else {
                continue;
            };
            if let Found::Present { real, kind, .. } = &*host.find(path) {
                if *kind == Kind::File && real == path && rule.is_final_for(rules::Kind::Read) {
                    self.denied.push(real.clone());
                } else {
                    self.add(real.clone(), index);
                }
            }
        }
        for socket in super::rules::sockets(profile, host, &mut Vec::new()) {
            if let Some(real) = host.find(&socket).real() {
                self.seen
                    .insert(real.clone(), Point::new(Seen::ReadOnly, View::ReadOnly));
            }
        }
    }

    /// The links that programs are found through, /bin, /lib64 …, in a root that has none.
    fn add_links(&mut self, profile: &Profile, host: &Host) {
        for rule in &profile.rules {
            let Pattern::Subtree(path) = &rule.pattern else {
                continue;
            };
            let shows = matches!(rule.access, Access::Read | Access::Write);
            let at_top = path.as_path().parent() == Some(AbsPath::root().as_path());
            if let Some(real) = host.find(path).real()
                && real != path
                && (rule.rank == Rank::Default || (shows && at_top))
            {
                self.seen.insert(
                    path.clone(),
                    Point::new(Seen::ReadOnly, View::Symlink(real.clone())),
                );
            }
        }
    }

    /// A mount for each of them.
    fn cover_denied(&mut self) {
        for path in std::mem::take(&mut self.denied) {
            let hidden = || Point::new(Seen::Hidden, View::Hidden);
            self.seen.entry(path).or_insert_with(hidden);
        }
    }

    fn add(&mut self, path: AbsPath, index: &Index<'_>) {
        if path.is_root() {
            return;
        }
        let home = self.home.as_ref().filter(|home| path.is_within(home));
        let write = home.and_then(|_| index.decide(rules::Kind::Write, path.as_path()).rule);
        if let (Some(home), Some(rule)) = (home, write)
            && super::home::is_rule(rule, home)
            && index.decide(rules::Kind::Read, path.as_path()).allowed
        {
            // The layer shows it.
            return;
        }
        self.seen.entry(path).or_insert_with_key(|path| {
            let [read, write] = index.decide_both(path.as_path());
            match (read.allowed, write.allowed) {
                (false, _) => Point::new(Seen::Hidden, View::Hidden),
                (true, false) => Point::new(Seen::ReadOnly, View::ReadOnly),
                (true, true) => Point::new(Seen::Writable, View::Writable),
            }
        });
    }

    /// A lock on protected names that exist at the top of a writable root, for who has no mediator:
    /// a mount point can't be removed either, which the mediator lets pass. git's own configuration
    /// is left out: git could not replace a mount point.
    fn add_protected(&mut self, profile: &Profile, rules: &Index<'_>, host: &Host) {
        for (path, protected) in super::rules::protected_names(profile, host) {
            if !protected.name.ends_with("/config") && host.find(&path).real() == Some(&path) {
                self.add(path, rules);
            }
        }
    }

    /// Leaves out what the mount above shows already.
    fn into_mounts(self, top: Seen) -> (Vec<Mount>, Vec<AbsPath>) {
        let mut above: Vec<(AbsPath, Seen)> = Vec::new();
        let mut mounts: Vec<Mount> = Vec::new();
        let mut writable = Vec::new();
        for (path, Point { seen, view }) in self.seen {
            while above
                .last()
                .is_some_and(|(ancestor, _)| !path.is_within(ancestor))
            {
                above.pop();
            }
            let outer = above.last().map_or(top, |(_, seen)| *seen);
            let is_link = matches!(view, View::Symlink(_));
            let needed = match (outer, seen) {
                (Seen::Hidden | Seen::Private, Seen::Hidden) => {
                    matches!(view, View::Empty) && outer == Seen::Private
                }
                (outer, seen) => outer != seen || seen == Seen::Private,
            };
            if !needed && !is_link {
                continue;
            }
            if matches!(seen, Seen::Writable | Seen::Private | Seen::Layered) {
                writable.push(path.clone());
            }
            // What lies below something hidden needs a place to be mounted on.
            if outer == Seen::Hidden
                && let Some((ancestor, _)) = above.last()
                && let Some(mount) = mounts.iter_mut().find(|mount| mount.path == *ancestor)
                && mount.view == View::Hidden
            {
                mount.view = View::Empty;
            }
            if !is_link {
                above.push((path.clone(), seen));
            }
            mounts.push(Mount { path, view });
        }
        (mounts, writable)
    }
}

/// Whether the user spoke about this very path: then it is the host's and not our own.
pub(super) fn stated_at(rules: &RuleSet, path: &AbsPath) -> bool {
    rules.iter().any(|rule| {
        rule.rank == Rank::Stated && matches!(&rule.pattern, Pattern::Subtree(root) if root == path)
    })
}
