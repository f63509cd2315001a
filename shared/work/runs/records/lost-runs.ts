import { lostRecord, type RunFacts } from './record.ts'
import type { EndedRun, RunRecordStore } from './store.ts'

export type LostRunsDeps = {
  store: Pick<RunRecordStore, 'nextOwner' | 'openOf' | 'add' | 'deleteOpen'>
  /** Whether the process is gone, so that it cannot record its runs itself. */
  isGone(owner: string): Promise<boolean>
  /** Whether another process continues the run and will record it. */
  goesOn?(run: RunFacts): boolean
  retentionDays(tenant: RunFacts['tenant']): Promise<number>
  now(): Date
}

/**
 * Decides whether a process is gone for good: `isMember` must have returned `false` for at least `afterMs`. An entry that is missing for a
 * moment does not count.
 */
export function createAbsence(
  isMember: (owner: string) => Promise<boolean>,
  afterMs: number,
  now = () => performance.now(),
) {
  const awaySince = new Map<string, number>()
  return async (owner: string): Promise<boolean> => {
    if (await isMember(owner)) {
      awaySince.delete(owner)
      return false
    }
    const since = awaySince.get(owner) ?? now()
    const isGone = now() - since >= afterMs
    if (isGone) awaySince.delete(owner)
    else awaySince.set(owner, since)
    return isGone
  }
}

/**
 * Records the open runs of dead processes as `worker_lost`; a run that has a record keeps it. Returns the number of runs that were checked.
 * Throws `unavailable`.
 */
export async function recordLostRuns(deps: LostRunsDeps): Promise<number> {
  const { store, isGone } = deps
  let count = 0
  for (let owner = await store.nextOwner(undefined); owner !== undefined; owner = await store.nextOwner(owner)) {
    if (await isGone(owner)) count += await recordLostRunsOf(owner, deps)
  }
  return count
}

async function recordLostRunsOf(owner: string, { store, goesOn, retentionDays, now }: LostRunsDeps): Promise<number> {
  let count = 0
  for (let groups = await store.openOf(owner); groups.length > 0; groups = await store.openOf(owner)) {
    for (const { id, runs } of groups) {
      const endedAt = now().toISOString()
      const ended = await Promise.all(
        runs
          .filter((run) => !goesOn?.(run))
          .map(async (run): Promise<EndedRun> => {
            const keptDays = await retentionDays(run.tenant)
            return { tenant: run.tenant, record: lostRecord(run, endedAt), keptDays }
          }),
      )
      if (ended.length > 0) await store.add(ended)
      await store.deleteOpen([id])
      count += runs.length
    }
  }
  return count
}
