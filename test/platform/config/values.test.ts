import { resolve } from 'node:path'
import { expect } from 'chai'
import { type Config, ConfigError } from '../../../shared/platform/config/config.ts'
import { KEY, problems, standalone } from './load.ts'

describe('config: values', () => {
  it('D1.3a: all problems are reported together, one line each', () => {
    const found = problems({ PORT: 'http', KEEPALIVE_SECS: '0', ENABLE_BASH: 'yes', MODEL: 'm', LOG_LEVEL: 'a\nb' })
    const names = ['PORT', 'KEEPALIVE_SECS', 'LOG_LEVEL', 'ENABLE_BASH', 'MODEL_PROVIDER']
    expect(found.map((line) => line.split(' ')[0])).to.have.members(names)
    expect(new ConfigError(found).message.split('\n')).to.have.length(5)
    expect(found).to.include('ENABLE_BASH holds "yes": wanted `true` or `false`')
  })

  const fits: [string, string, keyof Config, unknown][] = [
    ['PORT', '0', 'port', 0],
    ['PORT', '65535', 'port', 65_535],
    ['HOST', '::1', 'host', '::1'],
    ['KEEPALIVE_SECS', '2147483', 'keepaliveMs', 2_147_483_000],
    ['RUN_RESUME_SECS', '0', 'runResumeMs', 0],
    ['CUSTOMER_IDLE_SECS', '-1', 'customerIdleMs', -1000],
    ['RATE_LIMIT_RPM', '0', 'rateLimitRpm', 0],
    ['WORKSPACE_STORE', 's3://a-bucket.x', 'workspaceStore', { bucket: 'a-bucket.x', prefix: '' }],
    ['WORKSPACE_STORE', 's3://abc/one//two/', 'workspaceStore', { bucket: 'abc', prefix: 'one/two/' }],
    ['WORKSPACE_STORE_ENDPOINT', 'http://10.0.0.1:9000//', 'workspaceStoreEndpoint', 'http://10.0.0.1:9000'],
    ['MAX_TURNS', '1', 'maxTurns', 1],
    ['MAX_TURNS', '200', 'maxTurns', 200],
    ['KEEPALIVE_SECS', '1', 'keepaliveMs', 1_000],
    ['RATE_LIMIT_RPM', '1000000', 'rateLimitRpm', 1_000_000],
    ['CUSTOMER_IDLE_SECS', '-1000000', 'customerIdleMs', -1_000_000_000],
    ['CUSTOMER_HISTORY_ENTRIES', '10000', 'customerHistoryEntries', 10_000],
    ['CUSTOMER_HISTORY_ENTRIES', '0', 'customerHistoryEntries', 0],
    ['RUNS_PER_WORKER', '1', 'runsPerWorker', 1],
    ['RUNS_PER_TENANT', '3', 'runsPerTenant', 3],
    ['PLANS_PER_TENANT', '1', 'plansPerTenant', 1],
    ['PLAN_MB_PER_TENANT', '8', 'planBytesPerTenant', 8_388_608],
    ['SESSIONS_PER_TENANT', '4', 'sessionsPerTenant', 4],
    ['SESSION_MEMORY_MB', '2', 'sessionMemoryBytes', 2_097_152],
    ['WORKSPACE_QUOTA_MB', '1', 'workspaceQuotaBytes', 1_048_576],
    ['TENANT_CLAIM', 'c'.repeat(128), 'tenantClaim', 'c'.repeat(128)],
    ['MONGODB_DB', 'd'.repeat(63), 'mongodbDb', 'd'.repeat(63)],
    ['TRUST_PROXY', '0', 'trustProxy', 0],
    [
      'TRUST_PROXY',
      '10.0.0.0/0,10.0.0.1/32,::/0,::1/128',
      'trustProxy',
      ['10.0.0.0/0', '10.0.0.1/32', '::/0', '::1/128'],
    ],
    ['TRUST_PROXY', '12', 'trustProxy', 12],
    ['TRUST_PROXY', 'false', 'trustProxy', false],
    ['TRUST_PROXY', '2', 'trustProxy', 2],
    ['TRUST_PROXY', 'loopback, 10.0.0.0/8,fd00::/8', 'trustProxy', ['loopback', '10.0.0.0/8', 'fd00::/8']],
    ['CORS_ORIGINS', '*', 'corsOrigins', ['*']],
    ['DIALECTS', 'all', 'dialects', ['ui', 'openai', 'ag-ui', 'mcp', 'a2a']],
    ['DIALECTS', 'none', 'dialects', []],
    ['DIALECTS', 'ui, ui', 'dialects', ['ui']],
    [
      'CORS_ORIGINS',
      'https://App.example:443, http://localhost:3000,',
      'corsOrigins',
      ['https://app.example', 'http://localhost:3000'],
    ],
    ['CORS_EXPOSE_HEADERS', 'X-Run-ID', 'corsExposeHeaders', ['X-Run-ID']],
    ['ALLOWED_HOSTS', 'Engine.internal, [::1],fe80::1', 'allowedHosts', ['engine.internal', '[::1]', '[fe80::1]']],
    ['API_EXPLORER', 'false', 'hasExplorer', false],
    ['AUTH_MODE', 'legacy', 'authMode', 'legacy'],
    ['TENANT_CLAIM', 'https://x.example/tenant', 'tenantClaim', 'https://x.example/tenant'],
    [
      'TOOL_PERMISSIONS',
      '{"Write":"allow","mcp__a__b":"deny"}',
      'toolPermissions',
      new Map([
        ['Write', 'allow'],
        ['mcp__a__b', 'deny'],
      ]),
    ],
    ['PLAN_PERMISSIONS', '{"WebFetch":"allow"}', 'planPermissions', new Map([['WebFetch', 'allow']])],
    [
      'MODEL_PRICES',
      '{"m":{"input":1.5,"output":0,"cache_read":0.1}}',
      'modelPrices',
      new Map([['m', { input: 1.5, output: 0, cache_read: 0.1 }]]),
    ],
    ['CLUSTER_NAME', 'blue-2', 'clusterName', 'blue-2'],
    [
      'REDIS_CLUSTER',
      '10.0.0.1:6379, [::1]:7',
      'redisCluster',
      [
        { host: '10.0.0.1', port: 6_379 },
        { host: '::1', port: 7 },
      ],
    ],
    [
      'REDIS_SENTINELS',
      '10.0.0.1:26379, [::1]:7/main',
      'redisSentinels',
      {
        hosts: [
          { host: '10.0.0.1', port: 26_379 },
          { host: '::1', port: 7 },
        ],
        primary: 'main',
      },
    ],
    ['FLOWS_DIR', 'flows', 'flowsDir', resolve('flows')],
    ['SKILLS_DIR', 'skills', 'skillsDir', resolve('skills')],
    ['MCP_CONFIG', '/etc/mcp.json', 'mcpConfig', '/etc/mcp.json'],
  ]
  /** A store is named with its key. */
  const NEEDED = { WORKSPACE_STORE_ACCESS_KEY: 'a', WORKSPACE_STORE_SECRET_KEY: 's' }
  for (const [name, raw, field, value] of fits) {
    it(`D1.3c: ${name}=${raw} is accepted`, () =>
      expect(standalone({ ...NEEDED, [name]: raw })[field]).to.deep.equal(value))
  }

  it('D1.3 MODEL, OIDC_AUDIENCE: a model id has up to 256 characters, and an audience up to 512', () => {
    expect(standalone({ MODEL_PROVIDER: 'ollama', MODEL: 'm'.repeat(256) }).model?.model).to.have.length(256)
    const oidc = { OIDC_ISSUER: 'https://i', OIDC_AUDIENCE: 'a'.repeat(512) }
    expect(standalone(oidc).oidcAudience).to.have.length(512)
  })

  it('D1.3a: a variable that names no setting is ignored', () => {
    expect(problems({ PLAN_PERMISSION: '{"Write":"maybe"}', DISPATCH_STORES: 'maybe', NO_SETTING: '1' })).to.deep.equal(
      [],
    )
  })

  const misfits: [string, string[]][] = [
    ['PORT', ['65536', '-1', '80a', '0x50', ' 80', '8e3', '1.5']],
    ['HOST', ['[::1]', 'a b', 'http://x']],
    [
      'WORKSPACE_STORE',
      ['bucket', 's3://', 's3://AB', 's3://a_b/c', 's3://abc/../d', 's3://abc/a b', 'https://abc', ' s3://abc'],
    ],
    ['WORKSPACE_STORE_ENDPOINT', ['10.0.0.1:9000', 'http://u:p@x', 'http://:p@x', ' http://x', 's3://x']],
    ['WORKSPACE_STORE_REGION', ['eu central', 'EU']],
    ['KEEPALIVE_SECS', ['0', '-1', '2147484', '15s', '99999999999999999999']],
    ['PERMISSION_TIMEOUT_SECS', ['0']],
    ['CUSTOMER_IDLE_SECS', ['-x']],
    ['RUNS_PER_WORKER', ['0', '1000001']],
    ['RUNS_PER_TENANT', ['-1', '1000001', '0.5']],
    ['PLANS_PER_TENANT', ['0', '1000001']],
    ['PLAN_MB_PER_TENANT', ['7', '1000001']],
    ['SESSIONS_PER_TENANT', ['-1', '1000001']],
    ['SESSION_MEMORY_MB', ['0', '-1', '1000001']],
    ['WORKSPACE_QUOTA_MB', ['0', '1000001']],
    ['CUSTOMER_IDLE_SECS', ['-1000001', '2147484']],
    ['CUSTOMER_HISTORY_ENTRIES', ['-1', '10001']],
    ['MAX_TURNS', ['0', '201']],
    ['RATE_LIMIT_RPM', ['-1', '1000001']],
    ['API_EXPLORER', ['TRUE', '1', 'on']],
    ['ENABLE_BASH', ['yes']],
    ['AUTH_MODE', ['strict']],
    ['LOG_LEVEL', ['verbose', 'INFO']],
    ['RATE_LIMIT_STORE', ['disk']],
    [
      'TRUST_PROXY',
      ['true', '10.0.0.0/33', '10.0.0.0/8/8', '::/129', '10.0.0.0/x8', '10.0.0.0/8x', 'proxy.example', '-1'],
    ],
    [
      'CORS_ORIGINS',
      [
        'app.example',
        'https://app.example/',
        'https://u@app.example',
        'https://a b',
        'null',
        'https://x,y',
        'xhttps://app.example',
      ],
    ],
    ['CORS_ALLOW_HEADERS', ['X Y', 'X:Y', 'é']],
    ['ALLOWED_HOSTS', ['engine:8080', 'http://engine', '*', 'x[::1]', '[::1]x']],
    ['MODEL_BASE_URL', ['ftp://x', 'api.example', 'https://', 'https://user@x']],
    ['FALLBACK_MODEL_PROVIDER', ['OpenAI']],
    ['MODEL', [' m', 'a\tb', 'm'.repeat(257)]],
    ['TENANT_CLAIM', ['tenant id', 'c'.repeat(129)]],
    ['OIDC_AUDIENCE', ['a b', 'a'.repeat(513)]],
    ['OIDC_ISSUER', ['issuer.example', 'https://i?a', 'https://i#a', 'https://u@i']],
    ['CONSOLE_URL', ['agents.example/console', 'https://c?a', 'https://c/#a', 'https://u@c']],
    ['OPS_PORT', ['65536', '-1']],
    ['CLUSTER_NAME', ['A', 'a:b', '{a}', 'a'.repeat(33)]],
    ['REDIS_CLUSTER', ['a', 'a:1/main', 'a:1,b', 'a:65536', 'a:1,b:99999', ':1', '::1:1']],
    [
      'REDIS_SENTINELS',
      ['main', 'a:1', 'a/main', 'a:1,b/main', 'a:99999/main', 'a:1/', '/a:1/main', 'a:1/main/', '::1:1/main'],
    ],
    ['MONGODB_DB', ['a.b', 'a/b', 'd'.repeat(64)]],
    ['PLAN_PERMISSIONS', ['{', '{"Write":"maybe"}']],
    ['TOOL_PERMISSIONS', ['{', '[]', 'null', '{"Write":"maybe"}', '{"Write":true}']],
    [
      'MODEL_PRICES',
      [
        '{"m":1}',
        '{"m":{"input":1}}',
        '{"m":{"input":-1,"output":1}}',
        '{"m":{"input":"1","output":1}}',
        '{"m":{"input":1e999,"output":1}}',
        '{"m":{"input":1,"output":1,"cached":1}}',
      ],
    ],
  ]
  for (const [name, values] of misfits) {
    for (const raw of values) {
      it(`D1.3a: ${name}=${JSON.stringify(raw.slice(0, 60))} stops the start`, () => {
        const own = problems({ [name]: raw }).filter((line) => line.startsWith(`${name} holds `))
        expect(own).to.have.length(1)
        expect(own[0]).to.match(/^[^\n]+: wanted [^\n]+$/)
      })
    }
  }

  it('a model or a tool that is called like an inherited property is not found', () => {
    const { modelPrices, toolPermissions } = standalone({ MODEL_PRICES: '{}', TOOL_PERMISSIONS: '{}' })
    expect(modelPrices.get('constructor')).to.equal(undefined)
    expect(toolPermissions.get('__proto__')).to.equal(undefined)
  })

  it('D1.3 MASTER_KEY: only 32 bytes in base64 are accepted', () => {
    expect(standalone({ MASTER_KEY: KEY }).masterKey).to.deep.equal(Buffer.alloc(32, 7))
    expect(standalone({ MASTER_KEY: KEY, MASTER_KEY_PREVIOUS: `${KEY}, ${KEY}` }).masterKeysPrevious).to.have.length(2)
    for (const raw of [
      Buffer.alloc(31).toString('base64'),
      KEY.slice(0, -1),
      `${KEY}A`,
      Buffer.alloc(32).toString('hex'),
    ])
      expect(problems({ MASTER_KEY: raw })).to.have.length(1)
  })
})
