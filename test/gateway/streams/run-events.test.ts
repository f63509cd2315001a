import { expect } from 'chai'
import { FrameDecoder } from '../../../services/gateway/streams/run-events.ts'
import { renderFrame } from '../../../shared/cluster/journal/frames.ts'
import type { AgentEvent } from '../../../shared/kernel/events.ts'
import { DONE, delta } from '../setup.ts'

const EVENTS: AgentEvent[] = [delta('a\n\nid: 7\nevent: done\ndata: {}\n\nb'), delta('ü€😀\u2028'), DONE]
const NUMBERED = EVENTS.map((event, i) => ({ seq: i + 1, event }))
const TEXT = `: recorded without deltas\n\n${EVENTS.map((event, i) => renderFrame(i + 1, event)).join('')}`

describe('the events in frames', () => {
  it('are the same wherever the bytes are divided, and comments are none', () => {
    const bytes = new TextEncoder().encode(TEXT)
    for (let at = 0; at <= bytes.length; at++) {
      const decoder = new FrameDecoder<AgentEvent>()
      const parts = [bytes.subarray(0, at), bytes.subarray(at)]
      const read = parts.flatMap((text) => decoder.take({ text, lastSeq: 0 }))
      expect(read, `divided at ${at}`).to.deep.equal(NUMBERED)
    }
  })

  it('of other types than those wanted are left out', () => {
    const decoder = new FrameDecoder<AgentEvent>(new Set(['done']))
    expect(decoder.take({ text: TEXT, lastSeq: 3 })).to.deep.equal([{ seq: 3, event: DONE }])
  })

  it('the rest of a large frame does not come behind a failure', () => {
    const decoder = new FrameDecoder<AgentEvent>()
    const [first, second] = [renderFrame(1, delta('large')), renderFrame(1, DONE)]
    expect(decoder.take({ text: first.slice(0, 20), lastSeq: 0, pieces: 1 })).to.deep.equal([])
    expect(decoder.take({ text: second, lastSeq: 0, failure: 'slow_consumer' })).to.deep.equal([
      { seq: 1, event: DONE },
    ])
  })
})
