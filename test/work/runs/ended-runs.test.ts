import { setImmediate as nextLoopTurn, setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { collectGarbage } from '../../../scripts/bench/garbage.ts'
import { JOURNAL_LIMITS } from '../../../shared/cluster/journal/journal.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import type { Run, RunExecutor } from '../../../shared/work/runs/run.ts'
import type { RunReport } from '../../../shared/work/runs/run-report.ts'
import { tenantId } from '../../support/tenant.ts'
import { until } from '../../support/until.ts'
import { DONE } from '../../worker/events.ts'
import { readAll, refusal, say, sayMuch, setUp, untilCancelled } from './runs-setup.ts'

const NEIGHBOUR = tenantId('neighbour')
const NO_REPORT: RunReport = { note() {}, abandon() {}, details: {}, isRecorded: false }

describe('ended runs', () => {
  it('D4.5b: a run that ended is unknown after RUN_RESUME_SECS, and nothing of it can be replayed', async () => {
    const { runs, open, forgotten } = setUp({ resumeMs: 1 })
    const run = open()
    await run.execute(say)
    expect(await forgotten).to.equal(run)
    expect(refusal(() => runs.get(run.tenant, run.id)).status).to.equal(404)
    expect(runs.list(run.tenant, { limit: 10 }).runs).to.deep.equal([])
    expect(await readAll(run.follow(0))).to.include('"code":"stream_gap"')
    expect(run.status).to.equal('done')
  })

  it('D4.5b: the time starts anew at the end of the run', async () => {
    const order: Run[] = []
    const { open } = setUp({ resumeMs: 1 }, (run) => order.push(run))
    const [ended, waiting] = [open(), open()]
    await ended.execute(say)
    await until(() => order.length === 2, { what: 'both runs to be forgotten' })
    expect(order).to.deep.equal([waiting, ended])
  })

  it('D4.5b: the time starts anew when the last reader of an ended run leaves', async () => {
    const { runs, open, forgotten } = setUp({ resumeMs: 1 })
    const run = open()
    const reader = run.follow(0)
    await run.execute(say)
    await timersOf(1)
    expect(runs.get(run.tenant, run.id)).to.equal(run)
    reader.close()
    expect(await forgotten).to.equal(run)
  })

  it('a run is forgotten once, also when a reader comes after that, or when its time was over before it had ended', async () => {
    const order: Run[] = []
    const { open } = setUp({ resumeMs: 1, maxEnded: 1 }, (run) => order.push(run))
    const forgotten = (count: number) => until(() => order.length >= count, { what: `${count} runs to be forgotten` })
    const [ended, cut] = [open(), open()]
    await ended.execute(say)
    await cut.execute(untilCancelled)
    await forgotten(2)
    for (const run of [ended, cut]) await readAll(run.follow(0))
    const later = [open(), open()]
    for (const run of later) await run.execute(say)
    await forgotten(4)
    expect(order, 'in any order').to.have.members([ended, cut, ...later])
  })

  it('above their limit ended runs that all have readers stay', async () => {
    const { runs, open } = setUp({ maxEnded: 1 })
    const read = [open(), open(), open()]
    const readers = read.map((run) => run.follow(0))
    for (const run of read) await run.execute(say)
    await runs.endAll(60_000)
    for (const run of read) expect(runs.get(run.tenant, run.id)).to.equal(run)
    for (const reader of readers) reader.close()
  })

  it('D20.3: of the ended runs with a whole record a tenant keeps its newest 1,000, and those that are being read', async () => {
    const recorded = { ...NO_REPORT, isRecordedWhole: true }
    const { runs, open } = setUp({ maxLive: 2_000 }, undefined, ({ tenant }) =>
      tenant === NEIGHBOUR ? NO_REPORT : recorded,
    )
    const read = open()
    const reader = read.follow(0)
    const [oldest, unrecorded] = [open(), open(NEIGHBOUR)]
    for (const run of [read, oldest, unrecorded]) await run.execute(say)
    for (let n = 0; n < 999; n++) await open().execute(say)
    await nextLoopTurn()
    expect(runs.has(oldest.tenant, oldest.id), 'the 1,000th newest').to.equal(true)
    for (let n = 0; n < 1_001; n++) await open(n % 2 === 0 ? DEFAULT_TENANT : NEIGHBOUR).execute(say)
    await nextLoopTurn()
    expect(runs.has(oldest.tenant, oldest.id)).to.equal(false)
    expect(runs.get(read.tenant, read.id), 'has a reader').to.equal(read)
    for (let n = 0; n < 501; n++) await open(NEIGHBOUR).execute(say)
    await nextLoopTurn()
    expect(runs.get(unrecorded.tenant, unrecorded.id), 'has no record').to.equal(unrecorded)
    reader.close()
  })

  it('the bytes of forgotten runs are free for other runs', async () => {
    const { runs, open } = setUp({ resumeMs: 1, maxJournalBytes: 3_000 })
    for (let n = 0; n < 3; n++) {
      const run = open()
      await run.execute(sayMuch)
      expect(await readAll(run.follow(0)), `run ${n}`).not.to.include('stream_gap')
      await until(() => runs.countByStatus().done === 0, { what: 'the run to be forgotten' })
    }
  })

  it('a forgotten run is not kept in memory', async () => {
    const { runs, open } = setUp({ resumeMs: 1 })
    const executed = async () => {
      const run = open()
      await run.execute(say)
      return new WeakRef(run)
    }
    const refs = [await executed(), await executed(), await executed()]
    await until(() => runs.countByStatus().done === 0, { what: 'the runs to be forgotten' })
    await nextLoopTurn()
    collectGarbage()
    // The hook of the first one resolved a promise, which keeps it.
    expect(refs.slice(1).map((ref) => ref.deref())).to.deep.equal([undefined, undefined])
  })

  it('a run that can be followed after its end holds its frames, and neither its conversation nor what listened to its signal', async () => {
    const { runs, open } = setUp()
    const refs: WeakRef<object>[] = []
    const converse: RunExecutor = async function* (run, signal) {
      const conversation = { messages: ['x'.repeat(1_000_000)] }
      refs.push(new WeakRef(conversation))
      signal.addEventListener('abort', () => conversation.messages.pop())
      yield { type: 'text_delta', text: `${run.id} read ${conversation.messages.length} message` }
      yield DONE
    }
    const executed = async () => {
      const run = open()
      await run.execute(converse)
      return run.id
    }
    const ids = [await executed(), await executed(), await executed()]
    await nextLoopTurn()
    collectGarbage()
    expect(refs.map((ref) => ref.deref())).to.deep.equal([undefined, undefined, undefined])
    for (const id of ids) {
      expect(await readAll(runs.get(DEFAULT_TENANT, id).follow(0))).to.include(`${id} read 1 message`)
    }
  })

  it('an ended run takes less than 1,500 bytes of the heap', async () => {
    const { runs, open } = setUp({ maxLive: 2_000 })
    const bytesOfOne = async (count: number) => {
      const before = usedHeap()
      for (let n = 0; n < count; n++) await open().execute(say)
      await nextLoopTurn()
      return (usedHeap() - before) / count
    }
    await bytesOfOne(500)
    const rounds: number[] = []
    for (let round = 0; round < 5; round++) rounds.push(await bytesOfOne(2_000))
    expect(runs.countByStatus().done).to.equal(10_500)
    // The lowest, since in some rounds V8 allocates memory for itself; what runs hold is in each of them.
    expect(Math.min(...rounds)).to.be.below(1_500)
  })

  it('above the limit of bytes a run with a reader keeps its frames', async () => {
    const { open } = setUp({ maxJournalBytes: 1_500 })
    const [read, unread] = [open(), open()]
    const reader = read.follow(0)
    await read.execute(sayMuch)
    await unread.execute(sayMuch)
    await open().execute(sayMuch)
    expect(await readAll(read.follow(0))).not.to.include('stream_gap')
    expect(await readAll(unread.follow(0))).to.include('stream_gap')
    reader.close()
  })

  it('above the limit of bytes the tenant that holds most loses its oldest frames; a neighbour keeps all of its own', async () => {
    const { open } = setUp({ maxLive: 100, maxJournalBytes: 20_000 })
    const neighbour = open(NEIGHBOUR)
    await neighbour.execute(sayMuch)
    const greedy: Run[] = []
    for (let n = 0; n < 45; n++) {
      const run = open()
      await run.execute(sayMuch)
      greedy.push(run)
    }
    await nextLoopTurn()
    expect(await readAll(neighbour.follow(0))).not.to.include('stream_gap')
    const kept: boolean[] = []
    for (const run of greedy) kept.push(!(await readAll(run.follow(0))).includes('stream_gap'))
    expect(kept).to.deep.equal(greedy.map((_run, n) => n >= 45 - kept.filter(Boolean).length))
    expect(kept.filter(Boolean).length).to.be.at.least(6)
  })

  it('a neighbour keeps its frames while the runs of the tenant that holds most are all being read, and these give way when their readers leave', async () => {
    const { open } = setUp({ maxLive: 100, maxJournalBytes: 20_000 })
    const neighbour = open(NEIGHBOUR)
    await neighbour.execute(sayMuch)
    const greedy = Array.from({ length: 45 }, () => open())
    const readers = greedy.map((run) => run.follow(0))
    await Promise.all(greedy.map((run) => run.execute(sayMuch)))
    await nextLoopTurn()
    expect(neighbour.journal.readAfter(0), 'while they are read').not.to.equal(undefined)
    for (const reader of readers) reader.close()
    expect(neighbour.journal.readAfter(0), 'when they are read').not.to.equal(undefined)
    const kept = greedy.map((run) => run.journal.readAfter(0) !== undefined)
    expect(kept.filter(Boolean).length).to.be.within(6, 20)
    expect(kept.lastIndexOf(false), 'the oldest went').to.be.below(kept.indexOf(true))
  })

  it('the live runs of a tenant that holds most lose their oldest events before a neighbour loses any', async () => {
    const journal = { ...JOURNAL_LIMITS, floorBytes: 64_000 }
    const { open } = setUp({ maxLive: 100, maxJournalBytes: 400_000, journal })
    const hold = Promise.withResolvers<void>()
    const sayMuchAndWait: RunExecutor = async function* () {
      for (let n = 0; n < 300; n++) yield { type: 'text_delta', text: 'x'.repeat(1_000) }
      await hold.promise
      yield DONE
    }
    const live = open()
    const running = live.execute(sayMuchAndWait)
    await until(() => live.journal.lastSeq === 300, { what: 'the live run to wait' })
    const neighbours = Array.from({ length: 60 }, () => open(NEIGHBOUR))
    for (const run of neighbours) await run.execute(sayMuch)
    await nextLoopTurn()
    for (const run of neighbours) expect(await readAll(run.follow(0))).not.to.include('stream_gap')
    expect(live.journal.readAfter(0)).to.equal(undefined)
    hold.resolve()
    await running
  })

  it('above their limit runs of the tenant that has the most are forgotten first', async () => {
    const { runs, open } = setUp({ maxEnded: 3 })
    const neighbour = open(NEIGHBOUR)
    await neighbour.execute(say)
    const greedy = [open(), open(), open(), open()]
    for (const run of greedy) await run.execute(say)
    await nextLoopTurn()
    expect(runs.has(NEIGHBOUR, neighbour.id)).to.equal(true)
    expect(greedy.map((run) => runs.has(run.tenant, run.id))).to.deep.equal([false, false, true, true])
  })

  it('above their limit the oldest ended runs are forgotten, never live ones or those with a reader', async () => {
    const { runs, open } = setUp({ maxEnded: 2 })
    const [live, read, first, second, third] = [open(), open(), open(), open(), open()]
    const reader = read.follow(0)
    for (const run of [read, first]) await run.execute(say)
    expect(runs.countByStatus()).to.deep.equal({ running: 0, waiting: 3, done: 2, failed: 0, cancelled: 0 })
    for (const run of [second, third]) await run.execute(say)
    await nextLoopTurn()
    const known = runs.list(live.tenant, { limit: 10 }).runs.map(({ run_id }) => run_id)
    expect(known).to.have.members([live.id, read.id, third.id])
    reader.close()
  })

  it('a run that is forgotten early is not forgotten again when its time is over', async () => {
    const forgotten: string[] = []
    const { runs, open } = setUp({ maxEnded: 0, resumeMs: 1 }, ({ id }) => forgotten.push(id))
    const run = open()
    await run.execute(say)
    await timersOf(1)
    await nextLoopTurn()
    expect(forgotten).to.deep.equal([run.id])
    expect(runs.countByStatus().done).to.equal(0)
  })
})

/** Resolves after all timers of this length that were started before: Node runs them in their order. */
const timersOf = (ms: number): Promise<void> => sleep(ms)

function usedHeap(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}
