import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { StartFailure, Supervisor, type SupervisorOptions } from '../../scripts/local-cluster/supervisor.ts'
import { spawnChild } from '../../scripts/local-services/child.ts'

type Member = { name: string; pid: number }

const STOP_MS = 5_000

/** A program whose n-th process is the n-th of `scripts`, and the last of them from then on; it is ready once it says `up`. */
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

const STAYS = 'echo up; exec sleep 60'
const DIES = 'echo up; exit 3'

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
    /** Resolves once `count` lines that fit have been said. */
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
    const rest = { restarts: true, onChange: async () => {}, onRefused: () => {} }
    const supervisor = new Supervisor<Member>({ ...rest, delays, say, ...options })
    opened.push(supervisor)
    return { supervisor, said, lines }
  }

  const delaysOf = (lines: string[]) => lines.map((line) => Number(/in ([\d.]+) s/.exec(line)?.[1]))

  it('D1.1: a process that died is started again, at delays that double up to a bound while it keeps dying', async () => {
    const { supervisor, lines } = open()
    await supervisor.start([program('a', DIES)])
    expect(delaysOf(await lines(/started again/, 5))).to.deep.equal([0.01, 0.02, 0.04, 0.04, 0.04])
  })

  it('the delay begins anew after a life that was long enough', async () => {
    const { supervisor, lines } = open({ delays: { firstMs: 10, maxMs: 1_000, steadyMs: 1_500 } })
    await supervisor.start([program('a', DIES, DIES, 'echo up; sleep 1.7', DIES)])
    expect(delaysOf(await lines(/started again/, 4))).to.deep.equal([0.01, 0.02, 0.01, 0.02])
  })

  it('who dies before it is ready again has died like any other', async () => {
    const { supervisor, lines } = open()
    await supervisor.start([program('a', DIES, 'exit 1', STAYS)])
    expect(await lines(/has died/, 2)).to.deep.equal(['a has died (3): up', 'a has died (1): it said nothing'])
    await lines(/ready again/, 1)
    expect(supervisor.members).to.have.length(1)
  })

  it('D1.1: members are told of as they come and go, in the order of the programs', async () => {
    const told: string[][] = []
    const { supervisor, lines } = open({ onChange: async (members) => void told.push(members.map(({ name }) => name)) })
    await supervisor.start([program('a', 'echo up; sleep 0.2', STAYS), program('b', STAYS)])
    expect(supervisor.members.map(({ name }) => name)).to.deep.equal(['a', 'b'])
    await lines(/a is ready again/, 1)
    expect(told[0]).to.deep.equal(['b'])
    await sleep(0)
    expect(told.at(-1)).to.deep.equal(['a', 'b'])
  })

  it('D1.1: with --no-restart who has died stays dead', async () => {
    const changed = Promise.withResolvers<void>()
    const { supervisor, said } = open({ restarts: false, onChange: async () => changed.resolve() })
    await supervisor.start([program('a', DIES)])
    await changed.promise
    await sleep(0)
    expect(supervisor.members).to.deep.equal([])
    expect(said.filter((line) => line.includes('again'))).to.deep.equal([])
  })

  it('D3.3: a first start that ends with 78 is passed on, in the process’s own words', async () => {
    const { supervisor } = open()
    const failure: unknown = await supervisor
      .start([program('a', STAYS), program('b', 'echo "AUTH_MODE wants more"; exit 78')])
      .catch((cause: unknown) => cause)
    expect(failure).to.be.instanceOf(StartFailure).and.include({ exitCode: 78, message: 'AUTH_MODE wants more' })
  })

  it('D3.3: so is a later one, which is not tried again', async () => {
    const refused = Promise.withResolvers<StartFailure>()
    const { supervisor, said } = open({ onRefused: refused.resolve })
    await supervisor.start([program('a', DIES, 'echo "OIDC_ISSUER is wrong"; exit 78')])
    expect(await refused.promise).to.include({ exitCode: 78, message: 'OIDC_ISSUER is wrong' })
    expect(said.filter((line) => line.includes('started again'))).to.have.length(1)
  })

  it('any other end of a first start is 1, with what the process said', async () => {
    const { supervisor } = open()
    const failure: unknown = await supervisor
      .start([program('a', 'echo no port; exit 5')])
      .catch((cause: unknown) => cause)
    expect(failure).to.be.instanceOf(StartFailure).and.include({ exitCode: 1 })
    expect(String(failure)).to.include('no port')
  })

  it('reliability rule 15: stopping ends them all, and who hangs on is killed', async () => {
    const { supervisor, said } = open()
    await supervisor.start([program('a', STAYS), program('b', `trap '' TERM; echo up; while :; do sleep 0.05; done`)])
    const pids = supervisor.members.map(({ pid }) => pid)
    await supervisor.stop(300)
    for (const pid of pids) expect(() => process.kill(pid, 0)).to.throw('ESRCH')
    expect(said).to.deep.equal([])
  })
})
