import { expect } from 'chai'
import { fitResult } from '../../../../shared/agent/tools/mcp/fit-result.ts'

const PNG = 'iVBORw0KGgoAAAAN'
const contentOf = (...content: unknown[]) => fitResult({ content })['content']
const text = (said: string) => ({ type: 'text', text: said })

describe('the result of a call to an MCP server', () => {
  it('keeps each block that can be read, and shows the others', () => {
    expect(contentOf(text('a'), { type: 'chart', data: [1] }, 'so', null, { type: 'text' })).to.deep.equal([
      text('a'),
      text('{"type":"chart","data":[1]}'),
      text('so'),
      text('null'),
      text('{"type":"text"}'),
    ])
  })

  it('may have files without a type, and as `data:` URLs', () => {
    const blocks = contentOf(
      { type: 'image', data: PNG, mimeType: null, annotations: 'x' },
      { type: 'audio', data: `data:audio/wav;base64,${PNG}`, mimeType: 'audio/wav' },
      { type: 'resource', resource: { uri: null, mimeType: null, blob: `data:image/png;base64,${PNG}` } },
      { type: 'resource', resource: { uri: 'file:///a', text: 'b', mimeType: null } },
      { type: 'resource_link', uri: 'file:///a', description: null },
      { type: 'image', data: '%', mimeType: 'image/png' },
    )
    expect(blocks).to.deep.equal([
      { type: 'image', data: PNG, mimeType: 'an unknown type' },
      { type: 'audio', data: PNG, mimeType: 'audio/wav' },
      { type: 'resource', resource: { uri: 'without an address', blob: PNG } },
      { type: 'resource', resource: { uri: 'file:///a', text: 'b' } },
      { type: 'resource_link', uri: 'file:///a', name: 'file:///a' },
      text('[image that cannot be read]'),
    ])
  })

  it('may have null for what is absent, and structured content of any kind', () => {
    expect(fitResult({ content: [], structuredContent: null, isError: null, _meta: null })).to.deep.equal({
      content: [],
    })
    expect(fitResult({ content: [], structuredContent: [1], isError: 'true' })).to.deep.equal({
      content: [text('[1]')],
      isError: true,
    })
  })

  it('stays as it is when it says nothing', () => {
    for (const content of [null, 'a', [{ type: 'text' }]]) expect(fitResult({ content })).to.deep.equal({ content })
  })
})
