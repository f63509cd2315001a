import { expect } from 'chai'
import { createWatchedFetch, type Fetch, withQueryOf } from '../../../../shared/agent/providers/ai-sdk/transport.ts'
import { CallWatch } from '../../../../shared/agent/providers/call-watch.ts'
import { MODEL_LIMITS } from '../../../../shared/agent/providers/limits.ts'
import { failureOf } from '../../../support/failure-of.ts'

/** An event of so many bytes. */
const eventOf = (bytes: number) => `data: ${'x'.repeat(bytes - 8)}\n\n`

const STREAM = { headers: { 'content-type': 'text/event-stream' } }

describe('the transport of the vendors’ packages', () => {
  const opened: CallWatch[] = []
  afterEach(() => {
    for (const watch of opened.splice(0)) watch.close()
  })

  /** A watched `fetch` over a fake one, a watch of one call, and how the fake was called. */
  function setUp(response: Response, limits = MODEL_LIMITS) {
    const watch = new CallWatch(limits, new AbortController().signal)
    opened.push(watch)
    const inits: (RequestInit | undefined)[] = []
    const transport: Fetch = async (_input, init) => {
      inits.push(init)
      return response
    }
    const send = createWatchedFetch(transport, { dialect: 'anthropic', watches: new WeakMap([[watch.signal, watch]]) })
    return {
      watch,
      inits,
      send: () => send('https://models.test/', { signal: watch.signal }),
      unwatched: () => send('https://models.test/'),
    }
  }
  const read = async (response: Response) => String((await response.body?.getReader().read())?.value?.length)

  it('tells the watch of a call that its request was sent, and follows no redirect', async () => {
    const { watch, inits, send } = setUp(new Response('x', STREAM))
    expect(watch.isSent).to.equal(false)
    await send()
    expect([watch.isSent, inits[0]?.redirect]).to.deep.equal([true, 'manual'])
  })

  it('sends nothing without a watch', async () => {
    const { inits, unwatched } = setUp(new Response('x', STREAM))
    expect((await failureOf<Error>(unwatched())).message).to.include('no CallWatch')
    expect(inits).to.deep.equal([])
  })

  it('ends the call at a limit of its bytes', async () => {
    const { watch, send } = setUp(new Response(eventOf(100), STREAM), { ...MODEL_LIMITS, maxTurnBytes: 99 })
    expect((await failureOf<Error>(send().then(read))).message).to.equal('the response was rejected: turn_bytes')
    expect(watch.breach).to.equal('turn_bytes')
    expect(
      await setUp(new Response(eventOf(99), STREAM))
        .send()
        .then(read),
    ).to.equal('99')
  })

  it('ends the call at a web page, and throws the text of a JSON document with a status of success', async () => {
    const page = setUp(new Response('<p>', { headers: { 'content-type': 'text/html; charset=utf-8' } }))
    await page.send()
    expect(page.watch.breach).to.equal('web_page')
    const document = { headers: { 'content-type': 'application/json' } }
    expect(await failureOf<Error>(setUp(new Response('{"error":1}', document)).send())).to.have.property(
      'responseBody',
      '{"error":1}',
    )
    expect(await setUp(new Response('{"error":1}', { ...document, status: 400 })).send()).to.have.property(
      'status',
      400,
    )
  })

  it('adds the query of the base URL to each request, in the place of one of the same name', async () => {
    const asked: string[] = []
    const transport: Fetch = async (input) => {
      asked.push(String(input))
      return new Response()
    }
    expect(withQueryOf(new URL('https://a.test/v1'), transport)).to.equal(transport)
    const send = withQueryOf(new URL('https://a.test/v1?version=2&key=k'), transport)
    await send('https://a.test/v1/models?version=1&x=y')
    await send(new Request('https://a.test/v1/x'))
    expect(asked).to.deep.equal(['https://a.test/v1/models?version=2&x=y&key=k', 'https://a.test/v1/x?version=2&key=k'])
  })
})
