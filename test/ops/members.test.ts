import { expect } from 'chai'
import type { ShownMember } from '../../services/ops/members.ts'
import { useMongo } from '../support/mongo.ts'
import { inBothForms, useProduct } from '../support/product.ts'
import { useOps } from './setup.ts'

const SINCE = '2026-11-22T10:00:00.000Z'
const MEMBER: ShownMember = {
  ...{ role: 'worker', state: 'active', load: 3, capacity: 256, version: '0.1.0', since: SINCE },
  ...{ pid: 17, epoch: 9, expiresInMs: 3_500 },
}

describe('the page of members', () => {
  const open = useOps()

  it('/members lists the processes by role and age, as JSON', async () => {
    const ops = await open()
    const old: ShownMember = { role: 'gateway', state: 'draining', load: 0, pid: 1, epoch: 12, expiresInMs: -1 }
    ops.show({ members: async () => ({ members: [{ ...MEMBER, epoch: 10 }, MEMBER, old] }) })
    const response = await ops.get('/members')
    const { members } = (await response.json()) as { members: { id: string }[] }
    expect(members.map(({ id }) => id)).to.deep.equal(['gw_12', 'wk_9', 'wk_10'])
    const known = { role: 'worker', state: 'active', load: 3, capacity: 256, version: '0.1.0', since: SINCE }
    expect(members[1]).to.deep.equal({ id: 'wk_9', ...known, pid: 17, lease_ms: 3_500 })
    const unknown = { capacity: null, version: null, since: null }
    expect(members[0], 'of an older release').to.deep.include({ ...unknown, state: 'draining', lease_ms: -1 })
  })

  it('/members is 503 while the process starts, and while the members cannot be read', async () => {
    const ops = await open()
    expect((await ops.get('/members')).status).to.equal(503)
    ops.show({ members: () => Promise.reject(new Error('secret detail')) })
    const response = await ops.get('/members')
    expect(response.status).to.equal(503)
    expect(await response.text()).not.to.include('secret')
  })

  it('/members takes no other method, and needs the token', async () => {
    const ops = await open({ opsToken: 'ops-token' })
    ops.show({ members: async () => ({ members: [] }) })
    expect((await ops.get('/members')).status).to.equal(401)
    const headers = { authorization: 'Bearer ops-token' }
    expect((await ops.get('/members', { headers })).status).to.equal(200)
    expect((await ops.get('/members', { headers, method: 'POST' })).status).to.equal(405)
  })
})

inBothForms('the members of a deployment', (startProduct, form) => {
  const mongo = form === 'cluster' ? useMongo() : undefined
  const product = useProduct(() => startProduct({ ...mongo?.env }))

  it('each process lists all of them, with what they are and what they carry', async () => {
    const held = Promise.withResolvers<void>()
    product.model.answer([{ hold: held.promise }, { text: ['done'] }])
    const stream = await product.run({ prompt: 'hi' })
    await stream.until('turn_start')
    for (const url of product.opsUrls) {
      const { members } = (await (await fetch(`${url}/members`)).json()) as { members: Record<string, unknown>[] }
      expect(members).to.have.length(product.opsUrls.length)
      for (const member of members) {
        expect(member['version']).to.match(/^\d+\.\d+\.\d+$/)
        expect(Date.parse(String(member['since']))).to.be.within(Date.now() - 3_600_000, Date.now())
        expect(member).to.include({ state: 'active' })
        expect(member['capacity']).to.equal(member['role'] === 'gateway' ? null : 256)
      }
      const roles = form === 'cluster' ? ['executor', 'gateway', 'worker'] : ['standalone']
      expect([...new Set(members.map(({ role }) => role))]).to.deep.equal(roles)
    }
    held.resolve()
    await stream.all()
  })
})
