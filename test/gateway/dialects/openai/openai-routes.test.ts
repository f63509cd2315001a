// Tests openai-routes.ts and models.ts.
import { expect } from 'chai'
import { APP_DEFAULTS } from '../../../support/app-defaults.ts'
import { useGateways } from '../../setup.ts'

/** What a tenant has: a model on the route `main`, and flows by their published versions. */
const configOf = (main?: string) =>
  ({ settings: { engine: async () => ({ routing: main === undefined ? {} : { main: { model: main } } }) } }) as never
const flowsOf = (versions: Record<string, number | null>) =>
  ({
    library: {
      list: async () => ({
        flows: Object.entries(versions).map(([name, published_version]) => ({ name, published_version })),
      }),
    },
  }) as never

describe('GET /openai/v1/models', () => {
  const start = useGateways()

  it("lists the route of prompts, the tenant's model or else the server's, and the flows that run, each once", async () => {
    const facts = { ...APP_DEFAULTS.facts, model: 'm-0' }
    for (const [deps, ids] of [
      [{}, ['main']],
      [{ facts }, ['main', 'm-0']],
      [{ facts, config: configOf('m-1'), flows: flowsOf({ total: 2, draft: null }) }, ['main', 'm-1', 'flow:total']],
      [{ facts, config: configOf(), flows: flowsOf({}) }, ['main', 'm-0']],
      [{ config: configOf('main') }, ['main']],
    ] as const) {
      const response = await (await start(deps)).get('/openai/v1/models')
      const { object, data } = (await response.json()) as { object: string; data: object[] }
      expect([response.status, object]).to.deep.equal([200, 'list'])
      expect(data).to.deep.equal(ids.map((id) => ({ id, object: 'model', created: 0, owned_by: 'agent-engine' })))
    }
  })
})
