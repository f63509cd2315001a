import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

type Finding = { id: string; impact: string; nodes: { target: string[]; failureSummary: string }[] }

/** The serious findings of axe, of all its rules or of some. It is evaluated by the browser's own protocol, which the page's policy does not concern. */
export async function findingsOf(page: Page, rules?: readonly string[]): Promise<string[]> {
  await page.evaluate(axe)
  const { violations } = await page.evaluate<{ violations: Finding[] }>(
    `axe.run(document, ${JSON.stringify({ resultTypes: ['violations'], ...(rules && { runOnly: rules }) })})`,
  )
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id} ${target.join(' ')} ${failureSummary}`),
    )
}

/** What is wrong with the page as it stands, for axe and at the width of a phone. */
export async function faultsOf(page: Page): Promise<string[]> {
  const found = await findingsOf(page)
  const before = page.viewportSize()
  await page.setViewportSize({ width: 390, height: 800 })
  if (await isTooWide(page)) found.push('too wide for a phone')
  if (before) await page.setViewportSize(before)
  return found
}

/** Whether the page is wider than its window. */
export async function isTooWide(page: Page): Promise<boolean> {
  await page.evaluate(DRAWN)
  return page.evaluate<boolean>(IS_TOO_WIDE)
}

/** Resolves when the page has been drawn as it is now. */
const DRAWN =
  'new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve, 50))))'

const IS_TOO_WIDE = `[document.documentElement, document.querySelector('#page')].some((each) => each.scrollWidth > each.clientWidth)`

/** The elements that would load or run something of a text. */
export const loadedBy = (page: Page): Promise<string[]> => page.evaluate<string[]>(LOADED)

const LOADED = `Array.from(document.querySelectorAll('#page :is(img, iframe, script, object, a[href^="javascript"])'), (each) => each.outerHTML)`
