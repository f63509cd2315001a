// Tests pages/usage/**, pages/activity/**, pages/settings/** and parts/markdown/**: what they show, and that they can be read and used, with the keyboard alone, too.
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { readable } from '../../shared/reading/hidden.ts'
import { until } from '../support/until.ts'
import { findingsOf, isTooWide, loadedBy } from './support/axe.ts'
import { type ConsoleUnderTest, startConsole } from './support/console.ts'
import { cutOff, focused, tabTo, walk } from './support/keyboard.ts'
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
  ...['/plans', '/plans?tab=schedules', '/activity', '/usage', '/settings?tab=webhooks', '/settings?tab=changes'],
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
    pages = await startConsole()
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

/** The texts and names of the page that hold something that its reader does not see. */
const HIDDEN_TEXTS = `{
  const HIDDEN = ${String(/[\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\u3164\ufeff]/)}
  const texts = document.evaluate('//text()', document.body, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE)
  const names = Array.from(document.querySelectorAll('[title], [aria-label]'), (each) => each.title + each.ariaLabel)
  Array.from({ length: texts.snapshotLength }, (_, i) => texts.snapshotItem(i).data).concat(names).filter((text) => HIDDEN.test(text))
}`
