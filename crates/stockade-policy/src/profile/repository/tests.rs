use std::collections::BTreeMap;
use std::io;

use super::*;

/// Files that exist in the test only.
#[derive(Clone, Default)]
struct Files(BTreeMap<AbsPath, Vec<u8>>);

impl Files {
    fn with(mut self, path: &str, text: &str) -> Self {
        self.0.insert(abs(path), text.into());
        self
    }

    fn with_git_directory(self, path: &str) -> Self {
        self.with(&format!("{path}/HEAD"), "ref: refs/heads/main\n")
            .with(&format!("{path}/objects"), "")
            .with(&format!("{path}/refs"), "")
    }
}

impl Loader for Files {
    fn read(&self, path: &AbsPath) -> io::Result<Vec<u8>> {
        let text = self.0.get(path).cloned();
        text.ok_or(io::ErrorKind::NotFound.into())
    }

    fn exists(&self, path: &AbsPath) -> bool {
        self.0.contains_key(path)
    }
}

fn abs(text: &str) -> AbsPath {
    AbsPath::new(text).unwrap()
}

fn find(workspace: &str, files: &Files) -> Option<OwnRepository> {
    own_repository(&abs(workspace), Some(&abs("/home/u")), files)
}

fn git_directories(workspace: &str, files: &Files) -> Vec<String> {
    let found = find(workspace, files).map(|found| found.git_directories);
    let found = found.unwrap_or_default().into_iter();
    found.map(|path| path.to_string()).collect()
}

fn worktree() -> Files {
    Files::default()
        .with_git_directory("/srv/r/.git")
        .with("/home/u/w/.git", "gitdir: /srv/r/.git/worktrees/w\n")
        .with("/srv/r/.git/worktrees/w/gitdir", "/home/u/w/.git\n")
        .with("/srv/r/.git/worktrees/w/commondir", "../..\n")
}

fn submodule() -> Files {
    Files::default()
        .with_git_directory("/home/u/r/.git")
        .with_git_directory("/home/u/r/.git/modules/m")
        .with("/home/u/r/m/.git", "gitdir: ../.git/modules/m\n")
        .with(
            "/home/u/r/.git/modules/m/config",
            "[core]\n\tworktree = ../../../m\n",
        )
}

#[test]
fn the_repository_of_the_workspace_or_around_it() {
    let files = Files::default().with_git_directory("/home/u/r/.git");
    for workspace in ["/home/u/r", "/home/u/r/a/b"] {
        let found = find(workspace, &files).unwrap();
        assert_eq!(found.root, abs("/home/u/r"));
        assert_eq!(found.link, Link::Directory);
        assert_eq!(found.git_directories, [abs("/home/u/r/.git")]);
    }
    assert_eq!(find("/home/u/other", &files), None);
}

#[test]
fn the_repository_of_the_home_directory_is_not_that_of_a_project() {
    let files = Files::default().with_git_directory("/home/u/.git");
    assert_eq!(find("/home/u/project", &files), None);
    assert!(find("/home/u", &files).is_some());
    assert_eq!(
        find("/x", &Files::default().with_git_directory("/.git")),
        None
    );
}

#[test]
fn worktrees_and_submodules_point_both_ways() {
    for workspace in ["/home/u/w", "/home/u/w/sub"] {
        let expected = ["/srv/r/.git/worktrees/w", "/srv/r/.git"];
        assert_eq!(git_directories(workspace, &worktree()), expected);
    }
    let expected = ["/home/u/r/.git/modules/m"];
    assert_eq!(git_directories("/home/u/r/m/x", &submodule()), expected);

    let config = "/home/u/r/.git/modules/m/config";
    for text in ["", "[core]\n\tworktree = ../../../other\n", "[core\n"] {
        let files = submodule().with(config, text);
        assert_eq!(find("/home/u/r/m", &files), None, "{text}");
    }
    let back = "/srv/r/.git/worktrees/w/gitdir";
    let files = worktree().with(back, "/home/u/other/.git\n");
    assert_eq!(find("/home/u/w", &files), None);
}

/// A project below a directory that is called `worktrees`, with the files of a worktree in it.
#[test]
fn a_prepared_project_does_not_widen_the_grant() {
    let prepared = Files::default()
        .with("/home/u/x/worktrees/w/.git", "gitdir: .\n")
        .with("/home/u/x/worktrees/w/gitdir", ".git\n")
        .with("/home/u/x/worktrees/w/commondir", "../..\n");
    assert_eq!(find("/home/u/x/worktrees/w", &prepared), None);
    // Not even if the directory above looks like a git directory.
    let looks = prepared.with_git_directory("/home/u/x");
    assert_eq!(find("/home/u/x/worktrees/w", &looks), None);

    let outside = Files::default()
        .with("/home/u/x/w/.git", "gitdir: ../worktrees/w\n")
        .with("/home/u/x/worktrees/w/gitdir", "../../w/.git\n")
        .with("/home/u/x/worktrees/w/commondir", "../..\n");
    assert_eq!(
        find("/home/u/x/w", &outside),
        None,
        "/home/u/x is no git directory"
    );
    let bare = outside.with_git_directory("/home/u/x");
    assert!(
        find("/home/u/x/w", &bare).is_some(),
        "a bare repository with a worktree in it"
    );
}

#[test]
fn files_that_git_would_refuse_give_nothing() {
    for text in [
        "",
        "gitdir: ",
        "gitdir: \n",
        "x\n",
        "gitdir: /\n",
        "gitdir: a\nb",
    ] {
        let files = worktree().with("/home/u/w/.git", text);
        assert_eq!(find("/home/u/w", &files), None, "{text:?}");
    }
}

#[test]
fn what_the_configuration_runs_is_found() {
    let config = "[core]\n\thooksPath = .husky/_\n\tfsmonitor = ./tools/watch %d\n\tpager = less -R\n\
        [include]\n\tpath = ../shared.cfg\n\
        [includeIf \"onbranch:x\"]\n\tpath = ~/more.cfg\n\
        [alias]\n\tx = !sh scripts/x.sh now\n\ty = log a/b\n\tz = !python3 z.py test\n\
        [diff]\n\texternal = /usr/bin/diff\n";
    let files = Files::default()
        .with_git_directory("/home/u/r/.git")
        .with("/home/u/r/.git/config", config)
        .with(
            "/home/u/r/shared.cfg",
            "[core]\n\tsshCommand = bin/ssh -v\n",
        )
        .with("/home/u/.gitconfig", "[core]\n\thooksPath = ~/hooks\n")
        .with("/home/u/r/tools/watch", "")
        .with("/home/u/r/scripts/x.sh", "")
        .with("/home/u/r/bin/ssh", "")
        .with("/home/u/r/a/b", "")
        .with("/home/u/r/test", "")
        .with("/home/u/r/z.py", "");
    let found = find("/home/u/r/sub", &files).unwrap().code_paths;
    let expected = [
        "/home/u/hooks",
        "/home/u/more.cfg",
        "/home/u/r/.husky",
        "/home/u/r/bin/ssh",
        "/home/u/r/scripts/x.sh",
        "/home/u/r/shared.cfg",
        "/home/u/r/tools/watch",
        "/home/u/r/z.py",
    ];
    assert_eq!(found, expected.map(abs));
}

#[test]
fn includes_in_a_circle_end() {
    let files = Files::default()
        .with_git_directory("/r/.git")
        .with("/r/.git/config", "[include]\n\tpath = config\n\tpath = a\n")
        .with("/r/.git/a", "[include]\n\tpath = config\n");
    let found = find("/r", &files).unwrap().code_paths;
    assert_eq!(found, ["/r/.git/a", "/r/.git/config"].map(abs));
}
