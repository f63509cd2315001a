import { expect } from 'chai'
import type { ModelProvider } from '../../../shared/agent/providers/port.ts'
import { type Candidate, candidateOf, inOrder, type Needs } from '../../../shared/agent/providers/strategy.ts'
import type { AttachedFile } from '../../../shared/kernel/attachment.ts'
import { scripted } from './failures/retry-setup.ts'

type Named = Candidate & { name: string }
const candidate = (name: string, part: Partial<Candidate> = {}): Named => ({
  ...{ name, costUsd: 1, waiting: 0, lacks: false, rests: false, ...part },
})

describe('the order in which the models of a route are tried', () => {
  const CASES: [what: string, strategy: 'cheapest' | 'least_waiting', candidates: Named[], order: string][] = [
    ['cheapest: the one that costs less', 'cheapest', [candidate('a', { costUsd: 2 }), candidate('b')], 'ba'],
    ['cheapest: of equal prices the first', 'cheapest', [candidate('a'), candidate('b')], 'ab'],
    ['cheapest: a free one', 'cheapest', [candidate('a'), candidate('b', { costUsd: 0 })], 'ba'],
    ['cheapest: an unknown price last', 'cheapest', [candidate('a', { costUsd: undefined }), candidate('b')], 'ba'],
    [
      'cheapest: however many calls wait',
      'cheapest',
      [candidate('a'), candidate('b', { costUsd: 0, waiting: 9 })],
      'ba',
    ],
    [
      'least waiting: whatever they cost',
      'least_waiting',
      [candidate('a', { waiting: 2 }), candidate('b', { costUsd: 9, waiting: 1 })],
      'ba',
    ],
    ['least waiting: of equal ones the first', 'least_waiting', [candidate('a'), candidate('b', { costUsd: 0 })], 'ab'],
    [
      'one that rests behind one that does not',
      'cheapest',
      [candidate('a', { costUsd: 0, rests: true }), candidate('b')],
      'ba',
    ],
    [
      'one that lacks what is needed last',
      'least_waiting',
      [candidate('a', { lacks: true }), candidate('b', { rests: true, waiting: 9 })],
      'ba',
    ],
    [
      'two that rest by the strategy',
      'cheapest',
      [candidate('a', { rests: true }), candidate('b', { costUsd: 0, rests: true })],
      'ba',
    ],
  ]
  for (const [what, strategy, candidates, order] of CASES)
    it(what, () => {
      const names = inOrder(strategy, candidates).map(({ name }) => name)
      expect(names.join('')).to.equal(order)
    })
})

describe('what is known of a model before it is called', () => {
  const NONE: Needs = { tools: false, schema: false, files: [] }
  const file = (mediaType: string) => ({ media_type: mediaType }) as AttachedFile
  const facts = (needs: Partial<Needs>) => ({ needs: { ...NONE, ...needs }, priceOf: () => 3, now: 7 })
  const lacks = (needs: Partial<Needs>, part: Partial<ModelProvider> = {}, found?: ('tools' | 'images' | 'schema')[]) =>
    candidateOf({ provider: { ...scripted('openai'), ...part }, model: 'm', lacks: found }, facts(needs)).lacks

  it('it can do what neither a probe nor a refusal has denied', () => {
    expect(lacks({ tools: true, schema: true, files: [file('image/png'), file('application/pdf')] })).to.equal(false)
    expect(lacks({}, { takesTools: () => false }, ['tools', 'images', 'schema'])).to.equal(false)
  })

  it('it lacks what a probe has not found, and what its provider has refused', () => {
    expect(lacks({ tools: true }, {}, ['tools'])).to.equal(true)
    expect(lacks({ tools: true }, { takesTools: () => false })).to.equal(true)
    expect(lacks({ schema: true }, {}, ['schema'])).to.equal(true)
    expect(lacks({ files: [file('image/png')] }, {}, ['images'])).to.equal(true)
    expect(lacks({ files: [file('application/pdf')] }, {}, ['images'])).to.equal(false)
    expect(
      lacks({ files: [file('application/pdf')] }, { takesFile: (_model, type) => type !== 'application/pdf' }),
    ).to.equal(true)
  })

  it('its price is that of a usual call, and the rest what all processes know', () => {
    const health = { rests: (now: number) => now === 7, isPassedOver: () => true, note: () => {} }
    const stateOf = () => ({ waiting: 4, health })
    const found = candidateOf({ provider: { ...scripted('openai'), stateOf }, model: 'm' }, facts({}))
    expect(found).to.include({ costUsd: 3, waiting: 4, rests: true, lacks: false })
  })
})
