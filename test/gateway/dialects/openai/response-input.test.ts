import { expect } from 'chai'
import { readInput } from '../../../../services/gateway/dialects/openai/response-input.ts'
import { Fields } from '../../../../services/gateway/dialects/shared/fields.ts'

const RUN = '0123456789abcdef0123456789abcdef'
const call = (toolUseId: string) => ({ type: 'function_call', call_id: `call_${RUN}01_${toolUseId}`, name: 'f' })
const output = (toolUseId: string) => ({ ...call(toolUseId), type: 'function_call_output', output: toolUseId })
const says = (role: string, content = 'hi') => ({ role, content })
const approval = { type: 'mcp_approval_response', approval_request_id: `perm_${RUN}`, approve: true }

describe('the input of a response', () => {
  const read = (input: unknown, hasPrevious = true) => readInput(new Fields({ input }), hasPrevious)
  const answered = (input: unknown) => read(input).outputs.map(({ toolUseId }) => toolUseId)

  it('answers the calls behind the last one; outputs before it, or before an answer of the model, are history', () => {
    expect(answered([output('a'), output('b')])).to.deep.equal(['a', 'b'])
    expect(answered([call('a'), output('a'), call('b'), output('b')])).to.deep.equal(['b'])
    expect(answered([call('a'), output('a'), says('assistant')])).to.deep.equal([])
  })

  it('has a message of the user where one stands behind the last call, wherever the answers stand', () => {
    expect(read([says('user'), output('a')]).hasMessage).to.equal(true)
    expect(read([says('user'), call('a'), output('a')]).hasMessage).to.equal(false)
    expect(read([output('a'), approval]).hasMessage).to.equal(false)
    expect(read('a text').said().prompt).to.equal('a text')
  })

  it('D31: an answer to an approval needs the response that asked, unless an output names it', () => {
    expect(() => read([approval], false)).to.throw('answers to approvals need the response that asked')
    expect(read([approval]).replies).to.deep.equal([{ id: `perm_${RUN}`, allow: true }])
    expect(read([approval, output('a')], false).replies).to.have.length(1)
  })

  it('refuses the ids of other servers', () => {
    expect(() => read([{ ...output('a'), call_id: 'call_1' }])).to.throw('the id of a function call of this server')
    expect(() => read([{ ...approval, approval_request_id: 'x' }])).to.throw('the id of an approval request')
  })
})
