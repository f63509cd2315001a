// Tests pages/chat/**, pages/activity/** and parts/run/**: what goes into a conversation and comes out of it, and what stays of it.
import { buffer } from 'node:stream/consumers'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { useOpened } from '../support/fixture.ts'
import { until } from '../support/until.ts'
import { faultsOf } from './support/axe.ts'
import { startConsole } from './support/console.ts'
import { tabTo } from './support/keyboard.ts'

const task = (description: string, ...lines: string[]) => ({ description, prompt: lines.join('\n') })
const tool = (name: string, input: unknown) => `/tool ${name} ${JSON.stringify(input)}`

const inner = tool('Agent', task('look into the past', '/say found it'))
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAAEElEQVR4nGP4z8AAQQxwFgBB0gX7h/C5SAAAAABJRU5ErkJggg==',
  'base64',
)
const SVG = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')
const ZIP = Buffer.from(`PK\x03\x04${'\0'.repeat(200)}`)

const PROMPT = [tool('Agent', task('ask around', inner, '/say nothing new')), '/say all done'].join('\n')

describe('a conversation in the console', () => {
  const pages = useOpened(startConsole)
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

  it('shows again what sub-agents have done, each in the one that started it', async () => {
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

  it('shows a request at its place, and above the composer only while that is out of sight', async () => {
    await pages.product.call('POST', '/sessions', { session_id: 'pinned' })
    const send = (prompt: string) => pages.product.stream('/sessions/pinned/messages', { prompt })
    for (let i = 0; i < 2; i++) await (await send('/say a\n/say \n'.repeat(40))).all()
    const page = await pages.open('/chat/pinned')
    const asking = await send(tool('Write', { path: 'a.txt', content: 'b' }))
    const { id } = (await asking.until('permission_request')).data
    const card = page.locator(`[data-ask="${String(id)}"]`)
    await card.waitFor()
    const pinned = page.locator('.pinned', { hasText: 'Answer within' })
    await pinned.waitFor({ state: 'detached' })
    await page.locator('.scroll').evaluate((list) => list.scrollTo(0, 0))
    await pinned.getByRole('link', { name: 'Review' }).click()
    await pinned.waitFor({ state: 'detached' })
    await card.getByRole('button', { name: 'Allow once' }).and(page.locator(':enabled')).click()
    await asking.all()
  })

  it('a failed turn says its cause first and what helps, also after a reload; Home tells it once, two clicks from its run, by the keyboard, too', async () => {
    const page = await pages.open('/chat?new=1')
    await field(page).fill('/fail provider_auth')
    await field(page).press('Enter')
    await page.locator('.sessions a[aria-current="page"]').getByText('/fail provider_auth').waitFor()
    const failed = page.locator('.exchange [role="alert"]')
    const expectCause = async () => {
      await failed.getByText('The provider refused the key').waitFor()
      await failed.getByText('Check the provider').waitFor()
      for (const name of ['Open the run', 'Open Settings']) await failed.getByRole('link', { name }).waitFor()
    }
    await expectCause()
    expect(await faultsOf(page)).to.deep.equal([])
    await page.reload()
    await expectCause()
    await failed.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('2/2').waitFor()
    await expectCause()
    const start = (prompt: string) => pages.product.call('POST', '/agent/run', { prompt, background: true })
    for (let i = 0; i < 3; i++) await start('/fail provider_unavailable')
    await page.goto(pages.at('/'))
    const needs = page.getByRole('region', { name: 'Needs you' })
    await needs.getByText('same cause: 3').waitFor()
    await needs.getByText('same cause: 2').waitFor()
    expect(await page.getByRole('region', { name: 'Done lately' }).locator('[data-state="failed"]').count()).to.equal(0)
    await page.locator('[role="alert"]').getByText('5 runs failed since').waitFor()
    expect(await faultsOf(page)).to.deep.equal([])
    await tabTo(page, 'The provider refused the key')
    await page.keyboard.press('Enter')
    await page.locator('td.whole a').first().waitFor()
    await tabTo(page, '/fail provider_auth')
    await page.keyboard.press('Enter')
    await page.getByRole('region', { name: 'Why it failed' }).getByText('The provider refused the key').waitFor()
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
    await page.locator('.exchange').nth(1).hover()
    await page.getByRole('button', { name: 'Fork' }).nth(1).click()
    await page.getByRole('link', { name: 'Fork of another one' }).waitFor()
    await answered('three')
    expect(await page.locator('.exchange > .prompt').allInnerTexts()).to.deep.equal(['/say one', '/say three'])
    await page.locator('.sessions a[aria-current="page"]').getByText('/say one').waitFor()
  })

  const field = (page: Page) => page.getByLabel('Message', { exact: true })

  /** What the browser saves when the button is pressed. */
  async function savedBy(page: Page, name: string): Promise<{ name: string; text: string }> {
    const [saved] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: `Download ${name}` }).click(),
    ])
    return { name: saved.suggestedFilename(), text: (await buffer(await saved.createReadStream())).toString('latin1') }
  }

  it('takes files that are picked, pasted and dropped, says which cannot go with a message, and shows those that were sent after a reload, too', async () => {
    const page = await pages.open('/chat?new=1')
    const refused = { status: 413, json: { error: { type: 'invalid_request', message: 'delete some files first' } } }
    await page.route('**/files?name=plan.pdf', (route) => route.fulfill(refused), { times: 1 })
    const attach = page.getByRole('button', { name: 'Attach' })
    const [chooser] = await Promise.all([page.waitForEvent('filechooser'), attach.press('Enter')])
    await chooser.setFiles([
      { name: 'plan.pdf', mimeType: 'application/pdf', buffer: Buffer.from('%PDF-1.4 a plan') },
      { name: 'slip.txt', mimeType: 'text/plain', buffer: Buffer.from('a slip') },
      { name: 'page.zip', mimeType: 'application/zip', buffer: ZIP },
      { name: 'large.png', mimeType: 'image/png', buffer: Buffer.alloc(5 * 1_024 * 1_024 + 1) },
    ])
    await field(page).fill('/say seen')
    await page.evaluate(`(${GIVE})('paste', 'screen.png', 'image/png', '${PNG.toString('base64')}')`)
    await page.evaluate(`(${GIVE})('drop', 'logo.svg', 'image/svg+xml', '${SVG.toString('base64')}')`)
    const file = (name: string) => page.locator('.draft-file', { hasText: name })
    await file('plan.pdf').getByText('delete some files first').waitFor()
    await file('large.png').getByText('a model takes 5 MB at most').waitFor()
    await page.locator('.draft-file canvas[width="3"]').waitFor()
    for (const [name, size] of [
      ['page.zip', '204 B'],
      ['screen.png', '73 B'],
      ['logo.svg', '71 B'],
    ] as const)
      await file(name).getByText(size).waitFor()
    expect(await page.getByRole('button', { name: 'Send' }).isDisabled()).to.equal(true)
    expect(await faultsOf(page)).to.deep.equal([])
    await page.getByRole('button', { name: 'Remove large.png' }).press('Enter')
    await page.getByRole('button', { name: 'Remove slip.txt' }).press('Enter')
    await page.getByRole('button', { name: 'Try again plan.pdf' }).press('Enter')
    await file('plan.pdf').getByText('15 B').waitFor()
    await field(page).press('Enter')
    await file('page.zip').getByText('which no model takes').waitFor()
    expect(await field(page).inputValue()).to.equal('/say seen')
    expect(await faultsOf(page)).to.deep.equal([])
    await page.getByRole('button', { name: 'Remove page.zip' }).press('Enter')
    await field(page).press('Enter')
    const answer = page.locator('.exchange > .answer').getByText('seen', { exact: true })
    await answer.waitFor()
    expect(await page.locator('.draft-file').count()).to.equal(0)
    const expectSent = async () => {
      await answer.waitFor()
      await page.locator('.sent-files canvas[width="3"]').waitFor()
      const shown = await page.locator('.sent-files .button').allInnerTexts()
      expect(shown.map((text) => text.replace(/^Download\s+|\s*\n\s*\S+ B$/g, '').trim())).to.have.members([
        'plan.pdf',
        'screen.png',
        'logo.svg',
      ])
      expect(await page.locator('.sent-files :is(svg script, img, iframe, object)').count()).to.equal(0)
      expect(await savedBy(page, 'logo.svg')).to.deep.equal({ name: 'logo.svg', text: SVG.toString() })
    }
    await expectSent()
    await page.reload()
    await expectSent()
    expect(await faultsOf(page)).to.deep.equal([])
    const { body } = await pages.product.call('GET', '/files')
    const kept = (body as { files: { name: string }[] }).files.map(({ name }) => name)
    expect(kept, 'what was removed before it was sent is deleted').to.have.members([
      ...['plan.pdf', 'screen.png', 'logo.svg', 'page.zip'],
    ])
  })

  it('has what is delivered to be saved, at its place and on the page of its run, and a run at work reads what it is told', async () => {
    await pages.product.call('POST', '/sessions', { session_id: 'works' })
    const page = await pages.open('/chat/works')
    await field(page).fill(tool('Write', { path: 'out/report.md', content: 'all well' }))
    await page.getByRole('button', { name: 'Send' }).click()
    const allow = page.getByRole('button', { name: 'Allow once' }).and(page.locator(':enabled'))
    await allow.waitFor()
    await page.getByText('Enter queues the message behind this run').waitFor()
    await field(page).fill(`${tool('Deliver', { paths: ['out/report.md'], title: 'The report' })}\n/say all done`)
    await field(page).press('Control+Enter')
    await page.getByText('Its model reads it next.').waitFor()
    await field(page).fill('/say the next one')
    await field(page).press('Enter')
    await page.locator('.composer').getByText('1 waiting').waitFor()
    expect(await faultsOf(page)).to.deep.equal([])
    await allow.click()
    await page.locator('.exchange > .answer').getByText('the next one', { exact: true }).waitFor()
    const expectStory = async () => {
      await page.locator('.exchange > .answer').getByText('all done', { exact: true }).waitFor()
      await page.locator('.exchange .steered').waitFor()
      const first = page.locator('.exchange').first().locator('> :is(.prompt, .tool, .artifact, .steered)')
      const kinds = (await first.evaluateAll((all) => all.map(({ className }) => className))).map(
        (names) => names.split(' ')[0],
      )
      expect(kinds.join(' ')).to.equal('prompt tool steered tool artifact')
      expect(await page.locator('.exchange .steered').innerText()).to.include('The report')
      expect(await savedBy(page, 'report.md')).to.deep.equal({ name: 'report.md', text: 'all well' })
    }
    await expectStory()
    await page.reload()
    await expectStory()
    await page.getByRole('button', { name: 'Files' }).click()
    expect(await savedBy(page, 'out/report.md')).to.deep.equal({ name: 'report.md', text: 'all well' })
    const { body } = await pages.product.call('GET', '/sessions/works/messages')
    const { messages } = body as { messages: { run_id: string }[] }
    await page.goto(pages.at(`/activity/${messages[0]?.run_id}`))
    const files = page.getByRole('region', { name: 'Files' })
    await files.getByText('Delivered').waitFor()
    await files.getByRole('button', { name: 'Download out/report.md' }).waitFor()
    expect(await savedBy(page, 'out/report.md')).to.deep.equal({ name: 'report.md', text: 'all well' })
    expect(await faultsOf(page)).to.deep.equal([])
  })

  it('shows whose answer a run waits for where the caller has tools of its own, until it is there', async () => {
    const order = { name: 'get_order', description: 'Finds an order.', input_schema: { type: 'object' } }
    await pages.product.call('POST', '/sessions', { session_id: 'caller' })
    const prompt = `${tool('get_order', { id: 7 })}\n/say found`
    const stream = await pages.product.stream('/sessions/caller/messages', { prompt, client_tools: [order] })
    const { data } = await stream.until('tool_use')
    const page = await pages.open('/chat/caller')
    await page.locator('.pinned').getByText('Waits for the caller’s tool get_order').waitFor()
    await page.locator('.exchange').getByText('Waits for the caller’s tool get_order').waitFor()
    expect(await faultsOf(page)).to.deep.equal([])
    const other = await pages.open(`/activity/${stream.runId}`)
    await other.getByRole('region', { name: 'Facts' }).getByText('the caller’s tool get_order').waitFor()
    await pages.product.call('POST', `/runs/${stream.runId}/tool-calls/${String(data['id'])}`, { output: 'lost' })
    await page.locator('.exchange > .answer').getByText('found', { exact: true }).waitFor()
    expect(await page.locator('.pinned').count()).to.equal(0)
    await until(async () => (await other.getByText('the caller’s tool get_order').count()) === 0, {
      what: 'the page of the run to say that nothing waits',
    })
  })
})

/** Gives a file to the page as the clipboard or a drag does. */
const GIVE = `(kind, name, type, base64) => {
  const given = new DataTransfer()
  given.items.add(new File([Uint8Array.fromBase64(base64)], name, { type }))
  const event = { bubbles: true, cancelable: true, clipboardData: given, dataTransfer: given }
  const target = document.querySelector('.composer textarea')
  if (kind === 'drop') target.dispatchEvent(new DragEvent('dragover', event))
  target.dispatchEvent(kind === 'paste' ? new ClipboardEvent(kind, event) : new DragEvent(kind, event))
}`
