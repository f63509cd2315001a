import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { CuttingProxy } from '../support/cutting-proxy.ts'
import { until } from '../support/until.ts'
import { type ConsoleUnderTest, startConsole } from './support/console.ts'
import { LONGEST_MS, traceTasks } from './support/tasks.ts'

/** 5,000 events that are read in one task take some 60,000 microtasks. */
const MOST_MICROTASKS = 5_000

describe('long streams in the console', function () {
  this.timeout(120_000)
  let pages: ConsoleUnderTest
  let proxy: CuttingProxy

  before(async () => {
    pages = await startConsole({ env: { MODEL: 'test-model' } })
    proxy = await CuttingProxy.open(Number(new URL(pages.origin).port), {})
    pages.allow(`http://127.0.0.1:${proxy.port}`)
  })
  after(async () => {
    proxy?.close()
    await pages?.close()
  })
  afterEach(async () => {
    pages.expectNoFaults()
    await pages.closePages()
  })

  async function send(page: Page, prompt: string): Promise<void> {
    await page.getByLabel('Message').fill(prompt)
    await page.getByRole('button', { name: 'Send' }).click()
  }

  it('a stream of 5,000 events is read and shown in parts, and the page answers its reader between them', async () => {
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
    expect(tasks.filter(({ ms, microtasks }) => ms > LONGEST_MS || microtasks > MOST_MICROTASKS)).to.deep.equal([])
  })

  it('a conversation of 1,000 messages is opened in parts, and nothing is drawn again when it stands', async () => {
    const text = 'Some **words** and `code`, with a [link](https://example.com).\n\n- one\n- two'
    const messages = Array.from({ length: 1_000 }, (_, i) => ({
      role: i % 2 ? 'assistant' : 'user',
      content: `${i} ${text}`,
    }))
    await pages.product.call('POST', '/sessions', { session_id: 'long', messages })
    const page = await pages.open('/chat?new=1')
    await page.getByLabel('Message').waitFor()
    const tasksOf = await traceTasks(page)
    await page.locator('.sessions a[href$="/chat/long"]').click()
    await until(async () => (await page.locator('.exchange').count()) === 500, { what: 'all of the conversation' })
    await page.locator('.exchange strong').last().waitFor()
    const tasks = await tasksOf()
    expect(tasks.filter(({ ms }) => ms > LONGEST_MS)).to.deep.equal([])
    expect(
      tasks.reduce((sum, { ms }) => sum + ms, 0),
      'ms in all',
    ).to.be.below(10_000)
    const changes = await page.evaluate<number>(CHANGES)
    expect(changes, 'nodes that are drawn again').to.be.below(20)
  })

  it('a stream that is cut five times is whole, with each event once, and the page says that it connects again', async () => {
    const words = Array.from({ length: 300 }, (_, i) => `word${i} `)
    const steps = Array.from({ length: 6 }, () => Promise.withResolvers<void>())
    pages.product.model.answer(
      steps.flatMap(({ promise }, i) => [{ text: words.slice(i * 50, (i + 1) * 50) }, { hold: promise }]),
    )
    const page = await pages.open('/')
    await page.goto(`http://127.0.0.1:${proxy.port}/console/chat?new=1`)
    await page.locator('.connection.live').waitFor()
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

  /** Breaks all connections, and waits until the page has said so and has a new one for the tenant's events. */
  async function cut(page: Page): Promise<void> {
    const before = await page.evaluate<number>('globalThis.resumed')
    proxy.cutAll()
    await until(async () => (await page.evaluate<number>('globalThis.resumed')) > before, {
      what: 'the page to notice',
    })
    await page.locator('.connection.live').waitFor()
  }
})

/** How many nodes of the conversation change in a second in which nothing happens. */
const CHANGES = `new Promise((resolve) => {
  let changes = 0
  new MutationObserver((found) => changes += found.length)
    .observe(document.querySelector('.exchanges'), { subtree: true, childList: true, characterData: true, attributes: true })
  setTimeout(() => resolve(changes), 1_000)
})`

/** Counts how often the page has said that it connects again. */
const WATCH_CONNECTION = `{
  globalThis.resumed = 0
  const dot = document.querySelector('.connection')
  new MutationObserver(() => globalThis.resumed += dot.className === 'connection resuming')
    .observe(dot, { attributeFilter: ['class'] })
}`
