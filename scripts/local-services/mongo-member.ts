import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Child, spawnChild } from './child.ts'
import { freePort } from './free-port.ts'
import { LocalServer } from './local-server.ts'

const STARTS = 3
const START_WITHIN_MS = 90_000

type Home = { command: string; setName: string; port: number; dir: string }

/** Starts a mongod of a replica set on a loopback port and in its own temporary folder below `parent`. It ends with this process. */
export async function startMember(command: string, setName: string, parent = tmpdir()): Promise<MongoMember> {
  const dir = await mkdtemp(join(parent, 'agent-engine-mongo-'))
  for (let left = STARTS; ; left--) {
    const home = { command, setName, port: await freePort(), dir }
    try {
      return new MongoMember(home, await launch(home))
    } catch (cause) {
      // Another process may have taken the port in the meantime.
      if (left > 1) continue
      await rm(dir, { recursive: true, force: true })
      throw cause
    }
  }
}

/** A private mongod. It keeps its data over a restart. */
export class MongoMember extends LocalServer {
  readonly host: string
  readonly dir: string

  constructor(home: Home, child: Child) {
    super(child, () => launch(home))
    this.host = `127.0.0.1:${home.port}`
    this.dir = home.dir
  }

  /** Kills the mongod and removes its folder. */
  async stop(): Promise<void> {
    await this.kill('SIGKILL')
    await rm(this.dir, { recursive: true, force: true })
  }
}

async function launch(home: Home): Promise<Child> {
  const { command, dir } = home
  const child = await spawnChild({ name: 'mongod', command, args: settings(home), ownDir: dir })
  try {
    await child.line(/"Waiting for connections"/, START_WITHIN_MS)
    return child
  } catch (cause) {
    await child.kill('SIGKILL')
    throw cause
  }
}

/** Minimal settings: the smallest cache and log, no sockets in /tmp, no diagnostic files. */
const settings = ({ setName, port, dir }: Home): string[] => [
  ...['--port', String(port), '--bind_ip', '127.0.0.1', '--nounixsocket', '--dbpath', dir],
  ...['--replSet', setName, '--oplogSize', '64', '--wiredTigerCacheSizeGB', '0.25', '--quiet'],
  ...['--setParameter', 'diagnosticDataCollectionEnabled=false'],
]
