//! G30–G39, N20: ordinary work on repositories and on trees with protected names ends as outside.

use stockade_test::{Case, Flag, Need, allowed, attack, exits, host, not, prints};

/// Who commits, and a repository in the project.
const REPO: &str = "git config --global safe.directory '*'; git config --global user.email a@b.test
    git config --global user.name n; git config --global protocol.file.allow always; git config --global init.defaultBranch main
    git init -q . && echo 1 > f && git add . && git commit -qm one";

/// Besides, a repository to clone, one that tracks editor files, and a package that ships some.
const AROUND: &str = "git init -q plain && cd plain && echo c > c && git add . && git commit -qm c && cd ..
    git init -q up && cd up && mkdir .vscode .idea .cursor && echo 1 > .vscode/settings.json && echo x > .idea/w.xml &&
    echo x > .cursor/rules && echo x > .envrc && echo '{}' > .mcp.json && git add -A && git commit -qm up && cd ..
    mkdir -p node_modules/p/.vscode; echo '{}' > node_modules/p/.vscode/settings.json; echo '# rc' > node_modules/p/.bashrc
    echo '{}' > node_modules/p/.mcp.json; tar czf pkg.tgz -C node_modules p; git clone -q plain old";

/// Keys that run no program, redirect nothing and weaken no check, each with a value.
const HARMLESS: &[&str] = &[
    "user.name=other",
    "user.email=c@d.test",
    "user.useConfigOnly=true",
    "author.name=x",
    "committer.email=x@y.test",
    "core.autocrlf=input",
    "core.eol=lf",
    "core.safecrlf=warn",
    "core.ignoreCase=false",
    "core.precomposeUnicode=true",
    "core.quotePath=false",
    "core.untrackedCache=true",
    "core.preloadIndex=true",
    "core.commentChar=;",
    "core.abbrev=12",
    "core.whitespace=trailing-space",
    "core.compression=1",
    "core.looseCompression=1",
    "core.bigFileThreshold=1m",
    "core.packedGitLimit=64m",
    "core.deltaBaseCacheLimit=96m",
    "core.logAllRefUpdates=true",
    "core.sparseCheckout=true",
    "core.sparseCheckoutCone=true",
    "core.commitGraph=true",
    "core.multiPackIndex=true",
    "core.fileMode=true",
    "core.symlinks=true",
    "core.trustctime=false",
    "core.checkStat=minimal",
    "core.sharedRepository=group",
    "core.notesRef=refs/notes/x",
    "core.splitIndex=false",
    "core.maxTreeDepth=2048",
    "commit.gpgSign=false",
    "commit.verbose=true",
    "commit.cleanup=scissors",
    "commit.status=true",
    "tag.gpgSign=false",
    "tag.sort=version:refname",
    "push.default=current",
    "push.autoSetupRemote=true",
    "push.followTags=true",
    "push.gpgSign=false",
    "pull.rebase=true",
    "pull.ff=only",
    "fetch.prune=true",
    "fetch.pruneTags=true",
    "fetch.parallel=4",
    "fetch.writeCommitGraph=true",
    "fetch.recurseSubmodules=on-demand",
    "merge.conflictStyle=diff3",
    "merge.ff=only",
    "merge.log=true",
    "merge.renames=true",
    "merge.renormalize=true",
    "merge.stat=true",
    "rebase.autoStash=true",
    "rebase.autoSquash=true",
    "rebase.updateRefs=true",
    "rebase.stat=true",
    "rerere.enabled=true",
    "rerere.autoUpdate=true",
    "diff.algorithm=histogram",
    "diff.renames=copies",
    "diff.renameLimit=4000",
    "diff.mnemonicPrefix=true",
    "diff.noprefix=true",
    "diff.colorMoved=zebra",
    "diff.context=5",
    "diff.wsErrorHighlight=all",
    "diff.submodule=log",
    "diff.lang.xfuncname=^def",
    "diff.lang.binary=false",
    "log.date=iso",
    "log.decorate=short",
    "log.follow=true",
    "log.abbrevCommit=true",
    "format.pretty=oneline",
    "status.short=true",
    "status.branch=true",
    "status.showUntrackedFiles=all",
    "branch.autoSetupMerge=always",
    "branch.autoSetupRebase=always",
    "branch.sort=-committerdate",
    "branch.main.description=text",
    "branch.main.rebase=true",
    "branch.main.merge=refs/heads/main",
    "column.ui=auto",
    "color.ui=auto",
    "color.diff.new=green",
    "advice.detachedHead=false",
    "gc.auto=0",
    "gc.pruneExpire=now",
    "pack.threads=2",
    "pack.window=20",
    "index.version=4",
    "feature.manyFiles=true",
    "apply.whitespace=fix",
    "am.threeWay=true",
    "blame.date=short",
    "grep.lineNumber=true",
    "help.autoCorrect=0",
    "i18n.commitEncoding=utf-8",
    "stash.showPatch=true",
    "submodule.recurse=false",
    "submodule.sub.active=true",
    "transfer.fsckObjects=true",
    "receive.fsckObjects=true",
    "extensions.worktreeConfig=true",
    "maintenance.auto=false",
    "init.defaultBranch=trunk",
    "worktree.guessRemote=true",
    "notes.displayRef=refs/notes/*",
    "versionsort.suffix=-rc",
    "checkout.workers=2",
    "lfs.repositoryformatversion=0",
    "remote.o.fetch=+refs/heads/*:refs/remotes/o/*",
    "remote.o.tagOpt=--no-tags",
    "remote.o.prune=true",
];

/// Keys that run a program, lead to another file or host, or weaken a check, each with a value.
const DANGEROUS: &[&str] = &[
    "core.hooksPath=evil",
    "core.sshCommand=evil",
    "core.editor=evil",
    "core.pager=evil",
    "core.askPass=evil",
    "core.fsmonitor=evil",
    "core.gitProxy=evil",
    "core.worktree=/evil",
    "core.alternateRefsCommand=evil",
    "alias.st=!evil",
    "filter.x.clean=evil",
    "filter.x.smudge=evil",
    "filter.x.process=evil",
    "diff.external=evil",
    "diff.x.command=evil",
    "diff.x.textconv=evil",
    "difftool.x.cmd=evil",
    "difftool.x.path=evil",
    "merge.x.driver=evil",
    "mergetool.x.cmd=evil",
    "mergetool.x.path=evil",
    "include.path=evil",
    "includeIf.onbranch:main.path=evil",
    "credential.helper=!evil",
    "credential.https://a.test.helper=!evil",
    "gpg.program=evil",
    "gpg.ssh.program=evil",
    "gpg.ssh.defaultKeyCommand=evil",
    "gpg.x509.program=evil",
    "sequence.editor=evil",
    "pager.log=evil",
    "interactive.diffFilter=evil",
    "uploadpack.packObjectsHook=evil",
    "remote.o.uploadpack=evil",
    "remote.o.receivepack=evil",
    "remote.o.vcs=evil",
    "remote.o.proxy=evil",
    "url.file:///evil.insteadOf=https://",
    "url.file:///evil.pushInsteadOf=https://",
    "protocol.ext.allow=always",
    "protocol.allow=always",
    "http.proxy=evil",
    "http.sslVerify=false",
    "http.sslCAInfo=/evil",
    "http.cookieFile=/evil",
    "submodule.x.update=!evil",
    "man.x.cmd=evil",
    "browser.x.cmd=evil",
    "instaweb.httpd=evil",
    "sendemail.smtpServer=/evil",
    "sendemail.toCmd=evil",
    "init.templateDir=/evil",
    "tar.x.command=evil",
    "trailer.x.command=evil",
    "trailer.x.cmd=evil",
    "imap.tunnel=evil",
    "remote.o.url=ext::sh -c evil",
    "branch.main.remote=ext::sh -c evil",
    "branch.main.pushRemote=ext::sh -c evil",
    "remote.pushDefault=ext::sh -c evil",
];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = removing();
    cases.extend(repositories());
    cases.extend(keys());
    cases
        .into_iter()
        .map(|case| case.needs(Need::Tool("git")))
        .collect()
}

/// Work that must end with 0 inside as outside, and what shows on the host then.
fn work(id: &'static str, title: &'static str, script: &str, shows: &'static str) -> Case {
    allowed(id, title)
        .setup(REPO)
        .setup(AROUND)
        .sh(format!("set -e; {script}"))
        .works(exits(0))
        .works(host(shows))
}

fn removing() -> Vec<Case> {
    vec![
        work("N20", "remove a clone that was there", "rm -rf old", "test ! -e old"),
        work(
            "N20b",
            "remove what was made in this run",
            "git init -q n; rm -rf n; git clone -q plain m; /usr/bin/python3 -c 'import shutil; shutil.rmtree(\"m\")'
             git clone -q --bare plain b.git; rm -rf b.git; git clone -q up u; rm -rf u",
            "test ! -e n -a ! -e m -a ! -e b.git -a ! -e u",
        ),
        work(
            "N20c",
            "remove dependencies that ship protected names",
            "rm -rf node_modules; mkdir n; tar xzf pkg.tgz -C n; mv n/p q; rm -rf n q",
            "test ! -e node_modules -a ! -e n -a ! -e q",
        ),
        work("N20d", "clean everything that is not tracked", "git clean -qffdx", "test ! -e old -a ! -e plain -a ! -e up"),
        work(
            "N20e",
            "add a submodule and remove it again",
            "git submodule --quiet add ./plain sub; git commit -qm s; git submodule --quiet deinit -f sub; git rm -qf sub
             rm -rf .git/modules/sub; git commit -qm r",
            "test ! -e sub -a ! -e .git/modules/sub",
        ),
        work(
            "N20f",
            "add, move and remove worktrees",
            "git worktree add -q w; git worktree move w x; git worktree remove x; git worktree add -q y; rm -rf y; git worktree prune",
            "test ! -e w -a ! -e x -a ! -e y",
        ),
        work("N20g", "clone once more over a clone that was removed", "rm -rf old; git clone -q plain old", "test -e old/c"),
        work(
            "N20h",
            "move clones, old and new",
            "mv old older; git clone -q plain n; mv n m; git -C older status --short; git -C m log --oneline",
            "test -e older/.git/config -a -e m/.git/config -a ! -e old",
        ),
        work(
            "N20i",
            "clone, unpack and copy trees with protected names",
            "git clone -q up a; mkdir b; tar xzf pkg.tgz -C b; cp -r up c; cp -a up d; cp -r node_modules e
             tar cf up.tar up; mkdir h; tar xf up.tar -C h; /usr/bin/python3 -c 'import shutil; shutil.copytree(\"up\", \"g\")'",
            "test -e a/.vscode/settings.json -a -e b/p/.bashrc -a -e c/.git/HEAD -a -e d/.cursor/rules -a -e e/p/.mcp.json \
             -a -e h/up/.git/config -a -e g/.idea/w.xml",
        ),
        work(
            "N20j",
            "swap dependencies as package managers do",
            "mv node_modules nm.old; mkdir node_modules; tar xzf pkg.tgz -C node_modules; rm -rf nm.old
             mv node_modules/p node_modules/.p-x; mv node_modules/.p-x node_modules/p",
            "test -e node_modules/p/.vscode/settings.json -a ! -e nm.old",
        ),
        // The other side of the same rule.
        attack("N21", "remove hooks and configuration of the repository of the workspace")
            .setup(REPO)
            .setup("printf '#!/bin/sh\\ntrue\\n' > .git/hooks/pre-push; chmod +x .git/hooks/pre-push")
            .sh("rm -f .git/hooks/pre-push .git/config; rm -rf .git; mv .git away")
            .leak(not(host("test -e .git/hooks/pre-push -a -e .git/config"))),
        attack("N21b", "editor, agent and shell files at the root of a repository that was there")
            .setup(REPO)
            .setup(AROUND)
            .sh("mkdir old/.vscode old/.claude; echo x > old/.vscode/tasks.json; echo x > old/.claude/settings.json
                 echo x > old/.bashrc; echo x > up/.vscode/settings.json; echo x > t; mv t up/.mcp.json")
            .leak(host("test -e old/.vscode/tasks.json"))
            .leak(host("test -e old/.claude/settings.json"))
            .leak(host("test -e old/.bashrc"))
            .leak(host("grep -qx x up/.vscode/settings.json"))
            .leak(host("grep -qx x up/.mcp.json")),
        attack("N21c", "hooks and configuration of other repositories, old and new")
            .setup(REPO)
            .setup(AROUND)
            .sh("printf '#!/bin/sh\\n' > h; chmod +x h; cp -p h old/.git/hooks/pre-commit; mkdir -p n; git init -q n
                 cp -p h n/.git/hooks/pre-commit; git -C old config core.fsmonitor evil; git -C n config core.fsmonitor evil
                 mv n/.git g; mkdir -p g/hooks; cp -p h g/hooks/post-commit; mv g n/.git; true")
            .leak(host("test -e old/.git/hooks/pre-commit"))
            .leak(host("test -e n/.git/hooks/pre-commit -o -e n/.git/hooks/post-commit"))
            .leak(host("grep -q evil old/.git/config"))
            .leak(host("grep -q evil n/.git/config")),
    ]
}

fn repositories() -> Vec<Case> {
    vec![
        work(
            "G31",
            "a new repository keeps the modes of files",
            "git init -q a; git clone -q plain b; git clone -q --bare plain c; git init -q --bare d",
            "for r in a/.git b/.git c d; do test $(git config --file $r/config core.filemode) = true || exit 1; done
             test -z \"$(git config --file a/.git/config core.symlinks)\" && cd b && chmod +x c && git diff --summary | grep -q 'mode change'",
        ),
        allowed("G33", "git from a directory below the repository")
            .setup(REPO)
            .setup("mkdir -p sub/deep; echo x > sub/deep/g")
            .cwd("@P@/sub/deep")
            .sh("set -e; git add .; git commit -qm deep; git status --short; git stash list; git branch b; git config user.name other")
            .works(exits(0))
            .works(host("git log --oneline | grep -q deep")),
        attack("G33b", "what the repository around the workspace is protected from")
            .setup(REPO)
            .setup("mkdir -p sub/deep")
            .cwd("@P@/sub/deep")
            .sh("echo x > ../../planted; printf '#!/bin/sh\\n' > ../../.git/hooks/pre-commit; git config core.fsmonitor evil
                 echo x > ../../.bashrc; echo evil > ../../f; printf '[core]\\n pager = evil\\n' >> ../../.git/config")
            .leak(host("test -e planted"))
            .leak(host("test -e .bashrc"))
            .leak(host("grep -q evil f"))
            .leak(host("test -e .git/hooks/pre-commit"))
            .leak(host("grep -q evil .git/config")),
        work(
            "G34",
            "kinds of new repositories",
            "git init -q --shared=group a; git init -q --separate-git-dir=s.gd b; git clone -q --depth 1 file://$PWD/plain c
             git clone -q --reference plain plain d; git clone -q --template= plain e; git clone -q -c core.autocrlf=false plain g
             git init -q .; git init -q --object-format=sha256 h",
            "test -f b/.git -a -d s.gd/objects -a -e c/c -a -e d/c -a -e e/c -a -e g/c -a -d h/.git && git -C b status --short",
        ),
        work(
            "G34b",
            "sparse checkout",
            "mkdir tree other; echo t > tree/f; echo o > other/f; git add tree other; git commit -qm t; git sparse-checkout set tree
             git sparse-checkout list; git sparse-checkout disable",
            "test -e tree/f -a -e other/f",
        ),
        work(
            "G34c",
            "submodules in a clone, without stray messages",
            "git submodule --quiet add ./plain sub; git commit -qm s; git clone -q . n; git -C n submodule --quiet update --init
             git clone -q --recurse-submodules . m 2> messages; cat messages; test ! -s messages; git -C m/sub log --oneline",
            "test -e n/sub/c -a -e m/sub/c",
        ),
        work(
            "G34d",
            "attributes and excludes of the repository",
            "echo '*.txt text' > .git/info/attributes; echo '*.o' >> .git/info/exclude; echo x > x.o; test -z \"$(git status --short x.o)\"
             echo '* text' > .gitattributes; echo x >> .gitignore; mkdir -p .github/workflows; echo x > .github/workflows/ci.yml",
            "test -e .git/info/attributes -a -e .gitattributes -a -e .github/workflows/ci.yml",
        ),
    ]
}

fn keys() -> Vec<Case> {
    let quoted = |keys: &[&str]| {
        keys.iter()
            .map(|pair| format!("'{pair}'"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let set = |keys: &[&str]| {
        format!(
            "for pair in {}; do k=${{pair%%=*}}; v=${{pair#*=}}
             case $pair in url.*|credential.*test.*|includeIf*) k=${{pair%=*}}; v=${{pair##*=}};; esac
             if git config \"$k\" \"$v\" 2> /dev/null; then echo \"set $k\"; else echo \"refused $k\"; fi; done",
            quoted(keys)
        )
    };
    vec![
        allowed("G30", "keys that can do nothing are set")
            .setup(REPO)
            .sh(set(HARMLESS))
            .works(not(prints("refused"))),
        attack("G30b", "keys that run a program, redirect or weaken a check")
            .setup(REPO)
            .sh(set(DANGEROUS))
            .leak(prints("set "))
            .boxed(not(prints("set "))),
        allowed("G30c", "the same keys with the opt-in")
            .flag(Flag::GitConfig)
            .setup(REPO)
            .sh(set(DANGEROUS))
            .works(not(prints("refused"))),
        allowed("G30d", "sections are renamed and removed")
            .setup(REPO)
            .setup(AROUND)
            .sh("set -e; git remote add o ./plain; git fetch -q o; git branch -q t o/main; git remote rename o p; git remote remove p
                 git config --unset user.name || true; git branch -m t u; git branch -D u")
            .works(exits(0)),
        allowed("G30e", "every harmless key in one file that is moved into place")
            .setup(REPO)
            .sh("set -e; cp .git/config .git/config.lock; git config -f .git/config.lock log.date iso; git config -f .git/config.lock pull.rebase true
                 mv .git/config.lock .git/config")
            .works(exits(0))
            .works(host("test $(git config log.date) = iso")),
    ]
}
