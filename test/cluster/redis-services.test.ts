import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { Redis } from 'ioredis'
import { examine } from '../../scripts/doctor/examine.ts'
import { patientOf } from '../../scripts/doctor/patient.ts'
import { freePort } from '../../scripts/local-services/free-port.ts'
import { startRedis } from '../../scripts/local-services/redis.ts'
import { startRedisCluster } from '../../scripts/local-services/redis-cluster.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import type { RedisOptions } from '../../shared/platform/config/redis-place.ts'
import { openRedisLink } from '../../shared/platform/redis/link.ts'
import { createBullQueue } from '../../shared/work/queue/bullmq.ts'
import { createBullConsume } from '../../shared/work/queue/bullmq-consume.ts'
import { PRIMARY_NAME, startRedisGroup, startSentinel } from '../support/redis-group.ts'
import { createTestRelay } from '../support/relay.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'

const TENANT = DEFAULT_TENANT
const run = promisify(execFile)

/** Whether runs, sessions, permissions and jobs work on the Redis of this address. */
async function expectToWork(url: string, options: RedisOptions = {}): Promise<void> {
  const relay = createTestRelay(() => url, options)
  const queue = createBullQueue(url, options)
  const taken = Promise.withResolvers<string>()
  const consume = createBullConsume({ url, redis: options, onProblem: () => {} })
  const handler = async ({ id }: { id: string }) => taken.resolve(id)
  const consumer = await consume('plan', handler, { concurrency: 1, onGivenUp: async () => {} })
  try {
    await relay.worker()
    const { broker } = await relay.gateway()
    const { session_id: id } = await broker.createSession(TENANT)
    const { runId, frames } = await broker.sendMessage(TENANT, id, { prompt: '/tool Ask {}' })
    let text = ''
    for await (const chunk of frames) {
      text += Buffer.from(chunk.text)
      const { permissions } = await broker.listPermissions(TENANT, { limit: 9 })
      for (const asked of permissions) await broker.replyPermission(TENANT, id, asked.id, { allow: true })
    }
    expect(text, runId).to.include('it ran').and.include('event: done')
    await broker.deleteSession(TENANT, id)
    await queue.add({ kind: 'plan', tenant: TENANT, id: 'plan_1' })
    expect(await taken.promise).to.equal('plan_1')
  } finally {
    await Promise.all([relay.close(), queue.close(), consumer.close()])
  }
}

describe('the services that Redis comes as', () => {
  const opened: { stop(): Promise<void> }[] = []
  const keep = <T extends { stop(): Promise<void> }>(server: T): T => {
    opened.push(server)
    return server
  }
  afterEach(async () => {
    for (const server of opened.splice(0)) await server.stop()
  })

  async function withUser(...rules: string[]): Promise<string> {
    const server = keep(await startRedis())
    const client = new Redis(server.url)
    await client.call('ACL', 'SETUSER', 'app', 'on', '>pass word', '~ae:*', '&ae:*', '+@all', ...rules)
    client.disconnect()
    return server.url.replace('//', '//app:pass%20word@')
  }

  it('a user of an ACL who may use neither CONFIG, SCRIPT nor other keys and channels is enough', async () => {
    const url = await withUser('-@admin', '-config', '-script', '-keys', '-flushall', '-flushdb')
    const warnings: string[] = []
    const link = await openRedisLink(url, { warn: (message) => warnings.push(message) })
    await link.close()
    expect(warnings).to.deep.equal([])
    await expectToWork(url)
  })

  it('where INFO is forbidden, a process starts with a warning that the eviction policy is unknown', async () => {
    const url = await withUser('-info')
    const warnings: string[] = []
    const link = await openRedisLink(url, { warn: (message) => warnings.push(message) })
    await link.close()
    expect(warnings.join()).to.include('maxmemory-policy').and.include('noeviction')
  })

  it('rediss:// connects with TLS, with user and password', async () => {
    await using folder = await makeTempFolder()
    const trusted = getCACertificates('default')
    try {
      const files = [join(folder.path, 'key.pem'), join(folder.path, 'cert.pem')] as const
      const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
      const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
      await run('openssl', ['req', '-x509', ...kind, '-days', '2', ...subject, '-keyout', files[0], '-out', files[1]])
      const port = await freePort()
      const tls = [
        '--tls-port',
        port,
        '--tls-key-file',
        files[0],
        '--tls-cert-file',
        files[1],
        '--tls-auth-clients',
        'no',
      ]
      const server = keep(await startRedis({ args: tls.map(String) }))
      const client = new Redis(server.url)
      await client.call('ACL', 'SETUSER', 'app', 'on', '>secret', '~*', '&*', '+@all')
      client.disconnect()
      setDefaultCACertificates([...trusted, await readFile(files[1], 'utf8')])
      await expectToWork(`rediss://app:secret@localhost:${port}`)
    } finally {
      setDefaultCACertificates(trusted)
    }
  })

  it('D33 REDIS_CLUSTER: runs, sessions, permissions and jobs work on three nodes of a Redis Cluster', async () => {
    await using cluster = await startRedisCluster()
    const [node] = cluster.nodes
    await expectToWork('redis://unused', { cluster: node ? [node] : [] })
    const lines: string[] = []
    await examine(patientOf({ REDIS_CLUSTER: `${node?.host}:${node?.port}` }), (line) => lines.push(line))
    const forgetful = lines.filter((line) => /redis: node 127\.0\.0\.1:\d+: Redis keeps no append-only file/.test(line))
    expect(forgetful, lines.join('\n')).to.have.length(cluster.servers.length)
  })

  it('D33 REDIS_CLUSTER: every node is sent the password of REDIS_URL, and a wrong one is named as the reason', async () => {
    await using cluster = await startRedisCluster()
    for (const { url } of cluster.servers) {
      const node = new Redis(url)
      await node.config('SET', 'requirepass', 's3cret')
      node.disconnect()
    }
    await expectToWork('redis://:s3cret@unused', { cluster: cluster.nodes })
    const opening = openRedisLink('redis://:wrong@unused', { cluster: cluster.nodes })
    expect(String(await opening.catch((cause: unknown) => cause))).to.include('(WRONGPASS ')
  })

  it('D33 REDIS_CLUSTER: an address at which no node answers is named', async () => {
    const opening = openRedisLink('redis://unused', { cluster: [{ host: '127.0.0.1', port: 1 }] })
    expect(String(await opening.catch((cause: unknown) => cause))).to.include('REDIS_CLUSTER answers: 127.0.0.1:1')
  })

  it('D33 REDIS_CLUSTER: a node that names no address for its slots ends the attempt, with what to do', async () => {
    const server = keep(await startRedis({ args: ['--cluster-enabled', 'yes', '--save', ''] }))
    const node = new Redis(server.url)
    await node.cluster('ADDSLOTSRANGE', 0, 16_383)
    await until(async () => (await node.cluster('INFO')).includes('cluster_state:ok'), { what: 'the slots' })
    node.disconnect()
    const opening = openRedisLink('redis://unused', { cluster: [{ host: '127.0.0.1', port: server.port }] })
    expect(String(await opening.catch((cause: unknown) => cause))).to.include('set cluster-announce-ip')
  })

  it('D1.3 REDIS_SENTINELS: the sentinels name the primary, and the one that they promote after its death', async () => {
    const group = keep(await startRedisGroup())
    const sentinel = keep(await startSentinel(group.primary))
    const sentinels = { hosts: [{ host: '127.0.0.1', port: sentinel.port }], primary: PRIMARY_NAME }
    const relay = createTestRelay(() => 'redis://unused', { sentinels })
    try {
      await relay.worker()
      const { broker } = await relay.gateway()
      const { session_id: id } = await broker.createSession(TENANT)
      await group.synchronized()
      await group.primary.kill('SIGKILL')
      const isServed = () =>
        broker.getSession(TENANT, id).then(
          () => true,
          () => false,
        )
      await until(async () => !(await isServed()), { what: 'the death to be noticed' })
      await until(isServed, { what: 'the session to be served by the promoted replica' })
    } finally {
      await relay.close()
    }
    await expectToWork('redis://unused', { sentinels })
  })

  it('a server that has become a replica is left for the primary that its address leads to now', async () => {
    const group = keep(await startRedisGroup())
    const link = await openRedisLink(group.url)
    try {
      await link.run(SET, ['before'], ['1'])
      group.leadToReplica()
      await group.promote()
      await group.demote()
      await until(() => link.run(SET, ['after'], ['2']).catch(() => false), { what: 'a write to the new primary' })
      const client = new Redis(group.replica.url)
      expect(await client.get('ae:after')).to.equal('2')
      client.disconnect()
    } finally {
      await link.close()
    }
  })

  it('a Redis Cluster of one shard works: the keys of each script share a slot', async () => {
    const server = keep(await startRedis({ args: ['--cluster-enabled', 'yes'] }))
    const client = new Redis(server.url)
    await client.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
    await until(async () => String(await client.call('CLUSTER', 'INFO')).includes('cluster_state:ok'), {
      what: 'the slots',
    })
    client.disconnect()
    await expectToWork(server.url)
  })
})

const SET = { name: 'testSet', keys: 1, lua: `return redis.call('SET', KEYS[1], ARGV[1])` }
