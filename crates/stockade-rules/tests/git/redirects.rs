//! A `.git` file leads where git goes.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use stockade_rules::protected::git::redirect;

use super::Git;

fn inode(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}

#[test]
fn a_git_file_leads_where_git_goes() {
    let Some(git) = Git::find("a_git_file_leads_where_git_goes") else {
        return;
    };
    // Each directory is a git directory, so that git goes wherever a text leads.
    let names: &[&[u8]] = &[
        b"w", b"w/a", b"w/a b", b"w/ a", b"w/a ", b"w/a\nb", b"w/a\rb", b"b",
    ];
    for name in names {
        let path = git.directory.path().join(OsStr::from_bytes(name));
        let mut init = git.command(&["init", "-q", "--bare"]);
        assert!(init.arg(&path).output().unwrap().status.success());
    }
    let work = git.path("w");
    let texts: &[&[u8]] = &[
        b"gitdir: a\n",
        b"gitdir: a",
        b"gitdir: a\r\n",
        b"gitdir: a\n\n\r\n",
        b"gitdir: a b\n",
        b"gitdir:  a\n",
        b"gitdir: a \n",
        b"gitdir: a\nb\n",
        b"gitdir: a\rb\n",
        b"gitdir: a\0x\n",
        b"gitdir: \0x\n",
        b"gitdir: .\n",
        b"gitdir: ../b\n",
        b"gitdir: a/../../b\n",
        b"gitdir: \n",
        b"gitdir: ",
        b"gitdir:a\n",
        b"Gitdir: a\n",
        b"\ngitdir: a\n",
        b"",
    ];
    for text in texts {
        fs::write(work.join(".git"), text).unwrap();
        let output = git.run(&work, &["rev-parse", "--absolute-git-dir"]);
        let found = output.status.success().then(|| {
            let line = output.stdout.strip_suffix(b"\n").unwrap_or_default();
            inode(Path::new(OsStr::from_bytes(line)))
        });
        let path = redirect::git_file(text);
        let expected = path.map(|path| inode(&work.join(OsStr::from_bytes(path))));
        assert_eq!(expected, found, "{:?}", String::from_utf8_lossy(text));
    }
}
