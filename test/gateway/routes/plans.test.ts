import { expect } from 'chai'
import { DEFAULT_TENANT, type TenantId } from '../../../shared/kernel/tenant.ts'
import { PLAN_STATUSES, STEP_STATUSES } from '../../../shared/work/plans/port.ts'
import { apiDocument } from '../../support/api-document.ts'
import { useFixture } from '../../support/fixture.ts'
import { tenantId } from '../../support/tenant.ts'
import { stepOf } from '../../work/plans/calls-setup.ts'
import { useContract } from '../described.ts'
import { CHAIN, openPlanning } from '../plan-setup.ts'
import { refusalOf, useGateways } from '../setup.ts'

const acme = tenantId('acme')
const NOBODYS = `plan_${'0123456789abcdef'.repeat(2)}`

type Answer = { id: string; status: string; [field: string]: unknown }

describe('the plan queue', () => {
  const start = useGateways()
  const described = useContract()
  const planning = useFixture(openPlanning)

  const open = (tenant: TenantId = DEFAULT_TENANT) =>
    start({ plans: planning().surface, identify: async () => ({ tenant, subject: 'ada' }) })

  const submit = async (body: object = CHAIN, tenant?: TenantId) => {
    const gateway = await open(tenant)
    const response = await gateway.post('/plans/submit', body)
    return { ...gateway, response, plan: (await described('POST', '/plans/submit', response)) as Answer }
  }

  it('D7.1: POST /plans/submit answers 202 with the plan, stored for the subject of the token', async () => {
    const times = { timeout_secs: 86_400, wait_secs: 3_600, priority: 'normal' }
    const body = { title: 'Two', ...CHAIN, parallel: true, ...times, deadline_hours: 2, x: 1 }
    const { response, plan } = await submit(body)
    expect(response.status).to.equal(202)
    expect(response.headers.has('idempotency-replayed')).to.equal(false)
    const { x: _x, deadline_hours: hours, ...known } = body
    expect(Date.parse(String(plan['deadline_at'])) - Date.parse(String(plan['created_at']))).to.equal(hours * 3_600_000)
    expect(plan).to.deep.include({ ...known, status: 'queued', step_statuses: { a: 'pending', b: 'pending' } })
    expect(await planning().plans.get(DEFAULT_TENANT, plan.id)).to.include({ subject: 'ada' })
  })

  const path = (prompt: string) => (writes: string[]) => ({ id: prompt, prompt, writes })
  const wrong: [string, object, RegExp][] = [
    ['no steps', {}, /^\/steps$/],
    ['an empty list of steps', { steps: [] }, /^\/steps$/],
    ['201 steps', { steps: Array.from({ length: 201 }, (_, i) => stepOf(`s${i}`)) }, /^\/steps$/],
    ['steps that are no list', { steps: { 0: stepOf('a') } }, /^\/steps$/],
    ['a step without an id', { steps: [{ prompt: 'x' }] }, /^\/steps\/0\/id$/],
    ['an empty id', { steps: [stepOf('')] }, /^\/steps\/0\/id$/],
    ['an id that is too long', { steps: [stepOf('x'.repeat(129))] }, /^\/steps\/0\/id$/],
    ['an id with a NUL', { steps: [stepOf('a\u0000')] }, /^\/steps\/0\/id$/],
    ['an id with half a surrogate pair', { steps: [stepOf('\ud800')] }, /^\/steps\/0\/id$/],
    ['an id that is a number', { steps: [{ id: 1, prompt: 'x' }] }, /^\/steps\/0\/id$/],
    ['a blank prompt', { steps: [{ id: 'a', prompt: ' ' }] }, /^\/steps\/0\/prompt$/],
    ['two steps with one id', { steps: [stepOf('a'), stepOf('a')] }, /^\/steps\/1/],
    ['a step that depends on itself', { steps: [stepOf('a', 'a')] }, /^\/steps\/0/],
    ['an unknown dependency', { steps: [stepOf('a', 'toString')] }, /^\/steps\/0/],
    ['a cycle', { steps: [stepOf('a', 'c'), stepOf('b', 'a'), stepOf('c', 'b')] }, /^\/steps/],
    ['dependencies that are no list', { steps: [{ ...stepOf('a'), depends_on: 'b' }] }, /^\/steps\/0\/depends_on$/],
    ['a path outside', { parallel: true, steps: [path('a')(['../x'])] }, /^\/steps\/0\/writes\/0$/],
    ['an absolute path', { parallel: true, steps: [path('a')(['/etc/x'])] }, /^\/steps\/0\/writes\/0$/],
    ['one path spelled twice', { parallel: true, steps: [path('a')(['a//b']), path('b')(['./a/b'])] }, /^\/steps\/1/],
    ['parallel that is no boolean', { ...CHAIN, parallel: 'yes' }, /^\/parallel$/],
    ['a timeout of 0', { ...CHAIN, timeout_secs: 0 }, /^\/timeout_secs$/],
    ['a timeout of 10^9', { ...CHAIN, timeout_secs: 1e9 }, /^\/timeout_secs$/],
    ['half a second', { ...CHAIN, timeout_secs: 0.5 }, /^\/timeout_secs$/],
    ['a deadline of 0', { ...CHAIN, deadline_hours: 0 }, /^\/deadline_hours$/],
    ['another priority', { ...CHAIN, priority: 'urgent' }, /^\/priority$/],
    ['a title that is null', { ...CHAIN, title: null }, /^\/title$/],
  ]
  for (const [what, body, param] of wrong) {
    it(`D7.2: ${what} is 400 and names the field, and nothing is stored`, async () => {
      const before = await planning().calls.list(DEFAULT_TENANT, { limit: 200 })
      const { post } = await open()
      const response = await post('/plans/submit', body)
      expect(response.status).to.equal(400)
      const { error } = (await described('POST', '/plans/submit', response)) as { error: { param?: string } }
      expect(error.param).to.match(param)
      expect(await planning().calls.list(DEFAULT_TENANT, { limit: 200 })).to.deep.equal(before)
    })
  }

  it('D6.6: the same key and body get the same plan, another body is 409', async () => {
    const { post } = await open()
    const key = { 'idempotency-key': 'k 1' }
    const first = await post('/plans/submit', CHAIN, key)
    const { id } = (await first.json()) as Answer
    const second = await post('/plans/submit', CHAIN, key)
    expect(second.status).to.equal(202)
    expect(second.headers.get('idempotency-replayed')).to.equal('true')
    expect(await described('POST', '/plans/submit', second)).to.include({ id })
    const other = await post('/plans/submit', { ...CHAIN, title: 'x' }, key)
    expect(other.status).to.equal(409)
    await described('POST', '/plans/submit', other)
    const bad = await post('/plans/submit', CHAIN, { 'idempotency-key': '' })
    expect(await refusalOf(bad)).to.include({ param: '/Idempotency-Key' })
  })

  it('D7.1: POST /plans/{id}/cancel cancels once, and is 409 for a plan that has ended', async () => {
    const { plan, post } = await submit()
    const target = `/plans/${plan.id}/cancel`
    const response = await post(target)
    expect(response.status).to.equal(200)
    expect(await described('POST', target, response)).to.include({ id: plan.id, status: 'cancelled' })
    for (const id of [plan.id, await planning().failed(DEFAULT_TENANT)]) {
      const again = await post(`/plans/${id}/cancel`)
      expect(again.status).to.equal(409)
      await described('POST', `/plans/${id}/cancel`, again)
    }
  })

  it('a foreign, an unknown and a malformed id are the same 404', async () => {
    const { plan } = await submit(CHAIN, acme)
    const { get, post } = await open()
    for (const suffix of ['', '/events', '/cancel']) {
      const call = async (id: string) => {
        const response = await (suffix === '/cancel' ? post : get)(`/plans/${id}${suffix}`)
        expect(response.status, id + suffix).to.equal(404)
        return (await refusalOf(response)).message.replaceAll(id, '')
      }
      expect(await call(plan.id)).to.equal(await call(NOBODYS))
      for (const id of ['plan_x', NOBODYS.toUpperCase(), `${NOBODYS}0`, '__proto__', 'a%00b']) await call(id)
    }
    expect(await planning().calls.get(acme, plan.id)).to.include({ status: 'queued' })
  })

  it('api.md Plan queue: where the queue is off every plan path answers 503, not 404', async () => {
    const { url } = await start()
    const { paths } = await apiDocument()
    const ofPlans = Object.entries(paths).filter(([each]) => each.startsWith('/plans'))
    expect(ofPlans).to.have.length(10)
    for (const [template, operations] of ofPlans) {
      for (const method of Object.keys(operations).filter((each) => each !== 'parameters')) {
        for (const id of [NOBODYS, 'malformed']) {
          const target = template.replace('{id}', id).replace('{name}', 'nightly')
          const response = await fetch(url + target, { method: method.toUpperCase() })
          expect(response.status, `${method} ${target}`).to.equal(503)
          const body = (await described(method.toUpperCase(), template, response)) as { error: { type: string } }
          expect(body.error.type).to.equal('unavailable_error')
        }
      }
    }
  })

  it('the API description lists the states of plans and steps', async () => {
    const { components } = await apiDocument()
    expect(components.schemas['PlanStatus']).to.deep.include({ enum: [...PLAN_STATUSES] })
    expect(components.schemas['StepStatus']).to.deep.include({ enum: [...STEP_STATUSES] })
  })
})
