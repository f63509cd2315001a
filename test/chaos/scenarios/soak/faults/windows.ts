import type { Kind, Target } from './plan.ts'

/** The time of a fault on one process. `name` is that of a process, or `redis` or `mongo`. */
export type Window = { target: Target; name: string; kind: Kind; from: number; until: number }

/** The processes that a request or a run needs: some by name, and every process of these kinds. */
export type Needs = { names?: readonly string[]; targets?: readonly Target[] }

/**
 * From the end of a fault until the cluster is as before. A dead worker is evicted 4 s after its last sign of life; a job of a dead executor
 * is handed out again within 16 s; after a fault in MongoDB its driver finds the primary.
 */
const RECOVERY_MS: Record<Target, number> = {
  gateway: 6_000,
  worker: 6_000,
  executor: 17_000,
  redis: 6_000,
  mongo: 6_000,
}
/** A process must go on as usual while its wall clock is shifted. */
const UNNOTICED: ReadonlySet<Kind> = new Set(['clock'])

/** The faults of a soak and their times. */
export class Windows {
  readonly all: Window[] = []

  /** The times in which the faults could be noticed. */
  noticed(): { from: number; until: number }[] {
    return this.all
      .filter(({ kind }) => !UNNOTICED.has(kind))
      .map(({ target, from, until }) => ({ from, until: until + RECOVERY_MS[target] }))
  }

  /** Whether a fault could be noticed between these times by something with these needs. */
  touches(from: number, to: number, { names = [], targets = [] }: Needs): boolean {
    return this.all.some(
      (each) =>
        !UNNOTICED.has(each.kind) &&
        (names.includes(each.name) || targets.includes(each.target)) &&
        each.from <= to &&
        each.until + RECOVERY_MS[each.target] >= from,
    )
  }
}
