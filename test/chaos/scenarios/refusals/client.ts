import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../../harness/seed.ts'
import { ask } from '../../ask.ts'
import { now } from '../../history.ts'
import { StreamClient } from '../../stream-client.ts'

/** What the clients were told. */
export type Told = {
  /** Every request for a run, refused ones included. */
  tries: number
  /** Requests that were answered 503, by their codes. */
  refused: Map<string, number>
  accepted: { token: string; run: string; end: string }[]
  plans: { token: string; id: string }[]
  /** Requests whose clients gave up, and answers that are neither 200 nor a refusal that may be sent again. */
  wrong: string[]
}

export const nothingTold = (): Told => ({ tries: 0, refused: new Map(), accepted: [], plans: [], wrong: [] })

type Talking = { n: number; urlOf: () => string; random: Random; told: Told; hasPlans?: boolean }

const PATIENCE_MS = 90_000

type What = 'message' | 'run' | 'plan'
type Saying = { what: What; hasKey: boolean }

type Sending = { what: What; headers: Record<string, string> }
type Sent = { status: number; refusal: string }

/** Starts runs, sends messages to a session of its own and submits plans, with keys and without, and sends each again as its refusal says until it is accepted. */
export class RefusedClient {
  readonly #talking: Talking
  readonly #sessionId: string
  /** The tokens of the messages that were accepted. */
  readonly #said: string[] = []

  private constructor(talking: Talking, sessionId: string) {
    this.#talking = talking
    this.#sessionId = sessionId
  }

  static async open(talking: Talking): Promise<RefusedClient> {
    const { status, body } = await ask(talking.urlOf(), { path: '/sessions', body: {} })
    if (status !== 201) throw new Error(`a session was refused with ${status}`)
    return new RefusedClient(talking, (body as { session_id: string }).session_id)
  }

  /** Starts a run with a key, again and again until it is accepted. */
  static start(token: string, talking: Talking): Promise<void> {
    return new RefusedClient(talking, '').#say(token, { what: 'run', hasKey: true })
  }

  async until(isOver: () => boolean, pauseMs = 0): Promise<void> {
    const { n, random, hasPlans = false } = this.#talking
    for (let count = 1; !isOver(); count++) {
      if (pauseMs > 0) await sleep(random.between(0, 2 * pauseMs))
      const token = `token-${n}-${count}-${random.between(0, 1e9)}.`
      const what = random.pick<What>(['message', 'message', 'run', hasPlans ? 'plan' : 'run'])
      await this.#say(token, { what, hasKey: random.chance(0.5) })
    }
  }

  /** What the session's history has otherwise than its client was told. */
  async wrongInHistory(): Promise<string[]> {
    const { urlOf } = this.#talking
    const said: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const from = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
      const path = `/sessions/${this.#sessionId}/messages?limit=200${from}`
      const { status, body } = await ask(urlOf(), { path })
      if (status !== 200) return [`the history of ${this.#sessionId} is answered ${status}`]
      const page = body as { messages: { role: string }[]; next_cursor: string | null }
      const texts = page.messages.filter(({ role }) => role === 'user').map((message) => JSON.stringify(message))
      said.push(...texts.flatMap((text) => /token-\d+-\d+-\d+\./.exec(text)?.[0] ?? []))
      cursor = page.next_cursor
    }
    if (said.join() === this.#said.join()) return []
    return [`${this.#sessionId} has ${said.join(' ')}, and its client was told ${this.#said.join(' ')}`]
  }

  async #say(token: string, { what, hasKey }: Saying): Promise<void> {
    const { told, random } = this.#talking
    const headers = hasKey ? { 'idempotency-key': token } : {}
    const send = what === 'plan' ? this.#submit : this.#start
    const until = now() + PATIENCE_MS
    while (now() < until) {
      told.tries++
      const { status, refusal } = await send(token, { what, headers })
      if (status < 300 && status > 0) return
      if (status !== 503 && status !== 429) return void told.wrong.push(`${token}: ${status} ${refusal}`)
      const code = /"code":"(\w+)"/.exec(refusal)?.[1] ?? 'no code'
      told.refused.set(code, (told.refused.get(code) ?? 0) + 1)
      await sleep(random.between(200, 1_000))
    }
    told.wrong.push(`${token}: not accepted within ${PATIENCE_MS} ms`)
  }

  readonly #start = async (token: string, { what, headers }: Sending): Promise<Sent> => {
    const { told, urlOf } = this.#talking
    const path = what === 'message' ? `/sessions/${this.#sessionId}/messages` : '/agent/run'
    const request = { url: urlOf(), gateway: '', path, body: { prompt: token }, headers }
    const stream = new StreamClient(request, { record: () => {} })
    const status = await stream.opened
    const { terminal } = await stream.ended
    if (status === 200) {
      if (what === 'message') this.#said.push(token)
      told.accepted.push({ token, run: stream.run, end: terminal?.event ?? 'no end' })
    }
    return { status, refusal: stream.refusal }
  }

  readonly #submit = async (token: string, { headers }: Sending): Promise<Sent> => {
    const { told, urlOf } = this.#talking
    const body = { steps: [{ id: 'only', prompt: token }] }
    const { status, body: answer } = await ask(urlOf(), { path: '/plans/submit', body, headers })
    if (status === 202) told.plans.push({ token, id: (answer as { id: string }).id })
    return { status, refusal: JSON.stringify(answer) }
  }
}
