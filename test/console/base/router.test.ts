// Tests scroll.ts, too.
import { expect } from 'chai'
import type { Page, Route } from 'playwright-core'
import { useTempFolder } from '../../support/temp-folder.ts'
import { until } from '../../support/until.ts'
import { type ConsoleUnderTest, startConsole } from '../support/console.ts'
import { storeRuns } from '../support/many-runs.ts'

const AT_ROW_30 = 1_200

describe('how far a page is scrolled', function () {
  this.timeout(60_000)
  const dataDir = useTempFolder()
  let pages: ConsoleUnderTest
  let page: Page

  before(async () => {
    await storeRuns(dataDir.path, 200)
    pages = await startConsole({ env: { DATA_DIR: dataDir.path } })
  })
  after(() => pages?.close())
  beforeEach(async () => {
    page = await pages.open('/activity?subject=somebody')
    await page.locator('.runs [data-block] tr').first().waitFor()
    await page.evaluate(`document.querySelector('#page').scrollTop = ${AT_ROW_30}`)
    await expectTop(AT_ROW_30)
  })
  afterEach(async () => {
    await page.context().close()
    pages.expectNoFaults()
  })

  const topOf = () => page.evaluate<number>(`Math.round(document.querySelector('#page').scrollTop)`)
  const expectTop = async (top: number) => {
    let seen: number | undefined
    await until(async () => (seen = await topOf()) === top, { what: `the place ${top}`, lastSeen: () => seen })
  }

  it('another page begins at its top, and going back shows the place where its reader was', async () => {
    await page.getByRole('link', { name: 'Run number 31', exact: true }).click()
    await page.locator('.run-page').waitFor()
    expect(await topOf()).to.equal(0)
    await page.goBack()
    await expectTop(AT_ROW_30)
    await page.getByRole('link', { name: 'Home', exact: true }).click()
    await page.locator('.columns .home-row').first().waitFor()
    expect(await topOf()).to.equal(0)
    await page.goBack()
    await expectTop(AT_ROW_30)
    await page.goForward()
    await page.locator('.columns .home-row').first().waitFor()
    await expectTop(0)
  })

  it('a list is there at once when one comes back, with its filters and at its place, and is read again', async () => {
    await page.getByRole('link', { name: 'Run number 31', exact: true }).click()
    await page.locator('.run-page').waitFor()
    const held: Route[] = []
    await page.route(/\/runs\?/, (route) => void held.push(route))
    await page.locator('.back-link').click()
    await page.getByRole('link', { name: 'Run number 31', exact: true }).waitFor()
    await expectTop(AT_ROW_30)
    expect(page.url()).to.include('subject=somebody')
    await until(() => held.length > 0, { what: 'the list to be read again' })
  })

  it('a list is not shown as it was before a change of its reader', async () => {
    const { body } = await pages.product.call('POST', '/agent/run', {
      prompt: '/tool Write {"path": "a.txt", "content": "b"}',
      background: true,
    })
    const { run_id: id } = body as { run_id: string }
    await page.goto(pages.at('/activity?status=waiting'))
    await page.locator(`a[href$="${id}"]`).click()
    const cancelled = page.waitForResponse((response) => response.request().method() === 'DELETE')
    await page.getByRole('button', { name: /^Cancel/ }).click()
    await cancelled
    await page.route(/\/runs\?/, () => {})
    await page.locator('.back-link').click()
    await page.locator('.waiting').waitFor()
    expect(await page.locator('.runs').count()).to.equal(0)
  })

  it('a reload shows the same place', async () => {
    await page.reload()
    await expectTop(AT_ROW_30)
  })

  it('a choice on the same page leaves it where it is', async () => {
    const steps = Array.from({ length: 20 }, (_, i) => ({ id: `step-${i}`, prompt: '/say done' }))
    const plan = await pages.product.call('POST', '/plans/submit', { title: 'wide', steps })
    const { id } = plan.body as { id: string }
    await page.setViewportSize({ width: 1_280, height: 500 })
    await page.goto(pages.at(`/plans/${id}`))
    const last = page.getByRole('link', { name: 'step-19' })
    await last.scrollIntoViewIfNeeded()
    const before = await topOf()
    expect(before).to.be.above(0)
    await page.evaluate('globalThis.isSameDocument = true')
    await last.click()
    await page.waitForURL(/step=step-19/)
    await page.locator('.step-panel').waitFor()
    expect(await topOf()).to.equal(before)
    expect(await page.evaluate('globalThis.isSameDocument')).to.equal(true)
  })

  it('the first link leads past the entries to the page', async () => {
    await page.getByRole('link', { name: 'Skip to the page' }).press('Enter')
    await page.locator('#page:focus').waitFor()
  })
})
