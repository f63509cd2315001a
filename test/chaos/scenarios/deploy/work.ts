import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../../harness/seed.ts'
import { checkStream } from '../../../support/stream-grammar.ts'
import { now } from '../../history.ts'
import type { SseFrame } from '../../sse-reader.ts'
import type { StreamClient } from '../../stream-client.ts'
import type { World } from '../../world.ts'
import { callFlow } from '../flows/call.ts'

const RETRY_MS = 100
/** How long a client comes back to a run, or asks for the end of a plan. */
const PATIENCE_MS = 60_000

/** How a piece of work has ended: `ok`, or what was wrong. */
export type Ended = { what: string; end: string; pauseMs: number }

/** A run that its client follows through any gateway until it has ended, as a client does that comes back. */
export class FollowedRun {
  readonly frames: SseFrame[] = []
  readonly ended: Promise<Ended>
  readonly #world: World
  readonly #what: string
  readonly #random: Random
  /** The reply's path begins with the session, or with the run itself. */
  readonly #session: string | undefined
  /** Until when a process that shuts down may keep a call of a tool. */
  readonly #keptUntil: () => number
  #runId = ''
  #current: StreamClient | undefined
  #lastAt = now()
  #pauseMs = 0
  #isRecorded = false

  constructor(world: World, { what, random, session, body, keptUntil }: Opening) {
    this.#world = world
    this.#what = what
    this.#random = random
    this.#session = session
    this.#keptUntil = keptUntil
    const path = session === undefined ? '/agent/run' : `/sessions/${session}/messages`
    this.ended = this.#follow({ path, body })
  }

  get runId(): string {
    return this.#runId || (this.#current?.run ?? '')
  }

  /** The ids of its permission requests, and of the calls that its client makes. */
  get asks(): string[] {
    const isAsk = ({ event, data }: SseFrame) => event === 'permission_request' || isOwnCall(data)
    return [...new Set(this.frames.filter(isAsk).map(({ data }) => String(data['id'])))]
  }

  /** Allows its request, or answers its call, through whichever gateway answers. Returns what came of it. */
  async reply(): Promise<string> {
    const [path, body] = this.frames.some(({ data }) => isOwnCall(data))
      ? [`/runs/${this.runId}/tool-calls/${this.asks[0]}`, { output: 'answered' }]
      : [`/sessions/${this.#session ?? this.runId}/permissions/${this.asks[0]}`, { allow: true }]
    for (const until = now() + PATIENCE_MS; ; ) {
      const { status } = await this.#world.ask(this.#gateway, { path, body })
      if (status === 200) return 'ok'
      if ((status !== 0 && status !== 503) || now() > until) return `${status} for ${this.#what} ${path}`
      await sleep(RETRY_MS)
    }
  }

  get #gateway() {
    return this.#random.pick(this.#world.gateways)
  }

  #open(request: { path: string; body?: unknown; after?: number }): StreamClient {
    this.#current = this.#world.stream(this.#gateway, { ...request, onFrame: (frame) => this.#take(frame) })
    return this.#current
  }

  #take(frame: SseFrame): void {
    const at = now()
    if (this.frames.length > 0 && this.asks.length === 0)
      this.#pauseMs = Math.max(this.#pauseMs, at - this.#expectedFrom(frame))
    this.#lastAt = at
    this.frames.push(frame)
  }

  /** A call of a tool is silent for as long as it takes, or until its process leaves it: that is no pause of the product. */
  #expectedFrom({ data }: SseFrame): number {
    if (this.frames.at(-1)?.event !== 'tool_use') return this.#lastAt
    return data['code'] === 'run_recovered' ? Math.max(this.#lastAt, this.#keptUntil()) : Infinity
  }

  async #follow(start: { path: string; body: object }): Promise<Ended> {
    let stream = this.#open(start)
    let end = await stream.ended
    for (const until = now() + PATIENCE_MS; end.status === 503 && now() < until; end = await stream.ended) {
      await sleep(RETRY_MS) // What was refused has not begun.
      stream = this.#open(start)
    }
    this.#runId = stream.run
    for (const until = now() + 4 * PATIENCE_MS; this.#isOpen(end) && now() < until; ) {
      await sleep(RETRY_MS)
      this.#dropFailure()
      stream = this.#open({ path: `/runs/${this.#runId}/events`, after: this.frames.at(-1)?.seq ?? 0 })
      end = await stream.ended
      this.#isRecorded ||= stream.isRecorded
    }
    const last = this.frames.at(-1)
    const how = last?.event === 'done' ? this.#problems : `${last?.event} ${String(last?.data['code'])} (${end.status})`
    return { what: `${this.#what} ${this.#runId}`, end: how, pauseMs: this.#pauseMs }
  }

  #isOpen({ status, terminal }: Awaited<StreamClient['ended']>): boolean {
    if (status === 204) return false
    return status === 0 || status === 503 || terminal === undefined || terminal.canContinue
  }

  /** The gateway's own end of a stream is no event of the run. */
  #dropFailure(): void {
    const last = this.frames.at(-1)
    if (last?.event === 'error') this.frames.pop()
  }

  get #problems(): string {
    if (this.asks.length > 1) return `asked ${this.asks.length} times`
    try {
      checkStream(
        this.frames.map(({ seq, event, data }) => ({ id: seq, event, data })),
        { isRecorded: this.#isRecorded },
      )
      return 'ok'
    } catch (cause) {
      return String(cause)
    }
  }
}

const isOwnCall = (data: SseFrame['data']): boolean => data['executor'] === 'client'

type Opening = { what: string; random: Random; session?: string | undefined; body: object; keptUntil(): number }

/** Asks until the answer says the end. */
async function untilEnd(world: World, { path, random, isOver }: Polling): Promise<string> {
  let last = 'no answer'
  for (const until = now() + 4 * PATIENCE_MS; now() < until; await sleep(RETRY_MS)) {
    const { status, body } = await world.ask(random.pick(world.gateways), { path })
    if (status !== 200) continue
    last = (body as { status: string }).status
    if (isOver(last)) return last === 'done' ? 'ok' : last
  }
  return last
}

type Polling = { path: string; random: Random; isOver(status: string): boolean }

/** A run that nobody follows. */
export async function backgroundRun(world: World, random: Random, prompt: string): Promise<Ended> {
  const { status, body } = await world.ask(random.pick(world.gateways), {
    path: '/agent/run',
    body: { prompt, background: true },
  })
  const { run_id: runId = '' } = (body ?? {}) as { run_id?: string }
  const isOver = (state: string) => state !== 'running' && state !== 'waiting'
  const end =
    status < 300
      ? await untilEnd(world, { path: `/runs/${runId}`, random, isOver })
      : `refused ${status} ${codeOf(body)}`
  return { what: `background run ${runId}`, end, pauseMs: 0 }
}

export async function plan(world: World, random: Random, prompt: string): Promise<Ended> {
  const steps = [
    { id: 'one', prompt },
    { id: 'two', prompt, depends_on: ['one'] },
  ]
  const { status, body } = await world.ask(random.pick(world.gateways), { path: '/plans/submit', body: { steps } })
  const { id = '' } = (body ?? {}) as { id?: string }
  const isOver = (state: string) => state !== 'running' && state !== 'queued'
  const end =
    status === 202
      ? await untilEnd(world, { path: `/plans/${id}`, random, isOver })
      : `refused ${status} ${codeOf(body)}`
  return { what: `plan ${id}`, end, pauseMs: 0 }
}

/** A call of a flow with a key, which is repeated with it as a refusal or a broken connection says. */
export async function flow(world: World, random: Random, { token, ms }: { token: string; ms: number }): Promise<Ended> {
  for (const until = now() + 4 * PATIENCE_MS; ; await sleep(RETRY_MS)) {
    const gateway = random.pick(world.gateways)
    const call = { url: gateway.url, gateway: gateway.name, input: { token, ms }, key: token, isStream: false }
    const { status, code } = await callFlow(call)
    const mayRepeat = status === 0 || status === 503
    if (!mayRepeat || now() > until)
      return { what: `flow ${token}`, end: status === 200 ? 'ok' : `${status} ${code}`, pauseMs: 0 }
  }
}

function codeOf(body: unknown): string {
  const { code, message = 'without a message' } =
    ((body ?? {}) as { error?: { code?: string; message?: string } }).error ?? {}
  return code ?? message
}
