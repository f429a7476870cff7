//! The commands, each a few words of what people and tools do all day.

/// One of them.
pub(crate) struct Command {
    /// By which a test is called.
    pub(crate) name: &'static str,
    /// Run by `sh` in the project.
    pub(crate) script: &'static str,
    /// Programs it needs besides git.
    pub(crate) tools: &'static [&'static str],
}

const fn command(name: &'static str, script: &'static str) -> Command {
    Command {
        name,
        script,
        tools: &[],
    }
}

const fn with(name: &'static str, tools: &'static [&'static str], script: &'static str) -> Command {
    Command {
        name,
        script,
        tools,
    }
}

const PYTHON: &[&str] = &["python3"];
const NODE: &[&str] = &["node"];

pub(crate) const COMMANDS: &[Command] = &[
    // Repositories come and go.
    command("init-remove", "git init -q n && rm -rf n"),
    command("clone-remove", "git clone -q plain n && rm -rf n"),
    with("clone-rmtree", PYTHON, "git clone -q plain n && python3 -c 'import shutil; shutil.rmtree(\"n\")'"),
    command("remove-clone", "rm -rf clone"),
    command("move-clone", "git clone -q plain n && mv n m && git -C m status --short"),
    command("move-old-clone", "mv clone other && git -C other status --short"),
    command("clone-again", "rm -rf clone; git clone -q plain clone"),
    command("clean-all", "git clean -qffdx"),
    command("clone-editor-files", "git clone -q editors n"),
    command("clone-bare-remove", "git clone -q --bare plain n.git && rm -rf n.git"),
    command("copy-repository", "cp -r plain n"),
    command("copy-repository-archive", "cp -a editors n"),
    with("rsync-repository", &["rsync"], "rsync -a plain/ n"),
    command("tar-repository", "tar cf r.tar plain && mkdir n && tar xf r.tar -C n"),
    with("zip-repository", &["zip", "unzip"], "zip -qr r.zip editors && mkdir n && unzip -q r.zip -d n"),
    command("unpack-package", "mkdir n && tar xzf package.tgz -C n"),
    with("copytree", PYTHON, "python3 -c 'import shutil; shutil.copytree(\"editors\", \"n\")'"),
    command("remove-dependencies", "rm -rf node_modules"),
    command("swap-dependencies", "mv node_modules old && mkdir node_modules && tar xzf package.tgz -C node_modules && rm -rf old"),
    // Worktrees and submodules.
    command("worktree-add-remove", "git worktree add -q w && git worktree remove w"),
    command("worktree-move", "git worktree add -q w && git worktree move w v"),
    command("worktree-delete", "git worktree add -q w && rm -rf w && git worktree prune"),
    command("worktree-commit", "git worktree add -q w && cd w && echo x > x && git add x && git commit -qm x"),
    command("submodule-add", "git submodule --quiet add ./plain s && git commit -qm s"),
    command(
        "submodule-remove",
        "git submodule --quiet add ./plain s && git commit -qm s && git submodule --quiet deinit -f s && git rm -qf s && rm -rf .git/modules/s",
    ),
    command(
        "submodule-update",
        "git submodule --quiet add ./plain s && git commit -qm s && git clone -q . n && git -C n submodule --quiet update --init",
    ),
    command("submodule-recursive", "git submodule --quiet add ./plain s && git commit -qm s && git clone -q --recurse-submodules . n"),
    // Kinds of repositories.
    command("init-shared", "git init -q --shared=group n"),
    command("init-separate", "git init -q --separate-git-dir=g.git n && git -C n status --short"),
    command("init-again", "git init -q ."),
    command("init-mode", "git init -q n && test $(git -C n config core.filemode) = true"),
    command("clone-shallow", "git clone -q --depth 1 file://$PWD/plain n"),
    command("clone-partial", "git -C plain config uploadpack.allowFilter true; git clone -q --filter=blob:none --no-checkout file://$PWD/plain n"),
    command("clone-with-key", "git clone -q -c core.autocrlf=false plain n"),
    command("clone-reference", "git clone -q --reference plain plain n"),
    command("clone-without-template", "git clone -q --template= plain n"),
    // Work with remotes, branches and configuration.
    command("remote-fetch", "git remote add o ./remote.git && git fetch -q o"),
    command("remote-track", "git remote add o ./remote.git && git fetch -q o && git switch -q -c t o/main"),
    command("remote-rename", "git remote add o ./remote.git && git remote rename o p && git remote remove p"),
    command("push", "cd plain && git push -q ../remote.git main:x"),
    command("config-name", "git config user.name other"),
    command("config-line-ends", "git config core.autocrlf input"),
    command("config-cache", "git config core.untrackedCache true"),
    command("config-sign", "git config commit.gpgsign false && git config tag.gpgsign false"),
    command("config-rerere", "git config rerere.enabled true && git config pull.rebase true && git config fetch.parallel 4"),
    command("config-worktree", "git config extensions.worktreeConfig true && git config --worktree log.date iso"),
    command("gc", "git gc -q"),
    command("maintenance", "git maintenance run --task=commit-graph"),
    command("stash", "echo z > z; git stash -q -u && git stash pop -q"),
    command("bisect", "git bisect start && git bisect bad && git bisect good HEAD~1 && git bisect reset"),
    command("sparse", "git sparse-checkout set tree"),
    command("rebase-exec", "git rebase -q --exec 'test -e a' HEAD~1"),
    command("attributes", "echo '*.o' >> .gitignore && echo '* text' > .gitattributes && echo '*.a' >> .git/info/exclude"),
    command("workflow", "mkdir -p .github/workflows && echo x > .github/workflows/ci.yml"),
    // Modes, links and names.
    command("setuid-file", "cp /bin/true t && chmod u+s t"),
    command("setgid-file", "cp /bin/true t && chmod g+s t"),
    command("install-setuid", "install -m 4755 /bin/true t"),
    command("setgid-directory", "mkdir d && chmod g+s d"),
    command("setgid-directory-copy", "mkdir d && chmod 2775 d && cp -a d e"),
    with(
        "name-too-long",
        PYTHON,
        "python3 -c 'import os
try: open(\"./\" * 2047 + \"zz\", \"w\"); raise SystemExit(1)
except OSError as e: raise SystemExit(e.errno != 36)'",
    ),
    with(
        "rename-flags",
        PYTHON,
        "python3 -c 'import ctypes; l = ctypes.CDLL(None, use_errno=True); l.renameat2(-100, b\"n\", -100, b\"m\", 3); raise SystemExit(ctypes.get_errno() != 22)'",
    ),
    with(
        "deep-directories",
        PYTHON,
        "python3 -c 'import os
for _ in range(30): os.mkdir(\"x\" * 200); os.chdir(\"x\" * 200)
open(\"f\", \"w\").close()'; r=$?; rm -rf xxx*; exit $r",
    ),
    command("move-to-tmp", "d=$(mktemp -d) && mv tree $d/t && rm -rf $d"),
    command("move-from-tmp", "d=$(mktemp -d) && mkdir $d/x && echo 1 > $d/x/f && mv $d/x x && rmdir $d"),
    with(
        "rename-across",
        PYTHON,
        "python3 -c 'import os
try: os.rename(\"tree\", \"/dev/shm/x\")
except OSError as e: raise SystemExit(e.errno != 18)'",
    ),
    // Processes and descriptors.
    with(
        "not-dumpable",
        PYTHON,
        "python3 -c 'import ctypes, os
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); os.mkdir(\"n\"); open(\"n/f\", \"w\").close(); os.rename(\"n/f\", \"n/g\"); open(\"/dev/null\", \"w\").close()'",
    ),
    command("execute-only", "cp /bin/mkdir m && chmod 0111 m && ./m made"),
    with("ssh-agent", &["ssh-agent"], "a=$(ssh-agent -s) && eval \"$a\" > /dev/null && ssh-add -l; test $? -le 1 && ssh-agent -k"),
    with(
        "gpg-key",
        &["gpg"],
        "export GNUPGHOME=$PWD/g; mkdir -m 700 g; gpg --batch --quiet --passphrase '' --quick-gen-key a@b.test default default never; r=$?
         gpgconf --kill all; rm -rf g; exit $r",
    ),
    with(
        "memfd",
        PYTHON,
        "python3 -c 'import os
m = os.memfd_create(\"a\"); os.write(m, b\"hello\"); ok = open(f\"/proc/self/fd/{m}\", \"rb+\").read() == b\"hello\"
f = open(f\"/proc/self/fd/{m}\", \"w\"); f.write(\"x\"); f.close(); raise SystemExit(not ok or os.pread(m, 9, 0) != b\"x\")'",
    ),
    with(
        "removed-and-opened",
        PYTHON,
        "python3 -c 'import os
f = open(\"u\", \"w+b\"); f.write(b\"hello\"); f.flush(); os.unlink(\"u\"); raise SystemExit(open(f\"/dev/fd/{f.fileno()}\", \"r+b\").read() != b\"hello\")'",
    ),
    with(
        "attributes-of-links",
        PYTHON,
        "python3 -c 'import os
os.setxattr(\"a\", \"user.t\", b\"1\", follow_symlinks=False); os.removexattr(\"a\", \"user.t\", follow_symlinks=False)'",
    ),
    with(
        "unix-datagram",
        PYTHON,
        "python3 -c 'import socket
a = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); a.bind(\"s\"); b = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); b.sendto(b\"x\", \"s\"); a.recv(9)'",
    ),
    with(
        "connect-twice",
        PYTHON,
        "python3 -c 'import socket
s = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen(1); c = socket.socket(); c.connect(s.getsockname())
try: c.connect(s.getsockname())
except OSError as e: raise SystemExit(e.errno != 106)
raise SystemExit(1)'",
    ),
    // What is there or missing elsewhere.
    command("remove-missing", "rm -f /usr/lib/nope"),
    with(
        "make-existing",
        PYTHON,
        "python3 -c 'import os, pathlib
pathlib.Path(\"/usr/lib/nope\").unlink(missing_ok=True); os.makedirs(\"/usr/lib\", exist_ok=True)
try: os.mkdir(\"/usr/lib\")
except OSError as e: raise SystemExit(e.errno != 17)'",
    ),
    with("node-make-existing", NODE, "node -e 'fs.mkdirSync(\"/usr/lib\", {recursive: true})'"),
    with("node-make-protected", NODE, "cd editors; node -e 'fs.mkdirSync(\".vscode\", {recursive: true})'"),
    with(
        "chown-other",
        PYTHON,
        "test $(id -u) = 0 && exit 0; python3 -c 'import os
try: os.chown(\"a\", 65534, -1)
except OSError as e: raise SystemExit(e.errno != 1)'",
    ),
];
