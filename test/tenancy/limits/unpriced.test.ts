import { expect } from 'chai'
import type { PriceOf } from '../../../shared/agent/providers/port.ts'
import { unpricedWarnings } from '../../../shared/tenancy/limits/unpriced.ts'
import {
  EMPTY_CONFIG,
  type Limits,
  NO_LIMITS,
  type Routing,
  type StoredInstance,
} from '../../../shared/tenancy/tenant-config/config.ts'

const IN_DOLLARS: Limits = { ...NO_LIMITS, usd_per_day: 5 }
const instance = (name: string, more = {}) => ({ name, type: 'openai', ...more }) as unknown as StoredInstance
const SERVER_MODELS = [
  { type: 'openai', model: 'known' },
  { type: 'ollama', model: 'own' },
  { type: 'ollama', model: 'local' },
]
/** The price of `known` is known, that of `local` at an ollama, and what an instance gives. */
const priceOf: PriceOf = ({ type, prices }, model) =>
  model === 'known' || (model === 'local' && type === 'ollama') || prices?.has(model) ? 1 : undefined

/** The model and instance that each warning says is without a price. */
function namesIn(routing: Routing, { limits = IN_DOLLARS, instances = [instance('main'), instance('spare')] } = {}) {
  const config = { ...EMPTY_CONFIG, routing, instances }
  const warnings = unpricedWarnings(limits, config, { priceOf, serverModels: SERVER_MODELS })
  for (const { code, param } of warnings) expect([code, param]).to.deep.equal(['price_unknown', '/usd_per_day'])
  return warnings.map(({ message }) => message.replace(/^the price of (.*) is not known.*$/, '$1'))
}

describe('the warnings of a budget in dollars', () => {
  it('name each model of the routes whose price is unknown, once, and its instance', () => {
    const main = { instance: 'main', model: 'new', fallback_instance: 'spare', fallback_model: 'other' }
    expect(namesIn({ main, sub_agents: { instance: 'main', model: 'new' } } as Routing)).to.deep.equal([
      'new at instance main',
      'other at instance spare',
    ])
    expect(namesIn({ main: { ...main, model: 'known', fallback_model: 'known' } })).to.deep.equal([])
  })

  it('name none whose price the instance gives, and none of an instance that does not exist', () => {
    const main = { instance: 'main', model: 'new' }
    expect(
      namesIn({ main }, { instances: [instance('other'), instance('main', { prices: { new: {} } })] }),
    ).to.deep.equal([])
    expect(namesIn({ main }, { instances: [instance('main', { prices: { old: {} } })] })).to.have.length(1)
    expect(namesIn({ main }, { instances: [] })).to.deep.equal([])
  })

  it('name the models of the server only where the tenant has no main route', () => {
    expect(namesIn({})).to.deep.equal(["the server's own model own"])
    expect(namesIn({ main: { instance: 'main', model: 'known' } })).to.deep.equal([])
  })

  it('are none for a route of transcriptions, which are no runs, and without a budget in dollars', () => {
    const route = { instance: 'main', model: 'new' }
    expect(namesIn({ main: { ...route, model: 'known' }, transcription: route })).to.deep.equal([])
    expect(namesIn({ main: route }, { limits: { ...NO_LIMITS, usd_per_day: null } })).to.deep.equal([])
  })
})
