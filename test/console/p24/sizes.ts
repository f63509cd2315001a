import type { Page } from 'playwright-core'
import type { Guarantee } from '../../harness/guarantee.ts'
import { makeTempFolder } from '../../support/temp-folder.ts'
import { until } from '../../support/until.ts'
import { type ConsoleUnderTest, startConsole } from '../support/console.ts'
import { SHOW_MORE, storeRuns } from '../support/many-runs.ts'
import { goTo } from '../support/two-people.ts'
import { longest, longestOf } from './longest.ts'
import { MockedAsks } from './mocked-asks.ts'

/** The longest task of each page with as much as it may have to show. */
export async function trySizes(say: (line: string) => void): Promise<Guarantee[]> {
  await using folder = await makeTempFolder()
  await storeRuns(folder.path, 10_000)
  const pages = await startConsole({ env: { MODEL: 'test-model', DATA_DIR: folder.path } })
  try {
    const guarantees: Guarantee[] = []
    for (const [title, measure] of Object.entries(SIZES)) {
      const page = await pages.open('/')
      const ms = await measure(pages, page)
      say(`${title}: ${ms.toFixed(0)} ms`)
      guarantees.push(longest(title, ms))
      await page.context().close()
    }
    pages.expectNoFaults()
    return guarantees
  } finally {
    await pages.close()
  }
}

const SIZES: Readonly<Record<string, (pages: ConsoleUnderTest, page: Page) => Promise<number>>> = {
  'Chat, a stream of 5,000 events': async (pages, page) => {
    const words = Array.from({ length: 5_000 }, (_, i) => `word${i} ${i % 40 === 39 ? '\n\n' : ''}`)
    pages.product.model.answer([{ text: words }])
    await page.goto(pages.at('/chat?new=1'))
    await page.getByLabel('Message').fill('a long answer')
    return longestOf(page, async () => {
      await page.getByRole('button', { name: 'Send' }).click()
      await page.getByText('word4999').waitFor()
    })
  },
  'Activity, a run of 5,000 events': async (pages, page) => {
    const { runs } = (await pages.product.call('GET', '/runs?limit=1')).body as { runs: { run_id: string }[] }
    return opened(page, pages.at(`/activity/${runs[0]?.run_id}`), '.waterfall [data-kind="turn"]')
  },
  'Chat, 1,000 messages': async (pages, page) => {
    const text = 'Some **words** and `code`, with a [link](https://example.com).\n\n- one\n- two'
    const messages = Array.from({ length: 1_000 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: text }))
    await pages.product.call('POST', '/sessions', { session_id: 'long', messages })
    return longestOf(page, async () => {
      await goTo(page, pages.at('/chat/long'))
      await until(async () => (await page.locator('.exchange').count()) === 500, { what: 'all of the conversation' })
      await page.locator('.exchange strong').last().waitFor()
    })
  },
  'Approvals, 500 requests': async (pages, page) => {
    const asks = await MockedAsks.in(pages, page)
    const calls = Array.from({ length: 500 }, (_, i) => ({ name: 'mcp__a__b', input: { number: i } }))
    return longestOf(page, async () => {
      await asks.open(calls)
      for (const count of [400, 500]) {
        await page.getByRole('button', { name: 'Show more' }).click()
        await until(async () => (await page.locator('.asks li').count()) === count, { what: 'the list' })
      }
    })
  },
  'Approvals, a diff of 10,000 lines': async (pages, page) => {
    const asks = await MockedAsks.in(pages, page)
    const content = Array.from({ length: 10_000 }, (_, i) => `line ${i} of the file`)
    const diff = `--- a\n+++ a\n@@ -0,0 +1 @@\n${content.map((line) => `+${line}`).join('\n')}\n`
    await asks.open([
      { name: 'a', input: {} },
      { name: 'Write', input: { path: 'a', content: content.join('\n') }, preview: { kind: 'diff', path: 'a', diff } },
    ])
    return longestOf(page, () => asks.show(1))
  },
  'Activity, 10,000 rows': (pages, page) =>
    longestOf(page, async () => {
      await goTo(page, pages.at('/activity?subject=somebody'))
      await page.locator('.runs [data-block] tr').first().waitFor()
      while (await page.evaluate<boolean>(SHOW_MORE)) continue
    }),
  'Flows, two versions that differ in 10,000 lines': async (pages, page) => {
    for (const word of ['one', 'other']) {
      const choices = Array.from({ length: 5_000 }, (_, i) => `${word} ${i}`)
      const input = { type: 'object', properties: { field: { enum: choices } } }
      await pages.product.call('PUT', '/flows/long', { ...flowOf(1), input_schema: input })
    }
    return opened(page, pages.at('/flows/long/history'), '.diff .added')
  },
  'Flows, keys in the editor with 300 fields': async (pages, page) => {
    await pages.product.call('PUT', '/flows/wide', flowOf(300))
    await page.goto(pages.at('/flows/wide/edit'))
    const field = page.getByLabel('Description of field_7', { exact: true }).first()
    await field.focus()
    return longestOf(page, () => page.keyboard.type('twenty keys in a row', { delay: 60 }))
  },
}

const flowOf = (count: number) => {
  const fields = Array.from({ length: count }, (_, i) => [`field_${i}`, { type: 'string', description: `Number ${i}` }])
  const schema = { type: 'object', properties: Object.fromEntries(fields) as object }
  return { model: 'test-model', system_prompt_template: 'a', input_schema: schema, output_schema: schema }
}

/** The longest task while a page opens. */
const opened = (page: Page, url: string, shown: string) =>
  longestOf(page, async () => {
    await goTo(page, url)
    await page.locator(shown).first().waitFor()
  })
