// Tests config.ts and fields.ts: the configuration that an environment gives.

import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { openAccessWarning } from '../../../shared/platform/config/auth.ts'
import { ConfigError } from '../../../shared/platform/config/config.ts'
import type { Form } from '../../../shared/platform/config/fields.ts'
import { readSecretFiles } from '../../../shared/platform/config/secret-settings.ts'
import { useTempFolder } from '../../support/temp-folder.ts'
import { CLUSTER, cluster, type Env, KEY, problems, standalone } from './load.ts'

const OIDC = { OIDC_ISSUER: 'https://i/realm', OIDC_AUDIENCE: 'urn:ae' }

describe('config: defaults', () => {
  it('D1.3c: an empty environment gives the standalone form the defaults of the table', () => {
    expect(standalone()).to.deep.include({
      host: '127.0.0.1',
      port: 8080,
      opsPort: 9090,
      opsToken: undefined,
      apiToken: undefined,
      authMode: 'legacy',
      tenantClaim: 'tenant_id',
      rateLimitRpm: 60,
      rateLimitStore: 'memory',
      trustProxy: false,
      corsOrigins: [],
      allowedHosts: [],
      hasExplorer: true,
      keepaliveMs: 15_000,
      permissionTimeoutMs: 300_000,
      clientToolTimeoutMs: 300_000,
      sessionsPerWorker: 10_000,
      sessionIdleMs: 3_600_000,
      runsPerWorker: 256,
      runsPerTenant: 256,
      sessionsPerTenant: 10_000,
      sessionMemoryBytes: 268_435_456,
      tenantShare: 1,
      workspaceQuotaBytes: 104_857_600,
      runResumeMs: 30_000,
      maxTurns: 32,
      isBashEnabled: false,
      allowsPrivateUrls: true,
      drainMs: 30_000,
      logLevel: 'info',
    })
  })

  it('D1.3 RUNS_PER_TENANT, SESSIONS_PER_TENANT: while OIDC is on, a tenant may take half of the runs and of the sessions, rounded up', () => {
    const half = standalone({ ...OIDC, RUNS_PER_WORKER: '5', SESSIONS_PER_WORKER: '20' })
    expect(half).to.include({ tenantShare: 0.5, runsPerTenant: 3, sessionsPerTenant: 10 })
    expect(standalone({ ...OIDC, RUNS_PER_TENANT: '7' })).to.include({ runsPerTenant: 7 })
  })

  it('api.md Limits and D1.3c: customers, the store, the master key and the plan queue have their defaults too', () => {
    expect(standalone()).to.deep.include({
      customerEngines: 256,
      customerIdleMs: 1_800_000,
      customerHistoryEntries: 10,
      customerHistoryChars: 4000,
      mongodbDb: 'agent_engine',
      masterKey: undefined,
      hasPlanQueue: true,
      plansPerTenant: 5_000,
      planBytesPerTenant: 268_435_456,
    })
  })

  it('D1.3 HOST, API_EXPLORER, ALLOW_PRIVATE_URLS: the cluster form listens everywhere, hides the explorer and keeps tenants out of private addresses', () => {
    expect(cluster()).to.include({ host: '0.0.0.0', hasExplorer: false, allowsPrivateUrls: false })
  })

  it('D1.3: DATA_DIR is ./data and contains WORKSPACE_DIR; both become absolute', () => {
    expect(standalone()).to.include({ dataDir: resolve('data'), workspaceDir: resolve('data/workspaces') })
    expect(standalone({ DATA_DIR: '/srv/ae' }).workspaceDir).to.equal('/srv/ae/workspaces')
    expect(standalone({ WORKSPACE_DIR: 'w' }).workspaceDir).to.equal(resolve('w'))
  })

  it('D1.3a: an empty variable counts as unset', () => {
    expect(standalone({ PORT: '', MODEL: '', AUTH_MODE: '' })).to.include({ port: 8080, authMode: 'legacy' })
  })

  it('the configuration is frozen, its lists and its models too', () => {
    const config = standalone({ MODEL: 'm', MODEL_PROVIDER: 'ollama', CORS_ORIGINS: '*' })
    for (const part of [config, config.model, config.corsOrigins, config.secrets]) expect(part).to.be.frozen
  })
})

describe('config: pairs and forms', () => {
  const refused: [string, Env, Form, string[]][] = [
    [
      'D3.3: AUTH_MODE=soft without OIDC_ISSUER',
      { AUTH_MODE: 'soft' },
      'standalone',
      ['AUTH_MODE=soft needs OIDC_ISSUER'],
    ],
    [
      'D3.3: AUTH_MODE=enforced without OIDC_ISSUER',
      { ...CLUSTER, AUTH_MODE: 'enforced' },
      'cluster',
      ['AUTH_MODE=enforced needs'],
    ],
    [
      'D3.3: API_TOKEN in the cluster form',
      { ...CLUSTER, API_TOKEN: 'secret-1' },
      'cluster',
      ['API_TOKEN is for the standalone'],
    ],
    [
      'D3.3: API_TOKEN with OIDC_ISSUER',
      { ...OIDC, API_TOKEN: 'secret-1' },
      'standalone',
      ['API_TOKEN and OIDC_ISSUER exclude'],
    ],
    [
      'D1.3: OIDC_ISSUER without OIDC_AUDIENCE',
      { AUTH_MODE: 'enforced', OIDC_ISSUER: 'https://i' },
      'standalone',
      ['OIDC_AUDIENCE is not set, but OIDC_ISSUER is'],
    ],
    [
      'D1.3: OIDC_AUDIENCE and OIDC_JWKS_URI without OIDC_ISSUER',
      { ...CLUSTER, OIDC_AUDIENCE: 'a', OIDC_JWKS_URI: 'https://i' },
      'cluster',
      ['OIDC_AUDIENCE needs OIDC_ISSUER', 'OIDC_JWKS_URI needs OIDC_ISSUER'],
    ],
    [
      'RATE_LIMIT_STORE=redis without REDIS_URL',
      { RATE_LIMIT_STORE: 'redis' },
      'standalone',
      ['REDIS_URL is not set, but RATE_LIMIT_STORE=redis'],
    ],
    [
      'MASTER_KEY_PREVIOUS without MASTER_KEY',
      { ...CLUSTER, MASTER_KEY_PREVIOUS: KEY },
      'cluster',
      ['MASTER_KEY_PREVIOUS needs MASTER_KEY'],
    ],
    ['one port for both listeners', { PORT: '9090' }, 'standalone', ['OPS_PORT is 9090 like PORT']],
    ['the cluster form without Redis', {}, 'cluster', ['REDIS_URL is not set']],
    ['a REDIS_URL of another scheme', { ...CLUSTER, REDIS_URL: 'http://x' }, 'cluster', ['REDIS_URL does not fit']],
  ]
  for (const [name, env, form, starts] of refused) {
    it(`${name} stops the start`, () => {
      const found = problems(env, form)
      expect(found).to.have.length(starts.length)
      for (const [index, start] of starts.entries())
        expect(found[index]?.startsWith(start), found[index]).to.equal(true)
    })
  }

  it('D35: WORKSPACE_STORE needs the key of the bucket', () => {
    const store = { WORKSPACE_STORE: 's3://bucket', WORKSPACE_STORE_ACCESS_KEY: 'a' }
    expect(problems(store)).to.deep.equal([
      'WORKSPACE_STORE needs WORKSPACE_STORE_ACCESS_KEY and WORKSPACE_STORE_SECRET_KEY',
    ])
    expect(problems({ ...store, WORKSPACE_STORE_SECRET_KEY: 's' })).to.deep.equal([])
  })

  it('both ports may be 0: each listener takes a free one', () => {
    expect(problems({ PORT: '0', OPS_PORT: '0' })).to.deep.equal([])
  })

  it('RATE_LIMIT_STORE=redis is accepted in both forms with a REDIS_URL', () => {
    expect(cluster({ RATE_LIMIT_STORE: 'redis' }).rateLimitStore).to.equal('redis')
    expect(standalone({ RATE_LIMIT_STORE: 'redis', REDIS_URL: 'redis://r' }).rateLimitStore).to.equal('redis')
  })

  it('D3.3: OIDC is accepted in both forms, in every mode', () => {
    const oidc = { oidcIssuer: 'https://i/realm', oidcAudience: 'urn:ae', oidcJwksUri: undefined }
    for (const mode of ['', 'legacy', 'soft', 'enforced'])
      for (const load of [standalone, cluster]) {
        expect(load({ ...OIDC, AUTH_MODE: mode })).to.include({ ...oidc, authMode: mode || 'legacy' })
      }
    expect(cluster({ ...OIDC, OIDC_JWKS_URI: 'https://k/keys' }).oidcJwksUri).to.equal('https://k/keys')
  })

  it('a server without authentication on a public address is warned of', () => {
    const env = { HOST: '0.0.0.0', MODEL_PROVIDER: 'demo' }
    const alone = (more: Record<string, string>) => openAccessWarning(standalone({ ...env, ...more }), 'standalone')
    expect(alone({})).to.include('HOST=0.0.0.0 without API_TOKEN')
    expect(openAccessWarning(cluster(env), 'cluster')).to.include('HOST=0.0.0.0 without OIDC_ISSUER')
    expect(alone({ API_TOKEN: 'token-1' })).to.equal(undefined)
    for (const HOST of ['127.0.0.1', '127.0.0.2', 'localhost', '::1']) expect(alone({ HOST })).to.equal(undefined)
    for (const HOST of ['127.0.0.1.example', '::', 'localhost.example', '128.0.0.1'])
      expect(alone({ HOST }), HOST).to.include('anyone who can reach the port')
    expect(alone(OIDC)).to.equal(undefined)
    expect(openAccessWarning(cluster({ ...env, ...OIDC }), 'cluster')).to.equal(undefined)
  })
})

describe('config: secrets', () => {
  it('the message about a wrong secret names the variable and does not contain the value', () => {
    const canary = 'canary secret'
    const names = [
      'OPS_TOKEN',
      'API_TOKEN',
      'MASTER_KEY',
      'MODEL_API_KEY',
      'FALLBACK_MODEL_API_KEY',
      'REDIS_URL',
      'MONGODB_URL',
    ]
    const found = problems(Object.fromEntries(names.map((name) => [name, canary])))
    for (const name of names)
      expect(found.some((line) => line.startsWith(`${name} does not fit: wanted `))).to.equal(true)
    expect(found.join()).not.to.include('canary')
  })

  it('the message about a wrong address contains neither its user name nor its query', () => {
    const [problem] = problems({
      MODEL: 'm',
      MODEL_PROVIDER: 'ollama',
      MODEL_BASE_URL: 'https://me:canary@x/v1?key=canary',
    })
    expect(problem).to.include('MODEL_BASE_URL holds "https://').and.not.to.include('canary')
  })

  it('the message about a long value contains only its beginning', () => {
    expect(problems({ MODEL_PRICES: `{${'x'.repeat(5000)}` })[0]).to.have.length.below(300)
  })

  it('`secrets` contains tokens, keys, and the passwords inside addresses', () => {
    const { secrets } = cluster({
      OPS_TOKEN: 'ops-1',
      MASTER_KEY: KEY,
      MODEL: 'm',
      MODEL_PROVIDER: 'openai',
      OPENAI_API_KEY: 'usual-1',
      REDIS_URL: 'redis://:p%2Fw@r:6379',
      MONGODB_URL: 'mongodb://u:pass@a:1,b:2/?replicaSet=rs',
    })
    expect(secrets).to.include.members(['ops-1', KEY, 'usual-1', 'p%2Fw', 'p/w', 'pass'])
  })

  const folder = useTempFolder()
  it('a secret may come from a file, without the line break at its end; both ways together, a missing file and an empty one are problems', async () => {
    const [file, empty] = [join(folder.path, 'token'), join(folder.path, 'empty')]
    await writeFile(file, 'token-1\n')
    await writeFile(empty, '\n')
    expect(readSecretFiles({ API_TOKEN_FILE: file })).to.include({ API_TOKEN: 'token-1' })
    const wrong = { API_TOKEN: 'token-1', API_TOKEN_FILE: file, OPS_TOKEN_FILE: `${file}-2`, MODEL_API_KEY_FILE: empty }
    const cause = await (async () => readSecretFiles(wrong))().catch((thrown: unknown) => thrown)
    const [both, unset, missing, ...more] = cause instanceof ConfigError ? cause.problems.toSorted() : []
    expect(both).to.match(/^API_TOKEN and API_TOKEN_FILE are both set/)
    expect(unset).to.match(/^MODEL_API_KEY_FILE holds .* the file is empty/)
    expect(missing).to.match(/^OPS_TOKEN_FILE holds ".*token-2", which cannot be read \(ENOENT\)/)
    expect(more).to.deep.equal([])
  })
})
