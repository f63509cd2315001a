import type { Page } from 'playwright-core'

/** A task that takes longer keeps the page from its reader. */
export const LONGEST_MS = 100

/**
 * Records the tasks of a page. The returned function ends that and gives their CPU times in ms: how long a task takes by
 * the clock depends on what else the machine does.
 */
export async function traceTasks(page: Page): Promise<() => Promise<number[]>> {
  const browser = page.context().browser()
  if (!browser) throw new Error('the page has no browser')
  await browser.startTracing(page, { categories: ['disabled-by-default-devtools.timeline'] })
  return async () => {
    const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] }
    return traceEvents.flatMap(({ name, tdur }) => (name === 'RunTask' && tdur !== undefined ? tdur / 1_000 : []))
  }
}

type TraceEvent = { name: string; tdur?: number }
