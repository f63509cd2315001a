import { expect } from 'chai'
import type { Route } from '../../../shared/agent/engine/resources.ts'
import { createStickyModels } from '../../../shared/agent/engine/sticky-models.ts'
import { scripted } from './context/setup.ts'

const [ONE, TWO] = [scripted(), scripted()]
const PRIMARY = { provider: ONE, model: 'm' }
const SPARE = { provider: TWO, model: 'spare' }

/** The models of a run whose routes all are `route()`. */
const sticky = (route: () => Route) =>
  createStickyModels({ main: route, subAgents: route, summaries: route, priceOf: () => 0, windowOf: () => undefined })

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
