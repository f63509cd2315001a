// Tests pages/plans/**: its schedules.
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { useOpened } from '../support/fixture.ts'
import { until } from '../support/until.ts'
import { startConsole } from './support/console.ts'

describe('schedules in the console', () => {
  let page: Page
  const row = (name: string) => page.locator('tr', { hasText: name })
  const button = (name: string) => page.getByRole('button', { name })
  const stored = async (name: string) =>
    (await pages.product.call('GET', `/plans/schedules/${name}`)).body as Record<string, unknown>

  const pages = useOpened(startConsole)
  before(async () => {
    page = await pages.open('/plans?tab=schedules')
  })
  afterEach(() => pages.expectNoFaults())

  it('a new one is shown with its next five times, in its own zone', async () => {
    await page.getByText('No schedule yet').waitFor()
    await button('Make the first schedule').click()
    await page.locator('#new-schedule input:focus').waitFor()
    await page.getByLabel('Time zone').fill('Pacific/Kiritimati')
    await button('Set the schedule').click()
    await row('nightly')
      .getByText(/\w+, \w+ \d+, 03:00 AM/)
      .first()
      .waitFor()
    await row('nightly').getByText('Pacific/Kiritimati', { exact: true }).waitFor()
    const shown = await row('nightly').locator('time').all()
    const times = await Promise.all(shown.map((each) => each.getAttribute('datetime')))
    expect(times)
      .to.have.length(5)
      .and.deep.equal((await stored('nightly'))['next_ticks'])
    await row('nightly').getByText('No plan yet').waitFor()
  })

  it('one that is paused has no times and keeps what others have changed meanwhile, until it is resumed', async () => {
    const changed = { every_secs: 3_600, plan: { title: 'Changed', steps: [{ id: 'a', prompt: '/say hi' }] } }
    await pages.product.call('PUT', '/plans/schedules/nightly', changed)
    await button('Pause the schedule nightly').click()
    await row('nightly').locator('[data-state="paused"]').waitFor()
    expect(await stored('nightly')).to.deep.include({ ...changed, paused: true, next_ticks: [] })
    await button('Resume the schedule nightly').click()
    await row('nightly').locator('time').first().waitFor()
    expect(await stored('nightly')).to.deep.include({ ...changed, paused: false })
  })

  it('one is run at once, and its result is shown as it ends, and leads to the plan', async () => {
    await button('Run now: the schedule nightly').click()
    const last = row('nightly').getByRole('link')
    await last.locator('[data-state="done"]').waitFor()
    await last.click()
    await page.locator('.page-head [data-state="done"]').waitFor()
    await page.goBack()
  })

  it('one is deleted after a question that names it', async () => {
    await button('Delete the schedule nightly').click()
    const dialog = page.getByRole('dialog', { name: 'Delete the schedule nightly?' })
    await dialog.getByRole('button', { name: 'Back' }).click()
    expect(await stored('nightly')).to.include({ name: 'nightly' })
    await button('Delete the schedule nightly').click()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await until(async () => (await row('nightly').count()) === 0, { what: 'the row to go' })
    expect(await stored('nightly')).not.to.have.property('name')
  })
})
