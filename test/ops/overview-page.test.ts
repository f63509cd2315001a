import { expect } from 'chai'
import type { Page } from 'playwright-core'
import type { Overview as Shown } from '../../services/console/base/overview.ts'
import type { Overview } from '../../services/ops/overview.ts'
import { findingsOf, isTooWide } from '../console/support/axe.ts'
import { startConsole } from '../console/support/console.ts'
import { useOpened } from '../support/fixture.ts'
import { useMongo } from '../support/mongo.ts'
import { startMembers } from '../support/product.ts'
import { until } from '../support/until.ts'

/** The page reads what the listener answers: their types are of two programs that do not know each other. */
const shownOf = (overview: Overview): Shown => overview

describe('the page of the ops listener of a cluster', () => {
  const mongo = useMongo()
  let page: Page
  /** That of a process that knows the tenants, a gateway. */
  let ops = ''

  const section = (title: string) => page.getByRole('region', { name: title })
  const read = async () => shownOf((await (await fetch(ops)).json()) as Overview)

  const pages = useOpened(() => startConsole({ start: startMembers, env: mongo.env }))
  before(async () => {
    const { opsUrls, call, stream } = pages.product
    for (const url of opsUrls) {
      pages.allow(url)
      if ((await fetch(`${url}/tenants`)).ok) ops = url
    }
    await (await pages.product.run({ prompt: '/fail timeout' })).all()
    await call('POST', '/sessions', { session_id: 'waits' })
    const waiting = await stream('/sessions/waits/messages', { prompt: '/tool Write {"path": "a", "content": "b"}' })
    await waiting.until('permission_request')
    page = await pages.open('/')
    await page.goto(ops)
    await section('Processes').waitFor()
  })
  afterEach(() => pages.expectNoFaults())

  it('D21.3: shows each process with its load, the queues and the tenants', async () => {
    expect(await section('Processes').locator('tbody tr').count()).to.equal(pages.product.opsUrls.length)
    expect(await section('Processes').locator('[data-state="active"]').count()).to.equal(pages.product.opsUrls.length)
    await section('Processes').getByText('1 of 256').waitFor()
    await section('Queues').getByText('Plans').waitFor()
    await section('Tenants by spend today (UTC)').getByText('1 live, 1 waiting').waitFor()
    const { members, queues, tenants } = await read()
    expect([members?.length, queues?.length, tenants?.count]).to.deep.equal([pages.product.opsUrls.length, 4, 1])
  })

  /** Is what a browser does when somebody looks at the page again, which then asks at once. */
  const lookAgain = () => page.evaluate('document.dispatchEvent(new Event("visibilitychange"))')

  it('is read again by itself, without a reload', async () => {
    await page.evaluate('globalThis.isSamePage = true')
    await pages.product.call('DELETE', '/sessions/waits')
    await section('Processes').getByText('1 of 256').waitFor({ state: 'detached' })
    expect(await page.evaluate('globalThis.isSamePage')).to.equal(true)
  })

  it('says that the process does not answer, and keeps what was read', async () => {
    await page.route(`${ops}/`, (route) => route.abort())
    await lookAgain()
    await page.getByRole('alert').getByText('What is shown is what was read last.').waitFor()
    expect(await section('Processes').locator('tbody tr').count()).to.equal(pages.product.opsUrls.length)
    await page.unroute(`${ops}/`)
    await lookAgain()
    await until(async () => (await page.getByRole('alert').count()) === 0, { what: 'the page to go on' })
  })

  it('leads to the dashboard of the queues, the members and the tenants', async () => {
    for (const path of ['/queues', '/members', '/tenants', '/metrics']) {
      await page.locator(`a[href="${path}"]`).first().waitFor()
      expect((await fetch(ops + path)).status).to.equal(200)
    }
  })

  it('has no serious finding of axe in light and dark, and fits a screen of 390 px, and one of 2,560 px', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      const rules = colorScheme === 'dark' ? ['color-contrast'] : undefined // Only colours differ between the schemes.
      expect(await findingsOf(page, rules), colorScheme).to.deep.equal([])
    }
    for (const width of [390, 2_560]) {
      await page.setViewportSize({ width, height: 900 })
      expect(await isTooWide(page), `${width} px`).to.equal(false)
    }
  })
})
