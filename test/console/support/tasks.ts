import type { Page } from 'playwright-core'

/**
 * A task that takes longer keeps the page from its reader. 100 ms are what a page may take on a machine of its own; here other tests use
 * the same cores, which makes the same task cost up to twice the CPU time.
 */
export const LONGEST_MS = 300

/** `ms`: CPU time. `microtasks`: how many ran in it, one after the other. */
export type PageTask = { ms: number; microtasks: number }

/** Records the tasks of a page. The returned function ends that and gives them. */
export async function traceTasks(page: Page): Promise<() => Promise<PageTask[]>> {
  const browser = page.context().browser()
  if (!browser) throw new Error('the page has no browser')
  await browser.startTracing(page, { categories: ['disabled-by-default-devtools.timeline'] })
  return async () => {
    const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] }
    const tasks = traceEvents.filter(({ name }) => name === 'RunTask')
    const microtasks = traceEvents.filter(({ name }) => name === 'RunMicrotasks')
    return tasks.flatMap((task) => {
      if (task.tdur === undefined || task.dur === undefined) return []
      const end = task.ts + task.dur
      const inside = microtasks.filter(({ tid, ts }) => tid === task.tid && ts >= task.ts && ts < end)
      const counts = inside.map(({ args }) => args?.microtask_count ?? 0)
      return { ms: task.tdur / 1_000, microtasks: counts.reduce((sum, count) => sum + count, 0) }
    })
  }
}

/** `ts`, `dur`: in us, by the clock. `tdur`: of CPU time. */
type TraceEvent = {
  name: string
  tid: number
  ts: number
  dur?: number
  tdur?: number
  args?: { microtask_count?: number }
}
