import { expect } from 'chai'
import { type DiscoverTarget, discoverModels } from '../../../shared/agent/providers/discover.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import { createEgress } from '../../../shared/platform/net/egress.ts'
import { elapsedMs } from '../../support/elapsed.ts'
import { type ModelServer, startModelServer } from '../../support/model-server/model-server.ts'

const KEY = 'sk-canary-0123456789'

describe('discovery of models', () => {
  let server: ModelServer
  const egress = createEgress({ allowPrivate: true })

  before(async () => {
    server = await startModelServer()
  })

  afterEach(() => {
    server.models = ['test-model']
    server.requests.length = 0
  })

  after(async () => {
    await server.close()
    await egress.close()
  })

  const discover = (target: Partial<DiscoverTarget> = {}, timeoutMs = 15_000) =>
    discoverModels(
      { type: 'openai-compatible', url: server.url, key: KEY, headers: { 'x-team': 'a' }, ...target },
      { request: egress.request, signal: new AbortController().signal, timeoutMs },
    )

  const failureOf = async (work: Promise<unknown>) => {
    const error = await work.then(
      () => expect.fail('it succeeded'),
      (cause: unknown) => cause,
    )
    if (!(error instanceof AppError)) throw error
    expect(error.message).not.to.contain(KEY)
    return { kind: error.kind, message: error.message }
  }

  for (const [type, url, header] of [
    ['openai-compatible', () => server.url, ['authorization', `Bearer ${KEY}`]],
    ['openai', () => `${server.url}/`, ['authorization', `Bearer ${KEY}`]],
    ['ollama', () => server.url.replace('/v1', ''), ['authorization', `Bearer ${KEY}`]],
    ['anthropic', () => server.url, ['x-api-key', KEY]],
    ['google', () => server.googleUrl, ['x-goog-api-key', KEY]],
  ] as const)
    it(`D8.4: ${type} lists its models by their ids, asked with the key in its own header`, async () => {
      server.models = ['b-model', 'a-model']
      const models = await discover({ type, url: url() })
      expect(models.map(({ id }) => id)).to.deep.equal(['b-model', 'a-model'])
      const [request] = server.requests
      expect(request?.headers).to.include({ [header[0]]: header[1], 'x-team': 'a' })
    })

  it('a provider without a key is asked without one', async () => {
    await discover({ key: undefined })
    expect(server.requests[0]?.headers).not.to.have.property('authorization')
  })

  it('at most 1,000 models are taken', async () => {
    server.models = Array.from({ length: 1_200 }, (_, i) => `model-${i}`)
    expect(await discover()).to.have.length(1_000)
  })

  it('a refused key is told as such, whatever the provider says', async () => {
    server.models = { status: 401 }
    expect(await failureOf(discover())).to.deep.equal({
      kind: 'upstream',
      message: 'openai-compatible refused the key (HTTP 401): store a valid key for this instance',
    })
  })

  for (const [what, models] of [
    ['an error', { status: 500 }],
    ['a redirect', { status: 302, headers: { location: 'http://127.0.0.1:1/' } }],
    ['a page', { status: 200, body: '<html>' }],
    ['other JSON', { status: 200, body: { data: 'none' } }],
    ['a list', { status: 200, body: [1] }],
    ['a reset', { resetBeforeHeaders: true }],
    ['compressed bytes', { status: 200, headers: { 'content-encoding': 'gzip' }, body: 'x' }],
    ['more than 8 MiB', { status: 200, body: 'x'.repeat(9 * 1024 * 1024) }],
  ] as const)
    it(`${what} in place of a list is an upstream failure`, async () => {
      server.models = models
      expect((await failureOf(discover())).kind).to.equal('upstream')
    })

  it('a provider that never answers fails within the limit', async () => {
    server.models = { hangBeforeHeaders: true }
    const startedAt = elapsedMs()
    expect((await failureOf(discover({}, 200))).message).to.contain('did not answer in time')
    expect(elapsedMs() - startedAt).to.be.below(2_000)
  })

  it('nobody at the address is an upstream failure', async () => {
    const gone = await startModelServer()
    const { url } = gone
    await gone.close()
    expect((await failureOf(discover({ url }))).kind).to.equal('upstream')
  })
})
