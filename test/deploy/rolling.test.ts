import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { copyFile, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { MongoClient } from 'mongodb'
import { checkRedis } from '../../scripts/local-services/redis-facts.ts'
import { type ModelServer, startModelServer } from '../support/model-server/model-server.ts'
import { useS3 } from '../support/s3.ts'
import { StandIns } from '../support/stand-ins.ts'
import { until } from '../support/until.ts'
import { ComposeCluster } from './compose-cluster.ts'
import { FileLoad } from './file-load.ts'
import { ROOT } from './files.ts'
import { Load } from './load.ts'

const run = promisify(execFile)
const WITHIN_MS = 180_000
const SETTINGS = { DRAIN_SECS: '6', RATE_LIMIT_RPM: '0', ALLOW_PRIVATE_URLS: 'true' }
const FLOW = {
  model: 'm-1',
  system_prompt_template: 'Summarize.',
  input_schema: { type: 'object', properties: { text: { type: 'string' } } },
  output_schema: { type: 'object', properties: { summary: { type: 'string' } }, required: ['summary'] },
}

describe('the services of deploy/compose.yaml under load, without a shared folder', () => {
  const s3 = useS3()
  let cluster: ComposeCluster
  let model: ModelServer
  before(async function () {
    this.timeout(WITHIN_MS)
    model = await startModelServer({ record: false })
    model.otherwise(() => '{"summary":"short"}')
    const own = { MASTER_KEY: randomBytes(32).toString('base64'), TOOL_PERMISSIONS: '{"Write":"allow"}' }
    cluster = await ComposeCluster.start({ ...SETTINGS, ...s3.env, ...own }, { without: ['worker-3'] })
  })
  after(async () => {
    await cluster?.[Symbol.asyncDispose]()
    await model?.close()
  })

  async function send(method: 'PUT' | 'POST', path: string, body: object): Promise<void> {
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(cluster.url + path, { method, headers, body: JSON.stringify(body) })
    expect(answer.status, await answer.text()).to.equal(200)
  }

  it('Redis and MongoDB answer nobody without the password, which stands in no argument of theirs', async () => {
    const { urls, redis, mongo } = cluster.stores
    expect(await checkRedis(urls.REDIS_URL.replace(/\/\/.*@/, '//')).catch(String)).to.include('NOAUTH')
    await using client = new MongoClient(urls.MONGODB_URL.replace(/\/\/.*@/, '//'))
    expect(await client.db('any').collection('any').findOne().catch(String)).to.include('requires authentication')
    for (const { pid } of [redis, mongo])
      expect(await readFile(`/proc/${pid}/cmdline`, 'utf8'))
        .to.match(/redis-server|mongod/)
        .and.not.include('password-of')
  })

  it('P8, D35: deploy/roll replaces every process: no request fails, no session is lost, no frame is cut, and the files of sessions and plans stay whole', async function () {
    this.timeout(WITHIN_MS)
    await send('PUT', '/config/instances/main', {
      type: 'openai-compatible',
      url: model.url,
      key: 'sk-test-0123456789',
    })
    await send('PUT', '/flows/short', FLOW)
    await send('POST', '/flows/short/publish', {})
    const [load, files] = [new Load(cluster.url), new FileLoad(cluster.url)]
    await load.start({ clients: 1, flow: 'short' })
    files.start({ sessions: 1, plans: 2 })
    const counts = () => ({ ...load.counts, ...files.counts })
    const failures = () => [...load.failures, ...files.failures]
    const isBusy = () => Math.min(load.counts.runs, load.counts.messages, load.counts.flows, files.counts.turns) > 0
    const waiting = { what: 'every client to be answered', lastSeen: counts }
    await until(() => isBusy() || failures().length > 0, waiting)

    const before = await readFile(join(cluster.nginx.dir, 'gateways.conf'), 'utf8')
    const { stdout } = await roll(cluster)
    await Promise.all([load.stop(), files.stop()])

    expect(stdout.match(/^Replacing \S+/gm)).to.deep.equal(cluster.names.toSorted().map((name) => `Replacing ${name}`))
    expect(cluster.exits).to.deep.equal(exitsOf(cluster.names.toSorted()))
    expect(await readFile(join(cluster.nginx.dir, 'gateways.conf'), 'utf8')).to.equal(before)
    expect(failures()).to.deep.equal([])
    expect(Math.min(...Object.values(counts())), JSON.stringify(counts())).to.be.above(4)
  })
})

/** Runs deploy/roll with the processes of the cluster. */
async function roll(cluster: ComposeCluster) {
  await using fake = await StandIns.start({ docker: dockerOf(cluster) })
  const place = dirname(cluster.nginx.dir)
  await copyFile(join(ROOT, 'deploy/roll'), join(place, 'roll'))
  return await run(join(place, 'roll'), [], { env: { PATH: `${fake.bin}:${process.env['PATH']}` } })
}

/** Does Docker's part for deploy/roll. */
const dockerOf = (cluster: ComposeCluster) => async (args: string[]) => {
  const line = args.join(' ')
  if (line === 'compose config --services') return `${['nginx', 'redis', 'mongo', ...cluster.names].join('\n')}\n`
  if (line === 'compose exec -T nginx nginx -c /etc/nginx/deploy/nginx.conf -s reload') {
    await cluster.nginx.reload()
    return ''
  }
  const [, service] = /^compose up --detach --no-deps --force-recreate --wait (\S+)$/.exec(line) ?? []
  if (service === undefined) throw new Error(`no such command: docker ${line}`)
  await cluster.replace(service)
  return ''
}

const exitsOf = (names: readonly string[]) => names.map((name) => ({ name, exit: { code: 0, signal: null } }))
