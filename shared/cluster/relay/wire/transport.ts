import { setTimeout as sleep } from 'node:timers/promises'
import type { Metrics } from '../../../kernel/metrics.ts'
import type { Bus } from '../../bus/bus.ts'
import type { Fence } from '../../members/fence.ts'
import type { ChannelProbe, Member, MemberFields } from '../../members/members.ts'
import { acknowledgedPosition, Credit, creditOf } from './credit.ts'
import { Outbox } from './outbox.ts'
import { MalformedMessage, packMessage, RECORD, type ReceivedRecord, readMessage } from './records.ts'

type Role = MemberFields['role']

export type TransportDeps = {
  role: Role
  bus: Pick<Bus, 'publish' | 'subscribe' | 'unsubscribe' | 'resubscribe' | 'reconnect'>
  lease: Pick<Fence, 'isHeld'>
  metrics: Metrics
}

export type TransportHandlers = {
  /** Receives every record except acknowledgements, with the epoch of the process that sent it. */
  onRecord(from: number, received: ReceivedRecord): void
  /** A message to this process had no subscriber. */
  onUndelivered(epoch: number): void
}

const FLUSH_MS = 1_000
/** A message to itself costs Redis more than checking for a subscriber. */
const RENEWALS_PER_MESSAGE = 2
/** The bus may lose single messages. */
const MAX_UNHEARD = 2
/** How many lost members are remembered: the frames of one that was lost longer ago have arrived or never will. */
const MAX_LOST = 1_000

/** Sends and receives this process's messages: its own channel, an outbox per receiver, and credit per sender. */
export class Transport {
  readonly #deps: TransportDeps
  readonly #handlers: TransportHandlers
  readonly #outboxes = new Map<number, Outbox>()
  readonly #credit = new Credit()
  readonly #lost = new Set<number>()
  #members: readonly Member[] = []
  #epoch = 0
  #probes = 0
  #unheard = 0
  #creditBytes = creditOf(1)

  constructor(deps: TransportDeps, handlers: TransportHandlers) {
    this.#deps = deps
    this.#handlers = handlers
  }

  /** The epoch that this process sends under and listens for; 0 before it has joined. */
  get epoch(): number {
    return this.#epoch
  }

  /** Epochs of the processes that this one has an outbox for. */
  get receivers(): number[] {
    return [...this.#outboxes.keys()]
  }

  /** Subscribes to the channel of this epoch, and then takes it: this process is a new sender and a new receiver to all others. */
  async enter(epoch: number): Promise<void> {
    const { bus, role } = this.#deps
    const old = this.#epoch
    await bus.subscribe(channelOf(role, epoch), (message) => {
      if (this.#epoch === epoch) this.#receive(message)
    })
    this.#epoch = epoch
    this.#unheard = 0
    for (const outbox of this.#outboxes.values()) outbox.close()
    this.#outboxes.clear()
    this.#credit.clear()
    if (old > 0) bus.unsubscribe(channelOf(role, old)).catch(() => {}) // Nothing is received under the old epoch any more.
  }

  /** The next probe of this process's own channel. A connection over which several such messages did not arrive is replaced. */
  nextProbe(): ChannelProbe {
    const { bus, role } = this.#deps
    const channel = channelOf(role, this.#epoch)
    if (this.#probes++ % RENEWALS_PER_MESSAGE > 0) return { channel }
    if (++this.#unheard > MAX_UNHEARD) {
      this.#unheard = 0
      bus.reconnect()
    }
    return { channel, message: packMessage(this.#epoch, 0, []) }
  }

  /** Renews the subscription, which the bus has lost. */
  async resubscribe(): Promise<void> {
    await this.#deps.bus.resubscribe()
  }

  /** The outbox to the process of this epoch; created at the first call. */
  outbox(role: Role, epoch: number): Outbox {
    const known = this.#outboxes.get(epoch)
    if (known) return known
    const { bus, lease, metrics } = this.#deps
    const channel = channelOf(role, epoch)
    const outbox = new Outbox({
      epoch: this.#epoch,
      publish: (message) => {
        metrics.observe('relay_batch_bytes', message.length)
        return bus.publish(channel, message)
      },
      canSendFrames: () => lease.isHeld(),
      creditBytes: () => this.#creditBytes,
      onPublished: (subscribers) => {
        if (subscribers === 0) this.#handlers.onUndelivered(epoch)
      },
    })
    this.#outboxes.set(epoch, outbox)
    return outbox
  }

  /** Sends frames that were held back while the lease was not held. */
  resume(): void {
    for (const outbox of this.#outboxes.values()) outbox.resume()
  }

  /** Sends a heartbeat to every receiver. */
  sendBeat(): void {
    for (const outbox of this.#outboxes.values()) outbox.sendBeat()
  }

  /** Applies the roles of a new member list. The senders of frames share the budget of each receiver. */
  setMembers(members: readonly Member[]): void {
    this.#members = members
    this.#creditBytes = creditOf(members.filter(({ role }) => role !== 'gateway').length)
    this.#credit.setCredit(this.#creditBytes)
  }

  /** Closes the outbox of a member that was lost. Frames that still come from it are dropped and counted. */
  removeMember(epoch: number): void {
    this.#lost.add(epoch)
    for (const oldest of this.#lost) {
      if (this.#lost.size <= MAX_LOST) break
      this.#lost.delete(oldest)
    }
    this.#credit.forget(epoch)
    this.#outboxes.get(epoch)?.close()
    this.#outboxes.delete(epoch)
  }

  isLost(epoch: number): boolean {
    return this.#lost.has(epoch)
  }

  /** Resolves when all outboxes are idle, or after a second. */
  async flush(): Promise<void> {
    const until = performance.now() + FLUSH_MS
    while (performance.now() < until && [...this.#outboxes.values()].some((outbox) => outbox.isBusy)) await sleep(5)
  }

  /** Handles a message. Malformed parts, and messages of an unknown protocol version, are dropped and counted. */
  #receive(message: Buffer): void {
    try {
      this.#handle(message)
    } catch (cause) {
      if (!(cause instanceof MalformedMessage)) throw cause
      this.#deps.metrics.count('messages_dropped')
    }
  }

  #handle(message: Buffer): void {
    const records: ReceivedRecord[] = []
    const { epoch, position } = readMessage(message, (received) => records.push(received))
    this.#unheard = 0
    if (epoch === this.#epoch) return
    if (this.#lost.has(epoch)) return this.#countDropped(records)
    const isBeat = records.some(({ type }) => type === RECORD.beat)
    // Acknowledgements are not acknowledged: two processes would never stop.
    const isAck = records.every(({ type }) => type === RECORD.ack)
    const ack = isAck ? undefined : this.#credit.received(epoch, { position, isBeat })
    if (ack) this.#outboxToSender(epoch).send(ack)
    for (const received of records) {
      if (received.type === RECORD.ack) this.#outboxes.get(epoch)?.acknowledge(acknowledgedPosition(received))
      else this.#handlers.onRecord(epoch, received)
    }
  }

  #outboxToSender(epoch: number): Outbox {
    return this.#outboxes.get(epoch) ?? this.outbox(this.#roleOf(epoch), epoch)
  }

  #countDropped(records: readonly ReceivedRecord[]): void {
    let count = 0
    for (const each of records) {
      if (each.type === RECORD.frames) count += each.count
      if (each.type === RECORD.piece) count++
    }
    this.#deps.metrics.count('stale_frames_dropped', count)
  }

  /**
   * The role of a sender. An unknown sender must be a gateway; at a gateway it must be an executor, which sends runs without a request: workers
   * send to workers only during a hand-off, when both are on the list, and to gateways that have called them.
   */
  #roleOf(epoch: number): Role {
    const member = this.#members.find((each) => each.epoch === epoch)
    return member?.role ?? (this.#deps.role === 'gateway' ? 'executor' : 'gateway')
  }
}

const SHORT: Record<Role, string> = { gateway: 'gw', worker: 'wk', executor: 'ex' }

const channelOf = (role: Role, epoch: number): string => `${SHORT[role]}:${epoch}`
