import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { answerDirectives } from './directives.ts'
import { bodyOf } from './drive.ts'
import { historyOf, lastAskedOf, promptOf } from './history.ts'
import type { Answer } from './model-server.ts'

const asked = (prompt: string) => answerDirectives({ prompt, lastAsked: prompt, results: [] })

const KIB = 'All work and no play makes a dull "text" for every reader here.\n'.repeat(16)

describe('the model that follows directives in its prompt', () => {
  const cases: [prompt: string, answer: Answer][] = [
    ['hello', { steps: [{ text: 'hello' }], honourStop: true }],
    ['please\n/say one two', { steps: [{ text: 'one two' }], honourStop: true }],
    ['/tokens 50 20', { steps: [{ tokens: 50, everyMs: 20 }], honourStop: true }],
    ['/tokens 50', { steps: [{ tokens: 50, everyMs: 0 }], honourStop: true }],
    [
      '/think hm\n/tool Read {"path": "a b"}\n/tool Glob',
      {
        steps: [{ thinking: 'hm' }, { tool: 'Read', input: '{"path": "a b"}' }, { tool: 'Glob', input: '{}' }],
        honourStop: true,
      },
    ],
    ['/blocks 2 1', { steps: [{ text: [KIB, KIB] }], honourStop: true }],
    ['/say a\n/reset', { steps: [{ text: 'a' }, { reset: true }], honourStop: true }],
    ['/error 429', { status: 429 }],
    ['/say a\n/error 529', { steps: [{ text: 'a' }, { error: { status: 529 } }], honourStop: true }],
    ['/toolong', { contextTooLong: true }],
    ['/say a\n/stop X', { steps: [{ text: 'a' }], honourStop: true, stopSequence: 'X' }],
    ['/unknown', { steps: [{ text: '/unknown' }], honourStop: true }],
  ]
  for (const [prompt, answer] of cases) {
    it(`answers ${JSON.stringify(prompt)}`, () => expect(asked(prompt)).to.deep.equal(answer))
  }

  it('answers the results of its tools with what follows /then', () => {
    const prompt = '/say a\n/tool Glob\n/then\n/say b'
    expect(asked(prompt)).to.deep.equal({
      steps: [{ text: 'a' }, { tool: 'Glob', input: '{}' }],
      honourStop: true,
    })
    const answer = answerDirectives({ prompt: '', lastAsked: prompt, results: [{ id: 'c', text: '42' }] })
    expect(answer).to.deep.equal({ steps: [{ text: 'b' }], honourStop: true })
  })

  it('finds what follows /then in the conversation behind the results', () => {
    const call = { id: 'c', function: { name: 'Glob', arguments: '{}' } }
    const history = historyOf('openai-chat', {
      messages: [
        { role: 'user', content: '/tool Glob\n/then\n/say b' },
        { role: 'assistant', content: 'a', tool_calls: [call] },
        { role: 'tool', tool_call_id: 'c', content: '42' },
      ],
    })
    expect([promptOf(history), lastAskedOf(history)]).to.deep.equal(['', '/tool Glob\n/then\n/say b'])
    expect(lastAskedOf([])).to.equal('')
  })

  it('repeats the results of its tools', () => {
    expect(answerDirectives({ prompt: '', lastAsked: '', results: [{ id: 'c', text: '42' }] })).to.equal(
      'The tool said: 42',
    )
  })

  it('runs as a process that prints its address and stops at SIGTERM', async () => {
    const main = fileURLToPath(new URL('main.ts', import.meta.url))
    const child = spawn(process.execPath, [main], {
      env: { ...process.env, PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [line]: string[] = await once(createInterface(child.stdout), 'line')
    const url = line?.replace('listening ', '')
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: '/say all is well' }] })
    const answer = await bodyOf(fetch(`${url}/chat/completions`, { method: 'POST', body }))
    expect(answer.choices[0].message.content).to.equal('all is well')
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).to.deep.equal([0, null])
  })
})
