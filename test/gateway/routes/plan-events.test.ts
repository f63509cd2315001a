import { expect } from 'chai'
import { renderFrame } from '../../../shared/cluster/journal/frames.ts'
import { planRunId } from '../../../shared/kernel/ids.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { openStream } from '../../support/api-client.ts'
import { useFixture } from '../../support/fixture.ts'
import { FedStream } from '../../work/flows/calls/fed-stream.ts'
import { executorOf, stepOf } from '../../work/plans/calls-setup.ts'
import { openPlanning } from '../plan-setup.ts'
import { refusalOf, useGateways } from '../setup.ts'

const AT = '2026-11-22T09:30:00.000Z'
const NOBODYS = `plan_${'0123456789abcdef'.repeat(2)}`

describe('GET /plans/{id}/events', () => {
  const start = useGateways()
  const planning = useFixture(openPlanning)

  const open = () => start({ plans: planning().surface })
  const follow = async (id: string, headers: Record<string, string> = {}) => {
    const { url } = await open()
    return openStream(`${url}/plans/${id}/events`, { method: 'GET', headers })
  }
  const HEADS = ['1 plan_started', '2 step_started', '3 step_ended', '4 step_ended', '5 plan_ended']
  const headOf = ({ id, event }: { id: number; event: string }) => `${id} ${event}`

  it('D4.5c: replays the record of a plan that has ended, from any event on; after the last one the answer is 204', async () => {
    const id = await planning().failed(DEFAULT_TENANT)
    const stream = await follow(id)
    expect((await stream.all()).map(headOf)).to.deep.equal(HEADS)
    expect(stream.runId).to.equal(planRunId(id))
    expect(stream.frames.at(-1)?.data).to.include({ plan_id: id, status: 'failed' })
    const resumed = await follow(id, { 'last-event-id': '3' })
    expect((await resumed.all()).map(headOf)).to.deep.equal(HEADS.slice(3))
    const { url } = await open()
    for (const last of ['5', '999']) {
      for (const method of ['GET', 'HEAD']) {
        const { status } = await fetch(`${url}/plans/${id}/events`, { method, headers: { 'last-event-id': last } })
        expect(status, `${method} after ${last}`).to.equal(204)
      }
    }
  })

  it('D4.5c: a number that is none is 400, and HEAD is answered like GET', async () => {
    const id = await planning().failed(DEFAULT_TENANT)
    const { get, url } = await open()
    const response = await get(`/plans/${id}/events?last_event_id=x`)
    expect(await refusalOf(response)).to.include({ param: '/last_event_id' })
    const head = await fetch(`${url}/plans/${id}/events`, { method: 'HEAD' })
    expect(head.headers.get('content-type')).to.equal('text/event-stream')
    expect((await fetch(`${url}/plans/${NOBODYS}/events`, { method: 'HEAD' })).status).to.equal(404)
  })

  it('follows a plan that runs, live, through its executor', async () => {
    const { plan } = await planning().calls.submit(DEFAULT_TENANT, { steps: [stepOf('a')] }, { subject: 'ada' })
    await executorOf(planning().plans, DEFAULT_TENANT, plan.id).begin()
    const live = new FedStream()
    planning().streams.push(live)
    const stream = await follow(plan.id)
    const started = { type: 'plan_started', plan_id: plan.id, at: AT } as const
    const ended = { type: 'plan_ended', plan_id: plan.id, at: AT, status: 'done' } as const
    live.push({ text: renderFrame(1, started), lastSeq: 1 })
    expect(await stream.next()).to.deep.include({ event: 'plan_started' })
    live.push({ text: renderFrame(2, ended), lastSeq: 2 })
    expect((await stream.all()).map(headOf)).to.deep.equal(['1 plan_started', '2 plan_ended'])
    expect(planning().followed.at(-1)).to.deep.equal([planRunId(plan.id), 0])
  })
})
