use std::fs;

use stockade_engine::Spec;
use stockade_engine::backend::foundation::{self, Words};
use stockade_policy::profile::{Backend as Name, Profile};
use stockade_policy::{SandboxPolicy, Surroundings as Around};

use super::*;

struct Fake;

impl Surroundings for Fake {
    fn is_directory(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn top(&self) -> Vec<(AbsPath, AbsPath)> {
        [("/bin", "/usr/bin"), ("/dev", "/dev"), ("/usr", "/usr")]
            .map(|(path, real)| (AbsPath::new(path).unwrap(), AbsPath::new(real).unwrap()))
            .to_vec()
    }

    fn mounts_below(&self, path: &AbsPath) -> Vec<AbsPath> {
        let below = AbsPath::new("/usr/mnt").unwrap();
        if below.is_within(path) {
            vec![below]
        } else {
            Vec::new()
        }
    }
}

fn body(project: &Path, image: Option<&str>) -> ContainerCreateBody {
    let around = Around::from_env(project).unwrap();
    let policy = SandboxPolicy::workspace_write(Vec::new());
    let profile = Profile::from_policy(&policy, &around).unwrap();
    let spec = Spec {
        argv: vec!["true".into()],
        ..Spec::default()
    };
    let words = Words {
        files: "",
        devices: "",
        processes: "",
        privileges: "",
        privileges_gap: None,
        seccomp: "",
        seccomp_gap: None,
        network: "",
        hosts: None,
        ipc: "",
        ipc_gap: None,
    };
    let plan = foundation::plan(&profile, &spec, Name::Docker, &words).unwrap();
    let settings = Settings {
        image,
        runtime: Some("runsc"),
        user: (1000, 100),
        memory: Some(1 << 30),
        pids: Some(64),
        hidden_file: "/tmp/hidden",
    };
    create_body(&plan.linux, &settings, &Fake).unwrap()
}

#[test]
fn every_container_is_hardened() {
    let dir = tempfile::tempdir().unwrap();
    let body = body(dir.path(), None);
    assert_eq!(body.user.as_deref(), Some("1000:100"));
    assert!(body.labels.unwrap().contains_key(OWNER_LABEL));
    let host = body.host_config.unwrap();
    assert_eq!(host.cap_drop.unwrap(), ["ALL"]);
    assert_eq!(host.network_mode.as_deref(), Some("none"));
    assert_eq!(host.readonly_rootfs, Some(true));
    assert_eq!(host.privileged, Some(false));
    assert_eq!(host.memory, Some(1 << 30));
    assert_eq!(host.memory_swap, Some(1 << 30));
    assert_eq!(host.pids_limit, Some(64));
    assert_eq!(host.runtime.as_deref(), Some("runsc"));
    let options = host.security_opt.unwrap();
    assert_eq!(options[0], "no-new-privileges:true");
    let filter = options[1].strip_prefix("seccomp=").unwrap();
    let filter: serde_json::Value = serde_json::from_str(filter).unwrap();
    assert!(filter["syscalls"].as_array().unwrap().len() > 3);
    assert!(host.binds.is_none() && host.volumes_from.is_none());
}

fn at<'a>(mounts: &'a [EngineMount], path: &str) -> Option<&'a EngineMount> {
    mounts
        .iter()
        .find(|mount| mount.target.as_deref() == Some(path))
}

#[test]
fn the_host_is_shown_read_only_mounts_below_included() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().to_str().unwrap().to_owned();
    fs::create_dir_all(dir.path().join(".git/hooks")).unwrap();
    let mounts = body(dir.path(), None).host_config.unwrap().mounts.unwrap();
    for path in ["/usr", "/usr/mnt", "/bin"] {
        assert_eq!(at(&mounts, path).unwrap().read_only, Some(true), "{path}");
    }
    assert_eq!(
        at(&mounts, "/bin").unwrap().source.as_deref(),
        Some("/usr/bin")
    );
    assert!(at(&mounts, "/dev").is_none(), "the engine has its own");
    assert_eq!(at(&mounts, &here).unwrap().read_only, Some(false));
    let hooks = at(&mounts, &format!("{here}/.git/hooks")).unwrap();
    assert_eq!(hooks.read_only, Some(true));
    assert_eq!(at(&mounts, "/tmp").unwrap().typ, Some(MountType::TMPFS));
    let sockets = mounts.iter().filter_map(|mount| mount.source.as_deref());
    assert!(!sockets.clone().any(|source| source.contains("docker.sock")));
}

#[test]
fn with_an_image_only_the_project_is_the_hosts() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().to_str().unwrap().to_owned();
    fs::create_dir_all(dir.path().join(".git/hooks")).unwrap();
    let mounts = body(dir.path(), Some("some:1"))
        .host_config
        .unwrap()
        .mounts
        .unwrap();
    assert!(at(&mounts, "/usr").is_none());
    assert!(at(&mounts, &here).is_some());
    assert!(at(&mounts, &format!("{here}/.git/hooks")).is_some());
}
