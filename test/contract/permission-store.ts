import { expect } from 'chai'
import { answerCall, reply } from '../../shared/cluster/permissions/reply.ts'
import type { PendingPermission, PermissionStore } from '../../shared/cluster/permissions/store.ts'
import { toAppError } from '../../shared/kernel/errors.ts'
import { newId } from '../../shared/kernel/ids.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import { statusOf } from '../support/broker-answers.ts'
import { tenantId } from '../support/tenant.ts'
import { newRequest } from './pending-permission.ts'

/** The tests that every `PermissionStore` passes; `open` returns one. */
export function permissionStoreContract(open: () => Promise<PermissionStore>): void {
  let store: PermissionStore
  const opened = async (fields: Partial<PendingPermission> = {}) => {
    const pending = newRequest(fields)
    await store.open(pending)
    return pending
  }

  beforeEach(async () => {
    store = await open()
  })

  it('api.md Permission request: allow=true is 200 and decides the request as allowed', async () => {
    const pending = await opened()
    const decision = store.decision(pending)
    expect(await statusOf(reply(store, pending, { allow: true }))).to.equal(200)
    expect(await decision).to.deep.equal({ state: 'allowed' })
  })

  it('api.md Permission request: allow=false is 200 and decides the request as denied, with the reason', async () => {
    const pending = await opened()
    expect(await statusOf(reply(store, pending, { allow: false, reason: 'no' }))).to.equal(200)
    expect(await store.decision(pending)).to.deep.equal({ state: 'denied', reason: 'no' })
  })

  it('an allowed tool can be remembered for the session; a denial to remember, or with an input, is 400 and decides nothing', async () => {
    const pending = await opened()
    const denial = reply(store, pending, { allow: false, remember: 'session' })
    const refusal = await denial.then(() => undefined, toAppError)
    expect(refusal).to.include({ status: 400, param: '/remember' })
    const edited = await reply(store, pending, { allow: false, input: { a: 1 } }).catch((cause: unknown) => cause)
    expect(edited, 'an input without a call').to.include({ status: 400, param: '/input' })
    await reply(store, pending, { allow: true, remember: 'session' })
    expect(await store.decision(pending)).to.deep.equal({ state: 'allowed', remember: 'session' })
  })

  it('D24.1: the decision keeps a changed input as it was sent, and who replied', async () => {
    const pending = await opened()
    const input = { list: [], object: {}, big: 1e21, small: 0.1, text: 'é/\u0000"' }
    await reply(store, pending, { allow: true, input, by: 'ada' })
    const decision = await store.decision(pending)
    expect(decision).to.include({ state: 'allowed', by: 'ada' })
    expect(decision.input).to.equal(JSON.stringify(input))
  })

  it('finds a request by its scope until it is decided', async () => {
    const pending = await opened()
    const { tenant, scopeId, id } = pending
    expect(await store.find(pending)).to.include({ id, session_id: scopeId, tool_name: pending.details.tool_name })
    expect(await store.find({ tenant, scopeId: `${scopeId}x`, id })).to.equal(undefined)
    expect(await store.find({ tenant: 'another' as typeof tenant, scopeId, id })).to.equal(undefined)
    await reply(store, pending, { allow: true })
    expect(await store.find(pending)).to.equal(undefined)
  })

  it('D32.9b: a request that is opened again is the same one, pending or decided', async () => {
    const pending = await opened()
    await store.open(pending)
    await reply(store, pending, { allow: true })
    await store.open(pending)
    expect(await store.decision(pending)).to.deep.equal({ state: 'allowed' })
    expect(await store.find(pending)).to.equal(undefined)
  })

  it('api.md Permission request: a second reply is 409 and changes nothing', async () => {
    const pending = await opened()
    await reply(store, pending, { allow: true })
    expect(await statusOf(reply(store, pending, { allow: false }))).to.equal(409)
    expect(await store.decision(pending)).to.deep.equal({ state: 'allowed' })
  })

  it('api.md Permission request: a reply after the timeout, or after the end of the run, is 404', async () => {
    for (const state of ['expired', 'withdrawn'] as const) {
      const pending = await opened()
      await store.decide(pending, { state })
      expect(await statusOf(reply(store, pending, { allow: true }))).to.equal(404)
      expect(await store.decision(pending)).to.deep.equal({ state })
    }
  })

  it('api.md Permission request: a reply to an unknown request is 404', async () => {
    expect(await statusOf(reply(store, newRequest(), { allow: true }))).to.equal(404)
  })

  it('api.md Authentication 8: a reply from another tenant, or for another session, is 404 and decides nothing', async () => {
    const pending = await opened()
    expect(await statusOf(reply(store, { ...pending, tenant: tenantId('other') }, { allow: true }))).to.equal(404)
    expect(await statusOf(reply(store, { ...pending, scopeId: newId('sess') }, { allow: true }))).to.equal(404)
    expect(await statusOf(reply(store, pending, { allow: true }))).to.equal(200)
  })

  it('of many replies and the timeout at the same time exactly one decides, and that one is returned as the decision', async () => {
    for (let round = 0; round < 50; round++) {
      const pending = await opened()
      const replies = Array.from({ length: 8 }, (_, i) =>
        statusOf(reply(store, pending, { allow: i % 2 === 0, reason: `${i}` })),
      )
      const timeout = store.decide(pending, { state: 'expired' })
      const statuses = await Promise.all(replies)
      const { isWon } = await timeout
      expect(statuses.filter((status) => status === 200).length + Number(isWon)).to.equal(1)
      const decision = await store.decision(pending)
      expect(decision.reason).to.equal(isWon ? undefined : `${statuses.indexOf(200)}`)
    }
  })

  it('D4.12: a second reply is 409 as long as the run is known, and 404 afterwards', async () => {
    const [kept, gone] = [await opened({ scopeId: 's1' }), await opened({ scopeId: 's1' })]
    await reply(store, kept, { allow: true })
    await reply(store, gone, { allow: true })
    await store.forget(DEFAULT_TENANT, 's1', gone.runId)
    expect(await statusOf(reply(store, kept, { allow: true }))).to.equal(409)
    expect(await statusOf(reply(store, gone, { allow: true }))).to.equal(404)
  })

  it('the decision of a forgotten or unknown request is that it was withdrawn', async () => {
    const pending = await opened()
    await store.forget(DEFAULT_TENANT, pending.scopeId)
    expect(await store.decision(pending)).to.deep.equal({ state: 'withdrawn' })
    const unknown = newRequest()
    await store.forget(DEFAULT_TENANT, unknown.scopeId)
    expect(await store.decide(unknown, { state: 'allowed' })).to.include({ isWon: false })
    expect(await store.decision(unknown)).to.deep.equal({ state: 'withdrawn' })
  })

  it('a request that is forgotten while its worker waits for the decision is withdrawn', async () => {
    const [pending, other] = [await opened({ scopeId: 's1' }), await opened({ scopeId: 's1' })]
    const decision = store.decision(pending)
    await store.forget(DEFAULT_TENANT, 's1', pending.runId)
    expect(await decision).to.deep.equal({ state: 'withdrawn' })
    expect(await statusOf(reply(store, pending, { allow: true }))).to.equal(404)
    expect(await statusOf(reply(store, other, { allow: true }))).to.equal(200)
  })

  it('D4.12, D45.1a: a reply or answer at or after the deadline is 404 and the request has expired, even if no worker lives to say so', async () => {
    const answer = { output: 'late', isError: false }
    for (const send of [
      (request: PendingPermission) => reply(store, request, { allow: true }),
      (request: PendingPermission) => reply(store, request, { allow: false }),
      (request: PendingPermission) => answerCall(store, request, { answer }),
    ]) {
      const pending = newRequest({}, { waitsMs: 0 })
      await store.open(pending)
      expect(await statusOf(send(pending))).to.equal(404)
      expect(await store.decision(pending)).to.deep.equal({ state: 'expired' })
      expect(await statusOf(send(pending))).to.equal(404)
    }
  })

  it('D4.12: a reply after the deadline is 404 when the list or later requests have removed the expired one', async () => {
    const pending = newRequest({}, { waitsMs: 0 })
    await store.open(pending)
    await store.list(DEFAULT_TENANT, { limit: 10 })
    await opened()
    expect(await statusOf(reply(store, pending, { allow: true }))).to.equal(404)
  })

  it('the end of a run is recorded after the deadline, too', async () => {
    const pending = newRequest({}, { waitsMs: 0 })
    await store.open(pending)
    expect(await store.decide(pending, { state: 'withdrawn' })).to.deep.equal({ isWon: true, state: 'withdrawn' })
  })

  it('D4.12: replies to requests of a deleted session are 404', async () => {
    const pending = await opened()
    await reply(store, pending, { allow: true })
    await store.forget(DEFAULT_TENANT, pending.scopeId)
    expect(await statusOf(reply(store, pending, { allow: true }))).to.equal(404)
  })
}
