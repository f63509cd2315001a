import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import type { TenantView } from '../../shared/tenancy/usage/tenants.ts'
import { useMongo } from '../support/mongo.ts'
import { inBothForms, useProduct } from '../support/product.ts'
import { tenantId } from '../support/tenant.ts'
import { until } from '../support/until.ts'
import { useOps } from './setup.ts'

const VIEW: TenantView = {
  ...{ tenant: tenantId('acme'), live_runs: 3, waiting_runs: 1, sessions: 2, runs_today: 9, failed_today: 1 },
  ...{ tokens_today: 12_345, usd_today: 1.5, tokens_per_day: null, usd_per_day: 20 },
}

type List = { tenants: TenantView[]; next_cursor: string | null; incomplete?: true }

describe('the page of tenants', () => {
  const open = useOps()

  it('/tenants pages through the tenants, and says when processes have not answered', async () => {
    const ops = await open()
    const asked: object[] = []
    ops.show({
      async tenants(range) {
        asked.push(range)
        return { tenants: [VIEW], next: range.after === '' ? 'acme' : null, isIncomplete: range.after !== '' }
      },
    })
    const first = (await (await ops.get('/tenants?limit=1')).json()) as List
    expect(first.tenants).to.deep.equal([VIEW])
    expect(first).not.to.have.property('incomplete')
    const second = (await (await ops.get(`/tenants?cursor=${first.next_cursor}`)).json()) as List
    expect(second).to.include({ next_cursor: null, incomplete: true })
    expect(asked).to.deep.equal([
      { after: '', limit: 1 },
      { after: 'acme', limit: 50 },
    ])
  })

  it('/tenants refuses a wrong limit or cursor with 400, needs the token, and is 503 where nobody can be asked', async () => {
    const ops = await open({ opsToken: 'ops-token' })
    const get = (query = '') => ops.get(`/tenants${query}`, { headers: { authorization: 'Bearer ops-token' } })
    expect((await ops.get('/tenants')).status).to.equal(401)
    expect((await get()).status).to.equal(503)
    ops.show({ tenants: () => Promise.reject(new Error('secret detail')) })
    const failed = await get()
    expect([failed.status, await failed.text()].join())
      .to.match(/^503/)
      .and.not.include('secret')
    for (const query of ['?limit=0', '?limit=201', '?limit=1&limit=2', '?cursor=x', '?cursor=a&cursor=b'])
      expect((await get(query)).status, query).to.equal(400)
  })
})

inBothForms('the tenants of a deployment', (startProduct, form) => {
  const mongo = form === 'cluster' ? useMongo() : undefined
  const product = useProduct(() =>
    startProduct({
      ...mongo?.env,
      MASTER_KEY: randomBytes(32).toString('base64'),
    }),
  )
  before(async () => {
    await product.call('PUT', '/config/limits', { tokens_per_day: 1_000_000 })
  })

  /** The processes that show the tenants: in a cluster its gateways. */
  async function lists(): Promise<List[]> {
    const answers = await Promise.all(product.opsUrls.map((url) => fetch(`${url}/tenants`)))
    const shown = answers.filter(({ status }) => status === 200)
    expect(shown.length).to.be.at.least(1)
    for (const { status } of answers) expect(status).to.be.oneOf([200, 503])
    return Promise.all(shown.map((answer) => answer.json() as Promise<List>))
  }

  it('are listed with their live runs and sessions, and with what they have used today', async () => {
    const held = Promise.withResolvers<void>()
    product.model.answer([{ hold: held.promise }, { text: ['done'] }])
    await product.call('POST', '/sessions', { session_id: 's-1' })
    const stream = await product.run({ prompt: 'hi' })
    await stream.until('turn_start')
    for (const { tenants, incomplete } of await lists()) {
      expect(incomplete).to.equal(undefined)
      expect(tenants).to.have.length(1)
      const now = { tenant: DEFAULT_TENANT, live_runs: 1, waiting_runs: 0, sessions: 1 }
      expect(tenants[0]).to.deep.include({ ...now, runs_today: 0, tokens_per_day: 1_000_000, usd_per_day: null })
    }
    held.resolve()
    await stream.all()
    await until(
      async () => (await lists()).every(({ tenants }) => tenants[0]?.runs_today === 1 && tenants[0].tokens_today > 0),
      { what: 'the run to be counted', everyMs: 100 },
    )
    expect((await lists())[0]?.tenants[0]).to.include({ live_runs: 0, sessions: 1, failed_today: 0 })
  })
})
