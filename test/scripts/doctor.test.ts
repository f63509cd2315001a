import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { MongoClient } from 'mongodb'
import { examine } from '../../scripts/doctor/examine.ts'
import { patientOf } from '../../scripts/doctor/patient.ts'
import { COMPILE_CACHE } from '../../scripts/node-options.ts'
import { openClusterStore } from '../../services/wiring/open-store.ts'
import { createLog } from '../../shared/kernel/log.ts'
import { loadConfig } from '../../shared/platform/config/config.ts'
import { createKeyring } from '../../shared/tenancy/secrets/keyring.ts'
import { seal } from '../../shared/tenancy/secrets/seal.ts'
import { putSecret } from '../../shared/tenancy/tenant-config/changes.ts'
import { EMPTY_CONFIG, type TenantConfig } from '../../shared/tenancy/tenant-config/config.ts'
import { useModelServer } from '../support/model-server/model-server.ts'
import { useMongo } from '../support/mongo.ts'
import { type Product, startStandalone } from '../support/product.ts'
import { useRedis } from '../support/redis.ts'
import { useS3 } from '../support/s3.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { tenantId } from '../support/tenant.ts'
import { until } from '../support/until.ts'

const DOCTOR = new URL('../../scripts/doctor/main.ts', import.meta.url).pathname
const [key, otherKey] = [randomBytes(32), randomBytes(32)]
const CANARY = 'sk-canary-doctor-0123456789'
/** The built-in model, in place of the model server of the tests. */
const DEMO = { MODEL: '', MODEL_PROVIDER: '', MODEL_BASE_URL: '', MODEL_PRICES: '' }

const WITHIN_MS = 50_000

type Ended = { code: number; lines: string[] }

/** Examines the installation of these settings in this process. */
async function doctor(env: Record<string, string>, url?: string): Promise<Ended> {
  const lines: string[] = []
  const count = await examine(patientOf(env, url), (line) => lines.push(line))
  return { code: Math.min(count, 1), lines }
}

/** Runs the program in a shell after `before`, such as a `ulimit`. */
function program(env: Record<string, string>, args = '', before = 'ulimit -S -n $(ulimit -H -n)'): Promise<Ended> {
  const command = `${before}; exec "${process.execPath}" ${DOCTOR} ${args}`
  const options = { env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: COMPILE_CACHE, ...env }, timeout: WITHIN_MS }
  return new Promise((resolve) => {
    execFile('sh', ['-c', command], options, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, lines: `${stdout}${stderr}`.trimEnd().split('\n') }),
    )
  })
}

const problems = ({ lines }: Ended) => lines.filter((line) => line.startsWith('PROBLEM'))

describe('npm run doctor', () => {
  const redis = useRedis()
  const mongo = useMongo()
  const s3 = useS3()
  const folder = useTempFolder({ perTest: true })
  let dir: string
  /** The settings of a cluster without a store, which is a finding, too. */
  let env: Record<string, string>
  let withStore: Record<string, string>
  const servers: Server[] = []

  beforeEach(async () => {
    dir = folder.path
    await redis.connect().config('SET', 'appendonly', 'yes')
    withStore = { MONGODB_URL: mongo.url, MONGODB_DB: mongo.newDatabase() }
    env = {
      REDIS_URL: redis.url,
      MASTER_KEY: key.toString('base64'),
      DATA_DIR: dir,
      MODEL_PROVIDER: 'demo',
      HOST: '127.0.0.1',
    }
  })
  afterEach(async () => {
    for (const server of servers.splice(0)) {
      server.close()
      server.closeAllConnections()
    }
  })

  /** Creates all collections with their indexes, and a key that is encrypted with `key`. */
  async function fillStore(): Promise<void> {
    const store = await openClusterStore(loadConfig({ ...env, ...withStore }, 'cluster'), createLog({ level: 'error' }))
    const acme = tenantId('acme')
    const sealed = seal(CANARY, { tenant: acme, kind: 'secret', name: 'team' }, createKeyring(key))
    const change = putSecret({ name: 'team', key: 'sk-c…', sealed, updated_at: '2026-11-22T09:00:00.000Z' })
    await store?.tenantConfigs.update(acme, (doc) => ({ ...change((doc ?? EMPTY_CONFIG) as unknown as TenantConfig) }))
    await store?.close()
  }

  async function serve(handle: RequestListener): Promise<string> {
    const server = createServer(handle).listen(0, '127.0.0.1')
    servers.push(server)
    await once(server, 'listening')
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  it('looks at the store of the workspaces: its answer, its key, and the conditions of writes', async () => {
    const own = { ...env, ...s3.env }
    const fine = await doctor(own)
    expect(fine.lines).to.include('ok       workspace store')
    const refused = await doctor({ ...own, WORKSPACE_STORE_SECRET_KEY: 'other-secret-0123456789' })
    expect(problems(refused).join()).to.include('workspace store: ').and.include('403 SignatureDoesNotMatch')
    expect(refused.lines.join()).to.not.include('other-secret')
  })

  it('finds nothing wrong with a cluster that is well, prints one line per check, and exits with 0', async () => {
    await fillStore()
    const ended = await program({ ...env, ...withStore })
    expect(problems(ended)).to.deep.equal([])
    expect(ended.code).to.equal(0)
    const checks = ['redis', 'mongodb', 'clock', 'master key', 'models', 'access', 'open files', 'folders']
    expect(ended.lines).to.deep.equal([...checks.map((name) => `ok       ${name}`), 'No fault was found.'])
  })

  it('a wrong configuration is one line for each problem, and exit code 78', async () => {
    const ended = await program({ ...env, PORT: 'http', AUTH_MODE: 'enforced' })
    expect(ended.code).to.equal(78)
    expect(problems(ended)).to.have.length(2)
    expect((await program(env, '--url nowhere')).code).to.equal(2)
  })

  it('finds an API that others can reach without a token', async () => {
    const open = await doctor({ ...env, HOST: '0.0.0.0' })
    expect(open.code).to.equal(1)
    expect(problems(open).join()).to.match(/access: HOST=0\.0\.0\.0 without OIDC_ISSUER/)
  })

  it('finds faults 1 and 2: a Redis that evicts keys, and one that keeps nothing', async () => {
    await redis.connect().config('SET', 'maxmemory-policy', 'allkeys-lru', 'appendonly', 'no')
    const ended = await doctor({ ...env, ...withStore })
    await redis.connect().config('SET', 'maxmemory-policy', 'noeviction')
    expect(ended.code).to.equal(1)
    const [evicts, forgets] = problems(ended)
    expect(evicts).to.match(/^PROBLEM {2}redis: .*allkeys-lru.* Cure: set maxmemory-policy noeviction\.$/)
    expect(forgets).to.match(/^PROBLEM {2}redis: .*append-only.* Cure: set appendonly yes/)
    expect(ended.lines.at(-1)).to.equal('2 faults were found.')
  })

  it('names the address of a Redis that does not answer, without its password', async () => {
    const ended = await doctor({ ...env, REDIS_URL: 'redis://user:sk-hidden@127.0.0.1:1' })
    expect(problems(ended).join('\n'))
      .to.match(/redis: the Redis of REDIS_URL \(127\.0\.0\.1:1\) does not answer: .*ECONNREFUSED/)
      .and.not.include('sk-hidden')
  })

  it('finds nothing wrong with the key and the folder that a standalone start without MASTER_KEY has made', async () => {
    const dataDir = join(dir, 'made')
    const own = { DATA_DIR: dataDir, PORT: '0', OPS_PORT: '0' }
    const product = await startStandalone({ ...DEMO, ...own })
    expect((await product.call('PUT', '/config/secrets/team', { value: CANARY })).status).to.equal(200)
    await product.close()
    const ended = await doctor(own)
    expect(problems(ended)).to.deep.equal([])
    const lost = await doctor({ ...own, MASTER_KEY: otherKey.toString('base64') })
    expect(problems(lost).join()).to.match(/master key: 1 stored keys .* MASTER_KEY_PREVIOUS/)
  })

  describe('the models', () => {
    const model = useModelServer()

    const check = async (more: Record<string, string> = {}) => {
      const [url, spareUrl] = [model.url, model.url]
      const main = { MODEL_PROVIDER: 'openai-compatible', MODEL: 'm-1', MODEL_BASE_URL: url, MODEL_API_KEY: CANARY }
      const spare = { FALLBACK_MODEL_PROVIDER: 'anthropic', FALLBACK_MODEL: 'm-2', FALLBACK_MODEL_BASE_URL: spareUrl }
      const ended = await doctor({ DATA_DIR: dir, ...main, ...spare, FALLBACK_MODEL_API_KEY: CANARY, ...more })
      expect(ended.lines.join()).not.to.include(CANARY)
      return problems(ended)
    }

    it('are asked one short question each, and a healthy one is no finding', async () => {
      expect(await check()).to.deep.equal([])
      expect(model.requests.map(({ model: name }) => name).toSorted()).to.deep.equal(['m-1', 'm-2'])
    })

    it('a model that takes no tools is a finding', async () => {
      model.otherwise(({ body }) => ('tools' in body ? { status: 400, message: 'm-1 does not support tools' } : 'ok'))
      expect((await check())[0]).to.match(
        /models: MODEL=m-1 takes no tools: .* Cure: set MODEL to a model that takes tools/,
      )
      model.otherwise(() => 'ok')
    })

    it('a refused key, an unknown model and an address where nobody answers are findings with their cures', async () => {
      const { host } = new URL(model.url)
      model.otherwise(({ model: name }) => ({ status: name === 'm-1' ? 401 : 404 }))
      const [key1, unknown] = await check()
      expect(key1).to.match(/models: MODEL=m-1 .* refused the API key.* Cure: set MODEL_API_KEY /)
      expect(unknown).to.match(
        /FALLBACK_MODEL=m-2 .* does not know the model m-2.* Cure: set FALLBACK_MODEL to a model/,
      )
      expect(unknown).to.include(`http://${host}/v1`)
      model.otherwise(() => 'ok')
      const [gone, ...more] = await check({ MODEL_BASE_URL: 'http://127.0.0.1:1' })
      expect(gone).to.match(
        /MODEL=m-1 at http:\/\/127\.0\.0\.1:1\/v1 .* refuses connections.* Cure: correct MODEL_BASE_URL/,
      )
      expect(more).to.deep.equal([])
    })
  })

  it('finds fault 3: a missing index', async () => {
    await fillStore()
    const client = new MongoClient(mongo.url)
    const ledger = client.db(withStore['MONGODB_DB']).collection('ledger')
    const [, index] = await ledger.indexes()
    await ledger.dropIndex(index?.name ?? '')
    await client.close()
    const ended = await doctor({ ...env, ...withStore })
    expect(problems(ended)).to.have.length(1)
    expect(problems(ended)[0]).to.match(new RegExp(`ledger has no index ${index?.name}.* Cure: restart one gateway`))
  })

  it('finds fault 5: a clock that is wrong', async () => {
    const now = Date.now
    Date.now = () => now() + 60_000
    try {
      expect(problems(await doctor(env)).join()).to.match(
        /clock: .* (59|60)\.\d s ahead of .* Cure: run a time service/,
      )
    } finally {
      Date.now = now
    }
  })

  it('finds fault 6: keys under a master key that is not configured, and prints no key', async () => {
    await fillStore()
    const ended = await doctor({ ...env, ...withStore, MASTER_KEY: otherKey.toString('base64') })
    expect(problems(ended)).to.have.length(1)
    expect(problems(ended)[0]).to.match(/master key: 1 stored keys .* Cure: add the former key to MASTER_KEY_PREVIOUS/)
    const rotated = {
      ...env,
      ...withStore,
      MASTER_KEY: otherKey.toString('base64'),
      MASTER_KEY_PREVIOUS: key.toString('base64'),
    }
    const half = await doctor(rotated)
    expect(problems(half)[0]).to.include(
      '1 stored keys are still under a former master key. Cure: run scripts/rewrap-keys',
    )
    for (const { lines } of [ended, half])
      expect(lines.join()).not.to.include(key.toString('base64')).and.not.include(CANARY)
  })

  it('finds fault 7: an issuer whose discovery document has another name', async () => {
    const issuer = await serve((_req, res) =>
      res.end(JSON.stringify({ issuer: 'https://other.example.com', jwks_uri: 'x' })),
    )
    const ended = await doctor({ ...env, ...withStore, OIDC_ISSUER: issuer, OIDC_AUDIENCE: 'agent-engine' })
    expect(problems(ended)).to.have.length(1)
    expect(problems(ended)[0]).to.match(/issuer: .*"https:\/\/other\.example\.com".* Cure: set OIDC_ISSUER/)
  })

  it('finds fault 8: a token for another audience and without a tenant', async () => {
    const issuer = await serve((req, res) => {
      const base = `http://${req.headers.host}`
      res.end(JSON.stringify(req.url === '/jwks' ? { keys: [] } : { issuer: base, jwks_uri: `${base}/jwks` }))
    })
    const claims = Buffer.from(JSON.stringify({ iss: issuer, aud: 'another-service' })).toString('base64url')
    const own = { OIDC_ISSUER: issuer, OIDC_AUDIENCE: 'agent-engine', DOCTOR_TOKEN: `e30.${claims}.x` }
    const found = problems(await doctor({ ...env, ...own })).filter((line) => line.includes('token: '))
    expect(found[0]).to.match(/"another-service" and not for OIDC_AUDIENCE. Cure: set OIDC_AUDIENCE/)
    expect(found[1]).to.match(/claim tenant_id.* Cure: set TENANT_CLAIM/)
  })

  it('finds faults 9 and 10: a folder that other users can enter, and a low limit of open files', async () => {
    await chmod(dir, 0o755)
    const ended = await program(env, '', 'ulimit -n 1024')
    expect(problems(ended).join('\n'))
      .to.match(/open files: a process may open 1024 files.* Cure: raise the limit/)
      .and.match(/folders: other users .* \(mode 755\).* Cure: run `chmod 700/)
    await writeFile(join(dir, 'file'), '')
    const absent = await doctor({ ...env, WORKSPACE_DIR: join(dir, 'file/workspaces'), DATA_DIR: join(dir, 'data') })
    expect(problems(absent).join()).to.match(/cannot change files in WORKSPACE_DIR/)
  })

  it('finds fault 4: a member of the replica set that is down', async () => {
    await using client = new MongoClient(mongo.url)
    const admin = client.db('admin')
    const { config } = await admin.command({ replSetGetConfig: 1 })
    const configure = (version: number, members: object[]) =>
      admin.command({ replSetReconfig: { ...config, version: config.version + version, members } })
    await configure(1, [...config.members, { _id: 1, host: '127.0.0.1:1', votes: 0, priority: 0 }])
    try {
      const isNoticed = async () => {
        const { members } = await admin.command({ replSetGetStatus: 1 })
        return (members as { lastHeartbeatMessage?: string }[]).some((member) => member.lastHeartbeatMessage)
      }
      await until(isNoticed, { what: 'the set to notice that nobody answers there' })
      const ended = await doctor({ ...env, MONGODB_URL: mongo.url })
      expect(problems(ended).join()).to.match(/127\.0\.0\.1:1 of the replica set is .*Cure: start it again/)
    } finally {
      await configure(2, config.members)
    }
  })

  describe('with the public URL', () => {
    const data = useTempFolder()
    let product: Product
    /** The settings of a product that trusts one proxy, and its port. */
    let standalone: Record<string, string>
    let port: number
    before(async () => {
      const places = { DATA_DIR: data.path, PORT: '0', OPS_PORT: '0' }
      standalone = { ...places, MASTER_KEY: key.toString('base64'), TRUST_PROXY: '1' }
      product = await startStandalone({ ...DEMO, ...standalone, RATE_LIMIT_RPM: '60' })
      port = Number(new URL(product.url).port)
    })
    after(() => product.close())

    /** A proxy that names itself, and passes an answer on at once or in one piece at its end. */
    const proxyTo =
      (behind: number, { holdsBack }: { holdsBack: boolean }): RequestListener =>
      (req, res) => {
        const headers = { ...req.headers, 'x-forwarded-for': `${req.headers['x-forwarded-for'] ?? ''}, 127.0.0.1` }
        const upstream = request({ port: behind, path: req.url, method: req.method, headers }, (answer) => {
          const head = () => res.writeHead(answer.statusCode ?? 0, { ...answer.headers, server: 'nginx' })
          if (!holdsBack) return void answer.pipe(head())
          const chunks: Buffer[] = []
          answer.on('data', (chunk: Buffer) => chunks.push(chunk)).once('end', () => head().end(Buffer.concat(chunks)))
        })
        req.pipe(upstream)
      }

    it('finds nothing wrong behind one proxy that passes events on and is counted as one hop', async () => {
      const url = await serve(proxyTo(port, { holdsBack: false }))
      const ended = await program(standalone, `--url ${url}/v1`)
      expect(ended.lines).to.include.members(['ok       proxies', 'ok       streaming', 'No fault was found.'])
    })

    it('tells a server whose rate limit is off from one that is not this product', async () => {
      const unlimited = await startStandalone({ ...DEMO, ...standalone, DATA_DIR: dir })
      const off = await doctor(standalone, unlimited.url)
      await unlimited.close()
      expect(problems(off).join()).to.match(/proxies: the server's rate limit is off.* Cure: .*RATE_LIMIT_RPM/)
      const other = await serve((_req, res) => res.end('{}'))
      expect(problems(await doctor(standalone, `${other}/v1`)).join()).to.match(/proxies: .* is not this product/)
    })

    it('finds fault 11: more trusted hops than there are, or none behind a proxy', async () => {
      const many = await doctor(standalone, `http://127.0.0.1:${port}/v1`)
      expect(problems(many).join()).to.match(/proxies: clients choose .* Cure: set TRUST_PROXY/)
      const proxy = await serve(proxyTo(port, { holdsBack: false }))
      const none = await doctor({ ...standalone, TRUST_PROXY: 'false' }, `${proxy}/v1`)
      expect(problems(none).join()).to.match(/proxies: a proxy is in front .* Cure: set TRUST_PROXY/)
    })

    it('finds fault 12: a proxy that holds event streams back', async () => {
      const ended = await doctor(standalone, `${await serve(proxyTo(port, { holdsBack: true }))}/v1`)
      expect(ended.code).to.equal(1)
      expect(problems(ended).join()).to.match(
        /streaming: a proxy holds .* after \d\.\d s.* Cure: .*proxy_buffering off/,
      )
    })
  })
})
