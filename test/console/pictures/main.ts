import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { makeTempFolder } from '../../support/temp-folder.ts'
import { until } from '../../support/until.ts'
import { type ConsoleUnderTest, startConsole } from '../support/console.ts'
import { fillMonth, tellDay } from './story.ts'

const HELP = `Takes the pictures of every page of the console, in the light, in the dark and on a phone, into services/console/pictures.

  npm run console:pictures                 all of them
  npm run console:pictures -- home usage   those of these names

It takes half a minute.`

const FOLDER = new URL('../../../services/console/pictures/', import.meta.url).pathname

/** A window of 1,280 px is shown smaller, as READMEs do. */
const LOOKS = [
  { suffix: '', colorScheme: 'light', width: 1_280, height: 760, scale: 0.7 },
  { suffix: '-dark', colorScheme: 'dark', width: 1_280, height: 760, scale: 0.7 },
  { suffix: '-phone', colorScheme: 'light', width: 390, height: 760, scale: 0.8 },
] as const

type Shot = readonly [name: string, path: string, shown: string]

const FIRST: Shot = ['first-visit', '/', '.first-steps']

const shotsOf = ({ runId, failedId, planId, askId }: Awaited<ReturnType<typeof tellDay>>): readonly Shot[] => [
  ['home', '/', '.columns .home-row'],
  ['chat', '/chat/release', '.exchange .answer'],
  ['chat-new', '/chat?new=1', '.composer'],
  ['chat-failed', '/chat/refused', '.exchange [role="alert"]'],
  ['approvals', `/approvals/${askId}`, '.ask .actions > .main:enabled'],
  ['approvals-decided', '/approvals?tab=decided', 'table'],
  ['flows', '/flows', 'table'],
  ['flow-edit', '/flows/triage/edit', '[aria-label="Rendered prompts"] pre'],
  ['flow-run', '/flows/triage/run', '.page-head'],
  ['flow-batches', '/flows/triage/batches', 'table'],
  ['flow-history', '/flows/triage/history', '[aria-label="Changes"]'],
  ['plans', '/plans', 'table'],
  ['plan', `/plans/${planId}`, '.waves .node'],
  ['schedules', '/plans?tab=schedules', 'table'],
  ['activity', '/activity', 'table'],
  ['run', `/activity/${runId}`, '.waterfall [data-kind]'],
  ['run-failed', `/activity/${failedId}`, '[role="alert"]'],
  ['usage', '/usage', '.chart .bar'],
  ['models', '/settings', '.settings .card h2'],
  ['routing', '/settings?tab=routing', 'table'],
  ['limits', '/settings?tab=limits', '.form-grid'],
  ['webhooks', '/settings?tab=webhooks', '.settings .card h2'],
  ['changes', '/settings?tab=changes', '.settings li'],
]

async function main(names: readonly string[]): Promise<void> {
  await using folder = await makeTempFolder()
  await fillMonth(folder.path)
  const pages = await startConsole({ env: { DATA_DIR: folder.path } })
  try {
    const isWanted = ([name]: Shot) => names.length === 0 || names.includes(name)
    await mkdir(FOLDER, { recursive: true })
    const former = (await readdir(FOLDER)).filter((name) => name.endsWith('.webp'))
    if (names.length === 0) await Promise.all(former.map((name) => rm(FOLDER + name)))
    const page = await pages.open('/')
    if (isWanted(FIRST)) await take(page, pages, FIRST)
    const shots = shotsOf(await tellDay(pages.product)).filter(isWanted)
    for (const shot of shots) await take(page, pages, shot)
    pages.expectNoFaults()
  } finally {
    await pages.close()
  }
  const files = (await readdir(FOLDER)).filter((name) => name.endsWith('.webp'))
  process.stdout.write(`${files.length} pictures in ${FOLDER}\n`)
}

async function take(page: Page, { at }: ConsoleUnderTest, [name, path, shown]: Shot): Promise<void> {
  const browser = await page.context().newCDPSession(page)
  for (const { suffix, colorScheme, width, height, scale } of LOOKS) {
    await page.setViewportSize({ width, height })
    await page.emulateMedia({ colorScheme })
    await page.goto(at(path))
    await page.locator(shown).first().waitFor()
    await until(async () => (await page.locator('#page .waiting').count()) === 0, { what: 'the whole page' })
    await page.evaluate('document.fonts.ready')
    const clip = { x: 0, y: 0, width, height, scale }
    const { data } = await browser.send('Page.captureScreenshot', { format: 'webp', quality: 50, clip })
    await writeFile(`${FOLDER}${name}${suffix}.webp`, Buffer.from(data, 'base64'))
  }
  await browser.detach()
}

const [first, ...others] = process.argv.slice(2)
if (first === '--help') process.stdout.write(`${HELP}\n`)
else await main(first === undefined ? [] : [first, ...others])
