// Tests errors.ts, follow.ts, pages.ts and transport.ts where something else answers.
import { expect } from 'chai'
import { AgentEngine, ConnectionFailed } from '../../shared/client/client.ts'
import { useOpened } from '../support/fixture.ts'
import { startStrangers } from './strangers.ts'

const callsOf = (engine: AgentEngine): Record<string, () => Promise<unknown>> => ({
  start: () => engine.runs.start({ prompt: 'hi' }),
  run: () => engine.run({ prompt: 'hi' }).result(),
  resume: () => engine.runs.resume('run_1').result(),
  list: () => engine.runs.list().all(),
  get: () => engine.runs.get('run_1'),
  me: () => engine.me(),
  text: () => engine.run({ prompt: 'hi' }).textStream().next(),
  open: () => engine.sessions.open('a'),
  watch: () => engine.permissions.watch().next(),
  flow: () => engine.flows.run('total', { input: {}, instance: 'main' }),
  submit: () => engine.plans.submit({ steps: [] }),
  progress: () => engine.plans.of('plan_1').result(),
  retry: () => engine.plans.of('plan_1').retry(),
  events: () => engine.events().next(),
})

describe('the TypeScript client at something that is no agent-engine', () => {
  const strangers = useOpened(startStrangers)

  it('ends each call with ConnectionFailed, which shows the beginning of what came, after one request', async () => {
    for (const url of strangers.urls) {
      const name = strangers.nameOf(url)
      const { events, ...others } = callsOf(new AgentEngine({ url }))
      // A tenant's events are passed on as they come.
      const isStream = ['numbers', 'fields'].includes(name)
      const calls = Object.entries({ ...others, ...(!isStream && { events }) })
      const ends = await Promise.all(
        calls.map(([call, begin]) =>
          begin().then(
            () => `${call} answered`,
            (cause: unknown) =>
              cause instanceof ConnectionFailed && cause.message.length < 300 ? '' : `${call} ${String(cause)}`,
          ),
        ),
      )
      expect(
        ends.filter((end) => end !== ''),
        name,
      ).to.deep.equal([])
    }
    const others = [...strangers.asked].filter(([name]) => name !== 'page' && name !== 'redirect' && name !== 'moved')
    // The inbox reads the list beside its stream.
    for (const [name, count] of others)
      expect(count, `requests of ${name}`).to.be.at.most(Object.keys(callsOf(new AgentEngine({ url: '' }))).length + 1)
  })
})
