import { expect } from 'chai'
import type { Part, Projection } from '../../../../services/gateway/dialects/shared/projection.ts'
import { readResponse, streamOf } from '../../../../services/gateway/dialects/shared/response-stream.ts'
import type { FrameStream, Frames } from '../../../../shared/cluster/journal/frame-stream.ts'
import { renderFrame } from '../../../../shared/cluster/journal/frames.ts'
import type { AgentEvent } from '../../../../shared/kernel/events.ts'
import * as of from '../recorded.ts'

const WIRE = { render: (chunks: readonly string[]) => chunks.map((chunk) => `${chunk};`).join(''), end: 'END' }

/** A format of one chunk for each text. `taken` lists the types of the events that it was given. */
function projection() {
  const taken: string[] = []
  const plain = {
    begin: () => ['begin'],
    take: ({ event }: { event: AgentEvent }) => {
      taken.push(event.type)
      return event.type === 'text' ? [event.text] : []
    },
    cut: (code: string) => [`cut ${code}`],
  }
  return { taken, projection: plain as unknown as Projection<string> }
}

/** The frames of these events, of which each group comes at once. `isLeft` says whether their reader has left. */
function source(...groups: AgentEvent[][]) {
  const state = { isLeft: false }
  let seq = 0
  const parts: Frames[] = groups.map((events) => {
    const text = events.map((event) => renderFrame(++seq, event)).join('')
    return { text, lastSeq: seq }
  })
  const frames: FrameStream = {
    [Symbol.asyncIterator]: () => ({
      next: async () => {
        const value = parts.shift()
        return value ? { done: false, value } : { done: true, value: undefined }
      },
      return: async () => {
        state.isLeft = true
        return { done: true, value: undefined }
      },
    }),
  }
  return { frames, state }
}

async function readAll(groups: AgentEvent[][], part: Part = {}) {
  const { frames, state } = source(...groups)
  const { projection: format, taken } = projection()
  const read: [string, number][] = []
  for await (const { text, lastSeq } of streamOf({ frames, ...part }, format, WIRE).frames)
    read.push([String(text), lastSeq])
  return { read, taken, ...state }
}

describe('the frames of a response in another format', () => {
  it('begin at once, follow the run, and end with it', async () => {
    const { read, isLeft } = await readAll([of.said('one'), [of.turn(2)], [...of.said('two'), of.done]])
    expect(read).to.deep.equal([
      ['begin;', 0],
      ['one;', 2],
      ['two;END', 6],
    ])
    expect(isLeft).to.equal(true)
  })

  it('end without an end of their own where those of the run stop', async () => {
    expect((await readAll([of.said('one')])).read.at(-1)).to.deep.equal(['one;', 2])
  })

  it('are ended by the gateway with the reason, in the same format', () => {
    const { farewell } = streamOf({ frames: source().frames }, projection().projection, WIRE)
    expect(farewell(3, 'slow_consumer')).to.equal('cut slow_consumer;END')
  })
})

describe('a response that is read for an answer in one piece', () => {
  const { signal } = new AbortController()
  const read = async (until: number | undefined, groups: AgentEvent[][]) => {
    const { frames, state } = source(...groups)
    const { projection: format, taken } = projection()
    await readResponse({ frames }, format, until === undefined ? { signal } : { signal, until })
    return { taken, isLeft: state.isLeft }
  }
  const groups = () => [of.said('one'), [...of.said('two'), of.done]]

  it('holds all events of its run, or those up to a number', async () => {
    expect((await read(undefined, groups())).taken).to.deep.equal(['text_delta', 'text', 'text_delta', 'text', 'done'])
    expect((await read(3, groups())).taken).to.deep.equal(['text_delta', 'text', 'text_delta'])
    expect((await read(0, groups())).taken).to.deep.equal([])
  })

  it('leaves the run when it has what it wants', async () => {
    for (const until of [0, 2]) expect((await read(until, groups())).isLeft, `until ${until}`).to.equal(true)
  })

  it('ends with the reason of a caller who has left', async () => {
    const { frames } = source(of.said('one'))
    const gone = AbortSignal.abort(new Error('the client has left'))
    const failure = await readResponse({ frames }, projection().projection, { signal: gone }).catch(String)
    expect(failure).to.include('the client has left')
  })
})
