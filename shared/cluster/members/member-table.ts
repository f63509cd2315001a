import type { Member, MemberChange, MemberList } from './members.ts'

/** How many workers' loads are read at a time. */
const MAX_LOADS = 64
/** When many processes join one after the other, the table's users get them in groups. */
const NOTICE_MS = 20

/** The members that one process knows, and the version of that list. */
export class MemberTable {
  readonly #onChanged: (members: readonly Member[]) => void
  #members = new Map<number, Member>()
  /** Members that are missing in the last list. Redis may have lost their keys; then they register again. */
  readonly #unlisted = new Set<number>()
  /** Members whose leases have run out. */
  #lapsed: ReadonlySet<number> = new Set()
  #version = 0
  #nextWorker = 0
  #notice: NodeJS.Timeout | undefined

  /** `onChanged` is called up to 20 ms after members have changed. */
  constructor(onChanged: (members: readonly Member[]) => void) {
    this.#onChanged = onChanged
  }

  get size(): number {
    return this.#members.size
  }

  get version(): number {
    return this.#version
  }

  get epochs(): Iterable<number> {
    return this.#members.keys()
  }

  get unlisted(): Iterable<number> {
    return this.#unlisted
  }

  /** Whether a worker that is missing in the last list may register again. */
  awaitsWorker(): boolean {
    return [...this.#unlisted].some((epoch) => this.#members.get(epoch)?.role === 'worker')
  }

  /** Whether all known members are in the last list, and no lease had run out at the last check. */
  isSettled(): boolean {
    return this.#unlisted.size + this.#lapsed.size === 0
  }

  /** Whether it is a member, by the last list and later changes. */
  isListed(epoch: number): boolean {
    return this.#members.has(epoch) && !this.#unlisted.has(epoch)
  }

  /** Whether it is a member whose lease has not run out. */
  isAlive(epoch: number): boolean {
    const member = this.#members.get(epoch)
    return member !== undefined && !isLapsed(member)
  }

  /** Applies a list. Members that are not in it stay known until they are removed. Calls `onChanged` at once. */
  replace({ version, members }: MemberList): void {
    const listed = new Map(members.map((member) => [member.epoch, member]))
    this.#unlisted.clear()
    for (const [epoch, member] of this.#members) {
      if (listed.has(epoch)) continue
      this.#unlisted.add(epoch)
      listed.set(epoch, member)
    }
    this.#members = listed
    this.#lapsed = new Set(members.filter(isLapsed).map(({ epoch }) => epoch))
    this.#version = version
    this.#scheduleNotice()
    this.flush()
  }

  /** Makes changes be ignored until the next list. */
  forgetVersion(): void {
    this.#version = 0
  }

  /** Applies the next change. A member that is gone stays known until it is removed. */
  apply({ version, epoch, member }: MemberChange): void {
    this.#version = version
    if (!member) return
    this.#unlisted.delete(epoch)
    this.#members.set(epoch, { ...member, load: this.#members.get(epoch)?.load ?? 0 })
    this.#scheduleNotice()
  }

  remove(epochs: readonly number[]): void {
    if (epochs.length === 0) return
    for (const epoch of epochs) {
      this.#unlisted.delete(epoch)
      this.#members.delete(epoch)
    }
    this.#scheduleNotice()
  }

  /** The workers whose loads are read next; all workers take turns. */
  nextWorkers(): Member[] {
    const workers = [...this.#members.values()].filter(({ role }) => role === 'worker')
    if (workers.length <= MAX_LOADS) return workers
    const from = this.#nextWorker % workers.length
    this.#nextWorker = from + MAX_LOADS
    return [...workers.slice(from), ...workers.slice(0, from)].slice(0, MAX_LOADS)
  }

  /** The leases of these members have run out, and those of the others have not. */
  setLapsed(lapsed: ReadonlySet<number>): void {
    const changed = lapsed.symmetricDifference(this.#lapsed)
    this.#lapsed = lapsed
    for (const epoch of changed) {
      const member = this.#members.get(epoch)
      if (member) member.expiresInMs = lapsed.has(epoch) ? 0 : 1
    }
    if (changed.size > 0) this.#scheduleNotice()
  }

  /** Calls `onChanged` at once if members have changed since its last call. */
  flush(): void {
    if (!this.#notice) return
    clearTimeout(this.#notice)
    this.#notice = undefined
    this.#onChanged([...this.#members.values()])
  }

  #scheduleNotice(): void {
    this.#notice ??= setTimeout(() => this.flush(), NOTICE_MS).unref()
  }
}

export const isLapsed = ({ expiresInMs }: Member): boolean => expiresInMs <= 0
