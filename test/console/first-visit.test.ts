// Tests pages/home/**, pages/chat/**, pages/plans/** and parts/run/**: what a person sees first.
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { useMongo } from '../support/mongo.ts'
import { inBothForms } from '../support/product.ts'
import { type ConsoleUnderTest, startConsole } from './support/console.ts'

inBothForms('the console, for somebody who has never seen it', (start, form) => {
  const mongo = form === 'cluster' ? useMongo() : undefined
  let pages: ConsoleUnderTest
  let page: Page

  before(async () => {
    pages = await startConsole({ start, env: { ...mongo?.env } })
  })
  after(() => pages?.close())
  afterEach(() => pages.expectNoFaults())

  it('D29a: `/` leads a browser there, and the first visit ends in a finished chat with a tool call and a permission within a minute', async () => {
    page = await pages.open()
    // In a cluster `/` is the API's.
    if (form === 'standalone') await page.goto(pages.origin)
    expect(page.url()).to.equal(pages.at('/'))
    const startedAt = performance.now()
    await page.getByRole('link', { name: 'Start the first chat' }).click()
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('button', { name: 'Allow once' }).click()
    await page.getByText('The note is in').last().waitFor()
    await page.locator('.tool [data-state="done"]').waitFor()
    expect(performance.now() - startedAt).to.be.below(60_000)
  })

  if (form === 'cluster') return // What follows is of the pages, which know no form.

  it('a reload shows the same conversation', async () => {
    const shown = () => page.locator('.exchange').allInnerTexts()
    const withoutTimes = (texts: string[]) => texts.map((text) => text.replaceAll(/\d+(\.\d+)? s\n/g, ''))
    const before = withoutTimes(await shown())
    await page.reload()
    await page.locator('.tool [data-state="done"]').waitFor()
    expect(withoutTimes(await shown())).to.deep.equal(before)
  })

  it('Home, Approvals and Activity then have the story, each at its address', async () => {
    await page.getByRole('link', { name: 'Home' }).click()
    await page.locator('[aria-label="Done lately"] [data-state="done"]').waitFor()
    await page.goto(pages.at('/approvals?tab=decided'))
    await page.locator('td [data-state="allowed"]').waitFor()
    await page.goto(pages.at('/activity?kind=message&status=done'))
    await page.locator('td.whole a').click()
    await page.getByText('The note is in').last().waitFor()
    await page.goto(pages.at('/activity?kind=flow'))
    await page.getByText('No run matches').waitFor()
  })

  it('a plan is submitted and ends, with the text of each step', async () => {
    await page.goto(pages.at('/plans/new'))
    await page.getByRole('button', { name: 'Submit' }).click()
    await page.locator('.page-head [data-state="done"]').waitFor()
    await page.locator('.waves .node').first().click()
    await page.locator('.plan-page .answer').first().waitFor()
  })

  it('names the request of a page for curl, ae and TypeScript', async () => {
    await page.goto(pages.at('/activity?status=done'))
    await page.getByRole('button', { name: 'Copy as' }).click()
    const shown = page.getByRole('dialog').locator('pre')
    await shown.first().waitFor()
    const texts = await shown.allInnerTexts()
    expect(texts).to.deep.equal([
      `curl '${pages.product.url}/runs?status=done'`,
      `ae api GET '/runs?status=done'`,
      `const engine = new AgentEngine({ url: '${pages.product.url}' })\nconst answer = await engine.raw.get('/runs', { query: {"status":"done"} })`,
    ])
  })
})
