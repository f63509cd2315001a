import { expect } from 'chai'
import type { ReceiverState, ReceiverStore } from '../../../shared/tenancy/webhooks/port.ts'
import { Receivers, restEnd } from '../../../shared/tenancy/webhooks/receivers.ts'
import { TENANT } from './setup.ts'

const WEBHOOK = { id: 'hook_1', updated_at: '2026-11-22T10:00:00.000Z' }

/** Receivers as one process knows them. `stored` is what all processes know. */
function setUp() {
  const stored = new Map<string, ReceiverState>()
  let forgets = 0
  const store: ReceiverStore = {
    get: async (_tenant, id) => stored.get(id),
    async change(_tenant, id, change) {
      const state = change(stored.get(id))
      stored.set(id, state)
      return state
    },
    async forget(_tenant, id) {
      forgets++
      stored.delete(id)
    },
  }
  const receivers = new Receivers(store)
  const fail = (nowMs: number) => receivers.noteFailure(TENANT, WEBHOOK, nowMs)
  const allowance = (nowMs: number) => receivers.allowance(TENANT, WEBHOOK, nowMs)
  const allowanceElsewhere = (nowMs: number) => new Receivers(store).allowance(TENANT, WEBHOOK, nowMs)
  return { receivers, fail, allowance, allowanceElsewhere, state: () => stored.get(WEBHOOK.id), forgets: () => forgets }
}

describe('the receivers of webhooks', () => {
  it('D10.4: a receiver gets four messages at a time, none while it rests after three failures, and then one', async () => {
    const { fail, allowance, allowanceElsewhere, state } = setUp()
    const seen: [begins: boolean, allowance: number][] = []
    for (let failures = 0; failures < 3; failures++) seen.push([await fail(1_000), await allowance(1_000)])
    expect(seen).to.deep.equal([
      [false, 4],
      [false, 4],
      [true, 0],
    ])
    for (const inProcess of [allowance, allowanceElsewhere])
      expect([await inProcess(60_999), await inProcess(61_000)]).to.deep.equal([0, 1])
    expect([60_999, 61_000].map((ms) => restEnd(state(), WEBHOOK, ms))).to.deep.equal([61_000, undefined])
  })

  it('each rest is longer, up to ten minutes, and failures within it do not count', async () => {
    const { fail, state } = setUp()
    await fail(0)
    await fail(0)
    const rests: number[] = []
    for (let nowMs = 1; rests.length < 7; nowMs = Number(state()?.restsUntilMs)) {
      expect(await fail(nowMs)).to.equal(true)
      rests.push((Number(state()?.restsUntilMs) - nowMs) / 60_000)
      expect(await fail(nowMs + 1)).to.equal(false)
    }
    expect(rests).to.deep.equal([1, 2, 4, 8, 10, 10, 10])
  })

  it('only a success after failures is stored, and a webhook that was changed begins anew', async () => {
    const { receivers, fail, allowance, state, forgets } = setUp()
    await allowance(0)
    await receivers.noteSuccess(TENANT, WEBHOOK)
    expect(forgets()).to.equal(0)
    for (let failures = 0; failures < 3; failures++) await fail(0)
    const changed = { ...WEBHOOK, updated_at: '2026-11-22T11:00:00.000Z' }
    expect(await receivers.allowance(TENANT, changed, 0)).to.equal(4)
    expect(restEnd(state(), changed, 0)).to.equal(undefined)
    for (let times = 0; times < 2; times++) await receivers.noteSuccess(TENANT, WEBHOOK)
    expect([forgets(), await allowance(0)]).to.deep.equal([1, 4])
  })
})
