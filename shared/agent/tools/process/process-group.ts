import { readdir, readFile } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'

const POLL_MS = 20
/** How long to wait for a killed group to end. A zombie whose parent does not reap it never ends. */
const REAP_MS = 300

/** Ends all processes of a group: SIGTERM, and after `graceMs` SIGKILL for those that are still running. */
export async function endProcessGroup(leader: number, graceMs: number): Promise<void> {
  if (!signalGroup(leader, 'SIGTERM')) return
  if (await hasEnded(leader, graceMs)) return
  signalGroup(leader, 'SIGKILL')
  await hasEnded(leader, REAP_MS)
}

async function hasEnded(leader: number, withinMs: number): Promise<boolean> {
  const deadline = performance.now() + withinMs
  while (signalGroup(leader, 0)) {
    if (performance.now() > deadline) return false
    await setTimeout(POLL_MS)
  }
  return true
}

/** Returns `false` when the group has no process left. Signal 0 only checks. */
function signalGroup(leader: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-leader, signal)
  } catch {
    return false // ESRCH, or EPERM for a process that now belongs to another user, which this process cannot end.
  }
}

const PAGE_BYTES = 4096

/** The resident memory of each process group, by its leader; empty where there is no /proc. */
export async function groupMemory(): Promise<Map<number, number>> {
  const groups = new Map<number, number>()
  const names = await readdir('/proc').catch(() => [])
  for (const name of names) {
    if (!/^\d+$/.test(name)) continue
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '') // Empty if the process has ended meanwhile.
    // proc_pid_stat(5): the fields after the name, which may contain blanks. Of all fields, the 5th is the process group, and
    // the 24th the number of resident pages.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const group = Number(fields[2])
    groups.set(group, (groups.get(group) ?? 0) + Number(fields[21]) * PAGE_BYTES)
  }
  return groups
}
