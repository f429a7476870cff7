use super::*;
use crate::protected::judge::Effect;

fn judged(old: &str, new: &str) -> Result<(), Refusal> {
    judge(old.as_bytes(), new.as_bytes(), &ConfigContext::new())
}

fn passes(old: &str, new: &str) -> bool {
    judged(old, new).is_ok()
}

const FRESH: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n";

#[test]
fn what_init_clone_remote_and_push_write_passes() {
    assert!(passes("", FRESH));
    let cloned = format!(
        "{FRESH}[remote \"origin\"]\n\turl = https://h.test/r.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n"
    );
    assert!(passes(FRESH, &cloned));
    assert!(passes(
        FRESH,
        &format!("{FRESH}[user]\n\tname = A \"B\" C\n\temail=a@b\n")
    ));
}

#[test]
fn what_does_harm_is_refused() {
    for line in [
        "[core]\n\tfsmonitor = ./x",
        "[core]\n\thooksPath = h",
        "[CORE]\n\tHooksPath = h",
        "[core] sshCommand = x",
        "[core]\n\teditor = x",
        "[core]\n\tworktree = /elsewhere",
        "[alias]\n\tst = !x",
        "[alias \"st\"]\n\tcommand = !x",
        "[include]\n\tpath = x",
        "[includeIf \"gitdir:/\"]\n\tpath = x",
        "[filter \"f\"]\n\tclean = x",
        "[remote \"o\"]\n\tuploadpack = x",
        "[remote \"o\"]\n\turl = ext::sh -c x",
        "[remote \"o\"]\n\turl = --upload-pack=x",
        "[remote.o]\n\turl = ext::x",
        "[remote \"ext::x\"]\n\tpromisor = true",
        "[remotes]\n\tdefault = origin ext::x",
        "[branch \"b\"]\n\tremote = ext::x",
        "[branch \"b\"]\n\tpushRemote = ext::x",
        "[url \"ext::x \"]\n\tinsteadOf = https://",
        "[url \"ext:\"]\n\tinsteadOf = x",
        "[submodule \"s\"]\n\tupdate = !x",
        "[gpg]\n\tprogram = x",
        "[gpg \"ssh\"]\n\tprogram = x",
        "[merge \"d\"]\n\tdriver = x",
        "[merge]\n\ttool = ../../x",
        "[credential]\n\thelper = x",
        "[credential \"https://h.test\"]\n\thelper = !x",
        "[http]\n\tsslVerify = false",
        "[http \"https://h.test\"]\n\tsslVerify = 0",
        "[protocol \"ext\"]\n\tallow = always",
        "[safe]\n\tdirectory = *",
        "[pager]\n\tlog = x",
        "[gpg \"ssh\"]\n\tdefaultKeyCommand = x",
        "[fetch \"fsck\"]\n\tgitmodulesUrl = ignore",
        "[lfs \"customtransfer.t\"]\n\tpath = x",
        "[gitflow \"path\"]\n\thooks = x",
        "[annex]\n\tfreezecontent-command = x",
        "[remote \"r\"]\n\tannex-ssh-options = x",
        "[rebase]\n\tinstructionFormat = %s%nexec x",
    ] {
        assert!(!passes(FRESH, &format!("{FRESH}{line}\n")), "{line}");
    }
}

#[test]
fn harmless_values_of_the_same_keys_pass() {
    for line in [
        "[core]\n\tfsmonitor = true",
        "[core]\n\tfsmonitor",
        "[core]\n\tsharedRepository = group",
        "[extensions]\n\tworktreeConfig = true",
        "[http]\n\tsslVerify",
        "[http]\n\tpostBuffer = 1g",
        "[pager]\n\tlog = false",
        "[submodule \"s\"]\n\tupdate = rebase",
        "[merge]\n\ttool = vimdiff3",
        "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f",
        "[remote \"o\"]\n\turl = build/cache",
        "[some \"tool\"]\n\tunknown = x",
    ] {
        assert_eq!(judged(FRESH, &format!("{FRESH}{line}\n")), Ok(()), "{line}");
    }
}

#[test]
fn a_refusal_names_key_and_effect() {
    let refusal = judged("", "[Core]\n\tHooksPath = h\n").unwrap_err();
    assert_eq!(refusal.key, "core.hookspath");
    assert_eq!(refusal.effect, Effect::RunsProgram);
    assert_eq!(
        refusal.to_string(),
        "`core.hookspath` runs a program: git runs the programs in this directory"
    );
}

#[test]
fn what_was_there_may_stay() {
    let before = format!("{FRESH}[core]\n\thooksPath = mine\n");
    assert!(passes(&before, &format!("{before}[user]\n\tname = n\n")));
    assert!(!passes(&before, &before.replace("mine", "theirs")));
    assert!(passes(&before, FRESH));
}

#[test]
fn a_value_that_did_not_count_must_not_come_to_count() {
    let before = "[core]\n\tpager = evil\n\tpager = less\n";
    assert!(passes(before, &format!("{before}[user]\n\tname = n\n")));
    assert!(!passes(before, "[core]\n\tpager = less\n\tpager = evil\n"));
    assert!(!passes(before, "[core]\n\tpager = evil\n"));
}

#[test]
fn tricks_of_the_syntax_are_read_as_git_reads_them() {
    for text in [
        "[core]\n\tfs\\\nmonitor = x\n",
        "[core]\n\tbare = false # \n\tfsmonitor = x\n",
        "[core]\n\tbare = false # \\\n\tfsmonitor = x\n",
        "[core]\r\n\tbare = false\r\n\tfsmonitor = x\r\n",
        "[core] bare = false\n[core] fsmonitor = x",
        "[core \"fsmonitor\0\"] x = y\n",
        "[remote \"o\"] url = \"ext\"::x\n",
        "[remote \"o\"] url = e\\\nxt::x\n",
        "\u{feff}[core] fsmonitor = x\n",
        "[core]bare[core]",
        "[core\n",
        "[core \"a\n\"]\n",
        "\u{b}[core]\n",
    ] {
        assert!(!passes(FRESH, text), "{text:?}");
    }
    assert!(passes(FRESH, "[core]\n\tbare = false # fsmonitor = x\n"));
    assert!(passes(FRESH, "[core]\n\tbare = \"fsmonitor = x\"\n"));
}

#[test]
fn the_context_decides_about_working_trees() {
    let inside = |path: &[u8]| path == b"../../../sub";
    let context = ConfigContext::new().with_worktree(&inside);
    let judge = |text: &str| judge(b"", text.as_bytes(), &context);
    assert!(judge("[core]\n\tworktree = ../../../sub\n").is_ok());
    assert!(judge("[core]\n\tworktree = /elsewhere\n").is_err());
}
