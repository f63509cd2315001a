import type { Member } from './members.ts'

/** The executors as one process sees them. */
export class Executors {
  #all: ReadonlyMap<number, Member> = new Map()

  /** Epochs of all executors, including draining ones. */
  get alive(): readonly number[] {
    return [...this.#all.keys()]
  }

  /** Whether at least one takes new work. */
  hasAny(): boolean {
    return [...this.#all.values()].some(({ state, expiresInMs }) => state === 'active' && expiresInMs > 0)
  }

  isAlive(epoch: number): boolean {
    return this.#all.has(epoch)
  }

  /** Applies a new list of members. */
  update(members: readonly Member[]): void {
    this.#all = new Map(members.filter(({ role }) => role === 'executor').map((member) => [member.epoch, member]))
  }
}

/** The executors, and those that have just joined. */
export interface KnownExecutors {
  /** Whether at least one takes new work. */
  hasAny(): boolean
  /** Throws `unavailable` when the cluster cannot be reached. */
  isAlive(epoch: number): Promise<boolean>
}

/** `discover` lists the members again if this epoch is unknown, since it may have just joined. */
export const knownExecutors = (executors: Executors, discover: (epoch: number) => Promise<void>): KnownExecutors => ({
  hasAny: () => executors.hasAny(),
  async isAlive(epoch) {
    if (!executors.isAlive(epoch)) await discover(epoch)
    return executors.isAlive(epoch)
  },
})
