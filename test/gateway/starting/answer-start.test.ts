import { expect } from 'chai'
import type { RunSummary } from '../../../shared/cluster/commands/runs.ts'
import type { Idempotency } from '../../../shared/platform/store/idempotency.ts'
import { DONE, delta, framesOf, LIVE_RUN, RUN_ID, refusalOf, useGateways } from '../setup.ts'

/** The key of every request stands for the run already. */
const TAKEN: Idempotency = {
  reserve: async () => ({ state: 'taken', id: RUN_ID }),
  replace: async () => true,
  release: async () => true,
}

const EVENTS = [delta('a'), delta('b'), DONE]
const BODY = { prompt: 'hi' }

describe('the start of a run that is repeated with its key', () => {
  const start = useGateways()

  /** A gateway that knows the run, whose events a stream follows from a number on. */
  const gateway = (run: Partial<RunSummary> = {}, startKeys = TAKEN) => {
    const followed: number[] = []
    const opened = start({
      startKeys,
      methods: {
        startRun: async () => ({ runId: RUN_ID, frames: framesOf(...EVENTS) }),
        getRun: async () => ({ ...LIVE_RUN, event_count: 3, ...run }),
        async followRun(_tenant, _id, after) {
          followed.push(after)
          return framesOf(...EVENTS.slice(after))
        },
      },
    })
    return opened.then((made) => ({ ...made, followed }))
  }
  const repeat = { 'idempotency-key': 'k' }
  const behind = (n: number | string) => ({ ...repeat, 'last-event-id': String(n) })

  it('D25a: goes on behind the event that the client names, in messages of sessions, too', async () => {
    for (const path of ['/agent/run', '/sessions/s/messages']) {
      const { post, followed } = await gateway()
      const response = await post(path, BODY, behind(2))
      expect(response.headers.get('idempotency-replayed'), path).to.equal('true')
      expect(await response.text()).to.match(/^: ok\nid: \d+\nevent: done\n/)
      expect(followed.at(-1)).to.equal(2)
    }
  })

  it('D25a: is 204 when the client has the last event, and begins at the first one for a client that has none', async () => {
    const { post } = await gateway({ ended_at: LIVE_RUN.started_at })
    for (const n of [3, 99]) {
      const over = await post('/agent/run', BODY, behind(n))
      expect([over.status, over.headers.get('x-run-id')]).to.deep.equal([204, RUN_ID])
    }
    expect(await (await post('/agent/run', BODY, repeat)).text()).to.include('"text":"a"')
  })

  it('D25a: a run that begins with the request is read from its first event, whatever the client names', async () => {
    const NEW: Idempotency = { ...TAKEN, reserve: async () => ({ state: 'reserved' }) }
    const { post } = await gateway({}, NEW)
    for (const headers of [behind(2), { 'last-event-id': '2' }])
      expect(await (await post('/agent/run', BODY, headers)).text()).to.include('"text":"a"')
  })

  it('D25a: an id that is no number is refused before anything starts', async () => {
    const { post } = await start()
    const refused = await post('/agent/run', BODY, behind('x'))
    expect([refused.status, (await refusalOf(refused)).param]).to.deep.equal([400, '/Last-Event-ID'])
  })
})
