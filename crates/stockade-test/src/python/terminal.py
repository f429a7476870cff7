"""Runs a command on a pseudo-terminal of its own and plays a person at it.

terminal.py STEP... -- COMMAND...; everything the terminal showed goes to standard output.
Steps, in order: expect:TEXT (wait for it), send:TEXT (\\xNN and \\n are understood),
resize:ROWSxCOLS, pause (wait until the command's process is stopped), resume (send SIGCONT).
The exit code is the command's; 3 if a step was not reached within 100 seconds.
"""
import codecs, fcntl, os, pty, select, signal, struct, sys, termios, time

split = sys.argv.index('--')
steps, command = sys.argv[1:split], sys.argv[split + 1:]
deadline = time.monotonic() + 100
pid, master = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))
    os.execvp(command[0], command)
seen = b''
status = None


def fail(what):
    # Not the step itself: it may hold the token that proves a start.
    done = len(sys.argv[1:split]) - len(steps)
    sys.stdout.buffer.write(seen + f'\n[terminal: {what} at step {done}]\n'.encode())
    sys.stdout.flush()
    os.kill(pid, signal.SIGKILL)
    sys.exit(3)


def pump():
    """Reads what the terminal shows; false at its end."""
    global seen
    ready, _, _ = select.select([master], [], [], max(0, deadline - time.monotonic()))
    if not ready:
        fail('time is up')
    try:
        data = os.read(master, 65536)
    except OSError:
        data = b''
    seen += data
    return bool(data)


mark = 0
while steps:
    step = steps[0]
    kind, _, text = step.partition(':')
    if kind == 'expect':
        wanted = text.encode()
        while wanted not in seen[mark:]:
            if not pump():
                fail('the command ended')
        mark = seen.index(wanted, mark) + len(wanted)
    elif kind == 'send':
        os.write(master, codecs.decode(text, 'unicode_escape').encode('latin-1'))
    elif kind == 'resize':
        rows, columns = map(int, text.split('x'))
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
    elif kind == 'pause':
        got, state = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(state):
            fail('ended instead of stopping')
        seen += b'[stopped]'
    elif kind == 'resume':
        os.kill(pid, signal.SIGCONT)
    steps.pop(0)
while pump():
    pass
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(seen)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
