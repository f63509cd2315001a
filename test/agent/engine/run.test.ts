import { expect } from 'chai'
import { abortEvent } from '../../../shared/agent/engine/run.ts'
import { type EarlierProgress, RunProgress } from '../../../shared/agent/engine/run-progress.ts'
import { failure } from '../../../shared/agent/providers/failures/failures.ts'
import type { AssistantBlock, ModelPart, ModelProvider } from '../../../shared/agent/providers/port.ts'
import { succeed } from '../../../shared/agent/tools/port.ts'
import type { RunErrorCode, WarningEvent } from '../../../shared/kernel/events.ts'
import { digs, play, says, says200, scripted, USAGE, user } from './context/setup.ts'

const TWO_TURNS = ['turn_start', 'tool_use', 'tool_result', 'turn_end', 'turn_start', 'text_delta', 'text', 'turn_end']
const REFUSED: ModelPart[] = [
  { type: 'failure', failure: failure('provider_rejected', 'bad_request', 'no such field') },
]

describe('the loop of a run', () => {
  it('api.md Events: calls the model again with the results of its tool calls, until it has answered', async () => {
    const provider = scripted(digs('a'), says200('gold'))
    const { types, events } = await play(provider, { output: 'a nugget' })
    expect(types).to.deep.equal([...TWO_TURNS, 'done'])
    expect(events.flatMap((event) => (event.type === 'turn_start' ? [event.turn_number] : []))).to.deep.equal([1, 2])
    expect(provider.requests).to.have.length(2)
    expect(provider.requests[1]?.messages.map(({ role }) => role)).to.deep.equal(['user', 'assistant', 'tool'])
    expect(JSON.stringify(provider.requests[1]?.messages)).to.include('a nugget')
  })

  it('adds the prompt and what every turn said and found to the conversation, behind its history', async () => {
    const messages = [user('before'), says('an answer')]
    const { conversation } = await play(scripted(digs('a'), says200('gold')), { messages, prompt: 'dig' })
    expect(conversation.messages.map(({ role }) => role)).to.deep.equal([
      'user',
      'assistant',
      'user',
      'assistant',
      'tool',
      'assistant',
    ])
    expect(conversation.messages[2]).to.deep.equal(user('dig'))
  })

  it('sends the background ahead of the history, in each request, and keeps it out of the conversation', async () => {
    const provider = scripted(digs('a'), says200('gold'))
    const { conversation } = await play(provider, { background: 'the user likes gold', prompt: 'dig' })
    for (const { messages } of provider.requests) expect(messages[0]).to.deep.equal(user('the user likes gold'))
    expect(conversation.messages[0]).to.deep.equal(user('dig'))
  })

  it('done adds up the tokens and the cost of all turns', async () => {
    const { events, done } = await play(scripted(digs('a'), digs('b'), says200('gold')), {})
    expect(done).to.include({
      total_input_tokens: 3 * USAGE.input,
      total_output_tokens: 3 * USAGE.output,
      cost_usd: 3 * (USAGE.input + USAGE.output),
      turn_count: 3,
      stop_reason: 'end_turn',
    })
    const ends = events.flatMap((event) => (event.type === 'turn_end' ? [event.turn_number] : []))
    expect(ends).to.deep.equal([1, 2, 3])
  })

  it('the warnings of the input follow the first turn_start, and come once', async () => {
    const warning: WarningEvent = { type: 'warning', code: 'customer_scope_fallback', message: 'no store', detail: {} }
    const { types } = await play(scripted(digs('a'), says200('gold')), { warnings: [warning] })
    expect(types).to.deep.equal(['turn_start', 'warning', ...TWO_TURNS.slice(1), 'done'])
  })

  it('D4.4: after max_turns turns with tool calls the error max_turns_exceeded is the last event, with what was spent', async () => {
    const provider = scripted(digs('a'), digs('b'), says200('never asked for'))
    const { last, types } = await play(provider, { maxTurns: 2 })
    expect(last).to.include({ type: 'error', code: 'max_turns_exceeded', total_input_tokens: 2 * USAGE.input })
    expect(types.filter((type) => type === 'error' || type === 'done')).to.have.length(1)
    expect(provider.requests).to.have.length(2)
  })

  it('a failure of the model is the last event, with what the turns before have spent', async () => {
    const { last, types, conversation } = await play(scripted(digs('a'), REFUSED), {})
    expect(last).to.include({ type: 'error', code: 'provider_rejected', total_input_tokens: USAGE.input })
    expect(types.slice(-2)).to.deep.equal(['turn_start', 'error'])
    expect(conversation.messages.at(-1)?.role).to.equal('tool')
  })

  it('D4.5f: an abort in the middle of an answer ends the run with its reason, and no further request', async () => {
    const run = new AbortController()
    const provider = scripted(digs('a'), () => {
      run.abort('cancelled')
      return says200('too late')
    })
    const { last, types } = await play(provider, { signal: run.signal })
    expect(last).to.include({ type: 'error', code: 'cancelled', error: 'the run was cancelled' })
    expect(types).to.not.include('done')
    expect(provider.requests).to.have.length(2)
  })

  it('D4.5f: the tool calls of an answer in whose middle the run is aborted are not made', async () => {
    const run = new AbortController()
    async function* stream() {
      yield* digs('a').slice(0, 1)
      run.abort('cancelled')
    }
    const { types } = await play({ type: 'scripted', stream }, { signal: run.signal })
    expect(types).to.deep.equal(['turn_start', 'error'])
  })

  it('D4.6: a turn whose tool call was under way when the run was aborted is left out of the conversation', async () => {
    const run = new AbortController()
    const dig = async () => {
      run.abort('cancelled')
      return succeed('')
    }
    const { last, types, conversation } = await play(scripted(digs('a')), { signal: run.signal, dig, prompt: 'dig' })
    expect(last).to.include({ type: 'error', code: 'cancelled' })
    expect(types).to.deep.equal(['turn_start', 'tool_use', 'error'])
    expect(conversation.messages).to.deep.equal([user('dig')])
  })

  it('D4.10: a model without a price costs 0, with one warning for all of its turns', async () => {
    const { events, types, warnings, done } = await play(scripted(digs('a'), says200('gold')), {
      priceOf: () => undefined,
    })
    expect(warnings).to.have.length(1)
    expect(warnings[0]).to.deep.include({ code: 'price_unknown' }).and.have.nested.property('detail.model', 'm')
    expect(types.slice(0, 5)).to.deep.equal(['turn_start', 'tool_use', 'tool_result', 'warning', 'turn_end'])
    expect(events[4]).to.include({ cost_usd: 0 })
    expect(done).to.include({ turn_count: 2, cost_usd: 0 })
    const priced = await play(scripted(says200('gold')), {})
    expect(priced.events.at(-2)).to.include({ type: 'turn_end', cost_usd: USAGE.input + USAGE.output })
  })

  it('api.md Events 6: ends with the event of a tool that ends it, after the end of its turn, and asks the model no more', async () => {
    const ending = { type: 'plan_queued', plan_id: 'p1' } as const
    const provider = scripted(digs('a'))
    const { types, last, conversation } = await play(provider, { dig: async () => ({ ...succeed('queued'), ending }) })
    expect(types).to.deep.equal(['turn_start', 'tool_use', 'tool_result', 'turn_end', 'plan_queued'])
    expect(last).to.include({ ...ending, total_tokens: USAGE.input + USAGE.output, turn_count: 1 })
    expect(provider.requests).to.have.length(1)
    expect(conversation.messages.at(-1)?.role).to.equal('tool')
  })

  it('an answer without any text adds nothing to the conversation', async () => {
    const silent: ModelPart[] = [{ type: 'finish', reason: 'end_turn', usage: USAGE }]
    const { types, conversation } = await play(scripted(silent), { prompt: 'dig' })
    expect(types).to.deep.equal(['turn_start', 'turn_end', 'done'])
    expect(conversation.messages).to.deep.equal([user('dig')])
  })

  it('D32.9a: keeps the answer whose tool calls begin, until its turn is complete', async () => {
    const progress = new RunProgress({ note() {}, stored: async () => (kept.push(progress.takeStep(true)), true) })
    const kept: unknown[] = []
    await play(scripted(digs('a'), says200('gold')), { progress })
    expect(kept).to.have.length(1)
    expect(kept[0]).to.deep.include({ turn: 1, model: 'm', calls: { a: { hasBegun: true } } })
    expect([progress.takeStep(true), progress.stopReason]).to.deep.equal([undefined, 'end_turn'])
  })

  it('D4.13, D5.3: a sub-agent is a run of its own on its own model, and its cost is part of the totals', async () => {
    const [provider, other] = [scripted(digs('a'), says200('gold')), scripted(says200('a vein'))]
    const dig: NonNullable<Parameters<typeof play>[1]['dig']> = async (_input, { agents }) =>
      succeed((await agents.run({ description: 'look', prompt: 'look there', tools: [] })).result)
    const subAgents = () => ({ primary: { provider: other, model: 'small' }, fallback: undefined })
    const { events, done, conversation } = await play(provider, { dig, subAgents, prompt: 'dig' })
    expect(other.requests[0]).to.deep.include({ messages: [user('look there')], tools: [], stopSequences: [] })
    expect(other.requests[0]?.system).to.match(/^You are a sub-agent/)
    expect(events.flatMap((event) => ('subagent_id' in event ? [event.type] : []))).to.deep.equal([
      'subagent_start',
      ...Array.from({ length: 5 }, () => 'subagent_event'),
      'subagent_end',
    ])
    expect(events.find(({ type }) => type === 'subagent_start')).to.include({ model: 'small' })
    expect(JSON.stringify(conversation.messages[2])).to.include('a vein')
    expect(done).to.include({ turn_count: 2, total_input_tokens: 3 * USAGE.input })
  })

  it('a text that a stop sequence ends is done with stop_sequence', async () => {
    const { done } = await play(scripted(says200('one STOP two')), { stopSequences: ['STOP'] })
    expect(done).to.include({ stop_reason: 'stop_sequence' })
  })

  for (const [code, text] of [
    ['session_deleted', 'the session was deleted'],
    ['worker_draining', 'the server is shutting down'],
    ['worker_lost', 'the worker that ran this was lost'],
    ['slow_consumer', 'the run was ended'],
  ] as const)
    it(`the event of a run that was aborted with ${code} says so in words`, () => {
      const reason: RunErrorCode = code
      expect(abortEvent(AbortSignal.abort(reason))).to.include({ type: 'error', code, error: text })
    })
})

describe('a run that another process had begun', () => {
  const KEEPER = { note() {}, stored: async () => true }
  /** The stored progress of a run that has completed one turn. `step`: the second one had begun its tool calls. */
  function progressOf(step?: EarlierProgress['step'], more: Partial<EarlierProgress['state']> = {}) {
    const { state } = new RunProgress(KEEPER)
    const totals = { usage: { ...USAGE }, costUsd: 1, turns: 1, unpriced: [] }
    return new RunProgress(KEEPER, { state: { ...state, hasBegun: true, totals, ...more }, step })
  }
  const blocks: AssistantBlock[] = [
    { type: 'thinking', text: 'hm', meta: {} },
    { type: 'thinking', text: '', meta: {} },
    { type: 'text', text: 'I dig.' },
  ]
  const stepOf = (model: string) => {
    const toolCalls = [{ type: 'tool_call', id: 'c1', toolName: 'Dig', input: '{}' } as const]
    const answer = { blocks, toolCalls, outputChars: 8, outcome: 'complete', usage: USAGE } as const
    return { turn: 2, model, answer: { ...answer, blocks, toolCalls }, calls: {}, agents: {}, agentAsks: [] }
  }
  const messages = [user('dig'), says('soon')]

  it('D32.7a: goes on behind its last complete turn, with its totals, and does not add the prompt again', async () => {
    const { events, done, conversation } = await play(scripted(), { messages, progress: progressOf() })
    expect(events[0]).to.deep.include({ type: 'turn_start', turn_number: 2 })
    expect(conversation.messages).to.deep.equal([...messages, says('ok')])
    expect(done).to.include({ turn_count: 2, total_input_tokens: 2 * USAGE.input })
  })

  it('D32.9a: shows the answer that was kept again, one increment a block, and makes its calls without asking the model', async () => {
    const provider = scripted(says200('gold'))
    const { events, types } = await play(provider, { messages, progress: progressOf(stepOf('m')), output: 'a nugget' })
    const shown = ['turn_start', 'thinking_delta', 'thinking', 'text_delta', 'text', 'tool_use', 'tool_result']
    expect(types.slice(0, 9)).to.deep.equal([...shown, 'turn_end', 'turn_start'])
    expect(events[1]).to.include({ text: 'hm' })
    expect(events[4]).to.include({ text: 'I dig.' })
    expect(provider.requests).to.have.length(1)
    expect(provider.requests[0]?.messages).to.have.length(4)
  })

  it('D32.9a: the kept answer costs what the model that gave it costs', async () => {
    const priced: string[] = []
    const priceOf = (_provider: unknown, model: string) => (priced.push(model), 1)
    const fallback = { provider: scripted(), model: 'spare' }
    for (const model of ['m', 'spare'])
      await play(scripted(), { messages, progress: progressOf(stepOf(model)), fallback, priceOf })
    await play(scripted(), { messages, progress: progressOf(stepOf('m')), priceOf })
    expect(priced).to.deep.equal(['m', 'm', 'spare', 'm', 'm', 'm'])
  })

  it('D32.9a: a call that had begun is not made again', async () => {
    const step = { ...stepOf('m'), calls: { c1: { hasBegun: true } as const } }
    let ran = 0
    const dig = async () => (ran++, succeed(''))
    const { events } = await play(scripted(), { messages, progress: progressOf(step), dig })
    expect(events.find(({ type }) => type === 'tool_result')).to.deep.include({ is_error: true })
    expect(ran).to.equal(0)
  })

  it('D32.7a: only ends when all of its turns were complete', async () => {
    const provider: ModelProvider = scripted(() => expect.fail('the model was asked'))
    const { types, done } = await play(provider, {
      messages,
      progress: progressOf(undefined, { stopReason: 'end_turn' }),
    })
    expect([types, done?.turn_count]).to.deep.equal([['done'], 1])
  })
})
