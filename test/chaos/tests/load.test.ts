import { expect } from 'chai'
import { tally } from '../load.ts'
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
