import { expect } from 'chai'
import { withTools } from '../../../../shared/agent/providers/chat/tools-json.ts'
import type { ToolDefinition } from '../../../../shared/agent/providers/port.ts'

const toolOf = (name: string, onRead = () => {}): ToolDefinition => ({
  name,
  get description() {
    onRead()
    return 'tut, was er soll: ä€𝄞'
  },
  inputSchema: { type: 'object', properties: { path: { type: 'string' } } },
})

const namesIn = (json: Uint8Array): string[] => {
  const { tools = [] } = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(json))
  return tools.map((tool: { function: { name: string } }) => tool.function.name)
}

describe('the tools in a request', () => {
  it('are encoded once for all requests with the same list', () => {
    let encoded = 0
    const tools = [toolOf('Read', () => encoded++), toolOf('Write')]
    const requests = ['one', 'two', 'three'].map((content) => withTools(tools, { model: 'm', content }))
    expect(requests.map(namesIn)).to.deep.equal([
      ['Read', 'Write'],
      ['Read', 'Write'],
      ['Read', 'Write'],
    ])
    expect(encoded).to.equal(1)
  })

  it('are encoded once for the lists of several agents', () => {
    let encoded = 0
    const tools = [toolOf('Read', () => encoded++), toolOf('Agent')]
    withTools(tools, { model: 'm' })
    expect(namesIn(withTools([...tools], { model: 'm' }))).to.deep.equal(['Read', 'Agent'])
    expect(namesIn(withTools(tools.slice(0, 1), { model: 'm' }))).to.deep.equal(['Read'])
    expect(encoded).to.equal(1)
  })

  it('include those that were added to the list after a request', () => {
    const tools = [toolOf('Read')]
    expect(namesIn(withTools(tools, { model: 'm' }))).to.deep.equal(['Read'])
    tools.push(toolOf('mcp__late__find'))
    expect(namesIn(withTools(tools, { model: 'm' }))).to.deep.equal(['Read', 'mcp__late__find'])
  })

  it('are left out when there are none', () => {
    expect(String(Buffer.from(withTools([], { model: 'm' })))).to.equal('{"model":"m"}')
  })
})
