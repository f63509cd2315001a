import { readdirSync, readFileSync } from 'node:fs'
import { until } from './until.ts'

/** Resolves when every thread of a process that was sent SIGSTOP has stopped: until then it may answer a request. */
export const suspended = (pid: number): Promise<unknown> =>
  until(() => readdirSync(`/proc/${pid}/task`).every((thread) => isStopped(pid, thread)), {
    what: `process ${pid} to stop`,
    everyMs: 1,
  })

function isStopped(pid: number, thread: string): boolean {
  try {
    return /^\d+ \(.*\) T/s.test(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8'))
  } catch {
    return true // The thread has ended.
  }
}
