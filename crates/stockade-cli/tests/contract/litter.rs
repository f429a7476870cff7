//! Zero litter: a run that does nothing leaves nothing, even if its launcher is killed.

use stockade_test::case::Control;
use stockade_test::{Case, Flag, Need, allowed, attack, host, not, prints, stdout_is, touched};

const TREE: &str = "mkdir -p a/b .git/hooks; echo 1 > a/b/f; ln -s f a/b/l; echo '[core]' > .git/config
    echo 'ref: refs/heads/main' > .git/HEAD; echo rc > @HOME@/.bashrc; mkdir @HOME@/.ssh; echo k > @HOME@/.ssh/id";

const NOTHING_TO_SHOW: Control =
    Control::Absent("without a launcher there is nothing that could litter");

pub(crate) fn cases() -> Vec<Case> {
    vec![
        allowed("M05", "a run that does nothing")
            .setup(TREE)
            .control(NOTHING_TO_SHOW)
            .sh("true")
            .boxed(not(touched())),
        allowed("M05b", "rules about what does not exist")
            .setup(TREE)
            .control(NOTHING_TO_SHOW)
            .flag(Flag::DenyRead("@P@/no/such".into()))
            .flag(Flag::DenyWrite("@P@/nor/this".into()))
            .flag(Flag::DenyRead("@P@/**/*.pem".into()))
            .flag(Flag::Write("@OUT@/missing".into()))
            .flag(Flag::DenyRead("@P@/a/b/f".into()))
            .sh("true")
            .boxed(not(touched())),
        allowed("M05c", "an empty project")
            .control(NOTHING_TO_SHOW)
            .sh("true")
            .boxed(not(touched())),
        attack("M05d", "a refused write leaves no empty file behind")
            .sh("echo x > .bashrc; echo x > .vscode/t; echo x > @OUT@/f; touch stockade.toml")
            .setup("mkdir .vscode")
            .leak(touched()),
        allowed("M06", "the launcher is killed in the middle")
            .setup(TREE)
            .control(NOTHING_TO_SHOW)
            .launcher(
                "mkfifo @W@/o; @RUN@ sh -c 'echo @MARK@; exec sleep 100' > @W@/o & pid=$!
                 read line < @W@/o; echo $line; kill -9 $pid; wait $pid; echo killed",
            )
            .boxed(prints("killed"))
            .boxed(not(touched())),
        allowed("M06b", "the launcher is killed at any moment of its set-up")
            .setup(TREE)
            .control(NOTHING_TO_SHOW)
            .flag(Flag::DenyRead("@P@/a/b/f".into()))
            .flag(Flag::DenyRead("@P@/nope".into()))
            // Counting is the clock: each round kills a little later.
            .launcher(
                "n=0; while [ $n -lt 40 ]; do @RUN@ sleep 100 & pid=$!
                 i=0; while [ $i -lt $((n * 60)) ]; do i=$((i + 1)); done
                 kill -9 $pid; wait $pid; n=$((n + 1)); done 2> /dev/null; @RUN@ echo @MARK@",
            )
            .boxed(not(touched())),
        allowed("M06c", "what a program writes in place last is there when the run has ended")
            .needs(Need::Tool("git"))
            .control(NOTHING_TO_SHOW)
            .setup("git init -q .")
            .launcher(
                "n=0; while [ $n -lt 20 ]; do n=$((n + 1))
                 @RUN@ sh -c \"echo @MARK@; printf '[user]\\n\\tname$n = x\\n' >> .git/config\"; done",
            )
            .boxed(host("test $(grep -c name .git/config) = 20"))
            .boxed(host("test -z \"$(find . -name '.stockade-*')\"")),
        allowed("M06d", "the launcher is killed while files are put in place")
            .needs(Need::Tool("git"))
            .control(NOTHING_TO_SHOW)
            .setup("git init -q .; echo 1 > f; touch .git/.stockade-copy-1-1")
            // A copy may be left in the one moment in which it has a name, until the next run.
            .launcher(
                "n=0; while [ $n -lt 15 ]; do
                 @RUN@ sh -c 'while :; do git config user.n $$; git add f; done' & pid=$!
                 i=0; while [ $i -lt $((20000 + n * 3000)) ]; do i=$((i + 1)); done
                 kill -9 $pid; wait $pid; n=$((n + 1)); rm -f .git/*.lock; done 2> /dev/null
                 echo @MARK@; i=0; until @RUN@ git config user.n last || [ $i = 50 ]; do i=$((i + 1)); rm -f .git/*.lock; done",
            )
            .boxed(host("grep -q 'n = last' .git/config"))
            .boxed(host("test -z \"$(find . -name '.stockade-*')\"")),
        allowed("M06e", "the launcher is killed while names are moved")
            .needs(Need::Tool("perl"))
            .control(NOTHING_TO_SHOW)
            // No process has a number as high as that (PID_MAX_LIMIT is 4194304).
            .setup(
                "mkdir d; echo in > d/f; echo file > c; echo old > .stockade-move-4194305-1-1-left
                 mkdir .stockade-move-4194305-1-2-list; echo more > .stockade-move-4194305-1-2-list/f",
            )
            // Counting is the clock: each round kills a little later.
            .launcher(
                "cat > move.pl <<'EOF'
while (1) { rename 'd', 'hooks'; rename 'hooks', 'd'; rename 'c', 'config'; rename 'config', 'c' }
EOF
                 n=0; while [ $n -lt 40 ]; do @RUN@ perl move.pl & pid=$!
                 i=0; while [ $i -lt $((20000 + n * 1500)) ]; do i=$((i + 1)); done
                 kill -9 $pid; wait $pid; n=$((n + 1)); done 2> /dev/null
                 echo @MARK@; i=0; while ls -A | grep -q '^.stockade-' && [ $i -lt 50 ]; do
                 i=$((i + 1)); @RUN@ perl -e 'rename q(missing), q(other)'; done",
            )
            .boxed(host("test $(cat d/f hooks/f) = in"))
            .boxed(host("test $(cat c config) = file"))
            .boxed(host("test $(cat left) = old && test $(cat list/f) = more"))
            .boxed(host("test -z \"$(find . -name '.stockade-*')\"")),
        allowed("M06f", "what an earlier run left gets no name that it could not be given")
            .needs(Need::Tool("perl"))
            .control(NOTHING_TO_SHOW)
            .setup(
                "for name in .envrc .bashrc denied taken; do echo planted > .stockade-move-4194305-1-1-$name; done
                 mkdir .stockade-move-4194305-1-1-.vscode; echo own > taken; echo x > f
                 echo planted > .stockade-move-4194305-1-1-.vscode/tasks.json; echo ok > .stockade-move-4194305-1-1-free",
            )
            .flag(Flag::DenyWrite("@P@/denied".into()))
            .sh("echo @MARK@; perl -e 'rename q(missing), q(other)'; perl -e 'rename q(f), q(config)'")
            .boxed(host("test -e config && test $(cat free) = ok && test $(cat taken) = own"))
            .boxed(host("test ! -e .envrc && test ! -e .bashrc && test ! -e .vscode && test ! -e denied")),
        allowed("M07", "nothing of the run stays in /tmp, /run or /dev/shm")
            .needs(Need::Userns)
            .control(NOTHING_TO_SHOW)
            // Empty ones of the launcher's own: whoever else is on the machine uses the others.
            .launcher(
                "cat > @W@/job.sh <<'EOF'
for place in /tmp /run /dev/shm; do mount -n -t tmpfs -o mode=1777 place $place || exit 9; done
@RUN@ sh -c 'echo @MARK@ >&2; mkdir /tmp/@ID@; echo > /dev/shm/@ID@'
find /tmp /run /dev/shm -mindepth 1 && echo looked
EOF
if test $(id -u) = 0; then unshare -m sh @W@/job.sh; else unshare -Urm sh @W@/job.sh; fi",
            )
            .boxed(stdout_is("looked")),
    ]
}
