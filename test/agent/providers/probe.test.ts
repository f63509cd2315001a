import { expect } from 'chai'
import { createProvider } from '../../../services/wiring/models/create-provider.ts'
import { probeModel } from '../../../shared/agent/providers/probe.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import { type Received, useModelServer } from '../../support/model-server/model-server.ts'
import type { Answer } from '../../support/model-server/script.ts'

const KEY = 'sk-canary-0123456789'

/** Tells a probe's requests apart by what they ask for. */
const kindOf = ({ body }: Received): 'hello' | 'tools' | 'structured_output' | 'thinking' | 'vision' => {
  const text = JSON.stringify(body)
  if (text.includes('image_url')) return 'vision'
  if (text.includes('json_schema')) return 'structured_output'
  if (text.includes('strawberry')) return 'thinking'
  return text.includes('report_number') ? 'tools' : 'hello'
}

const ABLE: Record<ReturnType<typeof kindOf>, Answer> = {
  hello: 'ok',
  tools: [{ tool: 'report_number', input: { number: 7 } }],
  structured_output: [{ text: '{"number":7}' }],
  thinking: [{ thinking: 'r, r, r' }, { text: '3' }],
  vision: 'Red.',
}

describe('the probe of a model', () => {
  const server = useModelServer({ perTest: true })

  const probe = async (answers: Partial<typeof ABLE> = {}, signal = new AbortController().signal) => {
    server.otherwise((request) => ({ ...ABLE, ...answers })[kindOf(request)])
    const settings = { type: 'openai-compatible', baseUrl: server.url, apiKey: KEY } as const
    const plain = await createProvider(settings)
    const reasoning = await createProvider({ ...settings, options: { reasoning_effort: 'low' } })
    return probeModel({ plain, reasoning }, 'test-model', signal)
  }

  it('D8.4: a model that can everything is found to', async () => {
    const { capabilities, latencyMs } = await probe()
    expect(capabilities).to.deep.equal({
      streaming: true,
      tools: true,
      structured_output: true,
      thinking: true,
      vision: true,
    })
    expect(latencyMs).to.be.at.least(0)
    expect(server.requests.map(kindOf).filter((kind) => kind === 'hello')).to.have.length(1)
  })

  for (const kind of ['tools', 'structured_output', 'thinking', 'vision'] as const) {
    it(`D8.4: a request for ${kind} that the provider rejects means that the model cannot`, async () => {
      const { capabilities } = await probe({ [kind]: { status: 400, message: 'not supported' } })
      expect(capabilities).to.deep.equal({ ...(await probe()).capabilities, [kind]: false })
    })

    it(`D8.4: an answer without ${kind} means that the model cannot`, async () => {
      expect((await probe({ [kind]: 'plain words' })).capabilities[kind]).to.equal(false)
    })

    it(`a limit of the rate at ${kind} says nothing about the model: the probe fails`, async () => {
      const error = await probe({ [kind]: { status: 429 } }).catch((cause: unknown) => cause)
      expect(error).to.be.instanceOf(AppError).with.property('kind', 'upstream')
    })
  }

  for (const [what, hello] of [
    ['an error', { status: 500 }],
    ['an unknown model', { status: 404 }],
    ['a refused key', { status: 401 }],
    ['a reset', { resetBeforeHeaders: true }],
    ['a broken stream', [{ text: 'a' }, { truncate: true }]],
    ['garbage', { status: 200, body: 'x' }],
  ] as [string, Answer][])
    it(`${what} at the first request fails the probe, and no other is made`, async () => {
      const error = await probe({ hello }).catch((cause: unknown) => cause)
      expect(error).to.be.instanceOf(AppError).with.property('kind', 'upstream')
      expect(String(error)).not.to.contain(KEY)
      expect(server.requests.map(kindOf)).to.deep.equal(['hello'])
    })

  it('a model that never answers is left when the signal says so', async () => {
    const controller = new AbortController()
    const probed = probe({ hello: { hangBeforeHeaders: true } }, controller.signal)
    const request = await server.nextRequest()
    controller.abort(new Error('the time is over'))
    expect(await probed.catch((cause: unknown) => cause)).to.have.property('message', 'the time is over')
    await request.closedByClient
  })
})
