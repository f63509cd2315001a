import { expect } from 'chai'
import { type Express, default as express } from 'express'
import { createRoutes } from '../../services/http/routes.ts'
import { clusterRoutes } from '../../services/ops/app.ts'
import type { Overview } from '../../services/ops/overview.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { TenantView } from '../../shared/tenancy/usage/tenants.ts'
import { useOps } from './setup.ts'

const viewOf = (tenant: string, usd_today: number, tokens_today = 0): TenantView => ({
  ...{ tenant: tenant as TenantId, live_runs: 0, waiting_runs: 0, sessions: 0, runs_today: 1, failed_today: 0 },
  ...{ tokens_today, usd_today, tokens_per_day: null, usd_per_day: null },
})
const BROWSER = { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } }

describe('the overview of the ops listener', () => {
  const open = useOps()
  const overviewOf = async ({ get }: { get(path: string): Promise<Response> }) =>
    (await (await get('/')).json()) as Overview

  it('what cannot be read is null, and the rest is shown', async () => {
    const ops = await open()
    const nothing = { members: null, queues: null, tenants: null }
    expect(await overviewOf(ops)).to.deep.include({ form: 'cluster', ...nothing, failures: [] })
    ops.show({ members: async () => ({ members: [] }), tenants: () => Promise.reject(new Error('away')) })
    ops.watchQueue({ counts: () => new Promise<never>(() => {}) })
    expect(await overviewOf(ops)).to.deep.include({ ...nothing, members: [] })
  })

  it('the ten tenants that have spent most come first, and are asked for once in a while', async () => {
    const ops = await open()
    let reads = 0
    ops.show({
      async tenants() {
        reads++
        const tenants = Array.from({ length: 12 }, (_, i) => viewOf(`t_${i}`, i % 3, i))
        return { tenants, next: 't_11', isIncomplete: true }
      },
    })
    const { tenants } = await overviewOf(ops)
    expect(tenants?.most_spent.map(({ tenant }) => tenant)).to.deep.equal([
      't_11',
      't_8',
      't_5',
      't_2',
      't_10',
      't_7',
      't_4',
      't_1',
      't_9',
      't_6',
    ])
    expect(tenants).to.include({ count: 12, has_more: true, incomplete: true })
    await overviewOf(ops)
    expect(reads).to.equal(1)
  })

  it('the failures of the process are counted by code, the most frequent first, and its gaps and fences', async () => {
    const ops = await open()
    for (const code of ['ok', 'timeout', 'cancelled', 'timeout'] as const) ops.metrics.countDivided('runs_ended', code)
    ops.metrics.count('gaps_lost')
    ops.metrics.count('fence_refusals', 2)
    const { failures, faults } = await overviewOf(ops)
    expect(failures).to.deep.equal([
      { code: 'timeout', count: 2 },
      { code: 'cancelled', count: 1 },
    ])
    expect(faults).to.include({ gaps_lost: 1, fence_refusals: 2, streams_lost: 0 })
  })

  it('needs the token, as the files of its page do', async () => {
    const ops = await open({ opsToken: 'ops-token' })
    for (const path of ['/', '/console/assets/x.js']) expect((await ops.get(path)).status, path).to.equal(401)
    expect((await ops.get('/', { headers: { authorization: 'Bearer ops-token' } })).status).to.equal(200)
  })

  it('without built pages a browser gets the JSON, too', async () => {
    const overview = { form: 'cluster' } as Overview
    const app: Express = express().use(
      createRoutes(
        clusterRoutes(
          async () => overview,
          async () => undefined,
        ),
      ),
    )
    const server = app.listen(0, '127.0.0.1')
    try {
      await new Promise((resolve) => server.once('listening', resolve))
      const { port } = server.address() as { port: number }
      expect(await (await fetch(`http://127.0.0.1:${port}/`, BROWSER)).json()).to.deep.equal(overview)
    } finally {
      await new Promise((resolve) => server.close(resolve))
    }
  })
})
