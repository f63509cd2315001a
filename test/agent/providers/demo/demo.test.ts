import { oneByOne } from '../../../../shared/kernel/async/batch.ts'
// Tests demo.ts and script.ts: the turns that a prompt scripts.

import { expect } from 'chai'
import { createDemoProvider } from '../../../../shared/agent/providers/demo/demo.ts'
import type { AssistantBlock, Message, ModelPart, ToolResultBlock } from '../../../../shared/agent/providers/port.ts'
import { ask, partsOf, request, textOf } from '../ai-sdk/setup.ts'

const demo = createDemoProvider()

const asking = (text: string): Message[] => [{ role: 'user', text }]

const answer = (messages: Message[]) => ask(demo, request({ messages }))

const usageOf = async (prompt: string) => partsOf(await answer(asking(prompt)), 'finish')[0]?.usage

/** The texts of the text blocks. */
function blocks(parts: ModelPart[]): string[] {
  const said = ['']
  for (const part of parts) {
    if (part.type === 'text_delta') said.push(said.pop() + part.text)
    if (part.type === 'text_end') said.push('')
  }
  return said.slice(0, -1)
}

/** Plays a run in which every tool that the demo calls returns `output`. */
async function run(prompt: string, output = 'forty-two') {
  const messages = asking(prompt)
  const turns: ModelPart[][] = []
  for (;;) {
    const parts = await answer(messages)
    turns.push(parts)
    const calls = partsOf(parts, 'tool_call')
    if (calls.length === 0) return turns
    const used = calls.map(
      ({ id, toolName, input }): AssistantBlock => ({ type: 'tool_use', id, toolName, input: JSON.parse(input) }),
    )
    const results = calls.map(({ id, toolName }): ToolResultBlock => ({ id, toolName, output, isError: false }))
    messages.push({ role: 'assistant', blocks: used }, { role: 'tool', results })
  }
}

describe('the demo model', () => {
  it('D1.4: states in its first text that it is a demo, and echoes the prompt', async () => {
    const [first, second] = blocks(await answer(asking('hello there\nfriend')))
    expect(first).to.include('demo model')
    expect(second).to.equal('You wrote: hello there\nfriend')
  })

  it('D1.4: introduces itself once in a conversation, and says with every later question that no model is configured', async () => {
    const said: Message = { role: 'assistant', blocks: [{ type: 'text', text: 'well' }] }
    const parts = await answer([...asking('one'), said, ...asking('two')])
    expect(blocks(parts)).to.deep.equal(['No model is configured. You wrote: two'])
  })

  it('D1.4: does not repeat a text above the first directive, and repeats one below it', async () => {
    const said = async (prompt: string) => blocks(await answer(asking(prompt))).slice(1)
    expect(await said('Write a note, but ask me first.\n\n/say one')).to.deep.equal(['one'])
    expect(await said('/say one\nand this')).to.deep.equal(['one', 'You wrote: and this'])
  })

  it('D1.4: is deterministic', async () => {
    const messages = asking('/think hm\n/say one two\n/tool Read {"path":"a"}')
    expect(await answer(messages)).to.deep.equal(await answer(messages))
  })

  it('streams text and thinking word by word, one block for each directive', async () => {
    const parts = await answer(asking('/think let me see\n/say one two\n/say three'))
    expect(partsOf(parts, 'thinking_delta').map(({ text }) => text)).to.deep.equal(['let', ' me', ' see'])
    expect(parts[3]).to.deep.equal({ type: 'thinking_end' })
    expect(blocks(parts).slice(1)).to.deep.equal(['one two', 'three'])
    expect(parts.at(-1)).to.include({ type: 'finish', reason: 'end_turn' })
  })

  it('D1.4: ends each turn at its tool call, and reports the results in the last one', async () => {
    const turns = await run('/say a\n/tool Read {"path":"x"}\n/say b\n/tool Glob\n/say c')
    expect(
      turns.map((parts) => partsOf(parts, 'tool_call').map(({ toolName, input }) => [toolName, input])),
    ).to.deep.equal([[['Read', '{"path":"x"}']], [['Glob', '{}']], []])
    expect(turns.map((parts) => parts.at(-1)).map((part) => part?.type === 'finish' && part.reason)).to.deep.equal([
      'tool_use',
      'tool_use',
      'end_turn',
    ])
    expect(turns.map((parts) => blocks(parts).at(-1))).to.deep.equal([
      'a',
      'b',
      'Read answered: forty-two\nGlob answered: forty-two',
    ])
    expect(new Set(turns.flatMap((parts) => partsOf(parts, 'tool_call').map(({ id }) => id)))).to.have.property(
      'size',
      2,
    )
  })

  it('D5.4: calls ExitPlanMode for /plan', async () => {
    const [first = []] = await run('/plan {"steps":[{"id":"s1","prompt":"do"}]}')
    expect(partsOf(first, 'tool_call')[0]).to.include({
      toolName: 'ExitPlanMode',
      input: '{"steps":[{"id":"s1","prompt":"do"}]}',
    })
  })

  it('fails with the code of /fail, without an introduction before it, and ends the answer there', async () => {
    const parts = await answer(asking('/fail provider_unavailable\n/say never'))
    expect(parts).to.have.length(1)
    expect(parts[0]).to.have.nested.include({ 'failure.code': 'provider_unavailable', 'failure.isRetryable': true })
    const late = await answer(asking('/say so far\n/fail content_filtered'))
    expect(blocks(late)).to.include('so far')
    expect(late.at(-1)).to.have.nested.include({ 'failure.code': 'content_filtered', 'failure.isRetryable': false })
  })

  for (const line of [
    '/dance',
    '/tool',
    '/tool Read {"path"',
    '/tool Read [1]',
    '/plan 7',
    '/fail nothing',
    '/fail toString',
    '/sleep soon',
    '/sleep 600001',
    '/say',
  ]) {
    it(`explains the directives for "${line}" instead of failing`, async () => {
      const parts = await answer(asking(line))
      expect(textOf(parts)).to.match(/Not understood: .*\/tool NAME \{json\}/)
      expect(parts.at(-1)).to.include({ type: 'finish', reason: 'end_turn' })
    })
  }

  it('ends /sleep when the run is aborted', async () => {
    const caller = new AbortController()
    const asleep = ask(demo, request({ messages: asking('/sleep 60000\n/say never') }), caller.signal)
    setImmediate(() => caller.abort())
    expect(await asleep).to.be.empty
  })

  it('ends an aborted answer in the middle of a block', async () => {
    const caller = new AbortController()
    const seen: string[] = []
    const asked = request({ messages: asking(`/say ${'word '.repeat(500)}`) })
    for await (const part of oneByOne(demo.stream(asked, caller.signal))) {
      seen.push(part.type)
      if (seen.length === 40) caller.abort()
    }
    expect(seen).to.have.length(40)
  })

  it('counts a token for four characters', async () => {
    const [short, long] = [await usageOf('/say a'), await usageOf(`/say ${'a'.repeat(401)}`)]
    expect((long?.input ?? 0) - (short?.input ?? 0)).to.equal(100)
    expect((long?.output ?? 0) - (short?.output ?? 0)).to.equal(100)
  })
})
