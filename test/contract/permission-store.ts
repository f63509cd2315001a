import { expect } from 'chai'
import { reply } from '../../shared/broker/permissions/reply.ts'
import type { PendingPermission, PermissionStore } from '../../shared/broker/port.ts'
import { AppError } from '../../shared/errors.ts'
import { newId } from '../../shared/ids.ts'
import { DEFAULT_TENANT, type TenantId } from '../../shared/tenant.ts'
import { newRequest } from './pending-permission.ts'

async function statusOf(act: Promise<unknown>): Promise<number> {
  try {
    await act
    return 200
  } catch (error) {
    if (error instanceof AppError) return error.status
    throw error
  }
}

/** What every permission book promises; `open` gives a fresh one. */
export function permissionBookContract(open: () => Promise<PermissionStore>): void {
  let book: PermissionStore
  const opened = async (fields: Partial<PendingPermission> = {}) => {
    const pending = newRequest(fields)
    await book.open(pending)
    return pending
  }

  beforeEach(async () => {
    book = await open()
  })

  it('api.md Permission request: allow=true is 200 and the engine is told allowed', async () => {
    const pending = await opened()
    const decision = book.decision(pending)
    expect(await statusOf(reply(book, pending, { allow: true }))).to.equal(200)
    expect(await decision).to.deep.equal({ state: 'allowed' })
  })

  it('api.md Permission request: allow=false is 200 and the engine is told denied, with the reason', async () => {
    const pending = await opened()
    expect(await statusOf(reply(book, pending, { allow: false, reason: 'no' }))).to.equal(200)
    expect(await book.decision(pending)).to.deep.equal({ state: 'denied', reason: 'no' })
  })

  it('api.md Permission request: a second reply is 409 and changes nothing', async () => {
    const pending = await opened()
    await reply(book, pending, { allow: true })
    expect(await statusOf(reply(book, pending, { allow: false }))).to.equal(409)
    expect(await book.decision(pending)).to.deep.equal({ state: 'allowed' })
  })

  it('api.md Permission request: a reply after the timeout, or after the end of the run, is 404', async () => {
    for (const state of ['expired', 'withdrawn'] as const) {
      const pending = await opened()
      await book.decide(pending, { state })
      expect(await statusOf(reply(book, pending, { allow: true }))).to.equal(404)
      expect(await book.decision(pending)).to.deep.equal({ state })
    }
  })

  it('api.md Permission request: a request that never was is 404', async () => {
    expect(await statusOf(reply(book, newRequest(), { allow: true }))).to.equal(404)
  })

  it('another tenant, or another session, cannot reply', async () => {
    const pending = await opened()
    expect(await statusOf(reply(book, { ...pending, tenant: 'other' as TenantId }, { allow: true }))).to.equal(404)
    expect(await statusOf(reply(book, { ...pending, scopeId: newId('sess') }, { allow: true }))).to.equal(404)
    expect(await statusOf(reply(book, pending, { allow: true }))).to.equal(200)
  })

  it('design §7.6: of many replies and the timeout at once exactly one wins, and the engine acts on that one', async () => {
    for (let round = 0; round < 50; round++) {
      const pending = await opened()
      const replies = Array.from({ length: 8 }, (_, i) =>
        statusOf(reply(book, pending, { allow: i % 2 === 0, reason: `${i}` })),
      )
      const timeout = book.decide(pending, { state: 'expired' })
      const statuses = await Promise.all(replies)
      const { isWon } = await timeout
      expect(statuses.filter((status) => status === 200).length + Number(isWon)).to.equal(1)
      const decision = await book.decision(pending)
      expect(decision.reason).to.equal(isWon ? undefined : `${statuses.indexOf(200)}`)
    }
  })

  it('D4.12: a reply is remembered as long as its run is known', async () => {
    const [kept, gone] = [await opened({ scopeId: 's1' }), await opened({ scopeId: 's1' })]
    await reply(book, kept, { allow: true })
    await reply(book, gone, { allow: true })
    await book.forget(DEFAULT_TENANT, 's1', gone.runId)
    expect(await statusOf(reply(book, kept, { allow: true }))).to.equal(409)
    expect(await statusOf(reply(book, gone, { allow: true }))).to.equal(404)
  })

  it('D4.12: after a session is deleted its replies are 404', async () => {
    const pending = await opened()
    await reply(book, pending, { allow: true })
    await book.forget(DEFAULT_TENANT, pending.scopeId)
    expect(await statusOf(reply(book, pending, { allow: true }))).to.equal(404)
  })
}
