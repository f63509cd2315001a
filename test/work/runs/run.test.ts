// Tests run.ts, run-identity.ts and run-gate.ts.
import { once } from 'node:events'
import { expect } from 'chai'
import { JOURNAL_LIMITS, Journal } from '../../../shared/cluster/journal/journal.ts'
import { LoopBudget } from '../../../shared/kernel/async/loop-budget.ts'
import { errorEvent, type RunEvent } from '../../../shared/kernel/events.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import type { StartWait } from '../../../shared/tenancy/limits/start-lines.ts'
import { Run } from '../../../shared/work/runs/run.ts'
import type { EarlierEvents, RunIdentity } from '../../../shared/work/runs/run-identity.ts'
import type { RunReport } from '../../../shared/work/runs/run-report.ts'
import { newBudget } from '../../support/journal-budget.ts'
import { settled } from '../../support/settled.ts'
import { DONE } from '../../worker/events.ts'
import { readAll, say, untilCancelled } from './runs-setup.ts'

const TEXT: RunEvent = { type: 'text', text: 'hi' }
const PHASE = { kind: 'model', name: 'm', turn: 1, started_ms: 0, ended_ms: 1 }

/** A run with its report. `calls` lists the calls of its hooks and of the report, in order. */
function setUp(identity: Partial<RunIdentity> = {}, more: Partial<RunReport> = {}) {
  const calls: string[] = []
  const note = (call: string) => void calls.push(call)
  const report: RunReport = {
    note: ({ type }, { bytes, isLast }) => note(`report ${type}${bytes > 0 ? '' : ' empty'}${isLast ? ' last' : ''}`),
    restore: ({ events }) => note(`restore ${events.length}`),
    abandon: () => note('abandon'),
    details: { model: 'm' },
    isRecorded: false,
    ...more,
  }
  const journal = new Journal(newBudget(1e6), JOURNAL_LIMITS)
  const run = new Run(
    { id: 'run_1', tenant: DEFAULT_TENANT, sessionId: undefined, ...identity },
    { journal, loop: new LoopBudget() },
    {
      onBug: () => note('bug'),
      onEvent: () => note('event'),
      report: ({ kind }) => (note(`open ${kind}`), report),
      onStarted: () => note('started'),
      onEnded: (_run, { type }) => note(`ended ${type}`),
    },
  )
  return { run, calls }
}

describe('a run and its report', () => {
  it('tells each of its events, its beginning and its end, in order', async () => {
    const { run, calls } = setUp()
    await run.execute(say)
    expect(calls).to.deep.equal([
      ...['open run', 'started', 'event', 'report text_delta', 'event', 'report done last', 'ended done'],
    ])
  })

  it('D37.1: a bug ends it, and before that its open permission request, which no reply can decide any more', async () => {
    const { run } = setUp()
    const ask = { id: 'p1', tool_name: 'Write', tool_use_id: 'c1', input: {}, message: '?', expires_at: '' }
    const withdrawn = Promise.withResolvers<void>()
    const executed = run.execute(async function* (_run, signal) {
      void run.waitFor(withdrawn.promise)
      signal.addEventListener('abort', () => withdrawn.resolve())
      yield { type: 'permission_request', ...ask }
      throw new Error('a bug')
    })
    await executed
    const types = (await readAll(run.follow(0))).match(/event: \w+|"how":"\w+"/g)
    expect(types).to.deep.equal([
      'event: permission_request',
      'event: permission_resolved',
      '"how":"cancelled"',
      'event: error',
    ])
  })

  it('is a message in a session and a run without one, unless it has another subject', () => {
    expect(setUp().run.kind).to.equal('run')
    expect(setUp({ sessionId: 's1' }).run).to.include({ kind: 'message', scopeId: 's1' })
    expect(setUp({ sessionId: 's1', kind: 'plan' }).run.kind).to.equal('plan')
  })

  it('is described with its phases, where there are some', () => {
    const phases = [PHASE] as unknown as NonNullable<RunReport['phases']>
    expect(setUp({}, { phases }).run.description).to.deep.include({ phases, model: 'm', run_id: 'run_1' })
    for (const none of [{}, { phases: [] }])
      expect(setUp({}, none).run.description).to.include({ model: 'm' }).and.not.have.property('phases')
  })

  it('is recorded when its report says so', () => {
    expect([setUp().run.isRecorded, setUp({}, { isRecorded: true }).run.isRecorded]).to.deep.equal([false, true])
  })
})

describe('a run that no client has yet', () => {
  it('D36.1: begins when it is accepted', async () => {
    const { run, calls } = setUp({ isHeld: true })
    const executing = run.execute(say)
    await settled()
    expect([calls, run.status, run.isHeld]).to.deep.equal([['open run'], 'waiting', true])
    run.accept()
    await executing
    expect([calls[1], calls.at(-1), run.isHeld]).to.deep.equal(['started', 'ended done', false])
  })

  it('D36.1: that is refused ends as if it had never been', async () => {
    const { run, calls } = setUp({ isHeld: true })
    const executing = run.execute(say)
    expect(run.refuse()).to.equal(true)
    await Promise.all([executing, run.ended])
    expect([calls, run.isAbandoned, run.refuse()]).to.deep.equal([['open run', 'abandon'], true, false])
  })

  it('D36.1: cannot be refused any more when a client has it', async () => {
    const { run } = setUp({ isHeld: true })
    run.accept()
    expect(run.refuse()).to.equal(false)
    await run.execute(say)
    expect(run.status).to.equal('done')
  })

  it('D16.1: that is cancelled before its turn is announced before its end is', () => {
    const { run, calls } = setUp()
    run.cancel('cancelled')
    expect(calls.filter((call) => /started|ended/.test(call))).to.deep.equal(['started', 'ended error'])
  })

  it('waits until it is accepted, and one that is cancelled waits no longer', async () => {
    for (const free of [
      (run: Run) => run.accept(),
      (run: Run) => run.cancel('cancelled'),
      (run: Run) => run.abandon(),
    ]) {
      const { run } = setUp({ isHeld: true })
      let isFree = false
      const waiting = run.whenAccepted().then(() => (isFree = true))
      await settled()
      expect(isFree).to.equal(false)
      free(run)
      await waiting
    }
    await setUp().run.whenAccepted()
  })
})

describe('a run that another process had begun', () => {
  const earlierOf = (...events: RunEvent[]): EarlierEvents => ({
    ...{ events: events.map((event, i) => [i + 1, event] as const), from: 1, reserved: 10 },
  })

  it('shows the events of before, reports them once, and goes on above every number that was sent', async () => {
    const { run, calls } = setUp({ earlier: earlierOf(TEXT) })
    expect(calls).to.deep.equal(['open run', 'restore 1'])
    expect(run).to.include({ isEnded: false, status: 'waiting' })
    await run.execute(say)
    expect((await readAll(run.follow(0))).match(/^id: \d+/gm)).to.deep.equal(['id: 1', 'id: 11', 'id: 12'])
  })

  it('has ended when its last event was sent: the other process has reported and recorded that', async () => {
    const { run, calls } = setUp({ earlier: earlierOf(TEXT, DONE) })
    await run.ended
    expect(run).to.include({ isEnded: true, status: 'done', isRecorded: true })
    expect(calls).to.deep.equal([])
  })

  it('D32.9c: has in the error of its end what it had used, if it is cancelled before it goes on', async () => {
    const used = { total_input_tokens: 40, total_output_tokens: 5, total_tokens: 45, cost_usd: 2, turn_count: 1 }
    const { run } = setUp({ earlier: { ...earlierOf(TEXT), used } })
    run.cancel('cancelled')
    expect(await readAll(run.follow(1))).to.include('"total_tokens":45,"cost_usd":2,"turn_count":1')
  })

  it('begins anew when none of its events is known', () => {
    const { run, calls } = setUp({ earlier: earlierOf() })
    expect([run.isEnded, run.isRecorded, calls]).to.deep.equal([false, false, ['open run', 'restore 0']])
  })
})

describe('a run that another process goes on with', () => {
  it('has no events, no end and no bug here any more, and what is at work is told to stop', async () => {
    const { run, calls } = setUp()
    const running = run.execute(untilCancelled)
    await settled()
    const stopped = once(run.signal, 'abort')
    run.abandon()
    await Promise.all([stopped, running])
    expect(run.signal.reason).to.equal('worker_lost')
    expect(run).to.include({ isEnded: false, isAbandoned: true })
    expect(calls.slice(-2)).to.deep.equal(['report text_delta', 'abandon'])
  })
})

describe('a run that waits for a place among those of its tenant', () => {
  function wait() {
    const turn = Promise.withResolvers<'placed' | 'late'>()
    const left: number[] = []
    const standing = { place: 3, expectedStart: new Date(0) }
    const of: StartWait = { turn: turn.promise, standing, retryAfterSecs: 7, leave: () => void left.push(1) }
    return { turn, left, ...setUp({ wait: of }) }
  }

  it('shows where it stands, and begins when it has its place', async () => {
    const { run, turn } = wait()
    const executed = run.execute(say)
    expect(run.description).to.include({ status: 'waiting', place: 3, expected_start: '1970-01-01T00:00:00.000Z' })
    turn.resolve('placed')
    await executed
    expect(run.description).to.include({ status: 'done' }).and.not.have.any.keys('place', 'expected_start')
    expect(run.placed).to.equal(undefined)
  })

  it('ends with no_room when it has waited for as long as it may, and says when to come back; it never begins', async () => {
    const { run, turn, calls } = wait()
    const events = readAll(run.follow(0))
    const executed = run.execute(() => expect.fail('it begins'))
    turn.resolve('late')
    await executed
    expect(await events)
      .to.include('event: error')
      .and.include('"code":"no_room"')
      .and.include('"retry_after_secs":7')
    expect(calls).to.deep.equal(['open run', 'started', 'event', 'report error last', 'ended error'])
    expect(run.status).to.equal('failed')
  })

  for (const [how, end] of [
    ['is cancelled', (run: Run) => run.cancel('cancelled')],
    ['goes to another process', (run: Run) => run.abandon()],
  ] as const)
    it(`leaves the line when it ${how}, and does not begin when its turn comes nevertheless`, async () => {
      const { run, turn, left } = wait()
      const executed = run.execute(() => expect.fail('it begins'))
      end(run)
      turn.resolve('placed')
      await executed
      expect(left.length).to.be.at.least(1)
    })
})

describe('a run with a deadline', () => {
  const at = (ms: number) => ({ about: { deadline_at: new Date(Date.now() + ms).toISOString() } })

  it('D54.8: ends with timeout when it comes, while it is at work, or waits for a place', async () => {
    const atWork = setUp(at(20)).run
    const waiting = setUp({
      ...at(20),
      wait: { turn: new Promise(() => {}), standing: undefined, retryAfterSecs: 1, leave: () => {} },
    }).run
    const events = [atWork, waiting].map((run) => readAll(run.follow(0)))
    await Promise.all([atWork.execute(untilCancelled), waiting.execute(() => expect.fail('it begins'))])
    for (const text of await Promise.all(events)) expect(text).to.include('"code":"timeout"')
    expect([atWork.status, waiting.status]).to.deep.equal(['failed', 'failed'])
  })

  it('D54.8: that was over when it begins is told to stop before it does anything', async () => {
    const { run } = setUp(at(-1))
    const reasons: unknown[] = []
    await run.execute(async function* (_run, signal) {
      reasons.push(signal.reason)
      yield errorEvent('timeout', 'late')
    })
    expect([run.status, reasons]).to.deep.equal(['failed', ['timeout']])
  })
})
