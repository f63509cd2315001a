import { randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import { expect } from 'chai'
import { loadConfig } from '../../../shared/platform/config/config.ts'
import { groupSettings, type Settings } from '../../../shared/platform/config/groups.ts'

const MASTER_KEY = randomBytes(32)

/** A value that is found where the secret was handed on, and the groups that need it. */
const SECRETS: Record<string, { value: string; shownAs?: string; needs: (keyof Settings)[] }> = {
  API_TOKEN: { value: 'token-0123456789abcdef', needs: ['http'] },
  OPS_TOKEN: { value: 'ops-0123456789abcdef', needs: ['ops'] },
  REDIS_URL: { value: 'redis://user:redis-secret@127.0.0.1:6379', needs: ['ops', 'redis', 'http'] },
  MONGODB_URL: { value: 'mongodb://user:mongo-secret@127.0.0.1', needs: ['store'] },
  WORKSPACE_STORE_SECRET_KEY: { value: 'workspace-secret', needs: ['store', 'worker', 'executor'] },
  MODEL_API_KEY: { value: 'sk-model-secret', needs: ['worker', 'executor'] },
  FALLBACK_MODEL_API_KEY: { value: 'sk-fallback-secret', needs: ['worker', 'executor'] },
  MASTER_KEY: { value: MASTER_KEY.toString('base64'), shownAs: inspect(MASTER_KEY).slice(8, 60), needs: ['tenants'] },
}

const MODELS = { MODEL: 'm', MODEL_PROVIDER: 'anthropic', FALLBACK_MODEL: 'm', FALLBACK_MODEL_PROVIDER: 'anthropic' }

describe('the settings in groups', () => {
  const env = Object.fromEntries(Object.entries(SECRETS).map(([name, { value }]) => [name, value]))
  const settings = groupSettings(loadConfig({ ...env, ...MODELS }, 'standalone'))

  /** Without the tools' copy of all variables. */
  const textOf = (group: object) => inspect(group, { depth: 9, maxArrayLength: 999, breakLength: Infinity })
  const { variables: _, ...tools } = settings.tools
  const groups = { ...settings, tools, worker: { ...settings.worker, tools } }

  for (const [name, { value, shownAs = value, needs }] of Object.entries(SECRETS))
    it(`${name} is in no other group than ${needs.join(', ')}`, () => {
      const found = Object.entries(groups).filter(([, group]) => textOf(group).includes(shownAs))
      expect(found.map(([group]) => group)).to.have.members(needs)
    })

  it('the listener knows the name of the default model, and not its key', () => {
    expect(settings.http.facts.model).to.equal('m')
    expect(settings.tenants.limits.serverModels).to.deep.equal([
      { type: 'anthropic', model: 'm' },
      { type: 'anthropic', model: 'm' },
    ])
  })
})
