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
  /** A run that lasts longer than this is stored as open, in milliseconds. Runs that begin shortly after each other are stored together. */
  openAfterMs: number
  /** The least time between two writes, in milliseconds. */
  batchMs: number
  metrics: Metrics
  log: Log
}

/** A run of this process. */
type OpenRun = { readonly facts: RunFacts; readonly hasEnded: boolean }

/** The runs that one document lists as open. `left`: the runs that are neither recorded nor dropped. */
type Group = { id: string; left: Set<OpenRun> }

const MAX_RUNS = 500
const MAX_DELETED = 500
/**
 * The most documents that wait for deletion. Above it the newest stay in the store and are counted: most of them belong
 * to writes that the store refused.
 */
const MAX_CLOSED = 10_000

/** Stores long runs as open, so that they are not lost when this process dies (D20.4). A short run costs no write. */
export class OpenRuns {
  readonly #deps: OpenRunsDeps
  readonly #loop: WriteLoop
  /** Runs that are neither stored as open nor ended, with their start times, oldest first. */
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

  /** The run is recorded, or is never recorded. Its document does no harm, so it can be deleted later, together with others. */
  close(run: OpenRun): void {
    const group = this.#leave(run)
    if (group?.left.size === 0) this.#delete(group, this.#deps.openAfterMs)
  }

  /** Another process continues the run. The other runs of its document are stored as open again. */
  abandon(run: OpenRun): void {
    this.#fresh.delete(run)
    const group = this.#leave(run)
    if (group) this.#dissolve(group)
  }

  /** Resolves when all unneeded documents are deleted, or a little later when the store does not answer. */
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

  /** Deletes the document, and stores its remaining runs as open again. */
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

  /**
   * Leaves documents in the store when too many wait for deletion. Such a document is read when this process is gone:
   * its runs without a record then count as lost.
   */
  #leaveSurplus(): void {
    const left = this.#closed.splice(MAX_CLOSED)
    this.#deps.metrics.count('open_runs_left', left.length)
  }
}
