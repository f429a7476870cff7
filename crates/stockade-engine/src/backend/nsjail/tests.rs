use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use stockade_linux::plan::Text;
use stockade_policy::Surroundings;
use stockade_policy::profile::{Clause, Flags, NetworkMode, Sources};
use stockade_rules::AbsPath;

use super::*;
use crate::Files;
use crate::plan::Carrier;
use crate::report::Enforcement;

fn profile(dir: &Path, flags: Flags) -> Profile {
    let around = Surroundings::from_env(dir).unwrap();
    let sources = Sources {
        flags,
        ..Sources::new(around)
    };
    Files::load(&sources).unwrap()
}

fn plan(dir: &Path, flags: Flags) -> ExecPlan {
    let spec = Spec {
        argv: vec!["true".into(), "--config".into()],
        env: vec![
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("LANG".into(), OsStr::from_bytes(b"a\"b\\\xff\n").to_owned()),
        ],
        keep_descriptors: vec![4],
        ..Spec::default()
    };
    let nsjail = Nsjail::at("/usr/bin/nsjail");
    nsjail.plan(&profile(dir, flags), &spec).unwrap()
}

fn configuration(plan: &ExecPlan) -> String {
    let Carrier::Program(program) = &plan.carrier else {
        panic!("{:?}", plan.carrier);
    };
    let Content::Text(text) = &program.inputs[0].content else {
        panic!("{:?}", program.inputs);
    };
    text.clone()
}

#[test]
fn everything_but_the_command_goes_through_a_descriptor() {
    let dir = tempfile::tempdir().unwrap();
    let mut flags = Flags::default();
    for number in 0..2000 {
        let name = dir.path().join(format!("{number:0200}"));
        fs::write(&name, "").unwrap();
        flags.deny_write.push(name.into());
    }
    let plan = plan(dir.path(), flags);
    let Carrier::Program(program) = &plan.carrier else {
        panic!("{:?}", plan.carrier);
    };
    let argv = program.run.command.argv.iter().map(Text::as_os_str);
    // Descriptor 4 is the command's own.
    let expected = [
        "/usr/bin/nsjail",
        "--config",
        "/proc/self/fd/3",
        "--log_fd",
        "5",
        "--",
        "/usr/bin/true",
        "--config",
    ];
    assert!(argv.eq(expected), "{program:?}");
    assert_eq!(program.run.keep_descriptors, [4, 3, 5]);
    assert!(configuration(&plan).len() > 400_000);
    assert!(program.run.trusted && !plan.linux.trusted);
}

#[test]
fn the_view_is_the_native_one() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().to_str().unwrap();
    fs::write(dir.path().join("secret"), "").unwrap();
    fs::create_dir(dir.path().join("closed")).unwrap();
    let flags = Flags {
        deny_read: vec![
            dir.path().join("secret").into(),
            dir.path().join("closed").into(),
        ],
        ..Flags::default()
    };
    let text = configuration(&plan(dir.path(), flags));
    let at = |line: &str| {
        let found = text.lines().position(|other| other == line);
        found.unwrap_or_else(|| panic!("{line}\n{text}"))
    };
    let bind = |path: &str, access: &str| {
        format!(
            "mount: {{ src: \"{path}\" dst: \"{path}\" is_bind: true {access} nosuid: true \
             nodev: true }}"
        )
    };
    let order = [
        at(&bind("/", "rw: false is_dir: true")),
        at("mount: { dst: \"/proc\" fstype: \"proc\" rw: false }"),
        at(&bind(here, "rw: true is_dir: true")),
        at(&format!(
            "mount: {{ dst: \"{here}/closed\" fstype: \"tmpfs\" options: \"mode=0000\" rw: false \
             nosuid: true nodev: true }}"
        )),
        at(&format!(
            "mount: {{ src: \"/dev/null\" dst: \"{here}/secret\" is_bind: true rw: false \
             is_dir: false nosuid: true nodev: true mandatory: true }}"
        )),
    ];
    assert!(order.is_sorted(), "{order:?}");
    for line in [
        "mode: ONCE",
        "clone_newnet: true",
        "keep_caps: false",
        "skip_setsid: false",
        "pass_fd: 4",
        r#"envar: "LANG=a\"b\\\377\012""#,
        "envar: \"STOCKADE_SANDBOX_TYPE=nsjail\"",
        "seccomp_string: \"USE stockade DEFAULT ERRNO(38)\"",
    ] {
        at(line);
    }
    let open = Flags {
        net: Some(NetworkMode::Open),
        ..Flags::default()
    };
    let text = configuration(&plan(dir.path(), open));
    assert!(text.lines().any(|line| line == "clone_newnet: false"));
}

/// Somebody has to answer in it, so the helper makes it and nsjail is started inside.
#[test]
fn a_network_with_hosts_in_it_is_the_helpers() {
    let dir = tempfile::tempdir().unwrap();
    let listed = Flags {
        allow: vec![stockade_policy::host::HostPattern::parse("a.test").unwrap()],
        ..Flags::default()
    };
    let plan = plan(dir.path(), listed);
    let text = configuration(&plan);
    assert!(text.lines().any(|line| line == "clone_newnet: false"));
    let Carrier::Program(program) = &plan.carrier else {
        panic!("{:?}", plan.carrier);
    };
    assert!(program.run.own_network && program.run.network.is_some());
    assert!(plan.network.is_some());
    let mut reports = plan.enforcement.iter();
    let network = reports.find(|report| report.clause == Clause::Network);
    assert!(network.unwrap().mechanism.contains("proxy"));
}

/// nsjail binds a tree with all its mounts, and makes only the first of them read-only.
#[test]
fn mounts_below_a_read_only_one_are_read_only_too() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let plan = plan(dir.path(), Flags::default());
    let disk = AbsPath::new("/srv/disk").unwrap();
    let inner = AbsPath::new(dir.path().join("inner")).unwrap();
    let below = |path: &AbsPath| {
        let all = [disk.clone(), inner.clone()];
        all.into_iter().filter(|at| at.is_within(path)).collect()
    };
    let seen = config::Seen {
        is_directory: &|_| true,
        mounts_below: &below,
    };
    let text = config::text(&plan.linux, &[], &seen);
    assert!(text.contains(r#"dst: "/srv/disk" is_bind: true rw: false"#));
    assert!(!text.contains(inner.as_path().to_str().unwrap()), "{text}");
}

#[test]
fn patterns_are_refused_and_the_filter_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(
        dir.path(),
        Flags {
            deny_read: vec!["**/*.env".into()],
            ..Flags::default()
        },
    );
    let of = |clause: Clause| {
        let mut all = plan.enforcement.iter();
        all.find(|report| report.clause == clause)
            .unwrap()
            .enforcement
    };
    assert_eq!(of(Clause::FsRead), Enforcement::None);
    assert_eq!(of(Clause::Seccomp), Enforcement::Full);
    // No row about set-id programs has run here.
    assert_eq!(of(Clause::Privileges), Enforcement::Partial);
}

#[test]
fn the_log_tells_whether_there_was_a_sandbox() {
    for (said, built) in [
        ("", false),
        (
            "[I][2026-11-16T06:00:00+0000] Mode: STANDALONE_ONCE\n",
            false,
        ),
        (
            "[I][2026-11-16T06:00:00+0000] pid=7 ([STANDALONE MODE]) exited with status: 3, (PIDs left: 0)\n",
            true,
        ),
        (
            "[I][x] pid=7 ([STANDALONE MODE]) terminated with signal: SIGKILL (9), (PIDs left: 0)\n",
            true,
        ),
        (
            "[E][x][1] mount('/x') failed\n[I][x] pid=7 ([STANDALONE MODE]) exited with status: 255, (PIDs left: 0)\n",
            false,
        ),
        ("[F][x] could not\n", false),
    ] {
        assert_eq!(Log.is_built(said), built, "{said}");
    }
}
