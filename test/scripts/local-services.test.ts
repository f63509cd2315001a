import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { openRedis, startRedis } from '../../scripts/local-services/redis.ts'
import { checkRedis } from '../../scripts/local-services/redis-facts.ts'
import { Child } from '../support/child.ts'
import { useRedis } from '../support/redis.ts'

const DEADLINE_MS = 5000

/** No event tells of the death of a process that is not our child. */
async function hasGone(isThere: () => boolean | Promise<boolean>): Promise<boolean> {
  const deadline = performance.now() + DEADLINE_MS
  while ((await isThere()) && performance.now() < deadline) await sleep(5)
  return !(await isThere())
}

const answers = (url: string) => checkRedis(url).then(Boolean, () => false)

describe('a private Redis', () => {
  it('refuses to evict and persists nothing, whatever the machine’s own settings', async () => {
    await using redis = await startRedis()
    const { maxmemoryPolicy, pid, version } = await checkRedis(redis.url)
    expect(maxmemoryPolicy).to.equal('noeviction')
    expect(pid).to.equal(redis.pid)
    expect(version).to.match(/^\d+\.\d+/)
  })

  it('takes redis-server’s own arguments as the last word', async () => {
    await using redis = await startRedis({ args: ['--maxmemory-policy', 'allkeys-lru'] })
    expect((await checkRedis(redis.url)).maxmemoryPolicy).to.equal('allkeys-lru')
  })

  it('is stopped once, however often it is told to, and a frozen one too', async () => {
    const redis = await startRedis()
    await redis.kill('SIGSTOP')
    await Promise.all([redis.stop(), redis.stop()])
    await redis.stop()
    expect(redis.isRunning).to.equal(false)
    expect(await checkRedis(redis.url).catch(String)).to.include('ECONNREFUSED')
  })

  it('a server that cannot start is an error with its own words', async () => {
    const failure = await startRedis({ args: ['--no-such-setting', '1'] }).catch(String)
    expect(failure).to.include('ended before it answered').and.include('no-such-setting')
  })

  it('a taken port is not mistaken for an answer of its own', async () => {
    await using other = await startRedis()
    const failure = await startRedis({ port: other.port }).catch(String)
    expect(failure).to.include('ended before it answered').and.include('in use')
    expect((await checkRedis(other.url)).pid).to.equal(other.pid)
  })

  it('ends with its parent, also when that is killed with SIGKILL, and leaves no folder behind', async () => {
    const start = `const { startRedis } = await import('./scripts/local-services/redis.ts')
      const { Redis } = await import('ioredis')
      const { url } = await startRedis()
      console.log(JSON.stringify({ url, dir: (await new Redis(url).config('GET', 'dir'))[1] }))`
    const parent = new Child(process.execPath, ['--input-type=module', '--eval', start], {})
    const { url, dir } = JSON.parse(await parent.line(/^\{/)) as { url: string; dir: string }
    expect(await answers(url)).to.equal(true)
    expect(existsSync(dir)).to.equal(true)
    await parent.end('SIGKILL')
    expect(await hasGone(() => answers(url))).to.equal(true)
    expect(await hasGone(() => existsSync(dir))).to.equal(true)
  })
})

describe('a test’s Redis', () => {
  const redis = useRedis()

  it('comes back on the same port and empty after a SIGKILL', async () => {
    const [port, pid] = [redis.server.port, redis.server.pid]
    await redis.connect().set('a', '1')
    await redis.server.kill('SIGKILL')
    await redis.server.restart()
    expect(redis.server.port).to.equal(port)
    expect(redis.server.pid).to.not.equal(pid)
    expect(await redis.connect().dbsize()).to.equal(0)
  })

  it('left behind full …', async () => {
    await redis.connect().set('a', '1')
  })

  it('… is empty in the next test, and left behind dead or frozen …', async () => {
    expect(await redis.connect().dbsize()).to.equal(0)
    await redis.server.kill('SIGKILL')
  })

  it('… it answers in the next one', async () => {
    expect(await redis.connect().ping()).to.equal('PONG')
  })
})

describe('D1.2: which Redis', () => {
  const redis = useRedis()
  const said: string[] = []
  const say = (line: string) => void said.push(line)

  it('REDIS_URL if it is set and answers; then there is nothing of ours to stop', async () => {
    const opened = await openRedis(redis.url, say)
    expect(opened).to.deep.equal({ url: redis.url })
    expect(said.join()).to.match(/Using the Redis \d+\.\d+.* noeviction/)
  })

  it('a REDIS_URL that does not answer is an error that shows no password', async () => {
    const silent = createServer().listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as { port: number }
    const failure = await checkRedis(`redis://u:secret@127.0.0.1:${port}`, 50).catch(String)
    silent.close()
    expect(failure).to.include(`127.0.0.1:${port}`).and.not.include('secret')
  })

  it('without one, a private server', async () => {
    const { url, server } = await openRedis(undefined, say)
    expect((await checkRedis(url)).pid).to.equal(server?.pid)
    await server?.stop()
  })
})

describe('`local-services ensure redis`', () => {
  let bin: string
  beforeEach(async () => {
    bin = await mkdtemp(join(tmpdir(), 'agent-engine-bin-'))
    for (const tool of ['sh', 'rm', 'chmod', 'cat', 'dirname']) await symlink(`/usr/bin/${tool}`, join(bin, tool))
    await program('sudo', 'shift; exec "$@"')
  })
  afterEach(() => rm(bin, { recursive: true }))

  async function program(name: string, script: string): Promise<void> {
    await writeFile(join(bin, name), `#!/bin/sh\n${script}\n`)
    await chmod(join(bin, name), 0o755)
  }

  const policy = () => join(bin, 'policy-rc.d')
  const ensure = (...args: string[]) =>
    new Child(process.execPath, ['scripts/local-services.ts', 'ensure', ...args], { PATH: bin, POLICY_RC_D: policy() })

  const APT = `echo "apt-get $*" >>$0.log
    case "$1" in install)
      cat "$POLICY_RC_D" >>$0.log
      cd "$(dirname "$0")"
      printf '#!/bin/sh\\necho "Redis server v=7.9.9 sha=0"\\n' >redis-server
      chmod +x redis-server
    esac`

  it('with a redis-server on PATH does nothing and says nothing', async () => {
    await program('redis-server', 'echo "Redis server v=7.0.15 sha=0"')
    await program('apt-get', APT)
    const child = ensure('redis')
    expect(await child.exited).to.equal(0)
    expect(child.lines).to.deep.equal([])
  })

  it('D1.2: installs Debian’s package where apt is there, says so, and keeps its service from starting', async () => {
    await program('apt-get', APT)
    const child = ensure('redis')
    expect(await child.exited, child.lines.join('\n')).to.equal(0)
    expect(child.lines).to.deep.equal([
      'Installing Redis (apt-get install redis-server) ...',
      'Redis 7.9.9 is installed.',
    ])
    const log = await readFile(join(bin, 'apt-get.log'), 'utf8')
    expect(log).to.include('apt-get install -qq -y --no-install-recommends redis-server').and.include('exit 101')
    expect(existsSync(policy())).to.equal(false)
    expect(await ensure('redis').exited).to.equal(0)
  })

  it('D1.2: without both is an error that names the choices, REDIS_URL among them', async () => {
    const child = ensure('redis')
    expect(await child.exited).to.equal(1)
    expect(child.lines.join('\n')).to.include('REDIS_URL').and.include('apt-get install redis-server')
  })

  it('an apt that fails is an error too, and its words are shown', async () => {
    await program('apt-get', '[ "$1" = --version ] || { echo "E: no network"; exit 100; }')
    const child = ensure('redis')
    expect(await child.exited).to.equal(1)
    expect(child.lines.join('\n')).to.include('E: no network').and.include('REDIS_URL')
  })

  it('of a service it does not know is refused with the usage', async () => {
    const child = ensure('oracle')
    expect(await child.exited).to.equal(2)
    expect(child.lines.join()).to.include('usage:')
  })
})
