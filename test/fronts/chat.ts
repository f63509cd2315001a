import { expect } from 'chai'
import type { ModelServer } from '../support/model-server/model-server.ts'
import type { Received } from '../support/model-server/received.ts'
import type { Answer, Step } from '../support/model-server/script.ts'
import { until } from '../support/until.ts'
import type { ChatPage } from './chat-page.ts'
import type { World } from './world.ts'

/** How the page of a package is opened, and what it can do. */
export type Front = {
  title: string
  /** Opens a chat: a new one without an id. */
  open(world: World, id?: string): Promise<ChatPage>
  /** The stories that the page has no means for, and why. */
  lacks: Readonly<Record<string, string>>
  /** Puts a file that this server does not take beside the next message. */
  attach?(page: ChatPage): Promise<void>
  /** Has a page whose connection broke show what came meanwhile, where its package does not by itself. */
  reconnect?(page: ChatPage): Promise<void>
}

/** A chat of a front end with the scripted model. */
export class Chat {
  readonly world: World
  readonly front: Front
  readonly page: ChatPage
  /** Texts that the page shows and the model is not to read: what was cut off, and what was refused. */
  readonly unread: Set<string>

  private constructor({ world, front }: Pick<Chat, 'world' | 'front'>, page: ChatPage, unread = new Set<string>()) {
    this.unread = unread
    this.world = world
    this.front = front
    this.page = page
  }

  static async open(world: World, front: Front): Promise<Chat> {
    return new Chat({ world, front }, await front.open(world))
  }

  /** The same chat in another tab. */
  async inAnotherTab(): Promise<Chat> {
    return new Chat(this, await this.front.open(this.world, this.page.id), this.unread)
  }

  get model(): ModelServer {
    return this.world.product.model
  }

  word(kind: string): string {
    return this.world.word(kind)
  }

  /** Sends a new message, whose requests to the model are answered like this. */
  async ask(...answers: Answer[]): Promise<string> {
    const question = this.word('question')
    this.model.answer(...answers)
    await this.page.send(question)
    return question
  }

  /** Sends a new message, and waits for its answer. */
  async askAndRead(): Promise<{ question: string; answer: string }> {
    const answer = this.word('answer')
    const question = await this.ask(answer)
    await this.page.shows(answer)
    return { question, answer }
  }

  /** Sends a new message whose answer pauses in its middle, until `goOn` is called. */
  async askForTwoParts() {
    const [half, rest, { promise: hold, resolve: goOn }] = [
      this.word('half'),
      this.word('rest'),
      Promise.withResolvers<void>(),
    ]
    await this.ask([{ text: [half] }, { hold }, { text: [` ${rest}`] }])
    return { half, whole: `${half} ${rest}`, goOn }
  }

  async lastText(): Promise<string> {
    return (await this.page.texts()).at(-1) ?? ''
  }

  /** Sends a message, and compares what the model reads then with what the page shows. */
  async compare(): Promise<void> {
    const { question } = await this.askAndRead()
    const shown = (await this.page.texts()).filter((text) => !this.unread.has(text))
    const asked = shown.slice(0, shown.indexOf(question) + 1)
    expect(textOf(this.model.requests.at(-1))).to.equal(asked.join('\n\n'))
    expect(this.page.failures).to.deep.equal([])
  }

  async call(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
    return (await this.world.product.call(method, path, body)).body as Record<string, unknown>
  }

  /** A permission request of this chat that waits. */
  async waiting(): Promise<Asked> {
    const list = async () => (await this.call('GET', '/permissions?limit=200'))['permissions'] as Asked[]
    const find = async () => (await list()).find(({ session_id: session }) => session === this.page.id)
    return until(find, { what: 'a permission request' })
  }

  /** The runs of this chat that were cancelled. */
  async cancelled(): Promise<{ run_id: string; title: string }[]> {
    const { runs } = await this.call('GET', `/runs?status=cancelled&session_id=${this.page.id}`)
    return runs as { run_id: string; title: string }[]
  }

  async stop(): Promise<void> {
    const before = (await this.cancelled()).length
    await this.page.click('Stop')
    await until(async () => (await this.cancelled()).length > before, { what: 'the run to be cancelled' })
  }
}

type Asked = { id: string; run_id: string; session_id: string }

/** An answer that begins with this text, and does not end. */
export const begun = (text: string): Step[] => [{ text: [text] }, { hang: true }]

export const write = (path: string): Step[] => [{ tool: 'Write', input: { path, content: 'hello' } }]

type Sent = { role: string; content?: string | null | { text?: string }[] }

/** What people and the model have said, as a request tells it. */
function textOf(request: Received | undefined): string {
  const messages = (request?.body['messages'] ?? []) as Sent[]
  return messages
    .filter(({ role }) => role === 'user' || role === 'assistant')
    .flatMap(({ content }) => (typeof content === 'string' ? [content] : (content ?? []).map(({ text }) => text ?? '')))
    .filter((text) => text !== '')
    .join('\n\n')
}
