import { expect } from 'chai'
import { type AnswerForm, triedForm, withSchema } from '../../../../shared/agent/engine/answers/typed-answer.ts'
import { Conversation } from '../../../../shared/agent/engine/conversation.ts'
import { run } from '../../../../shared/agent/engine/run.ts'
import { taskInput } from '../../../../shared/agent/engine/run-input.ts'
import { type EarlierProgress, RunProgress } from '../../../../shared/agent/engine/run-progress.ts'
import { failure } from '../../../../shared/agent/providers/failures/failures.ts'
import type { ModelPart, ModelProvider } from '../../../../shared/agent/providers/port.ts'
import { oneByOne } from '../../../../shared/kernel/async/batch.ts'
import { AppError } from '../../../../shared/kernel/errors.ts'
import type { AgentEvent } from '../../../../shared/kernel/events.ts'
import { digs, resourcesOf, says, says200, scripted, user } from '../context/setup.ts'

const SCHEMA = { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] }
const MISSING = { path: '/sum', message: 'is missing' }
const REFUSED: ModelPart[] = [
  { type: 'failure', failure: failure('provider_rejected', 'http_400', 'no response_format') },
]

/** Checks that `sum` is there. */
const CHECKER: AnswerForm['checker'] = {
  check: async (_schema, value) => (Object.hasOwn(Object(value) as object, 'sum') ? [] : [MISSING]),
}

type Options = { maxTurns?: number; checker?: AnswerForm['checker']; earlier?: EarlierProgress; history?: Conversation }

/** Runs an agent whose answer must have `sum`. `states` are those of its progress at the end of each turn. */
async function play(provider: ModelProvider, options: Options = {}) {
  const { maxTurns = 4, checker = CHECKER, earlier, history: conversation = new Conversation() } = options
  const route = () => ({ primary: { provider, model: 'm' }, fallback: undefined })
  const models = { main: route, subAgents: route, summaries: route, windowOf: () => undefined, priceOf: () => 0 }
  const output: AnswerForm = { name: 'answer', schema: SCHEMA, checker, native: triedForm() }
  const progress = new RunProgress({ note: () => {}, stored: async () => true }, earlier)
  const input = { ...taskInput({ prompt: 'add', systemPrompt: undefined, maxTurns, output, conversation }), progress }
  const events: AgentEvent[] = []
  const states: EarlierProgress[] = []
  const { signal } = new AbortController()
  for await (const event of oneByOne(run(input, { ...resourcesOf(models, 'gold'), signal }))) {
    events.push(event)
    if (event.type === 'turn_end') states.push({ state: progress.state })
  }
  return { events, states, conversation, last: events.at(-1) }
}

const warningsOf = (events: readonly AgentEvent[]) =>
  events.flatMap((event) => (event.type === 'warning' ? [event.code] : []))

describe('an agent whose last answer must fit a schema', () => {
  it('D41.1: uses its tools first, and `done` has the value', async () => {
    const provider = scripted(digs('a'), says200('{"sum": 3}'))
    const { last, events } = await play(provider)
    expect(last).to.deep.include({ type: 'done', stop_reason: 'end_turn', output: { sum: 3 }, turn_count: 2 })
    expect(warningsOf(events)).to.deep.equal([])
    expect(provider.requests.map(({ output }) => output)).to.deep.equal([
      { name: 'answer', schema: SCHEMA },
      { name: 'answer', schema: SCHEMA },
    ])
  })

  it('D41.2: is asked to correct a wrong answer in the same conversation, which the stream tells, beyond its max_turns', async () => {
    const provider = scripted(says200('{"total": 3}'), says200('{"sum": 3}'))
    const { last, events, conversation } = await play(provider, { maxTurns: 1 })
    expect(last).to.deep.include({ type: 'done', output: { sum: 3 }, turn_count: 2 })
    expect(events.filter(({ type }) => type === 'warning')).to.deep.equal([
      {
        type: 'warning',
        code: 'output_invalid',
        message: 'the answer does not fit its schema, and the agent is asked to correct it',
        detail: { problems: [MISSING] },
      },
    ])
    expect(conversation.messages.map(({ role }) => role)).to.deep.equal(['user', 'assistant', 'user', 'assistant'])
  })

  it('D41.2: the third wrong answer ends the run with invalid_output, its problems and all that it has used', async () => {
    const provider = scripted(says200('no'), says200('{}'), says200('{"total": 1}'))
    const { last } = await play(provider)
    expect(last).to.deep.include({ type: 'error', code: 'invalid_output', problems: [MISSING], turn_count: 3 })
    expect(provider.requests).to.have.length(3)
  })

  it('D41.2: an answer that is read as what it means is taken, with a warning', async () => {
    const { last, events } = await play(scripted(says200('Here it is: {"sum": 3}')))
    expect([warningsOf(events), last]).to.deep.equal([['output_repaired'], { ...last, output: { sum: 3 } }])
  })

  it('D41.3: a provider that rejects the form is asked without it from then on, which is no try and no turn', async () => {
    const provider = scripted(REFUSED, says200('no'), says200('{"sum": 3}'))
    const { last, events } = await play(provider)
    expect(last).to.deep.include({ type: 'done', output: { sum: 3 }, turn_count: 2 })
    expect(provider.requests.map(({ output }) => output !== undefined)).to.deep.equal([true, false, false])
    expect(events.filter(({ type }) => type === 'turn_start')).to.have.length(2)
  })

  it('D41.3: a provider that has taken the form is not asked without it', async () => {
    const { last } = await play(scripted(digs('a'), REFUSED))
    expect(last).to.deep.include({ type: 'error', code: 'provider_rejected' })
  })

  it('D41.4: a run that goes on elsewhere has the tries that it had left', async () => {
    const first = await play(scripted(says200('no'), says200('no'), REFUSED))
    const [, earlier] = first.states
    expect(earlier?.state.corrections).to.equal(2)
    const { last } = await play(scripted(says200('no')), { ...(earlier && { earlier }), history: first.conversation })
    expect(last).to.deep.include({ type: 'error', code: 'invalid_output', turn_count: 3 })
  })

  it('D41.4: a run of which only the end was missing ends with the value of its last answer', async () => {
    const { states } = await play(scripted(says200('{"sum": 3}')))
    const provider = scripted()
    const history = new Conversation({ messages: [user('add'), says('{"sum": 4}')] })
    const { last } = await play(provider, { ...(states[0] && { earlier: states[0] }), history })
    expect(last).to.deep.include({ type: 'done', output: { sum: 4 } })
    expect(provider.requests).to.deep.equal([])
  })

  it('waits for a check while too many wait', async () => {
    let isBusy = true
    const check: AnswerForm['checker']['check'] = async () => {
      if (!isBusy) return []
      isBusy = false
      throw new AppError('unavailable', 'too many checks wait')
    }
    const { last } = await play(scripted(says200('{}')), { checker: { check } })
    expect(last).to.deep.include({ type: 'done', output: {} })
  })

  it('reads the schema behind its system prompt', () => {
    expect(withSchema('Be kind.', { type: 'object' })).to.match(/^Be kind\.\n\nYour last .*\n\{"type":"object"\}$/s)
    expect(withSchema(undefined, {})).to.match(/^Your last /)
  })
})
