// Tests parts/more.tsx, too.
import { expect } from 'chai'
import { useTempFolder } from '../../support/temp-folder.ts'
import { type ConsoleUnderTest, startConsole } from '../support/console.ts'
import { SHOW_MORE, storeRuns } from '../support/many-runs.ts'
import { LONGEST_MS, traceTasks } from '../support/tasks.ts'

const ROWS = 3_000
/** Some screens of a list, and not the list. */
const MOST_DRAWN = 200

describe('long lists in the console', function () {
  this.timeout(120_000)
  const dataDir = useTempFolder()
  let pages: ConsoleUnderTest

  before(async () => {
    await storeRuns(dataDir.path, ROWS)
    pages = await startConsole({ env: { MODEL: 'test-model', DATA_DIR: dataDir.path } })
  })
  after(() => pages?.close())
  afterEach(async () => {
    pages.expectNoFaults()
    await pages.closePages()
  })

  it('a list of 3,000 runs is shown page by page, and scrolls with few rows drawn and no long task', async () => {
    const page = await pages.open('/activity?subject=somebody')
    const runs = page.locator('.runs [data-block] tr')
    await runs.first().waitFor()
    while (await page.evaluate<boolean>(SHOW_MORE)) continue
    expect(Number(await page.locator('.runs').getAttribute('aria-rowcount'))).to.equal(ROWS + 1)
    const tasksOf = await traceTasks(page)
    const screens = await page.evaluate<Screen[]>(SCROLL)
    const tasks = await tasksOf()
    expect(tasks.length).to.be.above(100)
    expect(tasks.filter(({ ms }) => ms > LONGEST_MS)).to.deep.equal([])
    for (const { drawn, seen } of screens) {
      expect(drawn).to.be.below(MOST_DRAWN)
      expect(seen, 'rows on the screen').to.be.above(10)
    }
    const reached = screens.map(({ from }) => from)
    expect(reached).to.deep.equal(reached.toSorted((a, b) => a - b))
    await page.getByRole('link', { name: `Run number ${ROWS - 1}`, exact: true }).waitFor()
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
})

type Screen = {
  /** Rows in the document, and on the screen. */
  drawn: number
  seen: number
  /** The number of the first row on the screen. */
  from: number
}

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
