// Tests tool-step.ts and run-tool.ts.
import { expect } from 'chai'
import type { Decision, OpenAsk } from '../../../shared/agent/engine/permissions.ts'
import { toolUseBlocks } from '../../../shared/agent/engine/tool-step.ts'
import type { ToolCall } from '../../../shared/agent/engine/turn.ts'
import { type PreviewContext, succeed, type Tool } from '../../../shared/agent/tools/port.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import {
  ALLOWED,
  answered,
  call,
  collect,
  resourcesOf,
  type Setup,
  SOON,
  stepOf,
  tool,
  typesOf,
} from './tool-step-setup.ts'

describe('tool step', () => {
  it('D4.3: a call is tool_use, its progress, then tool_result', async () => {
    const reporting = tool('Dig', async (_input, { report }) => {
      report(0.5, 'half way')
      return succeed('found')
    })
    const { events, results } = await collect([call('c1', 'Dig', '{"deep":true}')], resourcesOf({ tools: [reporting] }))
    expect(events).to.deep.equal([
      { type: 'tool_use', id: 'c1', tool_name: 'Dig', input: { deep: true } },
      { type: 'tool_progress', id: 'c1', tool_name: 'Dig', progress: 0.5, detail: 'half way' },
      { type: 'tool_result', id: 'c1', tool_name: 'Dig', output: 'found', is_error: false },
    ])
    expect(results).to.deep.equal([{ id: 'c1', toolName: 'Dig', output: 'found', isError: false }])
  })

  it('D4.3: calls run in parallel and report in order of completion; the history keeps the order of the calls', async () => {
    const second = Promise.withResolvers<void>()
    const tools = [
      tool('First', async () => {
        await second.promise
        return succeed('1')
      }),
      tool('Second', async () => {
        setImmediate(() => second.resolve())
        return succeed('2')
      }),
    ]
    const { events, results } = await collect([call('a', 'First'), call('b', 'Second')], resourcesOf({ tools }))
    const reported = events.filter((event) => event.type === 'tool_result').map(({ id }) => id)
    expect(reported).to.deep.equal(['b', 'a'])
    expect(results.map(({ id }) => id)).to.deep.equal(['a', 'b'])
  })

  it('api.md Permission request: what could mislead the reader of the message is shown as an escape', async () => {
    const step = stepOf([call('c1', 'Wr\u202eite')], resourcesOf({ tools: [tool('Wr\u202eite')], policy: 'ask' }))
    await step.next()
    expect((await step.next()).value).to.include({ message: 'Wr\\u202eite wants to run' })
  })

  it('api.md Permission request: a tool that asks runs after it is allowed', async () => {
    const decision = Promise.withResolvers<Decision>()
    const resources = resourcesOf({
      tools: [tool('Write')],
      policy: 'ask',
      openAsk: async () => ({ id: 'perm_7', expiresAt: SOON, decision: decision.promise }),
    })
    const step = stepOf([call('c1', 'Write')], resources)
    await step.next()
    expect((await step.next()).value).to.deep.equal({
      type: 'permission_request',
      id: 'perm_7',
      tool_name: 'Write',
      input: {},
      message: 'Write wants to run',
      tool_use_id: 'c1',
      expires_at: SOON,
    })
    decision.resolve({ allow: true, how: 'reply', reason: '' })
    expect((await step.next()).value).to.deep.equal({
      type: 'permission_resolved',
      id: 'perm_7',
      tool_use_id: 'c1',
      tool_name: 'Write',
      allow: true,
      how: 'reply',
      reason: '',
    })
    expect((await step.next()).value).to.include({ output: 'Write ran', is_error: false })
  })

  it('a denied tool is not run, and the model reads the reason of the denial', async () => {
    let ran = false
    const write = tool('Write', async () => {
      ran = true
      return succeed('')
    })
    const openAsk = answered({ allow: false, how: 'reply', reason: 'not today' })
    const resources = resourcesOf({ tools: [write], policy: 'ask', openAsk })
    const { events, results } = await collect([call('c1', 'Write')], resources)
    expect(typesOf(events)).to.deep.equal(['tool_use', 'permission_request', 'permission_resolved', 'tool_result'])
    expect(events[2]).to.include({ allow: false, how: 'reply', reason: 'not today' })
    expect(results[0]).to.include({ isError: true, output: 'Permission to use Write was denied: not today' })
    expect(ran).to.equal(false)
  })

  it('a permission that could not be asked for is a denial, not the end of the run', async () => {
    let ran = false
    const write = tool('Write', async () => {
      ran = true
      return succeed('')
    })
    const bugs: unknown[] = []
    for (const cause of [new AppError('unavailable', 'Redis is unreachable'), new Error('a bug')]) {
      const openAsk = () => Promise.reject(cause)
      const resources = resourcesOf({
        tools: [write],
        policy: 'ask',
        openAsk,
        onToolBug: (_name, bug) => bugs.push(bug),
      })
      const { events, results } = await collect([call('c1', 'Write')], resources)
      expect(typesOf(events)).to.deep.equal(['tool_use', 'tool_result'])
      expect(results[0]).to.include({
        isError: true,
        output: 'Permission to use Write was denied: the permission could not be asked',
      })
    }
    expect(ran).to.equal(false)
    expect(bugs.map(String)).to.deep.equal(['Error: a bug'])
  })

  it('a tool that is allowed starts only when this process may act for the run', async () => {
    const fence = Promise.withResolvers<boolean>()
    const asked = Promise.withResolvers<void>()
    const starts: string[] = []
    const write = tool('Write', async () => {
      starts.push('Write')
      return succeed('')
    })
    const canAct = () => {
      asked.resolve()
      return fence.promise
    }
    const collected = collect([call('c1', 'Write')], resourcesOf({ tools: [write], policy: 'ask', canAct }))
    await asked.promise
    await new Promise(setImmediate)
    expect(starts).to.deep.equal([])
    fence.resolve(true)
    expect((await collected).results[0]?.isError).to.equal(false)
    expect(starts).to.deep.equal(['Write'])
  })

  it('P2: no tool starts in a process that was replaced', async () => {
    const write = tool('Write', () => expect.fail('it ran'))
    const resources = resourcesOf({
      tools: [write],
      canAct: async () => false,
      onToolBug: (_name, cause) => expect.fail(String(cause)),
    })
    expect((await collect([call('c1', 'Write')], resources)).results[0]?.isError).to.equal(true)
  })

  it('P2: a tool that has started may not act once the lease is not held or the run has ended', async () => {
    let isHeld = true
    const run = new AbortController()
    const seen: string[] = []
    const tryToAct = (assertMayAct: () => void) => {
      try {
        assertMayAct()
        seen.push('acts')
      } catch (cause) {
        seen.push(cause instanceof AppError ? cause.kind : String(cause))
      }
    }
    const write = tool('Write', async (_input, { assertMayAct }) => {
      tryToAct(assertMayAct)
      isHeld = false
      tryToAct(assertMayAct)
      isHeld = true
      run.abort('worker_lost')
      tryToAct(assertMayAct)
      return succeed('')
    })
    await collect([call('c1', 'Write')], resourcesOf({ tools: [write], mayAct: () => isHeld, signal: run.signal }))
    expect(seen).to.deep.equal(['acts', 'unavailable', 'worker_lost'])
  })

  it('P2: a tool that lost the lease before its first effect runs again when the lease is held, and the model sees one result', async () => {
    let [asked, runs] = [0, 0]
    const setup = {
      canAct: async () => ++asked > 0,
      mayAct: () => asked > 1,
      onToolBug: (_name: string, cause: unknown) => expect.fail(String(cause)),
    }
    for (const caught of [false, true]) {
      asked = runs = 0
      const write = tool('Write', async (_input, { assertMayAct }) => {
        runs++
        try {
          assertMayAct()
        } catch (cause) {
          if (caught) return { output: String(cause), isError: true }
          throw cause
        }
        return succeed('written')
      })
      const { events, results } = await collect([call('c1', 'Write')], resourcesOf({ tools: [write], ...setup }))
      expect([runs, results.map(({ output }) => output)]).to.deep.equal([2, ['written']])
      expect(typesOf(events)).to.deep.equal(['tool_use', 'tool_result'])
    }
  })

  it('P2: a tool that lost the lease after an effect does not run again, and the model reads that', async () => {
    let held = true
    const write = tool('Write', async (_input, { assertMayAct }) => {
      assertMayAct()
      held = false
      assertMayAct()
      return succeed('')
    })
    const setup = { mayAct: () => held, onToolBug: (_name: string, cause: unknown) => expect.fail(String(cause)) }
    const { results } = await collect([call('c1', 'Write')], resourcesOf({ tools: [write], ...setup }))
    expect(results[0]?.output).to.match(/^The call was not made, because this server lost its connection/)
  })

  it('P2: a tool that fails as unavailable after an effect is not said to have done nothing', async () => {
    const write = tool('Write', async (_input, { assertMayAct }) => {
      assertMayAct()
      throw new AppError('unavailable', 'the store is away')
    })
    const bugs: unknown[] = []
    const onToolBug = (_name: string, bug: unknown) => bugs.push(bug)
    const { results } = await collect([call('c1', 'Write')], resourcesOf({ tools: [write], onToolBug }))
    expect(results[0]?.output).to.match(/^Write failed unexpectedly/)
    expect(bugs).to.have.length(1)
  })

  it('a tool that stops because the run was aborted is no bug, one that fails by itself then is', async () => {
    for (const [cause, expected] of [
      [undefined, []],
      [new Error('a bug'), ['Error: a bug']],
    ] as const) {
      const run = new AbortController()
      const bugs: string[] = []
      const stopped = tool('Sleep', async (_input, { signal }) => {
        run.abort('cancelled')
        throw cause ?? signal.reason
      })
      const onToolBug = (_name: string, bug: unknown) => bugs.push(String(bug))
      await collect([call('c1', 'Sleep')], resourcesOf({ tools: [stopped], signal: run.signal, onToolBug }))
      await new Promise(setImmediate)
      expect(bugs).to.deep.equal(expected)
    }
  })

  it('the files that a tool returns are part of the result', async () => {
    const attachments = [{ name: 'a.png', mediaType: 'image/png', base64: 'eA==' }]
    const read = tool('Read', async () => ({ ...succeed('a.png'), attachments }))
    const { results } = await collect(
      [call('c1', 'Read'), call('c2', 'Glob')],
      resourcesOf({ tools: [read, tool('Glob')] }),
    )
    expect(results[0]).to.deep.include({ attachments })
    expect(results[1]).to.not.have.property('attachments')
  })

  it('a tool can ask for the policy of what it reaches beyond its input, and its preview can, too', async () => {
    const seen: unknown[] = []
    const note = ({ policyOf, workspace }: PreviewContext) => void seen.push([policyOf('Read', {}), workspace])
    const read = tool('Read', async (_input, context) => (note(context), succeed('')))
    const preview: Tool['preview'] = async (_input, context) => note(context)
    await collect([call('c1', 'Read')], resourcesOf({ tools: [{ ...read, preview }], policy: 'ask' }))
    expect(seen).to.deep.equal([
      ['ask', '/nowhere'],
      ['ask', '/nowhere'],
    ])
  })

  const refused: [string, Setup, ToolCall, RegExp][] = [
    ['an unknown tool', { tools: [tool('Read')] }, call('x', 'Rm'), /no tool Rm.*Read/],
    ['input that is not JSON', { tools: [tool('Read')] }, call('x', 'Read', '{"a":'), /not a JSON object/],
    ['input that is no object', { tools: [tool('Read')] }, call('x', 'Read', '[1]'), /not a JSON object/],
    [
      'input against the schema',
      { tools: [tool('Read')], problem: 'path is missing' },
      call('x', 'Read'),
      /path is missing/,
    ],
    [
      'input whose JSON texts were read and is wrong still',
      { tools: [tool('Read')], problem: 'list must be array' },
      { ...call('x', 'Read'), isReread: true },
      /list must be array.*JSON as a text have been read as JSON/,
    ],
    ['a policy of deny', { tools: [tool('Read')], policy: 'deny' }, call('x', 'Read'), /switched off/],
    [
      'a tool that throws',
      {
        tools: [
          tool('Read', async () => {
            throw new Error('secret detail')
          }),
        ],
      },
      call('x', 'Read'),
      /^Read failed unexpectedly/,
    ],
  ]
  for (const [what, setup, refusedCall, message] of refused) {
    it(`${what} is a tool error that the model reads, and the run continues`, async () => {
      const { events, results } = await collect([refusedCall], resourcesOf(setup))
      expect(results[0]?.isError).to.equal(true)
      expect(results[0]?.output).to.match(message)
      expect(typesOf(events)).to.deep.equal(['tool_use', 'tool_result'])
    })
  }

  it('an empty input counts as {}', async () => {
    const { results } = await collect([call('x', 'Read', '')], resourcesOf({ tools: [tool('Read')] }))
    expect(results[0]?.isError).to.equal(false)
    expect(toolUseBlocks([call('x', 'Read', '')])[0]).to.deep.include({ input: {} })
  })

  it('D5.2: an output over the limit keeps its beginning and its end, names the gap, and carries a warning', async () => {
    const output = `begin${'x'.repeat(40)}[exit code 2]`
    const resources = resourcesOf({ tools: [tool('Bash', async () => succeed(output))], maxOutputChars: 26 })
    const { events, results } = await collect([call('c1', 'Bash')], resources)
    expect(results[0]?.output).to.equal('beginxxxxxxxx\n[… 32 of 58 characters left out …]\n[exit code 2]')
    expect(events[1]).to.deep.include({ type: 'warning', code: 'tool_output_truncated' })
  })

  it('a turn makes its first 64 calls, and the others are errors that ask for another turn', async () => {
    const calls = Array.from({ length: 66 }, (_, i) => call(`c${i}`, 'Read'))
    const { results } = await collect(calls, resourcesOf({ tools: [tool('Read')] }))
    expect(results.filter(({ isError }) => isError).map(({ id }) => id)).to.deep.equal(['c64', 'c65'])
  })

  it('an abort ends the events at once even when a tool ignores it', async () => {
    const abort = new AbortController()
    const stubborn = tool('Sleep', () => {
      setImmediate(() => abort.abort('cancelled'))
      return new Promise(() => {})
    })
    const { events, results } = await collect(
      [call('c1', 'Sleep')],
      resourcesOf({ tools: [stubborn], signal: abort.signal }),
    )
    expect(typesOf(events)).to.deep.equal(['tool_use'])
    expect(results).to.deep.equal([])
  })

  it('D35: files come before the preview and the run of a tool that uses them, and before no other', async () => {
    const order: string[] = []
    const note = (what: string) => async () => (order.push(what), succeed(what))
    const preview = async () => (order.push('preview'), undefined)
    const fetch = { ...tool('Fetch', note('Fetch')), preview: async () => undefined }
    const tools = [{ ...tool('Read', note('Read')), usesFiles: true, preview }, fetch]
    const bringFiles = async () => void order.push('files')
    const resources = resourcesOf({ tools, policy: 'ask', bringFiles })
    await collect([call('c1', 'Fetch')], resources)
    await collect([call('c2', 'Read')], resources)
    expect(order).to.deep.equal(['Fetch', 'files', 'preview', 'files', 'Read'])
  })

  it('D35: a tool whose files cannot come does not run, and the model reads why; it is no bug', async () => {
    const bugs: unknown[] = []
    const away = () => Promise.reject(new AppError('unavailable', 'the files are away; try again'))
    const read = { ...tool('Read', () => Promise.reject(new Error('it ran'))), usesFiles: true, preview: away }
    const resources = resourcesOf({
      ...{ tools: [read], policy: 'ask', bringFiles: away, onToolBug: (_name: string, bug: unknown) => bugs.push(bug) },
    })
    const { results } = await collect([call('c1', 'Read')], resources)
    expect(results[0]).to.include({ isError: true, output: 'The call was not made: the files are away; try again' })
    expect(bugs).to.deep.equal([])
  })

  it('D24.4: the request has the preview of the tool; one that fails is left out', async () => {
    const preview = { kind: 'command', command: 'ls' } as const
    const asked: unknown[] = []
    const bugs: unknown[] = []
    const show = { Write: async () => preview, Edit: () => Promise.reject(new Error('a bug')) }
    const resources = resourcesOf({
      tools: Object.entries(show).map(([name, each]) => ({ ...tool(name), preview: each })),
      policy: 'ask',
      onToolBug: (_name, bug) => bugs.push(String(bug)),
      openAsk: async (ask) => {
        asked.push(ask.preview)
        return ALLOWED(ask)
      },
    })
    const { events } = await collect([call('c1', 'Write')], resources)
    const { events: others } = await collect([call('c2', 'Edit')], resources)
    expect(asked).to.deep.equal([preview, undefined])
    expect(events[1]).to.deep.include({ type: 'permission_request', preview })
    expect(others[1]).to.include({ type: 'permission_request' }).and.not.have.property('preview')
    expect(bugs).to.deep.equal(['Error: a bug'])
  })

  it('a run that ends while the preview is made asks for no permission', async () => {
    const abort = new AbortController()
    const preview = async () => {
      abort.abort('cancelled')
      return undefined
    }
    const asked: string[] = []
    const openAsk: OpenAsk = async (ask) => (asked.push(ask.toolName), ALLOWED(ask))
    const tools = [{ ...tool('Write'), preview }]
    const resources = resourcesOf({ tools, policy: 'ask', signal: abort.signal, openAsk })
    const { events } = await collect([call('c1', 'Write')], resources)
    await new Promise(setImmediate)
    expect([typesOf(events), asked]).to.deep.equal([['tool_use'], []])
  })

  it('a run that ends while an input is checked asks for no permission', async () => {
    const abort = new AbortController()
    const asked: string[] = []
    const resources = resourcesOf({
      tools: [tool('Write')],
      policy: 'ask',
      signal: abort.signal,
      openAsk: async (ask) => {
        asked.push(ask.toolName)
        return ALLOWED(ask)
      },
    })
    resources.tools.toolBox.problemWith = async () => {
      abort.abort('cancelled')
      return undefined
    }
    const { events } = await collect([call('c1', 'Write')], resources)
    await new Promise(setImmediate)
    expect([typesOf(events), asked]).to.deep.equal([['tool_use'], []])
  })
})
