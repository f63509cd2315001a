// Tests session-runs.ts and kept-events.ts, and open-runs.ts, which reads what they write.

import { expect } from 'chai'
import { SessionRuns } from '../../../services/worker/sessions/session-runs.ts'
import { grantNumbers, type RunsEntry, storedRuns } from '../../../shared/agent/sessions/open-runs.ts'
import type { RunEvent } from '../../../shared/kernel/events.ts'
import { newId } from '../../../shared/kernel/ids.ts'
import { DEFAULT_TENANT as TENANT } from '../../../shared/kernel/tenant.ts'
import type { Run } from '../../../shared/work/runs/run.ts'
import { Runs } from '../../../shared/work/runs/runs.ts'
import { DONE } from '../events.ts'

const AT = '2026-01-01T00:00:00.000Z'
const TURN: readonly RunEvent[] = [
  { type: 'turn_start', turn_number: 1, model: 'm' },
  { type: 'text_delta', text: 'a' },
  { type: 'text', text: 'a' },
  { type: 'turn_end', turn_number: 1, input_tokens: 1, output_tokens: 1, cost_usd: 0 },
]

/** The runs of a session, and the entries that its log has so far. */
function setUp() {
  const known = new Runs(
    { maxLive: 100, resumeMs: 3_600_000, maxJournalBytes: 1e6 },
    { onBug: (_run, cause) => expect.fail(String(cause)), onEvent: () => {}, onForgotten: () => {} },
  )
  const waits: (() => void)[] = []
  const runs = new SessionRuns({ note() {}, stored: () => new Promise((resolve) => waits.push(() => resolve(true))) })
  const entries: { seq: number; at: string; isBase?: true; runs: RunsEntry }[] = []
  let seq = 0
  const accept = (prompt: string, isHeld = false): Run => {
    const run = known.open({ id: newId('run'), tenant: TENANT, sessionId: 's1', isHeld })
    runs.add(run, { prompt }, { isStored: false })
    return run
  }
  const store = (isBase = false) => {
    const taken = runs.take(++seq, { isBase })
    const entry = taken && { runs: JSON.parse(JSON.stringify(taken.entry)) as RunsEntry }
    if (entry) entries.push({ seq, at: AT, ...entry, ...(isBase && { isBase }) })
    taken?.onStored()
  }
  /** Sends events as the run's executor does. */
  const send = async (run: Run, events: readonly RunEvent[]) => {
    for (const event of events) {
      const waiting = runs.send(event)
      if (waiting) for (const stored of waits.splice(0)) store(), stored()
      await waiting
      run.journal.append(event)
      if (event.type === 'turn_end')
        runs.progress?.endTurn({ ...runs.progress.totals, turns: event.turn_number }, undefined)
    }
  }
  return { runs, accept, store, send, entries, read: () => storedRuns(entries) }
}

describe('the runs of a session in its log', () => {
  it('D32.7b: a message is there when it is accepted, in its order, until its run has ended', async () => {
    const { runs, accept, store, send, read } = setUp()
    const [first, second] = [accept('one'), accept('two')]
    runs.begin(first)
    store()
    expect(read().open.map(({ runId, message }) => [runId, message])).to.deep.equal([
      [first.id, { prompt: 'one' }],
      [second.id, { prompt: 'two' }],
    ])
    await send(first, [...TURN, DONE])
    store()
    const { open, ended } = read()
    const [last] = ended
    expect([open.map(({ runId }) => runId), last?.runId, last?.earlier.events.at(-1)?.[1].type]).to.deep.equal([
      ...[[second.id], first.id, 'done'],
    ])
    expect(open[0]?.earlier).to.equal(undefined)
  })

  it('D32.7a: the events of complete turns are there with their numbers, without deltas, and no number is sent that is not reserved', async () => {
    const { runs, accept, store, send, read } = setUp()
    const run = accept('one')
    runs.begin(run)
    store()
    await send(run, [...TURN, { type: 'turn_start', turn_number: 2, model: 'm' }])
    store()
    const earlier = read().open[0]?.earlier
    expect(earlier?.events.map(([seq, { type }]) => [seq, type])).to.deep.equal([
      [1, 'turn_start'],
      [3, 'text'],
      [4, 'turn_end'],
    ])
    expect(earlier?.state.totals.turns).to.equal(1)
    const deltas = Array.from({ length: 10_000 }, (): RunEvent => ({ type: 'text_delta', text: 'x' }))
    for (const delta of deltas) {
      await send(run, [delta])
      const reserved = read().open[0]?.earlier?.reserved ?? 0
      if (run.journal.lastSeq > reserved) expect.fail(`${run.journal.lastSeq} was sent, and ${reserved} is reserved`)
    }
  })

  it('an entry that has everything takes the place of those before', async () => {
    const { runs, accept, store, send, entries, read } = setUp()
    const run = accept('one')
    runs.begin(run)
    await send(run, TURN)
    store()
    const before = read()
    entries.length = 0
    store(true)
    const { reserved: _one, ...all } = read().open[0]?.earlier ?? expect.fail('no run')
    const { reserved: _other, ...known } = before.open[0]?.earlier ?? expect.fail('no run')
    expect(all).to.deep.equal(known)
    expect(read().open[0]?.message).to.deep.equal({ prompt: 'one' })
  })

  it('D32.7a: an entry that has everything says where the runs that ended last are told', async () => {
    const { runs, accept, store, send, entries, read } = setUp()
    const answer = async () => {
      const run = accept('one')
      runs.begin(run)
      store()
      await send(run, [...TURN, DONE])
      store()
      return run
    }
    const before = []
    for (let i = 0; i < 12; i++) before.push(await answer())
    const open = accept('two')
    store(true)
    const base = entries.at(-1)
    expect(base?.runs.ended_from, 'each run had two entries, and nine are told').to.equal(7)
    expect(runs.fromSeqOf(open.id)).to.equal(base?.seq)
    entries.splice(0, 6)
    const told = read()
    expect(told.ended.map(({ runId }) => runId)).to.deep.equal(before.slice(-9).map(({ id }) => id))
    const next = new SessionRuns({ note() {}, stored: async () => true }, runs.endedFrom)
    expect(next.take(26, { isBase: true })?.entry).to.deep.equal({ ended_from: 7 })
    expect(new SessionRuns({ note() {}, stored: async () => true }).take(26, { isBase: true })).to.equal(undefined)
  })

  it('D32.7b: whether its client has a message is there with the next entry', async () => {
    const { runs, accept, store, read } = setUp()
    const run = accept('one', true)
    runs.begin(run)
    store()
    expect(read().open[0]?.isConfirmed).to.equal(false)
    run.accept()
    await run.whenAccepted()
    store()
    expect(read().open[0]?.isConfirmed).to.equal(true)
  })

  it('D32.7b: a run that its client has ended is not gone on with', () => {
    const { runs, accept, store, read } = setUp()
    const run = accept('one')
    runs.begin(run)
    store()
    expect([runs.end(run.id), runs.end(run.id)]).to.deep.equal([true, false])
    store()
    expect([read().open, runs.isEmpty]).to.deep.equal([[], true])
  })

  it('D32.7a: the worker that goes on has numbers above all that were sent, and takes them with its first entry', async () => {
    const { runs, accept, store, entries, read } = setUp()
    runs.begin(accept('one'))
    store()
    const before = read().open[0]?.earlier?.reserved ?? 0
    const { runs: granted, entry } = grantNumbers(read(), 100)
    expect(granted.open[0]?.earlier).to.include({ reserved: before, granted: before + 100 })
    entries.push({ seq: 2, at: AT, runs: entry ?? {} })
    expect(read().open[0]?.earlier?.reserved).to.equal(before + 100)
  })
})
