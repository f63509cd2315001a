import { getEventListeners } from 'node:events'
import { expect } from 'chai'
import { AppError, invalidRequest } from '../../../../shared/kernel/errors.ts'
import type { RunErrorCode } from '../../../../shared/kernel/events.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import { Stop } from '../../../../shared/work/flows/execute/stop.ts'
import { useOpened } from '../../../support/fixture.ts'
import { Bench, boxOf, definitionOf, flowOf, GOOD, isFrom, toolOf } from './setup.ts'

describe('the early end of an execution', () => {
  const bench = useOpened(() => Bench.start('one'), { perTest: true })

  it('the first failing sub-agent ends its siblings: their connections are closed, and the main agent never starts', async () => {
    const allAsked = Promise.withResolvers<void>()
    bench.server().otherwise((request, index) => {
      if (index === 2) allAsked.resolve()
      if (!isFrom('critic', request)) return [{ text: '{' }, { hang: true }]
      return allAsked.promise.then(() => ({ status: 401 }))
    })
    const { outcome } = await bench.play(flowOf(['a1', 'critic', 'a2']))
    expect(outcome.error).to.include({ status: 502, code: 'provider_auth' })
    expect(outcome.error?.message).to.match(/^sub-agent critic failed at instance one: /)
    const others = bench.server().requests.filter((request) => !isFrom('critic', request))
    await Promise.all(others.map(({ closedByClient }) => closedByClient))
    expect(others).to.have.length(2)
  })

  it('a sibling that failed later does not replace the first failure', async () => {
    bench.server().otherwise((request) => (isFrom('critic', request) ? { status: 401 } : [{ hang: true }]))
    const { outcome } = await bench.play(flowOf(['a1', 'critic']))
    expect(outcome.error?.code).to.equal('provider_auth')
  })

  const reasons: [reason: RunErrorCode, status: number, message: string][] = [
    ['cancelled', 409, 'the run was cancelled'],
    ['worker_draining', 503, 'the server is shutting down: send the request again'],
    ['worker_lost', 503, 'the run was ended'],
  ]
  for (const [reason, status, message] of reasons) {
    it(`an abort with ${reason} ends every model call, and is the failure`, async () => {
      const abort = new AbortController()
      bench.server().otherwise(() => [{ text: '{' }, { hang: true }])
      const playing = bench.play(
        { ...flowOf(['a1', 'a2']), fallback: { instance: 'none', model: 'm' } },
        { signal: abort.signal },
      )
      const requests = [await bench.server().nextRequest(), await bench.server().nextRequest()]
      abort.abort(reason)
      const { outcome } = await playing
      await Promise.all(requests.map(({ closedByClient }) => closedByClient))
      expect(outcome).to.deep.include({ status: 'error', output: null, served_instance: null, turns: 0 })
      expect(outcome.error).to.include({ status, message, code: reason })
      expect(bench.server().requests).to.have.length(2)
    })
  }

  it('an abort ends a tool', async () => {
    const abort = new AbortController()
    const hang = toolOf('Hang', (_input, { signal }) => {
      abort.abort('cancelled')
      expect(signal.aborted).to.equal(true)
      return new Promise(() => {})
    })
    const definition = definitionOf({ tools: ['Hang'] })
    const tools = {
      toolBox: boxOf([hang]),
      services: {},
      owner: { tenant: DEFAULT_TENANT, scope: 'run' },
      workspace: () => '/workspaces/run',
      maxOutputChars: 1_000,
      canAct: async () => true,
      mayAct: () => true,
      onToolBug: (_name: string, cause: unknown) => void bench.bugs.push(cause),
    }
    bench.server().answer([{ tool: 'Hang' }])
    const { outcome } = await bench.play(
      { flow: { name: 'review', version: 3, definition } },
      { signal: abort.signal, tools },
    )
    expect(outcome.error?.code).to.equal('cancelled')
    expect(bench.bugs).to.deep.equal([])
  })

  it('a signal that is aborted before sends no request', async () => {
    const { events, outcome } = await bench.play(flowOf(['a1']), { signal: AbortSignal.abort('cancelled') })
    expect(events.map(({ type }) => type)).to.deep.equal(['started'])
    expect(outcome.error?.code).to.equal('cancelled')
    expect(bench.server().requests).to.deep.equal([])
  })

  it('an execution that exceeds its limit ends as a timeout, and does not switch', async () => {
    bench.server().otherwise(() => [{ text: '{' }, { hang: true }])
    const { events, outcome } = await bench.play({ fallback: { instance: 'none', model: 'm' } }, { limitMs: 50 })
    expect(outcome.error).to.deep.equal({
      status: 502,
      type: 'upstream_error',
      code: 'timeout',
      message: 'the flow did not end within its time limit',
    })
    expect(events.map(({ type }) => type)).to.deep.equal(['started'])
  })

  it('a reader who leaves ends all agents', async () => {
    bench.server().otherwise(() => [{ text: '{' }, { hang: true }])
    const running = bench.execute(flowOf(['a1', 'a2']))
    expect((await running.next()).value).to.include({ type: 'started' })
    const requests = [await bench.server().nextRequest(), await bench.server().nextRequest()]
    await running.return(undefined as never)
    await Promise.all(requests.map(({ closedByClient }) => closedByClient))
  })

  it('a bug is an internal error without its text, and is reported; the siblings end', async () => {
    bench.server().otherwise((request) => (isFrom('a1', request) ? GOOD : [{ text: '{' }, { hang: true }]))
    const bug = new Error('secret detail')
    const checker = { check: () => Promise.reject(bug) }
    const { outcome } = await bench.play(flowOf(['a1', 'a2']), { checker })
    expect(outcome.error).to.deep.equal({ status: 500, type: 'internal_error', message: 'internal error' })
    expect(bench.bugs).to.deep.equal([bug])
  })

  it('a refusal within the execution is an upstream error: the request was checked before', async () => {
    bench.server().answer(GOOD)
    const checker = { check: () => Promise.reject(invalidRequest('the schema cannot be used')) }
    const { outcome } = await bench.play({}, { checker })
    expect(outcome.error).to.deep.equal({ status: 502, type: 'upstream_error', message: 'the schema cannot be used' })
    expect(bench.bugs).to.deep.equal([])
  })

  it('a service that does not answer is a failure of its own kind, and does not switch', async () => {
    const cause = new AppError('unavailable', 'the store does not answer: try again')
    const { outcome } = await bench.play(
      { fallback: { instance: 'none', model: 'm' } },
      { openModel: () => Promise.reject(cause) },
    )
    expect(outcome.error).to.deep.equal({ status: 503, type: 'unavailable_error', message: cause.message })
    expect(bench.bugs).to.deep.equal([])
  })

  it("an ended execution leaves no listener on the caller's signal", async () => {
    const { signal } = new AbortController()
    bench.server().otherwise(() => GOOD)
    expect((await bench.play(flowOf(['a1']), { signal })).outcome.status).to.equal('ok')
    expect(getEventListeners(signal, 'abort')).to.deep.equal([])
  })

  it('what the execution itself has ended is no longer ended from outside', () => {
    const abort = new AbortController()
    const stop = new Stop(abort.signal, 60_000)
    stop.end()
    abort.abort('cancelled')
    expect([stop.signal.aborted, stop.cause]).to.deep.equal([true, undefined])
    stop.dispose()
  })
})
