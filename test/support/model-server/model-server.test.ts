import { expect } from 'chai'
import { type ClientName, deltas, drain, eachClient, HI, partsOf } from './drive.ts'

const USAGE = { input: 100, output: 20, cacheRead: 40, cacheWrite: 10, reasoning: 5 }

/** Clients whose format, or the client itself, lacks a feature. */
const NO_THINKING: ClientName[] = ['openai chat']
const NO_PIECES: ClientName[] = ['google']
const NO_CACHE_WRITE: ClientName[] = ['openai-compatible', 'google']
const NO_STOP: ClientName[] = ['openai responses']

eachClient('the scripted model', (name, use) => {
  it('continues a text after a pause, in the same block', async () => {
    const { server, model } = use()
    server.answer([{ text: ['a', 'b'] }, { wait: 1 }, { hold: Promise.resolve() }, { text: 'c' }])
    const parts = await drain(model)
    expect(deltas(parts, 'text-delta').join('')).to.equal('abc')
    expect(partsOf(parts, 'text-start')).to.have.length(1)
    expect(partsOf(parts, 'text-end')).to.have.length(1)
  })

  it('calls tools with the input in pieces', async () => {
    const { server, model } = use()
    const input = { path: 'a.txt', limit: 3 }
    server.answer([{ text: 'so' }, { tool: 'Read', input, chunks: 4 }, { tool: 'Glob', id: 'given' }])
    const parts = await drain(model)
    const calls = partsOf(parts, 'tool-call')
    expect(calls.map((call) => call.toolName)).to.deep.equal(['Read', 'Glob'])
    expect(calls.map((call) => JSON.parse(call.input))).to.deep.equal([input, {}])
    expect(calls[1]?.toolCallId).to.equal('given')
    const pieces = partsOf(parts, 'tool-input-delta').filter(({ id, delta }) => id === calls[0]?.toolCallId && delta)
    expect(pieces).to.have.length(NO_PIECES.includes(name) ? 1 : 4)
    expect(partsOf(parts, 'finish')[0]?.finishReason.unified).to.equal('tool-calls')
  })

  it('reports the tokens of input, cache, output and thinking', async () => {
    const { server, model } = use()
    server.answer({ steps: [{ text: 'ok' }], usage: USAGE })
    const usage = partsOf(await drain(model), 'finish')[0]?.usage
    const cache = NO_CACHE_WRITE.includes(name)
      ? { noCache: 60, cacheWrite: undefined }
      : { noCache: 50, cacheWrite: 10 }
    expect(usage?.inputTokens).to.deep.equal({ total: 100, cacheRead: 40, ...cache })
    expect(usage?.outputTokens).to.deep.equal({ total: 20, text: 15, reasoning: 5 })
  })

  if (!NO_STOP.includes(name)) {
    it('cuts its text at the earliest stop sequence when it honours them', async () => {
      const { server, model } = use()
      server.answer({ steps: [{ text: 'one two STOP three' }, { tool: 'Read' }], honourStop: true })
      const parts = await drain(model, { stopSequences: ['three', 'o S'] })
      expect(deltas(parts, 'text-delta').join('')).to.equal('one tw')
      expect(partsOf(parts, 'tool-call')).to.deep.equal([])
      const raw = partsOf(parts, 'finish')[0]?.finishReason.raw?.toLowerCase()
      expect(raw).to.equal(name === 'anthropic' ? 'stop_sequence' : 'stop')
    })
  }

  it('sends the same answer without a stream', async () => {
    const { server, model } = use()
    const steps = [{ thinking: 'hm' }, { text: 'so it is' }, { tool: 'Read', input: { path: 'a' } }]
    server.answer({ steps, usage: USAGE })
    const { content, finishReason, usage } = await model.doGenerate(HI)
    const kinds = NO_THINKING.includes(name) ? ['text', 'tool-call'] : ['reasoning', 'text', 'tool-call']
    expect(content.map((part) => part.type)).to.deep.equal(kinds)
    expect(content.at(-1)).to.include({ toolName: 'Read', input: '{"path":"a"}' })
    expect(finishReason.unified).to.equal('tool-calls')
    expect(usage.inputTokens.total).to.equal(100)
    expect(server.requests[0]).to.include({ streamed: false, prompt: 'hi' })
  })

  it('receives the results of its tools', async () => {
    const { server, model } = use()
    server.answer([{ tool: 'Read', input: { path: 'a' } }])
    server.otherwise(({ results }) => `it says ${results.map(({ text }) => text).join()}`)
    const [call] = partsOf(await drain(model), 'tool-call')
    if (!call) throw new Error('no call')
    const { type, toolCallId, toolName, input, providerMetadata: providerOptions = {} } = call
    const said = { type, toolCallId, toolName, input: JSON.parse(input), providerOptions }
    const output = { type: 'text', value: 'forty-two' } as const
    const parts = await drain(model, {
      prompt: [
        ...HI.prompt,
        { role: 'assistant', content: [said] },
        { role: 'tool', content: [{ type: 'tool-result', toolCallId, toolName, output }] },
      ],
    })
    expect(deltas(parts, 'text-delta').join('')).to.match(/^it says .*forty-two/)
  })
})
