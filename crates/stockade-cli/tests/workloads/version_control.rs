//! git, as people use it.

use stockade_test::{Case, exits, host};

use crate::workload;

const WHO: &str = "git config user.email a@b.test; git config user.name n";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        workload(
            "git-history",
            "init, commit, branch, rebase, stash, tag, bisect, gc",
            &["git"],
            &format!(
                "git init -q -b main repo; cd repo; {WHO}
                 for i in 1 2 3 4; do echo $i > f; git add f; git commit -qm c$i; done
                 git checkout -qb topic HEAD~1; echo t > t; git add t; git commit -qm topic
                 git rebase -q main; echo dirty >> t; git stash -q; git stash pop -q; git commit -qam more
                 git tag v1; git checkout -q main; git merge -q --no-ff -m merge topic; git branch -d topic
                 git bisect start HEAD HEAD~3; git bisect reset 2>&1; git gc -q; git fsck --strict"
            ),
        )
        .works(host("git -c safe.directory='*' -C repo log --oneline | grep -q merge")),
        workload(
            "git-worktree",
            "worktrees added, used and removed",
            &["git"],
            &format!(
                "git init -q -b main repo; cd repo; {WHO}; echo 1 > f; git add f; git commit -qm one
                 git worktree add -q ../wt -b side; cd ../wt; echo 2 > g; git add g; git commit -qm side
                 cd ../repo; git merge -q side; git worktree remove ../wt; git worktree prune"
            ),
        )
        .works(host("test -e repo/g")),
        workload(
            "git-remotes",
            "clone of a local repository, remotes, push with upstream, fetch, pull",
            &["git"],
            &format!(
                "git init -q --bare -b main hub.git; git clone -q hub.git a 2>&1; cd a; {WHO}
                 echo 1 > f; git add f; git commit -qm one; git push -q -u origin main
                 cd ..; git clone -q hub.git b; cd b; {WHO}; git remote add mirror ../hub.git; git remote rename mirror m2
                 echo 2 > g; git add g; git commit -qm two; git push -q; cd ../a; git fetch -q; git pull -q --rebase
                 test -e g; git remote set-url origin https://example.test/x.git; git branch --unset-upstream"
            ),
        )
        .works(host("test -e a/g")),
        workload(
            "git-submodule",
            "a submodule added, updated and removed",
            &["git"],
            &format!(
                "git init -q -b main lib; cd lib; {WHO}; echo l > l; git add l; git commit -qm lib; cd ..
                 git init -q -b main app; cd app; {WHO}; echo a > a; git add a; git commit -qm app
                 git -c protocol.file.allow=always submodule add -q ../lib lib; git commit -qm sub
                 git submodule status; git submodule deinit -q -f lib; git rm -q -f lib; git commit -qm gone"
            ),
        )
        .works(exits(0)),
    ]
}
