import { expect } from 'chai'
import type { Route } from '../../../shared/agent/engine/resources.ts'
import { createStickyModels } from '../../../shared/agent/engine/sticky-models.ts'
import type { Needs } from '../../../shared/agent/providers/strategy.ts'
import { scripted } from './context/setup.ts'

const [ONE, TWO] = [scripted(), scripted()]
const PRIMARY = { provider: ONE, model: 'm' }
const SPARE = { provider: TWO, model: 'spare' }

/** The models of a run whose routes all are `route()`. `big` models cost more. */
const sticky = (route: () => Route, needs?: () => Needs) =>
  createStickyModels(
    {
      ...{ main: route, subAgents: route, summaries: route, windowOf: () => undefined },
      priceOf: (_provider, model) => (model === 'm' ? 2 : 1),
    },
    needs,
  )

describe('the models of a run that went over to its fallback (D5.5)', () => {
  it('are the configured ones until then, and the fallback alone from then on, for all that it does', () => {
    const route = { primary: PRIMARY, fallback: SPARE }
    const models = sticky(() => route)
    models.stayWith(undefined)
    expect(models.main()).to.equal(route)
    models.stayWith(SPARE)
    models.stayWith(undefined)
    for (const found of [models.main(), models.subAgents(), models.summaries()])
      expect(found).to.deep.equal({ primary: SPARE, fallback: undefined })
  })

  it('are the configured ones again when these name no fallback any more, or another provider or model', () => {
    let route: Route = { primary: PRIMARY, fallback: SPARE }
    const models = sticky(() => route)
    models.stayWith(SPARE)
    for (const fallback of [undefined, { ...SPARE, provider: ONE }, { ...SPARE, model: 'other' }]) {
      route = { primary: PRIMARY, fallback }
      expect(models.main()).to.equal(route)
    }
  })
})

describe('the models of a run whose route has a strategy (D56)', () => {
  const route: Route = { primary: PRIMARY, fallback: SPARE, strategy: 'cheapest', hedge: true }
  const [MODEL, SECOND] = ['m', 'spare']
  const orderOf = ({ primary, fallback }: Route) => [primary.model, fallback?.model]

  it('are tried by it, and the other one stays the fallback', () => {
    const models = sticky(() => route)
    for (const found of [models.main(), models.subAgents(), models.summaries()])
      expect(orderOf(found)).to.deep.equal([SECOND, MODEL])
    expect(models.main()).to.include({ hedge: true })
  })

  it('are the same in all turns of the run, until its route names another', () => {
    let waiting = 1
    const health = { rests: () => false, isPassedOver: () => false, note: () => {} }
    const stateOf = () => ({ waiting, health })
    const busy = { ...PRIMARY, provider: { ...ONE, stateOf } }
    let now: Route = { ...route, primary: busy, strategy: 'least_waiting' }
    const models = sticky(() => now)
    expect(orderOf(models.main())).to.deep.equal([SECOND, MODEL])
    waiting = 0
    expect(orderOf(models.main())).to.deep.equal([SECOND, MODEL])
    now = { ...now, fallback: { ...SPARE, model: 'another' } }
    expect(orderOf(models.main())).to.deep.equal([MODEL, 'another'])
  })

  it('are those that can do what the run needs; sub-agents and summaries need less', () => {
    const blind: Route = { ...route, fallback: { ...SPARE, lacks: ['schema', 'tools'] } }
    const models = sticky(
      () => blind,
      () => ({ tools: false, schema: true, files: [] }),
    )
    const found = [models.main(), models.subAgents(), models.summaries()]
    expect(found.map(({ primary }) => primary.model)).to.deep.equal([MODEL, SECOND, SECOND])
  })

  it('have a fallback again when a second request was answered first', () => {
    const models = sticky(() => ({ ...route, strategy: 'order' }))
    models.stayWith(SPARE)
    expect(orderOf(models.main())).to.deep.equal([SECOND, MODEL])
    models.stayWith(PRIMARY)
    expect(orderOf(models.main())).to.deep.equal([MODEL, SECOND])
  })
})
