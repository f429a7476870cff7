//! Stores and directories where little is possible: full, read-only, no overlays.

use crate::context::{Context, Ran, STOCKADE, has};
use crate::ws::context;

/// Runs a script in user and mount namespaces of its own, where it may mount what it likes; `$s`
/// is the program, and the store's directory and `tree` are empty.
fn in_its_own_mounts(context: &Context, script: &str) -> Ran {
    let script = format!("set -eu; s={STOCKADE}; mkdir -p \"$STOCKADE_HOME\" tree; {script}");
    context.other(&["unshare", "-Urm", "sh", "-c", &script])
}

fn has_mounts(test: &str) -> bool {
    let script = "mount -t tmpfs none /mnt";
    has(test, "userns", &["unshare", "-Urm", "sh", "-c", script])
}

/// What a script that must come to its end begins a refused command with.
const REFUSED: &str = "refused() { c=0; \"$@\" > out 2>&1 || c=$?; cat out; test $c = 1; }; ";

#[test]
fn a_full_store_keeps_what_it_has() {
    if !has_mounts("a_full_store_keeps_what_it_has") {
        return;
    }
    let context = context();
    let script = format!(
        "{REFUSED} mount -t tmpfs -o size=4m none \"$STOCKADE_HOME\"
         echo one > tree/a; head -c 300000 /dev/urandom > tree/b; cp tree/b b
         $s ws create w --dir tree; id=$($s ws snapshot w)
         head -c 20000000 /dev/urandom > tree/big; echo two > tree/a
         refused $s ws snapshot w
         refused $s ws create other --dir tree
         $s ws fsck; test $($s ws snapshots w | wc -l) = 2
         rm tree/b; $s ws restore w $id
         cmp tree/b b; grep -qx one tree/a; test ! -e tree/big
         $s ws gc; $s ws fsck; test -z \"$(find \"$STOCKADE_HOME\" -name '.tmp-*')\"
         # To the last byte: nothing can be written at all.
         cat /dev/zero > \"$STOCKADE_HOME\"/filler || :
         echo three > tree/a
         refused $s ws snapshot w
         rm \"$STOCKADE_HOME\"/filler; $s ws snapshot w; $s ws fsck
         echo to-the-end"
    );
    let ran = in_its_own_mounts(&context, &script).ends_with(0);
    assert!(ran.stdout.contains("to-the-end"), "{ran:#?}");
    assert_eq!(ran.stdout.matches("No space left").count(), 3, "{ran:#?}");
    assert!(ran.stdout.contains("free some space"), "{ran:#?}");
}

#[test]
fn a_full_directory_is_left_as_it_was() {
    if !has_mounts("a_full_directory_is_left_as_it_was") {
        return;
    }
    let context = context();
    let script = format!(
        "{REFUSED} mount -t tmpfs -o size=3m none tree
         head -c 2000000 /dev/urandom > tree/a; echo small > tree/s
         $s ws create w --dir tree; id=$($s ws snapshot w)
         head -c 2000000 /dev/urandom > tree/a; echo other > tree/s; cp tree/a a
         refused $s ws restore w $id
         cmp a tree/a; grep -qx other tree/s; test $(ls -A tree | wc -l) = 2
         : > tree/a; $s ws restore w $id; grep -qx small tree/s; test $(stat -c %s tree/a) = 2000000
         echo to-the-end"
    );
    let ran = in_its_own_mounts(&context, &script).ends_with(0);
    assert!(ran.stdout.contains("to-the-end"), "{ran:#?}");
    assert!(ran.stdout.contains("No space left"), "{ran:#?}");
    assert!(ran.stdout.contains("nothing was restored"), "{ran:#?}");
}

#[test]
fn a_read_only_store_is_told() {
    if !has_mounts("a_read_only_store_is_told") {
        return;
    }
    let context = context();
    let script = format!(
        "{REFUSED} mount -t tmpfs none \"$STOCKADE_HOME\"
         echo one > tree/a; $s ws create w --dir tree; id=$($s ws snapshot w); echo two > tree/a
         mount -o remount,bind,ro \"$STOCKADE_HOME\"
         for act in 'snapshot w' \"restore w $id\" 'gc' 'rm w' 'create x --dir tree' 'pause w'; do
           refused $s ws $act; echo refused-once
         done
         grep -qx two tree/a; test $(ls -A tree) = a
         mount -o remount,bind,rw \"$STOCKADE_HOME\"
         $s ws restore w $id; grep -qx one tree/a; $s ws fsck
         echo to-the-end"
    );
    let ran = in_its_own_mounts(&context, &script).ends_with(0);
    assert!(ran.stdout.contains("to-the-end"), "{ran:#?}");
    let told = ran.stdout.matches("Read-only file system").count();
    assert_eq!(
        (told, ran.stdout.matches("refused-once").count()),
        (6, 6),
        "{ran:#?}"
    );
    assert!(ran.stdout.contains("choose another store"), "{ran:#?}");
}

#[test]
fn an_overlay_that_the_kernel_refuses_is_told() {
    if !crate::ws::has_overlay("an_overlay_that_the_kernel_refuses_is_told") {
        return;
    }
    let context = context();
    // The kernel takes no overlay as the place of another one's layers.
    let script = "mount -t tmpfs none \"$STOCKADE_HOME\"; cd \"$STOCKADE_HOME\"; mkdir l u w m
         mount -t overlay o -o lowerdir=l,upperdir=u,workdir=w,userxattr m
         export STOCKADE_HOME=\"$STOCKADE_HOME\"/m; cd ~-/tree 2>/dev/null || cd $OLDPWD/tree; echo good > a
         c=0; $s run -q --overlay -- sh -c 'echo bad > a; echo ran' || c=$?
         test $c = 125; grep -qx good a; echo to-the-end";
    let ran = in_its_own_mounts(&context, script).ends_with(0);
    assert_eq!(ran.stdout, "to-the-end\n", "{ran:#?}");
    assert!(ran.stderr.contains("copy-on-write"), "{ran:#?}");
    assert!(ran.stderr.contains("STOCKADE_HOME"), "{ran:#?}");
}

#[test]
fn a_plan_makes_no_workspace() {
    let context = context();
    let plan = context.stockade(["run", "--overlay=w", "--dry-run", "--json", "--", "true"]);
    if plan.code != 125 {
        assert!(plan.stdout.contains("workspaces/w/overlay"), "{plan:#?}");
    }
    assert!(!context.home().join("store").exists());
}
