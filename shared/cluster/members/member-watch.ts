import { isLapsed, MemberTable } from './member-table.ts'
import type { Member, MemberChange, Members } from './members.ts'
import { isLookDue } from './membership-times.ts'
import type { Steadiness } from './steadiness.ts'

export type MemberWatchDeps = {
  members: Members
  /** The processes to which this one sends messages. */
  peers: {
    readonly receivers: readonly number[]
    isLost(epoch: number): boolean
    removeMember(epoch: number): void
  }
  steadiness: Steadiness
  own(): number
  /** Whether this process places runs by the loads of the workers. */
  needsLoads(): boolean
  onMembers(members: readonly Member[]): void
  onMemberLost(epoch: number): void
}

/**
 * Follows the changes of the members, and evicts those whose lease has run out. Lists the members at the beginning, and after a missed
 * change. See `shared/cluster/README.md` "Membership and leases".
 */
export class MemberWatch {
  readonly #deps: MemberWatchDeps
  readonly #table: MemberTable
  /** The version in Redis at the last tick: its changes must arrive before the next tick. */
  #expectedVersion = 0
  /** Changes that have come while the members are listed. */
  #held: MemberChange[] | undefined
  /** Processes that this one has removed, but that are registered again because Redis had lost the removal. */
  readonly #back = new Set<number>()
  /** Members that were removed and not yet reported. */
  readonly #lost: number[] = []
  #isUnknown = false
  #listing: Promise<void> | undefined
  #refreshing: Promise<void> | undefined

  constructor(deps: MemberWatchDeps) {
    this.#deps = deps
    this.#table = new MemberTable((members) => this.#onMembers(members))
  }

  /** When it resolves, the members have been listed once. */
  async start(): Promise<void> {
    await this.#deps.members.watch((change) => this.#onChange(change))
    await this.#list()
  }

  /** Call it twice a second. */
  async tick(): Promise<void> {
    if (this.#table.version < this.#expectedVersion) await this.#list() // A message was lost.
    await this.#removeAgain()
    const isDue = isLookDue(this.#table.size, this.#deps.needsLoads())
    if (isDue || !this.#table.isSettled()) await this.#look()
  }

  /** Lists the members now if they have changed. Simultaneous calls share the result. */
  async refresh(): Promise<void> {
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined
    })
    await this.#refreshing
  }

  /** Refreshes the members if this epoch is higher than all known ones: that process may have just joined. */
  async discover(epoch: number): Promise<void> {
    this.#table.flush()
    for (const known of this.#table.epochs) if (known >= epoch) return
    await this.refresh()
  }

  /** Whether it is a member whose lease has not run out. */
  isAlive(epoch: number): boolean {
    return this.#table.isAlive(epoch)
  }

  /** Whether a former worker, which Redis does not list at present, may register again. It is removed if it does not do so in time. */
  awaitsWorker(): boolean {
    return this.#table.awaitsWorker()
  }

  /** Called when this process has renewed its lease; the members have this version now. */
  onRenewed(version: number): void {
    this.#expectedVersion = version
  }

  /** Called when this process was registered again. The next tick lists the members, whatever their version is. */
  onRegistered(): void {
    this.#isUnknown = false
    this.#table.forgetVersion()
    this.#expectedVersion = 1
  }

  async #refresh(): Promise<void> {
    const { version } = await this.#deps.members.look([])
    if (version !== this.#table.version) await this.#list()
    this.#table.flush()
  }

  /** Finds changes whose messages were lost, leases that have run out, and processes that are known here but are not members. */
  async #look(): Promise<void> {
    const { peers, members, steadiness, needsLoads } = this.#deps
    const { receivers } = peers // Read first: a process that calls meanwhile may have joined after the look.
    const workers = needsLoads() ? this.#table.nextWorkers() : []
    const { version, lapsed, loads } = await members.look(workers.map(({ epoch }) => epoch))
    steadiness.check() // Redis may have answered after a pause that no tick has noticed yet.
    for (const [i, worker] of workers.entries()) worker.load = loads[i] ?? worker.load
    this.#table.setLapsed(new Set(lapsed))
    this.#expectedVersion = version
    await this.#removeGone(this.#table.version >= version ? receivers : [], lapsed)
  }

  /** Lists the members. Simultaneous calls share the result. */
  async #list(): Promise<void> {
    this.#listing ??= this.#listNow().finally(() => {
      const held = this.#held ?? []
      this.#held = undefined
      this.#listing = undefined
      for (const change of held) this.#onChange(change)
    })
    await this.#listing
  }

  async #listNow(): Promise<void> {
    const { peers, members, steadiness, own } = this.#deps
    const { receivers } = peers
    this.#held = []
    const list = await members.list()
    steadiness.check()
    this.#isUnknown = !list.members.some(({ epoch }) => epoch === own())
    // Redis has lost its keys, or this process was evicted: the list is no reason to evict anybody.
    if (this.#isUnknown) return steadiness.reset()
    const alive = list.members.filter(({ epoch }) => !peers.isLost(epoch))
    for (const { epoch } of list.members) if (peers.isLost(epoch)) this.#back.add(epoch)
    this.#table.replace({ ...list, members: alive })
    await this.#removeGone(
      receivers,
      alive.filter(isLapsed).map(({ epoch }) => epoch),
    )
  }

  /** Applies the next change. After a gap the members are listed, but not while Redis does not know this process. */
  #onChange(change: MemberChange): void {
    const { peers, own } = this.#deps
    if (this.#held) return void this.#held.push(change)
    if (change.version <= this.#table.version || this.#isUnknown) return
    if (change.version > this.#table.version + 1) return void this.#list().catch(() => {}) // The next tick finds the gap.
    const isBack = change.member && peers.isLost(change.epoch)
    if (isBack) this.#onBack(change.epoch)
    this.#table.apply(isBack ? { ...change, member: undefined } : change)
    if (!change.isGone) return
    if (change.epoch === own()) this.#table.remove([change.epoch])
    else this.#remove([change.epoch]) // It left, or another process evicted it.
  }

  /**
   * Evicts these members if their leases have run out, and drops processes that Redis does not list. It does neither if this
   * process could not see others renew, or Redis may have lost keys.
   */
  async #removeGone(receivers: readonly number[], lapsed: readonly number[]): Promise<void> {
    const { members, steadiness } = this.#deps
    const table = this.#table
    const findGone = () => [...receivers, ...table.unlisted].filter((epoch) => !table.isListed(epoch))
    if (lapsed.length + findGone().length === 0 || !steadiness.isSteady()) return
    if (!(await members.isBootMarkerCurrent())) return
    if (!steadiness.isSteady()) return // The answer to a renewal has meanwhile shown that Redis has lost its keys.
    for (const epoch of lapsed) if (await members.expire(epoch)) this.#remove([epoch])
    this.#remove(findGone())
  }

  #onBack(epoch: number): void {
    this.#back.add(epoch)
    this.#removeAgain().catch(() => {}) // If this fails, the next tick tries again.
  }

  /** Removes such processes again: no messages are exchanged with a removed process, so it must rejoin under a new epoch. */
  async #removeAgain(): Promise<void> {
    for (const epoch of this.#back) {
      await this.#deps.members.leave(epoch)
      this.#back.delete(epoch)
    }
  }

  #remove(epochs: readonly number[]): void {
    const { peers } = this.#deps
    for (const epoch of epochs) {
      if (peers.isLost(epoch)) continue
      peers.removeMember(epoch)
      this.#lost.push(epoch)
    }
    this.#table.remove(epochs)
  }

  /** The lost members are reported last: calls to them fail then, and the callers ask whether they are alive. */
  #onMembers(members: readonly Member[]): void {
    this.#deps.onMembers(members)
    for (const epoch of this.#lost.splice(0)) this.#deps.onMemberLost(epoch)
  }
}
