// Tests open-calls.ts and projected-run.ts: when a response ends at an approval, and where the next one begins.
import { expect } from 'chai'
import { OpenCalls } from '../../../../services/gateway/dialects/shared/open-calls.ts'
import type { Projection } from '../../../../services/gateway/dialects/shared/projection.ts'
import { type AgentEvent, errorEvent } from '../../../../shared/kernel/events.ts'
import * as of from '../recorded.ts'

/** The numbers of the events after which the run has come to rest. */
function rests(...events: AgentEvent[]): number[] {
  const calls = new OpenCalls()
  return events.flatMap((event, i) => (calls.take(event) && calls.isAtRest ? [i + 1] : []))
}

describe('the open calls of a run', () => {
  it('a run rests when its only call waits, and works again when that is answered', () => {
    expect(rests(of.turn(1), of.call('a'), of.asked('p', 'a'), of.resolved('p', 'a'), of.result('a'))).to.deep.equal([
      3,
    ])
  })

  it('a call that runs beside the one that waits keeps it from resting until it has its result', () => {
    const events = [of.call('a'), of.call('b'), of.asked('p', 'a'), of.result('b'), of.resolved('p', 'a')]
    expect(rests(...events)).to.deep.equal([4])
  })

  it('calls that wait together rest when the last one has asked, and again when one of them has its result', () => {
    const events = [of.call('a'), of.call('b'), of.asked('p', 'a'), of.asked('q', 'b')]
    expect(rests(...events, of.resolved('q', 'b'), of.result('b'))).to.deep.equal([4, 6])
  })

  it('a call for which a sub-agent works rests when the sub-agent does, and one request counts once although it comes twice', () => {
    const events = [of.call('a'), of.begun('s'), ...of.within('s', of.turn(1), of.call('a'), of.asked('p', 'a'))]
    expect(rests(...events)).to.deep.equal([5])
    expect(rests(...events, ...of.within('s', of.resolved('p', 'a')))).to.deep.equal([5])
  })

  it('D32.7a: void calls keep a run that began anew from no rest, and a request that comes again counts again', () => {
    expect(rests(...of.CUT_ANEW).slice(-1)).to.deep.equal([of.CUT_ANEW.length])
    expect(rests(...of.CUT_AGAIN).slice(-1)).to.deep.equal([of.CUT_AGAIN.length])
  })

  it('D32.7a: the warning names a turn that is void, or a later one behind the rest of this one, whose calls stay open', () => {
    const voids = (events: readonly AgentEvent[]) => {
      const calls = new OpenCalls()
      return events.map((event) => (calls.take(event), calls.beginsAnew))
    }
    const [call, ask] = [of.call('a'), of.asked('p', 'a')]
    expect(voids([of.turn(1), call, of.beginsAnew(2), of.result('a')]).includes(true)).to.equal(false)
    expect(voids([of.turn(1), call, of.beginsAnew(1), of.turn(1)])).to.deep.equal([false, false, true, false])
    expect(rests(of.turn(1), call, of.beginsAnew(2), ask)).to.deep.equal([4])
  })

  it('of two sub-agents both must rest, and a sub-agent of a sub-agent counts for its own', () => {
    const two = [of.call('a'), of.begun('s'), of.begun('t'), ...of.within('s', of.call('x'), of.asked('p', 'x'))]
    expect(rests(...two)).to.deep.equal([])
    expect(rests(...two, ...of.within('t', of.call('x'), of.asked('q', 'x')))).to.have.length(1)
    const nested = [of.call('a'), of.begun('s'), ...of.within('s', of.call('b')), of.begun('t', 's')]
    expect(rests(...nested, ...of.within('t', of.call('c'), of.asked('p', 'c')))).to.have.length(1)
  })
})

/** Repeats the types of the events. */
const types = (): Projection<string> => ({
  begin: () => ['begin'],
  take: ({ event }) => [event.type],
  pause: () => ['pause'],
  cut: () => [],
})

const BOTH = new Set(['perm_1', 'perm_2'])

describe('the responses to a run', () => {
  const { chunks: whole } = of.respond(types(), of.WITH_SUB_AGENT)

  it('the first one ends where the run rests, after the last request that waits', () => {
    expect(whole.at(-1)).to.equal('pause')
    const before = whole.filter((type) => type === 'permission_request' || type === 'subagent_event')
    expect(before.slice(-1)).to.deep.equal(['subagent_event'])
  })

  it('the next one begins behind that, whatever was answered meanwhile, and ends with the run', () => {
    const { chunks } = of.respond(types(), of.WITH_SUB_AGENT, { known: BOTH })
    expect(chunks.slice(0, 3)).to.deep.equal(['begin', 'permission_request', 'permission_resolved'])
    expect(chunks.at(-1)).to.equal('done')
    expect(chunks).not.to.include('pause')
  })

  it('the next one ends where the run rests with a request that its client has not answered', () => {
    const part = { known: BOTH, answered: new Set(['perm_1']) }
    const { chunks } = of.respond(types(), of.WITH_SUB_AGENT, part)
    expect(chunks.slice(-2)).to.deep.equal(['tool_result', 'pause'])
  })

  it('a replay of a run that has gone on does not stop where it rested before', () => {
    const { chunks } = of.respond(types(), of.WITH_SUB_AGENT, { passed: of.WITH_SUB_AGENT.length })
    expect(chunks).not.to.include('pause')
    expect(chunks.at(-1)).to.equal('done')
  })

  it('a client that names requests which this run never made learns its end', () => {
    const { chunks } = of.respond(types(), of.WITH_SUB_AGENT, { known: new Set(['perm_x']) })
    expect(chunks).to.deep.equal(['begin', 'done'])
  })

  it('D37.1: the end of a lost run resolves the requests that are open, those of sub-agents too; that of a stream does not', () => {
    const shown = (...last: AgentEvent[]) => {
      const events = [of.turn(1), of.call('a'), of.begun('s'), of.call('b'), of.asked('p', 'b')]
      const within = of.within('s', of.call('x'), of.asked('q', 'x'))
      const { chunks } = of.respond(ids(), [...events, ...within, ...last])
      return chunks.slice(1 + events.length + within.length)
    }
    const ends = ['permission_resolved p cancelled', 'subagent_event q cancelled', 'permission_resolved q cancelled']
    expect(shown(of.lost)).to.deep.equal([...ends, 'error'])
    expect(shown(of.resolved('p', 'b'), of.cancelled)).to.deep.equal([
      'permission_resolved p reply',
      ...ends.slice(1),
      'error',
    ])
    expect(shown(errorEvent('relay_unavailable', 'come back'))).to.deep.equal(['error'])
    expect(shown(of.beginsAnew(1), of.cancelled)).to.deep.equal(['warning', 'error'])
  })
})

/** Repeats the types of the events, with the id and the way of a decision. It never pauses. */
const ids = (): Projection<string> => ({
  begin: () => ['begin'],
  take: ({ event }) => ['how' in event && 'id' in event ? `${event.type} ${event.id} ${event.how}` : event.type],
  cut: () => [],
})
