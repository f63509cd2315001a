// Tests pages/flows/**, parts/editor/**, parts/palette/** and api/**: how one works with a flow.
import { readFile } from 'node:fs/promises'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { useOpened } from '../support/fixture.ts'
import { until } from '../support/until.ts'
import { findingsOf, isTooWide, loadedBy } from './support/axe.ts'
import { type ConsoleUnderTest, startConsole } from './support/console.ts'
import { HOSTILE } from './support/story.ts'

const JSON_ONLY = { accept: 'application/json' }

describe('the flows of the console, from an empty store to a finished story', function () {
  this.timeout(90_000)
  let page: Page
  const found: string[] = []

  const pages = useOpened(startConsole)
  before(async () => {
    page = await pages.open('/flows')
  })
  afterEach(() => pages.expectNoFaults())

  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const view = (name: string) => page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name })
  const region = (name: string) => page.getByLabel(name, { exact: true })
  const state = (word: string) => page.locator('.page-head .badge').getByText(word, { exact: true })

  /** Notes what axe finds in both schemes, and whether a phone shows all of it. */
  async function look(what: string): Promise<void> {
    for (const colorScheme of ['dark', 'light'] as const) {
      await page.emulateMedia({ colorScheme })
      // Only colours differ between the schemes. A finding while a page is still being drawn is gone the second time.
      const rules = colorScheme === 'dark' ? ['color-contrast'] : undefined
      const first = await findingsOf(page, rules)
      const lasting = first.length === 0 ? [] : await findingsOf(page, rules)
      found.push(...lasting.map((finding) => `${what}, ${colorScheme}: ${finding}`))
    }
    await page.setViewportSize({ width: 390, height: 844 })
    if (await isTooWide(page)) found.push(`${what} is wider than 390 px`)
    await page.setViewportSize({ width: 1_280, height: 800 })
  }

  it('an empty list leads to a first flow from an example', async () => {
    await look('the empty list')
    await page.getByRole('link', { name: 'Create a first flow from an example' }).click()
    await page.getByText('Sort a support message').click()
    await page.getByLabel('Name').fill('Not a name')
    await button('Create the draft').click()
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Name').fill('triage')
    await look('a new flow')
    await button('Create the draft').click()
    await region('Rendered prompts').getByText('The export has been broken', { exact: false }).first().waitFor()
    expect(page.url()).to.equal(pages.at('/flows/triage/edit'))
  })

  it('shows problems as one types, at the field and at their line, and completes references of the schema', async () => {
    const prompt = page.getByLabel('User prompt')
    await prompt.press('Control+End')
    await prompt.pressSequentially(' {{na')
    await page.getByRole('option', { name: '{{.input.customer.name}}' }).waitFor()
    await prompt.press('Tab')
    expect(await prompt.inputValue()).to.match(/ \{\{\.input\.customer\.name\}\}$/)
    await prompt.pressSequentially(' {{.input.nope}}')
    await page.locator('.field > .problem').waitFor()
    await look('a draft with a problem')
    const problem = region('Problems').getByRole('button')
    expect(await problem.innerText()).to.match(/^Line \d+ \/user_prompt_template \{\{\.input\.nope\}\} is not in/)
    await problem.click()
    expect(await page.evaluate<string>('getSelection().toString()')).to.include('{{.input.nope}}')
    await writeAtTheMark(page)
    await prompt.fill((await prompt.inputValue()).replace(' {{.input.nope}}', ''))
    await page.locator('.field > .problem').waitFor({ state: 'detached' })
  })

  it('the form and the JSON are one document, which survives a look at another view', async () => {
    await nameAField(page, 'language')
    await page.getByLabel('Description of language').fill('Of the answer')
    await view('Memory').click()
    await view('Edit').click()
    expect(await page.getByLabel('Description of language').inputValue()).to.equal('Of the answer')
    expect(await button('Publish v1').isDisabled(), 'what is not saved would stay behind').to.equal(true)
    await button('Save the draft').click()
    await page.getByText('As saved in v2').waitFor()
    await page.locator('.sub-agent > summary').click()
    await page.getByLabel('Provider of mood').waitFor()
    const { body } = await pages.product.call('GET', '/flows/triage')
    const { properties } = (body as { definition: { input_schema: { properties: object } } }).definition.input_schema
    expect(properties).to.have.property('language').deep.equal({ type: 'string', description: 'Of the answer' })
    await look('a saved draft')
  })

  it('runs what is published by a form of its schema: first with an error at the field, then with an answer', async () => {
    await button('Publish v2').click()
    await page.getByRole('link', { name: 'Run it' }).click()
    await button('Add the built-in demo').click()
    await page.getByLabel('message *').fill('')
    await button('Run v2').click()
    await page.getByText('This is needed.').waitFor()
    await look('an input with an error')
    await page.getByLabel('message *').fill('Where is my invoice?')
    await button('Run v2').click()
    const answer = region('Answer')
    await answer.locator('[data-state="ok"]').waitFor()
    expect(await answer.locator('pre').innerText()).to.include('"team": "billing"')
    expect(await answer.getByLabel('Agents').innerText()).to.match(/mood[\s\S]*main/)
    await look('an answer')
  })

  it('a run without haste has a deadline, and is told that a wrong one is wrong', async () => {
    const deadline = page.getByLabel('Deadline in hours')
    await deadline.fill('soon')
    await button('Run v2').click()
    await region('Input').getByText('deadline_hours', { exact: false }).waitFor()
    await deadline.fill('2')
    await button('Run v2').click()
    await region('Answer').locator('[data-state="ok"]').waitFor()
    const { body } = await pages.product.call('GET', '/dispatches?flow=triage&limit=1')
    const [latest] = (body as { dispatches: { started_at: string; deadline_at?: string }[] }).dispatches
    expect(Date.parse(latest?.deadline_at ?? '') - Date.parse(latest?.started_at ?? '')).to.be.closeTo(7_200_000, 5_000)
    await deadline.fill('')
  })

  it('a run without haste that waits for its turn can be cancelled', async () => {
    const { product } = pages
    await product.call('PUT', '/config/limits', { concurrent_runs: 1 })
    const { body: busy } = await product.call(
      'POST',
      '/agent/run',
      { prompt: '/sleep 60000', background: true },
      JSON_ONLY,
    )
    await page.getByLabel('Deadline in hours').fill('2')
    await button('Run v2').click()
    await region('Answer').locator('[data-state="queued"]').waitFor()
    await button('Cancel').click()
    await region('Answer').locator('[data-state="cancelled"]').waitFor()
    await product.call('DELETE', `/runs/${(busy as { run_id: string }).run_id}`)
    await product.call('PUT', '/config/limits', {})
    await page.getByLabel('Deadline in hours').fill('')
  })

  it('a run can be cancelled, and its input kept as an example in the next draft', async () => {
    await page.getByLabel('message *').fill('\n/sleep 60000\n')
    await button('Run v2').click()
    await button('Cancel').click()
    await region('Answer').locator('[data-state="cancelled"]').waitFor()
    await button('Keep as a sample').click()
    await state('Draft v3').waitFor()
    await page.getByRole('link', { name: 'See what differs' }).click()
    await region('Changes').getByText('/sleep 60000', { exact: false }).first().waitFor()
  })

  it('a draft is compared with what is served, and published by its pass rate', async () => {
    await view('Evaluate').click()
    await page.getByText('v3 has not been evaluated: do that first.').waitFor()
    expect(await button('Publish v3').isDisabled()).to.equal(true)
    await pages.product.call('POST', '/flows/triage/run', {
      input: { message: 'one' },
      provider_instance: 'demo',
      model: 'demo',
    })
    await page.getByLabel('Newest recorded inputs').fill('1')
    await button('Evaluate v3').click()
    await region('Report').locator('tbody tr').waitFor()
    await look('a report')
    await button('Publish v3').click()
    await state('Published v3').waitFor()
    await view('Run').first().click()
    await page.getByLabel('Begin with').selectOption('1')
    expect(await page.getByLabel('message *').inputValue()).to.equal('The export has been broken since this morning.')
  })

  it('its runs are listed with the figures of a week, and lead to their story', async () => {
    await view('Runs').click()
    expect(await region('The last 7 days').innerText()).to.match(/Runs in 7 days\s+5\s+Failures\s+2/)
    await look('the runs')
    await page.locator('td.whole a').first().click()
    await page.locator('.page-head [data-state="done"]').waitFor()
    await page.goBack()
  })

  it('many inputs are a batch: its price is told before, it is started from lines or a file, and its results are saved', async () => {
    await view('Batches').click()
    await page.getByRole('link', { name: 'Run many inputs' }).click()
    const openForm = () => page.locator('summary', { hasText: 'Run many inputs' }).click()
    await openForm()
    const lines = page.getByLabel('One item a line')
    expect(JSON.parse(await lines.inputValue())).to.have.nested.property('input.message')
    const first = '{"custom_id": "first", "input": {"message": "one"}}'
    await lines.fill(`${first}\n{`)
    await button('Start the batch').click()
    await page.getByRole('alert').getByText('Line 2 is no JSON').waitFor()
    await lines.fill(`${first}\n{"input": {"message": 7}}`)
    await button('What will it cost?').click()
    await page.getByText(/^About \$0 .* for 2 inputs/).waitFor()
    await button('Start the batch').click()
    const rows = page.locator('tbody tr')
    await rows.first().waitFor()
    await page.goBack()
    await openForm()
    await page.getByLabel('Inputs', { exact: true }).selectOption('A file of this computer')
    const file = { name: 'in.jsonl', mimeType: 'application/jsonl', buffer: Buffer.from(first) }
    await page.getByLabel('Choose a file …').setInputFiles(file)
    await page.getByText(/^in\.jsonl, /).waitFor()
    await look('a new batch')
    await button('Start the batch').click()
    await rows.nth(1).waitFor()
    await until(async () => (await rows.locator('[data-state="done"]').count()) === 2, { what: 'both to end' })
    await rows.last().getByText('1 OK, 1 rejected').waitFor()
    await look('the batches')
    const saved = page.waitForEvent('download')
    await rows.last().getByRole('button', { name: 'Results' }).click()
    const results = (await readFile(await (await saved).path(), 'utf8')).split('\n').slice(0, -1)
    expect(results.map((each) => (JSON.parse(each) as { custom_id: string }).custom_id)).to.deep.equal(['first', '2'])
    await rows.first().getByRole('link').click()
    await page.waitForURL(/activity\?metadata\.batch_id=batch_/)
    await page.goBack()
  })

  it('a flow that is exported and imported again is the same', async () => {
    await view('Edit').click()
    const saved = page.waitForEvent('download')
    await button('Export').click()
    const text = await readFile(await (await saved).path(), 'utf8')
    await page.goto(pages.at('/flows?new=invoice'))
    const buffer = Buffer.from(text.replace('name: triage', 'name: copy'))
    await page.getByLabel('Import a file …').setInputFiles({ name: 'x.yaml', mimeType: 'text/yaml', buffer })
    await page.getByText('The flow copy is read from the file.').waitFor()
    await button('Create the draft').click()
    await page.waitForURL(pages.at('/flows/copy/edit'))
    const definitionOf = async (name: string) =>
      ((await pages.product.call('GET', `/flows/${name}`)).body as { definition: object }).definition
    expect(await definitionOf('copy')).to.deep.equal(await definitionOf('triage'))
    await page.goto(pages.at('/flows/triage'))
  })

  it('goes back to an earlier version, by name and after a question', async () => {
    await view('History').click()
    await page.getByRole('link', { name: 'v1' }).click()
    await look('the history')
    await button('Roll back to v1 …').click()
    const dialog = page.getByRole('dialog')
    expect(await dialog.innerText()).to.include('Roll triage back to v1')
    await dialog.getByLabel('Publish it at once').check()
    await dialog.getByRole('button', { name: 'Roll back and publish' }).click()
    await state('Published v4').waitFor()
    await region('Changes').getByText('- ', { exact: false }).first().waitFor()
    expect(await region('Changes').innerText()).to.include('"language"')
  })

  it('adds a correction to the memory, and takes it out', async () => {
    await view('Memory').click()
    await page.getByLabel('Correction').fill('Amounts are in euros.')
    await button('Add the correction').click()
    await page.locator('.memory').getByText('Amounts are in euros.').waitFor()
    await look('the memory')
    await button('Delete this entry').click()
    await page.getByText('No correction yet').waitFor()
  })

  it('the list has the figures of all flows by one request, is filtered by its address, and changes with events', async () => {
    const asked: string[] = []
    const note = (request: { url(): string }) => {
      const { pathname } = new URL(request.url())
      if (/\/v1\/(flows|dispatches)/.test(pathname)) asked.push(pathname)
    }
    page.on('request', note)
    await page.goto(pages.at('/flows?state=own'))
    const row = page.locator('tbody tr', { has: page.getByRole('link', { name: 'triage' }) })
    await row.getByText('Published v4', { exact: true }).waitFor()
    await row.getByRole('img', { name: /runs in 24 hours/ }).waitFor()
    await page.locator('tbody tr').nth(1).waitFor()
    expect(asked).to.deep.equal(['/v1/flows'])
    page.off('request', note)
    await look('the list')
    const runs = async () => Number.parseInt(await row.locator('td').nth(2).innerText(), 10)
    const before = await runs()
    const run = { input: { message: 'one more' }, provider_instance: 'demo', model: 'demo' }
    await pages.product.call('POST', '/flows/triage/run', run)
    await until(async () => (await runs()) === before + 1, { what: 'the run that has ended meanwhile' })
    await pages.product.call('PUT', '/flows/second', { input_schema: {}, output_schema: {} })
    await page.getByRole('link', { name: 'second' }).waitFor()
    await page.goto(pages.at('/flows?name=nothing'))
    await page.getByText('No flow matches').waitFor()
  })

  it('the palette finds a flow by its name', async () => {
    await page.keyboard.press('Control+k')
    await page.getByRole('textbox', { name: 'Go to' }).fill('tria')
    await page.locator('.goal', { hasText: 'Flow' }).first().waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL(pages.at('/flows/triage'))
  })

  it('shows texts of definitions, inputs, outputs and corrections as text', async () => {
    await tellHostileFlow(pages)
    const places = [
      ['edit', '[aria-label="Rendered prompts"] pre'],
      ['run', '[aria-label="Input"] .field'],
      ['history', '[aria-label="Changes"]'],
      ['memory', '.memory'],
    ] as const
    for (const [place, shown] of places) {
      await page.goto(pages.at(`/flows/hostile/${place}`))
      await page.locator(shown).first().waitFor()
      expect(await loadedBy(page), place).to.deep.equal([])
    }
    await page.goto(pages.at('/flows/hostile/run'))
    await button('Run v1').click()
    expect(await region('Answer').locator('pre').innerText()).to.include('onerror')
    expect(await loadedBy(page)).to.deep.equal([])
  })

  it('has no serious finding of axe in light and dark, and fits a screen of 390 px, in every state', () =>
    expect(found).to.deep.equal([]))
})

/** Adds a field, and types its name while the check of the flow is answered and the form drawn again. */
async function nameAField(page: Page, name: string): Promise<void> {
  const isTyped = Promise.withResolvers<void>()
  await page.route('**/check', (route) => isTyped.promise.then(() => route.continue()))
  await page.getByLabel('Form', { exact: true }).getByRole('button', { name: 'Add a field' }).first().click()
  const field = page.getByLabel('Name of field_3')
  await field.fill(name)
  const isChecked = page.waitForResponse('**/check')
  isTyped.resolve()
  await isChecked
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
  await page.unroute('**/check')
  expect(await field.inputValue()).to.equal(name)
  await field.blur()
}

/** The mark in the numbers of the lines leads to the problem, too. There Tab indents, can be undone, and leads on after Escape. */
async function writeAtTheMark(page: Page): Promise<void> {
  const text = page.getByLabel('Definition', { exact: true })
  const hasFocus = () => page.evaluate<boolean>('document.activeElement.ariaLabel === "Definition"')
  const before = await text.inputValue()
  await page.locator('.gutter button').click()
  expect(await page.evaluate<string>('getSelection().toString()')).to.include('{{.input.nope}}')
  await page.keyboard.press('Home')
  await page.keyboard.press('Tab')
  expect(await text.inputValue()).to.have.length(before.length + 2)
  await page.keyboard.press('Control+z')
  expect(await text.inputValue()).to.equal(before)
  await page.keyboard.press('Escape')
  await page.keyboard.press('Tab')
  expect(await hasFocus()).to.equal(false)
  await page.keyboard.press('Shift+Tab')
  expect(await hasFocus()).to.equal(true)
  await page.keyboard.press('Tab')
  expect(await hasFocus(), 'whoever only comes by goes on').to.equal(false)
  expect(await text.inputValue()).to.equal(before)
}

/** A flow with a text of `HOSTILE` wherever a tenant can write one. */
async function tellHostileFlow({ product: { call } }: ConsoleUnderTest): Promise<void> {
  const texts = HOSTILE.filter((text) => !text.includes('{{'))
  const described = Object.fromEntries(
    HOSTILE.map((text, i) => [`${text} ${i}`, { type: 'string', description: text, enum: [text] }]),
  )
  await call('PUT', '/flows/hostile', {
    input_schema: { type: 'object', properties: described, examples: [{ [`${HOSTILE[0]} 0`]: HOSTILE[0] }] },
    output_schema: { type: 'object', properties: { answer: { enum: [HOSTILE[0]] } }, required: ['answer'] },
    system_prompt_template: texts.join('\n'),
    user_prompt_template: `${texts.join('\n')} {{.memory}}`,
  })
  await call('POST', '/flows/hostile/publish')
  for (const text of HOSTILE) await call('POST', '/flows/hostile/memory', { content: text })
  await call('POST', '/flows/hostile/memory', { content: { text: HOSTILE[0] } })
}
