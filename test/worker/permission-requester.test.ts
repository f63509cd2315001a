import { expect } from 'chai'
import { createPermissionRequester } from '../../services/worker/permission-requester.ts'
import { Runs } from '../../services/worker/runs.ts'
import { createMemoryPermissionStore } from '../../shared/broker/permissions/memory-store.ts'
import { reply } from '../../shared/broker/permissions/reply.ts'
import type { PermissionStore } from '../../shared/broker/port.ts'
import { AppError } from '../../shared/errors.ts'
import { newId } from '../../shared/ids.ts'
import { NO_METRICS } from '../../shared/metrics.ts'
import { DEFAULT_TENANT } from '../../shared/tenant.ts'

const question = { toolName: 'Write', input: {}, message: 'Write wants to write' }

function setUp(timeoutMs: number) {
  const runs = new Runs(
    { maxLive: 1, resumeMs: 60_000, maxJournalBytes: 1e6 },
    { onBug: () => {}, onEvent: () => {}, onForgotten: () => {} },
  )
  const run = runs.open({ id: newId('run'), tenant: DEFAULT_TENANT, sessionId: undefined })
  const book = createMemoryPermissionStore()
  return { run, book, open: createPermissionRequester(book, timeoutMs, NO_METRICS)(run) }
}

describe('permission desk', () => {
  it('api.md Permission request: the engine goes on with what the client replied', async () => {
    const { run, book, open } = setUp(60_000)
    const ask = await open(question)
    expect(ask.id).to.match(/^perm_[0-9a-f]{32}$/)
    await reply(book, { tenant: run.tenant, scopeId: run.id, id: ask.id }, { allow: false, reason: 'no' })
    expect(await ask.decision).to.deep.equal({ isAllowed: false, reason: 'no' })
  })

  it('api.md Limits: a request that nobody replies to is denied when its time is over', async () => {
    const ask = await setUp(20).open(question)
    expect(await ask.decision).to.deep.equal({ isAllowed: false, reason: 'nobody answered within 0.02 seconds' })
  })

  it('D4.7: the end of the run denies what is pending', async () => {
    const { run, book, open } = setUp(60_000)
    const ask = await open(question)
    run.cancel('cancelled')
    expect(await ask.decision).to.include({ isAllowed: false })
    const { isWon, state } = await book.decide(
      { tenant: run.tenant, scopeId: run.id, id: ask.id },
      { state: 'allowed' },
    )
    expect({ isWon, state }).to.deep.equal({ isWon: false, state: 'withdrawn' })
  })

  it('a request of a run that has ended already is denied at once', async () => {
    const { run, open } = setUp(60_000)
    run.cancel('cancelled')
    expect(await (await open(question)).decision).to.include({ isAllowed: false })
  })

  it('reliability rule 5: the timeout is decided as soon as the book answers again, and until then nothing is', async () => {
    const { book, run } = setUp(0)
    const failing = flaky(book)
    const ask = await createPermissionRequester(failing.book, 20, NO_METRICS)(run)(question)
    failing.isAway = true
    await failing.refused
    failing.isAway = false
    expect(await ask.decision).to.include({ isAllowed: false, reason: 'nobody answered within 0.02 seconds' })
  })

  it('N6: a request that could not be opened cannot be replied to, even if it was opened all the same', async () => {
    const { book, run } = setUp(60_000)
    const failing = flaky(book)
    const opened = Promise.withResolvers<string>()
    failing.book.open = async (request) => {
      await book.open(request)
      opened.resolve(request.id)
      throw new AppError('unavailable', 'no answer within a second')
    }
    const error = await createPermissionRequester(
      failing.book,
      60_000,
      NO_METRICS,
    )(run)(question).catch((cause) => cause)
    expect(error).to.include({ kind: 'unavailable' })
    const request = { tenant: run.tenant, scopeId: run.id, id: await opened.promise }
    await book.decision(request)
    const refusal = await reply(book, request, { allow: true }).catch((cause: unknown) => cause)
    expect(refusal).to.include({ status: 404 })
  })
})

/** A book that does not answer while it is away. */
function flaky(real: PermissionStore) {
  const refused = Promise.withResolvers<void>()
  const state = {
    isAway: false,
    refused: refused.promise,
    book: {
      ...real,
      decide: async (...args: Parameters<PermissionStore['decide']>) => {
        if (!state.isAway) return real.decide(...args)
        refused.resolve()
        throw new AppError('unavailable', 'Redis is away')
      },
    },
  }
  return state
}
