//! M: names that run code on the host later, whether or not they exist when the run starts.

use stockade_test::{Case, Flag, Need, allowed, attack, host, prints};

/// Two Mercurial repositories; the leak of each row is a program that `hg` on the host runs.
const HG: &str = "printf '[ui]\\nusername = n\\n[trusted]\\nusers = *\\n' > @HOME@/.hgrc; hg init . && echo 1 > f && hg add -q f && hg commit -qm one && hg init n";
const HG_HOOK: &str = "hook='[hooks]\npre-status = touch @OUT@/pwned'; ";

/// The pager runs at `jj log` and `jj status`.
const JJ_PAGER: &str = "pager='[ui]\npager = \"touch @OUT@/pwned\"\n';";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = names();
    let has_hg = |case: Case| case.needs(Need::Tool("hg"));
    cases.extend(mercurial().into_iter().map(has_hg));
    cases
}

fn mercurial() -> Vec<Case> {
    vec![
        attack("M08", "hooks in the configuration of a Mercurial repository")
            .setup(HG)
            .sh(format!(
                "{HG_HOOK} printf \"$hook\\n\" >> .hg/hgrc; printf \"$hook\\n\" > t; mv t n/.hg/hgrc
                 hg init made; printf \"$hook\\n\" > made/.hg/hgrc"
            ))
            .leak(host("hg status; test -e @OUT@/pwned"))
            .leak(host("rm -f @OUT@/pwned; hg -R n status; test -e @OUT@/pwned"))
            .leak(host("rm -f @OUT@/pwned; hg -R made status; test -e @OUT@/pwned")),
        attack("M08b", "a Mercurial repository that shares the store of a prepared directory, or is one")
            .setup(HG)
            .sh(format!(
                "{HG_HOOK} hg init n/evil; mv n/evil/.hg evil; printf \"$hook\\n\" > evil/hgrc
                 mkdir -p s/.hg c; cp evil/requires s/.hg/requires; echo shared >> s/.hg/requires; echo @P@/evil > s/.hg/sharedpath
                 cp -r evil t; mv t c/.hg"
            ))
            .leak(host("hg -R s status; test -e @OUT@/pwned"))
            .leak(host("rm -f @OUT@/pwned; hg -R c status; test -e @OUT@/pwned")),
        allowed("M08c", "ordinary work with Mercurial")
            .setup(HG)
            .sh("HGUSER=n; export HGUSER; echo 2 > f; hg commit -qm two && hg clone -q . c && hg -R c update -q && hg -R c log -q && hg init i &&
                 hg --config extensions.share= share -q . s && hg -R s status && hg -R c pull -q && rm -rf c i s && hg clone -q . d && echo done")
            .boxed(host("test \"$(hg log -q | wc -l)\" = 2"))
            .boxed(host("hg -R d paths | grep -q default"))
            .boxed(host("hg -R d verify -q")),
    ]
}

fn names() -> Vec<Case> {
    vec![
        attack("M09", "programs in the configuration of a Jujutsu repository")
            .setup("mkdir -p .jj/repo old/.jj/repo; printf '[user]\\nname = \"n\"\\n' > old/.jj/repo/config.toml")
            .sh(format!(
                "{JJ_PAGER} printf \"$pager\" > .jj/repo/config.toml; printf \"$pager\" > .jj/workspace-config.toml
                 printf \"$pager\" >> old/.jj/repo/config.toml; mkdir -p made/.jj/repo; printf \"$pager\" > t; mv t made/.jj/repo/config.toml"
            ))
            .leak(host("grep -q pager .jj/repo/config.toml"))
            .leak(host("grep -q pager .jj/workspace-config.toml"))
            .leak(host("grep -q pager old/.jj/repo/config.toml"))
            .leak(host("grep -q pager made/.jj/repo/config.toml")),
        attack("M09b", "a Jujutsu workspace that uses a prepared directory as its repository, or is one")
            .sh(format!(
                "{JJ_PAGER} mkdir -p evil whole/repo w/.jj m/.jj l/.jj e/.jj; printf \"$pager\" > evil/config.toml
                 printf \"$pager\" > whole/repo/config.toml; printf @P@/evil > w/.jj/repo; ln -s @P@/evil l/.jj/repo
                 : > e/.jj/repo; cp -r evil t; mv t m/.jj/repo; mkdir c; mv whole c/.jj"
            ))
            .leak(host("test -s w/.jj/repo"))
            .leak(host("test -e l/.jj/repo"))
            .leak(host("test -e e/.jj/repo"))
            .leak(host("grep -q pager m/.jj/repo/config.toml"))
            .leak(host("grep -q pager c/.jj/repo/config.toml")),
        allowed("M09c", "what jj writes at a clone and for a second workspace")
            .sh("mkdir -p .jj/repo second/.jj; printf '[revset-aliases]\\n\"trunk()\" = \"main@origin\"\\n' > .jj/repo/config.toml
                 printf @P@/.jj/repo > second/.jj/repo; echo done")
            .boxed(host("grep -q trunk .jj/repo/config.toml"))
            .boxed(host("test \"$(cat second/.jj/repo)\" = @P@/.jj/repo")),
        attack("M01", "shell start-up files in the project")
            .sh("for f in .bashrc .zshrc .profile .bash_profile .zprofile; do echo x > $f; done")
            .leak(host("test -e .bashrc"))
            .leak(host("test -e .zshrc"))
            .leak(host("test -e .profile"))
            .leak(host("test -e .bash_profile"))
            .leak(host("test -e .zprofile")),
        attack("M01b", "shell start-up files in a home that is writable")
            .flag(Flag::Write("@HOME@".into()))
            .setup("echo old > @HOME@/.bashrc")
            .sh("echo x >> @HOME@/.bashrc; echo x > @HOME@/.profile; echo x > @HOME@/.zshenv
                 echo ok > @HOME@/f")
            .works(host("grep -qx ok @HOME@/f"))
            .leak(host("grep -qx x @HOME@/.bashrc"))
            .leak(host("test -e @HOME@/.profile"))
            .leak(host("test -e @HOME@/.zshenv")),
        attack("M01c", "files of the project that start-up files in the home directory are links to")
            .setup("mkdir -p bash shells/zsh conf; echo old > bash/rc; echo old > shells/zsh/zshrc; ln -s @P@/bash/rc @HOME@/.bashrc
                    ln -s @P@/shells/zsh/zshrc @HOME@/.zshrc; ln -s @P@/missing @HOME@/.profile; ln -s @P@/conf @HOME@/.config")
            .sh("echo x >> bash/rc; mv bash away; mkdir bash; echo x > bash/rc; mkdir t; echo x > t/zshrc; rm -rf shells/zsh
                 mv t shells/zsh; echo x > missing; mkdir -p conf/fish; echo x > conf/fish/config.fish; echo ok > conf/other")
            .works(host("grep -qx ok conf/other"))
            .leak(host("grep -qx x @HOME@/.bashrc"))
            .leak(host("grep -qx x @HOME@/.zshrc"))
            .leak(host("grep -qx x @HOME@/.profile"))
            .leak(host("test -e @HOME@/.config/fish/config.fish")),
        attack("M02", "agent and editor configuration that does not exist yet")
            .sh("mkdir -p .vscode .idea .claude/commands .codex; for f in .vscode/tasks.json .idea/x .mcp.json \
                 .claude/commands/x .claude/settings.json .codex/config.toml; do echo x > $f; done")
            .leak(host("test -e .vscode/tasks.json"))
            .leak(host("test -e .idea/x"))
            .leak(host("test -e .mcp.json"))
            .leak(host("test -e .claude/commands/x"))
            .leak(host("test -e .claude/settings.json"))
            .leak(host("test -e .codex/config.toml")),
        attack("M02b", "agent and editor configuration that exists")
            .setup("mkdir -p .vscode .claude; echo old > .vscode/tasks.json; echo old > .claude/settings.json
                    echo old > .mcp.json")
            .sh("echo x > .vscode/tasks.json; sed -i s/old/x/ .claude/settings.json; rm .mcp.json
                 echo x > t; mv t .mcp.json")
            .leak(host("grep -q x .vscode/tasks.json"))
            .leak(host("grep -q x .claude/settings.json"))
            .leak(host("grep -q x .mcp.json")),
        attack("M02c", "agent and editor configuration, moved into place as a whole")
            .sh("mkdir -p t/commands; echo x > t/commands/c; mv t .claude; mkdir v; echo x > v/tasks.json; mv v .vscode")
            .leak(host("test -e .claude/commands/c"))
            .leak(host("test -e .vscode/tasks.json")),
        attack("M03", "the project's own policy file")
            .sh("printf 'version = 1\\n' > stockade.toml")
            .leak(host("test -e stockade.toml")),
        attack("M04", "a protected name by every call that makes names")
            .python(
                r"
open('src', 'w').write('x')
trying('open', lambda: open('.bashrc', 'w').write('x'))
trying('rename', lambda: (open('a', 'w').write('x'), os.rename('a', '.zshrc')))
trying('link', lambda: os.link('src', '.profile'))
trying('symlink', lambda: os.symlink('src', '.bash_profile'))
trying('mkfifo', lambda: os.mkfifo('.zprofile'))
def unnamed():
    fd = os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o644)
    os.write(fd, b'x')
    result = call('linkat', AT_FDCWD, b'/proc/self/fd/%d' % fd, AT_FDCWD, b'.mcp.json', 0x400)
    if result < 0: raise OSError(-result, 'linkat')
trying('tmpfile', unnamed)
how = struct.pack('QQQ', os.O_CREAT | os.O_WRONLY, 0o644, 0)
attempt('openat2', AT_FDCWD, b'.zshenv', how, 24)
",
            )
            .leak(prints("open=OK"))
            .leak(prints("rename=OK"))
            .leak(prints("link=OK"))
            .leak(prints("symlink=OK"))
            .leak(prints("mkfifo=OK"))
            .leak(prints("tmpfile=OK"))
            .leak(prints("openat2=OK")),
        attack("M04b", "a protected name by other spellings of its path")
            .sh("mkdir sub; ln -s . here; cd sub
                 echo 1 > ../.bashrc; echo 2 > ..//.//.zshrc; echo 3 > ../here/.profile
                 echo 4 > /proc/self/cwd/../.bash_profile; echo 5 > @P@/sub/../.zprofile
                 exec 7< ..; echo 6 > /proc/self/fd/7/.mcp.json; ln -s .zshenv ../soft; echo 7 > ../soft")
            .leak(host("test -s .bashrc"))
            .leak(host("test -s .zshrc"))
            .leak(host("test -s .profile"))
            .leak(host("test -s .bash_profile"))
            .leak(host("test -s .zprofile"))
            .leak(host("test -s .mcp.json"))
            .leak(host("test -s .zshenv")),
        attack("M04c", "a protected name while a thread changes the working directory")
            .python(
                r"
import threading
# A thread changes the working directory while another opens: the landing path must be judged.
os.mkdir('sub')
stop = False
def flip():
    while not stop:
        os.chdir('@P@/sub'); os.chdir('@P@')
thread = threading.Thread(target=flip); thread.start()
end = time.monotonic() + @RACE@
while time.monotonic() < end and not os.path.exists('@P@/.bashrc'):
    try:
        open('../p/.bashrc', 'w').write('x')
    except OSError:
        pass
    try:
        open('.bashrc', 'w').write('x')
    except OSError:
        pass
stop = True; thread.join()
",
            )
            .leak(host("test -e .bashrc")),
        attack("M04d", "change the path in memory while it is being judged")
            .python(
                r"
import mmap
# Another process rewrites the bytes of the path between a harmless and a protected name.
page = mmap.mmap(-1, 4096)
page[0:8] = b'harmle.\0'
path = ctypes.addressof(ctypes.c_char.from_buffer(page))
pid = os.fork()
if pid == 0:
    while True:
        page[0:7] = b'.bashrc'; page[0:7] = b'harmle.'
end = time.monotonic() + @RACE@
while time.monotonic() < end and not os.path.exists('.bashrc'):
    fd = _libc.openat(AT_FDCWD, ctypes.c_void_p(path), os.O_CREAT | os.O_WRONLY, 0o644)
    if fd >= 0:
        os.close(fd)
os.kill(pid, 9); os.waitpid(pid, 0)
",
            )
            .leak(host("test -e .bashrc")),
    ]
}
