import { expect } from 'chai'
import { answerOf, DEFINITION, GOOD, KEYS, lastOf, putInstance, useFlows } from '../../support/flows.ts'
import type { Answer, Received } from '../../support/model-server/model-server.ts'
import { inBothForms, type Reply } from '../../support/product.ts'

type Way = {
  answer: Answer
  code: string
  /** Whether the fallback takes the call. */
  isOfProvider: boolean
  /** Requests to the provider until it is given up; not checked for timeouts. */
  requests?: number
}

const HALF = { text: '{"ans' }

/** Failures of a provider, by name: one of each kind. The others differ for the providers alone (test/agent/providers/failures). */
const WAYS: Record<string, Way> = {
  'refuses the key': {
    answer: { status: 401, message: `Incorrect API key provided: ${KEYS.main}` },
    code: 'provider_auth',
    isOfProvider: true,
    requests: 1,
  },
  'answers 500': { answer: { status: 500 }, code: 'provider_unavailable', isOfProvider: true, requests: 3 },
  'stops in the middle': { answer: [HALF, { hang: true }], code: 'timeout', isOfProvider: true },
  'filters the content': {
    answer: { steps: [HALF], finish: 'content_filter' },
    code: 'content_filtered',
    isOfProvider: false,
    requests: 1,
  },
}

/** `quick` is `main` with a timeout of a second. */
const instanceOf = ({ code }: Way) => (code === 'timeout' ? 'quick' : 'main')

const WITH_FALLBACK = ', with a fallback'
const FALLBACK = { fallback_instance: 'spare', fallback_model: 'm-9' }

inBothForms('failures of flows', (startProduct, form) => {
  const bench = useFlows(startProduct, form)
  const { publish, run } = bench
  let name: string
  const seen: string[] = []

  before(async () => {
    await putInstance(bench, 'quick', { url: bench.main.url, key: KEYS.main, options: { timeout_secs: 1 } })
    name = await publish(DEFINITION)
  })

  beforeEach(() => {
    bench.main.otherwise((request) => WAYS[wayOf(request)]?.answer ?? GOOD)
    bench.spare.otherwise(() => GOOD)
    for (const server of [bench.main, bench.spare]) server.requests.length = 0
  })

  afterEach(() => {
    const text = seen.splice(0).join('\n') + bench.product.log.join('\n')
    expect(text).not.to.contain('canary')
  })

  const textOf = (request: Received) => (JSON.parse(lastOf(request)) as { input: { text: string } }).input.text
  const wayOf = (request: Received) => textOf(request).replace(WITH_FALLBACK, '')

  /** The record of an execution; it and its replay are searched for keys, as is the answer. */
  const recordOf = async (reply: Reply) => {
    const record = await bench.dispatch(reply)
    const stream = await bench.product.stream(`/dispatches/${record['trace_id']}/events`)
    const frames = await stream.all()
    seen.push(reply.text, JSON.stringify([record, frames]))
    return { record, last: frames.at(-1)?.data, warnings: frames.filter(({ event }) => event === 'warning') }
  }

  const failureOf = ({ body }: Reply) => (body as { error: { type: string; message: string; code?: string } }).error

  describe('api.md Named flows 4 and 6: a provider that', () => {
    const replies = new Map<string, Reply>()
    let received: Received[]

    before(async () => {
      bench.main.otherwise((request) => WAYS[wayOf(request)]?.answer ?? GOOD)
      bench.spare.otherwise(() => GOOD)
      for (const server of [bench.main, bench.spare]) server.requests.length = 0
      const runs = Object.entries(WAYS).flatMap(([text, way]) => [
        { text, body: { provider_instance: instanceOf(way) } },
        { text: text + WITH_FALLBACK, body: { provider_instance: instanceOf(way), ...FALLBACK } },
      ])
      await Promise.all(
        runs.map(async ({ text, body }) => {
          replies.set(text, await run(name, { input: { text }, ...body }))
        }),
      )
      received = [...bench.main.requests, ...bench.spare.requests]
    })

    const replyTo = (text: string) => replies.get(text) as Reply
    const requestsFor = (text: string) => received.filter((request) => textOf(request) === text)

    for (const [text, way] of Object.entries(WAYS)) {
      const { code, isOfProvider, requests } = way

      it(`${text} is 502, and the message names the instance`, async () => {
        const reply = replyTo(text)
        expect(reply.status, reply.text).to.equal(502)
        expect(failureOf(reply)).to.include({ type: 'upstream_error', code })
        const place = `the main agent failed at instance ${instanceOf(way)}: `
        expect(failureOf(reply).message.slice(0, place.length)).to.equal(place)
        const { record, last } = await recordOf(reply)
        expect(record).to.deep.include({ status: 'error', output: null, served_instance: null })
        expect(record['error']).to.deep.equal(failureOf(reply))
        expect(last).to.include({ code, status: 502, error: failureOf(reply).message })
        if (requests !== undefined) expect(requestsFor(text)).to.have.length(requests)
      })

      it(`${text} is ${isOfProvider ? 'replaced by the fallback' : 'not replaced by it'}`, async () => {
        const reply = replyTo(text + WITH_FALLBACK)
        const { record, warnings } = await recordOf(reply)
        const failovers = warnings.filter(({ data }) => data['code'] === 'provider_failover')
        expect(failovers).to.have.length(isOfProvider ? 1 : 0)
        const models = new Set(requestsFor(text + WITH_FALLBACK).map(({ model }) => model))
        expect([...models]).to.deep.equal(isOfProvider ? ['m-1', 'm-9'] : ['m-1'])
        if (!isOfProvider) return expect(failureOf(reply)).to.include({ code })
        expect(answerOf(reply)).to.deep.include({ served_instance: 'spare', output: { answer: 'yes' } })
        return expect(record).to.include({ status: 'ok', provider_instance: instanceOf(way), served_instance: 'spare' })
      })
    }
  })

  it('a call switches once: when the fallback fails too, its failure is the answer', async () => {
    bench.spare.otherwise(() => ({ status: 402 }))
    const reply = await run(name, { input: { text: 'refuses the key' }, ...FALLBACK })
    expect(reply.status).to.equal(502)
    expect(failureOf(reply).message).to.match(/^the main agent failed at instance spare: /)
    expect([bench.main.requests.length, bench.spare.requests.length]).to.deep.equal([1, 1])
    await recordOf(reply)
  })
})
