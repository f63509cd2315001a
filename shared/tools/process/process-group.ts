import { setTimeout } from 'node:timers/promises'

const POLL_MS = 20
/** How long a killed group may take to vanish: a zombie that nobody reaps never does. */
const REAP_MS = 300

/** Ends a process group with all that still runs in it: SIGTERM, then SIGKILL for what is left after `graceMs`. */
export async function endProcessGroup(leader: number, graceMs: number): Promise<void> {
  if (!signalGroup(leader, 'SIGTERM')) return
  if (await isGone(leader, graceMs)) return
  signalGroup(leader, 'SIGKILL')
  await isGone(leader, REAP_MS)
}

async function isGone(leader: number, withinMs: number): Promise<boolean> {
  const deadline = performance.now() + withinMs
  while (signalGroup(leader, 0)) {
    if (performance.now() > deadline) return false
    await setTimeout(POLL_MS)
  }
  return true
}

/** False when nothing of the group is left. Signal 0 only asks. */
function signalGroup(leader: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-leader, signal)
  } catch {
    return false // ESRCH, or EPERM for a process that has become another user's: neither can be ended by us.
  }
}
