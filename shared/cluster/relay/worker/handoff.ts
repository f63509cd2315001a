import { within } from '../../../kernel/async/deadline.ts'
import { hasKind } from '../../../kernel/errors.ts'
import type { Member } from '../../members/members.ts'
import { Workers } from '../../members/workers.ts'
import type { HeldSession } from '../../owners/held-claims.ts'
import type { SessionKey } from '../../owners/owners.ts'
import { hashKeyOf, isDraining, isUnanswered } from '../../owners/session-router.ts'
import type { Membership } from '../membership.ts'
import { type CallLimits, Calls, packCall } from '../wire/calls.ts'
import { BY_WORKER, RECORD, type ReceivedRecord, record } from '../wire/records.ts'
import type { Transport } from '../wire/transport.ts'

export type TransferableSession = HeldSession & { readonly state: HeldSession }

export type HandoffDeps = {
  transport: Pick<Transport, 'outbox'>
  membership: Pick<Membership, 'epoch' | 'refreshMembers'>
  /** Called with the error of a worker that has not taken a session, unless it drains, does not answer, or the session is gone. */
  onProblem(cause: unknown): void
}

/** The most sessions, and the most large ones, in transfer at a time: Redis disconnects a subscriber with more than 32 MB unread. */
const SLOTS = { all: 32, large: 8 }
const LARGE_CHARS = 128 * 1024
/** A worker that is silent for longer is replaced by others. */
const OFFER_MS = 4_000
/** A session may have megabytes, so it is repeated later than other calls. */
const LIMITS: CallLimits = { deadlineMs: OFFER_MS, resendMs: 1_000 }

/** Transfers the sessions of a draining worker to the workers they hash to without it. */
export class SessionHandoff {
  readonly #deps: HandoffDeps
  readonly #calls = new Calls()
  readonly #others = new Workers()
  readonly #slots = new Slots(SLOTS.all)
  readonly #largeSlots = new Slots(SLOTS.large)
  #onMembersChanged = () => {}

  constructor(deps: HandoffDeps) {
    this.#deps = deps
  }

  onMembers(members: readonly Member[]): void {
    const { epoch: own } = this.#deps.membership
    this.#others.update(members.filter(({ epoch }) => epoch !== own))
    this.#onMembersChanged()
  }

  /** Whether another worker takes new work. */
  get hasSuccessor(): boolean {
    return this.#others.eligible.length > 0
  }

  onRecord({ type, stream, body }: ReceivedRecord): void {
    if (type === RECORD.reply) this.#calls.settle(stream, body)
  }

  onMemberLost(epoch: number): void {
    this.#calls.failAll(epoch)
  }

  /** Resolves when another worker takes new work, or after `withinMs`: this worker's replacement may not have joined yet. */
  async waitForSuccessor(withinMs: number): Promise<void> {
    await this.#deps.membership.refreshMembers().catch(() => {}) // Redis does not answer: the next tick lists the members again.
    if (!this.hasSuccessor) await this.#successor(withinMs)
    await this.#others.prepare()
  }

  async #successor(withinMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onMembersChanged = () => {
      if (this.hasSuccessor) resolve()
    }
    await within(withinMs, promise)
  }

  /**
   * Transfers a session to the worker it hashes to, or to the next if that one does not accept it. The new owner changes the
   * claim itself. Returns whether a worker has confirmed that it is the owner; without an answer it may be the owner all the
   * same.
   */
  transfer(session: TransferableSession): Promise<boolean> {
    return this.#slots.run(() => {
      const offer = () => this.#offer(session)
      const isLarge = packCall('adoptSession', [session.state]).length > LARGE_CHARS
      return isLarge ? this.#largeSlots.run(offer) : offer()
    })
  }

  /**
   * Asks the worker that a session hashes to, or the next one, to open it from the store with its current run. Returns whether a worker
   * has confirmed that it continues the run.
   */
  leave({ tenant, id }: HeldSession): Promise<boolean> {
    const body = packCall('inheritSessions', [this.#deps.membership.epoch, [{ tenant, id }]])
    return this.#slots.run(() => this.#tryEach({ tenant, id }, async (to) => isOpened(await this.#call(to, body))))
  }

  #offer({ tenant, id, state }: TransferableSession): Promise<boolean> {
    return this.#tryEach({ tenant, id }, async (to) => {
      await this.#call(to, packCall('adoptSession', [state]))
      return true
    })
  }

  async #tryEach(session: SessionKey, isTakenBy: (epoch: number) => Promise<boolean>): Promise<boolean> {
    const key = hashKeyOf(session)
    const first = this.#others.ownerOf(key)
    for (const to of [first, this.#others.ownerOf(key, first)]) {
      if (to === undefined) return false
      try {
        if (await isTakenBy(to)) return true
      } catch (cause) {
        if (!isExpected(cause)) this.#deps.onProblem(cause)
      }
    }
    return false
  }

  async #call(epoch: number, body: string): Promise<unknown> {
    const outbox = this.#deps.transport.outbox('worker', epoch)
    const send = (id: number) => outbox.send(record(RECORD.call, { stream: id, flags: BY_WORKER, body }))
    return this.#calls.call({ epoch, send, limits: LIMITS })
  }
}

/** Runs a limited number of transfers at a time, in the order of the calls. */
class Slots {
  readonly #last: Promise<unknown>[]
  #count = 0

  constructor(size: number) {
    this.#last = Array.from({ length: size }, () => Promise.resolve())
  }

  run<T>(work: () => Promise<T>): Promise<T> {
    const slot = this.#count++ % this.#last.length
    const done = (this.#last[slot] ?? Promise.resolve()).then(work)
    this.#last[slot] = done.catch(() => {})
    return done
  }
}

/** The answer to `inheritSessions` about one session. */
const isOpened = (answer: unknown): boolean => Array.isArray(answer) && answer[0] === true

const isExpected = (cause: unknown): boolean => isDraining(cause) || isUnanswered(cause) || hasKind(cause, 'not_found')
