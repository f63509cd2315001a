import { expect } from 'chai'
import type { RunEvent } from '../../../../shared/kernel/events.ts'
import { JournalMemory } from '../../../../shared/work/runs/journal-memory.ts'
import { type CapturedEvent, CapturedEvents, isDelta } from '../../../../shared/work/runs/records/captured-events.ts'
import { newBudget } from '../../../support/journal-budget.ts'
import { tenantId } from '../../../support/tenant.ts'
import { TENANT, textOf } from './setup.ts'

const MIB = 1024 * 1024

describe('the captured events of a run', () => {
  const capture = () => {
    const room = newBudget(64 * MIB)
    return { room, events: new CapturedEvents(room) }
  }

  const captured = (seq: number, data?: string): CapturedEvent => ({ seq, atMs: 0, event: textOf('x'), data })

  it('keep their data, so that they are rendered once, unless these are long', () => {
    const { events } = capture()
    events.add(captured(1, 'x'.repeat(2_048)), 2_100)
    events.add(captured(2, 'x'.repeat(2_049)), 2_100)
    events.add(captured(3), 2_100)
    expect(events.all?.map(({ seq, data }) => [seq, data?.length])).to.deep.equal([
      [1, 2_048],
      [2, undefined],
      [3, undefined],
    ])
    expect(events.bytes).to.equal(6_300)
  })

  it('D20.3: of more than 1 MiB are not kept, nor is what follows, and take no room any more', () => {
    const { events, room } = capture()
    events.add(captured(1), MIB)
    expect(events.all).not.to.equal(undefined)
    events.add(captured(2), 1)
    expect(events.all).to.equal(undefined)
    expect(room.bytes).to.equal(0)
    events.add(captured(3), 1)
    expect(events.all).to.equal(undefined)
    expect(room.bytes).to.equal(0)
  })

  it('of a run for which the process has no room are not kept: of the tenant that takes most of it, and of no other one', () => {
    const room = new JournalMemory(64 * MIB)
    const large = Array.from({ length: 64 }, () => new CapturedEvents(room.budgetOf(TENANT)))
    for (const events of large) events.add(captured(1), MIB)
    const small = new CapturedEvents(room.budgetOf(tenantId('t_small')))
    small.add(captured(1), 1)
    expect(small.all, 'the small run of another tenant').to.have.length(1)
    const next = new CapturedEvents(room.budgetOf(TENANT))
    next.add(captured(1), 1)
    expect(next.all).to.equal(undefined)
    expect(large.every(({ all }) => all !== undefined)).to.equal(true)
  })

  it('are not kept where what is kept beside them takes the room of the process', () => {
    const room = newBudget(10)
    for (const [bytes, kept] of [
      [10, []],
      [11, undefined],
    ] as const) {
      const events = new CapturedEvents(room)
      events.reserve(bytes)
      expect(events.all).to.deep.equal(kept)
      events.drop()
    }
    expect(room.bytes).to.equal(0)
  })

  it('give their room back once when they are dropped', () => {
    const { events, room } = capture()
    const others = new CapturedEvents(room)
    others.add(captured(1), 7)
    events.add(captured(1), 10)
    events.drop()
    events.drop()
    expect(room.bytes).to.equal(7)
  })
})

describe('an increment', () => {
  it('is what a later event has as a whole, also one of a sub-agent', () => {
    const eventOf = (type: string, more: object = {}) => ({ type, ...more }) as unknown as RunEvent
    for (const type of ['text_delta', 'thinking_delta', 'tool_progress']) {
      expect(isDelta(eventOf(type)), type).to.equal(true)
      expect(isDelta(eventOf('subagent_event', { event_type: type })), `nested ${type}`).to.equal(true)
    }
    for (const type of ['turn_start', 'text', 'tool_use', 'done']) expect(isDelta(eventOf(type)), type).to.equal(false)
    expect(isDelta(eventOf('subagent_event', { event_type: 'tool_use' }))).to.equal(false)
  })
})
