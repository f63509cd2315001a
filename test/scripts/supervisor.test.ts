import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { StartFailure, Supervisor, type SupervisorOptions } from '../../scripts/local-cluster/supervisor.ts'
import { spawnChild } from '../../scripts/local-services/child.ts'

type Member = { name: string; pid: number }

const STOP_MS = 5_000

/** A program whose n-th process runs the n-th of `scripts`, and then always the last. It is ready when it has printed `up`. */
function program(name: string, ...scripts: string[]) {
  let starts = 0
  return {
    name,
    spawn: () => {
      const script = scripts[Math.min(starts++, scripts.length - 1)] ?? ''
      return spawnChild({ name, command: 'sh', args: ['-c', script] })
    },
    ready: async (child: Awaited<ReturnType<typeof spawnChild>>): Promise<Member> => {
      await child.line(/^up$/m, STOP_MS)
      return { name, pid: child.pid }
    },
  }
}

const RUNS = 'echo up; exec sleep 60'
const EXITS = 'echo up; exit 3'

describe('the supervisor of a cluster', () => {
  const opened: Supervisor<Member>[] = []
  afterEach(() => Promise.all(opened.splice(0).map((supervisor) => supervisor.stop(STOP_MS))))

  function open(options: Partial<SupervisorOptions<Member>> = {}) {
    const said: string[] = []
    const waiting = new Set<() => void>()
    const say = (line: string) => {
      said.push(line)
      for (const look of waiting) look()
    }
    /** Resolves when `count` matching lines have been printed. */
    const lines = (pattern: RegExp, count: number) =>
      new Promise<string[]>((resolve) => {
        const look = () => {
          const found = said.filter((line) => pattern.test(line))
          if (found.length >= count) resolve(found.slice(0, count))
        }
        waiting.add(look)
        look()
      })
    const delays = { firstMs: 10, maxMs: 40, steadyMs: 60_000 }
    const rest = { restarts: true, onChange: async () => {}, onEnded: async () => {}, onRefused: () => {} }
    const supervisor = new Supervisor<Member>({ ...rest, delays, say, ...options })
    opened.push(supervisor)
    return { supervisor, said, lines }
  }

  const delaysOf = (lines: string[]) => lines.map((line) => Number(/in ([\d.]+) s/.exec(line)?.[1]))

  it('D1.1: programs of the second stage start when those of the first are ready, and the members keep the order of the programs', async () => {
    const { supervisor } = open()
    const events: string[] = []
    const recorded = (name: string, stage: 1 | 2) => {
      const { spawn, ready } = program(name, RUNS)
      return {
        name,
        stage,
        spawn: () => {
          events.push(`${name} starts`)
          return spawn()
        },
        ready: async (child: Awaited<ReturnType<typeof spawnChild>>) => {
          const member = await ready(child)
          events.push(`${name} is ready`)
          return member
        },
      }
    }
    await supervisor.start([recorded('gateway', 2), recorded('worker', 1)])
    expect(events).to.deep.equal(['worker starts', 'worker is ready', 'gateway starts', 'gateway is ready'])
    expect(supervisor.members.map(({ name }) => name)).to.deep.equal(['gateway', 'worker'])
  })

  it('D1.1: a process that exits is started again, after delays that double up to a maximum while it keeps exiting', async () => {
    const { supervisor, lines } = open()
    await supervisor.start([program('a', EXITS)])
    expect(delaysOf(await lines(/restarts in/, 5))).to.deep.equal([0.01, 0.02, 0.04, 0.04, 0.04])
  })

  it('the delay is the first one again after a process has run long enough', async () => {
    const { supervisor, lines } = open({ delays: { firstMs: 10, maxMs: 1_000, steadyMs: 1_500 } })
    await supervisor.start([program('a', EXITS, EXITS, 'echo up; sleep 1.7', EXITS)])
    expect(delaysOf(await lines(/restarts in/, 4))).to.deep.equal([0.01, 0.02, 0.01, 0.02])
  })

  it('a process that exits before it is ready again counts as exited once more', async () => {
    const { supervisor, lines } = open()
    await supervisor.start([program('a', EXITS, 'exit 1', RUNS)])
    expect(await lines(/ exited /, 2)).to.deep.equal(['a exited (3): up', 'a exited (1): no output'])
    await lines(/ready again/, 1)
    expect(supervisor.members).to.have.length(1)
  })

  it('D1.1: each change of the members is reported, in the order of the programs', async () => {
    const told: string[][] = []
    const { supervisor, lines } = open({ onChange: async (members) => void told.push(members.map(({ name }) => name)) })
    await supervisor.start([program('a', 'echo up; sleep 0.2', RUNS), program('b', RUNS)])
    expect(supervisor.members.map(({ name }) => name)).to.deep.equal(['a', 'b'])
    await lines(/a is ready again/, 1)
    expect(told[0]).to.deep.equal(['b'])
    await sleep(0)
    expect(told.at(-1)).to.deep.equal(['a', 'b'])
  })

  it('a member that ended is reported before it is started again, and none that stop ends', async () => {
    const ended: string[] = []
    const { supervisor, lines } = open({
      async onEnded({ name, pid }) {
        ended.push(`${name} ${pid > 0}`)
      },
    })
    await supervisor.start([program('one', EXITS, RUNS), program('two', RUNS)])
    await lines(/one is ready again/, 1)
    expect(ended).to.deep.equal(['one true'])
    await supervisor.stop(STOP_MS)
    expect(ended).to.deep.equal(['one true'])
  })

  it('D1.1: with --no-restart a process that exited is not started again', async () => {
    const changed = Promise.withResolvers<void>()
    const { supervisor, said } = open({ restarts: false, onChange: async () => changed.resolve() })
    await supervisor.start([program('a', EXITS)])
    await changed.promise
    await sleep(0)
    expect(supervisor.members).to.deep.equal([])
    expect(said.filter((line) => /again|restarts/.test(line))).to.deep.equal([])
  })

  it('D3.3: when the first start of a process ends with 78, its exit code and its output are passed on', async () => {
    const { supervisor } = open()
    const failure: unknown = await supervisor
      .start([program('a', RUNS), program('b', 'echo "AUTH_MODE wants more"; exit 78')])
      .catch((cause: unknown) => cause)
    expect(failure).to.be.instanceOf(StartFailure).and.include({ exitCode: 78, message: 'AUTH_MODE wants more' })
  })

  it('D3.3: a restart that ends with 78 is passed on as well, and not tried again', async () => {
    const refused = Promise.withResolvers<StartFailure>()
    const { supervisor, said } = open({ onRefused: refused.resolve })
    await supervisor.start([program('a', EXITS, 'echo "OIDC_ISSUER is wrong"; exit 78')])
    expect(await refused.promise).to.include({ exitCode: 78, message: 'OIDC_ISSUER is wrong' })
    expect(said.filter((line) => line.includes('restarts in'))).to.have.length(1)
  })

  it('when the first start of a process ends with another code, the exit code is 1, with its output', async () => {
    const { supervisor } = open()
    const failure: unknown = await supervisor
      .start([program('a', 'echo no port; exit 5')])
      .catch((cause: unknown) => cause)
    expect(failure).to.be.instanceOf(StartFailure).and.include({ exitCode: 1 })
    expect(String(failure)).to.include('no port')
  })

  it('stop ends all processes and kills those that ignore SIGTERM', async () => {
    const { supervisor, said } = open()
    await supervisor.start([program('a', RUNS), program('b', `trap '' TERM; echo up; while :; do sleep 0.05; done`)])
    const pids = supervisor.members.map(({ pid }) => pid)
    await supervisor.stop(300)
    for (const pid of pids) expect(() => process.kill(pid, 0)).to.throw('ESRCH')
    expect(said).to.deep.equal([])
  })
})
