import { newToken } from '../../../kernel/ids.ts'
import type { Log } from '../../../kernel/log.ts'
import type { Metrics } from '../../../kernel/metrics.ts'
import type { RunFacts } from './record.ts'
import { isAway } from './run-history.ts'
import type { RunRecordStore } from './store.ts'
import { WriteLoop } from './write-loop.ts'

export type OpenRunsDeps = {
  store: Pick<RunRecordStore, 'addOpen' | 'deleteOpen'>
  /** This process's name among the owners of open runs. */
  owner(): string
  /** A run that lasts longer than this is stored as open, in milliseconds; those that begin one after the other are stored together. */
  openAfterMs: number
  /** The least time between two writes, in milliseconds. */
  batchMs: number
  metrics: Metrics
  log: Log
}

/** A run of this process. */
type OpenRun = { readonly facts: RunFacts; readonly hasEnded: boolean }

/** The runs that one document lists as open. `left` are those that are neither recorded nor given up. */
type Group = { id: string; left: Set<OpenRun> }

const MAX_RUNS = 500
const MAX_DELETED = 500
/** Documents that wait for their deletion. Beyond it the newest are left in the store, and counted: most of them are of tries that it did not take. */
const MAX_CLOSED = 10_000

/** Stores the runs that last as open, so that the death of this process does not lose them (D20.4). A short run costs no write. */
export class OpenRuns {
  readonly #deps: OpenRunsDeps
  readonly #loop: WriteLoop
  /** Runs that are neither stored as open nor ended, with their starts, oldest first. */
  #fresh = new Map<OpenRun, number>()
  readonly #groups = new Map<OpenRun, Group>()
  /** The documents that are no longer needed, oldest first. */
  readonly #closed: string[] = []
  #addedAt = -Infinity

  constructor(deps: OpenRunsDeps) {
    this.#deps = deps
    this.#loop = new WriteLoop({
      write: () => this.#write(),
      dueInMs: () => this.#dueInMs(),
      leastMs: () => deps.batchMs,
    })
  }

  begin(run: OpenRun): void {
    this.#fresh.set(run, performance.now())
    this.#loop.schedule(this.#deps.openAfterMs)
  }

  end(run: OpenRun): void {
    this.#fresh.delete(run)
  }

  /** The run is recorded, or is never recorded. Its document does no harm, so that it can wait for others. */
  close(run: OpenRun): void {
    const group = this.#leave(run)
    if (group?.left.size === 0) this.#delete(group, this.#deps.openAfterMs)
  }

  /** Another process goes on with the run. The others of its document are stored as open once more. */
  abandon(run: OpenRun): void {
    this.#fresh.delete(run)
    const group = this.#leave(run)
    if (group) this.#dissolve(group)
  }

  /** Resolves when no document is left that is not needed, or soon after when the store is away. */
  settled(): Promise<void> {
    return this.#loop.settled()
  }

  #dueInMs(): number | undefined {
    if (this.#closed.length > 0) return 0
    const [oldest] = this.#fresh.values()
    if (oldest === undefined) return undefined
    return Math.max(0, Math.max(oldest, this.#addedAt) + this.#deps.openAfterMs - performance.now())
  }

  #leave(run: OpenRun): Group | undefined {
    const group = this.#groups.get(run)
    this.#groups.delete(run)
    group?.left.delete(run)
    return group
  }

  async #write(): Promise<boolean> {
    try {
      await this.#addOpen()
      await this.#deleteClosed()
      return true
    } catch (cause) {
      if (!isAway(cause)) this.#deps.log.error('documents of ended runs were not deleted', { cause })
      return false
    }
  }

  async #addOpen(): Promise<void> {
    const runs = this.#takeDue()
    if (runs.length === 0) return
    this.#addedAt = performance.now()
    const group: Group = { id: newToken(), left: new Set(runs) }
    for (const run of runs) this.#groups.set(run, group)
    try {
      const facts = runs.map(({ facts: { title: _title, ...known } }) => known)
      await this.#deps.store.addOpen({ id: group.id, owner: this.#deps.owner(), runs: facts })
    } catch (cause) {
      this.#dissolve(group)
      if (isAway(cause)) throw cause
      for (const run of group.left) this.#fresh.delete(run)
      this.#deps.log.error('runs that last were not stored: the death of this process loses them', { cause })
    }
  }

  #takeDue(): OpenRun[] {
    const until = performance.now() - this.#deps.openAfterMs
    const due: OpenRun[] = []
    for (const [run, begunAt] of this.#fresh) {
      if (begunAt > until || due.length === MAX_RUNS) break
      due.push(run)
    }
    for (const run of due) this.#fresh.delete(run)
    return due
  }

  async #deleteClosed(): Promise<void> {
    const ids = this.#closed.splice(0, MAX_DELETED)
    try {
      if (ids.length > 0) await this.#deps.store.deleteOpen(ids)
    } catch (cause) {
      if (isAway(cause)) this.#closed.unshift(...ids)
      else this.#deps.metrics.count('open_runs_left', ids.length)
      this.#leaveSurplus()
      throw cause
    }
  }

  /** Deletes the document, and stores its runs as open once more. */
  #dissolve(group: Group): void {
    for (const run of group.left) this.#groups.delete(run)
    const again = [...group.left].filter(({ hasEnded }) => !hasEnded)
    this.#fresh = new Map([...again.map((run) => [run, -Infinity] as const), ...this.#fresh])
    this.#addedAt = -Infinity
    this.#delete(group, 0)
  }

  #delete({ id }: Group, inMs: number): void {
    this.#closed.push(id)
    this.#leaveSurplus()
    this.#loop.schedule(inMs)
  }

  /** A document that is left is read when this process is gone: its runs without a record are called lost then. */
  #leaveSurplus(): void {
    const left = this.#closed.splice(MAX_CLOSED)
    this.#deps.metrics.count('open_runs_left', left.length)
  }
}
