import { expect } from 'chai'
import { endsOf, tally } from '../load.ts'
import type { Ended } from '../stream-client.ts'

const ended = (rest: Partial<Ended>): Ended => ({
  status: 200,
  openedInMs: 1,
  how: 'ended',
  terminal: undefined,
  ...rest,
})
const terminal = (event: string, code?: string) => ({ event, code, t: 0, canContinue: false })

describe('the tally of stream ends', () => {
  it('counts the ends by terminal event, error code or the way the connection ended', () => {
    const ends = [
      ended({ terminal: terminal('done') }),
      ended({ terminal: terminal('done') }),
      ended({ terminal: terminal('error', 'worker_lost') }),
      ended({ how: 'reset' }),
      ended({ status: 0, how: 'reset' }),
      undefined,
    ]
    expect(tally(ends)).to.equal('2 done, 1 worker_lost, 1 reset, 1 no answer, 1 never')
  })
})

/** A stream that brings a frame whenever somebody looks, so many times, and then ends or stands still. */
function stream(looks: number, isEnding: boolean) {
  const { promise, resolve } = Promise.withResolvers<Ended>()
  let frames = 0
  return {
    ended: promise,
    get frames() {
      if (frames < looks) frames++
      else if (isEnding) resolve(ended({}))
      return frames
    },
  }
}

describe('the ends of streams', () => {
  it('a stream whose frames come is awaited beyond the time, and one that stands still is not', async () => {
    const ends = await endsOf([stream(6, true), stream(6, false), stream(0, false)], 1)
    expect(ends).to.deep.equal([ended({}), undefined, undefined])
  })
})
