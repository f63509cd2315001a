import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { type ConsoleUnderTest, startConsole } from './support/console.ts'

const task = (description: string, ...lines: string[]) => ({ description, prompt: lines.join('\n') })
const tool = (name: string, input: unknown) => `/tool ${name} ${JSON.stringify(input)}`

const inner = tool('Agent', task('look into the past', '/say found it'))
const PROMPT = [tool('Agent', task('ask around', inner, '/say nothing new')), '/say all done'].join('\n')

describe('a conversation that is opened again', () => {
  let pages: ConsoleUnderTest
  before(async () => {
    pages = await startConsole()
  })
  after(() => pages?.close())
  afterEach(async () => {
    pages.expectNoFaults()
    await pages.closePages()
  })

  /** Holds a conversation in which a sub-agent has one of its own. */
  async function converse(id: string): Promise<string | undefined> {
    await pages.product.call('POST', '/sessions', { session_id: id })
    const stream = await pages.product.stream(`/sessions/${id}/messages`, { prompt: PROMPT })
    await stream.all()
    return stream.runId
  }

  const cardsOf = (page: Page) => page.locator('.exchange > .subagent')

  it('shows what sub-agents have done, each in the one that started it', async () => {
    await converse('nested')
    const page = await pages.open('/chat/nested')
    const outer = cardsOf(page)
    await outer.waitFor()
    await outer.locator('summary').first().click()
    const nested = outer.locator('.subagent')
    await nested.locator('summary').first().click()
    await nested.getByText('found it').last().waitFor()
    expect(await outer.locator('summary').first().innerText())
      .to.include('ask around')
      .and.include('Done')
    expect(await nested.locator('summary').first().innerText()).to.include('look into the past')
    await page.locator('.exchange > .answer').getByText('all done').waitFor()
    expect(await page.locator('.exchange > .tool').count(), 'the call that started it').to.equal(1)
  })

  it('reads the events of a run only when its answer is seen', async () => {
    const [first, ...others] = [await converse('long'), await converse('long'), await converse('long')]
    for (let i = 0; i < 12; i++) {
      const prompt = Array.from({ length: 12 }, (_, line) => `/say line ${line} of ${i}\n/say `).join('\n')
      await (await pages.product.stream('/sessions/long/messages', { prompt })).all()
    }
    const page = await pages.open('/')
    const read: string[] = []
    page.on('request', (request) => {
      const run = /\/runs\/(run_\w+)\/events/.exec(request.url())?.[1]
      if (run !== undefined) read.push(run)
    })
    await page.goto(pages.at('/chat/long'))
    await page.locator('.answer').getByText('line 11 of 11').waitFor()
    expect(read).to.deep.equal([])
    await page.locator('.exchange').first().scrollIntoViewIfNeeded()
    await cardsOf(page).first().waitFor()
    expect(read).to.include(first)
    expect([first, ...others]).to.include.members(read)
  })

  it('shows its history where the events are not kept', async () => {
    await converse('forgotten')
    const page = await pages.open('/')
    await page.route('**/runs/*/events*', (route) =>
      route.fulfill({ status: 404, json: { error: { message: 'gone' } } }),
    )
    await page.goto(pages.at('/chat/forgotten'))
    await page.locator('.exchange > .tool').waitFor()
    await page.locator('.exchange > .answer').getByText('all done').waitFor()
    expect(await cardsOf(page).count()).to.equal(0)
  })

  it('has the versions of a message that was edited or answered again, and goes on behind the one that is shown', async () => {
    await pages.product.call('POST', '/sessions', { session_id: 'split' })
    for (const prompt of ['/say one', '/say two'])
      await (await pages.product.stream('/sessions/split/messages', { prompt })).all()
    const page = await pages.open('/chat/split')
    const press = (name: string) => page.getByRole('button', { name }).last().click()
    const answered = (text: string) => page.locator('.exchange > .answer').getByText(text, { exact: true }).waitFor()
    await answered('two')
    await press('Edit')
    await page.getByLabel('Edited message').fill('/say three')
    await press('Run again')
    await answered('three')
    await page.getByText('2/2').waitFor()
    expect(await page.locator('.exchange > .prompt').allInnerTexts()).to.deep.equal(['/say one', '/say three'])
    await press('Earlier version')
    await answered('two')
    await press('Regenerate')
    await page.getByText('3/3').waitFor()
    await press('Earlier version')
    await answered('three')
    const send = async (prompt: string) => {
      await page.getByLabel('Message', { exact: true }).fill(prompt)
      await page.getByRole('button', { name: 'Send' }).click()
    }
    const refuse = { status: 400, json: { error: { type: 'invalid_request', message: 'not now' } } }
    await page.route('**/messages', (route) => route.fulfill(refuse), { times: 1 })
    await send('/say refused')
    await page.getByText('not now').first().waitFor()
    await send('/say four')
    await answered('four')
    const { body } = await pages.product.call('GET', '/sessions/split/messages')
    const { messages } = body as { messages: { role: string; blocks: { text: string }[] }[] }
    const prompts = messages.filter(({ role }) => role === 'user').map(({ blocks }) => blocks[0]?.text)
    expect(prompts).to.deep.equal(['/say one', '/say three', '/say four'])
  })
})
