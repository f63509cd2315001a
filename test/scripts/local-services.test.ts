import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, readFile, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { openRedis, startRedis } from '../../scripts/local-services/redis.ts'
import { checkRedis } from '../../scripts/local-services/redis-facts.ts'
import { Child } from '../support/child.ts'
import { useRedis } from '../support/redis.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'

const answers = (url: string) => checkRedis(url).then(Boolean, () => false)

describe('a private Redis', () => {
  it('evicts and persists nothing, whatever the settings of the machine', async () => {
    await using redis = await startRedis()
    const { maxmemoryPolicy, pid, version } = await checkRedis(redis.url)
    expect(maxmemoryPolicy).to.equal('noeviction')
    expect(pid).to.equal(redis.pid)
    expect(version).to.match(/^\d+\.\d+/)
  })

  it('lets arguments for redis-server replace the default settings', async () => {
    await using redis = await startRedis({ args: ['--maxmemory-policy', 'allkeys-lru'] })
    expect((await checkRedis(redis.url)).maxmemoryPolicy).to.equal('allkeys-lru')
  })

  it('can be stopped several times, also while it is frozen', async () => {
    const redis = await startRedis()
    await redis.kill('SIGSTOP')
    await Promise.all([redis.stop(), redis.stop()])
    await redis.stop()
    expect(redis.isRunning).to.equal(false)
    expect(await checkRedis(redis.url).catch(String)).to.include('ECONNREFUSED')
  })

  it('causes an error with its output when it cannot start', async () => {
    const failure = await startRedis({ args: ['--no-such-setting', '1'] }).catch(String)
    expect(failure).to.include('ended before it answered').and.include('no-such-setting')
  })

  it('does not mistake the answer of another server on its port for its own', async () => {
    await using other = await startRedis()
    const failure = await startRedis({ port: other.port }).catch(String)
    expect(failure).to.include('ended before it answered').and.include('in use')
    expect((await checkRedis(other.url)).pid).to.equal(other.pid)
  })

  it('ends with its parent, also when the parent is killed with SIGKILL, and leaves no folder behind', async () => {
    const start = `const { startRedis } = await import('./scripts/local-services/redis.ts')
      const { Redis } = await import('ioredis')
      const { url } = await startRedis()
      console.log(JSON.stringify({ url, dir: (await new Redis(url).config('GET', 'dir'))[1] }))`
    const parent = new Child(process.execPath, ['--input-type=module', '--eval', start], {})
    const { url, dir } = JSON.parse(await parent.line(/^\{/)) as { url: string; dir: string }
    expect(await answers(url)).to.equal(true)
    expect(existsSync(dir)).to.equal(true)
    await parent.end('SIGKILL')
    await until(async () => !(await answers(url)), { what: 'the end of Redis' })
    await until(() => !existsSync(dir), { what: 'the removal of its folder' })
  })
})

describe('the Redis of a test file', () => {
  const redis = useRedis()

  it('restarts on the same port and without data after a SIGKILL', async () => {
    const [port, pid] = [redis.server.port, redis.server.pid]
    await redis.connect().set('a', '1')
    await redis.server.kill('SIGKILL')
    await redis.server.restart()
    expect(redis.server.port).to.equal(port)
    expect(redis.server.pid).to.not.equal(pid)
    expect(await redis.connect().dbsize()).to.equal(0)
  })

  it('may be left with data by a test …', async () => {
    await redis.connect().set('a', '1')
  })

  it('… is empty in the next test, and may be left dead …', async () => {
    expect(await redis.connect().dbsize()).to.equal(0)
    await redis.server.kill('SIGKILL')
  })

  it('… and answers in the next one', async () => {
    expect(await redis.connect().ping()).to.equal('PONG')
  })
})

describe('the choice of the Redis (D1.2)', () => {
  const redis = useRedis()
  const said: string[] = []
  const say = (line: string) => void said.push(line)

  it('is REDIS_URL if it is set; then there is no server to stop', async () => {
    const opened = await openRedis({ url: redis.url }, say)
    expect(opened).to.deep.equal({ url: redis.url })
    expect(said.join()).to.match(/Using the Redis \d+\.\d+.* noeviction/)
  })

  it('is an error without the password when REDIS_URL does not answer', async () => {
    const silent = createServer((socket) => void socket.resume()).listen(0, '127.0.0.1') // Reads, so that it notices the end.
    await once(silent, 'listening')
    const { port } = silent.address() as { port: number }
    const failure = await checkRedis(`redis://u:secret@127.0.0.1:${port}`, { withinMs: 50 }).catch(String)
    silent.close()
    expect(failure).to.include(`127.0.0.1:${port}`).and.not.include('secret')
  })

  it('is a private server without REDIS_URL', async () => {
    const { url, server } = await openRedis({ url: undefined }, say)
    expect((await checkRedis(url)).pid).to.equal(server?.pid)
    await server?.stop()
  })
})

describe('`local-services ensure redis`', () => {
  const folder = useTempFolder({ perTest: true })
  let bin: string
  beforeEach(async () => {
    bin = folder.path
    for (const tool of ['sh', 'rm', 'chmod', 'cat', 'dirname']) await symlink(`/usr/bin/${tool}`, join(bin, tool))
    await program('sudo', 'shift; exec "$@"')
  })

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

  it('does nothing and prints nothing with a redis-server on PATH', async () => {
    await program('redis-server', 'echo "Redis server v=7.0.15 sha=0"')
    await program('apt-get', APT)
    const child = ensure('redis')
    expect(await child.exited).to.equal(0)
    expect(child.lines).to.deep.equal([])
  })

  it('D1.2: installs the Debian package where apt is available, prints so, and prevents the start of its service', async () => {
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

  it('D1.2: fails without both and prints the remedies, REDIS_URL among them', async () => {
    const child = ensure('redis')
    expect(await child.exited).to.equal(1)
    expect(child.lines.join('\n')).to.include('REDIS_URL').and.include('apt-get install redis-server')
  })

  it('fails when apt fails, and shows its output', async () => {
    await program('apt-get', '[ "$1" = --version ] || { echo "E: no network"; exit 100; }')
    const child = ensure('redis')
    expect(await child.exited).to.equal(1)
    expect(child.lines.join('\n')).to.include('E: no network').and.include('REDIS_URL')
  })

  it('refuses an unknown service and prints the usage', async () => {
    const child = ensure('oracle')
    expect(await child.exited).to.equal(2)
    expect(child.lines.join()).to.include('usage:')
  })
})
