import { expect } from 'chai'
import { callModel } from '../../../../shared/agent/providers/failures/failover.ts'
import { ABANDONED } from '../../../../shared/agent/providers/failures/hedge.ts'
import type { CallPart, RetryPolicy } from '../../../../shared/agent/providers/failures/retry.ts'
import type { ModelPart, ModelProvider, ModelRequest, Priority } from '../../../../shared/agent/providers/port.ts'
import { oneByOne } from '../../../../shared/kernel/async/batch.ts'
import { never } from '../ai-sdk/setup.ts'
import { DOWN, fails, OK } from './retry-setup.ts'

type Step = ModelPart[] | 'hang' | 'unsent'

/** A provider that answers, or sends nothing until its request is aborted. `unsent`: the request waits for its turn. */
function slow(type: string) {
  const seen = { sent: 0, reasons: [] as unknown[], steps: [] as Step[] }
  const provider: ModelProvider = {
    type,
    async *stream({ onSent }: ModelRequest, signal: AbortSignal) {
      const step = seen.steps.shift() ?? OK
      if (step !== 'unsent') {
        seen.sent++
        onSent?.()
      }
      if (typeof step !== 'string') return yield* step
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      seen.reasons.push(signal.reason)
    },
  }
  return Object.assign(seen, { provider })
}

function bug(): ModelPart[] {
  throw new Error('a bug')
}

/** The rejections that nobody has handled by the end of `act`. */
async function unhandledIn(act: () => Promise<void>): Promise<unknown[]> {
  const unhandled: unknown[] = []
  const note = (cause: unknown) => void unhandled.push(cause)
  process.on('unhandledRejection', note)
  await act()
  await new Promise(setImmediate) // Those of this turn of the event loop are told by then.
  process.off('unhandledRejection', note)
  return unhandled
}

type Options = {
  fallback?: ModelProvider
  priority?: Priority
  hedge?: boolean
  signal?: AbortSignal
  retry?: Partial<RetryPolicy>
}

const start = (
  provider: ModelProvider,
  { fallback, priority = 'interactive', hedge = true, signal, retry = { maxRequests: 1 } }: Options = {},
) =>
  oneByOne(
    callModel({
      primary: { provider, model: 'big', caller: { priority } },
      fallback: fallback && { provider: fallback, model: 'spare', caller: { priority } },
      ...{ hedge, signal: signal ?? never(), retry },
      request: { messages: [{ role: 'user', text: 'hi' }], tools: [], stopSequences: [] },
    }),
  )

async function call(provider: ModelProvider, options?: Options) {
  const parts: CallPart[] = []
  for await (const part of start(provider, options)) parts.push(part)
  const [warning] = parts.flatMap((part) => (part.type === 'warning' ? [part] : []))
  return { parts, warning, last: parts.at(-1), types: parts.map(({ type }) => type) }
}

/** A call that begins later, and whose second request is sent: one of a call before would have been. */
async function isHedged(first: ReturnType<typeof slow>, options: Options): Promise<void> {
  first.steps.push('hang')
  expect((await call(first.provider, options)).types).to.include('abandoned')
}

async function staysAlone(first: ReturnType<typeof slow>, second: ReturnType<typeof slow>, options: Options) {
  const caller = new AbortController()
  first.steps.push('hang')
  const reading = call(first.provider, { ...options, signal: caller.signal })
  await isHedged(first, { ...options, hedge: true, priority: 'interactive' })
  caller.abort('cancelled')
  expect((await reading).types).to.deep.equal([])
  expect([first.reasons, second.sent]).to.deep.equal([[ABANDONED, 'cancelled'], 1])
}

describe('a second request for a late answer (D56)', () => {
  /** A provider whose answers have begun at once in so many calls. */
  async function known(calls = 20) {
    const [first, second] = [slow('openai'), slow('anthropic')]
    for (let at = 0; at < calls; at++) await call(first.provider, { fallback: second.provider })
    expect(second.sent).to.equal(0)
    return { first, second, options: { fallback: second.provider } }
  }

  it('goes to the fallback, whose answer is the only one; the late request is aborted, and what it cost is told', async () => {
    const { first, second, options } = await known()
    first.steps.push('hang')
    const { types, warning, parts } = await call(first.provider, options)
    expect(types).to.deep.equal(['warning', 'served_by', 'abandoned', 'text_delta', 'text_end', 'finish'])
    expect(warning).to.have.nested.include({ code: 'provider_failover', 'detail.reason': 'hedged' })
    expect(parts[1]).to.have.nested.property('route.model', 'spare')
    expect(parts[2]).to.have.nested.property('route.model', 'big')
    expect([first.reasons, second.sent]).to.deep.equal([[ABANDONED], 1])
  })

  it('goes to the same model where there is no fallback, without a word to the client', async () => {
    const { first } = await known()
    first.steps.push('hang')
    const { types } = await call(first.provider)
    expect(types).to.deep.equal(['abandoned', 'text_delta', 'text_end', 'finish'])
    expect(first.sent).to.equal(22)
  })

  for (const [what, isSent] of [
    ['is given up when the first answers after all, and what it cost is told', true],
    ['costs nothing when it was waiting for its turn then', false],
  ] as const)
    it(what, async () => {
      const { first, second, options } = await known()
      const late = Promise.withResolvers<void>()
      first.provider.stream = async function* ({ onSent }) {
        onSent?.()
        await late.promise
        yield* OK
      }
      second.provider.stream = async function* ({ onSent }, signal) {
        if (isSent) onSent?.()
        late.resolve()
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        second.reasons.push(signal.reason)
        yield* []
      }
      const { types, parts } = await call(first.provider, options)
      expect(types).to.deep.equal([...(isSent ? ['abandoned'] : []), 'text_delta', 'text_end', 'finish'])
      if (isSent) expect(parts[0]).to.have.nested.property('route.model', 'spare')
      expect(second.reasons).to.deep.equal([ABANDONED])
    })

  for (const [what, part] of [
    ['nobody waits for the answer', { priority: 'normal' }],
    ['the tenant does not allow it', { hedge: false }],
  ] as const)
    it(`is not sent when ${what}`, async () => {
      const { first, second, options } = await known()
      await staysAlone(first, second, { ...options, ...part })
    })

  it('is not sent as long as too few calls were seen', async () => {
    const { first, second, options } = await known(18)
    const caller = new AbortController()
    first.steps.push('hang')
    const reading = call(first.provider, { ...options, signal: caller.signal })
    for (let at = 0; at < 2; at++) await call(first.provider, options)
    await isHedged(first, options)
    caller.abort('cancelled')
    expect((await reading).types).to.deep.equal([])
    expect(second.sent).to.equal(1)
  })

  it('is a failure only when both have failed, which the message says', async () => {
    const { first, second, options } = await known()
    const failed = Promise.withResolvers<void>()
    first.provider.stream = async function* ({ onSent }) {
      onSent?.()
      await failed.promise
      yield* DOWN
    }
    second.provider.stream = async function* ({ onSent }) {
      onSent?.()
      failed.resolve()
      yield* fails('provider_auth', 'http_401', {})
    }
    const { types, last } = await call(first.provider, options)
    expect(types).to.deep.equal(['failure'])
    expect(last)
      .to.have.nested.property('failure.message')
      .that.match(/http_503/)
  })

  it('is given up without a trace by a provider that throws then', async () => {
    const { first, options } = await known()
    first.provider.stream = async function* ({ onSent }, signal) {
      onSent?.()
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      first.reasons.push(signal.reason)
      yield* bug()
    }
    const unhandled = await unhandledIn(async () => {
      expect((await call(first.provider, options)).last).to.have.property('type', 'finish')
    })
    expect([first.reasons, unhandled]).to.deep.equal([[ABANDONED], []])
  })

  it('is the failure of whoever reads on when a provider throws between two reads', async () => {
    const { first } = await known()
    first.steps.push(DOWN)
    const reading = start(first.provider, { retry: { maxRequests: 2, baseDelayMs: 0 } })
    const unhandled = await unhandledIn(async () => {
      expect((await reading.next()).value).to.include({ type: 'warning', code: 'transport_retrying' })
      const thrown = Promise.withResolvers<void>()
      first.provider.stream = async function* () {
        thrown.resolve()
        yield* bug()
      }
      await thrown.promise
    })
    expect(await reading.next().catch(({ message }: Error) => message)).to.equal('a bug')
    expect(unhandled).to.deep.equal([])
  })

  it('leaves the fallback to a failure that comes in time', async () => {
    const { first, second, options } = await known()
    first.steps.push(DOWN)
    const { types, warning } = await call(first.provider, options)
    expect(types).to.deep.equal(['warning', 'served_by', 'text_delta', 'text_end', 'finish'])
    expect(warning).to.have.nested.property('detail.reason', 'http_503')
    expect(second.sent).to.equal(1)
  })

  it('makes a model that is late in half of its calls rest', async () => {
    const { first, options } = await known()
    for (let at = 0; at < 25; at++) {
      first.steps.push('hang')
      await call(first.provider, options)
    }
    const before = first.sent
    const { warning } = await call(first.provider, options)
    expect(warning).to.have.nested.property('detail.reason', 'provider_skipped')
    expect(first.sent).to.equal(before)
  })

  it('ends with the run that is cancelled while both are under way', async () => {
    const { first, second, options } = await known()
    const caller = new AbortController()
    first.steps.push('hang')
    second.provider.stream = async function* (_request, signal) {
      caller.abort('cancelled')
      second.reasons.push(signal.reason)
      yield* []
    }
    expect((await call(first.provider, { ...options, signal: caller.signal })).types).to.deep.equal([])
    expect([...first.reasons, ...second.reasons]).to.deep.equal(['cancelled', 'cancelled'])
  })
})
