import { expect } from 'chai'
import { JournalMemory } from '../../../../shared/work/runs/journal-memory.ts'
import { type RecordingOwner, RunRecording } from '../../../../shared/work/runs/records/recording.ts'
import { RunFigures } from '../../../../shared/work/runs/run-figures.ts'
import { DONE, factsOf, runId, TENANT, textOf } from './setup.ts'

describe('the recording of a run', () => {
  const setUp = () => {
    const calls: string[] = []
    const memory = new JournalMemory(1e6)
    const room = {
      budgetOf: memory.budgetOf.bind(memory),
      get bytes() {
        return memory.usedBy(TENANT)
      },
    }
    const owner: RecordingOwner = {
      room,
      onEnded: () => void calls.push('ended'),
      onSettled: () => void calls.push('settled'),
      onAbandoned: () => void calls.push('abandoned'),
    }
    const figures = new RunFigures()
    const recording = new RunRecording(factsOf(1), figures, owner)
    const end = () => {
      figures.note(DONE)
      recording.note(DONE, { bytes: 10, isLast: true })
    }
    return { calls, room, recording, end }
  }

  it('has a record when the run has ended, with the number of its events, deltas included', () => {
    const { calls, recording, end } = setUp()
    recording.note({ type: 'text_delta', text: 'x' }, { bytes: 5, isLast: false })
    expect(() => recording.record).to.throw('a run that continues has no record')
    expect([recording.hasEnded, calls]).to.deep.equal([false, []])
    end()
    expect([recording.hasEnded, calls]).to.deep.equal([true, ['ended']])
    expect(recording.record).to.include({ run_id: runId(1), status: 'done', event_count: 2 })
    expect(recording.events?.map(({ seq }) => seq)).to.deep.equal([2])
    expect(recording.eventBytes).to.equal(10)
  })

  it('begins with the events of another process, without their deltas, and goes on above all numbers that were reserved', () => {
    const { recording, end } = setUp()
    const earlier = [[1, { type: 'text_delta', text: 'x' }] as const, [2, textOf('x')] as const]
    recording.restore(earlier, 40)
    end()
    expect(recording.events?.map(({ seq, data }) => [seq, data])).to.deep.equal([
      [2, '{"text":"x"}'],
      [41, undefined],
    ])
    expect(recording.record.event_count).to.equal(41)
  })

  it('gives its events up when its record is stored, is lost, or is that of another process', () => {
    for (const isRecorded of [true, false]) {
      const { calls, room, recording, end } = setUp()
      end()
      recording.settle(isRecorded)
      expect([recording.isRecorded, recording.events, recording.phases, room.bytes]).to.deep.equal([
        ...[isRecorded, undefined, undefined, 0],
      ])
      expect(calls).to.deep.equal(['ended', 'settled'])
    }
    const { calls, room, recording } = setUp()
    recording.note(textOf('x'), { bytes: 10, isLast: false })
    recording.abandon()
    expect([calls, room.bytes, recording.events]).to.deep.equal([['abandoned'], 0, undefined])
  })

  it('D20.6: keeps what began the run as long as its events, in the room that they have, unless it is too long', () => {
    const { room, recording, end } = setUp()
    const longest = { prompt: 'x'.repeat(64 * 1_024 - '{"prompt":""}'.length) }
    recording.keep({ prompt: `${longest.prompt}x` })
    expect([recording.request, room.bytes]).to.deep.equal([undefined, 0])
    recording.keep(longest)
    end()
    expect([recording.request, room.bytes, recording.eventBytes]).to.deep.equal([longest, 64 * 1_024 + 10, 10])
    recording.settle(true)
    expect([recording.request, room.bytes]).to.deep.equal([undefined, 0])
  })
})
