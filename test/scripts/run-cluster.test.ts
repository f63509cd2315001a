import { watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { Redis } from 'ioredis'
import type { Member } from '../../scripts/local-cluster/member.ts'
import { readOptions } from '../../scripts/local-cluster/options.ts'
import { checkPorts } from '../../scripts/local-cluster/ports.ts'
import { StartFailure } from '../../scripts/local-cluster/supervisor.ts'
import { freePort } from '../../scripts/local-services/free-port.ts'
import { Child } from '../support/child.ts'
import { elapsedMs } from '../support/elapsed.ts'
import { useMongo } from '../support/mongo.ts'
import { openToOthers } from '../support/open-to-others.ts'
import { PRIMARY_NAME, startRedisGroup, startSentinel } from '../support/redis-group.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'

type ClusterFile = { processes: Member[]; redis_url: string; mongodb_url: string }

const SCRIPT = new URL('../../scripts/run-cluster.ts', import.meta.url).pathname

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Resolves when the process is not in the cluster's list of members any more. */
async function untilLeft(redisUrl: string, id: string): Promise<void> {
  const redis = new Redis(redisUrl)
  try {
    const isGone = async () => (await redis.hexists('ae:members', id.slice(id.indexOf('_') + 1))) === 0
    await until(isGone, { what: `${id} to leave the members`, everyMs: 20 })
  } finally {
    redis.disconnect()
  }
}

describe('scripts/run-cluster.ts', () => {
  const dataDir = useTempFolder({ perTest: true })
  const mongo = useMongo() // Of the tests that are not about the cluster's own.
  const children: Child[] = []
  afterEach(async () => {
    for (const child of children.splice(0)) if (child.process.exitCode === null) await child.end('SIGKILL')
  })

  function start(args: string[], env: Record<string, string> = {}): Child {
    const places = { HOST: '127.0.0.1', PORT: '0', OPS_PORT: '0', DATA_DIR: dataDir.path, DRAIN_SECS: '5' }
    const script = ['-c', 'umask 0; exec "$0" "$@"', process.execPath, SCRIPT]
    const child = new Child('sh', [...script, ...args], { ...places, ...env })
    children.push(child)
    return child
  }

  const read = async () => JSON.parse(await readFile(join(dataDir.path, 'cluster.json'), 'utf8')) as ClusterFile

  /** Resolves with the file once it matches. Rejects if it is ever read half written. */
  async function waitForFile(fits: (file: ClusterFile) => boolean): Promise<ClusterFile> {
    const { promise, resolve, reject } = Promise.withResolvers<ClusterFile>()
    const look = () => void read().then((file) => fits(file) && resolve(file), reject)
    const watcher = watch(dataDir.path, look)
    look()
    return promise.finally(() => watcher.close())
  }

  it('D1.1, D1.3 OPS_PORT: cluster.json lists every process with its ports at any LOG_LEVEL, a second start is refused, and a killed process is started again', async () => {
    const [port, opsPort] = [await freePort(), await freePort()]
    const env = { PORT: String(port), OPS_PORT: String(opsPort), LOG_LEVEL: 'warn', HOST: '0.0.0.0' }
    const child = start(['--gateways', '1', '--workers', '2', '--executors', '1'], env)
    const ready = await child.line(/cluster is ready/)
    const { processes, redis_url, mongodb_url } = await read()
    expect(mongodb_url).to.match(/^mongodb:\/\//)
    expect(redis_url).to.match(/^redis:\/\//)
    expect(processes.map(({ role, port: own, ops_port }) => [role, own, ops_port])).to.deep.equal([
      ['gateway', port, opsPort],
      ['worker', null, opsPort + 1],
      ['worker', null, opsPort + 2],
      ['executor', null, opsPort + 3],
    ])
    for (const { ops_port } of processes)
      expect((await fetch(`http://127.0.0.1:${ops_port}/readyz`)).status).to.equal(200)
    await expectLogs(child)
    await expectSecondStartRefused(child, /http\S+/.exec(ready)?.[0])

    const victim = processes[1]?.pid ?? 0
    const killedAt = elapsedMs()
    process.kill(victim, 'SIGKILL')
    await untilLeft(redis_url, processes[1]?.id ?? '')
    expect(elapsedMs() - killedAt).to.be.below(3_000) // Its lease would have run out after 3 to 4 s.
    const without = await waitForFile((file) => file.processes.length === 3)
    expect(without.processes.map(({ pid }) => pid)).not.to.include(victim)
    const again = await waitForFile((file) => file.processes.length === 4)
    expect(again.processes[1]).to.include({ role: 'worker', ops_port: opsPort + 1 })
    expect(again.processes[1]?.pid).not.to.equal(victim)

    expect(await child.end()).to.equal(0)
    expect(again.processes.filter(({ pid }) => isAlive(pid))).to.deep.equal([])
    expect(await read().catch(String)).to.include('ENOENT')
  })

  /** Warnings are printed, all lines are in files, and no other user can read anything in DATA_DIR. */
  async function expectLogs(child: Child): Promise<void> {
    expect(await child.line(/^gateway 1: /)).to.match(/"level":"warn".*anyone who can reach the port/)
    for (const name of ['gateway-1', 'worker-1', 'executor-1']) {
      const path = join(dataDir.path, 'logs', `${name}.log`)
      expect(await readFile(path, 'utf8'), name).to.match(/"msg":"listening"/)
    }
    expect(child.lines.filter((line) => line.includes('"msg":"listening"'))).to.deep.equal([])
    expect(child.lines.filter((line) => line.endsWith(`their logs: ${join(dataDir.path, 'logs')}`))).to.have.length(1)
    expect(await openToOthers(dataDir.path)).to.deep.equal([])
  }

  async function expectSecondStartRefused(child: Child, url: string | undefined): Promise<void> {
    const second = start(['--gateways', '1', '--workers', '1'])
    expect(await second.exited).to.equal(78)
    const said = second.lines.filter((line) => line.includes('DATA_DIR'))
    expect(said, second.lines.join('\n')).to.have.length(1)
    expect(said[0]).to.include(`in use by process ${child.process.pid} on ${hostname()} (scripts/cluster at ${url}`)
    expect(second.lines.join('\n')).not.to.include('Started Redis')
  }

  it('REDIS_SENTINELS alone: the cluster uses their Redis and starts none, and --executors 0 serves runs, with a warning', async () => {
    const group = await startRedisGroup()
    const sentinel = await startSentinel(group.primary)
    try {
      const env = { ...mongo.env, REDIS_SENTINELS: `127.0.0.1:${sentinel.port}/${PRIMARY_NAME}` }
      const child = start(['--gateways', '1', '--workers', '1', '--executors', '0'], env)
      const [, url] = /(http\S+)/.exec(await child.line(/cluster is ready/)) ?? []
      await child.line(/no executor: plans wait/)
      const { redis_url, processes } = await read()
      expect(redis_url).to.equal(`redis://127.0.0.1:${group.primary.port}`)
      expect(processes.map(({ role }) => role)).to.deep.equal(['gateway', 'worker'])
      const body = JSON.stringify({ prompt: '/say Hello' })
      const headers = { 'content-type': 'application/json' }
      const answer = await fetch(`${url}/agent/run`, { method: 'POST', headers, body })
      expect(await answer.text()).to.include('event: done')
      expect(await child.end()).to.equal(0)
      expect(child.lines.join('\n')).not.to.include('Started Redis')
    } finally {
      await sentinel.stop()
      await group.stop()
    }
  })

  it('D1.3a: a wrong configuration is reported once for all processes, nothing is started, and the exit code is 78', async () => {
    const child = start([], { AUTH_MODE: 'enforced', OPS_PORT: 'http' })
    expect(await child.exited).to.equal(78)
    const said = child.lines.join('\n')
    expect(said.match(/AUTH_MODE=enforced needs OIDC_ISSUER/g)).to.have.length(1)
    expect(said).to.include('OPS_PORT holds "http"')
    expect(said).not.to.include('Started Redis')
  })

  const COUNTS = { gateways: 2, workers: 2, executors: 1 }
  const refusalOf = (port: number, opsPort: number) =>
    checkPorts(COUNTS, { port, opsPort }, '127.0.0.1').catch((cause: unknown) => cause)

  it('a port in use, of whichever process, is reported before anything is started, with the ports that all of them take', async () => {
    const port = await freePort()
    const holder = createServer().listen(port, '127.0.0.1')
    const inUse = (setting: string, who: string) => `127.0.0.1:${port} is in use: ${who}: set ${setting} `
    const child = start([], { PORT: String(port - 1) })
    expect(await child.exited).to.equal(1)
    const ofGateways = `the gateways take PORT, PORT+1 … (${port - 1} to ${port})`
    expect(child.lines.at(-1)).to.include(inUse('PORT', ofGateways))
    expect(child.lines.join('\n')).not.to.include('Started')
    const ofAll = `the ops listeners of all processes take OPS_PORT, OPS_PORT+1 … (${port - 1} to ${port + 3})`
    expect(await refusalOf(0, port - 1))
      .to.include({ exitCode: 1 })
      .and.have.property('message')
      .that.includes(inUse('OPS_PORT', ofAll))
    holder.close()
  })

  it('D1.3 OPS_PORT: ports for operations that meet those of the gateways, or end above 65535, exit with 78 and say which are free', async () => {
    for (const [port, opsPort, said] of [
      [
        8080,
        8081,
        /^OPS_PORT=8081 meets PORT=8080: .*\(8080 to 8081\).*\(8081 to 8085\): set OPS_PORT to 8082 or above/,
      ],
      [8084, 8080, /^OPS_PORT=8080 meets PORT=8084: .*\(8080 to 8084\)/],
      [65_535, 0, /^PORT=65535: the gateways take .*: wanted 65534 at most/],
      [0, 65_533, /^OPS_PORT=65533: .*: wanted 65531 at most/],
    ] as const)
      expect(await refusalOf(port, opsPort))
        .to.include({ exitCode: 78 })
        .and.have.property('message')
        .that.matches(said)
  })

  it('an unknown option and a wrong number print the usage and exit with 2', async () => {
    const child = start(['--worker', '1'])
    expect(await child.exited).to.equal(2)
    expect(child.lines.join('\n')).to.match(/usage: scripts\/cluster/)
    for (const args of [
      ['--gateways', '0'],
      ['--workers', 'two'],
      ['--workers', '0'],
      ['--executors', '-1'],
    ])
      expect(() => readOptions(args), args.join(' ')).to.throw(StartFailure, /usage: scripts\/cluster/)
  })
})
