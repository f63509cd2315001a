import { isDeepStrictEqual } from 'node:util'
import { parseJson } from '../../kernel/json.ts'
import type { MemoryBus } from '../bus/memory-bus.ts'
import {
  type ChannelProbe,
  LEASE_MS,
  MAX_LAPSED,
  type Member,
  type MemberChange,
  type MemberFields,
  type MemberList,
  type MemberLook,
  type Members,
  type Renewal,
} from './members.ts'

type Entry = { process: MemoryMembers; fields: MemberFields; endsAt: number }

/** How many epochs and versions a new primary skips, because the old one may have used them. */
const SKIPPED = 4_096

/** The members of a cluster whose processes are all in this one. */
export class MemberRegistry {
  readonly #now: () => number
  readonly entries = new Map<number, Entry>()
  lastEpoch = 0
  /** Rises with each change of the members. */
  version = 0
  /** Changes when the keys are lost. */
  boot = 0

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Behaves like a Redis that has restarted empty. */
  loseKeys(): void {
    this.entries.clear()
    this.boot++
  }

  /** Returns a function that makes a replica with the present state the primary. */
  replicate(): () => void {
    const [entries, lastEpoch, version] = [[...this.entries], this.lastEpoch, this.version]
    return () => {
      this.entries.clear()
      for (const [epoch, entry] of entries) this.entries.set(epoch, entry)
      this.lastEpoch = lastEpoch + SKIPPED
      this.version = version + SKIPPED
      this.boot++
    }
  }

  list(): Member[] {
    return Array.from(this.entries, ([epoch, { fields, endsAt }]) => {
      return { ...fields, epoch, expiresInMs: endsAt - this.#now() }
    })
  }

  /** Extends the lease, or enters the member. */
  renew(epoch: number, process: MemoryMembers, fields: MemberFields): void {
    this.entries.set(epoch, { process, fields, endsAt: this.#now() + LEASE_MS })
  }
}

/** The channel on which each change is announced. */
const CHANGES = 'members'

/** The members as one process of the cluster reaches them. */
export class MemoryMembers implements Members {
  readonly #bus: MemoryBus
  readonly #registry: MemberRegistry
  /** The life of the registry in which this process has registered. */
  #boot = 0

  constructor(bus: MemoryBus, registry: MemberRegistry) {
    this.#bus = bus
    this.#registry = registry
  }

  async join(fields: MemberFields): Promise<number> {
    const joined = await this.#bus.ask(() => {
      const epoch = ++this.#registry.lastEpoch
      this.#registry.renew(epoch, this, fields)
      this.#announce(epoch, fields)
      return { epoch, boot: this.#registry.boot }
    })
    this.#boot = joined.boot
    return joined.epoch
  }

  async renew(
    epoch: number,
    fields: MemberFields,
    { channel, message }: ChannelProbe,
  ): Promise<{ outcome: Renewal; version: number }> {
    const answer = await this.#bus.ask((): { outcome: Renewal; version: number; boot: number } => {
      const { boot, version } = this.#registry
      if (message) this.#publish(channel, message)
      if (this.#bus.subscribers(channel) === 0) return { outcome: 'unheard', version: 0, boot: this.#boot }
      const known = this.#registry.entries.get(epoch)
      const hasLostKeys = this.#boot !== boot
      if (known ? known.process !== this : !hasLostKeys) return { outcome: 'evicted', version, boot }
      this.#registry.renew(epoch, this, fields)
      if (!known || !isDeepStrictEqual({ ...known.fields, load: 0 }, { ...fields, load: 0 }))
        this.#announce(epoch, fields)
      return { outcome: hasLostKeys ? 'keys_lost' : 'renewed', version: this.#registry.version, boot }
    })
    this.#boot = answer.boot // Set only when the answer has arrived, because the request may be sent twice.
    return answer
  }

  leave(epoch: number): Promise<void> {
    return this.#bus.ask(() => this.#remove(epoch))
  }

  list(): Promise<MemberList> {
    return this.#bus.ask(() => ({ version: this.#registry.version, members: this.#registry.list() }))
  }

  look(loadsOf: readonly number[]): Promise<MemberLook> {
    return this.#bus.ask(() => {
      const { entries, version } = this.#registry
      const lapsed = this.#registry.list().filter(({ expiresInMs }) => expiresInMs <= 0)
      return {
        version,
        lapsed: lapsed.slice(0, MAX_LAPSED).map(({ epoch }) => epoch),
        loads: loadsOf.map((epoch) => entries.get(epoch)?.fields.load ?? 0),
      }
    })
  }

  watch(onChange: (change: MemberChange) => void): Promise<void> {
    return this.#bus.subscribe(CHANGES, (message) => onChange(parseJson(message.toString()) as MemberChange))
  }

  isMember(epoch: number): Promise<boolean> {
    return this.#bus.ask(() => this.#registry.entries.has(epoch))
  }

  isBootMarkerCurrent(): Promise<boolean> {
    return this.#bus.ask(() => this.#boot === this.#registry.boot)
  }

  expire(epoch: number): Promise<boolean> {
    return this.#bus.ask(() => {
      const member = this.#registry.list().find((each) => each.epoch === epoch)
      if (member && member.expiresInMs > 0) return false
      this.#remove(epoch)
      return true
    })
  }

  #remove(epoch: number): void {
    if (this.#registry.entries.delete(epoch)) this.#announce(epoch, undefined)
  }

  /** `fields` are undefined for a member that is gone. */
  #announce(epoch: number, fields: MemberFields | undefined): void {
    const member = fields && { ...fields, load: 0, epoch, expiresInMs: LEASE_MS }
    const change: MemberChange = { version: ++this.#registry.version, epoch, isGone: !fields, member }
    this.#publish(CHANGES, Buffer.from(JSON.stringify(change)))
  }

  #publish(channel: string, message: Buffer): void {
    this.#bus.publish(channel, message).catch(() => {}) // It is lost when this process is cut off in this turn.
  }
}
