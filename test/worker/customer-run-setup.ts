import { createPrepareCustomerRun } from '../../services/worker/prepare-one-shot.ts'
import type { RunStart } from '../../services/worker/prepare-run.ts'
import { LineCache } from '../../shared/agent/customers/cache.ts'
import { type CustomerIdentity, CustomerLine } from '../../shared/agent/customers/line.ts'
import type { FinishedRun, Ledger } from '../../shared/agent/customers/store/ledger.ts'
import { Conversation } from '../../shared/agent/engine/conversation.ts'
import { Lease } from '../../shared/cluster/members/lease.ts'
import { now } from '../../shared/cluster/members/moment.ts'
import { type Batched, oneByOne } from '../../shared/kernel/async/batch.ts'
import type { AgentEvent } from '../../shared/kernel/events.ts'
import { DEFAULT_TENANT as tenant } from '../../shared/kernel/tenant.ts'
import type { Run } from '../../shared/work/runs/run.ts'
import { SILENT_LOG } from '../support/silent-log.ts'
import { DONE } from './events.ts'

export const ANSWER: AgentEvent = { type: 'text', text: 'answer' }

/** A ledger that calls `append` before it stores a run. `written` lists the stored runs. */
export function fakeLedger(append = async (_run: FinishedRun) => {}) {
  const written: string[] = []
  const ledger: Ledger = {
    async append(_tenant, _customer, run) {
      await append(run)
      return written.push(run.run_id)
    },
    page: async () => ({ entries: [], next_cursor: null }),
    last: async () => [],
  }
  return { ledger, written }
}

type Events = Batched<AgentEvent>[]
type Setup = { ledger?: Ledger; lease?: Lease; events?: Events; maxLines?: number; hasLines?: boolean }

/** A run of customer `c` whose engine yields `events`. */
export function setUp({
  ledger = fakeLedger().ledger,
  lease = held(),
  events,
  maxLines = 1,
  hasLines = true,
}: Setup = {}) {
  const memories = { last: async () => [], add: async () => ({ id: '', content: '', created_at: '' }) }
  const lines = new LineCache({ maxLines, idleMs: -1 }, (customer: CustomerIdentity) => {
    return new CustomerLine({ ledger, memories }, { entries: 1, chars: 100 }, customer)
  })
  const starts: RunStart[] = []
  const prepared = {
    prompt: 'question',
    async *execute(_run: Run, start: RunStart): AsyncGenerator<Batched<AgentEvent>> {
      starts.push(start)
      yield* events ?? [ANSWER, DONE]
    },
    firstCall: () => Promise.reject(new Error('not expected')),
  }
  const log = SILENT_LOG
  const ending = new AbortController()
  const prepareCustomerRun = createPrepareCustomerRun({ lines: hasLines ? lines : undefined, fence: lease, log })
  const execute = prepareCustomerRun(prepared, {
    ...{ tenant, customerId: 'c', services: {} },
    start: { conversation: new Conversation() },
  })
  const run = { id: 'run_1', whenAccepted: async () => {} } as Run
  const iterator = oneByOne(execute(run, ending.signal))
  const next = async () => ((await iterator.next()).value ?? { type: 'nothing' }) as AgentEvent
  const all = async () => {
    const types: string[] = []
    for (let event = await iterator.next(); !event.done; event = await iterator.next()) types.push(event.value.type)
    return types
  }
  return { next, all, ending, lines, starts, leave: () => iterator.return?.() }
}

/** A lease that has just been renewed. */
export function held(): Lease {
  const lease = new Lease()
  lease.renewed(now())
  return lease
}
