import { mock } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { RunEvent } from '../../../../shared/kernel/events.ts'
import { createLog } from '../../../../shared/kernel/log.ts'
import { NO_METRICS } from '../../../../shared/kernel/metrics.ts'
import type { RunFacts, RunRecord } from '../../../../shared/work/runs/records/record.ts'
import { RunRecorder } from '../../../../shared/work/runs/records/recorder.ts'
import type { EndedRun, OpenRuns } from '../../../../shared/work/runs/records/store.ts'
import { RunFigures } from '../../../../shared/work/runs/run-figures.ts'
import { tenantId } from '../../../support/tenant.ts'

export const TENANT = tenantId('t_1')
export const OTHER = tenantId('t_2')
export const BATCH_MS = 5
export const STEP_WAIT_MS = 20

export const DONE: RunEvent = {
  ...{ type: 'done', total_input_tokens: 20, total_output_tokens: 7, total_tokens: 27, cost_usd: 0.5 },
  ...{ turn_count: 1, stop_reason: 'end_turn' },
}
export const textOf = (text: string): RunEvent => ({ type: 'text', text })

export const runId = (n: number): string => `run_${String(n).padStart(32, '0')}`

export const factsOf = (n: number, more: Partial<RunFacts> = {}): RunFacts => ({
  ...{ tenant: TENANT, run_id: runId(n), kind: 'run', started_at: '2026-11-24T10:00:00.000Z', title: `prompt ${n}` },
  ...more,
})

export const recordOf = (n: number, more: Partial<RunRecord> = {}): RunRecord => ({
  ...{ run_id: runId(n), status: 'done', code: 'ok', kind: 'run', event_count: 2 },
  ...{ started_at: '2026-11-24T10:00:00.000Z', ended_at: '2026-11-24T10:00:01.000Z' },
  ...more,
})

/** As JSON has it, which every record becomes: without fields that are `undefined`. */
export const asStored = (record: RunRecord): RunRecord => JSON.parse(JSON.stringify(record)) as RunRecord

/** The clock of this process: timers, and `performance.now`. Call it in a `beforeEach`. */
export function useClock() {
  let nowMs = 1_000
  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout'] })
    mock.method(performance, 'now', () => nowMs)
  })
  afterEach(() => {
    mock.timers.reset()
    mock.restoreAll()
  })
  /** Lets time pass, and then what was due be done. */
  return async (ms: number) => {
    nowMs += ms
    mock.timers.tick(ms)
    await turn()
  }
}

/** A store in memory. It takes each call unless `failure` returns an error. */
export class FakeStore {
  failure: (method: 'add' | 'addOpen' | 'deleteOpen') => Error | undefined = () => undefined
  readonly added: EndedRun[][] = []
  readonly records = new Map<string, EndedRun>()
  readonly open = new Map<string, OpenRuns>()
  tries = 0
  deletions = 0

  async add(ended: readonly EndedRun[]): Promise<void> {
    this.#take('add')
    this.added.push([...ended])
    for (const each of ended) if (!this.records.has(each.record.run_id)) this.records.set(each.record.run_id, each)
  }

  async addOpen(open: OpenRuns): Promise<void> {
    this.#take('addOpen')
    this.open.set(open.id, open)
  }

  async deleteOpen(ids: readonly string[]): Promise<void> {
    this.#take('deleteOpen')
    this.deletions += ids.length
    for (const id of ids) this.open.delete(id)
  }

  async nextOwner(after = ''): Promise<string | undefined> {
    return [...new Set([...this.open.values()].map(({ owner }) => owner))].sort().find((owner) => owner > after)
  }

  async openOf(owner: string): Promise<OpenRuns[]> {
    return [...this.open.values()].filter((each) => each.owner === owner).slice(0, 2)
  }

  /** The runs that are stored as open. */
  get openRuns(): string[] {
    return [...this.open.values()].flatMap(({ runs }) => runs.map(({ run_id }) => run_id)).sort()
  }

  #take(method: 'add' | 'addOpen' | 'deleteOpen'): void {
    this.tries++
    const failure = this.failure(method)
    if (failure) throw failure
  }
}

/** A recorder with a store that can be made to fail, and what it has counted and logged. */
export function setUpRecorder(audit = { store_payloads: true, retention_days: 30 }) {
  const store = new FakeStore()
  const lines: string[] = []
  const counts = { lost: 0, left: 0 }
  const recorder = new RunRecorder({
    store,
    auditOf: async () => audit,
    owner: () => 'p1',
    batchMs: BATCH_MS,
    stepWaitMs: STEP_WAIT_MS,
    openAfterMs: 250,
    metrics: {
      ...NO_METRICS,
      count(name, by = 1) {
        if (name === 'run_records_lost') counts.lost += by
        if (name === 'open_runs_left') counts.left += by
      },
    },
    log: createLog({ level: 'error', write: (line) => lines.push(line) }),
  })
  const begin = (n: number, more: Partial<RunFacts> = {}) => {
    const figures = new RunFigures()
    const recording = recorder.begin(factsOf(n, more), figures)
    const note = (event: RunEvent, bytes = 100) => {
      figures.note(event)
      recording.note(event, { bytes, isLast: event === DONE })
    }
    return { recording, note, end: () => note(DONE) }
  }
  return { recorder, store, lines, counts, begin, audit }
}
