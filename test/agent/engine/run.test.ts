import { expect } from 'chai'
import { abortEvent } from '../../../shared/agent/engine/run.ts'
import { failure } from '../../../shared/agent/providers/failures/failures.ts'
import type { ModelPart } from '../../../shared/agent/providers/port.ts'
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
