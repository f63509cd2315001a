// Tests parts/ask/**, pages/approvals/** and shell/**: how one answers, and what tells that somebody waits.
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import type { EventStream } from '../support/event-stream.ts'
import { useOpened } from '../support/fixture.ts'
import { until } from '../support/until.ts'
import { faultsOf } from './support/axe.ts'
import { startConsole } from './support/console.ts'
import { tabTo } from './support/keyboard.ts'

type Listed = { permissions: { id: string; run_id: string }[]; next_cursor: string | null; total?: number }

/** More than a page of the list has, and fewer than the runs of a worker. */
const MANY = 210

const WRITE = '/tool Write {"path": "notes/a.txt", "content": "hello"}'

describe('approvals in the console', () => {
  const pages = useOpened(startConsole)
  afterEach(async () => {
    pages.expectNoFaults()
    await pages.closePages()
  })

  /** Starts a message whose tool call waits. */
  async function ask(session: string): Promise<{ id: string; stream: EventStream }> {
    const { product } = pages
    await product.call('POST', '/sessions', { session_id: session }) // 409 when it exists.
    const stream = await product.stream(`/sessions/${session}/messages`, { prompt: WRITE })
    const request = await stream.until('permission_request')
    return { id: String(request.data['id']), stream }
  }

  const resolved = async (stream: EventStream) =>
    (await stream.all()).find(({ event }) => event === 'permission_resolved')?.data

  it('by the keyboard alone: Tab or `a` lead to the button that allows, and Enter presses it', async () => {
    const { id, stream: linked } = await ask('keys')
    const page = await pages.open(`/approvals/${id}`)
    const allow = page.getByRole('button', { name: 'Allow once' })
    await allow.and(page.locator(':enabled')).waitFor()
    await tabTo(page, 'Allow once')
    await page.keyboard.press('Enter')
    expect(await resolved(linked)).to.include({ allow: true, how: 'reply' })

    await page.goto(pages.at('/approvals'))
    const { stream } = await ask('keys')
    await allow.and(page.locator(':enabled')).waitFor()
    await page.keyboard.press('a')
    expect(await page.evaluate('document.activeElement.textContent')).to.equal('Allow once')
    await page.keyboard.press('Enter')
    expect(await resolved(stream)).to.include({ allow: true, how: 'reply' })
    await page.getByLabel('Decision').getByText('Nothing else waits').waitFor()

    const other = await ask('keys')
    await page.getByRole('link', { name: 'Next request (1)' }).press('Enter')
    await allow.and(page.locator(':enabled')).waitFor()
    await page.keyboard.press('d')
    await page.getByLabel('Reason').and(page.locator(':focus')).waitFor()
    await page.keyboard.type('as I said')
    await page.keyboard.press('Enter')
    expect(await resolved(other.stream)).to.include({ allow: false, reason: 'as I said' })
  })

  it('nothing that is typed before allows: a request takes no focus, and what allows is disabled for 400 ms', async () => {
    const page = await pages.open('/approvals')
    await page.getByText('Nothing waits for you').waitFor()
    await page.evaluate(WATCH_BUTTON)
    const { id, stream } = await ask('slip')
    const allow = page.getByRole('button', { name: 'Allow once' })
    await allow.waitFor()
    for (const key of ['Enter', ' ', 'a', 'Enter', ' ']) await page.keyboard.press(key)
    await allow.and(page.locator(':enabled')).waitFor()
    for (const word of ['pizza', 'class as']) {
      await page.keyboard.type(word) // By somebody who thinks to write elsewhere.
      await page.keyboard.press('Enter')
      await page.keyboard.press(' ')
    }
    expect(await page.evaluate('globalThis.disabledMs')).to.be.at.least(395)
    const { body } = await pages.product.call('GET', '/permissions')
    expect(JSON.stringify(body)).to.include(id)
    await page.getByRole('button', { name: 'Deny' }).click()
    await page.keyboard.type('not there')
    await page.keyboard.press('Enter')
    expect(await resolved(stream)).to.include({ allow: false, reason: 'not there' })
  })

  it('a changed input is what runs, and one that the tool does not take is refused in place', async () => {
    const { id, stream } = await ask('edit')
    const page = await pages.open(`/approvals/${id}`)
    await page.getByRole('button', { name: 'Change first' }).click()
    const field = page.getByLabel('Input of Write')
    await field.fill('{"path": 5}')
    await page.getByRole('button', { name: 'Allow with these changes' }).click()
    await page.locator('.problem').waitFor()
    await field.fill('{"path": "notes/b.txt", "content": "other"}')
    await page.getByRole('button', { name: 'Allow with these changes' }).click()
    expect(await resolved(stream)).to.deep.include({ allow: true, input: { path: 'notes/b.txt', content: 'other' } })
  })

  it('of two people who answer one is told that the other was first, and by whom', async () => {
    const { id, stream } = await ask('race')
    const [first, second] = [await pages.open(), await pages.open()]
    for (const page of [first, second]) {
      await page.route('**/events', (route) => route.abort()) // It hears nothing of the decision before it answers.
      await page.goto(pages.at(`/approvals/${id}`))
      await enabled(page, 'Allow once')
    }
    await Promise.all([
      first.getByRole('button', { name: 'Allow once' }).click(),
      second.getByRole('button', { name: 'Allow once' }).click(),
    ])
    const tooLate = (page: Page) => page.locator('.toasts').getByText('Too late')
    const loser = await Promise.any(
      [first, second].map((page) =>
        tooLate(page)
          .waitFor()
          .then(() => page),
      ),
    )
    expect(await tooLate(loser).innerText()).to.include('allowed by anonymous')
    for (const page of [first, second]) await page.getByLabel('Decision').getByText('Allowed by anonymous').waitFor()
    expect(await resolved(stream)).to.include({ allow: true })
  })

  it('a reason that is being written stays, with what happened, when another device decides', async () => {
    const { id, stream } = await ask('typed')
    const page = await pages.open('/approvals')
    await page.getByRole('button', { name: 'Deny' }).click()
    await page.getByLabel('Reason').fill('because of the')
    await pages.product.call('POST', `/sessions/typed/permissions/${id}`, { allow: true })
    await stream.all()
    await page.getByLabel('Decision').getByText('You had written: because of the').waitFor()
    await page.getByText('Allowed by anonymous, just now').waitFor()
  })

  it('the same holds for a changed input, and for the card of a chat', async () => {
    const { id, stream } = await ask('typed-in-chat')
    const page = await pages.open('/chat/typed-in-chat')
    await page.getByRole('button', { name: 'Change first' }).click()
    await page.getByLabel('Input of Write').fill('{"path": "half')
    await pages.product.call('POST', `/sessions/typed-in-chat/permissions/${id}`, { allow: false })
    await stream.all()
    const notice = page.locator('.notice', { hasText: 'Somebody was faster: denied by anonymous.' })
    await notice.getByText('{"path": "half').waitFor()
    await notice.getByRole('button', { name: 'Drop what I wrote' }).click()
    await notice.waitFor({ state: 'detached' })
  })

  it('a link leads to the request, which one tap on a phone answers, and from then on to who has decided what for whom', async () => {
    const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }
    const [first, other] = [await ask('link'), await ask('next')]
    const page = await pages.open(`/approvals/${first.id}`, phone)
    await page.getByText('Answer within').last().waitFor()
    await page.getByRole('button', { name: 'Allow once' }).and(page.locator(':enabled')).tap()
    const expectReceipt = async (of: Page) => {
      const receipt = of.getByLabel('Decision')
      for (const text of ['Allowed by anonymous', 'Asked for', '+hello']) await receipt.getByText(text).waitFor()
      await receipt.getByRole('link', { name: 'link' }).waitFor()
    }
    await expectReceipt(page)
    expect(await faultsOf(page)).to.deep.equal([])
    expect(await resolved(first.stream)).to.include({ allow: true })
    await page.reload()
    await expectReceipt(page)
    await page.getByRole('link', { name: 'Next request (1)' }).tap()
    await page.getByRole('button', { name: 'Deny' }).tap()
    await page.getByLabel('Reason').fill('no')
    await page.getByRole('button', { name: 'Deny Write' }).tap()
    await page.getByLabel('Decision').getByText('Reason: no').waitFor()
    expect(await resolved(other.stream)).to.include({ allow: false, reason: 'no' })
  })

  it('equal requests of one agent stand side by side, and are answered one by one or together', async () => {
    const { call, stream } = pages.product
    const agents = ['a', 'b', 'c'].map((name) => ({
      description: name,
      prompt: `/tool Write {"path": "${name}.txt", "content": "of ${name}"}`,
    }))
    await call('POST', '/sessions', { session_id: 'batch' })
    const asking = await stream('/sessions/batch/messages', { prompt: `/tool Team ${JSON.stringify({ agents })}` })
    const page = await pages.open('/approvals', { viewport: { width: 1_280, height: 600 } })
    await page.locator('.asks').getByText('Write × 3').waitFor()
    expect(await page.locator('.asks li').count()).to.equal(1)
    const cards = page.locator('.batch [data-ask]')
    await until(async () => (await cards.count()) === 3, { what: 'the cards' })
    await page.getByText('Read each of them to its end first.').waitFor()
    expect(await page.getByRole('button', { name: 'Allow 3 requests' }).isDisabled()).to.equal(true)
    await cards.last().getByRole('button', { name: 'Deny' }).scrollIntoViewIfNeeded()
    await enabled(page, 'Allow 3 requests')
    expect(await faultsOf(page)).to.deep.equal([])
    await cards.filter({ hasText: 'of b' }).getByRole('button', { name: 'Deny' }).click()
    await page.getByLabel('Reason').fill('not this one')
    await page.getByLabel('Reason').press('Enter')
    await page.getByRole('button', { name: 'Allow 2 requests' }).and(page.locator(':enabled')).click()
    await page.getByLabel('Decision').getByText('Nothing else waits').waitFor()
    const answers = (await asking.all()).filter(({ event }) => event === 'permission_resolved')
    expect(answers.map(({ data }) => data['allow']).toSorted()).to.deep.equal([false, true, true])
  })

  it('after three equal answers a tool is offered to be allowed for the session, which is listed and can be taken back', async () => {
    const { call } = pages.product
    for (let i = 0; i < 3; i++) {
      const { id, stream } = await ask('habit')
      await call('POST', `/sessions/habit/permissions/${id}`, { allow: true })
      await stream.all()
    }
    const counted = async () =>
      JSON.stringify((await call('GET', '/permissions?state=decided')).body).split('"session_id":"habit"').length === 4
    await until(counted, { what: 'the records of the decisions' })
    const { id, stream } = await ask('habit')
    const page = await pages.open(`/approvals/${id}`)
    await page.getByText('You have allowed Write 3 times in this session').waitFor()
    await page.getByRole('button', { name: 'Always allow Write in this session' }).click()
    await page.getByLabel('Decision').getByText('asks no more in this session').waitFor()
    await stream.all()
    await page.goto(pages.at('/approvals?tab=remembered'))
    await page.getByRole('button', { name: 'Let Write ask again' }).click()
    await page.getByText('Every tool asks').waitFor()
  })

  it('several are denied together, with their number named', async () => {
    const [one, other] = [await ask('one'), await ask('other')]
    const page = await pages.open('/approvals')
    await page.getByRole('checkbox').nth(1).waitFor()
    for (const box of await page.getByRole('checkbox').all()) await box.check()
    await page.getByRole('button', { name: 'Deny 2 requests …' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Deny 2 requests' }).click()
    for (const { stream } of [one, other]) expect(await resolved(stream)).to.include({ allow: false })
  })

  it('nothing allows a call before its end was on the screen, and nothing in it is hidden', async () => {
    const { call, stream } = pages.product
    await call('POST', '/sessions', { session_id: 'long' })
    const content = `${'a line\n'.repeat(3_000)}the end\u202e\u200b`
    const input = JSON.stringify({ path: 'notes/a.txt', content })
    const asking = await stream('/sessions/long/messages', { prompt: `/tool Write ${input}` })
    const { id } = (await asking.until('permission_request')).data
    const page = await pages.open(`/approvals/${String(id)}`)
    const card = page.locator(`[data-ask="${String(id)}"]`)
    await card.getByText('This is not all of it').waitFor()
    await card.getByText('You have not seen all of it').waitFor()
    for (const name of ['Allow once', 'Allow Write for this session'])
      expect(await card.getByRole('button', { name }).isDisabled(), name).to.equal(true)
    await page.evaluate(`document.querySelector('[data-ask] .whole').scrollTop = 100_000`)
    await card.getByRole('button', { name: 'Allow once' }).scrollIntoViewIfNeeded()
    await card.getByRole('button', { name: 'Allow once' }).and(page.locator(':enabled')).waitFor()
    expect(await page.evaluate(BELOW_THE_BOX)).to.be.below(10)
    expect(await card.locator('.diff').innerText()).to.include('the end\\u202e\\u200b')
    await card.getByRole('button', { name: 'Change first' }).click()
    expect(await card.getByLabel('Input of Write').inputValue()).to.include('the end\\u202e\\u200b')
    await call('POST', `/sessions/long/permissions/${String(id)}`, { allow: false })
    await asking.all()
  })

  it('of more requests than a page has the true number is told, the list goes on, and a link finds each', async () => {
    const { call } = pages.product
    const start = (i: number) =>
      call('POST', '/agent/run', { prompt: WRITE.replace('a.txt', `${i}.txt`), background: true })
    for (let i = 0; i < MANY; i += 20)
      await Promise.all(Array.from({ length: Math.min(20, MANY - i) }, (_, k) => start(i + k)))
    const listed = async (query: string) => (await call('GET', `/permissions?limit=200${query}`)).body as Listed
    await until(async () => (await listed('')).total === MANY, { what: 'all to wait' })
    const first = await listed('')
    const last = (await listed(`&cursor=${String(first.next_cursor)}`)).permissions.at(-1)
    const page = await pages.open(`/approvals/${String(last?.id)}`)
    await page.locator(`[data-ask="${String(last?.id)}"]`).waitFor()
    await until(async () => (await page.title()).startsWith(`(${MANY}) `), { what: 'the title' })
    expect(await page.locator('.rail .count').first().innerText()).to.include(String(MANY))
    await page.getByText(`200 of ${MANY} are shown`).waitFor()
    await page.getByRole('button', { name: 'Show more' }).click()
    await until(async () => (await page.locator('.asks li').count()) === MANY, { what: 'the whole list' })
    for (const { run_id } of [...first.permissions.slice(0, 2), ...(last ? [last] : [])])
      await call('DELETE', `/runs/${run_id}`)
    await until(async () => (await page.title()).startsWith(`(${MANY - 3}) `), { what: 'those that are left' })
    await page.close() // It would draw the list anew for each of the others.
    for (const { run_id } of first.permissions) await call('DELETE', `/runs/${run_id}`)
    for (const { run_id } of (await listed('')).permissions) await call('DELETE', `/runs/${run_id}`)
  })

  it('the tab counts the requests that wait, and the browser shows a notice of each to whoever has allowed it', async () => {
    const page = await pages.open('/approvals')
    await page.addInitScript(ALLOWED_NOTICES)
    await page.reload()
    await page.locator('.connection.live').waitFor()
    const titleIs = (title: string) => until(async () => (await page.title()) === title, { what: title })
    const { id, stream } = await ask('notice')
    await titleIs('(1) Approvals · agent-engine')
    const notices = () => page.evaluate('globalThis.notices')
    await until(async () => String(await notices()).includes(id), { what: 'the notice', lastSeen: notices })
    expect(await notices()).to.deep.equal([['Permission needed for Write', id]])
    await pages.product.call('POST', `/sessions/notice/permissions/${id}`, { allow: false })
    await stream.all()
    await titleIs('Approvals · agent-engine')
  })

  const enabled = (page: Page, name: string) =>
    page.getByRole('button', { name }).and(page.locator(':enabled')).waitFor()
})

/** How much of what is shown lies below the end of its box. */
const BELOW_THE_BOX = `(() => {
  const box = document.querySelector('[data-ask] .whole')
  const end = [...box.querySelectorAll('.part')].at(-1).getBoundingClientRect().bottom
  return end - box.getBoundingClientRect().bottom
})()`

/** Measures in the page how long the button that allows is disabled from when it appears. */
const WATCH_BUTTON = `{
  let shownAt
  const look = () => {
    const button = document.querySelector('button[data-key="a"]')
    if (button) shownAt ??= performance.now()
    if (button && !button.disabled) globalThis.disabledMs = performance.now() - shownAt
    else requestAnimationFrame(look)
  }
  look()
}`

/** Notes the notices that the browser is asked to show, as one whose user has allowed them: Chromium without a screen never does. */
const ALLOWED_NOTICES = `{
  globalThis.notices = []
  const { Notification } = globalThis
  globalThis.Notification = class extends Notification {
    static permission = 'granted'
    constructor(title, options) {
      super(title, options)
      globalThis.notices.push([title, options.tag])
    }
  }
}`
