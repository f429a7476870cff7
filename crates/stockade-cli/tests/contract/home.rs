//! H: the home directory has a private layer. Everything can be written there, nothing reaches the
//! host, and what is hidden stays hidden.

use stockade_test::case::Control;
use stockade_test::{
    Case, Flag, HostSide, Need, allowed, attack, exits, heard, host, not, prints, stderr_has,
    stdout_is, touched,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = works();
    cases.extend(kept_from_the_host());
    cases.extend(hidden());
    cases.extend(settings());
    cases.extend(kept());
    cases
}

fn works() -> Vec<Case> {
    vec![
        allowed("H01", "the home directory is the host's and can be written")
            .setup("echo old > @HOME@/f; mkdir -p @HOME@/.cache/tool; echo warm > @HOME@/.cache/tool/c")
            .sh("cat ~/f ~/.cache/tool/c && echo new > ~/f && echo more > ~/.cache/tool/d && mkdir -p ~/a/b &&
                 mv ~/f ~/a/b/g && cat ~/a/b/g ~/.cache/tool/d && rm -r ~/.cache/tool && mkdir ~/.cache/tool && ls ~/.cache/tool")
            .works(stdout_is("old\nwarm\nnew\nmore")),
        allowed("H01b", "tools find their caches where they are on the host")
            .setup("mkdir -p @HOME@/.npm")
            .sh("echo \"${XDG_CACHE_HOME-unset} ${npm_config_cache-unset}\"")
            .works(stdout_is("unset unset")),
        allowed("H01c", "a Unix socket in the home directory serves those inside")
            .python(
                r"
import socket
path = os.path.expanduser('~/s')
server = socket.socket(socket.AF_UNIX); server.bind(path); server.listen()
client = socket.socket(socket.AF_UNIX); client.connect(path); print('served')
",
            )
            .works(prints("served")),
        allowed("H01d", "the mode of the home directory is the host's")
            .setup("chmod 750 @HOME@")
            .sh("stat -c %a ~")
            .works(stdout_is("750")),
        allowed("H01e", "a project in the home directory is the host's own")
            .setup("mkdir -p @HOME@/code/p; echo old > @HOME@/code/p/f")
            .cwd("@HOME@/code/p")
            .sh("echo new > f; echo x > ~/code/beside; cat f ~/code/beside")
            .works(stdout_is("new\nx"))
            .works(host("grep -qx new @HOME@/code/p/f"))
            .boxed(not(host("test -e @HOME@/code/beside"))),
        allowed("H01g", "npm installs a package and vim writes a file in the home directory")
            .needs(Need::Tool("npm"))
            .needs(Need::Tool("vim"))
            .setup("echo '{\"name\":\"linked-package\",\"version\":\"1.0.0\"}' > package.json")
            .sh("npm install --global --prefix ~/.global --offline --silent . > /dev/null; ls ~/.global/lib/node_modules
                 vim -es -u NONE -c 'call setline(1, \"typed\")' -c 'wq!' ~/notes < /dev/null; cat ~/notes")
            .works(stdout_is("linked-package\ntyped")),
        allowed("H30", "npm installs offline from the warm cache of a registry that its settings name")
            .needs(Need::Tool("npm"))
            .needs(Need::Tool("python3"))
            .setup(concat!(
                "cat > @OUT@/warm.py <<'EOF'\n",
                include_str!("warm_caches.py"),
                "\nEOF\nHOME=@HOME@ /usr/bin/python3 @OUT@/warm.py npm @OUT@/warm"
            ))
            .sh("npm install --offline --no-audit --no-fund --silent warm@1.0.0 && node -p 'require(\"warm\")'")
            .works(stdout_is("from-cache")),
        allowed("H31", "cargo unpacks and builds offline a crate that is only in its cache")
            .needs(Need::Tool("cc"))
            .needs(Need::Tool("python3"))
            .needs(Need::Shared("TOOLCHAIN"))
            .setup(concat!(
                "cat > @OUT@/warm.py <<'EOF'\n",
                include_str!("warm_caches.py"),
                "\nEOF\nHOME=@HOME@ /usr/bin/python3 @OUT@/warm.py cargo @P@/app @TOOLCHAIN@/bin/cargo\n",
                "rm -rf @HOME@/.cargo/registry/src"
            ))
            .sh("export PATH=@TOOLCHAIN@/bin:$PATH CARGO_HOME=~/.cargo; cd app && cargo run --quiet --offline && ls ~/.cargo/registry/src | wc -l
                 cargo install --quiet --offline --path . --root ~/.local && ~/.local/bin/app")
            .works(stdout_is("from-cache\n1\nfrom-cache"))
            .boxed(not(host("test -e @HOME@/.local || test -e @HOME@/.cargo/registry/src"))),
        allowed("H01h", "pip, npm and cargo do not wait for a network that is off")
            .sh("echo \"$PIP_RETRIES $npm_config_fetch_retries $CARGO_NET_RETRY\"")
            .control(Control::Absent("outside the clients have their own defaults"))
            .boxed(stdout_is("0 0 0")),
        allowed("H17", "a home directory that can have no layer is read-only, with a line that says so")
            .root_setup("mkdir @HOME@/mounted && mount -t tmpfs none @HOME@/mounted")
            .cleanup("umount -l @HOME@/mounted")
            .sh("ls -d ~/mounted; touch ~/new 2> /dev/null || echo refused")
            .control(Control::Absent("there is no layer without the launcher"))
            .boxed(prints("refused"))
            .boxed(stderr_has("the home directory is read-only"))
            .boxed(not(host("test -e @HOME@/new"))),
        allowed("H01f", "what is granted in the home directory is the host's own")
            .flag(Flag::Write("@HOME@/granted".into()))
            .setup("mkdir @HOME@/granted")
            .sh("echo new > ~/granted/f; echo x > ~/beside")
            .works(host("grep -qx new @HOME@/granted/f"))
            .boxed(not(host("test -e @HOME@/beside"))),
    ]
}

fn kept_from_the_host() -> Vec<Case> {
    vec![
        attack("H02", "plant start-up files in the home directory")
            .setup("echo old > @HOME@/.profile")
            .sh("for f in .bashrc .profile .gitconfig .zshenv; do echo evil >> ~/$f; done
                 mkdir -p ~/.config/autostart ~/.local/bin; echo evil > ~/.config/autostart/e; echo evil > ~/.local/bin/ls
                 cat ~/.bashrc")
            .works(prints("evil"))
            .leak(host("grep -rq evil @HOME@")),
        attack("H03", "change what is in the home directory, each way there is")
            .setup("cd @HOME@ && for f in a b c d e f g h; do echo old > $f; done; mkdir sub full; echo old > full/f")
            .python(
                r"
import fcntl, shutil
os.chdir(os.environ['HOME'])
trying('append', lambda: open('a', 'a').write('x'))
trying('truncate', lambda: os.truncate('b', 0))
trying('unlink', lambda: os.unlink('c'))
trying('rename', lambda: os.rename('d', 'dd'))
trying('chmod', lambda: os.chmod('e', 0o600))
trying('utime', lambda: os.utime('f', (1, 1)))
trying('link', lambda: os.link('g', 'gg'))
trying('rmdir', lambda: os.rmdir('sub'))
trying('tree', lambda: shutil.rmtree('full'))
trying('mkdir', lambda: os.mkdir('new'))
trying('symlink', lambda: os.symlink('x', 'soft'))
trying('fifo', lambda: os.mkfifo('pipe'))
trying('mode', lambda: os.chmod('.', 0o711))
def through():
    fd = os.open('h', os.O_RDWR); os.pwrite(fd, b'new', 0); os.fsync(fd); os.close(fd)
trying('write', through)
",
            )
            .works(prints("append=OK"))
            .works(prints("unlink=OK"))
            .works(prints("rename=OK"))
            .works(prints("tree=OK"))
            .works(prints("write=OK"))
            .leak(touched()),
        attack("H03b", "random operations in the home directory")
            .needs(Need::Tool("python3"))
            .setup(concat!(
                "mkdir -p @HOME@/tree/a/b @HOME@/tree/c; cd @HOME@/tree; echo 1 > a/c; echo 2 > a/b/d; ln a/c d; ln -s a b\n",
                "cat > @HOME@/operations.py <<'EOF'\n",
                include_str!("random_operations.py"),
                "\nEOF"
            ))
            .sh("cd ~ && /usr/bin/python3 operations.py tree 1 8 600 > /dev/null; echo done")
            .works(prints("done"))
            .leak(touched()),
        attack("H04", "reach the home directory through an older descriptor of its files")
            .setup("echo old > @HOME@/f")
            .python(
                r"
home = os.environ['HOME']
fd = os.open(home + '/f', os.O_RDONLY)
for path in (f'/proc/self/fd/{fd}', f'/proc/{os.getpid()}/fd/{fd}', f'/proc/self/root{home}/f', f'/proc/1/root{home}/f'):
    trying(path, lambda: open(path, 'a').write('evil'))
",
            )
            .leak(host("grep -q evil @HOME@/f")),
        attack("H05", "link a file of the home directory into the project and write it")
            .setup("echo old > @HOME@/f")
            .sh("ln ~/f l || cp -l ~/f l; echo evil >> l; mv ~/f m; echo evil >> m")
            .leak(host("grep -q evil @HOME@/f || test ! -e @HOME@/f")),
        attack("H06", "a program that takes its owner's identity from the home directory")
            .setup("cp /usr/bin/id @HOME@/id")
            .sh("chmod 6755 ~/id; cp ~/id ~/id2; chmod 6755 ~/id2")
            .leak(host("test -u @HOME@/id || test -u @HOME@/id2")),
        attack("H07", "the working directory under a read-only policy, below the home directory")
            .flag(Flag::ReadOnly)
            .setup("mkdir -p @HOME@/code/p; echo old > @HOME@/code/p/f")
            .cwd("@HOME@/code/p")
            .sh("echo evil > f; grep -q evil f && echo changed; rm f; touch g")
            .leak(prints("changed"))
            .leak(host("grep -q evil @HOME@/code/p/f || test -e @HOME@/code/p/g"))
            .boxed(not(exits(0))),
        attack("H08", "protected names of a project in the home directory")
            .setup("mkdir -p @HOME@/code/p; cd @HOME@/code/p; git init -q .; mkdir .vscode")
            .needs(Need::Tool("git"))
            .cwd("@HOME@/code/p")
            .sh("echo evil > .git/hooks/post-checkout; echo evil > .vscode/tasks.json
                 echo evil > ~/code/p/.git/hooks/pre-commit; mv ~/code ~/elsewhere; echo evil > ~/elsewhere/p/.git/hooks/pre-push")
            .leak(host("grep -rq evil @HOME@/code/p || grep -rq evil @HOME@/elsewhere")),
        attack("H09", "a layer that was left behind shows up in the next run")
            .sh("echo evil > ~/left")
            .sh("cat ~/left")
            .leak(prints("evil")),
    ]
}

fn hidden() -> Vec<Case> {
    vec![
        attack("H10", "read credentials through the layer")
            .setup("mkdir -p @HOME@/.ssh @HOME@/.aws; echo @SECRET@ > @HOME@/.ssh/id_ed25519; echo @SECRET@ > @HOME@/.aws/credentials")
            .sh("cd ~; chmod -R u+rwX .ssh .aws; cat .ssh/* .aws/credentials; cp -r .ssh s; cat s/*; mv .aws t; cat t/credentials
                 rm -rf .aws; mv .ssh u; cat u/*; cat .aws/credentials; ln .aws/credentials v; cat v; grep -r . ~ 2> /dev/null")
            .leak(prints("@SECRET@")),
        attack("H11", "read what is denied in the home directory by moving what it is in")
            .flag(Flag::DenyRead("@HOME@/a/b/secret".into()))
            .setup("mkdir -p @HOME@/a/b; echo @SECRET@ > @HOME@/a/b/secret")
            .sh("cd ~; mv a x; mv a/b y; mv a/b/secret z; ln a/b/secret w; cat x/b/secret y/secret z w; cp -r a v; cat v/b/secret
                 rm -rf a; mkdir -p a/b; cat a/b/secret; grep -r . ~ 2> /dev/null")
            .leak(prints("@SECRET@")),
        attack("H12", "a pattern of denied reads holds in the home directory")
            .flag(Flag::DenyRead("@HOME@/**/*.key".into()))
            .setup("mkdir -p @HOME@/d; echo @SECRET@ > @HOME@/d/a.key")
            .sh("cd ~; cat d/a.key; mv d/a.key d/b; cat d/b; ln d/a.key c; cat c; mv d e; cat e/a.key; ln -s d/a.key l; cat l
                 cp d/a.key f; cat f; cp -r d g; cat g/*")
            .leak(prints("@SECRET@")),
        attack("H12b", "a denied file in a directory that can be entered only after its mode changed")
            .flag(Flag::DenyRead("@HOME@/shut/secret".into()))
            .setup("mkdir @HOME@/shut; echo @SECRET@ > @HOME@/shut/secret; chmod 0 @HOME@/shut")
            .sh("chmod 755 ~/shut; cat ~/shut/secret; mv ~/shut/secret ~/moved; cat ~/moved")
            .cleanup("chmod 755 @HOME@/shut")
            .leak(prints("@SECRET@")),
        attack("H13", "connect to a Unix socket of the host in the home directory")
            .side(HostSide::UnixStream("@HOME@/s.sock"))
            .python(
                r"
import socket
home = os.environ['HOME']
for path in ('/s.sock', '/moved', '/linked'):
    if path == '/moved': trying('move', lambda: os.rename(home + '/s.sock', home + path))
    if path == '/linked': trying('link', lambda: os.link(home + '/moved', home + path))
    client = socket.socket(socket.AF_UNIX)
    trying('connect', lambda: (client.connect(home + path), client.sendall(b'@SECRET@')))
",
            )
            .leak(heard("connected")),
        attack("H14", "talk to the host through a named pipe in the home directory")
            .setup("mkfifo @HOME@/pipe")
            .launcher("(timeout 5 cat @HOME@/pipe > @OUT@/heard) & @RUN@ sh -c 'echo @MARK@; echo @SECRET@ | timeout 2 tee ~/pipe > /dev/null'; wait")
            .leak(host("grep -q @SECRET@ @OUT@/heard")),
        attack("H15", "write a denied part of the home directory")
            .flag(Flag::DenyWrite("@HOME@/kept".into()))
            .setup("mkdir @HOME@/kept; echo old > @HOME@/kept/f")
            .sh("echo evil > ~/kept/f; cat ~/kept/f; mv ~/kept ~/k && echo evil > ~/k/f; cat ~/k/f")
            .leak(prints("evil")),
        attack("H16", "the home directory as a whole under --home read-only")
            .flag(Flag::Home("read-only".into()))
            .sh("echo evil > ~/f; cat ~/f")
            .leak(prints("evil"))
            .leak(touched()),
    ]
}

/// Settings of clients, with a secret in each.
const SETTINGS: &str = r#"cd @HOME@ && mkdir -p .cargo .docker .config/pip .config/git .pip .m2
printf 'registry=https://registry.test/npm/\n//registry.test/:_authToken=@SECRET@\n; @SECRET@\n' > .npmrc
printf 'npmRegistryServer: "https://registry.test"\nnpmAuthToken: @SECRET@\n' > .yarnrc.yml
printf '[pypi]\nrepository = https://index.test/\npassword = @SECRET@\n' > .pypirc
printf '[global]\nindex-url = https://user:@SECRET@@index.test/simple\n' > .config/pip/pip.conf
cp .config/pip/pip.conf .pip/pip.conf
printf '[alias]\nhello = "version"\n[registry]\ntoken = "@SECRET@"\n' > .cargo/config.toml
printf '[user]\n\tname = Jane\n[github]\n\ttoken = @SECRET@\n' > .gitconfig
printf '[url "https://user:@SECRET@@git.test/"]\n\tinsteadOf = https://git.test/\n' > .config/git/config
printf '<settings><localRepository>/var/m2</localRepository><servers><server><password>@SECRET@</password></server></servers></settings>' > .m2/settings.xml
printf '{"psFormat":"table","auths":{"registry.test":{"auth":"@SECRET@"}}}' > .docker/config.json"#;

const READ_SETTINGS: &str = "cd ~; cat .npmrc .yarnrc.yml .pypirc .config/pip/pip.conf .pip/pip.conf .cargo/config.toml .gitconfig \
     .config/git/config .m2/settings.xml .docker/config.json";

fn settings() -> Vec<Case> {
    let all_kept = |case: Case| {
        let kept = [
            "registry=https://registry.test/npm/",
            "npmRegistryServer",
            "repository = https://index.test/",
            "index.test/simple",
            "hello",
            "Jane",
            "git.test/",
            "/var/m2",
            "psFormat",
        ];
        kept.into_iter()
            .fold(case, |case, text| case.works(prints(text)))
    };
    vec![
        all_kept(
            attack("H20", "read the secrets in settings of clients")
                .setup(SETTINGS)
                .sh(READ_SETTINGS)
                .leak(prints("@SECRET@")),
        ),
        all_kept(
            attack("H20b", "read the secrets in settings of clients without a layer")
                .flag(Flag::Home("read-only".into()))
                .setup(SETTINGS)
                .sh(READ_SETTINGS)
                .leak(prints("@SECRET@")),
        ),
        attack("H20c", "get at settings by moving, removing and replacing the copy")
            .setup(SETTINGS)
            .sh("cd ~; cp -r .npmrc .cargo .config a 2> /dev/null; mv .npmrc b; cat b .npmrc; rm -f .gitconfig; cat .gitconfig; ln .yarnrc.yml c; cat c
                 rm -rf .config/pip; mkdir -p .config/pip; cat .config/pip/pip.conf; mv .m2 d; cat d/settings.xml; cat /proc/self/root$HOME/.pypirc
                 rm -f .docker/config.json; mv .docker e; cat e/config.json; grep -r . ~ 2> /dev/null")
            .leak(prints("@SECRET@")),
        attack("H20d", "a link in the project where settings are expected")
            .setup("mkdir -p @HOME@/code/p @HOME@/.ssh; echo @SECRET@ > @HOME@/.ssh/key; ln -s @HOME@/.ssh/key @HOME@/code/p/rc; ln -s @HOME@/code/p/rc @HOME@/.npmrc")
            .cwd("@HOME@/code/p")
            .sh("cat ~/.npmrc rc")
            .leak(prints("@SECRET@")),
        attack("H20e", "settings that can't be understood")
            .setup("printf 'password @SECRET@' > @HOME@/.pypirc; printf '[x\n@SECRET@' > @HOME@/.gitconfig")
            .sh("cat ~/.pypirc ~/.gitconfig")
            .leak(prints("@SECRET@"))
            .boxed(stderr_has("is hidden")),
        allowed("H21", "clients read and change their settings, and nothing of it reaches the host")
            .needs(Need::Tool("npm"))
            .needs(Need::Tool("git"))
            .setup(SETTINGS)
            .sh("cd ~ && npm config get registry && npm config set fund=false && grep fund .npmrc && git config --global user.name &&
                 git config --global user.email j@x.test && git config --global user.email")
            .works(stdout_is("https://registry.test/npm/\nfund=false\nJane\nj@x.test"))
            .boxed(not(host("grep -q fund @HOME@/.npmrc || grep -q x.test @HOME@/.gitconfig"))),
        allowed("H21b", "pip and cargo find their settings")
            .needs(Need::Tool("pip"))
            .needs(Need::Shared("TOOLCHAIN"))
            .setup(SETTINGS)
            .sh("pip config get global.index-url | sed 's,//.*@,//,'; CARGO_HOME=~/.cargo @TOOLCHAIN@/bin/cargo hello | cut -d' ' -f1")
            .works(stdout_is("https://index.test/simple\ncargo")),
        allowed("H21c", "settings that were granted by name are the host's own")
            .flag(Flag::Read("@HOME@/.npmrc".into()))
            .setup(SETTINGS)
            .sh("cat ~/.npmrc")
            .works(prints("@SECRET@")),
    ]
}

/// `--home keep`: an earlier run is as hostile as a later one, and chose every name in the layer.
fn kept() -> Vec<Case> {
    let keep = |case: Case| {
        case.flag(Flag::Home("keep".into()))
            .cli_only("the library keeps no layer")
    };
    vec![
        keep(
            allowed("H40", "with --home keep the next run sees what the last one wrote and removed")
                .setup("echo old > @HOME@/f; echo old > @HOME@/g; mkdir -p @HOME@/d; echo old > @HOME@/d/h")
                .sh("mkdir -p ~/.local/bin; echo new > ~/.local/bin/tool; echo new > ~/f; rm ~/g; rm -r ~/d; mkdir ~/d")
                .sh("cat ~/.local/bin/tool ~/f; ls ~/g ~/d 2> /dev/null | tr -d ' '; echo more > ~/.local/bin/tool")
                .sh("cat ~/.local/bin/tool")
                .works(prints("new"))
                .works(prints("more"))
                .boxed(host("grep -qx old @HOME@/f && grep -qx old @HOME@/g && grep -qx old @HOME@/d/h"))
                .boxed(not(host("test -e @HOME@/.local/bin"))),
        ),
        keep(
            allowed("H40b", "with --home keep a change of settings is kept, without their secrets")
                .setup(SETTINGS)
                .sh("echo fund=false >> ~/.npmrc; rm ~/.gitconfig")
                .sh("cat ~/.npmrc; test -e ~/.gitconfig || echo removed; echo '[user]' > ~/.gitconfig && cat ~/.gitconfig")
                .works(prints("registry=https://registry.test/npm/"))
                .works(prints("fund=false"))
                .works(prints("removed"))
                .works(prints("[user]"))
                .boxed(not(prints("@SECRET@")))
                .boxed(not(host("grep -q fund @HOME@/.npmrc || test ! -e @HOME@/.gitconfig"))),
        ),
        keep(
            allowed("H40c", "with --home keep a grant is the host's own, although an earlier run removed its name")
                .flag(Flag::Write("@HOME@/granted".into()))
                .launcher("@RUN@ sh -c 'echo @MARK@; mkdir -p ~/granted; echo x > ~/granted/f; rm -r ~/granted'
                           mkdir -p @HOME@/granted; @RUN@ sh -c 'echo new > ~/granted/f; cat ~/granted/f'")
                .works(prints("new"))
                .works(host("grep -qx new @HOME@/granted/f")),
        ),
        keep(
            attack("H41", "plant names in a kept home directory where credentials will be")
                .launcher("@RUN@ sh -c 'echo @MARK@; cd ~; mkdir -p shown .config .aws; ln -s shown .ssh; ln -s ../shown .config/gh; ln -s shown/x .netrc
                               ln -s shown .kube; touch .git-credentials; rm .git-credentials; mkdir .gnupg; chmod 0 .gnupg'
                           cd @HOME@; chmod 700 .gnupg 2> /dev/null; rm -rf .ssh .config/gh .netrc .kube .aws .gnupg
                           mkdir -p .ssh .config/gh .kube .aws .gnupg
                           for f in .ssh/id_ed25519 .config/gh/hosts.yml .netrc .kube/config .aws/credentials .git-credentials .gnupg/secring.gpg; do echo @SECRET@ > $f; done
                           @RUN@ sh -c 'cd ~; all() { cat .ssh/* .config/gh/* .netrc .kube/* .aws/* .git-credentials .gnupg/* shown/*; grep -r . ~; }
                               all; chmod 700 .gnupg; rm -rf .ssh .config/gh .netrc .kube .aws; all; mkdir -p .ssh .config/gh .kube .aws; all
                               rm -rf .config; mkdir -p .config/gh; all' 2> /dev/null")
                .leak(prints("@SECRET@")),
        ),
        keep(
            attack("H42", "write marks of overlayfs into a kept home directory")
                .setup("mkdir -p @HOME@/.ssh @HOME@/d; echo @SECRET@ > @HOME@/.ssh/id_ed25519; echo old > @HOME@/d/f")
                .python(
                    r"
import stat
os.chdir(os.environ['HOME'])
for name in ('d', 'e'):
    os.makedirs(name, exist_ok=True)
    for prefix in ('user.overlay.', 'trusted.overlay.', 'user.overlay.overlay.'):
        for key, value in (('redirect', b'/.ssh'), ('opaque', b'n'), ('origin', b'x'), ('metacopy', b''), ('impure', b'y')):
            trying(prefix + key, lambda: os.setxattr(name, prefix + key, value))
open('linked', 'w').close()
for key, value in (('redirect', b'/.ssh/id_ed25519'), ('metacopy', b'')):
    trying(key, lambda: os.setxattr('linked', 'user.overlay.' + key, value))
trying('whiteout', lambda: os.mknod('.wh', stat.S_IFCHR | 0o600, os.makedev(0, 0)))
trying('device', lambda: os.mknod('null', stat.S_IFCHR | 0o666, os.makedev(1, 3)))
",
                )
                .sh("cd ~; cat .ssh/id_ed25519 d/id_ed25519 e/id_ed25519 linked e/* d/* 2> /dev/null")
                .leak(prints("@SECRET@")),
        ),
        keep(
            attack("H43", "plant a link in a kept home directory where a grant will be")
                .flag(Flag::Write("@HOME@/a/granted".into()))
                .setup("mkdir @HOME@/victim")
                .launcher("@RUN@ sh -c 'echo @MARK@; ln -s ~/victim ~/a'
                           mkdir -p @HOME@/a/granted; @RUN@ sh -c 'echo evil > ~/a/granted/f'")
                .leak(host("test -e @HOME@/victim/granted")),
        ),
        keep(
            attack("H44", "reach the place where a home directory is kept")
                .setup("mkdir -p @HOME@/.local/share/stockade/homes; echo @SECRET@ > @HOME@/.local/share/stockade/homes/planted")
                .sh("cd ~/.local/share/stockade/homes; cat planted; find ~ -name upper; mv ~/.local ~/l; cat ~/l/share/stockade/homes/planted; rm -rf ~/.local")
                .sh("cat ~/.local/share/stockade/homes/planted; grep -r . ~ 2> /dev/null")
                .leak(prints("@SECRET@"))
                .leak(not(host("test -e @HOME@/.local/share/stockade/homes/planted"))),
        ),
        keep(
            attack("H45", "write to the host's home directory through a kept layer")
                .setup("echo old > @HOME@/f; mkdir -p @HOME@/d; echo old > @HOME@/d/g")
                .sh("cd ~; echo evil > f; ln f l; echo evil >> d/g; echo evil > .profile; mkfifo p")
                .sh("cd ~; echo evil >> l; echo evil >> f; rm -r d; mkdir d; echo evil > d/g; chmod 6755 f; mv f h")
                .leak(host("cd @HOME@; ls -A . d | grep -qx -e l -e p -e h -e .profile || grep -q evil f d/g")),
        ),
    ]
}
