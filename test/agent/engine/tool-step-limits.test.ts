import { getEventListeners } from 'node:events'
import { expect } from 'chai'
import { toolUseBlocks } from '../../../shared/agent/engine/tool-step.ts'
import { fail, succeed, type ToolContext } from '../../../shared/agent/tools/port.ts'
import { call, collect, resourcesOf, stepOf, tool, typesOf } from './tool-step-setup.ts'

/** JSON of objects nested this many levels deep. */
const nested = (levels: number): string => `${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`

describe('the limits of a tool step', () => {
  it('an input of 64 levels is accepted, one of 65 is not, in objects and in arrays', async () => {
    const resources = resourcesOf({ tools: [tool('Read')] })
    for (const [input, isError] of [
      [nested(64), false],
      [nested(65), true],
      [`{"a":${'['.repeat(63)}${']'.repeat(63)}}`, false],
      [`{"a":${'['.repeat(64)}${']'.repeat(64)}}`, true],
      ['{"a":null,"b":[1,"x",null]}', false],
      ['null', true],
      ['"text"', true],
    ] as const) {
      const { results } = await collect([call('c1', 'Read', input)], resources)
      expect(results[0]?.isError, input.slice(0, 30)).to.equal(isError)
    }
  })

  it('an input that is refused stands as text in the event and in the history', async () => {
    const { events } = await collect([call('c1', 'Read', nested(65))], resourcesOf({ tools: [tool('Read')] }))
    expect(events[0]).to.deep.include({ type: 'tool_use', input: { invalid_arguments: nested(65) } })
    expect(toolUseBlocks([call('c1', 'Read', '[1]')])).to.deep.equal([
      { type: 'tool_use', id: 'c1', toolName: 'Read', input: { invalid_arguments: '[1]' } },
    ])
  })

  it('an input of spaces counts as {}', async () => {
    const { results } = await collect([call('c1', 'Read', ' \n')], resourcesOf({ tools: [tool('Read')] }))
    expect(results[0]?.isError).to.equal(false)
  })

  it('the history keeps the data that a provider attached to a call', () => {
    const meta = { google: { signature: 'x' } }
    const [block] = toolUseBlocks([{ ...call('c1', 'Read'), meta }])
    expect(block).to.deep.include({ meta })
  })

  it('the refusal of an unknown tool names all tools', async () => {
    const { results } = await collect([call('c1', 'Rm')], resourcesOf({ tools: [tool('Read'), tool('Glob')] }))
    expect(results[0]?.output).to.equal('There is no tool Rm. The tools are: Read, Glob.')
  })

  it('an output is measured in code points', async () => {
    const outputOf = async (output: string) => {
      const resources = resourcesOf({ tools: [tool('Read', async () => succeed(output))], maxOutputChars: 10 })
      return collect([call('c1', 'Read')], resources)
    }
    const whole = await outputOf('😀'.repeat(10))
    expect(whole.results[0]?.output).to.equal('😀'.repeat(10))
    expect(typesOf(whole.events)).to.deep.equal(['tool_use', 'tool_result'])
    const cut = await outputOf('😀'.repeat(11))
    expect(cut.results[0]?.output).to.equal(`${'😀'.repeat(5)}\n[… 1 of 11 characters left out …]\n${'😀'.repeat(5)}`)
    expect(cut.events[1]).to.deep.include({ detail: { id: 'c1', tool_name: 'Read', chars: 11, max_chars: 10 } })
  })

  it('progress is left out while the reader is behind, and the result is not', async () => {
    const eager = tool('Dig', async (_input, { report }) => {
      for (let n = 1; n <= 1_000; n++) report(n, 'holes')
      return succeed('found')
    })
    const { events } = await collect([call('c1', 'Dig')], resourcesOf({ tools: [eager] }))
    expect(events.filter(({ type }) => type === 'tool_progress')).to.have.length(256)
    expect(events.at(-1)).to.include({ type: 'tool_result', output: 'found' })
  })
})

describe('a tool step and its run', () => {
  it('leaves no listener at the run’s signal', async () => {
    const { signal } = new AbortController()
    const tools = [tool('Read')]
    await collect([call('c1', 'Read'), call('c2', 'Read')], resourcesOf({ tools, signal }))
    expect(getEventListeners(signal, 'abort')).to.have.length(0)
  })

  it('starts no tool when the run is aborted while the process may act', async () => {
    const abort = new AbortController()
    const canAct = async () => {
      abort.abort('cancelled')
      return true
    }
    const write = tool('Write', () => expect.fail('it ran'))
    const onToolBug = (_name: string, cause: unknown) => expect.fail(String(cause))
    const resources = resourcesOf({ tools: [write], canAct, onToolBug, signal: abort.signal })
    expect((await collect([call('c1', 'Write')], resources)).results).to.deep.equal([])
  })

  it('tells the model that the run has ended when the process may not act', async () => {
    const resources = resourcesOf({ tools: [tool('Write')], canAct: async () => false })
    const { results } = await collect([call('c1', 'Write')], resources)
    expect(results[0]).to.include({ isError: true, output: 'The run has ended.' })
  })

  it('reports a tool that throws as a bug, with its cause', async () => {
    const cause = new Error('a bug')
    const bugs: [string, unknown][] = []
    const read = tool('Read', () => Promise.reject(cause))
    await collect([call('c1', 'Read')], resourcesOf({ tools: [read], onToolBug: (...bug) => bugs.push(bug) }))
    expect(bugs).to.deep.equal([['Read', cause]])
  })

  it('gives a tool its folder, its signal and the run’s services', async () => {
    const seen: ToolContext[] = []
    const memory = { history: async () => '', keep: async () => {} }
    const read = tool('Read', async (_input, context) => {
      seen.push(context)
      return succeed('')
    })
    const { signal } = new AbortController()
    const resources = resourcesOf({ tools: [read], services: { memory }, workspace: () => '/here', signal })
    await collect([call('c1', 'Read')], resources)
    expect(seen[0]).to.include({ workspace: '/here', memory, signal })
  })

  it('asks for the folder only when a tool starts', async () => {
    const workspace = () => expect.fail('the folder was asked for')
    const { results } = await collect(
      [call('c1', 'Read')],
      resourcesOf({ tools: [tool('Read')], policy: 'deny', workspace }),
    )
    expect(results[0]?.output).to.match(/switched off/)
  })

  it('api.md Events 6: returns the event with which a tool ends the run', async () => {
    const ending = { type: 'plan_queued', plan_id: 'p1' } as const
    const tools = [tool('Read'), tool('Exit', async () => ({ ...succeed('queued'), ending }))]
    const step = stepOf([call('c1', 'Read'), call('c2', 'Exit')], resourcesOf({ tools }))
    let next = await step.next()
    while (!next.done) next = await step.next()
    expect(next.value?.ending).to.equal(ending)
    expect(next.value?.results.map(({ output }) => output)).to.deep.equal(['Read ran', 'queued'])
  })

  it('a failure that a tool returns is an error that the model reads', async () => {
    const tools = [tool('Read', async () => fail('no such file'))]
    const { results } = await collect([call('c1', 'Read')], resourcesOf({ tools }))
    expect(results[0]).to.include({ isError: true, output: 'no such file' })
  })
})
