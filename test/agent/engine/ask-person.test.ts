import { expect } from 'chai'
import type { AskRequest, Decision, OpenAsk } from '../../../shared/agent/engine/permissions.ts'
import { type Answer, type Question, succeed } from '../../../shared/agent/tools/port.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import { call, collect, resourcesOf, SOON, tool, typesOf } from './tool-step-setup.ts'

const FORM = {
  type: 'object',
  required: ['name'],
  properties: { name: { type: 'string' }, size: { type: 'integer', default: 3 } },
}

describe('a question of a tool', () => {
  /** The answer that a tool gets, the request that was opened, and the events of the call. */
  async function ask(question: Question, decided: Partial<Decision> | undefined) {
    const requests: AskRequest[] = []
    const openAsk: OpenAsk = async (request) => {
      requests.push(request)
      if (!decided) throw new AppError('permission', 'nobody can be asked')
      const decision: Decision = { allow: true, how: 'reply', reason: '', ...decided }
      return { id: 'perm_1', expiresAt: SOON, decision: Promise.resolve(decision) }
    }
    let answer: Answer | undefined
    const asking = tool('mcp__s__t', async (_input, context) => {
      answer = await context.ask(question)
      return succeed('done')
    })
    const { events } = await collect([call('c1', 'mcp__s__t')], resourcesOf({ tools: [asking], openAsk }))
    return { answer, requests, events }
  }

  it("D40.4: for a form is a permission request with its schema and defaults, and the reply's input is the answer", async () => {
    const { answer, events } = await ask({ message: 'Who?\u202e', form: FORM }, { input: { name: 'Ada', size: 4 } })
    expect(answer).to.deep.equal({ action: 'accept', content: { name: 'Ada', size: 4 } })
    expect(typesOf(events)).to.deep.equal(['tool_use', 'permission_request', 'permission_resolved', 'tool_result'])
    expect(events[1]).to.deep.include({
      tool_use_id: 'c1',
      tool_name: 'mcp__s__t',
      input: { size: 3 },
      preview: { kind: 'form', schema: FORM },
      expires_at: SOON,
    })
    expect(events[1]).to.have.property('message').that.does.not.include('\u202e')
    expect((await ask({ message: 'Who?', form: FORM }, {})).answer).to.deep.equal({
      action: 'accept',
      content: { size: 3 },
    })
  })

  it('D40.4: for an address shows it, and is answered without a form', async () => {
    const { answer, events } = await ask({ message: 'Sign in.', url: 'https://example.com/' }, {})
    expect(answer).to.deep.equal({ action: 'accept' })
    expect(events[1]).to.deep.include({ input: {}, preview: { kind: 'link', url: 'https://example.com/' } })
  })

  it('D40.4: is declined by a reply, and cancelled when nobody has answered or could be asked', async () => {
    const answerOf = async (decided: Partial<Decision> | undefined) =>
      (await ask({ message: 'Who?', form: FORM }, decided)).answer
    expect(await answerOf({ allow: false })).to.deep.equal({ action: 'decline' })
    expect(await answerOf({ allow: false, how: 'timeout' })).to.deep.equal({ action: 'cancel' })
    expect(await answerOf(undefined)).to.deep.equal({ action: 'cancel' })
  })

  it('D37.1: is resolved before the result of its call, also when the tool does not wait for it', async () => {
    const decision = Promise.withResolvers<Decision>()
    const openAsk: OpenAsk = async () => ({ id: 'perm_1', expiresAt: SOON, decision: decision.promise })
    const hasty = tool('mcp__s__t', async (_input, context) => {
      void context.ask({ message: 'Who?', form: FORM })
      setImmediate(() => decision.resolve({ allow: false, how: 'timeout', reason: '' }))
      return succeed('done')
    })
    const { events } = await collect([call('c1', 'mcp__s__t')], resourcesOf({ tools: [hasty], openAsk }))
    expect(typesOf(events)).to.deep.equal(['tool_use', 'permission_request', 'permission_resolved', 'tool_result'])
  })
})
