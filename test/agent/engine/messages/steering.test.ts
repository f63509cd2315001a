import { expect } from 'chai'
import { Conversation } from '../../../../shared/agent/engine/conversation.ts'
import { Steering } from '../../../../shared/agent/engine/messages/steering.ts'
import { RunProgress, type RunState } from '../../../../shared/agent/engine/run-progress.ts'
import { failure } from '../../../../shared/agent/providers/failures/failures.ts'
import type { Message } from '../../../../shared/agent/providers/port.ts'
import { succeed } from '../../../../shared/agent/tools/port.ts'
import type { AgentEvent } from '../../../../shared/kernel/events.ts'
import { digs, gives, play, says, says200, scripted, USAGE, user } from '../context/setup.ts'

const steer = (id: string, text = `do ${id}`) => ({ id, text, by: 'ann' })
const told = (id: string): Message => ({ ...user(`do ${id}`), client: id })
const steered = (events: readonly AgentEvent[]) =>
  events.flatMap((event): unknown[] => {
    if (event.type === 'turn_start') return [event.turn_number]
    return event.type === 'steered' ? [event.id] : []
  })
const rolesOf = (messages: readonly Message[] = []) => messages.map(({ role }) => role)

describe('what a person tells a run at work', () => {
  let steering: Steering
  beforeEach(() => {
    steering = new Steering()
  })
  /** An answer during which these come. */
  const during =
    (parts: ReturnType<typeof digs>, ...ids: string[]) =>
    () => {
      for (const id of ids) steering.add(steer(id))
      return parts
    }

  it('D49.1: the model reads it at its next call, behind the results of the tool calls, in order and once', async () => {
    const provider = scripted(during(digs('c1'), 'a', 'b'), digs('c2'), says200('gold'))
    const { events, conversation } = await play(provider, { steering, prompt: 'dig' })
    expect(provider.requests[1]?.messages.slice(2)).to.deep.equal([gives('c1', ''), told('a'), told('b')])
    expect(steered(events)).to.deep.equal([1, 2, 'a', 'b', 3])
    expect(events.filter(({ type }) => type === 'steered')[0]).to.deep.equal({ type: 'steered', ...steer('a') })
    expect(rolesOf(conversation.messages)).to.deep.equal(
      ['user', 'assistant', 'tool', 'user', 'user', 'assistant', 'tool', 'assistant'], // Each once.
    )
  })

  it('D49.1: what came before the run began stands behind its prompt', async () => {
    steering.add(steer('a'))
    const { conversation } = await play(scripted(), { steering, prompt: 'dig' })
    expect(conversation.messages).to.deep.equal([user('dig'), told('a'), says('ok')])
  })

  it('D49.2: a run that gives its last answer takes one more turn, beyond max_turns, and nothing behind that', async () => {
    const provider = scripted(during(says200('gold'), 'a'), says200('silver'))
    const { done, conversation } = await play(provider, { steering, maxTurns: 1 })
    expect(done).to.include({ turn_count: 2, stop_reason: 'end_turn' })
    expect(conversation.messages.slice(1)).to.deep.equal([says('gold'), told('a'), says('silver')])
    expect(() => steering.add(steer('b')))
      .to.throw('has ended')
      .with.property('kind', 'conflict')
  })

  it('D49.2: a run that fails, and one that is cancelled, leaves what its model has not read in the history, without the event', async () => {
    const failed = [{ type: 'failure', failure: failure('provider_rejected', 'bad_request', 'no') } as const]
    const cancelled = new AbortController()
    const cancel = () => (cancelled.abort('cancelled'), digs('c1'))
    for (const [last, signal] of [
      [failed, undefined],
      [cancel, cancelled.signal],
    ] as const) {
      steering = new Steering()
      const answer = () => (during([], 'a')(), typeof last === 'function' ? last() : [...last])
      const { types, conversation } = await play(scripted(answer), {
        steering,
        prompt: 'dig',
        ...(signal && { signal }),
      })
      expect(conversation.messages).to.deep.equal([user('dig'), told('a')])
      expect(types).to.not.include('steered')
      expect(() => steering.add(steer('b'))).to.throw('has ended')
    }
  })

  it('D49.2: a run that another process goes on with leaves what waits to that one', async () => {
    const lost = new AbortController()
    const lose = () => (during([], 'a')(), lost.abort('worker_lost'), digs('c1'))
    const { conversation } = await play(scripted(lose), { steering, prompt: 'dig', signal: lost.signal })
    expect(conversation.messages).to.deep.equal([user('dig')])
  })

  it('D49.3: the ninth that waits is refused, and the same one again changes nothing', () => {
    for (let i = 0; i < 8; i++) steering.add(steer(`s${i}`))
    steering.add(steer('s7'))
    expect(() => steering.add(steer('s8')))
      .to.throw('8 texts wait')
      .with.property('kind', 'rate_limit')
    expect(steering.take(1)).to.have.length(8)
    steering.add(steer('s8'))
    expect(steering.take(2).map(({ id }) => id)).to.deep.equal(['s8'])
  })

  it('a sub-agent does not read it', async () => {
    const child = scripted(says200('a vein'))
    const dig: NonNullable<Parameters<typeof play>[1]['dig']> = async (_input, { agents }) => {
      steering.add(steer('a'))
      return succeed((await agents.run({ description: 'look', prompt: 'look there', tools: [] })).result)
    }
    const provider = scripted(digs('c1'), says200('gold'))
    const subAgents = () => ({ primary: { provider: child, model: 'small' }, fallback: undefined })
    await play(provider, { steering, dig, subAgents })
    expect(child.requests[0]?.messages).to.deep.equal([user('look there')])
    expect(provider.requests[1]?.messages.at(-1)).to.deep.equal(told('a'))
  })
})

describe('what a person has told a run that another process had begun', () => {
  const KEEPER = { note() {}, stored: async () => true }
  const progressOf = (more: Partial<RunState> = {}) => {
    const totals = { usage: { ...USAGE }, costUsd: 1, turns: 1, unpriced: [] }
    return new RunProgress(KEEPER, { state: { ...new RunProgress(KEEPER).state, hasBegun: true, totals, ...more } })
  }

  it('D49.6: what its present turn had read is shown again, but is in the history once, and what waited comes behind it', async () => {
    const steering = new Steering()
    steering.restore({ steers: [{ id: 'a' }, steer('b'), steer('c')], turns: [1, 2] })
    const conversation = new Conversation({ messages: [user('dig'), told('a'), says('soon'), told('b')] })
    const provider = scripted(says200('gold'))
    const { events } = await play(provider, { steering, conversation, progress: progressOf() })
    expect(steered(events)).to.deep.equal([2, 'b', 'c'])
    expect(provider.requests[0]?.messages.slice(3)).to.deep.equal([told('b'), told('c')])
    expect(() => steering.add(steer('a'))).to.not.throw()
  })

  it('what the store needs: what is new, or all, of which complete turns have the text', () => {
    const steering = new Steering()
    steering.add(steer('a'))
    expect(steering.toStore(false, 0)).to.deep.equal([steer('a')])
    steering.take(1)
    steering.add(steer('b'))
    expect(steering.toStore(false, 0)).to.deep.equal([steer('b')])
    expect(steering.toStore(true, 1)).to.deep.equal([{ id: 'a' }, steer('b')])
    expect([...steering.turns]).to.deep.equal([1])
  })
})
