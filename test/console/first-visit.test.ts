// Tests pages/home/**, pages/chat/**, pages/plans/**, pages/settings/** and parts/run/**: what a person sees first, up to a model of one's own.
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { useOpened } from '../support/fixture.ts'
import { startModelServer } from '../support/model-server/model-server.ts'
import { faultsOf, findingsOf, isTooWide } from './support/axe.ts'
import { startConsole } from './support/console.ts'
import { tabTo } from './support/keyboard.ts'

describe('the console, for somebody who has never seen it', () => {
  let page: Page

  const pages = useOpened(startConsole)
  afterEach(() => pages.expectNoFaults())

  it('D29a: `/` leads a browser there, and two clicks, or keys, on the first page end in an answer, with a tool call and a permission', async () => {
    page = await pages.open()
    await page.goto(pages.origin)
    expect(page.url()).to.equal(pages.at('/'))
    const clicks = await countClicks(page)
    const press = async (name: string) => {
      await page.getByRole('button', { name }).waitFor()
      await tabTo(page, name)
      await page.keyboard.press('Enter')
    }
    await press('Run the demo')
    const asked = page.getByLabel('Prompt')
    await asked.waitFor()
    expect(await asked.innerText()).to.match(/^Write a note, but ask me first\.\s+Script of the demo$/)
    await page.locator('link[rel=icon][href*="icon-waiting"]').waitFor({ state: 'attached' })
    await page.getByRole('button', { name: 'Allow once' }).and(page.locator(':enabled')).waitFor()
    await press('Allow once')
    await page.getByText('The note is in').last().waitFor()
    await page.locator('link[rel=icon]:not([href*="icon-waiting"])').waitFor({ state: 'attached' })
    await page.locator('.tool [data-state="done"]').waitFor()
    expect(await clicks()).to.equal(2)
    await page.locator('[aria-label="Done lately"]').getByText('Write a note, but ask me first').waitFor()
    await page.getByRole('link', { name: 'Go on in Chat' }).click()
    await page.locator('.exchange .tool [data-state="done"]').waitFor()
  })

  it('a reload shows the same conversation', async () => {
    const shown = () => page.locator('.exchange').allInnerTexts()
    const ended = () => page.getByRole('button', { name: 'Regenerate' }).waitFor()
    const withoutTimes = (texts: string[]) => texts.map((text) => text.replaceAll(/\d+(\.\d+)? s\n/g, ''))
    await ended()
    const before = withoutTimes(await shown())
    await page.reload()
    await ended()
    expect(withoutTimes(await shown())).to.deep.equal(before)
  })

  it('the code to copy names this server, and the first call of a program is seen when it arrives', async () => {
    await page.goto(pages.at('/'))
    await page.getByRole('button', { name: 'Show the code' }).click()
    const copied = page.locator('.first-call pre')
    for (const language of ['curl', 'TypeScript', 'Python']) {
      await page.getByRole('button', { name: language, exact: true }).click()
      expect(await copied.innerText()).to.include(pages.product.url)
    }
    await page.getByText('Waiting for your first call').waitFor()
    await (await pages.product.stream('/agent/run', { prompt: '/say hello' })).all()
    await page.getByText('Got it').waitFor()
  })

  it('Home, Approvals and Activity then have the story, each at its address', async () => {
    await page.getByRole('link', { name: 'Home' }).click()
    await page.getByText('2 of 3 first steps done').waitFor()
    const code = page.waitForRequest(/\/assets\/activity/)
    await page.getByRole('link', { name: 'Activity' }).hover()
    await code // Of the page that a click would open.
    await page.locator('[aria-label="Done lately"] [data-state="done"]').first().waitFor()
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
    await page.locator('.step-panel .answer').first().waitFor()
  })

  it('a step shows what it says while it runs, over the page, and Escape leads back to the graph', async () => {
    const steps = [{ id: 'slow', prompt: '/say The first half.\n/sleep 60000' }]
    const { id } = (await pages.product.call('POST', '/plans/submit', { steps })).body as { id: string }
    await page.goto(pages.at(`/plans/${id}`))
    const graph = page.locator('.waves')
    const before = await graph.boundingBox()
    await page.locator('.waves .node').click()
    await page.getByLabel('What happens now').getByText('The first half.').waitFor()
    expect(await graph.boundingBox(), 'the graph stays where it is').to.deep.equal(before)
    expect(await faultsOf(page)).to.deep.equal([])
    await page.keyboard.press('Escape')
    await page.locator('.step-panel').waitFor({ state: 'detached' })
    await page.locator('.waves a[href*="step=slow"]:focus').waitFor()
    await page.getByRole('button', { name: 'Cancel this plan' }).click()
    await page.locator('.page-head [data-state="cancelled"]').waitFor()
  })

  it('a question to the demo is answered with what is missing, and the way there: provider, key, a model of the list, tried and used within a minute', async () => {
    const provider = await startModelServer()
    provider.models = ['large-1', 'small-1']
    provider.otherwise(() => 'a real answer')
    try {
      await page.goto(pages.at('/chat?new=1'))
      const ask = async () => {
        await page.getByLabel('Message').fill('How are you today?')
        await page.getByRole('button', { name: 'Send' }).click()
      }
      await ask()
      await page.getByText('No model is configured, so nobody can answer this.').waitFor()
      const [clicks, startedAt] = [await countClicks(page), performance.now()]
      await page.getByRole('link', { name: 'Put in your model' }).click()
      await page.getByLabel('Provider').selectOption('openai-compatible')
      await page.getByLabel('Key').fill('sk-one')
      await page.getByLabel('Address').fill('not an address')
      await page.getByRole('button', { name: 'Connect' }).click()
      const refused = await page.getByRole('alert').innerText()
      expect(refused).to.match(/^Address/)
      expect(refused).not.to.match(/PUT|\/config|\burl\b/)
      await page.getByLabel('Address').fill(provider.url)
      await page.getByRole('button', { name: 'Connect' }).click()
      await page.getByRole('radio', { name: 'small-1' }).click()
      await page.getByRole('button', { name: 'Try it' }).click()
      await page.getByText('small-1 answered after').waitFor()
      await page.getByText('streaming: yes').waitFor()
      expect(await findingsOf(page)).to.deep.equal([])
      await page.setViewportSize({ width: 390, height: 800 })
      expect(await isTooWide(page)).to.equal(false)
      await page.setViewportSize({ width: 1_280, height: 800 })
      await page.getByRole('button', { name: 'Use for everything' }).click()
      await page.getByRole('link', { name: 'Start a chat' }).click()
      await ask()
      await page.getByText('a real answer').waitFor()
      expect(await clicks()).to.be.at.most(9)
      expect(performance.now() - startedAt).to.be.below(60_000)
      await page.getByRole('link', { name: 'Home' }).click()
      await page.locator('.columns').waitFor()
      expect(await page.getByText('first steps done').count()).to.equal(0)
    } finally {
      await provider.close()
    }
  })

  it('a provider that no longer answers says since when; its key, prices and limits are changed on its card, and what is left out stays', async () => {
    const stored = async () => {
      const { body } = await pages.product.call('GET', '/config/instances/openai-compatible')
      return body as { prices?: unknown; limits?: unknown; key: string }
    }
    const failed = await pages.product.stream('/agent/run', { prompt: 'And now?' })
    await failed.all()
    await page.goto(pages.at(`/activity/${failed.runId}`))
    const alert = page.getByRole('region', { name: 'Why it failed' }).getByRole('alert')
    const told = (await alert.innerText()).match(/check/gi)
    expect(told, 'it says once what to check').to.have.length(1)
    await page.goto(pages.at('/settings'))
    await page.getByText('Away since').waitFor()
    const save = async (fields: Record<string, string>) => {
      await page.getByRole('button', { name: 'Edit' }).click()
      await page.getByText('Prices and limits').click()
      if ('Model 1' in fields) await page.getByRole('button', { name: 'Add a price' }).click()
      for (const [label, text] of Object.entries(fields)) await page.getByLabel(label, { exact: true }).fill(text)
      const saved = page.waitForResponse((response) => response.request().method() === 'PUT')
      await page.getByRole('button', { name: 'Save the provider' }).click()
      expect((await saved).status()).to.equal(200)
      await page.getByRole('alert').waitFor() // It is away, so that its models are not found.
      await page.reload()
    }
    await save({ 'Model 1': 'small-1', 'Input price 1': '1', 'Output price 1': '2', 'Requests a minute': '30' })
    await save({ Key: 'another-key' })
    expect(await stored()).to.deep.include({
      prices: { 'small-1': { input: 1, output: 2 } },
      limits: { requests_per_minute: 30 },
      key: 'an…',
    })
    await page.getByText('$1 / $2').waitFor()
    await pages.product.call('PUT', '/config/engine', { routing: {} })
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

/** Counts the clicks on a page until it is loaded anew. */
async function countClicks(page: Page): Promise<() => Promise<number>> {
  await page.evaluate('globalThis.clicks = 0; addEventListener("click", () => clicks++, true)')
  return () => page.evaluate<number>('clicks')
}
