import type { RunSummary } from '../../shared/cluster/commands/runs.ts'
import type { FrameCursor } from '../../shared/cluster/journal/frame-stream.ts'
import { Journal } from '../../shared/cluster/journal/journal.ts'
import type { AgentEvent } from '../../shared/kernel/events.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import { ExpiryQueue } from '../../shared/work/runs/expiry-queue.ts'
import { JournalMemory } from '../../shared/work/runs/journal-memory.ts'
import type { RunFacts } from '../../shared/work/runs/records/record.ts'
import type { RunReport } from '../../shared/work/runs/run-report.ts'

const MAX_BYTES = 16 * 1024 * 1024
/** The record of a step is stored long before that. */
const KEPT_MS = 5_000

/** The running plan steps of this process, for clients that follow a step (D27.1). Ended steps have records. */
export class LiveSteps {
  readonly #memory = new JournalMemory(MAX_BYTES)
  readonly #steps = new Map<string, LiveStep>()
  readonly #ended = new ExpiryQueue<LiveStep>(KEPT_MS, (step) => this.#forget(step))

  /** Takes the events of a step until its last one. */
  open(facts: RunFacts, report: RunReport): LiveStep {
    const budget = this.#memory.budgetOf(facts.tenant)
    const step: LiveStep = new LiveStep(facts, report, {
      journal: new Journal(budget, undefined, () => this.#onReaders(step)),
      onEnded: () => this.#ended.add(step),
    })
    this.#steps.set(facts.run_id, step)
    return step
  }

  /** `undefined` for an unknown step and for a step of another tenant. */
  get(tenant: TenantId, runId: string): LiveStep | undefined {
    const step = this.#steps.get(runId)
    return step?.facts.tenant === tenant ? step : undefined
  }

  /** Also `undefined` for a step that has ended. */
  describe(tenant: TenantId, runId: string): RunSummary | undefined {
    const step = this.get(tenant, runId)
    return step?.journal.isEnded === false ? step.description : undefined
  }

  #forget(step: LiveStep): void {
    if (this.#steps.get(step.facts.run_id) === step) this.#steps.delete(step.facts.run_id)
    this.#onReaders(step)
  }

  /** A reader of a step that was removed from this list still reads it to its end. */
  #onReaders(step: LiveStep): void {
    const isKnown = this.#steps.get(step.facts.run_id) === step
    const { journal } = step
    if (!isKnown && journal.isEnded && journal.readerCount === 0) journal.drop()
  }
}

class LiveStep {
  readonly facts: RunFacts
  readonly journal: Journal
  readonly #report: RunReport
  readonly #onEnded: () => void

  constructor(facts: RunFacts, report: RunReport, { journal, onEnded }: { journal: Journal; onEnded: () => void }) {
    this.facts = facts
    this.#report = report
    this.journal = journal
    this.#onEnded = onEnded
  }

  note(event: AgentEvent): void {
    const appended = this.journal.append(event)
    this.#report.note(event, appended)
    if (appended.isLast) this.#onEnded()
  }

  follow(after: number): FrameCursor {
    return this.journal.follow(after)
  }

  /** The description of a running step. */
  get description(): RunSummary {
    const { run_id, started_at } = this.facts
    const { details, phases } = this.#report
    const state = { run_id, status: 'running' as const, started_at, ended_at: null }
    return { ...details, ...state, event_count: this.journal.lastSeq, ...(phases?.length && { phases }) }
  }
}
