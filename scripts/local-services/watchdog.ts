import { type ChildProcess, spawn } from 'node:child_process'
import type { Writable } from 'node:stream'

// The shell reads from a pipe that only this process holds open, so that the reading ends when this process ends, SIGKILL included. It then
// kills the children that were added and have not been removed.
const SCRIPT = `
while read -r sign pid dir; do
  case $sign in
    +) eval "dir_$pid=\\$dir"; pids="$pids $pid" ;;
    -) unset "dir_$pid" ;;
  esac
done
for pid in $pids; do
  eval "[ -n \\"\\\${dir_$pid+added}\\" ] || continue; dir=\\$dir_$pid"
  kill -KILL "$pid"
  [ -z "$dir" ] || rm -rf -- "$dir"
done`

/** One shell for all children: a process is expensive to start from one that has much memory. */
let watchdog: Writable | undefined

/** Kills `child` and removes its folder when this process ends before the child, also by SIGKILL. */
export function endWithParent(child: ChildProcess, ownDir = ''): void {
  const { pid } = child
  const toldTo = (watchdog ??= startWatchdog())
  toldTo.write(`+ ${pid} ${ownDir}\n`)
  child.once('exit', () => toldTo.write(`- ${pid}\n`))
}

function startWatchdog(): Writable {
  const shell = spawn('sh', ['-c', SCRIPT], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
  shell.on('error', () => {}) // Without sh, a SIGKILL of this process leaves its children running.
  shell.unref()
  return shell.stdin.on('error', () => {})
}
