import { computed, signal } from '@preact/signals'
import type { Schema, TenantEvent } from '../../../../../shared/client/api.ts'
import { ApiError } from '../../../../../shared/client/errors.ts'
import { createRuns, type Runs } from '../../../../../shared/client/resources/runs.ts'
import { createSession, type Session } from '../../../../../shared/client/resources/sessions.ts'
import type { RunStream } from '../../../../../shared/client/run/run-stream.ts'
import { transport } from '../../../api/engine.ts'
import { onEvent } from '../../../api/live.ts'
import { tellFailure } from '../../../base/announce.ts'
import { serverNow } from '../../../base/clock.ts'
import { learnAsks } from '../../../parts/run/learn-asks.ts'
import { LiveRun } from '../../../parts/run/live-run.ts'
import { type Exchange, exchangesOf } from './exchange.ts'

export type Message = Pick<Schema<'SendMessageRequest'>, 'prompt' | 'model' | 'plan_mode'>

/** A session as this tab shows it: its history, and the runs that it follows, whoever has started them. */
export class Conversation {
  readonly id: string
  readonly exchanges = signal<readonly Exchange[]>([])
  readonly info = signal<Schema<'SessionInfoResponse'> | undefined>(undefined)
  /** `gone`: sessions live in the memory of a worker, and end when they are idle for too long. */
  readonly state = signal<'loading' | 'ready' | 'gone' | Error>('loading')
  /** The run that answers now, and those that wait for it. */
  readonly open = computed(() => this.exchanges.value.filter(({ live }) => live && !live.isOver))
  readonly #session: Session
  readonly #runs: Runs
  readonly #abort = new AbortController()
  #loading: Promise<void> = Promise.resolve()
  #followed = 0

  constructor(id: string) {
    this.id = id
    this.#session = createSession(transport(), id)
    this.#runs = createRuns(transport())
  }

  /** Reads the history and follows what goes on, until the returned function is called. The runs themselves go on. */
  readonly watch = (): (() => void) => {
    this.#loading = this.load()
    const stop = onEvent((event) => this.#onEvent(event))
    return () => {
      stop()
      this.#abort.abort()
    }
  }

  readonly load = async (): Promise<void> => {
    try {
      const info = await this.#session.get()
      const messages = await this.#session.messages().all()
      this.info.value = info
      const own = this.exchanges.peek().filter(({ live }) => live)
      const past = exchangesOf(messages).filter(
        ({ runId }) => !own.some(({ live }) => runId !== undefined && live?.id === runId),
      )
      this.exchanges.value = [...past, ...own]
      this.state.value = 'ready'
      if (info.active_run_id !== null) this.#join(info.active_run_id)
    } catch (cause) {
      if (this.#abort.signal.aborted) return
      if (cause instanceof ApiError && cause.status === 404) this.state.value = 'gone'
      else if (this.state.peek() !== 'ready')
        this.state.value = cause instanceof Error ? cause : new Error(String(cause))
    }
  }

  /** Sends a message. While another one is answered it waits in the session's queue. */
  readonly send = async (message: Message): Promise<void> => {
    await this.#loading // Its run would be among the history, too.
    const stream = this.#session.send(message, { signal: this.#abort.signal })
    this.#follow(stream, { prompt: message.prompt, runId: undefined })
  }

  readonly stop = async (): Promise<void> => {
    for (const { live } of [...this.open.peek()].toReversed())
      if (live?.id !== undefined) await this.#runs.cancel(live.id).catch(tellFailure)
  }

  /** Follows a run that another device, or this tab before a reload, has started. */
  #join(runId: string): void {
    const exchanges = this.exchanges.peek()
    if (exchanges.some(({ live }) => isOf(live, runId))) return
    const known = exchanges.find((each) => each.runId === runId)
    this.exchanges.value = exchanges.filter((each) => each !== known)
    const exchange = this.#follow(this.#runs.resume(runId, { signal: this.#abort.signal }), {
      prompt: known?.prompt,
      runId,
    })
    if (known?.prompt === undefined) void this.#learnPrompt(exchange.key, runId)
  }

  async #learnPrompt(key: string, runId: string): Promise<void> {
    const run = await this.#runs.get(runId).catch(() => undefined)
    if (run?.title !== undefined) this.#change(key, { prompt: run.title })
  }

  #follow(stream: RunStream, { prompt, runId }: Pick<Exchange, 'prompt' | 'runId'>): Exchange {
    const live = new LiveRun(stream, (event) => learnAsks(event, live.id, this.id))
    const exchange = {
      key: `live-${++this.#followed}`,
      prompt,
      runId,
      at: new Date(serverNow()).toISOString(),
      blocks: [],
      live,
    }
    this.exchanges.value = [...this.exchanges.peek(), exchange]
    void live.follow().then(() => {
      live.announceEnd()
      return this.#learnInfo()
    })
    return exchange
  }

  #onEvent({ event, data }: TenantEvent): void {
    if (event === 'reset') this.#loading = this.load()
    if (data['session_id'] !== this.id || event !== 'run.started') return
    this.#join(String(data['run_id']))
  }

  async #learnInfo(): Promise<void> {
    const info = await this.#session.get().catch(() => undefined)
    if (info && !this.#abort.signal.aborted) this.info.value = info
  }

  #change(key: string, changes: Partial<Exchange>): void {
    this.exchanges.value = this.exchanges.peek().map((each) => (each.key === key ? { ...each, ...changes } : each))
  }
}

/** Whether it is the run of this id, or may be: a message that was just sent has none yet. */
const isOf = (live: LiveRun | undefined, runId: string | undefined): boolean =>
  live !== undefined && (live.id === undefined ? !live.isOver : live.id === runId)
