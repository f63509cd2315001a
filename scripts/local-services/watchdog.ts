import { type ChildProcess, spawn } from 'node:child_process'

// Its input is a pipe that nobody writes to and that only this process holds open: it ends when this process does, SIGKILL
// included. By pid; while the watchdog lives the pid is the child's, because the watchdog is ended with the child.
const SCRIPT = 'read -r _; kill -KILL "$1"; [ -z "$2" ] || rm -rf -- "$2"'

/** Kills `child` when this process ends before it, however it ends, and removes the folder that was the child's alone. */
export function endWithParent(child: ChildProcess, ownDir = ''): void {
  const watchdog = spawn('sh', ['-c', SCRIPT, 'sh', String(child.pid), ownDir], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  watchdog.on('error', () => {}) // No sh: then a SIGKILL of this process leaves the child behind.
  watchdog.unref()
  child.once('exit', () => watchdog.kill('SIGKILL'))
}
