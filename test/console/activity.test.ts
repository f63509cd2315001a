// Tests pages/activity/**: filters, views, what is new, and what can be done with a run.
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import type { Schema } from '../../shared/client/api.ts'
import { useOpened } from '../support/fixture.ts'
import { faultsOf, isTooWide } from './support/axe.ts'
import { startConsole } from './support/console.ts'

type Run = Schema<'Run'>

describe('Activity in the console', () => {
  const pages = useOpened(startConsole)
  before(async () => {
    await run('/fail provider_auth', { team: 'red' })
    await run('/say of red', { team: 'red' })
    await run('/say of blue', { team: 'blue' })
  })
  afterEach(async () => {
    pages.expectNoFaults()
    await pages.closePages()
  })

  /** Resolves when the run has ended. */
  async function run(prompt: string, metadata: Record<string, string> = {}): Promise<string> {
    const stream = await pages.product.stream('/agent/run', { prompt, metadata })
    await stream.all()
    return stream.runId
  }

  /** Begins a run that waits for a permission. */
  async function askingRun(): Promise<string> {
    const prompt = `/tool Write ${JSON.stringify({ path: 'a.txt', content: 'b' })}`
    const stream = await pages.product.stream('/agent/run', { prompt })
    await stream.until('permission_request')
    return stream.runId
  }

  const titlesOf = (page: Page) => page.locator('.runs td.whole a').allInnerTexts()
  const chips = (page: Page) => page.getByRole('group', { name: 'Filters' })
  const menu = (page: Page, name: string) => page.locator('summary', { hasText: name })
  const expectAddress = (page: Page, query: string) => page.waitForURL(pages.at(`/activity${query}`))
  const rowsAre = (page: Page, count: number) => page.locator(`.runs[aria-rowcount="${count + 1}"]`).waitFor()

  it('each filter of the API is a chip that can be added, changed and removed, and the address has them all', async () => {
    const page = await pages.open('/activity')
    await rowsAre(page, 3)
    await menu(page, 'Add filter').click()
    const offered = await page.locator('.menu[open] button').allInnerTexts()
    const parameters = ['State', 'Kind', 'Ended as', 'Flow', 'Model', 'Started by', 'Customer', 'Session']
    const further = ['Cost at least', 'Took at least', 'Took at most', 'Started in the last', 'Started since']
    expect(offered).to.deep.equal([...parameters, ...further, 'Started before', 'Metadata'])
    await page.getByRole('button', { name: 'Metadata' }).click()
    await page.getByLabel('Name of the pair').fill('team')
    await page.getByLabel('Value of the pair').fill('red')
    expect(await faultsOf(page)).to.deep.equal([])
    await page.keyboard.press('Enter')
    await expectAddress(page, '?metadata.team=red')
    await rowsAre(page, 2)
    await menu(page, 'Add filter').click()
    await page.getByRole('button', { name: 'Took at most' }).click()
    await page.getByLabel('Took at most (s)').fill('90')
    await page.getByRole('button', { name: 'Apply' }).click()
    await expectAddress(page, '?metadata.team=red&max_ms=90000')
    await chips(page).getByText('1 min 30 s').click()
    await page.getByLabel('Took at most (s)').fill('0.5')
    await page.keyboard.press('Escape')
    await chips(page).getByText('1 min 30 s').waitFor()
    await page.getByLabel('Search').fill('OF RED')
    await page.keyboard.press('Enter')
    await rowsAre(page, 1)
    expect(await titlesOf(page)).to.deep.equal(['/say of red'])
    await page.reload()
    await rowsAre(page, 1)
    expect(await faultsOf(page)).to.deep.equal([])
    await page.getByRole('button', { name: 'Remove team' }).click()
    await page.getByRole('button', { name: 'Remove Took at most' }).click()
    await expectAddress(page, '?q=OF+RED')
    await page.getByRole('link', { name: '/say of red' }).waitFor()
    const { runs } = (await pages.product.call('GET', '/runs?q=blue')).body as { runs: Run[] }
    await page.getByLabel('Search').fill(runs[0]?.run_id ?? '')
    await page.keyboard.press('Enter')
    await page.getByRole('region', { name: 'What happened' }).getByText('of blue', { exact: true }).waitFor()
    await page.goto(pages.at('/activity?min_ms=soon'))
    await page.getByText('min_ms must be a number').waitFor()
  })

  it('a view and the columns stay after a reload, and what is new never moves what is read', async () => {
    const page = await pages.open('/activity?status=done')
    await rowsAre(page, 2)
    await menu(page, 'Views').click()
    await page.getByLabel('Name of this view').fill('All that is well')
    await page.keyboard.press('Enter')
    await menu(page, 'Columns').click()
    await page.getByLabel('Metadata').check()
    await page.getByLabel('Model').uncheck()
    expect(await faultsOf(page)).to.deep.equal([])
    await page.goto(pages.at('/activity'))
    await page.locator('.runs').getByText('team=blue').waitFor()
    expect(await page.getByRole('columnheader', { name: 'Model' }).count()).to.equal(0)
    await menu(page, 'Views').click()
    await page.getByRole('link', { name: 'All that is well' }).click()
    await expectAddress(page, '?status=done')
    await rowsAre(page, 2)
    const read = page.getByRole('link', { name: '/say of red' })
    const before = await read.boundingBox()
    await run('/say the newest')
    await page.getByRole('button', { name: '1 new run', exact: true }).waitFor()
    expect(await read.boundingBox()).to.deep.equal(before)
    await page.getByRole('button', { name: '1 new run' }).click()
    await rowsAre(page, 3)
    expect((await titlesOf(page))[0]).to.equal('/say the newest')
    await menu(page, 'Views').click()
    await page.getByRole('button', { name: 'Delete the view All that is well' }).click()
    await page.getByRole('link', { name: 'Failed today' }).click()
    await rowsAre(page, 1)
  })

  it('a run that ends while it is shown says so where it stands', async () => {
    const id = await askingRun()
    const page = await pages.open('/activity?status=waiting')
    await page.locator('.runs [data-state="waiting"]').waitFor()
    await pages.product.call('DELETE', `/runs/${id}`)
    await page.locator('.runs [data-state="cancelled"]').waitFor()
  })

  it('a failed run says why first and what to do, and runs again with one click, also changed', async () => {
    const page = await pages.open('/activity?status=failed')
    await page.locator('td.whole a').click()
    const cause = page.getByRole('region', { name: 'Why it failed' })
    await cause.getByText('The provider refused the key').waitFor()
    await cause.getByText('Check the provider').waitFor()
    await cause.getByRole('link', { name: 'Open Settings' }).waitFor()
    expect(await faultsOf(page)).to.deep.equal([])
    const failed = page.url()
    await cause.getByRole('button', { name: 'Try again' }).click()
    await page.waitForURL((url) => url.href !== failed)
    await cause.getByText('The provider refused the key').waitFor()
    await menu(page, 'More').click()
    await page.getByRole('button', { name: 'Edit and run again' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Prompt').fill('/say better')
    expect(await faultsOf(page)).to.deep.equal([])
    await dialog.getByRole('button', { name: 'Run', exact: true }).click()
    await page.getByRole('region', { name: 'What happened' }).getByText('better', { exact: true }).waitFor()
    await page.locator('.page-head [data-state="done"]').waitFor()
    const again = (await pages.product.call('GET', '/runs?q=better')).body as { runs: Run[] }
    expect(again.runs[0]?.metadata, 'with the pairs of the first').to.deep.equal({ team: 'red' })
    await page.locator('.waterfall [data-kind="model"] button').click()
    await dialog.getByText('1 part as sent').waitFor()
    expect(await dialog.locator('[data-role="user"] .compare-text').innerText()).to.equal('/say better')
  })

  it('a message that runs again is another version in its conversation', async () => {
    await pages.product.call('POST', '/sessions', { session_id: 'again' })
    for (const prompt of ['/say one', '/say two'])
      await (await pages.product.stream('/sessions/again/messages', { prompt })).all()
    const page = await pages.open('/activity?session_id=again')
    await page.getByRole('link', { name: '/say two' }).click()
    await page.locator('.waterfall [data-kind="model"] button').click()
    await page.getByRole('dialog').getByText('4 parts as sent').waitFor()
    await page.keyboard.press('Escape')
    const first = page.url()
    await page.getByRole('button', { name: 'Run again' }).click()
    await page.waitForURL((url) => url.href !== first)
    await page.locator('.page-head [data-state="done"]').waitFor()
    const { messages } = (await pages.product.call('GET', '/sessions/again/messages')).body as { messages: unknown[] }
    expect(messages).to.have.length(4)
  })

  it('two runs stand side by side with what differs marked, chosen from the page of one and from the list', async () => {
    const [one, other] = [await run('/say compare\n/say alike'), await run('/say compare\n/say unlike')]
    const page = await pages.open(`/activity/${one}`)
    await page.locator('.page-head [data-state="done"]').waitFor()
    await menu(page, 'More').click()
    await page.getByRole('link', { name: 'Compare with another run' }).click()
    const row = (id: string) => page.locator('tr', { has: page.locator(`a[href$="${id}"].lines`) })
    await row(one).getByText('Chosen').waitFor()
    await row(other).getByRole('link', { name: 'With this' }).click()
    const answer = page.getByRole('region', { name: 'Answer', exact: true })
    await answer.getByText('differs').waitFor()
    expect(await answer.locator('mark').allInnerTexts()).to.deep.equal(['alike\n', 'unlike\n'])
    expect(await page.getByRole('region', { name: 'Tool calls', exact: true }).innerText()).to.include('the same')
    expect(await faultsOf(page)).to.deep.equal([])
    await page.setViewportSize({ width: 390, height: 800 })
    expect(await isTooWide(page)).to.equal(false)
  })

  it('a replay begins ten runs, has their figures in a table, and is cancelled with all that are at work', async () => {
    const page = await pages.open(`/activity/${await run('/say replayed')}`)
    const dialog = page.getByRole('dialog')
    const start = async () => {
      await menu(page, 'More').click()
      await page.getByRole('button', { name: 'Replay 10 times' }).click()
      await dialog.getByRole('button', { name: 'Start' }).click()
    }
    await start()
    await dialog.getByText('10 of 10 runs ended: 10 done, 0 otherwise').waitFor()
    expect(await dialog.locator('tbody a').count()).to.equal(10)
    expect(await faultsOf(page)).to.deep.equal([])
    await page.goto(pages.at(`/activity/${await askingRun()}`))
    await page.getByRole('link', { name: 'Review', exact: true }).waitFor()
    await page.getByRole('button', { name: 'Cancel this run' }).click()
    await page.locator('.page-head [data-state="cancelled"]').waitFor()
    await start()
    await dialog.locator('[data-state="running"]').nth(2).waitFor()
    await dialog.getByRole('button', { name: 'Cancel the rest' }).click()
    await dialog.getByText('3 of 10 runs ended: 0 done, 3 otherwise').waitFor()
    expect(await dialog.getByText('Not begun').count()).to.equal(7)
  })
})
