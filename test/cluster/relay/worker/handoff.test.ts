import { expect } from 'chai'
import { BY_WORKER } from '../../../../shared/cluster/relay/wire/records.ts'
import { SessionHandoff } from '../../../../shared/cluster/relay/worker/handoff.ts'
import { AppError } from '../../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import { settled } from '../../../support/settled.ts'
import { until } from '../../../support/until.ts'
import { worker } from '../../members/member.ts'
import { playWorkers } from '../played-workers.ts'

const OWN = 1
const TOKEN = 'a1'
const session = (id = 's1') => {
  const key = { tenant: DEFAULT_TENANT, id, token: TOKEN }
  return { ...key, state: key }
}

const STATE = JSON.stringify([session().state])

const refusal = (code: 'worker_draining' | undefined, kind: 'unavailable' | 'internal' = 'unavailable') =>
  new AppError(kind, 'refused', { ...(code && { code }) })

type Answer = (epoch: number, method: string) => unknown

/** The hand-off of worker 1; `answer` is how the other workers answer its calls, and may throw a refusal. */
function setUp({ answer = () => null }: { answer?: Answer } = {}) {
  const problems: unknown[] = []
  const calls: string[] = []
  const outboxTo = playWorkers({
    caller: OWN,
    answer,
    onCall(epoch, { method, args, flags }) {
      calls.push(`${epoch} ${method} ${JSON.stringify(args)}`)
      expect(flags).to.equal(BY_WORKER)
    },
    onReply: (_epoch, reply) => handoff.onRecord(reply),
  })
  let refreshes = 0
  const handoff = new SessionHandoff({
    onProblem: (cause) => problems.push(cause),
    membership: {
      epoch: OWN,
      async refreshMembers() {
        refreshes++
      },
    },
    transport: {
      outbox(role, epoch) {
        expect(role).to.equal('worker')
        return outboxTo(epoch)
      },
    },
  })
  return { handoff, calls, problems, refreshes: () => refreshes }
}

describe('session hand-off', () => {
  it('the new owner gets the whole state, and changes the claim itself', async () => {
    const { handoff, calls } = setUp()
    handoff.onMembers([worker(OWN), worker(2)])
    expect(await handoff.transfer(session())).to.equal(true)
    expect(calls).to.deep.equal([`2 adoptSession ${STATE}`])
  })

  it('a session is never handed to the process itself, to a gateway or to a draining worker', async () => {
    const { handoff, calls } = setUp()
    handoff.onMembers([worker(OWN), worker(2, { role: 'gateway' }), worker(3, { state: 'draining' })])
    expect(await handoff.transfer(session())).to.equal(false)
    expect(calls).to.deep.equal([])
  })

  it('when the first worker drains, the next one is asked; when that one drains too, none has taken the session', async () => {
    const draining: number[] = []
    const { handoff, calls } = setUp({
      answer(epoch) {
        if (draining.includes(epoch) || draining.length === 0) {
          draining.push(epoch)
          throw refusal('worker_draining')
        }
      },
    })
    handoff.onMembers([worker(OWN), worker(2), worker(3)])
    expect(await handoff.transfer(session())).to.equal(true)
    const other = draining[0] === 2 ? 3 : 2
    expect(calls).to.deep.equal([`${draining[0]} adoptSession ${STATE}`, `${other} adoptSession ${STATE}`])
    draining.push(2, 3)
    calls.splice(0)
    expect(await handoff.transfer(session())).to.equal(false)
    expect(calls).to.have.length(2)
  })

  it('a worker that is lost during the call is passed over', async () => {
    const called: number[] = []
    const { handoff } = setUp({
      answer(epoch) {
        called.push(epoch)
        return called.length === 1 ? new Promise(() => {}) : null
      },
    })
    handoff.onMembers([worker(OWN), worker(2), worker(3)])
    const transferred = handoff.transfer(session())
    await until(() => called[0], { what: 'the first call' })
    handoff.onMemberLost(called[0] ?? 0)
    expect(await transferred).to.equal(true)
    expect(new Set(called)).to.deep.equal(new Set([2, 3]))
  })

  it('a worker that fails otherwise is reported and passed over, and the transfers after it go on', async () => {
    let isFirst = true
    const { handoff, calls, problems } = setUp({
      answer() {
        if (!isFirst) return
        isFirst = false
        throw refusal(undefined, 'internal')
      },
    })
    handoff.onMembers([worker(OWN), worker(2)])
    const transfers = Array.from({ length: 33 }, (_, i) => handoff.transfer(session(`s${i}`))) // The last waits for the first.
    expect(await Promise.all(transfers)).to.deep.equal([false, ...Array(32).fill(true)])
    expect([calls.length, problems.length]).to.deep.equal([33, 1])
  })

  for (const [atATime, what, messages] of [
    [32, 'sessions', []],
    [8, 'sessions of more than 128 KB', ['x'.repeat(200_000)]],
  ] as const) {
    it(`at most ${atATime} ${what} are transferred at a time`, async () => {
      const waiting: (() => void)[] = []
      const { handoff } = setUp({ answer: () => new Promise<void>((resolve) => waiting.push(resolve)) })
      handoff.onMembers([worker(OWN), worker(2)])
      const transfers = Array.from({ length: atATime + 2 }, (_, i) => {
        const each = session(`s${i}`)
        const state = { ...each.state, messages }
        return handoff.transfer({ ...each, state })
      })
      await until(() => waiting.length >= atATime, { what: `${atATime} calls` })
      await settled()
      expect(waiting).to.have.length(atATime)
      for (const answered of waiting.splice(0)) answered()
      await until(() => waiting.length === 2, { what: 'the last two calls' })
      for (const answered of waiting) answered()
      expect(await Promise.all(transfers)).to.deep.equal(Array(atATime + 2).fill(true))
    })
  }

  it('a session that no worker can take, because it was deleted meanwhile, is not transferred', async () => {
    const { handoff, problems } = setUp({
      answer: () => {
        throw new AppError('not_found', 'refused')
      },
    })
    handoff.onMembers([worker(OWN), worker(2), worker(3)])
    expect(await handoff.transfer(session())).to.equal(false)
    expect(problems).to.deep.equal([])
  })

  it('waits for a successor until another worker takes new work, or until the time is over', async () => {
    const { handoff, refreshes } = setUp()
    handoff.onMembers([worker(OWN), worker(2, { state: 'draining' })])
    const since = performance.now()
    await handoff.waitForSuccessor(50)
    expect(performance.now() - since).to.be.at.least(45)
    expect(refreshes()).to.equal(1)
    const waiting = handoff.waitForSuccessor(60_000)
    await new Promise(setImmediate)
    handoff.onMembers([worker(OWN), worker(2, { state: 'draining' })])
    handoff.onMembers([worker(OWN), worker(3)])
    await waiting
    await handoff.waitForSuccessor(60_000)
  })
})
