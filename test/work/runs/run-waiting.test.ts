import { getEventListeners, once } from 'node:events'
import { expect } from 'chai'
import { JOURNAL_LIMITS, Journal } from '../../../shared/cluster/journal/journal.ts'
import { LoopBudget } from '../../../shared/kernel/async/loop-budget.ts'
import { errorEvent } from '../../../shared/kernel/events.ts'
import { newId } from '../../../shared/kernel/ids.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { Run, type RunExecutor } from '../../../shared/work/runs/run.ts'
import { newBudget } from '../../support/journal-budget.ts'
import { settled } from '../../support/settled.ts'
import { until } from '../../support/until.ts'

/** A run whose journal makes it wait as soon as one event was not read, and the number of events its engine was asked for. */
function setUp() {
  const journal = new Journal(newBudget(1e6), { ...JOURNAL_LIMITS, maxBehindEvents: 0 })
  const identity = { id: newId('run'), tenant: DEFAULT_TENANT, sessionId: undefined }
  const run = new Run(identity, { journal, loop: new LoopBudget() }, { onBug: () => {}, onEvent: () => {} })
  const requested = { count: 0 }
  const talk: RunExecutor = async function* (_run, signal) {
    while (!signal.aborted) {
      requested.count++
      yield { type: 'text_delta', text: 'x' }
    }
    yield errorEvent('cancelled', 'x')
  }
  return { run, talk, requested }
}

describe('a run that waits for its reader', () => {
  it('asks the engine for nothing until the reader has read, and then continues', async () => {
    const { run, talk, requested } = setUp()
    const reader = run.follow(0)
    const running = run.execute(talk)
    await until(() => run.journal.isBackpressured, { what: 'the run to wait for its reader' })
    await settled()
    expect([requested.count, run.journal.lastSeq, run.status]).to.deep.equal([1, 1, 'running'])
    reader.take()
    await until(() => requested.count === 2, { what: 'the run to continue' })
    reader.close()
    run.cancel('cancelled')
    await running
  })

  it('ends when it is cancelled, and leaves no abort listener', async () => {
    const { run, talk, requested } = setUp()
    run.follow(0)
    const running = run.execute(talk)
    await until(() => run.journal.isBackpressured, { what: 'the run to wait for its reader' })
    await until(() => getEventListeners(run.signal, 'abort').length === 1, { what: 'the wait to watch for the cancel' })
    const aborted = once(run.signal, 'abort')
    run.cancel('cancelled')
    await Promise.all([aborted, running])
    expect([run.status, requested.count]).to.deep.equal(['cancelled', 1])
    expect(getEventListeners(run.signal, 'abort')).to.have.length(0)
  })
})
