import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import { type Child, spawnChild } from '../../scripts/local-services/child.ts'
import { freePort } from '../../scripts/local-services/free-port.ts'
import { requireMongod } from '../../scripts/local-services/mongo-server.ts'
import { checkRedis } from '../../scripts/local-services/redis-facts.ts'
import { memoryFolder } from '../../scripts/testing/memory-folder.ts'
import { until } from '../support/until.ts'
import { interpolated, readCompose } from './files.ts'

const STOP_MS = 10_000
/** The secrets of compose.yaml, as README.md makes them. */
const SECRETS = {
  'redis-url': 'redis://:redis-password-of-a-test@redis:6379',
  'mongodb-url':
    'mongodb://agent-engine:mongodb-password-of-a-test@mongo:27017/?replicaSet=agent-engine&authSource=admin',
}

/** Redis and MongoDB with the commands of compose.yaml, as processes on this machine. Only ports and folders are replaced. */
export class ComposeStores implements AsyncDisposable {
  /** The addresses of the secrets, with the ports of this machine. */
  readonly urls: { REDIS_URL: string; MONGODB_URL: string }
  readonly redis: Child
  readonly mongo: Child
  readonly #dir: string

  private constructor(urls: ComposeStores['urls'], children: { redis: Child; mongo: Child }, dir: string) {
    this.urls = urls
    this.redis = children.redis
    this.mongo = children.mongo
    this.#dir = dir
  }

  static async start(): Promise<ComposeStores> {
    const dir = await mkdtemp(join(memoryFolder(), 'agent-engine-stores-'))
    const ports = { redis: await freePort(), mongo: await freePort() }
    const path = await writeEntrypoint(dir, ports)
    const start = (name: 'redis' | 'mongo') => {
      const texts = interpolated(readCompose().services[name]?.command ?? [], {})
      const [command = '', ...args] = texts.map((text) => text.replaceAll('/run/secrets', `${dir}/secrets`))
      return spawnChild({ name, command, args, env: { PATH: path, TMPDIR: dir }, ownDir: dir })
    }
    const children = { redis: await start('redis'), mongo: await start('mongo') }
    const urls = {
      REDIS_URL: SECRETS['redis-url'].replace('@redis:6379', `@127.0.0.1:${ports.redis}`),
      MONGODB_URL: SECRETS['mongodb-url'].replace('@mongo:27017', `@127.0.0.1:${ports.mongo}`),
    }
    const stores = new ComposeStores(urls, children, dir)
    await until(() => checkRedis(urls.REDIS_URL).catch(() => undefined), { what: 'Redis to answer with its password' })
    await until(() => createUser(urls.MONGODB_URL, ports.mongo), { what: 'MongoDB to have a user', withinMs: 30_000 })
    return stores
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.redis.stop(STOP_MS), this.mongo.stop(STOP_MS)])
    await rm(this.#dir, { recursive: true, force: true })
  }
}

/** Writes the secrets, and what the images bring: their entry point, which starts the program, and the user `mongodb`. Returns the PATH. */
async function writeEntrypoint(dir: string, ports: { redis: number; mongo: number }): Promise<string> {
  const { command: mongod } = await requireMongod()
  for (const name of ['bin', 'redis', 'mongo', 'secrets']) await mkdir(join(dir, name))
  for (const [name, url] of Object.entries(SECRETS)) await writeFile(join(dir, 'secrets', name), `${url}\n`)
  const redis = `redis-server "$@" --port ${ports.redis} --bind 127.0.0.1 --dir ${dir}/redis`
  const mongo = `${mongod} "$@" --port ${ports.mongo} --dbpath ${dir}/mongo --nounixsocket --wiredTigerCacheSizeGB 0.25`
  const entrypoint = `program=$1; shift; case $program in redis-server) exec ${redis};; mongod) exec ${mongo};; esac`
  for (const [name, script] of Object.entries({ 'docker-entrypoint.sh': entrypoint, chown: '' })) {
    await writeFile(join(dir, 'bin', name), `#!/bin/sh\n${script}\n`)
    await chmod(join(dir, 'bin', name), 0o755)
  }
  return `${dir}/bin:${process.env['PATH']}`
}

/** Does what the health check of compose.yaml does with mongosh. */
async function createUser(url: string, port: number): Promise<boolean> {
  const { username: user, password: pwd, searchParams } = new URL(url)
  const set = { _id: searchParams.get('replicaSet'), members: [{ _id: 0, host: `127.0.0.1:${port}` }] }
  const options = { serverSelectionTimeoutMS: 1_000, directConnection: true }
  await using client = new MongoClient(`mongodb://127.0.0.1:${port}`, options)
  await client
    .db('admin')
    .command({ replSetInitiate: set })
    .catch(() => {})
  const created = await client
    .db('admin')
    .command({ createUser: user, pwd, roles: ['root'] })
    .catch(() => undefined)
  return created !== undefined
}
