import { expect } from 'chai'
import { renderFrame } from '../../../../shared/cluster/journal/frames.ts'
import type { RunEvent } from '../../../../shared/kernel/events.ts'
import { CapturedEvents } from '../../../../shared/work/runs/records/captured-events.ts'
import { DONE, textOf } from './setup.ts'

const MIB = 1024 * 1024

describe('the captured events of a run', () => {
  const capture = () => {
    const room = { bytes: 0 }
    return { room, events: new CapturedEvents(room, () => 0) }
  }

  it('D20.3: are all but the deltas, as frames with the numbers that they had', () => {
    const { events, room } = capture()
    const nested = (event_type: string) => ({ type: 'subagent_event', event_type }) as unknown as RunEvent
    const all: RunEvent[] = [
      { type: 'turn_start', turn_number: 1, model: 'm' },
      { type: 'text_delta', text: 'he' },
      { type: 'thinking_delta', text: 'hm' } as unknown as RunEvent,
      { type: 'tool_progress' } as unknown as RunEvent,
      nested('text_delta'),
      nested('tool_use'),
      textOf('hello'),
      DONE,
    ]
    for (const [i, event] of all.entries()) events.add(i + 1, event, 10)
    const kept = [1, 6, 7, 8].map((seq) => renderFrame(seq, all[seq - 1] ?? DONE)).join('')
    expect(events.render()).to.equal(kept)
    expect(room.bytes, 'deltas take no room').to.equal(40)
  })

  it('D20.3: of more than 1 MiB are not kept, nor is what follows, and take no room any more', () => {
    const { events, room } = capture()
    events.add(1, textOf('a'), MIB)
    expect(events.render()).not.to.equal(undefined)
    events.add(2, textOf('b'), 1)
    expect(events.render()).to.equal(undefined)
    expect(room.bytes).to.equal(0)
    events.add(3, textOf('c'), 1)
    expect(events.render()).to.equal(undefined)
    expect(room.bytes).to.equal(0)
  })

  it('of a run for which the process has no room are not kept; those of the others are', () => {
    const { events, room } = capture()
    const before = new CapturedEvents(room, () => 0)
    before.add(1, textOf('a'), 10)
    room.bytes += 64 * MIB - 10
    events.add(1, textOf('b'), 1)
    expect(events.render()).to.equal(undefined)
    expect(before.render()).not.to.equal(undefined)
    expect(room.bytes).to.equal(64 * MIB)
  })

  it('give their room back once when they are dropped', () => {
    const { events, room } = capture()
    const others = new CapturedEvents(room, () => 0)
    others.add(1, textOf('a'), 7)
    events.add(1, textOf('b'), 10)
    events.drop()
    events.drop()
    expect(room.bytes).to.equal(7)
  })
})
