import { type ChildProcess, spawn } from 'node:child_process'

// The watchdog reads from a pipe that only this process holds open, so that the read ends when this process ends, SIGKILL
// included. It kills by pid, which is safe: the watchdog is killed when the child exits, before the pid can be reused.
const SCRIPT = 'read -r _; kill -KILL "$1"; [ -z "$2" ] || rm -rf -- "$2"'

/** Kills `child` and removes its folder when this process ends before the child, also by SIGKILL. */
export function endWithParent(child: ChildProcess, ownDir = ''): void {
  const watchdog = spawn('sh', ['-c', SCRIPT, 'sh', String(child.pid), ownDir], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  watchdog.on('error', () => {}) // Without sh, a SIGKILL of this process leaves the child running.
  watchdog.unref()
  child.once('exit', () => watchdog.kill('SIGKILL'))
}
