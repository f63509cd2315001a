// Tests pages/usage/**, pages/activity/**, pages/settings/** and parts/markdown/**: what they show, and that they can be read and used, with the keyboard alone, too.
import { buffer } from 'node:stream/consumers'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { readable } from '../../shared/reading/hidden.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'
import { findingsOf, isTooWide, loadedBy } from './support/axe.ts'
import { type ConsoleUnderTest, startConsole } from './support/console.ts'
import { cutOff, focused, tabTo, walk } from './support/keyboard.ts'
import { storeUsage } from './support/many-runs.ts'
import { HOSTILE, PAGES, tellStory } from './support/story.ts'
import { goTo } from './support/two-people.ts'

/** Pages without anything to show, in a new store. */
const EMPTY = [
  ...[
    '/chat',
    '/approvals',
    '/approvals?tab=decided',
    '/approvals?tab=remembered',
    '/approvals?tab=programs',
    '/flows',
  ],
  ...['/plans', '/plans?tab=schedules', '/activity', '/settings?tab=webhooks', '/settings?tab=changes'],
] as const

/** What lies over a page or takes the place of its buttons: where it is opened, and by what. */
const OPENED = [
  ['/', 'Go to …', 'dialog .palette'],
  ['/', 'Copy as', 'dialog pre'],
  ['/', 't_default', '.menu .facts'],
  ['/chat/story', 'Delete this conversation', 'dialog'],
  ['/approvals', 'Change first …', '.ask textarea'],
  ['/approvals', 'Deny …', '.ask form'],
  ['/plans?tab=schedules', 'Delete the schedule nightly …', 'dialog'],
] as const

describe('every page of the console', function () {
  this.timeout(120_000)
  const dataDir = useTempFolder()
  let pages: ConsoleUnderTest
  let page: Page
  /** The findings on all pages, made in one pass. */
  const found = {
    light: [] as string[],
    dark: [] as string[],
    tooWide: [] as string[],
    zoomed: [] as string[],
    keys: [] as string[],
    moving: [] as string[],
    elements: [] as string[],
    hidden: [] as string[],
  }

  before(async () => {
    await storeUsage(dataDir.path, USED)
    pages = await startConsole({ env: { DATA_DIR: dataDir.path } })
    page = await pages.open('/')
    for (const path of EMPTY) await lookAtEmpty(path)
    const { runId, planId } = await tellStory(pages)
    const counted = async () =>
      JSON.stringify((await pages.product.call('GET', '/usage?by=kind')).body).includes('"step"')
    await until(counted, { what: 'the usage of the runs' })
    const own = [
      [`/activity/${runId}`, '.waterfall [data-kind="permission"]'],
      [`/plans/${planId}`, '.waves .node'],
      [`/plans/${planId}?view=time`, '.gantt li'],
      ['/usage?by=model,customer&measure=p95&span=30d', '.chart .part'],
    ] as const
    for (const each of [...PAGES, ...own]) await look(...each)
    await page.setViewportSize({ width: 1_280, height: 800 })
  })
  after(() => pages?.close())

  /** A list without anything is a state of its own. */
  async function lookAtEmpty(path: string): Promise<void> {
    await goTo(page, pages.at(path))
    await page.locator('#page .empty').first().waitFor()
    found.light.push(...(await findingsOf(page)).map((finding) => `${path}, empty: ${finding}`))
  }

  async function look(path: string, shown: string): Promise<void> {
    await page.setViewportSize({ width: 1_280, height: 800 })
    await page.goto(pages.at(path))
    await page.locator(shown).first().waitFor()
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      // Only colours differ between the schemes.
      const rules = colorScheme === 'dark' ? ['color-contrast'] : undefined
      const first = await findingsOf(page, rules)
      // A finding while a page is still being drawn is gone the second time.
      const lasting = first.length === 0 ? [] : await findingsOf(page, rules)
      found[colorScheme].push(...lasting.map((finding) => `${path} ${finding}`))
    }
    if ((await page.evaluate<number>('document.getAnimations().length')) > 0) found.moving.push(path)
    for (const width of [390, 2_560]) {
      await page.setViewportSize({ width, height: 900 })
      if (await isTooWide(page)) found.tooWide.push(`${path} at ${width} px`)
    }
    // What 1,280 px show at a zoom of 200 %.
    await page.setViewportSize({ width: 640, height: 400 })
    found.zoomed.push(...(await cutOff(page)).map((cut) => `${path} ${cut}`))
    if (await isTooWide(page)) found.zoomed.push(`${path} is too wide`)
    found.keys.push(...(await walk(page)).map((fault) => `${path} ${fault}`))
    found.elements.push(...(await loadedBy(page)).map((element) => `${path} ${element}`))
    found.hidden.push(...(await page.evaluate<string[]>(HIDDEN_TEXTS)).map((text) => `${path} ${JSON.stringify(text)}`))
  }

  for (const [path, opener, opened] of OPENED)
    it(`${opener} opens by the keyboard, Escape closes it, and the focus is back`, async () => {
      await page.goto(pages.at(path))
      await page.locator('#page .page-head, #page .conversation-head').first().waitFor()
      await tabTo(page, opener)
      await page.keyboard.press('Enter')
      await page.locator(opened).first().waitFor()
      expect(await findingsOf(page)).to.deep.equal([])
      await page.keyboard.press('Escape')
      await page.locator(opened).first().waitFor({ state: 'detached' })
      expect(await focused(page)).to.satisfy((name: string) => name.startsWith(opener), await focused(page))
    })

  it('shows the texts of models, tools and tenants as text, and loads nothing that they point to', async () => {
    pages.expectNoFaults()
    expect(found.elements).to.deep.equal([])
    await page.goto(pages.at('/chat/story'))
    const exchange = page.locator('.exchange').first()
    const hostile = [HOSTILE[0], HOSTILE[1], HOSTILE[4], HOSTILE[7]].map(readable)
    const isShown = async () => (await exchange.innerText()).includes(hostile.at(-1) ?? '')
    await until(isShown, { what: 'the last of the texts' })
    const text = await exchange.innerText()
    for (const each of hostile) expect(text).to.include(each)
  })

  it('P24: nothing in a text or a name on them is hidden', () => expect(found.hidden).to.deep.equal([]))

  it('a run has a waterfall of its turns, tools and waits for permissions, and one that goes on has it as far as it is', async () => {
    const { runs } = (await pages.product.call('GET', '/runs?status=waiting')).body as { runs: { run_id: string }[] }
    const waiting = runs[0]?.run_id ?? ''
    await page.goto(pages.at(`/activity/${waiting}`))
    const line = (kind: string) => page.locator(`.waterfall [data-kind="${kind}"]`)
    await line('permission').waitFor()
    expect(await line('turn').innerText()).to.match(/^Turn 1\n[^]* …$/)
    expect(await line('permission').innerText()).to.match(/^Permission for Write\n[^]* …$/)
    await pages.product.call('DELETE', `/runs/${waiting}`)
    await page.locator('.page-head [data-state="cancelled"]').waitFor()
    await until(async () => !(await line('permission').innerText()).includes('…'), { what: 'the end of the wait' })
  })

  it('D43.3: the days for which files are kept are a field of the settings, and a number that cannot be is refused there', async () => {
    const stored = async () => {
      const { body } = await pages.product.call('GET', '/config/engine')
      return (body as { files: { retention_days: number } }).files.retention_days
    }
    await page.goto(pages.at('/settings?tab=routing'))
    const save = async (days: string) => {
      await page.getByLabel('Days of files', { exact: true }).fill(days)
      const answered = page.waitForResponse((response) => response.request().method() === 'PUT')
      await page.getByRole('button', { name: 'Save', exact: true }).click()
      return (await answered).status()
    }
    expect([await save('7'), await stored()]).to.deep.equal([200, 7])
    expect([await save('366'), await stored()]).to.deep.equal([400, 7])
    await page.getByRole('alert').getByText(/365/).waitFor()
  })

  it('D56: the second model of a role, which of the two is called first, and a second request are fields of the routing', async () => {
    const routing = async () => {
      const { body } = await pages.product.call('GET', '/config/engine')
      return (body as { routing: Record<string, object> }).routing['plan']
    }
    const { model } = pages.product
    await pages.product.call('PUT', '/config/instances/second', { type: 'openai-compatible', url: model.url })
    await page.goto(pages.at('/settings?tab=routing'))
    const field = (label: string) => page.getByLabel(label, { exact: true })
    await field('Provider of plan').selectOption('second')
    await field('Model of plan').fill('one')
    await page.getByText('Second model of plan, and late answers').click()
    await field('Second provider of plan').selectOption('second')
    await field('Second model of plan').fill('two')
    await page.getByRole('radio', { name: /The one for which fewer calls wait/ }).check()
    await page.getByRole('checkbox', { name: /a second request goes out/ }).check()
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    const route = { instance: 'second', model: 'one', fallback_instance: 'second', fallback_model: 'two' }
    await until(async () => (await routing()) !== undefined, { what: 'the routing to be saved' })
    expect(await routing()).to.deep.equal({ ...route, strategy: 'least_waiting', hedge: true })
    await page.reload()
    expect(await page.getByRole('radio', { name: /fewer calls wait/ }).isChecked()).to.equal(true)
    await field('Second provider of plan').selectOption('')
    expect(await page.getByRole('radio').count()).to.equal(0)
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await until(async () => !Object.hasOwn((await routing()) ?? {}, 'strategy'), {
      what: 'the order to go with the second model',
    })
    expect(await routing()).to.deep.equal({ instance: 'second', model: 'one', hedge: true })
  })

  it('usage has a bar for each of seven days (UTC), its figure beside the week before, a budget, and leads to its runs', async () => {
    await pages.product.call('PUT', '/config/limits', { usd_per_day: 3 })
    const usage = await pages.open('/usage?measure=cost', { timezoneId: 'Pacific/Kiritimati' })
    await usage.getByText('▲ 25 % against $4.00 in the 7 days before').waitFor()
    await usage.getByText('budget of a day: $3.00').waitFor()
    await usage.getByText(/of a budget of \$(84|87|90|93)\.00/).waitFor()
    const bars = usage.locator('.chart .bar')
    const today = new Intl.DateTimeFormat('en-US', { day: 'numeric', month: 'short', timeZone: 'UTC' }).format()
    expect([await bars.count(), await bars.last().locator('.all').getAttribute('aria-label')]).to.deep.equal([
      ...[7, `${today}: $0`],
    ])
    await usage.getByRole('button', { name: 'Failures' }).click()
    await usage.getByRole('combobox', { name: 'and' }).selectOption('customer')
    const row = usage.getByRole('link', { name: 'large · c-1' })
    await row.waitFor()
    const [saved] = await Promise.all([
      usage.waitForEvent('download'),
      usage.getByRole('button', { name: 'Save as CSV' }).click(),
    ])
    const text = (await buffer(await saved.createReadStream())).toString()
    expect(text).to.match(/^"bucket","model","customer","runs",.*\r\n"[^"]*","large","c-1",1,1,/)
    await row.click()
    await usage.waitForURL(/activity\?model=large&customer_id=c-1&status=failed&since=/)
    await usage.goBack()
    await bars.nth(1).locator('.part').first().click()
    await usage.waitForURL(/activity\?model=large&customer_id=c-1&status=failed&since=.*&until=/)
    await usage.context().close()
  })

  it('the names of steps are cut by their width, within their boxes', async () => {
    const wide = ['W'.repeat(200), '字'.repeat(200), '\u0635\ufdfa'.repeat(60)]
    const steps = wide.map((title, i) => ({ id: `s${i}`, title, prompt: '/say a' }))
    const { body } = await pages.product.call('POST', '/plans/submit', { title: 'wide', steps })
    await page.goto(pages.at(`/plans/${(body as { id: string }).id}`))
    await page.locator('.waves .node').nth(2).waitFor()
    const sides = await page.evaluate<[number, number][]>(
      `Array.from(document.querySelectorAll('.waves .node'), (node) => [node.querySelector('.name').getBoundingClientRect().right, node.querySelector('.box').getBoundingClientRect().right])`,
    )
    for (const [name, box] of sides) expect(name).to.be.at.most(box)
  })

  it('has no serious finding of axe in the light scheme', () => expect(found.light).to.deep.equal([]))

  it('has no serious finding of axe in the dark scheme', () => expect(found.dark).to.deep.equal([]))

  it('fits a screen of 390 px, and one of 2,560 px', () => expect(found.tooWide).to.deep.equal([]))

  it('shows all of it at a zoom of 200 %, without scrolling sideways', () => expect(found.zoomed).to.deep.equal([]))

  it('is used with the keyboard alone: Tab leads to everything and out again, and what has the focus is seen', () =>
    expect(found.keys).to.deep.equal([]))

  it('moves nothing for a reader who wants no motion', () => expect(found.moving).to.deep.equal([]))
})

/** What runs have used, by day: the last day is today, and seven of them are the week that is shown. */
const USED = [
  [{ cost_usd: 4 }],
  ...[[], [], [], [], []],
  [{ cost_usd: 3, model: 'large', customer: 'c-1', hasFailed: true }, { cost_usd: 2 }],
  ...[[], [], [], [], []],
]

/** The texts and names of the page that hold something that its reader does not see. */
const HIDDEN_TEXTS = `{
  const HIDDEN = ${String(/[\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\u3164\ufeff]/)}
  const texts = document.evaluate('//text()', document.body, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE)
  const names = Array.from(document.querySelectorAll('[title], [aria-label]'), (each) => each.title + each.ariaLabel)
  Array.from({ length: texts.snapshotLength }, (_, i) => texts.snapshotItem(i).data).concat(names).filter((text) => HIDDEN.test(text))
}`
