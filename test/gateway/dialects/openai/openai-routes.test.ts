// Tests openai-routes.ts and models.ts.
import { expect } from 'chai'
import { useGateways } from '../../setup.ts'

describe('GET /openai/v1/models', () => {
  const start = useGateways()

  it('lists the route of prompts, and the model of the server where it has one', async () => {
    const { get } = await start()
    const response = await get('/openai/v1/models')
    const { object, data } = (await response.json()) as { object: string; data: { id: string; object: string }[] }
    expect([response.status, object]).to.deep.equal([200, 'list'])
    expect(data[0]).to.include({ id: 'main', object: 'model' })
  })
})
