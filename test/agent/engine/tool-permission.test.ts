import { expect } from 'chai'
import type { Decision } from '../../../shared/agent/engine/permissions.ts'
import { succeed } from '../../../shared/agent/tools/port.ts'
import type { JsonObject } from '../../../shared/kernel/events.ts'
import { answered, call, collect, resourcesOf, type Setup, tool } from './tool-step-setup.ts'

const ALLOW = { allow: true, how: 'reply', reason: '', by: 'ann' } as const

/** Asks for one call of `Write` with `{"path":"a"}`, and lists the inputs that it ran with. */
async function ask(decision: Decision, { problemWith, policyOf, ...setup }: Setup & Checks = {}) {
  const inputs: JsonObject[] = []
  const write = tool('Write', async (input) => (inputs.push(input), succeed('written')))
  const resources = resourcesOf({ tools: [write], policy: 'ask', openAsk: answered(decision), ...setup })
  Object.assign(resources.tools.toolBox, { ...(problemWith && { problemWith }), ...(policyOf && { policyOf }) })
  const { events, results } = await collect([call('c1', 'Write', '{"path":"a"}')], resources)
  return { inputs, events, result: results[0] }
}

type Checks = {
  problemWith?: (name: string, input: JsonObject) => Promise<string | undefined>
  policyOf?: (name: string, input: JsonObject) => 'ask' | 'deny'
}

describe('the permission of a call', () => {
  it('a call that is allowed runs with its own input, and the model reads only its output', async () => {
    const { inputs, result } = await ask(ALLOW)
    expect(inputs).to.deep.equal([{ path: 'a' }])
    expect(result).to.include({ isError: false, output: 'written' })
  })

  it('a tool that uses files shows its preview and runs where no files have to be brought', async () => {
    const preview = { kind: 'command', command: 'ls' } as const
    const read = { ...tool('Read'), usesFiles: true, preview: async () => preview }
    const { events, results } = await collect([call('c1', 'Read')], resourcesOf({ tools: [read], policy: 'ask' }))
    expect(events.find(({ type }) => type === 'permission_request')).to.deep.include({ preview })
    expect(results[0]).to.include({ isError: false, output: 'Read ran' })
  })

  it('D24.1: a call runs with the input of the reply, and the output that the model reads begins with it', async () => {
    const { inputs, events, result } = await ask({ ...ALLOW, input: { path: 'b' } })
    expect(inputs).to.deep.equal([{ path: 'b' }])
    expect(result?.output).to.match(/^The user changed[^]*{"path":"b"}\n\nwritten$/)
    expect(result).to.include({ isError: false })
    expect(events.find(({ type }) => type === 'permission_resolved')).to.deep.include({
      by: 'ann',
      input: { path: 'b' },
    })
  })

  it('D24.1: the input of the reply is checked here too: what does not fit the schema does not run', async () => {
    const problemWith = async (_name: string, { path }: JsonObject) => (path === 'b' ? 'path is too long' : undefined)
    const { inputs, result } = await ask({ ...ALLOW, input: { path: 'b' } }, { problemWith })
    expect(inputs).to.deep.equal([])
    expect(result).to.include({ isError: true })
    expect(result?.output).to.include('path is too long')
  })

  it('D24.1: the input of the reply is checked here too: what the policy denies does not run', async () => {
    const policyOf = (_name: string, { path }: JsonObject) => (path === 'b' ? 'deny' : 'ask')
    const { inputs, result } = await ask({ ...ALLOW, input: { path: 'b' } }, { policyOf })
    expect([inputs, result?.isError]).to.deep.equal([[], true])
  })

  it('a tool that is allowed for the session runs where nothing can be remembered, too', async () => {
    expect((await ask({ ...ALLOW, remember: 'session' })).inputs).to.have.length(1)
  })
})
