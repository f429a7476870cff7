//! The backend `gvisor`: `runsc` on an OCI bundle, without any daemon.
//!
//! The command's system calls are answered by gVisor's own kernel, in a process that the host's
//! kernel confines in turn; files of the host are reached through a second process. This is the
//! strongest boundary here, and the only one of the level `maximum`.
//!
//! The bundle is a directory of the run's own, which the helper makes and removes. There is no
//! mediator inside; descriptors, devices and single sockets of the host can't be handed in, and
//! asking for them is an error. The KVM platform is never asked for.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use serde_json::{Value, json};
use stockade_linux::plan::{LinuxPlan, Mount, Resource, Root, Text, View};
use stockade_linux::seccomp::FilterSpec;
use stockade_policy::profile::{Backend as Name, Profile};
use stockade_rules::AbsPath;

use super::foundation::{self, Hosts, Words};
use super::program::Tells;
use super::{Backend, Launch, RunningSandbox, lookup, program};
use crate::child::RunError;
use crate::host::Host;
use crate::lower;
use crate::plan::{Carrier, Content, ExecPlan, PlanError, Spec};
use crate::probe::{self, Support};

/// gVisor's `runsc`, started directly.
#[derive(Clone, Debug, Default)]
pub struct Gvisor {
    path: Option<PathBuf>,
}

impl Gvisor {
    /// The one on the search path, whose relative entries are left out.
    pub fn new() -> Self {
        Self::default()
    }

    /// The one at this path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: Some(path.into()),
        }
    }

    fn program(&self) -> Result<PathBuf, PlanError> {
        let given = self.path.as_deref();
        program::located(
            given,
            Name::Gvisor,
            "runsc",
            /*hint*/ "install gVisor's runsc",
        )
    }
}

/// Makes the bundle from what comes in, runs it, and tells whether the sandbox came to be. It
/// outlives signals that `runsc` forwards. Arguments: the bundle's directory, the numbers of the
/// two descriptors, then `runsc` and its arguments.
///
/// gVisor begins at the start of a file, for each stream. Output to a file goes through a pipe, or
/// it would write over what is there. So does input, unless the file is at its start, where it can
/// be handed in itself. What fills that pipe opens the file anew: it reads ahead, and must not take
/// from a caller that goes on reading what the command left. The config's descriptor keeps the
/// input's place: a shell gives `/dev/null` to what it leaves running.
const SCRIPT: &str = r#"
trap : HUP INT QUIT TERM USR1 USR2
bundle=$1 config=$2 status=$3
shift 3
mkdir -m 700 "$bundle/rootfs" "$bundle/state" &&
: > "$bundle/hidden" && chmod 0 "$bundle/hidden" &&
cat <&"$config" > "$bundle/config.json" || exit 125
pass_on() {
    (trap '' HUP INT QUIT TERM USR1 USR2; exec cat "$1") &
}
eval "exec $config<&0"
pass_in() {
    (
        trap '' HUP INT QUIT TERM USR1 USR2
        exec > "$bundle/in" 2> /dev/null
        if test -r "/proc/self/fd/$config"; then
            exec tail -c "+$(($1 + 1))" "/proc/self/fd/$config"
        fi
        exec cat <&"$config"
    ) &
}
if test -f /proc/self/fd/0 && read -r _ offset < "/proc/self/fdinfo/$config" &&
    test "$offset" -gt 0; then
    mkfifo "$bundle/in" && pass_in "$offset" && exec < "$bundle/in"
fi
eval "exec $config<&-"
both=
if test /proc/self/fd/1 -ef /proc/self/fd/2; then both=1; fi
if test -f /proc/self/fd/2 && test -z "$both"; then
    mkfifo "$bundle/err" && pass_on "$bundle/err" >&2 && exec 2> "$bundle/err"
fi
if test -f /proc/self/fd/1; then
    mkfifo "$bundle/out" && pass_on "$bundle/out" && exec > "$bundle/out"
    if test -n "$both"; then exec 2>&1; fi
fi
"$@"
code=$?
exec < /dev/null > /dev/null 2>&1
until wait; do :; done
if test -s "$bundle/pid"; then echo built >&"$status"; fi
exit $code
"#;

impl Backend for Gvisor {
    fn name(&self) -> Name {
        Name::Gvisor
    }

    fn probe(&self, _: &Path) -> Support {
        probe::runsc(self.path.as_deref())
    }

    fn plan(&self, profile: &Profile, spec: &Spec) -> Result<ExecPlan, PlanError> {
        let runsc = self.program()?;
        let mut plan = foundation::plan(profile, spec, Name::Gvisor, &words())?;
        refuse(profile, spec)?;

        let random = Host::random()?;
        let id = format!("stockade-{random:016x}");
        let bundle = AbsPath::new(std::env::temp_dir().join(&id)).map_err(|_| {
            unusable(
                "there is no temporary directory",
                /*hint*/ "set TMPDIR",
            )
        })?;
        let rootless = !rustix::process::geteuid().is_root();
        let spec_text = bundle_spec(&plan.linux, &bundle, rootless, lookup::is_directory)?;

        let mut free = program::free_descriptors(&spec.keep_descriptors);
        let [config_fd, status_fd] = [(); 2].map(|()| free.next().unwrap_or(i32::MAX));
        let network = if program::cuts_network(&plan.linux) {
            "none"
        } else {
            "host"
        };
        let state = bundle.as_path().join("state");
        let pid = bundle.as_path().join("pid");
        let mut argv: Vec<std::ffi::OsString> = vec![
            "/bin/sh".into(),
            "-c".into(),
            SCRIPT.into(),
            "stockade".into(),
            bundle.as_path().into(),
            config_fd.to_string().into(),
            status_fd.to_string().into(),
            runsc.into(),
            "--root".into(),
            state.into(),
            format!("--network={network}").into(),
            "--ignore-cgroups".into(),
            // The filter of the bundle is left out without it.
            "--oci-seccomp".into(),
        ];
        if rootless {
            argv.push("--rootless".into());
        }
        argv.extend(["run".into(), "--bundle".into(), bundle.as_path().into()]);
        argv.extend(["--pid-file".into(), pid.into(), id.into()]);
        let argv = argv
            .into_iter()
            .map(lower::text)
            .collect::<Result<_, _>>()?;
        let mut run = program::started_by_helper(&plan.linux, argv, [config_fd, status_fd]);
        run.scratch = vec![bundle];
        // They are for the command and stand in the bundle; gVisor itself needs more.
        run.rlimits.retain(|limit| limit.resource == Resource::Core);
        widen_pids(&mut run);
        let inputs = vec![program::input(
            config_fd,
            Content::Text(spec_text.to_string()),
        )];
        plan.carrier = program::carrier(run, inputs, Some(status_fd));
        Ok(plan)
    }

    fn carries(&self, plan: &ExecPlan) -> bool {
        plan.backend == Name::Gvisor && matches!(plan.carrier, Carrier::Program(_))
    }

    fn spawn(
        &self,
        plan: &ExecPlan,
        launch: &Launch<'_>,
    ) -> Result<Box<dyn RunningSandbox>, RunError> {
        program::spawn(plan, launch, &Built)
    }
}

/// One word when the sandbox came to be. The command's group is not known by it: `runsc` forwards
/// what it gets.
#[derive(Debug)]
struct Built;

impl Tells for Built {
    fn leader(&self, _: &str) -> Option<i32> {
        None
    }

    fn is_built(&self, said: &str) -> bool {
        said.contains("built")
    }
}

fn unusable(reason: &str, fix: &str) -> PlanError {
    PlanError::Unusable {
        backend: Name::Gvisor,
        reason: reason.to_owned(),
        fix: Some(fix.to_owned()),
    }
}

/// What can't be handed in.
fn refuse(profile: &Profile, spec: &Spec) -> Result<(), PlanError> {
    let wishes = [
        (
            !spec.keep_descriptors.is_empty(),
            "descriptors can't be handed into gVisor",
        ),
        (
            !profile.devices.is_empty(),
            "devices of the host can't be handed into gVisor",
        ),
        (
            !profile.network.unix.is_empty(),
            "Unix sockets of the host can't be handed into gVisor",
        ),
    ];
    match wishes.into_iter().find(|(wished, _)| *wished) {
        Some((_, reason)) => Err(unusable(
            reason,
            /*hint*/ "leave the grant out, or name another backend",
        )),
        None => Ok(()),
    }
}

fn words() -> Words {
    Words {
        files: "gVisor's mounts, served by its file process",
        devices: "a /dev of gVisor's own",
        processes: "a kernel of its own",
        privileges: "no capabilities, a kernel of its own that refuses set-id modes",
        privileges_gap: None,
        seccomp: "gVisor's kernel, which the host's filters",
        seccomp_gap: Some("of the filter only the refusal of set-id modes is installed inside"),
        network: "no network but gVisor's own loopback",
        hosts: Some(Hosts {
            mechanism: "network namespace that leads to the filtering proxy only; its sockets \
                        are of the host's kernel",
            ..program::HOSTS
        }),
        ipc: "a kernel of its own; no socket of the host",
        ipc_gap: None,
    }
}

/// gVisor's own threads are counted by the host too.
fn widen_pids(run: &mut LinuxPlan) {
    let groups = run.cgroup.iter_mut().flat_map(|cgroup| &mut cgroup.groups);
    let settings = groups.flat_map(|group| &mut group.settings);
    for (_, value) in settings.filter(|(name, _)| name == "pids.max") {
        if let Ok(limit) = value.parse::<u64>() {
            *value = limit
                .saturating_mul(2)
                .saturating_add(OWN_THREADS)
                .to_string();
        }
    }
}

const OWN_THREADS: u64 = 256;

/// The bundle's `config.json`.
fn bundle_spec(
    plan: &LinuxPlan,
    bundle: &AbsPath,
    rootless: bool,
    is_directory: impl Fn(&Path) -> bool,
) -> Result<Value, PlanError> {
    let text = |text: &Text| utf8(text.as_os_str().as_ref());
    let argv = plan.command.argv.iter().map(text);
    let env = plan.command.env.iter().map(text);
    let mut mounts = Vec::new();
    for mount in &plan.mounts {
        if rootless && mount.view == View::Hidden && is_closed(mount.path.as_path()) {
            continue;
        }
        add_mount(mount, bundle, &is_directory, &mut mounts)?;
    }
    let root = match plan.root {
        Root::Host => "/".to_owned(),
        Root::Empty => format!("{}/rootfs", utf8(bundle.as_path())?),
    };
    // Without privileges the caller is root of a user namespace of its own, and of nothing else.
    let (user, group) = if rootless {
        (0, 0)
    } else {
        let own = rustix::process::geteuid().as_raw();
        (own, rustix::process::getegid().as_raw())
    };
    let rlimits = plan.rlimits.iter().map(
        |limit| json!({ "type": rlimit(limit.resource), "soft": limit.value, "hard": limit.value }),
    );
    let mut namespaces = vec!["pid", "ipc", "uts", "mount"];
    if program::cuts_network(plan) {
        namespaces.push("network");
    }
    let namespaces = namespaces.into_iter().map(|kind| json!({ "type": kind }));
    // gVisor answers every refusal with EPERM; of the whole filter that would break `clone3`, on
    // whose ENOSYS the C libraries fall back.
    let (filter, _) = FilterSpec::set_id_only(plan.seccomp.arch).to_docker_json();
    Ok(json!({
        "ociVersion": "1.0.2",
        "process": {
            "terminal": plan.terminal,
            "user": { "uid": user, "gid": group },
            "args": argv.collect::<Result<Vec<_>, _>>()?,
            "env": env.collect::<Result<Vec<_>, _>>()?,
            "cwd": utf8(plan.command.cwd.as_path())?,
            "capabilities": {},
            "noNewPrivileges": true,
            "rlimits": rlimits.collect::<Vec<_>>(),
        },
        "root": { "path": root, "readonly": true },
        "hostname": "stockade",
        "mounts": mounts,
        "linux": { "namespaces": namespaces.collect::<Vec<_>>(), "seccomp": filter },
    }))
}

/// Whether it is another user's, and the caller can neither read nor enter it. Without privileges
/// nothing can be mounted there by `runsc`, which opens it first; and nobody inside is more than
/// the caller, who can't change its mode either.
fn is_closed(path: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let may = |mode| rustix::fs::access(path, mode).is_ok();
    let is_others = std::fs::symlink_metadata(path).is_ok_and(|found| found.uid() != own);
    is_others && !may(Access::READ_OK) && !may(Access::EXEC_OK)
}

/// JSON has no bytes.
fn utf8(path: &Path) -> Result<String, PlanError> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        let reason = format!(
            "`{}` is not UTF-8, which a bundle can't say",
            path.display()
        );
        unusable(&reason, /*hint*/ "rename it, or name another backend")
    })
}

fn rlimit(resource: Resource) -> &'static str {
    match resource {
        Resource::Core => "RLIMIT_CORE",
        Resource::Cpu => "RLIMIT_CPU",
        Resource::Data => "RLIMIT_DATA",
        Resource::FileSize => "RLIMIT_FSIZE",
        Resource::OpenFiles => "RLIMIT_NOFILE",
        Resource::Processes => "RLIMIT_NPROC",
    }
}

fn add_mount(
    mount: &Mount,
    bundle: &AbsPath,
    is_directory: impl Fn(&Path) -> bool,
    out: &mut Vec<Value>,
) -> Result<(), PlanError> {
    let path = utf8(mount.path.as_path())?;
    let bind = |source: &str, access: &str| {
        json!({
            "destination": path, "type": "bind", "source": source,
            "options": ["rbind", access, "nosuid", "nodev"],
        })
    };
    let temporary = |path: &str, options: Vec<String>| {
        json!({
            "destination": path, "type": "tmpfs", "source": "tmpfs", "options": options,
        })
    };
    let sized = |size: u64| match size {
        0 => vec!["mode=1777".to_owned()],
        size => vec!["mode=1777".to_owned(), format!("size={size}")],
    };
    match &mount.view {
        View::Devices { shared_memory, .. } => {
            out.push(temporary(&format!("{path}/shm"), sized(*shared_memory)));
        }
        View::Empty => out.push(temporary(
            &path,
            vec!["ro".to_owned(), "mode=0555".to_owned()],
        )),
        View::Hidden if is_directory(mount.path.as_path()) => {
            out.push(temporary(
                &path,
                vec!["ro".to_owned(), "mode=0000".to_owned()],
            ));
        }
        View::Hidden => {
            let hidden = format!("{}/hidden", utf8(bundle.as_path())?);
            out.push(bind(&hidden, "ro"));
        }
        View::Proc => out.push(json!({
            "destination": path, "type": "proc", "source": "proc",
        })),
        // Overlays are the helper's alone; if one ever comes here, nothing is written through.
        View::KeptLayer { .. }
        | View::Overlay { .. }
        | View::PrivateLayer { .. }
        | View::ReadOnly => {
            out.push(bind(&path, "ro"));
        }
        // The bundle's root has no links; what they lead to is shown twice instead.
        View::Symlink(target) => {
            let target = utf8(target.as_path())?;
            out.push(bind(&target, "ro"));
        }
        View::Temporary { size } => out.push(temporary(&path, sized(*size))),
        View::Writable => out.push(bind(&path, "rw")),
    }
    Ok(())
}
