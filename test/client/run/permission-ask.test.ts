import { expect } from 'chai'
import { ApiError, ConnectionFailed } from '../../../shared/client/errors.ts'
import { Transport } from '../../../shared/client/http/transport.ts'
import { createAsk, type PermissionRequest } from '../../../shared/client/run/permission-ask.ts'
import { type Answer, breakOff, fakeServer, json, refusal } from '../fake-server.ts'

const REQUEST = {
  id: 'perm_1',
  tool_name: 'Write',
  tool_use_id: 'call_1',
  input: { path: 'a' },
  message: 'Write a',
  expires_at: '2026-11-25T10:00:00.000Z',
}

const granted: Answer = () => json({ ok: true })
const isDecided: Answer = () => refusal(409, 'already_decided')

/** A request of a session, whose replies are answered one after the other. */
function askOn(...answers: Answer[]) {
  const { options, sent } = fakeServer(answers)
  const ask = createAsk(REQUEST, 'run_1', { transport: new Transport(options), sessionOf: async () => 'a/b' })
  return { ask, sent, settle: (allow: boolean) => ask.settle({ how: 'reply', allow, by: 'bob' }) }
}

const failureOf = (reply: Promise<unknown>) =>
  reply.then(
    () => expect.fail('it has not failed'),
    (cause: unknown) => cause,
  )

describe('a permission request at the client', () => {
  it('is allowed and denied by a reply at its session', async () => {
    const { ask, sent } = askOn(granted, granted, granted)
    const options = { traceparent: '00-1-2-01' }
    const answers = [
      await ask.allow({ remember: true, input: { path: 'b' }, reason: 'fine', ...options }),
      await ask.deny('no', options),
      await ask.allow(options),
    ]
    expect(answers).to.deep.equal([true, true, true])
    expect(sent.map(({ path, headers }) => [path, headers.get('traceparent')])).to.deep.equal(
      answers.map(() => ['/sessions/a%2Fb/permissions/perm_1', options.traceparent]),
    )
    expect(sent.map(({ body }) => body)).to.deep.equal([
      { allow: true, remember: 'session', input: { path: 'b' }, reason: 'fine' },
      { allow: false, reason: 'no' },
      { allow: true },
    ])
  })

  it('names its session, or else its run stands for one', async () => {
    const pathOf = async (request: Partial<PermissionRequest>, sessionOf?: () => undefined) => {
      const { options, sent } = fakeServer([granted])
      const origin = { transport: new Transport(options), ...(sessionOf && { sessionOf }) }
      await createAsk({ ...REQUEST, ...request }, 'run_1', origin).allow()
      return sent[0]?.path
    }
    const of = (session: string) => `/sessions/${session}/permissions/perm_1`
    expect(await pathOf({ session_id: 's' })).to.equal(of('s'))
    expect([await pathOf({}), await pathOf({}, () => undefined)]).to.deep.equal([of('run_1'), of('run_1')])
  })

  it('that somebody else has decided, or that has expired, is not ours', async () => {
    for (const answer of [isDecided, () => refusal(404, 'not_found')]) {
      const { ask, sent } = askOn(answer)
      expect(await ask.allow()).to.equal(false)
      expect(sent).to.have.length(1)
    }
  })

  it('whose decision is known is not replied to', async () => {
    const { ask, sent, settle } = askOn()
    settle(true)
    expect(await ask.allow()).to.equal(false)
    expect([sent.length, ask.signal.aborted, ask.resolution?.by]).to.deep.equal([0, true, 'bob'])
  })

  it('keeps the first decision that it is told', () => {
    const { ask, settle } = askOn()
    settle(true)
    ask.settle({ how: 'ended' })
    expect(ask.resolution).to.deep.equal({ how: 'reply', allow: true, by: 'bob' })
  })

  it('is replied to again when an answer was lost; the decision tells whether the first reply has counted', async () => {
    for (const [lost, decision, isOurs] of [
      [breakOff, true, true],
      [breakOff, false, false],
      [() => refusal(504, 'of a proxy'), true, true],
    ] as const) {
      const { ask, sent, settle } = askOn(lost, (request) => {
        settle(decision)
        return isDecided(request)
      })
      expect(await ask.allow(), `decided as ${decision}`).to.equal(isOurs)
      expect(sent).to.have.length(2)
    }
  })

  it('of which the deadline has decided after a lost answer is not ours', async () => {
    const { ask } = askOn(breakOff, (request) => {
      ask.settle({ how: 'timeout', allow: false })
      return isDecided(request)
    })
    expect(await ask.deny()).to.equal(false)
  })

  it('throws a refusal that says nothing of the decision, and gives up after four connections that broke', async () => {
    expect(await failureOf(askOn(() => refusal(403, 'forbidden')).ask.allow())).to.be.instanceOf(ApiError)
    const { ask, sent } = askOn(breakOff, breakOff, breakOff, breakOff, granted)
    expect(await failureOf(ask.allow())).to.be.instanceOf(ConnectionFailed)
    expect(sent).to.have.length(4)
  })
})
