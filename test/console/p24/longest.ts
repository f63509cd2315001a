import type { Page } from 'playwright-core'
import type { Guarantee } from '../../harness/guarantee.ts'
import { traceTasks } from '../support/tasks.ts'

const MOST_MS = 100

/** The longest task of the page while something is done in it, in ms of CPU time. */
export async function longestOf(page: Page, act: () => Promise<unknown>): Promise<number> {
  const tasksOf = await traceTasks(page)
  await act()
  await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 300)))')
  return Math.max(...(await tasksOf()).map(({ ms }) => ms))
}

export const longest = (title: string, ms: number, detail = ''): Guarantee => ({
  ...{ title: `longest task: ${title}`, value: ms, unit: ' ms', goal: { atMost: MOST_MS } },
  ...(detail !== '' && { detail }),
})
