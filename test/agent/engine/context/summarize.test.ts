import { expect } from 'chai'
import { summarize } from '../../../../shared/agent/engine/context/summarize.ts'
import { failure } from '../../../../shared/agent/providers/failures/failures.ts'
import type { ModelPart, ModelProvider, ModelRoute, Usage } from '../../../../shared/agent/providers/port.ts'
import { accountOf, says200, scripted, TOO_LONG, talk, USAGE } from './setup.ts'

const NONE = { text: undefined, spent: undefined }
const MESSAGES = talk(2)

/** Summarises in at most 100 characters. */
async function play(provider: ModelProvider, { maxChars = 10_000, spare, signal }: Options = {}) {
  const route = () => ({
    primary: { provider, model: 'm' },
    fallback: spare && { provider: spare, model: 'spare' },
  })
  const none = () => {
    throw new Error('a summary asks for its own route')
  }
  const models = { main: none, subAgents: none, summaries: route, priceOf: () => 0, windowOf: () => undefined }
  const lengths = { maxChars, summaryChars: 100 }
  let spent: { usage: Usage; route: ModelRoute } | undefined
  const account = accountOf((each) => {
    spent = each
  })
  const steps = summarize(MESSAGES, lengths, { models, signal: signal ?? new AbortController().signal, account })
  const warnings: string[] = []
  while (true) {
    const { done, value } = await steps.next()
    if (done) return { text: value, spent, warnings }
    warnings.push(value.type === 'warning' ? value.code : value.type)
  }
}

type Options = { maxChars?: number; spare?: ModelProvider; signal?: AbortSignal }

describe('a summary', () => {
  it('is the trimmed text of the model, with the usage that the provider reports', async () => {
    const { text, spent } = await play(scripted(says200(' they spoke \n')))
    expect(text).to.equal('they spoke')
    expect(spent).to.deep.include({ usage: USAGE })
    expect(spent?.route.model).to.equal('m')
  })

  it('is not requested when the conversation is too long even in its shortest form', async () => {
    const provider = scripted(says200('they spoke'))
    expect(await play(provider, { maxChars: 500 })).to.deep.include(NONE)
    expect(provider.requests).to.have.length(0)
  })

  it('is missing when the model fails, which costs something only after some text', async () => {
    expect(await play(scripted(TOO_LONG))).to.deep.include(NONE)
    const { text, spent } = await play(scripted([{ type: 'text_delta', text: 'they' }, ...TOO_LONG]))
    expect(text).to.equal(undefined)
    expect(spent?.usage.output).to.equal(1)
  })

  it('is missing when the model says nothing, which costs something all the same', async () => {
    const { text, spent } = await play(scripted(says200(' ')))
    expect(text).to.equal(undefined)
    expect(spent?.usage).to.deep.equal(USAGE)
  })

  it('D5.5: of the fallback is charged to the fallback', async () => {
    const down: ModelPart[] = [
      { type: 'failure', failure: failure('provider_rejected', 'out_of_credit', 'no', { isFailover: true }) },
    ]
    const { text, spent, warnings } = await play(scripted(down), { spare: scripted(says200('they spoke')) })
    expect(text).to.equal('they spoke')
    expect(spent?.route.model).to.equal('spare')
    expect(warnings).to.deep.equal(['provider_failover'])
  })

  it('of exactly the limit is whole, one character more ends the call and is cut', async () => {
    const [whole, long] = [
      await play(scripted(says200('x'.repeat(100)))),
      await play(scripted(says200('x'.repeat(101)))),
    ]
    expect(whole.text).to.equal('x'.repeat(100))
    expect(whole.spent?.usage).to.deep.equal(USAGE)
    expect(long.text).to.equal(`${'x'.repeat(100)}…`)
    expect(long.spent?.usage.output).to.equal(26) // It is estimated, since the provider did not get to count.
  })

  it('is complete with the model’s finish, though its parts do not end', async () => {
    async function* stream() {
      yield* says200('they spoke')
      await new Promise(() => {})
    }
    expect(await play({ type: 'scripted', stream })).to.include({ text: 'they spoke' })
  })

  it('is missing when the run was aborted', async () => {
    const abort = new AbortController()
    const provider = scripted(() => {
      abort.abort('cancelled')
      return []
    })
    expect(await play(provider, { signal: abort.signal })).to.deep.include(NONE)
  })

  it('is the text so far when the model’s parts end without a last one', async () => {
    expect(await play(scripted([{ type: 'text_delta', text: 'they' }]))).to.include({ text: 'they' })
  })
})
