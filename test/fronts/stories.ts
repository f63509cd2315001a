import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { until } from '../support/until.ts'
import { begun, type Chat, write } from './chat.ts'

/** What people do in a chat. Each story begins and ends with a chat that is at rest, whatever it holds. */
export const STORIES: Readonly<Record<string, (chat: Chat) => Promise<void>>> = {
  text: async (chat) => {
    await chat.askAndRead()
  },

  'an edit': async (chat) => {
    const { question, answer } = await chat.askAndRead()
    const [edited, other] = [chat.word('edited'), chat.word('answer')]
    chat.model.answer(other)
    await chat.page.edit(edited)
    await chat.page.shows(other)
    await chat.page.shows(edited)
    expect(await chat.page.texts())
      .to.not.include(question)
      .and.not.include(answer)
  },

  'a branch back and on': async (chat) => {
    const { answer } = await chat.askAndRead()
    const other = chat.word('answer')
    chat.model.answer(other)
    await chat.page.edit(chat.word('edited'))
    await chat.page.shows(other)
    await chat.page.clickLast('Back')
    await chat.page.shows(answer)
    await chat.compare()
    await chat.page.clickLast('On')
    await chat.page.shows(other)
  },

  'regenerate last': async (chat) => {
    const { answer } = await chat.askAndRead()
    const other = chat.word('answer')
    chat.model.answer(other)
    await chat.page.clickLast('Again')
    await chat.page.shows(other)
    expect(await chat.page.texts()).to.not.include(answer)
  },

  'regenerate first': async (chat) => {
    const { answer } = await chat.askAndRead()
    const other = chat.word('answer')
    chat.model.answer(other)
    await chat.page.click('Again')
    await chat.page.shows(other)
    expect(await chat.page.texts())
      .to.have.length(2)
      .and.not.include(answer)
  },

  'approve, after a reload': async (chat) => {
    const [path, answer] = [chat.word('file'), chat.word('answer')]
    await chat.ask(write(path), answer)
    await chat.page.asks(path)
    await chat.page.reload()
    await chat.page.click('Allow')
    await chat.page.shows(answer)
    await chat.page.results(path)
  },

  deny: async (chat) => {
    const [path, answer] = [chat.word('file'), chat.word('answer')]
    await chat.ask(write(path), answer)
    await chat.page.asks(path)
    await chat.page.click('Deny')
    await chat.page.shows(answer)
    await chat.page.results(/denied/i)
  },

  'allow what another client has denied': async (chat) => {
    const [path, answer, reason] = [chat.word('file'), chat.word('answer'), chat.word('too risky')]
    await chat.ask(write(path), answer)
    await chat.page.asks(path)
    const { id } = await chat.waiting()
    await chat.call('POST', `/sessions/${chat.page.id}/permissions/${id}`, { allow: false, reason })
    await chat.page.click('Allow')
    await chat.page.shows(answer)
    await chat.page.page.getByText(reason).first().waitFor()
  },

  'type instead of answering': async (chat) => {
    const [path, unsaid] = [chat.word('file'), chat.word('unsaid')]
    await chat.ask(write(path), unsaid)
    await chat.page.asks(path)
    await chat.askAndRead()
    await chat.page.button('Allow').waitFor({ state: 'detached' })
    const { messages } = await chat.call('GET', `/sessions/${chat.page.id}/messages?limit=200`)
    expect(JSON.stringify(messages)).to.contain('a new message came')
    await chat.page.page.reload()
    await chat.page.shows(unsaid) // What the run that asked has said when it was denied.
  },

  'a stop in the middle, after a reload': async (chat) => {
    const half = chat.word('half')
    chat.unread.add(half)
    await chat.ask(begun(half))
    await chat.page.shows(half)
    await chat.page.reload()
    await chat.stop()
  },

  'a stop at once': async (chat) => {
    await chat.ask([{ hang: true }])
    await chat.stop()
  },

  'a stop with two runs': async (chat) => {
    await chat.askAndRead()
    const tab = await chat.inAnotherTab()
    await tab.page.shows(await chat.lastText())
    const half = chat.word('half')
    chat.unread.add(half)
    await chat.ask(begun(half))
    await chat.page.shows(half)
    const waiting = tab.word('question')
    await tab.page.send(waiting)
    await until(async () => (await chat.call('GET', `/sessions/${chat.page.id}`))['queued'] === 1, {
      what: 'a run that waits',
    })
    await tab.stop()
    expect((await chat.cancelled())[0]?.title).to.equal(waiting)
    await chat.stop()
    await tab.page.close()
  },

  'a tool of the page': async (chat) => {
    const answer = chat.word('answer')
    await chat.ask([{ tool: 'page_address', input: {} }], answer)
    await chat.page.shows(answer)
    expect(JSON.stringify(chat.model.requests.at(-1)?.body['messages'])).to.include(`#${chat.page.id}`)
  },

  'a failing tool': async (chat) => {
    const [path, answer] = [chat.word('missing'), chat.word('answer')]
    await chat.ask([{ tool: 'Read', input: { path } }], answer)
    await chat.page.shows(answer)
    await chat.page.results(path)
  },

  'a failing run, and the next one': async (chat) => {
    await chat.ask({ status: 400 })
    const words = chat.page.alert.getByText(/^[^{]*rejected the request/)
    await words.waitFor()
    await chat.page.page.reload()
    await words.waitFor()
    await chat.askAndRead()
    await chat.page.alert.waitFor({ state: 'detached' })
  },

  'a refused attachment, and the next message': async (chat) => {
    await chat.front.attach?.(chat.page)
    chat.unread.add(await chat.ask())
    await chat.page.alert.waitFor()
    await chat.askAndRead()
    await chat.page.alert.waitFor({ state: 'detached' })
  },

  'a reload': async (chat) => {
    await chat.askAndRead()
    await chat.page.reload()
  },

  'a reload in the middle': async (chat) => {
    const { half, whole, goOn } = await chat.askForTwoParts()
    await chat.page.shows(half)
    await chat.page.reload()
    goOn()
    await chat.page.shows(whole)
  },

  'two tabs': async (chat) => {
    await chat.askAndRead()
    const tab = await chat.inAnotherTab()
    await tab.page.shows(await chat.lastText())
    await chat.compare()
    await tab.compare()
    await tab.page.close()
    await chat.compare()
  },

  'a while without a network': async (chat) => {
    const { half, whole, goOn } = await chat.askForTwoParts()
    await chat.page.shows(half)
    await chat.page.page.context().setOffline(true)
    chat.world.proxy.cutAll()
    goOn()
    await until(async () => (await chat.call('GET', `/sessions/${chat.page.id}`))['active_run_id'] === null, {
      what: 'the end of the run',
    })
    await sleep(chat.world.offlineMs)
    await chat.page.page.context().setOffline(false)
    await chat.front.reconnect?.(chat.page)
    await chat.page.shows(whole)
  },
}
