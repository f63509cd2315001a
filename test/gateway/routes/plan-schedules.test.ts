import { expect } from 'chai'
import { DEFAULT_TENANT, type TenantId } from '../../../shared/kernel/tenant.ts'
import { useFixture } from '../../support/fixture.ts'
import { tenantId } from '../../support/tenant.ts'
import { useContract } from '../described.ts'
import { CHAIN, openPlanning } from '../plan-setup.ts'
import { refusalOf, useGateways } from '../setup.ts'

const acme = tenantId('acme')
const NIGHTLY = { cron: '0 3 * * *', timezone: 'Europe/Berlin', plan: CHAIN }

describe('the schedules of plans', () => {
  const start = useGateways()
  const described = useContract()
  const planning = useFixture(openPlanning)

  const open = async (tenant: TenantId = DEFAULT_TENANT) => {
    const gateway = await start({ plans: planning().surface, identify: async () => ({ tenant, subject: 'ada' }) })
    const send = (method: string, name: string, body?: object, headers: Record<string, string> = {}) =>
      fetch(`${gateway.url}/plans/schedules/${name}`, {
        method,
        headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body: JSON.stringify(body) }),
      })
    return { ...gateway, send }
  }
  const path = '/plans/schedules/nightly'

  it('PUT stores one, GET shows it, DELETE removes it', async () => {
    const { get, send } = await open()
    const put = await send('PUT', 'nightly', { ...NIGHTLY, x: 1, plan: { ...CHAIN, timeout_secs: 60, y: 2 } })
    expect(put.status).to.equal(200)
    const stored = (await described('PUT', path, put)) as { created_at: string; updated_at: string }
    expect(stored).to.deep.include({ name: 'nightly', ...NIGHTLY, plan: { ...CHAIN, timeout_secs: 60 } })
    expect(await described('GET', path, await get(path))).to.deep.equal(stored)
    const replaced = (await described(
      'PUT',
      path,
      await send('PUT', 'nightly', { every_secs: 60, plan: CHAIN }),
    )) as object
    expect(replaced).to.include({ name: 'nightly', every_secs: 60, created_at: stored.created_at })
    expect(replaced).to.not.have.any.keys('cron', 'timezone')
    const removed = await send('DELETE', 'nightly')
    expect(await described('DELETE', path, removed)).to.deep.equal({ status: 'deleted' })
    expect((await get(path)).status).to.equal(404)
    expect((await send('DELETE', 'nightly')).status).to.equal(404)
  })

  it('D12.5: POST run submits its plan with 202, once for each key; 409 until that has ended, and 404 for no schedule', async () => {
    const { get, send } = await open(tenantId('runs'))
    await send('PUT', 'nightly', { ...NIGHTLY, paused: true })
    const run = (key?: string) =>
      send('POST', 'nightly/run', undefined, key === undefined ? {} : { 'idempotency-key': key })
    const first = await run('k')
    expect(first.status).to.equal(202)
    const { id } = (await described('POST', `${path}/run`, first)) as { id: string }
    const again = await run('k')
    expect([again.status, again.headers.get('idempotency-replayed')]).to.deep.equal([202, 'true'])
    expect(await described('POST', `${path}/run`, again)).to.include({ id })
    const refused = await run()
    expect(refused.status).to.equal(409)
    await described('POST', `${path}/run`, refused)
    expect(await (await get(path)).json()).to.deep.include({ last_plan_id: id, paused: true })
    expect((await send('POST', 'other/run')).status).to.equal(404)
  })

  it('a name may be that of another path', async () => {
    const { get, send } = await open()
    for (const name of ['events', 'cancel', 'submit', 'schedules']) {
      expect((await send('PUT', name, NIGHTLY)).status, name).to.equal(200)
      expect((await get(`/plans/schedules/${name}`)).status, name).to.equal(200)
      expect((await send('DELETE', name)).status, name).to.equal(200)
    }
  })

  it('a foreign, an unknown and a malformed name are 404, a malformed one in a PUT 400', async () => {
    await (await open(acme)).send('PUT', 'theirs', NIGHTLY)
    const { send } = await open()
    for (const method of ['GET', 'DELETE']) {
      const [foreign, unknown] = await Promise.all(['theirs', 'nobodys'].map((name) => send(method, name)))
      expect([foreign?.status, unknown?.status]).to.deep.equal([404, 404])
      expect(foreign && (await refusalOf(foreign)).message).to.equal(
        unknown && (await refusalOf(unknown)).message.replace('nobodys', 'theirs'),
      )
    }
    for (const name of ['-a', 'a%20b', 'x'.repeat(65), 'a%2Fb']) {
      for (const method of ['GET', 'DELETE']) expect((await send(method, name)).status, name).to.equal(404)
      const { message, param } = await refusalOf(await send('PUT', name, NIGHTLY))
      expect(param, name).to.equal('/name')
      expect(message, name).to.include('^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$')
    }
    expect(await planning().surface.schedules.get(acme, 'theirs')).to.include({ name: 'theirs' })
  })
})
