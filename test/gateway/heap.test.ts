import { expect } from 'chai'
import { refusalOf, useGateways } from './setup.ts'

describe('a heap that is too full', () => {
  const start = useGateways()

  it('what begins new work is 503 with Retry-After before its body is read, everything else is served', async () => {
    const { post, get } = await start({ isHeapHigh: () => true, methods: { listRuns: async () => EMPTY } })
    for (const path of ['/agent/run', '/sessions', '/sessions/s1/messages', '/flows/summarize/run']) {
      const response = await post(path, 'no JSON')
      expect(response.status, path).to.equal(503)
      expect(response.headers.get('retry-after'), path).to.equal('2')
      expect((await refusalOf(response)).type, path).to.equal('unavailable_error')
    }
    expect((await get('/runs')).status).to.equal(200)
  })
})

const EMPTY = { runs: [], next_cursor: null }
