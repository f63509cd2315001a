import { setTimeout as sleep } from 'node:timers/promises'
import type { Broker, OpenedRun } from '../../shared/cluster/commands/broker.ts'
import type { FrameStream } from '../../shared/cluster/journal/frame-stream.ts'
import { AppError, hasKind } from '../../shared/kernel/errors.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import type { Checker } from './checker.ts'
import type { Fleet } from './fleet.ts'
import { promptOf, type Script } from './model.ts'
import type { GatewayNode } from './nodes.ts'
import type { ClientPlan, Step } from './plan.ts'
import { type Frame, framesOf, isRecovery, Reader, type ReadRun } from './reader.ts'
import { Owner, type Time } from './time.ts'

const TENANT = DEFAULT_TENANT
const NET_MS = 0.5
const AGAIN_MS = 400
/** A run ends so with its worker. */
const WORKER_ENDS = new Set(['worker_lost', 'worker_draining'])

/** The connection to a gateway broke before the answer came, so the client does not know whether the request had an effect. */
class ConnectionLost extends Error {}

type ClientWorld = { time: Time; checker: Checker; fleet: Fleet }

type Session = {
  id: string
  /** Grows with each session of the same id. */
  generation: number
  /** The keys of the messages that were answered, and of those of which the client does not know. */
  done: string[]
  unknown: string[]
  /** The client does not know whether it exists: a first try was not answered, and a second one was told that the id is in use. */
  isDoubtful: boolean
  openedMs: number
}
type Connection = { gateway: GatewayNode; frames: FrameStream }

/** A user of the cluster: starts runs, reads their streams, comes back when they are cut, answers permission requests. */
export class Client {
  readonly owner: Owner
  readonly #world: ClientWorld
  readonly #plan: ClientPlan
  #session: Session | undefined
  #generation = 0
  #messages = 0
  /** The answers to permission requests, which may come when the run has ended. */
  readonly #replies: Promise<void>[] = []
  readonly #cancelled = new Set<string>()
  isDone = false
  isChecked = false

  constructor(name: string, plan: ClientPlan, world: ClientWorld) {
    this.owner = new Owner(name)
    this.#plan = plan
    this.#world = world
  }

  async live(): Promise<void> {
    for (const step of this.#plan.steps) await this.#take(step)
    await Promise.all(this.#replies)
    this.isDone = true
  }

  /** Checks that all is there that was promised. To be called when nothing goes wrong any more. */
  async check(): Promise<void> {
    await this.#checkSession()
    this.isChecked = true
  }

  async #checkSession(): Promise<void> {
    const session = this.#session
    if (!session) return
    const { checker } = this.#world
    const answer = await this.#untilAnswered('its history', (broker) =>
      broker.listMessages(TENANT, session.id, { limit: 200 }),
    )
    if (!answer?.value) return this.#sessionIsGone(session)
    const keys = answer.value.messages.flatMap((message) =>
      message.role === 'user' ? [keyOf(JSON.stringify(message))] : [],
    )
    const answered = keys.filter((key) => session.done.includes(key))
    if (answered.toSorted().join() !== session.done.toSorted().join())
      checker.violate(
        'what was answered is in the history',
        `${session.id}: ${keys.join(' ')}, not ${session.done.join(' ')}`,
      )
    const foreign = keys.filter((key) => !session.done.includes(key) && !session.unknown.includes(key))
    if (foreign.length > 0 && !session.isDoubtful)
      checker.violate('a history has no other messages', `${session.id}: ${foreign.join(' ')}`)
  }

  async #take(step: Step): Promise<void> {
    switch (step.kind) {
      case 'wait':
        return sleep(step.ms)
      case 'run':
        return this.#run(step)
      case 'message':
        await this.#message(step)
        return
      case 'two messages': {
        const short = { words: 2, everyMs: 200, tools: [] as const }
        if (await this.#openSession()) await Promise.all([this.#message(short), this.#message(short)])
        return
      }
      case 'delete':
        return this.#delete()
    }
  }

  async #run({ cancelAfterMs, ...speech }: Extract<Step, { kind: 'run' }>): Promise<void> {
    const started = await this.#begin('a run', speech, (broker, prompt) => broker.startRun(TENANT, { prompt }))
    if (!started) return
    const cancelled = cancelAfterMs === undefined ? undefined : this.#cancel(started.runId, cancelAfterMs)
    await this.#read({ runId: started.runId, scopeId: started.runId }, started)
    await cancelled
  }

  /**
   * Starts a run with a prompt of its own for each try: what was refused never reaches a model. `onLost` is called with the key of a try whose gateway
   * died, of which the client does not know.
   */
  async #begin(
    what: string,
    speech: Omit<Script, 'key'>,
    open: (broker: Broker, prompt: string) => Promise<OpenedRun>,
    onLost: (key: string) => void = () => {},
  ) {
    let key = ''
    const started = await this.#start(
      what,
      async (broker) => {
        const script = this.#script(speech)
        key = script.key
        return open(broker, promptOf(script))
      },
      {
        onRefused: () => this.#world.checker.refused(key),
        onLost: () => onLost(key),
      },
    )
    return started && { ...started, key }
  }

  async #cancel(runId: string, afterMs: number): Promise<void> {
    await sleep(afterMs)
    this.#cancelled.add(runId)
    await this.#untilAnswered(`cancelling ${short(runId)}`, (broker) => broker.cancelRun(TENANT, runId))
  }

  async #message(speech: Omit<Script, 'key'>): Promise<void> {
    const session = await this.#openSession()
    if (!session) return
    const onLost = (key: string) => void session.unknown.push(key)
    const started = await this.#begin(
      'a message',
      speech,
      (broker, prompt) => broker.sendMessage(TENANT, session.id, { prompt }),
      onLost,
    )
    if (started === undefined) return
    if (started === null) return this.#sessionIsGone(session)
    session.unknown.push(started.key)
    const end = await this.#read({ runId: started.runId, scopeId: session.id }, started)
    if (end === 'done') session.done.push(started.key)
  }

  async #openSession(): Promise<Session | undefined> {
    if (this.#session) return this.#session
    const id = `s-${this.owner.name}`
    const generation = ++this.#generation
    const created = await this.#untilAnswered(`session ${id}`, (broker) => broker.createSession(TENANT, id))
    if (!created) return undefined
    const session = {
      id,
      generation,
      done: [],
      unknown: [],
      isDoubtful: created.value === undefined,
      openedMs: this.#world.time.nowMs,
    }
    this.#world.checker.say(`${this.owner.name} has session ${id} (${generation})`)
    this.#session = session
    return session
  }

  async #delete(): Promise<void> {
    const session = this.#session
    if (!session) return
    this.#session = undefined
    await this.#untilAnswered(`deleting ${session.id}`, (broker) => broker.deleteSession(TENANT, session.id))
  }

  /** The client was told that its session does not exist. */
  #sessionIsGone(session: Session): void {
    if (this.#session === session) this.#session = undefined
    const { checker } = this.#world
    checker.say(`${this.owner.name} is told that ${session.id} does not exist`)
    if (this.#world.fleet.isLossUnknown || this.#world.fleet.isForgotten(session.openedMs)) return
    const holder = this.#world.fleet.holderOf(session.id)
    if (holder) checker.violate('a session that lives is found', `${session.id} is at ${holder}`)
    if (!this.#world.fleet.hasLostWorker && !session.isDoubtful)
      checker.violate('a session ends with its worker only', `${session.id} is gone and no worker was lost`)
  }

  #script(speech: Omit<Script, 'key'>): Script {
    return {
      key: `${this.owner.name}.${++this.#messages}`,
      words: speech.words,
      everyMs: speech.everyMs,
      tools: speech.tools,
    }
  }

  /**
   * Starts a run and returns it with its gateway. `undefined`: the client does not know whether it has begun, or it was refused for good.
   * `null`: its session does not exist.
   */
  async #start(
    what: string,
    open: (broker: Broker) => Promise<OpenedRun>,
    { onRefused = () => {}, onLost = () => {} } = {},
  ) {
    for (let tries = 0; tries < 60; tries++) {
      const gateway = this.#world.fleet.anyGateway()
      try {
        if (!gateway) throw new AppError('unavailable', 'there is no gateway')
        const opened = await this.#call(gateway, what, open)
        return { gateway, ...opened }
      } catch (cause) {
        if (cause instanceof ConnectionLost) onLost()
        else onRefused()
        if (hasKind(cause, 'not_found')) return null
        if (cause instanceof ConnectionLost) return undefined
        if (!isRetryable(cause)) throw cause
        await sleep(AGAIN_MS)
      }
    }
    return undefined
  }

  /** Asks until there is an answer; `undefined` for 404 and for a request that is refused by the time that the client gives up. */
  async #untilAnswered<T>(what: string, act: (broker: Broker) => Promise<T>): Promise<{ value?: T } | undefined> {
    for (let tries = 0; tries < 60; tries++) {
      const gateway = this.#world.fleet.anyGateway()
      try {
        if (gateway) return { value: await this.#call(gateway, what, act) }
      } catch (cause) {
        if (hasKind(cause, 'not_found')) return undefined
        // An earlier try has created the session.
        if (hasKind(cause, 'conflict')) return tries > 0 ? {} : undefined
        if (!(cause instanceof ConnectionLost) && !isRetryable(cause)) throw cause
      }
      await sleep(AGAIN_MS)
    }
    return undefined
  }

  /** Sends a request to a gateway. Rejects with `ConnectionLost` when the gateway dies before the answer has come. */
  #call<T>(gateway: GatewayNode, what: string, act: (broker: Broker) => Promise<T>): Promise<T> {
    const { time, checker } = this.#world
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const answered = checker.waits(`${this.owner.name}: ${what} at ${gateway.owner.name}`)
    const settle = (tell: () => void) => {
      answered()
      tell()
    }
    const forget = this.#world.fleet.onDeath(gateway.owner, () => {
      time.after(this.owner, NET_MS, () => settle(() => reject(new ConnectionLost())))
    })
    time.after(gateway.owner, NET_MS, () => {
      act(gateway.relay.broker).then(
        (value) => void time.after(this.owner, NET_MS, () => settle(() => (forget(), resolve(value)))),
        (cause) => void time.after(this.owner, NET_MS, () => settle(() => (forget(), reject(cause)))),
      )
    })
    return promise
  }

  /** Reads a run to its end, over as many connections as it takes. Returns the last event, or `lost`. */
  async #read(run: ReadRun, first: Connection): Promise<string> {
    const { runId } = run
    const { checker } = this.#world
    const answered = checker.waits(`${this.owner.name}: the end of ${short(runId)}`)
    const reader = new Reader(run)
    try {
      let connection: Connection | undefined = first
      for (;;) {
        if (connection) await this.#consume(connection, reader)
        if (reader.end) return this.#hasEnded(reader.end, reader)
        if (reader.failure === 'worker_lost') return this.#runIsLost(run, 'worker_lost')
        await sleep(AGAIN_MS)
        const again = await this.#start(`following ${short(runId)} after ${reader.seq}`, async (broker) => ({
          runId,
          frames: await broker.followRun(TENANT, runId, reader.seq),
        }))
        if (again === null) return this.#runIsLost(run, '404')
        connection = again
      }
    } finally {
      answered()
    }
  }

  /** Whether the run outlives its worker. The files of a one-shot run are on the disk of its worker. */
  #isStored({ runId, scopeId }: ReadRun): boolean {
    return this.#world.fleet.isDurable && scopeId !== runId
  }

  #hasEnded(end: string, reader: Reader): string {
    const { runId, code, grammarProblem } = reader
    const { checker } = this.#world
    if (this.#isStored(reader) && WORKER_ENDS.has(code))
      checker.violate('a drain ends no run that is stored', `${runId} ends with ${code}`)
    if (grammarProblem) checker.violate('a stream keeps its grammar', `${this.owner.name}: ${runId}: ${grammarProblem}`)
    return end
  }

  /** A run may be called lost only when no process has it any more. */
  #runIsLost(run: ReadRun, how: string): 'lost' {
    const { runId } = run
    const { checker } = this.#world
    checker.say(`${this.owner.name} is told ${how} of ${short(runId)}`)
    const holder = this.#world.fleet.holderOfRun(runId)
    if (this.#isStored(run)) checker.violate('a drain ends no run that is stored', `${runId} is lost by ${how}`)
    if (holder && !this.#world.fleet.isLossUnknown)
      checker.violate('a run that lives is not called lost', `${runId} is at ${holder}`)
    return 'lost'
  }

  /** Takes the frames of one connection. The gateway hands them over one after the other, as to a client that reads slowly at times. */
  async #consume({ gateway, frames }: Connection, reader: Reader): Promise<void> {
    const { time } = this.#world
    const { promise, resolve } = Promise.withResolvers<void>()
    const forget = this.#world.fleet.onDeath(gateway.owner, () => time.after(this.owner, NET_MS, resolve))
    const pump = async () => {
      for await (const { text, failure } of frames) {
        const whole = Buffer.from(text).toString()
        await new Promise<void>((taken) => {
          time.after(this.owner, NET_MS, () => {
            for (const frame of framesOf(whole)) this.#receive(frame, reader, failure)
            time.after(gateway.owner, NET_MS, taken)
          })
        })
      }
      time.after(this.owner, NET_MS, resolve)
    }
    time.after(gateway.owner, 0, () => void pump())
    await promise
    forget()
  }

  #receive(frame: Frame, reader: Reader, failure: string | undefined): void {
    const { checker } = this.#world
    const problem = reader.take(frame, failure)
    if (problem)
      checker.violate('every frame comes once and in order', `${this.owner.name}: ${reader.runId}: ${problem}`)
    if (reader.failure !== undefined) return
    checker.frame(reader.runId, frame)
    if (isRecovery(frame)) this.#goesOn(reader)
    const { id, allow, how } = frame.data
    if (frame.event === 'permission_request')
      this.#replies.push(this.#answer({ id: String(id), scopeId: reader.scopeId }))
    const isWithdrawn = frame.event === 'permission_resolved' && how === 'cancelled'
    if (isWithdrawn && this.#world.fleet.isDurable && !this.#cancelled.has(reader.runId))
      checker.violate('a drain withdraws no permission request', `${reader.runId}: ${id}`)
    if (frame.event === 'permission_resolved' && how === 'reply') checker.acted(String(id), allow === true)
  }

  #goesOn({ runId }: Reader): void {
    const { checker } = this.#world
    checker.hasMovedRun = true
    checker.say(`${short(runId)} of ${this.owner.name} goes on elsewhere`)
  }

  /** Replies to a permission request, sometimes twice at once, sometimes never. */
  async #answer(request: { id: string; scopeId: string }): Promise<void> {
    const replies = this.#world.time.random.pick([0, 1, 1, 1, 2])
    await Promise.all(Array.from({ length: replies }, (_, i) => this.#reply(request, `${this.owner.name}#${i}`)))
  }

  async #reply({ id, scopeId }: { id: string; scopeId: string }, by: string): Promise<void> {
    const { checker, time } = this.#world
    await sleep(time.random.between(10, 3_000))
    const gateway = this.#world.fleet.anyGateway()
    if (!gateway) return
    const allow = time.random.chance(0.7)
    try {
      await this.#call(gateway, `replying to ${id}`, (broker) => broker.replyPermission(TENANT, scopeId, id, { allow }))
      checker.decided(id, { by, allow })
    } catch (cause) {
      if (!(cause instanceof ConnectionLost) && !(cause instanceof AppError)) throw cause
    }
  }
}

const keyOf = (message: string): string => /\\"key\\":\\"([^"\\]+)\\"/.exec(message)?.[1] ?? message

const short = (runId: string): string => `${runId.slice(0, 8)}…${runId.slice(-4)}`

const isRetryable = (cause: unknown) => hasKind(cause, 'unavailable') || hasKind(cause, 'rate_limit')
