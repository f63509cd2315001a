import { expect } from 'chai'
import type { StepEntry, StepState } from '../../../shared/agent/engine/call-progress.ts'
import type { RunState } from '../../../shared/agent/engine/run-progress.ts'
import { type ActiveRun, grantNumbers, type RunsEntry, storedRuns } from '../../../shared/agent/sessions/open-runs.ts'

const AT = '2026-01-01T00:00:00.000Z'
const ANSWER: StepState['answer'] = {
  blocks: [],
  toolCalls: [],
  outputChars: 0,
  outcome: 'end_turn',
  usage: {},
} as never
const stateAfter = (turns: number) => ({ hasBegun: true, totals: { turns } }) as RunState
const stepOf = (step: Partial<StepEntry>): StepEntry => ({ turn: 1, calls: {}, agents: {}, agentAsks: [], ...step })

/** Reads the runs from these entries of a log, which have the numbers 1, 2, …. */
const readOf = (...entries: RunsEntry[]) => storedRuns(entries.map((runs, i) => ({ seq: i + 1, at: AT, runs })))
/** What they say of the first run that has not ended. */
const firstOf = (...entries: RunsEntry[]) => readOf(...entries).open[0]
const accepted: RunsEntry = { accepted: [{ run_id: 'r', started_at: AT, message: { prompt: 'one' } }] }
const active = (run: Partial<ActiveRun>): RunsEntry => ({
  active: { run_id: 'r', state: stateAfter(1), reserved: 10, ...run },
})

describe('the runs that the entries of a log describe', () => {
  it('D32.9a: changes of calls and sub-agents belong to the step that was begun before, in the same turn alone', () => {
    const begun = stepOf({ model: 'm', answer: ANSWER, calls: { a: { hasBegun: true }, b: { hasBegun: true } } })
    const changed = stepOf({ calls: { a: {} }, agents: { 'b 0': {} } })
    const step = firstOf(accepted, active({ step: begun }), active({ step: changed }))?.earlier?.step
    expect(step).to.deep.include({ model: 'm', answer: ANSWER })
    expect(step).to.deep.include({ calls: { a: {}, b: { hasBegun: true } }, agents: { 'b 0': {} } })
    const next = firstOf(accepted, active({ step: begun }), active({ state: stateAfter(2), step: changed }))
    expect(next?.earlier?.step).to.equal(undefined)
  })

  it('D32.7a: events are added to those before, unless an entry says from which number on it has them all', () => {
    const turn = (n: number) => [n, { type: 'turn_start', turn_number: n, model: 'm' }] as const
    const first = active({ events: [turn(1)] })
    const eventsOf = (...entries: RunsEntry[]) => firstOf(accepted, ...entries)?.earlier?.events.map(([seq]) => seq)
    expect(eventsOf(first, active({ events: [turn(2)] }))).to.deep.equal([1, 2])
    expect(eventsOf(first, active({ events: [turn(2)], events_from: 2 }))).to.deep.equal([2])
  })

  it('numbers are granted to a run that has begun, and to no other', () => {
    const only = readOf(accepted)
    expect(grantNumbers(only, 5)).to.deep.equal({ runs: only })
    const begun = readOf(accepted, active({}))
    const { runs, entry } = grantNumbers(begun, 5)
    expect([runs.open[0]?.earlier?.granted, entry?.active?.reserved]).to.deep.equal([15, 15])
  })

  it('D32.7a: those that ended last are known, as many as a slow client may still be reading', () => {
    const runOf = (n: number): RunsEntry => ({
      accepted: [{ run_id: `r${n}`, started_at: AT, message: { prompt: 'one' } }],
      active: { run_id: `r${n}`, state: stateAfter(1), reserved: 10 },
      ended: [`r${n}`],
    })
    const { open, ended } = readOf(...Array.from({ length: 12 }, (_, n) => runOf(n)))
    expect([open, ended.map(({ runId, fromSeq }) => [runId, fromSeq])]).to.deep.equal([
      [],
      [4, 5, 6, 7, 8, 9, 10, 11, 12].map((seq) => [`r${seq - 1}`, seq]),
    ])
  })

  it('the entries of a run begin where it was accepted, or at the last entry that has the whole of it', () => {
    const before = { seq: 3, at: AT, runs: accepted }
    const seqOf = (...entries: Parameters<typeof storedRuns>[0]) => storedRuns(entries).open[0]?.fromSeq
    expect(seqOf(before, { seq: 4, at: AT, runs: accepted })).to.equal(3)
    expect(seqOf(before, { seq: 4, at: AT, isBase: true, runs: accepted })).to.equal(4)
  })

  it('an entry for a run that was not accepted, or has ended, changes nothing', () => {
    expect(firstOf(active({}), { confirmed: ['r'] })).to.equal(undefined)
    expect(firstOf(accepted, active({}), { ended: ['r'] }, active({}))).to.equal(undefined)
  })
})
