import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import { expect } from 'chai'
import type { RunStatus } from '../../../shared/cluster/commands/runs.ts'
import { CursorStream } from '../../../shared/cluster/journal/cursor-stream.ts'
import { newId } from '../../../shared/kernel/ids.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { settled } from '../../support/settled.ts'
import { tenantId } from '../../support/tenant.ts'
import { until } from '../../support/until.ts'
import { readAll, refusal, say, sayMuch, sayMuchUntilCancelled, setUp, untilCancelled } from './runs-setup.ts'

describe('runs', () => {
  it('D4.5g: the summary of a run holds its status, times and number of events', async () => {
    const { runs, open } = setUp()
    const run = open()
    expect(runs.get(run.tenant, run.id).summary).to.include({ status: 'waiting', ended_at: null, event_count: 0 })
    await run.execute(say)
    expect(run.summary).to.include({ run_id: run.id, status: 'done', event_count: 2 })
    expect(run.summary.ended_at).to.match(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/)
  })

  it('D4.5g: a run that waits for a permission is waiting, and running again afterwards', async () => {
    const run = setUp().open()
    const running = run.execute(untilCancelled)
    expect(run.status).to.equal('running')
    const reply = Promise.withResolvers<void>()
    const asked = run.waitFor(reply.promise)
    expect(run.status).to.equal('waiting')
    reply.resolve()
    await asked
    expect(run.status).to.equal('running')
    run.cancel('cancelled')
    await running
  })

  it('D4.5f: a cancelled run ends its stream with the code of the cancel', async () => {
    const run = setUp().open()
    const reading = readAll(run.follow(0))
    const running = run.execute(untilCancelled)
    run.cancel('cancelled')
    await running
    expect(await reading).to.include('"code":"cancelled"')
    expect(run.status).to.equal('cancelled')
  })

  it('a run that is cancelled while it waits for its turn ends at once and is never executed', async () => {
    const run = setUp().open()
    run.cancel('cancelled')
    await run.ended
    await run.execute(() => expect.fail('executed'))
    expect(run.status).to.equal('cancelled')
  })

  it('D4.5f: a cancelled run goes on until its engine has stopped, and ends as the engine says', async () => {
    const run = setUp().open()
    const gate = Promise.withResolvers<void>()
    const running = run.execute(async function* () {
      await gate.promise
      yield* say(run, run.signal)
    })
    run.cancel('cancelled')
    expect([run.status, run.isEnded]).to.deep.equal(['running', false])
    gate.resolve()
    await running
    expect(run.status).to.equal('done')
  })

  it('D4.5f: a run that is cancelled while it asks for a permission is waiting until its engine has stopped', async () => {
    const run = setUp().open()
    const reply = Promise.withResolvers<void>()
    const running = run.execute(untilCancelled)
    const asked = run.waitFor(reply.promise)
    run.cancel('cancelled')
    expect(run.status).to.equal('waiting')
    await running
    expect(run.status).to.equal('cancelled')
    reply.resolve()
    await asked
    expect(run.status, 'after a reply that is too late').to.equal('cancelled')
  })

  it('a run is executed once', async () => {
    const { open, bugs } = setUp()
    const run = open()
    const running = run.execute(untilCancelled)
    const again = await run.execute(() => expect.fail('executed')).catch(String)
    expect(again).to.equal('Error: a run that is running cannot become running')
    run.cancel('cancelled')
    await running
    expect([run.summary.event_count, bugs]).to.deep.equal([2, []])
  })

  it('a run that another process goes on with is unknown here, tells its readers, and is not ended by a late cancel', async () => {
    const { runs, open } = setUp()
    const run = open()
    const reading = readAll(run.follow(0))
    runs.release(run)
    run.cancel('cancelled')
    expect(() => runs.get(run.tenant, run.id)).to.throw(`no run ${run.id}`)
    expect([run.isEnded, runs.live.size]).to.deep.equal([false, 0])
    expect(await reading).to.include('stream_gap')
    await run.execute(() => expect.fail('executed'))
  })

  it('D4.4: an engine that throws still ends its stream, with the code internal and no detail', async () => {
    const { open, bugs } = setUp()
    const run = open()
    const reading = readAll(run.follow(0))
    await run.execute(async function* () {
      yield { type: 'text_delta', text: 'hi' }
      throw new Error('sk-secret')
    })
    expect(await reading).to.match(/event: error\ndata: {"error":"internal error","code":"internal"/)
    expect(bugs).to.have.length(1)
    expect(run.status).to.equal('failed')
  })

  it('D4.4: an engine that ends without a terminal event is a bug that ends the stream', async () => {
    const { open, bugs } = setUp()
    const run = open()
    await run.execute(async function* () {})
    expect(run.status).to.equal('failed')
    expect(bugs).to.have.length(1)
  })

  it('D1.3 RUNS_PER_WORKER: a run above the limit is 429 with Retry-After; an ended run makes room', async () => {
    const { open } = setUp({ maxLive: 1 })
    const run = open()
    const error = refusal(() => open())
    expect(error.status).to.equal(429)
    expect(error.retryAfterSecs).to.be.at.least(1)
    await run.execute(say)
    expect(() => open()).not.to.throw()
  })

  it('D1.3 RUNS_PER_TENANT: a tenant with its share of the runs gets 429, and another tenant still has room', async () => {
    const { open } = setUp({ maxLive: 4, maxLivePerTenant: 2 })
    const runs = [open(), open()]
    expect(refusal(() => open()))
      .to.include({ status: 429 })
      .and.have.property('message')
      .that.includes('this tenant')
    const others = [open(tenantId('other')), open(tenantId('other'))]
    const full = refusal(() => open(tenantId('third')))
    expect(full).to.include({ status: 429 }).and.have.property('message').that.includes('this server')
    await runs[0]?.execute(say)
    open()
    for (const run of others) run.cancel('cancelled')
  })

  it('D4.5d: when no slot is free, the run that has been without a reader longest is aborted in favour of a new one', async () => {
    const { runs, open } = setUp({ maxLive: 3 })
    const [read, second, first] = [open(), open(), open()]
    const running = [read, second, first].map((run) => run.execute(untilCancelled))
    const readers = [read, second, first].map((run) => new CursorStream(run.follow(0)))
    await readers[2]?.return()
    await readers[1]?.return()
    const fourth = open(tenantId('other'))
    await first.ended
    expect(first.status).to.equal('cancelled')
    expect([read.status, second.status]).to.deep.equal(['running', 'running'])
    open()
    await second.ended
    expect(refusal(() => open()).status, 'all other runs have readers, or never had one').to.equal(429)
    expect(runs.live).to.include(fourth)
    read.cancel('cancelled')
    await Promise.all(running)
  })

  it('D4.5d: a run whose reader has come back is not aborted in favour of a new one', async () => {
    const { open } = setUp({ maxLive: 1 })
    const run = open()
    await new CursorStream(run.follow(0)).return()
    const reader = run.follow(0)
    expect(refusal(() => open()).status).to.equal(429)
    reader.close()
    open()
    await run.ended
  })

  it('D4.5d: a run that is aborted in favour of another makes room once, however long its engine takes to stop', async () => {
    const { open } = setUp({ maxLive: 1 })
    const run = open()
    const gate = Promise.withResolvers<void>()
    const running = run.execute(async function* () {
      await gate.promise
      yield* say(run, run.signal)
    })
    await new CursorStream(run.follow(0)).return()
    open()
    expect(refusal(() => open()).status).to.equal(429)
    gate.resolve()
    await running
    expect(refusal(() => open()).status, 'after its end').to.equal(429)
  })

  it('D4.5d: a run that has ended makes no room, whether its last reader left before that or after it', async () => {
    for (const when of ['before', 'after']) {
      const { open } = setUp({ maxLive: 1 })
      const run = open()
      const reader = run.follow(0)
      if (when === 'before') reader.close()
      await run.execute(say)
      await settled()
      reader.close()
      open()
      expect(refusal(() => open()).status, when).to.equal(429)
    }
  })

  it('a run that another process goes on with makes room once', () => {
    const { runs, open } = setUp({ maxLive: 1 })
    const run = open()
    for (let times = 0; times < 2; times++) runs.release(run)
    open()
    expect(refusal(() => open()).status).to.equal(429)
  })

  it('D4.5d: a tenant whose share is full aborts a run of its own, never one of another tenant', async () => {
    const { open } = setUp({ maxLive: 4, maxLivePerTenant: 1 })
    const [own, foreign] = [open(), open(tenantId('other'))]
    const running = [own, foreign].map((run) => run.execute(untilCancelled))
    await new CursorStream(foreign.follow(0)).return()
    expect(refusal(() => open()).status).to.equal(429)
    await new CursorStream(own.follow(0)).return()
    open()
    await own.ended
    expect(foreign.status).to.equal('running')
    foreign.cancel('cancelled')
    await Promise.all(running)
  })

  it('D4.5d: a run that needs no reader is never aborted in favour of a new one', async () => {
    const { runs, open } = setUp({ maxLive: 1 })
    const plan = runs.open({ id: 'run_1', tenant: DEFAULT_TENANT, sessionId: undefined, needsNoReader: true })
    await new CursorStream(plan.follow(0)).return()
    expect(refusal(() => open()).status).to.equal(429)
    plan.cancel('cancelled')
  })

  it('D4.5b: a run whose reader left is aborted and unknown after RUN_RESUME_SECS', async () => {
    const { runs, open, forgotten } = setUp({ resumeMs: 1 })
    const run = open()
    const reader = new CursorStream(run.follow(0))
    const running = run.execute(untilCancelled)
    await reader.next()
    await reader.return()
    expect(await forgotten).to.equal(run)
    await running
    expect(run.status).to.equal('cancelled')
    expect(refusal(() => runs.get(run.tenant, run.id)).status).to.equal(404)
  })

  it('a plan that goes on in the same process keeps its new run when the time of the earlier one is over', async () => {
    const { runs, forgotten } = setUp({ resumeMs: 20 })
    const identity = { id: newId('run'), tenant: DEFAULT_TENANT, sessionId: undefined, needsNoReader: true }
    const earlier = runs.open(identity)
    await earlier.execute(say)
    const later = runs.open(identity)
    const ended = later.execute(untilCancelled)
    expect(await forgotten).to.equal(earlier)
    expect(runs.get(DEFAULT_TENANT, identity.id)).to.equal(later)
    later.cancel('cancelled')
    await ended
  })

  it('D4.5b: a run continues and stays known while it has a reader', async () => {
    const { runs, open, forgotten } = setUp({ resumeMs: 1 })
    const read = open()
    const reader = new CursorStream(read.follow(0))
    const unread = open()
    const running = read.execute(untilCancelled)
    expect(await forgotten).to.equal(unread)
    expect(runs.get(read.tenant, read.id).status).to.equal('running')
    read.cancel('cancelled')
    await running
    await reader.return()
  })

  it('api.md Authentication 8: another tenant’s run is unknown', () => {
    const { runs, open } = setUp()
    const run = open(tenantId('other'))
    expect(refusal(() => runs.get(DEFAULT_TENANT, run.id)).status).to.equal(404)
    expect(runs.list(DEFAULT_TENANT, { limit: 10 }).runs).to.deep.equal([])
  })

  it('D2.7: the list of runs has pages, newest first, each run once, and a filter by status', async () => {
    const { runs, open } = setUp()
    const made = [open(), open(), open(), open(), open()]
    await made[2]?.execute(say)
    const seen: string[] = []
    let cursor: string | null | undefined
    do {
      const page = runs.list(DEFAULT_TENANT, { limit: 2, ...(cursor && { cursor }) })
      seen.push(...page.runs.map(({ run_id }) => run_id))
      cursor = page.next_cursor
    } while (cursor)
    expect(new Set(seen)).to.deep.equal(new Set(made.map(({ id }) => id)))
    expect(seen).to.have.length(5)
    const listOf = (status: RunStatus) =>
      runs.list(DEFAULT_TENANT, { limit: 10, status }).runs.map(({ run_id }) => run_id)
    expect(listOf('done')).to.deep.equal([made[2]?.id])
    expect(listOf('waiting')).to.have.length(4)
  })

  it('the list of live runs leaves ended ones out, and that of unrecorded ones those that are live', async () => {
    const { runs, open } = setUp()
    const [live, ended] = [open(), open()]
    await ended.execute(say)
    const ids = (among: 'live' | 'unrecorded') =>
      runs.list(DEFAULT_TENANT, { limit: 10, among }).runs.map(({ run_id: id }) => id)
    expect([ids('live'), ids('unrecorded')]).to.deep.equal([[live.id], [ended.id]])
  })

  it('D2.7: a cursor that no list has returned is 400', () => {
    const error = refusal(() => setUp().runs.list(DEFAULT_TENANT, { limit: 10, cursor: 'bogus' }))
    expect(error.status).to.equal(400)
    expect(error.param).to.equal('/cursor')
  })

  it('above the process’s limit of bytes the frames of the oldest ended runs are dropped', async () => {
    const { open } = setUp({ maxJournalBytes: 3000 })
    const [first, second] = [open(), open()]
    await first.execute(sayMuch)
    await second.execute(sayMuch)
    expect(await readAll(first.follow(0))).to.include('stream_gap')
    expect(await readAll(second.follow(0))).not.to.include('stream_gap')
  })

  it('D4.5f: cancelling a run that waits for its reader ends it', async () => {
    const run = setUp().open()
    const reader = run.follow(0)
    const running = run.execute(sayMuchUntilCancelled)
    await until(() => run.journal.isBackpressured, { what: 'the run to wait for its reader' })
    const produced = run.journal.lastSeq
    await nextLoopTurn()
    expect(run.journal.lastSeq).to.equal(produced)
    run.cancel('cancelled')
    await running
    expect(run.status).to.equal('cancelled')
    reader.close()
  })

  it('D4.5b: a run that waits for its reader goes on when the reader has left', async () => {
    const run = setUp().open()
    const reader = run.follow(0)
    const running = run.execute(sayMuchUntilCancelled)
    await until(() => run.journal.isBackpressured, { what: 'the run to wait for its reader' })
    const produced = run.journal.lastSeq
    reader.close()
    await until(() => run.journal.lastSeq > produced, { what: 'the run to produce more events' })
    run.cancel('cancelled')
    await running
  })

  it('a process that leaves waits for its runs, then ends those that no other one takes over', async () => {
    const { runs, open } = setUp()
    const [ending, leaving] = [open(), open()]
    const running = [ending.execute(untilCancelled), leaving.execute(untilCancelled)]
    const left = runs.endAll(0, (run) => run === leaving)
    let isOver = false
    const over = left.then(() => void (isOver = true))
    expect(await readAll(ending.follow(0))).to.include('"code":"worker_draining"')
    await running[0]
    await settled()
    expect([leaving.status, isOver]).to.deep.equal(['running', false])
    runs.release(leaving)
    await over
    await running[1]
  })

  it('a process that leaves ends all its runs when no other one takes any over', async () => {
    const { runs, open } = setUp()
    const run = open()
    const running = run.execute(untilCancelled)
    await runs.endAll(0)
    await running
    expect(await readAll(run.follow(0))).to.include('"code":"worker_draining"')
  })

  it('a process that leaves ends no run that ends by itself in time', async () => {
    const { runs, open } = setUp()
    const run = open()
    const left = runs.endAll(60_000)
    await run.execute(say)
    await left
    expect(run.status).to.equal('done')
    await runs.endAll(60_000) // There is none.
  })

  it('D37.6: a process that leaves is needed for an ended run until that is forgotten, and for one that is recorded until its readers have left', async () => {
    const never = new AbortController()
    const { runs, open } = setUp({ resumeMs: 20 })
    await runs.served(never.signal) // There is none.
    const run = open()
    const served = runs.served(never.signal)
    await run.execute(say)
    expect(runs.get(run.tenant, run.id)).to.equal(run)
    await served
    expect(refusal(() => runs.get(run.tenant, run.id))).to.include({ status: 404 })

    const report = { note: () => {}, abandon: () => {}, details: {}, isRecorded: true, isReplayable: true }
    const recorded = setUp(
      {},
      () => {},
      () => report,
    )
    const read = recorded.open()
    const reader = read.follow(0)
    await read.execute(say)
    let isServed = false
    const left = recorded.runs.served(never.signal).then(() => (isServed = true))
    await new Promise((resolve) => setTimeout(resolve, 60)) // Longer than between two looks.
    expect(isServed).to.equal(false)
    reader.close()
    await left
    expect(recorded.runs.get(read.tenant, read.id)).to.equal(read)
  })

  it('a run cancelled twice keeps the first reason', async () => {
    const run = setUp().open()
    const running = run.execute(untilCancelled)
    run.cancel('worker_draining')
    run.cancel('cancelled')
    await running
    expect(run.status).to.equal('failed')
    expect(await readAll(run.follow(0))).to.include('"code":"worker_draining"')
  })

  it('a model that answers without a pause does not block the event loop', async () => {
    const run = setUp().open()
    const running = run.execute(sayMuchUntilCancelled)
    await settled()
    expect(run.isEnded).to.equal(false)
    run.cancel('cancelled')
    await running
  })
})
