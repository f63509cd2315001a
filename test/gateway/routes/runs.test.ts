import { expect } from 'chai'
import type { RunFilter } from '../../../shared/cluster/commands/runs.ts'
import { useContract } from '../described.ts'
import { framesOf, LIVE_RUN, RUN_ID, useGateways } from '../setup.ts'

const RUN = { ...LIVE_RUN, status: 'done', ended_at: '2026-11-21T09:30:01.000Z' } as const

describe('the runs', () => {
  const start = useGateways()
  const described = useContract()

  it('D4.5f, D4.5g: GET /runs/{run_id} describes the run, DELETE cancels it', async () => {
    const { get, url } = await start({ methods: { getRun: async () => RUN, async cancelRun() {} } })
    expect(await described('GET', '/runs/{run_id}', await get(`/runs/${RUN_ID}`))).to.deep.equal(RUN)
    const cancelled = await fetch(`${url}/runs/${RUN_ID}`, { method: 'DELETE' })
    expect(await described('DELETE', '/runs/{run_id}', cancelled)).to.deep.equal({ status: 'cancelled' })
  })

  it('D2.7: GET /runs takes limit, cursor and status', async () => {
    const filters: RunFilter[] = []
    const { get } = await start({
      methods: {
        async listRuns(_tenant, filter) {
          filters.push(filter)
          return { runs: [RUN], next_cursor: 'c2' }
        },
      },
    })
    const list = await described('GET', '/runs', await get('/runs'))
    expect(list).to.deep.equal({ runs: [RUN], next_cursor: 'c2' })
    await get('/runs?limit=200&cursor=a-b_1&status=waiting&other=1')
    await get('/runs?limit=1')
    expect(filters).to.deep.equal([{ limit: 50 }, { limit: 200, cursor: 'a-b_1', status: 'waiting' }, { limit: 1 }])
  })

  it('D2.7, D2.11: a wrong limit, cursor or status, or one given twice, is 400 and names the parameter', async () => {
    const { get } = await start()
    for (const [query, param] of [
      ['limit=0', '/limit'],
      ['limit=201', '/limit'],
      ['limit=-1', '/limit'],
      ['limit=1.5', '/limit'],
      ['limit=1e2', '/limit'],
      ['limit=', '/limit'],
      ['limit=10&limit=20', '/limit'],
      ['status=lost', '/status'],
      ['status=done&status=failed', '/status'],
      ['cursor=', '/cursor'],
      ['cursor=a%2Bb', '/cursor'],
      [`cursor=${'x'.repeat(4097)}`, '/cursor'],
    ] as const) {
      const response = await get(`/runs?${query}`)
      expect(response.status, query).to.equal(400)
      const body = (await described('GET', '/runs', response)) as { error: { param?: string } }
      expect(body.error.param, query).to.equal(param)
    }
  })

  it('D4.5a: a stream continues after Last-Event-ID, else after ?last_event_id=, else it begins with the first event', async () => {
    const asked: number[] = []
    const { get } = await start({
      methods: {
        async followRun(_tenant, _run, after) {
          asked.push(after)
          return framesOf()
        },
        getRun: async () => LIVE_RUN,
      },
    })
    await get(`/runs/${RUN_ID}/events`)
    await get(`/runs/${RUN_ID}/events?last_event_id=7`)
    await get(`/runs/${RUN_ID}/events?last_event_id=7`, { 'last-event-id': '0012' })
    await get(`/runs/${RUN_ID}/events?last_event_id=4294967295`)
    expect(asked).to.deep.equal([0, 7, 12, 4_294_967_295])
  })

  it('D4.5c: after the last event of an ended run the answer is 204 without a body, and the run is not followed', async () => {
    const { url } = await start({ methods: { getRun: async () => RUN } })
    for (const method of ['GET', 'HEAD']) {
      for (const id of ['5', '6', '4294967295']) {
        const path = `/runs/${RUN_ID}/events`
        const response = await fetch(url + path, { method, headers: { 'last-event-id': id } })
        expect(response.status).to.equal(204)
        expect(response.headers.get('x-run-id')).to.equal(RUN_ID)
        expect(await response.text()).to.equal('')
      }
    }
    const head = await fetch(`${url}/runs/${RUN_ID}/events?last_event_id=4`, { method: 'HEAD' })
    expect(head.status).to.equal(200)
  })

  it('D4.5c: a run whose process died is followed behind every number but the highest, since nobody knows its last event', async () => {
    const lost = { ...RUN, status: 'failed', code: 'worker_lost', event_count: 0 } as const
    const { url } = await start({ methods: { getRun: async () => lost, followRun: async () => framesOf() } })
    const statusAfter = async (id: string) =>
      (await fetch(`${url}/runs/${RUN_ID}/events`, { headers: { 'last-event-id': id } })).status
    expect(await Promise.all(['1', '5', '4294967294', '4294967295'].map(statusAfter))).to.deep.equal([
      200, 200, 200, 204,
    ])
  })

  it('D4.5c: an event id that is not a whole number below 2^32 is 400', async () => {
    const { get } = await start()
    for (const id of ['x', '-1', '1.5', '1e3', '', '9'.repeat(16), '999999999999999', '4294967296', '1, 2']) {
      expect((await get(`/runs/${RUN_ID}/events`, { 'last-event-id': id })).status, `header ${id}`).to.equal(400)
      expect((await get(`/runs/${RUN_ID}/events?last_event_id=${id}`)).status, `query ${id}`).to.equal(400)
    }
    expect((await get(`/runs/${RUN_ID}/events?last_event_id=1&last_event_id=2`)).status).to.equal(400)
  })

  it('HEAD of a stream returns its headers and ends', async () => {
    const { url } = await start({ methods: { getRun: async () => RUN } })
    const response = await fetch(`${url}/runs/${RUN_ID}/events`, { method: 'HEAD' })
    expect(response.status).to.equal(200)
    expect(response.headers.get('content-type')).to.equal('text/event-stream')
    expect(response.headers.get('x-run-id')).to.equal(RUN_ID)
  })
})
