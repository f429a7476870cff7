//! Functions reached through the namespaces that hold them, and what a few lines look for.

mod judging;

use judging::{all_safe, is_unsafe};

#[test]
fn names_looked_up_in_namespaces_are_found() {
    let name = "obfuscated-name";
    for code in [
        "import os\nos.__dict__.get('sys' + 'tem')('id')",
        "import os\nlookup = vars(os).get\nlookup('system')('id')",
        "import os\ndict.__getitem__(os.__dict__, 'system')('id')",
        "import os\ndict.pop(os.__dict__, 'system')('id')",
        "import os\nos.__dict__.get('none', os.system)('id')",
        "import os\nglobals()['run'] = os.system\nrun('id')",
        "import os\nspace = locals()\nspace['run'] = os.system\nspace['run']('id')",
        "import os\nos.__dict__['run'] = os.system\nos.run('id')",
        "import os\nsetattr(os, 'run', os.system)\nos.run('id')",
        "__builtins__.get('eval')(input())",
        "import runpy\ntype(runpy).__getattribute__(runpy, 'run_path')('/tmp/x')",
    ] {
        is_unsafe("python", code, name);
    }
    all_safe(
        "python",
        &[
            "import os\nos.environ.get('HOME')",
            "names = {}\nnames.get('system')",
            "import operator\nsorted(rows, key=operator.itemgetter('name'))",
            "globals()['version'] = '1.0'\nprint(version)",
            "from cache import store\nstore.get('system', None)",
        ],
    );
}

#[test]
fn modules_that_others_hold_are_found() {
    is_unsafe("python", "tool.os.popen('id').read()", "exec-process");
    is_unsafe("python", "things[0].os.system('rm -rf /')", "destroy-files");
    is_unsafe("python", "sorted(values, key=eval)", "code-dynamic");
    is_unsafe(
        "python",
        "import os\n[run := os.system for _ in (1,)]\nrun('rm -rf /')",
        "destroy-files",
    );
    all_safe(
        "python",
        &[
            "print(tool.os.path.join('a', 'b'))",
            "sorted(values, key=len)",
            "print([size := 3 for _ in (1,)], size)",
        ],
    );
}

#[test]
fn rungs_fetched_by_name_are_found() {
    let gadget = "sandbox-gadget";
    is_unsafe("python", "f.__getattribute__('__class__')", gadget);
    is_unsafe("python", "getattr((), '__class__')", gadget);
    is_unsafe("python", "import sys\nsys._getframe().f_builtins", gadget);
    all_safe(
        "python",
        &[
            "getattr(item, '__class__').__name__",
            "object.__getattribute__(self, 'name')",
        ],
    );
}

#[test]
fn functions_get_what_their_threads_are_given() {
    let scan = "from socket import socket\nfrom threading import Thread\ndef scan(host, port):\n    \
                socket().connect_ex((host, port))\nfor port in range(20, 100):\n    \
                Thread(target=scan, args=('db.example', port)).start()\n";
    is_unsafe("python", scan, "system-survey");
    let pooled = "import subprocess\ndef run(words):\n    subprocess.run(words)\n\
                  pool.submit(run, ['rm', '-rf', '/'])\n";
    is_unsafe("python", pooled, "destroy-files");
    all_safe(
        "python",
        &[
            "from threading import Thread\ndef work(n):\n    print(n)\nThread(target=work, args=(1,)).start()\n",
        ],
    );
}

#[test]
fn what_a_few_lines_look_for_is_found() {
    let reads = "credential-read";
    is_unsafe(
        "python",
        "import os\nfor k, v in os.environ.items():\n    if 'SECRET' in k or 'TOKEN' in k:\n        print(k, v)\n",
        reads,
    );
    is_unsafe(
        "javascript",
        "Object.keys(process.env).filter((k) => /token|secret/i.test(k)).forEach(show)",
        reads,
    );
    is_unsafe("python", "open('../../../../etc/shadow')", reads);
    is_unsafe("python", "open('../../etc/passwd').read()", "account-read");
    is_unsafe(
        "python",
        "import subprocess\nsubprocess.run(['cat', '/etc/passwd'])",
        "exec-process",
    );
    is_unsafe(
        "python",
        "with open('/tmp/x.py', 'w') as f:\n    f.write('import shutil; shutil.rmtree(\"/\")')",
        "destroy-files",
    );
    all_safe(
        "python",
        &[
            "import os\nfor k, v in os.environ.items():\n    print(k, v)\n",
            "import os\nprint(os.environ['TOKEN'], os.environ['SECRET'])\n",
            "open('../../etc/config.ini')",
            "with open('x.py', 'w') as f:\n    f.write('print(1)')",
        ],
    );
}

#[test]
fn code_with_an_unknown_alternative_is_found() {
    is_unsafe("javascript", "eval(source ?? '')", "code-dynamic");
    is_unsafe(
        "javascript",
        "require('child_process').spawnSync('sh', ['-lc', 'id'])",
        "exec-process",
    );
    all_safe("javascript", &["const name = source ?? ''\nprint(name)"]);
}
