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
import { type Exchange, exchangesOf, isSilent } from './exchange.ts'
import { begin, type Message, nameOf } from './first-message.ts'
import { type Versions, versionsOf } from './versions.ts'

/** A session as this tab shows it: its history, and the runs that the tab follows, even if someone else has started them. */
export class Conversation {
  readonly id: string
  readonly exchanges = signal<readonly Exchange[]>([])
  readonly info = signal<Schema<'SessionInfoResponse'> | undefined>(undefined)
  /** `gone`: the session has ended, because it was idle for too long in the memory of its worker. */
  readonly state = signal<'loading' | 'ready' | 'gone' | Error>('loading')
  /** The versions of the messages that have several, by their ids. */
  readonly versions = signal<ReadonlyMap<string, Versions>>(new Map())
  /** The message that the server has refused last, for its writer. */
  readonly refused = signal<{ message: Message; cause: Error } | undefined>(undefined)
  /** The title from the server, or the title that the server will give. */
  readonly title = computed(() => this.info.value?.title ?? nameOf(this.exchanges.value[0]?.prompt ?? ''))
  /** The run that answers now, and those that wait for it. */
  readonly open = computed(() => this.exchanges.value.filter(({ live }) => live && !live.isOver))
  readonly #session: Session
  readonly #runs: Runs
  readonly #abort = new AbortController()
  #loading: Promise<void> = Promise.resolve()
  /** The last message of the shown branch; `null` before the first message, `undefined` for the branch of the newest message. */
  #head: string | null | undefined
  /** Whether messages have versions. */
  #isSplit = false
  #followed = 0

  constructor(id: string) {
    this.id = id
    this.#session = createSession(transport(), id)
    this.#runs = createRuns(transport())
  }

  /** Reads the history and follows the running runs, until the returned function is called. The runs themselves continue. */
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
      const messages = await this.#branch(this.#head)
      this.info.value = info
      const history = exchangesOf(messages)
      const own = this.exchanges.peek().flatMap((each) => (each.live ? [placed(each, history)] : []))
      const past = history.filter(({ runId }) => !own.some(({ live }) => runId !== undefined && live?.id === runId))
      this.exchanges.value = [...past, ...own]
      this.state.value = 'ready'
      if (info.active_run_id !== null) this.#join(info.active_run_id)
      this.versions.value = versionsOf(messages, await this.#branches())
      this.#isSplit ||= this.versions.value.size > 0
      await this.#learnEnds()
    } catch (cause) {
      if (this.#abort.signal.aborted) return
      if (cause instanceof ApiError && cause.status === 404) this.state.value = 'gone'
      else if (this.state.peek() !== 'ready')
        this.state.value = cause instanceof Error ? cause : new Error(String(cause))
    }
  }

  /** Sends a message. While another message is answered, it waits in the session's queue. */
  readonly send = async (message: Message): Promise<void> => {
    this.refused.value = undefined
    await this.#loading // Its run would be among the history, too.
    const after = message.after === undefined ? this.#head : message.after
    this.#head = undefined // The head of the session from now on, unless the message is refused.
    const { files = [], ...rest } = message
    const attachments = files.map(({ file_id }) => ({ file_id }))
    const body = { ...rest, ...(after !== undefined && { after }), ...(files.length > 0 && { attachments }) }
    const stream = this.#session.send(body, { signal: this.#abort.signal })
    const exchange = this.#follow(stream, { prompt: message.prompt, files, runId: undefined }, (cause) => {
      this.#head = after
      this.exchanges.value = this.exchanges.peek().filter(({ key }) => key !== exchange.key)
      this.refused.value = { message, cause }
    })
  }

  /** Tells the run at work something. Its model reads it at its next call. */
  readonly steer = async (text: string): Promise<void> => {
    const live = this.open.peek()[0]?.live
    if (!live) throw new Error('The run has ended meanwhile: send it as a message')
    const { id } = await this.#runs.steer(await live.started(), text)
    live.told.value = [...live.told.peek(), { kind: 'steered', id, text }]
  }

  /** Sends a message that replaces another one. The branch of the other message is kept. */
  readonly sendInstead = async (exchange: Exchange, prompt: string): Promise<void> => {
    const { parentId: after = await this.#placeOf(exchange.live?.id) } = exchange
    const exchanges = this.exchanges.peek()
    this.exchanges.value = exchanges.slice(0, exchanges.indexOf(exchange))
    this.#isSplit = true
    const { files = [] } = exchange
    await this.send({ prompt, files, ...(after !== undefined && { after }) })
  }

  /** Shows the branch that ends with this message. The next message continues it. */
  readonly show = async (head: string): Promise<void> => {
    this.#head = head
    this.exchanges.value = this.open.peek()
    await (this.#loading = this.load())
  }

  /** Creates a separate conversation that continues from the end of this exchange. Returns its id. */
  readonly fork = async ({ runId, live, lastId }: Exchange): Promise<string> => {
    const { session_id: id } = await this.#session.fork(runId ?? live?.id ?? lastId ?? '')
    begin({ id, title: this.title.peek(), isWorking: false })
    return id
  }

  readonly stop = async (): Promise<void> => {
    for (const { live } of [...this.open.peek()].toReversed())
      if (live?.id !== undefined) await this.#runs.cancel(live.id).catch(tellFailure)
  }

  /** Follows a run that another device has started, or this tab before a reload. */
  #join(runId: string): void {
    const exchanges = this.exchanges.peek()
    if (exchanges.some(({ live }) => isOf(live, runId))) return
    const known = exchanges.find((each) => each.runId === runId)
    this.exchanges.value = exchanges.filter((each) => each !== known)
    const exchange = this.#follow(this.#runs.resume(runId, { signal: this.#abort.signal }), {
      prompt: known?.prompt,
      ...(known?.files && { files: known.files }),
      runId,
    })
    if (known?.prompt === undefined) void this.#learnPrompt(exchange.key, runId)
  }

  async #branch(head: string | null | undefined): Promise<SessionMessage[]> {
    return head === null ? [] : this.#session.messages(head === undefined ? {} : { head }).all()
  }

  /** The newest branches; empty if there is only one. */
  async #branches(): Promise<SessionMessage[][]> {
    const page = await this.#session.messages({ limit: 1 }).page()
    const { branches = [] } = page as Partial<Schema<'ListMessagesResponse'>>
    return branches.length > 1 ? Promise.all(branches.slice(-MOST_BRANCHES).map((head) => this.#branch(head))) : []
  }

  /** The message before the prompt of a run; `undefined` for a run without a message in the history. */
  async #placeOf(runId: string | undefined): Promise<string | null | undefined> {
    const messages = await this.#branch(runId).catch(() => [])
    return messages.find(({ run_id: of }) => of === runId)?.parent_id
  }

  async #learnPrompt(key: string, runId: string): Promise<void> {
    const run = await this.#runs.get(runId).catch(() => undefined)
    if (run?.title !== undefined) this.#change(key, { prompt: run.title, files: run.attachments ?? [] })
  }

  #follow(
    stream: RunStream,
    known: Pick<Exchange, 'prompt' | 'files' | 'runId'>,
    onRefused?: (cause: Error) => void,
  ): Exchange {
    const live = new LiveRun(stream, (event) => learnAsks(event, live.id, this.id))
    const exchange = {
      key: `live-${++this.#followed}`,
      ...known,
      at: new Date(serverNow()).toISOString(),
      blocks: [],
      live,
    }
    this.exchanges.value = [...this.exchanges.peek(), exchange]
    void live.follow().then(() => {
      live.announceEnd()
      const { value: cause } = live.problem
      if (live.id === undefined && cause && !this.#abort.signal.aborted) onRefused?.(cause)
      return this.#isSplit || known.prompt === undefined ? this.load() : this.#learnInfo()
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

  /** The history does not contain the reason why a run has no answer; the record of the run does. */
  async #learnEnds(): Promise<void> {
    if (!this.exchanges.peek().some(isSilent)) return
    const runs = await this.#runs
      .list({ session_id: this.id, limit: MOST_RUNS })
      .page()
      .catch(() => undefined)
    const codes = new Map(runs?.items.map(({ run_id, code }) => [run_id, code]))
    this.exchanges.value = this.exchanges.peek().map((each) => {
      const code = isSilent(each) ? codes.get(each.runId ?? '') : undefined
      return code === undefined || code === 'ok' ? each : { ...each, code }
    })
  }

  #change(key: string, changes: Partial<Exchange>): void {
    this.exchanges.value = this.exchanges.peek().map((each) => (each.key === key ? { ...each, ...changes } : each))
  }
}

type SessionMessage = Schema<'SessionMessage'>

/** The versions of messages are counted among at most this many of the newest branches. */
const MOST_BRANCHES = 20

/** The end is shown only for this many of the newest runs. */
const MOST_RUNS = 200

/** A run that this tab follows, with its place in the history, and with its whole prompt. */
function placed(exchange: Exchange, history: readonly Exchange[]): Exchange {
  const { id, parentId, prompt } = history.find(({ runId }) => runId !== undefined && runId === exchange.live?.id) ?? {}
  return id === undefined || parentId === undefined ? exchange : { ...exchange, id, parentId, prompt }
}

/** Whether this is, or may be, the run with this id: a message that was just sent has no run id yet. */
const isOf = (live: LiveRun | undefined, runId: string | undefined): boolean =>
  live !== undefined && (live.id === undefined ? !live.isOver : live.id === runId)
