import { expect } from 'chai'
import { modelsOf, routed, stateOf } from '../../../../../services/console/pages/settings/models/known-models.ts'
import type { Schema } from '../../../../../shared/client/api.ts'

const AT = '2026-11-30T09:00:00.000Z'

const instance: Schema<'Instance'> = {
  ...{ name: 'mine', type: 'openai', url: null, key: 'sk…', created_at: AT, updated_at: AT },
  prices: { own: { input: 3, output: 15 } },
}

const kind: Schema<'ProviderList'>['providers'][number] = {
  ...{ type: 'openai', default_url: null, requires_url: false, requires_key: true },
  models: [
    { id: 'priced', context_window: 128_000, input_price: 1, output_price: 4 },
    { id: 'half', context_window: null, input_price: 1, output_price: null },
  ],
}

const shared = { model: 'a', tokens_per_minute: 100, requests_per_minute: null, used_tokens: 10, used_requests: 1 }
const calm = { ...shared, at_work: 0, waiting: 0, refused: 0, health: 'healthy' as const, error_rate: 0 }
const probe: Schema<'Probe'> = {
  ...{ model: 'tried', latency_ms: 5, probed_at: AT },
  capabilities: { streaming: true, tools: true, structured_output: true, thinking: false, vision: false },
}
const found = (room: Schema<'Capabilities'>['room'] = []): Schema<'Capabilities'> => ({
  discovery: {
    models: ['z', 'priced', 'tried', 'own', 'half'].map((id) => ({ id, ...(id === 'z' && { context_length: 8_192 }) })),
    discovered_at: AT,
  },
  probes: [probe],
  room,
})

describe('the models of a provider', () => {
  it('stand in the order of their use, with the context and the price that the tenant, the provider or the catalogue names', () => {
    const routing = { main: { instance: 'mine', model: 'gone' }, plan: { instance: 'other', model: 'z' } }
    const models = modelsOf({ instance, kind, found: found(), routing })
    expect(models.map(({ id, context, price, roles }) => [id, context, price?.output, roles.join()])).to.deep.equal([
      ['gone', undefined, undefined, 'main'],
      ['tried', undefined, undefined, ''],
      ['priced', 128_000, 4, ''],
      ['own', undefined, 15, ''],
      ['z', 8_192, undefined, ''],
      ['half', undefined, undefined, ''],
    ])
  })

  it('everything is every role but recordings, and one role leaves the others and its own fallback', () => {
    const main = { instance: 'a', model: 'x', fallback_instance: 'b', fallback_model: 'y' }
    const transcription = { instance: 'a', model: 'whisper' }
    const before = { main, plan: main, transcription }
    const route = { instance: 'c', model: 'z' }
    expect(routed(before, 'everything', route)).to.deep.equal({ main: { ...main, ...route }, transcription })
    expect(routed(before, 'plan', route)).to.deep.equal({ ...before, plan: { ...main, ...route } })
  })
})

describe('the state of a provider', () => {
  const run = (minute: number, code?: string) =>
    ({ status: code ? 'failed' : 'done', ended_at: `2026-11-30T10:0${minute}:00.000Z`, ...(code && { code }) }) as const

  for (const [what, capabilities, runs, word, at] of [
    ['nothing is known', { discovery: null, probes: [], room: [] }, [], 'Not tried yet', undefined],
    ['its models were found', found(), [], 'Works,', AT],
    ['its newest run has succeeded', found(), [run(3), run(2, 'provider_auth')], 'Works,', run(3).ended_at],
    ['a run failed for itself', found(), [run(3, 'max_turns')], 'Works,', run(3).ended_at],
    [
      'it refuses the key',
      found(),
      [run(3, 'provider_auth'), run(2, 'timeout'), run(1)],
      'Refuses the key since',
      run(2).ended_at,
    ],
    [
      'all known runs failed',
      found(),
      [run(3, 'provider_unavailable'), run(1, 'timeout')],
      'Away since',
      run(1).ended_at,
    ],
    ['calls with a fallback pass it over', found([{ ...calm, health: 'unhealthy' }]), [], 'Most calls fail', undefined],
    ['calls wait', found([{ ...calm, waiting: 1 }]), [], 'At its limit', undefined],
    ['its tokens are used up', found([{ ...calm, used_tokens: 100 }]), [run(1)], 'At its limit', undefined],
  ] as const)
    it(`is "${word}" when ${what}`, () => {
      expect(stateOf(capabilities as Schema<'Capabilities'>, runs as never)).to.deep.include({
        word,
        ...(at && { at }),
      })
    })
})
