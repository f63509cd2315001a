// Tests parts/window.ts and parts/more.tsx, too.
import { rm } from 'node:fs/promises'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { CuttingProxy } from '../support/cutting-proxy.ts'
import { until } from '../support/until.ts'
import { type ConsoleUnderTest, startConsole } from './support/console.ts'
import { storeRuns } from './support/many-runs.ts'
import { LONGEST_MS, traceTasks } from './support/tasks.ts'

const ROWS = 10_000
/** Some screens of a list, and not the list. */
const MOST_DRAWN = 200

describe('long streams and lists in the console', function () {
  this.timeout(120_000)
  let dataDir: string
  let pages: ConsoleUnderTest
  let proxy: CuttingProxy

  before(async () => {
    dataDir = await storeRuns(ROWS)
    pages = await startConsole({ env: { MODEL: 'test-model', DATA_DIR: dataDir } })
    proxy = await CuttingProxy.open(Number(new URL(pages.origin).port), {})
    pages.allow(`http://127.0.0.1:${proxy.port}`)
  })
  after(async () => {
    proxy?.close()
    await pages?.close()
    await rm(dataDir, { recursive: true, force: true })
  })
  afterEach(() => pages.expectNoFaults())

  async function send(page: Page, prompt: string): Promise<void> {
    await page.getByLabel('Message').fill(prompt)
    await page.getByRole('button', { name: 'Send' }).click()
  }

  it('a stream of 5,000 events keeps the page from its reader for at most 100 ms at a time', async () => {
    const words = Array.from({ length: 5_000 }, (_, i) => `word${i} ${i % 40 === 39 ? '\n\n' : ''}`)
    pages.product.model.answer([{ text: words }])
    const page = await pages.open('/chat?new=1')
    await page.getByLabel('Message').waitFor()
    const tasksOf = await traceTasks(page)
    await send(page, 'a long answer')
    await page.getByText('word4999').waitFor()
    await page.getByText('first token').waitFor()
    const tasks = await tasksOf()
    expect(tasks.length).to.be.above(100)
    expect(tasks.filter((ms) => ms > LONGEST_MS)).to.deep.equal([])
  })

  it('a stream that is cut five times is whole, with each event once, and the page says that it connects again', async () => {
    const words = Array.from({ length: 300 }, (_, i) => `word${i} `)
    const steps = Array.from({ length: 6 }, () => Promise.withResolvers<void>())
    pages.product.model.answer(
      steps.flatMap(({ promise }, i) => [{ text: words.slice(i * 50, (i + 1) * 50) }, { hold: promise }]),
    )
    const page = await pages.open('/')
    await page.goto(`http://127.0.0.1:${proxy.port}/console/chat?new=1`)
    await page.locator('.live.live').waitFor()
    await page.evaluate(WATCH_CONNECTION)
    await send(page, 'cut this')
    for (const [i, { resolve }] of steps.entries()) {
      await page.getByText(`word${i * 50 + 49}`).waitFor()
      if (i < 5) await cut(page)
      resolve()
    }
    const answer = page.locator('.exchange .answer')
    expect((await answer.innerText()).split(/\s+/).filter(Boolean)).to.deep.equal(words.map((word) => word.trim()))
    await page.getByRole('button', { name: 'Events' }).click()
    await page.getByLabel('Filter by name').fill('text_delta')
    const ids = await page.locator('.event-lines li .number').allInnerTexts()
    expect(new Set(ids).size).to.equal(ids.length)
  })

  it('a list of 10,000 runs is shown page by page, and scrolls with few rows drawn and no task above 100 ms', async () => {
    const page = await pages.open('/activity?subject=somebody')
    const runs = page.locator('.runs [data-block] tr')
    await runs.first().waitFor()
    while (await page.evaluate<boolean>(SHOW_MORE)) continue
    expect(Number(await page.locator('.runs').getAttribute('aria-rowcount'))).to.equal(ROWS + 1)
    const tasksOf = await traceTasks(page)
    const screens = await page.evaluate<Screen[]>(SCROLL)
    const tasks = await tasksOf()
    expect(tasks.length).to.be.above(100)
    expect(tasks.filter((ms) => ms > LONGEST_MS)).to.deep.equal([])
    for (const { drawn, seen } of screens) {
      expect(drawn).to.be.below(MOST_DRAWN)
      expect(seen, 'rows on the screen').to.be.above(10)
    }
    const reached = screens.map(({ from }) => from)
    expect(reached).to.deep.equal(reached.toSorted((a, b) => a - b))
    await page.getByRole('link', { name: 'Run number 9999', exact: true }).waitFor()
    await page.locator('#page').press('Home')
    await page.getByRole('link', { name: 'Run number 1', exact: true }).waitFor()
  })

  it('a list keeps its reader at the place when the next page is shown, and the row with the focus when it is scrolled away', async () => {
    const page = await pages.open('/activity?subject=somebody')
    const link = (name: string) => page.getByRole('link', { name, exact: true })
    await page.getByRole('button', { name: 'Show more' }).scrollIntoViewIfNeeded()
    await link('Run number 48').waitFor()
    const before = await link('Run number 48').boundingBox()
    await page.getByRole('button', { name: 'Show more' }).press('Enter')
    await page.locator('.runs[aria-rowcount="151"]').waitFor()
    expect(await link('Run number 48').boundingBox()).to.deep.equal(before)
    await page.locator('a:focus', { hasText: 'Run number 50' }).waitFor()
    expect(await page.evaluate(`document.activeElement.closest('tr').ariaRowIndex`)).to.equal('52')
    await page.evaluate(`document.querySelector('#page').scrollTop = 1e6`)
    await link('Run number 148').waitFor()
    await page.keyboard.press('Tab')
    await page.locator('a:focus', { hasText: 'Run number 51' }).waitFor()
  })

  /** Breaks all connections, and waits until the page has said so and has a new one for the tenant's events. */
  async function cut(page: Page): Promise<void> {
    const before = await page.evaluate<number>('globalThis.resumed')
    proxy.cutAll()
    await until(async () => (await page.evaluate<number>('globalThis.resumed')) > before, {
      what: 'the page to notice',
    })
    await page.locator('.live.live').waitFor()
  }
})

/** Counts how often the page has said that it connects again. */
const WATCH_CONNECTION = `{
  globalThis.resumed = 0
  const dot = document.querySelector('.live')
  new MutationObserver(() => globalThis.resumed += dot.className === 'live resuming')
    .observe(dot, { attributeFilter: ['class'] })
}`

type Screen = {
  /** Rows in the document, and on the screen. */
  drawn: number
  seen: number
  /** The number of the first row on the screen. */
  from: number
}

/** Asks for the next page, and waits until it is shown. Returns whether there is another one. */
const SHOW_MORE = `new Promise((resolve) => {
  const button = () => [...document.querySelectorAll('button')].find(({ textContent }) => textContent === 'Show more')
  const observer = new MutationObserver(() => {
    observer.disconnect()
    requestAnimationFrame(() => resolve(button() !== undefined))
  })
  observer.observe(document.querySelector('.runs'), { attributeFilter: ['aria-rowcount'] })
  button().click()
})`

/** Scrolls from the top to the end in 40 jumps, and looks at the page after each as it is painted. */
const SCROLL = `(async () => {
  const frame = () => new Promise(requestAnimationFrame)
  const list = document.querySelector('#page')
  const look = () => {
    const rows = [...document.querySelectorAll('.runs [data-block] tr')]
    const seen = rows.filter((row) => {
      const { top, bottom } = row.getBoundingClientRect()
      return bottom > 0 && top < innerHeight
    })
    return { drawn: rows.length, seen: seen.length, from: Number(seen[0]?.ariaRowIndex) }
  }
  const screens = []
  for (let jump = 0; jump <= 40; jump++) {
    list.scrollTop = (list.scrollHeight * jump) / 40
    await frame()
    await frame()
    screens.push(look())
  }
  list.scrollTop = list.scrollHeight
  await frame()
  return screens
})()`
