import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../../harness/seed.ts'
import type { Received } from '../../../support/model-server/model-server.ts'
import type { Asked } from '../../ask.ts'
import { now } from '../../history.ts'
import type { World } from '../../world.ts'
import { FollowedRun } from '../deploy/work.ts'

/** What clients have told runs, and what was found wrong. */
export type Told = {
  answers: number
  steers: number
  recovered: number
  /** Texts whose gateway died while it took them: their key is refused from then on (D25a). */
  unknown: number
  problems: string[]
}

type Opening = { mark: string; calls: number; session: string | undefined; random: Random; told: Told }

const RETRY_MS = 100
const PATIENCE_MS = 60_000

/** A run whose model calls tools of its client, which answers each call, and tells the run something, until it is acknowledged. */
export class ClientRun {
  readonly mark: string
  readonly #world: World
  readonly #calls: readonly string[]
  readonly #session: string | undefined
  readonly #random: Random
  readonly #told: Told
  readonly #run: FollowedRun
  /** The outputs that were sent for each call, and the one that was answered 200. */
  readonly #sent = new Map<string, string[]>()
  readonly #won = new Map<string, string>()
  /** The calls of which an answer may have been taken, though its client was not told so. */
  readonly #unknown = new Set<string>()
  #steer: 'none' | 'sent' | 'taken' = 'none'

  constructor(world: World, { mark, calls, session, random, told }: Opening) {
    this.mark = mark
    this.#world = world
    this.#calls = Array.from({ length: calls }, (_, n) => `${mark}${n}`)
    this.#session = session
    this.#random = random
    this.#told = told
    const body = { prompt: `${mark} ${calls}`, client_tools: [{ name: 'own_tool' }] }
    this.#run = new FollowedRun(world, { what: mark, random, session, body, keptUntil: () => 0 })
  }

  get callCount(): number {
    return this.#calls.length
  }

  /** The worker that began it. */
  get owner(): string {
    return this.#world.ownerOf(this.#run.runId)?.name ?? ''
  }

  /** Its client has got all calls. */
  get isWaiting(): boolean {
    const got = this.#run.frames.flatMap(({ event, data }) => (event === 'tool_use' ? [data['id']] : []))
    return this.#run.runId !== '' && this.#calls.every((id) => got.includes(id))
  }

  get isRecovered(): boolean {
    return this.#run.frames.some(({ data }) => data['code'] === 'run_recovered')
  }

  /** Sends another output for this call than every time before, until it is taken, or another one was. */
  async answer(n: number): Promise<void> {
    const id = this.#calls[n] ?? ''
    const sent = this.#sent.get(id) ?? []
    const output = `output ${sent.length} of ${id}`
    this.#sent.set(id, [...sent, output])
    this.#told.answers++
    const path = `/runs/${this.#run.runId}/tool-calls/${id}`
    const status = await this.#untilTaken({ path, body: { output } }, () => void this.#unknown.add(id))
    if (status === 200 && this.#won.has(id)) this.#wrong(`${output} was taken, and ${this.#won.get(id)} too`)
    if (status === 200) this.#won.set(id, output)
    else if (status !== 409) this.#wrong(`${output} was answered ${status}`)
  }

  /** Each of its calls has an answer. */
  async answerAgain(): Promise<void> {
    for (const id of this.#calls) {
      const path = `/runs/${this.#run.runId}/tool-calls/${id}`
      const status = await this.#untilTaken({ path, body: { output: `late output of ${id}` } })
      if (status !== 409) this.#wrong(`a second answer to ${id} was ${status}`)
    }
  }

  async steer(): Promise<void> {
    this.#steer = 'sent'
    this.#told.steers++
    const status = await this.#untilTaken({
      path: `/runs/${this.#run.runId}/steer`,
      body: { prompt: this.#text },
      headers: { 'idempotency-key': this.#text },
    })
    if (status === 202) this.#steer = 'taken'
    else if (status === 409) this.#told.unknown++
    else this.#wrong(`a text was answered ${status}`)
  }

  /** `GET /tool-calls` has none that was answered before it was asked for, and every one that nobody has answered yet. */
  async checkList(): Promise<void> {
    const answered = [...this.#won.keys()]
    const listed = await this.#listed()
    const wrong = answered.filter((id) => listed.includes(id))
    const lost = this.#calls.filter((id) => !this.#sent.has(id) && !listed.includes(id))
    if (wrong.length > 0) this.#wrong(`${wrong} was answered, and is pending`)
    if (lost.length > 0) this.#wrong(`${lost} is open, and not pending`)
  }

  /** Resolves when the run has ended and all was compared. */
  async check(requests: readonly Received[]): Promise<void> {
    const { end } = await this.#run.ended
    if (end !== 'ok') this.#wrong(`ended with ${end}`)
    if (this.isRecovered) this.#told.recovered++
    const bodies = requests.map(({ body }) => JSON.stringify(body)).filter((body) => body.includes(this.mark))
    for (const [n, body] of bodies.entries()) this.#compare(body, `request ${n}`, n < bodies.length - 1)
    if (this.#session !== undefined) this.#compare(await this.#history(), 'the history', false)
    const untold = this.#calls.filter((id) => !this.#won.has(id) && !this.#unknown.has(id))
    if (untold.length > 0) this.#wrong(`${untold} has an answer that no client was told of`)
    const left = await this.#listed()
    if (left.length > 0) this.#wrong(`${left} is pending behind the end`)
  }

  /** Each output that was taken, and the text, is there once. `mayLack`: or not yet. */
  #compare(text: string, where: string, mayLack: boolean): void {
    for (const id of this.#calls) {
      const found = [...text.matchAll(/(?:late output|output \d) of (mark-[\w-]+\.\d)/g)].filter(
        (each) => each[1] === id,
      )
      const outputs = found.map(([output]) => output)
      const wanted = this.#won.get(id)
      const isWrong = outputs.some((output) => (wanted ? output !== wanted : !this.#sent.get(id)?.includes(output)))
      if (isWrong || outputs.length > 1 || (outputs.length === 0 && !mayLack))
        this.#wrong(`${where} has [${outputs}] of ${id}, and ${wanted} was taken`)
    }
    const texts = text.split(this.#text).length - 1
    const mayLackText = mayLack || this.#steer !== 'taken'
    if (texts > 1 || (texts === 0 && !mayLackText)) this.#wrong(`${where} has the text ${texts} times`)
  }

  get #text(): string {
    return `told ${this.mark}`
  }

  /** Sends it again through any gateway as long as the refusal says so, or the gateway has died. */
  async #untilTaken(asked: Asked, onUnknown = () => {}): Promise<number> {
    for (const end = now() + PATIENCE_MS; ; await sleep(RETRY_MS)) {
      const { status } = await this.#world.ask(this.#random.pick(this.#world.gateways), asked)
      if ((status !== 0 && status !== 503) || now() > end) return status
      onUnknown()
    }
  }

  async #listed(): Promise<string[]> {
    const { tool_calls: calls } = (await this.#read('/tool-calls?state=pending&limit=200')) as {
      tool_calls: { run_id: string; tool_use_id: string }[]
    }
    return calls.flatMap(({ run_id, tool_use_id }) => (run_id === this.#run.runId ? [tool_use_id] : []))
  }

  async #history(): Promise<string> {
    return JSON.stringify(await this.#read(`/sessions/${this.#session}/messages?limit=200`))
  }

  async #read(path: string): Promise<unknown> {
    for (const end = now() + PATIENCE_MS; ; await sleep(RETRY_MS)) {
      const { status, body } = await this.#world.ask(this.#random.pick(this.#world.gateways), { path })
      if (status === 200) return body
      if ((status !== 0 && status !== 503) || now() > end) throw new Error(`${path} was answered ${status}`)
    }
  }

  #wrong(what: string): void {
    this.#told.problems.push(`${this.mark} ${this.#run.runId}: ${what}`)
  }
}
