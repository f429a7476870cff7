//! The engine and what is in it.

use std::fs;

use stockade_container::{ContainerSandbox, Engine, Images};
use stockade_test::dockerd::Dockerd;
use stockade_test::keeper::Disk;

/// An engine, a project below a directory that is not `/tmp`, and an image with a shell.
pub(crate) struct Scene {
    pub(crate) engine: Dockerd,
    pub(crate) dir: tempfile::TempDir,
}

pub(crate) const IMAGE: &str = "stockade/host:test";

pub(crate) fn scene(test: &str) -> Option<Scene> {
    scene_on(test, Disk::Host)
}

/// The same with the engine's data on this disk.
pub(crate) fn scene_on(test: &str, disk: Disk) -> Option<Scene> {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let engine = match Dockerd::start_on(dir.path(), disk) {
        Ok(engine) => engine,
        Err(reason) => {
            let required = std::env::var("STOCKADE_REQUIRE").unwrap_or_default();
            assert!(!required.contains("backend:docker"), "{test}: {reason}");
            let line = format!("ignored {test}: {reason}\n");
            std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).unwrap();
            return None;
        }
    };
    fs::create_dir(dir.path().join("project")).unwrap();
    let scene = Scene { engine, dir };
    Images::new(&scene.connect()).from_host(&[], IMAGE).unwrap();
    Some(scene)
}

impl Scene {
    pub(crate) fn connect(&self) -> Engine {
        Engine::at(&self.engine.socket()).unwrap()
    }

    pub(crate) fn project(&self) -> std::path::PathBuf {
        self.dir.path().join("project")
    }

    pub(crate) fn sandbox(&self) -> ContainerSandbox {
        ContainerSandbox::new(self.connect(), self.project(), IMAGE)
    }

    /// The names of all containers.
    pub(crate) fn names(&self) -> Vec<String> {
        let output = std::process::Command::new("curl")
            .args(["-s", "--unix-socket"])
            .arg(self.engine.socket())
            .arg("http://engine/containers/json?all=true")
            .output()
            .unwrap();
        let list: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let all = list.as_array().unwrap().iter();
        all.map(|one| one["Names"][0].as_str().unwrap().replace('/', ""))
            .collect()
    }

    pub(crate) fn containers(&self) -> usize {
        self.names().len()
    }

    /// Takes a container away as somebody else would.
    pub(crate) fn take_away(&self, name: &str) {
        let gone = std::process::Command::new("curl")
            .args(["-s", "-X", "DELETE", "--unix-socket"])
            .arg(self.engine.socket())
            .arg(format!("http://engine/containers/{name}?force=true"))
            .output()
            .unwrap();
        assert!(gone.status.success());
    }

    /// The engine dies and can say nothing more.
    pub(crate) fn kill_engine(&self) {
        let engine = rustix::process::Pid::from_raw(self.engine.pid()).unwrap();
        rustix::process::kill_process(engine, rustix::process::Signal::KILL).unwrap();
    }
}
