import { expect } from 'chai'
import { createPermissionRequester } from '../../services/worker/permission-requester.ts'
import { createMemoryPermissionStore } from '../../shared/cluster/permissions/memory-store.ts'
import { reply } from '../../shared/cluster/permissions/reply.ts'
import type { PermissionStore } from '../../shared/cluster/permissions/store.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import { newId } from '../../shared/kernel/ids.ts'
import { NO_METRICS } from '../../shared/kernel/metrics.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import { Runs } from '../../shared/work/runs/runs.ts'
import { NO_REPORTER } from '../support/no-reporter.ts'
import { SILENT_LOG } from '../support/silent-log.ts'

const WRITE = { toolUseId: 'call_1', toolName: 'Write', input: {}, message: 'Write wants to write' }

const both = (ms: number) => ({ permission: ms, tool_call: ms })

function setUp(timeoutMs: number) {
  const runs = new Runs(
    { maxLive: 1, resumeMs: 60_000, maxJournalBytes: 1e6 },
    { onBug: () => {}, onEvent: () => {}, onForgotten: () => {} },
  )
  const run = runs.open({ id: newId('run'), tenant: DEFAULT_TENANT, sessionId: undefined })
  const store = createMemoryPermissionStore()
  return { run, store, open: createPermissionRequester(store, both(timeoutMs), QUIET)(run) }
}

const QUIET = { metrics: NO_METRICS, reporter: NO_REPORTER, log: SILENT_LOG }

describe('a permission request', () => {
  it('api.md Permission request: is decided by the client’s reply', async () => {
    const { run, store, open } = setUp(60_000)
    const ask = await open(WRITE)
    expect(ask.id).to.match(/^perm_[0-9a-f]{32}$/)
    const [listed] = (await store.list(run.tenant, { limit: 1 })).permissions
    expect(listed).to.include({ tool_use_id: 'call_1', expires_at: ask.expiresAt })
    await reply(store, { tenant: run.tenant, scopeId: run.id, id: ask.id }, { allow: false, reason: 'no' })
    expect(await ask.decision).to.deep.equal({ allow: false, how: 'reply', reason: 'no' })
  })

  it('api.md Limits: is denied after the timeout when there is no reply', async () => {
    const ask = await setUp(20).open(WRITE)
    const reason = 'nobody answered within 0.02 seconds'
    expect(await ask.decision).to.deep.equal({ allow: false, how: 'timeout', reason })
  })

  it('D4.7: is denied at the end of its run', async () => {
    const { run, store, open } = setUp(60_000)
    const ask = await open(WRITE)
    run.cancel('cancelled')
    expect(await ask.decision).to.include({ allow: false, how: 'cancelled' })
    const { isWon, state } = await store.decide(
      { tenant: run.tenant, scopeId: run.id, id: ask.id },
      { state: 'allowed' },
    )
    expect({ isWon, state }).to.deep.equal({ isWon: false, state: 'withdrawn' })
  })

  it('D39.1: is denied when a later message supersedes its run, and so are those that the run makes then', async () => {
    const { run, store, open } = setUp(60_000)
    const [one, two] = [await open(WRITE), await open({ ...WRITE, toolUseId: 'call_2' })]
    await reply(store, { tenant: run.tenant, scopeId: run.id, id: two.id }, { allow: true })
    run.supersede()
    const denied = { allow: false, how: 'reply', reason: 'a new message came' }
    expect(await one.decision).to.deep.equal(denied)
    expect(await two.decision).to.include({ allow: true })
    expect(await (await open({ ...WRITE, toolUseId: 'call_3' })).decision).to.deep.equal(denied)
  })

  it('is denied at once when its run has ended already', async () => {
    const { run, open } = setUp(60_000)
    run.cancel('cancelled')
    expect(await (await open(WRITE)).decision).to.include({ allow: false })
  })

  it('stays undecided while the store is unreachable, and expires when it answers again', async () => {
    const { store, run } = setUp(0)
    const failing = flaky(store)
    const ask = await createPermissionRequester(failing.store, both(20), QUIET)(run)(WRITE)
    failing.isAway = true
    await failing.refused
    failing.isAway = false
    expect(await ask.decision).to.include({ allow: false, reason: 'nobody answered within 0.02 seconds' })
  })

  it('D37.1: is given up soon after the end of its run while the store is unreachable, and withdrawn when it answers again', async () => {
    const { store, run } = setUp(60_000)
    const failing = flaky(store)
    const ask = await createPermissionRequester(failing.store, both(60_000), QUIET)(run)(WRITE)
    failing.isAway = true
    run.cancel('cancelled')
    expect(await ask.decision).to.include({ allow: false, how: 'cancelled' })
    failing.isAway = false
    const request = { tenant: run.tenant, scopeId: run.id, id: ask.id }
    expect(await store.decision(request)).to.deep.equal({ state: 'withdrawn' })
  })

  it('that could not be opened cannot be answered, even when it was stored all the same', async () => {
    const { store, run } = setUp(60_000)
    const failing = flaky(store)
    const opened = Promise.withResolvers<string>()
    failing.store.open = async (request) => {
      await store.open(request)
      opened.resolve(request.id)
      throw new AppError('unavailable', 'no answer within a second')
    }
    const error = await createPermissionRequester(
      failing.store,
      both(60_000),
      QUIET,
    )(run)(WRITE).catch((cause) => cause)
    expect(error).to.include({ kind: 'unavailable' })
    const request = { tenant: run.tenant, scopeId: run.id, id: await opened.promise }
    await store.decision(request)
    const refusal = await reply(store, request, { allow: true }).catch((cause: unknown) => cause)
    expect(refusal).to.include({ status: 404 })
  })
})

/** A store that does not answer while it is unreachable. */
function flaky(real: PermissionStore) {
  const refused = Promise.withResolvers<void>()
  const state = {
    isAway: false,
    refused: refused.promise,
    store: {
      ...real,
      decide: async (...args: Parameters<PermissionStore['decide']>) => {
        if (!state.isAway) return real.decide(...args)
        refused.resolve()
        throw new AppError('unavailable', 'Redis is unreachable')
      },
    },
  }
  return state
}
