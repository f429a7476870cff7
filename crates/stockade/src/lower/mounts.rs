//! The file-system view: which paths need a mount of their own, and what it shows.

use std::collections::BTreeMap;

use stockade_linux::plan::{Mount, Root, View};
use stockade_policy::profile::{Base, Profile};
use stockade_rules::{self as rules, AbsPath, Access, Index, PathRule, Pattern, Rank, RuleSet};

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
) -> Result<Lowered, PlanError> {
    let rules = with_engine_rules(rules);
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
    let mut points = Points::default();
    points.add_engine(profile, &rules, host)?;
    points.add_rules(profile, &rules, &index, host);
    if root == Root::Empty {
        points.add_links(profile, host);
    }
    points.add_protected(profile, &index, host);
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
    let private = ["/tmp", "/dev/shm"]
        .into_iter()
        .filter_map(|path| AbsPath::new(path).ok());
    Ok(Lowered {
        root,
        mounts,
        cwd,
        writable,
        devices: AbsPath::new("/dev").into_iter().collect(),
        private: private.collect(),
        rules,
        has_uncovered,
    })
}

/// What the sandbox has of its own may be written.
fn with_engine_rules(mut rules: RuleSet) -> RuleSet {
    for (path, access) in [
        ("/tmp", Access::Write),
        ("/dev", Access::Write),
        ("/proc", Access::Write),
        ("/sys", Access::Read),
    ] {
        if let Ok(path) = AbsPath::new(path) {
            let pattern = Pattern::Subtree(path);
            rules.push(PathRule::built_in(
                pattern,
                access,
                "built-in: the sandbox's own",
            ));
        }
    }
    rules
}

#[derive(Default)]
struct Points {
    /// Paths at which something may change, in order.
    seen: BTreeMap<AbsPath, Point>,
    /// Files that the user denied one by one and nobody may execute.
    denied: Vec<AbsPath>,
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
        for socket in &profile.network.unix {
            if let Some(real) = host.find(&socket.value).real() {
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

    fn add(&mut self, path: AbsPath, rules: &Index<'_>) {
        if path.is_root() {
            return;
        }
        self.seen.entry(path).or_insert_with_key(|path| {
            let [read, write] = rules.decide_both(path.as_path());
            match (read.allowed, write.allowed) {
                (false, _) => Point::new(Seen::Hidden, View::Hidden),
                (true, false) => Point::new(Seen::ReadOnly, View::ReadOnly),
                (true, true) => Point::new(Seen::Writable, View::Writable),
            }
        });
    }

    /// A second lock on protected names that exist at the top of a writable root. git's own
    /// configuration is left to the mediator: git could not replace a mount point.
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
            if seen == Seen::Writable || seen == Seen::Private {
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
