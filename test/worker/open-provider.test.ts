import { expect } from 'chai'
import { openProvider, type ProviderSettings } from '../../services/worker/open-provider.ts'
import { AppError } from '../../shared/errors.ts'
import { PROVIDER_NAMES } from '../../shared/provider-types.ts'

const refusal = async (settings: ProviderSettings): Promise<unknown> => {
  try {
    return await openProvider(settings)
  } catch (error) {
    return error
  }
}

describe('the registry of providers', () => {
  it('D1.3: opens every type there is, under its own name', async () => {
    for (const type of PROVIDER_NAMES) {
      const provider = await openProvider({ type, baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'k' })
      expect(provider.type).to.equal(type)
    }
  })

  it('refuses an address that is missing or none, and says which variable holds it', async () => {
    for (const baseUrl of [undefined, 'not a url', 'file:///etc/passwd', 'http://me:secret@host/v1']) {
      const error = await refusal({ type: 'openai-compatible', ...(baseUrl !== undefined && { baseUrl }) })
      expect(error).to.be.instanceOf(AppError).and.include({ kind: 'invalid_request' })
      expect(error).to.have.property('message').that.includes('MODEL_BASE_URL')
    }
  })
})
